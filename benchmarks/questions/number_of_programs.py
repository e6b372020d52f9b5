"""Does one call find the planted number of programs in counts, and what does it cost?

Tables are of moderate noise, and the candidates those that a user would give who knows nothing.
"""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.questions.how_many_programs import KINDS, Planted
from benchmarks.runner import Progress
from nmfcluster import NMFMetaCluster
from nmfcluster.model_selection import choose_n_clusters

N_TABLES = 50  # of each kind
SEED = 29  # of the settings, and of the tables: others than those of how_many_programs
FEWEST, NUMBERS = 3, 10  # planted programs: from, and how many numbers
LARGEST = 15  # candidate
EXACT = 0.9  # of the tables, target
#: what differs between tables, drawn for each
SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "programs": {
        "n_samples": (200, 400),
        "n_features": (500, 1000),
        "depth": (500, 1000, 2000),
        "dispersion": (0, 0.1),
    },
    "signatures": {"n_samples": (100, 200, 400), "burden": (500, 1000, 2000), "noise": (0.05,)},
}


def run(quick: bool, out: Path) -> list[Path]:
    tables = planted(1 if quick else N_TABLES)
    largest = 4 if quick else LARGEST
    progress = Progress("number_of_programs", len(tables))
    rows = []
    for table in tables:
        rows.append(_answer(table, range(2, largest + 1)))
        progress.step(f"{table.kind}, {table.k}")
    caption = (
        f"{len(tables) // 2} tables of `make_programs` and as many of `make_signatures`, with "
        f"{FEWEST} to {FEWEST + NUMBERS - 1} planted programs; samples, features, depth or burden, "
        "and dispersion are drawn for each. `choose_n_clusters(NMFMetaCluster(2, "
        f"loss='kullback-leibler'), X, range(2, {largest + 1}))`. 'as good' counts the tables of "
        "which the planted number is among those that the result names as good as the one it "
        "chose. 'times a fit': seconds of the call over those of a fit with the planted number."
    )
    summary = [_summary(rows, kind) for kind in (*KINDS, "all")]
    share = summary[-1]["exact"] / summary[-1]["tables"]
    told = "met" if share >= EXACT else "missed"
    notes = [f"The number is exact on {share:.0%} of the tables (target: {EXACT:.0%}): {told}."]
    headings = {"Right answers": summary}
    details = {"Every table": rows}
    draw = partial(_draw, rows)
    return report.write(out, "number_of_programs", caption, headings, draw, notes, details=details)


def planted(n_tables: int) -> list[Planted]:
    """Return tables of both kinds, whose settings are drawn."""
    rng = np.random.default_rng(SEED)
    found = []
    for kind, choices in SETTINGS.items():
        for i in range(n_tables):
            settings = {name: rng.choice(values).item() for name, values in choices.items()}
            found.append(Planted(kind, FEWEST + i % NUMBERS, settings, 1000 * SEED + i))
    return found


def _answer(table: Planted, candidates: range) -> report.Row:
    X, _ = table.make()
    model = NMFMetaCluster(table.k, loss="kullback-leibler", random_state=table.seed)
    began = perf_counter()
    model.fit(X)
    alone = perf_counter() - began
    began = perf_counter()
    with warnings.catch_warnings():  # of the largest candidate: it is counted
        warnings.simplefilter("ignore", UserWarning)
        found = choose_n_clusters(model, X, candidates, random_state=table.seed)
    seconds = perf_counter() - began
    as_good = found.candidates[found.as_good].tolist()
    row: report.Row = {"kind": table.kind, "k": table.k, **table.settings}
    row |= {"chosen": found.n_clusters_, "as good": ", ".join(map(str, as_good))}
    return row | {"among": table.k in as_good, "s": seconds, "times a fit": seconds / alone}


def _summary(rows: list[report.Row], kind: str) -> report.Row:
    own = [row for row in rows if kind in (row["kind"], "all")]
    off = np.array([row["chosen"] - row["k"] for row in own])
    return {
        "tables of": kind,
        "tables": len(own),
        "exact": int((off == 0).sum()),
        "within one": int((abs(off) <= 1).sum()),
        "as good": sum(row["among"] for row in own),
        "off by": float(off.mean()),
        "s, median": float(np.median([row["s"] for row in own])),
        "times a fit, median": float(np.median([row["times a fit"] for row in own])),
    }


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        ax.scatter([row["k"] for row in own], [row["chosen"] for row in own], alpha=0.3, label=kind)
    ends = [FEWEST, FEWEST + NUMBERS - 1]
    ax.plot(ends, ends, color="0.7", zorder=0)
    ax.set(xlabel="planted number", ylabel="number that was chosen")
    ax.legend()
