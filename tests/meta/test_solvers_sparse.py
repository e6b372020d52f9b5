"""Penalised NMF: each row against its closed form and SciPy, and what the penalties do to zeros."""

from itertools import islice, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from nmfcluster._engine.run import iterate
from nmfcluster.meta.solvers import (
    PENALTIES,
    MatrixObjective,
    _descend_on_sphere,
    _descend_penalised,
    _least_sum,
    hals,
    sparse_hals,
)

law = settings(max_examples=60, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)
SWEEPS = 3  # of coordinate descent in an update


def noisy_biclusters(rng, n=21, p=35, k=4, noise=0.75):
    """Draw a table of overlapping biclusters with noise, as in section 4.1 of Badea (2005)."""
    W, H = (abs(rng.normal(size=s)) * (rng.uniform(size=s) < 0.5) for s in ((n, k), (k, p)))
    X = W @ H
    return np.maximum(X + noise * X.std(axis=0) * rng.normal(size=X.shape), 0)


def unit_columns(rng, n, k):
    W = rng.uniform(size=(n, k)) * (rng.uniform(size=(n, k)) < 0.7) + np.eye(n, k)
    return W / np.linalg.norm(W, axis=0)


def converged(steps, n_updates=3000):
    return iterate(steps, max_iter=n_updates, tol=1e-13, scale=1)


# --- the smallest piece ------------------------------------------------------------------------


def least_sum_by_supports(b, curvature, weight):
    """Try every set of entries that could be above 0."""
    best = (0.0, np.zeros(len(b)))
    for support in product([False, True], repeat=len(b)):
        on = np.array(support)
        if on.any():
            s = np.zeros(len(b))
            system = curvature * np.eye(on.sum()) + weight * np.ones((on.sum(), on.sum()))
            s[on] = np.linalg.solve(system, b[on])
            if s.min() >= 0:
                value = curvature * s @ s / 2 + weight * s.sum() ** 2 / 2 - b @ s
                best = min(best, (value, s), key=lambda pair: pair[0])
    return best[1]


@law
@given(seeds, st.integers(1, 7), st.sampled_from([0, 0.1, 1, 100]), st.floats(0.1, 10))
def test_least_sum_is_the_best_of_all_supports(seed, m, weight, curvature):
    b = np.random.default_rng(seed).normal(size=m)
    found = _least_sum(b, curvature, weight)
    assert_allclose(found, least_sum_by_supports(b, curvature, weight), atol=1e-12)


@law
@given(seeds, st.integers(1, 400), st.sampled_from([0, 1e-3, 0.1, 10]))
def test_least_sum_takes_off_a_share_of_its_own_sum(seed, m, weight):
    b = np.random.default_rng(seed).normal(size=m).round(1)  # with ties
    kept = b.copy()
    s = _least_sum(b, 2.0, weight)
    assert_array_equal(b, kept)
    assert_allclose(s, np.maximum(b - weight * s.sum(), 0) / 2, atol=1e-12)
    assert_array_equal(_least_sum(b * 2.0**20, 2.0, weight), s * 2.0**20)


def test_least_sum_of_what_is_not_above_0_is_0():
    assert_array_equal(_least_sum(np.array([-1.0, 0.0, -3.0]), 1.0, 0.5), 0)
    small = _least_sum(np.array([1.0, 2.0], dtype=np.float32), 2.0, 1.0)
    assert small.dtype == np.float32
    assert_allclose(small, [1 / 8, 5 / 8])  # t = 3 / 4


# --- rows of H ---------------------------------------------------------------------------------


def row_by_nnls(X, W, H, c, sparsity, penalty):
    """Return the best row c with all others fixed, as one stacked least squares problem.

    What a penalty adds are more equations; a linear one shifts what the row has to explain.
    """
    w, p = W[:, c], H.shape[1]
    rest = X - W @ H + np.outer(w, H[c])
    if penalty == "l1":
        rest = rest - sparsity * np.outer(w, np.ones(p))  # w'w = 1
    design, target = [np.kron(w[:, None], np.eye(p))], [rest.ravel()]
    if penalty == "l2":
        design.append(np.sqrt(2 * sparsity) * np.eye(p))
        target.append(np.zeros(p))
    elif penalty == "l1_columns":
        design.append(np.sqrt(2 * sparsity) * np.eye(p))
        target.append(-np.sqrt(2 * sparsity) * (H.sum(axis=0) - H[c]))
    elif penalty == "l1_rows":
        design.append(np.sqrt(2 * sparsity / p) * np.ones((1, p)))
        target.append(np.zeros(1))
    return nnls(np.concatenate(design), np.concatenate(target))[0]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sparsity", [0, 0.05, 1.0])
