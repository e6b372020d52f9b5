"""What recurs in runs: metaclusters, and the last factorization from them."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from nmfcluster._base import hard_labels
from nmfcluster._optim.run import Solution, SolverConfig, Start, run_starts
from nmfcluster._optim.symmetric import Factorization
from nmfcluster.meta.device import current_device
from nmfcluster.meta.objective import Objective, fit_rows
from nmfcluster.meta.runs import Runs
from nmfcluster.meta.solvers import RunsObjective, hals, tensor_hals
from nmfcluster.meta.squares import MatrixObjective, least_squares_rows, unit_rows

# Share of the loss of zero factors: optima that differ by less count as one.
_SAME_OPTIMUM = 1e-4
# Share of a factor's mean that is added to a start, as entries of 0 could stay there.
_LIFT = 0.05


WAYS = ("ptf", "nmf")


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
    def of(cls, correspondence: np.ndarray, columns: np.ndarray, n_runs: int) -> Self:
        """Scale columns of alpha to sum to the number of runs, and rows of gamma to length 1."""
        total = correspondence.sum(axis=0)
        scale = n_runs / np.where(total > 0, total, 1)
        return cls(correspondence * scale, unit_rows(columns)[0])


def lifted_start(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return a start (k, n + p) from W (k, n) and H, without zeros."""
    lifted = [F + _LIFT * F.mean(dtype=np.float64) for F in (W, H)]
    return np.concatenate(lifted, axis=1).astype(H.dtype)


def find_optima(
    objective, solver, config: SolverConfig, starts: list[np.ndarray]
) -> list[Solution]:
    """Run a solver on the runs' clusters and return the optima, each of them once."""
    # starts are close to where they end: ten updates can be enough
    config = replace(config, solver=solver).with_stop(min_iter=10, prune_from=None)
    makers: list[Start] = [partial(np.asarray, start) for start in starts]
    task = f"{solver.__name__} of the runs' clusters"
    solutions = run_starts(objective, makers, config, task)
    losses = [solution.loss for solution in solutions]
    rises = np.diff(losses, prepend=-np.inf)
    is_new = rises > _SAME_OPTIMUM * objective.constant
    return [solution for solution, new in zip(solutions, is_new, strict=True) if new]


def cluster_runs(way: str, runs: Runs, config: SolverConfig) -> list[Metaclusters]:
    r"""Metacluster the clusters of the runs, and return the optima that were found.

    ``"ptf"`` factorizes the biclusters of the runs as a positive tensor (eq. 14), ``"nmf"`` their
    columns as a matrix, ``H ~ alpha gamma`` (eq. 8). The starts are the clusters of single runs,
    from which the best optimum is found more often than from random ones.
    """
    device = current_device.get()
    objective: Any
    solver: Any
    if way == "ptf":
        objective = RunsObjective(runs.W, runs.H, device)
        solver = tensor_hals
    else:
        objective = MatrixObjective(runs.H, device=device)
        solver = hals
    starts = []
    for clusters in runs.starts(config.n_init, config.n_clusters):
        H = runs.H[clusters]
        W = runs.W[clusters] if way == "ptf" else least_squares_rows(runs.H, H).T
        starts.append(lifted_start(W, H))
    optima = find_optima(objective, solver, config, starts)
    return [Metaclusters.of(s.factors[0], s.factors[-1], len(runs)) for s in optima]


