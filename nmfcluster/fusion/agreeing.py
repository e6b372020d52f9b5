"""Fusion of sources that agree: of what they say beyond independence, one graph is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.nearest import both_ways
from nmfcluster._arrays.storage import filled_with, identity
from nmfcluster._engine.executor import Plan
from nmfcluster._engine.starts import leading_eigenpairs
from nmfcluster.fusion.fused import (
    FusedGraph,
    graphs_of,
    is_graph,
    n_to_keep,
    over_roots,
    told_alike,
)
from nmfcluster.fusion.mixture import Mixture, make_mixture
from nmfcluster.fusion.model import Fusion, fuse
from nmfcluster.fusion.objective import (
    FusionObjective,
    factors_of,
    gibbs_weights,
    relative,
    smallest_objective,
    unexplained,
)
from nmfcluster.fusion.residuals import Agreement, Residual, agreement, residual
from nmfcluster.fusion.sources import FittedSources, Sample
from nmfcluster.fusion.votes import candidates, check_joined, shares_of_votes, warn_of_votes
from nmfcluster.similarity import Explicit

_SAMPLED = 500  # objects by whose pairs is told how well a model explains a dense source
_ROUNDS = 5  # of weights and models: labels mostly stay from the second or third on


class Agreeing(FittedSources):
    """Sources of which those count that agree, and the graph that these make.

    Inside, they are in an order of their own: sums round alike in any order of the sources.

    Parameters
    ----------
    sample : Sample

    Attributes
    ----------
    found : Agreement
    counted : ndarray of shape (L,), bool
    """

    found: Agreement
    counted: np.ndarray

    def __init__(self, sample: Sample) -> None:
        self.by_landmarks, reader, objects = sample.by_landmarks, sample.reader, sample.objects
        square = not sample.by_landmarks or objects.shape[0] == objects.shape[1]
        dtypes: list[np.dtype] = []

        def read(source: Any) -> Residual:
            dtypes.append(source.dtype)
            return residual(source, square)

        if square:
            residuals, _ = reader.fitted(objects, sample.compared, read)
        else:  # similarities to what are no objects
            reader.compare_with(objects, sample.compared)
            residuals = [read(source) for source in reader.cross(objects, sample.fitted)[0]]
        self.dtype = np.result_type(*dtypes)
        check_joined(np.column_stack([R.seen for R in residuals]), reader.names)
        keys = [(R.size, R.share) for R in residuals]
        self._order = np.array(sorted(range(len(keys)), key=keys.__getitem__))
        self._back = np.argsort(self._order)
        self._residuals = [residuals[i] for i in self._order]
        self._names = tuple(reader.names[i] for i in self._order)
        self._square, self.judged = square, sample.compared if square else sample.fitted
        self._n_nodes = len(sample.fitted) + (len(sample.compared) if sample.by_landmarks else 0)
        self._sample = sample if sample.by_landmarks and square else None
        self._found = agreement(self._residuals)
        self.found = Agreement(*(each[self._back][:, self._back] for each in self._found))

    def fit(
        self,
        plan: Plan,
        rng: np.random.RandomState,
        symmetric: bool,
        eta: float,
        prior: np.ndarray | None,
    ) -> None:
        """Find the model and the weights."""
        k, symmetric = plan.n_clusters, symmetric or self.by_landmarks
        prior = self._prior(k) if prior is None else self._that_tell(prior[self._order])
        used = np.flatnonzero(prior)
        # the graph of all, and where these are graphs, those of single sources to start from
        kinds = [self._kind(prior, k)]
        if kinds[0][1] is None and len(used) > 1:
            kinds += [self._kind(one, k) for one in np.eye(len(prior))[used]]
        fused, *single = graphs_of(self._blocks(), kinds)
        alone = [partial(self._both, graph.A) for graph in single]
        self._own = self._own_graphs(k)
        # models and weights in turn; by eta=inf the weights stay, and one model is enough
        eta = eta if len(used) else np.inf
        weights, least, labels = prior, np.inf, None
        for _ in range(_ROUNDS):
            A = self._both(fused.A) if len(used) else identity(self._n_nodes, np.float32)
            mixture = make_mixture([A], np.ones((self._n_nodes, 1), dtype=bool))
            fusion = fuse(relative(mixture, self.shift), plan, rng, symmetric, alone)
            losses = self._unexplained(fusion)
            reached = smallest_objective(losses, eta, prior)
            if reached < least:
                least, self.fusion, self._fused, self._weights = reached, fusion, fused, weights
                self.weights, self.losses = weights[self._back], losses[self._back]
                self.scales = 1 / mixture.totals
            before, labels = labels, fusion.posterior(self.dtype).argmax(axis=1)
            if np.isinf(eta) or np.array_equal(before, labels):
                break
            weights = gibbs_weights(losses, eta, prior)
            [fused] = graphs_of(self._blocks(), [self._kind(weights, k)])
        self.counted = prior[self._back] > 0
        # what new objects are joined by; the similarities are needed no more
        self._n_nearest = self._kind(self._weights, k)[1]
        self._residuals = [replace(R, stored=R.stored[:0]) for R in self._residuals]
        self._sample = None

    def joined(self, sources: list[Any]) -> list[Any]:
        pairs = zip(self._residuals, self._order, strict=True)
        residuals = [R.of_new(sources[i]) for R, i in pairs]
        graph = told_alike(residuals, self._weights, self._n_nearest)
        return [over_roots(graph, self._fused.degrees)]

    def parts(self) -> tuple[Mixture, np.ndarray]:
        A, told = self._fused.A, iter(self._fused.parts)
        parts = [
            self._both(filled_with(A, next(told))) if w > 0 else self._both(A[:0])
            for w in self._weights
        ]
        mixture = make_mixture([parts[i] for i in self._back], self.fusion.objective.mixture.seen)
        return mixture, mixture.totals

    def alone(self, number: int) -> FusionObjective:
        A = self._own[self._back[number]]
        A = A if self._square else both_ways(A)
        shift = 0.0 if self._square else self.shift
        return relative(make_mixture([A], A.sum(axis=1)[:, None] > 0), shift)

    def _prior(self, n_clusters: int) -> np.ndarray:
        """Return the weights of sources that agree; in doubt, of those whose clusters stand out."""
        told = np.array([R.size > 0 for R in self._residuals])
        if not told.any():
            warn(
                "No source says anything beyond independence: all of its similarities are next to "
                "equal. Nothing tells clusters apart."
            )
            return np.zeros(len(told))
        options = candidates(self._found, told)
        chosen = options[0]
        if len(options) > 1:
            kinds = [self._kind(mask.astype(float), n_clusters) for mask in options]
            graphs = graphs_of([self._residuals], kinds)
            gaps = [self._gap(graph, n_clusters) for graph in graphs]
            chosen = options[int(np.argmax(gaps))]
        warn_of_votes(self._found, options, chosen, self._names)
        return self._that_tell(chosen * shares_of_votes(self._found))

    def _that_tell(self, weights: np.ndarray) -> np.ndarray:
        """Return weights, which sum to 1, without those of sources that say nothing."""
        weights = np.where([R.size > 0 for R in self._residuals], weights, 0)
        return weights / weights.sum() if weights.any() else weights

    def _gap(self, graph: FusedGraph, n_clusters: int) -> float:
        """Return how far k eigenvalues of a graph are above the next: how far k clusters stand out."""
        A = Explicit((graph.A if self._square else both_ways(graph.A)).astype(np.float64))
        values, _ = leading_eigenpairs(A, min(n_clusters + 1, A.shape[0]))
        return (
            float(values[n_clusters - 1] - values[n_clusters]) if len(values) > n_clusters else 0.0
        )

    def _kind(self, weights: np.ndarray, n_clusters: int) -> tuple[np.ndarray, int | None]:
        """Return weights, and how many neighbours an object has by them."""
        return weights, n_to_keep(self._residuals, weights, n_clusters)

    def _own_graphs(self, n_clusters: int) -> list[sp.csr_array]:
        """Return the graph of every source alone, of some of the objects where it is dense.

        The first ones are as good as any: their order is random.
        """
        found = []
        for R in self._residuals:
            part = R if is_graph(R.stored) else R.among(np.arange(min(R.stored.shape[0], _SAMPLED)))
            [graph] = graphs_of([[part]], [(np.ones(1), n_to_keep([part], np.ones(1), n_clusters))])
            found.append(graph.A)
        return found

    def _unexplained(self, fusion: Fusion) -> np.ndarray:
        """Return what a model leaves unexplained of every source, a share of what there is, (L,)."""
        W, H = factors_of(fusion.best.factors[0])
        if (
            self.by_landmarks and self._square
        ):  # objects come first, then those they are compared with
            W = W[-self._residuals[0].stored.shape[1] :]
        H = H[-self._residuals[0].stored.shape[1] :]
        pairs = ((W[: A.shape[0]], H[: A.shape[1]], A) for A in self._own)
        return np.array([unexplained(A, W, H) for W, H, A in pairs])

    def _blocks(self) -> Iterator[list[Residual]]:
        """Yield the residuals of the fitted objects: all at once, or some at a time to landmarks."""
        if self._sample is None:
            yield self._residuals
            return
        for sources, _ in self._sample.blocks():
            pairs = zip(self._residuals, self._order, strict=True)
            yield [R.of_new(sources[i]) for R, i in pairs]

    def _both(self, A: sp.csr_array) -> sp.csr_array:
        """Return a graph as the model sees it: that of objects and landmarks, if there are some."""
        return both_ways(A) if self.by_landmarks else A


def _itself(A: Any) -> Any:
    return A
