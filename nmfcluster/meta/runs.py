"""From many NMF runs to metaclusters: the runs, their clusters side by side, what recurs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import nmfcluster.meta.solvers as solvers
from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.labels import one_hot
from nmfcluster._arrays.storage import largest
from nmfcluster._arrays.threads import one_thread
from nmfcluster._base import hard_labels
from nmfcluster._engine.run import Plan, Start
from nmfcluster._engine.starts import draw_seeds
from nmfcluster._engine.stopping import Solution, loss_of
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.meta.solvers import MatrixObjective
from nmfcluster.partitions.making import range_of_clusters

_MIN_ITER = 10  # updates of a metaclustering: its starts are close to where it ends
_SAME = 1e-4  # of the loss of zero factors: optima that differ by less count as one
_LIFT = 0.05  # of a factor's mean, added to a start: an entry of 0 could stay there
_MUCH = 1.1  # times the loss of the best run: a larger loss at the end is warned of
_NOTHING = 1e-6  # of the loss of zero factors, added to it: losses next to 0 do not compare
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
        """Put the clusters of solutions together."""
        W = np.concatenate([solution.factors[0].T for solution in solutions])
        H, lengths = unit_rows(np.concatenate([solution.factors[1] for solution in solutions]))
        return cls(
            W * lengths,
            H,
            np.array([len(solution.factors[1]) for solution in solutions]),
            np.array([solution.loss for solution in solutions]),
            np.array([solution.converged for solution in solutions]),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def slices(self) -> list[slice]:
        """Return where the clusters of every run are."""
        ends = np.cumsum(self.sizes)
        return [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]

    def partitions(self) -> np.ndarray:
        """Return the largest cluster of every row in every run, (n, n_runs); -1: in none."""
        return np.stack([hard_labels(self.W[run].T) for run in self.slices()], axis=1)

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


@dataclass(frozen=True)
class Metaclusters:
    r"""What recurs in the runs.

    Attributes
    ----------
    correspondence : ndarray of shape (J, k)
        How much of every metacluster is in every cluster of the runs: :math:`\alpha`, whose
        columns sum to the number of runs.
    columns : ndarray of shape (k, p)
        The prototypes :math:`\gamma`.
    """

    correspondence: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, correspondence: np.ndarray, columns: np.ndarray, n_runs: int) -> Metaclusters:
        """Scale columns of alpha to sum to the number of runs, and rows of gamma to length 1."""
        total = correspondence.sum(axis=0)
        return cls(correspondence * (n_runs / np.where(total > 0, total, 1)), unit_rows(columns)[0])


def unit_rows(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return H with rows of length 1, rows of zeros as they are, and the lengths, (k, 1)."""
    lengths = np.linalg.norm(H, axis=1, keepdims=True)
    return H / np.where(lengths > 0, lengths, 1), lengths


# --- many runs ---------------------------------------------------------------------------------


def draw_sizes(
    n_runs: int, n_clusters: int, base_n_clusters: Any, rng: np.random.RandomState
) -> np.ndarray:
    """Return the number of clusters of every run; together they have at least `n_clusters`."""
    if base_n_clusters is None:
        return np.full(int(n_runs), int(n_clusters))
    low, high = range_of_clusters(base_n_clusters, "base_n_clusters")
    sizes = rng.randint(low, high + 1, size=n_runs)
    if sizes.sum() < n_clusters:
        raise ValueError(
            f"n_estimators={n_runs} runs with base_n_clusters={base_n_clusters} have {sizes.sum()} "
            f"clusters, which must be at least n_clusters={n_clusters}."
        )
    return sizes


