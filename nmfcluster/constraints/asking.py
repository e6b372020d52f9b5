"""Which pairs of samples to ask somebody about, given a fit under the pairs known so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import euclidean_distances

from nmfcluster._arrays.arguments import check_count, generator_of, shown
from nmfcluster.constraints.container import PairwiseConstraints

_MOST_CANDIDATES = 500  # samples that may be asked about: all are compared with each of them
_FLOOR = 0.2  # share of the weight of a sample that its membership cannot take away
_SAMPLES = "constraints_", "membership_", "labels_"


def next_pairs(model: Any, X: Any, n_pairs: int, *, random_state: Any = None) -> np.ndarray:
    r"""Choose the pairs of samples to ask about next.

    Known groups that exclude each other, and the middle of each cluster without one, are what
    others are asked against, each against the most probable one that is not excluded. First come
    samples that are known to be apart from one such group and not yet in another, then those that
    stand for the most uncertain samples: one after another, the x with the largest

    .. math:: \sum_i (0.2 + u_i) \max(0, K_{ix} - c_i),

    u the entropy of where a sample belongs over its largest value, K a Gaussian kernel, and c the
    largest K to a sample that is known or chosen before.

    Parameters
    ----------
    model : fitted SSNMFClusterer
        Its `constraints_`, `membership_` and `labels_` are read.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data of the fit, or its similarity with ``affinity="precomputed"``.
    n_pairs : int
        Largest number of pairs; a group of linked samples is asked about once.
    random_state : int, RandomState instance or None, default=None
        Draws the 500 samples that may be asked about, where there are more.

    Returns
    -------
    ndarray of shape (n_chosen, 2), int
        No pair follows from the known ones. Fewer than `n_pairs` where there are no more.

    Raises
    ------
    TypeError
        If `model` is not fitted under constraints, or `n_pairs` is not an integer.
    ValueError
        If `n_pairs` is below 1, `X` has other samples, or `random_state` is no seed.

    Notes
    -----
    Groups to ask against are the neighbourhoods of [1]_, entropies those of [2]_.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney. Active semi-supervision for pairwise constrained
       clustering. SDM 2004.
    .. [2] S. Xiong, J. Azimi, X. Z. Fern. Active learning of constraints for semi-supervised
       clustering. IEEE TKDE 26, 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import SSNMFClusterer
    >>> from nmfcluster.constraints import next_pairs
    >>> X = load_iris().data
    >>> model = SSNMFClusterer(n_clusters=3, random_state=0).fit(X)
    >>> next_pairs(model, X, 5).shape
    (5, 2)
    """
    check_count(n_pairs, "n_pairs", 1)
    rng = generator_of(random_state)
    if not all(hasattr(model, name) for name in _SAMPLES):
        raise TypeError(f"model must be a fitted SSNMFClusterer, got {shown(model)}.")
    known: PairwiseConstraints = model.constraints_
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.shape[0] != len(known):
        raise ValueError(
            f"X must be the data of the fit, of {len(known)} samples, got shape {X.shape}."
        )
    n = len(known)
    drawn = rng.permutation(n)[:_MOST_CANDIDATES] if n > _MOST_CANDIDATES else np.arange(n)
    group = known.components()
    first = np.unique(group, return_index=True)[1]
    apart = _apart(group[known.cannot_link], len(first))
    touched = (np.bincount(group) > 1) | np.array([len(others) > 0 for others in apart])
    candidates = np.sort(drawn)
    precomputed = isinstance(getattr(model, "affinity", None), str) and (
        model.affinity == "precomputed"
    )
    n_near = max(5, n // (int(touched.sum()) + int(n_pairs)))
    K = _kernel(X, candidates, n_near, precomputed)
    anchors = _anchors(model, group, apart, touched, candidates, K)
    p = _probabilities(model.membership_, group, apart, anchors)
    return _chosen(p, anchors, group, first, touched, candidates, K, int(n_pairs))


def _apart(pairs: np.ndarray, n_groups: int) -> list[set[int]]:
    """Return, for every group, those that cannot be linked to it."""
    apart: list[set[int]] = [set() for _ in range(n_groups)]
    for one, other in pairs.tolist():
        apart[one].add(other)
        apart[other].add(one)
    return apart


def _kernel(X: Any, candidates: np.ndarray, n_near: int, precomputed: bool) -> np.ndarray:
    """Return how near all samples are to each candidate, (n_candidates, n_samples), at most 1."""
    rows = X[candidates]
    if precomputed:
        W = np.maximum(rows.toarray() if sp.issparse(rows) else rows, 0).astype(float)
        W[np.arange(len(W)), candidates] = W.max(axis=1, initial=0)
        return W / np.maximum(W.max(axis=1, keepdims=True), np.finfo(float).tiny)
    D = euclidean_distances(rows, X, squared=True).astype(float)
    near = min(n_near, D.shape[1] - 1)
    width = np.partition(D, near, axis=1)[:, near, None]
    return np.exp(-D / np.maximum(width, np.finfo(float).tiny))


def _anchors(
    model: Any,
    group: np.ndarray,
    apart: list[set[int]],
    touched: np.ndarray,
    candidates: np.ndarray,
    K: np.ndarray,
) -> list[int]:
    """Return groups to ask against: those that exclude each other, and middles of clusters."""
    anchors: list[int] = []
    sizes = np.bincount(group)
    for one in np.lexsort((-np.array([len(others) for others in apart]), -sizes)).tolist():
        if touched[one] and apart[one].issuperset(anchors):
            anchors.append(one)
    labels, P = model.labels_, model.membership_
    met = {int(P[group == one].sum(axis=0).argmax()) for one in anchors}
    for cluster in sorted(set(range(P.shape[1])) - met):
        inside = (labels[candidates] == cluster) & ~np.isin(group[candidates], anchors)
        if inside.any():
            middle = K[inside][:, labels == cluster].sum(axis=1).argmax()
            anchors.append(int(group[candidates[inside][middle]]))
    return anchors


def _probabilities(
    P: np.ndarray, group: np.ndarray, apart: list[set[int]], anchors: list[int]
) -> np.ndarray:
    """Return the chances that a group is one with an anchor, 0 where this is known."""
    Q = np.zeros((len(apart), P.shape[1]))
    np.add.at(Q, group, P)
    Q /= np.bincount(group)[:, None]
    p = Q @ Q[anchors].T + 1e-9  # so that an anchor of another cluster is asked about last
    for j, anchor in enumerate(anchors):
        p[list(apart[anchor]), j] = 0
        p[anchor, j:] = 0  # of two anchors the later is asked about
    total = p.sum(axis=1, keepdims=True)
    return np.divide(p, total, where=total > 0, out=np.zeros_like(p))


def _chosen(
    p: np.ndarray,
    anchors: list[int],
    group: np.ndarray,
    first: np.ndarray,
    touched: np.ndarray,
    candidates: np.ndarray,
    K: np.ndarray,
    n_pairs: int,
) -> np.ndarray:
    """Return the pairs: of groups that await a further answer, then of uncertain samples."""
    best = p.max(axis=1, initial=0)
    uncertain = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1) / np.log(max(len(anchors), 2))
    open_ = best > 0
    waits = np.flatnonzero(touched & open_ & ~np.isin(np.arange(len(p)), anchors))
    asked = waits[np.lexsort((-best[waits], -np.bincount(group)[waits]))][:n_pairs].tolist()
    weights = np.where(open_, _FLOOR + uncertain, 0)[group]
    near_known = touched[group[candidates]]
    cover = K[near_known].max(axis=0, initial=0)
    open_[asked] = False
    while len(asked) < n_pairs and open_[group[candidates]].any():
        gain = np.maximum(K - cover, 0) @ weights
        x = int(np.where(open_[group[candidates]], gain, -1).argmax())
        asked.append(int(group[candidates[x]]))
        open_[asked[-1]] = False
        cover = np.maximum(cover, K[x])
    against = [anchors[j] for j in p[asked].argmax(axis=1)] if asked else []
    return np.column_stack([first[asked], first[against]]) if asked else np.empty((0, 2), np.intp)
