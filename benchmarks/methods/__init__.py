"""Methods by name: `load(name)` returns one; `Method.reason()` says why it cannot be run here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

Run = Callable[[Any, np.ndarray, int, int], tuple[np.ndarray, float]]


def _no_reason() -> str:
    return ""


@dataclass(frozen=True)
class Method:
    """A clustering method.

    ``run(X, table, n_clusters, seed)`` returns labels and the seconds that they took. `table`
    holds base partitions, (n, T); a method uses it or the features X. ``reason()`` is
    empty where the method can be run.
    """

    name: str
    run: Run
    reason: Callable[[], str] = _no_reason


def timed(cluster: Callable[[Any, np.ndarray, int, int], np.ndarray]) -> Run:
    """Return `cluster` with its time."""

    def run(X: Any, table: np.ndarray, k: int, seed: int) -> tuple[np.ndarray, float]:
        began = perf_counter()
        labels = cluster(X, table, k, seed)
        return labels, perf_counter() - began

    return run


def load_all() -> dict[str, Method]:
    from benchmarks.methods import kc, kmeans, linkage, nmfc, peer_ensembleclustering, spectral

    modules = (nmfc, kmeans, kc, linkage, spectral, peer_ensembleclustering)
    return {method.name: method for module in modules for method in module.METHODS}


def load(name: str) -> Method:
    return load_all()[name]
