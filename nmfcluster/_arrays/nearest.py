"""Graphs of the objects that are nearest to each other, or most similar."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from nmfcluster._arrays.storage import index_dtype, largest

_LEAST = 1e-12  # of the largest entry: less is no similarity


def near(rows: np.ndarray, n_neighbors: int, among: Any = slice(None)) -> sp.csr_array:
    """Return the similarities of every row that are not below the K-th largest, sparse.

    Parameters
    ----------
    rows : ndarray of shape (r, n)
        Nonnegative.
    n_neighbors : int
        K.
    among : ndarray of int or slice, default=slice(None)
        The columns whose entries are counted: of those that are equal, one.

    Returns
    -------
    csr_array of shape (r, n)
        More than K of a row where several are as large as its K-th.
    """
    kept, counted = rows > _LEAST * largest(rows), rows[:, among]
    if n_neighbors < counted.shape[1]:
        kept &= rows >= np.partition(counted, -n_neighbors, axis=1)[:, -n_neighbors, None]
    return sp.csr_array(np.where(kept, rows, 0))


def stacked(blocks: list[Any]) -> Any:
    """Return blocks of rows as one matrix, CSR if they are sparse."""
    sparse = sp.issparse(blocks[0])
    return sp.csr_array(sp.vstack(blocks, format="csr")) if sparse else np.concatenate(blocks)


def both_ways(array: sp.csr_array) -> sp.csr_array:
    """Return ``[[0, S], [S', 0]]``: the graph of the rows and the columns of S, (n + p, n + p)."""
    return sp.csr_array(sp.block_array([[None, array], [array.T, None]]))


def highest_edges(heights: np.ndarray, nearest: np.ndarray) -> list[tuple[int, int, float]]:
    """Return the edges of a tree that joins all that a graph joins, as high as possible.

    Parameters
    ----------
    heights : ndarray of shape (n,)
        An edge is as high as the lower one of its nodes.
    nearest : ndarray of shape (n, k), int
        Nodes that a node has an edge to.

    Returns
    -------
    list of tuple
        Both nodes and the height of n - 1 edges, or fewer, the highest first.
    """
    n, k = nearest.shape
    kind = index_dtype(nearest.size)  # SciPy 1.13 makes trees of no others
    ends, starts = nearest.ravel().astype(kind), np.arange(0, n * k + 1, k, dtype=kind)
    depth = heights.max() - np.minimum(heights[:, None], heights[nearest]) + 1  # 0: no edge
    graph = sp.csr_array((depth.ravel(), ends, starts), shape=(n, n))  # one way is enough
    tree = sp.coo_array(minimum_spanning_tree(graph))
    saddles = np.minimum(heights[tree.row], heights[tree.col])
    order = np.argsort(-saddles, kind="stable")
    parts = (part[order].tolist() for part in (tree.row, tree.col, saddles))
    return list(zip(*parts, strict=True))
