"""The graph of nearest neighbours against its definition, and when it is the default."""

import numpy as np
import pytest
import scipy.sparse as sp
from affinities import (
    differing,
    literal_graph,
    literal_graph_of_new,
    literal_normalized,
    local_scales,
    samples,
    square,
    steps,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import laplacian_kernel
from threadpoolctl import threadpool_limits

from nmfcluster import affinity
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import NeighborGraph, neighbors
from nmfcluster.similarity.neighbors import suits_neighbor_graph


@pytest.mark.parametrize("k", [1, 5, 24, 400])
def test_the_number_of_neighbours(k):
    X, new = samples(5), samples(6, 7)
    found = make_affinity(X, "nearest_neighbors", n_neighbors=k)
    assert_allclose(found.similarity.toarray(), literal_graph(X, k), rtol=1e-9)
    expected = literal_graph_of_new(X, new, k)
    assert_allclose(found.cross(new, np.eye(25)), expected, rtol=1e-9)


def whole_numbers(n=40, width=3, seed=0):
    """Draw rows of which many are equal, at distances of which many are."""
    return np.random.default_rng(seed).integers(4, size=(n, width)).astype(float)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("k", [1, 4])
def test_neighbours_are_distinct_rows_and_ties_are_kept(storage, k):
    X = whole_numbers()
    assert len(differing(X)[0]) < len(X)
    found = make_affinity(
        storage(X), "nearest_neighbors", n_neighbors=k
    ).similarity.toarray()
    assert_allclose(found, literal_graph(X, k), rtol=1e-6)


def test_with_few_rows_a_cluster_scales_are_at_most_the_longest_step_inside():
    X = np.concatenate([samples(5, 6), [[9.0, 9, 9, 9]], [[-9.0, 9, 9, 9]]])
    for n_clusters in (2, 3, 4):
        longest = steps(np.sqrt([[square(x, y) for y in X] for x in X]))[n_clusters - 1]
        made = make_affinity(X, "nearest_neighbors", n_clusters=n_clusters)
        found, expected = made.similarity.toarray(), literal_graph(X, 3, longest)
        joined = expected > np.exp(-30)
        assert_allclose(found[joined], expected[joined], rtol=1e-9)
        # of the two far rows, where they are more parts than clusters
        links = found[~joined]
        assert set(links) <= {0.0, np.exp(-1)}


def test_the_diagonal_counts_where_clusters_are_wanted():
    X = samples(5)
    W = literal_graph(X, 10)
    for n_clusters in (None, 1):
        options = {"normalize": True, "n_clusters": n_clusters}
        found = make_affinity(X, "nearest_neighbors", **options).similarity.toarray()
        assert_allclose(
            found, literal_normalized(W, to_itself=n_clusters is not None), rtol=1e-9
        )


def test_samples_that_coincide_are_treated_like_one():
    """Four copies of each of six points."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.uniform(size=(6, 2)), 4, axis=0)
    same = np.arange(24) // 4 == np.arange(24)[:, None] // 4
    found = make_affinity(X, "nearest_neighbors", n_neighbors=3).similarity.toarray()
    assert_array_equal(found == 1, same)
    assert_array_equal(found, found[::4, ::4].repeat(4, axis=0).repeat(4, axis=1))
    X[:4] += [[0], [1e-9], [2e-9], [3e-9]]  # near, but not the same
    found = make_affinity(X, "nearest_neighbors", n_neighbors=7).similarity.toarray()
    assert_allclose(found[same], 1, rtol=1e-6)
    assert found[~same].max() < 1


@pytest.mark.slow
def test_many_copies_of_rows_have_some_partners_and_as_large_sums(monkeypatch):
    X = np.repeat(whole_numbers(12), 30, axis=0)[:-7]
    whole = NeighborGraph(X, 4).array
    monkeypatch.setattr(neighbors, "_MAX_ENTRIES", 1_000)
    for most in (30, 1_000):  # partners: all
        monkeypatch.setattr(neighbors, "_N_PARTNERS", most)
        assert_allclose(NeighborGraph(X, 4).array.toarray(), whole.toarray())
    monkeypatch.setattr(neighbors, "_N_PARTNERS", 3)
    some = NeighborGraph(X, 4).array
    assert some.nnz < whole.nnz / 4
    assert_array_equal((some - some.T).toarray(), 0)
    rows = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    E = np.eye(rows.max() + 1)[rows]
    assert_allclose(E.T @ some @ E, E.T @ whole @ E)  # of any two rows


def test_ties_inside_the_neighbourhood_do_not_matter():
    """On a grid many distances are equal; with 4 or 8 inner neighbours no tie is cut."""
    X = np.array([[i, j] for i in range(5) for j in range(5)], dtype=float)
    found = make_affinity(X, "nearest_neighbors", n_neighbors=8).similarity.toarray()
    D, _, s, _ = local_scales(X, 8)
    middle = 12  # its 8 nearest are the squares around it
    around = (D[middle] > 0) & (D[middle] < 1.5)
    assert_allclose(
        found[middle, around], np.exp(-(D[middle] ** 2) / (s[middle] * s))[around]
    )
    assert (found > 0).sum(axis=1).min() >= 8


def test_one_point_taken_many_times():
    W = make_affinity(np.ones((30, 2)), "nearest_neighbors", n_neighbors=4)
    assert_array_equal(W.similarity.toarray(), 1)
    assert_allclose(W.cross(np.ones((2, 2)), np.ones((30, 1))), 30)


def test_the_graph_is_symmetric_and_the_same_for_any_number_of_jobs():
    X = samples(7, n=120)
    graph = make_affinity(X).similarity.toarray()
    assert_array_equal(graph, graph.T)
    assert_array_equal(graph.diagonal(), 1)
    assert 0 < graph[graph > 0].min() <= graph.max() <= 1
    assert_array_equal(make_affinity(X, n_jobs=2).similarity.toarray(), graph)


@pytest.mark.parametrize("name", ["rbf", "nearest_neighbors"])
def test_the_unit_of_the_features_does_not_matter(name):
    X, new = samples(8), samples(1, 5)
    one = make_affinity(X, name)
    for scale in (1e-12, 1e12):
        other = make_affinity(scale * X, name)
        assert_allclose(other.similarity.toarray(), one.similarity.toarray(), rtol=1e-6)
        found = other.cross(scale * new, np.eye(25))
        assert_allclose(found, one.cross(new, np.eye(25)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_outlier_keeps_its_neighbours(dtype):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), [[500.0, 500.0]]]).astype(dtype)
    W = make_affinity(X, n_neighbors=5).similarity.toarray()
    assert W.dtype == dtype
    assert (W[20, :20] > 0).sum() == 5
    assert_allclose(W[20, :20].max(), np.exp(-60), rtol=1e-5)


def test_the_default_is_a_graph_of_few_samples_and_landmarks_of_many(monkeypatch):
    for limit, make in ((3_000, np.empty), (10_000, sp.csr_array)):
        assert [suits_neighbor_graph(make((limit + more, 1))) for more in (0, 1)] == [
            True,
            False,
        ]
    X = samples()
    for few, name in ((True, "nearest_neighbors"), (False, "landmarks")):
        monkeypatch.setattr(affinity, "suits_neighbor_graph", lambda X, few=few: few)
        found, same = make_affinity(X), make_affinity(X, name)
        assert found.name == same.name == name
        assert_array_equal(found.similarity.toarray(), same.similarity.toarray())
    assert make_affinity(X, "linear").name == "linear"
    assert make_affinity(samples(), laplacian_kernel).name == "callable"


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_ties_between_neighbours_do_not_depend_on_threads(storage):
    X = np.random.default_rng(0).integers(3, size=(400, 20)).astype(float)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            made = make_affinity(storage(X))
            found.append((made.similarity.toarray(), made.cross(X[:50], np.eye(400))))
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)
