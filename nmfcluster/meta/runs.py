"""Many NMF runs, each on data of its own, and the clusters that they found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, compress
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nmfcluster._base import hard_labels
from nmfcluster._optim.initialization import draw_seeds
from nmfcluster._optim.run import Factors, Solution, SolverConfig, loss_of, run_starts
from nmfcluster._utils.array_api import namespace
from nmfcluster._utils.sampling import poisson_counts
from nmfcluster._utils.storage import max_abs
from nmfcluster._utils.validation import warn
from nmfcluster.meta.objective import Objective
from nmfcluster.meta.squares import MatrixObjective, unit_rows
from nmfcluster.partitions.base_runs import range_of_clusters

# Entries of X up to which runs on data of their own share updates.
_SIDE_BY_SIDE = 2**18
# Entries of X up to which threads would wait for each other, and one is faster.
_SMALL = 2**16
# Largest mean of counts that are drawn: counts have 64 bits.
_LARGEST_MEAN = 1e18


def _of_every_start(name: str) -> Callable[..., Any]:
    """Return a method that calls the same one of the objective of every start."""

    def method(self, *arrays, **options):
        results = []
        for s, objective in enumerate(self.objectives):
            one = slice(s, s + 1)
            own = [
                array[one] if isinstance(array, list) else array[one, ...]
                for array in arrays
            ]
            results.append(getattr(objective, name)(*own, **options))
        return _concatenate_starts(results)

    return method


def _concatenate_starts(results):
    """Return the results of all starts, arrays or lists or tuples of them, as one."""
    first = results[0]
    if isinstance(first, tuple):
        return tuple(map(_concatenate_starts, zip(*results, strict=True)))
    if isinstance(first, list):
        return list(chain.from_iterable(results))
    return namespace(first).concat(results)


class SideBySide:
    """Objectives of data of the same shape, one for every start of a batch.

    Their products are made one after the other, and all else of an update at once. It has what
    solvers need of an objective, see `BaseObjective`, `MatrixObjective` and `Divergence`.

    Parameters
    ----------
    objectives : sequence of MatrixObjective or Divergence
    """

    loss = MatrixObjective.loss
    row_column_factors = _of_every_start("row_column_factors")
    imputed_entries = _of_every_start("imputed_entries")
    left_products = _of_every_start("left_products")
    right_products = _of_every_start("right_products")
    expected_counts = _of_every_start("expected_counts")

    def __init__(self, objectives) -> None:
        first = objectives[0]
        self.objectives = objectives
        self.degree = first.degree
        self.n_fixed = first.n_fixed
        self.n_first_updates = first.n_first_updates
        self.solver = first.solver
        self.positive_start = first.positive_start  # the same for all

    @cached_property
    def constant(self):
        """Losses of the zero factors."""
        return np.array([objective.constant for objective in self.objectives])

    @cached_property
    def root_means(self):
        """Roots of the means of rows, and of columns, of every start."""
        roots = [objective.root_means for objective in self.objectives]
        return [np.stack(own) for own in zip(*roots, strict=True)]

    @property
    def standardised(self) -> Self:
        """Least squares of the data over these roots."""
        return type(self)([objective.standardised for objective in self.objectives])

    def keep_starts(self, keep) -> Self:
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
    def of(cls, solutions: list[Solution]) -> Self:
        """Put the clusters of solutions together; the list is emptied, so that W is held once."""
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

    def __len__(self) -> int:
        return len(self.sizes)

    def slices(self) -> list[slice]:
        """Return where the clusters of every run are."""
        ends = np.cumsum(self.sizes)
        starts = ends - self.sizes
        return [slice(start, end) for start, end in zip(starts, ends, strict=True)]

    @property
    def partitions(self):
        """Return the largest cluster of every row in every run, (n, n_runs); -1: in none."""
        return np.stack([hard_labels(self.W[run].T) for run in self.slices()], axis=1)

    def starts(self, n_starts: int, n_clusters: int):
        """Return positions of clusters to start from, once for each of the first runs.

        They are the largest of the run, then of the next where it has few; a cluster is as large as
        its row of W is long.
        """
        lengths = np.linalg.norm(self.W, axis=1)
        ranked = [
            run.start + np.argsort(-lengths[run], kind="stable")
            for run in self.slices()
        ]
        firsts = range(min(n_starts, len(self)))
        return [np.concatenate(ranked[i:] + ranked[:i])[:n_clusters] for i in firsts]

    @property
    def base_runs(self):
        """The run of every cluster."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def recurrence(self, W, H):
        """Return the mean over all runs of the cosine with the counterpart of a cluster, (k,).

        Counterparts are each other's most similar, by the cosine of the biclusters; in a run
        without one it counts as 0.

        Parameters
        ----------
        W : ndarray of shape (k, n)
        H : ndarray of shape (k, p)
        """
        total = np.zeros(len(W))
        for run in self.slices():  # all at a time would be copied in the type of W
            similarity = _cosines(self.W[run], W) * _cosines(self.H[run], H)
            best = similarity.argmax(axis=0)  # of the run, for every cluster
            is_mutual = similarity.argmax(axis=1)[best] == np.arange(len(W))
            total += np.where(is_mutual, similarity.max(axis=0), 0)
        return total / len(self)


