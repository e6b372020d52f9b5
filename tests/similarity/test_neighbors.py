"""The graph of neighbours where it falls into parts; its weights are tested with affinities."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from refusals import warns_naming
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from nmfcluster import SSNMFClusterer
from nmfcluster.similarity.neighbors import NeighborGraph

FORMS = [np.asarray, sp.csr_array]


def distant_groups(sizes, dtype=float):
    """Return samples on a line in groups that lie ever farther from each other."""
    rng = np.random.default_rng(0)
    starts = 100.0 * np.cumsum(np.arange(1, len(sizes) + 1))
    X = np.concatenate(
        [a + rng.uniform(size=n) for a, n in zip(starts, sizes, strict=True)]
    )
    return np.column_stack([X, np.ones(len(X))]).astype(dtype), np.repeat(
        np.arange(len(sizes)), sizes
    )


@pytest.mark.parametrize("storage", FORMS)
def test_parts_are_linked_to_the_nearest_others(storage):
    X, island = distant_groups([5, 9, 7, 6, 8])
    plain = NeighborGraph(storage(X), 3).array
    assert connected_components(plain)[0] >= 5
    found = NeighborGraph(storage(X), 3, max_parts=1).array
    assert connected_components(found)[0] == 1
    assert abs(found - found.T).max() == 0
    links = sp.triu(found - plain).tocoo()
    rows, columns = links.row[links.data > 0], links.col[links.data > 0]
    ends = {
        tuple(sorted(pair)) for pair in zip(island[rows], island[columns], strict=True)
    }
    assert ends == {(0, 1), (1, 2), (2, 3), (3, 4)}
    for a, b in zip(rows, columns, strict=True):  # the two ends that face each other
        others = abs(X[island == island[a], 0][:, None] - X[island == island[b], 0])
        assert abs(X[a, 0] - X[b, 0]) == pytest.approx(others.min())
    assert_array_equal(links.data[links.data > 0], np.exp(-1))


@settings(max_examples=40)
@given(st.lists(st.integers(14, 20), min_size=2, max_size=6), st.integers(1, 6))
def test_no_more_parts_than_wanted_and_no_link_without_need(sizes, max_parts):
    max_parts = min(max_parts, len(sizes))  # or rows would be few
    X, _ = distant_groups(sizes)
    before = NeighborGraph(X, 3).array
    after = NeighborGraph(X, 3, max_parts=max_parts).array
    n_before, n_after = connected_components(before)[0], connected_components(after)[0]
    assert n_after <= max(max_parts, 1)
    if n_before <= max_parts:
        assert_array_equal(before.toarray(), after.toarray())


def test_copies_are_linked_like_the_distinct_rows():
    X = np.repeat(np.array([0.0, 1, 10, 11]), 30)[:, None]
    rows = NeighborGraph(X[::30], 1, max_parts=1).array.toarray()
    found = NeighborGraph(X, 1, max_parts=1).array
    assert connected_components(found)[0] == 1
    assert_array_equal(found.toarray(), rows.repeat(30, axis=0).repeat(30, axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_links_keep_the_type(dtype):
    X, _ = distant_groups([5, 6, 7], dtype)
    assert NeighborGraph(X, 3, max_parts=1).array.dtype == dtype


def test_a_fit_of_more_parts_than_clusters_joins_the_nearest():
    """Six groups in three places; which share a cluster was arbitrary."""
    rng = np.random.default_rng(0)
    places = np.array([[0, 0], [40, 0], [0, 40]])
    centres = np.concatenate([places, places + 3])
    X = np.concatenate([c + rng.uniform(-0.5, 0.5, size=(20, 2)) for c in centres])
    y = np.tile(np.repeat(np.arange(3), 20), 2)
    model = SSNMFClusterer(3, n_neighbors=5, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_rows_that_nearly_coincide_are_warned_of():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 2)), 20, axis=0)
    with warns_naming(UserWarning, "60 parts", "'rbf'"):
        NeighborGraph(X + 1e-6 * rng.normal(size=X.shape), max_parts=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeighborGraph(X, max_parts=3)
        NeighborGraph(X + rng.normal(size=X.shape), max_parts=3)


@pytest.mark.parametrize("n_neighbors", [41, 48, 59, 200])
def test_more_neighbors_than_small_clusters_have_rows(n_neighbors):
    """All of them are searched, however few rows a cluster has."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    linked = NeighborGraph(X, n_neighbors, max_parts=8).array.toarray() > 0
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    kth = np.sort(distances, axis=1)[:, min(n_neighbors, 59)]
    near = distances <= kth[:, None]
    assert_array_equal(linked, near | near.T)
