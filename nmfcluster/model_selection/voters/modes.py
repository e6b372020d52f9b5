"""Modes of a density: peaks that stand higher above their saddles than chance would make them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from nmfcluster._arrays.nearest import highest_edges

_NEIGHBORS = (8, 12, 16, 24, 32, 48, 64, 96, 128)  # few see small clusters, many see overlaps
_LARGEST = 1 / 4  # of the samples, that can be neighbours of one
_CERTAIN = 2.0  # times the rise that chance makes


class Modes(NamedTuple):
    """How many modes a density has.

    Attributes
    ----------
    likely : int
        Those that chance hardly makes.
    certain : int
        Those that it hardly makes even of samples on a curve or a surface.
    """

    likely: int
    certain: int


def modes_of(X: np.ndarray) -> Modes:
    r"""Return how many modes the density of samples has, by most numbers of neighbours.

    With the distance :math:`r_k` to the k-th neighbour, :math:`-p \log r_k` is the logarithm of
    the density up to a constant, with an error of about :math:`1 / \sqrt k`. On the graph of these
    neighbours, a peak that rises less than :math:`\sqrt{\log n / k}` above the highest saddle to a
    higher peak is none [1]_. Of the counts for all k the most frequent is returned, and of several
    such the largest.

    Along a ring, say, there are many places for a peak and a saddle to be at, and p is more than
    the dimension in which samples differ. So a certain mode rises twice as much, with the dimension
    that distances have [2]_ instead of p.

    Parameters
    ----------
    X : ndarray of shape (n, p)

    Returns
    -------
    Modes
        1 for fewer samples than tell.

    References
    ----------
    .. [1] F. Chazal, L. J. Guibas, S. Y. Oudot, P. Skraba. Persistence-based clustering in
       Riemannian manifolds. Journal of the ACM 60, 2013.
    .. [2] E. Levina, P. J. Bickel. Maximum likelihood estimation of intrinsic dimension. NIPS 17,
       2004.
    """
    n, p = X.shape
    tried = [k for k in _NEIGHBORS if k < _LARGEST * n]
    if not tried:
        return Modes(1, 1)
    distances, nearest = NearestNeighbors(n_neighbors=tried[-1]).fit(X).kneighbors()
    likely, certain = [], []
    for k in tried:
        radius = distances[:, k - 1]
        if not radius.any():
            return Modes(1, 1)  # all samples are at few places
        heights = -np.log(np.maximum(radius, radius[radius > 0].min()))
        chance, rises = np.sqrt(np.log(n) / k), rises_of_peaks(heights, nearest[:, :k])
        likely.append(int((p * rises > chance).sum()))
        dimension = min(p, max(1.0, _dimension(distances[:, :k])))
        certain.append(int((dimension * rises > _CERTAIN * chance).sum()))
    return Modes(_most_frequent(likely), _most_frequent(certain))


def _dimension(distances: np.ndarray) -> float:
    """Return in how many dimensions samples differ, by the distances of their neighbours."""
    k, least = distances.shape[1], np.finfo(float).tiny
    logarithms = np.log(np.maximum(distances, least))
    growth = (logarithms[:, -1:] - logarithms[:, :-1]).mean() * (k - 1) / (k - 2)
    return float(1 / max(growth, least))


def _most_frequent(counts: list[int]) -> int:
    values, votes = np.unique(counts, return_counts=True)
    return int(values[votes == votes.max()][-1])


def rises_of_peaks(heights: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Return how far every peak of a graph rises above the highest saddle to a higher one.

    Parameters
    ----------
    heights : ndarray of shape (n,)
    nearest : ndarray of shape (n, k), int
        Nodes that a node is joined with.

    Returns
    -------
    ndarray of shape (n_peaks,)
        Infinity for the highest peak of every connected part. Nodes that are no peaks rise by 0,
        and can be among them.
    """
    peaks, parents = heights.tolist(), list(range(len(heights)))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = node = parents[parents[node]]
        return node

    rises = []
    for i, j, saddle in highest_edges(heights, nearest):
        low, high = root(i), root(j)
        if peaks[low] > peaks[high]:
            low, high = high, low
        parents[low] = high
        rises.append(peaks[low] - saddle)
    return np.array(rises + [np.inf] * (len(peaks) - len(rises)))
