"""Solvers with the Frobenius norm: each is a generator that holds the updates and nothing else.

Every factor carries the starts as its first axis; see `_iterate` for the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nmfcluster._arrays.storage import row_blocks
from nmfcluster._engine.run import Steps, kept
from nmfcluster.similarity import Similarity

_SMALLEST_INVERSE = 1e-2  # bounds the proximal gradient's steps: without it rounding wins
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
    def wide(self) -> bool:
        """Whether several starts in one product are faster than one after the other."""
        return self.A.wide

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
        blocks = list(row_blocks(n, rows))
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


def bregman_nmf(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise :math:`J(H)` over H >= 0 by accelerated Bregman proximal gradient steps.

    With the kernel :math:`h(H) = \frac a4 \|H\|^4`, a = 3, J/4 is smooth relative to h when A is
    positive semidefinite [1]_, and so near any H but 0 when it is not. A step of length
    1 / lambda from a point Y,

    .. math:: H^+ = r\,[\nabla h(Y) - \nabla (J/4)(Y) / \lambda]_+ , \quad r^3 = 1 / (a \|V\|^2)

    with V the bracket, is taken when

    .. math:: \tfrac14 J(H^+) \le \tfrac14 J(Y) + \langle \nabla (J/4)(Y), H^+ - Y \rangle
              + \lambda D_h(H^+, Y) ,

    which holds for lambda = 1 and semidefinite A. Longer steps are tried first; lambda is doubled
    until the inequality holds. Y runs ahead of H along the last step, as in [2]_, which costs no
    further product with A. Where J would rise, the step is taken from H instead and the run-up
    begins anew: J never rises, for A of any sign.

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
    .. [2] M. C. Mukkamala, P. Ochs, T. Pock, S. Sabach. Convex-concave backtracking for inertial
       Bregman proximal gradient algorithms in nonconvex optimization. SIAM Journal on Mathematics
       of Data Science 2, 2020.
    """
    H, loss, P, C = objective.rescaled(H)
    H_before, P_before = H, P
    inverse_step, pace = np.ones(len(H)), np.ones(len(H))
    while True:
        keep = yield (H,), loss
        H, P, C, loss, H_before, P_before, inverse_step, pace = kept(
            keep, H, P, C, loss, H_before, P_before, inverse_step, pace
        )
        faster = (1 + np.sqrt(1 + 4 * pace**2)) / 2
        ahead = (pace - 1) / faster
        inverse_step = np.maximum(0.8 * inverse_step, _SMALLEST_INVERSE)
        if ahead.any():
            push = per_start(ahead, H)
            Y = H - H_before
            Y *= push
            Y += H
            slope = P - P_before  # A is linear: AY comes from AH
            slope *= push
            slope += P
        else:
            Y, slope = H, P
        H_before, P_before = H, P
        H, P, C, loss, back = _descent(objective, (H, P, C, loss), Y, slope, inverse_step)
        pace = np.where(back & (ahead > 0), 1, faster)


