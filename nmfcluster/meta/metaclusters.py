"""What recurs in runs: metaclusters, and the last factorization from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from nmfcluster._arrays.labels import one_hot
from nmfcluster._arrays.threads import one_thread
from nmfcluster._base import by_size, hard_labels
from nmfcluster._engine.executor import Plan, Start
from nmfcluster._engine.loop import Solution
from nmfcluster._engine.starts import draw_seeds
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.meta.objectives import Objective
from nmfcluster.meta.recurrence import recurrence
from nmfcluster.meta.runs import Runs
from nmfcluster.meta.solvers import RunsObjective, hals, tensor_hals
from nmfcluster.meta.squares import MatrixObjective, fitted_rows, unit_rows

_MIN_ITER = 10  # updates of a metaclustering: its starts are close to where it ends
_SAME = 1e-4  # of the loss of zero factors: optima that differ by less count as one
_ORDERS = 4  # of clusters that are tried: mostly the first is right
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
    def of(cls, correspondence: np.ndarray, columns: np.ndarray, n_runs: int) -> Metaclusters:
        """Scale columns of alpha to sum to the number of runs, and rows of gamma to length 1."""
        total = correspondence.sum(axis=0)
        return cls(correspondence * (n_runs / np.where(total > 0, total, 1)), unit_rows(columns)[0])


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
    optima = _optima(RunsObjective(runs.W, runs.H), tensor_hals, plan, starts)
    return [Metaclusters.of(s.factors[0], s.factors[2], len(runs)) for s in optima]


def by_nmf(runs: Runs, plan: Plan, rng: np.random.RandomState) -> list[Metaclusters]:
    r"""Metacluster the columns of the runs' clusters by NMF, ``H ~ alpha gamma`` (eq. 8).

    The starts are the clusters of single runs; `rng` is not needed.
    """
    starts = []
    for run in range(min(plan.n_init, len(runs))):
        prototypes = runs.H[runs.start(run, plan.n_clusters)]
        starts.append(lifted_start(fitted_rows(runs.H, prototypes).T, prototypes))
    optima = _optima(MatrixObjective(runs.H), hals, plan, starts)
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


def metaclustered(
    way: str,
    runs: Runs,
    plan: Plan,
    rng: np.random.RandomState,
    fixed: np.ndarray | None = None,
    min_recurrence: float = 0.0,
) -> list[Metaclusters]:
    """Metacluster runs, and return the optima that were found.

    Parameters
    ----------
    way : str
        One of `METACLUSTERINGS`.
    runs : Runs
    plan : Plan
    rng : RandomState
    fixed : ndarray of shape (n_fixed, p), default=None
        Components that the runs have in common, their first ones: the first metaclusters.
    min_recurrence : float, default=0.0
        Clusters that come back less surely in the other runs are left out, see `that_recur`.
    """
    m = 0 if fixed is None else len(fixed)
    k, dtype = plan.n_clusters, runs.H.dtype
    own = np.concatenate([np.arange(size) for size in runs.sizes])  # number in its run
    chosen = np.flatnonzero(own >= m)
    chosen = chosen[that_recur(runs.taken(chosen), k - m, min_recurrence)]
    if m == k:
        others = [Metaclusters(np.zeros((len(chosen), 0)), np.zeros((0, runs.H.shape[1])))]
    else:
        found, of_rest = runs.taken(chosen), replace(plan, n_clusters=k - m)
        others = METACLUSTERINGS[way](found, of_rest, rng)
    known = np.zeros((0, runs.H.shape[1]), dtype) if fixed is None else unit_rows(fixed)[0]
    candidates = []
    for other in others:
        alpha = np.zeros((len(own), k), dtype)
        alpha[:, :m] = own[:, None] == np.arange(m)
        alpha[chosen, m:] = other.correspondence
        candidates.append(Metaclusters(alpha, np.concatenate([known, other.columns]).astype(dtype)))
    return candidates


def that_recur(runs: Runs, n_clusters: int, least: float) -> np.ndarray:
    """Return the positions of clusters that come back in the other runs, in order.

    At least `n_clusters` are returned, those that come back most surely, and all where there is one
    run.

    Parameters
    ----------
    runs : Runs
    n_clusters : int
    least : float
        Mean over the other runs of the cosine with the counterpart, see `recurrence`.
    """
    n_runs, everyone = len(runs), np.arange(len(runs.W))
    if not least or n_runs == 1:
        return everyone
    shares = np.concatenate(
        [recurrence(runs, runs.W[part], runs.H[part]) for part in runs.slices()]
    )
    of_others = (n_runs * shares - 1) / (n_runs - 1)  # each is its own counterpart
    surest = np.argsort(-of_others, kind="stable")[:n_clusters]
    return np.union1d(everyone[of_others >= least], surest)


def refine(
    objective: Objective, plan: Plan, candidates: list[Metaclusters], final: bool
) -> tuple[Metaclusters, Factorization]:
    """Factorize X from metaclusters, and keep those with the smallest loss.

    Their rows are those of the smallest loss; if `final`, NMF goes on from there.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
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


def _refined(objective: Objective, plan: Plan, columns: np.ndarray, final: bool) -> Solution:
    columns = objective.with_fixed(objective.positive(columns.astype(objective.X.dtype)))
    find = objective.near_rows if final else objective.rows  # where it goes on, near is enough
    W = find(columns).T
    if final:
        W = objective.positive(W)
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay one
    plan = replace(plan, solver=objective.solver)
    plan = plan.stopping(max_iter=plan.stop.max_iter if final else 0)
    start: Start = partial(np.concatenate, [W, columns], axis=1)
    [end] = plan.run(objective, [start], "last factorization")
    return replace(end, converged=end.converged or not final)


def by_their_size(
    objective: Objective, best: Solution, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best W (n, k), scaled H, and which cluster is which, the largest first.

    A cluster is as large as the rows weigh that it is strongest in; fixed ones stay first. The
    order of the best rows may differ from that of the last update: then it is tried once more.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    best : Solution
    weights : ndarray of shape (n,), default=None
        1 by default.

    Returns
    -------
    W : ndarray of shape (n, k)
        What `rows` of the objective returns for H, to the last bit.
    H : ndarray of shape (k, p)
    order : ndarray of shape (k,), int
    """
    W, H = best.factors[0], objective.scaled_columns(best.factors[1])
    order, m = np.arange(len(H)), objective.n_fixed
    for attempt in range(_ORDERS):
        labels = hard_labels(W)
        own = labels >= 0
        sizes = by_size(labels[own], len(H), None if weights is None else weights[own])
        sizes = np.concatenate([np.arange(m), sizes[sizes >= m]])
        if attempt and (sizes == np.arange(len(H))).all():
            break
        order, H = order[sizes], H[sizes]
        W = objective.rows(H)
    return W, H, order
