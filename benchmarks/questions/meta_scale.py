"""What do many runs of NMF and their metaclusters cost, in time and memory?

Our runs are timed until they are as good as scikit-learn's, the tensor factorization beside that of
a dense tensor, and whole fits beside the best of as many runs of scikit-learn.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks import fresh, report
from benchmarks.datasets import text, topics
from benchmarks.methods import cnmf, metacluster, nmf_runs, peer_tensorly
from benchmarks.questions import _meta_runs as runs_part
from benchmarks.questions import _meta_tensor as tensor_part
from benchmarks.runner import Progress
from nmfcluster.datasets import make_biclusters

OURS, SKLEARN, CNMF = "ours", "scikit-learn, best of the runs", "cNMF-style, of the same runs"
K = 10
#: tables of the whole fits: shape, number of runs, repeats
FITS = {
    "planted, 60 x 20,000": ((60, 20_000), 50, 3),
    "planted, 200 x 5,000": ((200, 5_000), 20, 3),
    "documents, 20,000 x 10,000": ((20_000, 10_000), 20, 1),
}
TOY_FITS = {"documents, 60 x 100": ((60, 100), 2, 1)}
MINUTE = 60.0  # seconds for 50 runs: the target
#: tables of the tensor factorization: shape, number of runs, updates and repeats, dtype
TENSORS = (((100, 2_000), 10, 60, 5, np.float64), ((200, 5_000), 20, 30, 3, np.float32))
TOY_TENSORS = (((20, 30), 3, 3, 1, np.float64),)


def run(quick: bool, out: Path) -> list[Path]:
    repeats, k, n_runs, longest = (1, 3, 3, 64) if quick else (3, K, 20, runs_part.LONGEST)
    shapes = [(20, 40)] if quick else [(200, 5_000), (60, 20_000)]
    n_data, n_starts, noises = (1, 2, (0.25,)) if quick else (12, 8, (0.0, 0.25, 0.75))
    fits, tensors = (TOY_FITS, TOY_TENSORS) if quick else (FITS, TENSORS)
    cases, skipped = runs_part.cases(shapes, k, n_runs, real=not quick)
    why = peer_tensorly.reason()
    skipped |= dict.fromkeys(peer_tensorly.SOLVERS, why) if why else {}
    per_tensor = 1 if why else 1 + len(peer_tensorly.SOLVERS)
    progress = Progress(
        "meta_scale",
        len(cases) * runs_part.n_steps(repeats)
        + per_tensor * sum(tensor[3] for tensor in tensors)
        + 2 * len(noises)
        + sum(2 * fit[2] for fit in fits.values()),
    )
    ends = [runs_part.optima(case) for case in cases]
    speed = [row for case in cases for row in runs_part.measure(case, repeats, progress, longest)]
    tensor = [
        row
        for shape, tensor_runs, n_updates, n, dtype in tensors
        for row in tensor_part.compare(shape, k, tensor_runs, n_updates, n, dtype, progress)
    ]
    starts = tensor_part.starts(n_data, n_starts, noises, progress)
    whole = _whole(fits, k, progress)
    tables = {
        f"{n_runs} runs, k = {k}, to where scikit-learn's end": speed,
        "Where the runs end": ends,
        "Positive tensor factorization": tensor,
        "Starts that reach the best loss of the tensor factorization": starts,
        "Whole fits, each in a fresh process": whole,
    }
    notes = [
        *runs_part.verdicts(speed),
        *tensor_part.verdicts(tensor),
        tensor_part.verdict_of_starts(starts),
        *_verdicts(whole),
    ]
    draw = partial(_draw, speed, tensor, whole)
    caption = _caption(repeats, longest, n_data, n_starts)
    return report.write(out, "meta_scale", caption, tables, draw, notes, skipped)


def _caption(repeats: int, longest: int, n_data: int, n_starts: int) -> str:
    return (
        "Time and memory of NMFMetaCluster; medians of interleaved repeats on two cores. Runs: "
        "scikit-learn is NMF(solver='cd', init='custom') with its defaults otherwise, under "
        "joblib with n_jobs=2, in processes (or threads) started before, on one BLAS thread each. "
        "The others start from the same factors and run, batched as in the estimator on two "
        "threads, as many updates as bring the median, or the mean, of their losses to that of "
        "scikit-learn's, "
        f"{repeats} repeats; a loss is |X - WH|^2 / |X|^2, computed in float64 from the factors. "
        "'times faster' is scikit-learn's time, in processes or threads, whichever is shorter, "
        "over that of a row; the next column takes processes. 'mu' are the multiplicative rules "
        "of the paper, ours. A row without a time did not reach the loss in "
        f"{longest:,} updates. Planted tables are of `make_biclusters`, noise "
        f"{runs_part.NOISE:g}. Tensor factorization: of the biclusters of runs on planted data, "
        "from the same random start; ours from the factors on one thread, tensorly on the dense "
        "tensor, which is formed before, on as many threads as it takes, each update with its "
        f"loss. 'to the error' is to {tensor_part.NEAR:g} times the relative error at which ours "
        f"ends with its defaults. Starts: {n_starts} of each kind on {n_data} data sets, run to "
        "convergence; a start reaches the best if its loss is within 0.1 % of it. 'Chosen by' "
        f"tells which of the first {tensor_part.N_INIT} starts from runs is taken: that with the "
        "smallest loss of the tensor, or that with the smallest relative error of X after the "
        "final NMF. Whole fits: defaults, but runs see the table itself, as scikit-learn's do, "
        f"n_jobs={runs_part.N_JOBS}, in threads, which the time, CPU time of all cores and "
        "memory on top of the data belong to; scikit-learn's runs have defaults, too, and "
        "cNMF-style takes them on."
    )


def _whole(fits: dict[str, Any], k: int, progress: Progress) -> list[report.Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (shape, n_runs, repeats)) in enumerate(fits.items()):
            file = Path(folder, f"{number}.npz")
            stored = save_table(file, name, shape, k)
            measured: dict[str, list[report.Row]] = {}
            for repeat in range(repeats):
                for function in (fit_ours, fit_sklearn):
                    results = fresh.call(function, file, k, n_runs, repeat)
                    progress.step(f"{name}, {function.__name__}")
                    for method, told in results.items():
                        measured.setdefault(method, []).append(told)
            medians = {
                method: {key: float(np.median([one[key] for one in own])) for key in own[0]}
                for method, own in measured.items()
            }
            base = medians[OURS]["s"]
            rows += [
                {"table": name, "MiB of it": stored, "runs": n_runs, "method": method}
                | {"times slower": told["s"] / base}
                | told
                for method, told in medians.items()
            ]
    return rows


def save_table(file: Path, name: str, shape: tuple[int, int], k: int) -> float:
    """Write planted biclusters, or weighted documents as a sparse table; return their MiB."""
    if name.startswith("planted"):
        X = make_biclusters(shape, k, noise=runs_part.NOISE, random_state=0)[0]
        fresh.save(file, X, np.arange(len(X)))
        return X.nbytes / 2**20
    X = sp.csr_array(text.weighted(topics.topics(*shape, k).X, "tfidf"))
    fresh.save(file, X, np.arange(X.shape[0]))
    return sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 2**20


def _relative_error(X: Any, W: np.ndarray, H: np.ndarray) -> float:
    size = float(X.multiply(X).sum()) if sp.issparse(X) else float(np.vdot(X, X))
    rest = size - 2 * np.vdot(X @ H.T, W) + np.vdot(W.T @ W, H @ H.T)
    return float(np.sqrt(max(rest, 0) / size))


def fit_ours(file: str, k: str, n_runs: str, seed: str) -> dict[str, Any]:
    """Return time, memory and error of our fit. The process must be fresh."""
    X = fresh.read(file)[0]
    before, began, cpu = fresh.memory("VmRSS"), perf_counter(), process_time()
    options = {"n_estimators": int(n_runs), "n_jobs": runs_part.N_JOBS}
    model = metacluster.fit(X, int(k), int(seed), resample=None, **options)  # as scikit-learn's
    told = _costs(before, began, cpu)
    return {OURS: told | {"relative error": _relative_error(X, model.factor_, model.components_)}}


def fit_sklearn(file: str, k: str, n_runs: str, seed: str) -> dict[str, Any]:
    """Return time, memory and error of scikit-learn's runs, and of a consensus of them."""
    X = fresh.read(file)[0]
    before, began, cpu = fresh.memory("VmRSS"), perf_counter(), process_time()
    with threadpool_limits(limits=1, user_api="blas"):  # as in our fit: one core for a thread
        runs = nmf_runs.run_many(X, int(k), int(n_runs), int(seed), runs_part.N_JOBS)
        best = _costs(before, began, cpu)
        W, H = cnmf.consensus(X, runs, int(k), int(seed))
        consensus = _costs(before, began, cpu)
    return {
        SKLEARN: best | {"relative error": _relative_error(X, runs[0].W, runs[0].H)},
        CNMF: consensus | {"relative error": _relative_error(X, W, H)},
    }


