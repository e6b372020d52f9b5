"""How far labellings of the same samples agree, and how far they would by chance."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmfcluster._utils.labels import adjusted_rand


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
    return (len(a) - matched(shared_counts(a[both], b[both]))) / len(a)


def shared_counts(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return how many samples clusters share, from labels from 0."""
    shape = int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    cells = a.astype(np.int64) * shape[1] + b
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def disagreements(codes: np.ndarray) -> np.ndarray:
    """Return the share of samples that each two labellings place differently, (B, B).

    Parameters
    ----------
    codes : ndarray of shape (B, n_samples), int
        Labels from 0; -1: in no cluster.
    """
    D = np.zeros((len(codes), len(codes)))
    for i, j in combinations(range(len(codes)), 2):
        D[i, j] = D[j, i] = differing_share(codes[i], codes[j])
    return D


def rand_indices(codes: np.ndarray) -> np.ndarray:
    """Return the adjusted Rand index of each two labellings, (B, B); 0 of one with itself.

    Parameters
    ----------
    codes : ndarray of shape (B, n_samples), int
        Labels from -1; samples with -1 count as one cluster.
    """
    B, n = codes.shape
    pairs = [_together(np.bincount(labels + 1)) for labels in codes]
    indices = np.zeros((B, B))
    for i, j in combinations(range(B), 2):
        both = _together(shared_counts(codes[i] + 1, codes[j] + 1))
        index = adjusted_rand(both, pairs[i], pairs[j], max(n * (n - 1) // 2, 1))
        indices[i, j] = indices[j, i] = index
    return indices


def _together(sizes: np.ndarray) -> int:
    """Return the number of pairs that clusters of these sizes hold together."""
    return int((sizes * (sizes - 1) // 2).sum())


def mean_of_pairs(D: np.ndarray) -> float:
    """Return the mean of the entries off the diagonal, which is 0."""
    return float(D.sum() / (len(D) * (len(D) - 1)))


def jackknife(
    statistic: Callable[..., float], *tables: np.ndarray
) -> tuple[float, float]:
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
