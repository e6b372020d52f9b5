"""What a user writes: mypy and pyright look at it, beside an installed wheel."""

from typing import Any, assert_type

import numpy as np

import nmfcluster
from nmfcluster import (
    KernelStack,
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster.affinity import make_affinity
from nmfcluster.anndata import programs
from nmfcluster.meta import metacluster
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.model_selection import (
    ConstraintScorer,
    StabilityScorer,
    choose_n_clusters,
)
from nmfcluster.partitions import BasePartitions, base_partitions

X = np.random.default_rng(0).uniform(size=(30, 4))

consensus = assert_type(NMFConsensus(3, random_state=0).fit(X), NMFConsensus)
labels: np.ndarray = consensus.labels_
assert_type(consensus.loss_, float)
assert_type(consensus.n_iter_, int)
assert_type(consensus.loss_curves_, list[np.ndarray])
assert_type(consensus.predict(X), np.ndarray)
assert_type(consensus.weights_, np.ndarray | None)

pairs = PairwiseConstraints.from_labels([0, 0, 1, 1, *[-1] * 26])
constrained = SSNMFClusterer(3, alpha=1).fit(X, constraints=pairs)
assert_type(constrained.satisfaction_, float)
assert_type(constrained.constraints_, PairwiseConstraints)

stack = assert_type(KernelStack("rbf").fit_transform(X), SimilarityStack)
fused = SimilarityFusionNMF(3, eta=0.5).fit(stack)
assert_type(fused.source_names_, tuple[str, ...])
assert_type(fused.weights_, np.ndarray)
assert_type(fused.counted_, np.ndarray)
assert_type(fused.agreement_.scores, np.ndarray)

biclusters = NMFMetaCluster(3).fit(X)
assert_type(biclusters.components_, np.ndarray)
assert_type(biclusters.transform(X), np.ndarray)
of_groups = NMFMetaCluster(4, base_n_clusters=3, min_groups=2).fit(
    X, groups=["a", "b"] * 15
)
presence: np.ndarray = of_groups.presence_
assert_type(of_groups.without([0], X), NMFMetaCluster)
assert_type(metacluster([of_groups.components_], 4).presence, np.ndarray)


def of_cells(adata: Any) -> NMFMetaCluster:
    return assert_type(programs(adata, 4, batch_key="patient"), NMFMetaCluster)


score: float = StabilityScorer()(consensus, X)
details: dict[str, float] = StabilityScorer(details=True)(consensus, X)
assert_type(ConstraintScorer()(constrained, X, pairs), float)
chosen = choose_n_clusters(consensus, X, range(1, 4), method="vote", random_state=0)
assert_type(chosen.votes, dict[str, int])
most: int = max(chosen.votes.values())
for method in ("auto", "vote", "stability"):  # not known to a checker
    found = choose_n_clusters(consensus, X, range(2, 4), method=method, random_state=0)
    assert_type((found.n_clusters_, found.method), tuple[int, str])
    assert_type(
        (found.as_good, found.votes.get("modes")), tuple[np.ndarray, int | None]
    )
    assert_type(found.best_estimator_, Any)
assert_type(clustering_accuracy(labels, labels), float)
assert_type(base_partitions(X), BasePartitions)
assert_type(make_affinity(X).block(), Any)
nmfcluster.show_versions()
