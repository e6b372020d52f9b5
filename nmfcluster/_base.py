"""Base class of the estimators, and functions that all of them use to read data and fit."""

from contextlib import contextmanager
from functools import partial, wraps
from importlib import import_module
from inspect import signature
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn import base
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from nmfcluster._compat import (
    CALLBACKS,
    COUNT,
    N_JOBS,
    RANDOM_STATE,
    CallbackSupport,
    Interval,
)
from nmfcluster._optim.run import WINDOW, SolverConfig, recent_decrease
from nmfcluster._utils import storage, validation
from nmfcluster._utils.linalg import share_blocks
from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.progress import reporting
from nmfcluster._utils.validation import SavesIndices, format_count, make_rng, warn


@contextmanager
def fitting(estimator):
    """Remove an earlier fit, and restore it if the new fit fails.

    BLAS uses one thread, so that the result does not depend on the number of threads. Instead,
    `n_jobs` threads share the blocks of large arrays. Underflow gives 0, even if numpy is set to
    raise. Yields the random generator of the fit.
    """
    before = dict(vars(estimator))
    numpy_ints = {
        name: value
        for name, value in before.items()
        if isinstance(value, np.integer) and not name.endswith("_")
    }
    try:
        # NumPy's small integers would wrap around.
        vars(estimator).update({name: int(v) for name, v in numpy_ints.items()})
        # Remove the attributes of the earlier fit, private ones too.
        for name in before:
            if name.endswith("_") and not name.endswith("__"):
                delattr(estimator, name)
        blocks = share_blocks(getattr(estimator, "n_jobs", None))
        quiet = np.errstate(under="ignore")
        with reporting(estimator), one_blas_thread(), quiet, blocks:
            yield make_rng(getattr(estimator, "random_state", None))
        vars(estimator).update(numpy_ints)
    except BaseException:
        callbacks = {
            name: value for name, value in vars(estimator).items() if name in CALLBACKS
        }
        estimator.__dict__.clear()
        estimator.__dict__.update(before | callbacks)
        raise


def read_features(estimator, X, reset=True, **checks):
    """Return X as floats, dense or CSR; `checks` are options of `validate_data`."""
    # scikit-learn compares feature names only if all are strings
    if not reset and not hasattr(estimator, "feature_names_in_"):
        names = getattr(estimator, "_names_", None)
        X = validation.reorder_columns(names, X, "X", "fit's samples")
    if reset:
        validation.warn_of_ids(X)
    check = partial(validate_data, estimator, reset=reset)
    return validation.read_matrix(X, check=check, **checks)


def require_nonnegative(estimator, X, cure):
    """Raise if an entry is negative; NaN is allowed. `cure` is the advice of the message."""
    values = storage.stored_values(X)
    negative = values[values < 0]
    if len(negative):
        name = type(estimator).__name__
        n_entries = X.shape[0] * X.shape[1]
        raise ValueError(
            f"Negative values in data passed to X in {name}: {len(negative):,} of "
            f"{n_entries:,} entries, down to {negative.min():.3g}; {cure}."
        )


def read_similarity(estimator, X, signed=False):
    """Return X as a square matrix of floats, dense or CSR; nonnegative unless `signed`.

    It is divided by a power of two if sums of fourth powers of its entries would overflow or
    underflow. This is allowed because the unit of similarities is arbitrary.
    """
    X = validation.columns_in_row_order(X, "X")
    estimator._names_ = validation.row_names(getattr(X, "columns", None))
    X = read_features(estimator, X, ensure_all_finite="allow-nan")
    if not signed:
        require_nonnegative(estimator, X, "similarities are at least 0")
    n_missing = np.isnan(storage.stored_values(X)).sum()
    if n_missing:
        raise ValueError(
            f"X contains NaN in {format_count(n_missing, 'entry')}. In a consensus_matrix, NaN "
            "marks two samples that no partition includes together: raise n_estimators or "
            "max_samples, or pass partitions_ as X with affinity='partitions', which allows "
            "such pairs."
        )
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            "X must be a square kernel matrix of shape (n_samples, n_samples) with "
            f"affinity='precomputed', got {X.shape}."
        )
    warn_of_distances(X, "X")
    if storage.max_abs(X) == 0:
        raise ValueError("X must hold a similarity above 0; all entries are 0.")
    return storage.scale_to_range(X)


