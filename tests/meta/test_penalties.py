"""Penalties: each row against its closed form and SciPy, each column against the sphere."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from nmfcluster.meta.squares import PENALTIES, descend_on_sphere, descend_penalised

SWEEPS = 3


def unit_columns(rng, n, k):
    W = rng.uniform(size=(n, k)) * (rng.uniform(size=(n, k)) < 0.7) + np.eye(n, k)
    return W / np.linalg.norm(W, axis=0)


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
    return nnls(np.concatenate(design), np.concatenate(target))[0]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_row_is_the_minimum_with_all_others_fixed(penalty):
    for seed, sparsity in enumerate([0, 0.05, 0.05, 1.0, 1.0]):
        rng = np.random.default_rng(seed)
        X, W, H = (
            rng.uniform(size=(6, 9)),
            unit_columns(rng, 6, 3),
            rng.uniform(size=(3, 9)),
        )
        expected = H.copy()
        for _, c in product(range(SWEEPS), range(3)):
            expected[c] = row_by_nnls(X, W, expected, c, sparsity, penalty)
        descend_penalised(
            H[None], (W.T @ X)[None], (W.T @ W)[None], sparsity, penalty, SWEEPS
        )
        assert_allclose(H, expected, atol=1e-10)
        assert sparsity == 0 or (H == 0).any() or penalty == "l2"


def test_row_of_the_squared_norm_is_the_closed_form():
    """s_c = [w_c'R_c]_+ / (1 + 2 lambda), of Badea's eq. 12; lambda in place of 2 is an erratum."""
    rng = np.random.default_rng(0)
    X, w, H = rng.normal(size=(6, 9)), unit_columns(rng, 6, 1), rng.uniform(size=(1, 9))
    descend_penalised(H[None], (w.T @ X)[None], (w.T @ w)[None], 0.3, "l2", SWEEPS)
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
        descend_on_sphere(W, H @ X.T, H @ H.T, SWEEPS)
        assert_allclose(W, expected, atol=1e-12)
        others = abs(rng.normal(size=(500, 5)))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        rest = X - W[:2].T @ H[:2]
        assert (others @ rest @ H[2]).max() <= W[2] @ rest @ H[2]


def test_a_column_that_can_only_lose_is_where_it_loses_least():
    N = np.array([[-3.0, -1.0, -2.0], [1.0, 0.0, 0.0]])
    W = np.full((2, 3), 3**-0.5)
    descend_on_sphere(W, N, np.array([[4.0, 0.0], [0.0, 0.0]]), SWEEPS)
    assert_array_equal(W[0], [0, 1, 0])
    assert_array_equal(W[1], 3**-0.5)  # without columns: any is as good


def test_columns_are_found_where_squares_are_no_numbers():
    rng = np.random.default_rng(6)
    X, H, W = (
        rng.uniform(size=(5, 9)),
        rng.uniform(size=(3, 9)),
        unit_columns(rng, 5, 3).T,
    )
    expected = W.copy()
    descend_on_sphere(expected, H @ X.T, H @ H.T, SWEEPS)
    for scale in (2.0**-600, 2.0**600):
        scaled = W.copy()
        descend_on_sphere(scaled, scale * H @ X.T, scale * H @ H.T, SWEEPS)
        assert_array_equal(scaled, expected)
