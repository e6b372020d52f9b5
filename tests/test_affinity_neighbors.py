"""The graph of nearest neighbours against its definition, and when it is the default."""

import numpy as np
import pytest
import scipy.sparse as sp
from affinities import literal_graph, literal_graph_of_new, local_scales, samples
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import laplacian_kernel
from threadpoolctl import threadpool_limits

from nmfcluster import affinity
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity.neighbors import few_enough


@pytest.mark.parametrize("k", [1, 5, 24, 400])
def test_the_number_of_neighbours(k):
    X, new = samples(5), samples(6, 7)
    found = make_affinity(X, "nearest_neighbors", n_neighbors=k)
    assert_allclose(found.similarity.toarray(), literal_graph(X, k), rtol=1e-9)
    expected = literal_graph_of_new(X, new, k)
    assert_allclose(found.cross(new, np.eye(25)), expected, rtol=1e-9)


def test_samples_that_coincide_are_most_similar_and_have_a_width():
    """Four copies of each of six points: three neighbours at distance 0, the next far away."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.uniform(size=(6, 2)), 4, axis=0)
    same = np.repeat(np.arange(6), 4)
    same = (same[:, None] == same) & ~np.eye(24, dtype=bool)
    # with three neighbours nobody has another one
    found = make_affinity(X, "nearest_neighbors", n_neighbors=3).similarity.toarray()
    assert_array_equal(found, same)
    X[:4] += [[0], [1e-9], [2e-9], [3e-9]]  # near, but not the same
    found = make_affinity(X, "nearest_neighbors", n_neighbors=7).similarity.toarray()
    assert_allclose(found[same], 1, rtol=1e-6)
    assert found[~same].max() < 1


def test_ties_inside_the_neighbourhood_do_not_matter():
    """On a grid many distances are equal; with 4 or 8 inner neighbours no tie is cut."""
    X = np.array([[i, j] for i in range(5) for j in range(5)], dtype=float)
    found = make_affinity(X, "nearest_neighbors", n_neighbors=8).similarity.toarray()
    D, _, s, _ = local_scales(X, 8)
    middle = 12  # its 8 nearest are the squares around it
    around = (D[middle] > 0) & (D[middle] < 1.5)
    assert_allclose(found[middle, around], np.exp(-(D[middle] ** 2) / (s[middle] * s))[around])
    assert (found > 0).sum(axis=1).min() >= 8


def test_one_point_taken_many_times():
    W = make_affinity(np.ones((30, 2)), "nearest_neighbors", n_neighbors=4)
    found = W.similarity.toarray()
    assert set(np.unique(found)) == {0.0, 1.0}
    assert not found.diagonal().any()
    assert_array_equal(found, found.T)
    assert_allclose(W.cross(np.ones((2, 2)), np.ones((30, 1))), 4)


def test_the_graph_is_symmetric_without_a_diagonal_and_the_same_for_any_number_of_jobs():
    X = samples(7, n=120)
    graph = make_affinity(X).similarity.toarray()
    assert_array_equal(graph, graph.T)
    assert not graph.diagonal().any()
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
    assert (W[20] > 0).sum() == 5
    assert_allclose(W[20].max(), np.exp(-60), rtol=1e-5)


def test_the_default_is_a_graph_of_few_samples_and_landmarks_of_many(monkeypatch):
    for limit, make in ((3_000, np.empty), (10_000, sp.csr_array)):
        assert [few_enough(make((limit + more, 1))) for more in (0, 1)] == [True, False]
    X = samples()
    for few, name in ((True, "nearest_neighbors"), (False, "landmarks")):
        monkeypatch.setattr(affinity, "few_enough", lambda X, few=few: few)
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
