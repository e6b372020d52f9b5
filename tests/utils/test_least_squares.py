"""Coordinate descent against its loops, and nonnegative least squares against SciPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from nmfcluster._utils import linalg as module
from nmfcluster._utils.linalg import (
    approximate_nnls_rows,
    coordinate_descent,
    nnls_rows,
)

seeds = st.integers(0, 10**6)


def read_only(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


def problem(rng, n, k, p, *, noise=0.3, spread=1.0):
    """Draw H and a table X whose rows are combinations of some rows of H, with noise."""
    H = rng.uniform(1 - spread, 1, size=(k, p))
    if spread == 1:
        H *= rng.uniform(size=(k, p)) < 0.7
    W = rng.uniform(size=(n, k)) * (rng.uniform(size=(n, k)) < 0.5)
    return np.maximum(W @ H + noise * rng.normal(size=(n, p)), 0), H


def products(X, H):
    return read_only(X @ H.T, H @ H.T)


def least_squares(X, H):
    return np.array([nnls(H.T.astype(float), x.astype(float))[0] for x in X])


def losses(X, W, H):
    return ((X.astype(float) - W.astype(float) @ H.astype(float)) ** 2).sum(axis=1)


def assert_minimal(X, W, H):
    """Assert that no row of W is worse than SciPy's by more than rounding of what it explains."""
    assert W.min() >= 0
    excess = losses(X, W, H) - losses(X, least_squares(X, H), H)
    assert (excess <= 1e-10 * (X**2).sum(axis=1)).all()


# --- coordinate descent ------------------------------------------------------------------------


def swept(F, N, G, sweeps):
    """Set entry after entry to the minimum of <G, FF'> / 2 - <N, F> over it."""
    F = F.astype(float)
    for _ in range(sweeps):
        for c in range(len(F)):
            for j in range(F.shape[1]):
                g = G if G.ndim == 2 else G[:, :, j]
                if g[c, c] > 0:
                    others = sum(g[c, d] * F[d, j] for d in range(len(F)) if d != c)
                    F[c, j] = max(0, (N[c, j] - others) / g[c, c])
    return F


@given(seeds, st.integers(1, 5), st.integers(1, 6), st.integers(0, 3), st.booleans())
def test_a_sweep_sets_entry_after_entry_to_its_minimum(
    seed, k, m, sweeps, column_by_column
):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, k, 6))  # of three starts
    A[rng.uniform(size=(3, k)) < 0.2] = 0  # such a row stays as it is
    G = A @ A.mT
    N, F = rng.normal(size=(3, k, m)), rng.uniform(size=(3, k, m))
    read_only(N, G)
    expected = [swept(*start, sweeps) for start in zip(F, N, G, strict=True)]
    coordinate_descent(F, N, G, sweeps, column_by_column=column_by_column)
    assert_allclose(F, expected, rtol=1e-9, atol=1e-10)


def test_starts_side_by_side_are_swept_as_each_alone_to_the_bit():
    rng = np.random.default_rng(0)
    # more than a cache holds
    A, N = (rng.uniform(size=(7, 4, 9)), rng.normal(size=(7, 4, 20_000)))
    F, alone = np.zeros_like(N), np.zeros_like(N)
    coordinate_descent(F, N, A @ A.mT, 2)
    for start in range(7):
        one = slice(start, start + 1)
        coordinate_descent(alone[one], N[one], A[one] @ A[one].mT, 2)
    assert_array_equal(F, alone)


@settings(max_examples=15)
@given(seeds, st.integers(1, 5))
def test_many_sweeps_end_at_the_least_squares_solution(seed, k):
    X, H = problem(np.random.default_rng(seed), 5, k, k + 8)
    H = H + np.eye(*H.shape)
    B, G = products(X, H)
    F = np.ones((k, 5))
    coordinate_descent(F[None], B.T[None], G[None], 500)
    assert_allclose(F.T, least_squares(X, H), atol=1e-8)


def test_sweeps_keep_float32():
    X, H = problem(np.random.default_rng(0), 5, 3, 12)
    B, G = products(X.astype(np.float32), H.astype(np.float32))
    F = np.ones((3, 5), dtype=np.float32)
    coordinate_descent(F[None], B.T[None], G[None], 7)
    assert F.dtype == np.float32
    assert_allclose(F, swept(np.ones((3, 5)), B.T, G, 7), rtol=1e-4, atol=1e-5)