def test_every_row_is_the_minimum_with_all_others_fixed(penalty, sparsity):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, W, H = rng.uniform(size=(6, 9)), unit_columns(rng, 6, 3), rng.uniform(size=(3, 9))
        expected = H.copy()
        for _, c in product(range(SWEEPS), range(3)):
            expected[c] = row_by_nnls(X, W, expected, c, sparsity, penalty)
        _descend_penalised(H, W.T @ X, W.T @ W, MatrixObjective(X, sparsity, penalty))
        assert_allclose(H, expected, atol=1e-10)
        assert sparsity == 0 or (H == 0).any() or penalty == "l2"


def test_row_of_the_squared_norm_is_the_closed_form():
    """s_c = [w_c'R_c]_+ / (1 + 2 lambda), of Badea's eq. 12; lambda in place of 2 is an erratum."""
    rng = np.random.default_rng(0)
    X, w, H = rng.normal(size=(6, 9)), unit_columns(rng, 6, 1), rng.uniform(size=(1, 9))
    _descend_penalised(H, w.T @ X, w.T @ w, MatrixObjective(X, 0.3, "l2"))
    assert_allclose(H, np.maximum(w.T @ X, 0) / 1.6, rtol=1e-12)


# --- columns of W ------------------------------------------------------------------------------


def test_every_column_is_the_best_on_the_sphere():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, H = rng.uniform(-0.5, 1, size=(5, 9)), rng.uniform(size=(3, 9))
        W = unit_columns(rng, 5, 3).T.copy()
        expected = W.copy()
        for _, c in product(range(SWEEPS), range(3)):
            rest = X - sum(np.outer(expected[d], H[d]) for d in range(3) if d != c)
            towards = np.maximum(rest @ H[c], 0)
            assert towards.any()
            expected[c] = towards / np.linalg.norm(towards)
        _descend_on_sphere(W, H @ X.T, H @ H.T)
        assert_allclose(W, expected, atol=1e-12)
        others = abs(rng.normal(size=(500, 5)))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        rest = X - W[:2].T @ H[:2]
        assert (others @ rest @ H[2]).max() <= W[2] @ rest @ H[2]


def test_a_column_that_can_only_lose_is_where_it_loses_least():
    N = np.array([[-3.0, -1.0, -2.0], [1.0, 0.0, 0.0]])
    W = np.full((2, 3), 3**-0.5)
    _descend_on_sphere(W, N, np.array([[4.0, 0.0], [0.0, 0.0]]))
    assert_array_equal(W[0], [0, 1, 0])
    assert_array_equal(W[1], 3**-0.5)  # without columns: any is as good


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_columns_are_found_where_squares_are_no_numbers(scale):
    rng = np.random.default_rng(6)
    X, H, W = rng.uniform(size=(5, 9)), rng.uniform(size=(3, 9)), unit_columns(rng, 5, 3).T
    expected, found = W.copy(), W.copy()
    _descend_on_sphere(expected, H @ X.T, H @ H.T)
    _descend_on_sphere(found, scale * H @ X.T, scale * H @ H.T)
    assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_columns_have_length_1_and_the_start_keeps_its_product(penalty, dtype):
    rng = np.random.default_rng(1)
    X, F = noisy_biclusters(rng).astype(dtype), rng.uniform(size=(3, 4, 56)).astype(dtype)
    F[0, 1, :21] = 0
    steps = sparse_hals(MatrixObjective(X, 0.1, penalty), F)
    room = 1e-12 if dtype is np.float64 else 1e-5
    for update, ((W, H), _) in enumerate(islice(steps, 20)):
        assert_allclose(np.linalg.norm(W, axis=1), 1, rtol=room)
        assert W.dtype == H.dtype == dtype
        if update == 0:
            assert_allclose(W @ H, F[..., :21].mT @ F[..., 21:], rtol=100 * room, atol=room)
            assert_allclose(W[0][:, 1], 21**-0.5)


