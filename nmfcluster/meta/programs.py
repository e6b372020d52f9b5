"""What a fit of NMFMetaCluster answers: biclusters, programs, tables."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BiclusterMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from nmfcluster._arrays.arguments import positions
from nmfcluster.partitions.matrix import consensus_matrix


class Programs(BiclusterMixin):
    """What can be asked of a fit; not an estimator itself.

    Attributes
    ----------
    components_ : ndarray of shape (n_clusters, n_features)
    factor_ : ndarray of shape (n_samples, n_clusters)
    rows_, columns_ : ndarray of bool
    labels_ : ndarray of shape (n_samples,)
    partitions_ : ndarray of shape (n_samples, n_runs)
    """

    components_: np.ndarray
    factor_: np.ndarray
    rows_: np.ndarray
    columns_: np.ndarray
    labels_: np.ndarray
    partitions_: np.ndarray

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the table that strengths of clusters stand for, ``W @ components_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_clusters)
            W, as `transform` returns it.

        Returns
        -------
        ndarray of shape (n_new, n_features)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` has not one column a cluster.
        """
        check_is_fitted(self)
        W = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
        if W.shape[1] != (k := len(self.components_)):
            raise ValueError(f"X must have a column for each of {k} clusters, got shape {W.shape}.")
        return W @ self.components_

    def get_indices(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples and the columns of a bicluster.

        Parameters
        ----------
        i : int
            The bicluster, as `labels_` numbers them.

        Returns
        -------
        samples, columns : ndarray of int

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If there is no such bicluster.
        """
        check_is_fitted(self)
        whole = isinstance(i, Integral) and not isinstance(i, bool)
        if not whole or not -len(self.rows_) <= i < len(self.rows_):
            raise ValueError(f"i must be an integer from 0 to {len(self.rows_) - 1}, got {i!r}.")
        return super().get_indices(i)

    def consensus_matrix(self, indices: Any = None) -> np.ndarray:
        """Return how often the runs put two samples together, as a dense array.

        Of every run the strongest cluster of a sample counts, as in Brunet et al. (2004). Give
        it to `nmfcluster.metrics.cophenetic_correlation` to choose the number of clusters; where
        a sample is in no cluster, that of ``np.flatnonzero(model.labels_ >= 0)``.

        Parameters
        ----------
        indices : array-like of int, default=None
            Samples to return it for; all by default, which takes n_samples^2 numbers.

        Returns
        -------
        ndarray of shape (n_indices, n_indices)
            Shares of the runs; NaN if one of the two is in no cluster of any run.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `indices` are not integers in the range of the samples.
        """
        check_is_fitted(self)
        chosen = positions(indices, len(self.labels_), "sample", "the model")
        n_runs = self.partitions_.shape[1]
        return consensus_matrix(self.partitions_[chosen], np.full(n_runs, 1 / n_runs))
