"""How good a clustering is under constraints."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmfcluster.constraints import PairwiseConstraints


def confusion(y: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return samples by cluster and class, and the order in which the clusters are.

    Cluster i is that of class i under the best matching. There are as many rows as columns: where
    there are fewer clusters than classes, or the reverse, empty ones make up for them.
    """
    codes = np.unique(y, return_inverse=True)[1]
    size = 1 + max(labels.max(), codes.max())
    table = np.zeros((size, size), dtype=int)
    np.add.at(table, (labels, codes), 1)
    order = linear_sum_assignment(-table.T)[1]
    return table[order], order


def matched(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return whether each sample is in the cluster of its class, under the best matching of all."""
    _, order = confusion(y, labels)
    return order.argsort()[labels] == np.unique(y, return_inverse=True)[1]


def score(y: np.ndarray, labels: np.ndarray, pairs: PairwiseConstraints) -> dict[str, float]:
    """Return accuracies and the share of violated pairs, NaN where there is nothing to measure.

    "free" is the accuracy on samples in no pair, "free samples" is their number. They are matched
    with all samples, not anew: so few would flatter any clustering.
    """
    right = matched(y, labels)
    free = np.ones(len(y), dtype=bool)
    free[np.concatenate([pairs.must_link, pairs.cannot_link]).ravel()] = False
    return {
        "accuracy": float(right.mean()),
        "free": float(right[free].mean()) if free.any() else float("nan"),
        "free samples": int(free.sum()),
        "violated": 1 - pairs.satisfaction(labels),
    }
