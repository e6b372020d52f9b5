"""The update of Lange and Buhmann (2005) as it is printed: every source with posteriors of its own.

Two factors, P ~ W H' with columns of H that sum to 1. `per_source` already knows that posteriors
need not be formed, and takes a quotient for every source.
"""

from __future__ import annotations

import numpy as np

Factors = tuple[np.ndarray, np.ndarray]


def literal(
    sources: list[np.ndarray], weights: np.ndarray, W: np.ndarray, H: np.ndarray
) -> Factors:
    """Return W and H after one step: E, the share of each cluster in a pair, and M, its sums."""
    model = W @ H.T
    new_W, new_H = np.zeros_like(W), np.zeros_like(H)
    for c in range(W.shape[1]):
        posterior = np.outer(W[:, c], H[:, c]) / model
        for weight, P in zip(weights, sources, strict=True):
            expected = P * posterior
            new_W[:, c] += weight * expected.sum(axis=1)
            new_H[:, c] += weight * expected.sum(axis=0)
    return new_W, new_H / new_H.sum(axis=0)


def per_source(
    sources: list[np.ndarray], weights: np.ndarray, W: np.ndarray, H: np.ndarray
) -> Factors:
    """Return the same from one quotient for every source."""
    new_W, new_H = np.zeros_like(W), np.zeros_like(H)
    for weight, P in zip(weights, sources, strict=True):
        ratio = P / (W @ H.T)
        new_W += weight * (ratio @ H)
        new_H += weight * (ratio.T @ W)
    new_W, new_H = W * new_W, H * new_H
    return new_W, new_H / new_H.sum(axis=0)
