"""Every update against its formula in dense arrays, and what the solvers promise."""

from functools import partial
from itertools import islice, pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._engine.multiplicative import (
    multiplicative_gsg,
    multiplicative_nmf,
    multiplicative_trinmf,
)
from nmfcluster._engine.run import iterate
from nmfcluster._engine.stopping import StopRule
from nmfcluster._engine.symmetric import SymmetricObjective, bregman_nmf
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.problem import EnsembleProblem, SeenPairsObjective
from nmfcluster.similarity import Explicit, Factored, coassociation, inner

full_gsg = partial(multiplicative_gsg, full=True)
printed_gsg = partial(multiplicative_gsg, printed=True)
SOLVERS = [
    bregman_nmf,
    multiplicative_nmf,
    multiplicative_gsg,
    full_gsg,
    printed_gsg,
    multiplicative_trinmf,
]
seeds = st.integers(0, 10**6)


def solved(steps, max_iter, tol, scale):
    return iterate(lambda: steps, StopRule(max_iter, tol), scale)


def of(A):
    return SymmetricObjective(A, inner(A, A))


def signed(rng, n):
    A = rng.normal(size=(n, n))
    return A + A.T


def incomplete_table(rng, n, T):
    """Draw labels of which some are missing; all rows are taken as distinct, with counts."""
    codes = rng.integers(0, 3, size=(n, T))
    codes[rng.uniform(size=(n, T)) < 0.4] = -1
    codes[np.arange(n), rng.integers(T, size=n)] = 0
    codes[0], codes[1] = 0, -1  # every partition has a sample; one sample is in none
    weights = rng.uniform(0.2, 1, size=T)
    return codes, weights / weights.sum()


def objective_of_table(codes, weights):
    seen = sp.csr_array((codes >= 0).astype(float))
    sizes = [(codes[:, t] == c).sum() for t in range(codes.shape[1]) for c in range(3)]
    constant = float((np.repeat(weights, 3) * np.square(sizes)).sum())
    return SeenPairsObjective(coassociation(codes, weights), constant, seen, weights)


def kinds(rng, n):
    """Return objectives of all kinds with A, for missing labels with A's nonnegative part."""
    X = rng.normal(size=(n, 3))
    codes, weights = incomplete_table(rng, n, 4)
    return {
        "signed": of(Explicit(signed(rng, n))),
        "signed sparse": of(Explicit(sp.csr_array(signed(rng, n) * (signed(rng, n) > 1)))),
        "semidefinite": of(Factored(X)),
        "nonnegative": of(Explicit(abs(X @ X.T))),
        "constrained": of(Factored(abs(X)) - 2 * Explicit(sp.csr_array(np.eye(n, k=0)))),
        "coassociation": of(coassociation(rng.integers(0, 3, size=(n, 5)))),
        "missing": objective_of_table(codes, weights),
    }


def loss_of_seen_pairs(codes, weights, H):
    """Sum w_t (M^t_ij - h_i h_j)^2 over the pairs that partition t saw."""
    total = 0.0
    for t, w in enumerate(weights):
        for i in range(len(H)):
            for j in range(len(H)):
                if codes[i, t] >= 0 and codes[j, t] >= 0:
                    total += w * ((codes[i, t] == codes[j, t]) - H[i] @ H[j]) ** 2
    return total


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


@given(seeds, st.integers(2, 7), st.integers(1, 3), st.integers(1, 4))
def test_missing_labels_leave_the_pairs_that_were_seen(seed, n, k, T):
    rng = np.random.default_rng(seed)
    codes, weights = incomplete_table(rng, n, T)
    objective, H = objective_of_table(codes, weights), rng.uniform(size=(2, n, k))
    loss, _, P, C = objective.evaluate(H)
    assert_allclose(objective.constant, loss_of_seen_pairs(codes, weights, 0 * H[0]))
    for s, h in enumerate(H):
        assert_allclose(loss[s], loss_of_seen_pairs(codes, weights, h), rtol=1e-10, atol=1e-10)
        N = ((codes >= 0) * weights) @ (codes >= 0).T
        assert_allclose(C[s], (N * (h @ h.T)) @ h, rtol=1e-10, atol=1e-10)
        D, step = rng.normal(size=h.shape), 1e-6
        rise = loss_of_seen_pairs(codes, weights, h + step * D)
        rise -= loss_of_seen_pairs(codes, weights, h - step * D)
        assert_allclose(4 * ((C[s] - P[s]) * D).sum(), rise / (2 * step), rtol=1e-6, atol=1e-6)


