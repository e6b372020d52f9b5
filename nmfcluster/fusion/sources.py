"""What a model is fitted to: the objects that are drawn, and who is compared with whom.

A source S of n objects and p landmarks is read as the graph of both, ``[[0, S], [S', 0]]``. One
factor of it holds W of the objects above H of the landmarks: an EM step is that of ``P = W H'``,
and gives either half the same probability. What a source is explained by, and what there is to
explain, are both larger by log 2 than for ``P``: it says which end of a pair is an object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from nmfcluster._base import hard_labels
from nmfcluster._engine.executor import Plan
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.fusion.model import Fusion, fuse
from nmfcluster.fusion.objective import FusionObjective
from nmfcluster.stack.reading import StackReader


@dataclass(frozen=True)
class Sample:
    """The objects that a model is fitted to.

    Attributes
    ----------
    reader : StackReader
    objects : SimilarityStack or ViewStack
    fitted : ndarray of int
        The objects, in the order in which they are fitted.
    compared : ndarray of int
        Those that they are compared with, or columns of their similarities; landmarks if they are
        others.
    by_landmarks : bool
    """

    reader: StackReader
    objects: Any
    fitted: np.ndarray
    compared: np.ndarray
    by_landmarks: bool

    def blocks(self) -> Iterator[tuple[list[Any], np.ndarray]]:
        """Yield the similarities of the fitted objects, some at a time, to landmarks.

        There is a matrix a source, and which of the objects each source saw.
        """
        return self.reader.blocks(self.objects, self.fitted)


def drawn(
    reader: StackReader,
    objects: Any,
    ordered: np.ndarray,
    estimator: Any,
    rng: np.random.RandomState,
) -> Sample:
    """Return the objects that an estimator fits its model to, of those that were read.

    Without ``symmetric``, all objects are fitted to their similarities to those that are drawn.
    `ordered` are their numbers, in the order in which they are fitted, (n,).
    """
    n_objects, n_columns = objects.shape[:2]
    chosen = draw_samples(n_columns, estimator.max_samples, int(estimator.n_clusters), rng)
    chosen = ordered[chosen] if n_columns == n_objects else chosen  # others stay as they are
    by_landmarks = not estimator.symmetric and len(chosen) < n_objects
    return Sample(reader, objects, ordered if by_landmarks else chosen, chosen, by_landmarks)


class FittedSources(ABC):
    """Sources, and the model that explains them.

    Attributes
    ----------
    fusion : Fusion
    weights : ndarray of shape (L,)
    losses : ndarray of shape (L,)
    scales : ndarray of shape (n_joined,)
        What the matrices of `joined` are multiplied by.
    by_landmarks : bool
    dtype : dtype
        Of the similarities.
    judged : ndarray of int
        The objects whose clusters by single sources can be told, the first or all of them.
    """

    fusion: Fusion
    weights: np.ndarray
    losses: np.ndarray
    scales: np.ndarray
    by_landmarks: bool
    dtype: np.dtype
    judged: np.ndarray

    @abstractmethod
    def fit(
        self,
        plan: Plan,
        rng: np.random.RandomState,
        symmetric: bool,
        eta: float,
        prior: np.ndarray | None,
    ) -> None:
        """Find the model and the weights.

        `prior` are the weights that sources have before anything is known of the model, of sum 1;
        None: the user leaves that open.
        """

    @abstractmethod
    def joined(self, sources: list[Any]) -> list[Any]:
        """Return how the model sees the similarities of other objects to those of the fit."""

    @abstractmethod
    def parts(self) -> tuple[Mixture, np.ndarray]:
        """Return sources that together make what is explained, and the weight of each of them."""

    @abstractmethod
    def alone(self, number: int) -> FusionObjective:
        """Return the objective of one source alone."""

    @property
    def shift(self) -> float:
        """What a mixture of objects and landmarks adds to losses, in nats."""
        return float(np.log(2)) if self.by_landmarks else 0.0

    def labels_alone(self, number: int, plan: Plan, symmetric: bool) -> np.ndarray:
        """Return the clusters of one source alone, from its first start; -1: it did not see one.

        They are those of the judged objects, or of as many of them as the source is judged by.
        """
        objective = self.alone(number)
        fusion = fuse(objective, plan, np.random.RandomState(0), symmetric or self.by_landmarks)
        labels = hard_labels(fusion.posterior(self.dtype))
        return np.where(objective.mixture.seen[:, 0], labels, -1)[: len(self.judged)]


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
