"""E2CP of Lu and Ip (ECCV 2010): exhaustive constraint propagation, then spectral clustering.

It is written as printed, with dense arrays. The graph is that of SSNMFClusterer's defaults. As
printed F stays far below 1, so that it changes little: "scaled" divides it by its largest entry.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.methods import CONSTRAINTS, Method, timed
from benchmarks.methods.ncut import cut, similarity
from nmfcluster.constraints import PairwiseConstraints

WIDTH = 0.8  # alpha of the paper


def cluster(
    X: Any, pairs: PairwiseConstraints, k: int, seed: int, scaled: bool = False
) -> np.ndarray:
    W = similarity(X, "nearest_neighbors")
    F = propagated(W, signs(pairs))
    if scaled and F.any():
        F /= np.abs(F).max()
    return cut(adjusted(W, F), k, seed)


def signs(pairs: PairwiseConstraints) -> np.ndarray:
    """Return Z: 1 for pairs that must link, -1 for pairs that cannot, and 0."""
    must_link, cannot_link = pairs.as_matrices()
    return (must_link.sign() - cannot_link.sign()).toarray()


def propagated(W: np.ndarray, Z: np.ndarray, width: float = WIDTH) -> np.ndarray:
    """Return F = (1 - a)^2 (I - a L)^-1 Z (I - a L)^-1, L the normalised similarities."""
    degrees = W.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1))
    L = W / roots[:, None] / roots
    inverse = np.linalg.inv(np.eye(len(W)) - width * L)
    return (1 - width) ** 2 * inverse @ Z @ inverse


def adjusted(W: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Return similarities that are raised where F is positive, and lowered where it is not."""
    made = np.where(F >= 0, 1 - (1 - F) * (1 - W), (1 + F) * W)
    return (made + made.T) / 2  # rounding makes F a little asymmetric


METHODS = [
    Method("E2CP", timed(cluster), wants=CONSTRAINTS),
    Method("E2CP, scaled", timed(partial(cluster, scaled=True)), wants=CONSTRAINTS),
]