def test_missing_labels_of_more_rows_than_are_formed_at_once():
    rng = np.random.default_rng(0)
    codes, weights = incomplete_table(rng, 600, 3)
    H = rng.uniform(size=(1, 600, 70))  # 70^2 products a row, in blocks of 2^21
    seen = codes >= 0
    N = (seen * weights) @ seen.T
    expected = (N * (H[0] @ H[0].T)) @ H[0]
    assert_allclose(objective_of_table(codes, weights).quartic(H)[0], expected, rtol=1e-10)


@given(seeds, st.integers(1, 6), st.integers(1, 3))
def test_quartic_bound_bounds_the_second_derivative(seed, n, k):
    rng = np.random.default_rng(seed)
    codes, weights = incomplete_table(rng, max(n, 2), 3)
    H, D = rng.uniform(size=(len(codes), k)), rng.normal(size=(len(codes), k))
    for objective, N in [
        (of(Explicit(np.eye(len(H)))), np.ones((len(H), len(H)))),
        (objective_of_table(codes, weights), ((codes >= 0) * weights) @ (codes >= 0).T),
    ]:
        U, V = H @ H.T, H @ D.T + D @ H.T  # of sum N U^2 / 4, U = HH'
        second = (N * V**2).sum() / 2 + (N * U * (D @ D.T)).sum()
        bound = objective.quartic_bound * (H**2).sum() * (D**2).sum()
        assert second <= bound * (1 + 1e-12)


def test_quartic_bound_is_attained():
    one = np.ones((1, 1))
    assert of(Explicit(one)).quartic_bound == 3  # f = x^4 / 4, f'' = 3 x^2
    seen = SeenPairsObjective(Explicit(one), 1.0, sp.csr_array(one), np.array([0.25]))
    assert seen.quartic_bound == 0.75


@pytest.mark.parametrize("solver", [bregman_nmf, multiplicative_nmf])
@pytest.mark.parametrize("size", [1e-3, 1, 1e4])
@pytest.mark.parametrize("kind", ["constrained", "coassociation", "missing"])
def test_starts_are_scaled_for_the_smallest_loss(solver, size, kind):
    rng = np.random.default_rng(5)
    objective, H = kinds(rng, 8)[kind], rng.uniform(size=(3, 8, 2))
    (scaled,), loss = next(solver(objective, size * H))
    for s in range(3):
        ratio = scaled[s] / H[s]
        assert_allclose(ratio, ratio[0, 0])
        for factor in (0.99, 1.01):
            assert objective.evaluate(factor * scaled)[0][s] >= loss[s]
    assert_allclose(loss, objective.evaluate(scaled)[0], rtol=1e-10)


@pytest.mark.parametrize("solver", [bregman_nmf, multiplicative_nmf])
def test_starts_that_no_factor_makes_better_are_left_alone(solver):
    H = np.stack([np.ones((2, 1)), np.zeros((2, 1))])
    (found,), loss = next(solver(of(Explicit(-np.eye(2))), H))
    assert_array_equal(found, H)
    assert_allclose(loss, [10, 2])


# --- the updates -------------------------------------------------------------------------------


def dense_pieces(objective, H):
    """Return J / 4 and its gradient at H, from dense arrays."""
    A = objective.A.toarray()
    N = np.ones(A.shape)
    if isinstance(objective, SeenPairsObjective):
        seen = objective.observed.toarray()
        N = (seen * objective.weights) @ seen.T
    J = objective.constant + (N * (H @ H.T) ** 2).sum() - 2 * (A * (H @ H.T)).sum()
    return J / 4, (N * (H @ H.T)) @ H - A @ H


KINDS = list(kinds(np.random.default_rng(0), 6))


def bregman_step(objective, H, inverse):
    """Return r V, and f + <g, D> + l D_h(rV, H) - f(rV), which a step must not make negative."""
    a, (f, g) = objective.quartic_bound, dense_pieces(objective, H)

    def kernel(H):
        return a / 4 * (H**2).sum() ** 2

    V = np.maximum(a * (H**2).sum() * H - g / inverse, 0)
    r = (a * max((V**2).sum(), 1e-300)) ** (-1 / 3)  # V = 0: no step, and none is meant
    D = r * V - H
    distance = kernel(r * V) - kernel(H) - a * (H**2).sum() * (H * D).sum()
    bound = f + (g * D).sum() + inverse * distance
    return r * V, bound - dense_pieces(objective, r * V)[0]


