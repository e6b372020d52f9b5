"""Starting factors."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from comparing import same_partition
from hypothesis import given
from hypothesis import strategies as st
from internals import leading_eigenpairs, spectral_start
from numpy.testing import assert_allclose, assert_array_equal
from similarity.cases import coassociation
from sklearn.metrics import adjusted_rand_score

from nmfcluster import SSNMFClusterer
from nmfcluster._optim import initialization
from nmfcluster.datasets import make_nested_rings
from nmfcluster.similarity import Explicit, Factored


def blocks(sizes, values=None):
    """Return a block diagonal matrix with constant blocks, in mixed order, and its labels."""
    values = np.ones(len(sizes)) if values is None else np.asarray(values)
    labels = np.random.default_rng(0).permutation(
        np.repeat(np.arange(len(sizes)), sizes)
    )
    return (labels[:, None] == labels) * np.sqrt(
        values[labels][:, None] * values[labels]
    ), labels


STORAGES = {
    "dense": Explicit,
    "sparse": lambda A: Explicit(sp.csr_array(A)),
    "sum": lambda A: (
        Factored(A, np.linalg.pinv(A)) - 0.5 * Explicit(A) + 0.5 * Explicit(A)
    ),
}


def factored(labels, values=None):
    values = np.ones(max(labels) + 1) if values is None else values
    return Factored(sp.csr_array(np.eye(max(labels) + 1)[labels]), values)


@pytest.mark.parametrize("storage", STORAGES)
def test_spectral_start_solves_a_block_diagonal_similarity(storage):
    for sizes, equal in product([(5, 3, 2), (4, 4, 4), (1, 1, 7, 1)], [True, False]):
        A, labels = blocks(sizes, None if equal else 1.0 + np.arange(len(sizes)))
        H = spectral_start(STORAGES[storage](A), len(sizes))
        assert same_partition(H.argmax(axis=1), labels)
        lift = H.min()
        assert 0 < lift <= 1e-2 * H.mean()
        assert_allclose((H - lift) @ (H - lift).T, A, atol=1e-7)


def test_spectral_start_with_one_cluster_is_the_leading_eigenvector():
    x = np.array([[1.0], [2.0], [3.0]])
    assert_allclose(spectral_start(Explicit(x @ x.T), 1), x + 0.02)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", ["sparse", "factored"])
def test_spectral_start_solves_large_equal_blocks(storage):
    A, labels = blocks((240,) * 4)
    operator = factored(labels) if storage == "factored" else Explicit(sp.csr_array(A))
    H = spectral_start(operator, 4)
    assert same_partition(H.argmax(axis=1), labels)
    lift = H.min()
    assert_allclose((H - lift) @ (H - lift).T, A, atol=5e-3)


@given(st.integers(0, 10**6), st.integers(1, 10), st.integers(1, 13))
def test_spectral_start_is_nonnegative_and_deterministic_for_any_matrix(seed, n, k):
    """Also with more clusters than positive eigenvalues, or samples."""
    rng = np.random.default_rng(seed)
    B, X = rng.normal(size=(n, n)), rng.uniform(size=(n, 2))
    for A in (
        Explicit(B + B.T),
        Factored(X),
        coassociation(rng.integers(0, 2, size=(n, 3))),
    ):
        H = spectral_start(A, k)
        assert H.shape == (n, k)
        assert np.isfinite(H).all()
        assert H.min() >= 0
        # A >= 0 has a positive leading eigenvector
        assert H.min() > 0 or isinstance(A, Explicit)
        assert_array_equal(H, spectral_start(A, k))


def test_spectral_start_with_more_clusters_than_the_rank():
    A, labels = blocks((6, 4))
    for operator in (Explicit(A), factored(labels)):
        H = spectral_start(operator, 5)
        assert H.min() > 0
        assert same_partition(H.argmax(axis=1), labels)


@pytest.mark.parametrize("n", [9, 900])
def test_spectral_start_keeps_float32(n):
    labels = np.arange(n) % 3
    A = factored(labels).take(np.arange(n))
    single = Factored(np.eye(3, dtype=np.float32)[labels])
    assert spectral_start(single, 3).dtype == np.float32
    H, double = spectral_start(single, 3), spectral_start(A, 3)
    # equal clusters in any order
    assert_allclose(H @ H.T, double @ double.T, atol=1e-3)


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 4))
def test_leading_eigenpairs_of_small_operators(seed, n, k):
    rng = np.random.default_rng(seed)
    B, X = rng.normal(size=(n, n)), rng.normal(size=(n, 2))
    for A in (
        Explicit(B + B.T),
        Explicit(sp.csr_array(B + B.T)),
        Factored(X, [2.0, 1.0]),
        Factored(X, [2.0, -1.0]),
        Factored(X, rng.uniform(1, 2, size=2), rng.uniform(1, 2, size=n)),
        Factored(X) - Explicit(np.eye(n)),
    ):
        dense, k = A.toarray(), min(k, n)
        values, vectors = leading_eigenpairs(A, k)
        assert_allclose(values, np.linalg.eigvalsh(dense)[::-1][:k], atol=1e-9)
        assert_allclose(dense @ vectors, vectors * values, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_leading_eigenpairs_where_all_but_one_eigenvalue_are_equal(dtype):
    """As those of a similarity without structure, its diagonal left out."""
    for n in [3, 17, 18, 19, 20, 30, 64, 100]:
        A = (np.ones((n, n)) - np.eye(n)).astype(dtype)
        for scale in (1, 1 / (n - 1)):
            for k in (1, 3, n - 1, n):
                values, vectors = leading_eigenpairs(Explicit(A * dtype(scale)), k)
                want = scale * np.where(np.arange(k), -1, n - 1)
                assert_allclose(values, want, atol=1e-5 * scale * n)
                assert vectors.shape == (n, k)
                assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_leading_eigenpairs_of_a_large_operator(sign):
    rng = np.random.default_rng(3)
    U = np.linalg.qr(rng.normal(size=(1000, 5)))[0]
    # the largest, not the largest in size
    spectrum = np.array([9.0, 7, 5, 3, sign * 11])
    for A in (Factored(U, spectrum), Explicit(U * spectrum @ U.T)):
        values, vectors = leading_eigenpairs(A, 3)
        assert_allclose(values, np.sort(spectrum)[::-1][:3], rtol=1e-3)
        assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-3)
        assert (
            np.linalg.norm(A @ vectors - vectors * values, axis=0).max()
            < 1e-2 * values[0]
        )


def test_spectral_start_of_a_large_operator_is_deterministic():
    A = Factored(np.random.default_rng(5).uniform(size=(700, 40)))
    assert_array_equal(spectral_start(A, 4), spectral_start(A, 4))


@pytest.mark.skipif(
    not initialization._REPRODUCIBLE,
    reason="before scipy 1.17 ARPACK goes on where it ended",
)
@pytest.mark.parametrize(
    "A", [np.eye(400), np.ones((400, 400))], ids=["identity", "ones"]
)
def test_leading_eigenpairs_are_the_same_every_time_where_most_are_equal(A):
    """As those of very narrow and of very wide kernels, for which ARPACK has to begin anew."""
    expected = leading_eigenpairs(Explicit(A), 2)[1]
    for _ in range(3):
        assert_array_equal(leading_eigenpairs(Explicit(A), 2)[1], expected)


def test_random_start_is_uniform_and_longer_where_a_row_stands_for_more():
    mass = np.array([1.0, 4.0, 100.0])
    H = initialization.random_start(
        mass, 5000, np.random.RandomState(0), np.dtype(np.float32)
    )
    assert H.dtype == np.float32
    unit = H / np.sqrt(mass)[:, None]
    assert unit.min() > 0
    assert 0.99 < unit.max() <= 1
    assert_allclose(unit.mean(axis=1), 0.5, atol=0.02)
    assert_array_equal(
        H, initialization.random_start(mass, 5000, np.random.RandomState(0), H.dtype)
    )


def blocks_of_rings(n_parts, n, dtype):
    """Return a normalised graph of separate rings, whose eigenvalues lie close together."""
    ring = sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n)).tolil()
    ring[n - 1, 0] = 1
    ring = (ring + ring.T) / 2
    return sp.csr_array(sp.block_diag([ring] * n_parts)).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eigenvectors_of_equal_eigenvalues_are_all_found(dtype):
    """One Krylov space holds one vector of each eigenspace: parts are solved one by one."""
    for n_parts in [2, 5]:
        n = 400
        A = blocks_of_rings(n_parts, n, dtype)
        order = np.random.default_rng(0).permutation(n_parts * n)
        values, vectors = leading_eigenpairs(Explicit(A[order][:, order]), n_parts)
        assert_allclose(values, 1, rtol=1e-5)
        indicator = np.repeat(np.eye(n_parts), n, axis=0)[order] / np.sqrt(n)
        found = np.linalg.svd(indicator.T @ vectors, compute_uv=False)
        assert_allclose(found, 1, atol=1e-4)  # the same space


def test_leading_eigenpairs_of_parts_are_those_of_all():
    for n_components in [1, 2, 3, 6, 9]:
        rng = np.random.default_rng(0)
        blocks = [rng.uniform(size=(size, size)) for size in (2, 5, 1, 4)]
        A = sp.block_diag([block + block.T for block in blocks], format="csr")
        values, vectors = leading_eigenpairs(Explicit(A), n_components)
        dense = A.toarray()
        assert_allclose(
            values, np.linalg.eigvalsh(dense)[::-1][:n_components], atol=1e-9
        )
        assert_allclose(dense @ vectors, vectors * values, atol=1e-8)


def test_of_parts_with_equal_eigenvalues_the_largest_come_first():
    A = sp.block_diag(
        [np.full((size, size), 1 / size) for size in (3, 8, 2, 5)], format="csr"
    )
    _, vectors = leading_eigenpairs(Explicit(A), 2)
    assert_array_equal(
        np.flatnonzero(np.abs(vectors).sum(axis=1)), [*range(3, 11), *range(13, 18)]
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("affinity", "n"), [("nearest_neighbors", 500), ("landmarks", 4000)]
)
def test_long_clusters_that_nothing_connects_are_found(affinity, n):
    X, y = make_nested_rings(n, radii=(2.0, 3.5, 5.0), noise=0.05, random_state=0)
    model = SSNMFClusterer(3, affinity=affinity, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_a_solver_that_does_not_converge_is_asked_for_less(monkeypatch):
    monkeypatch.setattr(initialization, "_MAX_PRODUCTS", 1)
    A = Explicit(blocks_of_rings(1, 500, np.float64))
    values, vectors = leading_eigenpairs(A, 3)
    assert_allclose(values, 1, atol=1e-3)
    assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-6)


def test_a_similarity_of_nothing_has_eigenpairs():
    values, vectors = leading_eigenpairs(
        Explicit(sp.csr_array((5, 5), dtype=np.float64)), 3
    )
    assert_allclose(values, 0, atol=1e-12)
    assert vectors.shape == (5, 3)
