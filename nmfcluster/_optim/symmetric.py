"""Symmetric factorization of a similarity: the objective, its solver, from starts to the factor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from nmfcluster._optim.initialization import draw_seeds, random_start, spectral_start
from nmfcluster._optim.run import (
    Plan,
    Rank,
    Solution,
    Start,
    Steps,
    kept,
    loss_of,
    per_start,
)
from nmfcluster._utils import linalg
from nmfcluster._utils.linalg import dots, gram, mapped, nonnegative_rows, times
from nmfcluster._utils.sampling import some_with
from nmfcluster.similarity import Similarity

QUARTIC_BOUND = 3.0  # the a of <D, C'(H) D> <= a ||H||^2 ||D||^2, which one row attains
_SMALLEST_INVERSE = (
    1e-2  # of a step, times its safe length: beyond a hundred of them rounding wins
)
_LARGEST_INVERSE = (
    2.0**30
)  # of a step so short that it changes nothing; only rounding leads here
_LONGER = (
    0.8  # of the inverse step: each step first tries one a quarter longer than the last
)
_LIFT = 1e-3  # of a factor's mean: a zero would be final for a multiplicative rule


class Point(NamedTuple):
    """A batch of factors and what an update needs of them."""

    loss: np.ndarray  # J(H), (n_starts,)
    H: np.ndarray  # (n_starts, n, k)
    AH: np.ndarray
    C: np.ndarray  # C(H), for which the gradient of J is 4 (C - AH)

    def kept(self, keep: np.ndarray | None) -> Point:
        """Return the point of the starts that go on."""
        return Point(*kept(keep, *self))


@dataclass(frozen=True)
class SymmetricObjective:
    r"""The objective :math:`J(H) = \|A - HH'\|^2`.

    It is ``constant - 2 <H, AH> + <H, C(H)>`` with ``C(H) = H H'H``, and has the gradient
    ``4 (C(H) - AH)``.

    Attributes
    ----------
    A : Similarity of shape (n, n)
    constant : float
        Loss of H = 0.
    """

    A: Similarity
    constant: float

    @property
    def wide(self) -> bool:
        """Whether several starts in one product are faster than one after the other."""
        return self.A.wide

    def evaluate(self, H: np.ndarray, AH: np.ndarray | None = None) -> Point:
        """Return the losses of a batch of factors, AH, which may be known, and C(H)."""
        AH, C = self.A @ H if AH is None else AH, times(H, gram(H, H))
        return Point(self.constant - 2 * dots(H, AH) + dots(H, C), H, AH, C)

    def rescaled(self, at: Point) -> Point:
        """Return each start times the factor that makes its loss smallest; AH and C are changed."""
        fit, size = dots(at.H, at.AH), dots(at.H, at.C)
        square = np.divide(
            fit, size, out=np.ones_like(fit), where=(fit > 0) & (size > 0)
        )
        root = per_start(np.sqrt(square), at.H)
        loss = self.constant - 2 * square * fit + square**2 * size
        AH = np.multiply(at.AH, root, out=at.AH)  # large, and of no more use as it was
        C = np.multiply(at.C, root**3, out=at.C)
        return Point(loss, root * at.H, AH, C)


def bregman_nmf(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise :math:`J(H)` over H >= 0 by accelerated Bregman proximal gradient steps.

    With the kernel :math:`h(H) = \frac a4 \|H\|^4`, a = 3, J/4 is smooth relative to h when A is
    positive semidefinite [1]_, and so near any H but 0 when it is not. A step of length
    1 / lambda from a point Y,

    .. math:: H^+ = r\,[\nabla h(Y) - \nabla (J/4)(Y) / \lambda]_+ , \quad r^3 = 1 / (a \|V\|^2)

    with V the bracket, is taken when

    .. math:: \tfrac14 J(H^+) \le \tfrac14 J(Y) + \langle \nabla (J/4)(Y), H^+ - Y \rangle
              + \lambda D_h(H^+, Y) ,

    which holds for lambda = 1 and semidefinite A. Longer steps are tried first; lambda is doubled
    until the inequality holds. Y runs ahead of H along the last step, as in [2]_, which costs no
    further product with A. Where J would rise, the step is taken from H instead and the run-up
    begins anew: J never rises, for A of any sign.

    Parameters
    ----------
    objective : SymmetricObjective
    H : ndarray of shape (n_starts, n, k)
        Nonnegative.

    Yields
    ------
    factors : tuple of one ndarray of shape (n_starts, n, k)
    loss : ndarray of shape (n_starts,)

    References
    ----------
    .. [1] R.-A. Dragomir, A. d'Aspremont, J. Bolte. Quartic first-order methods for low-rank
       minimization. Journal of Optimization Theory and Applications 189, 2021.
    .. [2] M. C. Mukkamala, P. Ochs, T. Pock, S. Sabach. Convex-concave backtracking for inertial
       Bregman proximal gradient algorithms in nonconvex optimization. SIAM Journal on Mathematics
       of Data Science 2, 2020.
    """
    now = before = objective.rescaled(objective.evaluate(H))
    inverse_step, pace = np.ones(len(H)), np.ones(len(H))
    while True:
        keep = yield (now.H,), now.loss
        now, before = now.kept(keep), before.kept(keep)
        inverse_step, pace = kept(keep, inverse_step, pace)
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = (pace - 1) / faster
        base = _run_up(objective, now, before, ahead) if ahead.any() else now
        before, tried = now, np.maximum(_LONGER * inverse_step, _SMALLEST_INVERSE)
        now, inverse_step, fell_back = _descend(objective, now, base, tried)
        pace = np.where(fell_back & (ahead > 0), 1, faster)


