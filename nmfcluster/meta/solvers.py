r"""Solvers for nonnegative data: NMF, sparse NMF and the positive tensor factorization of runs.

Each is a generator, see `_iterate`. Factors are handled as rows, W transposed: of one start (k, n)
and (k, p), so that all starts share one product with the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nmfcluster._arrays.least_squares import descend
from nmfcluster._arrays.storage import as_float64, is_sparse, row_blocks, sum_of_squares
from nmfcluster._engine.run import Steps, dots, kept, per_start

_ROWS = 1024
_SWEEPS = 3  # of coordinate descent a product with the data: fewest seconds to a given loss
_TENSOR_SWEEPS = 1  # where a product costs no more than a sweep
_FIRST_SWEEPS = 20  # of a factor that starts at 0
_PACE, _FASTER, _LIMIT, _SLOWER = 0.5, 1.05, 1.01, 1.5  # of the extrapolation, as in the paper

PENALTIES = ("l1_columns", "l1_rows", "l1", "l2")


@dataclass(frozen=True)
class MatrixObjective:
    r"""The objective :math:`\frac12 \|X - WH\|^2`, with a penalty on H or without.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    sparsity : float, default=0
        Weight :math:`\lambda` of the penalty.
    penalty : str, default="l2"
        One of `PENALTIES`.
    """

    X: Any
    sparsity: float = 0.0
    penalty: str = "l2"

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factors."""
        return sum_of_squares(self.X) / 2

    @property
    def wide(self) -> bool:
        """Whether several starts in one product are faster than one after the other."""
        return not is_sparse(self.X)

    def of_rows(self, W: np.ndarray) -> np.ndarray:
        """Return ``W'X`` of every start, (n_starts, k, p)."""
        return _flat_product(W, self.X)

    def of_columns(self, H: np.ndarray) -> np.ndarray:
        """Return ``HX'`` of every start, (n_starts, k, n)."""
        return _flat_product(H, self.X.T)

    def loss(self, N: np.ndarray, F: np.ndarray, G: np.ndarray) -> np.ndarray:
        """Return the losses, without the penalty, from the products for one of the factors."""
        return _loss(self.constant, N, F, G)

    def error(self, W: np.ndarray, H: np.ndarray) -> float:
        """Return ``||X - WH||`` of one pair of factors, W of shape (n, k)."""
        if is_sparse(self.X):
            wide, W, H = MatrixObjective(as_float64(self.X)), as_float64(W), as_float64(H)
            loss = wide.loss(wide.of_columns(H[None]), W.T[None], (H @ H.T)[None])[0]
            return float(np.sqrt(2 * loss))
        blocks = row_blocks(len(W), _ROWS)
        return float(np.sqrt(sum(sum_of_squares(self.X[b] - W[b] @ H) for b in blocks)))

    def split(self, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a start (n_starts, k, n + p) as its two factors."""
        n = self.X.shape[0]
        return np.ascontiguousarray(F[..., :n]), np.ascontiguousarray(F[..., n:])


def _loss(constant: float, N: np.ndarray, F: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return ``constant - <N, F> + <G, FF'> / 2`` of every start; rounding may not go below 0."""
    return np.maximum(constant - dots(N, F) + dots(G, F @ F.mT) / 2, 0)


def _flat_product(F: np.ndarray, X: Any) -> np.ndarray:
    flat = F.reshape(-1, F.shape[-1]) @ X
    return np.ascontiguousarray(flat).reshape(*F.shape[:-1], X.shape[1])


def _descended(F: np.ndarray, N: np.ndarray, G: np.ndarray, sweeps: int = _SWEEPS) -> np.ndarray:
    F = F.copy()
    for problem in zip(F, N, G, strict=True):
        descend(*problem, sweeps)
    return F


def hals(objective: MatrixObjective, F: np.ndarray) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2` by extrapolated coordinate descent.

    A factor is improved by a few sweeps of exact coordinate descent over its k rows (hierarchical
    alternating least squares, HALS [1]_), and then pushed further along its last step [2]_. Where
    the loss would rise, the step is not taken, and the next is not pushed: the loss never rises.

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
    W, H = objective.split(F)
    loss = objective.loss(objective.of_rows(W), H, W @ W.mT)
    ahead, behind = W, H  # W pushed further, and H before it was
    pace, last = np.full((2, len(F)), _PACE)
    limit, careful = np.ones(len(F)), np.ones(len(F), dtype=bool)
    while True:
        keep = yield (W.mT, H), loss
        W, H, ahead, behind, loss = kept(keep, W, H, ahead, behind, loss)
        pace, last, limit, careful = kept(keep, pace, last, limit, careful)
        old_W, old_H = W, H
        found = _descended(H, objective.of_rows(ahead), ahead @ ahead.mT)
        H = _pushed(found, behind, np.where(careful, 0, pace))
        N, G = objective.of_columns(H), H @ H.mT
        W = _descended(ahead, N, G)
        new, behind = objective.loss(N, W, G), found
        ahead = _pushed(W, old_W, pace)
        careful = ~(new <= loss)
        if careful.any():
            W[careful] = ahead[careful] = old_W[careful]
            H[careful] = old_H[careful]
        limit = np.where(careful, last, np.minimum(1, _LIMIT * limit))
        last = np.where(careful, last, pace)
        pace = np.where(careful, pace / _SLOWER, np.minimum(limit, _FASTER * pace))
        loss = np.where(careful, loss, new)


def _pushed(F: np.ndarray, before: np.ndarray, pace: np.ndarray) -> np.ndarray:
    """Return F moved on along the step from `before`, nonnegative; no cluster is pushed to 0."""
    further = F - before
    further *= per_start(pace, F)
    further += F
    np.maximum(further, 0, out=further)
    gone = ~further.any(axis=2)
    further[gone] = F[gone]
    return further


def multiplicative(objective: MatrixObjective, F: np.ndarray) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2` by the rules of Lee and Seung, as Badea (2005) does.

    .. math:: H \leftarrow H \circ W'X \oslash W'WH , \qquad W \leftarrow W \circ XH' \oslash WHH'

    with denominators kept from 0. An entry that is 0 stays 0.

    Parameters
    ----------
    objective : MatrixObjective
        Without a penalty.
    F : ndarray of shape (n_starts, k, n + p)
        Positive: W transposed, and H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)
    """
    W, H = objective.split(F)
    tiny = np.finfo(F.dtype).tiny
    N, G = objective.of_rows(W), W @ W.mT
    loss = objective.loss(N, H, G)
    while True:
        keep = yield (W.mT, H), loss
        W, H, N, G = kept(keep, W, H, N, G)
        H = H * N / np.maximum(G @ H, tiny)
        M, K = objective.of_columns(H), H @ H.mT
        W = W * M / np.maximum(K @ W, tiny)
        loss = objective.loss(M, W, K)
        N, G = objective.of_rows(W), W @ W.mT


def sparse_hals(objective: MatrixObjective, F: np.ndarray) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2 + \lambda R(H)` with columns of W of length 1.

    That is nonnegative sparse coding (Badea, 2005, eq. 11-12) with one of the penalties R

    ============== ====================================== =========================
    "l2"           :math:`\|H\|^2`                        eq. 12: shrinks H
    "l1"           :math:`\sum_{cg} H_{cg}`               eq. 11: not free of scale
    "l1_columns"   :math:`\sum_g (\sum_c H_{cg})^2`       few clusters a column
    "l1_rows"      :math:`\sum_c (\sum_g H_{cg})^2 / p`   few columns a cluster
    ============== ====================================== =========================

    The last two set to 0 what is below :math:`2 \lambda` times the sum of its column, or the mean
    of its row, whatever the scale of X. Each row of H, and each column of W on the sphere, is set
    to the minimum with all others fixed: the loss never rises. With ``"l2"`` the row of cluster c
    is :math:`[w_c'R_c]_+ / (1 + 2\lambda)`, where the published rule has :math:`\lambda` instead
    of :math:`2\lambda` and W may become negative.

    Parameters
    ----------
    objective : MatrixObjective
    F : ndarray of shape (n_starts, k, n + p)
        Nonnegative: W transposed, and H. The scale of a cluster is given to H.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, p)
        W and H.
    loss : ndarray of shape (n_starts,)
        With the penalty.
    """
    W, H = objective.split(F)
    length = np.linalg.norm(W, axis=2, keepdims=True)
    flat = np.full_like(W, W.shape[2] ** -0.5)
    W, H = np.divide(W, length, out=flat, where=length > 0), H * length
    loss = objective.loss(objective.of_rows(W), H, W @ W.mT)
    while True:
        keep = yield (W.mT, H), loss + objective.sparsity * _size(H, objective.penalty)
        W, H = kept(keep, W, H)
        H, W = H.copy(), W.copy()
        for row, N, G in zip(H, objective.of_rows(W), W @ W.mT, strict=True):
            _descend_penalised(row, N, G, objective)
        M, K = objective.of_columns(H), H @ H.mT
        for row, N, G in zip(W, M, K, strict=True):
            _descend_on_sphere(row, N, G)
        loss = objective.loss(M, W, K)


