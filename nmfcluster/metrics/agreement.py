"""Agreement of labellings of the same samples, and its standard error."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmfcluster._utils.labels import adjusted_rand


def count_matched(table) -> int:
    """Return the number of samples in matched cells under the best matching of rows to columns.

    Parameters
    ----------
    table : ndarray of shape (n_clusters_a, n_clusters_b)
        Number of samples that are in both of two clusters.
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    return int(table[rows, columns].sum())


def differing_share(a, b) -> float:
    """Return the share of samples that two labellings place differently, eq. 9 of Lange (2005).

    Parameters
    ----------
    a, b : ndarray of shape (n_samples,), int
        Labels from 0; a sample with -1 in either of them is placed differently.
    """
    both = (a >= 0) & (b >= 0)
    n_matched = count_matched(contingency_table(a[both], b[both]))
    return (len(a) - n_matched) / len(a)


def contingency_table(a, b):
    """Return the number of samples in every two clusters of two labellings, from 0."""
    n_rows = int(a.max(initial=0)) + 1
    n_columns = int(b.max(initial=0)) + 1
    cells = a.astype(np.int64) * n_columns + b
    return np.bincount(cells, minlength=n_rows * n_columns).reshape(n_rows, n_columns)


def disagreements(codes):
    """Return the share of samples that every two labellings place differently, (B, B).

    Parameters
    ----------
    codes : ndarray of shape (B, n_samples), int
        Labels from 0; -1: in no cluster.
    """
    D = np.zeros((len(codes), len(codes)))
    for i, j in combinations(range(len(codes)), 2):
        D[i, j] = D[j, i] = differing_share(codes[i], codes[j])
    return D


def rand_indices(codes):
    """Return the adjusted Rand index of every two labellings, (B, B); the diagonal is 0.

    Parameters
    ----------
    codes : ndarray of shape (B, n_samples), int
        Labels from -1; samples with -1 count as one cluster.
    """
    B, n = codes.shape
    n_pairs = max(n * (n - 1) // 2, 1)
    joined = [_count_pairs(np.bincount(labels + 1)) for labels in codes]
    indices = np.zeros((B, B))
    for i, j in combinations(range(B), 2):
        both = _count_pairs(contingency_table(codes[i] + 1, codes[j] + 1))
        index = adjusted_rand(both, joined[i], joined[j], n_pairs)
        indices[i, j] = indices[j, i] = index
    return indices


def _count_pairs(sizes) -> int:
    """Return the number of pairs inside of clusters of these sizes."""
    return int((sizes * (sizes - 1) // 2).sum())


def mean_of_pairs(D) -> float:
    """Return the mean of the entries off the diagonal, which is 0."""
    return float(D.sum() / (len(D) * (len(D) - 1)))


def jackknife(statistic: Callable[[np.ndarray], float], tables) -> tuple[float, float]:
    """Return a statistic of tables of pairs, and its standard error.

    Pairs that share a labelling are not independent. Therefore labellings are left out, one at a
    time, and not pairs.

    Parameters
    ----------
    statistic : callable
        Takes the table, or the stack of tables.
    tables : ndarray of shape (B, B) or (n_tables, B, B)
        B is 3 or more.

    Returns
    -------
    value, error : float
    """
    B = tables.shape[-1]
    values = np.empty(B)
    for i in range(B):
        left = np.delete(np.delete(tables, i, axis=-1), i, axis=-2)
        values[i] = statistic(left)
    spread = float(np.sum((values - values.mean()) ** 2))
    return statistic(tables), float(np.sqrt((B - 1) / B * spread))
