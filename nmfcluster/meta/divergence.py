"""The Kullback-Leibler loss of counts: its products, and a solver, accelerated joint EM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nmfcluster._optim.run import Steps, keep_starts, per_start
from nmfcluster._utils import storage
from nmfcluster._utils.array_api import (
    at_a_time,
    dots,
    into,
    namespace,
    put,
    sums_of,
    upright,
)
from nmfcluster._utils.sparse_products import holding, products_at, sparse_if_few
from nmfcluster.meta.squares import Table
from nmfcluster.meta.usages import poisson_rows

_ENTRIES = 2**16  # of WH that are formed at a time: they stay in a cache of 1 MiB
_COMPARED = 2**20  # of X that are compared with WH at a time: some 40 MiB
_FEW = 0.15  # share of entries that are not 0, up to which sparse products are faster
_WIDER = 4.0  # by which the longest step grows where it was right, and shrinks where it was not
_RANGE = (
    1e15  # sums of X beyond, or below its inverse, leave float32 no room for squares
)


def em(objective: Divergence, F: np.ndarray) -> Steps:
    """Minimise the divergence by `joint_em` from where least squares lead from a start.

    HALS on the standardised table, whose chi-square is near the divergence, takes a fraction of
    the time to come as far, and its products are shared by all starts.

    Parameters
    ----------
    objective : Divergence
    F : ndarray of shape (n_starts, k, n + p)
        Positive: W transposed, and H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)
    """
    # 15 updates of least squares: after fewer, runs end higher
    start = [objective.positive(factor) for factor in objective.ahead(F, 15)]
    yield from joint_em(objective, np.concatenate(start, axis=2))


def joint_em(objective: Divergence, F: np.ndarray) -> Steps:
    r"""Minimise the Kullback-Leibler divergence by extrapolated expectation maximisation.

    Counts are sums of what each cluster makes, :math:`x_{ij} = \sum_k z_{ijk}`. The expected
    :math:`z_{ijk} = w_{ik} h_{kj} q_{ij}`, from one quotient, give both factors: their sums over
    columns are W, and those over rows, scaled to sum to 1, are H. Two such steps, and the point
    that they are on the way to, are an update (SQUAREM [1]_); where the loss would rise there, it
    stays where the two steps led. They never raise it.

    Parameters
    ----------
    objective : Divergence
    F : ndarray of shape (n_starts, k, n + p)
        W transposed, and H: an entry of 0 stays 0.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H, whose rows sum to 1.
    loss : ndarray of shape (n_starts,)

    References
    ----------
    .. [1] R. Varadhan, C. Roland. Simple and globally convergent methods for accelerating the
       convergence of any EM algorithm. Scandinavian Journal of Statistics 35, 2008.
    """
    m = objective.n_fixed
    W, H = _in_probabilities(*objective.split(F), m)
    longest = np.full(len(F), _WIDER)
    N, M, loss = objective.expected(W, H)
    while True:
        keep = yield (W.mT, H), loss
        W, H, N, M, loss, longest = keep_starts(keep, W, H, N, M, loss, longest)
        objective = objective.kept(keep)
        W1, H1 = N, _most_likely(M, H, m)  # expected counts are the most likely W
        N, M, _ = objective.expected(W1, H1, of_loss=False)
        W2, H2 = N, _most_likely(M, H1, m)
        length = np.minimum(_length((W, W1, W2), (H, H1, H2)), longest)
        W, H = _in_probabilities(
            _ahead(length, W, W1, W2), _ahead(length, H, H1, H2), m
        )
        N, M, loss_new = objective.expected(W, H)
        rose = ~(loss_new <= loss)
        if rose.any():
            W2, H2 = keep_starts(rose, W2, H2)
            back = (W2, H2, *objective.kept(rose).expected(W2, H2))
            for F, values in zip((W, H, N, M, loss_new), back, strict=True):
                put(F, rose, values)
        wider = np.where(length >= longest, longest * _WIDER, longest)
        longest = np.where(rose, np.maximum(longest / _WIDER, 1), wider)
        loss = loss_new


def _in_probabilities(
    W: np.ndarray, H: np.ndarray, n_fixed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return W and H with rows of H that sum to 1, as fixed ones do; W has taken up the sums."""
    xp = namespace(H)
    sums = xp.sum(H, axis=2, keepdims=True)
    sums[:, :n_fixed, :] = 1  # but for rounding
    return W * sums, H / xp.where(sums > 0, sums, 1)


