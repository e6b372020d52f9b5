"""Order of the rows and columns of a table in which its biclusters are blocks, and its cells."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list, optimal_leaf_ordering
from scipy.spatial.distance import squareform

from nmfcluster._arrays.places import split_missing
from nmfcluster._arrays.storage import as_dense, group_indicator
from nmfcluster.display.style import divide_into_cells

Side = tuple[np.ndarray, np.ndarray]  # of a table: members of the clusters, and their strength
_MOST_IMPROVED = 100  # clusters; with more of them it takes too long to improve their order
_ROUNDING = 1e-9  # members shared: a smaller gain is a rounding error


def arrange(X: Any, rows: Side, columns: Side, max_cells: int) -> dict[str, Any]:
    """Put a table into cells, in an order that makes its biclusters blocks.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_rows, n_columns), float
        NaN where nothing was observed, which means leave out.
    rows, columns : tuple of two ndarrays of shape (n_clusters, n)
        Whether each row or column is in each cluster, and how strongly it belongs there, at
        least 0.
    max_cells : int
        Largest number of cells in a row and in a column, unless there are more clusters.

    Returns
    -------
    dict
        Contents of a `BiclusterDisplay` under the names of its parameters; all but `names`.
    """
    clusters = _order_of_clusters(rows[0], columns[0])
    row_order, row_cells, row_shares = _arrange_side(*rows, clusters, max_cells)
    column_order, column_cells, column_shares = _arrange_side(*columns, clusters, max_cells)
    row_sizes, column_sizes = np.bincount(row_cells), np.bincount(column_cells)
    down, across = (group_indicator(cells, X.dtype) for cells in (row_cells, column_cells))
    X, missing = split_missing(X)
    sizes = np.sqrt(np.outer(row_sizes, column_sizes))
    matrix = as_dense(down.T @ X @ across) / sizes
    if missing is not None:
        seen = sizes**2 - np.rint(as_dense(down.T @ missing @ across) * sizes)  # entries
        matrix = np.divide(
            matrix * sizes**2, seen, out=np.full_like(matrix, np.nan), where=seen > 0
        )
    return {
        "matrix": matrix,
        "row_sizes": row_sizes,
        "column_sizes": column_sizes,
        "row_shares": row_shares,
        "column_shares": column_shares,
        "clusters": clusters,
        "row_order": row_order,
        "column_order": column_order,
    }


def _order_of_clusters(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return clusters such that neighbours share many rows and columns."""
    n = len(rows)
    if n < 3:
        return np.arange(n)
    shared = _jaccard(rows) + _jaccard(columns)
    distances = squareform(2 - shared, checks=False)
    order = leaves_list(optimal_leaf_ordering(average(distances), distances))
    if n <= _MOST_IMPROVED:
        order = _improve(order, shared)
    return order if order[0] < order[-1] else order[::-1]


def _improve(order: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Reverse stretches of an order until no reversal makes its neighbours share more."""
    n, better = len(order), True
    joint = np.zeros((n + 1, n + 1))  # cluster n stands at both ends, and shares nothing
    joint[:n, :n] = shared
    order = np.concatenate([[n], order, [n]])
    while better:
        better = False
        for i, j in combinations(range(1, n + 1), 2):
            a, b, c, d = order[[i - 1, i, j, j + 1]]
            if joint[a, c] + joint[b, d] > joint[a, b] + joint[c, d] + _ROUNDING:
                order[i : j + 1] = order[i : j + 1][::-1]
                better = True
    return order[1:-1]


def _jaccard(members: np.ndarray) -> np.ndarray:
    """Return the share of their members that two clusters have in common, (k, k)."""
    counts = members.astype(np.float64)
    common, sizes = counts @ counts.T, counts.sum(axis=1)
    union = sizes[:, None] + sizes - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def _arrange_side(
    members: np.ndarray, strength: np.ndarray, clusters: np.ndarray, max_cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put the rows of a table, or its columns, into order, and divide them into cells.

    Parameters
    ----------
    members : ndarray of shape (k, n), bool
    strength : ndarray of shape (k, n)
        A row belongs to the block of its strongest cluster.
    clusters : ndarray of shape (k,), int
        The order of the blocks.
    max_cells : int

    Returns
    -------
    order : ndarray of shape (n,), int
    cells : ndarray of shape (n,), int
        Cell of every row, the rows in their order in the table.
    shares : ndarray of shape (k, n_cells)
        Share of a cell that is in a cluster.
    """
    belongs, strength = members[clusters], strength[clusters]
    loose = ~belongs.any(axis=0)  # in no cluster: the last block
    strongest = np.where(belongs, strength, -1).argmax(axis=0)
    strongest = np.where(loose, strength.argmax(axis=0), strongest)
    block = np.where(loose, len(clusters), strongest)
    # Within a block a row lies towards the blocks of its other clusters: their mean place says
    # where. Ties are broken by the number of clusters, then by the strength.
    number = belongs.sum(axis=0)
    place = np.arange(len(clusters)) @ belongs / np.maximum(number, 1)
    place = np.where(loose, strongest, place)
    height = strength[strongest, np.arange(len(block))].astype(np.float64)
    rank = np.empty(len(block))
    rank[np.lexsort((-height, -number, place, block))] = np.arange(len(block))
    order, groups, _ = divide_into_cells(block, -rank, max_cells)
    cells = groups[np.argsort(order)]
    return order, cells, np.stack([np.bincount(cells, own) for own in members]) / np.bincount(cells)
