"""Symmetric NMF of a neighbour graph: the estimator of "Adding an estimator"."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from nmfcluster._base import (
    NMFClusterer,
    fitting,
    membership,
    number_by_size,
    read_features,
)
from nmfcluster._compat import Interval, fit_context
from nmfcluster._optim.run import Steps, keep_starts
from nmfcluster._optim.symmetric import Problem, SymmetricObjective, factorize
from nmfcluster._utils.order import canonical_order
from nmfcluster.similarity import Explicit


def damped_nmf(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise :math:`\|A - HH'\|^2` over H >= 0 by the damped multiplicative rule.

    .. math:: H \leftarrow H \circ (1/2 + 1/2 \, AH \oslash HH'H)

    The printed rule is for A >= 0. It moves no entry by more than half towards 0.

    Parameters
    ----------
    objective : SymmetricObjective
    H : ndarray of shape (n_starts, n, k)
        Positive.

    Yields
    ------
    factors : tuple of one ndarray of shape (n_starts, n, k)
    loss : ndarray of shape (n_starts,)
    """
    tiny = np.finfo(H.dtype).tiny
    now = objective.rescaled(objective.evaluate(H))
    while True:
        keep = yield (now.H,), now.loss
        H, AH, C = keep_starts(keep, now.H, now.AH, now.C)
        ratio = AH / np.maximum(C, tiny)  # C is HH'H
        now = objective.evaluate(H * (0.5 + 0.5 * ratio))


class GraphNMF(NMFClusterer):
    r"""Clustering by symmetric NMF of a nearest-neighbour graph.

    Minimises :math:`\|A - HH'\|_F^2` over H >= 0 [1]_, where A joins every sample with its
    nearest neighbours.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_neighbors : int, default=10
        Number of neighbours that a sample is joined with.
    n_init : int, default=3
        Number of starts; the first is computed from eigenvectors, the others are random.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A start has converged when ten updates lower its loss by less than `tol` times the loss
        of H = 0.
    random_state : int, RandomState, Generator or None, default=None
        Determines the random starts.
    n_jobs : int, default=None
        Number of threads.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample. Clusters are numbered by decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of H, scaled to sum to 1.
    core_ : ndarray of shape (n_clusters, n_clusters)
        S in :math:`QSQ'`, where Q has unit columns; diagonal.
    loss_ : float
        Loss of the kept factor.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first.
    n_iter_ : int
        Number of updates of the kept run.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    References
    ----------
    .. [1] C. Ding, X. He, H. D. Simon. On the equivalence of nonnegative matrix factorization
       and spectral clustering. SDM 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import GraphNMF
    >>> GraphNMF(n_clusters=3, random_state=0).fit(load_iris().data).membership_.shape
    (150, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int,
        *,
        n_neighbors: int = 10,
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any = None, y: Any = None) -> GraphNMF:
        """Cluster the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
            Ignored; here for the conventions of scikit-learn.

        Returns
        -------
        GraphNMF
            The fitted estimator.
        """
        with fitting(self) as rng:
            # read
            X = read_features(self, X)
            self._check_not_alone(X.shape[0])
            self._check_n_clusters(X.shape[0])
            order = canonical_order(X)
            X = X[order.samples]
            # build the similarity
            A = Explicit(self._graph(X))
            # factorize
            best = factorize(Problem(A), self._solver_config(damped_nmf), rng)
            # label, and number the clusters by size
            memberships = membership(best.H)[order.first]
            memberships, labels, clusters = number_by_size(
                memberships, memberships.argmax(axis=1)
            )
            # keep what `predict` needs, and what all estimators have
            self._X_fit_ = X
            mass = np.maximum(memberships.sum(axis=0), np.finfo(X.dtype).tiny)
            self._profile_ = memberships / mass
            self.core_ = best.core[np.ix_(clusters, clusters)]
            self.labels_ = labels[order.ranks]
            self.membership_ = memberships[order.ranks]
            self.loss_ = best.loss
            self.loss_curves_ = best.loss_curves
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = best.best.n_iter
            self._warn_unless_converged(best, int(labels.max()) + 1)
        return self

    def _graph(self, X: Any) -> Any:
        n_neighbors = min(self.n_neighbors, X.shape[0])
        graph = kneighbors_graph(X, n_neighbors, include_self=True).astype(X.dtype)
        return (graph + graph.T) / 2

    def _extend(self, X: Any) -> np.ndarray:
        X = read_features(self, X, reset=False)
        n_neighbors = min(self.n_neighbors, self._X_fit_.shape[0])
        search = NearestNeighbors(n_neighbors=n_neighbors).fit(self._X_fit_)
        return (search.kneighbors_graph(X) @ self._profile_).astype(X.dtype)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
