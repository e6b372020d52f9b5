"""What does the fusion of several similarities cost, in time and memory?

One update on dense kernels is timed beside the update as printed and beside scikit-learn's, a whole
fit beside similarity network fusion, and both on graphs of neighbours of up to 100,000 samples.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks import fresh, methods, report
from benchmarks.datasets.gaussians import gaussians
from benchmarks.methods import fusion
from benchmarks.methods.literal_fusion import literal, per_source
from benchmarks.runner import Progress, exponent, interleaved
from nmfcluster import KernelStack, SimilarityStack
from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import em_step
from nmfcluster.fusion.objective import objective_of

OURS, SNF, SPECTRAL = "fusion", "SNF", "spectral, mean"
STEP, SINGLE = "ours", "ours, float32"
LITERAL, QUOTIENTS, SKLEARN = "E and M, source by source", "a quotient a source", "scikit-learn"
TARGETS = {LITERAL: 20.0, SKLEARN: 5.0}
SLOWEST = 3.0  # times spectral clustering of the mean that a whole fit may take
MINUTES, GIBIBYTES = 10, 8  # targets of a million samples
LARGEST, MILLION = "NMFCLUSTER_LARGEST", 1_000_000  # a variable that asks for graphs of as many
N_INNER = 10  # updates in one call of scikit-learn, so that its set-up hardly counts


def run(quick: bool, out: Path) -> list[Path]:
    repeats, n, sizes = (1, 60, [60, 120]) if quick else (5, 2_000, [10_000, 30_000, 100_000])
    if not quick and int(os.environ.get(LARGEST) or 0) >= MILLION:
        sizes.append(MILLION)
    n_fits = min(repeats, 3)  # the slowest takes minutes
    data, stack = dense_kernels(n)
    k = data.n_clusters
    takers, skipped = methods.available((OURS, SPECTRAL, SNF))
    steps = _steps(stack, k)
    n_graphs = sum(len(_takers(n)) for n in sizes)
    total = repeats * len(steps) + n_fits * len(takers) + n_graphs
    progress = Progress("fusion_scale", total)
    updates = _updates(interleaved(steps, repeats, progress))
    tasks = {m: partial(_fit, method, stack, data.y, k) for m, method in takers.items()}
    fits = _fits(interleaved(tasks, n_fits, progress))
    graphs = _graphs(sizes, progress)
    tables = {
        f"One update, {n:,} samples, {stack.shape[2]} dense kernels, {k} clusters": updates,
        "The whole fit on them": fits,
        "Graphs of ten neighbours in three views, each fit in a fresh process": graphs,
    }
    caption = (
        "Time and memory of SimilarityFusionNMF. 'times slower' is the time of a method over ours; "
        f"medians of interleaved repeats, {repeats} of updates, {n_fits} of fits, one of graphs. "
        "Updates on one BLAS thread: ours is an EM step of the symmetric form, all that depends "
        "on the number of clusters; 'E and M, source by source' forms the posteriors as they are "
        "printed, 'a quotient a source' does not; scikit-learn's is NMF(solver='mu', beta_loss="
        f"'kullback-leibler') on the mixture, a {N_INNER}th of {N_INNER} updates. Whole fits with "
        "defaults, on as many threads as a method takes: ours takes one. The spectral clustering "
        "of graphs is that of their mean, which stays sparse, by eigen_solver='lobpcg': the "
        "default factorizes a matrix that fills up."
    )
    notes = [*_verdicts(updates, fits), *_beside_spectral(fits, graphs), *_growth(graphs)]
    draw = partial(_draw, updates, fits, graphs)
    return report.write(out, "fusion_scale", caption, tables, draw, notes, skipped)


def dense_kernels(n: int, n_sources: int = 5) -> tuple[Any, SimilarityStack]:
    """Return overlapping clusters, and a Gaussian kernel of every pair of features."""
    data = gaussians(n, "overlapping")
    kernels = [(f"view {i}", "rbf", [2 * i, 2 * i + 1]) for i in range(n_sources)]
    return data, KernelStack(kernels).fit_transform(data.X)


def _steps(stack: SimilarityStack, k: int) -> dict[str, Callable[[int], float]]:
    """Return a function for each kind of update, which makes one and returns its seconds."""
    sources = [source / source.sum() for source in stack.filled()]
    weights = np.full(len(sources), 1 / len(sources))
    Z = np.random.default_rng(0).uniform(0.5, 1.5, size=(1, len(sources[0]), k))
    Z /= Z.sum()
    W, H = Z[0], Z[0] / Z[0].sum(axis=0)
    mean = sum(sources) / len(sources)
    steps: dict[str, Callable[[], Any]] = {}
    for name, dtype in ((STEP, np.float64), (SINGLE, np.float32)):
        seen = np.ones((len(mean), len(sources)), dtype=bool)
        mixture = make_mixture([source.astype(dtype) for source in stack.filled()], seen)
        objective = objective_of(mixture, "kl", 1.0)
        P = mixture.mixed(weights)
        steps[name] = partial(em_step, objective, P, weights, Z.astype(dtype))
    steps[LITERAL] = partial(literal, sources, weights, W, H)
    steps[QUOTIENTS] = partial(per_source, sources, weights, W, H)
    steps[SKLEARN] = partial(_sklearn, mean, W, H)
    return {
        name: partial(_seconds, step, N_INNER if name == SKLEARN else 1)
        for name, step in steps.items()
    }


def _sklearn(P: np.ndarray, W: np.ndarray, H: np.ndarray) -> None:
    options = {"solver": "mu", "beta_loss": "kullback-leibler", "init": "custom"}
    model = NMF(W.shape[1], max_iter=N_INNER, tol=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit_transform(P, W=W.copy(), H=np.ascontiguousarray(H.T))


def _seconds(step: Callable[[], Any], n_updates: int, repeat: int) -> float:
    with threadpool_limits(limits=1, user_api="blas"):
        began = perf_counter()
        step()
        return (perf_counter() - began) / n_updates


def _updates(runs: dict[str, list[float]]) -> list[report.Row]:
    ours = float(np.median(runs[STEP]))
    return [
        {
            "update": name,
            "times slower": float(np.median(seconds)) / ours,
            "ms": 1e3 * float(np.median(seconds)),
        }
        for name, seconds in runs.items()
    ]


def _fit(
    method: methods.Method, stack: SimilarityStack, y: np.ndarray, k: int, seed: int
) -> tuple[float, float]:
    labels, seconds = method.run(None, stack, k, seed)
    return seconds, float(adjusted_rand_score(y, labels))


def _fits(runs: dict[str, list[tuple[float, float]]]) -> list[report.Row]:
    medians = {name: np.median(own, axis=0).tolist() for name, own in runs.items()}
    return [
        {"method": name, "times slower": seconds / medians[OURS][0], "s": seconds, "ARI": ari}
        for name, (seconds, ari) in medians.items()
    ]


def _graphs(sizes: list[int], progress: Progress) -> list[report.Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            file = Path(folder, f"{n}.npz")
            stored = save_graphs(file, n)
            for name in _takers(n):
                row = {"samples": n, "MiB of the graphs": stored, "method": name}
                rows.append(row | fresh.call(cluster_graphs, file, name))
                progress.step(f"{n:,} samples, {name}")
    return rows


def _takers(n: int) -> tuple[str, ...]:
    """Return the methods for graphs of n samples: spectral clustering would take hours."""
    return (OURS, SPECTRAL) if n < MILLION else (OURS,)


def save_graphs(file: Path, n: int, n_views: int = 3) -> float:
    """Write graphs of neighbours in views of three features each; return their MiB."""
    data = gaussians(n, "overlapping", n_features=3 * n_views)
    kernels = [(f"view {i}", "nearest_neighbors", slice(3 * i, 3 * i + 3)) for i in range(n_views)]
    arrays = {"y": data.y, "n_views": np.array(n_views)}
    graphs = KernelStack(kernels, normalize=True).fit_transform(data.X).filled()
    for i, graph in enumerate(graphs):
        for part in ("data", "indices", "indptr"):
            arrays[f"{part}{i}"] = getattr(graph, part)
    np.savez(file, **arrays)
    return sum(array.nbytes for array in arrays.values()) / 2**20


def cluster_graphs(file: str, name: str) -> dict[str, Any]:
    """Return seconds, memory and ARI of a fit. The process must be fresh."""
    with np.load(file) as arrays:
        y, n_views = arrays["y"], int(arrays["n_views"])
        shape = (len(y), len(y))
        parts = [[arrays[f"{p}{i}"] for p in ("data", "indices", "indptr")] for i in range(n_views)]
    sources = [sp.csr_array(tuple(part), shape=shape) for part in parts]
    k = len(np.unique(y))
    before, began, cpu = fresh.memory("VmRSS"), perf_counter(), process_time()
    if name == OURS:
        labels = fusion.cluster(None, SimilarityStack(sources), k, 0)
    else:
        # the default solver would factorize a Laplacian, which fills up
        options = {"affinity": "precomputed", "eigen_solver": "lobpcg"}
        model = SpectralClustering(k, random_state=0, **options)
        mean = sum(source / source.sum() for source in sources)
        mean.indices, mean.indptr = mean.indices.astype(np.int32), mean.indptr.astype(np.int32)
        labels = model.fit_predict(mean)
    return {
        "s": perf_counter() - began,
        "s of all cores": process_time() - cpu,
        "MiB on top": (fresh.memory("VmHWM") - before) / 1024,
        "ARI": float(adjusted_rand_score(y, labels)),
    }


def _verdicts(updates: list[report.Row], fits: list[report.Row]) -> list[str]:
    told = []
    slower = {row["update"]: row["times slower"] for row in updates}
    for name, target in TARGETS.items():
        met = "met" if slower[name] >= target else "missed"
        told.append(
            f"One update: {name} is {slower[name]:.1f} times slower than ours (target: "
            f"{target:g}): {met}."
        )
    told.append(f"An update in float32 takes {slower[SINGLE]:.2f} times as long as in float64.")
    slower = {row["method"]: row["times slower"] for row in fits}
    if SNF in slower:
        met = "met" if slower[SNF] > 1 else "missed"
        told.append(
            f"Whole fit: SNF and spectral clustering take {slower[SNF]:.2f} times as long as ours "
            f"(target: more than 1): {met}."
        )
    return told


def _beside_spectral(fits: list[report.Row], graphs: list[report.Row]) -> list[str]:
    """Say how a whole fit compares with spectral clustering of the mean, in time and ARI."""
    told = []
    pairs = {"dense kernels": {row["method"]: row for row in fits}}
    for row in graphs:
        pairs.setdefault(f"graphs of {row['samples']:,}", {})[row["method"]] = row
    for what, rows in pairs.items():
        if SPECTRAL in rows:
            slower = rows[OURS]["s"] / rows[SPECTRAL]["s"]
            ours, theirs = rows[OURS]["ARI"], rows[SPECTRAL]["ARI"]
            met = "met" if slower <= SLOWEST and round(ours, 2) >= round(theirs, 2) else "missed"
            told.append(
                f"Whole fit, {what}: {slower:.2f} times the time of spectral clustering of the "
                f"mean (target: at most {SLOWEST:g}), ARI {ours:.3f} against {theirs:.3f}: {met}."
            )
        else:
            own = rows[OURS]
            fits_in = own["s"] < 60 * MINUTES and own["MiB on top"] < 1024 * GIBIBYTES
            told.append(
                f"Whole fit, {what}: {own['s']:.0f} s, {own['MiB on top']:.0f} MiB (target: under "
                f"{MINUTES} minutes and {GIBIBYTES} GiB): {'met' if fits_in else 'missed'}."
            )
    return told


def _growth(graphs: list[report.Row]) -> list[str]:
    told = []
    for name in dict.fromkeys(row["method"] for row in graphs):
        own = [row for row in graphs if row["method"] == name]
        grows = exponent([row["samples"] for row in own], [row["s"] for row in own])
        last = own[-1]
        told.append(
            f"Graphs, {name}: time grows as n to the power {grows:.2f}; {last['samples']:,} "
            f"samples take {report.cell(last['s'])} s and {report.cell(last['MiB on top'])} MiB on "
            f"top of {report.cell(last['MiB of the graphs'])} MiB of graphs."
        )
    return told


def _draw(
    updates: list[report.Row], fits: list[report.Row], graphs: list[report.Row], figure: Any
) -> None:
    left, right = figure.subplots(1, 2)
    bars = {f"update, {row['update']}": row["times slower"] for row in updates}
    bars |= {f"fit, {row['method']}": row["times slower"] for row in fits}
    left.barh(list(bars), list(bars.values()))
    left.axvline(1, color="k", lw=0.8)
    left.set(xscale="log", xlabel="time / ours")
    for name in dict.fromkeys(row["method"] for row in graphs):
        own = [row for row in graphs if row["method"] == name]
        right.loglog([row["samples"] for row in own], [row["s"] for row in own], "o-", label=name)
    right.set(xlabel="samples, graphs", ylabel="seconds")
    right.legend(fontsize="small")
