"""Symmetric factorization of a similarity: objective, solver and starts."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from nmfcluster._optim.initialization import (
    cluster_eigenvectors,
    draw_seeds,
    leading_eigenpairs,
    random_start,
    spectral_start,
)
from nmfcluster._optim.run import (
    Solution,
    Steps,
    keep_starts,
    loss_of,
    per_start,
    run_starts,
)
from nmfcluster._utils.linalg import (
    approximate_nnls_rows,
    block_inner_products,
    gram,
    inner_products,
    map_rows,
    matmul_rows,
    sum_rows,
)
from nmfcluster._utils.sampling import draw_preferring
from nmfcluster._utils.storage import safe_inverse, safe_ratio
from nmfcluster.similarity import Similarity

# The constant a of <D, C'(H) D> <= a ||H||^2 ||D||^2, with C(H) = HH'H. A single row attains it.
QUARTIC_BOUND = 3.0
# Smallest inverse step, relative to the safe one: rounding errors dominate steps that are more than
# a hundred times as long.
_SMALLEST_INVERSE = 1e-2
# Largest inverse step, which only rounding errors lead to: such a short step changes nothing.
_LARGEST_INVERSE = 2.0**30
# Factor of the inverse step before each update, which first tries a step 1.25 times as long as the
# last one.
_LONGER = 0.8
# Number added to the entries of a factor, relative to their mean: multiplicative rules never change
# zeros.
_LIFT = 1e-3


class Point(NamedTuple):
    """A batch of factors, with products and losses that an update needs."""

    loss: np.ndarray  # J(H), (n_starts,)
    H: np.ndarray  # (n_starts, n, k)
    AH: np.ndarray
    C: np.ndarray  # C(H), for which the gradient of J is 4 (C - AH)


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
    def wide(self):
        """Whether one product for several starts is faster than one product for each."""
        return self.A.wide

    def evaluate(self, H, AH=None):
        """Return the losses of a batch of factors, with AH, computed if it is None, and C(H)."""
        if AH is None:
            AH = self.A @ H
        C = matmul_rows(H, gram(H, H))
        loss = self.constant - 2 * inner_products(H, AH) + inner_products(H, C)
        return Point(loss, H, AH, C)

    def rescaled(self, at):
        """Return each factor times the number that minimises its loss; overwrite AH and C."""
        fit = inner_products(at.H, at.AH)
        size = inner_products(at.H, at.C)
        is_usable = (fit > 0) & (size > 0)
        square = np.divide(fit, size, out=np.ones_like(fit), where=is_usable)
        root = per_start(np.sqrt(square), at.H)
        loss = self.constant - 2 * square * fit + square**2 * size
        AH = np.multiply(at.AH, root, out=at.AH)  # in place, as AH can be large
        C = np.multiply(at.C, root**3, out=at.C)
        return Point(loss, root * at.H, AH, C)


def bregman_nmf(objective, H) -> Steps:
    r"""Minimise :math:`J(H)` over H >= 0 by accelerated Bregman proximal gradient steps.

    With the kernel :math:`h(H) = \frac a4 \|H\|^4`, a = 3, J/4 is smooth relative to h if A is
    positive semidefinite [1]_, and near any H but 0 for any other A. A step of length 1 / lambda
    from a point Y leads to

    .. math:: H^+ = r\,[\nabla h(Y) - \nabla (J/4)(Y) / \lambda]_+ , \quad r^3 = 1 / (a \|V\|^2) ,

    where V is the bracket. The step is accepted if

    .. math:: \tfrac14 J(H^+) \le \tfrac14 J(Y) + \langle \nabla (J/4)(Y), H^+ - Y \rangle
              + \lambda D_h(H^+, Y) ,

    which holds for lambda = 1 and semidefinite A. Longer steps are tried first, and lambda is
    doubled until the inequality holds. Y is extrapolated from H along the last step, as in [2]_,
    which needs no further product with A. Where J would rise, the step starts from H instead and
    the extrapolation restarts. So J never rises, for A of any sign.

    Parameters
    ----------
    objective : SymmetricObjective
    H : ndarray of shape (n_starts, n, k)
        Nonnegative starting factors.

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
    now = objective.rescaled(objective.evaluate(H))
    before = now
    inverse_step = np.ones(len(H))
    momentum = np.ones(len(H))
    while True:
        keep = yield (now.H,), now.loss
        now = Point._make(keep_starts(keep, *now))
        before = Point._make(keep_starts(keep, *before))
        inverse_step, momentum = keep_starts(keep, inverse_step, momentum)
        # Extrapolate along the last step.
        next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        share = (momentum - 1) / next_momentum
        base = now
        if share.any():
            part = per_start(share, now.H)
            Y = _extrapolate(before.H, now.H, part)
            AY = _extrapolate(before.AH, now.AH, part)  # products are linear
            base = objective.evaluate(Y, AY)
        # Take a step from the extrapolated point, and first try a longer one than the last.
        before = now
        tried = np.maximum(_LONGER * inverse_step, _SMALLEST_INVERSE)
        now, inverse_step, fell_back = _descend(objective, now, base, tried)
        momentum = np.where(fell_back & (share > 0), 1, next_momentum)


