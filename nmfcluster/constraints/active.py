"""Active learning: choose the pairs to ask about next, from a fit with the known pairs."""

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from nmfcluster._base import read_features, read_similarity
from nmfcluster._utils import storage
from nmfcluster._utils.sampling import draw_preferring
from nmfcluster._utils.validation import (
    check_count,
    format_count,
    format_value,
    make_rng,
    row_names,
)
from nmfcluster.affinity import make_affinity
from nmfcluster.constraints.container import PairwiseConstraints, read_pairs
from nmfcluster.constraints.graph import components, make_adjacency
from nmfcluster.similarity.propagation import MAX_DENSE_SAMPLES

_CONTINUATION = 0.95  # probability of a further step of a walk
# weight of a sample whose cluster seems certain, above 0 as it can still be wrong
_LEAST_WEIGHT = 0.05
_FLOOR = 1e-9  # smallest probability or centrality: ranked last, but above exact zeros
# smallest variance: that of known samples is 0, and rounding can make it negative
_LEAST_VARIANCE = 1e-12


class _Groups(NamedTuple):
    """Groups of samples that must-links join."""

    of: np.ndarray  # group of every sample
    size: np.ndarray
    apart: sp.csr_array  # bool, symmetric: pairs of groups that cannot be linked
    known: np.ndarray  # bool, whether one of its samples is in a pair


def next_pairs(
    model: Any, X: Any, n_pairs: int, *, exclude: Any = None, random_state: Any = None
) -> np.ndarray:
    r"""Choose the pairs of samples whose answers are most informative.

    For each pair, a user or an oracle answers whether its two samples belong to one cluster. Add
    the answers to the known pairs, fit again, and ask for the next pairs.

    Each cluster has a representative. Samples that known must-links join form a group, and groups
    that known cannot-links separate from each other represent clusters. Other clusters are
    represented by their most central sample. Samples are chosen in the following order. Each chosen
    sample is paired with its most probable representative, unless the pair is excluded:

    1. Samples in known pairs that are not in the group of a representative.
    2. Samples that are most informative about uncertain samples. They are chosen one by one. The
       next sample is the x whose value :math:`f_x`, once it is known, lowers

       .. math:: \sum_i (0.05 + u_i) \operatorname{var}(f_i)

       most [1]_. :math:`u_i` is the entropy of the cluster of sample i, divided by its largest
       possible value. f is a Gaussian field on the similarity W of `model`. Its covariance is
       :math:`(I - 0.95 D^{-1/2} W D^{-1/2})^{-1}`, given the values of f at the samples in known
       pairs. The diagonal of W is set to 0, and D holds its row sums.

    Parameters
    ----------
    model : fitted SSNMFClusterer
        The model, fitted with the known pairs. It is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data of the fit in the same order. With ``affinity="precomputed"``, the similarity.
    n_pairs : int
        Largest number of pairs to return.
    exclude : array-like of shape (n_excluded, 2), default=None
        Pairs of positions of samples, such as pairs that nobody can answer. These pairs are not
        returned. Pairs between samples that known must-links join to theirs are not returned,
        either.
    random_state : int, RandomState, Generator or None, default=None
        Determines which 3,000 samples are drawn if there are more. Pairs are chosen among the drawn
        samples.

    Returns
    -------
    ndarray of shape (n_chosen, 2), int
        Positions of samples, as in `PairwiseConstraints.must_link`. No returned pair follows from
        the known pairs. At most one sample of each group is chosen, so that there may be fewer than
        `n_pairs` pairs. There are none only if all pairs of the drawn samples are known or
        excluded.

    Raises
    ------
    TypeError
        If `model` is not a fitted SSNMFClusterer, or `n_pairs` is not an integer.
    ValueError
        If `n_pairs` is below 1, `X` is not the data of the fit, `exclude` does not hold pairs of
        its samples, or `random_state` is not a seed.

    See Also
    --------
    nmfcluster.constraints.PairwiseConstraints : Container for the answers.

    Notes
    -----
    The groups that represent clusters are the neighbourhoods of [2]_, and the entropies are those
    of [3]_.

    References
    ----------
    .. [1] M. Ji, J. Han. A variance minimization criterion to active learning on graphs.
       AISTATS 2012.
    .. [2] S. Basu, A. Banerjee, R. J. Mooney. Active semi-supervision for pairwise constrained
       clustering. SDM 2004.
    .. [3] S. Xiong, J. Azimi, X. Z. Fern. Active learning of constraints for semi-supervised
       clustering. IEEE TKDE 26, 2014.

    Examples
    --------
    Ask for five pairs at a time, and answer by the true classes:

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> from nmfcluster.constraints import next_pairs
    >>> X, y = load_iris(return_X_y=True)
    >>> must_link = cannot_link = np.empty((0, 2), int)
    >>> model = SSNMFClusterer(n_clusters=3, random_state=0).fit(X)
    >>> for _ in range(3):
    ...     pairs = next_pairs(model, X, 5)
    ...     same = y[pairs[:, 0]] == y[pairs[:, 1]]
    ...     must_link = np.vstack([must_link, pairs[same]])
    ...     cannot_link = np.vstack([cannot_link, pairs[~same]])
    ...     known = PairwiseConstraints(len(X), must_link, cannot_link)
    ...     model = model.fit(X, constraints=known)
    >>> known.n_pairs
    15
    """
    n_pairs = check_count(n_pairs, "n_pairs", 1)
    rng = make_rng(random_state)
    known, X = _read(model, X)
    excluded = read_pairs(exclude, "exclude", range(len(known))).pairs
    P = model.membership_
    groups = _make_groups(known)
    # compute the covariance of all or of drawn samples, and the groups that represent clusters
    drawn = np.sort(draw_preferring(groups.known[groups.of], MAX_DENSE_SAMPLES, rng))
    C = compute_covariance(_compute_similarity(model, X, drawn))
    centrality = _compute_centrality(C, model.labels_, drawn, P)
    anchors = _find_anchors(groups, P, model.labels_, centrality)
    # compute the entropy of the cluster of every group, given the known pairs
    p = _compute_probabilities(groups, P, anchors, excluded)
    best = p.max(axis=1, initial=0)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    entropy /= np.log(max(len(anchors), 2))
    # known groups without a representative come first; centrality breaks ties, so that the order
    # of the samples does not matter
    unassigned = groups.known & (best > 0)
    unassigned[anchors] = False
    order = np.lexsort((-np.bincount(groups.of, centrality), -best, -groups.size))
    chosen: list[int] = order[unassigned[order]].tolist()
    # then come groups whose answers lower uncertainty most
    group = groups.of[drawn]
    C = condition_covariance(C, np.flatnonzero(groups.known[group]))
    weights = np.where(best > 0, _LEAST_WEIGHT + entropy, 0)[group]
    candidates = (best > 0) & ~unassigned
    n_more = n_pairs - len(chosen)
    chosen += choose_most_informative(C, weights, group, candidates, n_more)
    chosen = chosen[:n_pairs]
    # pair the first sample of each group with that of its most probable anchor
    first = np.unique(groups.of, return_index=True)[1]
    anchor = np.array(anchors)[p[chosen].argmax(axis=1)]
    return np.column_stack([first[chosen], first[anchor]])


