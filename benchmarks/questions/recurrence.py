"""Does `recurrence_` tell programs that are there from others, and which `resample` is best?

Planted counts say which programs are there; two halves of the rows of a real table say which
return.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.questions import _recurrence_halves as halves
from benchmarks.questions import _recurrence_planted as planted
from benchmarks.questions._recurrence_planted import FOUND, LOSSES, MORE, WAYS, Way
from benchmarks.runner import Progress

AUC, AT_K, AT_MORE, SECONDS = planted.FIGURES
SPEARMAN = "Spearman"
HEADINGS = {
    AUC: "AUC of the recurrence, planted against others, at two clusters more than programs",
    AT_K: "Share of the programs found, with as many clusters",
    AT_MORE: "Share of the programs found, with two clusters more",
    SPEARMAN: "Spearman correlation of recurrence and return in the other half of the rows",
}
ENOUGH, AGREES = 0.95, 0.6  # AUC on easy and hard tables, and Spearman correlation
FEWER = 0.005  # share of the programs that may be found less than without `resample`: by chance
TIE = (
    0.01  # AUC and correlation, on their mean, by which the faster of two ways is taken
)

# of tables, by figure, loss and way
Means = dict[tuple[str, str, Way], dict[str, float]]


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    settings = planted.TOY if quick else planted.SETTINGS
    if not all_seeds:
        settings = {n: own for n, own in settings.items() if n not in planted.LONG}
    ways = (None, "poisson") if quick else WAYS
    seeds = splits = range(5 if all_seeds else 1)
    tables, skipped = halves.sets(quick, all_seeds)
    n_tables = len(settings) * len(seeds) + len(tables) * len(splits)
    progress = Progress("recurrence", len(LOSSES) * len(ways) * n_tables)
    runs = planted.compare(settings, ways, seeds, progress)
    returned = halves.compare(tables, ways, splits, progress)
    means = mean_figures(runs, returned)
    shown: dict[str, list[report.Row]] = {"Means over the tables": by_way(means)}
    for figure, heading in HEADINGS.items():
        if rows := by_table(means, figure):
            shown[heading] = rows
    shown["The default, when each table in turn is left out"] = left_out(means)
    details = {
        "planted": report.by_run(("loss", "setting", "resample"), runs),
        "halves": [
            {"loss": loss, "data": name, "resample": str(way)}
            | {"recurrence": own[0].round(3), "return": own[1].round(3)}
            for (loss, name, way), own in returned.items()
        ],
    }
    draw, caption = partial(_draw, means), _caption(len(seeds), len(splits))
    return report.write(
        out, "recurrence", caption, shown, draw, verdicts(means), skipped, details
    )


def _caption(n_seeds: int, n_splits: int) -> str:
    return (
        "NMFMetaCluster with 20 runs, by loss and `resample`, and otherwise with its defaults. "
        f"Planted counts: values are means over {n_seeds} matrices of each setting. A cluster is "
        "planted if the best matching of columns assigns it a program with a cosine of at least "
        f"{FOUND:g}. The AUC measures how well `recurrence_` separates planted clusters from the "
        f"others, with {MORE} clusters more than programs; it is the mean over the matrices with "
        "planted clusters. Unless stated otherwise, cells have 1,000 genes, 8 programs, a "
        "dispersion of 0.1, and 30 % of their counts in genes of all programs. 'easy' and 'hard' "
        "have 400 cells with means of 0.35 and 0.2, and a third of the counts in genes of all "
        "programs. Where pairs share genes, every second program partly equals the one before "
        f"it. Halves: the rows are halved at random {n_splits} times. Each half is fitted with "
        f"the number of classes as the number of clusters, and with {MORE} more. The return of a "
        "cluster is the largest cosine of its columns with those of a cluster of the other half. "
        "The correlation is over all clusters of all halves of a matrix, and 0 if one of the two "
        "is constant. 'log1p' are logarithms of the entries plus 1. The default of a loss is "
        f"chosen by a rule. It considers the schemes that find at most {FEWER:.1%} fewer programs "
        "than runs on X itself, with as many clusters as programs. Among these, it chooses the "
        f"fastest of those whose mean of AUC and correlation is within {TIE:g} of the largest. "
        "Seconds are processor time."
    )


def mean_figures(runs: planted.Runs, returned: halves.Returns) -> Means:
    """Return all figures of every table, means over seeds."""
    means: Means = {}
    for (loss, name, way), own in runs.items():
        for figure in planted.FIGURES:
            means.setdefault((figure, loss, way), {})[name] = planted.mean(own, figure)
    for (loss, name, way), both in returned.items():
        means.setdefault((SPEARMAN, loss, way), {})[name] = halves.correlation(both)
    return means


def over(means: Means, figure: str, loss: str, way: Way, without: str = "") -> float:
    """Return the mean over tables that have the figure, NaN without any."""
    own = [
        v for name, v in means.get((figure, loss, way), {}).items() if name != without
    ]
    values = np.array([value for value in own if not np.isnan(value)])
    return float(values.mean()) if len(values) else float("nan")


def ways_of(means: Means, loss: str) -> list[Way]:
    return [way for way in WAYS if (AUC, loss, way) in means]


def chosen(means: Means, loss: str, without: str = "") -> Way:
    """Return the default of a loss by the rule, where one table is not looked at."""
    least = over(means, AT_K, loss, None, without) - FEWER
    able = [
        way
        for way in ways_of(means, loss)
        if not over(means, AT_K, loss, way, without)
        < least  # NaN: no planted table is left
    ]
    worth = {way: quality(means, loss, way, without) for way in able}
    near = [way for way in able if worth[way] >= max(worth.values()) - TIE]
    return min(near, key=lambda way: over(means, SECONDS, loss, way, without))


def quality(means: Means, loss: str, way: Way, without: str = "") -> float:
    """Return the mean of AUC and correlation, or that of both which there is."""
    both = [over(means, figure, loss, way, without) for figure in (AUC, SPEARMAN)]
    there = [value for value in both if not np.isnan(value)]
    return float(np.mean(there)) if there else -1.0


def by_way(means: Means) -> list[report.Row]:
    """Return a row for every loss and way, with the means over all tables."""
    rows = []
    for loss in LOSSES:
        for way in ways_of(means, loss):
            row: report.Row = {"loss": loss, "resample": str(way)}
            row |= {f: f"{over(means, f, loss, way):.3f}" for f in (AUC, AT_K, AT_MORE)}
            correlations = means.get((SPEARMAN, loss, way), {})
            for kind in dict.fromkeys(name.split(", ")[-1] for name in correlations):
                own = [
                    v
                    for name, v in correlations.items()
                    if name.split(", ")[-1] == kind
                ]
                row[f"{SPEARMAN}, {kind}"] = f"{np.mean(own):.3f}"
            row["seconds"] = f"{over(means, SECONDS, loss, way):.2f}"
            rows.append(row)
    return rows


def by_table(means: Means, figure: str) -> list[report.Row]:
    """Return a row for every loss and table, with a column for every way."""
    rows = []
    for loss in LOSSES:
        for name in means.get((figure, loss, None), {}):
            row: report.Row = {"loss": loss, "table": name}
            for way in ways_of(means, loss):
                value = means.get((figure, loss, way), {}).get(name)
                row[str(way)] = (
                    None if value is None or np.isnan(value) else f"{value:.3f}"
                )
            rows.append(row)
    return rows


def left_out(means: Means) -> list[report.Row]:
    """Return how the rule does on the tables that it has not seen, by loss and figure."""
    rows = []
    for loss in LOSSES:
        for figure in (AUC, AT_K, SPEARMAN):
            names = [
                n
                for n, v in means.get((figure, loss, None), {}).items()
                if not np.isnan(v)
            ]
            if not names:
                continue
            picks = [chosen(means, loss, name) for name in names]
            row: report.Row = {"loss": loss, "figure": figure, "tables": len(names)}
            often = sorted(dict.fromkeys(picks), key=picks.count, reverse=True)
            row["chosen"] = ", ".join(f"{way!s} {picks.count(way)}" for way in often)
            of_pick = [
                means[figure, loss, way][n] for n, way in zip(names, picks, strict=True)
            ]
            row["of the chosen"] = f"{np.nanmean(of_pick):.3f}"
            row["of None"] = (
                f"{np.mean([means[figure, loss, None][n] for n in names]):.3f}"
            )
            rows.append(row)
    return rows


def verdicts(means: Means) -> list[str]:
    lines = []
    for loss in LOSSES:
        for name in ("easy", "hard"):
            value = means.get((AUC, loss, "poisson"), {}).get(name)
            if value is not None:
                met = "met" if round(value, 3) >= ENOUGH else "missed"
                lines.append(
                    f"{loss}, {name}: AUC {value:.3f} with 'poisson' (target: {ENOUGH:g}): {met}."
                )
        way = chosen(means, loss)
        value = over(means, SPEARMAN, loss, way)
        lines.append(
            f"{loss}: the rule takes resample={way!r}, AUC {over(means, AUC, loss, way):.3f} "
            f"({over(means, AUC, loss, None):.3f} with None), Spearman correlation {value:.3f} "
            f"({over(means, SPEARMAN, loss, None):.3f} with None; target: {AGREES:g}): "
            f"{'met' if round(value, 3) >= AGREES else 'missed'}."
        )
    return lines


def _draw(means: Means, figure: Any) -> None:
    figure.set_size_inches(9, 4)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, loss in zip(axes, LOSSES, strict=True):
        ways = ways_of(means, loss)
        at = np.arange(len(ways))
        for offset, name in ((-0.15, AUC), (0.15, SPEARMAN)):
            for place, way in zip(at, ways, strict=True):
                values = list(means.get((name, loss, way), {}).values())
                colour = "C0" if name == AUC else "C1"
                ax.plot(
                    [place + offset] * len(values), values, ".", color=colour, alpha=0.4
                )
            mean = [over(means, name, loss, way) for way in ways]
            ax.plot(at + offset, mean, "_", color="k", markersize=14)
        ax.set_xticks(at, [str(way) for way in ways], rotation=30)
        ax.set_title(loss, fontsize="small")
    axes[0].set_ylabel("AUC (blue), correlation (orange)")
