"""Base clusterers for clusters that are not round: k-means on eigenvectors."""

from functools import partial
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import read_features
from nmfcluster._compat import COUNT, RANDOM_STATE, TakesSparse, fit_context
from nmfcluster._optim.initialization import leading_eigenpairs
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.storage import (
    divide_by_power,
    match_storage,
    row_sums,
    scaling_exponent,
)
from nmfcluster._utils.validation import make_rng
from nmfcluster.similarity import Explicit
from nmfcluster.similarity.neighbors import Landmarks, default_n_neighbors

# share of the samples in the graph of a run, so that the graphs of two runs differ
_GRAPH_SHARE = 0.7
# largest number of samples in a graph: more take longer, and hardly change clusters
_MAX_GRAPH_SIZE = 500
# similarity of a sample to itself above which it shares its landmarks with no other
_ISOLATED = 0.99
# smallest eigenvalue whose vector is extended to other samples; the largest is 1
_MIN_EIGENVALUE = 1e-3
_NO_EIGENVECTOR = 1e-12  # eigenvalue that is 0 up to rounding: its vector is arbitrary


class _Spectral(TakesSparse, ClusterMixin, BaseEstimator):
    """K-means on rows of eigenvectors, scaled to length 1; subclasses compute the eigenvectors."""

    _parameter_constraints = {
        "n_clusters": [COUNT],
        "n_neighbors": [COUNT],
        "random_state": RANDOM_STATE,
    }

    n_clusters: int
    random_state: Any
    labels_: np.ndarray
    # ``_embedding(X, order, rng)`` returns rows of eigenvectors to run k-means on, and a function
    # that computes rows. The rows are those of all samples in canonical order, or of some samples
    _embedding: Any

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data matrix.
        y : None
            Not used, present for API consistency.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are fewer samples or landmarks than clusters, or a parameter is not as
            described.
        """
        X = read_features(self, X)
        rng = make_rng(self.random_state)
        order = canonical_order(X)
        self._exponent = scaling_exponent(X, 2)
        X = divide_by_power(X, self._exponent)
        with (
            one_thread(),  # the number of threads would decide ties and last bits
            config_context(assume_finite=True, skip_parameter_validation=True),
        ):
            rows, self._onto = self._embedding(X, order, rng)
            n_clusters = min(self.n_clusters, len(rows))
            self._kmeans = KMeans(n_clusters, n_init=1, random_state=rng)
            labels = self._kmeans.fit_predict(normalize(rows))
            if len(labels) == X.shape[0]:
                labels = labels[order.first_ranks]
            else:  # the rows are of a part of the samples: label all like new ones
                labels = self._nearest(X)
        self.labels_ = labels
        self._kmeans.labels_ = labels
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters of new samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            New samples.

        Returns
        -------
        ndarray of shape (n_new,), int
            Cluster of every sample.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        """
        check_is_fitted(self)
        X = divide_by_power(read_features(self, X, reset=False), self._exponent)
        with one_thread():
            return self._nearest(X)

    def _nearest(self, X):
        """Return the cluster with the nearest centre for every sample of a validated X."""
        return self._kmeans.predict(normalize(self._onto(X)))


