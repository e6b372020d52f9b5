"""What do wrong pairs cost, where must-links are hard and where they are soft?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import datasets, report
from benchmarks.datasets import every
from benchmarks.methods import ssnmf
from benchmarks.runner import Progress
from nmfcluster.constraints import PairwiseConstraints

SHARES, COUNTS = (0.0, 0.1, 0.2), (50, 200, 600)
QUICK = ("wine, standardised", "zoo, standardised")
FIRST_SEED, N_DRAWS = 100, 3  # of pairs that no threshold was chosen on
ALLOWED = {"contradictions": "ignore"}
VARIANTS: dict[str, dict[str, Any]] = {
    "soft": ALLOWED,
    "hard": {**ALLOWED, "hard_must_link": True},
    "hard, not spread": {
        **ALLOWED,
        "hard_must_link": True,
        "propagation": None,
        "beta": 1.0,
    },
}
NONE = "no pairs"
FOUND = ("wrong of the violated", "violated of the wrong")
WORSE = 0.02  # ARI below that without pairs

Runs = dict[tuple[str, float, int, str], list[float]]  # by data, share, pairs, variant


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    names, n_draws = QUICK if quick else every.ALL, N_DRAWS if all_seeds else 1
    sets, missing = datasets.available(names)
    progress = Progress("wrong_pairs", len(sets) * n_draws)
    runs: Runs = {}
    for name, data in sets.items():
        X, y = data.draw(0)
        for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
            for key, score in _scores(X, y, seed).items():
                runs.setdefault((name, *key), []).append(score)
            progress.step(name)
    rows = [
        _row(runs, list(sets), share, count) for share in SHARES for count in COUNTS
    ]
    worst = [
        _worse(runs, list(sets), share, count) for share in SHARES for count in COUNTS
    ]
    caption = (
        f"Mean adjusted Rand index on {len(sets)} sets of features with at most {every.MOST:,} "
        f"rows each, over {n_draws} draw(s) of the pairs. A share of the pairs is turned into its "
        "opposite. 'soft' is SSNMFClusterer with contradictions='ignore'. 'hard' adds "
        "hard_must_link=True, and 'not spread' has propagation=None and beta=1. Nothing was "
        "chosen on these draws."
    )
    found = [
        _found(runs, list(sets), share, count)
        for share in SHARES[1:]
        for count in COUNTS
    ]
    tables = {
        "Mean ARI": rows,
        f"Sets worse than without pairs, by more than {WORSE:g}": worst,
    }
    tables["Pairs that soft must-links violate, and wrong ones: mean shares"] = found
    of_ari = {key: found for key, found in runs.items() if key[-1] not in FOUND}
    details = {"runs": report.by_run(("data", "wrong", "pairs", "variant"), of_ari)}
    draw_it, skipped = partial(_draw, rows), missing | every.left_out()
    return report.write(
        out, "wrong_pairs", caption, tables, draw_it, [], skipped, details
    )


def _scores(X: Any, y: np.ndarray, seed: int) -> dict[tuple[float, int, str], float]:
    k, scores = len(np.unique(y)), {}
    alone = adjusted_rand_score(y, ssnmf.cluster(X, None, k, seed))
    for share in SHARES:
        for count in COUNTS:
            pairs = turned(
                PairwiseConstraints.from_labels(y, count, random_state=seed),
                share,
                seed,
            )
            scores[share, count, NONE] = float(alone)
            for variant, options in VARIANTS.items():
                labels = ssnmf.cluster(X, pairs, k, seed, **options)
                scores[share, count, variant] = float(adjusted_rand_score(y, labels))
                if variant == "soft" and share:
                    violated, wrong = (told(pairs, some) for some in (labels, y))
                    both = np.count_nonzero(violated & wrong)
                    for kind, among in zip(FOUND, (violated, wrong), strict=True):
                        scores[share, count, kind] = both / max(
                            np.count_nonzero(among), 1
                        )
    return scores


def told(pairs: PairwiseConstraints, labels: np.ndarray) -> np.ndarray:
    """Return whether labels violate each of the pairs, must-links first."""
    return ~np.concatenate(pairs.satisfied(labels))


def turned(pairs: PairwiseConstraints, share: float, seed: int) -> PairwiseConstraints:
    """Return pairs, each with this chance of being the other kind."""
    rng = np.random.default_rng(seed)
    must, cannot = pairs.must_link, pairs.cannot_link
    wrong_must, wrong_cannot = (
        rng.random(len(must)) < share,
        rng.random(len(cannot)) < share,
    )
    return PairwiseConstraints(
        len(pairs),
        np.concatenate([must[~wrong_must], cannot[wrong_cannot]]),
        np.concatenate([cannot[~wrong_cannot], must[wrong_must]]),
    )


def _means(
    runs: Runs, names: list[str], share: float, count: int, variant: str
) -> np.ndarray:
    return np.array([np.mean(runs[name, share, count, variant]) for name in names])


def _row(runs: Runs, names: list[str], share: float, count: int) -> report.Row:
    row: report.Row = {"wrong": f"{share:.0%}", "pairs": count}
    for variant in (*VARIANTS, NONE):
        row[variant] = f"{_means(runs, names, share, count, variant).mean():.3f}"
    return row


def _found(runs: Runs, names: list[str], share: float, count: int) -> report.Row:
    row: report.Row = {"wrong": f"{share:.0%}", "pairs": count}
    return row | {
        kind: f"{_means(runs, names, share, count, kind).mean():.2f}" for kind in FOUND
    }


def _worse(runs: Runs, names: list[str], share: float, count: int) -> report.Row:
    row: report.Row = {"wrong": f"{share:.0%}", "pairs": count}
    alone = _means(runs, names, share, count, NONE)
    for variant in VARIANTS:
        row[variant] = int(
            (_means(runs, names, share, count, variant) < alone - WORSE).sum()
        )
    return row


def _draw(rows: list[report.Row], figure: Any) -> None:
    axes, legend = report.panels(figure, [f"{share:.0%} wrong" for share in SHARES])
    for ax, share in zip(axes, SHARES, strict=True):
        own = [row for row in rows if row["wrong"] == f"{share:.0%}"]
        for colour, variant in enumerate((*VARIANTS, NONE)):
            values = [float(row[variant]) for row in own]
            ax.plot(COUNTS, values, marker=".", color=f"C{colour}", label=variant)
        ax.set_xscale("log")
        ax.set_xlabel("pairs", fontsize="small")
    axes[0].set_ylabel("mean ARI", fontsize="small")
    legend.legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize="small")