# --- all rows at once --------------------------------------------------------------------------


@given(seeds, st.integers(1, 6), st.integers(1, 5))
def test_nonnegative_rows_are_least_squares_solutions(seed, n, k):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(k + 3, k)), rng.normal(size=(n, k + 3))
    found = approximate_nnls_rows(*read_only(Y @ X, X.T @ X), max_sweeps=3000)
    assert_allclose(found, [nnls(X, y)[0] for y in Y], atol=1e-4)


@pytest.mark.parametrize(("apart", "settles"), [(3, True), (0, False)])
def test_nonnegative_rows_are_swept_until_no_entry_changes_much(apart, settles):
    rng = np.random.default_rng(0)
    for _ in range(3):
        A = rng.uniform(0.8, 1, size=(4, 9)) + apart * np.eye(4, 9)
        G = A @ A.T
        B = rng.uniform(size=(6, 4)) @ G
        F, n_sweeps = np.maximum(B.T / np.diag(G)[:, None], 0) / 4, 0
        while n_sweeps < 100:
            F, before, n_sweeps = swept(F, B.T, G, 1), F, n_sweeps + 1
            if abs(F - before).max() <= 1e-6 * F.max():
                break
        assert (n_sweeps < 100) == settles
        assert_allclose(approximate_nnls_rows(B, G), F.T, rtol=1e-10, atol=1e-12)


def test_nonnegative_rows_of_a_table_longer_than_a_block():
    rng = np.random.default_rng(11)
    X, B = rng.normal(size=(6, 3)), rng.normal(size=(20_000, 3))
    H = approximate_nnls_rows(B, X.T @ X)
    slope = H @ X.T @ X - B  # at the solution: 0 where H > 0, else >= 0
    assert H.min() == 0
    assert abs(slope[H > 0]).max() < 1e-3
    assert slope[H == 0].min() > -1e-3


def test_nonnegative_rows_are_finite_for_a_column_of_zeros():
    G, B = np.diag([2.0, 0.0]), np.array([[4.0, 0.0], [-1.0, 0.0]])
    assert_allclose(approximate_nnls_rows(B, G), [[2, 0], [0, 0]])
    assert (
        approximate_nnls_rows(B.astype(np.float32), G.astype(np.float32)).dtype
        == np.float32
    )


def test_fewer_sweeps_stop_earlier():
    G, exact = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([[1.0, 2.0]])
    error = [
        abs(approximate_nnls_rows(exact @ G, G, max_sweeps=m) - exact).max()
        for m in (1, 5, 200)
    ]
    assert error[0] > error[1] > error[2]
    assert error[2] < 1e-5


# --- the exact solution ------------------------------------------------------------------------


@given(seeds, st.integers(1, 6), st.sampled_from([0, 1e-3, 0.3]))
def test_exact_rows_are_least_squares_solutions(seed, k, noise):
    X, H = problem(np.random.default_rng(seed), 8, k, k + 15, noise=noise)
    W = nnls_rows(*products(X, H))
    assert_minimal(X, W, H)
    if np.linalg.cond(H) < 100:
        assert_allclose(W, least_squares(X, H), atol=1e-7 if noise == 0 else 1e-10)


