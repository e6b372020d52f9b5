"""Rows that no cluster holds, as penalties outweigh their similarities: where they end.

A fit spends all its clusters on the other rows. A group that must be apart from everybody then has
none to go to, though all pairs could be satisfied.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmfcluster._optim.symmetric import Factorization
from nmfcluster._utils.storage import dot
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import adjacency
from nmfcluster.ssnmf.constrained import ConstrainedProblem

Fit = Callable[[ConstrainedProblem, int], Factorization]
Part = Callable[[np.ndarray], ConstrainedProblem]

_WORTH = (
    2 / 3
)  # of the weight of violated pairs: a few fewer are not worth a cluster of the others


class Reading(NamedTuple):
    """A factorization of groups of samples, and what it says of them."""

    found: Factorization
    P: np.ndarray  # memberships
    cost: float  # weight of the pairs that are violated


def settled(
    problem: ConstrainedProblem,
    pairs: PairwiseConstraints,
    n_clusters: int,
    fit: Fit,
    part: Part,
) -> tuple[Factorization, np.ndarray]:
    """Factorize, and let lost rows that violate pairs end where they violate the fewest.

    A lost row is one that no cluster draws. Where such rows would be better off in more clusters
    than there are, they get clusters of their own, of which the factor has columns of zeros: the
    others are fitted without them, and with as many clusters fewer. What violates the fewest pairs,
    by weight, is kept.

    Parameters
    ----------
    problem : ConstrainedProblem
    pairs : PairwiseConstraints
        With the weights that the problem has.
    n_clusters : int
    fit : callable
        Factorizes a problem with a number of clusters.
    part : callable
        Returns the problem of some samples, a mask.

    Returns
    -------
    tuple of Factorization and ndarray of shape (n_samples, n_clusters)
        What is kept, and the memberships of the samples.
    """
    links, found, best = Links(problem, pairs), fit(problem, n_clusters), None
    own, n_own = np.zeros(len(problem), dtype=bool), 0  # rows in clusters of their own
    while True:
        P = problem.memberships(*found.parts)
        labels = P.argmax(axis=1)
        best = best or Reading(found, P, links.cost(labels))
        if best.cost == 0:
            break
        drawn = problem.drawn(*found.parts)
        free = links.violated_by(labels) & (drawn <= 0).all(axis=1)
        if n_own:
            free |= ~drawn.any(
                axis=1
            )  # whoever is similar to nobody else goes where these are
        if not (n_own or free.any()):
            break
        left = np.where(free, -1, labels)
        here = links.placed(left, drawn, n_clusters)
        if (cost := links.cost(here)) < best.cost * (_WORTH if n_own else 1):
            P[free] = np.eye(n_clusters, dtype=P.dtype)[here[free]]
            best = Reading(found, P, cost)
        # with new clusters, of which the others give up as many: they keep one at least
        there = links.placed(left, drawn, 2 * n_clusters - 1 - n_own)
        own, n_more = own | (there >= n_clusters), int(there.max()) + 1 - n_clusters
        if best.cost == 0 or n_more <= 0 or own.all():
            break
        n_own += n_more
        others = fit(part(~own[problem.groups]), n_clusters - n_own)
        found = widened(problem, others, ~own, n_clusters)
    problem.warn_of_alone(best.found.H, best.P)
    return best.found, best.P[problem.groups]


class Links:
    """Pairs of groups, and what labels of the groups violate.

    Parameters
    ----------
    problem : ConstrainedProblem
        Whose rows are the groups.
    pairs : PairwiseConstraints
    """

    def __init__(self, problem: ConstrainedProblem, pairs: PairwiseConstraints) -> None:
        self.A, groups = problem.A, problem.groups
        self.ends = groups[np.concatenate([pairs.must_link, pairs.cannot_link])].T
        self.weights = np.concatenate(
            [pairs.must_link_weights, pairs.cannot_link_weights]
        )
        self.apart = np.arange(len(self.weights)) >= len(pairs.must_link)
        self.n_groups = int(groups.max()) + 1

    def _violated(self, labels: np.ndarray) -> np.ndarray:
        return np.asarray((labels[self.ends[0]] == labels[self.ends[1]]) == self.apart)

    def cost(self, labels: np.ndarray) -> float:
        """Return the weight of all pairs that labels violate."""
        return float(self.weights[self._violated(labels)].sum())

    def violated_by(self, labels: np.ndarray) -> np.ndarray:
        """Tell which groups are in pairs that labels violate."""
        return np.isin(np.arange(self.n_groups), self.ends[:, self._violated(labels)])

    def placed(self, labels: np.ndarray, drawn: np.ndarray, n_most: int) -> np.ndarray:
        """Return labels of all groups: those without a cluster get one, by the pairs they violate.

        One after another, those that violate pairs in most clusters first, goes where it
        violates the fewest, or else into a new cluster.

        Parameters
        ----------
        labels : ndarray of shape (n,), int
            -1 for rows that look for a cluster.
        drawn : ndarray of shape (n, n_clusters)
            How similar rows are to the clusters: it decides where pairs do not.
        n_most : int
            Number of clusters, with new ones.

        Returns
        -------
        ndarray of shape (n,), int
        """
        labels, rows, n_open = labels.copy(), np.flatnonzero(labels < 0), drawn.shape[1]
        # the weights of cannot-links, less those of must-links
        signed = np.where(self.apart, self.weights, -self.weights)
        links = adjacency(self.n_groups, self.ends.T, signed)[rows]
        among = links[:, rows]
        drawn = np.pad(drawn[rows], ((0, 0), (0, n_most - n_open)))
        cost = links @ (labels[:, None] == np.arange(n_most)).astype(float)
        waiting = list(range(len(rows)))
        while waiting:
            costs, near = cost[waiting, :n_open], drawn[waiting, :n_open].max(axis=1)
            order = np.lexsort((near, costs.sum(axis=1), (costs > 0).sum(axis=1)))
            i = waiting.pop(order[-1])
            c = int(np.lexsort((-drawn[i, :n_open], cost[i, :n_open]))[0])
            if cost[i, c] > 0 and n_open < n_most:
                c, n_open = n_open, n_open + 1
            labels[rows[i]] = c
            cost[:, c] += among[[i]].toarray()[0]  # symmetric
            drawn[:, c] += self.A.entries(rows, np.full(len(rows), rows[i]))
        return labels


def widened(
    problem: ConstrainedProblem, found: Factorization, rows: np.ndarray, n_clusters: int
) -> Factorization:
    """Return the factorization of some rows, a mask, as one of all, with rows and columns of 0.

    Its loss is that of all; the losses before it change by as much.
    """
    first, *core = found.best.factors
    more = n_clusters - first.shape[1]
    H = np.zeros((len(rows), n_clusters), dtype=first.dtype)
    H[rows] = np.pad(first, ((0, 0), (0, more)))
    best = replace(found.best, factors=(H, *(np.pad(S, (0, more)) for S in core)))
    F, M = replace(found, best=best).parts
    gram = M @ (F.T @ F)
    loss = (
        problem.objective.constant - 2 * dot(F @ M, problem.A @ F) + dot(gram, gram.T)
    )
    change = loss - best.loss
    best = replace(best, loss=loss, history=best.history + change)
    return replace(found, best=best, curves=[curve + change for curve in found.curves])