def _extrapolate(start, end, share):
    """Return the end of a step, moved farther by a share of the step."""
    return map_rows(lambda start, end: (end - start) * share + end, start, end)


def _descend(objective, now, base, inverse_step):
    """Take a step from a base point, or from the current one if the loss would rise.

    Parameters
    ----------
    objective : SymmetricObjective
    now : Point
        The current point.
    base : Point
        The current point, or a point ahead of it, which is overwritten.
    inverse_step : ndarray of shape (n_starts,)
        Inverse length of the first step to try.

    Returns
    -------
    point : Point
        The new point.
    inverse_step : ndarray of shape (n_starts,)
        Inverse length of the step that was taken.
    fell_back : ndarray of shape (n_starts,), bool
        Whether the step was taken from `now`.
    """
    eps = float(np.finfo(now.H.dtype).eps)  # the constant may overflow in float32
    slack = 8 * eps * objective.constant
    inverse_step = inverse_step.copy()
    fell_back = np.full(len(now.H), base is now)
    Y = base.H
    gradient = map_rows(np.subtract, base.C, base.AH)
    level = base.loss
    square_norm = inner_products(Y, Y)
    new = None
    trying = np.arange(len(Y))
    while len(trying):
        # Try a step for all starts that have not accepted one yet.
        again = None if new is None else trying
        old, slope, inverse, old_square = keep_starts(
            again, Y, gradient, inverse_step, square_norm
        )
        trial = objective.evaluate(_proximal_step(old, slope, old_square, inverse))
        # For the step D, <slope, D> + inverse D_h(trial, old) bounds the growth of J/4, where
        # D_h = a/4 (2 ||old||^2 ||D||^2 + (||trial||^2 - ||old||^2)^2).
        square, along, down = sum_rows(_products_of_step, old, trial.H, slope)
        growth_of_square = 2 * along + square
        divergence = 2 * old_square * square + growth_of_square**2
        growth = down + inverse * QUARTIC_BOUND / 4 * divergence
        bound = level[trying] + 4 * growth + slack
        is_smooth = (trial.loss <= bound) | (inverse >= _LARGEST_INVERSE)
        is_descent = fell_back[trying] | (trial.loss <= now.loss[trying])
        accepted = is_smooth & is_descent
        if new is None:
            new = trial  # later trials overwrite rejected steps
        else:
            for target, value in zip(new, trial, strict=True):
                target[trying[accepted]] = value[accepted]
        # Shorten steps that are too long. Where the loss would rise, start from the current point.
        inverse_step[trying[~is_smooth]] *= 2
        rising = trying[is_smooth & ~accepted]
        if len(rising):
            fell_back[rising] = True
            Y[rising] = now.H[rising]
            gradient[rising] = now.C[rising] - now.AH[rising]
            level[rising] = now.loss[rising]
            square_norm[rising] = inner_products(now.H[rising], now.H[rising])
        trying = trying[~accepted]
    return new, inverse_step, fell_back


