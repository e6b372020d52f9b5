"""Every operator against its dense definition: products, splits and sums."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from refusals import raises_naming
from similarity.cases import KINDS, anything, exactly, make, symmetric

from nmfcluster.similarity import Explicit, Factored, inner


@given(
    st.sampled_from(KINDS),
    st.integers(0, 10**6),
    st.integers(1, 11),
    st.integers(1, 4),
    st.sampled_from([(), (1,), (3,), (2, 3)]),
)
def test_product_with_a_block_and_a_stack_of_blocks(kind, seed, n, k, stack):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    H = rng.normal(size=(*stack, n, k))
    found = A @ H
    assert found.shape == H.shape
    for s in np.ndindex(*stack):
        assert_allclose(found[s], dense @ H[s], **exactly)


@anything
def test_toarray_is_the_definition(kind, seed, n):
    A, dense = make(kind, n, np.random.default_rng(seed))
    assert A.shape == (n, n)
    assert type(A.toarray()) is np.ndarray
    assert_allclose(A.toarray(), dense, **exactly)


@anything
def test_split_is_a_difference_of_nonnegative_parts(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    P, N = A.split()
    assert P.toarray().min() >= 0
    assert N is None or N.toarray().min() >= 0
    assert_allclose(P.toarray() - (0 if N is None else N.toarray()), dense, **exactly)
    H = rng.uniform(size=(n, 2))
    assert_allclose(P @ H - (0 if N is None else N @ H), dense @ H, **exactly)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_split_has_no_negative_part_where_there_is_nothing_negative(storage):
    X = np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 1.0]])
    for A in (
        Explicit(storage(X @ X.T)),
        Factored(storage(X)),
        Factored(storage(X), [2.0, 0.0]),
    ):
        P, N = A.split()
        assert N is None
        assert_allclose(P.toarray(), A.toarray())
    total = 2 * Explicit(storage(X @ X.T)) + Factored(storage(X))
    assert total.split()[1] is None


def test_split_of_something_negative_throughout():
    A = Explicit(np.ones((2, 2)))
    P, N = (-1 * A - Factored(np.ones((2, 1)))).split()
    assert_allclose(P.toarray(), np.zeros((2, 2)))
    assert_allclose(N.toarray(), np.full((2, 2), 2.0))


@given(st.sampled_from(KINDS), st.integers(0, 10**6))
def test_float32_stays_float32(kind, seed):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, 9, rng, np.float32)
    groups = np.arange(9) // 2
    P, N = A.split()
    for operator in (
        A,
        A.take(np.arange(4)),
        A.collapse(groups),
        P,
        A if N is None else N,
        2.5 * A,
        A.scaled(np.arange(1.0, 10)),
        A.without_diagonal(),
    ):
        m = operator.shape[0]
        assert operator.dtype == np.float32
        assert operator.toarray().dtype == np.float32
        for stack in [(), (2,)]:
            assert (operator @ np.ones((*stack, m, 2), np.float32)).dtype == np.float32
        assert operator.diagonal().dtype == np.float32
    H = rng.normal(size=(9, 3)).astype(np.float32)
    assert_allclose(A @ H, dense @ H, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "storage", [np.asarray, sp.csr_array, sp.csr_matrix, sp.coo_array]
)
def test_numbers_that_are_not_floats_become_float64(storage):
    for dtype in (np.int64, np.int32, bool):
        array = storage(np.eye(3, dtype=dtype))
        for A in (Explicit(array), Factored(array)):
            assert A.dtype == np.float64
            assert_allclose(A @ np.ones((3, 1)), np.ones((3, 1)))


@given(
    st.integers(0, 10**6),
    st.floats(-3, 3),
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
)
def test_sums_differences_and_multiples(seed, weight, one, other):
    rng = np.random.default_rng(seed)
    (A, a), (B, b) = make(one, 6, rng), make(other, 6, rng)
    for operator, dense in [
        (A + B, a + b),
        (A - B, a - b),
        (weight * A, weight * a),
        (A * weight, weight * a),
        (2 * (A - weight * B) - A, a - 2 * weight * b),
    ]:
        assert_allclose(operator.toarray(), dense, **exactly)
        assert_allclose(operator @ np.eye(6), dense, **exactly)


def test_arrays_in_a_sum_are_merged():
    dense, factored = Explicit(np.eye(3)), Factored(np.ones((3, 1)))
    total = dense + 2 * (Explicit(sp.csr_array(np.eye(3))) - factored) + dense
    assert [type(term) for term, _ in total.terms] == [Factored, Explicit]
    assert_allclose(total.toarray(), 4 * np.eye(3) - 2)


def test_dense_arrays_alone_gain_from_a_wide_product():
    dense, sparse = Explicit(np.eye(2)), Explicit(sp.csr_array(np.eye(2)))
    thin = Factored(np.eye(2))
    assert [A.wide for A in (dense, sparse, thin)] == [True, False, False]
    assert [A.wide for A in (sparse + thin, dense + thin)] == [False, True]


def frozen(array):
    for part in ("data", "indices", "indptr") if sp.issparse(array) else ():
        getattr(array, part).flags.writeable = False
    if not sp.issparse(array):
        array.flags.writeable = False
    return array


@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
def test_inputs_are_not_written_to(storage):
    rng = np.random.default_rng(2)
    S, U, C = symmetric(rng, 6), rng.normal(size=(6, 2)), symmetric(rng, 2)
    scale, before = frozen(np.arange(1.0, 7)), (S.copy(), U.copy(), C.copy())
    arrays = [frozen(storage(array)) for array in (S, U, C)]
    explicit, factored = Explicit(arrays[0]), Factored(arrays[1], arrays[2], scale)
    H, groups = frozen(rng.normal(size=(2, 6, 3))), frozen(np.array([0, 0, 1, 1, 2, 2]))
    for A in (explicit, factored, explicit - 2 * factored):
        expected = A.toarray()
        results = [
            A @ H,
            A @ H[0],
            *A.split(),
            A.take(groups),
            A.collapse(groups),
            inner(A, A),
        ]
        results += [A.scaled(scale), A.without_diagonal(), A.entries(groups, groups)]
        for result in results[:2]:
            result *= 2  # the result of a product is the caller's
        A.toarray()[:] = 0
        assert_allclose(A.toarray(), expected)
    for array, old in zip(arrays, before, strict=True):
        assert_allclose(array.toarray() if sp.issparse(array) else array, old, rtol=0)


def test_an_inner_product_needs_one_shape():
    with raises_naming(ValueError, "shape"):
        inner(Explicit(np.eye(2)), Explicit(np.eye(3)))


def test_repr_names_kind_shape_and_type():
    assert repr(Explicit(np.eye(2))) == "Explicit(shape=(2, 2), dtype=float64)"
