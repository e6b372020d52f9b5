"""Runs on small tables of their own, side by side: what is the same for all is done at once."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, Self

import numpy as np

from nmfcluster._arrays.device import namespace
from nmfcluster.meta.squares import Filling, MatrixObjective, Table


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
        return tuple(map(np.stack, zip(*(one.scales for one in self.each), strict=True)))

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
        return _joined([[one.of_rows(w, S)] for one, w, S in self._starts(W, filling)])[0]

    def of_columns(self, H: Any, filling: Filling = None) -> Any:
        """Return ``HX'`` of every start."""
        return _joined([[one.of_columns(h, S)] for one, h, S in self._starts(H, filling)])[0]

    def expected(self, W: Any, H: Any, of_loss: bool = True) -> tuple[Any, ...]:
        """Return how much of every table each cluster makes, and the losses."""
        return _joined([one.expected(w, h, of_loss) for one, w, h in self._starts(W, H)])

    def _starts(self, *parts: Any) -> Iterator[tuple[Any, ...]]:
        """Yield objectives, each with its part of arrays, or of lists, as a batch of one."""
        for s, one in enumerate(self.each):
            some: list[Any] = [[part[s]] if isinstance(part, list) else part for part in parts]
            yield one, *(F[s : s + 1, ...] if hasattr(F, "shape") else F for F in some)


def _joined(parts: list[Any]) -> tuple[Any, ...]:
    """Return the arrays of all starts, one after the other."""
    return tuple(namespace(arrays[0]).concat(arrays) for arrays in zip(*parts, strict=True))
