"""A table that is factorized, and the loss of least squares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np

from nmfcluster._optim.run import Steps
from nmfcluster._utils import storage
from nmfcluster._utils.array_api import (
    Device,
    Stored,
    moved,
    namespace,
    to_numpy,
    upright,
)
from nmfcluster._utils.linalg import dots, exact_rows
from nmfcluster._utils.sparse_products import in_dtype, product_at, scaled
from nmfcluster.meta.solvers import half_squares, hals, sparse_hals

_ROOM = 1e3  # by which a sum of squares of X must stay within the range of its dtype
_ENTRIES = (
    2**22
)  # of X that are multiplied at a time: 32 MiB where they are widened to float64

Filling = (
    list[Any] | None
)  # what every start has where X misses an entry; None where it has all


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
    device : Device, default=None
        Where products are made, and factors are; None for numpy.
    """

    X: Any
    missing: Any = None
    fixed: np.ndarray | None = None
    row_scale: np.ndarray | None = None
    device: Device | None = None

    degree: ClassVar[int] = 1
    """By which power of t the loss grows where X and WH grow t times."""

    @cached_property
    def there(self) -> tuple[Any, Any]:
        """X and what it misses, on their device."""
        return moved(self.X, self.device), moved(self.missing, self.device)

    @property
    def wide(self) -> bool:
        """Whether several starts in one product are faster than one after the other."""
        return not storage.is_sparse(self.X)

    @property
    def n_fixed(self) -> int:
        """Number of rows of H that are fixed."""
        return 0 if self.fixed is None else len(self.fixed)

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        X = storage.as_float64(self.X)
        return storage.row_sums(X), storage.row_sums(X.T)

    @cached_property
    def scales(self) -> tuple[np.ndarray, ...]:
        """Roots of the means of rows, and of columns; 1 where they are 0."""
        scales = []
        for sums, across in zip(self._sums, (1, 0), strict=True):
            n_missing = 0 if self.missing is None else self.missing.sum(axis=across)
            means = sums / np.maximum(np.asarray(self.X.shape[across]) - n_missing, 1)
            scales.append(np.sqrt(np.where(means > 0, means, 1)))
        return tuple(scales)

    @property  # not kept: it is as large as X, and quick to make
    def standardised(self) -> MatrixObjective:
        """Least squares of X over these roots: half of chi-square."""
        fixed = (
            None
            if self.fixed is None
            else (self.fixed / self.scales[1]).astype(self.X.dtype)
        )
        X = scaled(self.X, *(1 / scale for scale in self.scales))
        return MatrixObjective(X, self.missing, fixed, device=self.device)

    def ahead(self, F: np.ndarray, n_updates: int) -> tuple[np.ndarray, np.ndarray]:
        """Return where updates of the standardised table lead from a start, W transposed, and H."""
        (W, H), _ = next(islice(hals(self.standardised, F), n_updates, None))
        W, H = to_numpy(W), to_numpy(H)
        rows, columns = (scale.astype(F.dtype)[..., None, :] for scale in self.scales)
        return W.mT * rows, H * columns

    def kept(self, keep: np.ndarray | None) -> Self:
        """Return the objective of the starts that go on: the table is that of all."""
        return self

    def taken(self, rows: np.ndarray | slice) -> Self:
        """Return the objective of some rows."""
        missing = None if self.missing is None else self.missing[rows]
        return replace(self, X=self.X[rows], missing=missing)

    def in_type(self, dtype: Any) -> Self:
        """Return the objective in another floating-point type."""
        parts = (self.X, self.missing, self.fixed)
        X, missing, fixed = (F if F is None else in_dtype(F, dtype) for F in parts)
        return replace(self, X=X, missing=missing, fixed=fixed)

    def weighted(self, weights: np.ndarray | None) -> Self:
        """Return the objective with rows that count as often as their weights say."""
        if weights is None:
            return self
        scale = weights ** (1 / self.degree)
        X = storage.scaled_rows(self.X, scale)
        if storage.is_sparse(X):
            X.eliminate_zeros()  # of rows that do not count
        return replace(self, X=X, row_scale=scale)

    def weighted_rows(self, W: np.ndarray) -> np.ndarray:
        """Return W (n, k) of the table without weights as this one has it."""
        return W if self.row_scale is None else storage.scaled_rows(W, self.row_scale)

    def has_room(self) -> bool:
        """Return whether the loss of X, and sums on the way to it, can be held."""
        raise NotImplementedError

    def check_range(self) -> None:
        """Raise a ValueError if X is 0, or too large or too small for sums."""
        high = storage.largest(self.X)
        if high == 0:
            raise ValueError("X must hold an entry above 0; all entries are 0.")
        if not self.has_room():
            held = (
                f"sums, and sums of squares, that {self.X.dtype} holds with some room"
            )
            raise ValueError(
                f"X must have {held}, got entries up to {high:.3g}; scale it."
            )

    def check_observed(self, of_columns: bool) -> None:
        """Raise a ValueError if nothing is observed of a row, or of a column if that is wanted."""
        if self.missing is None:
            return
        for kind, axis in (("row", 1), ("column", 0))[: 1 + of_columns]:
            empty = self.missing.sum(axis=axis) == self.X.shape[axis]
            if empty.any():
                which = f"{kind} {empty.argmax()} is NaN throughout"
                raise ValueError(
                    f"X must hold an entry in every {kind}; {which}: leave it out."
                )

    def split(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a start (n_starts, k, n + p) as its two factors, fixed rows of H as they are."""
        n = self.X.shape[0]
        W, H = np.ascontiguousarray(F[..., :n]), np.array(F[..., n:], order="C")
        return moved(W, self.device), moved(self.with_fixed(H), self.device)

    def with_fixed(self, H: np.ndarray) -> np.ndarray:
        """Return H (..., k, p) with the fixed rows as they are; it is written to."""
        if self.fixed is not None:
            H[..., : self.n_fixed, :] = self.fixed
        return H


def standardised_first(objective: MatrixObjective, F: np.ndarray) -> Steps:
    """Minimise the squared error from where the standardised table leads from a start.

    To squares a cluster of few rows is small, and most random starts end in an optimum without it,
    in which a large cluster is split. Its columns are small, too: divided by the roots of their
    means they count as those of other clusters.

    Parameters
    ----------
    objective : MatrixObjective
    F : ndarray of shape (n_starts, k, n + p)
        Positive: W transposed, and H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)
    """
    # 10 updates: after 5 some runs miss a cluster of 3 % of the rows, and 15 only take longer
    unit = np.sqrt((objective.scales[0] ** 2).mean(axis=-1)[..., None, None])
    start = objective.ahead(
        (F / unit).astype(F.dtype), 10
    )  # the standardised table has no unit
    yield from objective.solver(objective, np.concatenate(start, axis=2))


@dataclass(frozen=True)
class MatrixObjective(Table):
    r"""The objective :math:`\frac12 \|X - WH\|^2`, with a penalty on H or without.

    Missing entries are left out of the sum: in products they are what WH has there, the
    `filling`, so that no step raises the loss.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    missing : csr_array of shape (n, p), default=None
    fixed : ndarray of shape (n_fixed, p), default=None
    sparsity : float, default=0
        Weight :math:`\lambda` of the penalty.
    penalty : str, default="l2"
        One of `PENALTIES`.
    """

    sparsity: float = 0.0
    penalty: str = "l2"

    degree: ClassVar[int] = 2

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factors."""
        return storage.sum_of_squares(self.X) / 2

    def filling(self, W: np.ndarray, H: np.ndarray) -> Filling:
        """Return what WH has of every start where X misses an entry; None where it has all."""
        _, missing = self.there
        if missing is None:
            return None
        return [
            product_at(missing, upright(W[s, ...]), H[s, ...])
            for s in range(W.shape[0])
        ]

    def of_rows(self, W: np.ndarray, filling: Filling = None) -> np.ndarray:
        """Return ``W'X`` of every start, (n_starts, k, p)."""
        return _products(W, self.there[0], filling or [])

    def of_columns(self, H: np.ndarray, filling: Filling = None) -> np.ndarray:
        """Return ``HX'`` of every start, (n_starts, k, n)."""
        return _products(H, self.there[0].T, [S.T for S in filling or ()])

    def loss(
        self,
        N: np.ndarray,
        F: np.ndarray,
        G: np.ndarray,
        filling: Filling = None,
        now: Filling = None,
    ) -> np.ndarray:
        """Return the losses, without the penalty, from the products for one of the factors.

        Where entries are missing, `filling` is what the products were made with, and `now` what
        the factors have there.
        """
        pairs = zip(filling or (), now or (), strict=True)
        made_up = [
            dots(v.data[None, None], (s.data - v.data / 2)[None, None])
            for s, v in pairs
        ]
        return half_squares(
            self.constant, N, F, G, np.concatenate(made_up) if made_up else 0.0
        )

    @property
    def solver(self) -> Any:
        """The solver that goes on from a factorization."""
        return sparse_hals if self.sparsity else hals

    run_solver = staticmethod(standardised_first)  # of a run from a random start

    def for_runs(self) -> MatrixObjective:
        """Return the objective as runs of an ensemble have it."""
        return self

    def positive(self, F: np.ndarray) -> np.ndarray:
        """Return a factor to start from: as it is, HALS leaves zeros."""
        return F

    def rows(self, H: np.ndarray) -> np.ndarray:
        """Return the W >= 0 of the smallest ``||X - WH||``, (n, k)."""
        return fitted_rows(self.X, H, self.missing)

    near_rows = rows  # which are quick to find

    def scaled_columns(self, H: np.ndarray) -> np.ndarray:
        """Return H with rows of length 1, fixed ones as they are."""
        return self.with_fixed(unit_rows(H)[0])

    def error(self, W: np.ndarray, H: np.ndarray) -> float:
        """Return ``||X - WH||`` of one pair of factors, W of shape (n, k)."""
        if storage.is_sparse(self.X):
            wide, H = (
                replace(self.in_type(np.float64), device=None),
                storage.as_float64(H)[None],
            )
            rows = storage.as_float64(W).T[None]
            filling = wide.filling(rows, H)
            N = wide.of_columns(H, filling)
            return float(np.sqrt(2 * wide.loss(N, rows, H @ H.mT, filling, filling)[0]))
        squares = []
        for block in storage.row_blocks(
            len(W), 1024
        ):  # more rows take memory, and are no faster
            residual = self.X[block] - W[block] @ H
            if self.missing is not None:
                rows, columns, _ = storage.stored_entries(
                    storage.rows_of(self.missing, block)
                )
                residual[rows, columns] = 0
            squares.append(storage.sum_of_squares(residual))
        return float(np.sqrt(sum(squares)))

    def has_room(self) -> bool:
        """Return whether the dtype of X can hold sums of its squares, and more."""
        limits = np.finfo(self.X.dtype)
        return (
            _ROOM * float(limits.tiny) < 2 * self.constant < float(limits.max) / _ROOM
        )


