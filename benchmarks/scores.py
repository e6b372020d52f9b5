"""Scores of a clustering, under constraints or not, and of the parts of a factorization."""

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


def score(
    y: np.ndarray, labels: np.ndarray, pairs: PairwiseConstraints
) -> dict[str, float]:
    """Return accuracies and the share of violated pairs.

    "free" is the accuracy on the samples without a constraint, NaN if there are none, and "free
    samples" is their number. The matching is that of all samples: a new one of a few samples would
    flatter any clustering.
    """
    right, free = matched(y, labels), samples_in_no_pair(pairs)
    return {
        "accuracy": float(right.mean()),
        "free": float(right[free].mean()) if free.any() else float("nan"),
        "free samples": int(free.sum()),
        "violated": 1 - pairs.satisfaction(labels),
    }


def samples_in_no_pair(pairs: PairwiseConstraints) -> np.ndarray:
    free = np.ones(len(pairs), dtype=bool)
    free[np.concatenate([pairs.must_link, pairs.cannot_link]).ravel()] = False
    return free


def cosines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the cosine of every row of A with every row of B; that of a row of zeros is 0."""
    scale = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return np.divide(A @ B.T, scale, out=np.zeros_like(scale), where=scale > 0)


def matched_cosines(found: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the cosine of every row with the one that the best matching gives it, 0 for none."""
    cosine, matched = cosines(found, others), np.zeros(len(found))
    pairs = linear_sum_assignment(-cosine)
    matched[pairs[0]] = cosine[pairs]
    return matched