def _read(model, X):
    """Return the known pairs, and X in the form in which the fit read it."""
    known = getattr(model, "constraints_", None)
    if not isinstance(known, PairwiseConstraints):
        raise TypeError(
            f"model must be a fitted SSNMFClusterer, got {format_value(model)}: call fit first."
        )
    fit_names = row_names(known)
    names = row_names(X)
    if model.affinity_ == "precomputed":
        model = copy.copy(model)  # reading X sets attributes
        X = read_similarity(model, X, signed=True)
    else:
        X = read_features(model, X, reset=False)
    if X.shape[0] != len(known):
        raise ValueError(
            f"X must be the data of the fit, of {format_count(len(known), 'sample')}, "
            f"got shape {X.shape}: pass the X that was passed to model.fit."
        )
    if fit_names is not None and names is not None and not fit_names.equals(names):
        raise ValueError(
            "X must have the samples of the fit in the same order, but its index differs: pass "
            "X.loc[model.constraints_.index]."
        )
    return known, X


def _make_groups(pairs):
    group = components(len(pairs), pairs.must_link)  # soft pairs are answers, too
    size = np.bincount(group)
    apart = make_adjacency(len(size), group[pairs.cannot_link])
    return _Groups(group, size, apart, (size > 1) | (np.diff(apart.indptr) > 0))


def _compute_similarity(model, X, drawn):
    """Return the nonnegative similarities of the drawn samples by the affinity of the model."""
    affinity = model.affinity_
    X = storage.submatrix(X, drawn, drawn if affinity == "precomputed" else None)
    if affinity == "callable":
        affinity = model.affinity
    elif affinity == "landmarks":  # with so few samples, each would be a landmark
        affinity = "nearest_neighbors"
    made = make_affinity(
        X,
        affinity,
        gamma=model.gamma,
        n_neighbors=model.n_neighbors,
        n_clusters=model.n_clusters,
        n_jobs=model.n_jobs,
    )
    return np.maximum(made.similarity.toarray(), 0).astype(np.float64)


