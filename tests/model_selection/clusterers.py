"""Samples, and clusterers whose answers are known, for the tests of scorers."""

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

X, Y = make_blobs(120, centers=6 * np.eye(3), cluster_std=1.0, random_state=0)
W = rbf_kernel(X, gamma=0.1)
STACK = np.stack([W, rbf_kernel(X, gamma=0.5)], axis=2)
NAMED = np.column_stack([np.arange(120), X])  # the first column names the sample


def kmeans(n_clusters=3, **parameters):
    return KMeans(n_clusters, **{"n_init": 2, "random_state": 0} | parameters)


class Fragile(KMeans):
    """Can be fitted to samples that it knows, and to nothing else; processes can import it."""

    def __init__(self, n_clusters=3, *, known=None, n_init=1, random_state=None):
        super().__init__(n_clusters, n_init=n_init, random_state=random_state)
        self.known = known

    def fit(self, X, y=None, sample_weight=None):
        if not np.array_equal(X, self.known):
            raise ValueError("too odd")
        return super().fit(X)


class StackClusterer(ClusterMixin, BaseEstimator):
    """K-means on the rows of a mixture of similarities, `weight` that of the first."""

    def __init__(self, n_clusters=3, weight=0.5):
        self.n_clusters = n_clusters
        self.weight = weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def _mixed(self, X):
        X = X.array if isinstance(X, Stack) else X
        return self.weight * X[:, :, 0] + (1 - self.weight) * X[:, :, 1]

    def fit(self, X, y=None):
        mixed = self._mixed(X)
        assert mixed.shape[0] == mixed.shape[1]
        np.testing.assert_allclose(mixed, mixed.T)
        self.model_ = kmeans(self.n_clusters).fit(mixed)
        self.labels_ = self.model_.labels_
        return self

    def predict(self, X):
        return self.model_.predict(self._mixed(X))


class Stack:
    """Has nothing but what splitting asks for."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, key):
        return Stack(self.array[key])


class Told(ClusterMixin, BaseEstimator):
    """Predicts a row of a table, another one for other samples."""

    def __init__(self, table, n_clusters=2):
        self.table = table
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.row_ = int(X[:, 0].sum())
        self.labels_ = np.zeros(len(X), dtype=int)
        return self

    def predict(self, X):
        return np.asarray(self.table)[self.row_ % len(self.table)]
