"""How far labellings of the same samples agree, and how far they would by chance."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score


def matched(table: np.ndarray) -> int:
    """Return the number of samples in matched cells under the best matching of rows to columns.

    Parameters
    ----------
    table : ndarray of shape (n_clusters_a, n_clusters_b)
        Number of samples that are in both of two clusters.
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    return int(table[rows, columns].sum())


def differing_share(a: np.ndarray, b: np.ndarray) -> float:
    """Return the share of samples that two labellings place differently, eq. 9 of Lange (2005).

    Parameters
    ----------
    a, b : ndarray of shape (n_samples,), int
        Labels from 0; a sample with -1 in either of them is placed differently.
    """
    both = (a >= 0) & (b >= 0)
    width = int(b.max(initial=0)) + 1
    cells = a[both].astype(np.int64) * width + b[both]
    height = int(a.max(initial=0)) + 1
    table = np.bincount(cells, minlength=height * width).reshape(height, width)
    return (len(a) - matched(table)) / len(a)


def disagreements(codes: np.ndarray) -> np.ndarray:
    """Return the share of samples that each two labellings place differently, (B, B).

    Parameters
    ----------
    codes : ndarray of shape (B, n_samples), int
        Labels from 0; -1: in no cluster.
    """
    D = np.zeros((len(codes), len(codes)))
    for i, a in enumerate(codes):
        for j, b in enumerate(codes[:i]):
            D[i, j] = D[j, i] = differing_share(a, b)
    return D


def rand_indices(codes: np.ndarray) -> np.ndarray:
    """Return the adjusted Rand index of each two labellings, (B, B); 0 of one with itself.

    Parameters
    ----------
    codes : ndarray of shape (B, n_samples), int
        Samples with -1 count as one cluster.
    """
    found = np.zeros((len(codes), len(codes)))
    for i, j in combinations(range(len(codes)), 2):
        found[i, j] = found[j, i] = adjusted_rand_score(codes[i], codes[j])
    return found


def shuffled(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return random labellings whose clusters have the same sizes, (B, n_samples)."""
    return np.stack([rng.permutation(labels) for labels in codes])


def mean_of_pairs(D: np.ndarray) -> float:
    """Return the mean of the entries off the diagonal, which is 0."""
    return float(D.sum() / (len(D) * (len(D) - 1)))


def jackknife(statistic: Callable[..., float], *tables: np.ndarray) -> tuple[float, float]:
    """Return a statistic of tables of pairs, and its standard error.

    Pairs that share a labelling are not independent, so labellings are left out, one at a time,
    and not pairs.

    Parameters
    ----------
    statistic : callable
        Takes all tables.
    *tables : ndarray of shape (B, B)
        B is 3 or more.

    Returns
    -------
    value, error : float
    """
    B = len(tables[0])
    kept = [np.delete(np.arange(B), i) for i in range(B)]
    values = np.array([statistic(*(D[np.ix_(k, k)] for D in tables)) for k in kept])
    spread = float(np.sum((values - values.mean()) ** 2))
    return statistic(*tables), float(np.sqrt((B - 1) / B * spread))
