"""Assignment of unplaced rows, which no cluster holds as penalties outweigh their similarities.

A fit spends all its clusters on the other rows. A group that must be apart from all others then
has none to go to, though all pairs could be satisfied.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nmfcluster._optim.symmetric import Factorization
from nmfcluster._utils.storage import inner_product
from nmfcluster._utils.validation import format_count, warn
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import make_adjacency
from nmfcluster.similarity import Similarity
from nmfcluster.ssnmf.constrained import ConstrainedProblem

# largest weight of violated pairs, over that of the best assignment so far, at which clusters are
# taken from the other rows: a few pairs fewer are not worth a cluster of theirs
_WORTH = 2 / 3


def assign_unplaced(
    problem: ConstrainedProblem,
    pairs: PairwiseConstraints,
    found: Factorization,
    refit: Callable[[np.ndarray, int], Factorization],
):
    """Assign unplaced rows that violate pairs to the clusters where they violate the fewest.

    An unplaced row is one that no cluster attracts. Where such rows would be better off in more
    clusters than there are, they get clusters of their own, of which the factor has columns of
    zeros: the others are fitted without them, and with as many clusters fewer. What violates the
    fewest pairs, by weight, is kept.

    Parameters
    ----------
    problem : ConstrainedProblem
    pairs : PairwiseConstraints
        With the weights that the problem has.
    found : Factorization
        Of the problem.
    refit : callable
        Factorizes the problem of some samples, a mask, with a number of clusters.

    Returns
    -------
    tuple of Factorization and ndarray of shape (n_samples, n_clusters)
        What is kept, and the memberships of the samples.
    """
    n_clusters = found.H.shape[1]
    # the rows of pairs, and the cost of putting both into one cluster, below 0 for must-links
    ends = problem.groups[np.concatenate([pairs.must_link, pairs.cannot_link])]
    costs = np.concatenate([-pairs.must_link_weights, pairs.cannot_link_weights])
    own = np.zeros(len(problem), dtype=bool)  # rows in clusters of their own
    n_own = 0  # number of these clusters
    while True:
        F, M = found.parts
        P = problem.memberships(F, M)
        labels = P.argmax(axis=1)
        violated = _find_violated(labels, ends, costs)
        if n_own == 0:
            best = found
            best_P = P
            best_cost = np.abs(costs[violated]).sum()
        # rows that violate pairs and that no cluster attracts
        attraction = problem.A @ (F @ M)
        free = np.isin(np.arange(len(labels)), ends[violated])
        free &= (attraction <= 0).all(axis=1)
        if n_own:
            # what is similar to no other row goes where these are
            free |= ~attraction.any(axis=1)
        elif not free.any():
            break
        labels[free] = -1
        # assign them to the clusters that there are
        links = make_adjacency(len(labels), ends, costs)
        assigned = _assign_rows(problem.A, links, labels, attraction, n_clusters)
        cost = np.abs(costs[_find_violated(assigned, ends, costs)]).sum()
        if cost < best_cost * (_WORTH if n_own else 1):
            P[free] = np.eye(n_clusters, dtype=P.dtype)[assigned[free]]
            best = found
            best_P = P
            best_cost = cost
        # with new clusters, of which the others give up as many: they keep one at least
        n_most = 2 * n_clusters - 1 - n_own
        assigned = _assign_rows(problem.A, links, labels, attraction, n_most)
        own |= assigned >= n_clusters
        n_new = int(assigned.max()) + 1 - n_clusters
        if best_cost == 0 or n_new <= 0 or own.all():
            break
        n_own += n_new
        others = refit(~own[problem.groups], n_clusters - n_own)
        found = _with_own_clusters(problem, others, ~own, n_clusters)
    _warn_of_uniform(best.H, best_P)
    return best, best_P[problem.groups]


def _find_violated(labels, ends, costs):
    """Return which pairs labels of the rows violate: those with a cost below 0 must be together."""
    one, other = labels[ends].T
    return (one == other) == (costs > 0)


def _assign_rows(A: Similarity, links, labels, attraction, n_most: int):
    """Return labels of all rows: those without a cluster get one, by the pairs they violate.

    One after another, those that violate pairs in most clusters first, is assigned to the
    cluster where it violates the fewest, or else to a new one.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    links : csr_array of shape (n, n)
        Costs of putting two rows into one cluster, below 0 for must-links.
    labels : ndarray of shape (n,), int
        -1 for rows without a cluster.
    attraction : ndarray of shape (n, n_clusters)
        How similar rows are to the clusters: it decides where pairs do not.
    n_most : int
        Largest number of clusters, new ones included.

    Returns
    -------
    ndarray of shape (n,), int
    """
    labels = labels.copy()
    rows = np.flatnonzero(labels < 0)
    n_open = attraction.shape[1]
    attraction = np.pad(attraction[rows], ((0, 0), (0, n_most - n_open)))
    links = links[rows]
    costs = links @ (labels[:, None] == np.arange(n_most)).astype(float)
    among = links[:, rows]
    waiting = list(range(len(rows)))
    while waiting:
        # the next row violates pairs in most clusters; weights and attraction break ties
        own_costs = costs[waiting, :n_open]
        nearest = attraction[waiting, :n_open].max(axis=1)
        n_violated = (own_costs > 0).sum(axis=1)
        order = np.lexsort((nearest, own_costs.sum(axis=1), n_violated))
        i = waiting.pop(order[-1])
        cluster = np.lexsort((-attraction[i, :n_open], costs[i, :n_open]))[0]
        if costs[i, cluster] > 0 and n_open < n_most:
            cluster = n_open
            n_open += 1
        # it counts for those that are still waiting
        labels[rows[i]] = cluster
        costs[:, cluster] += among[[i]].toarray()[0]  # symmetric
        attraction[:, cluster] += A.entries(rows, np.full(len(rows), rows[i]))
    return labels


def _with_own_clusters(
    problem: ConstrainedProblem, found: Factorization, rows, n_clusters: int
) -> Factorization:
    """Return the factorization of some rows, a mask, as one of all, with rows and columns of 0.

    Its loss is that of all; the losses before it change by as much.
    """
    first, *core = found.best.factors
    n_new = n_clusters - first.shape[1]
    H = np.zeros((len(rows), n_clusters), dtype=first.dtype)
    H[rows] = np.pad(first, ((0, 0), (0, n_new)))
    factors = (H, *[np.pad(S, (0, n_new)) for S in core])
    best = replace(found.best, factors=factors)
    F, M = replace(found, best=best).parts
    gram = M @ (F.T @ F)
    constant = problem.objective.constant
    loss = constant - 2 * inner_product(F @ M, problem.A @ F)
    loss += inner_product(gram, gram.T)
    change = loss - best.loss
    best = replace(best, loss=loss, history=best.history + change)
    return replace(found, best=best, curves=[curve + change for curve in found.curves])


def _warn_of_uniform(F, P) -> None:
    """Warn of rows of zeros whose memberships are uniform: nothing determines their cluster."""
    is_uniform = ~F.any(axis=1) & (P == P[:, :1]).all(axis=1)
    n_uniform = int(is_uniform.sum())
    if n_uniform:
        warn(
            f"Nothing tells the cluster of {format_count(n_uniform, 'sample')}, or as many groups "
            "that must be linked: memberships there are uniform, labels mean nothing."
        )
