"""Is the default consensus best on many sets, whatever the number of clusters of its partitions?

Base clusterings by k-means have as many clusters as there are classes, some more, or many more.
Every set of features of the data folder is taken, and some that are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks import datasets, methods, report
from benchmarks.datasets import every
from benchmarks.datasets.gaussians import gaussians
from benchmarks.methods import ssnmf
from benchmarks.runner import Progress
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions import base_partitions

REGIMES = ("k", "k to 2k+4", "k to sqrt n")
OURS, PRINTED, DEGREES = "NMFC", "NMFC, printed", "NMFC, degrees"
OTHERS = ("average linkage", "LWEA", "LWGP", "transfer cut", "HBGF", "MCLA", "spectral")
METHODS = (OURS, PRINTED, DEGREES, *OTHERS)
TAKE_MISSING = (OURS,)
PLAIN = ssnmf.WITHOUT  # it gets the features, and so has no part in the ranks
WORSE = 0.03  # ARI by which the printed form may be better on a set

SHARES = [0.6, 0.2, 0.1, 0.06, 0.04]
#: noise and share of missing labels of copies of one partition
COPIES = ((0.3, 0.0), (0.4, 0.0), (0.5, 0.0), (0.4, 0.6))

Scores = dict[str, list[float]]  # ARI of every seed, by method
Case = tuple[str, str]  # the set and the regime


@dataclass(frozen=True)
class Effort:
    """Partitions of an ensemble, ensembles of a set, and samples of a made set."""

    n_partitions: int = 25
    seeds: int = 5
    made_samples: int = 1_000

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the clusters of a partition that is copied."""
        return tuple(round(share * self.made_samples) for share in (0.9, 0.06, 0.04))


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    effort = Effort(6, 1, 100) if quick else Effort(seeds=5 if all_seeds else 3)
    sets, missing = datasets.available(every.BUNDLED if quick else every.ALL)
    takers = {name: methods.load(name) for name in METHODS}
    made = _made(effort)
    progress = Progress("regimes", len(sets) * len(REGIMES) + len(made))
    scores: dict[Case, Scores] = {}
    plain: Scores = {}  # by set
    for name, data in sets.items():
        X, y = data.draw(0)
        plain[name] = _plain(X, y, effort.seeds)
        for regime in REGIMES:
            clusters = n_clusters(regime, len(np.unique(y)), len(y))
            tables = [_table(X, clusters, effort, seed) for seed in range(effort.seeds)]
            scores[name, regime] = _score(takers, tables, [y] * len(tables))
            progress.step(f"{name}, {regime}")
    planted: list[report.Row] = []
    for title, ensembles in made.items():
        tables, truths = zip(*ensembles, strict=True)
        named = TAKE_MISSING if min(table.min() for table in tables) < 0 else METHODS
        found = _score({name: takers[name] for name in named}, tables, truths)
        planted.append(
            {"made set": title} | {m: f"{np.mean(a):.3f}" for m, a in found.items()}
        )
        progress.step(title)
    means, ranks = mean_scores(scores), mean_ranks(scores)
    by_regime = [_regime_row(regime, means, ranks) for regime in REGIMES]
    rows = [_set_row(data, means, plain) for data in sets.values()]
    tables_shown = {
        "Mean ARI and mean rank over the sets": [
            row for pair in by_regime for row in pair
        ],
        "Every set, mean ARI over the regimes": rows,
        "Made sets": planted,
    }
    notes = [*rank_verdicts(ranks), printed_verdict(rows), plain_verdict(rows)]
    draw, caption, skipped = (
        partial(_draw, rows, ranks),
        _caption(effort),
        missing | every.left_out(),
    )
    runs = {
        (*case, name): own
        for case, of_case in scores.items()
        for name, own in of_case.items()
    }
    runs |= {(name, "none", PLAIN): own for name, own in plain.items()}
    details = {"seeds": report.by_run(("data", "clusters", "method"), runs)}
    return report.write(
        out, "regimes", caption, tables_shown, draw, notes, skipped, details
    )


