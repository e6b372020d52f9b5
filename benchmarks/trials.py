"""Methods under constraints that are drawn from the classes, and means over the trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import scores
from benchmarks.datasets import Dataset
from benchmarks.methods import Method
from benchmarks.methods.peer import NoClusteringError
from nmfcluster.constraints import PairwiseConstraints

Run = dict[str, float]
FIGURES = ("accuracy", "free", "free samples", "violated", "seconds")


def of_method(
    method: Method, X: Any, y: np.ndarray, pairs: PairwiseConstraints, seed: int
) -> Run:
    """Return `scores.score` and seconds of one run; NaN if a peer finds no clustering."""
    try:
        labels, seconds = method.run(X, pairs, len(np.unique(y)), seed)
    except NoClusteringError:
        return dict.fromkeys(FIGURES, np.nan)
    return {**scores.score(y, labels, pairs), "seconds": seconds}


def of_pairs(
    data: Dataset, methods: dict[str, Method], n_pairs: int, trials: int
) -> dict[str, list[Run]]:
    """Run each method on draws 0, 1, ... of the data, with as many draws of the constraints."""
    results: dict[str, list[Run]] = {name: [] for name in methods}
    for trial in range(trials):
        X, y = data.draw(trial)
        pairs = PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=trial)
        for name, method in methods.items():
            results[name].append(of_method(method, X, y, pairs, trial))
    return results


def mean(runs: Sequence[Run], figure: str) -> float:
    """Return the mean over the trials that have the score, or NaN; of "free" that over samples."""
    values = np.array([run[figure] for run in runs])
    weights = np.array(
        [run["free samples"] if figure == "free" else 1.0 for run in runs]
    )
    there = ~np.isnan(values)
    return (
        float(np.average(values[there], weights=weights[there]))
        if there.any()
        else np.nan
    )


def spread(runs: Sequence[Run]) -> float:
    """Return the standard deviation of the accuracy over the trials that have it."""
    values = np.array([run["accuracy"] for run in runs])
    there = ~np.isnan(values)
    return float(values[there].std()) if there.any() else np.nan
