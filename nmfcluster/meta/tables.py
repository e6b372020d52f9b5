"""A table that is factorized, as all objectives have it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from nmfcluster._arrays.places import split_missing
from nmfcluster._arrays.storage import is_sparse, row_sums, scaled_rows


@dataclass(frozen=True)
class Table:
    """What all objectives of a table have.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative; 0 where an entry is missing.
    missing : csr_array of shape (n, p), default=None
        A 1 for every entry that is not observed; None where all are.
    fixed : ndarray of shape (n_fixed, p), default=None
        The first rows of H, which stay as they are; None for none.
    row_scale : ndarray of shape (n,), default=None
        What rows have been multiplied by, so that they count by their weights; None for 1.
    """

    X: Any
    missing: Any = None
    fixed: np.ndarray | None = None
    row_scale: np.ndarray | None = None

    degree: ClassVar[int] = 1
    """By which power of t the loss grows where X and WH grow t times."""

    @classmethod
    def of(cls, X: Any, **more: Any) -> Self:
        """Make an objective of a table in which NaN stands for what is not observed."""
        X, missing = split_missing(X)
        return cls(X, missing, **more)

    @property
    def wide(self) -> bool:
        """Whether several starts in one product are faster than one after the other."""
        return not is_sparse(self.X)

    @property
    def n_fixed(self) -> int:
        """Number of rows of H that are fixed."""
        return 0 if self.fixed is None else len(self.fixed)

    def taken(self, rows: np.ndarray) -> Self:
        """Return the objective of some rows."""
        missing = None if self.missing is None else self.missing[rows]
        return replace(self, X=self.X[rows], missing=missing)

    def in_type(self, dtype: Any) -> Self:
        """Return the objective in another floating-point type."""
        parts = (self.X, self.missing, self.fixed)
        X, missing, fixed = (F if F is None else F.astype(dtype, copy=False) for F in parts)
        return replace(self, X=X, missing=missing, fixed=fixed)

    def weighted(self, weights: np.ndarray | None) -> Self:
        """Return the objective with rows that count as often as their weights say."""
        if weights is None:
            return self
        scale = weights ** (1 / self.degree)
        X = scaled_rows(self.X, scale)
        if is_sparse(X):
            X.eliminate_zeros()  # of rows that do not count
        return replace(self, X=X, row_scale=scale)

    def weighted_rows(self, W: np.ndarray) -> np.ndarray:
        """Return W (n, k) of the table without weights as this one has it."""
        return W if self.row_scale is None else scaled_rows(W, self.row_scale)

    def holding(self, fixed: np.ndarray) -> Self:
        """Return the objective with rows of H that stay as they are, scaled as its own."""
        return replace(self, fixed=self.scaled_columns(fixed))

    def scaled_columns(self, H: np.ndarray) -> np.ndarray:
        """Return H with rows as they are returned to the user, fixed ones as they are."""
        raise NotImplementedError

    def check_observed(self) -> None:
        """Raise a ValueError if nothing is observed of a row, or of a column."""
        if self.missing is None:
            return
        pairs = ((self.missing, "row"), (self.missing.T, "column"))
        for (places, kind), size in zip(pairs, self.X.shape[::-1], strict=True):
            if (empty := np.flatnonzero(row_sums(places) == size)).size:
                raise ValueError(
                    f"X must hold an entry that is observed in every {kind}; {kind} {empty[0]} is "
                    f"NaN throughout: leave it out."
                )

    def split(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a start (n_starts, k, n + p) as its two factors, fixed rows of H as they are."""
        n = self.X.shape[0]
        W, H = np.ascontiguousarray(F[..., :n]), np.array(F[..., n:], order="C")
        return W, self.with_fixed(H)

    def with_fixed(self, H: np.ndarray) -> np.ndarray:
        """Return H (..., k, p) with the fixed rows as they are; it is written to."""
        if self.fixed is not None:
            H[..., : self.n_fixed, :] = self.fixed
        return H
