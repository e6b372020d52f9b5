"""Criteria that look at clusters: separation, silhouettes, prediction strength."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.cluster.hierarchy import cut_tree, ward
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster.model_selection.vote.clusters import (
    Split,
    are_apart,
    cut,
    largest_silhouette,
    most_apart,
    most_predicted,
    prediction_strength,
)

X, Y = make_blobs(240, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


def noise(n, p):
    return np.random.default_rng(0).normal(size=(n, p))


# --- separation --------------------------------------------------------------------------------


def test_clusters_that_are_apart_are_counted():
    assert most_apart(X, range(2, 9)) == 3
    assert most_apart(X, [2]) == 2
    assert most_apart(X, [1]) == most_apart(X[:5], range(6, 9)) == most_apart(X, []) == 1
    assert most_apart(noise(400, 2), range(2, 9)) == 1


def test_one_gaussian_is_not_two_clusters():
    E = noise(400, 2)
    assert not are_apart(E, (E[:, 0] > 0).astype(int))
    assert are_apart(np.concatenate([E, E + 6]), np.repeat([4, 7], 400))
    assert not are_apart(np.concatenate([E, E[:3] + 6]), np.repeat([0, 1], [400, 3]))


@pytest.mark.parametrize("k", [1, 7, 60])
def test_a_tree_is_cut_as_by_scipy(k):
    tree = ward(noise(60, 2))
    assert adjusted_rand_score(cut(tree, k), cut_tree(tree, k)[:, 0]) == 1
    assert len(np.unique(cut(tree, k))) == k


# --- silhouette --------------------------------------------------------------------------------


def test_the_largest_silhouette_is_found():
    labellings = {k: KMeans(k, n_init=1, random_state=0).fit(X).labels_ for k in range(1, 7)}
    assert largest_silhouette(X, labellings) == 3
    assert largest_silhouette(X[:4], {4: np.arange(4), 1: np.ones(4)}) == 1
    assert largest_silhouette(X, {}) == 1


# --- prediction strength -----------------------------------------------------------------------


def literal_strength(labels, predicted):
    shares = []
    for c in np.unique(labels):
        pairs = list(combinations(np.flatnonzero(labels == c), 2))
        shares.append(np.mean([predicted[i] == predicted[j] for i, j in pairs]) if pairs else 1)
    return min(shares)


@pytest.mark.parametrize("seed", range(2))
def test_prediction_strength_is_the_share_of_pairs_kept(seed):
    rng = np.random.default_rng(seed)
    labels, predicted = np.append(rng.integers(4, size=30), 4), rng.integers(3, size=31)
    assert prediction_strength(labels, predicted) == pytest.approx(
        literal_strength(labels, predicted)
    )


def test_clusters_that_are_there_are_found_again():
    assert most_predicted(X, range(2, 7), np.random.default_rng(0)) == 3
    assert most_predicted(noise(200, 2), range(2, 7), np.random.default_rng(0)) == 1
    assert most_predicted(X[:6], range(2, 7), np.random.default_rng(0)) == 1


def test_splits_have_halves_and_the_better_of_two_starts():
    split = Split(X, 6, np.random.default_rng(0))
    first, second = split._halves
    assert_array_equal(np.sort(np.concatenate([first, second])[:, 0]), np.sort(X[:, 0]))
    for k in (2, 3, 6):
        fits = [
            [KMeans(k, init=start[:k], n_init=1).fit(half) for start in starts]
            for half, starts in zip((first, second), split._starts, strict=True)
        ]
        best = [min(own, key=lambda fit: fit.inertia_) for own in fits]
        expected = literal_strength(best[1].labels_, best[0].predict(second))
        assert split.strength(k) == pytest.approx(expected)
