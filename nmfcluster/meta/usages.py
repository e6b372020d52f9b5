"""Rows of W for fixed components under the Kullback-Leibler loss, exact: Newton's method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmfcluster._arrays.storage import as_float64, is_sparse, row_blocks, rows_of

_ENTRIES = 2**20  # of a block of X, or of the small systems of its rows: 8 MiB
_SURE = 1e-10  # residual of the conditions of a minimum, which has no unit: a row is done
_LONGEST = 100  # steps of a row: most take five to ten
_FIRST = 4  # steps of EM before the first of Newton
_NEAR = 1e-3  # of a row's sum: an entry below, and below the residual, may be set to 0
_REVIVED = 1e-6  # of a row's sum: an entry below moves as if it were as large
# of the curvature that EM reckons with, added to that of Newton: steps in directions without
_DAMPING = 0.1  # curvature would be too long
_EASED, _HELD = 100.0, 10.0  # by which it is divided after a step that was right, or multiplied
_LEAST = 1e-12
_RIDGE = 1e-14  # of the largest on the diagonal: a system of equal components is not singular
_DESCENT = 1e-4  # share of the slope by which a step must lower the loss (Armijo's rule)
_ROUNDING = 1e-14  # of a row's loss


def poisson_rows(X: Any, H: np.ndarray) -> np.ndarray:
    r"""Return the W >= 0 that minimises the divergence of X from WH, (n, k), in float64.

    A row is the minimum of a convex function, :math:`\sum_j (wH)_j - x_j \log (wH)_j`. It is found
    by Newton's method on the entries that are not held at 0 [1]_, damped by the curvature that
    expectation maximisation reckons with: with all of that, a step lowers the function always. A
    column that no component has says nothing.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    H : ndarray of shape (k, p)
        Nonnegative. Of rows that are multiples of each other all are used.

    Returns
    -------
    ndarray of shape (n, k)

    References
    ----------
    .. [1] D. P. Bertsekas. Projected Newton methods for optimization problems with simple
       constraints. SIAM Journal on Control and Optimization 20, 1982.
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
    kind = _Stored if is_sparse(X) else _Dense
    for block in row_blocks(X.shape[0], max(1, _ENTRIES // max(len(used) ** 2, X.shape[1]))):
        rows = kind(as_float64(rows_of(X, block)), components)
        W[block, used] = _minima(rows) / sums[used]
    return W


class _Dense:
    """Some rows of a dense table, and the sums over its columns that they need.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    components : ndarray of shape (k, p)
        Each sums to 1: the rows that are looked for sum to those of X.
    """

    def __init__(self, X: Any, components: np.ndarray) -> None:
        self.X, self.components = X, components

    @property
    def counts(self) -> np.ndarray:
        """The entries that count, (n, p)."""
        return self.X

    def taken(self, rows: np.ndarray) -> _Dense:
        """Return some of the rows."""
        return type(self)(self.X[rows], self.components)

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
        return _symmetric(values, self.components.T)


class _Stored(_Dense):
    """The same of a sparse table, from its stored entries."""

    @property
    def counts(self) -> np.ndarray:
        """The stored entries."""
        return self.X.data

    def means(self, U: np.ndarray) -> np.ndarray:
        """Return the entries of UH where X stores one."""
        own = np.repeat(U, np.diff(self.X.indptr), axis=0)
        across = np.ascontiguousarray(self.components.T)
        return np.einsum("ek,ek->e", own, across.take(self.X.indices, axis=0))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values, one for each stored entry, over columns."""
        return np.asarray(self._holding(values).sum(axis=1)).ravel()

    def products(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times a component."""
        return np.asarray(self._holding(values) @ self.components.T)

    def curvature(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of values times two components."""
        return _symmetric(self._holding(values), self.components.T)

    def _holding(self, values: np.ndarray) -> Any:
        """Return the table with other values where it stores one."""
        return type(self.X)((values, self.X.indices, self.X.indptr), shape=self.X.shape)


def _symmetric(values: Any, across: np.ndarray) -> np.ndarray:
    k = across.shape[1]
    G = np.empty((values.shape[0], k, k))
    for c in range(k):
        G[:, c, : c + 1] = values @ (across[:, : c + 1] * across[:, c : c + 1])
        G[:, : c + 1, c] = G[:, c, : c + 1]
    return G


class _State(NamedTuple):
    """Where rows are; all arrays have one entry, or one row, for each."""

    U: np.ndarray
    totals: np.ndarray  # of the counts, (n, 1)
    value: np.ndarray
    ratios: np.ndarray  # by which a step of EM would multiply U: the slope is 1 less them
    damping: np.ndarray

    @classmethod
    def at(cls, rows: _Dense, U: np.ndarray, totals: np.ndarray, damping: np.ndarray) -> _State:
        means = rows.means(U)
        ratios = rows.products(_quotients(rows.counts, means))
        return cls(U, totals, _value(rows, U, means), ratios, damping)

    def residual(self) -> np.ndarray:
        """Return by how much the conditions of a minimum are missed, as shares of the counts."""
        return np.abs(np.minimum(self.U / self.totals, 1 - self.ratios)).max(axis=1)

    def taken(self, rows: np.ndarray) -> _State:
        return _State(*(array[rows] for array in self))

    def where(self, better: np.ndarray, other: _State) -> _State:
        """Return the other state where it is better."""
        pairs = zip(self, other, strict=True)
        return _State(*(np.where(better.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in pairs))


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
        now = now * rows.products(_quotients(rows.counts, rows.means(now)))
    state = _State.at(rows, now, totals, np.full(len(todo), _DAMPING))
    for _ in range(_LONGEST):
        U[todo] = state.U
        residual = state.residual()
        going_on = np.flatnonzero(residual > _SURE)
        if not len(going_on):
            break
        if len(going_on) < len(todo):
            todo, residual = todo[going_on], residual[going_on]
            rows, state = rows.taken(going_on), state.taken(going_on)
        state = _stepped(rows, state, residual)
    return U


def _stepped(rows: _Dense, state: _State, residual: np.ndarray) -> _State:
    """Return where a damped step of Newton leads to; a row that it does not lower stays."""
    U, slope = state.U, 1 - state.ratios
    near = np.minimum(residual, _NEAR)[:, None] * state.totals
    free = (U > near) | (slope <= 0)
    trial = np.where(free, np.maximum(U - _newton(rows, state, free), 0), 0)
    after = _State.at(rows, trial, state.totals, np.maximum(state.damping / _EASED, _LEAST))
    gain = np.einsum("nk,nk->n", slope, U - trial)
    allowed = state.value + _ROUNDING * (np.abs(state.value) + state.totals[:, 0])
    lower = (gain >= 0) & (after.value <= allowed - _DESCENT * gain)
    return state._replace(damping=np.minimum(state.damping * _HELD, 1)).where(lower, after)


def _newton(rows: _Dense, state: _State, free: np.ndarray) -> np.ndarray:
    """Return the step of Newton in the free entries of every row, damped in the metric of EM."""
    U, means = state.U, rows.means(state.U)
    G = rows.curvature(_quotients(_quotients(rows.counts, means), means))
    G *= free[:, :, None] & free[:, None, :]
    steep = state.ratios / np.maximum(U, _REVIVED * state.totals)  # at least the curvature
    diagonal = np.einsum("nkk->nk", G)
    ridge = _RIDGE * diagonal.max(axis=1, keepdims=True)
    diagonal += np.where(free, state.damping[:, None] * steep + ridge, 1)
    slope = np.where(free, 1 - state.ratios, 0)
    return np.linalg.solve(G, slope[:, :, None])[..., 0]


def _quotients(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return x / p, and 0 where p is: no row can change that."""
    return np.divide(x, p, out=np.zeros_like(p), where=p > 0)


def _value(rows: _Dense, U: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the functions; infinity where a count meets a mean of 0."""
    x = rows.counts
    logs = np.log(means, out=np.zeros_like(means), where=(x > 0) & (means > 0))
    lost = rows.sums(np.where(means > 0, 0, x)) > 0
    return np.where(lost, np.inf, U.sum(axis=1) - rows.sums(x * logs))