class LandmarkSpectral(_Spectral):
    r"""Spectral clustering with landmarks, as a base clusterer for `NMFConsensus`.

    Landmarks are points that represent the data. Samples are similar if they are near the same
    landmarks. Their similarity is :math:`B \Lambda^{-1} B'`, see
    `nmfcluster.affinity.make_affinity`. Its leading eigenvectors are computed from the eigenvectors
    of a matrix of landmarks, :math:`\Lambda^{-1/2} B'B \Lambda^{-1/2}`. Time and memory therefore
    grow linearly with the number of samples. The rows of the eigenvectors are scaled to length 1
    and clustered by k-means. Isolated samples, which share their landmarks with no other sample,
    are labelled like new samples.

    This is U-SPEC [1]_, except for the choice of the landmarks. The base partitions of U-SENC are
    many such runs, each with other landmarks.

    Read more in the :ref:`User Guide <landmark_bases>`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors.
    n_landmarks : int, default=1_000
        Largest number of landmarks. More landmarks represent the data more closely, and take more
        time. Landmarks are the centres after a few steps of k-means on ten times as many samples.
        There is at most one landmark per four samples, or two per cluster if that is more.
    n_neighbors : int, default=5
        Number of nearest landmarks to which each sample is joined. A larger number makes more
        samples similar to each other.
    random_state : int, RandomState, Generator or None, default=None
        Determines the landmarks and the start of k-means. The result does not depend on the order
        of the samples.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.NMFConsensus : Combines many partitions into one.
    nmfcluster.SSNMFClusterer : Factorizes a similarity that is computed with landmarks.
    nmfcluster.partitions.base_partitions : Runs a base clusterer many times.

    References
    ----------
    .. [1] D. Huang, C.-D. Wang, J.-S. Wu, J.-H. Lai, C.-K. Kwoh. Ultra-scalable spectral clustering
       and ensemble clustering. IEEE Transactions on Knowledge and Data Engineering 32, 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.partitions import LandmarkSpectral
    >>> X, y = make_moons(500, noise=0.05, random_state=0)
    >>> base = LandmarkSpectral(n_landmarks=100)
    >>> options = {"base_n_clusters": (4, 12), "n_estimators": 20, "random_state": 0}
    >>> model = NMFConsensus(2, estimator=base, **options).fit(X)
    >>> adjusted_rand_score(y, model.labels_)
    1.0
    """

    _parameter_constraints = {
        **_Spectral._parameter_constraints,
        "n_landmarks": [COUNT],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_landmarks: int = 1_000,
        n_neighbors: int = 5,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def _embedding(self, X, order, rng):
        X = X[order.samples]
        if self.n_clusters > min(self.n_landmarks, X.shape[0]):
            raise ValueError(
                f"n_clusters={self.n_clusters} must be at most the number of samples and of "
                f"landmarks, got {X.shape[0]} samples and n_landmarks={self.n_landmarks}."
            )
        # if most samples were landmarks, as with few samples, the graph would fall apart
        most = max(X.shape[0] // 4, 2 * self.n_clusters)
        n_landmarks = min(self.n_landmarks, most, X.shape[0])
        make_graph = partial(
            Landmarks,
            n_landmarks=n_landmarks,
            n_neighbors=self.n_neighbors,
            random_state=rng,
            max_parts=1,
            common_width=True,
        )
        graph = make_graph(X)
        # leave isolated samples out of the graph if enough others remain
        connected = graph.similarity.diagonal() <= _ISOLATED
        if not connected.all() and n_landmarks <= connected.sum():
            graph = make_graph(X[connected])
        values, vectors = leading_eigenpairs(graph.similarity, self.n_clusters)
        used = values > _NO_EIGENVECTOR  # fewer if fewer landmarks are in use
        basis = vectors[:, used] / values[used]
        extend = partial(_landmark_sums, graph.rows, graph.project(basis))
        return graph.similarity @ basis, extend


def _landmark_sums(rows, basis, X):
    """Sum rows of a basis over the nearest landmarks of every sample of X, (n_new, r)."""
    return rows(X) @ basis


class GraphSpectral(_Spectral):
    r"""Spectral clustering of a graph of neighbours, as a base clusterer for `NMFConsensus`.

    The graph W holds a random 70 % of the distinct samples, but at most 500. Its entry is 1 for two
    samples if one is among the nearest neighbours of the other, and 0 otherwise. The leading
    eigenvectors of :math:`D^{-1/2} W D^{-1/2}`, where D holds the row sums d of W, are the
    coordinates of these samples. The coordinates of other samples are weighted sums over their
    nearest neighbours N(x) in the graph,

    .. math:: u(x)_c \propto \frac{1}{\lambda_c} \sum_{j \in N(x)} \frac{u_{jc}}{\sqrt{d_j}} ,

    where :math:`\lambda_c` is the eigenvalue of eigenvector c [1]_. The rows of coordinates are
    scaled to length 1 and clustered by k-means [2]_. Time and memory grow linearly with the number
    of samples.

    Read more in the :ref:`User Guide <landmark_bases>`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors.
    n_neighbors : int, default=10
        Largest number of neighbours of each sample in the graph. Fewer neighbours keep small
        clusters apart. If clusters have fewer than 14 samples on average, the number is at
        most three quarters of that average, but at least 3. It is at most a third of the samples of
        the graph.
    random_state : int, RandomState, Generator or None, default=None
        Determines the samples of the graph and the start of k-means. The result does not depend on
        the order of the samples.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.partitions.LandmarkSpectral : Clusters samples by their landmarks.

    References
    ----------
    .. [1] Y. Bengio, J.-F. Paiement, P. Vincent, O. Delalleau, N. Le Roux, M. Ouimet. Out-of-sample
       extensions for LLE, Isomap, MDS, Eigenmaps, and spectral clustering. NIPS 16, 2004.
    .. [2] A. Y. Ng, M. I. Jordan, Y. Weiss. On spectral clustering: analysis and an algorithm.
       NIPS 14, 2002.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from nmfcluster.partitions import GraphSpectral
    >>> X, y = make_moons(500, noise=0.05, random_state=0)
    >>> adjusted_rand_score(y, GraphSpectral(2, random_state=0).fit_predict(X))
    1.0
    """

    def __init__(
        self, n_clusters: int = 8, *, n_neighbors: int = 10, random_state: Any = None
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    def _embedding(self, X, order, rng):
        # draw the samples of the graph among the distinct ones
        n_distinct = len(order.distinct)
        least = min(max(self.n_clusters, self.n_neighbors + 1), n_distinct)
        size = max(least, min(int(_GRAPH_SHARE * n_distinct), _MAX_GRAPH_SIZE))
        drawn = np.sort(rng.permutation(n_distinct)[:size])
        points = X[order.distinct[drawn]]
        # join each to its nearest, and to fewer if clusters are small or samples are few
        usual = min(default_n_neighbors(size, self.n_clusters), size // 3)
        n_neighbors = min(self.n_neighbors, usual) if size > self.n_clusters else 0
        search = NearestNeighbors(n_neighbors=n_neighbors + 1)  # with the sample itself
        nearest = search.fit(points).kneighbors_graph(points)
        W = nearest.maximum(nearest.T)
        # eigenvectors of the normalised graph, and their extension to other samples
        scale = 1 / np.sqrt(row_sums(W))
        normalised = Explicit(W).scaled(scale)
        values, vectors = leading_eigenpairs(normalised, min(self.n_clusters, size))
        used = values > _MIN_EIGENVALUE
        basis = scale[:, None] * (vectors[:, used] / values[used])
        # a search in dense samples needs dense samples: points[:0] shows which storage it has
        return vectors[:, used], partial(_neighbor_sums, search, points[:0], basis)


def _neighbor_sums(search, reference, basis, X):
    """Sum rows of a basis over the nearest neighbours of every sample of X, (n_new, r)."""
    nearest = search.kneighbors_graph(match_storage(X, reference))
    return nearest @ basis
