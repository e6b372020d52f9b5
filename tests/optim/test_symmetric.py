"""The objective against its formula in dense arrays, and what the solvers promise."""

from itertools import islice, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import (
    QUARTIC_BOUND,
    bregman_nmf,
    multiplicative_gsg,
    multiplicative_trinmf,
)
from numpy.testing import assert_allclose, assert_array_equal
from optim.cases import (
    KINDS,
    dense_pieces,
    kinds,
    of,
    seeds,
    signed,
    solved,
)
from similarity.cases import coassociation

from nmfcluster.partitions.ensemble import Ensemble, EnsembleProblem
from nmfcluster.similarity import Explicit

SOLVERS = [
    bregman_nmf,
    multiplicative_gsg,
    multiplicative_trinmf,
]


# --- the objective -----------------------------------------------------------------------------


@given(seeds, st.integers(1, 9), st.integers(1, 4))
def test_loss_is_the_squared_distance_and_its_slope_the_gradient(seed, n, k):
    rng = np.random.default_rng(seed)
    A, H = signed(rng, n), rng.uniform(size=(2, n, k))
    loss, _, P, C = of(Explicit(A)).evaluate(H)
    for s, h in enumerate(H):
        assert_allclose(loss[s], ((A - h @ h.T) ** 2).sum(), rtol=1e-10, atol=1e-10)
        assert_allclose(P[s], A @ h, rtol=1e-10, atol=1e-10)
        assert_allclose(C[s], h @ h.T @ h, rtol=1e-10)


@given(seeds, st.integers(1, 6), st.integers(1, 3))
def test_quartic_bound_bounds_the_second_derivative(seed, n, k):
    rng = np.random.default_rng(seed)
    H, D = rng.uniform(size=(n, k)), rng.normal(size=(n, k))

    def second(D):
        U, V = H @ H.T, H @ D.T + D @ H.T  # of sum U^2 / 4, U = HH'
        return (V**2).sum() / 2 + (U * (D @ D.T)).sum()

    assert second(D) <= QUARTIC_BOUND * (H**2).sum() * (D**2).sum() * (1 + 1e-12)
    H = H[:1]  # of one row the bound is attained
    assert_allclose(second(H), QUARTIC_BOUND * (H**2).sum() ** 2)


def test_starts_are_scaled_for_the_smallest_loss():
    for size, kind in product([1e-3, 1, 1e4], ["constrained", "coassociation"]):
        rng = np.random.default_rng(5)
        objective, H = kinds(rng, 8)[kind], rng.uniform(size=(3, 8, 2))
        (scaled,), loss = next(bregman_nmf(objective, size * H))
        for s in range(3):
            ratio = scaled[s] / H[s]
            assert_allclose(ratio, ratio[0, 0])
            for factor in (0.99, 1.01):
                assert objective.evaluate(factor * scaled)[0][s] >= loss[s]
        assert_allclose(loss, objective.evaluate(scaled)[0], rtol=1e-10)


def test_starts_that_no_factor_makes_better_are_left_alone():
    H = np.stack([np.ones((2, 1)), np.zeros((2, 1))])
    (found,), loss = next(bregman_nmf(of(Explicit(-np.eye(2))), H))
    assert_array_equal(found, H)
    assert_allclose(loss, [10, 2])


# --- what all of them promise ------------------------------------------------------------------


@given(
    seeds,
    st.integers(3, 12),
    st.integers(1, 4),
    st.sampled_from(KINDS),
    st.integers(-4, 4),
)
def test_loss_never_rises(seed, n, k, kind, magnitude):
    rng = np.random.default_rng(seed)
    objective = kinds(rng, n)[kind]
    H = rng.uniform(size=(3, n, k)) * 10.0 ** rng.uniform(-3, 0, size=(3, n, k))
    H[2, 0] *= 1e3  # with one row out of proportion
    H[1] *= rng.uniform(size=(n, k)) < 0.6  # with zeros
    H[1, 0] = 0
    losses = [
        loss for _, loss in islice(bregman_nmf(objective, H * 10.0**magnitude), 40)
    ]
    assert np.diff(losses, axis=0).max() <= 1e-13 * objective.constant
    assert losses[0].dtype == np.float64


@settings(max_examples=16)
@given(seeds, st.sampled_from(["dense", "sparse", "coassociation"]))
def test_loss_never_rises_in_float32_by_more_than_its_resolution(seed, kind):
    rng = np.random.default_rng(seed)
    n = 15
    A = (signed(rng, n) * (abs(signed(rng, n)) > 1)).astype(np.float32)
    objective = {
        "dense": of(Explicit(A)),
        "sparse": of(Explicit(sp.csr_array(A))),
        "coassociation": of(
            coassociation(rng.integers(0, 3, size=(n, 4)), dtype=np.float32)
        ),
    }[kind]
    H = rng.uniform(size=(2, n, 3)).astype(np.float32)
    path = list(islice(bregman_nmf(objective, H), 60))
    losses = np.array([loss for _, loss in path])
    assert all(factors[0].dtype == np.float32 for factors, _ in path)
    assert losses.dtype == np.float64
    eps = np.finfo(np.float32).eps
    assert np.diff(losses, axis=0).max() <= 16 * eps * objective.constant
    last = path[-1][0][0][0].astype(float)
    exact = 4 * dense_pieces(objective, last)[0]
    assert_allclose(losses[-1][0], exact, atol=32 * eps * objective.constant)