def _caption(effort: Effort) -> str:
    return (
        f"Mean adjusted Rand index of the consensus of {effort.n_partitions} runs of "
        f"KMeans(n_init=1), over {effort.seeds} ensembles. All methods get the same ensembles. "
        "The number of clusters of a run is the number of classes k, or is drawn from k to 2k+4, "
        "or from k to the root of the number of samples. Methods are ranked on each set by their "
        "mean over the ensembles; 1 is the best, and ties share the mean of their ranks. Each "
        f"set has at most {every.MOST:,} rows, always the same. Features are standardised; counts "
        "of words are weighted as tf-idf with rows of length 1. No parameter is tuned to a set. "
        "Each set counts once in a mean, although some sets are subsets of the classes of "
        "others. 'printed' is NMFConsensus(normalize=False); 'degrees' divides the "
        "co-association by the roots of its row sums. The made sets are of two kinds. The first "
        "are Gaussian clusters in 10 features with shares of 60, 20, 10, 6 and 4 %, and k-means "
        "with 5 to 14 clusters. The second are copies of one partition into "
        f"{', '.join(map(str, effort.sizes))}, with a share of the labels redrawn (noise) or "
        "missing; only the default accepts missing labels. "
        f"'{PLAIN}' is SSNMFClusterer with its defaults on the same features; it has no part in "
        "the ranks."
    )


def n_clusters(regime: str, k: int, n: int) -> tuple[int, int]:
    """Return the range that the number of clusters of a base partition is drawn from."""
    return {REGIMES[0]: (k, k), REGIMES[1]: (k, 2 * k + 4)}.get(
        regime, (k, max(k, isqrt(n)))
    )


def _table(X: Any, clusters: tuple[int, int], effort: Effort, seed: int) -> np.ndarray:
    options = {
        "n_estimators": effort.n_partitions,
        "n_clusters": clusters,
        "random_state": seed,
    }
    return base_partitions(X, KMeans(n_init=1), n_jobs=-1, **options).labels