def run_many(
    objective: MatrixObjective, plan: Plan, sizes: np.ndarray, rng: np.random.RandomState
) -> Runs:
    """Factorize X from random starts, once for each number of clusters in `sizes`.

    Parameters
    ----------
    objective : MatrixObjective
    plan : Plan
        With the solver of the runs.
    sizes : ndarray of shape (n_runs,), int
    rng : RandomState

    Returns
    -------
    Runs

    Raises
    ------
    ValueError
        If a loss is not finite, or if all runs end at 0: the penalty is too heavy; if a run has
        more clusters than there are samples.
    """
    X, solutions = objective.X, []
    if sizes.max() > X.shape[0]:
        raise ValueError(f"base_n_clusters={sizes.max()} must be at most n_samples={X.shape[0]}.")
    high = 2 * float(np.sqrt(X.mean(dtype=np.float64)))  # so that WH has the mean of X
    start = partial(_random_factors, sum(X.shape), high, X.dtype)  # without X: it may be sent far
    seeds = np.array(draw_seeds(rng, len(sizes)))
    plan = plan.stopping(race_from=None)  # each is a member of the ensemble
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows an overflow
            for size in np.unique(sizes):
                starts = [partial(start, int(size), int(seed)) for seed in seeds[sizes == size]]
                solutions += plan.run(objective, starts, f"runs of {size} clusters")
            runs = Runs.of(sorted(solutions, key=loss_of))
    except FloatingPointError as error:
        raise ValueError(
            f"{_cause(objective)}, make losses that {X.dtype} cannot hold: the sparsity must "
            "be smaller, or X scaled, or its range be less wide."
        ) from error
    if not runs.W.any():
        raise ValueError(f"{_cause(objective)}, leave nothing of X: the sparsity must be smaller.")
    return runs


def _random_factors(width: int, high: float, dtype: np.dtype, size: int, seed: int) -> np.ndarray:
    """Return both factors of a product of `size` clusters side by side, drawn uniformly."""
    F = np.random.RandomState(seed).uniform(size=(size, width))
    return (F * (high / np.sqrt(size))).astype(dtype)


def _cause(objective: MatrixObjective) -> str:
    return (
        f"sparsity={objective.sparsity} with penalty={objective.penalty!r}, and X with entries up "
        f"to {largest(objective.X):.3g}"
    )


def compare_with_runs(runs: Runs, end: Factorization, plan: Plan, constant: float) -> None:
    """Warn where runs had no time to converge, or where one of them fits much better.

    Losses compare if the last factorization made an update, and if runs have as many clusters.
    """
    lost = np.count_nonzero(~runs.converged)
    if lost:
        warn(
            f"{lost} of the {len(runs)} runs did not converge within max_iter={plan.stop.max_iter} "
            "updates. Increase max_iter or tol.",
            ConvergenceWarning,
        )
    best, loss = runs.losses[0], end.best.loss
    comparable = end.best.n_iter and (runs.sizes == plan.n_clusters).all()
    if comparable and loss > _MUCH * best + _NOTHING * constant:
        warn(
            f"What recurs in the runs fits X less well than the best of them: loss {loss:.4g} "
            f"against {best:.4g}. More runs or n_init can help; n_estimators=1 is a single run."
        )


# --- metaclusters ------------------------------------------------------------------------------


def _optima(
    objective: Any, solver: Callable[..., Any], plan: Plan, starts: list[np.ndarray]
) -> list[Solution]:
    """Run a solver on the runs' clusters and return the optima, each of them once."""
    plan = replace(plan, solver=solver).stopping(min_iter=_MIN_ITER, race_from=None)
    makers: list[Start] = [partial(np.asarray, start) for start in starts]
    solutions = plan.run(objective, makers, f"{solver.__name__} of the runs' clusters")
    apart = np.diff([s.loss for s in solutions], prepend=-np.inf) > _SAME * objective.constant
    return [solution for solution, new in zip(solutions, apart, strict=True) if new]


