"""The Kullback-Leibler loss, for counts.

This module has the matrix products for this loss and two solvers: accelerated joint EM for both
factors, and Newton's method for exact rows of W with fixed components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nmfcluster._optim.run import Steps, keep_starts, per_start
from nmfcluster._utils.array_api import (
    call_with_out,
    chunk_size,
    contiguous_transpose,
    einsum_inner_products,
    namespace,
    put_starts,
    sum_to_numpy,
)
from nmfcluster._utils.linalg import nnls_rows
from nmfcluster._utils.sparse_products import (
    iter_products,
    product_at,
    sparse_if_few,
    with_data,
)
from nmfcluster._utils.storage import (
    as_float64,
    is_sparse,
    row_blocks,
    row_sums,
    rows_of,
    safe_ratio,
)
from nmfcluster.meta.squares import BaseObjective, observed_entries, pair_products

# Number of entries of WH that are formed at a time: they fit a cache of 1 MiB.
_BLOCK_ENTRIES = 2**16
# Number of entries of X that are compared with WH at a time for the loss: about 40 MiB.
_ERROR_ENTRIES = 2**20
# Share of nonzero entries up to which sparse products are faster.
_SPARSE_SHARE = 0.15
# Factor by which the longest step grows if it is taken, and shrinks if the loss would rise.
_STEP_GROWTH = 4.0
# Largest sum of X, and inverse of the smallest, whose squares float32 can hold.
_LARGEST_SUM = 1e15
# Number of entries of a block of X, or of the small systems of its rows: 2 MiB fit a cache.
_ROW_ENTRIES = 2**18
# A row has converged if its relative residual of the optimality conditions is below this.
_TOLERANCE = 1e-10
# Ridge, relative to the largest diagonal entry. It keeps steps finite where curvature is 0.
_RIDGE = 1e-12


def joint_em(objective, F) -> Steps:
    r"""Minimise the Kullback-Leibler divergence by extrapolated expectation maximisation.

    Counts are sums over clusters, :math:`x_{ij} = \sum_k z_{ijk}`. The expected :math:`z_{ijk} =
    w_{ik} h_{kj} q_{ij}`, with the quotient :math:`q_{ij} = x_{ij} / (WH)_{ij}`, give both factors:
    their sums over columns are W, and those over rows, scaled to sum to 1, are H. An update makes
    two such steps, which never raise the loss, and extrapolates them (SQUAREM [1]_). If the
    extrapolation would raise the loss, the result of the two steps is kept.

    Parameters
    ----------
    objective : Divergence
    F : ndarray of shape (n_starts, k, n + p)
        W transposed, and H. Entries of 0 stay 0.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W, and H with rows that sum to 1.
    loss : ndarray of shape (n_starts,)

    References
    ----------
    .. [1] R. Varadhan, C. Roland. Simple and globally convergent methods for accelerating the
       convergence of any EM algorithm. Scandinavian Journal of Statistics 35, 2008.
    """
    n_fixed = objective.n_fixed
    W, H = _normalize(objective.row_column_factors(F), n_fixed)
    longest = np.full(len(F), _STEP_GROWTH)
    N, M, loss = objective.expected_counts(W, H)
    while True:
        keep = yield (W.mT, H), loss
        W, H, N, M, loss, longest = keep_starts(keep, W, H, N, M, loss, longest)
        objective = objective.keep_starts(keep)
        # Two steps of EM: expected counts N are the most likely W.
        W1 = N
        H1 = _most_likely(M, H, n_fixed)
        W2, M, _ = objective.expected_counts(W1, H1, with_loss=False)
        H2 = _most_likely(M, H1, n_fixed)
        # Extrapolate along them, up to the longest step.
        length = np.minimum(_step_length((W, W1, W2), (H, H1, H2)), longest)
        ahead = _extrapolate(length, W, W1, W2), _extrapolate(length, H, H1, H2)
        W, H = _normalize(ahead, n_fixed)
        N, M, loss_new = objective.expected_counts(W, H)
        # If the loss would rise, take the two steps alone.
        rose = ~(loss_new <= loss)
        if rose.any():
            W2, H2 = keep_starts(rose, W2, H2)
            N2, M2, loss2 = objective.keep_starts(rose).expected_counts(W2, H2)
            put_starts(W, rose, W2)
            put_starts(H, rose, H2)
            put_starts(N, rose, N2)
            put_starts(M, rose, M2)
            put_starts(loss_new, rose, loss2)
        wider = np.where(length >= longest, longest * _STEP_GROWTH, longest)
        longest = np.where(rose, np.maximum(longest / _STEP_GROWTH, 1), wider)
        loss = loss_new


def _normalize(factors, n_fixed):
    """Return W times the sums of the rows of H, and H with rows that sum to 1."""
    W, H = factors
    xp = namespace(H)
    sums = xp.sum(H, axis=2, keepdims=True)
    sums[:, :n_fixed, :] = 1  # fixed rows sum to 1 but for rounding
    return W * sums, H / xp.where(sums > 0, sums, 1)


def _most_likely(M, H, n_fixed):
    """Return the most likely H for expected counts; a cluster without counts keeps its row."""
    xp = namespace(H)
    sums = xp.sum(M, axis=2, keepdims=True)
    new = xp.where(sums > 0, M / xp.where(sums > 0, sums, 1), H)
    new[:, :n_fixed, :] = H[:, :n_fixed, :]
    return new


def _step_length(*paths):
    """Return how far to extrapolate two steps of every start, in steps.

    Both factors have the same weight.
    """
    steps: Any = 0.0
    turns: Any = 0.0
    for F, F1, F2 in paths:
        scale = sum_to_numpy(F, (1, 2)) ** 2 / (F.shape[1] * F.shape[2])
        scale = np.where(scale > 0, scale, 1)
        step = F1 - F
        turn = F2 - F1 - step
        steps += einsum_inner_products(step, step) / scale
        turns += einsum_inner_products(turn, turn) / scale
    return np.maximum(np.sqrt(steps / np.maximum(turns, np.finfo(float).tiny)), 1)


def _extrapolate(length, F, F1, F2):
    """Return the extrapolation of two steps; no entry becomes 0, because EM would keep it 0."""
    by = per_start(length, F)
    step = F1 - F
    further = F2 - F1
    further -= step
    further *= by * by
    step *= 2 * by
    further += step
    further += F
    return call_with_out(further, namespace(F).maximum, further, 0.1 * F2)


@dataclass(frozen=True)
class Divergence(BaseObjective):
    r"""The objective :math:`\sum_{ij} x_{ij} \log (x_{ij} / (WH)_{ij}) - x_{ij} + (WH)_{ij}`.

    This is the generalised Kullback-Leibler divergence: the largest possible log-likelihood of
    Poisson counts, minus their log-likelihood with the means WH. Missing entries are left out of
    the sum, and the counts expected there are the entries of WH.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    missing : csr_array of shape (n, p), default=None
    fixed : ndarray of shape (n_fixed, p), default=None
    """

    solver = staticmethod(joint_em)  # it continues from a factorization
    n_first_updates: ClassVar[int] = 15  # after fewer, runs end at a higher loss

    @cached_property
    def constant(self):
        """Loss of the best factorization of rank 1, which has no clusters."""
        rows, columns = self._sums
        return self.error(rows[:, None], columns[None] / (rows.sum() or 1)) ** 2 / 2

    def for_runs(self):
        """Return the objective for runs of an ensemble: in float32, because four digits suffice.

        A dense numpy array with few nonzero entries becomes sparse.
        """
        single = self.astype(np.float32)
        if self.device:
            return single
        return replace(single, X=sparse_if_few(single.X, _SPARSE_SHARE))

    def is_in_range(self):
        """Return whether float32, which runs use, can hold sums of X and their squares."""
        return 1 / _LARGEST_SUM < float(self._sums[0].sum()) < _LARGEST_SUM

    def fit_rows(self, H):
        """Return the W >= 0 with the smallest loss, (n, k), in the dtype of X."""
        W = poisson_rows(self.X, H, self.missing)
        return W.astype(np.result_type(self.X.dtype, H.dtype), copy=False)

    def approximate_rows(self, H, rows=None):
        """Approximate all or some rows of W fast, by the W >= 0 with the smallest chi-square."""
        roots, columns = self.root_means()
        scaled = (H / columns).astype(H.dtype)
        W = self.standardised.approximate_rows(scaled, rows)
        lengths = roots.T if rows is None else roots.T[rows]
        return (W * lengths).astype(W.dtype)

    def positive_start(self, F):
        """Return a factor to start from, (..., k, n), without zeros, because EM would keep them."""
        mean = F.mean(axis=(-2, -1), keepdims=True, dtype=np.float64)
        return F + np.where(mean > 0, 0.01 * mean, 1 / F.shape[-1]).astype(F.dtype)

    def scale_components(self, H):
        """Return H with rows that sum to 1, fixed ones as they are."""
        sums = H.sum(axis=1, keepdims=True)
        return self.with_fixed(H / np.where(sums > 0, sums, 1))

    def error(self, W, H):
        """Return the root of twice the loss of one pair of factors, W of shape (n, k)."""
        H = as_float64(H)[None]
        loss = 0.0
        for block in row_blocks(len(W), max(1, _ERROR_ENTRIES // H.shape[2])):
            part = replace(self.take_rows(block).astype(np.float64), device=None)
            loss += part.expected_counts(as_float64(W[block]).T[None], H)[2][0]
        return float(np.sqrt(2 * loss))

    def expected_counts(self, W, H, with_loss=True):
        r"""Return the expected counts of every cluster, by rows and by columns, and the losses.

        With the quotients :math:`q_{ij} = x_{ij} / (WH)_{ij}` these are :math:`w_{ik}
        \sum_j q_{ij} h_{kj}` and :math:`h_{kj} \sum_i w_{ik} q_{ij}`.

        Parameters
        ----------
        W : ndarray of shape (n_starts, k, n)
            W transposed.
        H : ndarray of shape (n_starts, k, p)
        with_loss : bool, default=True
            Whether to compute losses, which take a logarithm of every entry; if not, they are 0.

        Returns
        -------
        rows : ndarray of shape (n_starts, k, n)
        columns : ndarray of shape (n_starts, k, p)
        losses : ndarray of shape (n_starts,)
        """
        X, missing = self.on_device
        xp = namespace(W)
        rows = xp.empty_like(W)
        columns = xp.zeros_like(H)
        losses = np.zeros(W.shape[0])
        add = _add_of_stored if is_sparse(self.X) else _add_of_all
        for s in range(W.shape[0]):
            w = _without_subnormal(W[s, ...])
            h = _without_subnormal(H[s, ...])
            losses[s] = add(X, w, h, rows[s, ...], columns[s, ...], with_loss)
            if missing is not None:  # the quotients of these entries are 1
                imputed = (missing @ h.T).T
                rows[s, ...] += imputed
                columns[s, ...] += (missing.T @ w.T).T
                losses[s] -= einsum_inner_products(w[None], imputed[None])[0]
        if with_loss:
            total = float(self._sums[0].sum())
            losses += (
                np.einsum("sk,sk->s", sum_to_numpy(W, 2), sum_to_numpy(H, 2)) - total
            )
        return W * rows, H * columns, np.maximum(losses, 0)


def _without_subnormal(F):
    """Return a factor with 0 for subnormal numbers.

    EM lets entries shrink forever, and products with such numbers take up to ten times as long.
    """
    xp = namespace(F)
    smallest = float(xp.finfo(F.dtype).smallest_normal)
    return xp.where(F < smallest, xp.zeros_like(F), F)


def _add_of_all(X, W, H, rows, columns, with_loss):
    """Set rows to ``HQ'``, add ``W'Q`` to columns, and return the sum of ``x log q``."""
    loss = 0.0
    size = max(1, chunk_size(H, _BLOCK_ENTRIES) // H.shape[1])
    for block in row_blocks(X.shape[0], size):
        w = W[:, block]
        x = X[block, :]
        Q = _quotients(x, w.T @ H)
        rows[:, block] = H @ Q.T
        columns += w @ Q
        if with_loss:
            loss += _log_sum(x, Q)
    return loss


def _add_of_stored(X, W, H, rows, columns, with_loss):
    """Do the same as `_add_of_all` for a sparse X, from its stored entries."""
    loss = 0.0
    W = contiguous_transpose(W)
    q = namespace(W).empty_like(X.data)
    for stored, means in iter_products(X, W, H):
        x = X.data[stored]
        q[stored] = _quotients(x, means)
        if with_loss:
            loss += _log_sum(x, q[stored])
    Q = with_data(X, q)
    rows[...] = (Q @ H.T).T
    columns[...] = (Q.T @ W).T
    return loss


def _quotients(x, means):
    """Return x / means, stored in the array of the means; a mean of 0 has no count."""
    xp = namespace(means)
    smallest = float(xp.finfo(means.dtype).smallest_normal)
    means = call_with_out(means, xp.clip, means, smallest, None)
    return call_with_out(means, xp.divide, x, means)


def _log_sum(x, q):
    """Return the sum of ``x log q``; an entry of 0 adds nothing."""
    xp = namespace(q)
    logs = xp.log(xp.clip(q, float(xp.finfo(q.dtype).smallest_normal), None))
    if xp is np:
        return float(np.vdot(x, logs))
    return float(xp.sum(xp.astype(x * logs, xp.float64)))


def poisson_rows(X, H, missing=None):
    r"""Return the W >= 0 that minimises the divergence of X from WH, (n, k), in float64.

    Each row minimises a convex function, :math:`\sum_j (wH)_j - x_j \log (wH)_j`, over the observed
    entries. The proximal Newton method [1]_ finds it: each step goes to the nonnegative minimum of
    the quadratic approximation, and is halved until the loss falls. Columns where all components
    are 0 have no influence.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    H : ndarray of shape (k, p)
        Nonnegative. Rows that are multiples of each other are all used.
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
    # leave out components that are 0, and columns where all components are 0
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
    size = max(1, _ROW_ENTRIES // max(len(used) ** 2, row_entries, 1))
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
        shares = np.repeat(rows.totals[:, None] / len(used), len(used), axis=1)
        W[block, used] = solve_poisson_rows(rows, shares) / sums[used]
    return W


class _State(NamedTuple):
    """Current solutions of rows; all arrays have one entry, or one row, for each."""

    U: np.ndarray
    loss: np.ndarray
    slope: np.ndarray
    residual: np.ndarray  # of the optimality conditions, relative to the counts

    def take(self, rows):
        return _State._make([array[rows] for array in self])


@dataclass(frozen=True)
class PoissonRows:
    """Some rows of X, and the sums over its columns that they need.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
    components : ndarray of shape (k, p), or of shape (n, k, p) with a dense X
        Components that sum to 1. All rows have the same, or each row has its own, of which some
        may be 0.
    costs : ndarray of shape (n, k)
        Sums of the components over the observed entries of every row.
    totals : ndarray of shape (n,)
        Sums of the rows of X.
    """

    X: Any
    components: np.ndarray
    costs: np.ndarray
    totals: np.ndarray

    @property
    def counts(self):
        """Entries of X: all of a dense X, (n, p), and the stored ones of a sparse X."""
        return self.X.data if is_sparse(self.X) else self.X

    def take(self, rows):
        """Return some of the rows."""
        own = self.components[rows] if self.components.ndim == 3 else self.components
        return type(self)(self.X[rows], own, self.costs[rows], self.totals[rows])

    def means(self, U):
        """Return the entries of UH at the positions of the counts."""
        if self.components.ndim == 3:
            return (U[:, None] @ self.components)[:, 0]
        if is_sparse(self.X):
            return product_at(self.X, U, self.components).data
        return U @ self.components

    def _as_matrix(self, values):
        """Return one value for each of the counts as a matrix that is stored like X."""
        return with_data(self.X, values) if is_sparse(self.X) else values

    def gains(self, means):
        """Return the sums of ``x / means`` times a component, (n, k)."""
        ratios = safe_ratio(self.counts, means)
        if self.components.ndim == 3:
            return (self.components @ ratios[:, :, None])[..., 0]
        return self._as_matrix(ratios) @ self.components.T

    def curvature(self, means):
        """Return the second derivatives of the losses, (n, k, k)."""
        values = safe_ratio(safe_ratio(self.counts, means), means)
        if self.components.ndim == 3:
            return self.components * values[:, None] @ self.components.mT
        return pair_products(self._as_matrix(values), self.components.T)

    def losses(self, U, means):
        """Return the losses up to a constant; infinity if a count has a mean of 0."""
        x = self.counts
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.where(x > 0, x * np.log(means), 0)
        gain = row_sums(self._as_matrix(gains))
        return np.einsum("nk,nk->n", U, self.costs) - gain

    def state(self, U):
        """Return the losses at U, with their slopes and residuals."""
        means = self.means(U)
        slope = self.costs - self.gains(means)
        shares = U * self.costs / self.totals[:, None]
        missed = np.abs(np.minimum(shares, safe_ratio(slope, self.costs)))
        return _State(U, self.losses(U, means), slope, missed.max(axis=1))


def solve_poisson_rows(rows, start):
    """Return the minimum of every row, (n, k), from a positive start; 0 for rows without counts."""
    U = np.zeros(rows.costs.shape)
    active = np.flatnonzero(rows.totals > 0)
    rows = rows.take(active)
    current = start[active]
    # steps of EM before the first Newton step
    for _ in range(4):
        current = current * safe_ratio(rows.gains(rows.means(current)), rows.costs)
    state = rows.state(current)
    # Newton steps for the rows that are not done; most take five to ten
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


def _newton_step(rows, state):
    """Make a Newton step, in place, which is halved until it lowers the loss of a row.

    The step goes to the nonnegative minimum of the quadratic approximation. The loss falls along
    this direction, so a short enough step lowers it and keeps it finite.
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
    for _ in range(40):  # after that, a step is below rounding
        before = state.take(remaining)
        some = rows.take(remaining)
        after = some.state(before.U + length * step[remaining])
        # Armijo's rule: the loss falls by 1e-4 of the slope, but for rounding
        allowed = before.loss + 1e-14 * (np.abs(before.loss) + some.totals)
        is_lower = after.loss <= allowed + 1e-4 * length * gain[remaining]
        for values, new in zip(state, after, strict=True):
            values[remaining[is_lower]] = new[is_lower]
        remaining = remaining[~is_lower]
        length /= 2
        if not len(remaining):
            break
