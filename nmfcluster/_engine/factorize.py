"""From a similarity or an ensemble of partitions to its factor: starts, runs, coarse to fine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from nmfcluster._arrays.labels import one_hot
from nmfcluster._arrays.least_squares import nonnegative_rows
from nmfcluster._engine.run import Solution, Steps, restart
from nmfcluster._engine.starts import label_start, random_start, spectral_start
from nmfcluster._engine.symmetric import SymmetricObjective
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.similarity import Similarity
from nmfcluster.similarity.measures import squared_norm

# A factor that was extended to all rows is all but converged. Decreases worth an update, or
# ten of them, relative to the loss of the zero factor:
_POLISH_TOL = 1e-4  # partitions
_IMPROVE_TOL = 1e-5  # other similarities, of which the clusters can be a small part

Start = Callable[[], np.ndarray]


class Objective(Protocol):
    """What a run must know of an objective; the solver knows the rest."""

    @property
    def constant(self) -> float:
        """What a decrease of the loss is measured by."""

    @property
    def wide(self) -> bool:
        """Whether several starts side by side are faster than one after the other."""


@dataclass(frozen=True)
class Plan:
    """How an estimator wants its factorization run.

    Attributes
    ----------
    n_clusters : int
    solver : callable
        Makes a solver's generator from an objective and starts.
    n_init, max_iter, tol, n_jobs
        The estimator's parameters.
    say : callable
        Takes a line that reports progress.
    of_loss : bool, default=False
        Whether `tol` is relative to the loss itself, as in `iterate`.
    """

    n_clusters: int
    solver: Callable[[Any, np.ndarray], Steps]
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None
    say: Callable[[str], None]
    of_loss: bool = False

    def run(
        self,
        objective: Objective,
        starts: list[Start],
        rank: Callable[[Solution], float],
        what: str,
        **options: Any,
    ) -> list[Solution]:
        """Run the solver from all starts and return the solutions, the best first."""
        began = time.perf_counter()
        solutions = restart(
            partial(self.solver, objective),
            starts,
            rank=rank,
            max_iter=self.max_iter,
            tol=self.tol,
            scale=objective.constant,
            of_loss=self.of_loss,
            wide=objective.wide,
            n_jobs=self.n_jobs,
            **options,
        )
        best = solutions[0]
        self.say(
            f"{what}, {len(solutions)} start(s): best loss {best.loss:.6g} after {best.n_iter} "
            f"updates, {time.perf_counter() - began:.2f} s"
        )
        return solutions


@dataclass(frozen=True)
class Factorization:
    """The factor that was kept, with what is reported of the runs.

    Attributes
    ----------
    best : Solution
        The kept run.
    curves : list of ndarray
        Loss curves of all starts, the kept one first.
    scale : float
        What a decrease was measured by: the loss of the zero factor, or that of `best`.
    """

    best: Solution
    curves: list[np.ndarray]
    scale: float

    @property
    def H(self) -> np.ndarray:  # noqa: N802
        """The factor H of ``HH'``, (n, k); ``Q S^1/2`` for a tri-factorization."""
        return factor_of(self.best)

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """F (n, k) and M (k, k) of what was fitted, ``FMF'``; M is the identity for ``HH'``."""
        F, *rest = self.best.factors
        return F, rest[0] if rest else np.eye(F.shape[1], dtype=F.dtype)

    @property
    def core(self) -> np.ndarray:
        """S of ``QSQ'`` with unit columns in Q, (k, k)."""
        if len(self.best.factors) > 1:
            return self.best.factors[1]
        return np.diag((self.best.factors[0] ** 2).sum(axis=0))


def factor_of(solution: Solution) -> np.ndarray:
    """Return H of ``HH'``, (n, k); ``Q S^1/2`` for a tri-factorization with diagonal S."""
    if len(solution.factors) == 1:
        return solution.factors[0]
    Q, S = solution.factors
    return Q * np.sqrt(np.diagonal(S))