def _size(H: np.ndarray, penalty: str) -> np.ndarray:
    """Return R(H) of every start, accumulated in float64."""
    if penalty == "l2":
        return dots(H, H)
    if penalty == "l1":
        return H.sum(axis=(1, 2), dtype=np.float64)
    if penalty == "l1_columns":
        return (H.sum(axis=1, dtype=np.float64) ** 2).sum(axis=1)
    return (H.sum(axis=2, dtype=np.float64) ** 2).sum(axis=1) / H.shape[2]


def _descend_penalised(
    H: np.ndarray, N: np.ndarray, G: np.ndarray, objective: MatrixObjective
) -> None:
    """Improve the H of one start, in place: what separates over columns by least squares."""
    weight = G.dtype.type(2 * objective.sparsity)
    if objective.penalty == "l1_rows":
        share = float(weight) / H.shape[1]
        for _ in range(_SWEEPS):
            for c in range(len(H)):
                H[c] = _least_sum(N[c] - G[c] @ H + G[c, c] * H[c], float(G[c, c]), share)
    elif objective.penalty == "l1":
        descend(H, N - weight / 2, G, _SWEEPS)
    elif objective.penalty == "l1_columns":
        descend(H, N, G + weight, _SWEEPS)
    else:
        descend(H, N, G + weight * np.eye(len(G), dtype=G.dtype), _SWEEPS)


