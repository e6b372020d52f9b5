"""Sources as the model sees them: as they were given, or on one footing."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt
from numbers import Integral
from typing import Any

import numpy as np

from nmfcluster._arrays.nearest import graph_of, mean_degree, near
from nmfcluster._arrays.storage import filled_with, stored_entries, total
from nmfcluster.fusion.dense import make_mixture
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.stack import SimilarityStack, square_sources
from nmfcluster.stack.container import called

_ROOM = 1e3  # times the sum of a source, or over it, must not overflow: sums grow in the products
_MANY = 2  # times the root of n, on average: a source with more neighbours is no graph yet
_OF_A_CLUSTER = 0.75  # of its mean size: those of an object in a small cluster are not all others


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
    def of(
        cls, sources: list[Any], n_nearest: int | str, n_clusters: int
    ) -> tuple[list[Any], Footing]:
        """Return the graphs of sources, and what is needed to join others to them."""
        graphs, kept, degrees = [], [], []
        for source in sources:
            n_neighbors = _n_neighbors(source, n_nearest, n_clusters)
            graph = graph_of(source, n_neighbors)
            sums = _degrees(graph)
            graphs.append(over_roots(graph, sums))
            kept.append(n_neighbors)
            degrees.append(sums)
        return graphs, cls(tuple(kept), tuple(degrees))

    def rows(self, sources: list[Any]) -> list[Any]:
        """Return the similarities of new objects to those of the graphs, likewise."""
        joined = []
        for source, n_neighbors, degrees in zip(
            sources, self.n_neighbors, self.degrees, strict=True
        ):
            joined.append(over_roots(near(source, n_neighbors), degrees))
        return joined


def _n_neighbors(source: Any, n_nearest: int | str, n_clusters: int) -> int | None:
    if isinstance(n_nearest, str) and is_graph(source):
        return None
    return neighbors_to_keep(source.shape[0], n_nearest, n_clusters)


def is_graph(source: Any) -> bool:
    """Return whether a source has few enough entries in a row to be left with all of them."""
    return mean_degree(source) <= _MANY * isqrt(source.shape[1])


def neighbors_to_keep(n: int, n_nearest: Any, n_clusters: int) -> int | None:
    """Return how many of n similarities an object keeps of a source that is no graph."""
    if not isinstance(n_nearest, str):
        return None if n_nearest is None else int(n_nearest)
    return min(isqrt(n), max(2, ceil(_OF_A_CLUSTER * n / n_clusters)))


def _degrees(graph: Any) -> np.ndarray:
    return np.asarray(graph.sum(axis=1, dtype=np.float64)).ravel()


def over_roots(graph: Any, columns: np.ndarray) -> Any:
    """Return the entries divided by the roots of the degrees of both objects.

    Those of rows are their sums, those of columns are given. A degree counts as at least the entry
    itself: a new object would have been a neighbour, too.
    """
    rows = _degrees(graph)
    i, j, values = stored_entries(graph.astype(np.float64))
    shares = values / np.sqrt(rows[i]) / np.sqrt(np.maximum(columns[j], values))
    return filled_with(graph, shares.astype(np.float32))


def mixture_of(
    stack: SimilarityStack, name: str, n_nearest: int | str | None, n_clusters: int
) -> tuple[Mixture, Footing | AsGiven]:
    """Return the mixture of a stack, which is checked first, and the footing of its sources.

    Parameters
    ----------
    stack : SimilarityStack of shape (n, n, L)
    name : str
        What to call it in an error message.
    n_nearest : int, "auto" or None
        How many neighbours of every object to keep; None: the sources stay as they are.
    n_clusters : int
        Upon which "auto" depends.

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
    labels = [called(i, source, name) for i, source in enumerate(stack.names)]
    check_sums(sources, labels, stack.dtype)
    if n_nearest is None:
        return make_mixture(sources, seen), AsGiven((None,) * len(sources))
    graphs, footing = Footing.of(sources, n_nearest, n_clusters)
    return make_mixture(graphs, seen), footing


def check_sums(sources: list[Any], labels: list[str], dtype: np.dtype) -> None:
    """Raise unless every source has a sum that its dtype can hold, and can be divided by."""
    most = float(np.finfo(dtype).max) / _ROOM
    for source, label in zip(sources, labels, strict=True):
        with np.errstate(over="ignore"):  # a sum that is too large is refused
            size = total(source)
        if not 1 / most < size < most:
            raise ValueError(
                f"{label} must have a sum that {dtype} can hold with some room, got {size:.3g}; "
                "scale it."
            )


def draw_samples(
    n_samples: int, max_samples: Any, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return the objects to fit to, in their order; `max_samples` is that of the estimator."""
    if max_samples is None:
        return np.arange(n_samples)
    size = max_samples
    if not isinstance(size, Integral):
        size = max(round(size * n_samples), 2)
    if size > n_samples:
        raise ValueError(f"max_samples={max_samples} must be at most n_samples={n_samples}.")
    if size < n_clusters:
        raise ValueError(
            f"max_samples={max_samples} must be at least n_clusters={n_clusters} objects, got "
            f"{size} of {n_samples}."
        )
    if size == n_samples:  # a full fit, and the same one
        return np.arange(n_samples)
    return np.sort(rng.permutation(n_samples)[: int(size)])