def factorize(
    A: Similarity,
    plan: Plan,
    rng: np.random.RandomState,
    *,
    constant: float | None = None,
    mass: np.ndarray | None = None,
    friendly: Similarity | None = None,
    wanted: np.ndarray | None = None,
    coarse_size: int | None = None,
) -> Factorization:
    """Factorize a similarity; the run with the smallest loss is kept.

    With more rows than `coarse_size`, unless they are those of a sparse graph, the starts are run
    on that many of them drawn at random, and the best is extended to all and improved there.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    plan : Plan
    rng : RandomState
    constant : float, default=None
        Loss of the zero factor; the squared norm of A by default.
    mass : ndarray of shape (n,), default=None
        Number of samples that each row stands for; 1 by default.
    friendly : Similarity of shape (n, n), default=None
        Whose leading eigenvectors make the first start; A by default.
    wanted : ndarray of shape (n,), bool, default=None
        Rows that make up to half of those drawn; none by default.
    coarse_size : int, default=None
        None: all starts are run on all rows.

    Returns
    -------
    Factorization
    """
    n = A.shape[0]
    friendly = A if friendly is None else friendly
    mass = np.ones(n) if mass is None else mass
    objective = SymmetricObjective(A, squared_norm(A) if constant is None else constant)
    if coarse_size is not None and n > coarse_size and friendly.can_be_thinned:
        rows = _drawn(n, wanted, coarse_size, rng)
        part = factorize(A.take(rows), plan, rng, mass=mass[rows], friendly=friendly.take(rows))
        gentle = _gentle(plan, _IMPROVE_TOL)
        H = _extended(friendly, rows, part.H)
        return _improved(gentle, objective, H, part, f"{n} rows", min_iter=5)
    starts: list[Start] = [partial(spectral_start, friendly, plan.n_clusters)]
    starts += [_random(mass, plan, seed, A.dtype) for seed in draw_seeds(rng, plan.n_init - 1)]
    return _best(plan.run(objective, starts, loss_of, f"{n} rows"), objective)


