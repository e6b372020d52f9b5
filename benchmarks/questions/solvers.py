"""Which solver, and which first start, should be the default?

Bregman proximal gradient (bpg), symmetric HALS and the multiplicative rule (mu) run from the same
starts, on the co-associations of k-means ensembles and on two similarities of the digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from nmfcluster._engine.run import iterate
from nmfcluster._engine.stopping import Solution, StopRule
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph
from threadpoolctl import threadpool_limits

from benchmarks import datasets, report
from benchmarks.datasets.gaussians import gaussians
from benchmarks.methods.nndsvd import nndsvd_start
from benchmarks.methods.symhals import symmetric_hals
from benchmarks.runner import Progress, interleaved
from nmfcluster._engine.multiplicative import multiplicative_nmf
from nmfcluster._engine.starts import random_start, spectral_start
from nmfcluster._engine.symmetric import SymmetricObjective, bregman_nmf
from nmfcluster.partitions import base_partitions
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.similarity import Explicit, inner

SOLVERS = {"bpg": bregman_nmf, "symhals": symmetric_hals, "mu": multiplicative_nmf}
GAPS = (1e-3, 1e-5)  # above the best loss, relative to that of H = 0


def run(quick: bool, out: Path) -> list[Path]:
    repeats, seconds, n_random = (1, 0.02, 1) if quick else (3, 3.0, 3)
    problems = _problems(quick)
    progress = Progress("solvers", len(problems) * (1 + n_random) * len(SOLVERS) * repeats)
    rows, curves, first = [], {}, []
    for name, (objective, mass, k) in problems.items():
        starts = {"spectral": spectral_start(objective.A, k)}
        for seed in range(n_random):
            rng = np.random.RandomState(seed)
            starts[f"random {seed}"] = random_start(mass, k, rng, objective.A.dtype)
        results = {}
        for start, H in starts.items():
            tasks = {
                solver: partial(_descend, steps, objective, H, seconds)
                for solver, steps in SOLVERS.items()
            }
            runs = interleaved(tasks, repeats, progress)
            results.update({(start, solver): runs[solver] for solver in SOLVERS})
        ends = _first_starts(objective, k)
        best = min(losses.min() for kept in results.values() for _, losses in kept)
        best = min(best, *(end.loss for end in ends.values()))
        for (start, solver), kept in results.items():
            rows.append(_row(name, start, solver, kept, best, objective.constant))
        curves[name] = {s: (results["spectral", s][0], best, objective.constant) for s in SOLVERS}
        first.append({"problem": name} | _compare(ends, best, objective.constant))
    caption = (
        "Symmetric NMF by three solvers from the same starts. Loss above the best that any solver "
        f"reached from any start, and seconds to come near it, both relative to the loss of H = 0; "
        f"on one BLAS thread; medians of {repeats} interleaved runs, each of at most {seconds:g} s "
        "or 2,000 updates."
    )
    tables = {
        "In all": _summary(rows),
        "First starts: NNDSVD-like and ours, 300 updates of bpg": first,
        "By problem, medians over the starts": _by_problem(rows),
    }
    draw = partial(_draw, curves)
    return report.write(out, "solvers", caption, tables, draw, details={"runs": rows})


def _problems(quick: bool) -> dict[str, tuple[SymmetricObjective, np.ndarray, int]]:
    """Return an objective, the mass of its rows and the number of clusters, by name."""
    digits, iris, wine = (datasets.load(name) for name in ("digits", "iris", "wine"))
    blobs = gaussians(2_000, "overlapping", shares=6)
    problems = {}
    for data in (iris,) if quick else (digits, iris, wine, blobs):
        k = data.n_clusters
        table = base_partitions(data.X, n_clusters=(k, 2 * k + 4), random_state=0).labels
        weights = np.full(table.shape[1], 1 / table.shape[1])
        ensemble, _ = Ensemble.from_table(table, weights)
        A = ensemble.similarity(np.float64)
        problems[f"consensus of {data.name}"] = (
            SymmetricObjective(A, ensemble.constant),
            ensemble.counts.astype(float),
            k,
        )
    X = digits.X[:: 10 if quick else 1]
    squares = pairwise_distances(X, metric="sqeuclidean")
    for name, W in (
        ("rbf of digits", np.exp(-squares / np.median(squares)) - np.eye(len(X))),
        ("kNN of digits", kneighbors_graph(X, 10)),
    ):
        A = Explicit(_normalised((W + W.T) / 2))
        problems[name] = (SymmetricObjective(A, inner(A, A)), np.ones(len(X)), 10)
    return problems


def _normalised(W: Any) -> Any:
    scale = 1 / np.sqrt(np.asarray(W.sum(axis=0)).ravel())
    if isinstance(W, np.ndarray):
        return W * scale[:, None] * scale
    return W.multiply(scale[:, None]).multiply(scale[None, :]).tocsr()


def _descend(
    solver: Callable[..., Any],
    objective: SymmetricObjective,
    H: np.ndarray,
    seconds: float,
    repeat: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the time and the loss after every update."""
    times: list[float] = []

    def clock(iteration: int, losses: np.ndarray) -> bool:
        times.append(perf_counter() - began)
        return times[-1] > seconds

    with threadpool_limits(limits=1, user_api="blas"):  # as the package does
        began = perf_counter()
        solve = partial(solver, objective, H[None])
        [solution] = iterate(solve, StopRule(2_000, tol=-1), scale=1, callback=clock)
    return np.array(times), solution.history


