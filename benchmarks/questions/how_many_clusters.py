"""How often is the right number of clusters found, by which rule, and how often one that is none?

`choose_n_clusters` is held beside rules that users know, on sets of points whose number of clusters
is known, on samples without clusters, and on data with classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from benchmarks import report
from benchmarks.datasets import UnavailableError, load
from benchmarks.datasets.known_numbers import (
    APART,
    NONE,
    Points,
    collection,
    two,
    unimodal,
)
from benchmarks.methods import number_rules as rules
from benchmarks.methods.number_rules import VOTE
from benchmarks.runner import Progress, on_all_cores
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.model_selection.results import NumberOfClusters

REAL = ("iris", "wine", "digits", "all_aml", "mfeat", "bbcsport", "cstr")
SCALED = ("wine",)  # features of which have units of their own
# targets: sets; shares of samples without, with
EXACT, NEAR, FALSE, FOUND = (26, 30, 0.05, 0.9)
AHEAD, STEADY = 5, 22  # sets, targets: ahead of the best other rule; by stability alone
MOST = 20  # candidates for sets of points
TOY = 2  # sets of a quick run

Row = report.Row
Votes = dict[str, int]  # what each criterion answers


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    largest, n_none, n_two = (4, 2, 2) if quick else (MOST, 200, 60)
    n_seeds = 3 if all_seeds else 1
    skipped: dict[str, str] = {}
    sets: list[Points] = []
    try:
        sets = list(collection())
    except UnavailableError as why:
        skipped["sets of points"] = str(why)
    sets = sets[:TOY] if quick else sets
    seeds = range(n_seeds)
    real = REAL[:1] if quick else REAL
    progress = Progress(
        "how_many_clusters", len(sets) * n_seeds + n_none + n_two + len(real)
    )
    candidates = range(1, largest + 1)
    answers, votes = _of_sets(sets, candidates, seeds, progress)
    none = on_all_cores(_of_drawn, [(unimodal, i) for i in range(n_none)], progress)
    both = on_all_cores(_of_drawn, [(two, i) for i in range(n_two)], progress)
    tables: dict[str, Any] = {}
    notes = []
    if sets:
        tables["Sets of points: right, and within one, of all sets"] = summary(
            answers, sets
        )
        tables["How many criteria agreed, and how often that was right"] = by_votes(
            votes, answers[VOTE], sets
        )
        tables["Answers, of the first seed"] = _by_set(answers, votes, sets)
        notes += _verdicts(answers, sets)
    tables["Samples without clusters: how often any are seen"] = shares(
        none, NONE, wrong=True
    )
    names = [f"two, {apart:g} standard deviations apart" for apart in APART]
    tables["Two clusters: how often they are found"] = shares(both, names, wrong=False)
    tables["Data with classes"] = [
        row for name in real for row in _of_data(name, skipped, progress)
    ]
    notes += _verdicts_of_drawn(none, both)
    draw = partial(_draw, answers, sets)
    caption = _caption(len(sets), n_seeds)
    return report.write(out, "how_many_clusters", caption, tables, draw, notes, skipped)


def _caption(n_sets: int, n_seeds: int) -> str:
    return (
        f"The data are {n_sets} sets of points from a public collection (skstab, k_selection.npz) "
        f"with 2 to 18 clusters and up to 3,100 samples. Candidates are 1 to 20, with {n_seeds} "
        "seeds. Rules with a score choose the number with its best value on k-means, the best of "
        f"{rules.STARTS} starts: silhouette, Davies-Bouldin, Calinski-Harabasz, and the gap "
        f"statistic with {rules.REFERENCES} uniform data sets. 'prediction strength' chooses the "
        "largest number with a strength of 0.8. 'BIC of mixtures' uses Gaussian components with "
        "full covariances. If a method cannot choose 1, its candidates start at 2. Samples "
        "without clusters are 100 to 2,000 samples in 2 to 50 dimensions. Two clusters are "
        "Gaussians of the same sizes, in which the smaller one has 35 to 50 % of the samples; "
        "candidates are 1 to 15. Data with classes are used unscaled, except for wine, whose "
        "features are scaled to unit variance. 'as good' are the numbers that the result lists "
        "as about as good."
    )


def _of_sets(
    sets: Sequence[Points], ks: Sequence[int], seeds: Sequence[int], progress: Progress
) -> tuple[dict[str, np.ndarray], list[list[Votes]]]:
    """Return answers by rule, (n_sets, n_seeds), and what criteria said, by set and seed."""
    cases = [(points, ks, seed) for points in sets for seed in seeds]
    told = on_all_cores(_of_set, cases, progress)
    rows = [
        told[first : first + len(seeds)] for first in range(0, len(told), len(seeds))
    ]
    names = list(told[0][0]) if told else []
    answers = {
        name: np.array([[one[name] for one, _ in row] for row in rows])
        for name in names
    }
    return answers, [[votes for _, votes in row] for row in rows]


def _of_set(
    points: Points, ks: Sequence[int], seed: int
) -> tuple[dict[str, int], Votes]:
    vote = _vote(KMeans(n_init=1), points.X, ks, seed)
    assert vote.votes is not None
    fits = rules.clusters(points.X, ks, seed)
    told = {
        VOTE: vote.n_clusters_,
        rules.STABILITY: rules.by_stability(points.X, ks, seed),
    }
    told |= {name: choose(points.X, fits) for name, choose in rules.INDICES.items()}
    told["gap"] = rules.gap(points.X, fits, seed)
    told["prediction strength"] = vote.votes["prediction strength"]
    told["BIC of mixtures"] = rules.bic(points.X, ks, seed)
    return told, vote.votes


def _vote(
    model: KMeans, X: Any, ks: Sequence[int] | None, seed: int
) -> NumberOfClusters:
    options = {} if ks is None else {"candidates": ks}
    with warnings.catch_warnings():  # of the largest candidate: it is counted
        warnings.simplefilter("ignore", UserWarning)
        return choose_n_clusters(model, X, random_state=seed, **options)


def _of_drawn(draw: Callable[[int], Points], seed: int) -> Row:
    points = draw(seed)
    vote = _vote(KMeans(n_init=1), points.X, range(1, 16), seed)
    assert vote.votes is not None
    return {"kind": points.name, "k": points.k, "vote": vote.n_clusters_} | vote.votes


def summary(answers: dict[str, np.ndarray], sets: Sequence[Points]) -> list[Row]:
    """Return how many sets every rule is right on, means over seeds."""
    true = np.array([points.k for points in sets])[:, None]
    return [
        {
            "rule": name,
            "right": float((found == true).sum(axis=0).mean()),
            "within one": float((abs(found - true) <= 1).sum(axis=0).mean()),
            "of": len(sets),
        }
        for name, found in answers.items()
    ]


def by_votes(
    votes: Sequence[Sequence[Votes]], answers: np.ndarray, sets: Sequence[Points]
) -> list[Row]:
    """Return how often a number that so many criteria answered is right, over all seeds."""
    counted: dict[int, list[bool]] = {}
    for points, own, chosen in zip(sets, votes, answers, strict=True):
        for said, k in zip(own, chosen, strict=True):
            counted.setdefault(list(said.values()).count(k), []).append(k == points.k)
    return [
        {"criteria for it": count, "answers": len(right), "right": sum(right)}
        for count, right in sorted(counted.items(), reverse=True)
    ]


def _by_set(
    answers: dict[str, np.ndarray],
    votes: Sequence[Sequence[Votes]],
    sets: Sequence[Points],
) -> list[Row]:
    return [
        {"set": points.name, "n": len(points.X), "true": points.k}
        | {name: int(found[i, 0]) for name, found in answers.items()}
        | {f"vote: {name}": k for name, k in votes[i][0].items()}
        for i, points in enumerate(sets)
    ]


def shares(rows: Sequence[Row], kinds: Sequence[str], wrong: bool) -> list[Row]:
    """Return how often the vote, and every criterion, is wrong, or right, by kind."""
    names = [name for name in rows[0] if name not in ("kind", "k")]
    groups = {kind: [row for row in rows if row["kind"] == kind] for kind in kinds}
    groups["all"] = list(rows)
    return [
        {"samples": kind, "sets": len(own)}
        | {
            name: float(np.mean([(row[name] == row["k"]) != wrong for row in own]))
            for name in names
        }
        for kind, own in groups.items()
        if own
    ]


def _of_data(name: str, skipped: dict[str, str], progress: Progress) -> list[Row]:
    try:
        data = load(name)
    except UnavailableError as why:
        skipped[name] = str(why)
        return []
    X, y = data.draw(0)
    X = StandardScaler().fit_transform(X) if name in SCALED else X
    began = perf_counter()
    found = _vote(KMeans(n_init=5), X, None, 0)
    seconds = perf_counter() - began
    progress.step(name)
    assert found.votes is not None
    good = found.candidates[found.as_good].tolist()
    return [
        {
            "data": name,
            "n": X.shape[0],
            "features": X.shape[1],
            "classes": len(np.unique(y)),
        }
        | {
            "chosen": found.n_clusters_,
            "as good": ", ".join(map(str, good)),
            "s": seconds,
        }
        | found.votes
    ]


def _verdicts(answers: dict[str, np.ndarray], sets: Sequence[Points]) -> list[str]:
    rows = {row["rule"]: row for row in summary(answers, sets)}
    own, steady = rows.pop(VOTE), rows.pop(rules.STABILITY)
    others = rows.values()
    best = max(others, key=lambda row: row["right"])
    told = {True: "met", False: "missed"}
    return [
        f"The vote is right on {own['right']:.1f} of {len(sets)} sets, the mean of the seeds "
        f"(target: {EXACT}): {told[own['right'] >= EXACT]}; within one on {own['within one']:.1f} "
        f"({NEAR}): {told[own['within one'] >= NEAR]}.",
        f"The best other rule, {best['rule']}, is right on {best['right']:.1f}; ahead by "
        f"{own['right'] - best['right']:.1f} (target: {AHEAD}): "
        f"{told[own['right'] - best['right'] >= AHEAD]}.",
        f"Stability alone is right on {steady['right']:.1f} (target: {STEADY}): "
        f"{told[steady['right'] >= STEADY]}.",
    ]


def _verdicts_of_drawn(none: Sequence[Row], both: Sequence[Row]) -> list[str]:
    seen = 1 - float(np.mean([row["vote"] == 1 for row in none]))
    found = float(np.mean([row["vote"] == row["k"] for row in both]))
    told = {True: "met", False: "missed"}
    return [
        f"Clusters are seen in {seen:.1%} of {len(none)} samples without any (target: at most "
        f"{FALSE:.0%}): {told[seen <= FALSE]}.",
        f"Two clusters are found in {found:.1%} of {len(both)} samples (target: {FOUND:.0%}): "
        f"{told[found >= FOUND]}.",
    ]


def _draw(answers: dict[str, np.ndarray], sets: Sequence[Points], figure: Any) -> None:
    ax = figure.subplots()
    rows = summary(answers, sets)[::-1]
    places = np.arange(len(rows))
    ax.barh(places, [row["within one"] for row in rows], height=0.6, color="0.85")
    ax.barh(places, [row["right"] for row in rows], height=0.6)
    ax.set(yticks=places, yticklabels=[row["rule"] for row in rows])
    ax.set(xlabel=f"of {len(sets)} sets: right, and within one (grey)")