def _run_up(
    objective: SymmetricObjective, now: Point, before: Point, ahead: np.ndarray
) -> Point:
    """Return the point that lies ahead on the line of the last step, by a share of the step."""
    share = per_start(ahead, now.H)
    Y = linalg.beyond(before.H, now.H, share)
    AY = linalg.beyond(before.AH, now.AH, share)  # A is linear: AY comes from AH
    return objective.evaluate(Y, AY)


def _descend(
    objective: SymmetricObjective, now: Point, base: Point, inverse_step: np.ndarray
) -> tuple[Point, np.ndarray, np.ndarray]:
    """Take a step from a base, or from where the solver is if the loss would rise.

    `now` is where the solver is; `base` is the same, or a point ahead of it, which is overwritten.
    `inverse_step` is the first one to try. Returned are the new point, the inverse step that led
    there, and whether it was taken from `now`.
    """
    a, slack = QUARTIC_BOUND, 8 * np.finfo(now.H.dtype).eps * objective.constant
    fell_back, inverse_step = np.full(len(now.H), base is now), inverse_step.copy()
    Y, slope, level = base.H, mapped(np.subtract, base.C, base.AH), base.loss
    norm, trying = dots(Y, Y), np.arange(len(Y))
    new: Point | None = None
    while len(trying):
        again = None if new is None else trying
        old, gradient, inverse, size = kept(again, Y, slope, inverse_step, norm)
        trial = objective.evaluate(_proximal_step(old, gradient, a, size, inverse))
        # <gradient, D> + inverse D_h(trial, old), D the step, which bounds the growth of J/4
        square, along, down = linalg.products_of_step(old, trial.H, gradient)
        longer = 2 * along + square  # by how much the squared norm grows
        growth = down + inverse * a / 4 * (2 * size * square + longer**2)
        smooth = (trial.loss <= level[trying] + 4 * growth + slack) | (
            inverse >= _LARGEST_INVERSE
        )
        accepted = smooth & (fell_back[trying] | (trial.loss <= now.loss[trying]))
        if (
            new is None
        ):  # the first time all are tried: what is not accepted is overwritten later
            new = trial
        else:
            for target, value in zip(new, trial, strict=True):
                target[trying[accepted]] = value[accepted]
        inverse_step[trying[~smooth]] *= 2
        rising = trying[smooth & ~accepted]
        if len(rising):
            fell_back[rising] = True
            Y[rising], slope[rising] = now.H[rising], now.C[rising] - now.AH[rising]
            level[rising], norm[rising] = (
                now.loss[rising],
                dots(now.H[rising], now.H[rising]),
            )
        trying = trying[~accepted]
    assert new is not None
    return new, inverse_step, fell_back


