"""Confidence: who is doubtful, whatever the size of the cluster; and what is noise."""

import dask.array as da
import numpy as np
import pytest
from consensus.cases import of_partitions
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, KMeans
from sklearn.metrics import roc_auc_score

from nmfcluster import NMFConsensus
from nmfcluster.dask import NMFConsensus as DaskConsensus
from nmfcluster.datasets import make_partitions
from nmfcluster.metrics import cluster_consensus, confidence
from nmfcluster.partitions import base_partitions


def literal(table, labels, weights, counts):
    """Return the confidence by loops over samples, clusters and partitions."""
    found = np.zeros(len(table))
    clusters = np.unique(labels[labels >= 0])
    for i in np.flatnonzero(labels >= 0):
        placed = np.flatnonzero(table[i] >= 0)
        evidence = {}
        for c in clusters:
            logs = 0
            for t in placed:
                members = counts * (labels == c) * (table[:, t] >= 0)
                share = (members * (table[:, t] == table[i, t])).sum() / members.sum()
                logs += weights[t] * np.log(1 + share / 0.03)
            evidence[c] = np.exp(logs / weights[placed].sum()) - 1
        found[i] = evidence[labels[i]] / sum(evidence.values())
        seen = table[i] > -2
        found[i] *= weights[placed].sum() / weights[seen].sum()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("normalize", [True, False])
def test_confidence_is_that_of_the_formula_everywhere(normalize):
    table, _ = make_partitions((30, 15, 8), n_partitions=7, noise=0.3, random_state=0)
    if normalize:
        rng = np.random.default_rng(0)
        table = np.where(rng.random(table.shape) < 0.15, -1, table)
        table = np.where(rng.random(table.shape) < 0.15, -2, table)
    weights = np.arange(1.0, 8)
    model = of_partitions(3, table, weights=weights, normalize=normalize)
    expected = literal(table, model.labels_, model.weights_, np.ones(53))
    assert_allclose(model.confidence_, expected, atol=1e-12)
    same = confidence(model.partitions_, model.labels_, model.weights_)
    assert_allclose(same, expected, atol=1e-12)
    means = cluster_consensus(table, model.labels_, weights=weights)
    inside = model.labels_ >= 0
    sums = np.bincount(model.labels_[inside], expected[inside])
    assert_allclose(means, sums / np.bincount(model.labels_[inside]))
    # as memberships of 0 and 1, and counted
    soft = NMFConsensus(
        3, affinity="partitions", weights=weights, normalize=normalize
    ).fit([np.eye(3)[table[:, 0]] * (table[:, :1] >= 0), *table.T[1:]])
    found = literal(
        np.column_stack([np.maximum(table[:, 0], -2), table[:, 1:]]),
        soft.labels_,
        model.weights_,
        np.ones(53),
    )
    untouched = table[:, 0] != -1  # tables of memberships know no noise
    assert_allclose(soft.confidence_[untouched], found[untouched], atol=1e-12)
    counts = np.arange(53) % 3
    counted = NMFConsensus(
        3, affinity="partitions", weights=weights, normalize=normalize
    ).fit(table, sample_weight=counts)
    found = literal(table, counted.labels_, model.weights_, counts)
    assert_allclose(counted.confidence_, found, atol=1e-12)


def test_a_similarity_gives_the_share_of_the_own_cluster():
    A = np.kron(np.eye(2), np.ones((4, 4))) + 0.1
    model = NMFConsensus(2, affinity="precomputed").fit(A)
    assert_allclose(model.confidence_, 1.1 / 1.2)


def test_doubtful_samples_have_the_lowest_confidence_in_clusters_of_any_size():
    rng = np.random.default_rng(1)
    centers = np.repeat([[0.0, 0], [20, 0], [22.8, 0]], [400, 100, 100], axis=0)
    y = np.repeat([0, 1, 2], [400, 100, 100])
    X = rng.normal(size=(600, 2)) + centers
    table = [KMeans(6 + t, n_init=1, random_state=t).fit_predict(X) for t in range(20)]
    model = of_partitions(3, np.column_stack(table))
    wrong = model.labels_ != y
    assert 0 < wrong.sum() < 30
    assert roc_auc_score(wrong, -model.confidence_) > 0.9
    far = model.labels_ == 0
    assert_allclose(model.confidence_[far], 1)
    assert_allclose(cluster_consensus(table, y)[0], 1)


def test_certain_is_1_chance_is_one_in_k_and_copies_change_nothing():
    y = np.repeat([0, 1, 2], [50, 6, 3])
    split = np.arange(59)  # of finer partitions
    assert_array_equal(confidence(np.column_stack([y, split]), y), 1)
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [2000, 1000, 500, 250])
    codes = rng.integers(0, 4, size=(len(labels), 12))
    assert_allclose(cluster_consensus(codes, labels), 0.25, atol=0.02)
    table, _ = make_partitions((30, 15, 8), noise=0.3, missing=0.2, random_state=0)
    once = of_partitions(3, table)
    twice = of_partitions(3, np.repeat(table, 2, axis=0))
    assert_array_equal(twice.labels_[::2], once.labels_)
    assert_allclose(twice.membership_[::2], once.membership_, atol=1e-3)
    assert_allclose(twice.confidence_[::2], once.confidence_, atol=1e-12)