def inverse_of(objective, H, H_new):
    """Read the l of a step off its result; None where it cannot be seen."""
    on = H_new > 0  # there H+ = x (a ||H||^2 H) - y g, with r = x and l = x / y
    towards = objective.quartic_bound * (H**2).sum() * H[on]
    pairs = np.stack([towards, -dense_pieces(objective, H)[1][on]], axis=1)
    (x, y), *_ = np.linalg.lstsq(pairs, H_new[on], rcond=None)
    lost = np.linalg.cond(pairs) > 1e6 or np.linalg.norm(H_new - H) < 1e-4
    return None if lost else x / y


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_is_the_longest_bregman_step_tried_that_decreases_enough(kind):
    """H+ = r [a ||Y||^2 Y - g / l]_+, a r^3 ||V||^2 = 1, and f+ <= f + <g, D> + l D_h(H+, Y).

    Y = H + (p - 1) / p+ (H - H-), p+ = (1 + (1 + 4 p^2)^1/2) / 2; or H, if f would rise.
    """
    inverses, paces = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        objective, before, pace = kinds(rng, 9)[kind], None, 1.0
        start = rng.uniform(size=(1, 9, 2))
        start[0, 0] *= 1 + 30 * (seed % 2)  # far off, so that the first steps are long
        path = [factors[0][0] for factors, _ in islice(bregman_nmf(objective, start), 25)]
        losses = [loss[0] for _, loss in islice(bregman_nmf(objective, start), 25)]
        H_before = path[0]
        for H, H_new, loss in zip(path, path[1:], losses[1:], strict=False):
            faster = (1 + (1 + 4 * pace**2) ** 0.5) / 2
            ahead = H + (pace - 1) / faster * (H - H_before)
            inverse = inverse_of(objective, ahead, H_new)
            if inverse is None:
                break  # what follows depends on what cannot be seen
            expected, room = bregman_step(objective, ahead, inverse)
            if not np.allclose(H_new, expected, atol=1e-7) and pace > 1:
                inverse = inverse_of(objective, H, H_new)
                if inverse is None:
                    break
                expected, room = bregman_step(objective, H, inverse)
                tried = [bregman_step(objective, ahead, inverse * 0.5**i)[0] for i in range(8)]
                f = dense_pieces(objective, H)[0]
                assert max(dense_pieces(objective, step)[0] for step in tried) > f  # hence from H
                ahead, faster = H, 1.0
            assert_allclose(H_new, expected, atol=1e-7)
            assert_allclose(loss, 4 * dense_pieces(objective, H_new)[0], rtol=1e-9, atol=1e-9)
            assert room >= -1e-9 * objective.constant
            doubled = before is not None and inverse > 1.01 * before
            if doubled and faster > 1:  # for a reason
                assert bregman_step(objective, ahead, inverse / 2)[1] < 1e-9 * objective.constant
            inverses.append(inverse)
            paces.append(faster)
            before, pace, H_before = inverse, faster, H
    assert len(inverses) >= 20
    assert max(paces) > 3
    if kind in ("semidefinite", "coassociation", "missing"):
        assert max(inverses) <= 1.61  # 1 is always enough; it is reached by doubling


