"""Spectral clustering, normalised cut and NMF of the mean of several similarities.

The mean is that of the sources as they are, or scaled to sum to 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import SIMILARITIES, Method, timed
from benchmarks.methods.ncut import cut
from nmfcluster import SimilarityStack


def mean(stack: SimilarityStack, scaled: bool) -> np.ndarray:
    """Return the mean of the sources as an array; if `scaled`, each sums to 1 first."""
    total = np.zeros(stack.shape[:2])
    for source in stack.filled():
        total += source / source.sum() if scaled else source
    return total / total.mean()  # entries of about 1, which all solvers can handle


def regularised(M: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Add the mean of M to all entries, so that the graph is connected, and cluster it."""
    return cut(M + M.mean(), k, seed)


def nmf(M: np.ndarray, k: int, seed: int, **options: Any) -> np.ndarray:
    """Factorize M; a sample belongs to its largest weight, for parts that sum to 1."""
    model = NMF(k, init="nndsvda", random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weights = model.fit_transform(M)
    return (weights * model.components_.sum(axis=1)).argmax(axis=1)


def cluster(
    X: Any,
    stack: SimilarityStack,
    k: int,
    seed: int,
    way: Callable[[np.ndarray, int, int], np.ndarray] = cut,
    scaled: bool = False,
) -> np.ndarray:
    return way(mean(stack, scaled), k, seed)


WAYS: dict[str, dict[str, Any]] = {
    "spectral, mean": {},
    "spectral, mean of scaled": {"scaled": True},
    "spectral, mean and a little": {"way": regularised},
    "NCut, mean": {"way": partial(cut, labels="discretize")},
    "NMF, mean": {"way": nmf},
    "NMF KL, mean of scaled": {
        "way": partial(nmf, solver="mu", beta_loss="kullback-leibler"),
        "scaled": True,
    },
}
METHODS = [
    Method(name, timed(partial(cluster, **options)), wants=SIMILARITIES)
    for name, options in WAYS.items()
]