def _descent(
    objective: SymmetricObjective,
    now: tuple[np.ndarray, ...],
    Y: np.ndarray,
    product: np.ndarray,
    inverse_step: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Take a step from Y, or from H where that does not lower the loss.

    Parameters
    ----------
    objective : SymmetricObjective
    now : tuple
        H, AH, C(H) and the losses of H.
    Y : ndarray of shape (n_starts, n, k)
        H itself, or a point ahead of it.
    product : ndarray of shape (n_starts, n, k)
        AY.
    inverse_step : ndarray of shape (n_starts,)
        Updated in place.

    Returns
    -------
    tuple
        H, AH, C(H) and the loss after the step, and whether it was taken from H.
    """
    a, constant = objective.quartic_bound, objective.constant
    slack = 8 * np.finfo(Y.dtype).eps * constant
    H, P, C, loss = now
    back = np.full(len(H), Y is H)
    if Y is H:
        slope, level = C - P, loss.copy()
    else:
        slope = objective.quartic(Y)
        level = constant - 2 * dots(Y, product) + dots(Y, slope)
        slope -= product
    norm, trying = dots(Y, Y), np.arange(len(H))
    new: list[np.ndarray] = []  # loss, P, C and H
    while len(trying):
        again = trying if new else None
        old, gradient, t, size = kept(again, Y, slope, inverse_step, norm)
        candidate = _proximal_step(old, gradient, a, size, t)
        found = (*objective.evaluate(candidate), candidate)
        bound = level[trying] + 4 * _model(candidate - old, old, gradient, a, size, t) + slack
        smooth = (found[0] <= bound) | (t >= _LARGEST_INVERSE)
        accepted = smooth & (back[trying] | (found[0] <= loss[trying]))
        if not new:  # the first time all are tried: what is not accepted is overwritten later
            new = list(found)
        else:
            for target, value in zip(new, found, strict=True):
                target[trying[accepted]] = value[accepted]
        inverse_step[trying[~smooth]] *= 2
        rising = trying[smooth & ~accepted]
        if len(rising):
            back[rising] = True
            Y[rising], slope[rising] = H[rising], C[rising] - P[rising]
            level[rising], norm[rising] = loss[rising], dots(H[rising], H[rising])
        trying = trying[~accepted]
    return new[3], new[1], new[2], new[0], back


def _model(
    D: np.ndarray,
    Y: np.ndarray,
    slope: np.ndarray,
    a: float,
    norm: np.ndarray,
    inverse_step: np.ndarray,
) -> np.ndarray:
    """Return ``<slope, D> + inverse_step D_h(Y + D, Y)``, the step's bound on the growth of J/4."""
    square = dots(D, D)
    growth = 2 * dots(Y, D) + square  # of the squared norm
    return dots(slope, D) + inverse_step * a / 4 * (2 * norm * square + growth**2)


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


def multiplicative_nmf(
    objective: SymmetricObjective, H: np.ndarray, *, printed: bool = False
) -> Steps:
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
    printed : bool, default=False
        Take the printed root always.

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
        if worse.any() and not printed:
            H_new[worse] = H[worse] * np.sqrt(np.sqrt(ratio[worse]))
            loss_new[worse], P[worse], C[worse] = objective.evaluate(H_new[worse])
        H, loss = H_new, loss_new


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return above / below, kept from 0/0 and from infinity, which a zero factor makes NaN."""
    limits = np.finfo(below.dtype)
    return np.minimum(above, below / limits.eps) / np.maximum(below, limits.tiny)


def _lengths(Q: np.ndarray) -> np.ndarray:
    """Return the lengths of the columns, (n_starts, 1, k), kept from 0."""
    return np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), np.finfo(Q.dtype).tiny)


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
    A = objective.A
    Q = Q / _lengths(Q)
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


def multiplicative_gsg(
    objective: SymmetricObjective, G: np.ndarray, *, full: bool = False, printed: bool = False
) -> Steps:
    r"""Minimise :math:`\|A - GSG'\|^2` over G, S >= 0 (Chen et al., 2007, eq. 3).

    With :math:`A = P - N` split into nonnegative parts and :math:`K = G'G`,

    .. math::
        S \leftarrow S \circ G'PG \oslash (G'NG + KSK), \qquad
        G \leftarrow G \circ \sqrt{PGS \oslash (NGS + GSKS)} ,

    columns of G scaled to length 1 after each, which S takes up. The first rule never raises the
    loss; where the second would, its exponent is 1/4 instead of 1/2, for which descent is proved.

    Parameters
    ----------
    objective : SymmetricObjective
        Without missing pairs.
    G : ndarray of shape (n_starts, n, k)
        Positive.
    full : bool, default=False
        Whether S may have entries off its diagonal.
    printed : bool, default=False
        Follow eq. 5-6 as they are printed, without S and the root in the rule of G, which need not
        descend. A must then be nonnegative.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, k)
        G and S.
    loss : ndarray of shape (n_starts,)
    """
    positive, negative = objective.A.split()

    def products(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return positive @ G, np.zeros_like(G) if negative is None else negative @ G

    def loss_of(G: np.ndarray, S: np.ndarray, PG: np.ndarray, NG: np.ndarray) -> np.ndarray:
        SK = S @ (G.mT @ G)
        return objective.constant - 2 * dots(S, G.mT @ (PG - NG)) + dots(SK, SK.mT)

    G = G / _lengths(G)
    PG, NG = products(G)
    # a 0 would be final: where negative entries prevail, a part of the positive ones is taken
    S = np.maximum(G.mT @ (PG - NG), 0.1 * (G.mT @ PG))
    S = S if full else S * np.eye(G.shape[-1], dtype=G.dtype)
    while True:
        keep = yield (G, S), loss_of(G, S, PG, NG)
        G, S, PG, NG = kept(keep, G, S, PG, NG)
        K = G.mT @ G
        if printed:
            S = S * _ratio(np.maximum(G.mT @ (PG - NG), 0), K @ S @ K)
            G = G * _ratio(np.maximum(PG - NG, 0), G @ (S @ K))
            PG, NG = products(G)
        else:
            S = S * _ratio(G.mT @ PG, G.mT @ NG + K @ S @ K)
            loss = loss_of(G, S, PG, NG)
            ratio = _ratio(PG @ S, NG @ S + G @ (S @ K @ S))
            old, G = G, G * np.sqrt(ratio)
            PG, NG = products(G)
            worse = loss_of(G, S, PG, NG) > loss
            if worse.any():
                G[worse] = old[worse] * np.sqrt(np.sqrt(ratio[worse]))
                PG[worse], NG[worse] = products(G[worse])
        length = _lengths(G)
        G, PG, NG, S = G / length, PG / length, NG / length, length.mT * S * length
