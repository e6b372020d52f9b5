"""From many NMF runs to metaclusters: the runs, their clusters side by side, what recurs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from nmfcluster._arrays.labels import one_hot
from nmfcluster._arrays.least_squares import exact_rows
from nmfcluster._arrays.storage import row_blocks
from nmfcluster._base import hard_labels
from nmfcluster._engine.run import Plan, Solution, Start, draw_seeds, loss_of
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.meta.solvers import (
    MatrixObjective,
    RunsObjective,
    hals,
    sparse_hals,
    tensor_hals,
)

_MIN_ITER = 10  # updates of a metaclustering: its starts are close to where it ends
_SAME = 1e-4  # of the loss of zero factors: optima that differ by less are one
_ENTRIES = 2**22  # of a table that are widened at a time
_LIFT = 0.05  # of a factor's mean: what starts at 0 could stay there


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
        H = np.concatenate([solution.factors[1] for solution in solutions])
        return cls(
            *scaled_to_unit(W, H),
            np.array([len(solution.factors[1]) for solution in solutions]),
            np.array([solution.loss for solution in solutions]),
            np.array([solution.converged for solution in solutions]),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def members(self) -> list[slice]:
        """Return where the clusters of every run are."""
        ends = np.cumsum(self.sizes)
        return [slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]

    def partitions(self) -> np.ndarray:
        """Return the largest cluster of every row in every run, (n, n_runs); -1: in none."""
        found = np.empty((self.W.shape[1], len(self)), dtype=np.int64)
        for run, own in enumerate(self.members()):
            found[:, run] = hard_labels(self.W[own].T)
        return found

    def start(self, run: int, n_clusters: int) -> np.ndarray:
        """Return the largest clusters of a run, or of it and the next, as columns of length 1."""
        order = np.roll(np.arange(len(self)), -run)
        members = self.members()
        ranked = [
            own.start + np.argsort(-np.linalg.norm(self.W[own], axis=1), kind="stable")
            for own in (members[i] for i in order)
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


def scaled_to_unit(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale the rows of H to length 1, which those of W, (k, n), take up; zeros stay."""
    length = np.linalg.norm(H, axis=1, keepdims=True)
    return W * length, H / np.where(length > 0, length, 1)