# --- noise -----------------------------------------------------------------------------


def planted_noise():
    """Return a table of 12 runs, 15 samples that 7 to 12 of these call noise, and no others."""
    table, y = make_partitions((60, 40), n_partitions=12, noise=0.1, random_state=0)
    rng = np.random.default_rng(0)
    noise = np.zeros(100, dtype=bool)
    noise[rng.permutation(100)[:15]] = True
    for i in range(100):
        n_noise = rng.integers(7, 13) if noise[i] else rng.integers(0, 7)
        table[i, rng.permutation(12)[:n_noise]] = -1
    return table, y, noise


def assert_noise(model, noise):
    assert_array_equal(model.labels_ == -1, noise)
    assert_allclose(model.membership_[noise], 1 / 2)
    assert_array_equal(model.confidence_ == 0, noise)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.* in no cluster")
@pytest.mark.parametrize("form", ["table", "floats", "soft", "weighted"])
def test_what_most_runs_call_noise_is_noise(form):
    table, _, noise = planted_noise()
    X = table.astype(float) if form == "floats" else table
    options = {}
    if form == "soft":  # a table of memberships that places everybody
        X = [*table.T, *table.T, np.tile([0.5, 0.5], (100, 1))]
    if form == "weighted":  # runs of weight 0 do not count
        X = np.column_stack([table, np.zeros((100, 30), dtype=int)])
        options = {"weights": [2] * 12 + [0] * 30}
    model = of_partitions(2, X, **options)
    if form == "soft":
        noise = 2 * (table == -1).sum(axis=1) > 12.5
    assert_noise(model, noise)
    assert_array_equal(model.predict(X) == -1, noise)
    # the others are what they are without it
    if form == "table":
        others = of_partitions(2, table[~noise])
        assert_array_equal(others.labels_, model.labels_[~noise])
        assert_array_equal(others.membership_, model.membership_[~noise])


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.* in no cluster")
@pytest.mark.parametrize("max_distinct", [200, 60])
def test_noise_of_blocks_is_that_in_memory(max_distinct):
    table, _, noise = planted_noise()
    X = da.from_array(table, chunks=(37, -1))
    model = DaskConsensus(2, max_distinct=max_distinct, random_state=0).fit(X)
    labels = model.labels_.compute()
    assert_array_equal(labels == -1, noise)
    assert_allclose(model.membership_.compute()[noise], 1 / 2)
    local = of_partitions(2, table)
    if max_distinct == 200:
        assert_array_equal(labels, local.labels_)
        assert_array_equal(model.confidence_.compute(), local.confidence_)
    assert_array_equal(model.predict(X).compute() == -1, noise)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.* in no cluster")
@pytest.mark.parametrize("predict_unseen", [False, True])
def test_samples_that_were_not_drawn_are_not_noise(predict_unseen):
    rng = np.random.default_rng(0)
    blobs = [rng.normal(size=(60, 2)) / 3, rng.normal(size=(60, 2)) / 3 + 8]
    X = np.vstack([*blobs, rng.uniform((-40, 20), (40, 100), size=(15, 2))])
    model = NMFConsensus(
        2,
        estimator=DBSCAN(eps=1.5, min_samples=4),
        n_estimators=25,
        max_samples=0.3,
        predict_unseen=predict_unseen,
        random_state=0,
    ).fit(X)
    assert_noise(model, np.arange(135) >= 120)
    assert_array_equal(model.predict(X) == -1, np.arange(135) >= 120)
    undrawn = model.partitions_ == -2
    assert undrawn.any() != predict_unseen
    again = of_partitions(2, model.partitions_)
    assert_array_equal(again.labels_, model.labels_)
    found = base_partitions(
        X, DBSCAN(eps=1.5, min_samples=4), n_estimators=2, max_samples=0.5
    )
    for t, drawn in enumerate(found.samples):
        assert_array_equal(
            np.flatnonzero(found.labels[:, t] == -2), np.setdiff1d(range(135), drawn)
        )


def test_half_of_the_runs_are_not_most():
    table = np.array([[0, 0, 1, 1, 0, -1], [0, 0, 1, 1, -1, -1], [0, 0, 1, 1, 0, -2]]).T
    with pytest.warns(UserWarning, match="1 sample in no cluster.*: 5"):
        model = of_partitions(2, np.column_stack([table, table[:, 1]]))
    assert_array_equal(model.labels_, [0, 0, 1, 1, 0, -1])
    assert_allclose(model.confidence_, [1, 1, 1, 1, 0.5, 0])