def _drawn(n: int, wanted: np.ndarray | None, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw rows, up to half of them from those that are wanted, and return them in their order."""
    order = rng.permutation(n)
    if wanted is not None:
        first = order[wanted[order]][: size // 2]
        order = np.concatenate([first, order[~np.isin(order, first)]])
    return np.sort(order[:size])


def _extended(A: Similarity, rows: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return the factor of all rows that fits best to the factor of some of them."""
    padded = np.zeros((A.shape[0], h.shape[1]), dtype=h.dtype)
    padded[rows] = h
    return _lifted(nonnegative_rows(A @ padded, h.T @ h, max_sweeps=20, resolution=1e-3))


def _best(solutions: list[Solution], objective: SymmetricObjective) -> Factorization:
    return Factorization(solutions[0], [s.history for s in solutions], objective.constant)


def _improved(
    plan: Plan,
    objective: SymmetricObjective,
    H: np.ndarray,
    part: Factorization,
    what: str,
    min_iter: int,
) -> Factorization:
    """Improve the factor of all rows that was extended from a part of them.

    The curves of the starts on the part are scaled to all rows.
    """
    [improved] = plan.run(objective, [lambda: H], loss_of, what, min_iter=min_iter)
    scale = objective.constant / part.scale
    curves = [improved.history, *(curve * scale for curve in part.curves)]
    return Factorization(improved, curves, objective.constant)


def _gentle(plan: Plan, tol: float) -> Plan:
    """Return a plan that stops earlier; a negative tolerance stays, which asks for all updates."""
    return replace(plan, tol=max(plan.tol, tol)) if plan.tol >= 0 else plan


def _lifted(H: np.ndarray) -> np.ndarray:
    return H + 1e-3 * H.mean()  # a zero would be final for a multiplicative rule


def factorize_ensemble(
    ensemble: Ensemble,
    plan: Plan,
    rng: np.random.RandomState,
    dtype: np.dtype,
    coarse_size: int | None = None,
) -> Factorization:
    """Factorize the co-association of an ensemble; the run with the smallest hard loss is kept.

    With more distinct label rows than `coarse_size`, the starts are run on that many samples
    drawn at random, and the best is extended to all rows and improved there.
    """
    if coarse_size is None or len(ensemble) <= coarse_size:
        return _run_starts(ensemble, plan, rng, dtype)
    coarse = ensemble.sample(coarse_size, rng)
    part = _run_starts(coarse, plan, rng, dtype)
    # the extension is all but converged: stop as soon as an update gains next to nothing
    gentle = _gentle(plan, _POLISH_TOL)
    H = extend_factor(coarse, part.H, ensemble)
    objective, what = _objective(ensemble, dtype), f"{len(ensemble)} label rows"
    return _improved(gentle, objective, H, part, what, min_iter=1)


def extend_factor(coarse: Ensemble, H: np.ndarray, ensemble: Ensemble) -> np.ndarray:
    """Return the factor of an ensemble that fits best to the factor of a part of its samples.

    Parameters
    ----------
    coarse : Ensemble
        Of the part, with the partitions and clusters of `ensemble`.
    H : ndarray of shape (m_coarse, k)
        Its collapsed factor.
    ensemble : Ensemble

    Returns
    -------
    ndarray of shape (m, k)
        For every row the nonnegative least squares fit of its similarities to the part.
    """
    rows = H / np.sqrt(coarse.counts)[:, None]
    profile = ensemble.cluster_weights[:, None] * coarse.contingency(rows)
    weighted = rows * coarse.counts[:, None]
    if ensemble.observed is None:
        G = weighted.T @ rows
    else:  # a row is compared with the samples that its partitions saw
        k = H.shape[1]
        pairs = (weighted[:, :, None] * rows[:, None, :]).reshape(-1, k * k)
        seen = np.asarray((coarse.codes >= 0).T @ pairs) * ensemble.weights[:, None]
        G = (ensemble.observed @ seen).reshape(-1, k, k)
    fitted = _lifted(nonnegative_rows(ensemble.spread(profile), G, max_sweeps=20, resolution=1e-3))
    return (fitted * np.sqrt(ensemble.counts)[:, None]).astype(H.dtype)


def _run_starts(
    ensemble: Ensemble, plan: Plan, rng: np.random.RandomState, dtype: np.dtype
) -> Factorization:
    objective = _objective(ensemble, dtype)

    def hard_loss(solution: Solution) -> float:
        labels = factor_of(solution).argmax(axis=1)
        return ensemble.hard_loss(one_hot(labels, plan.n_clusters))

    starts = _starts(ensemble, objective.A, plan, rng, dtype)
    return _best(plan.run(objective, starts, hard_loss, f"{len(ensemble)} label rows"), objective)


def _objective(ensemble: Ensemble, dtype: np.dtype) -> SymmetricObjective:
    incomplete = ensemble.observed is not None
    return SymmetricObjective(
        ensemble.similarity(dtype),
        ensemble.constant,
        ensemble.observed,
        ensemble.weights if incomplete else None,
    )


def _starts(
    ensemble: Ensemble, A: Similarity, plan: Plan, rng: np.random.RandomState, dtype: np.dtype
) -> list[Start]:
    """Make the starts: one from eigenvectors, then in turn random and from a base partition."""
    mass = ensemble.counts.astype(np.float64)
    ranking = np.empty(0, dtype=int)
    if plan.n_init > 2:
        ranking = np.argsort(ensemble.hard_losses_of_partitions(), kind="stable")
    starts: list[Start] = [partial(spectral_start, A, plan.n_clusters)]
    for i, seed in enumerate(draw_seeds(rng, plan.n_init - 1)):
        if i % 2 and i // 2 < len(ranking):
            labels = ensemble.codes[:, ranking[i // 2]]
            starts.append(partial(_labelled, labels, mass, plan, seed, dtype))
        else:
            starts.append(_random(mass, plan, seed, dtype))
    return starts


def _random(mass: np.ndarray, plan: Plan, seed: int, dtype: np.dtype) -> Start:
    return lambda: random_start(mass, plan.n_clusters, np.random.RandomState(seed), dtype)


def _labelled(
    labels: np.ndarray, mass: np.ndarray, plan: Plan, seed: int, dtype: np.dtype
) -> np.ndarray:
    return label_start(labels, mass, plan.n_clusters, np.random.RandomState(seed), dtype)


def draw_seeds(rng: np.random.RandomState, size: int) -> list[int]:
    """Draw the seeds of starts before any of them runs."""
    return [int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=size)]


def loss_of(solution: Solution) -> float:
    """Return the figure that runs are mostly ranked by."""
    return solution.loss