def fitted_rows(X: Any, H: np.ndarray) -> np.ndarray:
    """Return the W >= 0 that minimises ``||X - WH||``, (n, k)."""
    wide = H.astype(np.float64)  # products in float32 lose what tells clusters that are alike
    blocks = row_blocks(X.shape[0], max(1, _ENTRIES // X.shape[1]))
    B = np.concatenate([np.asarray(X[block] @ wide.T) for block in blocks])
    return exact_rows(B, wide @ wide.T).astype(np.result_type(X.dtype, H.dtype), copy=False)


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
    """
    X = objective.X
    height = 2 * float(np.sqrt(X.mean(dtype=np.float64)))  # entries of W and H, times k^1/2

    def start(size: int, seed: int) -> np.ndarray:
        F = np.random.RandomState(seed).uniform(size=(size, sum(X.shape)))
        return (F * (height / np.sqrt(size))).astype(X.dtype)

    seeds, solutions = draw_seeds(rng, len(sizes)), []
    for size in np.unique(sizes):
        starts: list[Start] = [
            partial(start, int(size), seed)
            for seed, own in zip(seeds, sizes, strict=True)
            if own == size
        ]
        solutions += plan.run(objective, starts, f"runs of {size} clusters")
    return Runs.of(sorted(solutions, key=loss_of))


def _distinct(
    objective: Any, solver: Callable[..., Any], plan: Plan, starts: list[np.ndarray]
) -> list[Solution]:
    """Run a solver on the runs' clusters and return its optima, each of them once."""
    plan = replace(plan, solver=solver)
    makers: list[Start] = [partial(np.asarray, start) for start in starts]
    what = f"{solver.__name__} of the runs' clusters"
    solutions = plan.stopping(min_iter=_MIN_ITER).run(objective, makers, what)
    apart = np.diff([s.loss for s in solutions], prepend=-np.inf) > _SAME * objective.constant
    return [solution for solution, new in zip(solutions, apart, strict=True) if new]


def _beside(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return a start (k, n + p) from W (k, n) and H, without zeros."""
    return np.concatenate([F + _LIFT * F.mean(dtype=np.float64) for F in (W, H)], axis=1).astype(
        H.dtype
    )


def by_nmf(runs: Runs, plan: Plan) -> list[Metaclusters]:
    r"""Metacluster the columns of the runs' clusters by NMF, ``H ~ alpha gamma`` (eq. 8).

    The starts are the clusters of single runs.
    """
    starts = []
    for run in range(min(plan.n_init, len(runs))):
        prototypes = runs.H[runs.start(run, plan.n_clusters)]
        starts.append(_beside(fitted_rows(runs.H, prototypes).T, prototypes))
    found = _distinct(MatrixObjective(runs.H), hals, plan, starts)
    return [_scaled(s.factors[0], s.factors[1], len(runs)) for s in found]


def by_ptf(runs: Runs, plan: Plan) -> list[Metaclusters]:
    r"""Metacluster the biclusters of the runs by positive tensor factorization (eq. 14).

    The starts are the clusters of single runs, from which the best optimum is found more often
    than from random ones.
    """
    starts = []
    for run in range(min(plan.n_init, len(runs))):
        chosen = runs.start(run, plan.n_clusters)
        starts.append(_beside(runs.W[chosen], runs.H[chosen]))
    found = _distinct(RunsObjective(runs.W, runs.H), tensor_hals, plan, starts)
    return [_scaled(s.factors[0], s.factors[2], len(runs)) for s in found]


def by_kmeans(runs: Runs, plan: Plan, seed: int) -> list[Metaclusters]:
    """Metacluster the columns of the runs' clusters by k-means, a baseline of the paper."""
    kmeans = KMeans(
        plan.n_clusters, n_init=plan.n_init, max_iter=plan.stop.max_iter, random_state=seed
    )
    with threadpool_limits(limits=1):  # the order of sums would depend on the number of threads
        kmeans.fit(runs.H)
    hard = one_hot(kmeans.labels_, plan.n_clusters, runs.H.dtype)
    centres = np.maximum(kmeans.cluster_centers_, 0)  # 0 may be less by rounding
    return [_scaled(hard, centres.astype(runs.H.dtype), len(runs))]


def metacluster(how: str, runs: Runs, plan: Plan, rng: np.random.RandomState) -> list[Metaclusters]:
    """Metacluster the clusters of runs by "ptf", "nmf" or "kmeans": the optima that were found."""
    if how == "kmeans":
        return by_kmeans(runs, plan, draw_seeds(rng, 1)[0])
    return (by_ptf if how == "ptf" else by_nmf)(runs, plan)


def _scaled(correspondence: np.ndarray, columns: np.ndarray, n_runs: int) -> Metaclusters:
    """Scale columns of the correspondence to sum to the number of runs, and gamma to length 1."""
    total = correspondence.sum(axis=0)
    shares = correspondence * (n_runs / np.where(total > 0, total, 1))
    return Metaclusters(shares, scaled_to_unit(np.zeros_like(columns), columns)[1])


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
    ends = [_refined(objective, plan, found.columns, final) for found in candidates]
    order = np.argsort([end.loss for end in ends], kind="stable")
    curves = [ends[i].history for i in order]
    best = ends[order[0]]
    return candidates[order[0]], Factorization(best, curves, best.loss)


def _refined(objective: MatrixObjective, plan: Plan, columns: np.ndarray, final: bool) -> Solution:
    W = fitted_rows(objective.X, columns).T
    if final:
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay one
    plan = replace(plan, solver=sparse_hals if objective.sparsity else hals)
    plan = plan.stopping(max_iter=plan.stop.max_iter if final else 0)
    start: Start = partial(np.concatenate, [W, columns], axis=1)
    [end] = plan.run(objective, [start], "last factorization")
    return replace(end, converged=end.converged or not final)


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
    found = np.zeros((len(runs), len(W)))
    for run, own in enumerate(runs.members()):
        near = cosine[own]
        best = near.argmax(axis=0)  # of the run, for every cluster
        mutual = near.argmax(axis=1)[best] == np.arange(len(W))
        found[run] = np.where(mutual, near.max(axis=0), 0)
    times = (found > 0).sum(axis=0)
    return times / len(runs), found.sum(axis=0) / np.maximum(times, 1)


def _cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    a, b = (np.linalg.norm(F, axis=1) for F in (A, B))
    scale = a[:, None] * b
    cosine = np.divide(A @ B.T, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.minimum(cosine, 1)  # it may be more by rounding