def _made(effort: Effort) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Return label tables and the true partition, for every seed, by name."""
    made: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for kind in ("separated", "overlapping"):
        n, seeds = effort.made_samples, range(effort.seeds)
        drawn = [gaussians(n, kind, SHARES, seed=seed) for seed in seeds]
        made[f"{kind} Gaussians"] = [
            (_table(data.X, (5, 14), effort, seed), data.y)
            for seed, data in enumerate(drawn)
        ]
    for noise, missing in COPIES:
        title = f"noise {noise:g}" + (f", {missing:.0%} missing" if missing else "")
        made[title] = [
            make_partitions(
                effort.sizes,
                n_partitions=effort.n_partitions,
                noise=noise,
                missing=missing,
                random_state=seed,
            )
            for seed in range(effort.seeds)
        ]
    return made


def _score(
    takers: dict[str, methods.Method],
    tables: Sequence[np.ndarray],
    truths: Sequence[np.ndarray],
) -> Scores:
    scores: Scores = {name: [] for name in takers}
    for seed, (table, y) in enumerate(zip(tables, truths, strict=True)):
        for name, method in takers.items():
            labels, _ = method.run(None, table, len(np.unique(y)), seed)
            scores[name].append(float(adjusted_rand_score(y, labels)))
    return scores


def mean_scores(scores: dict[Case, Scores]) -> dict[Case, dict[str, float]]:
    return {
        case: {method: float(np.mean(own)) for method, own in of_case.items()}
        for case, of_case in scores.items()
    }


def mean_ranks(scores: dict[Case, Scores]) -> dict[str, dict[str, float]]:
    """Return the mean rank over the sets, by regime and method."""
    means, ranks = mean_scores(scores), {}
    for regime in dict.fromkeys(regime for _, regime in scores):
        own = [list(means[case].values()) for case in means if case[1] == regime]
        # means that differ by rounding are equal
        mean = rankdata(-np.round(own, 9), axis=1).mean(axis=0)
        names = next(iter(means.values()))
        ranks[regime] = dict(zip(names, mean.tolist(), strict=True))
    return ranks


def _regime_row(
    regime: str, means: dict[Case, dict[str, float]], ranks: dict[str, dict[str, float]]
) -> tuple[report.Row, report.Row]:
    own = [of_case for (_, where), of_case in means.items() if where == regime]
    start: report.Row = {"clusters of a partition": regime, "sets": len(own)}
    ari = {
        name: f"{np.mean([of_case[name] for of_case in own]):.3f}" for name in own[0]
    }
    rank = {name: f"{value:.2f}" for name, value in ranks[regime].items()}
    return start | {"figure": "ARI"} | ari, start | {"figure": "rank"} | rank


def _plain(X: Any, y: np.ndarray, n_seeds: int) -> list[float]:
    """Return the ARI of the factorization of a graph of the features, without base partitions."""
    k = len(np.unique(y))
    found = [ssnmf.cluster(X, None, k, seed) for seed in range(n_seeds)]
    return [float(adjusted_rand_score(y, labels)) for labels in found]


def _set_row(
    data: datasets.Dataset, means: dict[Case, dict[str, float]], plain: Scores
) -> report.Row:
    _, y = data.draw(0)
    row: report.Row = {
        "data": data.name,
        "samples": len(y),
        "classes": len(np.unique(y)),
    }
    for name in METHODS:
        values = [means[data.name, regime][name] for regime in REGIMES]
        row[name] = round(float(np.mean(values)), 3)
    row[PLAIN] = round(float(np.mean(plain[data.name])), 3)
    return row


def rank_verdicts(ranks: dict[str, dict[str, float]]) -> list[str]:
    """Say whether the default has the best mean rank in each regime, and which is best else."""
    told = []
    for regime, own in ranks.items():
        best = min(own, key=own.__getitem__)
        met = own[OURS] <= own[best]
        line = f"Base partitions of {regime} clusters: mean rank {own[OURS]:.2f} of the default "
        line += f"(target: best of {len(own)}): {'met' if met else 'missed'}"
        others = {name: rank for name, rank in own.items() if name != OURS}
        next_best = min(others, key=others.__getitem__)
        told.append(
            f"{line}; the best of the others is {next_best} with {others[next_best]:.2f}."
        )
    return told


def printed_verdict(rows: list[report.Row]) -> str:
    """Say on which sets the printed form is clearly better, on the mean over the regimes."""
    gaps = {row["data"]: row[PRINTED] - row[OURS] for row in rows}
    under = {name: gap for name, gap in gaps.items() if gap > WORSE}
    named = ", ".join(f"{name} by {under[name]:.3f}" for name in sorted(under))
    return (
        f"On the mean over the regimes the default is more than {WORSE:g} ARI under the printed "
        f"form on {len(under)} of {len(rows)} sets (target: none): "
        f"{f'missed, {named}' if under else 'met'}. It is more than that over it on "
        f"{sum(gap < -WORSE for gap in gaps.values())}."
    )


def plain_verdict(rows: list[report.Row]) -> str:
    """Say on how many sets the factorization of the features is clearly better, and worse."""
    gaps = np.array([row[PLAIN] - row[OURS] for row in rows])
    ours, plain = (np.mean([row[name] for row in rows]) for name in (OURS, PLAIN))
    return (
        f"The mean ARI of {PLAIN}, which gets the features, is {plain:.3f}, and that of the "
        f"default over the regimes {ours:.3f}. {PLAIN} is more than {WORSE:g} ARI above the "
        f"default on {(gaps > WORSE).sum()} of {len(rows)} sets, and more than that below it on "
        f"{(gaps < -WORSE).sum()}."
    )


def _draw(
    rows: list[report.Row], ranks: dict[str, dict[str, float]], figure: Any
) -> None:
    figure.set_size_inches(9, 3 + 0.2 * len(rows))
    left, right = figure.subplots(1, 2)
    where = np.arange(len(METHODS))
    for i, (regime, own) in enumerate(ranks.items()):
        left.plot(
            [own[name] for name in METHODS], where, "os^"[i], label=regime, alpha=0.7
        )
    left.set_yticks(where, METHODS)
    left.invert_yaxis()
    left.set_xlabel("mean rank, 1 for the best", fontsize="small")
    left.legend(title="clusters of a partition", fontsize="x-small")
    at = np.arange(len(rows))
    for name, marker in ((PRINTED, "o"), ("LWEA", "s"), ("transfer cut", "^")):
        gaps = [row[OURS] - row[name] for row in rows]
        right.plot(gaps, at, marker, alpha=0.6, label=f"less that of {name}")
    right.axvline(0, color="k", lw=0.8)
    right.set_xlabel("mean ARI of the default", fontsize="small")
    right.set_yticks(at, [row["data"] for row in rows], fontsize="x-small")
    right.invert_yaxis()
    right.legend(fontsize="x-small")
