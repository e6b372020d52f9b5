"""Fusion of sources that agree: which count, and what they say beyond independence, as a graph."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._optim.initialization import leading_eigenpairs
from nmfcluster._optim.run import SolverConfig
from nmfcluster._utils.storage import both_ways, filled_with
from nmfcluster._utils.validation import counted, shown, warn
from nmfcluster.fusion.fused import (
    FusedGraph,
    Kind,
    graphs_of,
    n_to_keep,
    over_roots,
    told_alike,
)
from nmfcluster.fusion.kl_loss import left_unexplained
from nmfcluster.fusion.residuals import (
    AGREE,
    Agreement,
    Residual,
    agreement,
    copies,
    residual,
)
from nmfcluster.fusion.sources import FittedSources, Sample
from nmfcluster.similarity import Explicit
from nmfcluster.stack.parsing import check_above_0

_FEW = 50_000  # objects up to which single graphs are started from: each is an eigenproblem, too
_SAMPLED = (
    500  # objects by whose pairs is told how well a model explains a dense source
)


class Agreeing(FittedSources):
    """Sources of which those count that agree, and the graph that these make.

    Parameters
    ----------
    sample : Sample
    estimator : SimilarityFusionNMF
        Whose `n_clusters` they are to show.

    Attributes
    ----------
    found : Agreement
    counted : ndarray of shape (L,), bool
    """

    relative, n_rounds = True, 5

    def __init__(self, sample: Sample, estimator: Any) -> None:
        reader, objects, self._k = (
            sample.reader,
            sample.objects,
            int(estimator.n_clusters),
        )
        self.symmetric, square = sample.symmetric, objects.shape[0] == objects.shape[1]
        dtypes: list[np.dtype] = []

        def read(source: Any) -> Residual:
            dtypes.append(source.dtype)
            return residual(source, square)

        with np.errstate(over="ignore"):  # a sum that is too large is refused
            if sample.symmetric or square:
                residuals, _ = reader.fitted(objects, sample.compared, read)
            else:  # similarities to what are no objects
                sources, _ = reader.to_chosen(objects, sample.fitted, sample.compared)
                for source, label in zip(sources, reader.labels, strict=True):
                    check_above_0(source, label)
                residuals = list(map(read, _without_self(sources)))
            for R, label in zip(residuals, reader.labels, strict=True):
                if not np.isfinite(R.degrees.sum()):
                    raise ValueError(
                        f"{label} must have a sum that float64 can hold; scale it."
                    )
        self.dtype, self.n_compared = np.result_type(*dtypes), len(sample.compared)
        self.judged = sample.compared if square else sample.fitted
        check_joined(np.column_stack([R.seen for R in residuals]), reader.names)
        self._square, self._residuals, self._names = square, residuals, reader.names
        # in an order of their own: sums round alike in any order of the sources
        keys = [(R.size, float(R.columns.sum())) for R in residuals]
        self._order = sorted(range(len(keys)), key=keys.__getitem__)
        self._distinct = sample.distinct
        self._sample = (
            sample if square and len(sample.fitted) > self.n_compared else None
        )
        self.found = agreement(residuals)
        self._same = copies(residuals, self.found)

    def fit_to(
        self, config: SolverConfig, eta: float, given: np.ndarray | None
    ) -> None:
        prior = self._votes() if given is None else given
        prior = np.where(
            [R.size > 0 for R in self._residuals], prior, 0
        )  # of those that tell
        prior = np.asarray(prior / fsum(prior)) if prior.any() else prior
        self.counted, used = prior > 0, np.flatnonzero(prior)
        self.own, single = list(map(self._own_graph, self._residuals)), []
        few = len(self._residuals[0].rows) <= _FEW
        if (
            few and self._kind(prior)[1] is None and len(used) > 1
        ):  # each is a start, too
            counting = [i for i in self._order if prior[i] > 0]
            single = [self.own[i] for i in counting]
            if self._sample is not None:  # their own are of landmarks alone
                alone = np.eye(len(prior))[counting]
                single = [graph.A for graph in self._graphs(self._blocks(), alone)]
        self.fit(config, eta, prior, single)
        if not prior.any():  # no source says anything, and none is less than another
            self.weights = (
                np.full(len(prior), 1 / len(prior)) if given is None else given
            )
        # the similarities are needed no more
        self._n_nearest = self._kind(self.weights)[1]
        self._residuals = [replace(R, stored=R.stored[:0]) for R in self._residuals]
        self._sample = None

    def mix(self, weights: np.ndarray) -> FusedGraph:
        return self._graphs(self._blocks(), [weights])[0]

    def losses_of(self, W: np.ndarray) -> np.ndarray:
        own, H = self.halves(W)
        W = W[-self.n_compared :] if self._square else own
        return np.array(
            [left_unexplained(A, W[: A.shape[0]], H[: A.shape[1]]) for A in self.own]
        )

    def joined(self, sources: list[Any]) -> Any:
        new = [self._residuals[i].of_new(sources[i]) for i in self._order]
        told = told_alike(
            new, self.weights[self._order], self._n_nearest, self._distinct
        )
        return over_roots(told, self.mixed.degrees)

    def parts(self) -> list[Any]:
        A, told = self.mixed.A, iter(self.mixed.parts)
        used = [
            i
            for i in self._order
            if self.weights[i] > 0 and self._residuals[i].size > 0
        ]
        found = {i: filled_with(A, next(told)) for i in used}
        return [found.get(i) for i in range(len(self.weights))]

    def _votes(self) -> np.ndarray:
        """Return the weights of sources that agree; in doubt, of those whose clusters stand out."""
        told = np.array([R.size > 0 for R in self._residuals])
        if not told.any():
            why = "all of its similarities are next to equal. Nothing tells clusters apart"
            warn(f"No source says anything beyond independence: {why}.")
            return np.zeros(len(told))
        options = candidates(self.found, self._same, told)
        chosen = options[0]
        if len(options) > 1:
            residuals = [self._residuals[i] for i in self._order]
            gaps = list(map(self._gap, self._graphs([residuals], options)))
            chosen = options[int(np.argmax(gaps))]
        self._warn_of_votes(options, chosen)
        return chosen * shares_of_votes(self._same)

    def _warn_of_votes(self, options: list[np.ndarray], chosen: np.ndarray) -> None:
        """Warn of sources that are next to equal, and where it was in doubt which count."""
        if len(pairs := np.argwhere(np.triu(self._same, 1))):
            one, other = (self._names[i] for i in pairs[0])
            told = f"{counted(len(pairs), 'pair')} of sources are next to equal"
            why = "what is said twice is no evidence. weights= lets each of them count"
            warn(f"{told}, such as {one!r} and {other!r}, and share one vote: {why}.")
        if len(options) == 1:
            return
        kept = [
            name for name, counts in zip(self._names, chosen, strict=True) if counts
        ]
        if (
            max(
                np.round(shares_of_votes(self._same)[mask].sum())
                for mask in options[:-1]
            )
            > 1
        ):
            why = "The sources fall into groups that do not agree with each other"
            why += ", and none is larger"
        else:
            most = float(self.found.scores[~self._same].max())
            why = "No two sources agree in more than what chance would make of independent ones"
            why += f": the largest of agreement_.scores is {most:.2f}, {AGREE:.0f} is asked"
        told = (
            f"The clusters are those of {kept}, which stand out most, and may be noise"
        )
        few = "so few sources cannot outvote each other. weights= says which to trust"
        warn(f"{why}. {told}: {few}.")

    def _gap(self, graph: FusedGraph) -> float:
        """Return how far k eigenvalues are above the next: how far k clusters stand out."""
        A = Explicit(
            (graph.A if self._square else both_ways(graph.A)).astype(np.float64)
        )
        values, _ = leading_eigenpairs(A, min(self._k + 1, A.shape[0]))
        return (
            float(values[self._k - 1] - values[self._k])
            if len(values) > self._k
            else 0.0
        )

    def _own_graph(self, R: Residual) -> Any:
        """Return the graph of a source alone, of some of the objects where it is dense.

        The first ones are as good as any: their order is random.
        """
        few = R.is_graph or R.stored.shape[0] <= _SAMPLED
        one, distinct = np.ones(1), self._distinct
        if not few:
            R = R.among(np.arange(_SAMPLED))
            distinct = (
                distinct
                if isinstance(distinct, slice)
                else distinct[distinct < _SAMPLED]
            )
        return graphs_of(
            [[R]], [(one, n_to_keep([R], one, self._k, distinct))], distinct
        )[0].A

    def _graphs(
        self, blocks: Iterable[list[Residual]], options: Iterable[Any]
    ) -> list[FusedGraph]:
        """Return the graphs that sources make with several weights."""
        return graphs_of(blocks, list(map(self._kind, options)), self._distinct)

    def _kind(self, weights: np.ndarray) -> Kind:
        """Return weights in the order of sums, and how many neighbours an object has by them."""
        weights = np.asarray(weights, dtype=np.float64)
        return weights[self._order], n_to_keep(
            self._residuals, weights, self._k, self._distinct
        )

    def _blocks(self) -> Iterator[list[Residual]]:
        """Yield the residuals of the fitted objects: all at once, or by and by to landmarks."""
        if (sample := self._sample) is None:
            yield [self._residuals[i] for i in self._order]
            return
        for sources, _ in sample.reader.blocks(sample.objects, sample.fitted):
            yield [self._residuals[i].of_new(sources[i]) for i in self._order]


def _without_self(sources: list[Any]) -> list[Any]:
    """Return similarities to columns without those of objects to themselves, in which all agree.

    They are the largest of their row and of their column in every source; arrays are written to.
    """
    same: set[int] | None = None
    for S in sources:
        nearest, owner = (np.asarray(S.argmax(axis=axis)).ravel() for axis in (1, 0))
        rows = np.flatnonzero(owner[nearest] == np.arange(len(nearest)))
        pairs = set((rows * S.shape[1] + nearest[rows]).tolist())
        same = pairs if same is None else same & pairs
    i, j = np.divmod(np.array(sorted(same or ()), dtype=np.int64), sources[0].shape[1])
    for S in sources if len(sources) > 1 else []:
        S[i, j] = 0
    return sources


# --- which sources count: those that agree with others --------------------------------------------


def shares_of_votes(same: np.ndarray) -> np.ndarray:
    """Return how much of a vote every source has, (L,): 1, or with others that are next to equal.

    Parameters
    ----------
    same : ndarray of shape (L, L), bool
        Which sources are next to equal.
    """
    part = _parts(same)
    return np.asarray(1 / np.bincount(part)[part])


def candidates(
    found: Agreement, same: np.ndarray, told: np.ndarray
) -> list[np.ndarray]:
    """Return which sources can be those that count: masks of shape (L,).

    They are those of the largest group that agree, directly or by a chain. Where several groups
    are as large, it can be any of them, or all; and where no two sources agree, one alone, or all.

    Parameters
    ----------
    found : Agreement
    same : ndarray of shape (L, L), bool
        Which sources are next to equal.
    told : ndarray of shape (L,), bool
        Which sources say something.

    Returns
    -------
    list of ndarray
        The only one where there is no doubt.
    """
    votes = shares_of_votes(same)
    group = _parts((found.scores > AGREE) | same)
    groups = [(group == g) & told for g in np.unique(group[told])]
    sizes = np.round([votes[members].sum() for members in groups])
    largest = [
        members
        for members, size in zip(groups, sizes, strict=True)
        if size == max(sizes)
    ]
    return largest if len(largest) == 1 else [*largest, np.any(largest, axis=0)]


def _parts(joined: np.ndarray) -> np.ndarray:
    return np.asarray(connected_components(sp.csr_array(joined), directed=False)[1])


def weights_of(given: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """Return the user's weights of sources, which sum to 1; None: there are none.

    Parameters
    ----------
    given : array-like of shape (L,), dict or None
        One for each source, or by its name; those that are not named have none.
    names : tuple of str
    """
    if given is None:
        return None
    if isinstance(given, dict):
        if unknown := [name for name in given if name not in names]:
            raise ValueError(
                f"weights name the source {unknown[0]!r}; there are {list(names)}."
            )
        given = [given.get(name, 0) for name in names]
    weights = np.asarray(given)
    if weights.shape != (len(names),) or weights.dtype.kind not in "biuf":
        wanted = f"one number for each of the sources {list(names)}, or a dict of these names"
        raise ValueError(f"weights must be {wanted}, got {shown(given)}.")
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise ValueError(
            f"weights must be finite, at least 0, and not all 0, got {shown(given)}."
        )
    weights = weights / weights.max()  # whose sum is no overflow
    return np.asarray(weights / fsum(weights))


def check_joined(seen: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise where objects fall into groups that no source has in common.

    Parameters
    ----------
    seen : ndarray of shape (n, L), bool
        Which objects every source saw.
    names : tuple of str
        Of the sources.
    """
    n = len(seen)
    part = connected_components(both_ways(sp.csr_array(seen)), directed=False)[1]
    of_sources, sizes = part[n:], np.bincount(part[:n], minlength=part.max() + 1)
    groups = [group for group in np.unique(of_sources) if sizes[group]]
    if len(groups) > 1:
        sources = [
            [names[i] for i in np.flatnonzero(of_sources == group)] for group in groups
        ]
        pairs = zip(sizes[groups].tolist(), sources, strict=True)
        told = " and ".join(
            f"{counted(size, 'object')} in {some}" for size, some in pairs
        )
        why = "The clusters of one cannot be matched with those of another"
        cure = "fit each group alone, or add a source that saw objects of both"
        none = "no source saw objects of more than one of these groups"
        raise ValueError(f"{none}: {told}. {why}: {cure}.")
