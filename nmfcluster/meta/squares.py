"""The data matrix that is factorized, and the loss of least squares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np

from nmfcluster._optim.run import Steps
from nmfcluster._utils.array_api import (
    Device,
    SparseTensor,
    contiguous_transpose,
    namespace,
    to_device,
    to_numpy,
)
from nmfcluster._utils.linalg import inner_products, nnls_rows
from nmfcluster._utils.sparse_products import astype, product_at, scale_rows_columns
from nmfcluster._utils.storage import (
    as_dense,
    as_float64,
    is_sparse,
    max_abs,
    row_blocks,
    row_sums,
    rows_of,
    scaled_rows,
    stored_entries,
    sum_of_squares,
)
from nmfcluster.meta.solvers import half_squares, hals, sparse_hals

# Factor by which a sum of squares of X must stay within the range of its dtype.
_MARGIN = 1e3
# Entries of X that are multiplied at a time: 32 MiB where they are widened to float64.
_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True)
class BaseObjective:
    """What the objectives of both losses share.

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
    n_first_updates: ClassVar[int]
    """Number of updates of the standardised matrix before those of X."""

    @cached_property
    def on_device(self):
        """X and its missing entries, on their device."""
        return to_device(self.X, self.device), to_device(self.missing, self.device)

    @property
    def wide(self) -> bool:
        """Whether several starts in one product are faster than one after the other."""
        return not is_sparse(self.X)

    @property
    def n_fixed(self) -> int:
        """Number of rows of H that are fixed."""
        return 0 if self.fixed is None else len(self.fixed)

    @cached_property
    def _sums(self):
        X = as_float64(self.X)
        return row_sums(X), row_sums(X.T)

    @cached_property
    def root_means(self):
        """Roots of the means of rows, and of columns; 1 where they are 0."""
        roots = []
        for sums, axis in zip(self._sums, (1, 0), strict=True):
            n_observed = self.X.shape[axis]
            if self.missing is not None:
                n_observed = n_observed - self.missing.sum(axis=axis)
            means = sums / np.maximum(n_observed, 1)
            roots.append(np.sqrt(np.where(means > 0, means, 1)))
        return tuple(roots)

    @property  # not cached: it is as large as X, and quick to make
    def standardised(self) -> MatrixObjective:
        """Least squares of X over the roots of its means: half of chi-square."""
        rows, columns = self.root_means
        fixed = self.fixed
        if fixed is not None:
            fixed = (fixed / columns).astype(self.X.dtype)
        X = scale_rows_columns(self.X, 1 / rows, 1 / columns)
        return MatrixObjective(X, self.missing, fixed, device=self.device)

    def keep_starts(self, keep) -> Self:
        """Return the objective of the starts that go on: X is that of all."""
        return self

    def take_rows(self, rows) -> Self:
        """Return the objective of some rows."""
        missing = None if self.missing is None else self.missing[rows]
        return replace(self, X=self.X[rows], missing=missing)

    def astype(self, dtype) -> Self:
        """Return the objective in another floating-point type."""

        def cast(array):
            return None if array is None else astype(array, dtype)

        return replace(
            self, X=cast(self.X), missing=cast(self.missing), fixed=cast(self.fixed)
        )

    def weighted(self, weights) -> Self:
        """Return the objective with rows that count as often as their weights say."""
        if weights is None:
            return self
        scale = weights ** (1 / self.degree)
        X = scaled_rows(self.X, scale)
        if is_sparse(X):
            X.eliminate_zeros()  # of rows that do not count
        return replace(self, X=X, row_scale=scale)

    def weighted_rows(self, W):
        """Return W (n, k), fitted without weights, with rows scaled as those of X."""
        return W if self.row_scale is None else scaled_rows(W, self.row_scale)

    def is_in_range(self) -> bool:
        """Return whether the loss of X, and sums on the way to it, can be held."""
        raise NotImplementedError

    def check_range(self) -> None:
        """Raise a ValueError if X is 0, or too large or too small for sums."""
        high = max_abs(self.X)
        if high == 0:
            raise ValueError("X must hold an entry above 0; all entries are 0.")
        if not self.is_in_range():
            raise ValueError(
                f"X must have sums, and sums of squares, that {self.X.dtype} holds with "
                f"some room, got entries up to {high:.3g}; scale it."
            )

    def check_observed(self, check_columns: bool) -> None:
        """Raise a ValueError if nothing is observed of a row, or of a column."""
        if self.missing is None:
            return
        axes = {"row": 1, "column": 0} if check_columns else {"row": 1}
        for kind, axis in axes.items():
            is_empty = self.missing.sum(axis=axis) == self.X.shape[axis]
            if is_empty.any():
                raise ValueError(
                    f"X must hold an entry in every {kind}; {kind} {is_empty.argmax()} "
                    "is NaN throughout: leave it out."
                )

    def row_column_factors(self, F):
        """Return a start (n_starts, k, n + p) as its two factors, fixed rows of H set."""
        n = self.X.shape[0]
        W = np.ascontiguousarray(F[..., :n])
        H = self.with_fixed(np.array(F[..., n:], order="C"))
        return to_device(W, self.device), to_device(H, self.device)

    def with_fixed(self, H):
        """Set the fixed rows of H (..., k, p), in place, and return it."""
        if self.fixed is not None:
            H[..., : self.n_fixed, :] = self.fixed
        return H