def _costs(before: int, began: float, cpu: float) -> dict[str, float]:
    return {
        "s": perf_counter() - began,
        "s of all cores": process_time() - cpu,
        "MiB on top": (fresh.memory("VmHWM") - before) / 1024,
    }


def _verdicts(whole: list[report.Row]) -> list[str]:
    told = []
    for name in dict.fromkeys(row["table"] for row in whole):
        rows = {row["method"]: row for row in whole if row["table"] == name}
        own = rows[OURS]
        promise = ""
        if own["runs"] == 50:
            met = "met" if own["s"] <= MINUTE else "missed"
            promise = f" (target: a matter of a minute): {met}"
        told.append(
            f"{name}, {own['runs']} runs: {report.cell(own['s'])} s{promise}; scikit-learn takes "
            f"{rows[SKLEARN]['times slower']:.2f} times as long."
        )
    return told


def _draw(
    speed: list[report.Row], tensor: list[report.Row], whole: list[report.Row], figure: Any
) -> None:
    figure.set_size_inches(9, 13)
    top, middle, bottom = figure.subplots(3, 1, height_ratios=(3, 2, 2))
    runs_part.draw(speed, top)
    tensor_part.draw(tensor, middle)
    tables = list(dict.fromkeys(row["table"] for row in whole))[::-1]
    for place, method in enumerate((OURS, SKLEARN, CNMF)):
        own = {row["table"]: row["s"] for row in whole if row["method"] == method}
        places = np.arange(len(tables)) + 0.25 * (1 - place)
        bottom.barh(places, [own[name] for name in tables], height=0.25, label=method)
    bottom.set(yticks=range(len(tables)), yticklabels=[t.replace(", ", "\n") for t in tables])
    bottom.set(xlabel="s, whole fit")
    bottom.legend(fontsize="small")
