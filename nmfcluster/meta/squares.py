r"""Base class of the objectives of a data matrix, and the least-squares loss with its solvers.

A solver is a generator, see `nmfcluster._optim.run`. It stores factors as rows, with W transposed:
(k, n) and (k, p) for one start, so that all starts share one product with the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from nmfcluster._optim.run import Steps, keep_starts, per_start
from nmfcluster._utils.array_api import (
    Device,
    SparseTensor,
    call_with_out,
    contiguous_transpose,
    namespace,
    put_starts,
    take_starts,
    to_device,
    to_numpy,
)
from nmfcluster._utils.linalg import coordinate_descent, inner_products, nnls_rows
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
    sum_of_squares,
)

PENALTIES = ("l1_columns", "l1", "l2")

# Number of sweeps over a factor in an update; 3 reach a given loss fastest.
_SWEEPS = 3


# Factor by which the sum of squares of X must be within the range of its dtype.
_MARGIN = 1e3
# Number of entries of X that are multiplied at a time: 32 MiB in float64.
_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True)
class BaseObjective:
    r"""Base class of the objectives of both losses.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative; 0 where an entry is missing.
    missing : csr_array of shape (n, p), default=None
        A 1 for every entry that is not observed; None if all are observed.
    fixed : ndarray of shape (n_fixed, p), default=ndarray of shape (0, 1)
        The first rows of H, which stay as they are; by default there are none.
    device : Device, default=None
        Device of the products and factors; None for numpy.
    sparsity : float, default=0
        Weight :math:`\lambda` of a penalty on H, which is only possible with least squares.
    penalty : str, default="l2"
        One of `PENALTIES`.
    """

    X: Any
    missing: Any = None
    fixed: np.ndarray = field(default_factory=partial(np.zeros, (0, 1)))
    device: Device | None = None
    sparsity: float = 0.0
    penalty: str = "l2"

    degree: ClassVar[int] = 1
    """Power of t by which the loss grows if X and WH grow t times."""
    n_first_updates: ClassVar[int]
    """Number of updates of the standardised matrix before those of X."""

    @cached_property
    def on_device(self):
        """X and its missing entries, on their device."""
        return to_device(self.X, self.device), to_device(self.missing, self.device)

    @cached_property
    def transposed(self):
        """X transposed, on its device; cached, as in scipy it costs as much as a small product."""
        return self.on_device[0].T

    @property
    def wide(self):
        """Whether several starts in one product are faster than one after the other."""
        return not is_sparse(self.X)

    @property
    def n_fixed(self):
        """Number of rows of H that are fixed."""
        return len(self.fixed)

    @cached_property
    def _sums(self):
        X = as_float64(self.X)
        return row_sums(X), row_sums(X.T)

    def root_means(self):
        """Return roots of the means of rows, (1, n), and of columns, (1, p); 1 for means of 0."""
        roots = []
        for sums, axis in zip(self._sums, (1, 0), strict=True):
            n_observed = self.X.shape[axis]
            if self.missing is not None:
                n_observed = n_observed - self.missing.sum(axis=axis)
            means = sums / np.maximum(n_observed, 1)
            roots.append(np.sqrt(np.where(means > 0, means, 1))[None])
        return tuple(roots)

    @property  # not cached, because it is as large as X and quick to compute
    def standardised(self):
        """Least squares of X over the roots of its means: half of chi-square."""
        rows, columns = self.root_means()
        fixed = (self.fixed / columns).astype(self.X.dtype)
        X = scale_rows_columns(self.X, 1 / rows[0], 1 / columns[0])
        return MatrixObjective(X, self.missing, fixed, device=self.device)

    def keep_starts(self, keep):
        """Return the objective of the starts that continue, which all have the same X."""
        return self

    def take_rows(self, rows):
        """Return the objective of some rows."""
        missing = None if self.missing is None else self.missing[rows]
        return replace(self, X=self.X[rows], missing=missing)

    def astype(self, dtype):
        """Return the objective in another floating-point type."""
        missing = self.missing
        if missing is not None:
            missing = astype(missing, dtype)
        fixed = self.fixed.astype(dtype, copy=False)
        return replace(self, X=astype(self.X, dtype), missing=missing, fixed=fixed)

    def weighted(self, weights):
        """Return the objective in which rows count by their weights."""
        if weights is None:
            return self
        X = self.weighted_rows(self.X, weights)
        if is_sparse(X):
            X.eliminate_zeros()  # of rows with weight 0
        return replace(self, X=X)

    def weighted_rows(self, array, weights):
        """Return X or W (n, k) with rows scaled so that losses count them by their weights."""
        return (
            array
            if weights is None
            else scaled_rows(array, weights ** (1 / self.degree))
        )

    def is_in_range(self):
        """Return whether the dtype can hold the loss of X and the sums that it needs."""
        raise NotImplementedError

    def check_range(self):
        """Raise a ValueError if X is 0, or too large or too small for sums."""
        high = max_abs(self.X)
        if high == 0:
            raise ValueError("X must hold an entry above 0; all entries are 0.")
        if not self.is_in_range():
            raise ValueError(
                f"X must have sums, and sums of squares, in the range of {self.X.dtype}, "
                f"got entries up to {high:.3g}: scale X."
            )

    def check_observed(self, check_columns):
        """Raise a ValueError if no entry of a row, or of a column, is observed."""
        if self.missing is None:
            return
        for axis, kind in enumerate(["column", "row"]):
            is_empty = self.missing.sum(axis=axis) == self.X.shape[axis]
            if is_empty.any() and (check_columns or kind == "row"):
                raise ValueError(
                    f"X must hold an entry in every {kind}, but {kind} {is_empty.argmax()} "
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
        H[..., : self.n_fixed, :] = self.fixed
        return H


def from_standardised(objective, F) -> Steps:
    """Minimise a loss, starting with least-squares updates on the standardised matrix.

    A cluster of few rows contributes little to the squared error, and its columns are small. Most
    random starts therefore end in an optimum that lacks it and splits a large cluster. If columns
    are divided by the roots of their means, those of a small cluster count as much as others. The
    loss of the standardised matrix is half of chi-square, which is close to the divergence. HALS
    gets as far as EM in a fraction of the time, and all starts share its products.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    F : ndarray of shape (n_starts, k, n + p)
        Positive: W transposed, and H.

    Returns
    -------
    generator
        Steps of the solver of the objective, `joint_em`, `hals` or `sparse_hals`.
    """
    dtype = F.dtype
    rows, columns = objective.root_means()
    if objective.degree == 2:  # the standardised matrix has no unit
        unit = np.sqrt((rows**2).mean(axis=1)[:, None, None])
        F = (F / unit).astype(dtype)
    steps = hals(objective.standardised, F)
    (W, H), _ = next(islice(steps, objective.n_first_updates, None))
    W = to_numpy(W).mT * rows.astype(dtype)[:, None]
    H = to_numpy(H) * columns.astype(dtype)[:, None]
    start = [objective.positive_start(W), objective.positive_start(H)]
    return objective.solver(objective, np.concatenate(start, axis=2))


@dataclass(frozen=True)
class MatrixObjective(BaseObjective):
    r"""The objective :math:`\frac12 \|X - WH\|^2`, with or without a penalty on H.

    Missing entries are left out of the sum. Products use the entries of WH in their place, so that
    no step raises the loss. Attributes are those of `BaseObjective`.
    """

    degree: ClassVar[int] = 2
    # after 5 updates, some runs miss a cluster of 3 % of the rows; 15 only take longer
    n_first_updates: ClassVar[int] = 10

    @property
    def solver(self):
        """The solver that continues from a factorization."""
        return sparse_hals if self.sparsity else hals

    @cached_property
    def constant(self):
        """Loss of the zero factors."""
        return sum_of_squares(self.X) / 2

    def imputed_entries(self, W, H):
        """Return the entries of WH where X misses one, for every start; an empty list for none."""
        missing = self.on_device[1]
        if missing is None:
            return []
        return [
            product_at(missing, contiguous_transpose(W[s, ...]), H[s, ...])
            for s in range(W.shape[0])
        ]

    def products(self, W, H, transposed=False):
        """Return ``W'X`` of every start, (n_starts, k, p), or ``HX'``, (n_starts, k, n).

        Also return the imputed entries that were used where X misses some. A sparse X is only
        multiplied from the left. Products of numpy are in C order.
        """
        imputed = self.imputed_entries(W, H)
        left = self.transposed
        F = W
        if transposed:
            left = self.on_device[0]
            F = H
        xp = namespace(F)
        n_starts, k, n = F.shape
        rows = xp.reshape(F, (-1, n))
        is_stored = isinstance(left, SparseTensor) or is_sparse(left)
        N = contiguous_transpose(left @ rows.T) if is_stored else rows @ left.T
        N = xp.reshape(N, (n_starts, k, left.shape[0]))
        for s, S in enumerate(imputed):
            entries = S if transposed else S.T
            N[s, ...] += contiguous_transpose(entries @ F[s, ...].T)
        return N, imputed

    def loss(self, N, F, G, imputed=(), current=()):
        """Return the losses, without the penalty, from the products for one of the factors.

        If entries are missing, `imputed` are those that were used for the products, and `current`
        those of the factors.
        """
        losses = self.constant - inner_products(N, F)
        losses += inner_products(G, F @ F.mT) / 2
        for s, (old, new) in enumerate(zip(imputed, current, strict=True)):
            mean = old.data - new.data / 2
            losses[s] += inner_products(new.data[None, None], mean[None, None])[0]
        return np.maximum(losses, 0)

    def for_runs(self):
        """Return the objective for runs of an ensemble, which is the same."""
        return self

    def positive_start(self, F):
        """Return a factor to start from, unchanged, because HALS can leave zeros."""
        return F

    def fit_rows(self, H):
        """Return the W >= 0 with the smallest ``||X - WH||``, (n, k)."""
        return least_squares_rows(self.X, H, self.missing)

    def approximate_rows(self, H, rows=None):
        """Return `fit_rows` for all or some rows, because exact rows are fast."""
        part = self if rows is None else self.take_rows(rows)
        return part.fit_rows(H)

    def scale_components(self, H):
        """Return H with rows of length 1, fixed ones as they are."""
        return self.with_fixed(unit_rows(H)[0])

    def error(self, W, H):
        """Return ``||X - WH||`` of one pair of factors, W of shape (n, k)."""
        if is_sparse(self.X):
            objective = replace(self.astype(np.float64), device=None)
            W = as_float64(W).T[None]
            H = as_float64(H)[None]
            N, imputed = objective.products(W, H, transposed=True)
            loss = objective.loss(N, W, H @ H.mT, imputed, imputed)
            return float(np.sqrt(2 * loss[0]))
        squares = 0.0
        # more rows at a time take more memory, and are no faster
        for block in row_blocks(len(W), 1024):
            residual = self.X[block] - W[block] @ H
            if self.missing is not None:
                residual[as_dense(rows_of(self.missing, block)) > 0] = 0
            squares += sum_of_squares(residual)
        return float(np.sqrt(squares))

    def is_in_range(self):
        """Return whether the dtype of X can hold the sum of its squares, with a margin."""
        limits = np.finfo(self.X.dtype)
        lowest = _MARGIN * float(limits.tiny)
        return lowest < 2 * self.constant < float(limits.max) / _MARGIN


def unit_rows(H):
    """Return H with rows of length 1, rows of zeros as they are, and the lengths, (k, 1)."""
    lengths = np.linalg.norm(H, axis=1, keepdims=True)
    return H / np.where(lengths > 0, lengths, 1), lengths


def least_squares_rows(X, H, missing=None):
    """Return the W >= 0 that minimises ``||X - WH||`` over observed entries, (n, k).

    If rows of H are multiples of each other, only the first is used. Rows without an observed
    entry are 0.
    """
    # Products in float32 would lose the difference between similar clusters.
    wide = H.astype(np.float64)
    G = wide @ wide.T
    lengths = np.sqrt(np.diagonal(G))
    # rows with a cosine within 1e-14 of 1 may be equal, but for rounding
    is_equal = (G >= (1 - 1e-14) * np.outer(lengths, lengths)) & (lengths > 0)
    used = np.flatnonzero(is_equal.argmax(axis=1) == np.arange(len(H)))
    components = wide[used].T
    # all rows without missing entries share one system
    blocks = row_blocks(X.shape[0], max(1, _BLOCK_ENTRIES // X.shape[1]))
    B = np.concatenate([rows_of(X, block) @ components for block in blocks])
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
    """Return a dense array with a 1 for every observed entry of some rows.

    Differences of sums would lose a cluster with few observed entries by rounding.
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