def warn_of_distances(array, name):
    """Warn if an array of similarities or features looks like distances."""
    if storage.looks_like_distances(array):
        warn(
            f"{name} is 0 on the diagonal and above 0 elsewhere, like distances D. If it holds "
            "distances, pass similarities, such as numpy.exp(-(D / numpy.median(D)) ** 2)."
        )


def membership(H):
    """Scale the rows of a nonnegative matrix to sum to 1; a row of zeros becomes uniform."""
    total = H.sum(axis=1, keepdims=True)
    shares = storage.safe_ratio(H, total)
    shares[total[:, 0] <= 0] = 1 / H.shape[1]
    return shares


def hard_labels(H):
    """Return the index of the largest entry of every row, or -1 for a row of zeros."""
    return np.where(H.max(axis=1) > 0, H.argmax(axis=1), -1)


def number_by_size(memberships, labels, counts=None):
    """Renumber clusters by decreasing size; empty ones come last.

    Parameters
    ----------
    memberships : ndarray of shape (n_rows, n_clusters)
    labels : ndarray of shape (n_rows,), int
        Rows in no cluster have label -1, and keep it.
    counts : ndarray of shape (n_rows,), default=None
        Number of samples that each row represents; 1 by default.

    Returns
    -------
    memberships : ndarray of shape (n_rows, n_clusters)
    labels : ndarray of shape (n_rows,), int
    order : ndarray of shape (n_clusters,), int
        The old number of each cluster.
    """
    has_cluster = labels >= 0
    weights = None if counts is None else counts[has_cluster]
    n_clusters = memberships.shape[1]
    sizes = np.bincount(labels[has_cluster], weights=weights, minlength=n_clusters)
    order = np.argsort(-sizes, kind="stable")  # clusters of equal size keep their order
    numbers = np.where(has_cluster, np.argsort(order)[labels], -1)
    return memberships[:, order], numbers, order


class ExplainsParameters:
    """Base class that explains what to use instead of a parameter that does not exist."""

    _advice = {
        "verbose": "progress is logged by the logger 'nmfcluster', and "
        "logging.basicConfig(level=logging.INFO) prints it",
        "k": "the number of clusters is n_clusters",
        "n_components": "the number of clusters, or components, is n_clusters",
    }

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        init = cls.__init__
        names = signature(init).parameters

        # not in __new__, as the documentation would show its signature
        @wraps(init)
        def explaining(self, *args, **parameters):
            for name in parameters.keys() & self._advice.keys() - names.keys():
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}: "
                    f"{self._advice[name]}."
                )
            init(self, *args, **parameters)

        cls.__init__ = explaining  # type: ignore[method-assign]