def literal_path(A, H, n):
    """Follow the docstring of the solver by one start, in dense arrays, and return all factors."""

    def loss(H):
        return ((A - H @ H.T) ** 2).sum() / 4

    def slope(H):
        return H @ H.T @ H - A @ H

    def kernel(H):
        return 3 / 4 * (H**2).sum() ** 2

    H = H * np.sqrt((H * (A @ H)).sum() / ((H.T @ H) ** 2).sum())
    before, inverse, pace, path, inverses = H, 1.0, 1.0, [H], []
    slack = 2 * np.finfo(float).eps * (A**2).sum()
    for _ in range(n):
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = (pace - 1) / faster
        Y, from_here = H + ahead * (H - before), ahead == 0
        inverse = max(0.8 * inverse, 0.01)
        while True:
            V = np.maximum(3 * (Y**2).sum() * Y - slope(Y) / inverse, 0)
            new = (3 * (V**2).sum()) ** (-1 / 3) * V
            distance = kernel(new) - kernel(Y) - 3 * (Y**2).sum() * (Y * (new - Y)).sum()
            bound = loss(Y) + (slope(Y) * (new - Y)).sum() + inverse * distance
            if loss(new) > bound + slack:
                inverse *= 2
            elif not from_here and loss(new) > loss(H):
                Y, from_here = H, True
            else:
                break
        pace = 1.0 if from_here and ahead > 0 else faster
        before, H = H, new
        path.append(H)
        inverses.append(inverse)
    return path, inverses


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [0.0, -0.5])
def test_bregman_follows_a_literal_transcription(shift, seed):
    rng = np.random.default_rng(seed)
    X, H = rng.normal(size=(12, 3)), rng.uniform(size=(12, 2))
    H[0] *= 1 + 30 * (seed % 2)  # far off, so that the first steps are long
    A = X @ X.T + shift * np.eye(12)
    path, inverses = literal_path(A, H, 60)
    assert min(inverses[:30]) < 1 / 6  # sixfold steps are taken, while rounding decides nothing yet
    for factors, expected in zip(bregman_nmf(of(Explicit(A)), H[None]), path, strict=False):
        assert_allclose(factors[0][0][0], expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_multiplicative_update_is_equation_28_with_a_fallback(kind):
    rng = np.random.default_rng(3)
    objective = kinds(rng, 8)[kind]
    plus, minus = np.maximum(objective.A.toarray(), 0), np.maximum(-objective.A.toarray(), 0)
    P, N = objective.A.split()  # a factored A may be split with overlap: then by its own parts
    plus, minus = P.toarray(), minus if N is None else N.toarray()
    steps = multiplicative_nmf(objective, rng.uniform(0.1, 1, size=(1, 8, 3)))
    (H,), loss = next(steps)
    for _ in range(15):
        f, g = dense_pieces(objective, H[0])
        C = g + objective.A.toarray() @ H[0]
        ratio = (plus @ H[0]) / np.maximum(minus @ H[0] + C, 1e-300)
        expected = H[0] * ratio**0.5
        if 4 * dense_pieces(objective, expected)[0] > 4 * f:
            expected = H[0] * ratio**0.25
        (H,), loss = next(steps)
        assert_allclose(H[0], expected, rtol=1e-8, atol=1e-12)
        assert_allclose(loss[0], 4 * dense_pieces(objective, expected)[0], rtol=1e-8)


def test_printed_square_root_can_raise_the_loss_and_then_is_not_taken():
    """The smallest case: A = [[0, 64], [64, 0]]; two starts, of which only one is rescued."""
    A = np.array([[0.0, 64], [64, 0]])
    H = np.stack([[[2, 0.1], [0.001, 0.1]], [[2, 0.1], [0.1, 2]]])
    steps = multiplicative_nmf(of(Explicit(A)), H)
    (H,), before = next(steps)
    (new,), after = next(steps)
    for s, exponent in [(0, 0.25), (1, 0.5)]:
        ratio = (A @ H[s]) / (H[s] @ H[s].T @ H[s])
        printed = ((A - (H[s] * ratio**0.5) @ (H[s] * ratio**0.5).T) ** 2).sum()
        assert (printed > before[s]) == (s == 0)
        assert_allclose(new[s], H[s] * ratio**exponent)
        assert_allclose(after[s], ((A - new[s] @ new[s].T) ** 2).sum())
        assert after[s] <= before[s]
    letter = multiplicative_nmf(of(Explicit(A)), H, printed=True)
    next(letter)
    (new,), after = next(letter)
    for s in (0, 1):  # eq. 28, whatever comes of it
        assert_allclose(new[s], H[s] * ((A @ H[s]) / (H[s] @ H[s].T @ H[s])) ** 0.5)
    assert after[0] > before[0]


def test_multiplicative_update_survives_a_sample_without_similarity():
    A = np.zeros((4, 4))
    A[:2, :2] = 1
    solution = solved(
        multiplicative_nmf(of(Explicit(A)), np.full((1, 4, 2), 0.3) + np.eye(4, 2)),
        max_iter=900, tol=-1, scale=1,
    )[0]  # fmt: skip
    assert_allclose(solution.factors[0][2:], 0)
    assert solution.loss < 1e-5


def test_trifactor_updates_are_equations_20_and_21():
    rng = np.random.default_rng(4)
    A = coassociation(rng.integers(0, 3, size=(9, 6)))
    M, start = A.toarray(), rng.uniform(0.1, 1, size=(2, 9, 3))
    steps = multiplicative_trinmf(of(A), start)
    for s in range(2):
        Q = start[s] / np.linalg.norm(start[s], axis=0)
        S = np.diag([q @ M @ q for q in Q.T])
        for (found_Q, found_S), loss in islice(multiplicative_trinmf(of(A), start), 12):
            assert_allclose(found_Q[s], Q, rtol=1e-9)
            assert_allclose(found_S[s], S, rtol=1e-9)
            assert_allclose(loss[s], ((M - Q @ S @ Q.T) ** 2).sum(), rtol=1e-9)
            Q = Q * np.sqrt((M @ Q @ S) / (Q @ Q.T @ M @ Q @ S))
            numerator, denominator = Q.T @ M @ Q, Q.T @ Q @ S @ Q.T @ Q
            S = S * np.sqrt(numerator / denominator)
    (_, S), _ = next(steps)
    assert_array_equal(S[0] - np.diag(np.diagonal(S[0])), 0)


# --- GSG' --------------------------------------------------------------------------------------

GSG_KINDS = ["signed", "signed sparse", "semidefinite", "nonnegative", "constrained"]


def gsg_loss(A, G, S):
    return ((A - G @ S @ G.T) ** 2).sum()


def normalized(G, S):
    length = np.linalg.norm(G, axis=0)
    return G / np.where(length > 0, length, 1), S * np.outer(length, length)


def quotient(above, below):
    """Return above / below, and 0 for 0/0, which a lost cluster leads to."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def gsg_step(P, N, G, S):
    """Return the factors after one update, and whether the root was too long a step."""
    K = G.T @ G
    S = S * quotient(G.T @ P @ G, G.T @ N @ G + K @ S @ K)
    ratio = quotient(P @ G @ S, N @ G @ S + G @ S @ G.T @ G @ S)
    longer = G * ratio**0.5
    short = gsg_loss(P - N, longer, S) > gsg_loss(P - N, G, S)
    return *normalized(G * ratio**0.25 if short else longer, S), short


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", GSG_KINDS)
def test_gsg_updates_are_the_split_rules(kind, full):
    """S o G'PG / (G'NG + KSK), then G o (PGS / (NGS + GSKS))^1/2, then columns of length 1."""
    rng = np.random.default_rng(5)
    objective, start = kinds(rng, 9)[kind], rng.uniform(0.1, 1, size=(2, 9, 3))
    A = objective.A.toarray()
    positive, negative = objective.A.split()  # a factored A may be split with overlap
    P, N = positive.toarray(), 0 * A if negative is None else negative.toarray()
    path = list(islice(multiplicative_gsg(objective, start, full=full), 15))
    for s in range(2):
        G, S = path[0][0][0][s], path[0][0][1][s]
        assert_allclose(G, start[s] / np.linalg.norm(start[s], axis=0))
        for (found_G, found_S), loss in path:
            assert_allclose(found_G[s], G, rtol=1e-7, atol=1e-12)
            assert_allclose(found_S[s], S, rtol=1e-7, atol=1e-12)
            assert_allclose(loss[s], gsg_loss(A, G, S), rtol=1e-9, atol=1e-9)
            G, S, _ = gsg_step(P, N, G, S)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("kind", GSG_KINDS)
def test_gsg_starts_with_every_cluster(kind, full):
    """An S that starts at 0 stays there: a cluster with it, or the link between two."""
    rng = np.random.default_rng(7)
    objective = kinds(rng, 9)[kind]
    (_, S), _ = next(multiplicative_gsg(objective, rng.uniform(0.1, 1, (20, 9, 3)), full=full))
    assert (np.diagonal(S, axis1=1, axis2=2) > 0).all()
    assert (S > 0).all() or not full


def test_gsg_from_random_starts_gets_as_far_as_hh_with_negative_similarities():
    """Four clusters, similar within and dissimilar between; the two problems are one."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 15)
    objective = of(Explicit(1.0 * (y[:, None] == y) + 0.05 * signed(rng, 60) - 0.4))
    H = rng.uniform(size=(5, 60, 4))
    gsg, hh, full = (
        np.array([s.loss for s in solved(steps, max_iter=500, tol=1e-6, scale=1)])
        for steps in (
            multiplicative_gsg(objective, H),
            bregman_nmf(objective, H),
            full_gsg(objective, H),
        )
    )
    assert np.median(gsg) < 1.1 * np.median(hh)
    assert full.max() < 0.95 * objective.constant  # more than the zero solution


