"""Which clusterer finds the classes from features alone, and at what price?

Our default consensus and our plain factorization stand beside what a user of scikit-learn, or of a
neighbour graph, would try first. Every set of features of the data folder is taken, and the made
tables of `affinities`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
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

from benchmarks import datasets, kept, report
from benchmarks import methods as known_methods
from benchmarks.datasets import every
from benchmarks.datasets.tables import MADE
from benchmarks.kept import Runs
from benchmarks.methods import kmeans, peer_sc3s, ssnmf
from benchmarks.methods.peer import NoClusteringError
from benchmarks.runner import Progress
from nmfcluster import NMFConsensus

OURS, PLAIN, K_MEANS = "NMFConsensus", "SSNMFClusterer", "k-means"
SPECTRAL, LEIDEN, LEIDEN_K = "spectral", "Leiden", "Leiden, k clusters"
QUICK_MADE = ("rounded", "six rows")
NEAR = 0.05  # ARI below the best method of a set that still counts as good
COMPONENTS = 50  # to which wide data are reduced for a mixture of Gaussians
NEIGHBORS = 15  # of a graph for Leiden: Scanpy's default
HALVINGS = 20  # of the range of resolutions, in search of k clusters
SC3S = peer_sc3s.NAME
COLUMNS = ("data", "method")  # that name a row of the details
FAILED = 0.0  # ARI of a method that made no clustering

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
    peers, skipped = known_methods.available([SC3S])
    n_seeds = 5 if all_seeds else 1
    others = kept.read(
        out / "features.json",
        known_methods.packages(skipped),
        COLUMNS,
        {"data": [*sets, *made]},
        n_seeds,
    )
    shown = [
        *methods,
        *peers,
        *(name for name in skipped if name in others.versions({})),
    ]
    progress = Progress("features", len(sets) + len(made))
    runs: Runs = dict(others.runs)
    rows: dict[str, list[report.Row]] = {"sets": [], "made": []}
    for kind, tables in (("sets", sets), ("made", made)):
        for name, table in tables.items():
            draws = [_drawn(table, seed) for seed in range(n_seeds)]
            runs |= {
                (name, m): own for m, own in _measure(methods, peers, draws).items()
            }
            rows[kind].append(_row(name, *draws[0], shown, runs))
            progress.step(name)
    summary = _summary(rows["sets"], rows["made"], runs, others)
    tables_shown = {
        "Every method": summary,
        "Sets with classes": rows["sets"],
        "Made tables": rows["made"],
    }
    notes = [_verdict(rows["sets"] + rows["made"], shown), *_failures(runs, shown)]
    return report.write(
        out,
        "features",
        _caption(n_seeds),
        tables_shown,
        partial(_draw, summary),
        notes + others.notes(),
        missing | others.missing(skipped),
        others.in_details(COLUMNS, runs),
        others.versions(known_methods.packages(peers)),
    )


def _caption(n_seeds: int) -> str:
    return (
        f"Mean adjusted Rand index over {n_seeds} seed(s), and over as many random draws of the "
        f"made data. All methods except HDBSCAN and Leiden get the number of classes. {OURS} and "
        f"{PLAIN} have their defaults, and no pairs. The others are KMeans(n_init=10), "
        "GaussianMixture(n_init=3) with full covariances, SpectralClustering of the graph of ten "
        "neighbours, Ward's linkage, HDBSCAN(min_cluster_size=5), whose noise counts as one more "
        f"cluster, and Leiden on the graph of {NEIGHBORS} neighbours. Leiden has the resolution "
        "1, or the resolution that gives as many clusters as there are classes. sc3s, a consensus "
        "of k-means for single cells, has its defaults. Features are standardised, and counts of "
        f"words are weighted as tf-idf. Mixtures get at most {COMPONENTS} principal components; "
        f"Ward, HDBSCAN and {SC3S} get {COMPONENTS} principal components of texts. A method is "
        f"good on a set if it is at most {NEAR:g} below the best one."
    )


def _drawn(table: Any, seed: int) -> tuple[Any, np.ndarray]:
    """Return the scored rows of a set, always the same, or of a made table, drawn by the seed."""
    if isinstance(table, datasets.Dataset):
        return table.draw(0)
    return table(np.random.default_rng(seed))


def _measure(
    methods: dict[str, Run],
    peers: dict[str, known_methods.Method],
    draws: list[tuple[Any, np.ndarray]],
) -> Runs:
    """Return ARI and seconds of every method on every draw; NaN if a peer fails."""
    runs: Runs = {name: [] for name in (*methods, *peers)}
    for seed, (X, y) in enumerate(draws):
        scored = y >= 0  # far samples of some made tables have no class
        k = len(np.unique(y[scored]))
        for name, cluster in methods.items():
            began = perf_counter()
            with warnings.catch_warnings():
                # graphs in pieces, mixtures that do not converge: methods are taken as they are
                warnings.simplefilter("ignore")
                labels = cluster(X, k, seed)
            seconds = perf_counter() - began
            ari = adjusted_rand_score(y[scored], labels[scored])
            runs[name].append({"ARI": float(ari), "seconds": seconds})
        for name, method in peers.items():
            try:
                labels, seconds = method.run(_dense(X, seed), None, k, seed)
            except (NoClusteringError, RuntimeError):
                run = {"ARI": np.nan, "seconds": np.nan}
            else:
                ari = adjusted_rand_score(y[scored], labels[scored])
                run = {"ARI": float(ari), "seconds": seconds}
            runs[name].append(run)
    return runs


def _row(
    name: str, X: Any, y: np.ndarray, methods: Sequence[str], runs: Runs
) -> report.Row:
    shape = {"data": name, "samples": X.shape[0], "classes": len(np.unique(y))}
    return shape | {m: f"{_ari(runs[name, m]):.3f}" for m in methods}


def _ari(runs: list[dict[str, float]]) -> float:
    """Return the mean ARI of runs, in which those without a clustering count as `FAILED`."""
    return float(np.mean([np.nan_to_num(run["ARI"], nan=FAILED) for run in runs]))


def _failures(runs: Runs, methods: Sequence[str]) -> list[str]:
    """Say on which tables a method made no clustering."""
    told = []
    for method in methods:
        failed = [
            data
            for (data, name), own in runs.items()
            if name == method and any(np.isnan(run["ARI"]) for run in own)
        ]
        if failed:
            told.append(
                f"{method} failed on {', '.join(failed)}; a failure has an ARI of {FAILED:g}."
            )
    return told


def _dense(X: Any, seed: int) -> np.ndarray:
    """Return dense features as they are, and sparse ones reduced by latent semantic analysis."""
    if not sp.issparse(X):
        return X
    columns = min(COMPONENTS, min(X.shape) - 1)
    return TruncatedSVD(columns, random_state=seed).fit_transform(X)


def _few_columns(X: Any, seed: int) -> np.ndarray:
    """Return so few principal components that a covariance matrix of them can be estimated."""
    dense = _dense(X, seed)
    columns = min(COMPONENTS, max(2, dense.shape[0] // 10), *dense.shape)
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
    sets: list[report.Row], made: list[report.Row], runs: Runs, others: kept.Kept
) -> list[report.Row]:
    """Return a row for every method: means, rank, how often it is good, its relative time.

    Seconds of an earlier run are not compared with seconds of this one.
    """
    tables = sets + made
    methods = [name for name in tables[0] if (tables[0]["data"], name) in runs]
    scores = np.array([[float(row[m]) for m in methods] for row in tables])
    ranks = rankdata(-scores, axis=1)
    good = scores >= scores.max(axis=1, keepdims=True) - NEAR
    summary: list[report.Row] = []
    for i, method in enumerate(methods):
        row: report.Row = {
            "method": method,
            "mean ARI, sets": f"{scores[: len(sets), i].mean():.3f}",
            "mean ARI, made": f"{scores[len(sets) :, i].mean():.3f}",
            "mean rank": f"{ranks[:, i].mean():.2f}",
            "good": f"{good[:, i].sum()} of {len(good)}",
        }
        if (tables[0]["data"], method) not in others.commits:
            seconds = _seconds(runs, method)
            ratios = np.divide(seconds, _seconds(runs, K_MEANS))
            row["median time / k-means"] = f"{np.nanmedian(ratios):.2g}"
            row["seconds"] = f"{np.nansum(seconds):.1f}"
        summary.append(row)
    return summary


def _seconds(runs: Runs, method: str) -> list[float]:
    return [
        run["seconds"] for (_, m), own in runs.items() if m == method for run in own
    ]


def _verdict(rows: list[report.Row], methods: Sequence[str]) -> str:
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
    timed = [row for row in summary if "seconds" in row]
    for row, marker in zip(timed, "osv^D<>PhX", strict=False):
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
