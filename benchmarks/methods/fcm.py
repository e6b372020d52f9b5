"""Fuzzy c-means (Bezdek, 1981), to cluster the columns of a table and their clusters."""

from __future__ import annotations

import numpy as np


def fuzzy_c_means(
    X: np.ndarray,
    k: int,
    rng: np.random.RandomState,
    fuzziness: float = 2.0,
    max_iter: int = 500,
    tol: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return memberships (n, k), whose rows sum to 1, centres (k, p) and the loss.

    The loss is ``sum_ic u_ic^m |x_i - v_c|^2`` with m = `fuzziness`. The first memberships are
    random; the last are those that no step changes by more than `tol`.
    """
    U = rng.uniform(size=(len(X), k))
    U /= U.sum(axis=1, keepdims=True)
    for _ in range(max_iter):
        before, weights = U, U**fuzziness
        centres = weights.T @ X / weights.sum(axis=0)[:, None]
        distances = np.stack(
            [((X - centre) ** 2).sum(axis=1) for centre in centres], axis=1
        )
        low = distances.min(axis=1, keepdims=True)
        # 1 where a row lies on a centre: its distance is 0 there
        near = np.divide(
            low, distances, out=np.ones_like(distances), where=distances > 0
        )
        U = near ** (1 / (fuzziness - 1))
        U /= U.sum(axis=1, keepdims=True)
        if np.abs(U - before).max() <= tol:
            break
    return U, centres, float((U**fuzziness * distances).sum())


def best_of(
    X: np.ndarray, k: int, rng: np.random.RandomState, n_init: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return memberships and centres of the best of several starts."""
    U, centres, _ = min(
        (fuzzy_c_means(X, k, rng) for _ in range(n_init)), key=lambda run: run[2]
    )
    return U, centres
