"""Which clusterer finds the classes from features alone, and at what price?

Our default consensus and our plain factorization stand beside what a user of scikit-learn, or of a
neighbour graph, would try first. Every set of features of the data folder is taken, and the made
tables of `affinities`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph

from benchmarks import datasets, report
from benchmarks.datasets import every
from benchmarks.datasets.tables import MADE
from benchmarks.methods import kmeans, ssnmf
from benchmarks.runner import Progress
from nmfcluster import NMFConsensus

OURS, PLAIN, K_MEANS = "NMFConsensus", "SSNMFClusterer", "k-means"
SPECTRAL, LEIDEN, LEIDEN_K = "spectral", "Leiden", "Leiden, k clusters"
QUICK_MADE = ("rounded", "six rows")
NEAR = 0.05  # ARI below the best method of a set that still counts as good
COLUMNS = (
    50  # to which principal components reduce wide data for a mixture of Gaussians
)
NEIGHBORS = 15  # of a graph for Leiden: Scanpy's default
HALVINGS = 20  # of the range of resolutions, in search of k clusters

Run = Callable[[Any, int, int], np.ndarray]


def _consensus(X: Any, k: int, seed: int) -> np.ndarray:
    return NMFConsensus(k, random_state=seed).fit_predict(X)


def _mixture(X: Any, k: int, seed: int) -> np.ndarray:
    few = _few_columns(X, seed)
    model = GaussianMixture(k, n_init=3, reg_covar=1e-3, random_state=seed)
    return model.fit_predict(few)


def _spectral(X: Any, k: int, seed: int) -> np.ndarray:
    near = min(10, X.shape[0] - 1)
    model = SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=near, random_state=seed
    )
    return model.fit_predict(X)


def _ward(X: Any, k: int, seed: int) -> np.ndarray:
    return AgglomerativeClustering(k).fit_predict(_dense(X, seed))


def _hdbscan(X: Any, k: int, seed: int) -> np.ndarray:
    smallest = min(5, X.shape[0] // 2)
    return HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(_dense(X, seed))


def _leiden(X: Any, k: int, seed: int) -> np.ndarray:
    return _communities(_graph(X), 1.0, seed)


def _leiden_of_k(X: Any, k: int, seed: int) -> np.ndarray:
    """Return the clusters of the resolution that makes k of them, or nearly so many."""
    graph = _graph(X)
    low, high = 0.0, 50.0
    best = np.zeros(X.shape[0], int)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        labels = _communities(graph, middle, seed)
        count = labels.max() + 1
        if abs(count - k) < abs(best.max() + 1 - k):
            best = labels
        if count == k:
            break
        if count < k:
            low = middle
        else:
            high = middle
    return best


METHODS: dict[str, Run] = {
    OURS: _consensus,
    PLAIN: lambda X, k, seed: ssnmf.cluster(X, None, k, seed),
    K_MEANS: lambda X, k, seed: kmeans.cluster(X, None, k, seed, n_init=10),
    "Gaussian mixture": _mixture,
    SPECTRAL: _spectral,
    "Ward": _ward,
    "HDBSCAN": _hdbscan,
    LEIDEN: _leiden,
    LEIDEN_K: _leiden_of_k,
}


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    sets, missing = datasets.available(every.BUNDLED if quick else every.ALL)
    made = {
        name: make for name, make in MADE.items() if name in QUICK_MADE or not quick
    }
    methods = dict(METHODS)
    if find_spec("leidenalg") is None:
        for name in (LEIDEN, LEIDEN_K):
            del methods[name]
        missing[LEIDEN] = "the packages igraph and leidenalg are not installed"
    n_seeds = 5 if all_seeds else 1
    progress = Progress("features", len(sets) + len(made))
    rows: dict[str, list[report.Row]] = {"sets": [], "made": []}
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for kind, tables in (("sets", sets), ("made", made)):
        for name, table in tables.items():
            draws = [_drawn(table, seed) for seed in range(n_seeds)]
            scores = _score(methods, draws, seconds)
            X, y = draws[0]
            shape = {"data": name, "samples": X.shape[0], "classes": len(np.unique(y))}
            rows[kind].append(shape | {m: f"{ari:.3f}" for m, ari in scores.items()})
            progress.step(name)
    summary = _summary(rows["sets"], rows["made"], seconds)
    tables_shown = {
        "Every method": summary,
        "Sets with classes": rows["sets"],
        "Made tables": rows["made"],
    }
    draw = partial(_draw, summary)
    notes = [_verdict(rows["sets"] + rows["made"], methods)]
    return report.write(
        out, "features", _caption(n_seeds), tables_shown, draw, notes, missing
    )


def _caption(n_seeds: int) -> str:
    return (
        f"Mean adjusted Rand index over {n_seeds} seed(s), and over as many random draws of the "
        f"made data. All methods except HDBSCAN and Leiden get the number of classes. {OURS} and "
        f"{PLAIN} have their defaults, and no pairs. The others are KMeans(n_init=10), "
        "GaussianMixture(n_init=3) with full covariances, SpectralClustering of the graph of ten "
        "neighbours, Ward's linkage, HDBSCAN(min_cluster_size=5), whose noise counts as one more "
        f"cluster, and Leiden on the graph of {NEIGHBORS} neighbours. Leiden has the resolution "
        "1, or the resolution that gives as many clusters as there are classes. Features are "
        "standardised, and counts of words are weighted as tf-idf. Mixtures get at most "
        f"{COLUMNS} principal components; Ward and HDBSCAN get {COLUMNS} principal components of "
        f"texts. A method is good on a set if it is at most {NEAR:g} below the best one."
    )


def _drawn(table: Any, seed: int) -> tuple[Any, np.ndarray]:
    """Return the scored rows of a set, always the same, or of a made table, drawn by the seed."""
    if isinstance(table, datasets.Dataset):
        return table.draw(0)
    return table(np.random.default_rng(seed))


def _score(
    methods: dict[str, Run],
    draws: list[tuple[Any, np.ndarray]],
    seconds: dict[str, list[float]],
) -> dict[str, float]:
    """Return the mean ARI of every method, and append the seconds of its fits."""
    scores: dict[str, list[float]] = {name: [] for name in methods}
    for seed, (X, y) in enumerate(draws):
        scored = y >= 0  # far samples of some made tables have no class
        k = len(np.unique(y[scored]))
        for name, cluster in methods.items():
            began = perf_counter()
            with warnings.catch_warnings():
                # graphs in pieces, mixtures that do not converge: methods are taken as they are
                warnings.simplefilter("ignore")
                labels = cluster(X, k, seed)
            seconds[name].append(perf_counter() - began)
            scores[name].append(float(adjusted_rand_score(y[scored], labels[scored])))
    return {name: float(np.mean(own)) for name, own in scores.items()}


def _dense(X: Any, seed: int) -> np.ndarray:
    """Return dense features as they are, and sparse ones reduced by latent semantic analysis."""
    if not sp.issparse(X):
        return X
    columns = min(COLUMNS, min(X.shape) - 1)
    return TruncatedSVD(columns, random_state=seed).fit_transform(X)


def _few_columns(X: Any, seed: int) -> np.ndarray:
    """Return so few principal components that a covariance matrix of them can be estimated."""
    dense = _dense(X, seed)
    columns = min(COLUMNS, max(2, dense.shape[0] // 10), *dense.shape)
    return PCA(columns, random_state=seed).fit_transform(dense)


def _graph(X: Any) -> Any:
    """Return the undirected graph of neighbours, for igraph."""
    import igraph

    near = min(NEIGHBORS, X.shape[0] - 1)
    links = kneighbors_graph(X, near)
    either = links.maximum(links.T)  # a link if one is a neighbour of the other
    ends = sp.coo_array(sp.triu(either, k=1))
    edges = np.column_stack([ends.row, ends.col]).tolist()
    return igraph.Graph(n=X.shape[0], edges=edges)


def _communities(graph: Any, resolution: float, seed: int) -> np.ndarray:
    import leidenalg

    found = leidenalg.find_partition(
        graph,
        leidenalg.RBConfigurationVertexPartition,
        resolution_parameter=resolution,
        seed=seed,
    )
    return np.array(found.membership)


def _summary(
    sets: list[report.Row], made: list[report.Row], seconds: dict[str, list[float]]
) -> list[report.Row]:
    """Return a row for every method: means, rank, how often it is good, its relative time."""
    methods = list(seconds)
    scores = np.array([[float(row[m]) for m in methods] for row in sets + made])
    ranks = rankdata(-scores, axis=1)
    good = scores >= scores.max(axis=1, keepdims=True) - NEAR
    summary: list[report.Row] = []
    for i, method in enumerate(methods):
        ratios = np.divide(seconds[method], seconds[K_MEANS])
        summary.append(
            {
                "method": method,
                "mean ARI, sets": f"{scores[: len(sets), i].mean():.3f}",
                "mean ARI, made": f"{scores[len(sets) :, i].mean():.3f}",
                "mean rank": f"{ranks[:, i].mean():.2f}",
                "good": f"{good[:, i].sum()} of {len(good)}",
                "median time / k-means": f"{np.median(ratios):.2g}",
                "seconds": f"{np.sum(seconds[method]):.1f}",
            }
        )
    return summary


def _verdict(rows: list[report.Row], methods: dict[str, Run]) -> str:
    """Say on how many tables each of the others is clearly better than the default consensus."""
    better = {
        method: [r["data"] for r in rows if float(r[method]) > float(r[OURS]) + NEAR]
        for method in methods
        if method != OURS
    }
    counts = ", ".join(f"{method} on {len(names)}" for method, names in better.items())
    return f"More than {NEAR:g} above {OURS}, out of {len(rows)} tables: {counts}."


def _draw(summary: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    for row, marker in zip(summary, "osv^D<>Ph", strict=False):
        ours = row["method"] in (OURS, PLAIN)
        ax.plot(
            [float(row["median time / k-means"])],
            [float(row["mean ARI, sets"])],
            marker,
            markersize=12 if ours else 8,
            label=row["method"],
        )
    ax.set_xscale("log")
    ax.set_xlabel("time relative to k-means", fontsize="small")
    ax.set_ylabel("mean ARI over the sets", fontsize="small")
    ax.legend(fontsize="small")
