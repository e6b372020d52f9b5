"""How good is SSNMFClusterer with its defaults, by number of pairs, beside others, on many sets?

The others are constrained k-means, spectral clustering of edited similarities and with propagated
constraints, and methods that are told the classes behind the pairs.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, kept, methods, report
from benchmarks.datasets import every
from benchmarks.methods import peer_activesemi
from benchmarks.questions import _pairs_runs
from benchmarks.questions._pairs_runs import FIGURES, Failed, Runs
from benchmarks.runner import Progress

COUNTS: tuple[int, ...] = (0, 20, 50, 200, 600)
QUICK = ("wine, standardised", "cstr, tf-idf")
OURS, CEILING = "SSNMF", "LabelSpreading"
WITHIN = (OURS, "SSNMF, not spread", "SS-SNC, graph", "E2CP", "E2CP, scaled", CEILING)
PEERS = (*peer_activesemi.NAMES, "fast-hdbscan")
TOLD = (CEILING, "fast-hdbscan")  # the classes behind the pairs
COLUMNS = ("data", "pairs", "method")
DRAWS = "draws"  # heading of the details
PEER_DRAWS = 1  # each call of a peer starts a process
LONGEST = 10.0  # seconds of a call of a peer
WORSE = 0.02  # ARI below that without pairs
KINDS = {"dense": every.STANDARDISED, "text": every.TFIDF}  # the end of their names


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    names, counts = (QUICK, (0, 20)) if quick else (every.ALL, COUNTS)
    n_draws = 3 if all_seeds else 1
    takers, skipped = methods.available((*WITHIN, *PEERS))
    sets, missing = datasets.available(names)
    progress = Progress("pairs_everywhere", len(sets) * len(counts))
    others = kept.read(
        out / "pairs_everywhere.json",
        methods.packages(skipped),
        COLUMNS,
        {"data": list(sets), "pairs": counts},
        PEER_DRAWS,
        DRAWS,
    )
    runs: Runs = dict(others.runs)
    failed = _pairs_runs.kept_failures(others.runs, counts)
    for name, data in sets.items():
        for count in counts:
            for draw in range(n_draws):
                _pairs_runs.measure(
                    runs, failed, data, count, draw, _asked(takers, draw)
                )
            progress.step(f"{name}, {count} pairs")
    skipped = others.missing(skipped)
    shown = tuple(name for name in (*WITHIN, *PEERS) if name not in skipped)
    means = {
        figure: [
            row
            for kind in (*KINDS, "all")
            for count in counts
            if (row := _mean_row(runs, list(sets), kind, count, shown, figure))
        ]
        for figure in FIGURES
    }
    rows = [_row(data, runs, counts) for data in sets.values()]
    tables = {
        f"Mean ARI on {title}": means[figure] for figure, title in FIGURES.items()
    }
    tables[f"ARI of {OURS} on every set, by number of pairs"] = rows
    notes = [
        *_worse(rows, counts),
        *_compared(means["ARI"]),
        *_failures(runs, failed, counts),
        *others.notes(),
    ]
    caption, draw_it = _caption(len(sets), n_draws), partial(_draw, means)
    details = others.in_details(COLUMNS, runs, DRAWS)
    versions = others.versions(methods.packages(takers))
    skipped |= missing | every.left_out()
    return report.write(
        out,
        "pairs_everywhere",
        caption,
        tables,
        draw_it,
        notes,
        skipped,
        details,
        versions,
    )


def _caption(n_sets: int, n_draws: int) -> str:
    return (
        f"Adjusted Rand index (ARI) by number of pairs, on {n_sets} sets of features with at most "
        f"{every.MOST:,} rows each. Values are means over {n_draws} draw(s) of the pairs and "
        f"starts, and over {PEER_DRAWS} for other packages. No parameter is tuned to a set. "
        f"{OURS} is SSNMFClusterer with its defaults; 'not spread' has propagation=None and "
        "beta=1. SS-SNC is spectral clustering of the same graph with some entries replaced. "
        "E2CP is that of Lu and Ip (2010) on the same graph, as printed, and with the largest "
        f"propagated constraint scaled to 1. {' and '.join(TOLD)} get the classes of all samples "
        f"in pairs; {CEILING} is the upper limit. Each mean is over the sets for which all "
        f"methods of its row have a result. A method with fewer than {_pairs_runs.SHARE:.0%} of "
        "the sets is left out. Samples in no pair are scored if there are at least "
        f"{_pairs_runs.FEWEST}. Other packages are stopped after {LONGEST:g} s per call."
    )


def _asked(takers: dict[str, methods.Method], draw: int) -> dict[str, methods.Method]:
    """Return the methods that are asked on a draw, peers with less time."""
    asked = {}
    for name, method in takers.items():
        if name not in PEERS:
            asked[name] = method
        elif draw < PEER_DRAWS:
            limited: methods.Run = partial(method.run, longest=LONGEST)  # type: ignore[call-arg]
            asked[name] = methods.Method(name, limited, method.reason, method.wants)
    return asked


def _of_kind(names: list[str], kind: str) -> list[str]:
    return [name for name in names if kind == "all" or name.endswith(KINDS[kind])]


def _mean_row(
    runs: Runs,
    names: list[str],
    kind: str,
    count: int,
    takers: tuple[str, ...],
    figure: str,
) -> report.Row:
    """Return means over the sets of a kind that all methods have; nothing if there are none."""
    own = _of_kind(names, kind)
    values = _pairs_runs.table(runs, own, count, takers, figure)
    n_sets, told = _pairs_runs.shared_means(values) if own else (0, {})
    if not n_sets:
        return {}
    cells = {name: f"{told[name]:.3f}" if name in told else None for name in takers}
    return {"kind": kind, "pairs": count, "sets": n_sets} | cells


def _row(data: datasets.Dataset, runs: Runs, counts: tuple[int, ...]) -> report.Row:
    X, y = data.draw(0)
    row: report.Row = {"data": data.name, "samples": len(y), "features": X.shape[1]}
    row["classes"] = len(np.unique(y))
    told = {
        count: _pairs_runs.mean(runs[data.name, count, OURS], "ARI") for count in counts
    }
    row |= {str(count): round(value, 3) for count, value in told.items()}
    worse = [str(count) for count in counts if told[count] < told[counts[0]] - WORSE]
    return row | {"worse than without with": ", ".join(worse)}


def _worse(rows: list[report.Row], counts: tuple[int, ...]) -> list[str]:
    """Say on which sets ours is worse with pairs than without."""
    told = []
    for count in map(str, counts[1:]):
        gaps = {row["data"]: row[count] - row[str(counts[0])] for row in rows}
        worse = {name: gap for name, gap in gaps.items() if gap < -WORSE}
        named = ", ".join(f"{name} by {-gap:.3f}" for name, gap in worse.items())
        told.append(
            f"With {count} pairs the mean ARI of {OURS} less that without is "
            f"{np.mean(list(gaps.values())):+.3f}; worse by more than {WORSE:g} on {len(worse)} of "
            f"{len(rows)} sets ({named or 'none'})."
        )
    return told


def _compared(means: list[report.Row]) -> list[str]:
    told = []
    for row in (row for row in means if row["kind"] == "all"):
        others = {
            m: float(row[m]) for m in (*WITHIN, *PEERS) if m not in TOLD and row.get(m)
        }
        ours = others.pop(OURS)
        best = max(others, key=others.__getitem__)
        told.append(
            f"With {row['pairs']} pairs the best of the others that get pairs, on the mean of all "
            f"samples, is {best}: {others[best]:.3f} against {ours:.3f}."
        )
    return told


def _failures(runs: Runs, failed: Failed, counts: tuple[int, ...]) -> list[str]:
    """Say which methods failed, and how often one that may be asked found no clustering."""
    told = []
    for name, why in sorted({(name, why) for name, _, why in failed}):
        where = [
            data for method, data, reason in failed if (method, reason) == (name, why)
        ]
        told.append(
            f"{name} {why} on {len(where)} sets ({', '.join(where)}), not asked there again"
        )
    given_up = {(name, data) for name, data, _ in failed}
    for name in dict.fromkeys(name for *_, name in runs):
        for count in counts:
            if name in TOLD and not count:
                continue
            lost = sum(
                all(np.isnan(each["ARI"]) for each in own)
                and (name, data) not in given_up
                for (data, n, method), own in runs.items()
                if (n, method) == (count, name)
            )
            if lost:
                told.append(
                    f"{name} found no clustering on {lost} sets with {count} pairs"
                )
    return [f"{'; '.join(told)}."] if told else []


def _draw(means: dict[str, list[report.Row]], figure: Any) -> None:
    panels = [(figure_, kind) for figure_ in FIGURES for kind in (*KINDS, "all")]
    axes, legend = report.panels(
        figure, [f"{kind}, {FIGURES[f]}" for f, kind in panels]
    )
    for ax, (name, kind) in zip(axes, panels, strict=True):
        own = [row for row in means[name] if row["kind"] == kind]
        for colour, method in enumerate((*WITHIN, *PEERS)):
            points = [
                (row["pairs"], float(row[method])) for row in own if row.get(method)
            ]
            style = "-" if method == OURS else ":"
            ax.plot(
                *zip(*points, strict=True) if points else ([], []),
                style,
                marker=".",
                color=f"C{colour}",
                label=method,
            )
        ax.set_xscale("symlog", linthresh=20)
        ax.set_xlabel("pairs", fontsize="small")
    axes[0].set_ylabel("mean ARI", fontsize="small")
    legend.legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize="small")