def _cosines(A, B):
    """Return the cosines of all pairs of rows, 0 for rows of zeros."""
    lengths = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    zeros = np.zeros_like(lengths)
    cosines = np.divide(A @ B.T, lengths, out=zeros, where=lengths > 0)
    return np.minimum(cosines, 1)  # it may be more by rounding


def draw_sizes(
    n_runs: int,
    n_clusters: int,
    base_n_clusters,
    rng,
    n_fixed: int = 0,
):
    """Return the number of clusters of every run; together they have at least `n_clusters`.

    The first `n_fixed` of each are the same; where all are, there is one run.
    """
    if base_n_clusters is None:
        return np.full(int(n_runs) if n_fixed < n_clusters else 1, int(n_clusters))
    low, high = range_of_clusters(base_n_clusters, "base_n_clusters")
    sizes = rng.randint(low, high + 1, size=n_runs)
    if low < n_fixed or (sizes - n_fixed).sum() < n_clusters - n_fixed:
        raise ValueError(
            f"n_estimators={n_runs} runs with base_n_clusters={base_n_clusters} have "
            f"{sizes.sum()} clusters, {n_fixed} of each fixed: not enough for "
            f"n_clusters={n_clusters}."
        )
    return sizes if n_fixed < n_clusters else np.full(1, int(n_clusters))


