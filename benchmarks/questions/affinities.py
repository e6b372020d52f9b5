"""Are the default similarities of SSNMFClusterer right on many sets, by number of constraints?

They are held beside the graph of nearest neighbours and beside landmarks, on all sets of features
that the data folder has, dense and text.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import datasets, methods, report
from benchmarks.datasets import every
from benchmarks.runner import Progress
from nmfcluster.constraints import PairwiseConstraints

COUNTS: tuple[int, ...] = (0, 50, 200, 600)
OURS, OLD, ALWAYS = "defaults", "nearest_neighbors", "landmarks"
VARIANTS = {OURS: "SSNMF", OLD: "SSNMF, neighbours", ALWAYS: "SSNMF, landmarks"}
KINDS = {"dense": every.STANDARDISED, "text": every.TFIDF}  # the end of their names
CLOSE = 0.01  # ARI within which two affinities count as equal on a set

Runs = dict[tuple[str, int, str], list[dict[str, float]]]  # by data, constraints, affinity


def run(quick: bool, out: Path) -> list[Path]:
    names, counts, n_draws = every.ALL, COUNTS, 5
    if quick:
        names, counts, n_draws = every.BUNDLED, COUNTS[:2], 1
    sets, missing = datasets.available(names)
    progress = Progress("affinities", len(sets) * len(counts))
    runs: Runs = {}
    for name, data in sets.items():
        for count in counts:
            _measure(runs, data, count, n_draws)
            progress.step(f"{name}, {count} constraints")
    rows = [_row(data, runs, counts) for data in sets.values()]
    means = [_means(kind, rows, counts) for kind in (*KINDS, "all")]
    means = [row for row in means if row["sets"]]
    caption = (
        "Mean adjusted Rand index of SSNMFClusterer by number of constraints and affinity, over "
        f"{n_draws} draws of the constraints and starts; at most {every.MOST:,} rows of a set, "
        "always the same, each of which is a landmark then. Features are standardised, counts of "
        "words weighted as tf-idf with rows of length 1; nothing is tuned to a set. Some sets are "
        "classes of others: digits389 and letterIJL of UCI's digits and letters, england_heart of "
        "oh0, graft_phos of oh5, interest_trade of re0; webace and k1b are the same documents in "
        "other classes. A mean counts each set once."
    )
    tables = {
        "Means over the sets": means,
        "Every set": rows,
        "Median seconds of a fit, summed over the sets": _seconds(runs, counts),
    }
    notes = _verdicts(rows, counts)
    draw = partial(_draw, rows, means, counts)
    details = {"draws": [_detail(key, own) for key, own in runs.items()]}
    return report.write(
        out, "affinities", caption, tables, draw, notes, missing | every.left_out(), details
    )


def _measure(runs: Runs, data: datasets.Dataset, count: int, n_draws: int) -> None:
    """Add the runs on draws 0, 1, ... of this many constraints, which all affinities get."""
    X, y = data.draw(0)
    takers = {title: methods.load(name) for title, name in VARIANTS.items()}
    for draw in range(n_draws):
        pairs = PairwiseConstraints.from_labels(y, n_pairs=count, random_state=draw)
        for title, method in takers.items():
            labels, seconds = method.run(X, pairs, len(np.unique(y)), draw)
            ari = float(adjusted_rand_score(y, labels))
            told = runs.setdefault((data.name, count, title), [])
            told.append({"ARI": ari, "s": seconds})


def _column(count: int, title: str) -> str:
    return f"{count}: {title}"


def _row(data: datasets.Dataset, runs: Runs, counts: tuple[int, ...]) -> report.Row:
    X, y = data.draw(0)
    row: report.Row = {"data": data.name, "samples": len(y), "features": X.shape[1]}
    row |= {"classes": len(np.unique(y)), "the data": data.note}
    for count in counts:
        for title in VARIANTS:
            values = [run["ARI"] for run in runs[data.name, count, title]]
            row[_column(count, title)] = round(float(np.mean(values)), 3)
    return row


def _means(kind: str, rows: list[report.Row], counts: tuple[int, ...]) -> report.Row:
    own = [row for row in rows if kind == "all" or row["data"].endswith(KINDS[kind])]
    mean: report.Row = {"kind": kind, "sets": len(own)}
    for column in _columns(counts) if own else ():
        mean[column] = f"{np.mean([row[column] for row in own]):.3f}"
    return mean


def _columns(counts: tuple[int, ...]) -> list[str]:
    return [_column(count, title) for count in counts for title in VARIANTS]


def _seconds(runs: Runs, counts: tuple[int, ...]) -> list[report.Row]:
    rows = []
    for count in counts:
        row: report.Row = {"constraints": count}
        for title in VARIANTS:
            own = [told for (_, n, name), told in runs.items() if (n, name) == (count, title)]
            row[title] = float(sum(np.median([run["s"] for run in told]) for told in own))
        rows.append(row)
    return rows


def _detail(key: tuple[str, int, str], own: list[dict[str, float]]) -> report.Row:
    row = dict(zip(("data", "constraints", "affinity"), key, strict=True))
    return row | {figure: [run[figure] for run in own] for figure in ("ARI", "s")}


def _verdicts(rows: list[report.Row], counts: tuple[int, ...]) -> list[str]:
    """Say on which sets the defaults are worse than another affinity, and than the best."""
    told = []
    for count in counts:
        for other in VARIANTS:
            if other == OURS:
                continue
            gaps = {
                row["data"]: row[_column(count, OURS)] - row[_column(count, other)] for row in rows
            }
            better = sum(gap > CLOSE for gap in gaps.values())
            worse = {name: gap for name, gap in gaps.items() if gap < -CLOSE}
            named = ", ".join(f"{name} by {-worse[name]:.3f}" for name in sorted(worse))
            told.append(
                f"With {count} constraints the mean ARI of the defaults less that of {other} is "
                f"{np.mean(list(gaps.values())):+.3f}; they are better by more than {CLOSE:g} on "
                f"{better} of {len(rows)} sets and worse on {len(worse)} ({named or 'none'})."
            )
    return told


def _draw(
    rows: list[report.Row], means: list[report.Row], counts: tuple[int, ...], figure: Any
) -> None:
    figure.set_size_inches(9, 3 + 0.2 * len(rows))
    left, right = figure.subplots(1, 2)
    for row in means:
        style = {"dense": "--", "text": ":", "all": "-"}[row["kind"]]
        for colour, title in enumerate(VARIANTS):
            values = [float(row[_column(count, title)]) for count in counts]
            label = f"{row['kind']}, {title}"
            left.plot(counts, values, style, marker=".", color=f"C{colour}", label=label)
    left.set(xlabel="constraints", ylabel="mean ARI")
    left.legend(fontsize="x-small")
    where = range(len(rows))
    for count in counts:
        gaps = [row[_column(count, OURS)] - row[_column(count, ALWAYS)] for row in rows]
        right.plot(gaps, where, "o", alpha=0.6, label=f"{count} constraints")
    right.axvline(0, color="k", lw=0.8)
    right.set_xlabel(f"ARI less that with {ALWAYS}", fontsize="small")
    right.set_yticks(where, [row["data"] for row in rows], fontsize="x-small")
    right.invert_yaxis()
    right.legend(fontsize="x-small")
