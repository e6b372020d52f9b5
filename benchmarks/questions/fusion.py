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

from benchmarks import datasets, kept, methods, report
from benchmarks.datasets.views import Views
from benchmarks.kept import Kept, Run, Runs
from benchmarks.methods import (
    fusion,
    mean_similarity,
    peer_snf,
    peer_views,
    simple_mkkm,
)
from benchmarks.methods.peer import NoClusteringError
from benchmarks.questions import _fusion_runs
from benchmarks.questions._fusion_runs import LONG, scores, toy
from benchmarks.questions._fusion_runs import mean as mean_of
from benchmarks.runner import Progress
from nmfcluster import SimilarityStack

SETS = (*_fusion_runs.SETS, "digits, left and right")
OURS, STABLE, SPECTRAL, SNF = "fusion", "fusion, stable eta", "spectral, mean", "SNF"
VARIANTS = (*fusion.VARIANTS, STABLE)
PARTS = (mean_similarity, simple_mkkm, peer_snf, peer_views)
OTHERS = tuple(method.name for part in PARTS for method in part.METHODS)
MEANS = (SPECTRAL, "spectral, mean of scaled", "spectral, mean and a little")
ON_KERNELS = (OURS, *MEANS, SNF)  # run on every kernel
SINGLE = (OURS, SPECTRAL)  # run on every single source
ALONE = " alone"  # behind the name of a source, where others have that of a kernel
BEST = ", best single source"
COLUMNS = ("data", "similarities", "method")
FIGURES = {
    "accuracy": "Accuracy",
    "nmi": "NMI",
    "ari": "ARI",
    "seconds": "Seconds a run",
}


@dataclass
class Results:
    """The runs of all methods on one data set."""

    data: Views
    runs: Runs  # by kernel, or source and `ALONE`, and method
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
    others = kept.read(
        out / "fusion.json",
        methods.packages(skipped),
        COLUMNS,
        {"data": [data.name for data in sets.values()]},
        len(seeds),
    )
    results, failed = {}, dict(others.failed)
    progress = Progress("fusion", sum(len(data.kernels) for data in sets.values()))
    for data in sets.values():
        runs = {key[1:]: own for key, own in others.runs.items() if key[0] == data.name}
        own = results[data.name] = Results(data, runs)
        _measure(own, takers, seeds, progress)
        failed |= {
            f"{method} on {data.name}": why for method, why in own.failed.items()
        }
    versions = others.versions(methods.packages(takers))
    skipped = others.missing(skipped) | missing | failed
    return _report(out, results, others, len(seeds), skipped, versions)


