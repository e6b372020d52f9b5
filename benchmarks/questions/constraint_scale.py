"""What does a clustering under constraints cost, in time and memory?

On 3,000 samples it is timed beside packages that users install for this. On 20,000 documents the
similarities would fill gigabytes.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from nmfcluster._engine.run import iterate
from nmfcluster._engine.stopping import StopRule
from threadpoolctl import threadpool_limits

from benchmarks import datasets, fresh, methods, report, trials
from benchmarks.datasets import text
from benchmarks.datasets.gaussians import gaussians
from benchmarks.datasets.topics import topics
from benchmarks.runner import Progress, interleaved
from nmfcluster._engine.starts import random_start
from nmfcluster._engine.symmetric import SymmetricObjective, bregman_nmf
from nmfcluster.affinity import make_affinity
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.similarity import Explicit, Factored, Similarity
from nmfcluster.ssnmf.constrained import constrain

OURS, OURS_TEXT, ONE_START = "SSNMF", "SSNMF, cosine", "SSNMF, cosine, one start"
GRAPH = "SpectralClustering, neighbours"
PEERS = ("PCKMeans", "COPKMeans")
FASTER = 20.0  # times faster than PCKMeans: the target
FORMS = {
    "never formed": "matrix-free",
    "sparse": "W formed, a sparse matrix",
    "dense": "W formed, a dense array",
}


def run(quick: bool, out: Path) -> list[Path]:
    repeats, n_trials = (1, 1) if quick else (3, 5)
    takers, skipped = methods.available((OURS, *PEERS, GRAPH))
    sets = _sets(quick)
    progress = Progress(
        "constraint_scale", len(sets) * len(takers) * n_trials + 1 + repeats * (len(FORMS) + 3)
    )
    small = []
    for data, n_pairs in sets:
        tasks = {m: partial(_trial, method, data, n_pairs) for m, method in takers.items()}
        small += _compared(data, n_pairs, interleaved(tasks, n_trials, progress))
    size = (200, 500, 4, 100) if quick else (20_000, 50_000, 20, 4_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "documents.npz")
        about = _make(file, *size)
        progress.step("documents made")
        tasks = {form: partial(_update_time, file, form) for form in FORMS}
        updates = _updates(interleaved(tasks, repeats, progress))
        tasks = {m: partial(fresh.measure, m, file) for m in (OURS_TEXT, ONE_START, GRAPH)}
        fits = _fits(interleaved(tasks, repeats, progress), about["MiB of X"])
    tables = {
        "Beside packages for constraints": small,
        "The documents": [about],
        "One update on the documents": updates,
        "The whole fit on the documents, in a fresh process": fits,
    }
    caption = (
        "SSNMFClusterer with its defaults beside active-semi-supervised-clustering and scikit-"
        "learn's SpectralClustering on a graph of neighbours, which takes no constraints; and with "
        "affinity='cosine', normalize=True on tf-idf rows of drawn documents. 'times slower' is "
        f"the time of a method over ours. Medians of {n_trials} interleaved repeats (documents: "
        f"{repeats}) with different draws of constraints (documents: one draw) and starts."
    )
    notes = [*_verdicts(small), *_text_verdicts(updates, fits)]
    draw = partial(_draw, small, updates, fits)
    return report.write(out, "constraint_scale", caption, tables, draw, notes, skipped)


def _sets(quick: bool) -> list[tuple[datasets.Dataset, int]]:
    """Return data sets of 3,000 samples, each with its number of constraints."""
    if quick:
        return [(gaussians(100, "overlapping", 3), 20)]
    sets = [gaussians(3_000, "overlapping", k) for k in (5, 10)]
    sets = [replace(data, name=f"{data.n_clusters} {data.name}") for data in sets]
    digits, _ = datasets.available(["digits389"])
    for data in digits.values():
        rows = np.random.default_rng(0).choice(len(data.y), 3_000, replace=False)
        sets.append(datasets.Dataset("digits389, the pool", data.X[rows], data.y[rows]))
    return [(data, 600) for data in sets]


def _trial(method: methods.Method, data: datasets.Dataset, n_pairs: int, seed: int) -> trials.Run:
    pairs = PairwiseConstraints.from_labels(data.y, n_pairs=n_pairs, random_state=seed)
    return trials.of_method(method, data.X, data.y, pairs, seed)


def _compared(
    data: datasets.Dataset, n_pairs: int, runs: dict[str, list[trials.Run]]
) -> list[report.Row]:
    ours = _median(runs[OURS], "seconds")
    rows = []
    for name, own in runs.items():
        row: report.Row = {"data": data.name, "samples": len(data.y), "constraints": n_pairs}
        row |= {"method": name, "times slower": _median(own, "seconds") / ours}
        row |= {score: _median(own, score) for score in ("accuracy", "free", "violated")}
        rows.append(row | {"s": _median(own, "seconds")})
    return rows


def _median(runs: list[dict[str, Any]], score: str) -> float:
    return float(np.median([run[score] for run in runs]))


def _make(file: Path, n: int, n_words: int, k: int, n_pairs: int) -> report.Row:
    """Write tf-idf rows and constraints; return their sizes."""
    data = topics(n, n_words, k, length=120)
    X = sp.csr_array(text.weighted(data.X, "tfidf"))
    pairs = PairwiseConstraints.from_labels(data.y, n_pairs=n_pairs, random_state=0)
    fresh.save(file, X, data.y, pairs=pairs)
    parts = (X.data, X.indices, X.indptr)
    return {
        "documents": n,
        "words": n_words,
        "topics": k,
        "words a document": X.nnz / n,
        "constraints": pairs.n_pairs,
        "MiB of X": sum(part.nbytes for part in parts) / 2**20,
    }


def _update_time(file: Path, form: str, seed: int) -> dict[str, Any]:
    return fresh.call(time_updates, file, form, seed)


def time_updates(file: str, form: str, seed: str, n_updates: int = 10) -> dict[str, Any]:
    """Return the median seconds of an update, the seconds to form W, and the last loss."""
    X, y, extras = fresh.read(file)
    pairs = extras[methods.CONSTRAINTS]
    with threadpool_limits(limits=1, user_api="blas"):  # as the package does
        W = make_affinity(X, "cosine", normalize=True).similarity
        problem = constrain(W, pairs, alpha=2, beta=1, hard=True)
        began = perf_counter()
        A = problem.A if form == "never formed" else formed(problem.A, form == "dense")
        forming = perf_counter() - began
        rng = np.random.RandomState(int(seed))
        H = random_start(problem.mass, len(np.unique(y)), rng, A.dtype)
        objective = SymmetricObjective(A, problem.objective.constant)
        solve = partial(bregman_nmf, objective, H[None])
        ends: list[float] = []

        def clock(iteration: int, losses: np.ndarray) -> bool:
            ends.append(perf_counter())
            return False

        [end] = iterate(solve, StopRule(n_updates + 1, tol=-1), scale=1, callback=clock)
    return {"seconds": float(np.median(np.diff(ends))), "forming": forming, "loss": end.loss}


def formed(A: Similarity, dense: bool) -> Similarity:
    """Return a similarity of documents under constraints as one matrix, dense or sparse."""
    terms = getattr(A, "terms", [(A, 1.0)])
    [U] = [term.factors[0] for term, _ in terms if isinstance(term, Factored)]
    if dense:
        W = np.empty(A.shape, A.dtype)
        for start in range(0, len(W), 512):
            rows = slice(start, start + 512)
            W[rows] = (U[rows] @ U.T).toarray()
    else:
        W = sp.csr_array(U @ U.T)
    for term, weight in terms:
        if isinstance(term, Explicit):
            added = sp.coo_array(term.toarray() if term.wide else term._array)
            W[added.row, added.col] += weight * added.data
    return Explicit(W)


def _updates(runs: dict[str, list[dict[str, Any]]]) -> list[report.Row]:
    ours = _median(runs["never formed"], "seconds")
    return [
        {
            "W": FORMS[form],
            "times slower": _median(own, "seconds") / ours,
            "ms": 1e3 * _median(own, "seconds"),
            "s to form W": _median(own, "forming"),
            "loss after 11": _median(own, "loss"),
        }
        for form, own in runs.items()
    ]


def _fits(runs: dict[str, list[dict[str, Any]]], size: float) -> list[report.Row]:
    ours = _median(runs[OURS_TEXT], "seconds")
    return [
        {
            "method": name,
            "times slower": _median(own, "seconds") / ours,
            "s": _median(own, "seconds"),
            "MiB on top of X": _median(own, "mebibytes"),
            "memory / X": (size + _median(own, "mebibytes")) / size,
            "accuracy": _median(own, "accuracy"),
        }
        for name, own in runs.items()
    ]


def _verdicts(rows: list[report.Row]) -> list[str]:
    told = []
    for data in dict.fromkeys(row["data"] for row in rows):
        own = {row["method"]: row for row in rows if row["data"] == data}
        for peer in PEERS:
            if peer not in own:
                continue
            row, ours = own[peer], own[OURS]["accuracy"]
            # the accuracy of a peer without a clustering is NaN
            reached = np.isnan(row["accuracy"]) or round(ours, 3) >= round(row["accuracy"], 3)
            met = row["times slower"] >= FASTER and reached
            target = f" (target: {FASTER:g})" if peer == PEERS[0] else ""
            told.append(
                f"{peer}, {data}: {report.cell(row['times slower'])} times slower{target}, "
                f"accuracy {row['accuracy']:.3f} against our {ours:.3f}"
                + (f": {'met' if met else 'missed'}." if target else ".")
            )
    return told


def _text_verdicts(updates: list[report.Row], fits: list[report.Row]) -> list[str]:
    ours, one_start, graph = fits
    checks = {
        f"an update on W as {row['W'].split(', ')[1]} is {row['times slower']:.0f} times slower "
        "(target: 10)": row["times slower"] >= 10
        for row in updates[1:]
    }
    checks[f"peak memory {ours['memory / X']:.1f} times that of X (target: at most 5)"] = (
        ours["memory / X"] <= 5
    )
    for row, fit in ((ours, "a fit"), (one_start, "a fit with n_init=1")):
        ratio = graph["s"] / row["s"]
        checks[f"{GRAPH} takes {ratio:.1f} times as long as {fit} (target: 10)"] = ratio >= 10
    return [f"Documents: {claim}: {'met' if met else 'missed'}." for claim, met in checks.items()]


def _draw(
    small: list[report.Row], updates: list[report.Row], fits: list[report.Row], figure: Any
) -> None:
    figure.set_size_inches(9, 8)
    top, bottom = figure.subplots(2, 1)
    names = list(dict.fromkeys(row["method"] for row in small))
    for marker, data in zip("os^", dict.fromkeys(row["data"] for row in small), strict=False):
        own = [row for row in small if row["data"] == data]
        where = [names.index(row["method"]) for row in own]
        top.semilogx([row["times slower"] for row in own], where, marker, label=data)
    top.set(xlabel="time / ours, under constraints", yticks=range(len(names)), yticklabels=names)
    top.legend(fontsize="small")
    bars = {f"update, {row['W']}": row["times slower"] for row in updates}
    bars |= {f"fit, {row['method']}": row["times slower"] for row in fits}
    bottom.barh(list(bars), list(bars.values()))
    bottom.set(xscale="log", xlabel="time / ours, documents")