def test_gsg_takes_the_shorter_step_where_the_root_would_raise_the_loss():
    """Two starts, of which only one meets such steps."""
    A = np.array([[0.0, -3, 50, 54], [-3, 0, 0, 0], [50, 0, 0, -48], [54, 0, -48, 0]])
    P, N = np.maximum(A, 0), np.maximum(-A, 0)
    start = np.array([[[0.04, 0.07], [0.3, 0.66], [0.03, 0.04], [0.03, 0.01]], np.eye(4, 2) + 0.5])
    path = list(islice(multiplicative_gsg(of(Explicit(A)), start), 7))
    rescued = [0, 0]
    for (before, after), s in product(pairwise(path), range(2)):
        G, S, short = gsg_step(P, N, before[0][0][s], before[0][1][s])
        assert_allclose(after[0][0][s], G, rtol=1e-7, atol=1e-9)
        assert_allclose(after[0][1][s], S, rtol=1e-7, atol=1e-9)
        assert after[1][s] <= before[1][s]
        rescued[s] += short
    assert rescued[0] > rescued[1] == 0


@pytest.mark.parametrize("full", [False, True])
def test_gsg_as_printed_is_equations_5_and_6(full):
    """S o G'AG / (G'GSG'G) and G o AG / (GSG'G), to the letter: no root, and no S above."""
    rng = np.random.default_rng(6)
    A = abs(signed(rng, 9))
    start = rng.uniform(0.1, 1, size=(2, 9, 3))
    steps = multiplicative_gsg(of(Explicit(A)), start, full=full, printed=True)
    path = list(islice(steps, 12))
    for s in range(2):
        G, S = path[0][0][0][s], path[0][0][1][s]
        for (found_G, found_S), loss in path:
            assert_allclose(found_G[s], G, rtol=1e-7)
            assert_allclose(found_S[s], S, rtol=1e-7)
            assert_allclose(loss[s], gsg_loss(A, G, S), rtol=1e-9)
            S = S * (G.T @ A @ G) / (G.T @ G @ S @ G.T @ G)
            G, S = normalized(G * (A @ G) / (G @ S @ G.T @ G), S)


