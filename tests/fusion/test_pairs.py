"""Pairs, dense and sparse, and what a model leaves of them, against loops over pairs."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import literal_left, literal_told_of_clusters
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from nmfcluster.fusion.kl_loss import (
    DensePairs,
    FusionObjective,
    SparsePairs,
    cross_entropy,
    explained_by_clusters,
    unexplained_share,
)

STORAGES = {
    "dense": lambda A: A,
    "Fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "sparse": sp.csr_array,
}
each_storage = pytest.mark.parametrize("storage", STORAGES)


def matrix_of(rng, n, density=0.6):
    """Draw a symmetric matrix with a scale of its own, and an object that is in no pair."""
    A = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density)
    A = (A + A.T) * 10.0 ** rng.integers(-3, 4)
    if n > 3:
        A[2], A[:, 2] = 0, 0
    A[n // 2, n // 2] = A.max() + 1e-3
    return A


def make_pairs(matrix):
    return FusionObjective(matrix, False, 0.0).pairs


def model_of(rng, n, k):
    """Return W and H of a symmetric ``W H'`` that sums to 1."""
    H = rng.uniform(0.1, 1, size=(n, k))
    H /= H.sum(axis=0)
    return H * rng.dirichlet(np.ones(k)), H


@each_storage
@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 3), (9, 2), (65, 2), (130, 3)])
def test_pairs_are_those_of_the_matrix_scaled_to_sum_to_1(storage, n, k):
    rng = np.random.default_rng(n)
    A, (W, H) = matrix_of(rng, n), model_of(rng, n, k)
    pairs, P, M = make_pairs(STORAGES[storage](A)), A / A.sum(), W @ H.T
    assert isinstance(pairs, SparsePairs if storage == "sparse" else DensePairs)
    assert_allclose(pairs.margin, P.sum(axis=1), rtol=1e-12)
    told = P[P > 0]
    assert_allclose(
        pairs.entropy, math.fsum(-told * np.log(told)), rtol=1e-11, atol=1e-15
    )
    expected = math.fsum(-told * np.log(M[P > 0]))
    assert_allclose(pairs.cross_entropy(W, H), expected, rtol=1e-11, atol=1e-15)
    assert_allclose(
        cross_entropy(STORAGES[storage](A), W, H), expected, rtol=1e-11, atol=1e-15
    )
    assert_allclose(pairs.ratio_product(W, H), (P / M) @ W, rtol=1e-11)


def test_sparse_pairs_of_many_entries_are_the_dense_ones():
    """With more than are worked on at a time."""
    rng = np.random.default_rng(2)
    A, (W, H) = matrix_of(rng, 270), model_of(rng, 270, 3)
    one, other = make_pairs(A), make_pairs(sp.csr_array(A))
    assert np.count_nonzero(np.triu(A)) > 2 * 2**13
    assert_allclose(other.ratio_product(W, H), one.ratio_product(W, H), rtol=1e-11)
    assert_allclose(other.cross_entropy(W, H), one.cross_entropy(W, H), rtol=1e-11)


@each_storage
def test_float32_stays_float32(storage):
    rng = np.random.default_rng(6)
    A, (W, H) = matrix_of(rng, 150), model_of(rng, 150, 4)
    want, pairs = make_pairs(A), make_pairs(STORAGES[storage](A.astype(np.float32)))
    W, H = W.astype(np.float32), H.astype(np.float32)
    product = pairs.ratio_product(W, H)
    assert pairs.margin.dtype == product.dtype == np.float32
    assert_allclose(product, want.ratio_product(W, H), rtol=1e-5)
    assert_allclose(pairs.cross_entropy(W, H), want.cross_entropy(W, H), rtol=1e-6)
    assert_allclose(pairs.entropy, want.entropy, rtol=1e-6)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_entries_at_the_end_of_the_range(storage):
    """A share can be too small for a float where the entry is not: it adds nothing."""
    for size in (1e-300, 1.0, 1e290):
        A = np.diag([4.0, 3.0, 2.0, 1.0]) * size
        A[0, 1] = A[1, 0] = 5e-324
        A[2, 3] = A[3, 2] = 1e-310
        share = np.arange(1, 5) / 10
        pairs, W = make_pairs(STORAGES[storage](A)), np.full((4, 1), 0.25)
        assert_allclose(pairs.entropy, -float(share @ np.log(share)), rtol=1e-7)
        assert_allclose(pairs.cross_entropy(W, 4 * W / 4), np.log(16), rtol=1e-7)


