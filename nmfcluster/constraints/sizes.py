"""Labels of memberships where clusters have bounds on their sizes."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.validation import (
    check_count,
    check_shape,
    read_matrix,
    read_weights,
)
from nmfcluster.constraints.graph import make_adjacency

# programs that are solved at most for connected clusters; 400 samples of a map in 20 clusters, most
# of which are in pieces by their memberships, take 24
_MAX_ROUNDS = 100


def labels_of_sizes(
    membership: Any,
    min_size: int = 0,
    max_size: int | None = None,
    *,
    connectivity: Any = None,
    sample_weight: Any = None,
) -> np.ndarray:
    r"""Return labels by memberships, with bounds on the sizes of clusters.

    With the memberships P, the labels maximise :math:`\sum_i P_{i, l_i}` among all labels l by
    which every cluster has `min_size` to `max_size` samples, and samples that hard must-links of a
    fit join are in one cluster.

    Parameters
    ----------
    membership : array-like of shape (n_samples, n_clusters), or fitted estimator
        How much each sample belongs to each cluster, or an estimator with `membership_`, and with
        `must_link_groups_` if samples are to stay together.
    min_size, max_size : int, default=0 and None
        Smallest and largest number of samples of a cluster, or sum of `sample_weight`; None: any
        number.
    connectivity : array-like or sparse matrix of shape (n_samples, n_samples), default=None
        Above 0 between samples that are neighbours, as areas with a common border are. Every
        cluster is then connected: each of its samples can be reached from the others through the
        cluster.
    sample_weight : array-like of shape (n_samples,), default=None
        How much each sample adds to the size of its cluster, as the population of an area; 1 by
        default.

    Returns
    -------
    ndarray of shape (n_samples,), int
        Cluster of every sample. Where the largest memberships of all samples keep the bounds,
        these determine it, as in the `labels_` of a fit, and are connected if they have to be.

    Raises
    ------
    TypeError
        If a bound is not an integer.
    ValueError
        If `membership` is no data matrix of finite numbers, no labels keep the bounds and the
        hard must-links of the fit, or no connected clusters that do were found.

    Notes
    -----
    Samples that hard must-links of a fit join stay together; cannot-links are ignored.

    This is a transportation problem, whose vertices are whole numbers; an interior point method
    and a crossover to a vertex take some 20 s for 100,000 samples and 10 clusters, 2 s for 10,000.
    With groups of samples that stay together it is a mixed-integer program, in which these alone
    are integers, and the sum of the memberships is within 0.01 % of the best.

    Connected clusters are found by cuts: where a cluster falls into pieces, the program is solved
    again with a constraint by which two samples of two pieces are in the cluster only if one that
    borders on a piece is, too. That takes a second for 144 samples and 6 clusters, and a minute
    for 400 samples and 20 clusters.

    Examples
    --------
    >>> from nmfcluster.constraints import labels_of_sizes
    >>> labels_of_sizes([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7]], max_size=2)
    array([0, 1, 0, 1])
    """
    P = getattr(membership, "membership_", membership)
    P = read_matrix(P, "membership", dtype=np.float64, accept_sparse=False)
    n, k = P.shape
    min_size = check_count(min_size, "min_size", 0)
    weights = read_weights(sample_weight, None, 1, n)
    w = np.ones(n) if weights is None else weights
    total = float(w.sum())
    most = total if max_size is None else check_count(max_size, "max_size", 1)
    if not (min_size <= most and k * min_size <= total <= k * most):
        raise ValueError(
            f"min_size={min_size} and max_size={max_size} must allow for {total:g} samples, or "
            f"their weight, in {k} clusters: give a min_size of at most {int(total // k)}, and a "
            f"max_size of at least {int(-(-total // k))}."
        )
    # samples that must-links join are one row, unless the fit has parted them
    group = np.arange(n)
    if hasattr(membership, "must_link_groups_"):
        joined = membership.must_link_groups_ * k + membership.labels_
        group = np.unique(joined, return_inverse=True)[1]
    E = one_hot(group, group.max() + 1, P.dtype)
    neighbors = None
    if connectivity is not None:
        neighbors = read_matrix(connectivity, "connectivity")
        check_shape(neighbors, "connectivity", n, n)
        borders = np.column_stack(sp.coo_array(neighbors > 0).coords)
        neighbors = make_adjacency(len(E.T), group[borders])
    of_groups = np.bincount(group, w)
    labels = _assign_groups(E.T @ P, of_groups, min_size, most, neighbors)
    if labels is None:
        joined = f" Must-links join samples of up to {of_groups.max():g}, which stay together."
        stay = joined if len(of_groups) < n else ""
        connected = "" if neighbors is None else " Clusters have to be connected."
        raise ValueError(
            f"no labels were found that keep min_size={min_size} and max_size={max_size}.{stay}"
            f"{connected} Give wider bounds, or membership_ itself, by which groups may part."
        )
    return labels[group]


def _assign_groups(P, weights, least, most, neighbors):
    """Return the best labels of groups that keep the bounds, or None.

    Parameters
    ----------
    P : ndarray of shape (n_groups, n_clusters)
        Sums of the memberships of the samples of each group.
    weights : ndarray of shape (n_groups,)
        Sums of the weights of the samples.
    least, most : float
        Bounds of the sums of weights in a cluster.
    neighbors : csr_array of shape (n_groups, n_groups), or None
        Above 0 between groups that are neighbours, if clusters have to be connected.
    """
    n, k = P.shape
    if neighbors is not None and connected_components(neighbors)[0] > k:
        return None
    # the largest memberships, if they keep the bounds
    labels = P.argmax(axis=1)
    sizes = np.bincount(labels, weights, minlength=k)
    cuts = _find_cuts(P, labels, neighbors)
    if sizes.min() >= least and sizes.max() <= most and not cuts:
        return labels
    # or else a linear program: row i of x is the cluster of group i
    of_cluster = sp.kron(weights[None, :], sp.eye_array(k), format="csr")
    of_group = sp.kron(sp.eye_array(n), np.ones((1, k)), format="csr")
    is_linear = neighbors is None and (weights == 1).all()
    is_whole = (weights == weights.round()).all()
    integers = weights != 1 if neighbors is None and is_whole else np.ones(n)
    for _ in range(_MAX_ROUNDS):
        x = linprog(
            P.ravel() / -(np.abs(P).max() or 1),  # HiGHS' tolerances are absolute
            A_ub=sp.vstack([of_cluster, -of_cluster, *cuts]),
            b_ub=np.concatenate([np.repeat([most, -least], k), np.ones(len(cuts))]),
            A_eq=of_group,
            b_eq=np.ones(n),
            bounds=(0, 1),
            method="highs-ipm" if is_linear else "highs",
            integrality=None if is_linear else np.repeat(integers, k),
        ).x
        if x is None:
            return None
        labels = x.reshape(n, k).argmax(axis=1)
        new_cuts = _find_cuts(P, labels, neighbors)
        if not new_cuts:
            return labels
        cuts += new_cuts
    return None


def _find_cuts(P, labels, neighbors):
    """Return rows of x whose sum is at most 1 in connected clusters, and is 2 by the labels."""
    n, k = P.shape
    cuts = []
    for cluster in range(k if neighbors is not None else 0):
        members = np.flatnonzero(labels == cluster)
        part = connected_components(neighbors[members][:, members])[1]
        main = np.bincount(part, P[members, cluster], minlength=1).argmax()
        core = members[part == main]
        for other in np.setdiff1d(part, main):
            piece = members[part == other]
            around = np.setdiff1d(neighbors[piece].indices, piece)
            # a sample of the piece, and one of the main part, need one that borders on the piece
            center = core[P[core, cluster].argmax()]
            for sample in piece:
                cut = np.zeros((n, k))
                cut[[sample, center], cluster] = 1
                cut[around, cluster] = -1
                cuts.append(sp.csr_array(cut.reshape(1, -1)))
    return cuts
