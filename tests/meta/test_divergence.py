"""The Kullback-Leibler loss and its solver, against formula, scikit-learn and conditions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from meta.cases import begin, ends, kullback_leibler
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from nmfcluster._utils import sparse_products
from nmfcluster.meta import divergence
from nmfcluster.meta.divergence import Divergence, joint_em
from nmfcluster.meta.squares import from_standardised

stored = pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"]
)
seeds = st.integers(0, 10**6)


def counts(rng, n=13, p=17, k=3, mean=2.0):
    M = rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, p))
    X = rng.poisson(mean * M / M.mean()).astype(float)
    X[0, 0] += 1
    return X


def em_by_formula(X, W, H):
    """Return W (n, k) and H (k, p) after a step, from the expected counts of every cluster."""
    Z = W[:, :, None] * H[None]  # (n, k, p)
    total = Z.sum(axis=1, keepdims=True)
    Z = np.divide(Z, total, out=np.zeros_like(Z), where=total > 0) * X[:, None]
    columns = Z.sum(axis=0)
    return Z.sum(axis=2), columns / columns.sum(axis=1, keepdims=True)


@stored
@settings(max_examples=8)
@given(seed=seeds, blas=st.booleans())
def test_expected_counts_and_loss_are_those_of_the_formulas(kind, seed, blas):
    rng = np.random.default_rng(seed)
    X, F = counts(rng), begin(rng, 2, 3, 13, 17)
    objective = Divergence(kind(X))
    W, H = objective.row_column_factors(F)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_products, "_BLAS_FROM", 0.0 if blas else 2.0)
        patch.setattr(divergence, "_BLOCK_ENTRIES", 40)
        patch.setattr(sparse_products, "_GATHERED_ENTRIES", 20)
        N, M, losses = objective.expected_counts(W, H)
    for s in range(2):
        Z = W[s].T[:, :, None] * H[s][None]
        Z = Z / Z.sum(axis=1, keepdims=True) * X[:, None]
        assert_allclose(N[s].T, Z.sum(axis=2))
        assert_allclose(M[s], Z.sum(axis=0))
        assert_allclose(losses[s], kullback_leibler(X, W[s].T @ H[s]))
        assert_allclose(objective.error(W[s].T, H[s]) ** 2 / 2, losses[s])


@stored
def test_constant_is_the_loss_of_independent_rows_and_columns(kind):
    X = counts(np.random.default_rng(0))
    X[3], X[:, 5] = 0, 0
    Y = np.outer(X.sum(axis=1), X.sum(axis=0)) / X.sum()
    expected = (
        kullback_leibler(np.where(Y > 0, X, 0), np.where(Y > 0, Y, 1)) - (Y == 0).sum()
    )
    assert_allclose(Divergence(kind(X)).constant, expected)


@pytest.mark.sampled(2)
@stored
@settings(max_examples=5)
@given(seeds)
def test_the_loss_never_rises_and_is_that_of_the_factors(kind, seed):
    rng = np.random.default_rng(seed)
    X = counts(rng, mean=rng.choice([0.2, 2.0, 200.0]))
    before = np.inf
    for step, ((W, H), losses) in enumerate(
        from_standardised(Divergence(kind(X)), begin(rng, 2, 4, 13, 17))
    ):
        assert (losses <= before * (1 + 1e-12)).all()
        before = losses
        for s in range(2):
            assert_allclose(
                losses[s], kullback_leibler(X, W[s] @ H[s]), rtol=1e-9, atol=1e-9
            )
            assert_allclose(H[s].sum(axis=1), 1)
        if step == 20:
            break


def test_an_update_that_cannot_go_further_is_two_steps_of_em():
    rng = np.random.default_rng(1)
    X = counts(rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_step_length", lambda *paths: np.ones(1))
        steps = joint_em(Divergence(X), begin(rng, 1, 3, 13, 17))
        (W, H), _ = next(steps)
        for _ in range(5):
            W_own, H_own = em_by_formula(X, *em_by_formula(X, W[0], H[0]))
            (W, H), _ = next(steps)
            assert_allclose(W[0] @ H[0], W_own @ H_own)


def test_updates_are_lower_than_two_steps_of_em():
    rng = np.random.default_rng(1)
    X, F = counts(rng), begin(rng, 1, 3, 13, 17)
    (W, H), _ = next(joint_em(Divergence(X), F))
    own = W[0], H[0]
    for _ in range(2 * 10):
        own = em_by_formula(X, *own)
    _, loss = ends(joint_em(Divergence(X), F), 10)
    assert loss[0] < kullback_leibler(X, own[0] @ own[1])


@pytest.mark.sampled(2)
@stored
def test_it_ends_where_the_conditions_of_a_minimum_hold(kind):
    rng = np.random.default_rng(2)
    X = counts(rng, 15, 20, mean=10.0)
    (W, H), _ = ends(
        from_standardised(Divergence(kind(X)), begin(rng, 1, 3, 15, 20)), 600
    )
    W, H = W[0], H[0]
    Q = X / (W @ H)
    of_rows, of_columns = 1 - Q @ H.T, W.sum(axis=0)[:, None] - W.T @ Q
    assert (
        max(abs(W * of_rows).max(), abs(H * of_columns).max())
        < 1e-4 * X.sum(axis=1).mean()
    )
    assert of_rows.min() > -1e-3


def test_it_ends_no_higher_than_many_updates_of_scikit_learn():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, F = counts(rng, 40, 60, 4, 5.0), begin(rng, 1, 4, 40, 60)
        model = NMF(
            4,
            init="custom",
            solver="mu",
            beta_loss="kullback-leibler",
            max_iter=2000,
            tol=0,
        )
        model.fit(X, W=np.ascontiguousarray(F[0, :, :40].T), H=F[0, :, 40:].copy())
        _, loss = ends(from_standardised(Divergence(X), F), 300)
        assert loss[0] <= model.reconstruction_err_**2 / 2 * 1.02, seed


def test_zeros_of_a_warm_start_are_left_again():
    """Least squares end at 0 in places where the best product is not."""
    rng = np.random.default_rng(3)
    objective = Divergence(counts(rng))
    (W, H), _ = next(from_standardised(objective, begin(rng, 1, 5, 13, 17)))
    assert W.min() > 0
    assert H.min() > 0


@pytest.mark.sampled(2)
@stored
def test_rows_and_columns_of_zeros_get_zeros_and_trouble_no_other(kind):
    rng = np.random.default_rng(4)
    X = counts(rng)
    F = begin(rng, 1, 3, 15, 19)
    wide = np.zeros((15, 19))
    wide[1:14, 1:18] = X
    (W, H), loss = ends(from_standardised(Divergence(kind(wide)), F), 100)
    assert np.isfinite(loss).all()
    assert not W[0][[0, 14]].any()
    assert not H[0][:, [0, 18]].any()
    inner = np.concatenate([F[..., 1:14], F[..., 16:33]], axis=2)
    alone = ends(from_standardised(Divergence(kind(X)), inner), 100)[1]
    assert_allclose(loss, alone, rtol=0.05)


@pytest.mark.sampled(2)
@stored
def test_single_precision_ends_as_low(kind):
    rng = np.random.default_rng(5)
    X, F = counts(rng, 40, 50), begin(rng, 1, 3, 40, 50)
    single = Divergence(kind(X)).for_runs()
    (W, H), loss = ends(from_standardised(single, F.astype(np.float32)), 100)
    assert W.dtype == H.dtype == np.float32
    assert_allclose(
        loss, ends(from_standardised(Divergence(kind(X)), F), 100)[1], rtol=1e-3
    )
    assert single.for_runs().X is single.X


def test_starts_that_leave_a_batch_change_no_other():
    rng = np.random.default_rng(6)
    X, F = counts(rng), begin(rng, 3, 3, 13, 17)
    steps = from_standardised(Divergence(X), F)
    next(steps)
    for _ in range(3):
        next(steps)
    (W, _), _ = steps.send(np.array([True, False, True]))
    alone = ends(from_standardised(Divergence(X), F[2:]), 4)[0][0]
    assert_allclose(W[1], alone[0], rtol=1e-9)


def test_near_rows_have_the_smallest_chi_square():
    rng = np.random.default_rng(7)
    X, H = counts(rng, mean=20.0), rng.dirichlet(np.ones(17), size=3)
    objective = Divergence(X)
    W = objective.approximate_rows(H)
    columns = X.mean(axis=0)
    slope = -2 * ((X - W @ H) / columns) @ H.T
    assert_allclose(W * slope, 0, atol=1e-7)
    assert slope.min() > -1e-7
    assert_array_equal(objective.approximate_rows(H), W)
