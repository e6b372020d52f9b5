"""Criteria that look at clusters: how far apart they are, prediction strength."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from nmfcluster.model_selection.vote import (
    count_predictable_clusters,
    count_separated_clusters,
    draw_split,
    prediction_strength,
    split_strength,
)

X, Y = make_blobs(240, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


def noise(n, p):
    return np.random.default_rng(0).normal(size=(n, p))


# --- far apart ---------------------------------------------------------------------------------


def partitions(n):
    """Yield the labels of all partitions of n samples."""
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, c] for row in rows for c in range(max(row) + 2)]
    yield from map(np.array, rows)


def literal_index(A, labels):
    """Return the least distance of two clusters over the largest in one: Dunn's index."""
    within, between = [0.0], [np.inf]
    for i, j in combinations(range(len(A)), 2):
        (within if labels[i] == labels[j] else between).append(
            np.linalg.norm(A[i] - A[j])
        )
    return min(between) / max(within)


@pytest.mark.parametrize(("seed", "apart"), [(0, 0), (1, 3), (4, 3), (3, 8)])
def test_clusters_that_are_far_apart_have_the_largest_index_of_all(seed, apart):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(7, 2)) + apart * (np.arange(7) < 3)[:, None]
    best = {1: 1.0}
    for labels in partitions(7):
        k = labels.max() + 1
        if k > 1 and np.bincount(labels).min() >= 3:
            best[k] = max(best.get(k, 0), literal_index(A, labels))
    likely, certain = count_separated_clusters(A, 7)
    assert likely == max(best, key=best.get)
    assert certain == (likely if best[likely] > 1.5 else 1)


@pytest.mark.parametrize("p", [2, 10, 50])
@pytest.mark.parametrize(("k", "size"), [(2, 3), (3, 4), (5, 3), (8, 6)])
def test_few_samples_that_are_far_apart_are_counted(k, size, p):
    rng = np.random.default_rng(k)
    A = np.repeat(1000 * rng.normal(size=(k, p)), size, axis=0) + rng.normal(
        size=(k * size, p)
    )
    assert count_separated_clusters(A, 15) == (k, k)
    assert count_separated_clusters(A, k - 1)[0] < k
    # of no width
    assert count_separated_clusters(np.repeat(A[::size], 3, axis=0), 15) == (k, k)


def test_chance_rarely_puts_samples_far_apart():
    rng = np.random.default_rng(0)
    assert count_separated_clusters(np.zeros((9, 2)), 4) == (1, 1)
    assert (
        np.mean(
            [
                count_separated_clusters(rng.normal(size=(7, 1)), 7)[1] > 1
                for _ in range(200)
            ]
        )
        <= 0.06
    )
    assert (
        np.mean(
            [
                count_separated_clusters(rng.normal(size=(8, 2)), 8)[0] > 1
                for _ in range(200)
            ]
        )
        <= 0.03
    )


# --- prediction strength -----------------------------------------------------------------------


def literal_strength(labels, predicted):
    shares = []
    for c in np.unique(labels):
        pairs = list(combinations(np.flatnonzero(labels == c), 2))
        shares.append(
            np.mean([predicted[i] == predicted[j] for i, j in pairs]) if pairs else 1
        )
    return min(shares)


@pytest.mark.parametrize("seed", range(2))
def test_prediction_strength_is_the_share_of_pairs_kept(seed):
    rng = np.random.default_rng(seed)
    labels, predicted = np.append(rng.integers(4, size=30), 4), rng.integers(3, size=31)
    assert prediction_strength(labels, predicted) == pytest.approx(
        literal_strength(labels, predicted)
    )


def test_clusters_that_are_there_are_found_again():
    assert count_predictable_clusters(X, range(2, 7), np.random.default_rng(0)) == 3
    assert (
        count_predictable_clusters(noise(200, 2), range(2, 7), np.random.default_rng(0))
        == 1
    )
    assert (
        count_predictable_clusters(X[:15], range(2, 7), np.random.default_rng(0)) == 1
    )


def test_splits_have_halves_and_the_better_of_two_starts():
    split = draw_split(X, 6, np.random.default_rng(0))
    first, second = (half for half, _ in split)
    assert_array_equal(np.sort(np.concatenate([first, second])[:, 0]), np.sort(X[:, 0]))
    for k in (2, 3, 6):
        fits = [
            [KMeans(k, init=start[:k], n_init=1).fit(half) for start in starts]
            for half, starts in split
        ]
        best = [min(own, key=lambda fit: fit.inertia_) for own in fits]
        expected = literal_strength(best[1].labels_, best[0].predict(second))
        assert split_strength(split, k) == pytest.approx(expected)
