"""How surely clusters come back in the runs."""

from __future__ import annotations

import numpy as np

from nmfcluster.meta.runs import Runs


def recurrence(runs: Runs, W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return the mean over all runs of the cosine with the counterpart of a cluster, (k,).

    Counterparts are each other's most similar, by the cosine of the biclusters; in a run without
    one it counts as 0.

    Parameters
    ----------
    runs : Runs
    W : ndarray of shape (k, n)
    H : ndarray of shape (k, p)
    """
    cosine = _cosine(runs.W, W) * _cosine(runs.H, H)
    similarity = np.zeros(len(W))
    for part in runs.slices():
        near = cosine[part]
        if not len(near):
            continue
        best = near.argmax(axis=0)  # of the run, for every cluster
        mutual = near.argmax(axis=1)[best] == np.arange(len(W))
        similarity += np.where(mutual, near.max(axis=0), 0)
    return similarity / len(runs)


def _cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    a, b = (np.linalg.norm(F, axis=1) for F in (A, B))
    scale = a[:, None] * b
    cosine = np.divide(A @ B.T, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.minimum(cosine, 1)  # it may be more by rounding
