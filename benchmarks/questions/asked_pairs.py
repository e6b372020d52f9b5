"""What are pairs worth that next_pairs asks about, beside pairs that are drawn at random?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import datasets, report
from benchmarks.datasets import every
from benchmarks.methods import ssnmf
from benchmarks.methods.farthest import farthest_pairs
from benchmarks.runner import Progress
from nmfcluster.constraints import PairwiseConstraints, next_pairs

COUNTS, STEP = (25, 50, 100, 200), 5  # answers, and those between two fits
ASKED, FARTHEST, RANDOM = "next_pairs", "MinMax", "random"
MOST_ASKED = 100  # answers of those who are asked
QUICK = ("wine, standardised", "zoo, standardised")
N_DRAWS = 3
MOST = 600  # rows: a set is fitted 20 times for every draw and way

Runs = dict[tuple[str, str, int], list[float]]  # by data, way, answers


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    names, n_draws = QUICK if quick else every.ALL, N_DRAWS if all_seeds else 1
    sets, missing = datasets.available(names)
    progress = Progress("asked_pairs", len(sets) * n_draws)
    runs: Runs = {}
    for name, data in sets.items():
        X, y = every.at_most(*data.draw(0), MOST)
        for draw in range(n_draws):
            for key, score in _scores(X, y, draw).items():
                runs.setdefault((name, *key), []).append(score)
            progress.step(name)
    rows_ = [_row(runs, list(sets), way) for way in (ASKED, FARTHEST, RANDOM)]
    caption = (
        "Mean adjusted Rand index of SSNMFClusterer with its defaults, by number of answers, on "
        f"{len(sets)} sets of features with at most {MOST} rows each, over {n_draws} draw(s). "
        f"next_pairs asks for {STEP} pairs at a time. MinMax (Mallapragada, Jin, Jain, 2008), "
        "which does not use the fit, asks for one. The rules were chosen on the same sets with "
        "other draws."
    )
    tables = {"Mean ARI by number of answers": rows_}
    details = {"runs": report.by_run(("data", "way", "answers"), runs)}
    notes, draw_it, skipped = (
        [_worth(rows_)],
        partial(_draw, rows_),
        missing | every.left_out(),
    )
    return report.write(
        out, "asked_pairs", caption, tables, draw_it, notes, skipped, details
    )


def _scores(X: Any, y: np.ndarray, draw: int) -> dict[tuple[str, int], float]:
    k, scores = len(np.unique(y)), {}
    codes = np.unique(y, return_inverse=True)[1]

    def score(pairs: PairwiseConstraints) -> float:
        return float(adjusted_rand_score(codes, ssnmf.cluster(X, pairs, k, draw)))

    links = farthest_pairs(X, codes, MOST_ASKED, np.random.default_rng(draw))
    for count in COUNTS:
        pairs = PairwiseConstraints.from_labels(codes, count, random_state=1000 + draw)
        scores[RANDOM, count] = score(pairs)
        if count <= MOST_ASKED:
            scores[FARTHEST, count] = score(answered(codes, links[:count]))
    return scores | _asked(X, codes, k, draw)


def _asked(
    X: Any, codes: np.ndarray, k: int, draw: int
) -> dict[tuple[str, int], float]:
    scores, links = {}, np.empty((0, 2), dtype=int)
    for count in range(0, MOST_ASKED + 1, STEP):
        model = ssnmf.fit(X, answered(codes, links), k, draw)
        if count in COUNTS:
            scores[ASKED, count] = float(adjusted_rand_score(codes, model.labels_))
        found = next_pairs(model, X, STEP, random_state=draw)  # none once all is known
        links = np.concatenate([links, found])
    return scores


def answered(codes: np.ndarray, links: np.ndarray) -> PairwiseConstraints:
    """Return what somebody who knows the classes says of pairs."""
    same = codes[links[:, 0]] == codes[links[:, 1]]
    return PairwiseConstraints(len(codes), links[same], links[~same])


def _row(runs: Runs, names: list[str], way: str) -> report.Row:
    row: report.Row = {"pairs": way}
    for count in COUNTS:
        if (names[0], way, count) in runs:
            row[str(count)] = (
                f"{np.mean([np.mean(runs[name, way, count]) for name in names]):.3f}"
            )
    return row


def _worth(rows: list[report.Row]) -> str:
    asked, _, random = rows
    worth = [
        f"{count} reach {asked[count]}" for count in map(str, COUNTS) if count in asked
    ]
    return f"200 random pairs reach {random['200']}; of the pairs asked about {', '.join(worth)}."


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    for row in rows:
        counts = [count for count in COUNTS if str(count) in row]
        values = [float(row[str(count)]) for count in counts]
        ax.plot(counts, values, marker="o", label=row["pairs"])
    ax.set(xlabel="answers", ylabel="mean ARI")
    ax.legend()
