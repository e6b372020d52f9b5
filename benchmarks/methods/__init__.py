"""Methods by name: `load(name)` returns one, `Method.reason()` says why it cannot run here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

Run = Callable[[Any, Any, int, int], tuple[np.ndarray, float]]

FEATURES, PARTITIONS, CONSTRAINTS = "features", "partitions", "constraints"
SIMILARITIES, VIEWS, LABELS = "similarities", "views", "labels"


def no_reason() -> str:
    return ""


@dataclass(frozen=True)
class Method:
    """A clustering method.

    ``run(X, extra, n_clusters, seed)`` returns labels and the seconds that they took. `wants`
    names the kind of `extra`: base partitions, (n, T); a `PairwiseConstraints`; a
    `SimilarityStack`; a list of the features of each view; or classes, -1 if not known. A method
    that wants features reads X and ignores `extra`. ``reason()`` is empty where the method can
    run.
    """

    name: str
    run: Run
    reason: Callable[[], str] = no_reason
    wants: str = PARTITIONS


def timed(cluster: Callable[[Any, Any, int, int], np.ndarray]) -> Run:
    """Return a function that calls `cluster` and also returns its seconds."""

    def run(X: Any, extra: Any, k: int, seed: int) -> tuple[np.ndarray, float]:
        began = perf_counter()
        labels = cluster(X, extra, k, seed)
        return labels, perf_counter() - began

    return run


def load_all() -> dict[str, Method]:
    from benchmarks.methods import (
        cnmf,
        constraint_propagation,
        fusion,
        hbgf,
        kc,
        kernel_kmeans,
        kmeans,
        label_spreading,
        linkage,
        locally_weighted,
        mcla,
        mean_similarity,
        metacluster,
        ncut,
        nmf,
        nmf_runs,
        nmfc,
        peer_activesemi,
        peer_fast_hdbscan,
        peer_snf,
        peer_views,
        simple_mkkm,
        spectral,
        ss_kernel_kmeans,
        ss_ncut,
        ssnmf,
        transfer_cut,
    )

    consensus = (nmfc, kc, linkage, spectral)
    ensembles = (locally_weighted, transfer_cut, hbgf, mcla)
    unsupervised = (kmeans, kernel_kmeans, ncut, nmf)
    constrained = (ssnmf, ss_kernel_kmeans, ss_ncut, constraint_propagation, peer_activesemi)
    labelled = (label_spreading, peer_fast_hdbscan)
    fused = (fusion, mean_similarity, simple_mkkm, peer_snf, peer_views)
    many_runs = (metacluster, nmf_runs, cnmf)
    modules = (*consensus, *ensembles, *unsupervised, *constrained, *labelled, *fused, *many_runs)
    return {method.name: method for module in modules for method in module.METHODS}


def load(name: str) -> Method:
    return load_all()[name]


def available(names: Iterable[str]) -> tuple[dict[str, Method], dict[str, str]]:
    """Return the methods that can run here, and why the others cannot."""
    known = load_all()
    skipped = {name: why for name in names if (why := known[name].reason())}
    return {name: known[name] for name in names if name not in skipped}, skipped
