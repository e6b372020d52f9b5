"""What all estimators share: parameters, checks, the run of a solver, fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from nmfcluster._arrays.labels import by_size, hard_labels, membership
from nmfcluster._arrays.storage import largest, require_symmetric
from nmfcluster._compat import Interval
from nmfcluster._engine.factorize import Factorization, Plan
from nmfcluster._engine.run import warn_if_not_converged


def numbered(
    memberships: np.ndarray, labels: np.ndarray, counts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give clusters numbers by decreasing size.

    Parameters
    ----------
    memberships : ndarray of shape (n_rows, n_clusters)
    labels : ndarray of shape (n_rows,), int
        -1 for a row in no cluster, which it stays.
    counts : ndarray of shape (n_rows,), default=None
        Number of samples that each row stands for; 1 by default.

    Returns
    -------
    memberships : ndarray of shape (n_rows, n_clusters)
    labels : ndarray of shape (n_rows,), int
    order : ndarray of shape (n_clusters,), int
        What each cluster was called before.
    """
    own = labels >= 0
    order = by_size(labels[own], memberships.shape[1], None if counts is None else counts[own])
    return memberships[:, order], np.where(own, np.argsort(order)[labels], -1), order


class NMFClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of the estimators; not an estimator itself.

    A subclass names its parameters in ``__init__``, adds their constraints, and gives `fit` and
    `_extend`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
    membership_ : ndarray of shape (n_samples, n_clusters)
    core_ : ndarray of shape (n_clusters, n_clusters)
        Where the factorization is symmetric.
    loss_ : float
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
    n_iter_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, None, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    # declared for the type checker; a subclass sets them in __init__
    n_clusters: int
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None
    verbose: int
    coarse_size: int | None  # where the estimator has it

    def _extend(self, X: Any) -> np.ndarray:
        """Return the similarity of new samples to every cluster, (n_new, n_clusters), >= 0."""
        raise NotImplementedError

    def transform(self, X: Any) -> np.ndarray:
        """Return the memberships of samples, from their similarities to the training samples.

        The notes of the class say how these are turned into memberships.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Of the kind that `fit` was given.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Rows sum to 1; a row without any similarity to the training samples is uniform.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given.
        """
        return membership(self._extend_alone(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of samples.

        The training samples are extended like any others, so that their prediction can differ
        from `labels_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Of the kind that `fit` was given.

        Returns
        -------
        ndarray of shape (n_new,), int
            -1 for a sample without any similarity to the training samples.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given.
        """
        return hard_labels(self._extend_alone(X))

    def _extend_alone(self, X: Any) -> np.ndarray:
        """Return `_extend` of `X`, whose last bits do not depend on the number of threads."""
        check_is_fitted(self)
        with threadpool_limits(limits=1, user_api="blas"):
            return self._extend(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.membership_.shape[1])

    def _plan(self, solver: Callable[..., Any], of_loss: bool = False) -> Plan:
        """Return this estimator's parameters as the way to run a solver."""
        return Plan(
            n_clusters=self.n_clusters,
            solver=solver,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
            say=self._say,
            of_loss=of_loss,
        )

    def _keep(
        self,
        found: Factorization,
        memberships: np.ndarray,
        labels: np.ndarray,
        order: np.ndarray,
        depth: int = 0,
    ) -> None:
        """Set the fitted attributes of estimators whose clusters have a core.

        Parameters
        ----------
        found : Factorization
        memberships : ndarray of shape (n_samples, n_clusters)
            As for `_keep_clusters`.
        labels : ndarray of shape (n_samples,), int
        order : ndarray of shape (n_clusters,), int
            Column of `found` that each cluster was.
        depth : int, default=0
            As for `_keep_clusters`.
        """
        self._keep_clusters(found, memberships, labels, depth + 1)
        self.core_ = found.core[np.ix_(order, order)]

    def _keep_clusters(
        self,
        found: Factorization,
        memberships: np.ndarray,
        labels: np.ndarray,
        depth: int = 0,
        n_found: int | None = None,
    ) -> None:
        """Set the fitted attributes that all estimators have.

        Parameters
        ----------
        found : Factorization
        memberships : ndarray of shape (n_samples, n_clusters)
            Rows of its factor, scaled to sum to 1, clusters in their final order.
        labels : ndarray of shape (n_samples,), int
        depth : int, default=0
            Number of calls between `fit` and this one: warnings point at the caller of `fit`.
        n_found : int, default=None
            Number of clusters that are not empty: by default of those that have a label.
        """
        best, name = found.best, type(self).__name__
        warn_if_not_converged(best, name, self.max_iter, found.scale, stacklevel=5 + depth)
        n_found = int(labels.max()) + 1 if n_found is None else n_found
        if n_found < self.n_clusters:
            warnings.warn(
                f"{name} found {n_found} clusters, fewer than n_clusters={self.n_clusters}.",
                ConvergenceWarning,
                stacklevel=4 + depth,
            )
        self.labels_, self.membership_ = labels, memberships
        self.loss_, self.n_iter_ = best.loss, best.n_iter
        self.loss_curve_, self.loss_curves_ = best.history, found.curves

    def _check_n_clusters(self, n_samples: int) -> None:
        if self.n_clusters > n_samples:
            raise ValueError(f"n_clusters={self.n_clusters} must be at most n_samples={n_samples}.")

    def _check_similarity(self, X: Any, name: str = "X", signed: bool = False) -> Any:
        """Return X as a symmetric matrix of floats, dense or CSR; nonnegative unless `signed`."""
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_non_negative=not signed,
        )
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"{name} must be a square kernel matrix of shape (n_samples, n_samples) with "
                f"affinity='precomputed', got {X.shape}."
            )
        require_symmetric(X, f"{name} with affinity='precomputed'")
        if largest(X) == 0:
            raise ValueError(f"{name} must hold a similarity above 0; all entries are 0.")
        return X

    def _check_coarse_size(self) -> None:
        if self.coarse_size is not None and self.coarse_size < self.n_clusters:
            raise ValueError(
                f"coarse_size={self.coarse_size} must be at least n_clusters={self.n_clusters}."
            )

    def _check_not_alone(self, n_samples: int) -> None:
        if n_samples < 2:
            raise ValueError(f"n_samples={n_samples}: at least 2 samples are needed to cluster.")

    def _say(self, message: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {message}")

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Forget an earlier fit for a new one; put it back if the new one does not succeed."""
        before = dict(vars(self))
        for name in before:
            if name.endswith("_") and not name.endswith("__"):  # private ones, too
                delattr(self, name)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
