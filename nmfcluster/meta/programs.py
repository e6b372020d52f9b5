"""Methods of a fitted NMFMetaCluster: biclusters, programs and data frames."""

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BiclusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import NMFClusterer, membership
from nmfcluster._utils.linalg import nnls_rows
from nmfcluster._utils.storage import as_float64, row_inner_products
from nmfcluster._utils.validation import (
    axis_positions,
    check_count,
    check_shape,
    format_value,
    read_matrix,
)
from nmfcluster.metrics.co_occurrence import confidence, consensus_matrix

# Attributes of a fit that are also true of other clusters of the same samples.
_OF_RUNS = (
    "base_runs_",
    "run_losses_",
    "partitions_",
    "groups_",
    "n_features_in_",
    "feature_names_in_",
    "_row_names_",
    "_column_names_",
)
# Attributes with a value for every cluster.
_OF_CLUSTERS = ("recurrence_", "presence_", "shared_")


class Programs(BiclusterMixin, NMFClusterer):
    """Methods of a fitted model; not an estimator itself.

    Attributes
    ----------
    components_ : ndarray of shape (n_clusters, n_features)
    factor_ : ndarray of shape (n_samples, n_clusters)
    partitions_ : ndarray of shape (n_samples, n_runs)
    """

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the data matrix of given cluster strengths, ``W @ components_``.

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
        W = read_matrix(X)
        check_shape(W, "X, with one for each cluster,", len(self.components_))
        return W @ self.components_

    def top_features(
        self, n_features: int = 10, values: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the strongest columns of every cluster, the strongest first.

        Parameters
        ----------
        n_features : int, default=10
            How many of each; all if there are fewer.
        values : array-like of shape (n_clusters, n_features_in_), default=None
            What they are strong in, such as `feature_scores`; `components_` by default.

        Returns
        -------
        names : ndarray of shape (n_clusters, n_features)
            Their names where X had names, else their numbers.
        weights : ndarray of shape (n_clusters, n_features)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `values` are not of the shape of `components_`.
        TypeError
            If `n_features` is not an integer.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0)
        >>> names, weights = NMFMetaCluster(2, random_state=0).fit(X).top_features(2)
        >>> names.tolist()
        [[0, 2], [3, 5]]
        """
        check_is_fitted(self)
        check_count(n_features, "n_features", 1)
        shape = self.components_.shape
        values = self.components_ if values is None else np.asarray(values)
        if values.shape != shape:
            raise ValueError(f"values must be of shape {shape}, got {values.shape}.")
        order = np.argsort(-values, axis=1, kind="stable")[:, : int(n_features)]
        names = self._column_names_
        names = np.arange(shape[1]) if names is None else np.asarray(names)
        return names[order], np.take_along_axis(values, order, axis=1)

    def without(self, clusters: Any, X: Any) -> Self:
        """Return the model without some clusters, with the strengths of the others refitted.

        Parameters
        ----------
        clusters : array-like of int
            Those to leave out, by number.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of `fit`.

        Returns
        -------
        NMFMetaCluster
            Another one, with those that are left as `fixed_components`, in their order. What
            `fit` says of runs and groups is said of them, too.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If a cluster does not exist, none is left, or `X` has not the shape of `fit`.
        TypeError
            If clusters are not given by number.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(3), [[3.0, 1.0]]).repeat([6, 4, 2], axis=0)
        >>> model = NMFMetaCluster(3, random_state=0).fit(X)
        >>> model.without([1], X).factor_.shape, model.merged([(1, 2)], X).factor_.shape
        ((12, 2), (12, 2))
        """
        check_is_fitted(self)
        k = len(self.components_)
        out = axis_positions(clusters, k, "cluster", "the model")
        rest = np.delete(np.eye(k), out, axis=0)
        if not len(rest):
            raise ValueError(
                f"clusters must leave one at least of {k}, got all of them."
            )
        return self._refit_sums(rest, X)

    def merged(self, groups: Any, X: Any) -> Self:
        """Return the model with some clusters merged, and all strengths refitted.

        What is put together has the place of the first of them, and is the sum of what they are in
        the table.

        Parameters
        ----------
        groups : sequence of sequences of int
            Those to put together, by number, as in ``[(1, 4), (2, 3)]``; each in one group.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of `fit`.

        Returns
        -------
        NMFMetaCluster
            As `without` returns it; what is put together recurs as the surest of them.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If a cluster does not exist or is in two groups, or `X` has not the shape of `fit`.
        TypeError
            If groups are not sequences of numbers.
        """
        check_is_fitted(self)
        if np.ndim(groups) == 0 or any(np.ndim(group) != 1 for group in groups):
            raise TypeError(
                f"groups must be a list of groups, as [(1, 4)], got {format_value(groups)}."
            )
        k = len(self.components_)
        A = np.eye(k)
        absorbed: list[int] = []
        named: list[int] = []
        for group in groups:
            own = np.sort(axis_positions(group, k, "cluster", "the model")).tolist()
            A[own[:1], own] = 1
            absorbed += own[1:]
            named += own
        if len(set(named)) < len(named):
            raise ValueError(
                f"groups must name a cluster once, got {format_value(groups)}."
            )
        return self._refit_sums(np.delete(A, absorbed, axis=0), X)

    def _refit_sums(self, A, X) -> Self:
        """Return the model whose clusters are sums of those of this one, (n_new, k) of 0 and 1."""
        X = self._read(X, reset=False)
        check_shape(X, "X", None, len(self.factor_))
        H = (A * self.factor_.sum(axis=0)) @ self.components_
        other = clone(self).set_params(
            fixed_components=H, n_clusters=len(A), base_n_clusters=None, sparsity=0.0
        )
        other.fit(X)
        for name, value in vars(self).items():
            if name in _OF_RUNS:
                setattr(other, name, value)
            elif name in _OF_CLUSTERS:  # a sum recurs as the surest of its parts
                surest = (value[..., None, :] * A).max(axis=-1)
                setattr(other, name, surest.astype(value.dtype))
        other.correspondence_ = self.correspondence_ @ A.T
        other.confidence_ = confidence(self.partitions_, other.labels_)
        return other

    def to_frames(self) -> tuple[Any, Any]:
        """Return the factors of the table as pandas data frames, with the names that it had.

        Returns
        -------
        usages : DataFrame of shape (n_samples, n_clusters)
            `factor_`, with the names of the rows of X.
        programs : DataFrame of shape (n_clusters, n_features)
            `components_`, with the names of its columns. Clusters are called as
            `get_feature_names_out` calls them; where X had no names, rows and columns have numbers.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import pandas as pd
        >>> from nmfcluster import NMFMetaCluster
        >>> X = pd.DataFrame([[3.0, 0], [1, 0], [0, 2]], index=["a", "b", "c"], columns=["p", "q"])
        >>> usages, programs = NMFMetaCluster(2, random_state=0).fit(X).to_frames()
        >>> usages.round(1)
           nmfmetacluster0  nmfmetacluster1
        a              3.0              0.0
        b              1.0              0.0
        c              0.0              2.0
        """
        check_is_fitted(self)
        pd = import_module("pandas")  # here, as it is needed for nothing else
        clusters = self.get_feature_names_out()
        usages = pd.DataFrame(self.factor_, self._row_names_, clusters)
        programs = pd.DataFrame(self.components_, clusters, self._column_names_)
        return usages, programs

    def feature_profiles(self, X: Any) -> np.ndarray:
        r"""Return what a sample would look like that is in one cluster alone.

        These are the rows of H in the unit of X: the :math:`H \ge 0` with the smallest :math:`\|X -
        MH\|`, M being the memberships of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative, without NaN: the samples of `fit` or others, or their counts by depth.

        Returns
        -------
        ndarray of shape (n_clusters, n_features)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given, or holds NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0)
        >>> model = NMFMetaCluster(2, random_state=0).fit(X)
        >>> model.feature_profiles(X).round(2)[0]
        array([3., 1., 2., 0., 0., 0.])
        """
        X, M = self._with_memberships(X)
        return nnls_rows(X.T @ M, M.T @ M).T

    def feature_scores(self, X: Any) -> np.ndarray:
        """Return how much every column rises with the membership in a cluster, in deviations.

        Coefficients of the linear regression of all columns on all memberships, both with mean 0
        and variance 1: columns that are high everywhere have low scores, as markers should not.
        Memberships sum to 1, so that of all coefficients the smallest are taken.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative, without NaN: the samples of `fit` or others, or their counts by depth.

        Returns
        -------
        ndarray of shape (n_clusters, n_features)
            0 for a column that does not vary.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0) + 1
        >>> model = NMFMetaCluster(2, random_state=0).fit(X)
        >>> np.sign(model.feature_scores(X))[0]
        array([ 1.,  1.,  1., -1., -1., -1.])
        """
        X, M = self._with_memberships(X)
        n = len(M)
        Z = M - M.mean(axis=0)
        spread = Z.std(axis=0)
        Z /= np.where(spread > 0, spread, 1)
        means = np.asarray(X.mean(axis=0)).ravel()
        deviations = np.sqrt(np.maximum(row_inner_products(X.T, X.T) / n - means**2, 0))
        # deviations below 1e-9 of the mean are rounding
        usable = deviations > 1e-9 * np.maximum(means, np.finfo(float).tiny)
        # as memberships sum to 1 an eigenvalue is 0, but for rounding: 1e-9 of the largest is none
        inverse = np.linalg.pinv(Z.T @ Z / n, rcond=1e-9, hermitian=True)
        slopes = inverse @ (X.T @ Z).T / n
        return np.divide(slopes, deviations, out=np.zeros_like(slopes), where=usable)

    def _with_memberships(self, X):
        """Return X as floats of 64 bits, and the memberships of its rows."""
        M = membership(as_float64(self._extend_alone(X)))
        X = as_float64(self._read(X, reset=False))
        if np.isnan(X.sum()):
            raise ValueError(
                "X must not hold NaN here: fill it, as by `inverse_transform`."
            )
        return X, M

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
        chosen = axis_positions(indices, len(self.labels_), "sample", "the model")
        n_runs = self.partitions_.shape[1]
        return consensus_matrix(self.partitions_[chosen], np.full(n_runs, 1 / n_runs))