def _row(
    problem: str, start: str, solver: str, kept: list[Any], best: float, scale: float
) -> report.Row:
    row = {"problem": problem, "start": start, "solver": solver}
    row["gap"] = round(float((kept[0][1].min() - best) / scale), 9)
    row["updates"] = len(kept[0][1]) - 1
    for gap in GAPS:
        reached = [times[losses <= best + gap * scale][:1] for times, losses in kept]
        row[f"s to {gap:g}"] = (
            float(np.median([t[0] for t in reached])) if all(map(len, reached)) else None
        )
    row["ms an update"] = float(
        np.median([1e3 * times[-1] / max(len(times) - 1, 1) for times, _ in kept])
    )
    return row


def _summary(rows: list[report.Row]) -> list[report.Row]:
    """Compare each solver with bpg, over all problems and starts."""
    table = []
    for solver in SOLVERS:
        own = [row for row in rows if row["solver"] == solver]
        bpg = [row for row in rows if row["solver"] == "bpg"]
        gaps = [row["gap"] for row in own]
        line = {"solver": solver, "runs": len(own)}
        line["median gap"], line["largest gap"] = float(np.median(gaps)), max(gaps)
        for gap in GAPS:
            key = f"s to {gap:g}"
            line[f"reach {gap:g}"] = sum(row[key] is not None for row in own)
            pairs = [(a[key], b[key]) for a, b in zip(own, bpg, strict=True)]
            ratios = [a / b for a, b in pairs if a is not None and b is not None]
            line[f"time to {gap:g} / bpg's"] = float(np.median(ratios)) if ratios else None
        table.append(line)
    return table


def _by_problem(rows: list[report.Row]) -> list[report.Row]:
    table = []
    for problem, solver in dict.fromkeys((row["problem"], row["solver"]) for row in rows):
        own = [row for row in rows if (row["problem"], row["solver"]) == (problem, solver)]
        line = {"problem": problem, "solver": solver}
        line["best gap"] = min(row["gap"] for row in own)
        line["median gap"] = float(np.median([row["gap"] for row in own]))
        for gap in GAPS:
            reached = [row[f"s to {gap:g}"] for row in own if row[f"s to {gap:g}"] is not None]
            line[f"reach {gap:g}"] = f"{len(reached)} of {len(own)}"
            line[f"s to {gap:g}"] = float(np.median(reached)) if reached else None
        line["ms an update"] = float(np.median([row["ms an update"] for row in own]))
        table.append(line)
    return table


def _first_starts(objective: SymmetricObjective, k: int) -> dict[str, Solution]:
    ends = {}
    for start, make in (("nndsvd", nndsvd_start), ("spectral", spectral_start)):
        solve = partial(bregman_nmf, objective, make(objective.A, k)[None])
        [ends[start]] = iterate(solve, StopRule(300, tol=1e-6), objective.constant)
    return ends


def _compare(ends: dict[str, Solution], best: float, scale: float) -> report.Row:
    row: report.Row = {}
    for start, end in ends.items():
        row[f"{start}: gap at start"] = float((end.history[0] - best) / scale)
        row[f"{start}: gap"] = round(float((end.loss - best) / scale), 9)
        row[f"{start}: updates"] = end.n_iter
    return row


def _draw(curves: dict[str, Any], figure: Any) -> None:
    axes = figure.subplots(2, -(-len(curves) // 2), squeeze=False).ravel()
    for ax, (problem, runs) in zip(axes, curves.items(), strict=False):
        for solver, ((times, losses), best, scale) in runs.items():
            ax.loglog(times, np.maximum((losses - best) / scale, 1e-9), label=solver)
        ax.set_title(problem, fontsize="small")
        ax.set_xlabel("seconds")
    axes[0].set_ylabel("loss above the best")
    names = axes[0].get_legend_handles_labels()
    figure.legend(*names, title="spectral start", ncols=3, loc="outside upper center")
