"""Clusters of the same points by several methods, for every number of clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import cut_tree, ward
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from nmfcluster._engine.starts import leading_eigenpairs
from nmfcluster.similarity import Explicit
from nmfcluster.similarity.neighbors import NeighborGraph

Labellings = dict[int, np.ndarray]  # clusters of all points, by their number

_STARTS = 5  # of k-means
_NEIGHBORS = 10
_DIGITS = 9  # by which points are told from each other: others are at one place but for rounding


def by_kmeans(X: np.ndarray, candidates: Sequence[int], seed: int) -> Labellings:
    """Return clusters by k-means."""
    return {k: KMeans(k, n_init=_STARTS, random_state=seed).fit_predict(X) for k in candidates}


def by_ward(X: np.ndarray, candidates: Sequence[int]) -> Labellings:
    """Return clusters of Ward's tree."""
    if not candidates:
        return {}
    cuts = cut_tree(ward(X), candidates)
    return {k: cuts[:, i] for i, k in enumerate(candidates)}


def by_spectrum(X: np.ndarray, candidates: Sequence[int], seed: int) -> Labellings:
    """Return clusters by k-means on leading eigenvectors of a graph of neighbours.

    Where these have fewer places than there are clusters, there are none of that number.
    """
    if not candidates:
        return {}
    array = NeighborGraph(X, _NEIGHBORS).array
    degrees = np.maximum(array.sum(axis=1), np.finfo(float).tiny)
    W = Explicit(array).scaled(1 / np.sqrt(degrees))
    _, vectors = leading_eigenpairs(W, max(candidates))
    found: Labellings = {}
    for k in candidates:
        places = normalize(vectors[:, :k])
        if distinct(places) >= k:
            found |= by_kmeans(places, [k], seed)
    return found


def distinct(X: np.ndarray) -> int:
    """Return at how many places points are."""
    return len(np.unique(X.round(_DIGITS), axis=0))