@given(seeds, st.integers(1, 6))
def test_exact_rows_take_a_system_for_each_row(seed, k):
    rng = np.random.default_rng(seed)
    A, y = rng.normal(size=(7, 9, k)), rng.normal(size=(7, 9))
    B, G = np.einsum("npk,np->nk", A, y), np.einsum("npk,npl->nkl", A, A)
    expected = [nnls(own, of)[0] for own, of in zip(A, y, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SOLVED_ENTRIES", 3 * k**2)
        assert_allclose(nnls_rows(B, G), expected, atol=1e-8)


def test_exact_rows_of_data_without_noise_are_exact():
    """Rows of X are made of some rows of H: the slopes of the others are 0 at the solution."""
    for seed in range(10):
        X, H = problem(np.random.default_rng(seed), 30, 5, 25, noise=0)
        assert_allclose(nnls_rows(*products(X, H)), least_squares(X, H), atol=1e-12)


def test_an_entry_far_smaller_than_the_others_is_found_unless_it_may_be_rounding():
    """It is not solved for at first: its slope, 3/4 of it, decides."""
    G = np.array([[1.0, -0.5], [-0.5, 1.0]])
    small, rounding = np.array([[1.0, 1e-11]]), np.array([[1.0, 1e-13]])
    assert_allclose(nnls_rows(small @ G, G), small, rtol=1e-3)
    assert nnls_rows(rounding @ G, G)[0, 1] == 0


def test_exact_rows_of_a_diagonal_are_quotients_to_rounding():
    B, G = np.array([[3.0, 5.0, -1.0]]), np.diag([2.0, 4.0, 1.0])
    assert_allclose(nnls_rows(B, G), [[1.5, 1.25, 0]], rtol=3e-14)


@pytest.mark.parametrize(("noise", "dtype"), [(0, np.float64), (0.3, np.float32)])
def test_an_exact_row_does_not_depend_on_those_beside_it(noise, dtype):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, H = problem(rng, 60, 5, 25, noise=noise)
        X[:3] *= 1e6  # beside a large row, a small one is not done with sooner
        B, G = products(X.astype(dtype), H.astype(dtype))
        W, order = nnls_rows(B, G), rng.permutation(60)
        assert_array_equal(nnls_rows(B[order], G), W[order])
        assert_array_equal(np.concatenate([nnls_rows(b[None], G) for b in B]), W)


@pytest.mark.parametrize("spread", [0.1, 1e-3])
def test_exact_rows_are_exact_where_rows_of_h_are_much_alike(spread):
    for seed in range(4):
        X, H = problem(np.random.default_rng(seed), 30, 6, 40, noise=0.1, spread=spread)
        assert_minimal(X, nnls_rows(*products(X, H)), H)


def test_exact_rows_are_exact_where_one_column_outweighs_all_others():
    for seed in range(4):
        X, H = problem(np.random.default_rng(seed), 30, 3, 13)
        X[:, 0], H[:, 0] = 700 * (1 + X[:, 0]), 700 * (1 + H[:, 0])
        W = nnls_rows(*products(X, H))
        assert_minimal(X, W, H)
        assert_allclose(W, least_squares(X, H), atol=1e-6)


def test_exact_rows_for_many_clusters():
    X, H = problem(np.random.default_rng(1), 40, 40, 120)
    W = nnls_rows(*products(X, H))
    assert_allclose(W, least_squares(X, H), atol=1e-10)


def test_exact_rows_of_a_table_longer_than_a_block():
    X, H = problem(np.random.default_rng(2), 9000, 3, 6)
    B, G = products(X, H)
    W = nnls_rows(B, G)
    # where blocks of all sizes begin and end
    chosen = [0, 1, 2729, 2730, 2731, 8191, 8192, 8999]
    assert_allclose(W[chosen], least_squares(X[chosen], H), atol=1e-11)
    slope = W @ G - B
    assert abs(slope[W > 0]).max() < 1e-10
    assert slope[W == 0].min() > -1e-10


def test_exact_rows_share_out_equal_rows_of_h_in_some_way():
    for seed in range(5):
        X, H = problem(np.random.default_rng(seed), 20, 4, 20)
        H = np.concatenate([H, H[:2], 3 * H[2:3]])
        W = nnls_rows(*products(X, H))
        assert_minimal(X, W, H)
        merged = W[:, :4] + W[:, [4, 5, 6, 3]] * np.array([1, 1, 3, 0])
        assert_allclose(merged, least_squares(X, H[:4]), atol=1e-7)


def test_exact_rows_for_a_zero_row_of_h_and_a_zero_row_of_x():
    X, H = problem(np.random.default_rng(3), 20, 4, 20)
    H[1], X[5] = 0, 0
    W = nnls_rows(*products(X, H))
    assert_array_equal(W[:, 1], 0)
    assert_array_equal(W[5], 0)
    assert_allclose(W, least_squares(X, H), atol=1e-11)
    assert_array_equal(nnls_rows(np.zeros((2, 3)), np.zeros((3, 3))), 0)
    assert nnls_rows(np.zeros((0, 3)), np.eye(3)).shape == (0, 3)


def test_exact_rows_keep_float32():
    X, H = (F.astype(np.float32) for F in problem(np.random.default_rng(4), 30, 4, 20))
    W = nnls_rows(*products(X, H))
    assert W.dtype == np.float32
    assert_allclose(W, least_squares(X, H), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exact_rows_do_not_depend_on_scale(dtype):
    X, H = problem(np.random.default_rng(5), 30, 4, 20)
    B, G = products(X.astype(dtype), H.astype(dtype))
    W = nnls_rows(B, G)
    for a, b in [(2.0**40, 1.0), (2.0**-40, 1.0), (1.0, 2.0**40), (1.0, 2.0**-40)]:
        scaled = nnls_rows((B * a * b).astype(dtype), (G * b * b).astype(dtype))
        assert_array_equal(scaled * dtype(b / a), W)  # the same bits, for powers of two
    unequal = np.array([1e-8, 1.0, 1e8, 1e3])
    scaled = nnls_rows(
        (B * unequal).astype(dtype), (G * np.outer(unequal, unequal)).astype(dtype)
    )
    assert_allclose(scaled * unequal, W, atol=1e-11 if dtype is np.float64 else 1e-5)


def bands(k, width, n, p):
    """Return a table, and H with rows that overlap with their neighbours."""
    centres = np.linspace(0, 1, k)[:, None]
    H = np.exp(-((np.linspace(0, 1, p) - centres) ** 2) / width)
    return np.random.default_rng(0).uniform(size=(n, p)), H


@pytest.fixture
def one_by_one(monkeypatch):
    """Return the list of tables whose rows are solved by changes of one entry at a time."""
    tables, original = [], module._active_set

    def noted(B, G):
        tables.append(B)
        return original(B, G)

    monkeypatch.setattr(module, "_active_set", noted)
    return tables


@pytest.mark.parametrize(("k", "width"), [(12, 0.1), (25, 0.02)])
def test_exact_rows_are_exact_for_bands_that_overlap(k, width, one_by_one):
    """Exchanges of many entries at once go in circles here."""
    X, H = bands(k, width, 40, 300)
    W = nnls_rows(*products(X, H))
    errors = (np.linalg.norm(X - F @ H, axis=1) for F in (W, least_squares(X, H)))
    assert_allclose(*errors, rtol=1e-9)
    assert one_by_one


def exchanged(b, G):
    """Return a row of `exact_rows` by exchanges of all entries on the wrong side.

    None if their number has not become smaller in more than three rounds.
    """
    above, fewest, rounds = b > 0, len(b) + 1, 0
    while True:
        h = np.zeros(len(b))
        h[above] = np.linalg.solve(G[np.ix_(above, above)], b[above])
        slopes = b - G @ h
        wrong = [h[c] < 0 if above[c] else slopes[c] > 1e-9 for c in range(len(b))]
        if not any(wrong):
            return h
        rounds = 0 if sum(wrong) < fewest else rounds + 1
        if rounds > 3:
            return None
        fewest = min(fewest, sum(wrong))
        above = above ^ wrong


def test_exchanges_that_go_in_circles_end_after_three_rounds(one_by_one):
    X, H = bands(8, 0.05, 300, 60)
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    B, G = products(X, H)
    W, expected = nnls_rows(B, G), [exchanged(b, G) for b in B]
    circling = np.array([h is None for h in expected])
    assert 0 < circling.sum() < 100
    [rest] = one_by_one
    assert_allclose(np.sort(rest, axis=0), np.sort(B[circling], axis=0), rtol=1e-12)
    assert_allclose(W[~circling], [h for h in expected if h is not None], atol=1e-9)
    assert_minimal(X, W, H)


def test_data_without_noise_need_no_exchanges_of_single_entries(one_by_one):
    """The slopes of entries that are 0 are rounding: none may count as being on the wrong side."""
    for seed in range(20):
        X, H = problem(np.random.default_rng(seed), 100, 6, 30, noise=0)
        nnls_rows(*products(X, H))
    assert not one_by_one


def test_changes_of_one_entry_at_a_time_are_many_before_they_are_given_up(monkeypatch):
    """SciPy's own limit is 3 times the number of entries."""
    limits = set()
    monkeypatch.setattr(
        module, "nnls", lambda A, y, maxiter: limits.add(maxiter) or nnls(A, y)
    )
    nnls_rows(*products(*bands(12, 0.1, 9, 60)))
    assert limits == {1200}
