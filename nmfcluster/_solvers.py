"""Solvers with the Frobenius norm: each is a generator that holds the updates and nothing else.

Every factor carries the starts as its first axis; see `_iterate` for the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmfcluster._iterate import Steps
from nmfcluster.similarity import Similarity

_SMALLEST_INVERSE = 1e-2  # bounds the proximal gradient's steps: without it rounding wins
_ROWS = 8192
_LARGEST_INVERSE = 2.0**30  # a step so short that it changes nothing; only rounding leads here


@dataclass(frozen=True)
class SymmetricObjective:
    r"""The objective :math:`J(H) = \|A - HH'\|^2`, or its form for pairs not always seen.

    With `observed`, partition t sees the samples with ``observed[i, t] = 1``, only the pairs it
    sees count, and A must be the co-association with a missing pair counted as 0:
    :math:`J(H) = \sum_t w_t \sum_{i,j \in O_t} (M^t_{ij} - (HH')_{ij})^2`.

    Both are ``constant - 2 <H, AH> + <H, C(H)>``, with ``C(H) = H H'H`` in the first case and
    the sum of ``w_t 1_{O_t} H H_t'H_t`` in the second, and gradient ``4 (C(H) - AH)``.

    Attributes
    ----------
    A : Similarity of shape (n, n)
    constant : float
        Loss of H = 0.
    observed : ndarray of shape (n, T), bool, default=None
        Where a partition saw a sample.
    weights : ndarray of shape (T,), default=None
        Weights of the partitions, used with `observed`.
    """

    A: Similarity
    constant: float
    observed: np.ndarray | None = None
    weights: np.ndarray | None = None

    @property
    def quartic_bound(self) -> float:
        """The a of ``<D, hess(C) D> <= a ||H||^2 ||D||^2``: 3 times the largest pair weight."""
        return 3.0 if self.weights is None else 3.0 * float(np.sum(self.weights))

    def quartic(self, H: np.ndarray) -> np.ndarray:
        """Return C(H), of the shape of H: (n_starts, n, k)."""
        if self.observed is None:
            return H @ (H.mT @ H)
        return np.stack([self._quartic_of_seen(factor) for factor in H])

    def _quartic_of_seen(self, H: np.ndarray) -> np.ndarray:
        assert self.observed is not None
        n, k = H.shape
        rows = max(1, 2**20 // (k * k))  # n x k^2 is formed some rows at a time
        blocks = [slice(i, i + rows) for i in range(0, n, rows)]
        G = np.zeros((self.observed.shape[1], k * k), dtype=H.dtype)
        for b in blocks:
            pairs = (H[b, :, None] * H[b, None, :]).reshape(-1, k * k)
            G += self.observed[b].T.astype(H.dtype) @ pairs
        G *= np.asarray(self.weights, dtype=H.dtype)[:, None]
        C = np.empty_like(H)
        for b in blocks:  # row i: the sum of w_t G_t over the partitions that saw i, times h_i
            seen = (self.observed[b].astype(H.dtype) @ G).reshape(-1, k, k)
            C[b] = np.einsum("ncd,nd->nc", seen, H[b])
        return C

    def evaluate(self, H: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the losses (n_starts,), AH and C(H)."""
        P, C = self.A @ H, self.quartic(H)
        return self.constant - 2 * dots(H, P) + dots(H, C), P, C

    def rescaled(self, H: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return each start times the factor that makes its loss smallest, and `evaluate` of it."""
        _, P, C = self.evaluate(H)
        fit, size = dots(H, P), dots(H, C)
        usable = (fit > 0) & (size > 0)
        square = np.divide(fit, size, out=np.ones_like(fit), where=usable)
        root = per_start(np.sqrt(square), H)
        P *= root
        C *= root**3
        return root * H, self.constant - 2 * square * fit + square**2 * size, P, C


def dots(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return <X_s, Y_s> for every start s, accumulated in float64."""
    pairs = zip(X, Y, strict=True)
    if X.dtype == np.float64:
        return np.array([np.vdot(x, y) for x, y in pairs])
    return np.array([np.einsum("ij,ij->", x, y, dtype=np.float64) for x, y in pairs])


def per_start(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return one value a start so that it multiplies (n_starts, n, k) without promoting it."""
    return values.astype(like.dtype)[:, None, None]


def kept(keep: np.ndarray | None, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the arrays restricted to the starts that go on."""
    return arrays if keep is None else tuple(array[keep] for array in arrays)


def bregman_nmf(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise :math:`J(H)` over H >= 0 by Bregman proximal gradient steps.

    With the kernel :math:`h(H) = \frac a4 \|H\|^4`, a = 3, J/4 is smooth relative to h when A is
    positive semidefinite [1]_, and so near any H but 0 when it is not. A step of length
    1 / lambda,

    .. math:: H^+ = r\,[\nabla h(H) - \nabla (J/4)(H) / \lambda]_+ , \quad r^3 = 1 / (a \|V\|^2)

    with V the bracket, lowers J whenever

    .. math:: \tfrac14 J(H^+) \le \tfrac14 J(H) + \langle \nabla (J/4)(H), H^+ - H \rangle
              + \lambda D_h(H^+, H) ,

    which holds for lambda = 1 and semidefinite A. Longer steps are tried first; lambda is doubled
    until the inequality holds, so J never rises, for A of any sign.

    Parameters
    ----------
    objective : SymmetricObjective
    H : ndarray of shape (n_starts, n, k)
        Nonnegative.

    Yields
    ------
    factors : tuple of one ndarray of shape (n_starts, n, k)
    loss : ndarray of shape (n_starts,)

    References
    ----------
    .. [1] R.-A. Dragomir, A. d'Aspremont, J. Bolte. Quartic first-order methods for low-rank
       minimization. Journal of Optimization Theory and Applications 189, 2021.
    """
    a = objective.quartic_bound
    H, loss, P, C = objective.rescaled(H)
    inverse_step = np.ones(len(H))
    slack = 8 * np.finfo(H.dtype).eps * objective.constant
    while True:
        keep = yield (H,), loss
        H, P, C, loss, inverse_step = kept(keep, H, P, C, loss, inverse_step)
        norm = dots(H, H)
        slope = np.subtract(C, P, out=C)
        inverse_step = np.maximum(0.8 * inverse_step, _SMALLEST_INVERSE)
        trying = np.arange(len(H))
        new: list[np.ndarray] = []  # loss, P, C and H
        while len(trying):
            again = trying if new else None
            old, gradient, t = kept(again, H, slope, inverse_step)
            candidate = _proximal_step(old, gradient, a, norm[trying], t)
            found = (*objective.evaluate(candidate), candidate)
            D = candidate - old
            square = dots(D, D)
            growth = 2 * dots(old, D) + square  # of the squared norm
            distance = a / 4 * (2 * norm[trying] * square + growth**2)
            bound = loss[trying] + 4 * (dots(gradient, D) + t * distance) + slack
            accepted = (found[0] <= bound) | (t >= _LARGEST_INVERSE)
            if not new:  # the first time all are tried: what is not accepted is overwritten later
                new = list(found)
            else:
                for target, value in zip(new, found, strict=True):
                    target[trying[accepted]] = value[accepted]
            trying = trying[~accepted]
            inverse_step[trying] *= 2
        loss, P, C, H = new


def _proximal_step(
    H: np.ndarray, slope: np.ndarray, a: float, norm: np.ndarray, inverse_step: np.ndarray
) -> np.ndarray:
    """Return r V with V = [a ||H||^2 H - slope / inverse_step]_+ and a r^3 ||V||^2 = 1."""
    V = slope * per_start(-1 / inverse_step, H)
    V += per_start(a * norm, H) * H
    np.maximum(V, 0, out=V)
    size = dots(V, V)
    r = np.cbrt(1 / (a * np.where(size > 0, size, 1)))  # V = 0 leads to 0
    V *= per_start(r, H)
    return V


def multiplicative_nmf(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise :math:`J(H)` over H >= 0 by the multiplicative rule of Li et al., eq. 28.

    .. math:: H \leftarrow H \circ \sqrt{A^+H \oslash (A^-H + C(H))}

    The printed square root is not a descent rule; where it raises the loss, the step is taken
    with the exponent 1/4, for which descent is proved. Denominators are kept from 0. An entry that
    is 0 stays 0.

    Parameters
    ----------
    objective : SymmetricObjective
    H : ndarray of shape (n_starts, n, k)
        Positive.

    Yields
    ------
    factors : tuple of one ndarray of shape (n_starts, n, k)
    loss : ndarray of shape (n_starts,)
    """
    positive, negative = objective.A.split()
    H, loss, P, C = objective.rescaled(H)
    while True:
        keep = yield (H,), loss
        H, P, C, loss = kept(keep, H, P, C, loss)
        below = C if negative is None else C + negative @ H
        above = P if negative is None else positive @ H
        ratio = _ratio(above, below)
        H_new = H * np.sqrt(ratio)
        loss_new, P, C = objective.evaluate(H_new)
        worse = loss_new > loss
        if worse.any():
            H_new[worse] = H[worse] * np.sqrt(np.sqrt(ratio[worse]))
            loss_new[worse], P[worse], C[worse] = objective.evaluate(H_new[worse])
        H, loss = H_new, loss_new


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return above / below, kept from 0/0 and from infinity, which a zero factor makes NaN."""
    limits = np.finfo(below.dtype)
    return np.minimum(above, below / limits.eps) / np.maximum(below, limits.tiny)


def multiplicative_trinmf(objective: SymmetricObjective, Q: np.ndarray) -> Steps:
    r"""Follow eq. 20-21 of Li et al. for :math:`\min \|A - QSQ'\|^2`, Q'Q = I, Q, S >= 0.

    .. math::
        Q \leftarrow Q \circ \sqrt{AQS \oslash (QQ'AQS)}, \qquad
        S \leftarrow S \circ \sqrt{Q'AQ \oslash (Q'QSQ'Q)}

    as printed, with denominators kept from 0. S starts diagonal and stays so. The rule is no
    descent method for this loss and holds Q'Q = I only nearly: see the user guide.

    Parameters
    ----------
    objective : SymmetricObjective
        Without missing pairs, and with A >= 0.
    Q : ndarray of shape (n_starts, n, k)
        Positive; its columns are normalised first.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, k)
        Q and S.
    loss : ndarray of shape (n_starts,)
    """
    A, tiny = objective.A, np.finfo(Q.dtype).tiny
    Q = Q / np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), tiny)
    AQ = A @ Q
    S = np.einsum("snk,snk->sk", Q, AQ)[:, :, None] * np.eye(Q.shape[-1], dtype=Q.dtype)
    while True:
        G, B = Q.mT @ Q, Q.mT @ AQ
        loss = objective.constant - 2 * dots(S, B) + dots(S @ G, G @ S)
        keep = yield (Q, S), loss
        Q, S, AQ = kept(keep, Q, S, AQ)
        AQS = AQ @ S
        Q = Q * np.sqrt(_ratio(AQS, Q @ (Q.mT @ AQS)))
        AQ, G = A @ Q, Q.mT @ Q
        S = S * np.sqrt(_ratio(Q.mT @ AQ, G @ S @ G))


def nonnegative_rows(
    B: np.ndarray, G: np.ndarray, max_sweeps: int = 100, resolution: float = 1e-6
) -> np.ndarray:
    """Return the rows h >= 0 that minimise ``h'Gh - 2 b'h`` for every row b of B.

    With ``B = A[new, :] @ H`` and ``G = H'H`` these are the factor rows of new samples for a
    fixed H. Cyclic coordinate descent, all rows at once.

    Parameters
    ----------
    B : ndarray of shape (n, k)
    G : ndarray of shape (k, k) or (n, k, k)
        Positive semidefinite: one for all rows, or one for each.
    max_sweeps : int, default=100
        Largest number of sweeps over the columns.
    resolution : float, default=1e-6
        It ends when no entry changes by more than this times the largest.

    Returns
    -------
    ndarray of shape (n, k)
    """
    H = np.empty_like(B)
    for start in range(0, len(B), _ROWS):  # some rows at a time, and these as columns: in cache
        block = slice(start, start + _ROWS)
        H[block] = _nonnegative_columns(
            B[block].T, G if G.ndim == 2 else G[block], max_sweeps, resolution
        ).T
    return H


def _nonnegative_columns(
    B: np.ndarray, G: np.ndarray, max_sweeps: int, resolution: float
) -> np.ndarray:
    tiny = np.finfo(B.dtype).tiny
    G = np.moveaxis(G, 0, -1) if G.ndim == 3 else G  # (k, k) or (k, k, n)
    diagonal = np.maximum(np.einsum("cc...->c...", G), tiny)
    H = np.maximum(B / (diagonal if G.ndim == 3 else diagonal[:, None]), 0) / len(B)
    for _ in range(max_sweeps):
        change = 0.0
        for c in range(len(B)):
            along = G[c] @ H if G.ndim == 2 else (G[c] * H).sum(axis=0)
            new = np.maximum(H[c] + (B[c] - along) / diagonal[c], 0)
            change = max(change, float(np.abs(new - H[c]).max(initial=0)))
            H[c] = new
        if change <= resolution * float(H.max(initial=0)):
            break
    return H