def test_gsg_as_printed_need_not_descend_with_a_full_core():
    rises = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        objective = of(Explicit(abs(signed(rng, 8))))
        steps = multiplicative_gsg(objective, rng.uniform(size=(1, 8, 3)), full=True, printed=True)
        losses = np.array([loss[0] for _, loss in islice(steps, 40)])
        rises += np.diff(losses).max() > 1e-6 * objective.constant
    assert rises > 0  # so the warning in the docstring is not idle


@given(seeds, st.integers(2, 12), st.integers(1, 4), st.sampled_from(GSG_KINDS), st.booleans())
def test_gsg_never_raises_the_loss_and_keeps_its_form(seed, n, k, kind, full):
    rng = np.random.default_rng(seed)
    objective = kinds(rng, n)[kind]
    start = rng.uniform(size=(3, n, k)) * 10.0 ** rng.uniform(-3, 0, size=(3, n, k)) + 1e-6
    start[2, 0] *= 1e3  # with one row out of proportion
    path = list(islice(multiplicative_gsg(objective, start, full=full), 40))
    losses = np.array([loss for _, loss in path])
    assert np.diff(losses, axis=0).max() <= 1e-12 * objective.constant
    assert losses.dtype == np.float64
    for (G, S), _ in path:
        lengths = np.linalg.norm(G, axis=1)
        assert ((abs(lengths - 1) < 1e-9) | (lengths == 0)).all()  # a column may be lost
        assert G.min() >= 0 <= S.min()
        assert_allclose(S, S.mT, rtol=1e-7, atol=1e-9 * objective.constant)
        if not full:
            assert not (S * (1 - np.eye(k))).any()


@pytest.mark.parametrize("kind", ["semidefinite", "nonnegative"])
def test_gsg_approaches_a_stationary_point(kind):
    rng = np.random.default_rng(8)
    objective = kinds(rng, 14)[kind]
    A = objective.A.toarray()

    def residual(G, S):
        """Return how far a projected gradient step moves G and S, relative to their size."""
        K = G.T @ G
        slope_G, slope_S = 2 * (G @ S @ K @ S - A @ G @ S), K @ S @ K - G.T @ A @ G
        size = np.linalg.norm(A) * (1 + np.linalg.norm(S))
        step_G = G - np.maximum(G - slope_G / size, 0)
        step_S = S - np.maximum(S - slope_S, 0)
        return np.linalg.norm(step_G) + np.linalg.norm(step_S) / np.linalg.norm(A)

    found = [
        residual(G[0], S[0])
        for (G, S), _ in islice(full_gsg(objective, rng.uniform(0.1, 1, size=(1, 14, 3))), 3000)
    ]
    assert found[-1] < 1e-3 < found[0]
    assert found[-1] < found[300] < found[10]


