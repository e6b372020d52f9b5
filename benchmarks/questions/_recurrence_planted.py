"""Planted counts: is the recurrence of programs that are there larger than that of others?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks import scores
from benchmarks.methods import metacluster
from benchmarks.runner import Progress, on_all_cores
from nmfcluster.datasets import make_programs, make_signatures

LOSSES = {"KL": "kullback-leibler", "Frobenius": "frobenius"}
Way = str | float | None
WAYS: tuple[Way, ...] = (None, "poisson", "bootstrap", 0.8, 0.5)
FOUND = 0.9  # cosine from which a planted program is found
MORE = 2  # clusters than there are programs: some must be spurious
FIGURES = ("AUC", "found at k", "found at k + 2", "seconds")

Run = dict[str, float]
Runs = dict[tuple[str, str, Way], list[Run]]  # by loss, setting and way


@dataclass(frozen=True)
class Setting:
    """How counts are made, and how much of every second program is the one before it."""

    make: Callable[..., Any] = make_programs
    options: dict[str, Any] = field(default_factory=dict)
    shared: float = 0.0

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts, as floats, and the programs."""
        X, W, H = self.make(random_state=seed, **self.options)
        if self.shared:
            rng, dispersion = np.random.default_rng(seed), self.options["dispersion"]
            pairs = len(H) // 2 * 2
            H = H.copy()
            H[1:pairs:2] = self.shared * H[:pairs:2] + (1 - self.shared) * H[1:pairs:2]
            X = rng.poisson(W @ H * rng.gamma(1 / dispersion, dispersion, size=X.shape))
        return X.astype(float), H


def programs(
    n_samples: int, depth: float, shared: float = 0.0, **options: Any
) -> Setting:
    """Return a setting of cells by genes, a tenth of which a program raises."""
    named = {"n_samples": n_samples, "depth": depth, "dispersion": 0.1} | options
    return Setting(make_programs, named, shared)


def signatures(n_samples: int, n_signatures: int, **options: Any) -> Setting:
    """Return a setting of genomes by kinds of mutations."""
    named = {"n_samples": n_samples, "n_signatures": n_signatures} | options
    return Setting(make_signatures, named)


SETTINGS = {
    "easy": programs(400, 350, housekeeping=1 / 3),
    "hard": programs(400, 200, housekeeping=1 / 3),
    "100 cells, depth 100": programs(100, 100),
    "60 cells, depth 200": programs(60, 200),
    "100 cells, dispersion .5": programs(100, 150, dispersion=0.5),
    "100 cells, pairs share .6": programs(100, 200, 0.6),
    "150 cells, pairs share .5, dispersion .5": programs(150, 200, 0.5, dispersion=0.5),
    "100 cells, housekeeping .8": programs(100, 300, housekeeping=0.8),
    "150 cells, 12 programs": programs(150, 200, n_programs=12, housekeeping=0.6),
    "150 cells, a fifth doublets": programs(150, 100, doublets=0.2),
    "60 genomes, 15 signatures": signatures(60, 15, noise=0.05),
    "100 genomes, few mutations": signatures(100, 10, burden=200),
}
LONG = (  # settings that take half of the time, for --all-seeds alone
    "150 cells, pairs share .5, dispersion .5",
    "150 cells, 12 programs",
    "150 cells, a fifth doublets",
)
TOY = {"toy": programs(40, 200, n_features=60, n_programs=3)}


def compare(
    settings: dict[str, Setting],
    ways: Iterable[Way],
    seeds: Iterable[int],
    progress: Progress,
) -> Runs:
    """Return the figures of every loss and way on all tables."""
    keys = list(itertools.product(LOSSES, settings, ways, seeds))
    tasks = [
        (settings[name], LOSSES[short], way, seed) for short, name, way, seed in keys
    ]
    runs: Runs = {}
    for key, told in zip(keys, on_all_cores(measure, tasks, progress), strict=True):
        runs.setdefault(key[:3], []).append(told)
    return runs


def measure(setting: Setting, loss: str, way: Way, seed: int) -> Run:
    """Return the figures of fits with as many clusters as programs, and with more.

    Seconds are those of the processor, as another table is fitted at the same time.
    """
    X, H = setting.draw(seed)
    k, options = len(H), {"loss": loss, "resample": way}
    # also between the stages of a fit
    with threadpool_limits(limits=1, user_api="blas"):
        exact = metacluster.fit(X, k, seed, **options)
        began = process_time()
        wide = metacluster.fit(X, k + MORE, seed, **options)
        seconds = process_time() - began
    there = is_planted(wide.components_, H)
    return {
        "AUC": auc(there, wide.recurrence_),
        "found at k": float(is_planted(exact.components_, H).sum()) / k,
        "found at k + 2": float(there.sum()) / k,
        "seconds": seconds,
    }


def is_planted(found: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return whether the best matching gives each program a planted one that it is like."""
    return scores.matched_cosines(found, H) >= FOUND


def auc(there: np.ndarray, recurrence: np.ndarray) -> float:
    """Return the share of pairs, one there and one not, that the recurrence has in order."""
    if not 0 < there.sum() < len(there):
        return float("nan")
    return float(roc_auc_score(there, recurrence))


def mean(runs: Iterable[Run], figure: str) -> float:
    """Return the mean over the seeds that have a figure, NaN without any."""
    values = np.array([run[figure] for run in runs])
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")
