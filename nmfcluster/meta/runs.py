"""Runs on small tables of their own, side by side: what is the same for all is done at once.

Many NMF runs, each on a table of its own, and their clusters side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, Self

import numpy as np

from nmfcluster._base import hard_labels
from nmfcluster._optim.initialization import draw_seeds
from nmfcluster._optim.run import Factors, Solution, SolverConfig, loss_of, run_starts
from nmfcluster._utils.array_api import namespace
from nmfcluster._utils.sampling import poisson_counts
from nmfcluster._utils.storage import largest
from nmfcluster.meta.parameters import Objective
from nmfcluster.meta.squares import Filling, MatrixObjective, Table, unit_rows
from nmfcluster.partitions.base_runs import range_of_clusters


class SideBySide:
    """Objectives of tables of the same shape, one for every start of a batch.

    Their products are made one after the other, and all else of an update at once. It has what
    solvers ask of an objective, see `Table`, `MatrixObjective` and `Divergence`.

    Parameters
    ----------
    each : sequence of MatrixObjective or Divergence
    """

    ahead = Table.ahead
    loss = MatrixObjective.loss

    def __init__(self, each: Sequence[Any]) -> None:
        self.each, one = each, each[0]
        self.n_fixed, self.solver = one.n_fixed, one.solver
        self.positive = one.positive  # the same for all

    @cached_property
    def constant(self) -> np.ndarray:
        """Losses of the zero factors."""
        return np.array([one.constant for one in self.each])

    @cached_property
    def scales(self) -> tuple[np.ndarray, ...]:
        """Roots of the means of rows, and of columns, of every table."""
        return tuple(
            map(np.stack, zip(*(one.scales for one in self.each), strict=True))
        )

    @property
    def standardised(self) -> Self:
        """Least squares of the tables over these roots."""
        return type(self)([one.standardised for one in self.each])

    def kept(self, keep: np.ndarray | None) -> Self:
        """Return the objectives of the starts that go on."""
        if keep is None:
            return self
        return type(self)(list(compress(self.each, keep)))

    def split(self, F: np.ndarray) -> tuple[Any, ...]:
        """Return starts as their two factors."""
        return _joined([one.split(f) for one, f in self._starts(F)])

    def filling(self, W: Any, H: Any) -> Filling:
        """Return what WH has where tables miss an entry."""
        parts = [one.filling(w, h) for one, w, h in self._starts(W, H)]
        return None if parts[0] is None else [part[0] for part in parts]

    def of_rows(self, W: Any, filling: Filling = None) -> Any:
        """Return ``W'X`` of every start."""
        return _joined([[one.of_rows(w, S)] for one, w, S in self._starts(W, filling)])[
            0
        ]

    def of_columns(self, H: Any, filling: Filling = None) -> Any:
        """Return ``HX'`` of every start."""
        return _joined(
            [[one.of_columns(h, S)] for one, h, S in self._starts(H, filling)]
        )[0]

    def expected(self, W: Any, H: Any, of_loss: bool = True) -> tuple[Any, ...]:
        """Return how much of every table each cluster makes, and the losses."""
        return _joined(
            [one.expected(w, h, of_loss) for one, w, h in self._starts(W, H)]
        )

    def _starts(self, *parts: Any) -> Iterator[tuple[Any, ...]]:
        """Yield objectives, each with its part of arrays, or of lists, as a batch of one."""
        for s, one in enumerate(self.each):
            some: list[Any] = [
                [part[s]] if isinstance(part, list) else part for part in parts
            ]
            yield one, *(F[s : s + 1, ...] if hasattr(F, "shape") else F for F in some)


def _joined(parts: list[Any]) -> tuple[Any, ...]:
    """Return the arrays of all starts, one after the other."""
    return tuple(
        namespace(arrays[0]).concat(arrays) for arrays in zip(*parts, strict=True)
    )


