"""Samples, rows and columns put in order and divided into cells, and the means over these."""

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list, optimal_leaf_ordering
from scipy.spatial.distance import pdist

from nmfcluster._utils.labels import over_seen
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import as_dense, group_indicator
from nmfcluster._utils.validation import check_count

Side = tuple[
    np.ndarray, np.ndarray
]  # of a table: members of the clusters, and their strength


def divide_into_cells(
    labels: np.ndarray, confidence: np.ndarray, max_cells: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Divide samples into cells that hold one cluster each.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int
    confidence : ndarray of shape (n_samples,)
        Samples of a cluster are ordered by it, the largest first.
    max_cells : int
        Largest number of cells; but every cluster has one.

    Returns
    -------
    cells : ndarray of shape (n_samples,), int
        Cell of every sample: 0, 1, ... without gaps, in the order of the picture.
    kept : dict
        What a display keeps: the order of the samples, and the size and the cluster of every cell.
    """
    check_count(max_cells, "max_cells", 1)
    order = np.lexsort(
        (-np.round(confidence, 9), labels)
    )  # rounding errors break no ties
    clusters, sizes = np.unique(labels, return_counts=True)
    # in proportion to the sizes: from 1 to one a sample
    n_cells = np.clip(sizes * int(max_cells) // len(labels), 1, sizes)
    # in integers: cell j of a cluster begins where j * size / n_cells is first reached
    parts = zip(sizes, n_cells, np.cumsum(n_cells) - n_cells, strict=True)
    cells = np.empty(len(order), dtype=np.intp)
    cells[order] = np.concatenate(
        [np.arange(size) * k // size + first for size, k, first in parts]
    )
    kept = {
        "cell_sizes": np.bincount(cells),
        "cell_labels": np.repeat(clusters, n_cells),
    }
    return cells, {"order": order, **kept}


def means_of_rows(rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the mean of the rows in every cell, (n_cells, n_columns)."""
    return group_indicator(cells).T @ rows / np.sqrt(np.bincount(cells))[:, None]


def arrange_table(X: Any, rows: Side, columns: Side, max_cells: int) -> dict[str, Any]:
    """Put a table into cells, in an order that makes its biclusters blocks.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_rows, n_columns), float
        NaN where nothing was observed, which means leave out.
    rows, columns : tuple of two ndarrays of shape (n_clusters, n)
        Whether each row or column is in each cluster, and how strongly it belongs there, at
        least 0.
    max_cells : int
        Largest number of cells in a row and in a column; but every cluster has one.

    Returns
    -------
    dict
        Contents of a `BiclusterDisplay` under the names of its parameters; all but `names`.
    """
    clusters = _order_of_clusters(rows[0], columns[0])
    row_cells, of_rows = _arrange_side(*rows, clusters, max_cells)
    column_cells, of_columns = _arrange_side(*columns, clusters, max_cells)
    # means over cells, of what was observed
    down, across = (
        group_indicator(cells, X.dtype) for cells in (row_cells, column_cells)
    )
    X, missing = split_missing(X)
    sizes = np.sqrt(np.outer(of_rows["sizes"], of_columns["sizes"]))
    matrix = as_dense(down.T @ X @ across) / sizes
    if missing is not None:
        seen = sizes**2 - np.rint(
            as_dense(down.T @ missing @ across) * sizes
        )  # entries
        matrix = over_seen(matrix * sizes**2, seen)
    kept = {f"row_{name}": value for name, value in of_rows.items()}
    kept |= {f"column_{name}": value for name, value in of_columns.items()}
    return {"matrix": matrix, "clusters": clusters, **kept}


def _order_of_clusters(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return clusters such that neighbours share many rows and columns: the leaves of a tree."""
    if len(rows) < 3:
        return np.arange(len(rows))
    apart = pdist(rows, "jaccard") + pdist(columns, "jaccard")
    order = leaves_list(optimal_leaf_ordering(average(apart), apart))
    return order if order[0] < order[-1] else order[::-1]


def _arrange_side(
    members: np.ndarray, strength: np.ndarray, clusters: np.ndarray, max_cells: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
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
    cells : ndarray of shape (n,), int
        Cell of every row, the rows in their order in the table.
    kept : dict
        What a display keeps: the order of the rows, the sizes of cells, and the shares of a cell
        that are in a cluster, (k, n_cells).
    """
    belongs, strength = members[clusters], strength[clusters]
    loose = ~belongs.any(axis=0)  # in no cluster: the last block
    strongest = np.where(belongs | loose, strength, -1).argmax(axis=0)
    block = np.where(loose, len(clusters), strongest)
    # Within a block a row lies towards the blocks of its other clusters: their mean place says
    # where. Ties are broken by the number of clusters, then by the strength.
    number = belongs.sum(axis=0)
    place = np.arange(len(clusters)) @ belongs / np.maximum(number, 1)
    place = np.where(loose, strongest, place)
    height = strength[strongest, np.arange(len(block))].astype(np.float64)
    rank = np.argsort(np.lexsort((-height, -number, place, block)))
    cells, kept = divide_into_cells(block, -rank, max_cells)
    shares = np.stack([np.bincount(cells, one) for one in members]) / kept["cell_sizes"]
    return cells, {
        "order": kept["order"],
        "sizes": kept["cell_sizes"],
        "shares": shares,
    }
