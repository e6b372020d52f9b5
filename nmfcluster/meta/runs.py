"""Many NMF runs, and their clusters side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.storage import largest
from nmfcluster._base import hard_labels
from nmfcluster._engine.executor import Plan
from nmfcluster._engine.loop import Solution, loss_of
from nmfcluster._engine.starts import draw_seeds
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.objectives import Objective
from nmfcluster.meta.resampling import RandomStart, Resampled, on_seen
from nmfcluster.meta.squares import MatrixObjective, unit_rows
from nmfcluster.partitions.making import range_of_clusters

_MUCH = 1.1  # times the loss of the best run: a larger loss at the end is warned of
_NOTHING = 1e-6  # of the loss of zero factors, added to it: losses next to 0 do not compare
_SMALL = 2**16  # entries of X up to which threads wait for each other, and one is faster
_ALIKE = 1e-6  # clusters whose columns have a cosine nearer to 1 count as one


@dataclass(frozen=True)
class Runs:
    """The clusters of all runs, the run with the smallest loss first.

    Attributes
    ----------
    W : ndarray of shape (J, n)
        Their rows: W transposed, one row a cluster.
    H : ndarray of shape (J, p)
        Their columns, scaled to length 1 (eq. 7); W has taken up the lengths.
    sizes : ndarray of shape (n_runs,), int
        Number of clusters of every run.
    losses : ndarray of shape (n_runs,)
    converged : ndarray of shape (n_runs,), bool
    """

    W: np.ndarray
    H: np.ndarray
    sizes: np.ndarray
    losses: np.ndarray
    converged: np.ndarray

    @classmethod
    def of(cls, solutions: list[Solution]) -> Runs:
        """Put the clusters of solutions together; the list is emptied, so that W is held once."""
        sizes = np.array([len(solution.factors[1]) for solution in solutions])
        losses = np.array([solution.loss for solution in solutions])
        converged = np.array([solution.converged for solution in solutions])
        H, lengths = unit_rows(np.concatenate([solution.factors[1] for solution in solutions]))
        one = solutions[0].factors[0]
        W, end = np.empty((len(H), len(one)), dtype=one.dtype), len(H)
        while solutions:
            own = solutions.pop().factors[0].T
            W[end - len(own) : end] = own
            end -= len(own)
        W *= lengths
        return cls(W, H, sizes, losses, converged)

    def __len__(self) -> int:
        return len(self.sizes)

    def slices(self) -> list[slice]:
        """Return where the clusters of every run are."""
        ends = np.cumsum(self.sizes)
        return [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]

    def partitions(self) -> np.ndarray:
        """Return the largest cluster of every row in every run, (n, n_runs); -1: in none."""
        return np.stack([hard_labels(self.W[run].T) for run in self.slices()], axis=1)

    def taken(self, clusters: np.ndarray) -> Runs:
        """Return the runs with some of their clusters, given in order; some may have none."""
        own = np.repeat(np.arange(len(self)), self.sizes)[clusters]
        sizes = np.bincount(own, minlength=len(self))
        return replace(self, W=self.W[clusters], H=self.H[clusters], sizes=sizes)

    def start(self, run: int, n_clusters: int) -> np.ndarray:
        """Return the positions of the largest clusters of a run, then of the next where it has few.

        A cluster is as large as its row of W is long.
        """
        slices = self.slices()
        ranked = [
            part.start + np.argsort(-np.linalg.norm(self.W[part], axis=1), kind="stable")
            for part in slices[run:] + slices[:run]
        ]
        return np.concatenate(ranked)[:n_clusters]


def draw_sizes(
    n_runs: int,
    n_clusters: int,
    base_n_clusters: Any,
    rng: np.random.RandomState,
    n_fixed: int = 0,
) -> np.ndarray:
    """Return the number of clusters of every run; together they have at least `n_clusters`.

    The first `n_fixed` of each are the same.
    """
    if base_n_clusters is None:
        return np.full(int(n_runs), int(n_clusters))
    low, high = range_of_clusters(base_n_clusters, "base_n_clusters")
    if low < n_fixed:
        raise ValueError(
            f"base_n_clusters={base_n_clusters} must be at least the number of fixed_components, "
            f"{n_fixed}."
        )
    sizes = rng.randint(low, high + 1, size=n_runs)
    if (sizes - n_fixed).sum() < n_clusters - n_fixed:
        raise ValueError(
            f"n_estimators={n_runs} runs with base_n_clusters={base_n_clusters} have {sizes.sum()} "
            f"clusters, which must be at least n_clusters={n_clusters}."
        )
    return sizes


def run_many(
    objective: Objective,
    plan: Plan,
    sizes: np.ndarray,
    rng: np.random.RandomState,
    resample: str | float | None = None,
    weights: np.ndarray | None = None,
) -> Runs:
    """Factorize X from random starts, once for each number of clusters in `sizes`.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    plan : Plan
        With the solver of the runs.
    sizes : ndarray of shape (n_runs,), int
    rng : RandomState
    resample : str, float or None, default=None
        How tables are drawn that runs see in the place of X, see `resampling.Resampled`.
    weights : ndarray of shape (n,), default=None
        How often every sample counts; one with 0 is in no cluster of a run.

    Returns
    -------
    Runs

    Raises
    ------
    ValueError
        If a loss is not finite, or if all runs end at 0: the penalty is too heavy; if a run has
        more clusters than there are samples.
    """
    weighted = objective.weighted(weights)
    X, solutions = weighted.X, []
    if sizes.max() > X.shape[0]:
        raise ValueError(f"base_n_clusters={sizes.max()} must be at most n_samples={X.shape[0]}.")
    high = 2 * float(np.sqrt(X.mean(dtype=np.float64)))  # so that WH has the mean of X
    # one after the other, so that the first runs are the same however many there are
    drawn = draw_seeds(rng, len(sizes) * (1 if resample is None else 2))
    seeds, tables = (drawn, drawn) if resample is None else (drawn[::2], drawn[1::2])
    makers = [
        RandomStart(sum(X.shape), high, X.dtype, int(size), seed, table)
        for size, seed, table in zip(sizes, seeds, tables, strict=True)
    ]
    plan = plan.stopping(race_from=None)  # each is a member of the ensemble
    if X.size <= _SMALL:  # of a sparse one: entries that are stored
        plan = replace(plan, n_jobs=1)
    given: Any = weighted
    if resample is not None:
        given = Resampled(objective, resample, weights)
        plan = replace(plan, solver=partial(on_seen, plan.solver))
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows an overflow
            for size in np.unique(sizes):
                starts = [maker for maker in makers if maker.size == size]
                solutions += plan.run(given, starts, f"runs of {size} clusters")
    except FloatingPointError as error:
        raise ValueError(
            f"{_cause(objective)}, make losses that {X.dtype} cannot hold: the sparsity must "
            "be smaller, or X scaled, or its range be less wide."
        ) from error
    solutions.sort(key=loss_of)
    if resample is not None:
        for i, solution in enumerate(solutions):
            solutions[i] = _with_all_rows(weighted, solution)
    runs = Runs.of(solutions)
    if not runs.W.any():
        raise ValueError(_why_nothing(objective, resample))
    return runs


def _with_all_rows(objective: Objective, solution: Solution) -> Solution:
    """Return a solution whose rows of 0, those that the run did not see, are fitted to X."""
    W, H = solution.factors
    unseen = np.flatnonzero(~W.any(axis=1))
    if len(unseen):
        W = W.copy()
        W[unseen] = objective.near_rows(H)[unseen]
    return replace(solution, factors=(W, H))


def _why_nothing(objective: Objective, resample: str | float | None) -> str:
    if isinstance(objective, MatrixObjective) and objective.sparsity:
        return f"{_cause(objective)}, leave nothing of X: the sparsity must be smaller."
    return (
        f"resample={resample!r} lets runs see tables without an entry above 0, of an X with "
        f"entries up to {largest(objective.X):.3g}: give counts, and not shares of them, or more "
        "rows."
    )


def _cause(objective: Objective) -> str:
    if isinstance(objective, Divergence) or not objective.sparsity:
        return f"entries of X, up to {largest(objective.X):.3g}"
    return (
        f"sparsity={objective.sparsity} with penalty={objective.penalty!r}, and X with entries up "
        f"to {largest(objective.X):.3g}"
    )


def compare_with_runs(
    runs: Runs, end: Factorization, plan: Plan, constant: float, comparable: bool
) -> None:
    """Warn where runs had no time to converge, or where one of them fits much better.

    Losses compare if the last factorization made an update, and if runs have as many clusters and
    saw X itself.
    """
    lost = np.count_nonzero(~runs.converged)
    if lost:
        warn(
            f"{lost} of the {len(runs)} runs did not converge within max_iter={plan.stop.max_iter} "
            "updates. Increase max_iter or tol.",
            ConvergenceWarning,
        )
    best, loss = runs.losses[0], end.best.loss
    comparable = comparable and end.best.n_iter > 0 and bool((runs.sizes == plan.n_clusters).all())
    if comparable and loss > _MUCH * best + _NOTHING * constant:
        warn(
            f"What recurs in the runs fits X less well than the best of them: loss {loss:.4g} "
            f"against {best:.4g}. More runs or n_init can help; n_estimators=1 is a single run."
        )


def n_distinct(W: np.ndarray, H: np.ndarray) -> int:
    """Return the number of clusters that are neither 0 nor equal to another one.

    A cluster also counts if it overlaps with others and is the strongest of no sample.
    """
    alike = np.triu(H @ H.T, 1) > 1 - _ALIKE
    return int((W.any(axis=0) & ~alike.any(axis=0)).sum())