class NMFClusterer(
    ExplainsParameters,
    SavesIndices,
    CallbackSupport,
    base.ClassNamePrefixFeaturesOutMixin,
    base.TransformerMixin,
    base.ClusterMixin,
    base.BaseEstimator,
):
    """Base class of the estimators.

    A subclass sets its parameters in ``__init__``, adds their constraints, and defines `fit` and
    `_extend`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
    membership_ : ndarray of shape (n_samples, n_clusters)
    core_ : ndarray of shape (n_clusters, n_clusters)
        Only if the factorization is symmetric.
    loss_ : float
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
    n_iter_ : int
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [COUNT],
        "n_init": [COUNT],
        "max_iter": [COUNT],
        "tol": [Interval(Real, None, None, closed="neither")],
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
    }

    _indices = ("_names_", "_row_names_", "_column_names_")
    loss_curves_: list[np.ndarray]  # for mypy, which does not infer it from `fit`
    _display = "ConsensusMatrixDisplay"  # class that `plot` uses

    def __init__(
        self,
        n_clusters,
        n_init,
        max_iter,
        tol,
        random_state,
        n_jobs,
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init  # an int, or a value that a subclass converts to one
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _extend(self, X):
        """Return the similarity of new samples to every cluster, (n_new, n_clusters), >= 0."""
        raise NotImplementedError

    def fit_predict(self, X: Any = None, y: Any = None, **given: Any) -> np.ndarray:
        """Cluster the samples, and return the cluster of each.

        Parameters
        ----------
        X, y, **given : passed to `fit`

        Returns
        -------
        ndarray of shape (n_samples,), int
            `labels_`.
        """
        return self.fit(X, y, **given).labels_  # in the library of X

    def transform(self, X: Any) -> np.ndarray:
        """Return the soft cluster memberships of samples.

        They are computed from the similarities of the samples to the training samples. The Notes of
        the class describe the rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Data of the kind that was passed to `fit`.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Rows sum to 1. The row of a sample that is similar to no training sample is uniform.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not the kind of data that was passed to `fit`, or has a different number of
            features.
        """
        with np.errstate(under="ignore"):
            return membership(self._extend_alone(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each sample.

        Training samples are treated as new samples, so their predictions can differ from `labels_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Data of the kind that was passed to `fit`.

        Returns
        -------
        ndarray of shape (n_new,), int
            The cluster of each sample; -1 for a sample that is similar to no training sample.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not the kind of data that was passed to `fit`, or has a different number of
            features.
        """
        return hard_labels(self._extend_alone(X))

    def plot(self, ax: Any = None) -> Any:
        """Draw the result of the fit with a class of `nmfcluster.display`.

        `SimilarityFusionNMF` shows the weights of its sources, and the others show how often two
        samples are in one cluster. The `from_estimator` methods of the displays have more options.
        For example, `BiclusterDisplay.from_estimator(model, X)` shows the biclusters of an
        `NMFMetaCluster`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        ConsensusMatrixDisplay or SourceWeightsDisplay
            The drawn display.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ImportError
            If matplotlib is not installed.
        """
        # imported by name, as displays are in a layer above the estimators
        display = getattr(import_module("nmfcluster.display"), self._display)
        return display.from_estimator(self, ax=ax)

    def _extend_alone(self, X):
        """Return `_extend` of `X`, with one BLAS thread and 0 for underflow as in a fit."""
        check_is_fitted(self)
        with one_blas_thread(), np.errstate(under="ignore"):
            return self._extend(X)

    @property
    def _n_features_out(self):
        return int(self.membership_.shape[1])

    def _solver_config(
        self,
        solver,
        relative_to_loss=False,
        n_init=None,
    ):
        """Return the configuration of a solver with the parameters of this estimator."""
        if n_init is None:
            n_init = self.n_init
        return SolverConfig(
            n_clusters=self.n_clusters,
            solver=solver,
            n_init=n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
            relative_to_loss=relative_to_loss,
        )

    def _warn_unless_converged(self, factorization, n_found, cure=""):
        """Warn if the kept run did not converge, or clusters are missing.

        Parameters
        ----------
        factorization : Factorization
        n_found : int
            Number of clusters that are neither empty nor equal to another.
        cure : str, default=""
            Advice that ends the warning of fewer clusters.
        """
        name = type(self).__name__
        best = factorization.best
        if not best.converged and self.tol >= 0:  # a negative tol requests all updates
            # the decrease relative to a loss that is nearly 0 is infinite
            with np.errstate(over="ignore"):
                decrease = recent_decrease(best.history) / (factorization.scale or 1)
            reason = "these are too few to judge"
            if decrease > self.tol:
                reason = (
                    f"the loss still fell by {decrease:.1e} of its scale over the last "
                    f"{min(WINDOW, best.n_iter)}"
                )
            warn(
                f"{name} did not converge within max_iter={self.max_iter} updates: "
                f"{reason}. Increase max_iter or tol.",
                ConvergenceWarning,
            )
        if n_found < self.n_clusters:
            warn(
                f"{name} found {format_count(n_found, 'cluster')}, fewer than "
                f"n_clusters={self.n_clusters}.{cure}",
                ConvergenceWarning,
            )

    def _check_n_clusters(self, n_samples, n_fixed=0):
        if self.n_clusters - n_fixed > n_samples:
            most = f"n_samples={n_samples}"
            if n_fixed:
                most += f", not counting {n_fixed} fixed ones"
            raise ValueError(f"n_clusters={self.n_clusters} must be at most {most}.")

    def _check_not_alone(self, n_samples):
        if n_samples < 2:
            raise ValueError(
                f"n_samples={n_samples}: at least 2 samples are needed to cluster."
            )
