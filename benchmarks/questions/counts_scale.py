"""What do runs of NMF with the loss of counts cost, in time and memory?

A fit of a single run is held beside scikit-learn's multiplicative updates, on one thread each. Fits
to many sparse rows, and a whole analysis beside that of cNMF, are measured in time and memory.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import fresh, kept, report
from benchmarks.kept import Kept, Run
from benchmarks.methods import metacluster, peer, peer_cnmf
from benchmarks.methods.peer import NoClusteringError
from benchmarks.methods.programs import KL, N_JOBS
from benchmarks.questions._programs_data import (
    SETTINGS,
    TOY,
    Planted,
    Setting,
    kullback,
    scores,
)
from benchmarks.runner import Progress, interleaved

N_UPDATES = 500  # of scikit-learn
LARGE = (20_000, 2_000), 20, 0.05  # shape, programs, share of entries above 0
# targets: minutes of these runs; memory over the table's
RUNS, MINUTES, TIMES = (100, 6.0, 2.5)
OURS, DTYPES = "ours", (np.float64, np.float32)
TARGETS = {("dense", "float64"): 15.0, ("dense", "float32"): 5.0}
TARGETS |= {("sparse", dtype.__name__): 50.0 for dtype in DTYPES}  # times as fast
THREADS = (2, 1)  # of the fits to the large table
CELLS = SETTINGS[3]  # of 1,000 cells and 2,000 genes
OUR_RUNS = 20  # the default of NMFMetaCluster
COLUMNS = ("table", "method")
WHOLE = "whole analyses"  # heading of the details
# of the gamma distributions of factors, dense and sparse: most are small
SHAPE = (0.3, 0.2)


@dataclass(frozen=True)
class Case:
    """A table of counts, dense or CSR, and the number of programs of a run."""

    name: str
    X: Any
    k: int
    n_updates: int  # of scikit-learn

    @property
    def kind(self) -> str:
        return "sparse" if sp.issparse(self.X) else "dense"


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    if quick:
        cases = [dense((20, 30), 3, 20), sparse((40, 30), 3, 0.3, 20)]
        repeats, n_runs, large, cells = 1, 2, ((60, 40), 3, 0.3), TOY[0]
    else:
        cases = [
            dense((200, 5_000), 10, N_UPDATES),
            sparse((5_000, 2_000), 20, 0.05, N_UPDATES),
        ]
        repeats, n_runs, large = 5 if all_seeds else 1, 20, LARGE
        cells = CELLS
    steps = len(cases) * repeats * (1 + len(DTYPES)) + 1 + len(THREADS) + 2
    progress = Progress("counts_scale", steps)
    speed = [row for case in cases for row in measure(case, repeats, progress)]
    whole = whole_fits(*large, n_runs, progress)
    reason = peer.reason(peer.CNMF_PYTHON)
    package = {peer_cnmf.NAME: "cnmf"}
    others = kept.read(
        out / "counts_scale.json",
        package if reason else {},
        COLUMNS,
        {"table": [cells.name]},
        1,
        WHOLE,
    )
    analyses, failed = whole_analyses(cells, not reason, others, progress)
    tables = {
        "A fit of one run beside scikit-learn, one thread each": speed,
        "Many sparse rows, each fit in a fresh process": whole,
        "A whole analysis beside cNMF, two cores each": rows_of_analyses(analyses),
    }
    notes = [
        *verdicts(speed),
        *verdicts_of_fits(whole),
        *verdicts_of_analyses(analyses, others),
        *others.notes(),
    ]
    versions = others.versions({} if reason else package)
    skipped = others.missing({peer_cnmf.NAME: reason} if reason else {}) | failed
    draw = partial(_draw, speed)
    caption = _caption(cases[0].n_updates, repeats, cells.n_samples, versions.values())
    details = others.in_details(COLUMNS, analyses, WHOLE)
    return report.write(
        out, "counts_scale", caption, tables, draw, notes, skipped, details, versions
    )


def _caption(
    n_updates: int, repeats: int, n_cells: int, versions: Iterable[str]
) -> str:
    named = "".join(f" ({version})" for version in versions)
    return (
        "Time and memory of NMFMetaCluster(loss='kullback-leibler'). Counts are Poisson numbers "
        "whose means are a product of gamma distributed factors. scikit-learn is "
        f"NMF(solver='mu', beta_loss='{KL}', init='random', tol=0) with {n_updates} updates, in "
        "float64 and in float32. Ours is a whole fit with n_estimators=1 and resample=None, in "
        f"float32, until it stops by itself. Both use {repeats} random starts, one in each "
        "repeat; values are medians of interleaved repeats. '% below' states how much smaller "
        "our loss is; both losses are computed in float64 from the factors. With many rows, the "
        "matrix is drawn as a sparse one. MiB are on top of the data matrix. A whole analysis is "
        f"that of one matrix of {n_cells:,} cells, drawn as in `programs`, with the true number of "
        "programs. 'ours' is "
        f"NMFMetaCluster(loss='{KL}', n_jobs={N_JOBS}) with its defaults, and once with as many "
        f"runs as cNMF{named}, which has its defaults, all genes and two processes. Its MiB are "
        "those of its largest process. F1 is that of `programs`."
    )


def dense(shape: tuple[int, int], k: int, n_updates: int) -> Case:
    """Return counts of mean 2."""
    rng = np.random.default_rng(0)
    W, H = (rng.gamma(SHAPE[0], size=size) for size in ((shape[0], k), (k, shape[1])))
    means = W @ H
    X = rng.poisson(means * (2 / means.mean())).astype(float)
    return Case(f"dense, {shape[0]:,} x {shape[1]:,}, k = {k}", X, k, n_updates)


def sparse(shape: tuple[int, int], k: int, share: float, n_updates: int) -> Case:
    X = sparse_counts(shape, k, share)
    name = f"sparse, {shape[0]:,} x {shape[1]:,}, {share:.0%} above 0, k = {k}"
    return Case(name, X, k, n_updates)


def sparse_counts(
    shape: tuple[int, int], k: int, share: float, block: int = 2_000
) -> Any:
    """Return a CSR table of counts, of which about this share are above 0; drawn by rows."""
    rng = np.random.default_rng(0)
    W, H = (rng.gamma(SHAPE[1], size=size) for size in ((shape[0], k), (k, shape[1])))
    level = _level(W[:block] @ H, share)
    parts = [
        sp.csr_array(rng.poisson(level * (W[first : first + block] @ H)).astype(float))
        for first in range(0, shape[0], block)
    ]
    X = sp.csr_array(sp.vstack(parts))
    X.indices, X.indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))
    return X


def _level(means: np.ndarray, share: float) -> float:
    """Return what means are multiplied by so that a share of Poisson counts is above 0."""
    low, high = 1e-6 / means.mean(), 10 / means.mean()
    for _ in range(40):
        middle = np.sqrt(low * high)
        if (1 - np.exp(-middle * means)).mean() > share:
            high = middle
        else:
            low = middle
    return float(low)


def sklearn_run(case: Case, dtype: Any, seed: int) -> tuple[float, float]:
    """Return seconds and loss of multiplicative updates."""
    options = {"init": "random", "solver": "mu", "beta_loss": KL, "tol": 0}
    model = NMF(case.k, max_iter=case.n_updates, random_state=seed, **options)
    X = case.X.astype(dtype)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = perf_counter()
        W = model.fit_transform(X)
        seconds = perf_counter() - began
    return seconds, kullback(case.X, W, model.components_)


def our_run(case: Case, seed: int) -> tuple[float, float]:
    """Return seconds and loss of a fit of a single run, in float32."""
    X, options = (
        case.X.astype(np.float32),
        {"n_estimators": 1, "resample": None, "n_jobs": 1},
    )
    with threadpool_limits(limits=1):
        began = perf_counter()
        model = metacluster.fit(X, case.k, seed, loss=KL, **options)
        seconds = perf_counter() - began
    return seconds, kullback(case.X, model.factor_, model.components_)


def measure(case: Case, repeats: int, progress: Progress) -> list[report.Row]:
    """Return a row for each dtype of scikit-learn; every repeat has another start."""
    tasks: dict[str, Any] = {d.__name__: partial(sklearn_run, case, d) for d in DTYPES}
    runs = interleaved(tasks | {OURS: partial(our_run, case)}, repeats, progress)
    times, losses = (
        {name: np.array(own)[:, i] for name, own in runs.items()} for i in (0, 1)
    )
    rows = []
    for dtype in tasks:
        ratios = times[dtype] / times[OURS]
        row: report.Row = {"table": case.name, "beside": dtype}
        row |= {"times faster": float(np.median(ratios))}
        row |= {"range": f"{report.cell(ratios.min())} to {report.cell(ratios.max())}"}
        row |= {"s, scikit-learn": float(np.median(times[dtype]))}
        row |= {
            "s, ours": float(np.median(times[OURS])),
            "target": TARGETS[case.kind, dtype],
        }
        row |= {"loss": f"{np.median(losses[dtype]):.1f}"}
        below = 100 * (1 - losses[OURS] / losses[dtype])
        rows.append(row | {"% below": float(np.median(below))})
    return rows


def verdicts(rows: list[report.Row]) -> list[str]:
    return [
        f"{row['table']}, beside scikit-learn's {row['beside']}: "
        f"{report.cell(row['times faster'])} times as fast (target: {row['target']:g}): "
        f"{'met' if row['times faster'] >= row['target'] else 'missed'}."
        for row in rows
    ]


def whole_fits(
    shape: tuple[int, int], k: int, share: float, n_runs: int, progress: Progress
) -> list[report.Row]:
    """Return the costs of fits to a large sparse table, by the number of threads."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "table.npz")
        X = sparse_counts(shape, k, share)
        fresh.save(file, X, np.arange(X.shape[0]))
        stored = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 2**20
        about = f"{shape[0]:,} x {shape[1]:,}, {X.nnz:,} entries above 0, k = {k}"
        del X
        progress.step("the large table")
        rows = []
        for n_jobs in THREADS:
            costs = fresh.call(whole_fit, file, k, n_runs, n_jobs)
            told = {
                "table": about,
                "MiB of it": stored,
                "threads": n_jobs,
                "runs": n_runs,
            }
            told |= {"s": costs["seconds"], "s a run": costs["seconds"] / n_runs}
            memory = costs["mebibytes"]
            rows.append(
                told | {"MiB on top": memory, "over the table": memory / stored}
            )
            progress.step(f"the large table, {n_jobs} threads")
    return rows


