"""Rows of W for fixed components under the Kullback-Leibler loss, exact: Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from nmfcluster._utils.linalg import nnls_rows
from nmfcluster._utils.sparse_products import product_at, with_data
from nmfcluster._utils.storage import (
    as_float64,
    is_sparse,
    row_blocks,
    row_sums,
    rows_of,
)
from nmfcluster.meta.squares import observed_entries, pair_products

# Entries of a block of X, or of the small systems of its rows: 2 MiB, as in a cache.
_BLOCK_ENTRIES = 2**18
# Residual of the conditions of a minimum, which has no unit, below which a row is done.
_TOLERANCE = 1e-10
# Ridge, relative to the largest diagonal entry: without curvature steps would have no end.
_RIDGE = 1e-12


def poisson_rows(X, H, missing=None):
    r"""Return the W >= 0 that minimises the divergence of X from WH, (n, k), in float64.

    A row is the minimum of a convex function, :math:`\sum_j (wH)_j - x_j \log (wH)_j`, over what
    is observed. It is found by the proximal method of Newton [1]_: steps to the nonnegative minimum
    of the quadratic function that is nearest, halved where they are too long. A column that no
    component has says nothing.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    H : ndarray of shape (k, p)
        Nonnegative. Of rows that are multiples of each other all are used.
    missing : csr_array of shape (n, p), default=None
        A 1 for every entry that is not observed, where X has 0.

    Returns
    -------
    ndarray of shape (n, k)

    References
    ----------
    .. [1] J. D. Lee, Y. Sun, M. A. Saunders. Proximal Newton-type methods for minimizing composite
       functions. SIAM Journal on Optimization 24, 2014.
    """
    H = as_float64(H)
    n = X.shape[0]
    W = np.zeros((n, len(H)))
    # leave out components that are 0, and columns that no component has
    sums = H.sum(axis=1)
    used = np.flatnonzero(sums > 0)
    if not len(used):
        return W
    components = H[used] / sums[used, None]
    seen = components.any(axis=0)
    if not seen.all():
        X = X[:, seen]
        components = components[:, seen]
        missing = None if missing is None else missing[:, seen]
    # solve blocks of rows
    row_entries = X.shape[1]
    if is_sparse(X) and missing is None:
        row_entries = X.nnz // max(n, 1)
    size = max(1, _BLOCK_ENTRIES // max(len(used) ** 2, row_entries, 1))
    for block in row_blocks(n, size):
        if missing is None:
            costs = np.ones((block.stop - block.start, len(used)))
        else:
            costs = observed_entries(missing, block) @ components.T
        x = as_float64(rows_of(X, block))
        part = components
        if is_sparse(x):  # columns without a count in this block add nothing
            columns = np.unique(x.indices)
            x = x[:, columns]
            part = part[:, columns]
        rows = PoissonRows(x, part, costs, row_sums(x))
        W[block, used] = solve_poisson_rows(rows) / sums[used]
    return W


class _State(NamedTuple):
    """Where rows are; all arrays have one entry, or one row, for each."""

    U: np.ndarray
    loss: np.ndarray
    slope: np.ndarray
    residual: np.ndarray  # of the conditions of a minimum, as a share of the counts

    def take(self, rows) -> _State:
        return _State._make([array[rows] for array in self])


@dataclass(frozen=True)
class PoissonRows:
    """Some rows of X, and the sums over its columns that they need.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
    components : ndarray of shape (k, p), or of shape (n, k, p) with a dense X
        Each sums to 1; or those of each row, some of which may be 0.
    costs : ndarray of shape (n, k)
        Their sums over what is observed of every row.
    totals : ndarray of shape (n,)
        Sums of the rows of X.
    """

    X: Any
    components: np.ndarray
    costs: np.ndarray
    totals: np.ndarray

    @property
    def counts(self):
        """The entries that count: all of a dense X, (n, p), those that a sparse one stores."""
        return self.X.data if is_sparse(self.X) else self.X

    def take(self, rows) -> Self:
        """Return some of the rows."""
        own = self.components[rows] if self.components.ndim == 3 else self.components
        return type(self)(self.X[rows], own, self.costs[rows], self.totals[rows])

    def means(self, U):
        """Return the entries of UH where the counts are."""
        if self.components.ndim == 3:
            return np.asarray((U[:, None] @ self.components)[:, 0])
        if is_sparse(self.X):
            return np.asarray(product_at(self.X, U, self.components).data)
        return U @ self.components

    def _as_matrix(self, values):
        """Return one value for each of the counts as a matrix that is stored as X is."""
        return with_data(self.X, values) if is_sparse(self.X) else values

    def gains(self, means):
        """Return the sums of ``x / means`` times a component, (n, k)."""
        ratios = quotients(self.counts, means)
        if self.components.ndim == 3:
            return np.asarray((self.components @ ratios[:, :, None])[..., 0])
        return np.asarray(self._as_matrix(ratios) @ self.components.T)

    def curvature(self, means):
        """Return the second derivatives of the losses, (n, k, k)."""
        values = quotients(quotients(self.counts, means), means)
        if self.components.ndim == 3:
            scaled = self.components * values[:, None]
            return np.asarray(scaled @ self.components.mT)
        return pair_products(self._as_matrix(values), self.components.T)

    def losses(self, U, means):
        """Return the losses, but for a constant; infinity where a count has a mean of 0."""
        x = self.counts
        logs = np.log(means, out=np.zeros_like(means), where=(x > 0) & (means > 0))
        lost = row_sums(self._as_matrix(np.where(means > 0, 0, x))) > 0
        gain = row_sums(self._as_matrix(x * logs))
        return np.where(lost, np.inf, np.einsum("nk,nk->n", U, self.costs) - gain)

    def state(self, U) -> _State:
        """Return the losses at U, with their slopes and residuals."""
        means = self.means(U)
        slope = self.costs - self.gains(means)
        shares = U * self.costs / self.totals[:, None]
        missed = np.abs(np.minimum(shares, quotients(slope, self.costs)))
        return _State(U, self.losses(U, means), slope, missed.max(axis=1))


def solve_poisson_rows(rows: PoissonRows, start=None):
    """Return the minimum of every row, (n, k); a row without counts is 0.

    `start` is where they begin, a positive (n, k): the counts are divided evenly by default.
    """
    n, k = rows.costs.shape
    U = np.zeros((n, k))
    active = np.flatnonzero(rows.totals > 0)
    rows = rows.take(active)
    if start is None:
        current = np.repeat(rows.totals[:, None] / k, k, axis=1)
    else:
        current = start[active]
    # steps of EM before the first of Newton
    for _ in range(4):
        current = current * quotients(rows.gains(rows.means(current)), rows.costs)
    state = rows.state(current)
    # steps of Newton for the rows that are not done; most take five to ten
    for _ in range(100):
        U[active] = state.U
        remaining = np.flatnonzero(state.residual > _TOLERANCE)
        if not len(remaining):
            break
        active = active[remaining]
        rows = rows.take(remaining)
        state = state.take(remaining)
        _newton_step(rows, state)
    return U


def _newton_step(rows: PoissonRows, state: _State) -> None:
    """Make a step of Newton, in place, halved until it lowers a row.

    The step is to the minimum of the quadratic function that is nearest, over all that is
    nonnegative: the function falls along it, as far as needed from where it is infinite.
    """
    U = state.U
    slope = state.slope
    G = rows.curvature(rows.means(U))
    diagonal = np.einsum("nkk->nk", G)
    diagonal += _RIDGE * diagonal.max(axis=1, keepdims=True)
    step = nnls_rows(np.einsum("nk,nkl->nl", U, G) - slope, G) - U
    gain = np.einsum("nk,nk->n", slope, step)
    remaining = np.arange(len(U))
    length = 1.0
    for _ in range(40):  # rounding is all that is left of a step then
        before = state.take(remaining)
        some = rows.take(remaining)
        after = some.state(before.U + length * step[remaining])
        # Armijo's rule: lower by 1e-4 of the slope, but for rounding
        allowed = before.loss + 1e-14 * (np.abs(before.loss) + some.totals)
        is_lower = after.loss <= allowed + 1e-4 * length * gain[remaining]
        for values, new in zip(state, after, strict=True):
            values[remaining[is_lower]] = new[is_lower]
        remaining = remaining[~is_lower]
        length /= 2
        if not len(remaining):
            break


def quotients(x, p):
    """Return x / p, and 0 where p is: no row can change that."""
    return np.divide(x, p, out=np.zeros_like(p), where=p > 0)
