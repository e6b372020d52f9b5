"""Do several similarities make a better clustering than one, and how should they be combined?

Methods that take similarities all get the same ones: a normalised, self-tuned graph of ten
neighbours, and in further tables kernels. Methods that take features get the views. No parameter is
tuned to a data set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, methods, report
from benchmarks.datasets.views import Views
from benchmarks.methods import fusion, mean_similarity, peer_snf, peer_views, simple_mkkm
from benchmarks.methods.peer import NoClusteringError
from benchmarks.questions import _fusion_runs
from benchmarks.questions._fusion_runs import LONG, Run, scores, toy
from benchmarks.questions._fusion_runs import mean as mean_of
from benchmarks.runner import Progress
from nmfcluster import SimilarityStack

SETS = (*_fusion_runs.SETS, "digits, left and right")
OURS, STABLE, SPECTRAL, SNF = "fusion", "fusion, stable eta", "spectral, mean", "SNF"
VARIANTS = (*fusion.VARIANTS, STABLE)
PARTS = (mean_similarity, simple_mkkm, peer_snf, peer_views)
OTHERS = tuple(method.name for part in PARTS for method in part.METHODS)
LITTLE = "spectral, mean and a little"
ON_KERNELS = (OURS, SPECTRAL, "spectral, mean of scaled", LITTLE, SNF)  # run on every kernel
ALONE = (OURS, SPECTRAL)  # run on every single source
FIGURES = {"accuracy": "Accuracy", "nmi": "NMI", "ari": "ARI", "seconds": "Seconds a run"}
SCORES = tuple(FIGURES)[:-1]


@dataclass
class Results:
    """The runs of all methods on one data set."""

    data: Views
    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)  # by kernel, method
    alone: dict[tuple[str, str], list[Run]] = field(default_factory=dict)  # by source, method
    weights: dict[str, float] = field(default_factory=dict)  # of the sources
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> str:
        return next(iter(self.data.kernels))


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    sets, missing = ({"toy": toy()}, {}) if quick else datasets.available(SETS)
    seeds = range(5 if all_seeds else 1)
    takers, skipped = methods.available((*VARIANTS, *OTHERS))
    if quick:
        del takers[STABLE]
    progress = Progress("fusion", sum(_count(data, takers) for data in sets.values()))
    results = {data.name: _measure(data, takers, seeds, progress) for data in sets.values()}
    failed = {f"{m} on {n}": why for n, own in results.items() for m, why in own.failed.items()}
    return _report(out, results, len(seeds), skipped | missing | failed)


def _takes(data: Views, method: methods.Method) -> bool:
    return method.wants == methods.SIMILARITIES or bool(data.columns)


def _count(data: Views, takers: dict[str, methods.Method]) -> int:
    """Return the number of runs with one seed: methods on kernels and on single sources."""
    on_kernels = (len(data.kernels) - 1) * sum(m in takers for m in ON_KERNELS)
    first = next(iter(data.kernels.values()))()
    alone = first.shape[2] * len(ALONE)
    return sum(_takes(data, method) for method in takers.values()) + on_kernels + alone


def _measure(
    data: Views, takers: dict[str, methods.Method], seeds: Iterable[int], progress: Progress
) -> Results:
    results = Results(data)
    for kernel, make in data.kernels.items():
        stack = make()
        names = takers if kernel == results.first else [m for m in ON_KERNELS if m in takers]
        for name in names:
            if _takes(data, takers[name]):
                runs = _runs(takers[name], data, stack, seeds, results.failed)
                results.runs[kernel, name] = runs
                progress.step(f"{data.name}, {kernel}, {name}")
        if kernel != results.first:
            continue
        weights = fusion.fit(stack, data.n_clusters, 0).weights_
        results.weights = dict(zip(stack.names, weights.tolist(), strict=True))
        for source, matrix in zip(stack.names, stack.sources, strict=True):
            for name in ALONE:
                one = SimilarityStack([matrix], names=[source])
                results.alone[source, name] = _runs(takers[name], data, one, seeds, results.failed)
                progress.step(f"{data.name}, {source} alone, {name}")
    return results


def _runs(
    method: methods.Method,
    data: Views,
    stack: SimilarityStack,
    seeds: Iterable[int],
    failed: dict[str, str],
) -> list[Run]:
    """Run a method with one seed after the other, until it fails or has taken `LONG` seconds."""
    runs: list[Run] = []
    extra = stack if method.wants == methods.SIMILARITIES else data.views
    for seed in seeds:
        try:
            labels, seconds = method.run(data.X, extra, data.n_clusters, seed)
        except (NoClusteringError, RuntimeError) as why:  # a peer has failed
            failed[method.name] = str(why).strip().splitlines()[-1]
            return runs
        runs.append(scores(data.y, labels) | {"seconds": seconds})
        if sum(run["seconds"] for run in runs) > LONG:
            break
    return runs


def _told(runs: list[Run], figure: str) -> str | None:
    if not runs:
        return None
    mean = mean_of(runs, figure)
    if figure == "seconds":
        return report.cell(mean)
    return f"{mean:.3f} ± {np.std([run[figure] for run in runs]):.3f}"


def _report(
    out: Path, results: dict[str, Results], n_seeds: int, skipped: dict[str, str]
) -> list[Path]:
    tables: dict[str, Any] = {"The data": [_about(own) for own in results.values()]}
    for figure, title in FIGURES.items():
        tables[title] = _by_method(results, figure)
    tables["Other similarities: accuracy"] = [
        row for own in results.values() for row in _others(own)
    ]
    tables["Every source alone: accuracy"] = [
        row for own in results.values() for row in _alone(own)
    ]
    caption = (
        f"Fusion of several similarities: means and standard deviations over {n_seeds} seeds; a "
        f"method that had taken {LONG:g} s on a set was run with no more. 'fusion' is "
        "SimilarityFusionNMF with its defaults; 'stable eta' has eta of "
        f"{', '.join(f'{eta:g}' for eta in fusion.ETAS)} chosen by StabilityScorer. 'mean' methods "
        "cluster the mean of the sources; 'of scaled' that of sources that sum to 1; 'and a "
        "little' adds to every entry the mean of all, which joins a graph that falls apart. NCut "
        "is spectral clustering with discretized eigenvectors. SimpleMKKM (Liu et al., 2022) is "
        "written for this page, on the sources as centred kernels with diagonal 1. SNF is snfpy, "
        "on the same sources or with its kernel of the features, standardised or raw. DAIMC, NEMO, "
        "EEIMVC and LFIMVC are imml's, CoReg mvlearn's, MultiViewKMeans and MultiViewNMF "
        "polyview's. The best of a single source is chosen by the classes, which nobody has in "
        "practice."
    )
    details = {
        name: report.by_run(("similarities", "method"), own.runs)
        + report.by_run(("source", "method"), own.alone)
        for name, own in results.items()
    }
    notes = [_verdict(results, figure) for figure in SCORES]
    draw = partial(_draw, results)
    return report.write(out, "fusion", caption, tables, draw, notes, skipped, details)


def _about(own: Results) -> report.Row:
    data = own.data
    return {
        "data": data.name,
        "samples": len(data.y),
        "classes": data.n_clusters,
        "sources": len(own.weights),
        "similarities": own.first,
        "what it is": data.note,
    }


def _by_method(results: dict[str, Results], figure: str) -> list[report.Row]:
    """Return a row for every method, with a column for every set, on the first similarities."""
    rows = []
    for method in (*VARIANTS, *OTHERS):
        runs = {name: own.runs.get((own.first, method), []) for name, own in results.items()}
        if any(runs.values()):
            cells = {name: _told(of_set, figure) for name, of_set in runs.items()}
            rows.append({"method": method} | cells)
    for method in ALONE:
        cells = {
            name: _told(_best_alone(own, method, figure)[1], figure)
            for name, own in results.items()
        }
        rows.append({"method": f"{method}, best single source"} | cells)
    return rows


def _best_alone(own: Results, method: str, figure: str) -> tuple[str, list[Run]]:
    """Return the best single source, for seconds the most accurate one, and its runs."""
    by = "accuracy" if figure == "seconds" else figure
    alone = {source: runs for (source, name), runs in own.alone.items() if name == method and runs}
    if not alone:
        return "", []
    best = max(alone, key=lambda source: mean_of(alone[source], by))
    return best, alone[best]


def _others(own: Results) -> list[report.Row]:
    rows = []
    for kernel in own.data.kernels:
        row: report.Row = {"data": own.data.name, "similarities": kernel}
        for method in ON_KERNELS:
            row[method] = _told(own.runs.get((kernel, method), []), "accuracy")
        rows.append(row)
    return rows


def _alone(own: Results) -> list[report.Row]:
    rows = []
    for source, weight in own.weights.items():
        row: report.Row = {"data": own.data.name, "source": source, "weight": f"{weight:.3f}"}
        for method in ALONE:
            row[method] = _told(own.alone.get((source, method), []), "accuracy")
        rows.append(row)
    return rows


def _verdict(results: dict[str, Results], figure: str) -> str:
    """Say on which sets ours is as good as all others, single sources and kernels included."""
    met, missed = [], []
    for name, own in results.items():
        ours = round(mean_of(own.runs[own.first, OURS], figure), 3)
        rivals = {
            method + ("" if kernel == own.first else f" ({kernel})"): mean_of(runs, figure)
            for (kernel, method), runs in own.runs.items()
            if method in OTHERS and runs
        }
        for method in ALONE:
            source, runs = _best_alone(own, method, figure)
            if runs:
                rivals[f"{method} on {source} alone"] = mean_of(runs, figure)
        best = max(rivals, key=rivals.__getitem__)
        told = f"{name}, {ours:.3f} against {rivals[best]:.3f} of {best}"
        (met if ours >= round(rivals[best], 3) else missed).append(told)
    return (
        f"{FIGURES[figure]}: with its defaults at or above the best of all others on {len(met)} "
        f"of {len(results)} sets. Met: {'; '.join(met) or 'none'}. "
        f"Missed: {'; '.join(missed) or 'none'}."
    )


def _draw(results: dict[str, Results], figure: Any) -> None:
    figure.set_size_inches(9, 8)
    ax = figure.subplots()
    rows = [row["method"] for row in _by_method(results, "accuracy")][::-1]
    for place, method in enumerate(rows):
        gaps = []
        for own in results.values():
            runs = own.runs.get((own.first, method), [])
            if method.endswith("best single source"):
                runs = _best_alone(own, method.split(", best")[0], "accuracy")[1]
            if runs:
                ours = mean_of(own.runs[own.first, OURS], "accuracy")
                gaps.append(mean_of(runs, "accuracy") - ours)
        colour = "C0" if method in VARIANTS else "C1"
        ax.plot(gaps, [place] * len(gaps), "o", alpha=0.5, color=colour)
        ax.plot(np.mean(gaps), place, "|", color="k", markersize=16)
    ax.axvline(0, lw=0.8, color="k", ls=":")
    ax.set(yticks=range(len(rows)), yticklabels=rows)
    ax.set_xlabel("accuracy less that of fusion, one point a set; line: mean")