def descend(F, N, G, sweeps=_SWEEPS, n_fixed=0):
    """Return the factor of every start after sweeps of coordinate descent."""
    F = namespace(F).asarray(F, copy=True)
    coordinate_descent(F, N, G, sweeps, n_fixed)
    return F


def hals(objective, F) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2` by extrapolated coordinate descent.

    A factor is improved by a few sweeps of exact coordinate descent over its k rows (hierarchical
    alternating least squares, HALS [1]_), and then extrapolated along its last step [2]_. If the
    loss would rise, the step is undone, and the next is not extrapolated, so that the loss never
    rises.

    Parameters
    ----------
    objective : MatrixObjective
        Without a penalty.
    F : ndarray of shape (n_starts, k, n + p)
        Nonnegative: W transposed, and H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)

    References
    ----------
    .. [1] A. Cichocki, R. Zdunek, S. Amari. Hierarchical ALS algorithms for nonnegative matrix
       and 3D tensor factorization. ICA 2007.
    .. [2] A. M. S. Ang, N. Gillis. Accelerating nonnegative matrix factorization algorithms using
       extrapolation. Neural Computation 31, 2019.
    """
    W, H = objective.row_column_factors(F)
    N, imputed = objective.products(W, H)
    loss = objective.loss(N, H, W @ W.mT, imputed, imputed)
    W_ahead = W  # W after extrapolation
    H_swept = H  # H before extrapolation
    # The share of its last step by which a start is extrapolated (beta of Ang and Gillis), the
    # share of the last step that was kept, and the largest share. There is no step yet.
    share = last_share = np.full(len(F), 0.5)
    limit = np.ones(len(F))
    rose = limit > 0
    while True:
        keep = yield (W.mT, H), loss
        W, H, W_ahead, H_swept, loss = keep_starts(keep, W, H, W_ahead, H_swept, loss)
        rose, share, last_share, limit = keep_starts(
            keep, rose, share, last_share, limit
        )
        objective = objective.keep_starts(keep)
        # Improve H for the W ahead, and extrapolate it unless the last step was undone.
        N, _ = objective.products(W_ahead, H)
        H_before = H_swept
        H_swept = descend(H, N, W_ahead @ W_ahead.mT, n_fixed=objective.n_fixed)
        H_new = extrapolate(H_swept, H_before, np.where(rose, 0, share))
        # Improve W for this H, which gives the loss, and extrapolate it for the next update.
        N, imputed = objective.products(W_ahead, H_new, transposed=True)
        G = H_new @ H_new.mT
        W_new = descend(W_ahead, N, G)
        current = objective.imputed_entries(W_new, H_new)
        loss_new = objective.loss(N, W_new, G, imputed, current)
        W_ahead = extrapolate(W_new, W, share)
        # Undo the steps of starts whose loss would rise.
        rose = ~(loss_new <= loss)
        if rose.any():
            for new, old in ((W_new, W), (W_ahead, W), (H_new, H)):
                put_starts(new, rose, take_starts(old, rose))
        W = W_new
        H = H_new
        loss = np.where(rose, loss, loss_new)
        # After a step that was kept, the share grows by gamma, 1.05, up to the limit, which grows
        # by 1.01. After an undone step it is divided by eta, 1.5, and the limit becomes the share
        # of the last step that was kept.
        limit = np.where(rose, last_share, np.minimum(1, 1.01 * limit))
        last_share = np.where(rose, last_share, share)
        share = np.where(rose, share / 1.5, np.minimum(limit, 1.05 * share))


def extrapolate(F, before, share):
    """Return F plus a share of its step from `before`; no cluster becomes 0."""
    further = F - before
    further *= per_start(share, F)
    further += F
    xp = namespace(F)
    further = call_with_out(further, xp.clip, further, 0, None)
    vanished = ~xp.any(further, axis=2)
    return xp.where(vanished[..., None], F, further) if xp.any(vanished) else further


def sparse_hals(objective, F) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2 + \lambda R(H)` with columns of W of length 1.

    That is nonnegative sparse coding (Badea, 2005, eq. 11-12) with one of the penalties R

    ============== ================================== =========================
    "l2"           :math:`\|H\|^2`                    eq. 12: shrinks H
    "l1"           :math:`\sum_{cg} H_{cg}`           eq. 11: not free of scale
    "l1_columns"   :math:`\sum_g (\sum_c H_{cg})^2`   few clusters a column
    ============== ================================== =========================

    The last one sets entries to 0 that are below :math:`2 \lambda` times the sum of their column,
    whatever the scale of X. Each row of H, and each column of W on the sphere, is set to the
    minimum with all others fixed, so that the loss never rises. With ``"l2"`` the row of cluster c
    is :math:`[w_c'R_c]_+ / (1 + 2\lambda)`, where the published rule has :math:`\lambda` instead
    of :math:`2\lambda` and W may become negative.

    Parameters
    ----------
    objective : MatrixObjective
    F : ndarray of shape (n_starts, k, n + p)
        Nonnegative: W transposed, and H. The scale of a cluster is moved to H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)
        With the penalty.
    """
    W, H = objective.row_column_factors(F)
    sparsity = objective.sparsity
    penalty = objective.penalty
    # Scale the rows of W, which is transposed, to length 1; those of zeros become constant.
    length = np.linalg.norm(W, axis=2, keepdims=True)
    constant = np.full_like(W, W.shape[2] ** -0.5)
    W = np.divide(W, length, out=constant, where=length > 0)
    H = H * length
    N, _ = objective.products(W, H)
    loss = objective.loss(N, H, W @ W.mT)
    while True:
        keep = yield (W.mT, H), loss + sparsity * penalty_of(H, penalty)
        W, H = keep_starts(keep, W, H)
        H = H.copy()
        N, _ = objective.products(W, H)
        descend_penalised(H, N, W @ W.mT, sparsity, penalty, _SWEEPS)
        W = W.copy()
        N, _ = objective.products(W, H, transposed=True)
        G = H @ H.mT
        for s in range(len(W)):
            descend_on_sphere(W[s], N[s], G[s], _SWEEPS)
        loss = objective.loss(N, W, G)


def penalty_of(H, penalty):
    """Return R(H) of every start, (n_starts,), accumulated in float64."""
    if penalty == "l2":
        return inner_products(H, H)
    if penalty == "l1":
        return H.sum(axis=(1, 2), dtype=np.float64)
    return (H.sum(axis=1, dtype=np.float64) ** 2).sum(axis=1)


def descend_penalised(
    H,
    N,
    G,
    sparsity,
    penalty,
    sweeps,
):
    """Improve the H of every start by sweeps of coordinate descent over its rows, in place.

    Parameters
    ----------
    H : ndarray of shape (n_starts, k, p)
        Nonnegative.
    N : ndarray of shape (n_starts, k, p)
        ``W'X``.
    G : ndarray of shape (n_starts, k, k)
        ``W'W``.
    sparsity : float
    penalty : str
        One of `PENALTIES`; each is a least squares problem with other N and G.
    sweeps : int
    """
    weight = G.dtype.type(2 * sparsity)
    if penalty == "l1":
        N = N - weight / 2
    elif penalty == "l1_columns":
        G = G + weight
    else:
        G = G + weight * np.eye(G.shape[1], dtype=G.dtype)
    coordinate_descent(H, N, G, sweeps)


def descend_on_sphere(W, N, G, sweeps):
    """Improve the W of one start, in place: each row becomes the best one of length 1.

    Parameters
    ----------
    W : ndarray of shape (k, n)
        Nonnegative, W transposed.
    N : ndarray of shape (k, n)
        ``HX'``.
    G : ndarray of shape (k, k)
        ``HH'``.
    sweeps : int
    """
    for _ in range(sweeps):
        for c in range(len(W)):
            if G[c, c] == 0:
                continue  # the cluster has no columns: all rows fit equally well
            towards = N[c] - G[c] @ W + G[c, c] * W[c]
            new = np.maximum(towards, 0)
            high = new.max()
            if high > 0:
                new /= high  # squares could overflow or underflow
                W[c] = new / np.linalg.norm(new)
            else:
                W[c] = 0
                W[c, np.argmax(towards)] = 1
