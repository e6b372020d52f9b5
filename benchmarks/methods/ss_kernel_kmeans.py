"""SS-KK: kernel k-means under constraints (Kulis, Basu, Dhillon and Mooney, ICML 2005).

The weight of a constraint is the largest entry of the kernel. The paper's weight, n over k times
the number of constraints, did worse on the documents: it shrinks as constraints are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from benchmarks.methods import CONSTRAINTS, Method, timed
from benchmarks.methods import kernel_kmeans as plain
from nmfcluster.constraints import PairwiseConstraints


def cluster(X: Any, pairs: PairwiseConstraints, k: int, seed: int) -> np.ndarray:
    if not pairs.n_pairs:
        return plain.cluster(X, None, k, seed)
    K = plain.gaussian(X)
    must, cannot = pairs.as_matrices()
    K += K.max() * (must - cannot).toarray()
    start = _start(K, pairs.components(), k, np.random.default_rng(seed))
    lowest = eigvalsh(K, subset_by_index=[0, 0])[0]
    # else a step may raise the objective
    K[np.diag_indices_from(K)] += max(0.0, -lowest)
    return plain.lloyd(K, start, k)


def _start(
    K: np.ndarray, groups: np.ndarray, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Assign samples to the nearest of k groups of must-links: the largest, then far ones."""
    sizes = np.bincount(groups)
    E = np.eye(len(sizes))[groups] / sizes
    between = E.T @ K @ E
    squares = between.diagonal()[:, None] + between.diagonal() - 2 * between
    order = rng.permutation(len(sizes))  # breaks ties at random
    chosen = [order[sizes[order].argmax()]]
    while len(chosen) < k:
        gains = squares[:, chosen].min(axis=1) * sizes
        gains[chosen] = -np.inf
        chosen.append(order[gains[order].argmax()])
    return (between.diagonal()[chosen] - 2 * (K @ E)[:, chosen]).argmin(axis=1)


METHODS = [Method("SS-KK", timed(cluster), wants=CONSTRAINTS)]
