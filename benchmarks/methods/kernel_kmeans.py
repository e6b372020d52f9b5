"""Kernel k-means with a Gaussian kernel: the best of three random starts.

The width of the kernel is the median distance of two samples. The widths of Chen et al. (2007) fit
features of a scale that the paper does not state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster.affinity import make_affinity


def gaussian(X: Any) -> np.ndarray:
    return make_affinity(X, "rbf").similarity.toarray()


def lloyd(K: np.ndarray, labels: np.ndarray, k: int, max_iter: int = 100) -> np.ndarray:
    """Move every sample to its nearest centre in feature space until none moves."""
    for _ in range(max_iter):
        _, distances = _to_centres(K, labels, k)
        moved = distances.argmin(axis=1)
        if (moved == labels).all():
            break
        labels = moved
    return labels


def scatter(K: np.ndarray, labels: np.ndarray, k: int) -> float:
    """Return the sum of squared distances to the centres."""
    within, _ = _to_centres(K, labels, k)
    return float(np.trace(K) - within.sum())


def _to_centres(
    K: np.ndarray, labels: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of K over the size of each cluster, and distances squared less diag(K)."""
    E = np.eye(k)[labels]
    sizes = E.sum(axis=0)
    P = K @ E / np.maximum(sizes, 1)
    within = (E * P).sum(axis=0)
    squares = within / np.maximum(sizes, 1) - 2 * P
    squares[:, sizes == 0] = np.inf  # an empty cluster stays empty
    return within, squares


def cluster(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    rng, K = np.random.default_rng(seed), gaussian(X)
    ends = [lloyd(K, rng.integers(k, size=len(K)), k) for _ in range(3)]
    return min(ends, key=lambda labels: scatter(K, labels, k))


METHODS = [Method("kernel k-means", timed(cluster), wants=FEATURES)]
