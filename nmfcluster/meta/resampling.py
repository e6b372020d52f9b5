"""Tables that runs see in the place of X: what recurs in their runs is said by the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nmfcluster._arrays.draws import drawn, holds_whole_numbers
from nmfcluster._arrays.storage import largest
from nmfcluster._engine.executor import PerStart, Start
from nmfcluster._engine.loop import Steps

COUNTS = ("poisson", "multinomial")  # ways that draw other counts in all places
WAYS = (*COUNTS, "bootstrap")
_LARGEST = 1e18  # of a mean: numpy draws counts of 64 bits


@dataclass(frozen=True)
class RandomStart:
    """A start of a run, and the seed of the table that it sees.

    Attributes
    ----------
    width : int
        Rows and columns of X together.
    high : float
        Entries are drawn uniformly up to it, over the root of `size`.
    dtype : dtype
    size : int
        Number of clusters.
    seed, table : int
        That of the start, and that of its table.
    """

    width: int
    high: float
    dtype: Any
    size: int
    seed: int
    table: int

    def __call__(self) -> np.ndarray:
        """Return both factors side by side, (size, width)."""
        F = np.random.RandomState(self.seed).uniform(size=(self.size, self.width))
        return (F * (self.high / np.sqrt(self.size))).astype(self.dtype)


@dataclass(frozen=True)
class Seen:
    """The objective of a table that a start sees.

    Attributes
    ----------
    objective : MatrixObjective or Divergence
        Of the table.
    n : int
        Number of rows of X.
    rows : ndarray of int or None
        Which of them the table has, some of them more than once; None for all.
    """

    objective: Any
    n: int
    rows: np.ndarray | None


@dataclass(frozen=True)
class Resampled(PerStart):
    """An objective of which every start sees a table of its own.

    Attributes
    ----------
    objective : MatrixObjective or Divergence
        Of X.
    way : str or float
        One of `WAYS`, or a share of the rows; a run sees at least as many as it has clusters.
    weights : ndarray of shape (n,), default=None
        How often rows count, of whatever is drawn.
    """

    objective: Any
    way: str | float
    weights: np.ndarray | None = None

    @property
    def constant(self) -> float:
        """Loss by which a decrease is measured."""
        return float(self.objective.constant)

    def seen_by(self, starts: Sequence[Start]) -> Seen:
        """Return what one start sees."""
        [start] = starts
        assert isinstance(start, RandomStart)
        rng, X = np.random.default_rng(start.table), self.objective.X
        n = X.shape[0]
        if self.way in COUNTS:
            table = replace(self.objective, X=drawn(X, str(self.way), rng))
            return Seen(table.weighted(self.weights), n, None)
        if self.way == "bootstrap":
            rows = np.sort(rng.integers(n, size=n))
        else:
            rows = np.sort(rng.permutation(n)[: max(round(float(self.way) * n), start.size)])
        weights = None if self.weights is None else self.weights[rows]
        return Seen(self.objective.taken(rows).weighted(weights), n, rows)


def on_seen(solver: Callable[..., Steps], seen: Seen, F: np.ndarray) -> Steps:
    """Run a solver on the table that a start sees; rows that it does not have are 0.

    Parameters
    ----------
    solver : callable
        Of the objective.
    seen : Seen
    F : ndarray of shape (1, k, n + p)

    Yields
    ------
    factors : tuple of ndarrays of shapes (1, n, k) and (1, k, p)
        W, of all rows of X, and H.
    loss : ndarray of shape (1,)
        Of the table.
    """
    if seen.rows is None:
        yield from solver(seen.objective, F)
        return
    n = seen.n
    steps = solver(seen.objective, np.concatenate([F[..., seen.rows], F[..., n:]], axis=2))
    for (W, H), loss in steps:  # one start: it goes on, or is not resumed
        of_all = np.zeros((1, n, W.shape[2]), dtype=W.dtype)
        of_all[:, seen.rows] = W
        yield (of_all, H), loss


def check_counts(way: str | float | None, X: Any) -> None:
    """Raise a ValueError if counts cannot be drawn in the place of X."""
    if way in COUNTS and largest(X) > _LARGEST:
        raise ValueError(
            f"resample={way!r} draws counts, whose means must be at most {_LARGEST:.0e}, got "
            f"entries up to {largest(X):.3g} in X: scale it, or take a share of the rows."
        )
    if way == "multinomial" and not holds_whole_numbers(X):
        raise ValueError(
            "resample='multinomial' draws as many counts for a row as it has: X must hold whole "
            "numbers. resample='poisson' takes any."
        )
