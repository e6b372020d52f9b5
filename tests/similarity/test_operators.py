"""Every operator against its dense definition, written out here."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._arrays.storage import asymmetry
from nmfcluster.similarity import Explicit, Factored, WeightedSum, coassociation, inner

exactly = {"rtol": 1e-10, "atol": 1e-10}

EXPLICIT = ["dense", "sparse", "dense >= 0"]
FACTORED = [
    f"{U} U, {C} C{scale}"
    for U, C, scale in product(
        ["dense", "sparse"], ["no", "diagonal", "dense", "sparse"], ["", ", scaled"]
    )
]
NESTED = ["core dense", "core dense U, diagonal C, scaled", "core sparse U, no C", "core sum"]
KINDS = [*EXPLICIT, *FACTORED, *NESTED, "sum", "sum of factored", "sum of sums"]


def symmetric(rng, n, share=1.0):
    A = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < share)
    return A + A.T


def make(kind, n, rng, dtype=np.float64):
    """Return an operator and, in float64, the matrix it stands for."""
    if kind in EXPLICIT:
        A = symmetric(rng, n, 1.0 if kind == "dense" else 0.4).astype(dtype)
        if kind == "dense >= 0":
            A = abs(A)
        return Explicit(sp.csr_array(A) if kind == "sparse" else A), A.astype(np.float64)
    if kind in FACTORED:
        return make_factored(kind, n, rng, dtype)
    if kind in NESTED:
        C, core = make(kind.removeprefix("core "), 3, rng, dtype)
        U = (rng.normal(size=(n, 3)) * (rng.uniform(size=(n, 3)) < 0.7)).astype(dtype)
        scale = rng.uniform(0.5, 2, size=n).astype(dtype)
        dense = U.astype(np.float64) * scale[:, None]
        return Factored(sp.csr_array(U), C, scale), dense @ core @ dense.T
    parts = {
        "sum": ["dense", "sparse", "dense U, diagonal C"],
        "sum of factored": ["sparse U, dense C, scaled", "dense U, no C"],
        "sum of sums": ["sum", "sparse U, sparse C"],
    }[kind]
    weights = rng.normal(size=len(parts))
    terms, arrays = zip(*[make(part, n, rng, dtype) for part in parts], strict=True)
    dense = sum(w * array for w, array in zip(weights, arrays, strict=True))
    return WeightedSum(terms, weights), dense


def make_factored(kind, n, rng, dtype):
    r = int(rng.integers(1, 5))
    U = rng.normal(size=(n, r)) * (rng.uniform(size=(n, r)) < 0.7)
    U, scale = U.astype(dtype), None
    dense = U.astype(np.float64)
    if "scaled" in kind:
        scale = rng.uniform(0.5, 2, size=n).astype(dtype)
        dense = dense * scale[:, None].astype(np.float64)
    core = C = None
    if "diagonal" in kind:
        C = rng.normal(size=r)
        core = np.diag(C)
    elif "no C" not in kind:
        C = core = symmetric(rng, r, 0.6)
        C = sp.csr_array(C) if "sparse C" in kind else C
    core = np.eye(r) if core is None else core.astype(dtype).astype(np.float64)
    U = sp.csr_array(U) if kind.startswith("sparse") else U
    return Factored(U, C, scale), dense @ core @ dense.T


def groups_of(rng, n):
    """Draw groups 0 to g - 1, none empty."""
    return np.unique(rng.integers(0, max(1, n // 2), size=n), return_inverse=True)[1]


def scaled_indicator(groups):
    E = np.zeros((len(groups), max(groups) + 1))
    for c in range(E.shape[1]):
        members = [i for i in range(len(groups)) if groups[i] == c]
        for i in members:
            E[i, c] = 1 / len(members) ** 0.5
    return E


anything = given(st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(1, 11))


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
    for A in (Explicit(storage(X @ X.T)), Factored(storage(X)), Factored(storage(X), [2.0, 0.0])):
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


@anything
def test_take_restricts_reorders_and_repeats(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    indices = rng.integers(0, n, size=n + 2)
    assert_allclose(A.take(indices).toarray(), dense[indices][:, indices], **exactly)
    assert_allclose(A.take(indices) @ np.eye(n + 2), dense[indices][:, indices], **exactly)


@anything
def test_collapse_is_the_congruence_with_the_scaled_indicator(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    groups = groups_of(rng, n)
    E = scaled_indicator(groups)
    small = A.collapse(groups)
    assert small.shape == (E.shape[1], E.shape[1])
    assert_allclose(small.toarray(), E.T @ dense @ E, **exactly)
    assert_allclose(small @ np.eye(E.shape[1]), E.T @ dense @ E, **exactly)


@anything
def test_collapse_keeps_the_objective_up_to_a_constant(kind, seed, n):
    """||A - HH'||^2 = ||A||^2 - ||A_c||^2 + ||A_c - hh'||^2 for H = Eh."""
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    groups = groups_of(rng, n)
    E, small = scaled_indicator(groups), A.collapse(groups)
    h = rng.uniform(size=(E.shape[1], 2))
    whole = ((dense - E @ h @ (E @ h).T) ** 2).sum()
    part = ((small.toarray() - h @ h.T) ** 2).sum()
    assert_allclose(inner(A, A) - inner(small, small) + part, whole, **exactly)


@pytest.mark.parametrize("collapse", [Explicit(np.eye(3)).collapse, Factored(np.eye(3)).collapse])
def test_collapse_refuses_an_empty_group(collapse):
    with pytest.raises(ValueError, match="group 1 is empty"):
        collapse(np.array([0, 2, 2]))


@pytest.mark.parametrize("one", KINDS)
def test_inner_is_the_sum_over_all_entries(one):
    rng = np.random.default_rng(KINDS.index(one))
    for other, n in product(KINDS, (1, 3, 9)):
        (A, a), (B, b) = make(one, n, rng), make(other, n, rng)
        expected = sum(a[i, j] * b[i, j] for i in range(n) for j in range(n))
        assert isinstance(inner(A, B), float)
        assert_allclose(inner(A, B), expected, **exactly)


@pytest.mark.parametrize("kinds", [("wide", "wide"), ("array", "array"), ("array", "wide")])
def test_inner_of_more_samples_than_are_looked_at_at_once(kinds):
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
        assert_allclose(found, [dense[i, j] for i, j in zip(rows, columns, strict=True)], **exactly)


@pytest.mark.parametrize("kind", ["sparse", "dense U, no C", "sparse U, sparse C, scaled", "sum"])
def test_more_entries_than_are_computed_at_once(kind):
    rng = np.random.default_rng(12)
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
    expected = [[factors[i] * dense[i, j] * factors[j] for j in range(n)] for i in range(n)]
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
        expected = [dense[i, j] for i in range(n) for j in range(i + 1, n) if dense[i, j] != 0]
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


@pytest.mark.parametrize("factored", ["dense U, dense C, scaled", "sparse U, no C", "core dense"])
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
    assert_allclose(inner(large - 2 * Explicit(pair), Explicit(pair)), expected - 2 * 18)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_stays_float32(kind):
    rng = np.random.default_rng(1)
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


@pytest.mark.parametrize("dtype", [np.int64, np.int32, bool])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csr_matrix, sp.coo_array])
def test_numbers_that_are_not_floats_become_float64(dtype, storage):
    array = storage(np.eye(3, dtype=dtype))
    for A in (Explicit(array), Factored(array)):
        assert A.dtype == np.float64
        assert_allclose(A @ np.ones((3, 1)), np.ones((3, 1)))


@given(st.integers(0, 10**6), st.floats(-3, 3), st.sampled_from(KINDS), st.sampled_from(KINDS))
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
def test_nothing_that_was_handed_in_is_written_to(storage):
    rng = np.random.default_rng(2)
    S, U, C = symmetric(rng, 6), rng.normal(size=(6, 2)), symmetric(rng, 2)
    scale, before = frozen(np.arange(1.0, 7)), (S.copy(), U.copy(), C.copy())
    arrays = [frozen(storage(array)) for array in (S, U, C)]
    explicit, factored = Explicit(arrays[0]), Factored(arrays[1], arrays[2], scale)
    H, groups = frozen(rng.normal(size=(2, 6, 3))), frozen(np.array([0, 0, 1, 1, 2, 2]))
    for A in (explicit, factored, explicit - 2 * factored):
        expected = A.toarray()
        results = [A @ H, A @ H[0], *A.split(), A.take(groups), A.collapse(groups), inner(A, A)]
        results += [A.scaled(scale), A.without_diagonal(), A.entries(groups, groups)]
        for result in results[:2]:
            result *= 2  # the result of a product is the caller's
        A.toarray()[:] = 0
        assert_allclose(A.toarray(), expected)
    for array, old in zip(arrays, before, strict=True):
        assert_allclose(array.toarray() if sp.issparse(array) else array, old, rtol=0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Explicit(np.ones((2, 3))), r"array must have shape \(n, n\), got \(2, 3\)"),
        (lambda: Explicit(np.ones(3)), r"array must have shape \(n, n\), got \(3,\)"),
        (lambda: Factored(np.ones(3)), r"U must have shape \(n, r\), got \(3,\)"),
        (lambda: Factored(np.ones((3, 2)), np.ones(3)), r"C must have shape \(2,\) or \(2, 2\)"),
        (lambda: Factored(np.ones((3, 2)), None, [1.0]), r"scale must have shape \(3,\)"),
        (lambda: WeightedSum([], []), "terms and weights .*got 0 and 0"),
        (lambda: WeightedSum([Explicit(np.eye(2))], [1, 2]), "terms and weights .*got 1 and 2"),
        (lambda: Explicit(np.eye(2)) + Explicit(np.eye(3)), "one shape"),
        (lambda: inner(Explicit(np.eye(2)), Explicit(np.eye(3))), "one shape"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_repr_names_kind_shape_and_type():
    assert repr(Explicit(np.eye(2))) == "Explicit(shape=(2, 2), dtype=float64)"


label_tables = st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(0, 10**6))


def draw_codes(rng, n, T, missing):
    """Draw a table with another number of clusters in every column, and -1 for "not seen"."""
    codes = rng.integers(0, rng.integers(1, 5, size=T), size=(n, T))
    codes[rng.uniform(size=(n, T)) < missing] = -1
    return codes


@given(label_tables, st.sampled_from([0, 0.3, 0.8]), st.booleans())
def test_coassociation_counts_the_partitions_that_hold_a_pair(table, missing, weighted):
    n, T, seed = table
    rng = np.random.default_rng(seed)
    codes = draw_codes(rng, n, T, missing)
    weights = rng.uniform(size=T) if weighted else None
    expected = np.zeros((n, n))
    for i, j, t in product(range(n), range(n), range(T)):
        if codes[i, t] >= 0 and codes[i, t] == codes[j, t]:
            expected[i, j] += 1 / T if weights is None else weights[t]
    assert_allclose(coassociation(codes, weights).toarray(), expected, **exactly)


@given(label_tables, st.sampled_from([0, 0.4]))
def test_coassociation_with_counts_is_that_of_all_samples_collapsed(table, missing):
    m, T, seed = table
    rng = np.random.default_rng(seed)
    codes, counts = draw_codes(rng, m, T, missing), rng.integers(1, 4, size=m)
    groups = np.repeat(np.arange(m), counts)
    E = scaled_indicator(groups)
    everyone = coassociation(codes[groups]).toarray()
    found = coassociation(codes, counts=counts)
    assert_allclose(found.toarray(), E.T @ everyone @ E, **exactly)
    assert_allclose(inner(found, found), (everyone**2).sum(), **exactly)


def test_coassociation_in_float32():
    A = coassociation(np.array([[0, 0], [0, 1], [1, -1]]), counts=np.array([1, 2, 3]), dtype="f4")
    assert A.dtype == np.float32
    assert (A @ np.ones((3, 1), np.float32)).dtype == np.float32


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


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_collapse_that_keeps_most_rows_copies_no_features(storage, scaled):
    """Of pairs and single samples; it is then restricted, collapsed and scaled like any other."""
    rng = np.random.default_rng(0)
    U = storage(rng.uniform(size=(12, 40)) * (rng.uniform(size=(12, 40)) < 0.3))
    A = Factored(U, scale=rng.uniform(1, 2, size=12) if scaled else None)
    groups = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0])
    small = A.collapse(groups)
    E = np.eye(10)[groups] / np.sqrt(np.bincount(groups))[groups, None]
    expected = E.T @ A.toarray() @ E
    assert small.factors[0].shape == (10, 40)
    assert_allclose(small.toarray(), expected, atol=1e-12)
    assert_allclose(small @ np.eye(10), expected, atol=1e-12)
    assert_allclose(small.diagonal(), expected.diagonal(), atol=1e-12)
    chosen = np.array([9, 3, 0])
    part = small.take(chosen)
    assert_allclose(part.toarray(), expected[chosen][:, chosen], atol=1e-12)
    assert_allclose(part @ np.eye(3), expected[chosen][:, chosen], atol=1e-12)
    assert_allclose(inner(small, small), (expected**2).sum())
    again = small.collapse(np.arange(10) // 5)
    halves = np.kron(np.eye(2), np.ones((5, 1))) / np.sqrt(5)
    assert_allclose(again.toarray(), halves.T @ expected @ halves, atol=1e-12)


def test_a_part_of_the_samples_has_the_columns_that_it_uses():
    U = sp.csr_array(np.kron(np.eye(30), np.ones((1, 2))))
    C = np.random.default_rng(0).uniform(size=(60, 60))
    for core in (None, C + C.T, sp.csr_array(C + C.T)):
        A = Factored(U, core)
        part = A.take(np.array([5, 2]))
        assert part.rank == 4
        assert_allclose(part.toarray(), A.toarray()[[5, 2]][:, [5, 2]])


def test_a_column_of_weight_0_connects_nothing():
    U = sp.csr_array([[1.0, 0, 1], [1.0, 0, 1], [0, 1.0, 1]])
    assert_array_equal(Factored(U, [1.0, 1.0, 0.0]).parts, [0, 0, 1])
    assert_array_equal(Factored(U, [1.0, 1.0, 0.5]).parts, [0, 0, 0])
