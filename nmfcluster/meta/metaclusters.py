"""What recurs in runs: metaclusters, and the last factorization from them."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from nmfcluster._base import hard_labels
from nmfcluster._optim.run import Solution, SolverConfig, Start, run_starts
from nmfcluster._optim.symmetric import Factorization
from nmfcluster.meta.device import current_device
from nmfcluster.meta.parameters import Objective, strengths
from nmfcluster.meta.runs import Runs
from nmfcluster.meta.solvers import RunsObjective, hals, tensor_hals
from nmfcluster.meta.squares import MatrixObjective, fitted_rows, unit_rows

_SAME = 1e-4  # of the loss of zero factors: optima that differ by less count as one
_LIFT = 0.05  # of a factor's mean, added to a start: an entry of 0 could stay there


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
        return cls(
            correspondence * (n_runs / np.where(total > 0, total, 1)),
            unit_rows(columns)[0],
        )


def _optima(
    objective: Any, solver: Any, config: SolverConfig, starts: list[np.ndarray]
) -> list[Solution]:
    """Run a solver on the runs' clusters and return the optima, each of them once."""
    # starts are close to where they end: ten updates can be enough
    config = replace(config, solver=solver).with_stop(min_iter=10, prune_from=None)
    makers: list[Start] = [partial(np.asarray, start) for start in starts]
    solutions = run_starts(
        objective, makers, config, f"{solver.__name__} of the runs' clusters"
    )
    apart = (
        np.diff([s.loss for s in solutions], prepend=-np.inf)
        > _SAME * objective.constant
    )
    return [solution for solution, new in zip(solutions, apart, strict=True) if new]


def lifted_start(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return a start (k, n + p) from W (k, n) and H, without zeros."""
    lifted = [F + _LIFT * F.mean(dtype=np.float64) for F in (W, H)]
    return np.concatenate(lifted, axis=1).astype(H.dtype)


def by_ptf(runs: Runs, config: SolverConfig) -> list[Metaclusters]:
    r"""Metacluster the biclusters of the runs by positive tensor factorization (eq. 14).

    The starts are the clusters of single runs, from which the best optimum is found more often
    than from random ones.
    """
    chosen = runs.starts(config.n_init, config.n_clusters)
    starts = [lifted_start(runs.W[clusters], runs.H[clusters]) for clusters in chosen]
    optima = _optima(
        RunsObjective(runs.W, runs.H, current_device.get()), tensor_hals, config, starts
    )
    return [Metaclusters.of(s.factors[0], s.factors[2], len(runs)) for s in optima]


def by_nmf(runs: Runs, config: SolverConfig) -> list[Metaclusters]:
    r"""Metacluster the columns of the runs' clusters by NMF, ``H ~ alpha gamma`` (eq. 8).

    The starts are the clusters of single runs.
    """
    chosen = runs.starts(config.n_init, config.n_clusters)
    starts = [lifted_start(fitted_rows(runs.H, runs.H[c]).T, runs.H[c]) for c in chosen]
    optima = _optima(
        MatrixObjective(runs.H, device=current_device.get()), hals, config, starts
    )
    return [Metaclusters.of(s.factors[0], s.factors[1], len(runs)) for s in optima]


#: the ways to metacluster runs: each returns the optima that it found
WAYS = {"ptf": by_ptf, "nmf": by_nmf}


def metaclustered(
    way: str, runs: Runs, config: SolverConfig, fixed: np.ndarray | None = None
) -> list[Metaclusters]:
    """Metacluster runs, and return the optima that were found.

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
        return WAYS[way](runs, config)
    k, m, dtype = config.n_clusters, len(fixed), runs.H.dtype
    number = np.concatenate(
        [np.arange(size) for size in runs.sizes]
    )  # of a cluster in its run
    free = np.flatnonzero(number >= m)
    of_free = [Metaclusters(np.zeros((len(free), 0)), np.zeros((0, runs.H.shape[1])))]
    if m < k:
        rest = replace(runs, W=runs.W[free], H=runs.H[free], sizes=runs.sizes - m)
        of_free = WAYS[way](rest, replace(config, n_clusters=k - m))
    candidates = []
    for others in of_free:
        alpha = np.zeros((len(number), k), dtype)
        alpha[:, :m] = number[:, None] == np.arange(m)
        alpha[free, m:] = others.correspondence
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
    solver = (
        objective.solver if objective.n_fixed < config.n_clusters else config.solver
    )
    config, ends = replace(config, solver=solver), []
    for metaclusters in candidates:
        columns = objective.positive(metaclusters.columns.astype(objective.X.dtype))
        columns = objective.with_fixed(columns)
        W = objective.positive(objective.near_rows(columns).T)
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay one
        start: Start = partial(np.concatenate, [W, columns], axis=1)
        ends += run_starts(objective, [start], config, "last factorization")
    order = np.argsort([end.loss for end in ends], kind="stable")
    best, curves = ends[order[0]], [ends[i].history for i in order]
    return candidates[order[0]], Factorization(best, curves, best.loss)


def by_their_size(
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
        What `strengths` returns for H, to the last bit.
    H : ndarray of shape (k, p)
    order : ndarray of shape (k,), int
    """
    W, H = best.factors[0], objective.scaled_columns(best.factors[1])
    order = np.arange(len(H))
    for attempt in range(4):  # mostly the first order is right
        sizes = np.bincount(hard_labels(W) + 1, weights, len(H) + 1)[1:].astype(float)
        sizes[:n_fixed] = np.inf
        moved = np.argsort(-sizes, kind="stable")
        if attempt and (moved == np.arange(len(H))).all():
            break
        order, H = order[moved], H[moved]
        W = strengths(objective, H)
    return W, H, order


def n_distinct(W: np.ndarray, H: np.ndarray, n_fixed: int = 0) -> int:
    """Return the number of clusters that are fixed, or neither 0 nor equal to another one.

    A cluster also counts if it overlaps with others and is the strongest of no sample. Clusters are
    equal if the cosine of their columns is within 1e-6 of 1.
    """
    alike = np.triu(H @ H.T, 1) > 1 - 1e-6
    return n_fixed + int((W.any(axis=0) & ~alike.any(axis=0))[n_fixed:].sum())
