"""Sources as they are given: the model of Lange and Buhmann (2005), whose losses are in nats."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.nearest import both_ways, stacked
from nmfcluster._arrays.storage import total
from nmfcluster._engine.executor import Plan
from nmfcluster.fusion.mixture import Mixture, make_mixture
from nmfcluster.fusion.model import fuse
from nmfcluster.fusion.objective import FusionObjective, in_nats
from nmfcluster.fusion.sources import FittedSources, Sample
from nmfcluster.fusion.votes import check_joined

_ROOM = 1e3  # times the sum of a source, or over it, must not overflow: sums grow in the products


class AsGiven(FittedSources):
    """Sources as they are given, whose losses are in nats.

    Parameters
    ----------
    sample : Sample
    criterion : {"kl", "cross_entropy"}
    """

    def __init__(self, sample: Sample, criterion: str) -> None:
        reader, self.by_landmarks, self.judged = sample.reader, sample.by_landmarks, sample.fitted
        if sample.by_landmarks:
            reader.compare_with(sample.objects, sample.compared)
            sources = self._near_landmarks(sample)
            n = len(sample.fitted) + len(sample.compared)
            seen = np.ones((n, len(sources)), dtype=bool)
        else:
            sources, seen = reader.fitted(sample.objects, sample.compared, lambda source: source)
            check_joined(seen, reader.names)
        self.dtype, self._criterion = (
            np.result_type(*(source.dtype for source in sources)),
            criterion,
        )
        sources = [source.astype(self.dtype, copy=False) for source in sources]
        _check_sums(sources, reader.labels)
        if sample.by_landmarks:
            sources = list(map(both_ways, sources))
        self._mixture = make_mixture(sources, seen)

    def fit(
        self,
        plan: Plan,
        rng: np.random.RandomState,
        symmetric: bool,
        eta: float,
        prior: np.ndarray | None,
    ) -> None:
        """Find the model and the weights."""
        prior = self._mixture.equal if prior is None else prior
        objective = in_nats(self._mixture, self._criterion, eta, prior, self.shift)
        several = len(prior) > 1
        alone = (
            [partial(self._mixture.matrix, one) for one in np.eye(len(prior))] if several else []
        )
        self.fusion = fuse(objective, plan, rng, symmetric or self.by_landmarks, alone)
        self.losses = objective.source_losses(self.fusion.best.factors[0])
        self.weights, _ = objective.weigh(self.losses)
        self.scales = self.weights / self._mixture.totals

    def joined(self, sources: list[Any]) -> list[Any]:
        return sources

    def parts(self) -> tuple[Mixture, np.ndarray]:
        return self._mixture, self.weights

    def alone(self, number: int) -> FusionObjective:
        source = self._mixture.matrix(np.eye(len(self.weights))[number])
        single = make_mixture([source], self._mixture.seen[:, [number]])
        return in_nats(single, self._criterion, 1.0, np.ones(1), self.shift)

    @staticmethod
    def _near_landmarks(sample: Sample) -> list[Any]:
        """Return the similarities of all objects to landmarks."""
        blocks: list[list[Any]] = []
        for sources, seen in sample.blocks():
            if not seen.all():
                label = sample.reader.labels[seen.all(axis=0).argmin()]
                raise ValueError(
                    f"samples are missing from {label}: with max_samples, or fewer columns than "
                    'rows, only symmetric=True, or criterion="agreement", can leave any out.'
                )
            blocks.append(list(map(sp.csr_array, sources)))
        return [stacked(list(rows)) for rows in zip(*blocks, strict=True)]


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
