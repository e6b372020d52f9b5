"""Many NMF runs, each on its own data, and metaclusters of their clusters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import ismethod
from itertools import chain, compress, pairwise
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nmfcluster._base import hard_labels
from nmfcluster._optim.initialization import draw_seeds
from nmfcluster._optim.run import Solution, Steps, keep_starts, loss_of, run_starts
from nmfcluster._optim.symmetric import Factorization
from nmfcluster._utils.array_api import Device, asarray_like, namespace, to_device
from nmfcluster._utils.linalg import inner_products
from nmfcluster._utils.sampling import poisson_counts
from nmfcluster._utils.storage import max_abs, safe_ratio
from nmfcluster._utils.validation import warn
from nmfcluster.meta.device import current_device
from nmfcluster.meta.objective import Objective, fit_rows
from nmfcluster.meta.squares import (
    MatrixObjective,
    descend,
    hals,
    least_squares_rows,
    unit_rows,
)
from nmfcluster.partitions.base_runs import range_of_clusters

# Number of entries of X up to which runs on different data are updated together.
_SIDE_BY_SIDE = 2**18
# Number of entries of X up to which one thread is faster: several would wait for each other.
_SMALL = 2**16
# Largest mean of counts that can be drawn, because counts have 64 bits.
_LARGEST_MEAN = 1e18
# Sweeps over a factor in an update of the tensor, whose products cost no more than one sweep.
_TENSOR_SWEEPS = 1
# Optima count as one if their losses differ by less than this share of the loss of zero factors.
_SAME_OPTIMUM = 1e-4
# Share of a factor's mean that is added to a start, because entries of 0 could stay 0.
_LIFT = 0.05

WAYS = ("ptf", "nmf")


def _concatenate_starts(results):
    """Concatenate the results of all starts: arrays, lists, or tuples of them."""
    first = results[0]
    if isinstance(first, tuple):
        return tuple(map(_concatenate_starts, zip(*results, strict=True)))
    if isinstance(first, list):
        return list(chain.from_iterable(results))
    return namespace(first).concat(results)


class SideBySide:
    """Objectives of data of the same shape, one for every start of a batch.

    Their products are computed one after the other, and the rest of an update at once. Solvers use
    it like an objective, see `BaseObjective`, `MatrixObjective` and `Divergence`.

    Parameters
    ----------
    objectives : sequence of MatrixObjective or Divergence
    """

    loss = MatrixObjective.loss

    def __init__(self, objectives):
        self.objectives = objectives

    def __getattr__(self, name):
        """Return a method that calls that of every start, or an attribute that all share."""
        methods = [getattr(objective, name) for objective in self.objectives]
        if not ismethod(methods[0]):
            return methods[0]

        def call_all(*arrays, **options):
            results = []
            for s, method in enumerate(methods):
                own = [array[s : s + 1, ...] for array in arrays]
                results.append(method(*own, **options))
            return _concatenate_starts(results)

        return call_all

    @cached_property
    def constant(self):
        """Losses of the zero factors."""
        return np.array([objective.constant for objective in self.objectives])

    @property
    def standardised(self):
        """Least squares of the standardised data."""
        return type(self)([objective.standardised for objective in self.objectives])

    def keep_starts(self, keep):
        """Return the objectives of the starts that go on."""
        if keep is None:
            return self
        return type(self)(list(compress(self.objectives, keep)))


@dataclass(frozen=True)
class Runs:
    """The clusters of all runs, the run with the smallest loss first.

    Attributes
    ----------
    W : ndarray of shape (J, n)
        W transposed, with one row for each cluster.
    H : ndarray of shape (J, p)
        H with rows scaled to length 1 (eq. 7), where W is multiplied by their lengths.
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
    def of(cls, solutions):
        """Collect the clusters of solutions, and empty the list to hold W in memory only once."""
        components = [solution.factors[1] for solution in solutions]
        sizes = np.array([len(H) for H in components])
        losses = np.array([solution.loss for solution in solutions])
        converged = np.array([solution.converged for solution in solutions])
        H, lengths = unit_rows(np.concatenate(components))
        first = solutions[0].factors[0]
        W = np.empty((len(H), len(first)), dtype=first.dtype)
        for end in np.cumsum(sizes)[::-1]:
            rows = solutions.pop().factors[0].T
            W[end - len(rows) : end] = rows
        W *= lengths
        return cls(W, H, sizes, losses, converged)

    def __len__(self):
        return len(self.sizes)

    def slices(self):
        """Return the positions of the clusters of every run."""
        ends = np.cumsum([0, *self.sizes])
        return [slice(start, end) for start, end in pairwise(ends)]

    @property
    def partitions(self):
        """Return the strongest cluster of every row in every run, (n, n_runs); -1 for none."""
        return np.stack([hard_labels(self.W[run].T) for run in self.slices()], axis=1)

    @property
    def base_runs(self):
        """The run of every cluster."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def starts(self, n_starts, n_clusters):
        """Return the positions of the clusters of starts, one start for each of the first runs.

        These are the largest clusters of the run. If it has too few, those of the next runs
        follow. The size of a cluster is the length of its row of W.
        """
        lengths = np.linalg.norm(self.W, axis=1)
        ranked = [
            run.start + np.argsort(-lengths[run], kind="stable")
            for run in self.slices()
        ]
        firsts = range(min(n_starts, len(self)))
        return [np.concatenate(ranked[i:] + ranked[:i])[:n_clusters] for i in firsts]

    def recurrence(self, W, H):
        """Return the cosines of clusters with their counterparts, averaged over all runs, (k,).

        Counterparts are each other's most similar clusters, by the cosine of the biclusters. A run
        without a counterpart counts as 0.

        Parameters
        ----------
        W : ndarray of shape (k, n)
        H : ndarray of shape (k, p)
        """
        total = np.zeros(len(W))
        for run in self.slices():  # all at once would be copied to the dtype of W
            similarity = _cosines(self.W[run], W) * _cosines(self.H[run], H)
            best = similarity.argmax(axis=0)  # cluster of the run for every cluster
            is_mutual = similarity.argmax(axis=1)[best] == np.arange(len(W))
            total += np.where(is_mutual, similarity.max(axis=0), 0)
        return total / len(self)


def _cosines(A, B):
    """Return the cosines of all pairs of rows, 0 for rows of zeros."""
    lengths = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return np.minimum(safe_ratio(A @ B.T, lengths), 1)  # rounding can exceed 1


def draw_sizes(
    n_runs,
    n_clusters,
    base_n_clusters,
    rng,
    n_fixed=0,
):
    """Return the number of clusters of every run; together they have at least `n_clusters`.

    The first `n_fixed` clusters are the same in all runs.
    """
    sizes = np.full(int(n_runs), int(n_clusters))
    if base_n_clusters is not None:
        low, high = range_of_clusters(base_n_clusters, "base_n_clusters")
        sizes = rng.randint(low, high + 1, size=n_runs)
        if low < n_fixed or (sizes - n_fixed).sum() < n_clusters - n_fixed:
            raise ValueError(
                f"n_estimators={n_runs} runs with base_n_clusters={base_n_clusters} have "
                f"{sizes.sum()} clusters, {n_fixed} of each fixed: too few for "
                f"n_clusters={n_clusters}. Increase n_estimators or base_n_clusters."
            )
    return sizes


@dataclass(frozen=True)
class RandomStart:
    """A random start of a run, on X or on resampled data.

    Attributes
    ----------
    shape : tuple of int
        Shape of X, (n, p).
    high : float
        Entries are drawn uniformly between 0 and ``high / sqrt(size)``.
    dtype : dtype
    size : int
        Number of clusters.
    seed : int
    table : int
        Seed of the resampled data.
    resample : {"poisson", "bootstrap"}, float or None
        Data of the run: Poisson counts, rows drawn with replacement, a share of the rows (at least
        as many as the run has clusters that are not fixed), or X itself.
    n_fixed : int, default=0
    """

    shape: tuple[int, int]
    high: float
    dtype: Any
    size: int
    seed: int
    table: int
    resample: str | float | None = None
    n_fixed: int = 0

    def __call__(self):
        """Return both factors side by side, (size, n + p), for the n rows that the run uses."""
        F = np.random.RandomState(self.seed).uniform(size=(self.size, sum(self.shape)))
        F = (F * (self.high / np.sqrt(self.size))).astype(self.dtype)
        W, H = np.split(F, [self.shape[0]], axis=1)
        return np.concatenate([W[:, self.rows()], H], axis=1)

    def rows(self):
        """Return the rows of X that the run uses, in increasing order."""
        n = self.shape[0]
        rng = np.random.default_rng(self.table)
        if self.resample == "bootstrap":
            return np.sort(rng.integers(n, size=n))
        if self.resample in ("poisson", None):
            return slice(None)
        n_seen = max(round(float(self.resample) * n), self.size - self.n_fixed, 1)
        return np.sort(rng.permutation(n)[:n_seen])


@dataclass(frozen=True)
class Resampled:
    """An objective that has different data for every start.

    Attributes
    ----------
    objective : MatrixObjective or Divergence
        The objective of X.
    weights : ndarray of shape (n,), default=None
        How often the rows of resampled data count.
    """

    objective: Objective
    weights: np.ndarray | None = None

    @property
    def constant(self):
        """Loss relative to which decreases are measured."""
        return self.objective.constant

    @property
    def wide(self):
        """Whether starts run side by side. They do on small X, where products do not dominate."""
        is_small = self.objective.X.size <= _SIDE_BY_SIDE
        return is_small and not self.objective.sparsity

    def seen_by(self, starts):
        """Return the objective of the data of every start of a batch."""
        objectives = []
        for start in starts:
            rows = start.rows()
            if start.resample == "poisson":
                rng = np.random.default_rng(start.table)
                counts = poisson_counts(self.objective.X, rng)
                objective = replace(self.objective, X=counts)
            else:
                objective = self.objective.take_rows(rows)
            weights = None if self.weights is None else self.weights[rows]
            objectives.append(objective.weighted(weights))
        return SideBySide(objectives) if len(objectives) > 1 else objectives[0]

    def of_all(self, start, factors):
        """Return the factors of a start, with zeros in the rows of W that the run did not use."""
        W, H = factors
        all_rows = np.zeros((start.shape[0], len(H)), dtype=H.dtype)
        all_rows[start.rows()] = W
        return all_rows, H


def run_many(
    objective,
    config,
    sizes,
    rng,
    resample=None,
    weights=None,
    memory=None,
):
    """Factorize X from random starts, once for each number of clusters in `sizes`.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    config : SolverConfig
        With the solver of the runs.
    sizes : ndarray of shape (n_runs,), int
    rng : RandomState
    resample : str, float or None, default=None
        How the data of runs are drawn, see `RandomStart`.
    weights : ndarray of shape (n,), default=None
        How often every sample counts; a sample with weight 0 is in no cluster of a run.
    memory : joblib.Memory, default=None
        Cache in which runs are kept.

    Returns
    -------
    Runs

    Raises
    ------
    ValueError
        If a loss is not finite, if all runs end at 0 because of the penalty, or if a run has more
        free clusters than there are samples.
    """
    weighted = objective.weighted(weights)
    X = weighted.X
    high = max_abs(objective.X)
    if resample == "poisson" and high > _LARGEST_MEAN:
        raise ValueError(
            f"resample='poisson' needs entries of X up to 1e18, got {high:.3g}: scale X."
        )
    if sizes.max() - objective.n_fixed > X.shape[0]:
        raise ValueError(
            f"base_n_clusters={sizes.max()} must be at most n_samples={X.shape[0]}."
        )
    # Draw starts such that WH has the mean of X. Seeds of starts and of their data alternate, so
    # that the first runs do not depend on the number of runs.
    n_seeds = 1 if resample is None else 2
    seeds = np.reshape(draw_seeds(rng, len(sizes) * n_seeds), (-1, n_seeds)).tolist()
    mean = 2 * np.sqrt(X.mean(dtype=np.float64))
    starts = [
        RandomStart(
            X.shape, mean, X.dtype, size, own[0], own[-1], resample, objective.n_fixed
        )
        for size, own in zip(sizes.tolist(), seeds, strict=True)
    ]
    # Prune no run, because all are members of the ensemble. Few updates suffice, because those of
    # the standardised matrix have led past the plateau of a random start.
    config = replace(config, prune_from=None, min_iter=min(config.min_iter, 10))
    if X.size <= _SMALL:  # the number of stored entries if X is sparse
        config = replace(config, n_jobs=1)
    seen = weighted if resample is None else Resampled(objective, weights)
    settings = (
        f"with resample={resample!r}, sparsity={objective.sparsity} and entries of X up "
        f"to {high:.3g}"
    )
    solutions = []
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows an overflow
            for size in np.unique(sizes):
                of_size = [start for start in starts if start.size == size]
                task = f"runs of {size} clusters"
                solutions += run_starts(seen, of_size, config, task, memory=memory)
    except FloatingPointError as error:
        raise ValueError(
            f"{X.dtype} cannot hold the losses of runs {settings}: scale X, or lower "
            "sparsity."
        ) from error
    solutions.sort(key=loss_of)
    if resample is not None:
        # fit the rows of W that are 0, such as those outside of the data of a run
        for solution in solutions:
            W, H = solution.factors
            unseen = np.flatnonzero(~W.any(axis=1))
            if len(unseen):
                W[unseen] = weighted.approximate_rows(H, unseen)
    runs = Runs.of(solutions)
    if not runs.W.any():
        raise ValueError(
            f"All components are 0 in runs {settings}: scale X, or lower sparsity."
        )
    return runs


def warn_of_unconverged_runs(runs, max_iter):
    """Warn if runs did not converge."""
    n_lost = np.count_nonzero(~runs.converged)
    if n_lost:
        warn(
            f"{n_lost} of the {len(runs)} runs did not converge within "
            f"max_iter={max_iter} updates. Increase max_iter or tol.",
            ConvergenceWarning,
        )


@dataclass(frozen=True)
class RunsObjective:
    r"""The objective :math:`\frac12 \sum_j \|w_j h_j - \sum_k \alpha_{jk} \beta_k \gamma_k\|^2`.

    The biclusters :math:`w_j h_j` of all runs, j = 1 ... J, form a positive tensor, which is
    factorized (Badea, 2005, eq. 14). Only its factors are ever formed.

    Attributes
    ----------
    W : ndarray of shape (J, n)
    H : ndarray of shape (J, p)
    """

    W: np.ndarray
    H: np.ndarray
    device: Device | None = None
    wide = False  # starts side by side would not share a product

    @cached_property
    def constant(self):
        """Loss of the zero factors."""
        rows, columns = [
            np.einsum("ij,ij->i", F, F, dtype=np.float64) for F in (self.W, self.H)
        ]
        return float(rows @ columns) / 2


def tensor_hals(objective, F) -> Steps:
    r"""Factorize the biclusters of runs, ``w_j h_j ~ sum_k alpha_jk beta_k gamma_k``.

    This is positive tensor factorization (Badea, 2005, eq. 14), without forming the tensor. With
    :math:`\Gamma = \beta'\beta \circ \gamma\gamma'` and :math:`N = W'\beta \circ H\gamma'`,
    coordinate descent on :math:`\frac12 \langle \Gamma, \alpha'\alpha \rangle - \langle N, \alpha
    \rangle` improves :math:`\alpha`. The other two factors are then improved likewise, one after
    the other. The loss never rises. An update costs O(J k (n + p)).

    Parameters
    ----------
    objective : RunsObjective
    F : ndarray of shape (n_starts, k, n + p)
        Positive: beta transposed, and gamma. Alpha is found for them.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, J, k), (n_starts, n, k) and (n_starts, k, p)
        Alpha, beta and gamma.
    loss : ndarray of shape (n_starts,)
    """
    W = to_device(objective.W, objective.device)
    H = to_device(objective.H, objective.device)
    n = W.shape[1]
    B = asarray_like(np.ascontiguousarray(F[..., :n]), W)
    C = asarray_like(np.ascontiguousarray(F[..., n:]), W)
    # products of biclusters with the rows, and with the columns, of the prototypes
    in_rows = B @ W.T
    in_columns = C @ H.T
    A = namespace(W).zeros_like(in_rows)
    sweeps = 20  # more than in an update, because A starts at 0
    while True:
        N = in_rows * in_columns
        G = (B @ B.mT) * (C @ C.mT)
        A = descend(A, N, G, sweeps)
        sweeps = _TENSOR_SWEEPS
        loss = objective.constant - inner_products(N, A)
        loss += inner_products(G, A @ A.mT) / 2
        keep = yield (A.mT, B.mT, C), np.maximum(loss, 0)
        A, B, C, in_rows, in_columns = keep_starts(keep, A, B, C, in_rows, in_columns)
        K = A @ A.mT
        B = descend(B, (A * in_columns) @ W, K * (C @ C.mT), _TENSOR_SWEEPS)
        in_rows = B @ W.T
        C = descend(C, (A * in_rows) @ H, K * (B @ B.mT), _TENSOR_SWEEPS)
        in_columns = C @ H.T


@dataclass(frozen=True)
class Metaclusters:
    r"""Metaclusters of the clusters of runs.

    Attributes
    ----------
    correspondence : ndarray of shape (J, k)
        The matrix :math:`\alpha`, with the weight of every metacluster in every cluster of the
        runs. Columns sum to the number of runs.
    columns : ndarray of shape (k, p)
        The prototypes :math:`\gamma`.
    """

    correspondence: np.ndarray
    columns: np.ndarray


def cluster_runs(way, runs, config):
    r"""Metacluster the clusters of the runs, and return the distinct optima.

    ``"ptf"`` factorizes the biclusters of the runs as a positive tensor (eq. 14), ``"nmf"`` their
    columns as a matrix, ``H ~ alpha gamma`` (eq. 8). The starts are the clusters of single runs.
    They lead to the best optimum more often than random starts.
    """
    device = current_device.get()
    objective: Any = MatrixObjective(runs.H, device=device)
    solver: Any = hals
    if way == "ptf":
        objective = RunsObjective(runs.W, runs.H, device)
        solver = tensor_hals
    # Start from the clusters of single runs, without zeros.
    starts = []
    for clusters in runs.starts(config.n_init, config.n_clusters):
        H = runs.H[clusters]
        W = runs.W[clusters] if way == "ptf" else least_squares_rows(runs.H, H).T
        lifted = [F + _LIFT * F.mean(dtype=np.float64) for F in (W, H)]
        start = np.concatenate(lifted, axis=1).astype(H.dtype)
        starts.append(partial(np.asarray, start))
    # They are close to optima, so ten updates can be enough.
    config = replace(config, solver=solver, min_iter=10, prune_from=None)
    task = f"{solver.__name__} of the runs' clusters"
    solutions = run_starts(objective, starts, config, task)
    # Scale columns of alpha to sum to the number of runs, and rows of gamma to length 1.
    optima = []
    last_loss = -np.inf
    for solution in solutions:
        is_new = solution.loss - last_loss > _SAME_OPTIMUM * objective.constant
        last_loss = solution.loss
        if is_new:
            alpha = solution.factors[0]
            total = alpha.sum(axis=0)
            alpha = alpha * (len(runs) / np.where(total > 0, total, 1))
            optima.append(Metaclusters(alpha, unit_rows(solution.factors[-1])[0]))
    return optima


def metacluster_runs(way, runs, config, fixed=()):
    """Metacluster runs that may have fixed components, and return the distinct optima.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    runs : Runs
    config : SolverConfig
    fixed : ndarray of shape (n_fixed, p), default=()
        The first components of all runs, which become the first metaclusters.
    """
    n_fixed = len(fixed)
    if not n_fixed:
        return cluster_runs(way, runs, config)
    k = config.n_clusters
    dtype = runs.H.dtype
    # metacluster the clusters that are not fixed
    position_in_run = np.concatenate([np.arange(size) for size in runs.sizes])
    free = np.flatnonzero(position_in_run >= n_fixed)
    rest = replace(runs, W=runs.W[free], H=runs.H[free], sizes=runs.sizes - n_fixed)
    optima = cluster_runs(way, rest, replace(config, n_clusters=k - n_fixed))
    # put the fixed ones before them
    candidates = []
    for others in optima:
        alpha = np.zeros((len(position_in_run), k), dtype)
        alpha[:, :n_fixed] = position_in_run[:, None] == np.arange(n_fixed)
        alpha[free, n_fixed:] = others.correspondence
        columns = np.concatenate([unit_rows(fixed)[0], others.columns]).astype(dtype)
        candidates.append(Metaclusters(alpha, columns))
    return candidates


def fit_fixed(objective):
    """Fit W with all components fixed, and return runs, metaclusters and the factorization.

    There is a single run, which is exact, and its clusters are the metaclusters.
    """
    H = objective.fixed
    W = objective.fit_rows(H)
    loss = objective.error(W, H) ** 2 / 2
    history = np.array([loss, loss])  # an update would change nothing
    only = Solution((W, H), loss, history, True)
    end = Factorization(only, [history], loss)
    return Runs.of([only]), Metaclusters(np.eye(len(H)), H), end


def refine(objective, config, candidates):
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
        The factorization from them, with the loss curves of all.
    """
    config = replace(config, solver=objective.solver)
    ends: list[Solution] = []
    for metaclusters in candidates:
        H = objective.positive_start(metaclusters.columns.astype(objective.X.dtype))
        H = objective.with_fixed(H)
        W = objective.positive_start(objective.approximate_rows(H).T)
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay 0
        start = partial(np.concatenate, [W, H], axis=1)
        ends += run_starts(objective, [start], config, "last factorization")
    order = np.argsort([end.loss for end in ends], kind="stable")
    best = order[0]
    curves = [ends[i].history for i in order]
    return candidates[best], Factorization(ends[best], curves, ends[best].loss)


