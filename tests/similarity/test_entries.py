"""What operators say of their entries: sums of products, some of them, the diagonal, the graph."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from similarity.cases import KINDS, anything, exactly, make, symmetric

from nmfcluster._utils.storage import asymmetry
from nmfcluster.similarity import Explicit, Factored, inner


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [1, 9])
def test_inner_is_the_sum_over_all_entries(n):
    rng = np.random.default_rng(n)
    made = [make(kind, n, rng) for kind in KINDS]
    for (A, a), (B, b) in product(made, made):
        assert isinstance(inner(A, B), float)
        assert_allclose(inner(A, B), sum((a * b).ravel().tolist()), **exactly)


@pytest.mark.parametrize(
    "kinds", [("wide", "wide"), ("array", "array"), ("array", "wide")]
)
def test_inner_of_more_samples_than_a_block_has(kinds):
    rng = np.random.default_rng(0)
    n = 530  # with wider factors than samples and with several blocks of columns

    def operator(kind):
        U = rng.normal(size=(n, n + 3))
        return Factored(U) if kind == "wide" else Explicit(U @ U.T)

    A, B = (operator(kind) for kind in kinds)
    assert_allclose(inner(A, B), (A.toarray() * B.toarray()).sum(), rtol=1e-11)


@pytest.mark.parametrize("A", [Explicit, Factored, lambda a: Explicit(sp.csr_array(a))])
def test_inner_adds_in_float64(A):
    n, x = 700, np.float32(1.1)
    array = np.full((n, n if A is not Factored else 1), x)
    entry = float(x) if A is not Factored else float(x) ** 2
    assert_allclose(inner(A(array), A(array)), n**2 * entry**2, rtol=1e-12)


@anything
def test_entries_are_those_of_the_array(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    for size in (0, 1, 30):
        rows, columns = rng.integers(0, n, size=(2, size))
        found = A.entries(rows, columns)
        assert type(found) is np.ndarray
        assert found.shape == (size,)
        assert_allclose(
            found, [dense[i, j] for i, j in zip(rows, columns, strict=True)], **exactly
        )


def test_more_entries_than_are_computed_at_once():
    rng = np.random.default_rng(12)
    for kind in ("sparse", "dense U, no C", "sparse U, sparse C, scaled", "sum"):
        A, dense = make(kind, 11, rng)
        rows, columns = rng.integers(0, 11, size=(2, 10_000))
        assert_allclose(A.entries(rows, columns), dense[rows, columns], **exactly)


@anything
def test_diagonal_is_that_of_the_array(kind, seed, n):
    A, dense = make(kind, n, np.random.default_rng(seed))
    assert A.diagonal().shape == (n,)
    assert_allclose(A.diagonal(), [dense[i, i] for i in range(n)], **exactly)


@anything
def test_scaling_is_the_product_with_diagonals(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    factors = rng.normal(size=n) * (rng.uniform(size=n) < 0.8)
    expected = [
        [factors[i] * dense[i, j] * factors[j] for j in range(n)] for i in range(n)
    ]
    scaled = A.scaled(factors)
    assert_allclose(scaled.toarray(), expected, **exactly)
    assert_allclose(scaled @ np.eye(n), expected, **exactly)
    again = scaled.scaled(factors).toarray()
    assert_allclose(again, np.outer(factors**2, factors**2) * dense, **exactly)
    assert_allclose(A.toarray(), dense, **exactly)


@anything
def test_the_diagonal_is_dropped(kind, seed, n):
    A, dense = make(kind, n, np.random.default_rng(seed))
    expected = dense - np.diag(np.diag(dense))
    assert_allclose(A.without_diagonal().toarray(), expected, **exactly)
    assert_allclose(A.toarray(), dense, **exactly)


@anything
def test_stored_entries_are_those_above_the_diagonal_of_a_sparse_matrix(kind, seed, n):
    A, dense = make(kind, n, np.random.default_rng(seed))
    found = A.stored_off_diagonal()
    if kind != "sparse":
        assert found is None
    else:
        expected = [
            dense[i, j] for i in range(n) for j in range(i + 1, n) if dense[i, j] != 0
        ]
        assert_allclose(np.sort(found), np.sort(expected), **exactly)


@anything
def test_components_are_those_of_a_stored_graph(kind, seed, n):
    A, dense = make(kind, n, np.random.default_rng(seed))
    found = A.parts
    if found is None:
        assert kind != "sparse"
    else:
        reached = np.linalg.matrix_power((dense != 0) + np.eye(n), n) > 0
        assert_array_equal(found[:, None] == found, reached)


def test_stored_zeros_and_a_dropped_diagonal_are_not_stored_entries():
    data = np.array([3.0, 0.0, 0.0, 5.0])
    A = Explicit(sp.csr_array((data, ([0, 0, 1, 1], [0, 1, 0, 1])), shape=(2, 2)))
    assert len(A.stored_off_diagonal()) == 0
    assert A.without_diagonal()._array.nnz == 2  # the stored zeros, which are harmless


@pytest.mark.parametrize(
    "factored", ["dense U, dense C, scaled", "sparse U, no C", "core dense"]
)
def test_inner_of_a_factored_and_a_sparse_operator_forms_neither(factored):
    """The entries that the sparse one stores are enough: for 40,000 samples, too."""
    rng = np.random.default_rng(13)
    A, dense = make(factored, 9, rng)
    B, spikes = make("sparse", 9, rng)
    assert_allclose(inner(A, B), (dense * spikes).sum(), **exactly)
    assert_allclose(inner(B, A), (dense * spikes).sum(), **exactly)
    n = 40_000
    large = Factored(np.ones((n, 1)), [2.0], np.arange(n) / n)
    pair = sp.csr_array(([3.0, 3.0], ([1, n - 1], [n - 1, 1])), shape=(n, n))
    expected = 2 * 3 * 2 * (1 / n) * ((n - 1) / n)
    assert_allclose(inner(large, Explicit(pair)), expected)
    assert_allclose(
        inner(large - 2 * Explicit(pair), Explicit(pair)), expected - 2 * 18
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [1, 7, 257, 600])
def test_asymmetry_is_the_largest_difference_to_the_transpose(n):
    A = symmetric(np.random.default_rng(n), n)
    assert asymmetry(A) == asymmetry(sp.csr_array(A)) == 0
    for i, j in [(0, n - 1), (n - 1, 0), (n // 2, 0)]:
        B = A.copy()
        B[i, j] += 0.5
        expected = max(abs(B - B.T).ravel())
        assert asymmetry(B) == asymmetry(sp.csr_array(B)) == expected
        assert asymmetry(B.astype(np.float32)) == pytest.approx(expected, rel=1e-5)


def test_a_column_of_weight_0_connects_nothing():
    U = sp.csr_array([[1.0, 0, 1], [1.0, 0, 1], [0, 1.0, 1]])
    assert_array_equal(Factored(U, [1.0, 1.0, 0.0]).parts, [0, 0, 1])
    assert_array_equal(Factored(U, [1.0, 1.0, 0.5]).parts, [0, 0, 0])