def lifted_start(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return a start (k, n + p) from W (k, n) and H, without zeros."""
    lifted = [F + _LIFT * F.mean(dtype=np.float64) for F in (W, H)]
    return np.concatenate(lifted, axis=1).astype(H.dtype)


def by_ptf(runs: Runs, plan: Plan, rng: np.random.RandomState) -> list[Metaclusters]:
    r"""Metacluster the biclusters of the runs by positive tensor factorization (eq. 14).

    The starts are the clusters of single runs, from which the best optimum is found more often
    than from random ones; `rng` is not needed.
    """
    starts = []
    for run in range(min(plan.n_init, len(runs))):
        chosen = runs.start(run, plan.n_clusters)
        starts.append(lifted_start(runs.W[chosen], runs.H[chosen]))
    optima = _optima(solvers.RunsObjective(runs.W, runs.H), solvers.tensor_hals, plan, starts)
    return [Metaclusters.of(s.factors[0], s.factors[2], len(runs)) for s in optima]


def by_nmf(runs: Runs, plan: Plan, rng: np.random.RandomState) -> list[Metaclusters]:
    r"""Metacluster the columns of the runs' clusters by NMF, ``H ~ alpha gamma`` (eq. 8).

    The starts are the clusters of single runs; `rng` is not needed.
    """
    starts = []
    for run in range(min(plan.n_init, len(runs))):
        prototypes = runs.H[runs.start(run, plan.n_clusters)]
        starts.append(lifted_start(solvers.fitted_rows(runs.H, prototypes).T, prototypes))
    optima = _optima(MatrixObjective(runs.H), solvers.hals, plan, starts)
    return [Metaclusters.of(s.factors[0], s.factors[1], len(runs)) for s in optima]


def by_kmeans(runs: Runs, plan: Plan, rng: np.random.RandomState) -> list[Metaclusters]:
    """Metacluster the columns of the runs' clusters by k-means, a baseline of the paper."""
    k, [seed] = plan.n_clusters, draw_seeds(rng, 1)
    kmeans = KMeans(k, n_init=plan.n_init, max_iter=plan.stop.max_iter, random_state=seed)
    with one_thread():  # the order of sums would depend on the number of threads
        kmeans.fit(runs.H)
    hard = one_hot(kmeans.labels_, k, runs.H.dtype)
    centres = np.maximum(kmeans.cluster_centers_, 0)  # 0 may be less by rounding
    return [Metaclusters.of(hard, centres.astype(runs.H.dtype), len(runs))]


#: the ways to metacluster runs: each returns the optima that it found
METACLUSTERINGS = {"ptf": by_ptf, "nmf": by_nmf, "kmeans": by_kmeans}


def refine(
    objective: MatrixObjective, plan: Plan, candidates: list[Metaclusters], final: bool
) -> tuple[Metaclusters, Factorization]:
    """Factorize X from metaclusters, and keep those with the smallest loss.

    Their rows are found by least squares; if `final`, NMF goes on from there.

    Parameters
    ----------
    objective : MatrixObjective
    plan : Plan
    candidates : list of Metaclusters
    final : bool

    Returns
    -------
    Metaclusters
        Those that were kept.
    Factorization
        What they led to, with the curves of all.
    """
    ends = [_refined(objective, plan, metaclusters.columns, final) for metaclusters in candidates]
    order = np.argsort([end.loss for end in ends], kind="stable")
    best = ends[order[0]]
    curves = [ends[i].history for i in order]
    return candidates[order[0]], Factorization(best, curves, best.loss)


def _refined(objective: MatrixObjective, plan: Plan, columns: np.ndarray, final: bool) -> Solution:
    W = solvers.fitted_rows(objective.X, columns).T
    if final:
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay one
    plan = replace(plan, solver=solvers.sparse_hals if objective.sparsity else solvers.hals)
    plan = plan.stopping(max_iter=plan.stop.max_iter if final else 0)
    start: Start = partial(np.concatenate, [W, columns], axis=1)
    [end] = plan.run(objective, [start], "last factorization")
    return replace(end, converged=end.converged or not final)


# --- what the runs say of the clusters ---------------------------------------------------------


def recurrence(runs: Runs, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how often every cluster recurs in the runs, and how pure it is where it does.

    A cluster recurs in a run if a cluster of the run and it are each other's most similar, by the
    cosine of the biclusters; purity is the mean of that cosine over these runs.

    Parameters
    ----------
    runs : Runs
    W : ndarray of shape (k, n)
    H : ndarray of shape (k, p)

    Returns
    -------
    recurrence : ndarray of shape (k,)
        Share of the runs.
    purity : ndarray of shape (k,)
        0 for a cluster that never recurs.
    """
    cosine = _cosine(runs.W, W) * _cosine(runs.H, H)
    similarity = np.zeros((len(runs), len(W)))  # 0 where a cluster does not recur
    for run, part in enumerate(runs.slices()):
        near = cosine[part]
        best = near.argmax(axis=0)  # of the run, for every cluster
        mutual = near.argmax(axis=1)[best] == np.arange(len(W))
        similarity[run] = np.where(mutual, near.max(axis=0), 0)
    times = (similarity > 0).sum(axis=0)
    return times / len(runs), similarity.sum(axis=0) / np.maximum(times, 1)


def _cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    a, b = (np.linalg.norm(F, axis=1) for F in (A, B))
    scale = a[:, None] * b
    cosine = np.divide(A @ B.T, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.minimum(cosine, 1)  # it may be more by rounding


def n_distinct(W: np.ndarray, H: np.ndarray) -> int:
    """Return the number of clusters that are neither 0 nor equal to another one.

    A cluster also counts if it overlaps with others and is the strongest of no sample.
    """
    alike = np.triu(H @ H.T, 1) > 1 - _ALIKE
    return int((W.any(axis=0) & ~alike.any(axis=0)).sum())
