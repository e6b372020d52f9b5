"""Do label tables of ten and a hundred million rows get their consensus in 300 MB a worker?

Two workers of one thread each read the tables from files, block by block, and write nothing to
disk. Every fit has a cluster, and a client process, of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import fresh, kept, report
from benchmarks.datasets.many_labels import N_CLUSTERS, write_features, write_labels
from benchmarks.methods import peer
from benchmarks.questions import _distributed_runs as runs
from benchmarks.runner import Progress, exponent, interleaved

MEMORY = "300MB"  # of a worker; its imports take half of it
OF_FEATURES = "300MB"  # of a worker that makes base partitions of 10 features
OF_DASK_ML = (
    "2GB"  # of one that runs the k-means of dask-ml, which holds X: at 600 MB it waits
)
SAME = (  # kind of table, and distinct rows that are held
    ("separated", 200_000),
    ("overlapping", 200_000),
    ("overlapping", 20_000),
    ("redrawn", 200_000),
    ("missing", 200_000),
)
DASK_ML = "dask-ml KMeans"
COLUMNS = ("rows", "method")
FEATURES = "features"  # heading of the details
WORKER = Path(peer.__file__).with_name("peer_dask_ml_worker.py")


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    small = 4_000 if quick else 1_000_000
    most = 1_000 if quick else None  # distinct rows, instead of those in SAME
    sizes = (
        [("separated", 4_000, 20)]
        if quick
        else [
            ("separated", 10**6, 50),
            ("separated", 10**7, 50),
            ("overlapping", 10**6, 50),
            ("overlapping", 3 * 10**6, 50),
            ("overlapping", 10**7, 50),
            ("separated", 10**8, 20),
        ]
    )
    # rows of the table of features
    n_rows = 4_000 if quick else 10**7 if all_seeds else 3 * 10**6
    reason = peer.reason(peer.DASK_PYTHON)
    package = {DASK_ML: "dask-ml"}
    others = kept.read(
        out / "distributed.json",
        package if reason else {},
        COLUMNS,
        {"rows": [n_rows]},
        1,
        FEATURES,
    )
    cases = SAME[:1] if quick else SAME
    repeats, memory = 3 if all_seeds else 1, "1GB" if quick else MEMORY
    progress = Progress("distributed", len(cases) + 2 * len(sizes) + 2 + 2 * repeats)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        same = [_same(folder, small, *case, most, progress) for case in cases]
        fits = [_fit(folder, *case, memory, progress) for case in sizes]
        features, failed = _features(
            folder, n_rows, "1GB" if quick else OF_FEATURES, not reason, progress
        )
    found = interleaved(
        {
            name: partial(_backends, name, 100 if quick else 2_000)
            for name in ("base partitions", "NMF runs")[: 1 if quick else 2]
        },
        repeats,
        progress,
    )
    backends = [_median(name, found[name]) for name in found]
    caption = (
        "nmfcluster.dask on two workers of one thread each. They read label matrices from a file "
        f"in blocks of {runs.ROWS:,} rows, and write nothing to disk. 'Peak' is the largest "
        "resident memory of a process, its libraries included. Workers do not pause near "
        "their limit. The scheduler runs in the client. Label matrices are base partitions with "
        "10 to 30 clusters of 10 true ones. In 'separated', one entry in 100,000 is wrong. In "
        "'overlapping', a tenth of the samples have three in ten entries from another cluster. "
        "In 'redrawn', a fifth of all entries are redrawn at random. In 'missing', a tenth are "
        "redrawn, and three in ten are missing. 'exact' means that all distinct rows are held, "
        "so the fit is the same as in memory."
    )
    features |= others.runs
    tables = {
        "Beside the fit in memory": same,
        f"Tables in files, {memory} a worker": fits,
        "From features to labels": [
            dict(zip(COLUMNS, key, strict=True)) | run
            for key, [run] in features.items()
        ],
        "joblib's backends: two workers beside two threads": backends,
    }
    notes = _verdicts(same, fits, backends) + others.notes()
    details = others.in_details(COLUMNS, features, FEATURES)
    versions = others.versions({} if reason else package)
    if versions:
        caption += f" {DASK_ML} is that of {', '.join(versions.values())}."
    skipped = others.missing({DASK_ML: reason} if reason else {}) | failed
    draw = partial(_draw, fits)
    return report.write(
        out, "distributed", caption, tables, draw, notes, skipped, details, versions
    )


def _same(
    folder: Path,
    n: int,
    kind: str,
    most: int,
    kept: int | None,
    progress: Progress,
) -> report.Row:
    files = write_labels(folder, kind, n, 50)
    found = fresh.call(runs.compare, files.table, min(most, kept or most))
    progress.step(f"{kind}, {n:,} rows, beside the fit in memory")
    return {
        "labels": kind,
        "rows": n,
        "rows fitted at once": found["rows fitted"],
        "exact": found["exact"],
        "same labels": found["same labels"],
        "same bits": found["same bits"],
        "loss / in memory": found["loss"],
        "s": found["seconds"],
        "s in memory": found["seconds in memory"],
    }


def _fit(
    folder: Path, kind: str, n: int, n_partitions: int, memory: str, progress: Progress
) -> report.Row:
    files = write_labels(folder, kind, n, n_partitions)
    progress.step(f"{kind}, {n:,} rows written")
    found = fresh.call(runs.fit, files.table, files.classes, memory)
    mebibytes = files.table.stat().st_size / 2**20
    files.table.unlink()
    progress.step(f"{kind}, {n:,} rows")
    return {
        "labels": kind,
        "rows": n,
        "partitions": n_partitions,
        "MiB of the table": mebibytes,
        "rows fitted at once": found["rows fitted"],
        "exact": found["exact"],
        "s of the fit": found["fit"],
        "s of the labels": found["labels"],
        "CPU s a million rows, fit": found["cpu of fit"] / n * 1e6,
        "CPU s a million rows, labels": found["cpu of labels"] / n * 1e6,
        "peak of a worker, MiB": found["worker"],
        "peak of client and scheduler, MiB": found["client"],
        "accuracy": found["accuracy"],
    }


def _features(
    folder: Path, n: int, memory: str, dask_ml: bool, progress: Progress
) -> tuple[kept.Runs, dict[str, str]]:
    """Return the figures of each method by rows and method, and why dask-ml has none."""
    files = write_features(folder, n, 10)
    ours = fresh.call(runs.features, *files, folder / "labels", memory)
    progress.step(f"{n:,} rows from features to labels")
    found = {(n, "base_partitions and NMFConsensus"): [_of_features(ours)]}
    failed = {}
    if dask_ml:
        try:
            found[n, DASK_ML] = [_of_features(_dask_ml(files, folder))]
        except subprocess.TimeoutExpired:
            failed[DASK_ML] = (
                f"not done after {peer.LONGEST} s with {OF_DASK_ML} a worker"
            )
    progress.step(f"{n:,} rows, {DASK_ML}")
    return found, failed


def _dask_ml(files: Any, folder: Path) -> dict[str, Any]:
    arguments = [*files, N_CLUSTERS, runs.ROWS, OF_DASK_ML]
    command = [os.environ[peer.DASK_PYTHON], "-W", "ignore", WORKER, *arguments]
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=peer.LONGEST,
    )
    if done.returncode:
        raise RuntimeError(f"{DASK_ML} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _of_features(found: dict[str, Any]) -> kept.Run:
    return {
        "s": found["seconds"],
        "s of base partitions": found.get("base partitions"),
        "CPU s of workers": found["cpu"],
        "peak of a worker, MiB": found["worker"],
        "peak of client and scheduler, MiB": found["client"],
        "accuracy": found["accuracy"],
    }


def _backends(name: str, rows: int, seed: int) -> dict[str, Any]:
    return fresh.call(runs.backends, name, rows, seed)


def _median(name: str, found: list[dict[str, Any]]) -> report.Row:
    ratios = [one["seconds"] / one["seconds of threads"] for one in found]
    sent = [one["bytes sent / bytes of X"] for one in found]
    return {
        "work": name,
        "s of threads": float(np.median([one["seconds of threads"] for one in found])),
        "workers / threads": float(np.median(ratios)),
        "bytes sent / bytes of X": float(np.median(sent)),
        "same bits": all(one["same bits"] for one in found),
    }


def _verdicts(
    same: list[report.Row], fits: list[report.Row], backends: list[report.Row]
) -> list[str]:
    checks = {
        "the same bits as in memory wherever all distinct rows are held": all(
            row["same bits"] for row in same if row["exact"]
        ),
        f"at least {min(row['same labels'] for row in same):.5f} of the labels of the fit in "
        "memory (target: .9999)": min(row["same labels"] for row in same) >= 0.9999,
    }
    largest = max(fits, key=lambda row: row["rows"])
    a_million = (
        (largest["s of the fit"] + largest["s of the labels"]) / largest["rows"] * 1e6
    )
    peak = max(row["peak of a worker, MiB"] for row in fits)
    checks |= {
        f"at most {peak:.0f} MiB a worker (target: 286, 300 MB)": peak <= 286,
        f"{largest['rows']:,} rows in {a_million:.1f} s a million (target: less than 38, U-SENC's "
        "for 20 million)": a_million < 38,
    }
    for kind in dict.fromkeys(row["labels"] for row in fits):
        own = [row for row in fits if row["labels"] == kind and row["partitions"] == 50]
        # passes cost more
        own = [row for row in own if row["exact"] == own[-1]["exact"]]
        if len(own) > 1:
            seconds = [row["s of the fit"] + row["s of the labels"] for row in own]
            slope = exponent([row["rows"] for row in own], seconds)
            checks[f"{kind}: exponent {slope:.2f} of n (target: at most 1.05)"] = (
                slope <= 1.05
            )
    slowest = max(row["workers / threads"] for row in backends)
    checks[f"workers take {slowest:.2f} times as long as threads (target: 1.3)"] = (
        slowest <= 1.3
    )
    checks["the same bits on workers and on threads"] = all(
        row["same bits"] for row in backends
    )
    return [f"{claim}: {'met' if met else 'missed'}." for claim, met in checks.items()]


def _draw(fits: list[report.Row], figure: Any) -> None:
    figure.set_size_inches(9, 4)
    time, memory = figure.subplots(1, 2)
    for colour, kind in enumerate(dict.fromkeys(row["labels"] for row in fits)):
        own = sorted(
            (r for r in fits if r["labels"] == kind), key=lambda row: row["rows"]
        )
        sizes = [row["rows"] for row in own]
        seconds = [row["s of the fit"] + row["s of the labels"] for row in own]
        time.loglog(sizes, seconds, "o-", color=f"C{colour}", label=kind)
        for column, style in (
            ("peak of a worker, MiB", "o-"),
            ("MiB of the table", "s:"),
        ):
            values = [row[column] for row in own]
            name = f"{kind}, {column.split(',')[0]}"
            memory.loglog(sizes, values, style, color=f"C{colour}", label=name)
    time.set(xlabel="rows", ylabel="seconds, two workers")
    memory.set(xlabel="rows", ylabel="MiB")
    time.legend(fontsize="small")
    memory.legend(fontsize="small")