def _measure(
    own: Results,
    takers: dict[str, methods.Method],
    seeds: Iterable[int],
    progress: Progress,
) -> None:
    """Run methods on the kernels, and on single sources of the first one."""
    data = own.data
    for kernel, make in data.kernels.items():
        stack = make()
        asked = {
            (kernel, name): stack
            for name in (takers if kernel == own.first else ON_KERNELS)
        }
        if kernel == own.first:
            weights = fusion.fit(stack, data.n_clusters, 0).weights_
            own.weights = dict(zip(stack.names, weights.tolist(), strict=True))
            for source, matrix in zip(stack.names, stack.sources, strict=True):
                one = SimilarityStack([matrix], names=[source])
                asked |= {(source + ALONE, name): one for name in SINGLE}
        for (place, name), given in asked.items():
            if name in takers:
                own.runs[place, name] = _runs(
                    takers[name], data, given, seeds, own.failed
                )
        progress.step(f"{data.name}, {kernel}")


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
    for seed in seeds if extra else ():
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
    out: Path,
    results: dict[str, Results],
    others: Kept,
    n_seeds: int,
    skipped: dict[str, str],
    versions: dict[str, str],
) -> list[Path]:
    tables: dict[str, Any] = {"The data": [_about(own) for own in results.values()]}
    for figure, title in FIGURES.items():
        tables[title] = _by_method(results, figure)
    tables["Other similarities: accuracy"] = [
        {"data": name, "similarities": kernel} | _row(own, kernel, ON_KERNELS)
        for name, own in results.items()
        for kernel in own.data.kernels
    ]
    tables["Every source alone: accuracy"] = [
        {"data": name, "source": source, "weight": f"{weight:.3f}"}
        | _row(own, source + ALONE, SINGLE)
        for name, own in results.items()
        for source, weight in own.weights.items()
    ]
    caption = (
        "Fusion of several similarities. Values are means and standard deviations over "
        f"{n_seeds} seeds; a method that took {LONG:g} s on a set was not run with further seeds. "
        "'fusion' is SimilarityFusionNMF with its defaults, or a finite eta, or a loss of the "
        "paper with eta = 1; for 'stable eta', StabilityScorer chooses eta among "
        f"{', '.join(f'{eta:g}' for eta in fusion.ETAS)}. 'mean' methods cluster the mean of the "
        "sources. 'of scaled' uses the mean of sources that sum to 1. 'and a little' adds the mean "
        "of all entries to every entry, which connects the parts of a graph. NCut is spectral "
        "clustering with discretized eigenvectors. SimpleMKKM (Liu et al., 2022) is implemented "
        "for this page; it uses the sources as centred kernels with diagonal 1. SNF is snfpy, on "
        "the same sources, or with its own kernel of the features, standardised or raw. DAIMC, "
        "NEMO, EEIMVC and LFIMVC are from imml, CoReg is from mvlearn, and MultiViewKMeans and "
        "MultiViewNMF are from polyview. The best single source is chosen by the true classes, "
        "which are unknown in practice."
    )
    runs = {
        (name, *key): runs
        for name, own in results.items()
        for key, runs in own.runs.items()
    }
    details, draw = others.in_details(COLUMNS, runs), partial(_draw, results)
    notes = [_verdict(results, figure) for figure in list(FIGURES)[:-1]]
    notes += others.notes()
    return report.write(
        out, "fusion", caption, tables, draw, notes, skipped, details, versions
    )


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
    """Return a row for every method, with a column for every set."""
    rows = []
    for method in (*VARIANTS, *OTHERS, *(name + BEST for name in SINGLE)):
        runs = {name: _of(own, method, figure) for name, own in results.items()}
        if any(runs.values()):
            cells = {name: _told(of_set, figure) for name, of_set in runs.items()}
            rows.append({"method": method} | cells)
    return rows


def _of(own: Results, method: str, figure: str = "accuracy") -> list[Run]:
    """Return runs on the first similarities, or on the best source, for seconds by accuracy."""
    if not method.endswith(BEST):
        return own.runs.get((own.first, method), [])
    by, asked = "accuracy" if figure == "seconds" else figure, method.removesuffix(BEST)
    alone = [
        runs
        for (place, m), runs in own.runs.items()
        if m == asked and place.endswith(ALONE)
    ]
    return max(alone, key=lambda runs: mean_of(runs, by))


def _row(own: Results, place: str, names: Iterable[str]) -> report.Row:
    return {
        method: _told(own.runs.get((place, method), []), "accuracy") for method in names
    }


def _verdict(results: dict[str, Results], figure: str) -> str:
    """Say on which sets ours is as good as all others, single sources and kernels included."""
    met, missed = [], []
    for name, own in results.items():
        ours = round(mean_of(own.runs[own.first, OURS], figure), 3)
        rivals = {
            method + ("" if place == own.first else f" ({place})"): mean_of(
                runs, figure
            )
            for (place, method), runs in own.runs.items()
            if runs and (method in OTHERS or place.endswith(ALONE))
        }
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
            if runs := _of(own, method):
                ours = mean_of(own.runs[own.first, OURS], "accuracy")
                gaps.append(mean_of(runs, "accuracy") - ours)
        colour = "C0" if method in VARIANTS else "C1"
        ax.plot(gaps, [place] * len(gaps), "o", alpha=0.5, color=colour)
        ax.plot(np.mean(gaps), place, "|", color="k", markersize=16)
    ax.axvline(0, lw=0.8, color="k", ls=":")
    ax.set(yticks=range(len(rows)), yticklabels=rows)
    ax.set_xlabel("accuracy less that of fusion, one point a set; line: mean")
