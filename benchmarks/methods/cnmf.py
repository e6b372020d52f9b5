"""Consensus NMF in the manner of cNMF (Kotliar et al., 2019), without its selection of genes.

The parts of many runs, scaled to length 1, are clustered by k-means once those that have no close
neighbours were left out; the medians of the clusters are the parts, their weights a nonnegative
least squares fit. Cuts are the defaults of cNMF. A sample's cluster is its largest weight where
parts have length 1, as for other methods here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from benchmarks.methods import FEATURES, Method, nmf_runs, timed
from nmfcluster.meta.runs import fitted_rows

NEIGHBOURS = 0.3  # times the number of runs
FARTHEST = 0.5  # mean distance to these, beyond which a part is an outlier


def consensus(
    X: Any, runs: Sequence[nmf_runs.NMFRun], k: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return weights W (n, k) and parts H (k, p) of length 1."""
    spectra = np.concatenate([run.H for run in runs])
    spectra = spectra / np.maximum(np.linalg.norm(spectra, axis=1, keepdims=True), 1e-12)
    n_neighbors = min(max(1, int(NEIGHBOURS * len(runs))), len(spectra) - 1)
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(spectra).kneighbors()[0].mean(axis=1)
    kept = spectra[near < FARTHEST]
    if len(kept) < k:  # nothing recurs
        kept = spectra
    labels = KMeans(k, n_init=10, random_state=seed).fit_predict(kept)
    H = np.stack([np.median(kept[labels == c], axis=0) for c in range(k)])
    H /= np.maximum(np.linalg.norm(H, axis=1, keepdims=True), 1e-12)
    return fitted_rows(X, H), H


def cluster(X: Any, given: Any, k: int, seed: int) -> np.ndarray:
    runs = nmf_runs.run_many(X, k, nmf_runs.N_RUNS, seed, **nmf_runs.PATIENT)
    return nmf_runs.strongest(*consensus(X, runs, k, seed))


METHODS = [Method("cNMF-style", timed(cluster), wants=FEATURES)]
