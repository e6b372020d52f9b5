"""One graph of several sources: who is more alike in all of them than independent objects are.

Sources are summed in an order of their own, which the caller sees to: sums round alike then.
"""

from collections.abc import Iterable
from math import ceil, isqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils import storage
from nmfcluster._utils.storage import near, stacked
from nmfcluster.fusion.residuals import Residual, sums_of

Kind = tuple[
    np.ndarray, int | None
]  # weights of sources, and how many neighbours an object has
Counted = list[tuple[Residual, float]]  # sources, and their weights

_ROWS = 256  # of a dense graph that are summed at a time
_OF_A_CLUSTER = (
    0.75  # of its mean size: those of an object in a small cluster are not all others
)


class FusedGraph(NamedTuple):
    """The graph of pairs that sources together call alike.

    Attributes
    ----------
    A : csr_array of shape (n, p)
        :math:`D_r^{-1/2} G D_c^{-1/2}`, G the graph.
    degrees : ndarray of shape (p,)
        The sums of the columns of G.
    parts : ndarray of shape (n_counted, nnz), float32
        What every source that counts adds to the entries of A, in their order. It can be negative.
    """

    A: sp.csr_array
    degrees: np.ndarray
    parts: np.ndarray


def n_to_keep(
    residuals: list[Residual],
    weights: np.ndarray,
    n_clusters: int,
    among: Any = slice(None),
) -> int | None:
    """Return how many neighbours an object has in the sum of sources; None: all that one has.

    That is where all that count are graphs. Else it is the root of the number of objects that
    there are, or three quarters of a mean cluster, if these are fewer.

    Parameters
    ----------
    residuals : list of Residual
    weights : ndarray of shape (L,)
    n_clusters : int
    among : ndarray of int or slice, default=slice(None)
        The columns that are counted: of objects that are equal, one.

    Returns
    -------
    int or None
    """
    if all(R.is_graph for R, w in zip(residuals, weights, strict=True) if w > 0):
        return None
    n = len(residuals[0].columns[among])
    return min(isqrt(n), max(2, ceil(_OF_A_CLUSTER * n / n_clusters)))


def graphs_of(
    blocks: Iterable[list[Residual]], kinds: list[Kind], among: Any = slice(None)
) -> list[FusedGraph]:
    """Return the graphs that sources make with several weights.

    Parameters
    ----------
    blocks : iterable of list of Residual
        Of all objects, or of some at a time, in their order.
    kinds : list of tuple
        Weights of shape (L,), and how many neighbours are kept, see `told_alike`; one a graph.
    among : ndarray of int or slice, default=slice(None)
        See `n_to_keep`.

    Returns
    -------
    list of FusedGraph
    """
    found: list[list[tuple[sp.csr_array, np.ndarray]]] = [[] for _ in kinds]
    for residuals in blocks:
        for rows, (weights, n_nearest) in zip(found, kinds, strict=True):
            G = told_alike(residuals, weights, n_nearest, among)
            G = sp.csr_array(G.maximum(G.T)) if residuals[0].square else G
            i, j, _ = storage.stored_entries(G)
            rows.append((G, _parts_of(_used(residuals, weights), i, j)))
    graphs = []
    for rows in found:
        G = stacked([G for G, _ in rows])
        parts = np.concatenate([part for _, part in rows], axis=1)
        degrees = sums_of(G, axis=0)
        A = over_roots(G, degrees)
        graphs.append(FusedGraph(A, degrees, parts * (A.data / G.data)))
    return graphs


def told_alike(
    residuals: list[Residual],
    weights: np.ndarray,
    n_nearest: int | None,
    among: Any = slice(None),
) -> sp.csr_array:
    r"""Return the pairs that sources together call alike, and how much.

    .. math:: R_{ij} = \frac{\sum_l w_l R^l_{ij} / s_l}{\sqrt{\sum_l w_l}}

    over the sources l that saw both objects, :math:`s_l` the root mean square of :math:`R^l`: of
    independent sources a z-score. Of a row the K largest above 0 are kept, and those as large.

    Parameters
    ----------
    residuals : list of Residual
        Of the same objects.
    weights : ndarray of shape (L,)
        At least 0. A source of size 0 says nothing, whatever its weight.
    n_nearest : int or None
        K; None: all pairs that a source has. All that count are sparse then.
    among : ndarray of int or slice, default=slice(None)
        See `n_to_keep`.

    Returns
    -------
    csr_array of shape (n, p), float32
    """
    used = _used(residuals, weights)
    if not used:
        return sp.csr_array(residuals[0].stored.shape, dtype=np.float32)
    if (
        n_nearest is None
    ):  # pairs that some source stores are all that it can call alike
        pairs = sum((R.stored != 0).astype(np.float32) for R, _ in used).tocoo()
        told = _parts_of(used, *pairs.coords).sum(axis=0)
        A = sp.csr_array((np.maximum(told, 0), pairs.coords), shape=pairs.shape)
        A.eliminate_zeros()
        return A
    blocks = storage.row_blocks(residuals[0].stored.shape[0], _ROWS)
    return stacked([_of_rows(used, rows, n_nearest, among) for rows in blocks])


def _used(residuals: list[Residual], weights: np.ndarray) -> Counted:
    """Return the sources that count, and their weights."""
    return [
        (R, float(w))
        for R, w in zip(residuals, weights, strict=True)
        if w > 0 and R.size > 0
    ]


def _parts_of(used: Counted, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return what every source adds to some entries of R, (n_used, n_pairs), in float32."""
    parts, by = np.zeros((len(used), len(rows)), dtype=np.float32), np.zeros(len(rows))
    for part, (R, w) in zip(parts, used, strict=True):
        part[:] = w / R.size * R.entries(rows, columns)
        by += w * (R.seen[rows] & (R.columns[columns] > 0))
    return parts / np.sqrt(np.maximum(by, np.finfo(float).tiny)).astype(np.float32)


def _of_rows(used: Counted, rows: slice, n_nearest: int, among: Any) -> sp.csr_array:
    """Return the largest of some rows."""
    told = np.zeros(
        (rows.stop - rows.start, used[0][0].stored.shape[1]), dtype=np.float32
    )
    for R, w in used:
        told += R.block(rows) * np.float32(w / R.size)
    if not all(R.seen[rows].all() and R.columns.all() for R, _ in used):
        by = np.zeros(told.shape, dtype=np.float32)
        for R, w in used:
            by += np.outer(np.float32(w) * R.seen[rows], R.columns > 0)
        told /= np.sqrt(np.maximum(by, np.finfo(np.float32).tiny))
    else:
        told /= np.float32(np.sqrt(sum(w for _, w in used)))
    if used[0][0].square:
        told[np.arange(len(told)), np.arange(rows.start, rows.stop)] = 0
    return near(np.maximum(told, 0, out=told), n_nearest, among)


def over_roots(graph: Any, columns: np.ndarray) -> Any:
    """Return the entries divided by the roots of the degrees of both objects.

    Those of rows are their sums, those of columns are given. A degree counts as at least the entry
    itself: a new object would have been a neighbour, too.
    """
    rows = sums_of(graph, axis=1)
    i, j, values = storage.stored_entries(graph.astype(np.float64))
    shares = values / np.sqrt(rows[i]) / np.sqrt(np.maximum(columns[j], values))
    return storage.filled_with(graph, shares.astype(np.float32))
