"""How many clusters samples have, by rules that users know: each from its paper, on k-means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from sklearn.mixture import GaussianMixture

from nmfcluster.model_selection import choose_n_clusters

VOTE, STABILITY = "choose_n_clusters, vote", "choose_n_clusters, stability"
STARTS = 5  # of k-means, and two for fits to parts
REFERENCES = 10  # uniform tables of the gap statistic

Clusters = dict[int, KMeans]


def clusters(X: np.ndarray, ks: Sequence[int], seed: int) -> Clusters:
    """Return k-means with every number of clusters, the same for all indices."""
    return {
        k: KMeans(k, n_init=STARTS, random_state=seed).fit(X) for k in ks if k < len(X)
    }


def by_index(
    index: Callable[[np.ndarray, np.ndarray], float], sign: float
) -> Callable[[np.ndarray, Clusters], int]:
    """Return the choice of the number with the largest, or smallest, index; at least two."""

    def choose(X: np.ndarray, fits: Clusters) -> int:
        scores = {k: sign * index(X, fit.labels_) for k, fit in fits.items() if k > 1}
        return max(scores, key=scores.__getitem__)

    return choose


INDICES = {
    "silhouette": by_index(silhouette_score, 1),
    "Davies-Bouldin": by_index(davies_bouldin_score, -1),
    "Calinski-Harabasz": by_index(calinski_harabasz_score, 1),
}


def gap(X: np.ndarray, fits: Clusters, seed: int) -> int:
    """Choose the smallest k whose gap is within one error of the next (Tibshirani et al. 2001)."""
    rng = np.random.default_rng(seed)
    ks = sorted(fits)
    low, high = X.min(axis=0), X.max(axis=0)
    logs = np.empty((REFERENCES, len(ks)))
    for b in range(REFERENCES):
        uniform = rng.uniform(low, high, size=X.shape)
        logs[b] = [
            np.log(KMeans(k, n_init=1, random_state=seed).fit(uniform).inertia_)
            for k in ks
        ]
    gaps = logs.mean(axis=0) - np.log([fits[k].inertia_ for k in ks])
    errors = logs.std(axis=0) * np.sqrt(1 + 1 / REFERENCES)
    for i in range(len(ks) - 1):
        if gaps[i] >= gaps[i + 1] - errors[i + 1]:
            return ks[i]
    return ks[-1]


def bic(X: np.ndarray, ks: Sequence[int], seed: int) -> int:
    """Choose the number of components, full covariances, with the smallest BIC."""
    few = [k for k in ks if 4 * k <= len(X)]  # else a component has too few samples
    return min(few, key=lambda k: GaussianMixture(k, random_state=seed).fit(X).bic(X))


def by_stability(X: np.ndarray, ks: Sequence[int], seed: int) -> int:
    """Return our choice by fits of k-means to halves of the samples."""
    model = KMeans(n_init=2)
    return choose_n_clusters(
        model, X, ks, method="stability", random_state=seed
    ).n_clusters_
