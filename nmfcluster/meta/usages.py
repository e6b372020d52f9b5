"""Rows of W for fixed components under the Kullback-Leibler loss, exact: Newton's method."""

from typing import Any, NamedTuple, Self

import numpy as np

from nmfcluster._utils.linalg import exact_rows
from nmfcluster._utils.sparse_products import holding, product_at
from nmfcluster._utils.storage import (
    as_float64,
    is_sparse,
    row_blocks,
    row_sums,
    rows_of,
)
from nmfcluster.meta.squares import observed, pair_products

_ENTRIES = (
    2**18
)  # of a block of X, or of the small systems of its rows: 2 MiB, as in a cache
_SURE = (
    1e-10  # residual of the conditions of a minimum, which has no unit: a row is done
)
_RIDGE = (
    1e-12  # of the largest on the diagonal: directions without curvature have an end
)


def poisson_rows(X: Any, H: np.ndarray, missing: Any = None) -> np.ndarray:
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
    sums = H.sum(axis=1)
    used = np.flatnonzero(sums > 0)
    W = np.zeros((X.shape[0], len(H)))
    if not len(used):
        return W
    components = H[used] / sums[used, None]
    seen = components.any(axis=0)
    if not seen.all():
        X, components = X[:, seen], components[:, seen]
        missing = None if missing is None else missing[:, seen]
    entries = (
        X.nnz // max(X.shape[0], 1) if is_sparse(X) and missing is None else X.shape[1]
    )
    for block in row_blocks(
        X.shape[0], max(1, _ENTRIES // max(len(used) ** 2, entries, 1))
    ):
        costs = np.ones((block.stop - block.start, len(used)))
        if missing is not None:
            costs = observed(missing, block) @ components.T
        x, part = as_float64(rows_of(X, block)), components
        if is_sparse(x):  # what a block has in no row has no count
            columns = np.unique(x.indices)
            x, part = x[:, columns], part[:, columns]
        W[block, used] = minima(_Rows(x, part, costs)) / sums[used]
    return W


class _Rows:
    """Some rows of a table, and the sums over its columns that they need.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
    components : ndarray of shape (k, p)
        Each sums to 1.
    costs : ndarray of shape (n, k)
        Their sums over what is observed of every row.

    Attributes
    ----------
    counts : ndarray
        The entries that count: all of a dense table, (n, p), those that a sparse one stores. Other
        values have one for each of them.
    """

    def __init__(self, X: Any, components: np.ndarray, costs: np.ndarray) -> None:
        self.X, self.components, self.costs = X, components, costs
        self.counts = X.data if is_sparse(X) else X

    def taken(self, rows: np.ndarray) -> Self:
        """Return some of the rows."""
        return type(self)(self.X[rows], self.components, self.costs[rows])

    def means(self, U: np.ndarray) -> np.ndarray:
        """Return the entries of UH where those are that count."""
        if is_sparse(self.X):
            return np.asarray(product_at(self.X, U, self.components).data)
        return U @ self.components

    def placed(self, values: np.ndarray) -> Any:
        """Return values as a table, stored as X is."""
        return holding(self.X, values) if is_sparse(self.X) else values

    def products(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times a component, (n, k)."""
        return np.asarray(self.placed(values) @ self.components.T)

    def pairs(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times two components, (n, k, k)."""
        return pair_products(self.placed(values), self.components.T)


class OwnRows(_Rows):
    """Rows of a dense table, each with components of its own, (n, k, p); some may be 0."""

    def taken(self, rows: np.ndarray) -> Self:
        """Return some of the rows."""
        return type(self)(self.X[rows], self.components[rows], self.costs[rows])

    def means(self, U: np.ndarray) -> np.ndarray:
        """Return UH, every row by its own H."""
        return np.asarray((U[:, None] @ self.components)[:, 0])

    def products(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times a component, (n, k)."""
        return np.asarray((self.components @ values[:, :, None])[..., 0])

    def pairs(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times two components, (n, k, k)."""
        return np.asarray((self.components * values[:, None]) @ self.components.mT)


class _State(NamedTuple):
    """Where rows are; all arrays have one entry, or one row, for each."""

    U: np.ndarray
    totals: np.ndarray  # of the counts, (n, 1)
    value: np.ndarray
    slope: np.ndarray
    residual: (
        np.ndarray
    )  # by how much the conditions of a minimum are missed, in shares of counts

    @classmethod
    def at(cls, rows: _Rows, U: np.ndarray, totals: np.ndarray) -> Self:
        means, costs = rows.means(U), rows.costs
        slope = costs - rows.products(quotients(rows.counts, means))
        missed = np.abs(np.minimum(U * costs / totals, quotients(slope, costs))).max(
            axis=1
        )
        return cls(U, totals, value(rows, U, means), slope, missed)

    def taken(self, rows: np.ndarray) -> Self:
        return type(self)(*(array[rows] for array in self))


def minima(rows: _Rows, start: np.ndarray | None = None) -> np.ndarray:
    """Return the minimum of every row, (n, k); a row without counts is 0.

    `start` is where they begin, a positive (n, k): at a sum that is shared out evenly by default.
    """
    totals, k = row_sums(rows.X), rows.costs.shape[1]
    U = np.zeros((len(totals), k))
    todo = np.flatnonzero(totals > 0)
    rows, totals = rows.taken(todo), totals[todo, None]
    now = np.repeat(totals / k, k, axis=1) if start is None else start[todo]
    for _ in range(4):  # steps of EM before the first of Newton
        now = now * quotients(
            rows.products(quotients(rows.counts, rows.means(now))), rows.costs
        )
    state = _State.at(rows, now, totals)
    for _ in range(100):  # most rows take five to ten steps
        U[todo] = state.U
        going_on = np.flatnonzero(state.residual > _SURE)
        if not len(going_on):
            break
        todo, rows, state = todo[going_on], rows.taken(going_on), state.taken(going_on)
        _step(rows, state)
    return U


def _step(rows: _Rows, state: _State) -> None:
    """Make a step of Newton, in place, halved until it lowers a row.

    The step is to the minimum of the quadratic function that is nearest, over all that is
    nonnegative: the function falls along it, as far as needed from where it is infinite.
    """
    U, slope, means = state.U, state.slope, rows.means(state.U)
    G = rows.pairs(quotients(quotients(rows.counts, means), means))
    diagonal = np.einsum("nkk->nk", G)
    diagonal += _RIDGE * diagonal.max(axis=1, keepdims=True)
    step = exact_rows(np.einsum("nk,nkl->nl", U, G) - slope, G) - U
    gain = np.einsum("nk,nk->n", slope, step)
    left, length = np.arange(len(U)), 1.0
    for _ in range(40):  # rounding is all that is left of a step then
        before = state.taken(left)
        after = _State.at(
            rows.taken(left), before.U + length * step[left], before.totals
        )
        # Armijo's rule: lower by 1e-4 of the slope, but for rounding
        allowed = before.value + 1e-14 * (np.abs(before.value) + before.totals[:, 0])
        lower = after.value <= allowed + 1e-4 * length * gain[left]
        for values, new in zip(state, after, strict=True):
            values[left[lower]] = new[lower]
        left, length = left[~lower], length / 2
        if not len(left):
            break


def quotients(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return x / p, and 0 where p is: no row can change that."""
    return np.divide(x, p, out=np.zeros_like(p), where=p > 0)


def value(rows: _Rows, U: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the functions; infinity where a count meets a mean of 0."""
    x = rows.counts
    logs = np.log(means, out=np.zeros_like(means), where=(x > 0) & (means > 0))
    lost = row_sums(rows.placed(np.where(means > 0, 0, x))) > 0
    gain = row_sums(rows.placed(x * logs))
    return np.where(lost, np.inf, np.einsum("nk,nk->n", U, rows.costs) - gain)
