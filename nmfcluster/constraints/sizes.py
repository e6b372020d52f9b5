"""Assignment of samples to clusters whose sizes have bounds."""

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

# Largest number of programs solved for connected clusters: a map of 400 samples in 20 clusters,
# most of which are in pieces by their memberships, takes 24.
_MAX_ROUNDS = 100


def labels_of_sizes(
    membership: Any,
    min_size: int = 0,
    max_size: int | None = None,
    *,
    connectivity: Any = None,
    sample_weight: Any = None,
) -> np.ndarray:
    r"""Assign samples to clusters by their memberships, with bounds on the sizes of clusters.

    The labels l maximise :math:`\sum_i P_{i, l_i}`, the sum of the memberships P of the samples in
    their clusters. Every cluster has `min_size` to `max_size` samples.

    Parameters
    ----------
    membership : array-like of shape (n_samples, n_clusters), or fitted estimator
        Memberships of samples in clusters, or an estimator with an attribute `membership_`. If the
        estimator also has `must_link_groups_`, the samples of each group stay together.
    min_size, max_size : int, default=0 and None
        Smallest and largest size of a cluster. The size is the number of samples or, if you pass
        `sample_weight`, the sum of their weights. If `max_size` is None, there is no upper bound.
    connectivity : array-like or sparse matrix of shape (n_samples, n_samples), default=None
        Entries above 0 mark neighbours, such as areas with a common border. Every cluster is then
        connected: any two of its samples are joined by a chain of neighbours within the cluster.
    sample_weight : array-like of shape (n_samples,), default=None
        How much each sample adds to the size of its cluster, such as the population of an area. It
        is 1 by default.

    Returns
    -------
    ndarray of shape (n_samples,), int
        Cluster of every sample. If each sample can be in the cluster of its largest membership
        without a violation of the bounds or of connectivity, these clusters are returned.

    Raises
    ------
    TypeError
        If a bound is not an integer.
    ValueError
        If `membership` is not a matrix of finite numbers, if no labels keep the bounds and the hard
        must-links of the fit, or if no connected clusters that keep them were found.

    Notes
    -----
    Samples that hard must-links of a fit join stay together. Cannot-links are ignored.

    If samples have no such groups and no weights, this is a transportation problem. Its best
    solution is found by linear programming. With 10 clusters, this takes about 2 s for 10,000
    samples and 20 s for 100,000. With groups or weights, it is a mixed-integer program. The sum of
    memberships is then within 0.01 % of the largest possible sum.

    Connected clusters are found by cuts. If a cluster falls into pieces, the program is solved
    again with further constraints. Samples of two pieces can then be in the cluster only if it also
    holds a sample that borders on one of these pieces. This takes a second for 144 samples and 6
    clusters, and a minute for 400 samples and 20 clusters.

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
            f"min_size={min_size} and max_size={max_size} are impossible for {total:g} samples, or "
            f"units of sample_weight, in {k} clusters: pass a min_size of at most "
            f"{int(total // k)}, and a max_size of at least {int(-(-total // k))}."
        )
    # samples that must-links join form one row, unless the fit has separated them
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
        joined = f" Must-links join groups with sizes of up to {of_groups.max():g}."
        stay = joined if len(of_groups) < n else ""
        connected = "" if neighbors is None else " Clusters have to be connected."
        raise ValueError(
            f"no labels were found that keep min_size={min_size} and max_size={max_size}.{stay}"
            f"{connected} Pass wider bounds. If must-links may be violated, pass membership_ "
            "instead of the model."
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
        Entries above 0 mark neighbours, if clusters have to be connected.
    """
    n, k = P.shape
    if neighbors is not None and connected_components(neighbors)[0] > k:
        return None
    # return the labels of the largest memberships if they keep the bounds
    labels = P.argmax(axis=1)
    sizes = np.bincount(labels, weights, minlength=k)
    cuts = _find_cuts(P, labels, neighbors)
    if sizes.min() >= least and sizes.max() <= most and not cuts:
        return labels
    # otherwise solve a linear program, in which row i of x is the cluster of group i
    of_cluster = sp.kron(weights[None, :], sp.eye_array(k), format="csr")
    of_group = sp.kron(sp.eye_array(n), np.ones((1, k)), format="csr")
    is_linear = neighbors is None and (weights == 1).all()
    is_whole = (weights == weights.round()).all()
    integers = weights != 1 if neighbors is None and is_whole else np.ones(n)
    for _ in range(_MAX_ROUNDS):
        x = linprog(
            P.ravel() / -(np.abs(P).max() or 1),  # tolerances of HiGHS are absolute
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
    """Return linear cuts that the labels violate because some of their clusters fall into pieces.

    The product of a cut with x is 2 for these labels, and at most 1 if clusters are connected.
    """
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
            # to hold samples of both parts, a cluster needs one that borders on the piece
            center = core[P[core, cluster].argmax()]
            for sample in piece:
                cut = np.zeros((n, k))
                cut[[sample, center], cluster] = 1
                cut[around, cluster] = -1
                cuts.append(sp.csr_array(cut.reshape(1, -1)))
    return cuts
