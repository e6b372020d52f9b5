"""The measure of section 6 of Badea (2005): how well two sets of clusters that may overlap match.

A cluster c of one set is best included in the cluster b(c) of the other that has most of it, with
the largest |c & d| / |c|. The match of a cluster d is |d & U| / |d | U|, U being the union of all c
with b(c) = d, and the mean of the matches of all clusters of both sets is the result, from 0 to 1.

The paper does not say which objects are in a soft cluster, and how ties are broken. Here an object
is in a cluster if its membership is at least a given share of the largest one there. Of clusters
that have the same share of c, the smallest includes it best, so that a cluster is matched with its
equal and not with a larger one around it; of those of one size, the first. A cluster that shares no
object with the other set is included in none, and its match is 0, as is that of an empty cluster.
"""

from __future__ import annotations

import numpy as np

from nmfcluster.metrics import find_members


def overlap_match(a: np.ndarray, b: np.ndarray, *, threshold: float) -> float:
    """Return the match of two sets of clusters.

    Memberships are at least 0, of shapes (n_clusters_a, n_objects) and (n_clusters_b, n_objects).
    """
    return _mean_match(*(find_members(one, threshold) for one in (a, b)))


def biclusters_match(
    a: tuple[np.ndarray, np.ndarray],
    b: tuple[np.ndarray, np.ndarray],
    *,
    threshold: float,
) -> float:
    """Return the match of two sets of biclusters, whose objects are the cells of the table.

    Each is a pair of memberships, of the rows and of the columns, (n_clusters, n) each. A cell is
    in a bicluster if its row and its column are.
    """
    rows, columns = (
        [find_members(one[side], threshold) for one in (a, b)] for side in (0, 1)
    )
    cells = [x[:, :, None] & y[:, None] for x, y in zip(rows, columns, strict=True)]
    return _mean_match(*(one.reshape(len(one), -1) for one in cells))


def _mean_match(a: np.ndarray, b: np.ndarray) -> float:
    common = a.astype(int) @ b.T.astype(int)
    of_b = _matches(a, b, _best_including(common, b))
    of_a = _matches(b, a, _best_including(common.T, a))
    return float(np.mean(of_a + of_b))


def _best_including(common: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cluster of b that includes each cluster of a best, -1 for none."""
    largest = common.max(axis=1, keepdims=True)
    sizes = np.where(common == largest, b.sum(axis=1), b.shape[1] + 1)
    return np.where(largest[:, 0] > 0, sizes.argmin(axis=1), -1)


def _matches(a: np.ndarray, b: np.ndarray, best: np.ndarray) -> list[float]:
    """Return how well every cluster of b matches the union of those of a that it includes best."""
    matches = []
    for d, cluster in enumerate(b):
        union = a[best == d].any(axis=0)
        joint = (union | cluster).sum()
        matches.append(float((union & cluster).sum() / joint) if joint else 0.0)
    return matches