def _products(F: Any, X: Any, filling: list[Any]) -> Any:
    """Return the rows of every start times X, in which it has what fills missing entries."""
    xp = namespace(F)
    N = xp.reshape(
        _times(xp.reshape(F, (-1, F.shape[2])), X), (*F.shape[:2], X.shape[1])
    )
    for s, S in enumerate(filling):
        N[s, ...] += _times(F[s, ...], S)
    return N


def _times(F: Any, X: Any) -> Any:
    """Return FX, numpy's in C order; a sparse table is multiplied from the left alone."""
    return (
        upright(X.T @ F.T) if isinstance(X, Stored) or storage.is_sparse(X) else F @ X
    )


def unit_rows(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return H with rows of length 1, rows of zeros as they are, and the lengths, (k, 1)."""
    lengths = np.linalg.norm(H, axis=1, keepdims=True)
    return H / np.where(lengths > 0, lengths, 1), lengths


def fitted_rows(X: Any, H: np.ndarray, missing: Any = None) -> np.ndarray:
    """Return the W >= 0 that minimises ``||X - WH||`` over what is observed, (n, k).

    Of rows of H that are multiples of each other the first is used. A row of which nothing is
    observed is 0.
    """
    wide = H.astype(
        np.float64
    )  # products in float32 lose what tells clusters that are alike
    G = wide @ wide.T
    lengths = np.sqrt(np.diagonal(G))
    # a cosine within 1e-14 of 1 may be that of equal rows, but for rounding
    equal = (G >= (1 - 1e-14) * np.outer(lengths, lengths)) & (lengths > 0)
    used = np.flatnonzero(equal.argmax(axis=1) == np.arange(len(H)))
    W = np.zeros((X.shape[0], len(H)), dtype=np.result_type(X.dtype, H.dtype))
    blocks = storage.row_blocks(X.shape[0], max(1, _ENTRIES // X.shape[1]))
    B = np.concatenate([np.asarray(X[block] @ wide[used].T) for block in blocks])
    G = G[np.ix_(used, used)]
    W[:, used] = exact_rows(B, G)
    if missing is not None:
        some = np.flatnonzero(np.diff(missing.indptr))
        size = max(1, _ENTRIES // max(len(used) ** 2, X.shape[1]))
        for block in storage.row_blocks(len(some), size):
            systems = pair_products(observed(missing, some[block]), wide[used].T)
            W[np.ix_(some[block], used)] = exact_rows(B[some[block]], systems)
    return W


def observed(missing: Any, rows: Any) -> np.ndarray:
    """Return a 1 for every entry of some rows that is observed, dense.

    Differences of sums would lose what little is observed of a cluster.
    """
    return 1 - storage.as_float64(storage.as_dense(missing[rows]))


def pair_products(values: Any, across: np.ndarray) -> np.ndarray:
    """Return the sums over columns of values times two columns of a matrix, (n, k, k).

    Parameters
    ----------
    values : ndarray or csr_array of shape (n, p)
    across : ndarray of shape (p, k)
    """
    k = across.shape[1]
    G = np.empty((values.shape[0], k, k))
    for c in range(k):
        G[:, c, : c + 1] = values @ (across[:, : c + 1] * across[:, c : c + 1])
        G[:, : c + 1, c] = G[:, c, : c + 1]
    return G
