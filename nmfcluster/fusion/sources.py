"""What a model is fitted to: the objects that are drawn, and the sources, weighed in turn with it.

A source S of n objects and p landmarks is read as the graph of both, ``[[0, S], [S', 0]]``. One
factor of it holds W of the objects above H of the landmarks: an EM step is that of ``P = W H'``,
and gives either half the same probability. What a source is explained by, and what there is to
explain, are both larger by log 2 than for ``P``: it says which end of a pair is an object.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from numbers import Integral
from typing import Any

import numpy as np

from nmfcluster._base import hard_labels
from nmfcluster._optim.run import SolverConfig
from nmfcluster._utils.order import CanonicalOrder
from nmfcluster._utils.storage import both_ways
from nmfcluster.fusion.kl_loss import (
    FusionObjective,
    gibbs_weights,
    make_pairs,
    smallest_objective,
)
from nmfcluster.fusion.model import Fusion, fuse
from nmfcluster.stack.readers import StackReader

_SETTLED = 1e-3  # a change of weights that moves nobody


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
        Those that they are compared with, or columns of their similarities.
    symmetric : bool
        Whether these are the same; else they are landmarks.
    distinct : ndarray of int or slice
        The places of those of them that are equal to none before.
    """

    reader: StackReader
    objects: Any
    fitted: np.ndarray
    compared: np.ndarray
    symmetric: bool
    distinct: Any


def drawn(
    reader: StackReader,
    objects: Any,
    place: CanonicalOrder,
    estimator: Any,
    rng: np.random.RandomState,
) -> Sample:
    """Return the objects that an estimator fits its model to, of those that were read.

    Without ``symmetric``, all objects are fitted to their similarities to those that are drawn.
    They are fitted in the order of `place`.
    """
    n_objects, n_columns = objects.shape[:2]
    most, k = estimator.max_samples, int(estimator.n_clusters)
    size: Any = n_columns if most is None else most
    if not isinstance(size, Integral):
        size = max(round(size * n_columns), 2)
    if not k <= size <= n_columns:
        allowed = f"at least n_clusters={k} objects, and at most all {n_columns} that there are"
        got = f"or columns of similarities, got {size}"
        raise ValueError(f"max_samples={most} must leave {allowed}, {got}.")
    chosen = np.arange(n_columns)
    if size < n_columns:  # else it is a full fit, and the same one
        chosen = np.sort(rng.permutation(n_columns)[: int(size)])
    distinct: Any = slice(None)
    if n_columns == n_objects:  # columns that are no objects stay as they are
        _, firsts = np.unique(place.first[chosen], return_index=True)
        distinct = firsts if len(firsts) < len(chosen) else distinct
        chosen = place.samples[chosen]
    fitted = chosen if estimator.symmetric else place.samples
    return Sample(reader, objects, fitted, chosen, bool(estimator.symmetric), distinct)


class FittedSources(ABC):
    """Sources, and the model that explains them.

    Attributes
    ----------
    fusion : Fusion
    mixed : object
        What the sources make, of which `A` is the matrix that is explained.
    weights : ndarray of shape (L,)
    losses : ndarray of shape (L,)
    symmetric : bool
    n_compared : int
        Number of those that objects are compared with.
    judged : ndarray of int
        The objects, the first of which `own` compares.
    dtype : dtype
    own : list of {ndarray, csr_array}
        The matrix of each source alone, of some of the objects at least.
        Of the similarities.
    """

    symmetric: bool
    n_compared: int
    judged: np.ndarray
    dtype: np.dtype
    own: list[Any]
    relative: bool  # whether losses are shares, or in nats
    n_rounds: int  # of weights and models, at most

    @abstractmethod
    def fit_to(
        self, config: SolverConfig, eta: float, given: np.ndarray | None
    ) -> None:
        """Find the model and the weights; `given` are the user's own, if there are any."""

    @abstractmethod
    def mix(self, weights: np.ndarray) -> Any:
        """Return what sources with these weights make."""

    @abstractmethod
    def losses_of(self, W: np.ndarray) -> np.ndarray:
        """Return the loss of every source by a model, (L,)."""

    @abstractmethod
    def joined(self, sources: list[Any]) -> Any:
        """Return how the model sees similarities of other objects, {ndarray, csr_array} (m, p)."""

    @abstractmethod
    def parts(self) -> list[Any]:
        """Return what every source adds to what is explained, (n, p) each; None: nothing."""

    def fit(
        self,
        config: SolverConfig,
        eta: float,
        prior: np.ndarray,
        alone: Sequence[Any] = (),
    ) -> None:
        """Find the model and the weights, in turn: the nested alternation of the paper, section 3.

        Parameters
        ----------
        config : SolverConfig
        eta : float
        prior : ndarray of shape (L,)
            Weights before anything is known of the model, which stay by ``eta=inf``.
        alone : sequence of {ndarray, csr_array} of shape (n, p), default=()
            Of single sources, to start from.
        """
        weights, least, before = prior, np.inf, None
        for number in range(self.n_rounds):
            mixed = self.mix(weights)
            fusion = self._fused(mixed.A, config, alone, before)
            before = fusion.best.factors[0]
            losses = self.losses_of(before)
            reached = smallest_objective(losses, eta, prior)
            best = gibbs_weights(losses, eta, prior)
            settled = abs(best - weights).max() < _SETTLED
            # the first has weights that eta did not see; neighbours can change with the weights, so
            # that what is settled can be above what was not by a little
            if reached < least or number == 1 or settled:
                least, self.weights, self.losses = reached, weights, losses
                self.fusion, self.mixed = fusion, mixed
            if settled:
                break
            weights = best

    def halves(self, W: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of ``W H'`` for objects, and for those that they are compared with.

        W is a factor as a run has it, by default the one that was kept.
        """
        W = self.fusion.best.factors[0] if W is None else W
        H, p = W / W.sum(axis=0), self.n_compared
        return (W, H) if self.symmetric else (W[:-p], H[-p:])

    def labels_alone(self, number: int, config: SolverConfig) -> np.ndarray:
        """Return the clusters of the first objects by one source alone; -1: it did not see one."""
        matrix = self.own[number]
        posterior = self._fused(matrix, config).posterior(self.dtype)[: matrix.shape[0]]
        return np.where(
            np.asarray(matrix.sum(axis=1)).ravel() > 0, hard_labels(posterior), -1
        )

    def _fused(
        self, A: Any, config: SolverConfig, alone: Any = (), before: Any = None
    ) -> Fusion:
        if not self.symmetric:  # the graph of objects and landmarks
            A, alone = both_ways(A), list(map(both_ways, alone))
        shift = 0.0 if self.symmetric else log(2)
        return fuse(
            FusionObjective(make_pairs(A), self.relative, shift),
            A,
            config,
            alone,
            before,
        )
