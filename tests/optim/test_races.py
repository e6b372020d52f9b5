"""Which estimators give starts up, and what is seen of it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import NMFConsensus, NMFMetaCluster, SimilarityFusionNMF, SSNMFClusterer
from nmfcluster._optim.run import Pruning

X, _ = make_blobs(150, 4, centers=7, cluster_std=3.0, random_state=0)
GRAM = rbf_kernel(X, gamma=0.05)


@pytest.fixture
def nobody_is_judged(monkeypatch):
    def still_promising(self, running):
        raise AssertionError("a start is judged that must run to its end")

    monkeypatch.setattr(Pruning, "still_promising", still_promising)


def consensus(**options):
    return NMFConsensus(7, **{"n_init": 6, "random_state": 0} | options)


@pytest.mark.parametrize("meta", ["ptf", "nmf"])
def test_runs_of_an_ensemble_and_optima_that_are_candidates_do_not_race(
    meta, monkeypatch
):
    judged = []
    still_promising = Pruning.still_promising
    monkeypatch.setattr(
        Pruning,
        "still_promising",
        lambda self, running: judged.append(self) or still_promising(self, running),
    )
    model = NMFMetaCluster(3, n_estimators=6, meta=meta, random_state=0).fit(
        X - X.min(axis=0)
    )
    assert len(model.run_losses_) == 6
    assert not judged  # the last factorizations run one by one


def test_who_wants_all_updates_gets_them(nobody_is_judged):
    model = consensus(affinity="precomputed", tol=-1.0, max_iter=45).fit(GRAM)
    assert [len(curve) for curve in model.loss_curves_] == [46] * 6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("normalize", [True, False])
def test_starts_whose_figure_is_not_the_loss_are_compared_once(normalize):
    model = consensus(normalize=normalize, n_estimators=20).fit(X)
    kept, *others = [len(curve) - 1 for curve in model.loss_curves_]
    assert kept >= 20
    assert others.count(30) >= 2  # given up after the only comparison
    assert all(n_iter >= 20 for n_iter in others)


MODELS = {
    "partitions": lambda **options: consensus(**options).fit(X),
    "graph": lambda **options: SSNMFClusterer(7, n_init=6, **options).fit(X),
    "dense": lambda **options: SSNMFClusterer(
        7, n_init=10, affinity="rbf", **options
    ).fit(X),
    "precomputed": lambda **options: NMFConsensus(
        7, n_init=6, affinity="precomputed", **options
    ).fit(GRAM),
    "fusion": lambda **options: SimilarityFusionNMF(
        7, affinity=["rbf", "nearest_neighbors", "landmarks"], tol=1e-6, **options
    ).fit(X),
}


@pytest.mark.slow
@pytest.mark.parametrize("fit", MODELS.values(), ids=MODELS)
def test_starts_are_given_up_alike_for_any_number_of_jobs(fit, monkeypatch):
    one, two = (fit(random_state=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    for a, b in zip(one.loss_curves_, two.loss_curves_, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(one.membership_, two.membership_)
    monkeypatch.setattr(
        Pruning,
        "still_promising",
        lambda self, running: np.ones(len(running), dtype=bool),
    )
    whole = fit(random_state=0)
    raced, all_of_them = (sorted(map(len, m.loss_curves_)) for m in (one, whole))
    assert sum(raced) < sum(all_of_them)
    assert one.loss_ <= whole.loss_ * 1.001
