"""What do many runs of NMF cost on a GPU, and with torch on the CPU, beside numpy on two cores?

The table is where its runs are: an array of numpy, or a tensor of torch. Every column has a process
of its own, since SciPy reads SCIPY_ARRAY_API when it is imported.
"""

from __future__ import annotations

import tempfile
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn

from benchmarks import fresh, report
from benchmarks.methods import metacluster
from benchmarks.methods.programs import KL
from benchmarks.questions.counts_scale import dense, sparse_counts
from benchmarks.runner import Progress

HOST, TORCH, CUDA = "numpy", "torch, CPU", "torch, CUDA"
RUNS, FEW = 100, 4  # runs that are asked for; of the fit that comes first
# of a fit: six minutes for all, with a GPU
SECONDS = {HOST: 30.0, TORCH: 30.0, CUDA: 90.0}
LONGER = 8  # times as many, if all runs are asked for
COUNTS, SQUARES = "sparse counts", "dense squares"
LOSSES = {COUNTS: KL, SQUARES: "frobenius"}
THREADS = 2, {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # one core each


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    most = 2 * FEW if quick else RUNS
    rows: list[report.Row] = []
    columns, skipped = _columns()
    progress = Progress("devices", len(LOSSES) * (1 + len(columns)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in LOSSES:
            about = _write(table, quick, folder / "table.npz")
            progress.step(f"{table} made")
            for where in columns:
                seconds = SECONDS[where] * (LONGER if all_seeds else 1)
                arguments = table, about["k"], where, folder, most, seconds
                found = fresh.call(fits, *arguments, SCIPY_ARRAY_API="1", **THREADS[1])
                rows.append(_row(about, where, found, rows, folder))
                progress.step(f"{table}, {where}")
    tables = {"NMFMetaCluster where its table is": rows}
    notes = [_verdict(rows, table) for table in LOSSES]
    return report.write(
        out,
        "devices",
        _caption(most, all_seeds),
        tables,
        partial(_draw, rows),
        notes,
        skipped,
    )


def _columns() -> tuple[list[str], dict[str, str]]:
    """Return where tables are fitted, and why they are not elsewhere."""
    if find_spec("torch") is None:
        return [HOST], dict.fromkeys((TORCH, CUDA), "torch is not installed")
    import torch

    if not torch.cuda.is_available():
        return [HOST, TORCH], {
            CUDA: "there is no CUDA device here: columns are of the CPU alone"
        }
    return [HOST, TORCH, CUDA], {}


def _write(table: str, quick: bool, file: Path) -> dict[str, Any]:
    """Write a table in float32, and return what it is."""
    if table == COUNTS:
        shape, k, share = ((60, 40), 3, 0.3) if quick else ((20_000, 2_000), 20, 0.05)
        X = sparse_counts(shape, k, share)
        stored = f", {X.nnz:,} above 0"
    else:
        shape, k = ((20, 30), 3) if quick else ((200, 5_000), 10)
        X, stored = dense(shape, k, 0).X, ""
    fresh.save(file, X.astype(np.float32), np.arange(shape[0]))
    return {
        "name": table,
        "k": k,
        "table": f"{table}, {shape[0]:,} x {shape[1]:,}{stored}",
    }


def fits(
    table: str, k: str, where: str, folder: str, most: str, seconds: str
) -> dict[str, Any]:
    """Return the costs of a fit of many runs, as many as take some seconds. The process is fresh.

    A fit of few runs comes first: it tells how many that are, loads what a device needs, and its
    labels are written to be held beside those of the other columns.
    """
    X = _there(fresh.read(Path(folder, "table.npz"))[0], where)
    options = {"loss": LOSSES[table], "n_jobs": THREADS[0]}
    began = perf_counter()
    model = metacluster.fit(X, int(k), 0, n_estimators=FEW, **options)
    first = perf_counter() - began
    np.save(Path(folder, f"{table} {where}.npy"), _here(model.labels_))
    found = {"seconds": first, "runs": FEW, "loss": float(model.reconstruction_err_)}
    n_runs = int(min(float(seconds) / first * FEW, int(most)))
    if n_runs > FEW:
        began = perf_counter()
        metacluster.fit(X, int(k), 0, n_estimators=n_runs, **options)
        found |= {"seconds": perf_counter() - began, "runs": n_runs}
    return found | (_of_device() if where == CUDA else {})


def _there(X: Any, where: str) -> Any:
    """Return a table where it is fitted."""
    if where == HOST:
        return X
    import torch

    sklearn.set_config(array_api_dispatch=True)
    device = "cuda" if where == CUDA else "cpu"
    if not sp.issparse(X):
        return torch.asarray(X, device=device)
    return torch.sparse_csr_tensor(X.indptr, X.indices, X.data, X.shape, device=device)


def _here(array: Any) -> np.ndarray:
    return np.asarray(array if isinstance(array, np.ndarray) else array.cpu())


def _of_device() -> dict[str, Any]:
    import torch

    peak = torch.cuda.max_memory_allocated() / 2**20
    return {"MiB": peak, "device": torch.cuda.get_device_name()}


def _row(
    about: dict[str, Any],
    where: str,
    found: dict[str, Any],
    before: list[report.Row],
    folder: Path,
) -> report.Row:
    """Return the row of a column; before it is that of numpy, to the same table."""
    a_run = found["seconds"] / found["runs"]
    row: report.Row = {"table": f"{about['table']}, k = {about['k']}", "where": where}
    row |= {"runs": found["runs"], "s": found["seconds"], "s a run": a_run}
    row |= {f"min for {RUNS}": RUNS * a_run / 60, "loss of few": f"{found['loss']:.4f}"}
    if where != HOST:
        [ours] = [
            r for r in before if r["table"] == row["table"] and r["where"] == HOST
        ]
        labels = [
            np.load(folder / f"{about['name']} {name}.npy") for name in (HOST, where)
        ]
        row |= {"times as fast as numpy": ours["s a run"] / a_run}
        row |= {"same labels of few": float(np.mean(labels[0] == labels[1]))}
    if where == CUDA:
        row |= {"device": found["device"], "MiB there": found["MiB"]}
    return row


def _caption(most: int, all_seeds: bool) -> str:
    torch = f" {version('torch')}" if find_spec("torch") else ""
    longer = LONGER if all_seeds else 1
    times = ", ".join(f"{where} {SECONDS[where] * longer:g} s" for where in SECONDS)
    return (
        f"Time of whole fits of NMFMetaCluster with n_jobs={THREADS[0]} and one core per thread, "
        f"in float32. The data matrix is a NumPy array or a tensor of torch{torch}. Each fit runs "
        "in a fresh process with SCIPY_ARRAY_API=1 and array_api_dispatch=True. Counts have "
        f"loss='{KL}' and are drawn as in counts_scale; the dense matrix has loss='frobenius'. A "
        f"fit of {FEW} runs comes first: its reconstruction_err_ is 'loss of few', and its labels "
        f"are compared with those of NumPy. Then {most} runs are made, or as many as take about "
        f"this long: {times}. If {FEW} runs take longer than that, no others are made. 'min for "
        f"{RUNS}' is the number of minutes at the same time per run."
    )


def _verdict(rows: list[report.Row], table: str) -> str:
    own = [row for row in rows if row["table"].startswith(table)]
    told = [f"{row['where']} {report.cell(row['s a run'])} s" for row in own]
    lacking = "" if own[-1]["where"] == CUDA else " No GPU was there."
    return f"A run of {own[0]['table']}: {'; '.join(told)}.{lacking}"


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    names = [f"{row['table'].split(',')[0]}\n{row['where']}" for row in rows]
    colours = [f"C{list(SECONDS).index(row['where'])}" for row in rows]
    ax.barh(names, [row["s a run"] for row in rows], color=colours)
    ax.invert_yaxis()
    ax.set(xlabel="seconds a run", xscale="log")
