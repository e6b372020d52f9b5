"""A start like NNDSVD: the larger of the positive and negative part of leading eigenvectors."""

from __future__ import annotations

import numpy as np

from nmfcluster._engine.starts import leading_eigenpairs
from nmfcluster.similarity import Similarity


def nndsvd_start(A: Similarity, n_clusters: int) -> np.ndarray:
    """Return sqrt(value) * [+-v]_+ for the k leading eigenpairs, plus a little everywhere."""
    values, vectors = leading_eigenpairs(A, n_clusters)
    parts = np.stack([np.maximum(vectors, 0), np.maximum(-vectors, 0)])
    larger = np.linalg.norm(parts, axis=1).argmax(axis=0)
    H = parts[larger, :, np.arange(n_clusters)].T * np.sqrt(np.maximum(values, 0))
    return (H + 1e-2 * H.mean()).astype(A.dtype)