def test_gsg_with_a_diagonal_core_ends_where_hh_does():
    """GSG' = HH' with H = G S^1/2: the two problems are one."""
    rng = np.random.default_rng(9)
    planted = rng.uniform(0.5, 1, size=(30, 3)) * np.eye(3)[np.arange(30) % 3]
    objective = of(Explicit(planted @ planted.T + 0.01))
    start = (0.8 * planted + 0.2 * rng.uniform(size=planted.shape))[None]
    (H,) = solved(bregman_nmf(objective, start), max_iter=3000, tol=-1, scale=1)[0].factors
    G, S = solved(multiplicative_gsg(objective, start), max_iter=3000, tol=-1, scale=1)[0].factors
    assert_allclose(G @ S @ G.T, H @ H.T, atol=2e-3)


def test_gsg_finds_clusters_that_are_linked_to_each_other():
    """A full S holds what HH' cannot: similarity between clusters, here none within."""
    S = np.array([[0.0, 3.0], [3.0, 0.0]])
    G = np.kron(np.eye(2), np.ones((6, 1)) / np.sqrt(6))
    A = G @ S @ G.T
    start = np.random.default_rng(2).uniform(0.1, 1, size=(1, 12, 2)) + 2 * G
    solution = solved(full_gsg(of(Explicit(A)), start), max_iter=4000, tol=-1, scale=1)[0]
    assert solution.loss < 1e-4
    assert_allclose(solution.factors[1], S, atol=0.05)
    diagonal = solved(multiplicative_gsg(of(Explicit(A)), start), max_iter=500, tol=-1, scale=1)
    assert diagonal[0].loss > 1


@pytest.mark.parametrize("full", [False, True])
def test_gsg_survives_samples_without_similarity_and_with_penalties_alone(full):
    A = np.zeros((5, 5))
    A[:2, :2] = 1
    A[4, 0] = A[0, 4] = -0.5
    start = np.full((1, 5, 2), 0.3) + np.eye(5, 2)
    steps = multiplicative_gsg(of(Explicit(A)), start, full=full)
    (solution,) = solved(steps, max_iter=900, tol=-1, scale=1)
    G = solution.factors[0]
    assert np.isfinite(G).all()
    assert_allclose(G[2:], 0)
    assert_allclose(solution.loss, 0.5, atol=1e-4)  # of the two entries that no factor can have


@pytest.mark.parametrize("full", [False, True])
def test_gsg_keeps_float32(full):
    rng = np.random.default_rng(3)
    A = (signed(rng, 12) * 10).astype(np.float32)
    objective = of(Explicit(A))
    start = rng.uniform(size=(2, 12, 3)).astype(np.float32)
    losses = []
    for factors, loss in islice(multiplicative_gsg(objective, start, full=full), 60):
        assert {factor.dtype for factor in factors} == {np.dtype(np.float32)}
        assert loss.dtype == np.float64
        losses.append(loss)
    rise = np.diff(losses, axis=0).max()
    assert rise <= 16 * np.finfo(np.float32).eps * objective.constant


# --- what all of them promise ------------------------------------------------------------------


@given(seeds, st.integers(3, 12), st.integers(1, 4), st.sampled_from(KINDS), st.integers(-4, 4))
def test_loss_never_rises(seed, n, k, kind, magnitude):
    rng = np.random.default_rng(seed)
    objective = kinds(rng, n)[kind]
    H = rng.uniform(size=(3, n, k)) * 10.0 ** rng.uniform(-3, 0, size=(3, n, k))
    H[2, 0] *= 1e3  # with one row out of proportion
    for solver in (bregman_nmf, multiplicative_nmf):
        if solver is bregman_nmf:
            H[1] *= rng.uniform(size=(n, k)) < 0.6  # with zeros
            H[1, 0] = 0
        else:
            H = np.maximum(H, 1e-6)
        losses = [loss for _, loss in islice(solver(objective, H * 10.0**magnitude), 40)]
        assert np.diff(losses, axis=0).max() <= 1e-13 * objective.constant
        assert losses[0].dtype == np.float64


