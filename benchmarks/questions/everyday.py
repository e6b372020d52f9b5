"""What does an everyday table cost, with defaults: the 1,797 handwritten digits of 64 pixels?

Beside every fit stands scikit-learn's fit of the same table that does most of what it does. All run
in one process on one thread, in turn.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF
from threadpoolctl import threadpool_limits

import nmfcluster as ours
from benchmarks import report
from benchmarks.runner import Progress, interleaved
from nmfcluster.model_selection import choose_n_clusters

K = 10
PAIRS = (50, 200)
N_LABELLED = 300  # samples of a table of labels
K_MEANS, SPECTRAL = "KMeans(n_init=10)", "SpectralClustering, neighbours"
NMF_SQUARES, NMF_COUNTS = "NMF, squares", "NMF, 500 updates of counts"


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    fits = _fits(200 if quick else None)
    repeats = 5 if all_seeds else 1 if quick else 3
    progress = Progress("everyday", len(fits) * repeats)
    tasks = {name: partial(_timed, fit) for name, (fit, _) in fits.items()}
    with threadpool_limits(1), warnings.catch_warnings():
        # some do not converge, and the number of clusters is open
        warnings.simplefilter("ignore")
        seconds = interleaved(tasks, repeats, progress)
    medians = {name: np.median(found, axis=0) for name, found in seconds.items()}
    rows = [_row(name, beside, medians) for name, (_, beside) in fits.items()]
    caption = (
        "CPU seconds and elapsed seconds of fits to the 1,797 handwritten digits of "
        f"scikit-learn, with {K} clusters, all other parameters at their defaults, and one "
        f"thread. Values are medians of {repeats} interleaved repeats. The matrix of labels has "
        f"{N_LABELLED} samples in 20 runs of k-means. 'beside' names the fit of scikit-learn to "
        "the same data, and 'times' is our CPU time divided by that of scikit-learn."
    )
    return report.write(
        out, "everyday", caption, {"Seconds": rows}, partial(_draw, rows)
    )


def _fits(n: int | None) -> dict[str, tuple[Callable[[int], Any], str]]:
    """Return what fits with a seed, and beside what, by name."""
    X, y = (part[:n] for part in load_digits(return_X_y=True))
    few = X[:N_LABELLED]
    runs = [KMeans(k, n_init=1, random_state=k).fit_predict(few) for k in range(3, 23)]
    halves, labels = {"left": X[:, :32], "right": X[:, 32:]}, np.column_stack(runs)

    def pairs(count: int, seed: int) -> Any:
        known = ours.PairwiseConstraints.from_labels(y, count, random_state=seed)
        return ours.SSNMFClusterer(K, random_state=seed).fit(X, constraints=known)

    def many(loss: str, seed: int) -> Any:
        return ours.NMFMetaCluster(K, loss=loss, random_state=seed).fit(X)

    def chosen(estimator: Any, table: np.ndarray, seed: int) -> Any:
        return choose_n_clusters(estimator, table, range(1, 16), random_state=seed)

    counts = {
        "solver": "mu",
        "beta_loss": "kullback-leibler",
        "max_iter": 500,
        "tol": 0,
    }
    of_labels = ours.NMFConsensus(2, affinity="partitions")
    return {
        K_MEANS: (lambda seed: KMeans(K, n_init=10, random_state=seed).fit(X), ""),
        SPECTRAL: (
            lambda seed: SpectralClustering(
                K, affinity="nearest_neighbors", random_state=seed
            ).fit(X),
            "",
        ),
        NMF_SQUARES: (lambda seed: NMF(K, init="random", random_state=seed).fit(X), ""),
        NMF_COUNTS: (
            lambda seed: NMF(K, init="random", random_state=seed, **counts).fit(X),
            "",
        ),
        "NMFConsensus": (
            lambda seed: ours.NMFConsensus(K, random_state=seed).fit(X),
            K_MEANS,
        ),
        "SSNMFClusterer": (
            lambda seed: ours.SSNMFClusterer(K, random_state=seed).fit(X),
            SPECTRAL,
        ),
        **{
            f"the same, {count} pairs": (partial(pairs, count), SPECTRAL)
            for count in PAIRS
        },
        "SimilarityFusionNMF of two halves": (
            lambda seed: ours.SimilarityFusionNMF(K, random_state=seed).fit(halves),
            SPECTRAL,
        ),
        "NMFMetaCluster, 20 runs": (partial(many, "frobenius"), NMF_SQUARES),
        "NMFMetaCluster, 20 runs, counts": (
            partial(many, "kullback-leibler"),
            NMF_COUNTS,
        ),
        "choose_n_clusters(KMeans)": (partial(chosen, KMeans(2, n_init=1), X), K_MEANS),
        "choose_n_clusters, labels": (partial(chosen, of_labels, labels), K_MEANS),
    }


def _timed(fit: Callable[[int], Any], seed: int) -> tuple[float, float]:
    """Return the seconds of CPU, and on the clock, of a fit."""
    cpu, clock = time.process_time(), time.perf_counter()
    fit(seed)
    return time.process_time() - cpu, time.perf_counter() - clock


def _row(name: str, beside: str, medians: dict[str, np.ndarray]) -> report.Row:
    cpu, clock = medians[name]
    times = f"{cpu / medians[beside][0]:.1f}" if beside else ""
    return {
        "fit": name,
        "CPU": f"{cpu:.2f}",
        "clock": f"{clock:.2f}",
        "beside": beside,
    } | {"times": times}


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    names, seconds = [row["fit"] for row in rows], [float(row["CPU"]) for row in rows]
    ax.barh(names, seconds, color=["C0" if row["beside"] else "0.7" for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("seconds of CPU", fontsize="small")
    ax.tick_params(labelsize="small")
