"""The runs of `pairs_everywhere`, and means over the sets that all methods have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks.datasets import Dataset
from benchmarks.methods import CONSTRAINTS, LABELS, Method
from benchmarks.methods.peer import NoClusteringError, TooLongError
from benchmarks.scores import samples_in_no_pair
from nmfcluster.constraints import PairwiseConstraints

FEWEST = 20  # samples in no pair, for a score of them
SHARE = 0.75  # of the sets, that a method must have for a mean
FIGURES = {"ARI": "all samples", "free": "samples in no pair"}

Run = dict[str, float]
Runs = dict[tuple[str, int, str], list[Run]]  # by data, pairs, method
Failed = Counter[tuple[str, str, str]]  # by method, data, why


def measure(
    runs: Runs,
    failed: Failed,
    data: Dataset,
    count: int,
    draw: int,
    takers: dict[str, Method],
) -> None:
    """Add a run of each method on a draw of this many pairs, which all methods get."""
    X, y = data.draw(0)
    codes = np.unique(y, return_inverse=True)[1]
    pairs = PairwiseConstraints.from_labels(y, n_pairs=count, random_state=draw)
    free = samples_in_no_pair(pairs)
    extras = {CONSTRAINTS: pairs, LABELS: np.where(free, -1, codes)}
    for name, method in takers.items():
        given_up = any(key[:2] == (name, data.name) for key in failed)
        if (method.wants == LABELS and not count) or given_up:
            run = dict.fromkeys((*FIGURES, "s"), np.nan)
        else:
            run = _one(
                method, data.name, X, codes, extras[method.wants], free, draw, failed
            )
        runs.setdefault((data.name, count, name), []).append(run)


def _one(
    method: Method,
    data: str,
    X: Any,
    codes: np.ndarray,
    extra: Any,
    free: np.ndarray,
    draw: int,
    failed: Failed,
) -> Run:
    """Return the scores of one run; a peer that fails, or takes too long, is not asked again."""
    nothing = dict.fromkeys((*FIGURES, "s"), np.nan)
    try:
        labels, seconds = method.run(X, extra, codes.max() + 1, draw)
    except TooLongError:
        failed[method.name, data, "took too long"] += 1
        return nothing
    except (RuntimeError, ValueError):
        failed[method.name, data, "failed"] += 1
        return nothing
    except NoClusteringError:  # other pairs may have a clustering
        return nothing
    run = {
        "ARI": float(adjusted_rand_score(codes, labels)),
        "free": np.nan,
        "s": seconds,
    }
    if free.sum() >= FEWEST:
        run["free"] = float(adjusted_rand_score(codes[free], labels[free]))
    return run


def kept_failures(runs: Runs, counts: Sequence[int]) -> Failed:
    """Return the failures of kept runs: those without a result for the most pairs."""
    failed: Failed = Failed()
    for (data, count, name), own in runs.items():
        if count == counts[-1] and all(np.isnan(run["ARI"]) for run in own):
            failed[name, data, "failed or took too long"] += 1
    return failed


def mean(own: list[Run], figure: str) -> float:
    """Return the mean over the draws that have the figure, or NaN."""
    values = np.array([run[figure] for run in own])
    there = ~np.isnan(values)
    return float(values[there].mean()) if there.any() else np.nan


def table(
    runs: Runs, names: list[str], count: int, methods: tuple[str, ...], figure: str
) -> dict[str, np.ndarray]:
    """Return the figure of each method on every set, NaN where it has none."""
    return {
        m: np.array([mean(runs[name, count, m], figure) for name in names])
        for m in methods
    }


def shared_means(values: dict[str, np.ndarray]) -> tuple[int, dict[str, float]]:
    """Return the number of sets that all methods have, and the mean of each method over them.

    The first method says which sets there are. One that has fewer than `SHARE` of them is left
    out.
    """
    there = ~np.isnan(next(iter(values.values())))
    if not there.any():
        return 0, {}
    kept = {m: v for m, v in values.items() if (~np.isnan(v[there])).mean() >= SHARE}
    for own in kept.values():
        there = there & ~np.isnan(own)
    if not there.any():
        return 0, {}
    return int(there.sum()), {m: float(own[there].mean()) for m, own in kept.items()}