@settings(max_examples=16)
@given(seeds, st.sampled_from(["dense", "sparse", "coassociation", "missing"]))
def test_loss_never_rises_in_float32_by_more_than_its_resolution(seed, kind):
    rng = np.random.default_rng(seed)
    n = 15
    codes, weights = incomplete_table(rng, n, 4)
    A = (signed(rng, n) * (abs(signed(rng, n)) > 1)).astype(np.float32)
    full = objective_of_table(codes, weights)
    objective = {
        "dense": of(Explicit(A)),
        "sparse": of(Explicit(sp.csr_array(A))),
        "coassociation": of(coassociation(abs(codes), dtype=np.float32)),
        "missing": SeenPairsObjective(
            coassociation(codes, weights, dtype=np.float32), full.constant, full.observed, weights
        ),
    }[kind]
    H = rng.uniform(size=(2, n, 3)).astype(np.float32)
    for solver in (bregman_nmf, multiplicative_nmf):
        path = list(islice(solver(objective, H), 60))
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


@pytest.mark.parametrize(
    ("solver", "kind"),
    [
        *product(SOLVERS, ["nonnegative", "coassociation"]),
        *product(SOLVERS[:4], ["signed"]),
        *product(SOLVERS[:2], ["missing"]),
    ],
)
def test_a_start_is_the_same_alone_and_in_a_batch_that_others_leave(solver, kind):
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


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "missing"])
def test_what_it_converges_to_is_stationary(kind):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        objective = kinds(rng, 14)[kind]
        for solution in converged(objective, rng.uniform(size=(2, 14, 3))):
            assert solution.converged
            assert kkt_residual(objective.A.toarray(), solution.factors[0]) < 1e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_does_not_get_stuck_where_a_step_would_lead_to_zero(dtype):
    A = np.array([[-2.0, 0.5], [0.5, -2.0]], dtype=dtype)
    solution = converged(of(Explicit(A)), np.full((1, 2, 1), 0.1, dtype), max_iter=300)[0]
    assert_allclose(solution.loss, (A**2).sum(), rtol=1e-5)  # that of H = 0, the best there is


def test_missing_labels_converge_to_a_stationary_point():
    rng = np.random.default_rng(8)
    objective = kinds(rng, 12)["missing"]
    H = converged(objective, rng.uniform(size=(1, 12, 3)))[0].factors[0]
    _, g = dense_pieces(objective, H)
    assert abs(g[H > 1e-6]).max() < 1e-5
    assert g[H <= 1e-6].min(initial=0) > -1e-5


@pytest.mark.parametrize("solver", [bregman_nmf, multiplicative_nmf])
def test_planted_factors_are_recovered(solver):
    rng = np.random.default_rng(9)
    planted = rng.uniform(0.5, 1, size=(30, 3)) * np.eye(3)[np.arange(30) % 3]
    A = Explicit(planted @ planted.T)
    start = 0.9 * planted + 0.1 * rng.uniform(size=planted.shape)
    H = solved(solver(of(A), start[None]), max_iter=3000, tol=-1, scale=1)[0].factors[0]
    assert_allclose(H, planted, atol=2e-3)


def test_a_collapsed_problem_takes_the_same_path():
    """H = Eh at the start, and ever after: with and without missing labels."""
    rng = np.random.default_rng(10)
    for missing in (False, True):
        codes, weights = incomplete_table(rng, 8, 4)
        codes = codes if missing else abs(codes)
        groups = np.concatenate([np.arange(8), rng.integers(0, 8, size=9)])
        counts = np.bincount(groups)
        h = rng.uniform(size=(8, 2))
        small = Ensemble(codes, counts, weights, np.full(4, 3))
        large = Ensemble(codes[groups], np.ones(17, dtype=int), weights, np.full(4, 3))

        def path(ensemble, H):
            objective = EnsembleProblem(ensemble, None, np.dtype(float), False).objective
            return islice(bregman_nmf(objective, H[None]), 30)

        roots = np.sqrt(counts)[:, None]
        paths = zip(path(small, h * roots), path(large, h[groups]), strict=True)
        for ((few,), loss), ((all_,), loss_of_all) in paths:
            assert_allclose((few[0] / roots)[groups], all_[0], rtol=1e-7, atol=1e-9)
            assert_allclose(loss, loss_of_all, rtol=1e-9)