def whole_fit(file: str, k: str, n_runs: str, n_jobs: str) -> dict[str, Any]:
    """Return the costs of a fit. The process must be fresh."""
    X = fresh.read(file)[0]
    options = {"loss": KL, "n_estimators": int(n_runs), "n_jobs": int(n_jobs)}
    return fresh.cost(lambda: metacluster.fit(X, int(k), 0, **options))[1]


def verdicts_of_fits(whole: list[report.Row]) -> list[str]:
    fit, alone = whole
    minutes, times = RUNS * fit["s a run"] / 60, fit["over the table"]
    in_time, in_room = (
        "met" if m else "missed" for m in (minutes <= MINUTES, times <= TIMES)
    )
    return [
        f"{fit['table']}: {RUNS} runs at {report.cell(fit['s a run'])} s take {minutes:.1f} "
        f"minutes in two threads (target: {MINUTES:g}): {in_time}.",
        f"A fit takes {times:.2f} times the memory of the table on top of it (target: {TIMES:g}): "
        f"{in_room}; in one thread {alone['over the table']:.2f} times.",
    ]


def whole_analyses(
    cells: Setting, cnmf: bool, others: Kept, progress: Progress
) -> tuple[kept.Runs, dict[str, str]]:
    """Return the costs of whole analyses by table and method, and why cNMF has none."""
    runs, failed = dict(others.runs), dict(others.failed)
    planted = cells.draw(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cells.npz")
        np.savez(file, X=planted.X, W=planted.W, H=planted.H)
        for n_runs in (OUR_RUNS, peer_cnmf.RUNS):
            found = fresh.call(whole_analysis, file, n_runs)
            runs[cells.name, f"{OURS}, {n_runs} runs"] = [found]
    progress.step("a whole analysis")
    if cnmf:
        try:
            W, H, costs = peer_cnmf.find_with_costs(planted.X, [cells.k], 0)
        except (NoClusteringError, RuntimeError) as why:
            failed[peer_cnmf.NAME] = str(why).strip().splitlines()[-1]
        else:
            figures = costs | {"F1": scores(planted, W, H)["F1"]}
            runs[cells.name, peer_cnmf.NAME] = [figures]
    progress.step(f"a whole analysis by {peer_cnmf.NAME}")
    return runs, failed


def whole_analysis(file: str, n_runs: str) -> Run:
    """Return the costs of a fit to counts with known programs. The process must be fresh."""
    with np.load(file) as stored:
        planted = Planted(stored["X"], stored["W"], stored["H"])
    k = len(planted.H)
    options = {"loss": KL, "n_estimators": int(n_runs), "n_jobs": N_JOBS}
    model, costs = fresh.cost(lambda: metacluster.fit(planted.X, k, 0, **options))
    found = scores(planted, model.factor_, model.components_)
    return {**costs, "F1": found["F1"]}


def rows_of_analyses(runs: kept.Runs) -> list[report.Row]:
    return [
        {
            "table": table,
            "method": method,
            "s": run["seconds"],
            "MiB": run["mebibytes"],
            "F1": f"{run['F1']:.3f}",
        }
        for (table, method), [run] in runs.items()
    ]


def verdicts_of_analyses(runs: kept.Runs, others: Kept) -> list[str]:
    """Compare our analyses with that of cNMF, if it was measured in this run."""
    [theirs] = [key for key in runs if key[1] == peer_cnmf.NAME] or [None]
    if theirs is None or theirs in others.commits:
        return []
    [its] = runs[theirs]
    told = []
    for (table, method), [run] in runs.items():
        if method != peer_cnmf.NAME:
            told.append(
                f"{table}: {peer_cnmf.NAME} takes {its['seconds'] / run['seconds']:.1f} times the "
                f"seconds and {its['mebibytes'] / run['mebibytes']:.1f} times the memory of "
                f"'{method}'."
            )
    return told


def _draw(speed: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    rows = speed[::-1]
    names = [f"{row['table']}\nagainst {row['beside']}" for row in rows]
    ax.barh(range(len(rows)), [row["times faster"] for row in rows], height=0.5)
    ax.plot(
        [row["target"] for row in rows], range(len(rows)), "k|", ms=20, label="target"
    )
    ax.set(
        yticks=range(len(rows)), yticklabels=names, xlabel="times faster", xscale="log"
    )
    ax.legend(fontsize="x-small")