def test_matrices_are_not_written_to():
    A = matrix_of(np.random.default_rng(8), 20)
    stored = sp.csr_array(A)
    W, H = model_of(np.random.default_rng(8), 20, 2)
    for part in (A, stored.data, stored.indices, stored.indptr):
        part.flags.writeable = False
    for matrix in (A, stored):
        make_pairs(matrix).ratio_product(W, H)
        unexplained_share(sp.csr_array(matrix), W, H)
        explained_by_clusters(matrix, W, H)


def test_sparse_pairs_of_many_objects_need_no_more_than_their_entries():
    n = 50_000  # a matrix of all pairs would take 20 GB
    ring = sp.csr_array(
        sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]) + sp.eye_array(n)
    )
    pairs, W = make_pairs(ring), np.full((n, 2), 0.5 / n)
    size = 3 * n - 2
    assert_allclose(pairs.cross_entropy(W, 2 * W), 2 * np.log(n))
    assert_allclose(pairs.entropy, np.log(size))
    assert_allclose(pairs.ratio_product(W, 2 * W)[1], 3 / size * n**2 * 0.5 / n)
    assert_allclose(pairs.margin.sum(), 1)


# --- what a model leaves ------------------------------------------------------------------------


@settings(max_examples=5)
@given(st.integers(0, 10**6), st.booleans())
def test_the_share_that_is_left_is_the_smallest_over_how_many_pairs_are_of_the_model(
    seed, square
):
    rng = np.random.default_rng(seed)
    n, p, k = (8, 8, 2) if square else (9, 6, 3)
    labels, columns = np.arange(n) % k, np.arange(p) % k
    S = (labels[:, None] == columns) * rng.uniform(0, 2) + rng.uniform(size=(n, p))
    S *= rng.uniform(size=(n, p)) < 0.8
    S[1] = 0
    W = rng.uniform(0.1, 1, size=(n, k)) ** 2
    H = W / W.sum(axis=0) if square else rng.dirichlet(np.ones(p), size=k).T
    for own in (W / W.sum(), 5 * (np.eye(k)[labels] + 0.1) / n):  # of any scale
        left = unexplained_share(sp.csr_array(S), own, H)
        expected = literal_left(S, own, H)
        assert 0 <= left <= expected + 1e-12 <= 1 + 1e-12
        assert_allclose(left, expected, atol=1e-3)


def test_what_is_left_at_the_ends():
    labels = np.arange(12) % 3
    blocks = sp.csr_array((labels[:, None] == labels).astype(float))
    W, other = (
        np.maximum(np.eye(3)[y], 1e-18) / 12 for y in (labels, np.arange(12) // 4)
    )
    assert_allclose(unexplained_share(blocks, W, 3 * W), 0, atol=1e-9)
    # pairs of no chance
    assert_allclose(unexplained_share(blocks, other, 3 * other), 1, atol=0.01)
    independent = sp.csr_array(
        np.outer(np.arange(1, 13), np.arange(1, 13)).astype(float)
    )
    assert unexplained_share(independent, W, 3 * W) == 1  # there is nothing to explain
    assert unexplained_share(sp.csr_array((12, 12)), W, 3 * W) == 1


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_what_pairs_tell_of_clusters(storage):
    rng = np.random.default_rng(3)
    S = rng.normal(size=(7, 5)) * (rng.uniform(size=(7, 5)) < 0.7)
    W, H = rng.uniform(0.1, 1, size=(7, 3)), rng.dirichlet(np.ones(5), size=3).T
    W /= W.sum()
    assert_allclose(
        explained_by_clusters(storage(S), W, H), literal_told_of_clusters(S, W, H)
    )