@dataclass(frozen=True)
class RandomStart:
    """A random start of a run, on X or on resampled data.

    Attributes
    ----------
    shape : tuple of int
        That of X, (n, p).
    high : float
        Entries are drawn uniformly up to it, over the root of `size`.
    dtype : dtype
    size : int
        Number of clusters.
    seed : int
    table : int
        Seed of what it sees of X.
    resample : {"poisson", "bootstrap"}, float or None
        What that is: counts drawn anew; rows drawn with replacement; a share of the rows, but as
        many as it has clusters that are not fixed; all.
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
        """Return both factors side by side, (size, n + p), with the rows alone that it sees."""
        F = np.random.RandomState(self.seed).uniform(size=(self.size, sum(self.shape)))
        F = (F * (self.high / np.sqrt(self.size))).astype(self.dtype)
        rows = self.rows()
        if rows is None:
            return F
        return np.concatenate([F[:, rows], F[:, self.shape[0] :]], axis=1)

    def rows(self):
        """Return the rows of X that it sees, in their order; None for all."""
        n = self.shape[0]
        rng = np.random.default_rng(self.table)
        if self.resample == "bootstrap":
            return np.sort(rng.integers(n, size=n))
        if isinstance(self.resample, str) or self.resample is None:
            return None
        n_seen = max(round(float(self.resample) * n), self.size - self.n_fixed, 1)
        return np.sort(rng.permutation(n)[:n_seen])


@dataclass(frozen=True)
class Resampled:
    """An objective of which every start sees data of its own.

    Attributes
    ----------
    objective : MatrixObjective or Divergence
        Of X.
    weights : ndarray of shape (n,), default=None
        How often the rows of resampled data count.
    """

    objective: Objective
    weights: np.ndarray | None = None

    @property
    def constant(self) -> float:
        """Loss by which a decrease is measured."""
        return self.objective.constant

    @property
    def wide(self) -> bool:
        """Whether starts run side by side: on little data, where products are not all the work."""
        is_penalised = getattr(self.objective, "sparsity", 0) > 0
        return self.objective.X.size <= _SIDE_BY_SIDE and not is_penalised

    def seen_by(self, starts) -> Objective | SideBySide:
        """Return the objective of what every start of a batch sees."""
        objectives = []
        for start in starts:
            rows = start.rows()
            weights = self.weights
            if rows is None:
                rng = np.random.default_rng(start.table)
                counts = poisson_counts(self.objective.X, rng)
                objective = replace(self.objective, X=counts)
            else:
                objective = self.objective.take_rows(rows)
                weights = None if weights is None else weights[rows]
            objectives.append(objective.weighted(weights))
        return SideBySide(objectives) if len(objectives) > 1 else objectives[0]

    def of_all(self, start, factors: Factors) -> Factors:
        """Return the factors of a start with rows of 0 for those of X that it does not see."""
        W, H = factors
        rows = start.rows()
        if rows is None:
            return W, H
        all_rows = np.zeros((start.shape[0], len(H)), dtype=H.dtype)
        all_rows[rows] = W
        return all_rows, H


def run_many(
    objective: Objective,
    config: SolverConfig,
    sizes,
    rng,
    resample: str | float | None = None,
    weights=None,
    memory=None,
) -> Runs:
    """Factorize X from random starts, once for each number of clusters in `sizes`.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    config : SolverConfig
        With the solver of the runs.
    sizes : ndarray of shape (n_runs,), int
    rng : RandomState
    resample : str, float or None, default=None
        How tables are drawn that runs see in the place of X, see `RandomStart`.
    weights : ndarray of shape (n,), default=None
        How often every sample counts; one with 0 is in no cluster of a run.
    memory : joblib.Memory, default=None
        Where runs are kept.

    Returns
    -------
    Runs

    Raises
    ------
    ValueError
        If a loss is not finite, or if all runs end at 0: the penalty is too heavy; if a run has
        more clusters to find than there are samples.
    """
    weighted = objective.weighted(weights)
    X = weighted.X
    high = max_abs(objective.X)
    if resample == "poisson" and high > _LARGEST_MEAN:
        raise ValueError(
            f"resample='poisson' needs entries of X up to 1e18, got {high:.3g}."
        )
    if sizes.max() - objective.n_fixed > X.shape[0]:
        raise ValueError(
            f"base_n_clusters={sizes.max()} must be at most n_samples={X.shape[0]}."
        )
    # Draw starts such that WH has the mean of X. Seeds of starts and of their data alternate: the
    # first runs are the same however many there are.
    n_seeds = 1 if resample is None else 2
    seeds = np.reshape(draw_seeds(rng, len(sizes) * n_seeds), (-1, n_seeds)).tolist()
    mean = 2 * np.sqrt(X.mean(dtype=np.float64))
    starts = [
        RandomStart(
            X.shape, mean, X.dtype, size, own[0], own[-1], resample, objective.n_fixed
        )
        for size, own in zip(sizes.tolist(), seeds, strict=True)
    ]
    # Run each to its end, as all are members of the ensemble. Updates of the standardised matrix
    # have led them past the plateau of a random start.
    config = config.with_stop(prune_from=None, min_iter=min(config.stop.min_iter, 10))
    if X.size <= _SMALL:  # of a sparse one: entries that are stored
        config = replace(config, n_jobs=1)
    seen = weighted if resample is None else Resampled(objective, weights)
    sparsity = getattr(objective, "sparsity", 0)
    settings = f"with resample={resample!r}, sparsity={sparsity} and entries of X up to {high:.3g}"
    solutions = []
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows an overflow
            for size in np.unique(sizes):
                of_size = [start for start in starts if start.size == size]
                task = f"runs of {size} clusters"
                solutions += run_starts(seen, of_size, config, task, memory=memory)
    except FloatingPointError as error:
        raise ValueError(
            f"{X.dtype} cannot hold the losses of runs {settings}: scale X, or ask for "
            "less sparsity."
        ) from error
    solutions.sort(key=loss_of)
    if resample is not None:
        # fit the rows of W that are 0, as those that a run did not see are
        for solution in solutions:
            W, H = solution.factors
            unseen = ~W.any(axis=1, keepdims=True)
            if unseen.any():
                W = np.where(unseen, weighted.approximate_rows(H), W)
                solution.factors = (W, H)
    runs = Runs.of(solutions)
    if not runs.W.any():
        raise ValueError(
            f"Nothing is left of runs {settings}: scale X, or ask for less sparsity."
        )
    return runs


def warn_of_unconverged_runs(runs: Runs, max_iter: int) -> None:
    """Warn if runs did not converge."""
    n_lost = np.count_nonzero(~runs.converged)
    if n_lost:
        warn(
            f"{n_lost} of the {len(runs)} runs did not converge within "
            f"max_iter={max_iter} updates. Increase max_iter or tol.",
            ConvergenceWarning,
        )
