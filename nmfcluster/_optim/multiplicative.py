"""Multiplicative rules of the papers for symmetric factorization; each solver is a generator."""

import numpy as np

from nmfcluster._optim.run import Solution, Steps, kept
from nmfcluster._optim.symmetric import Factorization, SymmetricObjective
from nmfcluster._utils.linalg import dots, gram, mapped, times

_HELD_BACK = 0.1  # share of the positive part of the first core that is kept where it is negative


class TriFactorization(Factorization):
    """The factors Q and S of ``QSQ'`` that were kept; columns of Q have length 1."""

    @staticmethod
    def factor_of(solution: Solution) -> np.ndarray:
        """Return ``Q S^1/2``, (n, k), of the diagonal of S."""
        Q, S = solution.factors
        return Q * np.sqrt(np.diagonal(S))

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """Q (n, k) and S (k, k)."""
        Q, S = self.best.factors
        return Q, S

    @property
    def core(self) -> np.ndarray:
        """S, (k, k)."""
        return self.best.factors[1]


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return above / below, kept from 0/0 and from infinity, which a zero factor makes NaN."""
    limits = np.finfo(below.dtype)
    return np.minimum(above, below / limits.eps) / np.maximum(below, limits.tiny)


def _root_of_ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.sqrt(_ratio(above, below))


def _over(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the rows with every column over its length."""
    return mapped(lambda block: block / lengths, rows)


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
        G, B = gram(Q, Q), gram(Q, AQ)
        loss = objective.constant - 2 * dots(S, B) + dots(S @ G, G @ S)
        keep = yield (Q, S), loss
        Q, S, AQ = kept(keep, Q, S, AQ)
        AQS = times(AQ, S)
        Q = mapped(np.multiply, Q, mapped(_root_of_ratio, AQS, times(Q, gram(Q, AQS))))
        AQ, G = A @ Q, gram(Q, Q)
        S = S * _root_of_ratio(gram(Q, AQ), G @ S @ G)


def multiplicative_gsg(objective: SymmetricObjective, G: np.ndarray) -> Steps:
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

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, k)
        G and S.
    loss : ndarray of shape (n_starts,)
    """
    positive, negative = objective.A.split()

    def products(G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return positive @ G, np.zeros_like(G) if negative is None else negative @ G

    def gain(G: np.ndarray, PG: np.ndarray, NG: np.ndarray) -> np.ndarray:
        return gram(G, mapped(np.subtract, PG, NG))

    def loss_of(
        G: np.ndarray, S: np.ndarray, PG: np.ndarray, NG: np.ndarray
    ) -> np.ndarray:
        SK = S @ gram(G, G)
        return objective.constant - 2 * dots(S, gain(G, PG, NG)) + dots(SK, SK.mT)

    G = G / _lengths(G)
    PG, NG = products(G)
    # a 0 would be final: where negative entries prevail, a part of the positive ones is taken
    S = np.maximum(gain(G, PG, NG), _HELD_BACK * gram(G, PG))
    while True:
        keep = yield (G, S), loss_of(G, S, PG, NG)
        G, S, PG, NG = kept(keep, G, S, PG, NG)
        K = gram(G, G)
        S = S * _ratio(gram(G, PG), gram(G, NG) + K @ S @ K)
        loss = loss_of(G, S, PG, NG)
        below = mapped(np.add, times(NG, S), times(G, S @ K @ S))
        root = mapped(_root_of_ratio, times(PG, S), below)
        old, G = G, mapped(np.multiply, G, root)
        PG, NG = products(G)
        worse = loss_of(G, S, PG, NG) > loss
        if worse.any():
            G[worse] = old[worse] * np.sqrt(root[worse])
            PG[worse], NG[worse] = products(G[worse])
        length = _lengths(G)
        G, PG, NG = (_over(F, length) for F in (G, PG, NG))
        S = length.mT * S * length