def compute_covariance(W):
    """Return ``(I - 0.95 D^-1/2 W D^-1/2)^-1``, where D holds the row sums of W.

    The diagonal of W is set to 0 first. The diagonal of the result is the variance of each sample
    if no pairs are known, and the other entries are the covariances of two samples.
    """
    S = W.copy()
    np.fill_diagonal(S, 0)
    roots = np.sqrt(storage.row_sums(S))
    S = storage.scaled_both(S, storage.safe_inverse(roots)) * -_CONTINUATION
    np.fill_diagonal(S, 1)
    return scipy.linalg.inv(S, overwrite_a=True)


def condition_covariance(C, known):
    """Return the covariance of a Gaussian field, given its values at the known samples."""
    own = C[np.ix_(known, known)]
    left = C - C[:, known] @ scipy.linalg.solve(own, C[known], assume_a="pos")
    left[known] = 0
    left[:, known] = 0
    return left


def _compute_centrality(C, labels, drawn, P):
    """Return how central samples are in their clusters; it is lowest for samples not drawn."""
    own = P[np.arange(len(P)), labels]
    inside = labels[drawn][:, None] == labels[drawn]
    centrality = own * _FLOOR
    centrality[drawn] = own[drawn] * (C * inside).sum(axis=1)
    return centrality


def _find_anchors(groups, P, labels, centrality):
    """Return groups that represent clusters: known groups that exclude each other, then others.

    A cluster without such a known group is represented by the group of its most central sample.
    """
    anchors: list[int] = []
    n_excluding = np.zeros(len(groups.size))  # number of anchors apart from each group
    n_apart = np.diff(groups.apart.indptr)
    order = np.lexsort((-np.bincount(groups.of, centrality), -n_apart, -groups.size))
    for group in order[groups.known[order]].tolist():
        if n_excluding[group] == len(anchors):
            anchors.append(group)
            n_excluding += groups.apart[[group]].toarray()[0]
    # add the most central sample of each cluster without such a group
    represented = {P[groups.of == group].sum(axis=0).argmax() for group in anchors}
    for cluster in range(P.shape[1]):
        inside = np.flatnonzero((labels == cluster) & ~np.isin(groups.of, anchors))
        if cluster not in represented and len(inside):
            middle = inside[centrality[inside].argmax()]
            anchors.append(int(groups.of[middle]))
    return anchors


def _compute_probabilities(groups, P, anchors, excluded):
    """Return the probabilities that each group is in one cluster with each anchor.

    A probability is 0 if the answer is known or the pair is excluded.
    """
    apart = groups.apart + make_adjacency(len(groups.size), groups.of[excluded])
    sums = np.stack([np.bincount(groups.of, column) for column in P.T], axis=1)
    Q = sums / groups.size[:, None]
    p = Q @ Q[anchors].T + _FLOOR  # anchors of other clusters come last
    p[apart[:, anchors].toarray()] = 0
    for j, anchor in enumerate(anchors):
        p[anchor, j:] = 0  # pair an anchor only with earlier ones
    return p * storage.safe_inverse(p.sum(axis=1))[:, None]


def choose_most_informative(C, weights, group, candidates, count):
    r"""Return the groups of the samples whose answers lower uncertainty most, chosen one by one.

    When the value of sample x becomes known, :math:`\sum_i w_i C_{ii}` falls by
    :math:`\sum_i w_i C_{ix}^2 / C_{xx}`. The covariance is then updated for the known value before
    the next sample is chosen.

    Parameters
    ----------
    C : ndarray of shape (n, n)
        The covariance; it is overwritten.
    weights : ndarray of shape (n,)
        The weights w.
    group : ndarray of shape (n,), int
        Group of every sample; at most one sample of each group is chosen.
    candidates : ndarray of shape (n_groups,), bool
        Groups that may be chosen.
    count : int
        Largest number of groups.
    """
    chosen: list[int] = []
    is_open = candidates[group]
    while len(chosen) < count and is_open.any():
        variances = np.maximum(C.diagonal(), _LEAST_VARIANCE)
        decreases = (C**2 @ weights) / variances
        x = int(np.where(is_open, decreases, -1).argmax())
        chosen.append(int(group[x]))
        is_open[group == group[x]] = False
        # condition the field on its value at x
        column = C[:, x] / np.sqrt(variances[x])
        C -= column[:, None] * column
    return chosen
