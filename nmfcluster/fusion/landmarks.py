"""Sources as similarities of all objects to a few of them: graphs between objects and landmarks.

A source S of n objects and p landmarks is read as the graph of both, ``[[0, S], [S', 0]]``. One
factor of it holds W of the objects above H of the landmarks: an EM step is that of ``P = W H'``,
and gives either half the same probability. What a source is explained by, and what there is to
explain, are both larger by log 2 than for ``P``: it says which end of a pair is an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster._arrays.nearest import both_ways, near, stacked
from nmfcluster.fusion.dense import make_mixture
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.fusion.sources import (
    AsGiven,
    Footing,
    check_sums,
    draw_samples,
    is_graph,
    mixture_of,
    neighbors_to_keep,
    over_roots,
)
from nmfcluster.stack.container import called
from nmfcluster.stack.reading import StackReader

_SHIFT = float(np.log(2))
_ROWS = 2048  # objects whose similarities are made at a time: those that are dense are thinned


@dataclass(frozen=True)
class Given:
    """What a model is fitted to.

    Attributes
    ----------
    mixture : Mixture
        Of the fitted objects, and of landmarks behind them if there are some.
    footing : Footing or AsGiven
    dtype : dtype
        Of the similarities.
    fitted : ndarray of int
        The objects.
    by_landmarks : bool
    """

    mixture: Mixture
    footing: Footing | AsGiven
    dtype: np.dtype
    fitted: np.ndarray
    by_landmarks: bool

    @property
    def shift(self) -> float:
        """What a mixture of objects and landmarks adds to losses, in nats."""
        return _SHIFT if self.by_landmarks else 0.0

    @property
    def compared(self) -> slice:
        """The rows of the mixture that new objects are compared with."""
        return slice(len(self.fitted) if self.by_landmarks else 0, None)


def read_sources(
    reader: StackReader, objects: Any, estimator: Any, rng: np.random.RandomState
) -> Given:
    """Return what an estimator fits its model to, of the objects that a reader has read.

    Without ``symmetric``, all objects are fitted to their similarities to those that are drawn.
    """
    k, n_nearest = int(estimator.n_clusters), estimator.n_nearest
    if isinstance(n_nearest, str) and estimator.criterion != "relative":
        n_nearest = None
    n_columns, everything = reader.n_columns(objects), np.arange(objects.shape[0])
    chosen = draw_samples(n_columns, estimator.max_samples, k, rng)
    if not estimator.symmetric and len(chosen) != len(everything):
        if len(chosen) < k:
            raise ValueError(
                f"n_clusters={k} must be at most the number of objects that all are compared "
                f"with, the columns of similarities: {len(chosen)}."
            )
        made = mixture_by_landmarks(reader, objects, chosen, n_nearest, k)
        return Given(*made, everything, True)
    stack = reader.fitted(objects, chosen)
    made_square = mixture_of(stack, reader.parameter, n_nearest, k)
    return Given(*made_square, stack.dtype, chosen, False)


def mixture_by_landmarks(
    reader: StackReader, objects: Any, chosen: np.ndarray, n_nearest: Any, n_clusters: int
) -> tuple[Mixture, Footing | AsGiven, np.dtype]:
    """Return the mixture of graphs of objects and landmarks, and the footing of the sources.

    Parameters
    ----------
    reader : StackReader
    objects : object
        What the reader has read.
    chosen : ndarray of int
        The landmarks, among the columns of similarities, or among the objects.
    n_nearest : int, "auto" or None
        How many landmarks of every object to keep.
    n_clusters : int
        Upon which "auto" depends.

    Returns
    -------
    mixture : Mixture
        Of n objects and then p landmarks.
    footing : Footing or AsGiven
    dtype : dtype
        Of the similarities.

    Raises
    ------
    ValueError
        If a similarity is missing, or a source cannot be summed.
    """
    reader.compare_with(objects, chosen)
    n, p = objects.shape[0], len(chosen)
    counts: list[int | None] = []
    blocks: list[list[Any]] = []
    for start in range(0, n, _ROWS):
        found, seen = reader.cross_seen(objects, np.arange(start, min(start + _ROWS, n)))
        if not seen.all():
            lost, source = np.argwhere(~seen)[0]
            raise ValueError(
                f"sample {start + lost} is missing from source {source} of {reader.parameter}: "
                "with max_samples, or fewer columns than rows, only symmetric=True can leave "
                "objects out."
            )
        counts = counts or [_landmarks_to_keep(S, n_nearest, n_clusters) for S in found]
        blocks.append([near(S, count) for S, count in zip(found, counts, strict=True)])
    sources = [stacked(list(parts)) for parts in zip(*blocks, strict=True)]
    dtype = sources[0].dtype
    labels = [called(i, name, reader.parameter) for i, name in enumerate(reader.names)]
    check_sums(sources, labels, dtype)
    footing: Footing | AsGiven = AsGiven((None,) * len(sources))
    if n_nearest is not None:
        degrees = [np.asarray(S.sum(axis=0, dtype=np.float64)).ravel() for S in sources]
        sources = [over_roots(S, sums) for S, sums in zip(sources, degrees, strict=True)]
        footing = Footing(tuple(counts), tuple(degrees))
    graphs = [both_ways(S) for S in sources]
    return make_mixture(graphs, np.ones((n + p, len(graphs)), dtype=bool)), footing, dtype


def _landmarks_to_keep(block: Any, n_nearest: Any, n_clusters: int) -> int | None:
    """Return how many landmarks of every object to keep, by what some of the objects have."""
    if isinstance(n_nearest, str) and is_graph(block):
        return None
    return neighbors_to_keep(block.shape[1], n_nearest, n_clusters)
