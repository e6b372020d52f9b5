"""Gaussian clusters, ensembles on them that are cheap for many samples, and random labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.datasets import Dataset

# of the centres, in standard deviations
SPREAD = {"separated": 5.0, "overlapping": 1.5}
FITTED_ON = 5_000  # rows that k-means sees: enough for ten clusters, and quick


def gaussians(
    n: int,
    kind: str,
    shares: int | Sequence[float] = 10,
    n_features: int = 10,
    seed: int = 0,
) -> Dataset:
    """Draw spherical clusters; `shares` is the number of equal ones, or the share of each."""
    rng = np.random.default_rng(seed)
    p = np.full(shares, 1 / shares) if isinstance(shares, int) else np.asarray(shares)
    centres = rng.normal(scale=SPREAD[kind], size=(len(p), n_features))
    y = np.sort(rng.choice(len(p), size=n, p=p))
    return Dataset(
        f"{kind} Gaussians", centres[y] + rng.normal(size=(n, n_features)), y
    )


def ensemble(
    X: np.ndarray, n_partitions: int, n_clusters: tuple[int, int], seed: int = 0
) -> np.ndarray:
    """Return partitions by k-means: each is fitted to random rows, then predicts all rows."""
    rng = np.random.default_rng(seed)
    table = np.empty((len(X), n_partitions), dtype=np.int32)
    for t in range(n_partitions):
        rows = rng.permutation(len(X))[:FITTED_ON]
        k = int(rng.integers(n_clusters[0], n_clusters[1] + 1))
        table[:, t] = KMeans(k, n_init=1, random_state=t).fit(X[rows]).predict(X)
    return table


def random_labels(
    n: int, n_clusters: int, n_partitions: int, seed: int = 0
) -> np.ndarray:
    """Return random labels, in which there are no clusters and hardly two equal rows."""
    rng = np.random.default_rng(seed)
    return rng.integers(n_clusters, size=(n, n_partitions), dtype=np.int32)
