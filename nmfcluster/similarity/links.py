"""Links between the parts of a graph that nothing connects."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from nmfcluster._arrays.threads import one_thread

_ASKED = 100  # samples of a part that look for others: more would find hardly nearer ones


def nearest_outside(
    X: Any, part: np.ndarray, search: NearestNeighbors, part_of_point: np.ndarray, max_parts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a link of every part that is too many, the smallest ones, to what is nearest to it.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    part : ndarray of shape (n_samples,), int
        Part of every sample, from 0.
    search : NearestNeighbors
        Fitted to points: samples or landmarks.
    part_of_point : ndarray of shape (n_points,), int
        -1 for a point that is no use to link to.
    max_parts : int
        How many parts there may be; at least half of the others will be gone.

    Returns
    -------
    samples, points : ndarray of shape (n_links,), int
        Empty where there are few enough parts.
    """
    sizes = np.bincount(part)
    smallest = np.argsort(sizes, kind="stable")[: max(len(sizes) - max_parts, 0)]
    links = np.empty((len(smallest), 2), dtype=np.intp)
    for link, own in zip(links, smallest, strict=True):
        members = np.flatnonzero(part == own)
        asked = members[:: -(-len(members) // _ASKED)]
        useless = (part_of_point == own) | (part_of_point < 0)
        with one_thread():  # ties are broken by the number of threads
            distances, nearest = search.kneighbors(X[asked], int(useless.sum()) + 1)
        distances = np.where(useless[nearest], np.inf, distances)
        sample, column = np.unravel_index(distances.argmin(), distances.shape)
        link[:] = asked[sample], nearest[sample, column]
    return links[:, 0], links[:, 1]