def test_trifactorization_keeps_float32():
    A = coassociation(np.array([[0, 0], [0, 1], [1, 1]]), dtype=np.float32)
    start = np.random.default_rng(0).uniform(size=(1, 3, 2)).astype(np.float32)
    for factors, loss in islice(multiplicative_trinmf(of(A), start), 5):
        assert {factor.dtype for factor in factors} == {np.dtype(np.float32)}
        assert loss.dtype == np.float64


@pytest.mark.parametrize("solver", SOLVERS)
def test_factors_stay_nonnegative_and_starts_are_not_written_to(solver):
    rng = np.random.default_rng(6)
    H = rng.uniform(size=(3, 9, 2))
    before = H.copy()
    H.flags.writeable = False
    A = Explicit(abs(signed(rng, 9)))
    seen = [(factors, [factor.copy() for factor in factors]) for factors, _ in
            islice(solver(of(A), H), 8)]  # fmt: skip
    for factors, copies in seen:
        for factor, copy in zip(factors, copies, strict=True):
            assert factor.min() >= 0
            assert_array_equal(factor, copy)  # what was yielded is not changed later
    assert_array_equal(H, before)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["nonnegative", "coassociation", "signed"])
def test_a_start_is_the_same_alone_and_in_a_batch_that_others_leave(kind):
    for solver in SOLVERS[: 2 if kind == "signed" else None]:
        assert_the_same_alone_and_in_a_batch(solver, kind)


def assert_the_same_alone_and_in_a_batch(solver, kind):
    rng = np.random.default_rng(7)
    objective, H = kinds(rng, 9)[kind], rng.uniform(0.1, 1, size=(4, 9, 3))
    steps = solver(objective, H)
    running, path = np.arange(4), {s: [] for s in range(4)}
    factors, losses = next(steps)
    for iteration in range(12):
        for row, s in enumerate(running):
            path[s].append((losses[row], [factor[row] for factor in factors]))
        leaving = {3: 1, 6: 0, 8: 3}.get(iteration)
        keep = None if leaving is None else running != leaving
        running = running if keep is None else running[keep]
        factors, losses = steps.send(keep)
    for s in range(4):
        alone = solver(objective, H[s : s + 1])
        for loss, kept in path[s]:
            single, loss_single = next(alone)
            assert_allclose(loss, loss_single[0], rtol=1e-9)
            for one, other in zip(kept, single, strict=True):
                assert_allclose(one, other[0], rtol=1e-7, atol=1e-9)
    assert [len(path[s]) for s in range(4)] == [7, 4, 12, 9]


def kkt_residual(A, H):
    g = H @ (H.T @ H) - A @ H
    L = 3 * np.linalg.norm(H.T @ H, 2) + np.linalg.norm(A, 2)
    return np.linalg.norm(H - np.maximum(H - g / L, 0)) / np.linalg.norm(H)


def converged(objective, H, max_iter=20_000):
    steps = bregman_nmf(objective, H)
    return solved(steps, max_iter=max_iter, tol=1e-14, scale=objective.constant)


@pytest.mark.slow
def test_what_it_converges_to_is_stationary():
    for kind in KINDS:
        for seed in range(2):
            rng = np.random.default_rng(seed)
            objective = kinds(rng, 14)[kind]
            for solution in converged(objective, rng.uniform(size=(2, 14, 3))):
                assert solution.converged
                assert kkt_residual(objective.A.toarray(), solution.factors[0]) < 1e-5


def test_it_does_not_get_stuck_where_a_step_would_lead_to_zero():
    for dtype in [np.float32, np.float64]:
        A = np.array([[-2.0, 0.5], [0.5, -2.0]], dtype=dtype)
        solution = converged(
            of(Explicit(A)), np.full((1, 2, 1), 0.1, dtype), max_iter=300
        )[0]
        # that of H = 0, the best there is
        assert_allclose(solution.loss, (A**2).sum(), rtol=1e-5)


@pytest.mark.slow
def test_planted_factors_are_recovered():
    rng = np.random.default_rng(9)
    planted = rng.uniform(0.5, 1, size=(30, 3)) * np.eye(3)[np.arange(30) % 3]
    A = Explicit(planted @ planted.T)
    start = 0.9 * planted + 0.1 * rng.uniform(size=planted.shape)
    H = solved(bregman_nmf(of(A), start[None]), max_iter=1500, tol=-1, scale=1)[
        0
    ].factors[0]
    assert_allclose(H, planted, atol=2e-3)


def test_a_collapsed_problem_takes_the_same_path():
    """H = Eh at the start, and ever after."""
    rng = np.random.default_rng(10)
    for missing in (False, True):
        codes = rng.integers(-1 if missing else 0, 3, size=(8, 4))
        weights = rng.dirichlet(np.ones(4))
        codes[:, 0] = abs(codes[:, 0])  # no sample is in no partition
        groups = np.concatenate([np.arange(8), rng.integers(0, 8, size=9)])
        counts = np.bincount(groups)
        h = rng.uniform(size=(8, 2))
        small = Ensemble(codes, counts, weights, np.full(4, 3))
        large = Ensemble(codes[groups], np.ones(17, dtype=int), weights, np.full(4, 3))

        # where pairs count none may be missing
        def path(ensemble, H, normalize=missing):
            objective = EnsembleProblem(ensemble, np.dtype(float), normalize).objective
            return islice(bregman_nmf(objective, H[None]), 30)

        roots = np.sqrt(counts)[:, None]
        paths = zip(path(small, h * roots), path(large, h[groups]), strict=True)
        for ((few,), loss), ((all_,), loss_of_all) in paths:
            assert_allclose((few[0] / roots)[groups], all_[0], rtol=1e-7, atol=1e-9)
            assert_allclose(loss, loss_of_all, rtol=1e-9)
