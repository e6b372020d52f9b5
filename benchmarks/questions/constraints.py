"""How accurate is clustering under 200 constraints beside Li, Ding and Jordan (2007) and peers?

Table 2 of the paper is the first comparison. All methods get the same features and the same
constraints, drawn from all pairs of samples. No parameter is tuned to a data set.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, methods, report, trials
from benchmarks.methods import peer_activesemi
from benchmarks.runner import Progress

#: accuracies of k-means, MPCKmeans and NMFS in Table 2; Protein is not available
TABLE_2 = {
    "digits389": (0.5855, 0.7400, 0.7346),
    "glass": (0.3832, 0.4752, 0.4673),
    "iris": (0.8263, 0.9400, 0.9600),
    "letterIJL": (0.4890, 0.5178, 0.5286),
    "soybean": (0.7830, 0.8298, 0.8936),
}
PRINTED = ("k-means", "MPCKmeans", "NMFS")
MORE = ("wine, standardised", "digits 3/8/9")
OURS = "SSNMF"
VARIANTS = (OURS, "SSNMF, soft")
OTHERS = ("KMeans(n_init=10)", "SS-KK", "SS-SNC, graph", *peer_activesemi.NAMES)
COUNTS = (0, 50, 100, 200, 400, 800)
CHOSEN = 200
FIGURES = {
    "accuracy": "Accuracy",
    "free": "Accuracy on samples in no constraint",
    "violated": "Share of violated constraints",
    "seconds": "Seconds",
}

Runs = dict[str, list[trials.Run]]  # by method


def run(quick: bool, out: Path) -> list[Path]:
    names, counts, n_trials = (*TABLE_2, *MORE), COUNTS, 5
    if quick:
        names, counts, n_trials = ("iris",), (20, CHOSEN), 1
    takers, skipped = methods.available((*VARIANTS, *OTHERS))
    sets, missing = datasets.available(names)
    progress = Progress("constraints", len(sets) * len(counts))
    results: dict[tuple[str, int], Runs] = {}
    for name, data in sets.items():
        for count in counts:
            results[name, count] = trials.of_pairs(data, takers, count, n_trials)
            progress.step(f"{name}, {count} constraints")
    chosen = {name: results[name, CHOSEN] for name in sets}
    rows = [_row(data, chosen[name]) for name, data in sets.items()]
    tables = {f"Accuracy with {CHOSEN} constraints": rows}
    for figure in ("free", "violated", "seconds"):
        tables[FIGURES[figure]] = [_figures(name, runs, figure) for name, runs in chosen.items()]
    caption = (
        "Clustering under constraints beside Table 2 of Li, Ding and Jordan (2007): means over "
        f"{n_trials} trials, a draw of the constraints (and of the data, where there are draws) "
        "each. SSNMF is SSNMFClusterer with its defaults, 'soft' with hard_must_link=False; SS-KK "
        "is kernel k-means under constraints, SS-SNC spectral clustering of the same "
        "neighbour graph as ours with its entries replaced; the others are scikit-learn's KMeans "
        "and active-semi-supervised-clustering. A sample in no constraint is right if its "
        "cluster is that of its class under the matching of all samples."
    )
    notes = [*_verdicts(rows, results), *_failures(results)]
    details = {"all counts": [_detail(*key, name, runs) for key, name, runs in _flat(results)]}
    draw = partial(_draw, results)
    return report.write(
        out, "constraints", caption, tables, draw, notes, skipped | missing, details
    )


def _flat(results: dict[tuple[str, int], Runs]) -> list[tuple[tuple[str, int], str, Any]]:
    return [(key, name, runs) for key, by_name in results.items() for name, runs in by_name.items()]


def _row(data: datasets.Dataset, runs: Runs) -> report.Row:
    row: report.Row = {"data": data.name}
    for column, printed in zip(PRINTED, TABLE_2.get(data.name, ()), strict=False):
        row[f"{column}, paper"] = f"{printed:.3f}"
    means = {name: round(trials.mean(own, "accuracy"), 3) for name, own in runs.items()}
    for name, own in runs.items():
        row[name] = f"{means[name]:.3f} ± {trials.spread(own):.3f}"
    others = [name for name in runs if name not in VARIANTS and not np.isnan(means[name])]
    best = max(others, key=means.__getitem__)
    row["best of the others"] = best
    row["ours at it or above"] = _yes(means[OURS] >= means[best])
    if data.name in TABLE_2:
        row["ours at the paper's"] = _yes(means[OURS] >= max(TABLE_2[data.name]))
    row["the data"] = "the paper's" if data.own else data.note
    return row


def _figures(name: str, runs: Runs, figure: str) -> report.Row:
    values = {method: trials.mean(own, figure) for method, own in runs.items()}
    if figure == "free":
        values = {"samples a trial": trials.mean(runs[OURS], "free samples"), **values}
    return {"data": name} | {m: None if np.isnan(v) else v for m, v in values.items()}


def _detail(name: str, count: int, method: str, runs: list[trials.Run]) -> report.Row:
    return {"data": name, "constraints": count, "method": method} | trials.summary(runs)


def _verdicts(rows: list[report.Row], results: dict[tuple[str, int], Runs]) -> list[str]:
    printed = [row for row in rows if "ours at the paper's" in row]
    below = [row["data"] for row in printed if row["ours at the paper's"] == "no"]
    told = [
        f"With its defaults SSNMFClusterer is at or above all figures of the paper on "
        f"{len(printed) - len(below)} of {len(printed)} sets (not: {', '.join(below) or 'none'})."
    ]
    for count in sorted({count for _, count in results}, key=lambda n: (n != CHOSEN, n)):
        told.append(f"With {count} constraints: {_compared(results, count, 'accuracy')}.")
        if count == CHOSEN:
            told.append(f"On samples in none of them: {_compared(results, count, 'free')}.")
    return told


def _compared(results: dict[tuple[str, int], Runs], count: int, figure: str) -> str:
    """Say on how many sets ours is as good as the best of the others, and which are better."""
    seen, behind = 0, []
    for name, runs in ((name, runs) for (name, n), runs in results.items() if n == count):
        means = {method: round(trials.mean(own, figure), 3) for method, own in runs.items()}
        others = [m for m in means if m not in VARIANTS and not np.isnan(means[m])]
        if np.isnan(means[OURS]) or not others:
            continue
        seen += 1
        best = max(others, key=means.__getitem__)
        if means[OURS] < means[best]:
            behind.append(f"{name}, {means[OURS]:.3f} against {means[best]:.3f} of {best}")
    return (
        f"at or above the best of the others on {seen - len(behind)} of {seen} sets "
        f"(not: {'; '.join(behind) or 'none'})"
    )


def _failures(results: dict[tuple[str, int], Runs]) -> list[str]:
    failed = [
        f"{method} on {data} with {count} constraints ({trials.failures(runs)} of {len(runs)})"
        for (data, count), method, runs in _flat(results)
        if trials.failures(runs)
    ]
    if not failed:
        return []
    return [f"Runs that found no clustering, and are left out of the means: {'; '.join(failed)}."]


def _yes(true: bool) -> str:
    return "yes" if true else "no"


def _draw(results: dict[tuple[str, int], Runs], figure: Any) -> None:
    names = list(dict.fromkeys(name for name, _ in results))
    counts = sorted({count for _, count in results})
    axes, beside = report.panels(figure, names)
    for ax, name in zip(axes, names, strict=True):
        for method in results[name, CHOSEN]:
            means = [trials.mean(results[name, count][method], "accuracy") for count in counts]
            style = "-" if method in VARIANTS else ":"
            ax.plot(counts, means, style, marker=".", label=method)
        if name in TABLE_2:
            ax.plot(CHOSEN, TABLE_2[name][-1], "k_", ms=12, mew=2, label="NMFS, paper")
    beside.legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize="small")
    figure.supxlabel("constraints", fontsize="small")
    figure.supylabel("clustering accuracy", fontsize="small")
