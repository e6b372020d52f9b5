"""Which known signatures are in a sample: sparse assignment, or the full fit and a cut?"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import report
from benchmarks.runner import Progress
from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_signatures
from nmfcluster.meta import assign

PLANTED = 10
GAINS = (2, 4, 6, 8, 10, 15, 20)  # nats
# shares of a sample below which a usage of the full fit is 0
CUTS = (0.0, 0.02, 0.05, 0.1)
TIE = 0.002  # F1, by which the smaller error of usages decides
FIGURES = F1, PRECISION, RECALL, ERROR, SECONDS = (
    "F1",
    "precision",
    "recall",
    "error",
    "seconds",
)


class Setting(NamedTuple):
    """Tables of planted signatures, and how many signatures are known."""

    burden: float
    n_known: int
    noise: float

    def __str__(self) -> str:
        noise = f", noise {self.noise:g}" if self.noise else ""
        return f"{self.burden:,.0f} mutations, {self.n_known} known{noise}"

    def draw(
        self, seed: int, n_samples: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return counts, usages and the catalogue, the planted signatures first."""
        given = {"burden": self.burden, "noise": self.noise, "random_state": seed}
        X, W, H = make_signatures(n_samples, PLANTED, **given)
        others = make_signatures(1, self.n_known - PLANTED, random_state=1000 + seed)[2]
        return (
            X,
            np.hstack([W, np.zeros((n_samples, len(others)))]),
            np.vstack([H, others]),
        )


SETTINGS = [
    Setting(b, k, s) for s in (0.0, 0.1) for k in (40, 80) for b in (100, 1000, 50_000)
]
TOY = [Setting(100, 20, 0.0), Setting(1000, 20, 0.0)]
Runs = dict[tuple[str, str], list[dict[str, float]]]  # by setting and way


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    settings, n_samples = (TOY, 10) if quick else (SETTINGS, 100)
    seeds = range(3 if all_seeds else 1)
    progress = Progress("assignments", len(settings) * len(seeds))
    runs: Runs = {}
    for setting in settings:
        for seed in seeds:
            for way, figures in compare(*setting.draw(seed, n_samples)).items():
                runs.setdefault((str(setting), way), []).append(figures)
            progress.step(str(setting))
    shown = {
        f"{figure} of the usages above 0": by_setting(runs, figure)
        for figure in FIGURES[:3]
    }
    shown["Error of usages: sum of their differences, as a share of the true ones"] = (
        by_setting(runs, ERROR)
    )
    shown["Means over the settings"] = by_way(runs)
    shown["The default, when each setting is left out"] = left_out(runs)
    caption = (
        f"The data are matrices of `make_signatures` with {n_samples} samples. {PLANTED} of the "
        f"known signatures are planted. Values are means over {len(seeds)} matrices of each "
        "setting. 'full' is NMFMetaCluster with all known signatures as fixed_components and "
        "loss='kullback-leibler'; usages below a share of the sample are set to 0. 'gain' is "
        "`assign` with that min_gain. A signature is in a sample if its true usage is above 0, "
        "even if it is far below one mutation. Noise is a share of each count. The default is "
        f"the gain with the smallest error among those whose mean F1 is within {TIE:g} of the "
        "largest. Seconds are for one matrix on one core."
    )
    details = {"runs": report.by_run(("setting", "way"), runs)}
    draw = partial(_draw, shown[f"{F1} of the usages above 0"])
    return report.write(out, "assignments", caption, shown, draw, [], {}, details)


def compare(X: np.ndarray, W: np.ndarray, H: np.ndarray) -> dict[str, dict[str, float]]:
    """Return the figures of every way."""
    start = time.process_time()
    model = NMFMetaCluster(
        len(H), loss="kullback-leibler", fixed_components=H, n_estimators=1
    )
    full = model.fit(X).factor_
    seconds = time.process_time() - start
    shares = full / np.maximum(full.sum(axis=1, keepdims=True), 1)
    figures = {
        f"full, cut {cut:g}": scored(np.where(shares >= cut, full, 0), W)
        | {SECONDS: seconds}
        for cut in CUTS
    }
    for gain in GAINS:
        start = time.process_time()
        usages = assign(X, H, min_gain=gain).usages
        figures[f"gain {gain}"] = scored(usages, W) | {
            SECONDS: time.process_time() - start
        }
    return figures


def scored(usages: np.ndarray, W: np.ndarray) -> dict[str, float]:
    """Return how well usages say which signatures there are, and how much of each."""
    found, there = usages > 0, W > 0
    both = np.count_nonzero(found & there)
    return {
        F1: 2 * both / (np.count_nonzero(found) + np.count_nonzero(there)),
        PRECISION: both / max(np.count_nonzero(found), 1),
        RECALL: both / np.count_nonzero(there),
        ERROR: float(np.abs(usages - W).sum() / W.sum()),
    }


def mean(runs: Runs, figure: str, way: str, without: str = "") -> float:
    """Return the mean over settings of those over seeds."""
    kept = [
        own
        for (setting, name), own in runs.items()
        if name == way and setting != without
    ]
    return float(np.mean([[run[figure] for run in figures] for figures in kept]))


def by_setting(runs: Runs, figure: str) -> list[report.Row]:
    rows: dict[str, report.Row] = {}
    for (setting, way), figures in runs.items():
        value = np.mean([run[figure] for run in figures])
        rows.setdefault(setting, {"setting": setting})[way] = f"{value:.3f}"
    return list(rows.values())


def by_way(runs: Runs) -> list[report.Row]:
    ways = dict.fromkeys(way for _, way in runs)
    return [
        {"way": way} | {f: f"{mean(runs, f, way):.3f}" for f in FIGURES} for way in ways
    ]


def chosen(runs: Runs, without: str = "") -> str:
    """Return the default by the rule, where one setting is not looked at."""
    worth = {f"gain {gain}": mean(runs, F1, f"gain {gain}", without) for gain in GAINS}
    near = [way for way in worth if worth[way] >= max(worth.values()) - TIE]
    return min(near, key=lambda way: mean(runs, ERROR, way, without))


def left_out(runs: Runs) -> list[report.Row]:
    """Return the default by the other settings, and its F1 on the one that is left out."""
    rows: list[report.Row] = [{"left out": "none", "chosen": chosen(runs)}]
    for setting in dict.fromkeys(setting for setting, _ in runs):
        best = chosen(runs, setting)
        value = np.mean([run[F1] for run in runs[setting, best]])
        rows.append({"left out": setting, "chosen": best, "F1 there": f"{value:.3f}"})
    return rows


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    ways = list(rows[0])[1:]
    for colour, row in zip(report.COLOURS * 2, rows, strict=False):
        values = [float(row[way]) for way in ways]
        ax.plot(
            range(len(ways)), values, marker="o", color=colour, label=row["setting"]
        )
    ax.set_xticks(range(len(ways)), ways, rotation=45, ha="right")
    ax.set_ylabel("F1")
    ax.legend(fontsize="small")
    figure.set_size_inches(8, 5)
