"""The update of Lange and Buhmann (2005) as it is printed, with posteriors for every source.

There are two factors, P ~ W H', and the columns of H sum to 1. `per_source` makes the same update
from one quotient for every source, without posteriors.
"""

from __future__ import annotations

import numpy as np

Factors = tuple[np.ndarray, np.ndarray]


def literal(
    sources: list[np.ndarray], weights: np.ndarray, W: np.ndarray, H: np.ndarray
) -> Factors:
    """Return W and H after one step: E finds the share of each cluster in a pair, M sums it up."""
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
    """Return the same W and H from one quotient for every source."""
    new_W, new_H = np.zeros_like(W), np.zeros_like(H)
    for weight, P in zip(weights, sources, strict=True):
        ratio = P / (W @ H.T)
        new_W += weight * (ratio @ H)
        new_H += weight * (ratio.T @ W)
    new_W, new_H = W * new_W, H * new_H
    return new_W, new_H / new_H.sum(axis=0)