_SIDE_BY_SIDE = (
    2**18
)  # entries of X up to which runs on tables of their own share updates
_SMALL = (
    2**16
)  # entries of X up to which threads wait for each other, and one is faster


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
        sizes = np.array([len(solution.factors[1]) for solution in solutions])
        losses = np.array([solution.loss for solution in solutions])
        converged = np.array([solution.converged for solution in solutions])
        H, lengths = unit_rows(
            np.concatenate([solution.factors[1] for solution in solutions])
        )
        one = solutions[0].factors[0]
        W = np.empty((len(H), len(one)), dtype=one.dtype)
        for end in np.cumsum(sizes)[::-1]:
            of_last = solutions.pop().factors[0].T
            W[end - len(of_last) : end] = of_last
        W *= lengths
        return cls(W, H, sizes, losses, converged)

    def __len__(self) -> int:
        return len(self.sizes)

    def slices(self) -> list[slice]:
        """Return where the clusters of every run are."""
        ends = np.cumsum(self.sizes)
        return [
            slice(end - size, end) for size, end in zip(self.sizes, ends, strict=True)
        ]

    def partitions(self) -> np.ndarray:
        """Return the largest cluster of every row in every run, (n, n_runs); -1: in none."""
        return np.stack([hard_labels(self.W[run].T) for run in self.slices()], axis=1)

    def starts(self, n_starts: int, n_clusters: int) -> list[np.ndarray]:
        """Return positions of clusters to start from, once for each of the first runs.

        They are the largest of the run, then of the next where it has few; a cluster is as large as
        its row of W is long.
        """
        order = -np.linalg.norm(self.W, axis=1)
        ranked = [
            part.start + np.argsort(order[part], kind="stable")
            for part in self.slices()
        ]
        firsts = range(min(n_starts, len(self)))
        return [np.concatenate(ranked[i:] + ranked[:i])[:n_clusters] for i in firsts]

    def recurrence(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the mean over all runs of the cosine with the counterpart of a cluster, (k,).

        Counterparts are each other's most similar, by the cosine of the biclusters; in a run
        without one it counts as 0.

        Parameters
        ----------
        W : ndarray of shape (k, n)
        H : ndarray of shape (k, p)
        """
        similarity = np.zeros(len(W))
        for part in self.slices():  # all at a time would be copied in the type of W
            near = _cosine(self.W[part], W) * _cosine(self.H[part], H)
            best = near.argmax(axis=0)  # of the run, for every cluster
            mutual = near.argmax(axis=1)[best] == np.arange(len(W))
            similarity += np.where(mutual, near.max(axis=0), 0)
        return similarity / len(self)


def _cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    a, b = (np.linalg.norm(F, axis=1) for F in (A, B))
    scale = a[:, None] * b
    cosine = np.divide(A @ B.T, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.minimum(cosine, 1)  # it may be more by rounding


def draw_sizes(
    n_runs: int,
    n_clusters: int,
    base_n_clusters: Any,
    rng: np.random.RandomState,
    n_fixed: int = 0,
) -> np.ndarray:
    """Return the number of clusters of every run; together they have at least `n_clusters`.

    The first `n_fixed` of each are the same; where all are, there is one run.
    """
    if base_n_clusters is None:
        return np.full(int(n_runs) if n_fixed < n_clusters else 1, int(n_clusters))
    low, high = range_of_clusters(base_n_clusters, "base_n_clusters")
    sizes = rng.randint(low, high + 1, size=n_runs)
    if low < n_fixed or (sizes - n_fixed).sum() < n_clusters - n_fixed:
        runs = f"n_estimators={n_runs} runs with base_n_clusters={base_n_clusters}"
        have = f"have {sizes.sum()} clusters, {n_fixed} of each fixed"
        raise ValueError(f"{runs} {have}: not enough for n_clusters={n_clusters}.")
    return sizes if n_fixed < n_clusters else np.full(1, int(n_clusters))


@dataclass(frozen=True)
class RandomStart:
    """A start of a run on X, or on what it sees of it.

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

    def __call__(self) -> np.ndarray:
        """Return both factors side by side, (size, n + p), with the rows alone that it sees."""
        F = np.random.RandomState(self.seed).uniform(size=(self.size, sum(self.shape)))
        F = (F * (self.high / np.sqrt(self.size))).astype(self.dtype)
        n, rows = self.shape[0], self.rows()
        return F if rows is None else np.concatenate([F[:, rows], F[:, n:]], axis=1)

    def rows(self) -> np.ndarray | None:
        """Return the rows of X that it sees, in their order; None for all."""
        n, rng = self.shape[0], np.random.default_rng(self.table)
        if self.resample == "bootstrap":
            return np.sort(rng.integers(n, size=n))
        if isinstance(self.resample, str) or self.resample is None:
            return None
        seen = max(round(float(self.resample) * n), self.size - self.n_fixed, 1)
        return np.sort(rng.permutation(n)[:seen])


@dataclass(frozen=True)
class Resampled:
    """An objective of which every start sees a table of its own.

    Attributes
    ----------
    objective : MatrixObjective or Divergence
        Of X.
    weights : ndarray of shape (n,), default=None
        How often rows count, of whatever is drawn.
    """

    objective: Objective
    weights: np.ndarray | None = None

    @property
    def constant(self) -> float:
        """Loss by which a decrease is measured."""
        return float(self.objective.constant)

    @property
    def wide(self) -> bool:
        """Whether starts run side by side: on small tables, where products are not all the work."""
        penalised = getattr(self.objective, "sparsity", 0)
        return bool(self.objective.X.size <= _SIDE_BY_SIDE and not penalised)

    def seen_by(self, starts: Sequence[Any]) -> Objective | SideBySide:
        """Return the objective of what every start of a batch sees."""
        each = [self._seen(start) for start in starts]
        return SideBySide(each) if len(each) > 1 else each[0]

    def _seen(self, start: Any) -> Objective:
        objective, weights, rows = self.objective, self.weights, start.rows()
        if rows is None:
            counts = poisson_counts(objective.X, np.random.default_rng(start.table))
            return replace(objective, X=counts).weighted(weights)
        return objective.taken(rows).weighted(
            None if weights is None else weights[rows]
        )

    def of_all(self, start: Any, factors: Factors) -> Factors:
        """Return the factors of a start with rows of 0 for those of X that it does not see."""
        W, H = factors
        if (rows := start.rows()) is not None:
            W = np.zeros((start.shape[0], len(H)), dtype=H.dtype)
            W[rows] = factors[0]
        return W, H


def run_many(
    objective: Objective,
    config: SolverConfig,
    sizes: np.ndarray,
    rng: np.random.RandomState,
    resample: str | float | None = None,
    weights: np.ndarray | None = None,
    memory: Any = None,
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
    X, high, solutions = weighted.X, largest(objective.X), []
    if resample == "poisson" and high > 1e18:  # more is no mean of counts of 64 bits
        raise ValueError(
            f"resample='poisson' needs entries of X up to 1e18, got {high:.3g}."
        )
    if sizes.max() - (m := objective.n_fixed) > X.shape[0]:
        raise ValueError(
            f"base_n_clusters={sizes.max()} must be at most n_samples={X.shape[0]}."
        )
    # starts, with the seeds of their tables, one after the other: the first runs are the same
    # however many there are; WH has the mean of X
    mean = 2 * float(np.sqrt(X.mean(dtype=np.float64)))
    drawn = draw_seeds(rng, len(sizes) * (1 if resample is None else 2))
    seeds, tables = (drawn, drawn) if resample is None else (drawn[::2], drawn[1::2])
    makers = [
        RandomStart(X.shape, mean, X.dtype, int(size), seed, table, resample, m)
        for size, seed, table in zip(sizes, seeds, tables, strict=True)
    ]
    # runs, each to its end on what it sees: all are members of the ensemble; updates of the
    # standardised table have led them past the plateau of a random start
    config = config.with_stop(prune_from=None, min_iter=min(config.stop.min_iter, 10))
    if X.size <= _SMALL:  # of a sparse one: entries that are stored
        config = replace(config, n_jobs=1)
    table: Any = weighted if resample is None else Resampled(objective, weights)
    sparsity = getattr(objective, "sparsity", 0)
    told = f"with resample={resample!r}, sparsity={sparsity} and entries of X up to {high:.3g}"
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # the loss shows an overflow
            for size in np.unique(sizes):
                starts = [maker for maker in makers if maker.size == size]
                solutions += run_starts(
                    table, starts, config, f"runs of {size} clusters", memory=memory
                )
    except FloatingPointError as error:
        cure = "scale X, or ask for less sparsity"
        raise ValueError(
            f"{X.dtype} cannot hold the losses of runs {told}: {cure}."
        ) from error
    # their clusters, of all rows: those of 0, which a run did not see, are fitted
    solutions.sort(key=loss_of)
    if resample is not None:
        for solution in solutions:
            W, H = solution.factors
            unseen = ~W.any(axis=1, keepdims=True)
            if unseen.any():
                solution.factors = np.where(unseen, weighted.near_rows(H), W), H
    runs = Runs.of(solutions)
    if not runs.W.any():
        raise ValueError(
            f"Nothing is left of runs {told}: scale X, or ask for less sparsity."
        )
    return runs
