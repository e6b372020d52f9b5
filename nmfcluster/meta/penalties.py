"""The penalties of sparse NMF: their values, and the factors that are best under them."""

from __future__ import annotations

import numpy as np

from nmfcluster._arrays.blocks import dots
from nmfcluster._arrays.least_squares import descend

PENALTIES = ("l1_columns", "l1_rows", "l1", "l2")


def penalty_of(H: np.ndarray, penalty: str) -> np.ndarray:
    """Return R(H) of every start, (n_starts,), accumulated in float64."""
    if penalty == "l2":
        return dots(H, H)
    if penalty == "l1":
        return H.sum(axis=(1, 2), dtype=np.float64)
    if penalty == "l1_columns":
        return (H.sum(axis=1, dtype=np.float64) ** 2).sum(axis=1)
    return (H.sum(axis=2, dtype=np.float64) ** 2).sum(axis=1) / H.shape[2]


def descend_penalised(
    H: np.ndarray, N: np.ndarray, G: np.ndarray, sparsity: float, penalty: str, sweeps: int
) -> None:
    """Improve the H of one start by sweeps of coordinate descent over its rows, in place.

    Parameters
    ----------
    H : ndarray of shape (k, p)
        Nonnegative.
    N : ndarray of shape (k, p)
        ``W'X``.
    G : ndarray of shape (k, k)
        ``W'W``.
    sparsity : float
    penalty : str
        One of `PENALTIES`. All but "l1_rows" are least squares problems of other N and G.
    sweeps : int
    """
    weight = G.dtype.type(2 * sparsity)
    if penalty == "l1_rows":
        share = float(weight) / H.shape[1]
        for _ in range(sweeps):
            for c in range(len(H)):
                H[c] = _least_sum(N[c] - G[c] @ H + G[c, c] * H[c], float(G[c, c]), share)
    elif penalty == "l1":
        descend(H, N - weight / 2, G, sweeps)
    elif penalty == "l1_columns":
        descend(H, N, G + weight, sweeps)
    else:
        descend(H, N, G + weight * np.eye(len(G), dtype=G.dtype), sweeps)


def _least_sum(b: np.ndarray, curvature: float, weight: float) -> np.ndarray:
    """Return the s >= 0 with the smallest ``curvature |s|^2 / 2 + weight (1's)^2 / 2 - b's``.

    It is ``[b - weight t]_+ / curvature`` with t its own sum, found among the sorted entries.
    """
    largest = -np.sort(-b)
    sums = np.cumsum(largest, dtype=np.float64)
    totals = sums / (curvature + weight * np.arange(1, len(b) + 1))  # t if m entries are above 0
    above = np.flatnonzero(largest > weight * totals)
    t = totals[above[-1]] if len(above) else 0.0
    return np.maximum(b - weight * t, 0).astype(b.dtype) / b.dtype.type(curvature)


def descend_on_sphere(W: np.ndarray, N: np.ndarray, G: np.ndarray, sweeps: int) -> None:
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
                W[c], W[c, np.argmax(towards)] = 0, 1