def _least_sum(b: np.ndarray, curvature: float, weight: float) -> np.ndarray:
    """Return the s >= 0 with the smallest ``curvature |s|^2 / 2 + weight (1's)^2 / 2 - b's``.

    It is ``[b - weight t]_+ / curvature`` with t its own sum, found among the sorted entries.
    """
    largest = -np.sort(-b)
    sums = np.cumsum(largest, dtype=np.float64)
    totals = sums / (curvature + weight * np.arange(1, len(b) + 1))  # were the first m free
    m = np.flatnonzero(largest > weight * totals)
    t = totals[m[-1]] if len(m) else 0.0
    return np.maximum(b - weight * t, 0).astype(b.dtype) / b.dtype.type(curvature)


def _descend_on_sphere(W: np.ndarray, N: np.ndarray, G: np.ndarray) -> None:
    """Improve the W of one start, in place: rows of length 1 that reach out furthest."""
    for _ in range(_SWEEPS):
        for c in range(len(W)):
            if G[c, c] == 0:
                continue  # a cluster without columns: any row is as good
            towards = N[c] - G[c] @ W + G[c, c] * W[c]
            new = np.maximum(towards, 0)
            high = new.max()
            if high > 0:
                new /= high  # whose square may be no number
                W[c] = new / np.linalg.norm(new)
            else:
                W[c], W[c, np.argmax(towards)] = 0, 1


@dataclass(frozen=True)
class RunsObjective:
    r"""The objective :math:`\frac12 \sum_j \|w_j h_j - \sum_k \alpha_{jk} \beta_k \gamma_k\|^2`.

    The biclusters :math:`w_j h_j` of all runs, j = 1 ... J, are factorized as the positive tensor
    that they form (Badea, 2005, eq. 14), of which nothing but their factors is ever made.

    Attributes
    ----------
    W : ndarray of shape (J, n)
    H : ndarray of shape (J, p)
    """

    W: np.ndarray
    H: np.ndarray

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factors."""
        lengths = [np.einsum("ij,ij->i", F, F, dtype=np.float64) for F in (self.W, self.H)]
        return float(lengths[0] @ lengths[1]) / 2

    wide = False


def tensor_hals(objective: RunsObjective, F: np.ndarray) -> Steps:
    r"""Factorize the biclusters of runs, ``w_j h_j ~ sum_k alpha_jk beta_k gamma_k``.

    Positive tensor factorization (Badea, 2005, eq. 14) from the factors alone: with
    :math:`\Gamma = \beta'\beta \circ \gamma\gamma'` and
    :math:`N = W'\beta \circ H\gamma'`, :math:`\alpha` is improved by coordinate descent on
    :math:`\frac12 \langle \Gamma, \alpha'\alpha \rangle - \langle N, \alpha \rangle`, and the
    other two likewise, one after the other. The loss never rises. An update costs O(J k (n + p)).

    Parameters
    ----------
    objective : RunsObjective
    F : ndarray of shape (n_starts, k, n + p)
        Positive: beta transposed, and gamma. Alpha is found for them.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, J, k), (n_starts, n, k) and (n_starts, k, p)
        Alpha, beta and gamma.
    loss : ndarray of shape (n_starts,)
    """
    W, H = objective.W, objective.H
    B, C = (np.ascontiguousarray(part) for part in np.split(F, [W.shape[1]], axis=2))
    along, across = B @ W.T, C @ H.T  # how much of every bicluster the prototypes hold
    N, G = along * across, (B @ B.mT) * (C @ C.mT)
    A = _descended(np.zeros_like(N), N, G, _FIRST_SWEEPS)
    while True:
        keep = yield (A.mT, B.mT, C), _loss(objective.constant, N, A, G)
        A, B, C, along, across = kept(keep, A, B, C, along, across)
        K = A @ A.mT
        B = _descended(B, (A * across) @ W, K * (C @ C.mT), _TENSOR_SWEEPS)
        along = B @ W.T
        C = _descended(C, (A * along) @ H, K * (B @ B.mT), _TENSOR_SWEEPS)
        across = C @ H.T
        N, G = along * across, (B @ B.mT) * (C @ C.mT)
        A = _descended(A, N, G, _TENSOR_SWEEPS)
