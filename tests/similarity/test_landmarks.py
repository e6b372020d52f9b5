"""Landmarks against the formula written out, and what must hold of every graph of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from internals import leading_eigenpairs
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import Factored
from nmfcluster.similarity import neighbors as module
from nmfcluster.similarity.neighbors import Landmarks
from nmfcluster.ssnmf import estimator


def literal_rows(X, points, n_neighbors):
    B = np.zeros((len(X), len(points)))
    for i, x in enumerate(X):
        d = np.array([np.sqrt(((x - point) ** 2).sum()) for point in points])
        nearest = np.argsort(d, kind="stable")[:n_neighbors]
        for j in nearest:
            B[i, j] = np.exp(-((d[j] / d[nearest[-1]]) ** 2))
        B[i] /= B[i].sum()
    return B


def literal_rows_of_common_width(X, points, n_neighbors):
    """Weigh the nearest by exp(-d^2 / (2 m^2)), where m is the mean of all these distances."""
    distances = np.sqrt(((X[:, None] - points) ** 2).sum(axis=2))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    mean = np.take_along_axis(distances, nearest, axis=1).mean()
    B = np.zeros_like(distances)
    for i, own in enumerate(nearest):
        B[i, own] = np.exp(-(distances[i, own] ** 2) / (2 * mean**2))
    return B / B.sum(axis=1, keepdims=True)


def literal_similarity(B):
    n, p = B.shape
    W = np.zeros((n, n))
    for j in range(p):
        if B[:, j].sum() > 0:
            W += np.outer(B[:, j], B[:, j]) / B[:, j].sum()
    return W


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_similarity_is_the_formula(storage):
    X = np.random.default_rng(0).uniform(0.1, 1, size=(20, 4))
    found = Landmarks(storage(X), 1000, 5)
    B = literal_rows(X, X, 5)
    assert_allclose(found.rows(storage(X)).toarray(), B, atol=1e-7)
    assert_allclose(found.similarity.toarray(), literal_similarity(B), atol=1e-7)


@pytest.mark.parametrize("n_landmarks", [1000, 9])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_common_width_is_the_mean_distance_to_the_landmarks(n_landmarks, storage):
    X = np.random.default_rng(0).uniform(0.1, 1, size=(20, 4))
    found = Landmarks(storage(X), n_landmarks, 5, common_width=True)
    points = found.points.toarray() if sp.issparse(found.points) else found.points
    B = literal_rows_of_common_width(X, points, 5)
    assert_allclose(found.rows(storage(X)).toarray(), B, atol=1e-7)
    assert_allclose(found.similarity.toarray(), literal_similarity(B), atol=1e-7)
    own_widths = Landmarks(storage(X), n_landmarks, 5)
    assert abs(found.rows(storage(X)) - own_widths.rows(storage(X))).max() > 0.01


def test_the_width_of_many_samples_is_that_of_some(monkeypatch):
    X, _ = make_blobs(900, centers=3, random_state=0)
    every_third, all_of_them = [], []
    for measured, rows in ((300, every_third), (10**6, all_of_them)):
        monkeypatch.setattr(module, "_N_WIDTH_SAMPLES", measured)
        found = Landmarks(X, 90, 4, common_width=True)
        rows.append(found.rows(X).toarray())
    distances = np.sqrt(((X[:, None] - found.points) ** 2).sum(axis=2))
    part = literal_rows_of_common_width(X, found.points, 4)
    assert_allclose(all_of_them[0], part, atol=1e-7)
    nearest = np.sort(distances, axis=1)[:, :4]
    ratio = nearest[::3].mean() / nearest.mean()
    expected = part ** (1 / ratio**2)
    assert abs(ratio - 1) > 1e-4
    assert_allclose(
        every_third[0], expected / expected.sum(axis=1, keepdims=True), atol=1e-7
    )


@pytest.mark.parametrize(
    ("far", "dtype"),
    [(10.0, np.float32), (10.0, np.float64), (1e6, np.float32), (1e15, np.float64)],
)
def test_samples_far_from_all_landmarks_are_near_their_nearest(far, dtype):
    """Their weights, written out, are all 0."""
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(dtype)
    found = Landmarks(X, 12, 3, common_width=True)
    new = (far * np.eye(3)).astype(dtype)
    rows = found.rows(new).toarray()
    assert rows.dtype == dtype
    assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)
    if far == 10:
        nearest = ((new[:, None] - found.points) ** 2).sum(axis=2).argmin(axis=1)
        assert_array_equal(rows.argmax(axis=1), nearest)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_others", [0, 1])
def test_a_common_width_of_zero(n_others, dtype, monkeypatch):
    """Every sample that is measured is where its landmarks are; new ones are not."""
    monkeypatch.setattr(module, "_N_WIDTH_SAMPLES", 1)
    X = np.concatenate([np.zeros((30, 2)), np.full((n_others, 2), 3)]).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Landmarks(X, 100, 5, common_width=True)
        rows = found.rows(np.array([[0, 0], [5, 2], [1e4, 0]], dtype=dtype)).toarray()
    assert_allclose(rows.sum(axis=1), 1, rtol=1e-5)
    if n_others:
        assert_allclose(rows[:, -1], [0, 1, 1], atol=1e-6)


def test_landmarks_of_many_samples_are_means_of_them():
    X, _ = make_blobs(300, centers=3, cluster_std=0.1, random_state=0)
    found = Landmarks(X, 12, 3)
    B = found.rows(X)
    assert B.shape == (300, 12)
    assert_allclose(B.sum(axis=1), 1)
    assert_array_equal(np.diff(B.indptr), 3)
    assert_array_equal(found.rows(X[:9]).toarray(), B[:9].toarray())  # in any batch


@given(
    st.integers(2, 30),
    st.integers(1, 4),
    st.integers(1, 12),
    st.integers(0, 99),
    st.booleans(),
)
def test_a_walk_over_landmarks_ends_somewhere(n, p, n_neighbors, seed, common_width):
    """Rows sum to 1, W is symmetric and has no eigenvalue below 0; duplicates are no obstacle."""
    X = np.random.default_rng(seed).integers(0, 3, size=(n, p)).astype(float)
    found = Landmarks(X, 1000, n_neighbors, common_width=common_width)
    assert_allclose(found.rows(X).sum(axis=1), 1)
    W = found.similarity.toarray()
    assert_allclose(W.sum(axis=1), 1)
    assert_allclose(W, W.T)
    assert np.linalg.eigvalsh(W).min() > -1e-12


@pytest.mark.parametrize("common_width", [False, True])
def test_samples_that_are_all_equal_are_similar(common_width):
    W = Landmarks(
        np.ones((6, 2)), 1000, 3, common_width=common_width
    ).similarity.toarray()
    assert np.isfinite(W).all()
    assert_allclose(W.sum(axis=1), 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_type_is_kept(dtype):
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(dtype)
    found = make_affinity(X, "landmarks", n_neighbors=4)
    assert found.similarity.dtype == dtype
    assert found.cross(X, np.eye(30, dtype=dtype)).dtype == dtype


@pytest.mark.slow
def test_a_million_pairs_are_not_formed(monkeypatch):
    """The graph of 3,000 samples has K numbers a sample."""
    X, y = make_blobs(3000, n_features=5, centers=4, random_state=0)
    found = Landmarks(X, 200, 5)
    assert found.similarity.rank == 200
    assert found.rows(X).nnz == 15_000
    monkeypatch.setattr(estimator, "_LANDMARKS", 200)
    model = SSNMFClusterer(4, affinity="landmarks", random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    model.fit(X, constraints=pairs)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.satisfaction_ > 0.95
    assert np.mean(model.predict(X) == model.labels_) > 0.95


def test_random_state_draws_the_landmarks_of_many_samples_and_nothing_else():
    X, _ = make_blobs(300, centers=3, random_state=0)
    drawn = [
        Landmarks(X, 50, 3, random_state).rows(X).toarray()
        for random_state in (0, 0, 1)
    ]
    assert_array_equal(drawn[0], drawn[1])
    assert abs(drawn[0] - drawn[2]).max() > 0.1
    all_of_them = [
        Landmarks(X, 300, 3, random_state).rows(X).toarray() for random_state in (0, 1)
    ]
    assert_array_equal(*all_of_them)


def test_landmarks_of_sparse_samples_are_sparse():
    """As of documents: dense centres would need the memory that sparse rows save."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(
        rng.uniform(size=(300, 400)) * (rng.uniform(size=(300, 400)) < 0.01)
    )
    found, dense = Landmarks(X, 25, 3), Landmarks(X.toarray(), 25, 3)
    assert sp.issparse(found.points)
    assert found.points.nnz <= X.nnz
    assert_allclose(found.points.toarray(), dense.points)
    assert_allclose(
        found.rows(X).toarray(), dense.rows(X.toarray()).toarray(), atol=1e-6
    )


