"""SSNMFClusterer on the features of many samples: time, memory, and one job beside two."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks import fresh, methods, report
from benchmarks.methods import ssnmf
from benchmarks.runner import Progress, exponent, interleaved
from nmfcluster.constraints import PairwiseConstraints

LARGEST = (
    "NMFCLUSTER_LARGEST"  # names the largest number of samples; powers of ten are taken
)
USUAL = 1_000_000
# SPREAD: deviation; centres are in [-10, 10]
N_FEATURES, N_CLUSTERS, SPREAD = (16, 10, 6.0)
KMEANS = "KMeans(n_init=10)"
JOBS = (1, 2)
PARTS = ("no", "yes")  # whether constraints are used
# targets, on two cores
SECONDS = {USUAL: {"no": 20.0, "yes": 30.0}, 10 * USUAL: {"no": 300.0}}
MEBIBYTES = {USUAL: 2_048.0, 10 * USUAL: 14 * 1_024.0}
SLOPE, SPEEDUP = 1.1, 1.6


def sizes(quick: bool) -> tuple[int, ...]:
    if quick:
        return (300, 600)
    largest = int(os.environ.get(LARGEST) or USUAL)
    return tuple(n for n in (10**i for i in range(4, 10)) if n <= largest)


def skipped(quick: bool) -> dict[str, str]:
    """Say how the size is measured that takes too long to be usual."""
    if quick or sizes(quick)[-1] > USUAL:
        return {}
    more = 10 * USUAL
    return {f"{more:,} samples": f"minutes a fit; set {LARGEST}={more} to measure them"}


def repeats(n: int, usual: int) -> int:
    """Return the number of repeats: one for sizes whose fits take minutes."""
    return usual if n <= USUAL else 1


def steps(taken: Sequence[int], usual: int) -> int:
    """Return the number of steps of the progress that `measure` makes."""
    fits = len(PARTS) * len(JOBS) + 1 + len(JOBS)
    return sum(1 + fits * repeats(n, usual) for n in taken)


def measure(
    folder: Path, taken: Sequence[int], n_pairs: int, usual: int, progress: Progress
) -> tuple[list[report.Row], list[report.Row]]:
    """Return rows of the defaults and of single starts, by number of samples."""
    rows, single = [], []
    for n in taken:
        file = folder / "features.npz"
        fresh.call(make, file, n, n_pairs)
        progress.step(f"{n:,} samples made")
        for used in PARTS:
            tasks: dict[Any, Any] = {
                jobs: partial(_fit, file, used, jobs, "default") for jobs in JOBS
            }
            if used == "no":
                tasks[KMEANS] = partial(fresh.measure, KMEANS, file)
            runs = interleaved(tasks, repeats(n, usual), progress)
            rows.append(_row(n, n_pairs if used == "yes" else 0, runs))
        tasks = {jobs: partial(_fit, file, "no", jobs, 1) for jobs in JOBS}
        single.append(_row(n, 0, interleaved(tasks, repeats(n, usual), progress)))
        file.unlink()
    return rows, single


def make(file: str, n: str, n_pairs: str) -> dict[str, Any]:
    """Write overlapping clusters and constraints."""
    X, y = make_blobs(
        int(n),
        n_features=N_FEATURES,
        centers=N_CLUSTERS,
        cluster_std=SPREAD,
        random_state=0,
    )
    pairs = PairwiseConstraints.from_labels(y, n_pairs=int(n_pairs), random_state=0)
    fresh.save(Path(file), X.astype(np.float32), y, pairs=pairs)
    return {}


def _fit(
    file: Path, used: str, n_jobs: int, n_init: int | str, seed: int
) -> dict[str, Any]:
    return fresh.call(fit, file, used, n_jobs, n_init, seed)


def fit(file: str, used: str, n_jobs: str, n_init: str, seed: str) -> dict[str, Any]:
    """Return costs and score of a fit, and "bits", a digest of its labels and its loss."""
    X, y, extras = fresh.read(file)
    pairs = extras[methods.CONSTRAINTS] if used == "yes" else None
    options: dict[str, Any] = {"n_jobs": int(n_jobs)}
    if n_init != "default":
        options["n_init"] = int(n_init)
    k = len(np.unique(y))
    model, costs = fresh.cost(partial(ssnmf.fit, X, pairs, k, int(seed), **options))
    bits = hashlib.sha256(model.labels_.tobytes() + np.float64(model.loss_).tobytes())
    ari = float(adjusted_rand_score(y, model.labels_))
    return {**costs, "ari": ari, "updates": model.n_iter_, "bits": bits.hexdigest()}


def same_bits(runs: dict[Any, list[dict[str, Any]]]) -> bool:
    """Say whether runs of the same seed agree to the last bit, whatever their number of jobs."""
    digests = [[run["bits"] for run in runs[jobs]] for jobs in JOBS]
    return all(own == digests[0] for own in digests)


def _row(n: int, n_pairs: int, runs: dict[Any, list[dict[str, Any]]]) -> report.Row:
    def median(task: Any, figure: str) -> float:
        return float(np.median([run[figure] for run in runs[task]]))

    one, two = JOBS
    row: report.Row = {"samples": n, "constraints": n_pairs}
    row |= {"s": median(one, "seconds"), "s, two jobs": median(two, "seconds")}
    row["one job / two"] = row["s"] / row["s, two jobs"]
    row["same bits"] = "yes" if same_bits(runs) else "no"
    row |= {"MiB": median(one, "mebibytes"), "MiB, two jobs": median(two, "mebibytes")}
    row |= {"updates": median(one, "updates"), "ARI": median(one, "ari")}
    row["runs"] = len(runs[one])
    if KMEANS in runs:
        row |= {
            "s KMeans": median(KMEANS, "seconds"),
            "ARI KMeans": median(KMEANS, "ari"),
        }
    return row


def slopes(rows: list[report.Row]) -> list[report.Row]:
    """Return how time grows with the number of samples."""
    told = []
    for n_pairs in dict.fromkeys(row["constraints"] for row in rows):
        own = [row for row in rows if row["constraints"] == n_pairs]
        taken = [row["samples"] for row in own]
        row: report.Row = {"constraints": n_pairs}
        row["exponent of n"] = exponent(taken, [r["s"] for r in own])
        row["exponent, two jobs"] = exponent(taken, [r["s, two jobs"] for r in own])
        if "s KMeans" in own[0]:
            row["exponent, KMeans"] = exponent(taken, [r["s KMeans"] for r in own])
        told.append(row)
    return told


def verdicts(
    rows: list[report.Row], single: list[report.Row], growth: list[report.Row]
) -> list[str]:
    """Hold time, memory, growth and the gain by a second job against their targets."""
    told = []
    for row in rows:
        used = "yes" if row["constraints"] else "no"
        longest = SECONDS.get(row["samples"], {}).get(used)
        if longest is None:
            continue
        seconds, mebibytes = row["s, two jobs"], row["MiB, two jobs"]
        most = MEBIBYTES[row["samples"]]
        what = f"{row['samples']:,} samples with {row['constraints']:,} constraints, two jobs"
        told.append(
            f"SSNMFClusterer, {what}: {seconds:.1f} s (target: less than {longest:g}): "
            f"{_met(seconds < longest)}; {mebibytes:,.0f} MiB (target: less than {most:,.0f}): "
            f"{_met(mebibytes < most)}."
        )
    for row in growth:
        steepest = max(row["exponent of n"], row["exponent, two jobs"])
        told.append(
            f"SSNMFClusterer, {row['constraints']:,} constraints: exponent {steepest:.2f} "
            f"(target: at most {SLOPE:g}): {_met(steepest <= SLOPE)}."
        )
    last = single[-1]
    same = all(row["same bits"] == "yes" for row in (*rows, *single))
    told.append(
        f"One start on {last['samples']:,} samples: {last['one job / two']:.2f} times faster in "
        f"two jobs (target: {SPEEDUP:g}): {_met(last['one job / two'] >= SPEEDUP)}; the same bits "
        f"in one job and in two, in all fits: {_met(same)}."
    )
    return told


def _met(true: bool) -> str:
    return "met" if true else "missed"


def draw(rows: list[report.Row], time: Any, memory: Any) -> None:
    for colour, n_pairs in enumerate(dict.fromkeys(row["constraints"] for row in rows)):
        own = [row for row in rows if row["constraints"] == n_pairs]
        taken = [row["samples"] for row in own]
        for ax, cost in ((time, "s"), (memory, "MiB")):
            label, style = f"SSNMF, {n_pairs:,} constraints", {"color": f"C{colour}"}
            ax.loglog(taken, [row[cost] for row in own], "o-", label=label, **style)
            values = [row[f"{cost}, two jobs"] for row in own]
            ax.loglog(taken, values, "^--", label=f"{label}, two jobs", **style)
        if "s KMeans" in own[0]:
            time.loglog(taken, [row["s KMeans"] for row in own], "s:k", label="KMeans")
    time.set(xlabel="samples", ylabel="seconds")
    memory.set(xlabel="samples", ylabel="MiB on top of the data")
    time.legend(fontsize="x-small")
