"""Scores against brute force over matchings and literal formulas."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics.cluster import contingency_matrix

from nmfcluster.metrics import clustering_accuracy, cophenetic_correlation

label_pairs = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=14
).map(lambda pairs: tuple(zip(*pairs, strict=True)))


@given(label_pairs)
def test_accuracy_is_that_of_the_best_matching(pair):
    true, pred = pair
    best = max(
        sum(p[cluster] == label for label, cluster in zip(true, pred, strict=True))
        for p in permutations(range(5))
    )
    assert_allclose(clustering_accuracy(true, pred), best / len(true))
    assert_allclose(clustering_accuracy(pred, true), best / len(true))


@given(label_pairs)
def test_accuracy_is_at_most_the_purity(pair):
    table = contingency_matrix(*pair)
    assert clustering_accuracy(*pair) <= table.max(axis=0).sum() / len(pair[0]) + 1e-12


def test_accuracy_of_names():
    assert clustering_accuracy(["a", "a", "b"], [7, 7, -1]) == 1
    assert clustering_accuracy([1, 1, 1, 1], [0, 1, 2, 3]) == 0.25


def average_linkage_heights(D):
    """Return, for every pair, the mean distance of the two clusters whose union joins them."""
    clusters, heights = [[i] for i in range(len(D))], np.zeros_like(D)
    while len(clusters) > 1:
        means = {
            (a, b): D[np.ix_(clusters[a], clusters[b])].mean()
            for a in range(len(clusters))
            for b in range(a)
        }
        (a, b), height = min(means.items(), key=lambda item: item[1])
        for i in clusters[a]:
            for j in clusters[b]:
                heights[i, j] = heights[j, i] = height
        clusters[b] += clusters.pop(a)
    return heights


@given(st.integers(0, 10**6), st.integers(3, 9), st.integers(0, 1))
def test_cophenetic_correlation_is_that_with_the_average_linkage_tree(
    seed, n, n_missing
):
    rng = np.random.default_rng(seed)
    consensus = rng.uniform(size=(n, n))  # no ties
    consensus = (consensus + consensus.T) / 2
    np.fill_diagonal(consensus, 1)
    a, b = np.triu_indices(n, 1)
    missing = np.arange(len(a)) < n_missing  # of two the distances would be the same
    filled = 1 - consensus
    filled[a[missing], b[missing]] = filled[b[missing], a[missing]] = filled[a, b][
        ~missing
    ].mean()
    heights = average_linkage_heights(filled)
    expected = np.corrcoef(filled[a, b][~missing], heights[a, b][~missing])[0, 1]
    consensus[a[missing], b[missing]] = consensus[b[missing], a[missing]] = np.nan
    assert_allclose(cophenetic_correlation(consensus), expected, atol=1e-9)
    # a sample that no partition saw
    unseen = np.pad(consensus, (0, 1), constant_values=np.nan)
    assert_allclose(cophenetic_correlation(unseen), expected, atol=1e-9)


def test_cophenetic_correlation_of_a_perfect_and_of_a_constant_consensus_is_1():
    labels = np.array([0, 0, 1, 1, 2])
    assert_allclose(cophenetic_correlation(labels[:, None] == labels), 1)
    assert cophenetic_correlation(np.full((4, 4), 0.3) + 0.7 * np.eye(4)) == 1
    assert cophenetic_correlation(np.ones((3, 3))) == 1
