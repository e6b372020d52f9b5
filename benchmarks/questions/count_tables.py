"""Is metaclustering better than the best run on real tables, and are resampled runs?

Counts of words and intensities of genes whose classes are known, as they are and as logarithms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks import datasets, report, scores
from benchmarks.datasets import Dataset, counted
from benchmarks.methods import cnmf, linkage, metacluster
from benchmarks.methods.base_clusters import indicator
from benchmarks.questions._recurrence_planted import LOSSES
from benchmarks.runner import Progress
from nmfcluster._base import hard_labels
from nmfcluster.meta.objectives import Objective

SETS = [f"{name}, {how}" for name in (*counted.GENES, "tr12") for how in (counted.RAW, counted.LOG)]
META = "meta"
VARIANTS: dict[str, Any] = {
    META: None,
    "meta, poisson": "poisson",
    "meta, bootstrap": "bootstrap",
    "meta, 0.8": 0.8,
    "meta, 0.5": 0.5,
}
BEST, BRUNET, CNMF = "best of the runs", "Brunet's consensus", "cNMF's way"
METHODS = (*VARIANTS, BEST, BRUNET, CNMF)
ARI, COSINE, LABELS, SECONDS = "ARI", "cosine", "labels", "seconds"
HEADINGS = {
    ARI: "Adjusted Rand index of the labels with the classes",
    COSINE: "Cosine of the components of two seeds",
    LABELS: "Adjusted Rand index of the labels of two seeds",
    SECONDS: "Seconds",
}
SAME = 0.01  # of ARI or cosine: a smaller difference is none

Key = tuple[str, str, str]  # loss, table and method


@dataclass(frozen=True)
class Found:
    """What a method finds with one seed; a consensus of partitions has no components."""

    labels: np.ndarray
    components: np.ndarray | None
    seconds: float


Results = dict[Key, list[Found]]
Figures = dict[Key, dict[str, float]]


def run(quick: bool, out: Path) -> list[Path]:
    sets, skipped = _toy() if quick else datasets.available(SETS)
    seeds = range(2 if quick else 5)
    progress = Progress("count_tables", len(sets) * len(seeds) * len(LOSSES))
    results = compare(sets, seeds, progress)
    figures = {
        key: figures_of(sets[key[1]].y, found) for key, found in results.items()
    }  # of every method on every table
    shown = {"Means over the tables": means(figures)}
    shown |= {title: by_table(figures, name) for name, title in HEADINGS.items()}
    details = {
        "runs": [
            {"loss": loss, "data": name, "method": method}
            | {ARI: [adjusted_rand_score(sets[name].y, one.labels) for one in found]}
            | {SECONDS: [one.seconds for one in found]}
            for (loss, name, method), found in results.items()
        ]
    }
    draw, caption = partial(_draw, figures), _caption(len(seeds))
    notes = verdicts(figures)
    return report.write(out, "count_tables", caption, shown, draw, notes, skipped, details)


def _caption(n_seeds: int) -> str:
    return (
        f"As many clusters as classes, means over {n_seeds} seeds. 'meta' is NMFMetaCluster with "
        "its defaults, 20 runs, but with resample=None, so that each sees the table itself, or "
        "with the `resample` that is named: 0.8 is the default. "
        f"'{BEST}' is that with the smallest loss of the same 20 runs of 'meta', "
        f"'{BRUNET}' average linkage of the shares of these runs that put two samples together "
        f"(Brunet et al., 2004), and '{CNMF}' their components as cNMF (Kotliar et al., 2019) puts "
        "them together: scaled to length 1, those left out whose mean distance to the nearest 30 % "
        "of as many as there are runs is above .5, k-means, medians. The rows of both are the best "
        "fit to the components, by the loss of the runs. The cosine of two seeds is the mean over "
        "components in the best matching, and the mean over all pairs of seeds. 'log1p' are "
        "logarithms of the entries and 1."
    )


def _toy() -> tuple[dict[str, Dataset], dict[str, str]]:
    X, y = load_digits(n_class=3, return_X_y=True)
    return {"toy, raw": Dataset("toy, raw", X[:45, 16:40], y[:45])}, {}


def compare(sets: dict[str, Dataset], seeds: Iterable[int], progress: Progress) -> Results:
    """Return what every method finds on every table, with both losses."""
    results: Results = {}
    for name, data in sets.items():
        for short, loss in LOSSES.items():
            for seed in seeds:
                for method, found in _all_methods(data, loss, seed).items():
                    results.setdefault((short, name, method), []).append(found)
                progress.step(f"{name}, {short}")
    return results


def _all_methods(data: Dataset, loss: str, seed: int) -> dict[str, Found]:
    k, told = data.n_clusters, {}
    with threadpool_limits(limits=1, user_api="blas"):  # as in a fit of the estimator
        for name, way in VARIANTS.items():
            began = perf_counter()
            model = metacluster.fit(data.X, k, seed, loss=loss, resample=way)
            seconds = perf_counter() - began
            told[name] = Found(model.labels_, model.components_, seconds)
        return told | _of_the_runs(data.X, k, loss, seed)


def _of_the_runs(X: Any, k: int, loss: str, seed: int) -> dict[str, Found]:
    """Return what others make of the runs of the estimator."""
    began = perf_counter()
    objective, runs = metacluster.runs_of(X, k, seed, loss)
    ran = perf_counter() - began
    told = {BEST: _found(objective, runs.H[runs.slices()[0]], ran)}
    began = perf_counter()
    table = runs.partitions()
    near = linkage.distances(indicator(table), len(runs))
    labels = linkage.average_linkage(near, len(table), k)
    told[BRUNET] = Found(labels, None, ran + perf_counter() - began)
    began = perf_counter()
    H = cnmf.recurring(runs.H, len(runs), k, seed)
    told[CNMF] = _found(objective, H, ran + perf_counter() - began)
    return told


def _found(objective: Objective, H: np.ndarray, seconds: float) -> Found:
    """Return components with the labels of the rows that fit them best."""
    began = perf_counter()
    H = objective.scaled_columns(H.astype(objective.X.dtype))
    labels = hard_labels(objective.rows(H))
    return Found(labels, H, seconds + perf_counter() - began)


def figures_of(y: np.ndarray, found: list[Found]) -> dict[str, float]:
    """Return the means over seeds, and over pairs of them."""
    figures = {
        ARI: float(np.mean([adjusted_rand_score(y, one.labels) for one in found])),
        LABELS: _of_pairs([one.labels for one in found], adjusted_rand_score),
        SECONDS: float(np.mean([one.seconds for one in found])),
    }
    parts = [one.components for one in found if one.components is not None]
    if parts:
        figures[COSINE] = _of_pairs(parts, lambda A, B: scores.matched_cosines(A, B).mean())
    return figures


def _of_pairs(found: list[np.ndarray], figure: Any) -> float:
    return float(np.mean([figure(one, other) for one, other in combinations(found, 2)]))


def over(figures: Figures, name: str, loss: str, how: str, method: str) -> float:
    """Return the mean of a figure over the tables of a preparation, NaN without any."""
    own = [
        of_table[name]
        for (short, table, other), of_table in figures.items()
        if (short, other) == (loss, method) and table.endswith(how) and name in of_table
    ]
    return float(np.mean(own)) if own else float("nan")


def preparations(figures: Figures) -> list[str]:
    return list(dict.fromkeys(table.split(", ")[-1] for _, table, _ in figures))


def means(figures: Figures) -> list[report.Row]:
    """Return a row for every figure, loss and preparation, with a column for every method."""
    rows = []
    for name in HEADINGS:
        for loss in LOSSES:
            for how in preparations(figures):
                values = {m: over(figures, name, loss, how, m) for m in METHODS}
                cells = {m: f"{v:.3f}" for m, v in values.items() if not np.isnan(v)}
                rows.append({"figure": name, "loss": loss, "table": how} | cells)
    return rows


def by_table(figures: Figures, name: str) -> list[report.Row]:
    """Return a row for every loss and table, with a column for every method."""
    rows: dict[tuple[str, str], report.Row] = {}
    for (loss, table, method), of_table in figures.items():
        row = rows.setdefault((loss, table), {"loss": loss, "table": table})
        if name in of_table:
            row[method] = f"{of_table[name]:.3f}"
    return list(rows.values())


def verdicts(figures: Figures) -> list[str]:
    """Say where metaclustering, of runs of all kinds, is better than the best run."""
    lines = []
    for method in VARIANTS:
        for name in (ARI, COSINE):
            gaps = np.array(
                [
                    figures[loss, table, method][name] - of_best[name]
                    for (loss, table, other), of_best in figures.items()
                    if other == BEST
                ]
            )
            lines.append(
                f"{method} against the {BEST}, {name}: better on {np.sum(gaps > SAME)}, the same "
                f"within {SAME:g} on {np.sum(np.abs(gaps) <= SAME)} and worse on "
                f"{np.sum(gaps < -SAME)} of {len(gaps)} tables and losses; {gaps.mean():+.3f} on "
                "the mean."
            )
    return lines


def _draw(figures: Figures, figure: Any) -> None:
    figure.set_size_inches(10, 4)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, (ARI, COSINE), strict=True):
        for colour, loss in enumerate(LOSSES):
            for how, marker in zip(preparations(figures), "os", strict=False):
                values = [over(figures, name, loss, how, method) for method in METHODS]
                label = f"{loss}, {how}"
                ax.plot(values, range(len(METHODS)), marker, color=f"C{colour}", label=label)
        ax.set(xlabel=HEADINGS[name], yticks=range(len(METHODS)), yticklabels=METHODS)
        ax.xaxis.label.set_fontsize("small")
    axes[0].invert_yaxis()
    axes[1].legend(fontsize="x-small")