# --- whole runs --------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
def test_without_weight_it_ends_where_hals_does(penalty):
    rng = np.random.default_rng(2)
    X, F = noisy_biclusters(rng, noise=0.1), rng.uniform(0.1, 1, size=(3, 4, 56))
    plain = min(found.loss for found in converged(hals(MatrixObjective(X), F)))
    steps = sparse_hals(MatrixObjective(X, 0, penalty), F)
    assert_allclose(min(found.loss for found in converged(steps)), plain, rtol=1e-4)


def share_of_zeros(X, sparsity, penalty, F):
    [found] = converged(sparse_hals(MatrixObjective(X, sparsity, penalty), F), 200)
    return np.mean(found.factors[1] == 0)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_penalties_make_zeros_but_the_squared_norm_does_not(penalty):
    """Badea (2005) says that eq. 12 leads to sparser factors; it leads to smaller ones."""
    weights = {"l1": [0, 0.5, 2, 5]}.get(penalty, [0, 0.02, 0.1, 0.75])
    shares = np.zeros((5, len(weights)))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, F = noisy_biclusters(rng), rng.uniform(0.1, 1, size=(1, 4, 56))
        shares[seed] = [share_of_zeros(X, weight, penalty, F) for weight in weights]
    means = shares.mean(axis=0)
    if penalty == "l2":
        assert means[-1] < means[0]
    else:
        assert (np.diff(means) > 0).all()
        assert means[-1] > means[0] + 0.2


def test_a_weight_that_leaves_nothing_leaves_zeros():
    rng = np.random.default_rng(3)
    X, F = noisy_biclusters(rng), rng.uniform(size=(1, 4, 56))
    for (W, H), loss in islice(sparse_hals(MatrixObjective(X, 1e4, "l1"), F), 1, 5):
        assert_array_equal(H, 0)
        assert_allclose(np.linalg.norm(W, axis=1), 1)
        assert_allclose(loss, (X**2).sum() / 2)
    for (_, H), loss in islice(sparse_hals(MatrixObjective(X, 1e4, "l2"), F), 1, 5):
        assert 0 < H.max() < 1e-2
        assert loss < (X**2).sum() / 2


def printed(X, A, S, sparsity, weight, n_updates, projected):
    """Run the box of section 4 of Badea (2005), and return the values of eq. 12 and the last A.

    `weight` is what stands before S in the denominator; mu, which is not given there, is the
    largest step that cannot raise the fit.
    """
    values = []
    A = A / np.linalg.norm(A, axis=0)
    for _ in range(n_updates):
        S = S * (A.T @ X) / (A.T @ A @ S + weight * S)
        A = A + (X - A @ S) @ S.T / np.linalg.norm(S @ S.T, 2)
        A = np.maximum(A, 0) if projected else A
        A = A / np.linalg.norm(A, axis=0)
        values.append(((X - A @ S) ** 2).sum() / 2 + sparsity * (S**2).sum())
    return np.array(values), A


def test_the_rule_as_published_raises_its_objective_and_leaves_the_nonnegative():
    """The derivative of lambda ||S||^2 is 2 lambda S, and A needs a projection."""
    rises, negative, weight = {"lambda": 0, "2 lambda": 0}, 0, 0.5
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, F = noisy_biclusters(rng) + 0.01, rng.uniform(0.1, 1, size=(1, 4, 56))
        A, S = F[0, :, :21].T, F[0, :, 21:]
        _, A_end = printed(X, A, S, weight, weight, 10, projected=False)
        negative += A_end.min() < -0.01
        for name, factor in [("lambda", 1), ("2 lambda", 2)]:
            values, _ = printed(X, A, S, weight, factor * weight, 300, projected=True)
            rises[name] += (np.diff(values) > 1e-6 * values[0]).any()
    assert negative > 0
    assert rises["lambda"] > 0
    assert rises["2 lambda"] == 0