def _proximal_step(H, gradient, square_norm, inverse_step):
    """Return r V, where V = [a ||H||^2 H - gradient / inverse_step]_+ and a r^3 ||V||^2 = 1.

    V is divided by a ||H||^2, because cubes of small entries would underflow.
    """
    step = -safe_inverse(QUARTIC_BOUND * inverse_step * square_norm)
    step = per_start(step, H)  # 0 if H is 0, where the gradient is 0, too
    V = map_rows(lambda H, G: np.maximum(G * step + H, 0), H, gradient)
    V *= per_start(np.cbrt(safe_ratio(square_norm, inner_products(V, V))), H)
    return V


def _products_of_step(start, end, slope):
    """Return <D, D>, <start, D> and <slope, D>, (3, n_starts), where D = end - start."""
    D = end - start
    along = block_inner_products(start, D)
    down = block_inner_products(slope, D)
    return np.stack([block_inner_products(D, D), along, down])


@dataclass(frozen=True)
class Factorization:
    """The kept factors, and the losses of all runs.

    Attributes
    ----------
    best : Solution
        The best run. Its factors are H of ``HH'``, or Q and S of ``QSQ'`` with unit columns in Q.
    curves : list of ndarray
        Loss curves of all starts, the kept one first.
    scale : float
        Loss that `tol` is a fraction of: the loss of zero factors, or that of `best`.
    """

    best: Solution
    curves: list
    scale: float

    @property
    def loss(self):
        """Loss of the kept factors, at least 0, as rounding can make it negative."""
        return max(self.best.loss, 0.0)

    @property
    def loss_curves(self):
        """Loss curves of all starts, at least 0."""
        return [np.maximum(curve, 0) for curve in self.curves]

    @property
    def H(self):  # noqa: N802
        """H of ``HH'``, (n, k)."""
        return symmetric_factor(self.best)

    @property
    def parts(self):
        """F (n, k) and M (k, k) of the fitted ``FMF'``."""
        F, *core = self.best.factors
        return F, core[0] if core else np.eye(F.shape[1], dtype=F.dtype)

    @property
    def core(self):
        """S of ``QSQ'`` with unit columns in Q, (k, k)."""
        F, *core = self.best.factors
        return core[0] if core else np.diag((F**2).sum(axis=0))


def symmetric_factor(solution):
    """Return H of ``HH'``, (n, k), or ``Q S^1/2`` of ``QSQ'`` with the diagonal of S."""
    F, *core = solution.factors
    return F * np.sqrt(np.diagonal(core[0])) if core else F


