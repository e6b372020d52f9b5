"""The similarity under constraints that is factorized, and the rows that no cluster attracts.

Weights of pairs are added to the similarities of the rows. Penalties can outweigh all similarities
of a row. Such a row is unplaced, and is assigned after the factorization.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nmfcluster._base import membership
from nmfcluster._optim.symmetric import Problem
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.storage import inner_product, stored_entries, with_nonzero_data
from nmfcluster._utils.validation import (
    format_count,
    reorder_samples,
    sample_names,
    warn,
)
from nmfcluster.affinity import warn_of_split
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import components, make_adjacency
from nmfcluster.similarity import Explicit, inner
from nmfcluster.similarity.operators import N_SAMPLED_ENTRIES

# Largest weight of violated pairs, relative to that of the best assignment so far, at which
# unplaced rows keep clusters of their own: a few pairs are not worth a cluster of the other rows.
_WORTH = 2 / 3

# Number of must-links per linked sample below which a group is nearly a tree: random pairs form
# such groups, all pairs of a class do not.
_NEARLY_TREE = 1.5

# Smallest number of samples in clusters with must-links at which pairs spread, relative to the
# number expected for random must-links: at 0.85 the means of 31 data sets with 50 and 200 pairs
# fall by 0.01, and at 0.7 clusters without pairs are merged.
_MIN_COVERED = 0.8


def read_constraints(
    names,
    n_samples,
    y,
    constraints,
    must_link,
    cannot_link,
) -> PairwiseConstraints:
    """Return the constraints of a fit, checked and in the order of its samples.

    `names` is the index of the samples, or None.
    """
    has_lists = must_link is not None or cannot_link is not None
    if constraints is None:
        # warn of labels if some are -1, by which scikit-learn marks unknown ones
        labels = np.asarray(y) if hasattr(y, "dtype") else np.empty(0)
        is_ignored = isinstance(y, PairwiseConstraints)
        if labels.ndim == 1 and labels.dtype.kind in "if":
            is_ignored |= -1 in labels and labels.max() >= 0
        if is_ignored and not has_lists:
            warn(
                "fit ignores y, which holds labels or pairs of some samples. Pass pairs as fit(X, "
                "constraints=...) and labels as constraints=PairwiseConstraints.from_labels(y)."
            )
        pairs = PairwiseConstraints(n_samples, must_link, cannot_link)
        index = sample_names(names)
        if pairs.n_pairs and index is not None and index.dtype.kind in "iu":
            warn(
                "must_link and cannot_link were read as positions of rows of X, from 0, but its "
                "index holds other integers. For pairs of index values, pass constraints="
                "PairwiseConstraints.from_ids(X.index, must_link, cannot_link)."
            )
        return pairs
    if has_lists:
        raise ValueError(
            "constraints cannot be combined with must_link or cannot_link: pass only one form."
        )
    if not isinstance(constraints, PairwiseConstraints):
        raise TypeError(
            f"constraints must be a PairwiseConstraints, got {type(constraints).__name__}; "
            "pass plain pairs as must_link and cannot_link."
        )
    if len(constraints) != n_samples:
        raise ValueError(
            "constraints must have as many samples as X, but they have "
            f"{len(constraints)} and X has {n_samples}: make them with n_samples={n_samples}."
        )
    return reorder_samples(names, constraints, "constraints")


def check_constraints(pairs, n_clusters, contradictions):
    """Return whether some clustering is known to satisfy all pairs; raise or warn if none does."""
    if contradictions == "ignore":
        return False
    try:
        return pairs.check(n_clusters) == "feasible"
    except ValueError as error:
        if contradictions == "raise":
            cure = "Correct the pairs, or pass contradictions='ignore' to make must-links soft."
            raise ValueError(f"{error} {cure}") from error
        warn(f"Labels will violate some constraints: {error} Correct the pairs.")
        return False


def find_rows(X, pairs, is_similarity):
    """Return the rows that are fitted, in canonical order; equal samples share a row.

    A sample in a pair has a row of its own. So has every sample of a precomputed similarity, which
    need not treat equal samples alike.

    Returns
    -------
    samples : ndarray of shape (n_rows,), int
        One sample of every row.
    row : ndarray of shape (n_samples,), int
        Row of every sample.
    counts : ndarray of shape (n_rows,), int, or None
        Number of samples that each row stands for; None if it is 1 for all.
    """
    links = pairs.as_matrices()
    if is_similarity:
        order = canonical_order(similarities=[X], links=links)
        return order.samples, order.first_ranks, None
    order = canonical_order(X, links=links)
    counts = None if len(order.distinct) == X.shape[0] else order.counts
    return order.distinct, order.distinct_inverse, counts


class ConstrainedProblem(Problem):
    r"""The factorization of a similarity that must-links raise and cannot-links lower.

    The problem factorizes :math:`\tilde A = W + \alpha u A - \beta u B`. W is the similarity of the
    affinity, and A and B are the weights of must-links and cannot-links. This is eq. 24 of Li et
    al. (2007), and eq. 3 of Chen et al. (2007) with the signs of a similarity. The unit u is the
    0.999-quantile of the nonzero entries of W off its diagonal, so that the same weights have the
    same effect on all data. Samples that hard must-links join share a row of the factor (eq. 34 of
    Li et al.).

    Parameters
    ----------
    affinity : Affinity
        Its `counts` are the numbers of equal samples that the rows stand for. With landmarks and
        many samples, one start from eigenvectors is enough.
    pairs : PairwiseConstraints
        The must-links and cannot-links of these rows.
    alpha, beta : float
        Weights of must-links and of cannot-links, in the unit u.
    may_be_empty : bool, default=False
        Whether all similarities may be 0. If False, this raises an error.

    Attributes
    ----------
    A : Similarity of shape (n_groups, n_groups)
        The similarity to factorize. Groups are single samples unless hard must-links join them.
    groups : ndarray of shape (n_samples,), int
        Group of every sample.
    unit : float
        The unit u.
    is_constrained : bool
        Whether pairs change the problem.
    """

    def __init__(
        self,
        affinity,
        pairs,
        alpha,
        beta,
        may_be_empty=False,
    ):
        W = affinity.similarity
        counts = affinity.counts
        groups = pairs.components()
        must_link, cannot_link = pairs.as_matrices(W.dtype)
        unit = large_entry(W)
        # the row of n equal samples is longer by the root of n
        if counts is not None:
            W = W.scaled(np.sqrt(counts))
        # the first start uses the similarity without penalties, which are so large that
        # eigenvectors would concentrate on single samples
        reward = _scale_links(must_link, alpha * unit, groups)
        penalty = _scale_links(cannot_link, -beta * unit, groups)
        init_similarity = W if reward is None else W + reward
        # the loss of zero factors of all samples; that of groups would be smaller
        constant = init_similarity.squared_norm()
        if constant == 0 and not may_be_empty:
            raise ValueError(
                "the similarities are all 0, but some samples of X must be similar: use another "
                "affinity or other features."
            )
        if penalty is not None:
            constant += 2 * inner(init_similarity, penalty) + inner(penalty, penalty)
        if not constant <= float(np.finfo(W.dtype).max):  # NaN is refused, too
            raise ValueError(
                "the similarities, or the weights of the constraints times alpha or beta, must be "
                f"small enough to be squared in {W.dtype}: scale down X or the weights."
            )
        # merge samples that hard must-links join into one row
        self.is_constrained = reward is not None or penalty is not None
        if groups.max() + 1 < len(groups):
            self.is_constrained = True
            init_similarity = init_similarity.collapse(groups)
            penalty = None if penalty is None else penalty.collapse(groups)
        self.A = init_similarity if penalty is None else init_similarity + penalty
        self.groups = groups
        self.unit = unit
        self.has_reliable_start = affinity.name == "landmarks"
        n_links = np.diff(must_link.indptr) + np.diff(cannot_link.indptr)
        super().__init__(
            self.A,
            mass=np.bincount(groups, counts).astype(int),
            constant=constant,
            init_similarity=init_similarity,
            wanted=np.bincount(groups, n_links) > 0,
        )

    def expand(self, h):
        """Return the factor of all samples, (n_samples, k), from that of the groups."""
        root = np.sqrt(self.mass).astype(h.dtype)
        return (h / root[:, None])[self.groups]

    def memberships(self, F, M):
        """Return the rows of ``F M^1/2``, scaled to sum to 1.

        If penalties outweigh all similarities of a row, its entries are 0. It then gets the row of
        ``A F M``, minus its minimum, which assigns it where the penalties are smallest.
        """
        P = membership(F * np.sqrt(np.diagonal(M)))
        unplaced = ~F.any(axis=1)
        if unplaced.any():
            attraction = (self.A @ (F @ M))[unplaced]
            P[unplaced] = membership(attraction - attraction.min(axis=1, keepdims=True))
        return P


def _scale_links(links, amount, groups):
    """Return `amount` times the weights of pairs; None if all products are 0.

    Pairs inside a group are left out, because they change nothing.
    """
    rows, columns, weights = stored_entries(links)
    with np.errstate(over="ignore"):  # entries that are not finite are refused later
        amounts = np.where(groups[rows] == groups[columns], 0, amount * weights)
        added = with_nonzero_data(links, amounts.astype(links.dtype))
    return Explicit(added) if added.nnz else None


def large_entry(A, share=0.999):
    """Return a quantile of the absolute values of the nonzero off-diagonal entries.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    share : float, default=0.999
        The quantile, in [0, 1].

    Returns
    -------
    float
        The quantile; 1 if all off-diagonal entries are 0.
    """
    n = A.shape[0]
    values = A.stored_off_diagonal()
    if values is None:
        if n * (n - 1) // 2 <= N_SAMPLED_ENTRIES:
            rows, columns = np.triu_indices(n, 1)
        else:  # a random sample of the entries
            rng = np.random.default_rng(0)
            rows = rng.integers(n, size=N_SAMPLED_ENTRIES)
            columns = (rows + rng.integers(1, n, size=N_SAMPLED_ENTRIES)) % n
        values = A.entries(rows, columns)
    sizes = np.abs(values[values != 0])
    return float(np.quantile(sizes, share)) if len(sizes) else 1.0


def warn_of_sizes(affinity, labels, n_clusters):
    """Warn if a fit without normalisation is likely to have split a large cluster."""
    if affinity.is_normalized:
        return
    W = affinity.similarity
    if affinity.counts is not None:
        W = W.scaled(np.sqrt(affinity.counts))
    warn_of_split(W, labels, n_clusters)


def warn_of_violations(pairs, must_ok, cannot_ok, beta):
    """Warn if labels violate hard pairs although all hard pairs can be satisfied."""
    n_must = int((pairs.must_link_hard & ~must_ok).sum())
    n_cannot = int((pairs.cannot_link_hard & ~cannot_ok).sum())
    cures = ["hard_must_link=True"] if n_must else []
    if n_cannot:
        cures.append(f"beta={max(10, 3 * beta):g}")
    if cures:
        warn(
            f"Labels violate {n_must + n_cannot} of {format_count(pairs.n_pairs, 'pair')}, though "
            "all can be satisfied: see violated_must_link_ and violated_cannot_link_. Pass "
            f"{' and '.join(cures)} to give pairs more weight, or contradictions='ignore' if some "
            "pairs may be wrong."
        )


def covers_clusters(pairs, labels, n_clusters):
    """Return whether must-links are in nearly all clusters, so that they can spread.

    If pairs spread in some clusters only, clusters without pairs are merged. Two conditions
    prevent this:

    1. There are at least as many groups of must-links as clusters. One large group that is nearly
       a tree is also enough, because wrong must-links often join several groups into one.
    2. The clusters that contain must-links are large enough. They have nearly as many samples as
       is expected if the same number of must-links is drawn at random.

    Parameters
    ----------
    pairs : PairwiseConstraints
    labels : ndarray of shape (n_samples,), int
        Labels of a fit without spreading.
    n_clusters : int
    """
    must_link = pairs.must_link
    n_must_link = len(must_link)
    if n_must_link < n_clusters:
        return False
    sizes = np.bincount(components(len(pairs), must_link))
    n_linked = sizes[sizes > 1].sum()
    is_merged = sizes.max() > n_linked / 2 and n_must_link < _NEARLY_TREE * n_linked
    if (sizes > 1).sum() < n_clusters and not is_merged:
        return False
    # the chance that a random must-link is in a cluster grows with the square of its size
    shares = np.bincount(labels) / len(labels)
    chances = shares**2 / (shares**2).sum()
    expected = 1 - (shares * (1 - chances) ** n_must_link).sum()
    return shares[np.unique(labels[must_link])].sum() >= _MIN_COVERED * expected


def measure_violated(pairs, labels):
    """Return the share of the pairs, by weight, that labels violate."""
    satisfied = np.concatenate(pairs.satisfied(labels))
    weights = np.concatenate([pairs.must_link_weights, pairs.cannot_link_weights])
    return weights[~satisfied].sum() / weights.sum()


def assign_unplaced(
    problem,
    pairs,
    found,
    refit,
):
    """Assign unplaced rows that violate pairs to the clusters where they violate the fewest.

    An unplaced row is one that no cluster attracts. If such rows violate fewer pairs in new
    clusters, they get clusters of their own, with columns of zeros in the factor. The other rows
    are then fitted without these rows, with the remaining number of clusters. The assignment that
    violates the fewest pairs, by weight, is kept.

    Without this step, the other rows could use all clusters. A group that must be apart from all of
    them would then have no cluster, although all pairs can be satisfied.

    Parameters
    ----------
    problem : ConstrainedProblem
    pairs : PairwiseConstraints
        The pairs of the problem, with its weights.
    found : Factorization
        The factorization of the problem.
    refit : callable
        Takes a mask of samples and a number of clusters. Factorizes the problem of these samples
        with this number of clusters.

    Returns
    -------
    tuple of Factorization and ndarray of shape (n_rows, n_clusters)
        The factorization that is kept, and the memberships of the rows of the problem.
    """
    n_clusters = found.H.shape[1]
    # the two rows of each pair, and the cost of one cluster for both, below 0 for must-links
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
            # rows that are similar to no other row are assigned together with these
            free |= ~attraction.any(axis=1)
        elif not free.any():
            break
        labels[free] = -1
        # assign them to the existing clusters
        links = make_adjacency(len(labels), ends, costs)
        assigned = _assign_rows(problem.A, links, labels, attraction, n_clusters)
        cost = np.abs(costs[_find_violated(assigned, ends, costs)]).sum()
        if cost < best_cost * (_WORTH if n_own else 1):
            P[free] = np.eye(n_clusters, dtype=P.dtype)[assigned[free]]
            best = found
            best_P = P
            best_cost = cost
        # assign them with new clusters; the other rows lose as many, but keep at least one
        n_most = 2 * n_clusters - 1 - n_own
        assigned = _assign_rows(problem.A, links, labels, attraction, n_most)
        own |= assigned >= n_clusters
        n_new = int(assigned.max()) + 1 - n_clusters
        if best_cost == 0 or n_new <= 0 or own.all():
            break
        n_own += n_new
        others = refit(~own[problem.groups], n_clusters - n_own)
        found = _with_own_clusters(problem, others, ~own, n_clusters)
    return best, best_P


def _find_violated(labels, ends, costs):
    """Return which pairs are violated by the labels of rows; costs are below 0 for must-links."""
    one, other = labels[ends].T
    return (one == other) == (costs > 0)


def _assign_rows(A, links, labels, attraction, n_most):
    """Assign rows without a cluster to the cluster where they violate pairs least.

    Rows that violate pairs in the most clusters come first. If a row violates pairs in every
    cluster, it gets a new cluster, unless there are `n_most` clusters.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    links : csr_array of shape (n, n)
        Costs of putting two rows into one cluster, below 0 for must-links.
    labels : ndarray of shape (n,), int
        Cluster of every row; -1 for rows without one.
    attraction : ndarray of shape (n, n_clusters)
        Similarity of rows to clusters, which breaks ties.
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
        # next is the row that violates pairs in the most clusters; weights and attraction break
        # ties
        own_costs = costs[waiting, :n_open]
        nearest = attraction[waiting, :n_open].max(axis=1)
        n_violated = (own_costs > 0).sum(axis=1)
        order = np.lexsort((nearest, own_costs.sum(axis=1), n_violated))
        i = waiting.pop(order[-1])
        cluster = np.lexsort((-attraction[i, :n_open], costs[i, :n_open]))[0]
        if costs[i, cluster] > 0 and n_open < n_most:
            cluster = n_open
            n_open += 1
        # update the costs and attractions of the rows that are still waiting
        labels[rows[i]] = cluster
        costs[:, cluster] += among[[i]].toarray()[0]  # symmetric
        attraction[:, cluster] += A.entries(rows, np.full(len(rows), rows[i]))
    return labels


