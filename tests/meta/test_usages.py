"""Rows for fixed components by Kullback-Leibler loss: conditions of a minimum, brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from nmfcluster.meta import divergence
from nmfcluster.meta.divergence import poisson_rows

stored = pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"]
)
seeds = st.integers(0, 10**6)


def problem(rng, n=8, p=15, k=4, mean=3.0):
    H = rng.gamma(0.5, size=(k, p)) * (rng.uniform(size=(k, p)) < 0.7)
    H[0] += 1e-3
    M = rng.gamma(0.3, size=(n, k)) @ H
    return rng.poisson(mean * M / M.mean()).astype(float), H


def residual(X, W, H):
    """Return by how much the conditions of a minimum are missed, as shares of a row's counts."""
    W, H = W[:, H.any(axis=1)], H[H.any(axis=1)]
    Y = W @ H
    Q = np.divide(X, Y, out=np.zeros_like(Y), where=Y > 0)
    sums, totals = H.sum(axis=1), np.maximum(X.sum(axis=1, keepdims=True), 1)
    slope = 1 - Q @ (H / sums[:, None]).T
    missed = np.minimum(W * sums / totals, slope)
    return np.abs(missed[X.any(axis=1)]).max(initial=0)


@stored
@settings(max_examples=10)
@given(
    seed=seeds,
    mean=st.sampled_from([0.1, 1.0, 1e3, 1e5]),
    k=st.integers(1, 9),
    p=st.integers(3, 30),
)
@example(1738, 1e3, 3, 15)  # an entry that is small, and cannot be 0
@example(73744, 1.0, 7, 15)  # fewer counts than components
def test_the_conditions_of_a_minimum_hold(kind, seed, mean, k, p):
    X, H = problem(np.random.default_rng(seed), k=k, mean=mean, p=p)
    W = poisson_rows(kind(X), H)
    assert W.min() >= 0
    assert residual(X, W, H) < 1e-8


def test_no_other_rows_have_a_smaller_loss():
    rng = np.random.default_rng(0)
    X, H = problem(rng, n=5, k=3)

    def loss(w, x):
        y = np.maximum(w, 0) @ H
        return y.sum() - x[x > 0] @ np.log(y[x > 0])

    for x, w in zip(X, poisson_rows(X, H), strict=True):
        for start in rng.uniform(0.1, 1, size=(5, 3)):
            bounds = [(1e-12, None)] * 3
            found = minimize(loss, start, args=(x,), bounds=bounds, method="L-BFGS-B")
            assert loss(w, x) <= found.fun + 1e-7


@stored
def test_a_row_does_not_depend_on_those_beside_it(kind):
    X, H = problem(np.random.default_rng(1), n=30)
    whole = poisson_rows(kind(X), H)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_ROW_ENTRIES", 60)
        assert_allclose(poisson_rows(kind(X), H), whole, rtol=1e-6, atol=1e-9)
    assert_allclose(poisson_rows(kind(X[7:8]), H)[0], whole[7], rtol=1e-6, atol=1e-9)


def test_columns_that_a_block_does_not_use_are_left_out():
    X, H = problem(np.random.default_rng(1), n=30)
    X[:15, ::2] = X[15:, 1::2] = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_ROW_ENTRIES", 15 * 4**2)  # half of the rows
        widths, solve = [], divergence.solve_poisson_rows
        patch.setattr(
            divergence,
            "solve_poisson_rows",
            lambda rows, start: widths.append(rows.X.shape[1]) or solve(rows, start),
        )
        assert_allclose(
            poisson_rows(sp.csr_array(X), H), poisson_rows(X, H), rtol=1e-6, atol=1e-9
        )
    assert max(widths[:2]) <= 8


@stored
def test_what_no_component_has_says_nothing_and_what_no_row_has_is_0(kind):
    X, H = problem(np.random.default_rng(2))
    H[:, 3] = 0
    X[:, 3], X[5] = 4, 0
    H = np.vstack([H, np.zeros(15)])
    W = poisson_rows(kind(X), H)
    assert not W[5].any()
    assert not W[:, 4].any()
    X[:, 3] = 0
    assert_allclose(poisson_rows(kind(X), H), W, rtol=1e-7, atol=1e-10)
    assert not poisson_rows(kind(X), np.zeros((2, 15))).any()


def test_equal_components_share_what_one_has():
    X, H = problem(np.random.default_rng(3), k=3)
    W, twice = poisson_rows(X, H), poisson_rows(X, np.vstack([H, 2 * H[1]]))
    assert_allclose(twice[:, 1] + 2 * twice[:, 3], W[:, 1], rtol=1e-5, atol=1e-7)
    assert_allclose(twice[:, [0, 2]], W[:, [0, 2]], rtol=1e-5, atol=1e-7)


def test_scales_of_rows_and_components_do_not_matter():
    X, H = problem(np.random.default_rng(4))
    rows, components = np.logspace(-6, 6, 8), np.logspace(-3, 3, 4)
    W = poisson_rows(X * rows[:, None], H * components[:, None])
    assert_allclose(
        W / rows[:, None] * components, poisson_rows(X, H), rtol=1e-6, atol=1e-9
    )


def test_single_precision_is_solved_in_double():
    X, H = problem(np.random.default_rng(5))
    H = H.astype(np.float32)
    assert_array_equal(
        poisson_rows(X.astype(np.float32), H), poisson_rows(X, H.astype(np.float64))
    )


def test_sparse_rows_without_any_count_are_0():
    X, H = sp.csr_array((3, 4)), np.ones((2, 4))
    np.testing.assert_array_equal(poisson_rows(X, H), np.zeros((3, 2)))
