"""Landmarks against the formula written out, and what must hold of every graph of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import Landmarks
from nmfcluster.similarity import landmarks as module


def literal_rows(X, points, n_neighbors):
    B = np.zeros((len(X), len(points)))
    for i, x in enumerate(X):
        d = np.array([np.sqrt(((x - point) ** 2).sum()) for point in points])
        nearest = np.argsort(d, kind="stable")[:n_neighbors]
        for j in nearest:
            B[i, j] = np.exp(-((d[j] / d[nearest[-1]]) ** 2))
        B[i] /= B[i].sum()
    return B


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


def test_landmarks_of_many_samples_are_means_of_them(monkeypatch):
    monkeypatch.setattr(module, "_ALL", 50)
    X, _ = make_blobs(300, centers=3, cluster_std=0.1, random_state=0)
    found = Landmarks(X, 12, 3)
    B = found.rows(X)
    assert B.shape == (300, 12)
    assert_allclose(B.sum(axis=1), 1)
    assert_array_equal(np.diff(B.indptr), 3)
    assert_array_equal(found.rows(X[:9]).toarray(), B[:9].toarray())  # in any batch


@given(st.integers(2, 30), st.integers(1, 4), st.integers(1, 12), st.integers(0, 99))
def test_a_walk_over_landmarks_ends_somewhere(n, p, n_neighbors, seed):
    """Rows sum to 1, W is symmetric and has no eigenvalue below 0; duplicates are no obstacle."""
    X = np.random.default_rng(seed).integers(0, 3, size=(n, p)).astype(float)
    W = Landmarks(X, 1000, n_neighbors).similarity.toarray()
    assert_allclose(W.sum(axis=1), 1)
    assert_allclose(W, W.T)
    assert np.linalg.eigvalsh(W).min() > -1e-12


def test_samples_that_are_all_equal_are_similar():
    W = Landmarks(np.ones((6, 2)), 1000, 3).similarity.toarray()
    assert np.isfinite(W).all()
    assert_allclose(W.sum(axis=1), 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_type_is_kept(dtype):
    X = np.random.default_rng(0).normal(size=(30, 3)).astype(dtype)
    found = make_affinity(X, "landmarks", n_neighbors=4)
    assert found.similarity.dtype == dtype
    assert found.cross(X, np.eye(30, dtype=dtype)).dtype == dtype


def test_a_million_pairs_are_not_formed(monkeypatch):
    """The graph of 3,000 samples has K numbers a sample."""
    X, y = make_blobs(3000, n_features=5, centers=4, random_state=0)
    found = Landmarks(X, 200, 5)
    assert found.similarity.rank == 200
    assert found.rows(X).nnz == 15_000
    model = SSNMFClusterer(4, affinity="landmarks", n_landmarks=200, n_neighbors=5, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    model.fit(X, constraints=pairs)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.satisfaction_ > 0.95
    assert np.mean(model.predict(X) == model.labels_) > 0.95
