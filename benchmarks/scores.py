"""Scores of a clustering under constraints."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmfcluster.constraints import PairwiseConstraints


def confusion(y: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of samples by cluster and class, and the order of the clusters.

    Row i is the cluster that the best matching gives to class i. The table is square: empty
    clusters or classes are added.
    """
    codes = np.unique(y, return_inverse=True)[1]
    size = 1 + max(labels.max(), codes.max())
    table = np.zeros((size, size), dtype=int)
    np.add.at(table, (labels, codes), 1)
    order = linear_sum_assignment(-table.T)[1]
    return table[order], order


def matched(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return whether each sample is in the cluster that the best matching gives to its class."""
    _, order = confusion(y, labels)
    return order.argsort()[labels] == np.unique(y, return_inverse=True)[1]


def score(y: np.ndarray, labels: np.ndarray, pairs: PairwiseConstraints) -> dict[str, float]:
    """Return accuracies and the share of violated pairs.

    "free" is the accuracy on the samples without a constraint, NaN if there are none, and "free
    samples" is their number. The matching is that of all samples: a new one of a few samples would
    flatter any clustering.
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
