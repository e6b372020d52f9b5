"""Whether clusters are apart: between any two of them there are fewer samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import ward

from nmfcluster.constraints.graph import components
from nmfcluster.model_selection.voters.dips import has_two_modes

_RIDGE = 1e-6  # of the mean variance, added to variances within clusters: some are 0
_FEWEST = 4  # samples of a cluster that can be told from another one


def most_apart(X: np.ndarray, candidates: Sequence[int]) -> int:
    """Return the most clusters of Ward's tree of which any two are apart, 1 if there are none.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    candidates : sequence of int

    Returns
    -------
    int
    """
    numbers = sorted(k for k in candidates if 1 < k <= len(X))
    if not numbers:
        return 1
    tree = ward(X)
    return next((k for k in reversed(numbers) if are_apart(X, cut(tree, k))), 1)


def cut(tree: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the clusters that are left after all merges of a tree but the last ones.

    Parameters
    ----------
    tree : ndarray of shape (n - 1, 4)
        As SciPy has it.
    n_clusters : int

    Returns
    -------
    ndarray of shape (n,), int
    """
    n = len(tree) + 1
    made = np.arange(n, 2 * n - n_clusters)  # what the merges made
    merged = tree[: len(made), :2].T.ravel().astype(made.dtype)
    return components(2 * n, np.column_stack([np.tile(made, 2), merged]))[:n]


def are_apart(X: np.ndarray, labels: np.ndarray) -> bool:
    """Return whether the samples of any two clusters have two modes on the axis that parts them.

    That is Fisher's linear discriminant of the two; modes are by `has_two_modes`, at 5 %.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(labels)
    if sizes.min() < _FEWEST:
        return False
    members = [X[labels == c] for c in range(len(sizes))]
    means = np.array([own.mean(axis=0) for own in members])
    within = [(own - mean).T @ (own - mean) for own, mean in zip(members, means, strict=True)]
    pairs = list(combinations(range(len(sizes)), 2))
    pairs.sort(key=lambda pair: float(np.linalg.norm(means[pair[0]] - means[pair[1]])))
    for i, j in pairs:  # the nearest first: they are the least apart
        S = (within[i] + within[j]) / (sizes[i] + sizes[j])
        S[np.diag_indices_from(S)] += _RIDGE * np.trace(S) / len(S) + np.finfo(float).tiny
        axis = np.linalg.solve(S, means[i] - means[j])
        if not has_two_modes(np.concatenate([members[i] @ axis, members[j] @ axis])):
            return False
    return True