def order_by_size(
    objective,
    best,
    n_fixed=0,
    weights=None,
):
    """Return the best W (n, k), scaled H, and the order of the clusters, the largest first.

    The size of a cluster is the weight of the rows in which it is strongest. Fixed clusters stay
    first. The best W can give other sizes than the last update; the clusters are then sorted
    again.

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
        The result of `fit_rows` for H, to the last bit.
    H : ndarray of shape (k, p)
    order : ndarray of shape (k,), int
    """
    W = best.factors[0]
    H = objective.scale_components(best.factors[1])
    k = len(H)
    order = np.arange(k)
    for attempt in range(4):  # the first order is usually right
        sizes = np.bincount(hard_labels(W) + 1, weights, k + 1)[1:].astype(float)
        sizes[:n_fixed] = np.inf
        by_size = np.argsort(-sizes, kind="stable")
        if attempt and (by_size == np.arange(k)).all():
            break
        order = order[by_size]
        H = H[by_size]
        W = fit_rows(objective, H)
    return W, H, order


def count_distinct(W, H, n_fixed=0):
    """Return the number of clusters that are fixed, or neither 0 nor equal to another one.

    A cluster also counts if it overlaps with others and is the strongest in no sample. Clusters are
    equal if the cosine of their columns is within 1e-6 of 1.
    """
    H = unit_rows(H)[0]
    is_equal = np.triu(H @ H.T, 1) > 1 - 1e-6
    is_distinct = W.any(axis=0) & ~is_equal.any(axis=0)
    return n_fixed + int(is_distinct[n_fixed:].sum())
