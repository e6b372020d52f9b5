"""Consensus NMF after cNMF (Kotliar et al., 2019), without its selection of genes.

The parts of many runs are scaled to length 1. Parts without close neighbours are left out, k-means
clusters the others, and the medians of its clusters are the final parts. Nonnegative least squares
gives their weights. A sample belongs to the part of length 1 that has its largest weight. The two
constants are the defaults of cNMF.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from benchmarks.methods import FEATURES, Method, nmf_runs, timed

NEIGHBOURS = 0.3  # of a part that are looked at, as a share of the number of runs
FARTHEST = 0.5  # mean distance to its neighbours beyond which a part is left out


def consensus(
    X: Any, runs: Sequence[nmf_runs.NMFRun], k: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights W (n, k) and parts H (k, p) of length 1."""
    H = recurring(np.concatenate([run.H for run in runs]), len(runs), k, seed)
    return nmf_runs.fitted_rows(X, H), H


def recurring(parts: np.ndarray, n_runs: int, k: int, seed: int) -> np.ndarray:
    """Return the parts (k, p) of length 1 that recur in those of all runs."""
    spectra = normalize(parts)
    n_neighbors = min(max(1, int(NEIGHBOURS * n_runs)), len(spectra) - 1)
    near = (
        NearestNeighbors(n_neighbors=n_neighbors)
        .fit(spectra)
        .kneighbors()[0]
        .mean(axis=1)
    )
    kept = spectra[near < FARTHEST]
    if len(kept) < k:  # too few parts recur: all are clustered
        kept = spectra
    labels = KMeans(k, n_init=10, random_state=seed).fit_predict(kept)
    return normalize(np.stack([np.median(kept[labels == c], axis=0) for c in range(k)]))


def cluster(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    runs = nmf_runs.run_many(X, k, nmf_runs.N_RUNS, seed, **nmf_runs.PATIENT)
    return nmf_runs.strongest(*consensus(X, runs, k, seed))


METHODS = [Method("cNMF-style", timed(cluster), wants=FEATURES)]
