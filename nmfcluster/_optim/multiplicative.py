"""Multiplicative rules of the papers for symmetric factorization, as solvers for `run`."""

import numpy as np

from nmfcluster._optim.run import Steps, keep_starts
from nmfcluster._utils.linalg import gram, inner_products, map_rows, matmul_rows

# Smallest entry of the starting core, relative to its positive part: zeros would be final.
_SMALLEST_SHARE = 0.1


def _ratio(numerator, denominator):
    """Return the ratio, bounded so that it is never NaN or infinity."""
    limits = np.finfo(denominator.dtype)
    bounded = np.minimum(numerator, denominator / limits.eps)
    return bounded / np.maximum(denominator, limits.tiny)


def _root_of_ratio(numerator, denominator):
    return np.sqrt(_ratio(numerator, denominator))


def _column_lengths(Q):
    """Return the lengths of the columns, (n_starts, 1, k), bounded away from 0."""
    lengths = np.linalg.norm(Q, axis=1, keepdims=True)
    return np.maximum(lengths, np.finfo(Q.dtype).tiny)


def multiplicative_trinmf(objective, Q) -> Steps:
    r"""Follow eq. 20-21 of Li et al. for :math:`\min \|A - QSQ'\|^2`, Q'Q = I, Q, S >= 0.

    .. math::
        Q \leftarrow Q \circ \sqrt{AQS \oslash (QQ'AQS)}, \qquad
        S \leftarrow S \circ \sqrt{Q'AQ \oslash (Q'QSQ'Q)}

    as printed, with denominators bounded away from 0. S starts diagonal and stays so. The rule can
    raise this loss, and Q'Q = I holds only approximately: see the user guide.

    Parameters
    ----------
    objective : SymmetricObjective
        The objective, without missing pairs and with A >= 0.
    Q : ndarray of shape (n_starts, n, k)
        Positive starting factors, whose columns are normalised first.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, k)
        Q and S.
    loss : ndarray of shape (n_starts,)
    """
    A = objective.A
    Q = Q / _column_lengths(Q)
    AQ = A @ Q
    diagonal = np.einsum("snk,snk->sk", Q, AQ)
    S = diagonal[:, :, None] * np.eye(Q.shape[-1], dtype=Q.dtype)
    while True:
        G = gram(Q, Q)
        B = gram(Q, AQ)
        loss = objective.constant - 2 * inner_products(S, B)
        keep = yield (Q, S), loss + inner_products(S @ G, G @ S)
        Q, S, AQ = keep_starts(keep, Q, S, AQ)
        # Update Q by eq. 20.
        AQS = matmul_rows(AQ, S)
        ratio = map_rows(_root_of_ratio, AQS, matmul_rows(Q, gram(Q, AQS)))
        Q = map_rows(np.multiply, Q, ratio)
        # Update S by eq. 21.
        AQ = A @ Q
        G = gram(Q, Q)
        S = S * _root_of_ratio(gram(Q, AQ), G @ S @ G)


def _fit(G, PG, NG):
    """Return ``G'AG`` of every start from PG and NG, where A = P - N."""
    return gram(G, map_rows(np.subtract, PG, NG))


def multiplicative_gsg(objective, G) -> Steps:
    r"""Minimise :math:`\|A - GSG'\|^2` over G, S >= 0 (Chen et al., 2007, eq. 3).

    With :math:`A = P - N` split into nonnegative parts and :math:`K = G'G`,

    .. math::
        S \leftarrow S \circ G'PG \oslash (G'NG + KSK), \qquad
        G \leftarrow G \circ \sqrt{PGS \oslash (NGS + GSKS)} .

    After each update, the columns of G are scaled to length 1, and S so that GSG' stays the same.
    The first rule never raises the loss. Where the second would raise it, the exponent is 1/4
    instead of 1/2, for which descent is proved.

    Parameters
    ----------
    objective : SymmetricObjective
        The objective, without missing pairs.
    G : ndarray of shape (n_starts, n, k)
        Positive starting factors.

    Yields
    ------
    factors : tuple of ndarrays of shapes (n_starts, n, k) and (n_starts, k, k)
        G and S.
    loss : ndarray of shape (n_starts,)
    """
    positive, negative = objective.A.split()

    def products(G):
        NG = np.zeros_like(G) if negative is None else negative @ G
        return positive @ G, NG

    def losses(G, S, PG, NG):
        SK = S @ gram(G, G)
        fit = inner_products(S, _fit(G, PG, NG))
        return objective.constant - 2 * fit + inner_products(SK, SK.mT)

    G = G / _column_lengths(G)
    PG, NG = products(G)
    # Start S positive, as zeros are final: use a share of G'PG where negative entries prevail.
    S = np.maximum(_fit(G, PG, NG), _SMALLEST_SHARE * gram(G, PG))
    while True:
        keep = yield (G, S), losses(G, S, PG, NG)
        G, S, PG, NG = keep_starts(keep, G, S, PG, NG)
        # Update S.
        K = gram(G, G)
        S = S * _ratio(gram(G, PG), gram(G, NG) + K @ S @ K)
        # Update G, with a smaller exponent where the loss would rise.
        loss = losses(G, S, PG, NG)
        denominator = map_rows(np.add, matmul_rows(NG, S), matmul_rows(G, S @ K @ S))
        root = map_rows(_root_of_ratio, matmul_rows(PG, S), denominator)
        old = G
        G = map_rows(np.multiply, old, root)
        PG, NG = products(G)
        is_worse = losses(G, S, PG, NG) > loss
        if is_worse.any():
            G[is_worse] = old[is_worse] * np.sqrt(root[is_worse])
            PG[is_worse], NG[is_worse] = products(G[is_worse])
        # Scale the columns of G to length 1, and S so that GSG' stays the same.
        length = _column_lengths(G)
        for rows in (G, PG, NG):
            rows /= length
        S = length.mT * S * length
