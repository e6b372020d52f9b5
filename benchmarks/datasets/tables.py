"""Label tables that are made without features."""

from __future__ import annotations

import numpy as np


def unanimous(
    sizes: tuple[int, ...] = (900, 60, 40), n_partitions: int = 50, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return a table that repeats one partition with renamed clusters, and the partition."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return np.stack([rng.permutation(len(sizes))[y] for _ in range(n_partitions)], axis=1), y


def random_labels(n: int, n_clusters: int, n_partitions: int, seed: int = 0) -> np.ndarray:
    """Return random labels, in which there are no clusters and hardly two equal rows."""
    rng = np.random.default_rng(seed)
    return rng.integers(n_clusters, size=(n, n_partitions), dtype=np.int32)