def test_landmarks_are_means_of_the_samples_that_are_nearest_to_them(monkeypatch):
    """After many steps of k-means."""
    monkeypatch.setattr(module, "_N_KMEANS_STEPS", 100)
    X, _ = make_blobs(80, centers=8, random_state=0)
    points = Landmarks(X, 8, 1).points
    nearest = ((X[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
    means = [X[nearest == j].mean(axis=0) for j in range(len(points))]
    assert_allclose(points, means)


@pytest.mark.parametrize("n_distinct", [1, 2, 7])
def test_samples_that_coincide(n_distinct):
    """More landmarks than there are different samples: some are nobody's."""
    X = np.repeat(np.eye(n_distinct, 7), 40, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Landmarks(X, 20, 3)
    W = found.similarity.toarray()
    assert np.isfinite(W).all()
    assert_allclose(W.sum(axis=1), 1)


def test_eigenvectors_come_from_the_smaller_product():
    X, _ = make_blobs(500, n_features=4, centers=6, cluster_std=2, random_state=0)
    A = Landmarks(X, 60, 5).similarity
    V = A.root()
    assert_allclose((V @ V.T).toarray(), A.toarray(), atol=1e-12)
    values, vectors = leading_eigenpairs(A, 6)
    assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-6)
    assert_allclose(A @ vectors, vectors * values, atol=1e-3)
    expected = np.linalg.eigvalsh(A.toarray())[::-1][:6]
    assert_allclose(values, expected, rtol=1e-6)


def test_eigenvectors_of_a_product_of_small_rank():
    U = np.zeros((900, 5))
    U[np.arange(900), np.arange(900) % 3] = 1  # two columns are 0
    values, vectors = leading_eigenpairs(Factored(U), 8)
    assert_allclose(values, [300] * 3 + [0] * 5, atol=1e-9)
    assert_allclose(vectors[:, 3:], 0)
    assert Factored(U, -np.ones(5)).root() is None
    assert Factored(U, np.ones((5, 5))).root() is None
    assert Factored(U[:9]).root() is None


@pytest.mark.slow
@pytest.mark.parametrize("n_pairs", [0, 300])
def test_one_start_on_all_samples_is_as_good_as_many(n_pairs, monkeypatch):
    """Of many samples the first start is run alone, and ends lowest."""
    X, y = make_blobs(1500, n_features=4, centers=6, cluster_std=2.5, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    model = SSNMFClusterer(6, affinity="landmarks", random_state=0)
    many = clone(model).fit(X, constraints=pairs)
    monkeypatch.setattr(estimator, "_COARSE", 1000)
    one = model.fit(X, constraints=pairs)
    assert [len(m.loss_curves_) for m in (one, many)] == [1, 5]
    assert one.loss_ < many.loss_ * (1 + 1e-4)
    part = SSNMFClusterer(6, random_state=0, affinity="cosine").fit(X)
    assert len(part.loss_curves_) == 6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n_landmarks", [1000, 12])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_parts_are_linked(n_landmarks, storage):
    """With one landmark a sample, the samples of each are a part."""
    X, _ = make_blobs(60, centers=3, random_state=0)
    for max_parts in (1, 5):
        found = Landmarks(storage(X), n_landmarks, 1, max_parts=max_parts).similarity
        assert connected_components(found.toarray() > 0)[0] <= max_parts
        assert_allclose(found.toarray().sum(axis=1), 1)
    plain = Landmarks(X, n_landmarks, 1).similarity.toarray()
    assert connected_components(plain > 0)[0] > 5
    unchanged = Landmarks(X, n_landmarks, 1, max_parts=60).similarity.toarray()
    assert_array_equal(unchanged, plain)


def test_a_link_goes_to_the_nearest_landmark_of_another_part():
    X = np.array([[0.0], [1], [2], [10], [11], [12], [30], [31], [32]])
    W = Landmarks(X, 100, 3, max_parts=2).similarity.toarray()
    assert connected_components(W > 0)[0] == 2
    assert W[2, 3] > 0  # the ends that face each other
    assert not W[:6, 6:].any()


def test_landmarks_of_no_sample_link_nothing():
    X = np.repeat(np.eye(3), 30, axis=0)
    found = Landmarks(X, 20, 1, max_parts=1).similarity.toarray()
    assert connected_components(found > 0)[0] == 1
