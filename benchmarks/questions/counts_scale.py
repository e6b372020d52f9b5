"""What do runs of NMF with the loss of counts cost, in time and memory?

Our runs are timed until they are where scikit-learn's multiplicative updates end, from the same
starts on one thread each, and a fit to many sparse rows is measured in time and memory.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import fresh, report
from benchmarks.methods import metacluster
from benchmarks.methods.programs import KL
from benchmarks.questions import _counts_runs as runs_part
from benchmarks.runner import Progress
from nmfcluster.meta.divergence import Divergence, em
from nmfcluster.meta.runs import run_many

N_JOBS = 2
N_UPDATES = 500  # of scikit-learn
LARGE = (20_000, 2_000), 20, 0.05  # shape, programs, share of entries above 0
RUNS, MINUTES, TIMES = 100, 6.0, 2.5  # targets: minutes of these runs; memory over the table's


def run(quick: bool, out: Path) -> list[Path]:
    if quick:
        cases = [runs_part.dense((20, 30), 3, 20), runs_part.sparse((40, 30), 3, 0.3, 20)]
        repeats, n_runs, large = 1, 2, ((60, 40), 3, 0.3)
    else:
        cases = [
            runs_part.dense((200, 5_000), 10, N_UPDATES),
            runs_part.sparse((5_000, 2_000), 20, 0.05, N_UPDATES),
        ]
        repeats, n_runs, large = 5, 20, LARGE
    progress = Progress("counts_scale", len(cases) * runs_part.n_steps(repeats) + 3)
    speed = [row for case in cases for row in runs_part.measure(case, repeats, progress)]
    whole = _large(*large, n_runs, progress)
    tables = {
        "Runs, one thread each, to where scikit-learn's end": speed,
        f"Many sparse rows, {N_JOBS} threads, each part in a fresh process": whole,
    }
    notes = [*runs_part.verdicts(speed), *_verdicts(whole)]
    draw, caption = partial(_draw, speed), _caption(cases[0].n_updates, repeats)
    return report.write(out, "counts_scale", caption, tables, draw, notes)


def _caption(n_updates: int, repeats: int) -> str:
    return (
        "Time and memory of NMFMetaCluster(loss='kullback-leibler'). Counts are Poisson numbers "
        "whose means are a product of gamma distributed factors. scikit-learn is NMF(solver='mu', "
        f"beta_loss='{KL}', init='custom', tol=0) with {n_updates} updates in float64 and in "
        "float32. Ours is the solver of the runs, in float32 as in the estimator, from the same "
        f"starts, {repeats} of them, one a repeat, medians of interleaved repeats; it makes as "
        "many updates as bring its loss to scikit-learn's, both in float64 from the factors. 15 "
        "updates of least squares come before the first, and are in its seconds. 'to its own stop' "
        "is a run as the estimator makes it, and '% below' by how much its loss is smaller than "
        "that of scikit-learn in float64. Many rows: the table is drawn sparse; 'runs' are the "
        "runs alone, 'fit' is the whole estimator. MiB are on top of the table."
    )


def _large(
    shape: tuple[int, int], k: int, share: float, n_runs: int, progress: Progress
) -> list[report.Row]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "table.npz")
        X = runs_part.sparse_counts(shape, k, share)
        fresh.save(file, X, np.arange(X.shape[0]))
        stored = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 2**20
        about = f"{shape[0]:,} x {shape[1]:,}, {X.nnz:,} entries above 0, k = {k}"
        del X
        progress.step("the large table")
        rows = []
        for name, function in (("runs", runs_alone), ("fit", whole_fit)):
            costs = fresh.call(function, file, k, n_runs)
            told = {"table": about, "MiB of it": stored, "what": name, "runs": n_runs}
            told |= {"s": costs["seconds"], "s a run": costs["seconds"] / n_runs}
            told |= {
                "MiB on top": costs["mebibytes"],
                "over the table": costs["mebibytes"] / stored,
            }
            rows.append(told)
            progress.step(f"the large table, {name}")
    return rows


def runs_alone(file: str, k: str, n_runs: str) -> dict[str, Any]:
    """Return the costs of the runs of a fit. The process must be fresh."""
    X = fresh.read(file)[0]
    plan = metacluster.plan(int(k), em, loss=KL, n_jobs=N_JOBS)
    sizes, rng = np.full(int(n_runs), int(k)), np.random.RandomState(0)
    with threadpool_limits(limits=1, user_api="blas"):  # as in a fit
        return fresh.cost(lambda: run_many(Divergence(X).for_runs(), plan, sizes, rng))[1]


def whole_fit(file: str, k: str, n_runs: str) -> dict[str, Any]:
    """Return the costs of a fit. The process must be fresh."""
    X = fresh.read(file)[0]
    options = {"loss": KL, "n_estimators": int(n_runs), "n_jobs": N_JOBS}
    return fresh.cost(lambda: metacluster.fit(X, int(k), 0, **options))[1]


def _verdicts(whole: list[report.Row]) -> list[str]:
    rows = {row["what"]: row for row in whole}
    minutes = RUNS * rows["runs"]["s a run"] / 60
    times = rows["fit"]["over the table"]
    in_time, in_room = ("met" if m else "missed" for m in (minutes <= MINUTES, times <= TIMES))
    return [
        f"{rows['runs']['table']}: {RUNS} runs at {report.cell(rows['runs']['s a run'])} s take "
        f"{minutes:.1f} minutes (target: {MINUTES:g}): {in_time}.",
        f"A fit takes {times:.2f} times the memory of the table on top of it (target: {TIMES:g}): "
        f"{in_room}.",
    ]


def _draw(speed: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    rows = [row for row in speed if "times faster" in row][::-1]
    names = [f"{row['table']}\nagainst {row['beside']}" for row in rows]
    ax.barh(range(len(rows)), [row["times faster"] for row in rows], height=0.5)
    ax.plot([row["target"] for row in rows], range(len(rows)), "k|", ms=20, label="target")
    ax.set(yticks=range(len(rows)), yticklabels=names, xlabel="times faster", xscale="log")
    ax.legend(fontsize="x-small")
