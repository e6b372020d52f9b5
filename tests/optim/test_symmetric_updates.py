"""Every update of HH' and of the tri-factorization against its formula in dense arrays."""

from itertools import islice, product

import numpy as np
import pytest
from internals import QUARTIC_BOUND, bregman_nmf, multiplicative_trinmf
from numpy.testing import assert_allclose, assert_array_equal
from optim.cases import KINDS, dense_pieces, kinds, of
from similarity.cases import coassociation

from nmfcluster.similarity import Explicit


def bregman_step(objective, H, inverse):
    """Return r V, and f + <g, D> + l D_h(rV, H) - f(rV), which a step must not make negative."""
    a, (f, g) = QUARTIC_BOUND, dense_pieces(objective, H)

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
    towards = QUARTIC_BOUND * (H**2).sum() * H[on]
    pairs = np.stack([towards, -dense_pieces(objective, H)[1][on]], axis=1)
    (x, y), *_ = np.linalg.lstsq(pairs, H_new[on], rcond=None)
    lost = np.linalg.cond(pairs) > 1e6 or np.linalg.norm(H_new - H) < 1e-4
    return None if lost else x / y


@pytest.mark.sampled(3)
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
        path = [
            factors[0][0] for factors, _ in islice(bregman_nmf(objective, start), 25)
        ]
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
                tried = [
                    bregman_step(objective, ahead, inverse * 0.5**i)[0]
                    for i in range(8)
                ]
                f = dense_pieces(objective, H)[0]
                # hence from H
                assert max(dense_pieces(objective, step)[0] for step in tried) > f
                ahead, faster = H, 1.0
            assert_allclose(H_new, expected, atol=1e-7)
            assert_allclose(
                loss, 4 * dense_pieces(objective, H_new)[0], rtol=1e-9, atol=1e-9
            )
            assert room >= -1e-9 * objective.constant
            doubled = before is not None and inverse > 1.01 * before
            if doubled and faster > 1:  # for a reason
                assert (
                    bregman_step(objective, ahead, inverse / 2)[1]
                    < 1e-9 * objective.constant
                )
            inverses.append(inverse)
            paces.append(faster)
            before, pace, H_before = inverse, faster, H
    assert len(inverses) >= 20
    assert max(paces) > 3
    if kind in ("semidefinite", "coassociation"):
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
            distance = (
                kernel(new) - kernel(Y) - 3 * (Y**2).sum() * (Y * (new - Y)).sum()
            )
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


def test_bregman_follows_a_literal_transcription():
    for seed, shift in product(range(3), [0.0, -0.5]):
        rng = np.random.default_rng(seed)
        X, H = rng.normal(size=(12, 3)), rng.uniform(size=(12, 2))
        H[0] *= 1 + 30 * (seed % 2)  # far off, so that the first steps are long
        A = X @ X.T + shift * np.eye(12)
        path, inverses = literal_path(A, H, 60)
        # sixfold steps are taken, while rounding decides nothing yet
        assert min(inverses[:30]) < 1 / 6
        for factors, expected in zip(
            bregman_nmf(of(Explicit(A)), H[None]), path, strict=False
        ):
            assert_allclose(factors[0][0][0], expected, atol=1e-6)


def by_equation_28(A, H, n_updates):
    """Return the losses before and after updates by the rule of Li et al., in dense arrays."""
    plus, minus = np.maximum(A, 0), np.maximum(-A, 0)
    losses = [((A - H @ H.T) ** 2).sum()]
    for _ in range(n_updates):
        H = H * np.sqrt((plus @ H) / np.maximum(minus @ H + H @ H.T @ H, 1e-300))
        losses.append(((A - H @ H.T) ** 2).sum())
    return np.array(losses)


def test_the_solver_gets_as_far_as_equation_28_in_fewer_updates():
    for kind in KINDS:
        rng = np.random.default_rng(3)
        objective, H = kinds(rng, 8)[kind], rng.uniform(0.1, 1, size=(1, 8, 3))
        printed = by_equation_28(objective.A.toarray(), H[0], 200)
        ((_, loss),) = islice(bregman_nmf(objective, H), 100, 101)
        assert loss[0] <= printed.min() + 1e-3 * objective.constant


def test_equation_28_can_raise_the_loss():
    """The smallest case: A = [[0, 64], [64, 0]]."""
    A, H = np.array([[0.0, 64], [64, 0]]), np.array([[2, 0.1], [0.001, 0.1]])
    printed = by_equation_28(A, H, 1)
    assert printed[1] > printed[0]
    losses = [loss[0] for _, loss in islice(bregman_nmf(of(Explicit(A)), H[None]), 20)]
    assert (np.diff(losses) <= 0).all()


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
