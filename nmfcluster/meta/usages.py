"""Rows of W for fixed components under the Kullback-Leibler loss, exact: Newton's method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmfcluster._arrays.least_squares import exact_rows
from nmfcluster._arrays.places import holding, product_at
from nmfcluster._arrays.storage import as_float64, is_sparse, row_blocks, rows_of
from nmfcluster.meta.squares import observed, pair_products

_ENTRIES = 2**20  # of a block of X, or of the small systems of its rows: 8 MiB
_SURE = 1e-10  # residual of the conditions of a minimum, which has no unit: a row is done
_LONGEST = 100  # steps of a row: most take five to ten
_FIRST = 4  # steps of EM before the first of Newton
_RIDGE = 1e-12  # of the largest on the diagonal: directions without curvature have an end
_HALVINGS = 40  # of a step, after which rounding is all that is left
_DESCENT = 1e-4  # share of the slope by which a step must lower the loss (Armijo's rule)
_ROUNDING = 1e-14  # of a row's loss


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
    kind = _Stored if is_sparse(X) else _Dense
    for block in row_blocks(X.shape[0], max(1, _ENTRIES // max(len(used) ** 2, X.shape[1]))):
        costs = np.ones((block.stop - block.start, len(used)))
        if missing is not None:
            costs = observed(missing, block) @ components.T
        rows = kind(as_float64(rows_of(X, block)), components, costs)
        W[block, used] = _minima(rows) / sums[used]
    return W


class _Dense:
    """Some rows of a dense table, and the sums over its columns that they need.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    components : ndarray of shape (k, p)
        Each sums to 1.
    costs : ndarray of shape (n, k)
        Their sums over what is observed of every row.
    """

    def __init__(self, X: Any, components: np.ndarray, costs: np.ndarray) -> None:
        self.X, self.components, self.costs = X, components, costs

    @property
    def counts(self) -> np.ndarray:
        """The entries that count, (n, p)."""
        return self.X

    def taken(self, rows: np.ndarray) -> _Dense:
        """Return some of the rows."""
        return type(self)(self.X[rows], self.components, self.costs[rows])

    def means(self, U: np.ndarray) -> np.ndarray:
        """Return the entries of UH where those are that count."""
        return U @ self.components

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values, one for each entry that counts, over columns, (n,)."""
        return values.sum(axis=1)

    def products(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times a component, (n, k)."""
        return values @ self.components.T

    def curvature(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times two components, (n, k, k)."""
        return pair_products(values, self.components.T)


class _Stored(_Dense):
    """The same of a sparse table, from its stored entries."""

    @property
    def counts(self) -> np.ndarray:
        """The stored entries."""
        return self.X.data

    def means(self, U: np.ndarray) -> np.ndarray:
        """Return the entries of UH where X stores one."""
        return np.asarray(product_at(self.X, U, self.components).data)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values, one for each stored entry, over columns."""
        return np.asarray(holding(self.X, values).sum(axis=1)).ravel()

    def products(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times a component."""
        return np.asarray(holding(self.X, values) @ self.components.T)

    def curvature(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times two components."""
        return pair_products(holding(self.X, values), self.components.T)


class _State(NamedTuple):
    """Where rows are; all arrays have one entry, or one row, for each."""

    U: np.ndarray
    totals: np.ndarray  # of the counts, (n, 1)
    value: np.ndarray
    slope: np.ndarray
    residual: np.ndarray  # by how much the conditions of a minimum are missed, in shares of counts

    @classmethod
    def at(cls, rows: _Dense, U: np.ndarray, totals: np.ndarray) -> _State:
        means, costs = rows.means(U), rows.costs
        slope = costs - rows.products(_quotients(rows.counts, means))
        missed = np.abs(np.minimum(U * costs / totals, _quotients(slope, costs))).max(axis=1)
        return cls(U, totals, _value(rows, U, means), slope, missed)

    def taken(self, rows: np.ndarray) -> _State:
        return _State(*(array[rows] for array in self))

    def with_rows(self, rows: np.ndarray, other: _State) -> _State:
        """Return the state with some rows from another one, which has no others."""
        arrays = [array.copy() for array in self]
        for array, new in zip(arrays, other, strict=True):
            array[rows] = new
        return _State(*arrays)


def _minima(rows: _Dense) -> np.ndarray:
    """Return the minimum of every row; a row without counts is 0."""
    totals = rows.sums(rows.counts)
    k = len(rows.components)
    U = np.zeros((len(totals), k))
    todo = np.flatnonzero(totals > 0)
    if not len(todo):
        return U
    rows, totals = rows.taken(todo), totals[todo, None]
    now = np.repeat(totals / k, k, axis=1)
    for _ in range(_FIRST):
        now = now * _quotients(rows.products(_quotients(rows.counts, rows.means(now))), rows.costs)
    state = _State.at(rows, now, totals)
    for _ in range(_LONGEST):
        U[todo] = state.U
        going_on = np.flatnonzero(state.residual > _SURE)
        if not len(going_on):
            break
        if len(going_on) < len(todo):
            todo, rows, state = todo[going_on], rows.taken(going_on), state.taken(going_on)
        state = _stepped(rows, state)
    return U


def _stepped(rows: _Dense, state: _State) -> _State:
    """Return where a step of Newton leads to, halved until it lowers a row.

    The step is to the minimum of the quadratic function that is nearest, over all that is
    nonnegative: the function falls along it, as far as needed from where it is infinite.
    """
    U, slope, means = state.U, state.slope, rows.means(state.U)
    G = rows.curvature(_quotients(_quotients(rows.counts, means), means))
    diagonal = np.einsum("nkk->nk", G)
    diagonal += _RIDGE * diagonal.max(axis=1, keepdims=True)
    step = exact_rows(np.einsum("nk,nkl->nl", U, G) - slope, G) - U
    gain = np.einsum("nk,nk->n", slope, step)
    left, length = np.arange(len(U)), 1.0
    for _ in range(_HALVINGS):
        part = rows if len(left) == len(U) else rows.taken(left)
        before = state.taken(left)
        after = _State.at(part, before.U + length * step[left], before.totals)
        allowed = before.value + _ROUNDING * (np.abs(before.value) + before.totals[:, 0])
        lower = after.value <= allowed + _DESCENT * length * gain[left]
        state = state.with_rows(left[lower], after.taken(np.flatnonzero(lower)))
        left, length = left[~lower], length / 2
        if not len(left):
            break
    return state


def _quotients(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return x / p, and 0 where p is: no row can change that."""
    return np.divide(x, p, out=np.zeros_like(p), where=p > 0)


def _value(rows: _Dense, U: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the functions; infinity where a count meets a mean of 0."""
    x = rows.counts
    logs = np.log(means, out=np.zeros_like(means), where=(x > 0) & (means > 0))
    lost = rows.sums(np.where(means > 0, 0, x)) > 0
    return np.where(lost, np.inf, np.einsum("nk,nk->n", U, rows.costs) - rows.sums(x * logs))