def _proximal_step(
    H: np.ndarray,
    slope: np.ndarray,
    a: float,
    norm: np.ndarray,
    inverse_step: np.ndarray,
) -> np.ndarray:
    """Return r V with V = [a ||H||^2 H - slope / inverse_step]_+ and a r^3 ||V||^2 = 1."""
    back, forth = per_start(-1 / inverse_step, H), per_start(a * norm, H)
    V = linalg.rectified_sum(back, slope, forth, H)
    size = dots(V, V)
    r = np.cbrt(1 / (a * np.where(size > 0, size, 1)))  # V = 0 leads to 0
    return linalg.scaled(V, per_start(r, H))


@dataclass(frozen=True)
class Factorization:
    """The factor H of ``HH'`` that was kept, with what is reported of the runs."""

    best: Solution
    curves: list[np.ndarray]  # losses of all starts, those of the kept one first
    scale: float  # what a decrease was measured by: the loss of zero factors, or that of `best`

    @staticmethod
    def factor_of(solution: Solution) -> np.ndarray:
        """Return H of ``HH'``, (n, k)."""
        return solution.factors[0]

    @property
    def H(self) -> np.ndarray:  # noqa: N802
        """H of ``HH'``, (n, k)."""
        return self.factor_of(self.best)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """F (n, k) and M (k, k) of what was fitted, ``FMF'``."""
        return self.H, np.eye(self.H.shape[1], dtype=self.H.dtype)

    @property
    def core(self) -> np.ndarray:
        """S of ``QSQ'`` with unit columns in Q, (k, k)."""
        return np.diag((self.H**2).sum(axis=0))


class Problem(ABC):
    """A similarity to factorize: its objective, its starts, and a part of it for many rows."""

    objective: SymmetricObjective
    friendly: Similarity  # whose leading eigenvectors make the first start
    mass: np.ndarray  # of every row: how many samples it stands for
    name: str  # to report its runs
    # a factor that was extended from a part of the rows has all but converged:
    polish_tol: float  # the decrease that ten updates of it must gain
    polish_min_iter: int  # the smallest number of updates
    sure_start: bool = False  # whether other starts of many rows were never seen to win

    def __len__(self) -> int:
        return len(self.mass)

    def starts(self, plan: Plan, rng: np.random.RandomState) -> list[Start]:
        """Return one start from eigenvectors, the others random."""
        k, dtype = plan.n_clusters, self.objective.A.dtype
        seeds = draw_seeds(rng, plan.n_init - 1)
        first: Start = partial(spectral_start, self.friendly, k)
        return [
            first,
            *(partial(random_start, self.mass, k, seed, dtype) for seed in seeds),
        ]

    def rank(self, form: type[Factorization]) -> Rank:
        """Return the figure by which runs are compared."""
        return loss_of

    @abstractmethod
    def part(self, size: int, rng: np.random.RandomState) -> Problem | None:
        """Return the problem of some rows, drawn at random; None if they would say too little."""

    @abstractmethod
    def extended(self, part: Problem, H: np.ndarray) -> np.ndarray:
        """Return the factor of all rows that fits best to the factor of a part of them."""


