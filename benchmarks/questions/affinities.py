"""Does the graph of SSNMFClusterer stand on any table: ties, copies, few rows, small clusters?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from benchmarks import datasets, report
from benchmarks.datasets.tables import MADE
from benchmarks.methods import fusion, kmeans, nmfc, ssnmf
from benchmarks.runner import Progress
from nmfcluster import PairwiseConstraints

REAL = ("iris", "soybean", "zoo")  # raw: of one decimal, and whole numbers
QUICK = ("rounded", "six rows", "records of 40 entities")
N_PAIRS, N_SEEDS = 50, 5
OURS, NEAR = "SSNMF", 0.05  # ARI under the better of two others

Run = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]
METHODS: dict[str, Run] = {
    OURS: lambda X, y, k, seed: ssnmf.cluster(X, None, k, seed),
    "with pairs": lambda X, y, k, seed: ssnmf.cluster(X, _pairs(y, seed), k, seed),
    "NMFConsensus": lambda X, y, k, seed: nmfc.of_features(X, None, k, seed),
    "rbf": lambda X, y, k, seed: ssnmf.cluster(X, None, k, seed, affinity="rbf"),
    "fusion": lambda X, y, k, seed: fusion.cluster(None, _halves(X), k, seed),
    "k-means": lambda X, y, k, seed: kmeans.cluster(X, None, k, seed, n_init=10),
    "Ward": lambda X, y, k, seed: AgglomerativeClustering(k).fit_predict(X),
}


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    sets, missing = datasets.available(() if quick else REAL)
    drawn = {name: make for name, make in MADE.items() if name in QUICK or not quick}
    drawn |= {name: partial(_stored, data) for name, data in sets.items()}
    n_seeds = 1 if quick else N_SEEDS
    progress = Progress("affinities", len(drawn) * n_seeds)
    rows = []
    for name, make in drawn.items():
        scores: dict[str, list[float]] = {method: [] for method in METHODS}
        for seed in range(n_seeds):
            X, y = make(np.random.default_rng(seed))
            scored, k = y >= 0, int(y.max()) + 1
            for method, cluster in METHODS.items():
                found = cluster(X, y, k, seed)[scored]
                scores[method].append(float(adjusted_rand_score(y[scored], found)))
            progress.step(name)
        row = {
            "table": name,
            "rows": len(X),
            "differ": len(np.unique(X, axis=0)),
            "clusters": k,
        }
        rows.append(
            row | {method: f"{np.mean(own):.3f}" for method, own in scores.items()}
        )
    caption = (
        f"Mean adjusted Rand index over {n_seeds} random draw(s) of each data set, and over as "
        f"many seeds on {', '.join(REAL)} with raw features. {OURS} is SSNMFClusterer: with its "
        f"defaults, with {N_PAIRS} pairs (or half as many as rows, if that is fewer), and with "
        "affinity='rbf'. NMFConsensus has its defaults. 'fusion' is SimilarityFusionNMF of two "
        "halves of the columns. The others are KMeans(n_init=10) and Ward's linkage. Numbers of "
        "distinct rows are those of the last draw. Far outliers are not scored."
    )
    tables, notes, draw = {"Mean ARI": rows}, [_verdict(rows)], partial(_draw, rows)
    return report.write(out, "affinities", caption, tables, draw, notes, missing)


def _stored(
    data: datasets.Dataset, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    X, y = data.draw(0)
    return X, np.unique(y, return_inverse=True)[1]


def _pairs(y: np.ndarray, seed: int) -> PairwiseConstraints:
    n_pairs = min(N_PAIRS, len(y) // 2)
    return PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=seed)


def _halves(X: np.ndarray) -> Any:
    half = X.shape[1] // 2
    return {"left": X[:, :half], "right": X[:, half:]}


def _verdict(rows: list[report.Row]) -> str:
    gaps = {
        r["table"]: max(float(r["k-means"]), float(r["rbf"])) - float(r[OURS])
        for r in rows
    }
    named = [f"{name} by {gap:.3f}" for name, gap in gaps.items() if gap > NEAR]
    return (
        f"{OURS} is more than {NEAR:g} under the better of k-means and rbf on {len(named)} of "
        f"{len(rows)} tables ({', '.join(named) or 'none'})."
    )


def _draw(rows: list[report.Row], figure: Any) -> None:
    figure.set_size_inches(9, 1.5 + 0.32 * len(rows))
    ax, at = figure.subplots(), np.arange(len(rows))
    for i, method in enumerate(METHODS):
        ax.plot(
            [float(row[method]) for row in rows],
            at,
            "osP^v*D"[i],
            alpha=0.6,
            label=method,
        )
    ax.set_yticks(at, [row["table"] for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("mean ARI")
    ax.legend(fontsize="small")
