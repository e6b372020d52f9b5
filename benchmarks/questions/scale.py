"""What do clusters of a million samples cost, beside k-means on them?

`NMFConsensus` with its defaults clusters partitions, scikit-learn's KMeans(n_init=10) the features
of the same samples. `SSNMFClusterer` with its defaults clusters features, with constraints and
without. Every run has a process of its own.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fresh, report
from benchmarks.datasets.gaussians import ensemble, gaussians, random_labels
from benchmarks.methods import ssnmf
from benchmarks.questions import _scale_features
from benchmarks.runner import Progress, exponent, interleaved

METHODS = ("NMFC", "KMeans(n_init=10)", ssnmf.WITHOUT)
# fewest and most clusters of a base partition
BASE = {"separated": (10, 10), "overlapping": (10, 24)}
KINDS = ("separated", "overlapping", "random labels")
N_PARTITIONS = 50


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    sizes = (200, 400) if quick else (10_000, 100_000, 1_000_000)
    kinds, repeats = KINDS[1:2] if quick else KINDS, 3 if all_seeds else 1
    many, n_pairs = _scale_features.sizes(quick), 20 if quick else 10_000
    steps = len(kinds) * len(sizes) * (1 + repeats * len(METHODS))
    progress = Progress("scale", steps + _scale_features.steps(many, repeats))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for n in sizes:
                file = Path(folder, f"{n}.npz")
                distinct = _make(kind, n, file)
                progress.step(f"{kind}, {n:,} samples made")
                tasks = {
                    method: partial(fresh.measure, method, file) for method in METHODS
                }
                rows.append(
                    _row(kind, n, distinct, interleaved(tasks, repeats, progress))
                )
                file.unlink()
        fits, single = _scale_features.measure(
            Path(folder), many, n_pairs, repeats, progress
        )
    slopes = [
        _slope(kind, [row for row in rows if row["labels"] == kind]) for kind in kinds
    ]
    growth = _scale_features.slopes(fits)
    caption = (
        f"NMFConsensus(n_clusters=10) with its defaults on {N_PARTITIONS} given partitions, and "
        "KMeans(n_clusters=10, n_init=10) on the 10 features of the same samples. SSNMF is "
        "SSNMFClusterer(n_clusters=10) with its defaults on these features. The tables have the "
        "time of the whole fit, and its memory on top of the data. Each run has a fresh process; "
        f"values are medians of {repeats} interleaved repeats; CPU time counts all cores. Base "
        "partitions are k-means fitted to 5,000 rows: with 10 clusters for separated Gaussian "
        "clusters, and with 10 to 24 for overlapping ones. Random labels have no "
        "clusters and no two equal rows. SSNMFClusterer(n_clusters=10) runs with its defaults, "
        "and with a single start, in one job and in two. Its data are "
        f"{_scale_features.N_FEATURES} features in float32 of ten overlapping clusters "
        "(make_blobs, cluster_std=6). Above a million samples each fit is run once. 'same bits' "
        "compares labels and loss of the two. Target times are for two cores."
    )
    tables = {
        "Time and memory": rows,
        "Growth with the number of samples": slopes,
        "SSNMFClusterer on features, with constraints and without": fits,
        "Growth with the number of samples, SSNMFClusterer": growth,
        "SSNMFClusterer on features, a single start": single,
    }
    notes = [_verdict(rows, slopes), *_scale_features.verdicts(fits, single, growth)]
    draw, skipped = partial(_draw, rows, fits), _scale_features.skipped(quick)
    return report.write(out, "scale", caption, tables, draw, notes, skipped)


def _make(kind: str, n: int, file: Path) -> float:
    """Write X, table and y; return the share of rows of the table that are distinct."""
    data = gaussians(n, "overlapping" if kind == "random labels" else kind)
    if kind == "random labels":
        table = random_labels(n, 10, N_PARTITIONS)
    else:
        table = ensemble(data.X, N_PARTITIONS, BASE[kind])
    fresh.save(file, data.X, data.y, table=table)
    return len(np.unique(table, axis=0)) / n


def _row(kind: str, n: int, distinct: float, runs: dict[str, list[Any]]) -> report.Row:
    def median(method: str, cost: str) -> float:
        return float(np.median([run[cost] for run in runs[method]]))

    ours, kmeans, plain = METHODS
    return {
        "labels": kind,
        "samples": n,
        "distinct rows": f"{distinct:.2%}",
        "time / KMeans": median(ours, "seconds") / median(kmeans, "seconds"),
        "CPU time / KMeans": median(ours, "cpu") / median(kmeans, "cpu"),
        "s": median(ours, "seconds"),
        "s KMeans": median(kmeans, "seconds"),
        "s SSNMF": median(plain, "seconds"),
        "MiB": median(ours, "mebibytes"),
        "MiB KMeans": median(kmeans, "mebibytes"),
        "MiB SSNMF": median(plain, "mebibytes"),
        "ARI": median(ours, "ari"),
        "ARI KMeans": median(kmeans, "ari"),
        "ARI SSNMF": median(plain, "ari"),
    }


def _slope(kind: str, rows: list[report.Row]) -> report.Row:
    sizes = [row["samples"] for row in rows]
    return {
        "labels": kind,
        "exponent of n": exponent(sizes, [row["s"] for row in rows]),
        "exponent, KMeans": exponent(sizes, [row["s KMeans"] for row in rows]),
    }


def _verdict(rows: list[report.Row], slopes: list[report.Row]) -> str:
    row = [row for row in rows if row["labels"] == "overlapping"][-1]
    [slope] = [
        slope["exponent of n"] for slope in slopes if slope["labels"] == "overlapping"
    ]
    checks = {
        f"{row['time / KMeans']:.2f} times the time of KMeans (target: less than 1)": (
            row["time / KMeans"] < 1
        ),
        f"{row['MiB']:,.0f} MiB (target: less than 2,048)": row["MiB"] < 2_048,
        f"exponent {slope:.2f} (target: at most 1.1)": slope <= 1.1,
    }
    told = "; ".join(
        f"{claim}: {'met' if met else 'missed'}" for claim, met in checks.items()
    )
    return f"Overlapping clusters, {row['samples']:,} samples: {told}."


def _draw(rows: list[report.Row], fits: list[report.Row], figure: Any) -> None:
    figure.set_size_inches(9, 8)
    (time, memory), below = figure.subplots(2, 2)
    for colour, kind in enumerate(dict.fromkeys(row["labels"] for row in rows)):
        own = [row for row in rows if row["labels"] == kind]
        sizes = [row["samples"] for row in own]
        for ax, cost in ((time, "s"), (memory, "MiB")):
            ax.loglog(
                sizes, [row[cost] for row in own], "o-", color=f"C{colour}", label=kind
            )
            if kind != "random labels":
                values = [row[f"{cost} KMeans"] for row in own]
                ax.loglog(
                    sizes, values, "s:", color=f"C{colour}", label=f"KMeans, {kind}"
                )
    time.set(xlabel="samples", ylabel="seconds")
    memory.set(xlabel="samples", ylabel="MiB on top of the data")
    time.legend(fontsize="small")
    _scale_features.draw(fits, *below)