def factorize(
    problem: Problem,
    plan: Plan,
    rng: np.random.RandomState,
    form: type[Factorization] = Factorization,
    coarse_size: int | None = None,
) -> Factorization:
    """Factorize a similarity; the run that ranks first is kept.

    With more rows than `coarse_size` the starts are run on that many of them, and the best is
    extended to all and improved there; the curves of the part are scaled to all rows. Where the
    first start is sure, it alone is run, on all rows. `form` says what the factors of the plan's
    solver are.
    """
    objective, part = problem.objective, None
    if coarse_size is not None and len(problem) > coarse_size:
        if problem.sure_start:
            plan = replace(_polishing(plan, problem), n_init=1)
        else:
            part = problem.part(coarse_size, rng)
    if part is None:
        starts = problem.starts(plan, rng)
        solutions = plan.run(objective, starts, problem.name, problem.rank(form))
        return form(solutions[0], [s.history for s in solutions], objective.constant)
    of_part = factorize(part, plan, rng, form)
    start = problem.extended(part, of_part.H)
    [end] = _polishing(plan, problem).run(objective, [lambda: start], problem.name)
    scale = objective.constant / of_part.scale
    return form(
        end, [end.history, *(c * scale for c in of_part.curves)], objective.constant
    )


def _polishing(plan: Plan, problem: Problem) -> Plan:
    """Return the plan of a run from a good start."""
    if plan.stop.tol >= 0:  # a negative one asks for all updates
        plan = plan.stopping(tol=max(plan.stop.tol, problem.polish_tol))
    return plan.stopping(min_iter=problem.polish_min_iter)


def fitted_factor(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the rows h >= 0 that minimise ``h'Gh - 2 b'h``, nearly, and none of them 0."""
    H = nonnegative_rows(
        B, G, max_sweeps=20, resolution=1e-3
    )  # rough: it is improved afterwards
    return np.add(H, _LIFT * H.mean(), out=H)


class SimilarityProblem(Problem):
    """A similarity of rows, which may stand for several samples each.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    constant : float, default=None
        Loss of the zero factor; the squared norm of A by default.
    mass : ndarray of shape (n,), default=None
        Number of samples that each row stands for; 1 by default.
    friendly : Similarity of shape (n, n), default=None
        Whose leading eigenvectors make the first start; A by default.
    wanted : ndarray of shape (n,), bool, default=None
        Rows that make up to half of a part; none by default.
    rows : ndarray of int, default=None
        Where the rows are in the problem that this one is a part of.
    sure_start : bool, default=False
        Whether one start, from eigenvectors, will do for many rows.
    """

    polish_tol = 1e-5  # a cluster can be a small part of a similarity
    polish_min_iter = 5  # updates: as many show whether the extension has settled

    def __init__(
        self,
        A: Similarity,
        *,
        constant: float | None = None,
        mass: np.ndarray | None = None,
        friendly: Similarity | None = None,
        wanted: np.ndarray | None = None,
        rows: np.ndarray | None = None,
        sure_start: bool = False,
    ) -> None:
        self.objective = SymmetricObjective(
            A, A.squared_norm() if constant is None else constant
        )
        self.name = f"{A.shape[0]} rows"
        self.friendly = A if friendly is None else friendly
        self.mass = np.ones(A.shape[0]) if mass is None else mass
        self.wanted = np.zeros(len(self), dtype=bool) if wanted is None else wanted
        self.rows, self.sure_start = rows, sure_start

    def part(self, size: int, rng: np.random.RandomState) -> SimilarityProblem | None:
        """Return the problem of `size` rows; None for a sparse graph, which would fall apart."""
        if not self.friendly.can_be_thinned:
            return None
        rows = np.sort(some_with(self.wanted, size, rng))
        A, friendly = self.objective.A.take(rows), self.friendly.take(rows)
        return SimilarityProblem(A, mass=self.mass[rows], friendly=friendly, rows=rows)

    def extended(self, part: Problem, H: np.ndarray) -> np.ndarray:
        """Return the factor of all rows that fits best to the factor of a part of them."""
        assert isinstance(part, SimilarityProblem)
        padded = np.zeros((len(self), H.shape[1]), dtype=H.dtype)
        padded[part.rows] = H
        return fitted_factor(self.friendly @ padded, H.T @ H)
