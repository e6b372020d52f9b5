r"""Solvers for nonnegative data: NMF, sparse NMF and the positive tensor factorization of runs.

Each is a generator, see `nmfcluster._optim.run`. Factors are handled as rows, W transposed: of
one start (k, n) and (k, p), so that all starts share one product with the data.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmfcluster._optim.run import Steps, keep_starts, per_start
from nmfcluster._utils.array_api import (
    Device,
    asarray_like,
    call_with_out,
    namespace,
    put_starts,
    take_starts,
    to_device,
)
from nmfcluster._utils.linalg import coordinate_descent, inner_products

PENALTIES = ("l1_columns", "l1", "l2")

# Sweeps over a factor in an update: 3 take the fewest seconds to a given loss.
_SWEEPS = 3
# The same for tensors, whose products cost no more than a sweep.
_TENSOR_SWEEPS = 1


def half_squares(constant: float, N, F, G, more=0.0):
    """Return ``constant - <N, F> + <G, FF'> / 2 + more`` of every start.

    Rounding may not go below 0.
    """
    return np.maximum(
        constant - inner_products(N, F) + inner_products(G, F @ F.mT) / 2 + more, 0
    )


def _improved(F, N, G, sweeps: int = _SWEEPS, n_fixed: int = 0):
    """Return the factor of every start after sweeps of coordinate descent."""
    F = namespace(F).asarray(F, copy=True)
    coordinate_descent(F, N, G, sweeps, n_fixed)
    return F


def hals(objective, F) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2` by extrapolated coordinate descent.

    A factor is improved by a few sweeps of exact coordinate descent over its k rows (hierarchical
    alternating least squares, HALS [1]_), and then extrapolated along its last step [2]_. Where
    the loss would rise, the step is not taken, and the next is not extrapolated: the loss never
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
    imputed = objective.imputed_entries(W, H)
    N = objective.left_products(W, imputed)
    loss = objective.loss(N, H, W @ W.mT, imputed, imputed)
    W_ahead = W  # W after extrapolation
    H_swept = H  # H before it
    # The share of its last step by which a start is extrapolated (beta of Ang and Gillis), that
    # of the last step that was taken, and the largest that is allowed. There is no step yet.
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
        # Improve H for the W ahead, and extrapolate it unless the last step was taken back.
        imputed = objective.imputed_entries(W_ahead, H)
        N = objective.left_products(W_ahead, imputed)
        H_before = H_swept
        H_swept = _improved(H, N, W_ahead @ W_ahead.mT, n_fixed=objective.n_fixed)
        H_new = extrapolate(H_swept, H_before, np.where(rose, 0, share))
        # Improve W for this H, which gives the loss, and extrapolate it for the next update.
        imputed = objective.imputed_entries(W_ahead, H_new)
        N = objective.right_products(H_new, imputed)
        G = H_new @ H_new.mT
        W_new = _improved(W_ahead, N, G)
        current = objective.imputed_entries(W_new, H_new)
        loss_new = objective.loss(N, W_new, G, imputed, current)
        W_ahead = extrapolate(W_new, W, share)
        # Take the step back where the loss would rise: these starts stay where they are.
        rose = ~(loss_new <= loss)
        if rose.any():
            for new, old in ((W_new, W), (W_ahead, W), (H_new, H)):
                put_starts(new, rose, take_starts(old, rose))
        W = W_new
        H = H_new
        loss = np.where(rose, loss, loss_new)
        # After a step that was taken the share grows by gamma, 1.05, up to the limit, which grows
        # by 1.01; after another it is divided by eta, 1.5, and may not exceed the last one taken.
        limit = np.where(rose, last_share, np.minimum(1, 1.01 * limit))
        last_share = np.where(rose, last_share, share)
        share = np.where(rose, share / 1.5, np.minimum(limit, 1.05 * share))


def extrapolate(F, before, share):
    """Return F moved on by a share of its step from `before`; no cluster becomes 0."""
    further = F - before
    further *= per_start(share, F)
    further += F
    xp = namespace(F)
    further = call_with_out(further, xp.clip, further, 0, None)
    vanished = ~xp.any(further, axis=2)
    return xp.where(vanished[..., None], F, further) if xp.any(vanished) else further


def fit_fixed(objective, F) -> Steps:
    """Find the best W for rows of H that are all fixed: at once, of one start.

    Yields
    ------
    factors : tuple of ndarrays of shapes (1, n, k) and (1, k, p)
        W and H.
    loss : ndarray of shape (1,)
    """
    H = objective.row_column_factors(F)[1]
    W = objective.fit_rows(H[0])
    loss = np.array([objective.error(W, H[0]) ** 2 / 2])
    while True:
        yield (W[None], H), loss


def sparse_hals(objective, F) -> Steps:
    r"""Minimise :math:`\frac12 \|X - WH\|^2 + \lambda R(H)` with columns of W of length 1.

    That is nonnegative sparse coding (Badea, 2005, eq. 11-12) with one of the penalties R

    ============== ================================== =========================
    "l2"           :math:`\|H\|^2`                    eq. 12: shrinks H
    "l1"           :math:`\sum_{cg} H_{cg}`           eq. 11: not free of scale
    "l1_columns"   :math:`\sum_g (\sum_c H_{cg})^2`   few clusters a column
    ============== ================================== =========================

    The last sets to 0 what is below :math:`2 \lambda` times the sum of its column, whatever the
    scale of X. Each row of H, and each column of W on the sphere, is set to the minimum with all
    others fixed: the loss never rises. With ``"l2"`` the row of cluster c
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
    W, H = objective.row_column_factors(F)
    sparsity = objective.sparsity
    penalty = objective.penalty
    # Scale the rows of W, which is transposed, to length 1; those of zeros become constant.
    length = np.linalg.norm(W, axis=2, keepdims=True)
    constant = np.full_like(W, W.shape[2] ** -0.5)
    W = np.divide(W, length, out=constant, where=length > 0)
    H = H * length
    loss = objective.loss(objective.left_products(W), H, W @ W.mT)
    while True:
        keep = yield (W.mT, H), loss + sparsity * penalty_of(H, penalty)
        W, H = keep_starts(keep, W, H)
        H = H.copy()
        descend_penalised(
            H, objective.left_products(W), W @ W.mT, sparsity, penalty, _SWEEPS
        )
        W = W.copy()
        N = objective.right_products(H)
        G = H @ H.mT
        for s in range(len(W)):
            descend_on_sphere(W[s], N[s], G[s], _SWEEPS)
        loss = objective.loss(N, W, G)