class Problem:
    """A similarity to factorize: its objective, its starts, and subsamples of its rows.

    A row may stand for several samples.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    constant : float, default=None
        Loss of the zero factor; the squared norm of A by default.
    mass : ndarray of shape (n,), default=None
        Weight of every row, 1 by default. It is the number of samples that the row stands for. If A
        is normalised, it is multiplied by the number by whose root the row was divided.
    init_similarity : Similarity of shape (n, n), default=None
        The similarity whose leading eigenvectors make the first start; A by default.
    wanted : ndarray of shape (n,), bool, default=None
        Rows that are preferred in a part, where they make up to half; none by default.
    rows : ndarray of int, default=None
        Positions of the rows in the whole problem, if this one is a part.

    Attributes
    ----------
    objective : SymmetricObjective
    has_reliable_start : bool
        Whether only the first start runs on many rows. Set it if no other start has ever won.
    name : str
        Name of the problem in the log.
    polish_tol, polish_min_iter : float, int
        Smallest decrease over ten updates, and smallest number of updates, for a factor that was
        extended from a subsample of the rows and has almost converged.
    """

    polish_tol = 1e-5  # small, as a cluster can be a small part of a similarity
    polish_min_iter = 5  # enough to show whether the extended factor has converged
    has_reliable_start = False
    rank = staticmethod(loss_of)  # the figure by which runs are ranked

    def __init__(
        self,
        A,
        *,
        constant=None,
        mass=None,
        init_similarity=None,
        wanted=None,
        rows=None,
    ):
        n = A.shape[0]
        self.objective = SymmetricObjective(
            A, A.squared_norm() if constant is None else constant
        )
        self.name = f"{n} rows"
        self.init_similarity = A if init_similarity is None else init_similarity
        self.mass = np.ones(n) if mass is None else mass
        self.wanted = np.zeros(n, dtype=bool) if wanted is None else wanted
        self.rows = rows

    def __len__(self):
        return len(self.mass)

    def starts(self, config, rng):
        """Return one start from eigenvectors, and random ones."""
        k = config.n_clusters
        dtype = self.objective.A.dtype
        random = [
            partial(random_start, self.mass, k, seed, dtype)
            for seed in draw_seeds(rng, config.n_init - 1)
        ]
        return [partial(spectral_start, self.init_similarity, k), *random]

    def eigenvector_labels(self, n_clusters):
        """Return the clusters of k-means on leading eigenvectors, (n,), int."""
        A = self.init_similarity
        _, vectors = leading_eigenpairs(A, min(n_clusters, len(self)))
        return cluster_eigenvectors(vectors, self.mass)

    def part(self, size, rng):
        """Return the problem of `size` rows, or None for a sparse graph, which would fall apart."""
        if not self.init_similarity.can_be_thinned:
            return None
        rows = np.sort(draw_preferring(self.wanted, size, rng))
        return Problem(
            self.objective.A.take(rows),
            mass=self.mass[rows],
            init_similarity=self.init_similarity.take(rows),
            rows=rows,
        )

    def extended(self, part, H):
        """Return the factor of all rows that best fits the factor of a part."""
        padded = np.zeros((len(self), H.shape[1]), dtype=H.dtype)
        padded[part.rows] = H
        return fitted_factor(self.init_similarity @ padded, H.T @ H)


def factorize(
    problem,
    config,
    rng,
    coarse_size=None,
):
    """Factorize a similarity, and return the best of several runs.

    With more than `coarse_size` rows, the starts run on a part with so many rows. The best factor
    is extended to all rows and improved there, and the loss curves of the part are scaled to all
    rows. If the first start is reliable, only this start runs, on all rows.
    """
    objective = problem.objective
    part = None
    if coarse_size is not None and len(problem) > coarse_size:
        if problem.has_reliable_start:
            config = replace(_polishing(config, problem), n_init=1)
        else:
            part = problem.part(coarse_size, rng)
    if part is None:
        starts = problem.starts(config, rng)
        solutions = run_starts(
            objective, starts, config, problem.name, rank=problem.rank
        )
        curves = [solution.history for solution in solutions]
        return Factorization(solutions[0], curves, objective.constant)
    of_part = factorize(part, config, rng)
    start = problem.extended(part, of_part.H)
    config = _polishing(config, problem)
    [best] = run_starts(objective, [lambda: start], config, problem.name)
    scale = objective.constant / of_part.scale
    curves = [best.history, *[curve * scale for curve in of_part.curves]]
    return Factorization(best, curves, objective.constant)


def _polishing(config, problem):
    """Return the configuration of a run from a good start."""
    tol = config.tol
    if tol >= 0:  # a negative value runs all updates
        tol = max(tol, problem.polish_tol)
    return replace(config, tol=tol, min_iter=problem.polish_min_iter)


def updated_factor(objective, H, n_updates):
    """Return a factor (n, k) after `n_updates` updates of `bregman_nmf`."""
    steps = bregman_nmf(objective, H[None])
    for _ in range(n_updates):
        next(steps)
    [factor], _ = next(steps)
    return factor[0]


def fitted_factor(B, G):
    """Return rows h > 0 that approximately minimise ``h'Gh - 2 b'h``."""
    # The factor is improved afterwards, so a low accuracy is enough.
    H = approximate_nnls_rows(B, G, max_sweeps=20, resolution=1e-3)
    return np.add(H, _LIFT * H.mean(), out=H)
