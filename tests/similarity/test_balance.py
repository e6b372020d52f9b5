"""Large clusters that a similarity that was not normalised splits: they are said to be."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from refusals import warns_naming
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import NMFConsensus, PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import measure_unevenness
from nmfcluster.similarity import Explicit, Factored


@pytest.mark.parametrize("storage", [Explicit, lambda W: Explicit(sp.csr_array(W))])
def test_unevenness_is_counted_over_pairs_of_samples(storage):
    rng = np.random.default_rng(0)
    W = rng.random((30, 30))
    W = W + W.T
    labels = np.r_[[0] * 17, [1] * 9, [2] * 3, [4]]
    sums = [sum(W[i, j] for j in range(30) if j != i) for i in range(30)]
    means = np.zeros((3, 3))  # without the lone sample, and the empty cluster
    for c in range(3):
        for d in range(3):
            pairs = [(i, j) for i in range(30) for j in range(30) if i != j]
            inside = [W[i, j] for i, j in pairs if labels[i] == c and labels[j] == d]
            means[c, d] = np.mean(inside)
    alike = max(
        means[c, d] / min(means[c, c], means[d, d])
        for c in range(3)
        for d in range(3)
        if c != d
    )
    ratio = np.quantile(sums, 0.98) / np.quantile(sums, 0.02)
    assert_allclose(measure_unevenness(storage(W), labels, 5), (ratio, alike))


def test_row_sums_that_are_not_positive_are_not_compared():
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert measure_unevenness(Factored(X - X.mean(axis=0)), np.arange(20) % 2, 2) == (
        0,
        0,
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sizes", [(300, 30, 30), (200, 15)])
@pytest.mark.parametrize("model", [SSNMFClusterer(2), NMFConsensus(2)])
def test_a_large_cluster_that_is_split_is_warned_of(model, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = 20 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(len(y), 3))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    W = np.exp(-squares / np.median(squares))
    model.set_params(n_clusters=len(sizes), affinity="precomputed", random_state=0)
    with warns_naming(UserWarning, "factor", "normalize=True"):
        model.set_params(normalize=False).fit(W)
    assert np.bincount(model.labels_).max() < sizes[0]
    with warnings.catch_warnings():
        # with what the message says, and where sizes differ less
        warnings.simplefilter("error")
        model.set_params(normalize=True).fit(W)
        assert list(np.bincount(model.labels_)) == list(sizes)
        few = np.concatenate([np.flatnonzero(y == c)[:30] for c in range(len(sizes))])
        model.set_params(normalize=False).fit(W[np.ix_(few, few)])


def test_clusters_that_pairs_join_are_not_warned_of():
    y = np.repeat([0, 1, 2], [200, 20, 10])
    W = rbf_kernel(
        20 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(230, 3)), gamma=0.02
    )
    pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    model = SSNMFClusterer(3, affinity="precomputed", normalize=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(W, constraints=pairs)
    assert list(np.bincount(model.labels_)) == [200, 20, 10]
