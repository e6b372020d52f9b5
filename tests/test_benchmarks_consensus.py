"""What the consensus functions of the literature compute, and how their questions judge."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from scipy.linalg import eigh
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip(
    "benchmarks.datasets", reason="benchmarks are not installed"
)

from benchmarks import methods  # noqa: E402
from benchmarks.datasets import every  # noqa: E402
from benchmarks.methods import (  # noqa: E402
    base_clusters,
    kc,
    linkage,
    locally_weighted,
    nmfc,
    transfer_cut,
)
from benchmarks.questions import papers, regimes  # noqa: E402
from nmfcluster.datasets import make_partitions  # noqa: E402

pytestmark = pytest.mark.slow  # together

NEW = ("NMFC, degrees", "LWEA", "LWGP", "transfer cut", "HBGF", "MCLA")


@pytest.fixture(scope="module")
def table():
    """Return five noisy partitions of 60 samples into 4 clusters."""
    return make_partitions(60, n_clusters=4, n_partitions=5, noise=0.3, random_state=0)[
        0
    ]


@pytest.mark.parametrize("name", [*NEW, "average linkage"])
def test_noisy_copies_are_recovered_with_empty_clusters(name):
    table, y = make_partitions(
        200, n_clusters=4, n_partitions=20, noise=0.2, random_state=0
    )
    # odd numbers are clusters of none
    labels, _ = methods.load(name).run(None, 2 * table, 4, 0)
    assert adjusted_rand_score(y, labels) > 0.9
    assert len(labels) == 200


def test_indicator_leaves_empty_clusters_out():
    Z = base_clusters.indicator(np.array([[0, 5], [2, 5], [2, 1]]))
    np.testing.assert_array_equal(
        Z.toarray(), [[1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    )


def test_average_linkage_is_that_of_scikit_learn(table, monkeypatch):
    expected = AgglomerativeClustering(7, metric="precomputed", linkage="average")
    expected = expected.fit_predict(1 - kc.coassociation(table, np.float64))
    for rows in (7, 500):
        monkeypatch.setattr(linkage, "ROWS", rows)  # in blocks, and in one
        assert adjusted_rand_score(expected, linkage.cluster(None, table, 7, 0)) == 1
    Z = base_clusters.indicator(table)
    weights = np.arange(1.0, Z.shape[1] + 1)
    whole = 1 - (Z @ np.diag(weights) @ Z.T.toarray()) / 5
    above = whole[np.triu_indices(60, 1)]
    np.testing.assert_allclose(linkage.distances(Z, 5, weights), above, atol=1e-12)


def test_index_of_base_clusters():
    table = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 1]])
    actual = locally_weighted.cluster_index(base_clusters.indicator(table), 2)
    third = np.log2(3) - 2 / 3  # the entropy of shares of 2/3 and 1/3
    np.testing.assert_allclose(actual, np.exp(-np.array([1, 0, 0, third]) / 0.8))


def test_transfer_cut_has_the_eigenvectors_of_the_whole_graph(table, monkeypatch):
    B = base_clusters.indicator(table)
    n, c = B.shape
    weights = np.random.default_rng(0).uniform(0.5, 1, size=c)
    seen = []
    monkeypatch.setattr(
        transfer_cut, "cluster_directions", lambda rows, *_: seen.append(rows)
    )
    B = sp.csr_array(B * weights)
    transfer_cut.cut(B, 3, 0)
    whole = np.block(
        [[np.zeros((n, n)), B.toarray()], [B.T.toarray(), np.zeros((c, c))]]
    )
    _, vectors = eigh(whole, np.diag(whole.sum(axis=1)))  # W v = (1 - lambda) D v
    for ours, theirs in zip(seen[0].T, vectors[:n, ::-1].T, strict=False):
        cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
        assert abs(cosine) == pytest.approx(1, abs=1e-8)


def test_printed_forms_are_not_normalised(monkeypatch, table):
    asked = []

    class Model(nmfc.NMFConsensus):
        def fit(self, X):
            asked.append((self.normalize, self.factorization))
            return super().fit(X)

    monkeypatch.setattr(nmfc, "NMFConsensus", Model)
    for name in ("NMFC", *nmfc.PRINTED):
        methods.load(name).run(None, table, 3, 0)
    assert asked == [(True, "bi"), (False, "bi"), (False, "tri")]
    assert {*nmfc.PRINTED} == {*papers.EXTRA}


def test_numbers_of_clusters_of_base_partitions():
    ranges = [regimes.n_clusters(regime, 4, 100) for regime in regimes.REGIMES]
    assert ranges == [(4, 4), (4, 12), (4, 10)]
    assert regimes.n_clusters("k to sqrt n", 12, 100) == (12, 12)
    assert set(every.ALL) <= set(datasets.names())


def test_mean_ranks_and_verdicts():
    scores = {
        ("a", "k"): {
            regimes.OURS: [0.5, 0.7],
            regimes.PRINTED: [0.6, 0.6],
            "HBGF": [0.9, 0.9],
        },
        ("b", "k"): {
            regimes.OURS: [0.8, 0.8],
            regimes.PRINTED: [0.1, 0.1],
            "HBGF": [0.2, 0.2],
        },
    }
    ranks = regimes.mean_ranks(scores)
    assert ranks["k"] == {regimes.OURS: 1.75, regimes.PRINTED: 2.75, "HBGF": 1.5}
    [told] = regimes.rank_verdicts(ranks)
    assert "missed; the best of the others is HBGF with 1.50" in told
    ranks["k"][regimes.OURS] = 1.5  # shared is best, too
    assert "of 3): met" in regimes.rank_verdicts(ranks)[0]
    rows = [
        {"data": name, regimes.OURS: 0.5, regimes.PRINTED: a}
        for name, a in zip("ab", (0.6, 0.2), strict=True)
    ]
    told = regimes.printed_verdict(rows)
    assert "on 1 of 2 sets (target: none): missed, a by 0.100" in told
    assert told.endswith("over it on 1.")
    assert "on 0 of 1 sets (target: none): met" in regimes.printed_verdict(rows[1:])


def test_factorization_of_features_beside_the_consensus():
    rows = [
        {"data": name, regimes.OURS: 0.5, regimes.PLAIN: ari}
        for name, ari in zip("abc", (0.9, 0.49, 0.4), strict=True)
    ]
    told = regimes.plain_verdict(rows)
    assert "features, is 0.597, and that of the default over the regimes 0.500" in told
    assert "above the default on 1 of 3 sets" in told
    assert told.endswith("below it on 1.")
    rows = [
        {"NMFC": "0.500 ± 0.1", papers.PLAIN: accuracy}
        for accuracy in ("0.600", "0.500", "0.300")
    ]
    told = papers._beside_plain(rows)
    assert "is 0.500 for NMFC and 0.467 for" in told
    assert told.endswith("than NMFC on 1 sets and less accurate on 1.")


def test_made_sets_with_missing_labels():
    with parallel_config("sequential"):
        made = regimes._made(regimes.Effort(4, 1, 100))
    missing = [title for title, [(table, _)] in made.items() if table.min() < 0]
    assert missing == ["noise 0.4, 60% missing"]
    assert all(table.shape == (100, 4) for [(table, _)] in made.values())