def _most_likely(M: np.ndarray, H: np.ndarray, n_fixed: int) -> np.ndarray:
    """Return the most likely H for expected counts; a cluster without any keeps its own."""
    xp = namespace(H)
    sums = xp.sum(M, axis=2, keepdims=True)
    new = xp.where(sums > 0, M / xp.where(sums > 0, sums, 1), H)
    new[:, :n_fixed, :] = H[:, :n_fixed, :]
    return new


def _length(*paths: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Return how far to go along two steps of every start, in steps; both factors count alike."""
    first, turn = np.zeros(paths[0][0].shape[0]), np.zeros(paths[0][0].shape[0])
    for F, F1, F2 in paths:
        scale = sums_of(F, (1, 2)) ** 2 / (F.shape[1] * F.shape[2])
        scale = np.where(scale > 0, scale, 1)
        step = F1 - F
        for sums, part in ((first, step), (turn, F2 - F1 - step)):
            sums += dots(part, part) / scale
    return np.maximum(np.sqrt(first / np.maximum(turn, np.finfo(float).tiny)), 1)


def _ahead(
    length: np.ndarray, F: np.ndarray, F1: np.ndarray, F2: np.ndarray
) -> np.ndarray:
    """Return the point that two steps are on the way to; no entry becomes 0 at once."""
    by, step = per_start(length, F), F1 - F
    further = F2 - F1
    further -= step
    further *= by * by
    step *= 2 * by
    further += step
    further += F
    return into(
        further, namespace(F).maximum, further, 0.1 * F2
    )  # EM does not leave a 0


@dataclass(frozen=True)
class Divergence(Table):
    r"""The objective :math:`\sum_{ij} x_{ij} \log (x_{ij} / (WH)_{ij}) - x_{ij} + (WH)_{ij}`.

    That is the generalised Kullback-Leibler divergence: by how much the log-likelihood of Poisson
    counts of means WH falls short of the largest one that there is. Missing entries are left out
    of the sum; the counts that are expected there are what WH has.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    missing : csr_array of shape (n, p), default=None
    fixed : ndarray of shape (n_fixed, p), default=None
    """

    solver = staticmethod(joint_em)  # that goes on from a factorization
    run_solver = staticmethod(em)  # of a run from a random start

    @cached_property
    def constant(self) -> float:
        """Loss of the best product of rank 1, which knows no clusters."""
        rows, columns = self._sums
        return self.error(rows[:, None], columns[None] / (rows.sum() or 1)) ** 2 / 2

    def for_runs(self) -> Divergence:
        """Return the objective as runs of an ensemble have it: in float32, four digits suffice.

        A dense table of numpy that holds few entries becomes sparse.
        """
        brief = self.in_type(np.float32)
        return replace(
            brief, X=brief.X if self.device else sparse_if_few(brief.X, _FEW)
        )

    def has_room(self) -> bool:
        """Return whether float32, which runs have, can hold sums of X and their squares."""
        return 1 / _RANGE < float(self._sums[0].sum()) < _RANGE

    def rows(self, H: np.ndarray) -> np.ndarray:
        """Return the W >= 0 of the smallest loss, (n, k), in the dtype of X."""
        W = poisson_rows(self.X, H, self.missing)
        return W.astype(np.result_type(self.X.dtype, H.dtype), copy=False)

    def near_rows(self, H: np.ndarray) -> np.ndarray:
        """Return the W >= 0 of the smallest chi-square, which is quick to find."""
        rows, columns = self.scales
        W = self.standardised.rows((H / columns).astype(H.dtype))
        return (W * rows[:, None]).astype(W.dtype)

    def positive(self, F: np.ndarray) -> np.ndarray:
        """Return factors to start from (..., k, n), without a 0: EM would leave it one."""
        mean = F.mean(axis=(-2, -1), keepdims=True, dtype=np.float64)
        return F + np.where(mean > 0, 0.01 * mean, 1 / F.shape[-1]).astype(F.dtype)

    def scaled_columns(self, H: np.ndarray) -> np.ndarray:
        """Return H with rows that sum to 1, fixed ones as they are."""
        sums = H.sum(axis=1, keepdims=True)
        return self.with_fixed(H / np.where(sums > 0, sums, 1))

    def error(self, W: np.ndarray, H: np.ndarray) -> float:
        """Return the root of twice the loss of one pair of factors, W of shape (n, k)."""
        loss, H = 0.0, storage.as_float64(H)[None]
        for block in storage.row_blocks(len(W), max(1, _COMPARED // H.shape[2])):
            some = replace(self.taken(block).in_type(np.float64), device=None)
            loss += some.expected(storage.as_float64(W[block]).T[None], H)[2][0]
        return float(np.sqrt(2 * loss))

    def expected(
        self, W: np.ndarray, H: np.ndarray, of_loss: bool = True
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Return how much of X every cluster makes, by rows and by columns, and the losses.

        With the quotients :math:`q_{ij} = x_{ij} / (WH)_{ij}` these are :math:`w_{ik}
        \sum_j q_{ij} h_{kj}` and :math:`h_{kj} \sum_i w_{ik} q_{ij}`.

        Parameters
        ----------
        W : ndarray of shape (n_starts, k, n)
            W transposed.
        H : ndarray of shape (n_starts, k, p)
        of_loss : bool, default=True
            Whether losses are wanted, which take a logarithm of every entry; if not, they are 0.

        Returns
        -------
        rows : ndarray of shape (n_starts, k, n)
        columns : ndarray of shape (n_starts, k, p)
        losses : ndarray of shape (n_starts,)
        """
        X, missing = self.there
        xp = namespace(W)
        rows, columns, losses = xp.empty_like(W), xp.zeros_like(H), np.zeros(W.shape[0])
        add = self._add_of_stored if storage.is_sparse(self.X) else self._add_of_all
        for s in range(W.shape[0]):
            w, h = W[s, ...], H[s, ...]
            losses[s] = add(X, w, h, rows[s, ...], columns[s, ...], of_loss)
            if missing is not None:  # the quotients of these entries are 1
                lacking = (missing @ h.T).T
                rows[s, ...] += lacking
                columns[s, ...] += (missing.T @ w.T).T
                losses[s] -= dots(w[None], lacking[None])[0]
        if of_loss:
            total = float(self._sums[0].sum())
            losses += np.einsum("sk,sk->s", sums_of(W, 2), sums_of(H, 2)) - total
        return W * rows, H * columns, np.maximum(losses, 0)

    def _add_of_all(
        self, X: Any, W: Any, H: Any, rows: Any, columns: Any, of_loss: bool
    ) -> float:
        """Set ``HQ'``, add ``W'Q``, and return the sum of ``x log q``, of a dense table."""
        logs = 0.0
        for block in storage.row_blocks(
            X.shape[0], max(1, at_a_time(H, _ENTRIES) // H.shape[1])
        ):
            w, x = W[:, block], X[block, :]
            Q = _quotients(x, w.T @ H)
            rows[:, block] = H @ Q.T
            columns += w @ Q
            logs += _logs(x, Q) if of_loss else 0
        return logs

    def _add_of_stored(
        self, X: Any, W: Any, H: Any, rows: Any, columns: Any, of_loss: bool
    ) -> Any:
        """Do the same for a sparse table, from its stored entries."""
        logs, W, q = 0.0, upright(W), namespace(W).empty_like(X.data)
        for stored, means in products_at(X, W, H):
            q[stored] = _quotients(X.data[stored], means)
            logs += _logs(X.data[stored], q[stored]) if of_loss else 0
        Q = holding(X, q)
        rows[...], columns[...] = (Q @ H.T).T, (Q.T @ W).T
        return logs


def _quotients(x: Any, means: Any) -> Any:
    """Return x / means in the place of the means; a mean of 0 has no count."""
    xp = namespace(means)
    means = into(
        means, xp.clip, means, float(xp.finfo(means.dtype).smallest_normal), None
    )
    return into(means, xp.divide, x, means)


def _logs(x: Any, q: Any) -> float:
    """Return the sum of ``x log q``; an entry of 0 adds nothing."""
    xp = namespace(q)
    logs = xp.log(xp.clip(q, float(xp.finfo(q.dtype).smallest_normal), None))
    return float(
        np.vdot(x, logs) if xp is np else xp.sum(xp.astype(x * logs, xp.float64))
    )
