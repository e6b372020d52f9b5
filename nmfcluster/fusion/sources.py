"""Sources as the model sees them: as they were given, or on one footing."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.storage import (
    as_matrix,
    filled_with,
    largest,
    row_blocks,
    stored_entries,
    total,
    without_diagonal,
)
from nmfcluster.fusion.dense import DenseMixture
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.fusion.sparse import SparseMixture
from nmfcluster.stack import SimilarityStack, square_sources
from nmfcluster.stack.container import called

_ROOM = 1e3  # times the sum of a source, or over it, must not overflow: sums grow in the products
_ROWS = 256  # of a dense source that are worked on at a time
_LEAST = 1e-12  # of the largest entry of a source: less is no similarity
_MANY = 2  # times the neighbours to keep, on average: a source with more is no graph yet


def near(source: Any, n_neighbors: int | None) -> sp.csr_array:
    """Return the similarities of every row that are not below the K-th largest, sparse.

    Parameters
    ----------
    source : {ndarray, csr_array} of shape (r, n)
        Nonnegative.
    n_neighbors : int or None
        K; None: all that are above 0.

    Returns
    -------
    csr_array of shape (r, n)
        More than K of a row where several are as large as its K-th.
    """
    least = _LEAST * largest(source)
    if sp.issparse(source):
        return _near_of_sparse(source, n_neighbors, least)
    blocks = [
        _near_of_dense(source[rows], n_neighbors, least)
        for rows in row_blocks(source.shape[0], _ROWS)
    ]
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def _near_of_dense(block: np.ndarray, n_neighbors: int | None, least: float) -> sp.csr_array:
    kept = block > least
    if n_neighbors is not None and n_neighbors < block.shape[1]:
        smallest = np.partition(block, -n_neighbors, axis=1)[:, -n_neighbors, None]
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


def is_graph(source: Any, n_neighbors: int) -> bool:
    """Return whether most objects are similar to few others only."""
    held = source.nnz if sp.issparse(source) else np.count_nonzero(source)
    return bool(held <= _MANY * n_neighbors * source.shape[0])


@dataclass(frozen=True)
class AsGiven:
    """Sources that stay as they are.

    Attributes
    ----------
    n_neighbors : tuple of None
        One a source: all similarities are kept.
    """

    n_neighbors: tuple[None, ...]

    def rows(self, sources: list[Any]) -> list[Any]:
        """Return the similarities of new objects, as they are."""
        return sources


@dataclass(frozen=True)
class Footing:
    """How sources were put on one footing, and how new objects are.

    Every source becomes a graph without loops: an edge joins two objects one of which is among
    the most similar to the other. Its weights are ``s_ij / (d_i d_j)^1/2`` with the degrees d.

    Attributes
    ----------
    n_neighbors : tuple of (int or None)
        How many neighbours of every object a source keeps; None: all.
    degrees : tuple of ndarray of shape (n,)
    """

    n_neighbors: tuple[int | None, ...]
    degrees: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, sources: list[Any], sparsify: int | str) -> tuple[list[Any], Footing]:
        """Return the graphs of sources, and what is needed to join others to them."""
        graphs, kept, degrees = [], [], []
        for source in sources:
            alone = without_diagonal(source)
            n_neighbors = _n_neighbors(alone, sparsify)
            graph = near(alone, n_neighbors)
            graph = sp.csr_array(graph.maximum(graph.T))
            sums = np.asarray(graph.sum(axis=1, dtype=np.float64)).ravel()
            graphs.append(_over_roots(graph, sums, sums))
            kept.append(n_neighbors)
            degrees.append(sums)
        return graphs, cls(tuple(kept), tuple(degrees))

    def rows(self, sources: list[Any]) -> list[Any]:
        """Return the similarities of new objects to those of the graphs, likewise."""
        joined = []
        for source, n_neighbors, degrees in zip(
            sources, self.n_neighbors, self.degrees, strict=True
        ):
            part = near(source, n_neighbors)
            sums = np.asarray(part.sum(axis=1, dtype=np.float64)).ravel()
            joined.append(_over_roots(part, sums, degrees))
        return joined


def _n_neighbors(source: Any, sparsify: int | str) -> int | None:
    if not isinstance(sparsify, str):
        return int(sparsify)
    root = isqrt(source.shape[0])
    return None if is_graph(source, root) else root


def _over_roots(graph: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Return the entries divided by the roots of the degrees of both objects.

    A degree counts as at least the entry itself: a new object would have been a neighbour, too.
    """
    i, j, values = stored_entries(graph.astype(np.float64))
    shares = values / np.sqrt(rows[i]) / np.sqrt(np.maximum(columns[j], values))
    return filled_with(graph, shares.astype(np.float32))


def mixture_of(
    stack: SimilarityStack, name: str, sparsify: int | str | None
) -> tuple[Mixture, Footing | AsGiven]:
    """Return the mixture of a stack, which is checked first, and the footing of its sources.

    Parameters
    ----------
    stack : SimilarityStack of shape (n, n, L)
    name : str
        What to call it in an error message.
    sparsify : int, "auto" or None
        How many neighbours of every object to keep; None: the sources stay as they are.

    Returns
    -------
    mixture : Mixture
    footing : Footing or AsGiven

    Raises
    ------
    ValueError
        If a source is no similarity of objects to each other, see `square_sources`; or if it, or
        its logarithms, cannot be summed, or it cannot be divided by its sum.
    """
    sources, seen = square_sources(stack, name)
    with np.errstate(over="ignore"):  # a sum that is too large is refused below
        totals = [total(source) for source in sources]
    most = float(np.finfo(stack.dtype).max) / _ROOM
    for i, (size, source) in enumerate(zip(totals, stack.names, strict=True)):
        if not 1 / most < size < most:
            raise ValueError(
                f"{called(i, source, name)} must have a sum that {stack.dtype} can hold with "
                f"some room, got {size:.3g}; scale it."
            )
    if sparsify is None:
        return make_mixture(sources, seen), AsGiven((None,) * len(sources))
    graphs, footing = Footing.of(sources, sparsify)
    return make_mixture(graphs, seen), footing


def make_mixture(sources: list[Any], seen: np.ndarray) -> Mixture:
    """Return the mixture of sources: a sparse one if all of them are sparse.

    Parameters
    ----------
    sources : list of {ndarray, csr_array} of shape (n, n)
        Symmetric, nonnegative, all of one dtype, none 0 throughout.
    seen : ndarray of shape (n, L), bool

    Returns
    -------
    Mixture
    """
    sources = [as_matrix(source) for source in sources]
    sparse = all(sp.issparse(source) for source in sources)
    return SparseMixture(sources, seen) if sparse else DenseMixture(sources, seen)
