"""Do pairs that are held out choose good parameters of SSNMFClusterer, where pairs are few?

Held-out pairs are compared with held-out samples, with no choice at all, and with the truth, on
all sets of features that the data folder has.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ShuffleSplit

from benchmarks import datasets, report
from benchmarks.datasets import every
from benchmarks.runner import Progress
from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.model_selection import ConstraintScorer, HeldOutPairsScorer

COUNTS: tuple[int, ...] = (100, 200, 600)
MOST = 600  # rows, so that all candidates take minutes
TARGET = 0.03  # ARI below the best of a grid
SOFT = {"hard_must_link": False}
GRIDS: dict[str, tuple[dict[str, Any], ...]] = {  # the first is taken without a search
    "n_neighbors": ({}, {"n_neighbors": 5}, {"n_neighbors": 20}),
    "affinity": ({}, {"affinity": "landmarks"}),
    "hard_must_link, alpha": ({}, *({**SOFT, "alpha": alpha} for alpha in (1.0, 0.5, 2.0))),
    "alpha, beta, soft": tuple(
        {**SOFT, "alpha": alpha, **other} for alpha in (1.0, 2.0) for other in ({}, {"beta": 0.5})
    ),
}
DEFAULT, PAIRS, SAMPLES, ORACLE = "the first", "held-out pairs", "held-out samples", "the truth"
WAYS = (DEFAULT, PAIRS, SAMPLES, ORACLE)

Scores = dict[str, float]  # of a candidate, by who says it
Runs = dict[tuple[str, int, int], dict[str, Scores]]  # by data, pairs, draw; by candidate


def run(quick: bool, out: Path) -> list[Path]:
    names, counts, n_draws = every.ALL, COUNTS, 1
    if quick:
        names, counts, n_draws = every.BUNDLED, COUNTS[:1], 1
    sets, missing = datasets.available(names)
    progress = Progress("choosing_by_pairs", len(sets) * len(counts) * n_draws)
    runs: Runs = {}
    for draw in range(n_draws):
        for name, data in sets.items():
            X, y = every.at_most(*data.draw(0), MOST)
            for count in counts:
                runs[name, count, draw] = _scores(X, y, count, draw)
                progress.step(f"{name}, {count} pairs, draw {draw}")
    rows = [_row(grid, count, runs) for grid in GRIDS for count in counts]
    caption = (
        "Mean adjusted Rand index of what is chosen among the candidates of a grid, less that of "
        f"the single candidate that is best on the mean, over {len(sets)} sets and {n_draws} "
        "draw(s) of the pairs: negative where it is worse. The first: the candidate that is taken "
        "without a search. Held-out pairs: HeldOutPairsScorer. Held-out samples: ConstraintScorer "
        "with two splits into halves. The truth: the best candidate of every set and draw. At "
        f"most {MOST} rows of a set; features are standardised, counts of words are tf-idf."
    )
    details = {"candidates": [row for key, own in runs.items() for row in _detail(key, own)]}
    tables = {"Chosen less best": rows}
    draw_it = partial(_draw, rows)
    return report.write(
        out,
        "choosing_by_pairs",
        caption,
        tables,
        draw_it,
        _notes(rows),
        missing | every.left_out(),
        details,
    )


def _scores(X: Any, y: np.ndarray, count: int, draw: int) -> dict[str, Scores]:
    """Return what is said of every candidate, by its name."""
    pairs = PairwiseConstraints.from_labels(y, n_pairs=count, random_state=draw)
    scores = {}
    for candidate in {_named(each): each for grid in GRIDS.values() for each in grid}.values():
        model = SSNMFClusterer(
            len(np.unique(y)), contradictions="ignore", random_state=draw, **candidate
        )
        scores[_named(candidate)] = {
            PAIRS: HeldOutPairsScorer(random_state=draw)(model, X, pairs),
            SAMPLES: _by_samples(model, X, pairs),
            ORACLE: float(adjusted_rand_score(y, model.fit(X, constraints=pairs).labels_)),
        }
    return scores


def _by_samples(model: SSNMFClusterer, X: Any, pairs: PairwiseConstraints) -> float:
    told = []
    for train, test in ShuffleSplit(2, test_size=0.5, random_state=0).split(np.arange(len(pairs))):
        if pairs[test].n_pairs:  # else there is nothing to ask
            model.fit(X[train], constraints=pairs[train])
            told.append(ConstraintScorer(balanced=True)(model, X[test], pairs[test]))
    return float(np.mean(told)) if told else 0.0


def _named(candidate: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in candidate.items()) or "defaults"


def _row(grid: str, count: int, runs: Runs) -> report.Row:
    """Return the ARI of what is chosen, less that of the best single candidate."""
    names = [_named(candidate) for candidate in GRIDS[grid]]
    own = [scores for (_, n, _), scores in runs.items() if n == count]
    truth = np.array([[scores[name][ORACLE] for name in names] for scores in own])
    best = int(truth.mean(axis=0).argmax())
    row: report.Row = {"grid": grid, "pairs": count, "best single": names[best]}
    row["its ARI"] = f"{truth[:, best].mean():.3f}"
    for way in WAYS:
        chosen = np.zeros(len(own), dtype=int)
        if way != DEFAULT:
            chosen = np.array([[scores[name][way] for name in names] for scores in own]).argmax(1)
        gain = truth[np.arange(len(own)), chosen] - truth[:, best]
        row[way] = f"{gain.mean():+.3f}"
    return row


def _detail(key: tuple[str, int, int], own: dict[str, Scores]) -> list[report.Row]:
    place = dict(zip(("data", "pairs", "draw"), key, strict=True))
    return [{**place, "candidate": name, **scores} for name, scores in own.items()]


def _notes(rows: list[report.Row]) -> list[str]:
    """Say how far what is chosen is below the best single candidate, at worst."""
    told = []
    for way in WAYS[:-1]:
        worst = min(rows, key=lambda row: float(row[way]))
        kept = "within" if float(worst[way]) >= -TARGET else "not within"
        told.append(
            f"{way}: {kept} {TARGET:g} of the best single candidate of every grid; at worst "
            f"{worst[way]}, of {worst['grid']} with {worst['pairs']} pairs."
        )
    return told


def _draw(rows: list[report.Row], figure: Any) -> None:
    grids = list(dict.fromkeys(row["grid"] for row in rows))
    axes, legend = report.panels(figure, grids)
    for ax, grid in zip(axes, grids, strict=True):
        own = [row for row in rows if row["grid"] == grid]
        for way in WAYS:
            ax.plot(
                [row["pairs"] for row in own], [float(row[way]) for row in own], ".-", label=way
            )
        ax.axhline(0, color="k", lw=0.8)
        ax.set_xlabel("pairs", fontsize="small")
    axes[0].set_ylabel("ARI less that of the best", fontsize="small")
    legend.legend(*axes[0].get_legend_handles_labels(), fontsize="small", loc="center")