def metacluster_runs(
    way: str, runs: Runs, config: SolverConfig, fixed: np.ndarray | None = None
) -> list[Metaclusters]:
    """Metacluster runs that may have components in common, and return the optima.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    runs : Runs
    config : SolverConfig
    fixed : ndarray of shape (n_fixed, p), default=None
        Components that the runs have in common, their first ones: the first metaclusters.
    """
    if fixed is None:
        return cluster_runs(way, runs, config)
    k = config.n_clusters
    n_fixed = len(fixed)
    dtype = runs.H.dtype
    # metacluster the clusters that are not fixed, if there are any
    position_in_run = np.concatenate([np.arange(size) for size in runs.sizes])
    free = np.flatnonzero(position_in_run >= n_fixed)
    if n_fixed < k:
        rest = replace(runs, W=runs.W[free], H=runs.H[free], sizes=runs.sizes - n_fixed)
        optima = cluster_runs(way, rest, replace(config, n_clusters=k - n_fixed))
    else:
        optima = [Metaclusters(np.zeros((0, 0)), np.zeros((0, fixed.shape[1])))]
    # put the fixed ones before them
    candidates = []
    for others in optima:
        alpha = np.zeros((len(position_in_run), k), dtype)
        alpha[:, :n_fixed] = position_in_run[:, None] == np.arange(n_fixed)
        alpha[free, n_fixed:] = others.correspondence
        columns = np.concatenate([unit_rows(fixed)[0], others.columns]).astype(dtype)
        candidates.append(Metaclusters(alpha, columns))
    return candidates


def refine(
    objective: Objective, config: SolverConfig, candidates: list[Metaclusters]
) -> tuple[Metaclusters, Factorization]:
    """Factorize X from metaclusters, and keep those with the smallest loss.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    config : SolverConfig
    candidates : list of Metaclusters

    Returns
    -------
    Metaclusters
        Those that were kept.
    Factorization
        What they led to, with the curves of all.
    """
    if objective.n_fixed < config.n_clusters:
        config = replace(config, solver=objective.solver)
    ends: list[Solution] = []
    for metaclusters in candidates:
        H = objective.positive_start(metaclusters.columns.astype(objective.X.dtype))
        H = objective.with_fixed(H)
        W = objective.positive_start(objective.approximate_rows(H).T)
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay one
        start: Start = partial(np.concatenate, [W, H], axis=1)
        ends += run_starts(objective, [start], config, "last factorization")
    order = np.argsort([end.loss for end in ends], kind="stable")
    best = order[0]
    curves = [ends[i].history for i in order]
    return candidates[best], Factorization(ends[best], curves, ends[best].loss)


def order_by_size(
    objective: Objective,
    best: Solution,
    n_fixed: int = 0,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best W (n, k), scaled H, and which cluster is which, the largest first.

    A cluster is as large as the rows weigh that it is strongest in; fixed ones stay first. The
    order of the best rows may differ from that of the last update: then it is tried once more.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    best : Solution
    n_fixed : int, default=0
    weights : ndarray of shape (n,), default=None
        1 by default.

    Returns
    -------
    W : ndarray of shape (n, k)
        What `fit_rows` returns for H, to the last bit.
    H : ndarray of shape (k, p)
    order : ndarray of shape (k,), int
    """
    W = best.factors[0]
    H = objective.scale_components(best.factors[1])
    k = len(H)
    order = np.arange(k)
    for attempt in range(4):  # mostly the first order is right
        sizes = np.bincount(hard_labels(W) + 1, weights, k + 1)[1:].astype(float)
        sizes[:n_fixed] = np.inf
        by_size = np.argsort(-sizes, kind="stable")
        if attempt and (by_size == np.arange(k)).all():
            break
        order = order[by_size]
        H = H[by_size]
        W = fit_rows(objective, H)
    return W, H, order


def count_distinct(W: np.ndarray, H: np.ndarray, n_fixed: int = 0) -> int:
    """Return the number of clusters that are fixed, or neither 0 nor equal to another one.

    A cluster also counts if it overlaps with others and is the strongest of no sample. Clusters are
    equal if the cosine of their columns is within 1e-6 of 1.
    """
    is_equal = np.triu(H @ H.T, 1) > 1 - 1e-6
    is_distinct = W.any(axis=0) & ~is_equal.any(axis=0)
    return n_fixed + int(is_distinct[n_fixed:].sum())
