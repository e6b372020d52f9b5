"""Is the eta that stability chooses as good as the default, with sources that say nothing, too?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from benchmarks import datasets, report
from benchmarks.datasets.views import Views
from benchmarks.methods.fusion import quietly
from benchmarks.questions import fusion_noise
from benchmarks.questions.fusion_noise import CLEAN, KINDS
from benchmarks.runner import Progress
from nmfcluster import SimilarityFusionNMF, SimilarityStack
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

SETS = ("3sources", "msrc_v1", "protein213", "bbcsport", "ngs", "bbc4view")
REGIMES = (CLEAN, "4 noise, 2 constant")
ETAS = (1.0, 0.3, 3.0, 10.0, np.inf, 0.1)  # the default first: of equal scores the first is taken
SEEDS, SUBSAMPLES = 1, 8
SCORERS: dict[str, dict[str, Any]] = {
    "difference, a fifth": {"subsample_size": 0.2},
    "difference, .8": {"subsample_size": 0.8},
    "Rand index, .8": {"subsample_size": 0.8, "adjust": "rand"},
}
OURS = "difference, .8"  # of the samples, as the guide has it
DEFAULT, BEST = "default (1)", "best of all, by the classes"

Row = report.Row


def run(quick: bool, out: Path) -> list[Path]:
    sets, missing = ({"toy": fusion_noise.toy()}, {}) if quick else datasets.available(SETS)
    seeds = range(1 if quick else SEEDS)
    scorers = {OURS: SCORERS[OURS]} if quick else SCORERS
    kinds = list(KINDS)[:1] if quick else list(KINDS)
    cases = list(product(sets.values(), kinds, REGIMES, seeds))
    progress = Progress("eta_by_stability", len(cases))
    rows = []
    for data, kind, regime, seed in cases:
        stack = fusion_noise.with_noise(fusion_noise.sources(data, kind), (kind, regime), seed)
        row: Row = {"set": data.name, "sources": kind, "regime": regime, "seed": seed}
        rows.append(row | _scores(data, stack, seed, scorers))
        progress.step(f"{data.name}, {kind}, {regime}")
    ways = [DEFAULT, *scorers, BEST]
    summary = [_summary(rows, way) for way in ways]
    caption = (
        f"ARI of SimilarityFusionNMF with eta of {', '.join(f'{eta:g}' for eta in sorted(ETAS))}, "
        "chosen without classes by GridSearchCV(scoring=StabilityScorer(...)): "
        f"{SUBSAMPLES} subsamples of a fifth or .8 of the samples. Sources are those of "
        f"fusion_noise, as they are and with four of noise and two nearly constant ones; means "
        f"over {len(sets)} sets, dense and graphs; seeds: {len(seeds)}."
    )
    headings = {"Mean ARI": summary}
    draw = partial(_draw, summary)
    notes = _verdicts(summary)
    details = {"Every case": rows}
    return report.write(
        out, "eta_by_stability", caption, headings, draw, notes, missing, details=details
    )


def _scores(
    data: Views, stack: SimilarityStack, seed: int, scorers: dict[str, dict[str, Any]]
) -> dict[str, float]:
    """Return the ARI of the default, of what every scorer chooses, and of the best eta."""
    k = len(np.unique(data.y))
    ari = {eta: _ari(data.y, quietly(_model(k, seed, eta), stack)) for eta in ETAS}
    found = {DEFAULT: ari[1.0]}
    for name, options in scorers.items():
        search = GridSearchCV(
            _model(k, seed, 1.0),
            {"eta": list(ETAS)},
            scoring=StabilityScorer(SUBSAMPLES, random_state=seed, **options),
            cv=FullSampleSplit(),
            refit=False,
        )
        table = quietly(search, stack).cv_results_
        scores = np.asarray(table["mean_test_score"])
        found[name] = ari[ETAS[int(np.nanargmax(scores))]] if np.isfinite(scores).any() else np.nan
    return found | {BEST: max(ari.values())}


def _model(k: int, seed: int, eta: float) -> SimilarityFusionNMF:
    return SimilarityFusionNMF(k, eta=eta, random_state=seed)


def _ari(y: np.ndarray, model: SimilarityFusionNMF) -> float:
    return float(adjusted_rand_score(y, model.labels_))


def _summary(rows: Sequence[Row], way: str) -> Row:
    return {"eta by": way} | {
        regime: float(np.mean([row[way] for row in rows if row["regime"] == regime]))
        for regime in REGIMES
    }


def _verdicts(summary: Sequence[Row]) -> list[str]:
    named = {row["eta by"]: row for row in summary}
    default, stable = (named[way][REGIMES[-1]] for way in (DEFAULT, OURS))
    told = "met" if stable >= default else "missed"
    return [
        f"With noise the default has {default:.3f}, and the most stable eta {stable:.3f} by the "
        f"{OURS} of the samples (target: at least as good): {told}."
    ]


def _draw(summary: Sequence[Row], figure: Any) -> None:
    ax = figure.subplots()
    places = np.arange(len(summary))
    for i, regime in enumerate(REGIMES):
        heights = [row[regime] for row in summary[::-1]]
        ax.barh(places - 0.2 + 0.4 * i, heights, height=0.38, label=regime)
    ax.set(yticks=places, yticklabels=[row["eta by"] for row in summary[::-1]], xlabel="ARI")
    ax.legend()