def from_standardised(objective, F) -> Steps:
    """Minimise a loss from where least squares of the standardised matrix lead from a start.

    To squares a cluster of few rows is small, and most random starts end in an optimum without it,
    in which a large cluster is split. Its columns are small, too: divided by the roots of their
    means they count as those of other clusters. The loss of the standardised matrix is half of
    chi-square, which is near the divergence: HALS takes a fraction of the time of EM to come as
    far, and its products are shared by all starts.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    F : ndarray of shape (n_starts, k, n + p)
        Positive: W transposed, and H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)
    """
    dtype = F.dtype
    rows, columns = objective.root_means
    if objective.degree == 2:  # the standardised matrix has no unit
        unit = np.sqrt((rows**2).mean(axis=-1)[..., None, None])
        F = (F / unit).astype(dtype)
    steps = hals(objective.standardised, F)
    (W, H), _ = next(islice(steps, objective.n_first_updates, None))
    W = to_numpy(W).mT * rows.astype(dtype)[..., None, :]
    H = to_numpy(H) * columns.astype(dtype)[..., None, :]
    start = [objective.positive_start(W), objective.positive_start(H)]
    yield from objective.solver(objective, np.concatenate(start, axis=2))


@dataclass(frozen=True)
class MatrixObjective(BaseObjective):
    r"""The objective :math:`\frac12 \|X - WH\|^2`, with a penalty on H or without.

    Missing entries are left out of the sum: products are made with the imputed entries that WH
    has there, so that no step raises the loss.

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
    # after 5 some runs miss a cluster of 3 % of the rows, and 15 only take longer
    n_first_updates: ClassVar[int] = 10

    @property
    def solver(self):
        """The solver that goes on from a factorization."""
        return sparse_hals if self.sparsity else hals

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factors."""
        return sum_of_squares(self.X) / 2

    def imputed_entries(self, W, H):
        """Return WH of every start where X misses an entry; an empty list if it has all."""
        missing = self.on_device[1]
        if missing is None:
            return []
        return [
            product_at(missing, contiguous_transpose(W[s, ...]), H[s, ...])
            for s in range(W.shape[0])
        ]

    def left_products(self, W, imputed=()):
        """Return ``W'X`` of every start, (n_starts, k, p)."""
        return _products(W, self.on_device[0], imputed)

    def right_products(self, H, imputed=()):
        """Return ``HX'`` of every start, (n_starts, k, n)."""
        return _products(H, self.on_device[0].T, [S.T for S in imputed])

    def loss(self, N, F, G, imputed=(), current=()):
        """Return the losses, without the penalty, from the products for one of the factors.

        Where entries are missing, `imputed` are those that the products were made with, and
        `current` those of the factors.
        """
        more: Any = 0.0
        if imputed:
            corrections = [
                inner_products(
                    new.data[None, None], (old.data - new.data / 2)[None, None]
                )
                for old, new in zip(imputed, current, strict=True)
            ]
            more = np.concatenate(corrections)
        return half_squares(self.constant, N, F, G, more)

    def for_runs(self) -> MatrixObjective:
        """Return the objective as runs of an ensemble have it."""
        return self

    def positive_start(self, F):
        """Return a factor to start from: as it is, because HALS leaves zeros."""
        return F

    def fit_rows(self, H):
        """Return the W >= 0 of the smallest ``||X - WH||``, (n, k)."""
        return least_squares_rows(self.X, H, self.missing)

    approximate_rows = fit_rows  # the exact ones are quick to find

    def scale_components(self, H):
        """Return H with rows of length 1, fixed ones as they are."""
        return self.with_fixed(unit_rows(H)[0])

    def error(self, W, H) -> float:
        """Return ``||X - WH||`` of one pair of factors, W of shape (n, k)."""
        if is_sparse(self.X):
            objective = replace(self.astype(np.float64), device=None)
            W = as_float64(W).T[None]
            H = as_float64(H)[None]
            imputed = objective.imputed_entries(W, H)
            N = objective.right_products(H, imputed)
            loss = objective.loss(N, W, H @ H.mT, imputed, imputed)
            return float(np.sqrt(2 * loss[0]))
        squares = 0.0
        # more rows at a time take memory, and are no faster
        for block in row_blocks(len(W), 1024):
            residual = self.X[block] - W[block] @ H
            if self.missing is not None:
                missing = rows_of(self.missing, block)
                rows, columns, _ = stored_entries(missing)
                residual[rows, columns] = 0
            squares += sum_of_squares(residual)
        return float(np.sqrt(squares))

    def is_in_range(self) -> bool:
        """Return whether the dtype of X can hold sums of its squares, and more."""
        limits = np.finfo(self.X.dtype)
        lowest = _MARGIN * float(limits.tiny)
        return lowest < 2 * self.constant < float(limits.max) / _MARGIN