def _with_own_clusters(problem, found, rows, n_clusters):
    """Extend a factorization of the rows in a mask to all rows, with rows of zeros.

    The loss becomes that of all rows, and the loss curves shift by the same amount.
    """
    best = found.best
    F, M = found.parts
    H = np.zeros((len(rows), F.shape[1]), dtype=F.dtype)
    H[rows] = F
    gram = M @ (F.T @ F)
    constant = problem.objective.constant
    loss = constant - 2 * inner_product(H @ M, problem.A @ H)
    loss += inner_product(gram, gram.T)
    change = loss - best.loss
    # pad with zeros for the clusters of the remaining rows
    n_new = n_clusters - F.shape[1]
    core = [np.pad(S, (0, n_new)) for S in best.factors[1:]]
    factors = (np.pad(H, ((0, 0), (0, n_new))), *core)
    best = replace(best, factors=factors, loss=loss, history=best.history + change)
    return replace(found, best=best, curves=[curve + change for curve in found.curves])


def warn_of_uniform(F, P):
    """Warn of rows of zeros whose memberships are uniform, as their clusters are arbitrary."""
    is_uniform = ~F.any(axis=1) & (P == P[:, :1]).all(axis=1)
    n_uniform = int(is_uniform.sum())
    if n_uniform:
        warn(
            f"Nothing determines the cluster of {format_count(n_uniform, 'sample')}, whose "
            "memberships are uniform. Do not use their labels."
        )
