"""Halves of the rows of real tables: do the clusters of one half that recur return in the other?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from benchmarks import datasets, scores
from benchmarks.datasets import Dataset, counted
from benchmarks.methods import metacluster
from benchmarks.questions._recurrence_planted import LOSSES, MORE, Way
from benchmarks.runner import Progress, on_all_cores

# tables whose fits take longer than those of all others together, for --all-seeds alone
LONG = ("tr12, raw", "tr12, log1p")
# recurrence and return, by loss, table and way
Returns = dict[tuple[str, str, Way], np.ndarray]


def sets(
    quick: bool, all_seeds: bool = False
) -> tuple[dict[str, Dataset], dict[str, str]]:
    if not quick:
        return datasets.available(
            name for name in counted.NAMES if all_seeds or name not in LONG
        )
    X, y = load_digits(n_class=3, return_X_y=True)
    return {"toy": Dataset("toy", X[:60, 16:40], y[:60])}, {}


def compare(
    tables: dict[str, Dataset],
    ways: Iterable[Way],
    splits: Iterable[int],
    progress: Progress,
) -> Returns:
    """Return recurrence and return of all components, of every loss and way on every table.

    The number of clusters is that of the classes and two more.
    """
    keys = list(itertools.product(LOSSES, tables, ways, splits))
    tasks = [
        (tables[name], LOSSES[short], way, split) for short, name, way, split in keys
    ]
    found: dict[tuple[str, str, Way], list[np.ndarray]] = {}
    for key, told in zip(keys, on_all_cores(returns, tasks, progress), strict=True):
        found.setdefault(key[:3], []).append(told)
    return {case: np.concatenate(own, axis=1) for case, own in found.items()}


def returns(data: Dataset, loss: str, way: Way, split: int) -> np.ndarray:
    """Return recurrence and return of all components of two random halves of the rows, (2, 2k).

    The return is the largest cosine of a component with one of the other half.
    """
    k, n = data.n_clusters + MORE, len(data.y)
    order = np.random.RandomState(split).permutation(n)
    halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    models = [
        metacluster.fit(data.X[rows], k, split, loss=loss, resample=way)
        for rows in halves
    ]
    cosine = scores.cosines(models[0].components_, models[1].components_)
    recurrence = [model.recurrence_ for model in models]
    return np.stack(
        [np.concatenate(recurrence), np.concatenate([cosine.max(1), cosine.max(0)])]
    )


def correlation(told: np.ndarray) -> float:
    """Return Spearman's correlation of the rows; 0 where one of them is constant."""
    if np.ptp(told, axis=1).min() == 0:
        return 0.0
    return float(spearmanr(*told).statistic)