def _products(F, X, imputed):
    """Return the rows of every start times X, with imputed values where X misses entries.

    A sparse X is multiplied from the left alone; numpy's products are in C order.
    """
    xp = namespace(F)
    n_starts, k, n = F.shape
    rows = xp.reshape(F, (-1, n))
    is_stored = isinstance(X, SparseTensor) or is_sparse(X)
    N = contiguous_transpose(X.T @ rows.T) if is_stored else rows @ X
    N = xp.reshape(N, (n_starts, k, X.shape[1]))
    for s, S in enumerate(imputed):
        N[s, ...] += contiguous_transpose(S.T @ F[s, ...].T)
    return N


def unit_rows(H):
    """Return H with rows of length 1, rows of zeros as they are, and the lengths, (k, 1)."""
    lengths = np.linalg.norm(H, axis=1, keepdims=True)
    return H / np.where(lengths > 0, lengths, 1), lengths


def least_squares_rows(X, H, missing=None):
    """Return the W >= 0 that minimises ``||X - WH||`` over what is observed, (n, k).

    Of rows of H that are multiples of each other the first is used. A row of which nothing is
    observed is 0.
    """
    # Products in float32 would lose the difference between similar clusters.
    wide = H.astype(np.float64)
    G = wide @ wide.T
    lengths = np.sqrt(np.diagonal(G))
    # a cosine within 1e-14 of 1 may be that of equal rows, but for rounding
    is_equal = (G >= (1 - 1e-14) * np.outer(lengths, lengths)) & (lengths > 0)
    used = np.flatnonzero(is_equal.argmax(axis=1) == np.arange(len(H)))
    components = wide[used].T
    # all rows share one system, but those with missing entries
    blocks = row_blocks(X.shape[0], max(1, _BLOCK_ENTRIES // X.shape[1]))
    B = np.concatenate([X[block] @ components for block in blocks])
    W = np.zeros((X.shape[0], len(H)), dtype=np.result_type(X.dtype, H.dtype))
    W[:, used] = nnls_rows(B, G[np.ix_(used, used)])
    if missing is not None:
        incomplete = np.flatnonzero(np.diff(missing.indptr))
        size = max(1, _BLOCK_ENTRIES // max(len(used) ** 2, X.shape[1]))
        for block in row_blocks(len(incomplete), size):
            rows = incomplete[block]
            systems = pair_products(observed_entries(missing, rows), components)
            W[np.ix_(rows, used)] = nnls_rows(B[rows], systems)
    return W


def observed_entries(missing, rows):
    """Return a 1 for every entry of some rows that is observed, dense.

    Differences of sums would lose a cluster of which little is observed.
    """
    return 1 - as_float64(as_dense(missing[rows]))


def pair_products(values, columns):
    """Return the products of values with all pairs of columns of a matrix, (n, k, k).

    Parameters
    ----------
    values : ndarray or csr_array of shape (n, p)
    columns : ndarray of shape (p, k)
    """
    k = columns.shape[1]
    G = np.empty((values.shape[0], k, k))
    for c in range(k):
        G[:, c, : c + 1] = values @ (columns[:, : c + 1] * columns[:, c : c + 1])
        G[:, : c + 1, c] = G[:, c, : c + 1]
    return G
