"""The formulas of fusion in dense arrays and loops, as the docstrings have them."""

import numpy as np
import scipy.sparse as sp


def literal_scaled(S, square):
    """Return ``N = Dr^-1/2 S Dc^-1/2`` of what is above 0, of a square S without its diagonal.

    The D hold the sums plus the mean of those that are not 0.
    """
    S = np.maximum(S, 0.0)
    if square:
        np.fill_diagonal(S, 0)
    rows, columns = S.sum(axis=1), S.sum(axis=0)
    if S.any():
        rows = rows + rows[rows > 0].mean()
        columns = columns + columns[columns > 0].mean()
    N = np.zeros(S.shape)
    for i, j in np.argwhere(S > 0):
        N[i, j] = S[i, j] / np.sqrt(rows[i] * columns[j])
    return N


def literal_factor(r):
    """Return u, of which ``u_i sum_{j != i} u_j`` is r_i, or next to it where that cannot be."""
    u = r / np.sqrt(r.sum() or 1)
    for _ in range(50):
        others = [sum(u[:i]) + sum(u[i + 1 :]) for i in range(len(u))]
        u = np.array(
            [
                np.sqrt(a * b / c) if b else 0
                for a, b, c in zip(u, r, others, strict=True)
            ]
        )
    return u


def literal_beyond(N, square):
    """Return ``N - u v'``, whose rows and columns sum to 0, and which pairs are in it, a mask."""
    r, s = N.sum(axis=1), N.sum(axis=0)
    pairs = np.outer(r > 0, s > 0)
    if square:
        np.fill_diagonal(pairs, False)
        u = literal_factor(r)
        v = u
    else:
        u, v = r / np.sqrt(r.sum()), s / np.sqrt(r.sum())
    return np.where(pairs, N - np.outer(u, v), 0), pairs


def literal_residual(S, square=True):
    """Return R, the pairs that were seen, and the root mean square of R over them."""
    R, pairs = literal_beyond(literal_scaled(S, square), square)
    return R, pairs, np.sqrt((R[pairs] ** 2).mean())


def literal_correlation(S, T, square=True):
    """Return the correlation of two residuals over the pairs that both saw, and their number.

    Where they did not see the same objects, independence is that of those that both saw.
    """
    N, M = (literal_scaled(one, square) for one in (S, T))
    both = np.flatnonzero((N.sum(axis=1) > 0) & (M.sum(axis=1) > 0))
    if len(both) < len(N):
        N, M = ((one[both][:, both] if square else one[both]) for one in (N, M))
    (R, pairs), (Q, others) = literal_beyond(N, square), literal_beyond(M, square)
    told = [
        (R[i, j], Q[i, j])
        for i in range(R.shape[0])
        for j in range(R.shape[1])
        if pairs[i, j] and others[i, j] and (j > i or not square)
    ]
    one, other = np.array(told).T
    return np.corrcoef(one, other)[0, 1], len(told)


def literal_told(sources, weights, square=True):
    """Return the sum of z-scores, and what every source adds to it."""
    parts = []
    for S, w in zip(sources, weights, strict=True):
        R, _, size = literal_residual(S, square)
        parts.append(w * R / size)
    return np.sum(parts, axis=0), np.array(parts)


def literal_largest(R, K):
    """Return of every row the K largest that are above 0, and those as large."""
    kept = np.zeros(R.shape)
    for i, row in enumerate(R):
        least = sorted(row, reverse=True)[min(K, len(row)) - 1]
        for j, value in enumerate(row):
            if value > 0 and value >= least:
                kept[i, j] = value
    return kept


def literal_over_roots(G, degrees=None):
    """Return ``Dr^-1/2 G Dc^-1/2``; a degree counts as at least the entry."""
    rows, degrees = G.sum(axis=1), G.sum(axis=0) if degrees is None else degrees
    A = np.zeros(G.shape)
    for i, j in np.argwhere(G > 0):
        A[i, j] = G[i, j] / np.sqrt(rows[i] * max(degrees[j], G[i, j]))
    return A


def literal_graph(sources, weights, K, square=True):
    """Return the fused graph, and the degrees in it before it is scaled."""
    G = literal_largest(literal_told(sources, weights, square)[0], K)
    G = np.maximum(G, G.T) if square else G
    return literal_over_roots(G), G.sum(axis=0)


def literal_divergence(P, M):
    """Return ``D(P || M)`` of matrices that sum to 1."""
    there = P > 0
    return float((P[there] * np.log(P[there] / M[there])).sum())


def literal_left(S, W, H):
    """Return the share that a model leaves unexplained, the smallest of a fine grid."""
    P = S / S.sum()
    r, s = P.sum(axis=1), P.sum(axis=0)
    model = W @ H.T
    model = model / model[r > 0][:, s > 0].sum()
    left = [
        literal_divergence(P, share * model + (1 - share) * np.outer(r, s))
        for share in np.linspace(0, 1, 201)
    ]
    return min(left) / literal_divergence(P, np.outer(r, s))


def literal_step(P, W):
    """Return W after eqs. 3 and 5 for a symmetric P: with the posterior of every pair."""
    n, k = W.shape
    q, new = W.sum(axis=0), np.zeros((n, k))
    for i in range(n):
        for j in range(n):
            tau = W[i] * W[j] / q
            new[i] += P[i, j] * tau / tau.sum()
    return new / new.sum()


def literal_told_of_clusters(S, W, H):
    """Return ``sum_ij s_ij t_ij log(m_ij / (m_i. m_.j))`` of every cluster."""
    M = W @ H.T
    M, told = M / M.sum(), np.zeros(W.shape[1])
    for i, j in np.argwhere(S != 0):
        share = W[i] * H[j] / (W[i] @ H[j])
        told += S[i, j] * share * np.log(M[i, j] / (M[i].sum() * M[:, j].sum()))
    return told


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)
