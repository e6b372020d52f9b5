"""Normalised cut of the graph of samples and base clusters, by the transfer cut.

Li, Wu and Chang (2012), "Segmentation using superpixels: a bipartite graph partitioning approach",
CVPR. It is the consensus function of U-SENC: Huang et al. (2020), "Ultra-scalable spectral
clustering and ensemble clustering", IEEE Trans. Knowledge and Data Engineering 32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import Method, timed
from benchmarks.methods.base_clusters import (
    cluster_directions,
    indicator,
    leading_eigenvectors,
)


def cut(B: sp.csr_array, k: int, seed: int) -> np.ndarray:
    """Cut a bipartite graph, and return the labels of its large side.

    Parameters
    ----------
    B : sparse matrix of shape (n, c)
        Weights of the edges. Every row and every column has one.
    """
    to_clusters = B * (1 / B.sum(axis=1))[:, None]  # the steps of a random walk
    W = (B.T @ to_clusters).toarray()  # of the small side, two steps away
    scale = 1 / np.sqrt(W.sum(axis=1))
    _, V = leading_eigenvectors(scale[:, None] * W * scale, k)
    return cluster_directions(to_clusters @ (scale[:, None] * V), k, seed)


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    return cut(indicator(table), k, seed)


METHODS = [Method("transfer cut", timed(cluster))]
