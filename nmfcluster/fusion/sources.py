"""What a model is fitted to: sources of similarities of objects to each other, or to landmarks.

Sources stay as they are given, or are made graphs of near objects, so that all of them count next
to alike.

A source S of n objects and p landmarks is read as the graph of both, ``[[0, S], [S', 0]]``. One
factor of it holds W of the objects above H of the landmarks: an EM step is that of ``P = W H'``,
and gives either half the same probability. What a source is explained by, and what there is to
explain, are both larger by log 2 than for ``P``: it says which end of a pair is an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt
from numbers import Integral
from typing import Any

import numpy as np

from nmfcluster._arrays.nearest import both_ways, graph_of, mean_degree, near, stacked
from nmfcluster._arrays.storage import filled_with, stored_entries, total
from nmfcluster.fusion.mixture import Mixture, make_mixture
from nmfcluster.stack.reading import StackReader

_ROOM = 1e3  # times the sum of a source, or over it, must not overflow: sums grow in the products
_MANY = 2  # times the root of n, on average: a source with more neighbours is no graph yet
_OF_A_CLUSTER = 0.75  # of its mean size: those of an object in a small cluster are not all others


@dataclass(frozen=True)
class Graphs:
    """How sources were made graphs of near objects, and how new objects are joined to them.

    An edge joins two objects one of which is among the most similar to the other, and none an
    object to itself. Its weight is ``s_ij / (d_i d_j)^1/2`` with the degrees d.

    Attributes
    ----------
    n_nearest : tuple of (int or None)
        How many similarities of every object a source keeps; None: all.
    degrees : tuple of ndarray of shape (n,), or None
        One a source; None: the sources stayed as they were.
    """

    n_nearest: tuple[int | None, ...]
    degrees: tuple[np.ndarray, ...] | None

    def joined(self, sources: list[Any]) -> list[Any]:
        """Return the similarities of new objects to those of the fit, made edges likewise."""
        if self.degrees is None:
            return sources
        kept = map(near, sources, self.n_nearest)
        return [over_roots(S, degrees) for S, degrees in zip(kept, self.degrees, strict=True)]


@dataclass(frozen=True)
class FusionData:
    """What a model is fitted to.

    Attributes
    ----------
    mixture : Mixture
        Of the fitted objects, and of landmarks behind them if there are some.
    graphs : Graphs
    dtype : dtype
        Of the similarities.
    fitted : ndarray of int
        The objects, in the order in which the mixture has them.
    by_landmarks : bool
    """

    mixture: Mixture
    graphs: Graphs
    dtype: np.dtype
    fitted: np.ndarray
    by_landmarks: bool

    @property
    def shift(self) -> float:
        """What a mixture of objects and landmarks adds to losses, in nats."""
        return float(np.log(2)) if self.by_landmarks else 0.0

    @property
    def compared(self) -> slice:
        """The rows of the mixture that new objects are compared with."""
        return slice(len(self.fitted) if self.by_landmarks else 0, None)


def read_sources(
    reader: StackReader,
    objects: Any,
    ordered: np.ndarray,
    estimator: Any,
    rng: np.random.RandomState,
) -> FusionData:
    """Return what an estimator fits its model to, of the objects that were read.

    Without ``symmetric``, all objects are fitted to their similarities to those that are drawn.
    `ordered` are their numbers, in the order in which they are fitted, (n,).
    """
    k, as_graphs = int(estimator.n_clusters), estimator.criterion == "relative"
    n_objects, n_columns = objects.shape[:2]
    chosen = draw_samples(n_columns, estimator.max_samples, k, rng)
    chosen = ordered[chosen] if n_columns == n_objects else chosen  # others stay as they are
    by_landmarks = not estimator.symmetric and len(chosen) < n_objects
    # the similarities to the chosen objects, and how many of them each object keeps
    if by_landmarks:
        reader.compare_with(objects, chosen)
        sources, kept = _near_landmarks(reader, objects, ordered, k if as_graphs else None)
        seen = np.ones((n_objects + len(chosen), len(sources)), dtype=bool)
    else:
        sources, seen = reader.fitted(objects, chosen)
        kept = [n_to_keep(S, k) if as_graphs else None for S in sources]
    _check_sums(sources, reader.labels)
    dtype, graphs = sources[0].dtype, Graphs(tuple(kept), None)
    # graphs on one scale
    if as_graphs:
        near_ones = sources if by_landmarks else list(map(graph_of, sources, kept))
        sources, graphs = normalised(near_ones, kept, axis=0 if by_landmarks else 1)
    # and of both objects and landmarks
    if by_landmarks:
        sources, chosen = list(map(both_ways, sources)), ordered
    return FusionData(make_mixture(sources, seen), graphs, dtype, chosen, by_landmarks)


def _near_landmarks(
    reader: StackReader, objects: Any, ordered: np.ndarray, n_clusters: int | None
) -> tuple[list[Any], list[int | None]]:
    """Return the similarities of all objects to landmarks, and how many each object keeps.

    It keeps those to the landmarks that are nearest to it. What some objects have tells how many;
    all, if the number of clusters is None.
    """
    kept: list[int | None] = []
    blocks: list[list[Any]] = []
    for sources, seen in reader.blocks(objects, ordered):
        if not seen.all():
            raise ValueError(
                f"samples are missing from {reader.labels[seen.all(axis=0).argmin()]}: with "
                "max_samples, or fewer columns than rows, only symmetric=True can leave any out."
            )
        kept = kept or [None if n_clusters is None else n_to_keep(S, n_clusters) for S in sources]
        blocks.append(list(map(near, sources, kept)))
    return [stacked(list(rows)) for rows in zip(*blocks, strict=True)], kept


def n_to_keep(source: Any, n_clusters: int) -> int | None:
    """Return how many similarities an object keeps; None: all of a source that is a graph.

    That is one with few enough entries in a row.
    """
    n = source.shape[1]
    if mean_degree(source) <= _MANY * isqrt(n):
        return None
    return min(isqrt(n), max(2, ceil(_OF_A_CLUSTER * n / n_clusters)))


def normalised(
    graphs: list[Any], n_nearest: list[int | None], axis: int
) -> tuple[list[Any], Graphs]:
    """Return graphs over the roots of degrees; those of columns are the sums along an axis."""
    degrees = [_degrees(graph, axis) for graph in graphs]
    return list(map(over_roots, graphs, degrees)), Graphs(tuple(n_nearest), tuple(degrees))


def _degrees(graph: Any, axis: int) -> np.ndarray:
    return np.asarray(graph.sum(axis=axis, dtype=np.float64)).ravel()


def over_roots(graph: Any, columns: np.ndarray) -> Any:
    """Return the entries divided by the roots of the degrees of both objects.

    Those of rows are their sums, those of columns are given. A degree counts as at least the entry
    itself: a new object would have been a neighbour, too.
    """
    rows = _degrees(graph, axis=1)
    i, j, values = stored_entries(graph.astype(np.float64))
    shares = values / np.sqrt(rows[i]) / np.sqrt(np.maximum(columns[j], values))
    return filled_with(graph, shares.astype(np.float32))


def _check_sums(sources: list[Any], labels: list[str]) -> None:
    """Raise unless every source has a sum that its dtype can hold, and can be divided by."""
    dtype = sources[0].dtype
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
    size: Any = n_samples if max_samples is None else max_samples
    if not isinstance(size, Integral):
        size = max(round(size * n_samples), 2)
    if not n_clusters <= size <= n_samples:
        raise ValueError(
            f"max_samples={max_samples} must leave at least n_clusters={n_clusters} objects, and "
            f"at most all {n_samples} that there are, or columns of similarities, got {size}."
        )
    if size == n_samples:  # a full fit, and the same one
        return np.arange(n_samples)
    return np.sort(rng.permutation(n_samples)[: int(size)])