def penalty_of(H, penalty: str):
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
    sparsity: float,
    penalty: str,
    sweeps: int,
) -> None:
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
        One of `PENALTIES`: least squares problems of other N and G.
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


def descend_on_sphere(W, N, G, sweeps: int) -> None:
    """Improve the W of one start, in place: each row is the best of length 1.

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
                new /= high  # its square could be too large, or too small, for a float
                W[c] = new / np.linalg.norm(new)
            else:
                W[c] = 0
                W[c, np.argmax(towards)] = 1


@dataclass(frozen=True)
class RunsObjective:
    r"""The objective :math:`\frac12 \sum_j \|w_j h_j - \sum_k \alpha_{jk} \beta_k \gamma_k\|^2`.

    The biclusters :math:`w_j h_j` of all runs, j = 1 ... J, are factorized as the positive tensor
    that they form (Badea, 2005, eq. 14), of which only the factors are ever formed.

    Attributes
    ----------
    W : ndarray of shape (J, n)
    H : ndarray of shape (J, p)
    """

    W: np.ndarray
    H: np.ndarray
    device: Device | None = None
    wide = False  # starts side by side would not share a product

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factors."""
        rows, columns = [
            np.einsum("ij,ij->i", F, F, dtype=np.float64) for F in (self.W, self.H)
        ]
        return float(rows @ columns) / 2


def tensor_hals(objective: RunsObjective, F) -> Steps:
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
    W = to_device(objective.W, objective.device)
    H = to_device(objective.H, objective.device)
    n = W.shape[1]
    B = asarray_like(np.ascontiguousarray(F[..., :n]), W)
    C = asarray_like(np.ascontiguousarray(F[..., n:]), W)
    # how much of every bicluster is in the rows, and in the columns, of the prototypes
    in_rows = B @ W.T
    in_columns = C @ H.T
    A = namespace(W).zeros_like(in_rows)
    sweeps = 20  # more than in an update, because A starts at 0
    while True:
        N = in_rows * in_columns
        G = (B @ B.mT) * (C @ C.mT)
        A = _improved(A, N, G, sweeps)
        sweeps = _TENSOR_SWEEPS
        keep = yield (A.mT, B.mT, C), half_squares(objective.constant, N, A, G)
        A, B, C, in_rows, in_columns = keep_starts(keep, A, B, C, in_rows, in_columns)
        K = A @ A.mT
        B = _improved(B, (A * in_columns) @ W, K * (C @ C.mT), _TENSOR_SWEEPS)
        in_rows = B @ W.T
        C = _improved(C, (A * in_rows) @ H, K * (B @ B.mT), _TENSOR_SWEEPS)
        in_columns = C @ H.T
