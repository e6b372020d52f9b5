"""Graphs of the objects that are nearest to each other, or most similar."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from nmfcluster._arrays.storage import (
    filled_with,
    index_dtype,
    largest,
    row_blocks,
    without_diagonal,
)

_ROWS = 256  # of a dense matrix that are worked on at a time
_LEAST = 1e-12  # of the largest entry: less is no similarity


def near(source: Any, n_neighbors: int | None, among: Any = slice(None)) -> sp.csr_array:
    """Return the similarities of every row that are not below the K-th largest, sparse.

    Parameters
    ----------
    source : {ndarray, csr_array} of shape (r, n)
        Nonnegative.
    n_neighbors : int or None
        K; None: all that are above 0.
    among : ndarray of int or slice, default=slice(None)
        The columns of an array whose entries are counted: of those that are equal, one.

    Returns
    -------
    csr_array of shape (r, n)
        More than K of a row where several are as large as its K-th.
    """
    least = _LEAST * largest(source)
    if sp.issparse(source):
        return _near_of_sparse(source, n_neighbors, least)
    blocks = [
        _near_of_dense(source[rows], n_neighbors, least, among)
        for rows in row_blocks(source.shape[0], _ROWS)
    ]
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def _near_of_dense(
    block: np.ndarray, n_neighbors: int | None, least: float, among: Any
) -> sp.csr_array:
    kept, counted = block > least, block[:, among]
    if n_neighbors is not None and n_neighbors < counted.shape[1]:
        smallest = np.partition(counted, -n_neighbors, axis=1)[:, -n_neighbors, None]
        kept &= block >= smallest
    return sp.csr_array(np.where(kept, block, 0))


def _near_of_sparse(source: Any, n_neighbors: int | None, least: float) -> sp.csr_array:
    data, indptr = source.data, source.indptr
    counts = np.diff(indptr)
    kept = data > least
    if n_neighbors is not None and counts.max(initial=0) > n_neighbors:
        rows = np.repeat(np.arange(len(counts)), counts)
        falling = np.lexsort((-data, rows))
        more = np.flatnonzero(counts > n_neighbors)
        smallest = np.zeros(len(counts), dtype=data.dtype)
        smallest[more] = data[falling[indptr[more] + n_neighbors - 1]]
        kept &= data >= smallest[rows]
    return filled_with(source, np.where(kept, data, 0))


def graph_of(array: Any, n_neighbors: int | None) -> sp.csr_array:
    """Return the similarities of pairs of which one is `near` the other, without the diagonal.

    Parameters
    ----------
    array : {ndarray, csr_array} of shape (n, n)
        Symmetric, nonnegative.
    n_neighbors : int or None

    Returns
    -------
    csr_array of shape (n, n)
    """
    graph = near(without_diagonal(array), n_neighbors)
    return sp.csr_array(graph.maximum(graph.T))


def mean_degree(array: Any) -> float:
    """Return how many entries a row of a square matrix has that are not 0, on average."""
    held = array.count_nonzero() if sp.issparse(array) else np.count_nonzero(array)
    return float(held) / array.shape[0]


def stacked(blocks: list[Any]) -> sp.csr_array:
    """Return blocks of rows, CSR, as one matrix."""
    return sp.csr_array(sp.vstack(blocks, format="csr"))


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
