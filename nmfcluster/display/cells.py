"""Order of samples, rows and columns in pictures, their cells, and means over cells."""

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list, optimal_leaf_ordering
from scipy.spatial.distance import pdist

from nmfcluster._utils.labels import share_of_seen
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import as_dense, group_indicator
from nmfcluster._utils.validation import check_count


def divide_into_cells(labels, confidence, max_cells: int):
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
    display : dict
        Attributes of a display: the order of the samples, and the size and the cluster of every
        cell.
    """
    check_count(max_cells, "max_cells", 1)
    # rounded, as rounding errors must not break ties
    order = np.lexsort((-np.round(confidence, 9), labels))
    clusters, sizes = np.unique(labels, return_counts=True)
    # numbers of cells in proportion to the sizes, from 1 to one for each sample
    n_cells = np.clip(sizes * int(max_cells) // len(labels), 1, sizes)
    # in integers: cell j of a cluster begins where j * size / n_cells is first reached
    first = np.cumsum(n_cells) - n_cells
    cells = np.empty(len(order), dtype=np.intp)
    cells[order] = np.concatenate(
        [
            np.arange(size) * n // size + start
            for size, n, start in zip(sizes, n_cells, first, strict=True)
        ]
    )
    return cells, {
        "order": order,
        "cell_sizes": np.bincount(cells),
        "cell_labels": np.repeat(clusters, n_cells),
    }


def arrange_table(X, rows, columns, row_strength, column_strength, max_cells: int):
    """Divide a matrix into cells, in an order that makes its biclusters blocks.

    Parameters
    ----------
    X : {ndarray, CSR} of shape (n_rows, n_columns), float
        NaN where nothing was observed, which means leave out.
    rows, columns : ndarray of shape (n_clusters, n), bool
        Whether each row or column is in each cluster.
    row_strength, column_strength : ndarray of shape (n_clusters, n)
        How strongly each row or column belongs to each cluster, at least 0.
    max_cells : int
        Largest number of cells in a row and in a column; but every cluster has one.

    Returns
    -------
    dict
        Parameters of a `BiclusterDisplay`, by their names.
    """
    # neighbours share many rows and columns
    clusters = np.arange(len(rows))
    if len(rows) > 2:
        distances = pdist(rows, "jaccard") + pdist(columns, "jaccard")
        clusters = leaves_list(optimal_leaf_ordering(average(distances), distances))
        if clusters[0] > clusters[-1]:
            clusters = clusters[::-1]
    row_cells, of_rows = _arrange_side("row", rows, row_strength, clusters, max_cells)
    column_cells, of_columns = _arrange_side(
        "column", columns, column_strength, clusters, max_cells
    )
    # means over the observed entries of each cell
    down = group_indicator(row_cells, X.dtype).T
    across = group_indicator(column_cells, X.dtype)
    X, missing = split_missing(X)
    sizes = np.sqrt(np.outer(of_rows["row_sizes"], of_columns["column_sizes"]))
    matrix = as_dense(down @ X @ across) / sizes
    if missing is not None:
        n_missing = np.rint(as_dense(down @ missing @ across) * sizes)
        matrix = share_of_seen(matrix * sizes**2, sizes**2 - n_missing)
    return {"matrix": matrix, "clusters": clusters, **of_rows, **of_columns}


def _arrange_side(side: str, members, strength, clusters, max_cells: int):
    """Order the rows of a matrix, or its columns, and divide them into cells.

    Parameters
    ----------
    side : {"row", "column"}
    members : ndarray of shape (k, n), bool
    strength : ndarray of shape (k, n)
        A row belongs to the block of its strongest cluster.
    clusters : ndarray of shape (k,), int
        The order of the blocks.
    max_cells : int

    Returns
    -------
    cells : ndarray of shape (n,), int
        Cell of every row, the rows in their order in the matrix.
    display : dict
        Attributes of a display: the rows in the order of the picture, the size of every cell, and
        the share of its rows that are in each cluster, (k, n_cells).
    """
    belongs = members[clusters]
    strength = strength[clusters]
    is_unassigned = ~belongs.any(axis=0)  # in no cluster: the last block
    strongest = np.where(belongs | is_unassigned, strength, -1).argmax(axis=0)
    block = np.where(is_unassigned, len(clusters), strongest)
    # Within a block, rows are ordered by the mean position of their clusters. Ties are
    # broken by the number of clusters, then by the strength.
    n_clusters = belongs.sum(axis=0)
    position = np.arange(len(clusters)) @ belongs / np.maximum(n_clusters, 1)
    position = np.where(is_unassigned, strongest, position)
    largest = strength[strongest, np.arange(len(block))].astype(np.float64)
    rank = np.argsort(np.lexsort((-largest, -n_clusters, position, block)))
    cells, display = divide_into_cells(block, -rank, max_cells)
    sizes = display["cell_sizes"]
    counts = np.stack([np.bincount(cells, cluster) for cluster in members])
    return cells, {
        f"{side}_order": display["order"],
        f"{side}_sizes": sizes,
        f"{side}_shares": counts / sizes,
    }
