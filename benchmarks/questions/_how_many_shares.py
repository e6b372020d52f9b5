"""Planted tables without counts, and how often recurrence in runs tells their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.methods.programs import N_JOBS
from benchmarks.runner import Progress
from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_biclusters, make_programs, make_signatures
from nmfcluster.model_selection import sweep_n_clusters
from nmfcluster.model_selection.results import ClusterSweep

SEED, AROUND = 23, 3  # of settings and tables; candidates from the truth
KINDS = ("biclusters", "logarithms", "shares")
RESAMPLED: tuple[Any, ...] = (None, 0.8, "bootstrap")
OURS = "smallest recurrence, largest number within .15 of the best (sweep_n_clusters)"
CAPTION = (
    "Tables without counts have 3 to 11 clusters: biclusters of `make_biclusters`, logarithms of "
    "`make_programs` after every row has been scaled to the same depth, and `make_signatures` as "
    "shares of the row; runs are by loss='frobenius'."
)


def table(kind: str, i: int) -> tuple[np.ndarray, int, dict[str, Any]]:
    """Return a table without counts, its number of clusters, and what it was made with."""
    rng = np.random.default_rng((SEED, KINDS.index(kind), i))
    seed = 1000 * SEED + i
    if kind == "biclusters":
        k = 3 + i % 6
        size = int(rng.choice([60, 120])), int(rng.choice([100, 300]))
        settings = {
            "noise": rng.choice([0.1, 0.25, 0.5]),
            "overlap": rng.choice([0, 0.2, 0.4]),
        }
        return make_biclusters(size, k, **settings, random_state=seed)[0], k, settings
    k = 4 + 3 * i % 8
    if kind == "logarithms":
        settings = {
            "n_samples": int(rng.choice([200, 300])),
            "depth": int(rng.choice([1000, 2000])),
        }
        settings |= {
            "housekeeping": rng.choice([0.3, 0.6]),
            "dispersion": rng.choice([0, 0.1]),
        }
        X = make_programs(n_features=500, n_programs=k, **settings, random_state=seed)[
            0
        ]
        depths = X.sum(axis=1, keepdims=True)
        return np.log1p(X / np.maximum(depths, 1) * depths.mean()), k, settings
    settings = {
        "n_samples": int(rng.choice([100, 200])),
        "noise": rng.choice([0, 0.05]),
    }
    settings |= {"burden": int(rng.choice([500, 2000]))}
    X = make_signatures(n_signatures=k, **settings, random_state=seed)[0]
    return X / np.maximum(X.sum(axis=1, keepdims=True), 1), k, settings


def measure(
    n_tables: int, n_runs: int, progress: Progress
) -> tuple[list[report.Row], list[report.Row]]:
    """Return how often rules are right, and what they chose for every table."""
    rows = []
    for kind in KINDS:
        for i in range(n_tables):
            X, k, settings = table(kind, i)
            row: report.Row = {"kind": kind, "k": k, **settings}
            for way in RESAMPLED:
                model = NMFMetaCluster(
                    k, n_estimators=n_runs, resample=way, random_state=i
                )
                candidates = range(2, min(k + AROUND, len(X)) + 1)
                sweep = sweep_n_clusters(
                    model, X, candidates, method="recurrence", n_jobs=N_JOBS
                )
                row |= {
                    f"{rule}; {_named(way)}": n for rule, n in _answers(sweep).items()
                }
            rows.append(row)
            progress.step(f"{kind}, {k}")
    rules = [name for name in rows[0] if ";" in name]
    return [_summary(rule, rows) for rule in rules], rows


def _named(way: Any) -> str:
    return "runs see X" if way is None else f"resample={way!r}"


def _answers(sweep: ClusterSweep) -> dict[str, int]:
    least = sweep.smallest_recurrence
    passed = np.flatnonzero(least >= 0.6)
    rules = {
        OURS: np.flatnonzero(least >= least.max() - 0.15)[-1],
        "smallest recurrence, largest number from .6": passed[-1] if len(passed) else 0,
        "mean recurrence, best": sweep.recurrence.argmax(),
        "cophenetic correlation, best": sweep.cophenetic.argmax(),
    }
    return {rule: int(sweep.candidates[place]) for rule, place in rules.items()}


def _summary(rule: str, rows: list[report.Row]) -> report.Row:
    def right(own: list[report.Row], most: int = 0) -> str:
        return f"{sum(abs(row[rule] - row['k']) <= most for row in own)} of {len(own)}"

    of_kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    counts = {kind: right(own) for kind, own in of_kinds.items()}
    off = float(np.mean([row[rule] - row["k"] for row in rows]))
    return {
        "rule": rule,
        "exact": right(rows),
        "within one": right(rows, 1),
        **counts,
        "off by": off,
    }
