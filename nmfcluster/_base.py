"""What all estimators share: reading, the context of a fit, parameters, fitted attributes."""

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
    """Forget an earlier fit for a new one, and put it back if the new one does not succeed.

    BLAS has one thread from the first sum to the last, so that the result does not depend on
    their number; blocks of large arrays are shared by `n_jobs` threads. What underflows is 0, even
    where numpy was told to raise. Yields the generator that all randomness of a fit is drawn from.
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
        # Forget the earlier fit, its private attributes too.
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
    """Return X as floats, dense or CSR; `checks` are further options of `validate_data`."""
    # scikit-learn compares feature names that are all strings
    if not reset and not hasattr(estimator, "feature_names_in_"):
        names = getattr(estimator, "_names_", None)
        X = validation.reorder_columns(names, X, "X", "fit's samples")
    if reset:
        validation.warn_of_ids(X)
    check = partial(validate_data, estimator, reset=reset)
    return validation.read_matrix(X, check=check, **checks)


def require_nonnegative(estimator, X, cure):
    """Raise if an entry is negative, which NaN is not; `cure` says what to do about it."""
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

    It is divided by a power of two where its largest entry is too large, or too small, for sums
    of fourth powers: similarities have no unit.
    """
    X = validation.columns_in_row_order(X, "X")
    estimator._names_ = validation.row_names(getattr(X, "columns", None))
    X = read_features(estimator, X, ensure_all_finite="allow-nan")
    if not signed:
        require_nonnegative(estimator, X, "similarities are at least 0")
    n_missing = np.isnan(storage.stored_values(X)).sum()
    if n_missing:
        raise ValueError(
            f"X contains NaN in {format_count(n_missing, 'entry')}. Where it is a "
            "consensus_matrix, these pairs were never in one run: raise n_estimators or "
            "max_samples, or give partitions_ with affinity='partitions', which counts the pairs "
            "that were seen."
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
    """Warn where what should be similarities looks like distances."""
    if storage.looks_like_distances(array):
        warn(
            f"{name} is 0 on the diagonal and above 0 elsewhere, as distances D are. If so, "
            "give similarities, such as numpy.exp(-(D / numpy.median(D)) ** 2)."
        )


def membership(H):
    """Scale the rows of a nonnegative matrix to sum to 1; a row of zeros becomes uniform."""
    total = H.sum(axis=1, keepdims=True)
    shares = storage.safe_ratio(H, total)
    shares[total[:, 0] <= 0] = 1 / H.shape[1]
    return shares


def hard_labels(H):
    """Return the column with the largest entry of every row, -1 for a row of zeros."""
    return np.where(H.max(axis=1) > 0, H.argmax(axis=1), -1)


def number_by_size(memberships, labels, counts=None):
    """Give clusters numbers by decreasing size; empty ones come last.

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
        The earlier number of each cluster.
    """
    has_cluster = labels >= 0
    weights = None if counts is None else counts[has_cluster]
    n_clusters = memberships.shape[1]
    sizes = np.bincount(labels[has_cluster], weights=weights, minlength=n_clusters)
    order = np.argsort(-sizes, kind="stable")  # equal ones keep their order
    numbers = np.where(has_cluster, np.argsort(order)[labels], -1)
    return memberships[:, order], numbers, order


class ExplainsParameters:
    """Base of estimators that explain what to do instead of setting a parameter they lack."""

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

        # not in __new__, whose signature documentation would show
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
        "n_clusters": [COUNT],
        "n_init": [COUNT],
        "max_iter": [COUNT],
        "tol": [Interval(Real, None, None, closed="neither")],
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
    }

    _indices = ("_names_", "_row_names_", "_column_names_")
    loss_curves_: list[np.ndarray]  # what mypy would not infer of a fit
    _display = "ConsensusMatrixDisplay"  # of `plot`

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
        self.n_init = n_init  # an int, or what a subclass makes one of
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
        X, y, **given : as for `fit`

        Returns
        -------
        ndarray of shape (n_samples,), int
            `labels_`.
        """
        return self.fit(X, y, **given).labels_  # of another library where X is

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
        with np.errstate(under="ignore"):
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

    def plot(self, ax: Any = None) -> Any:
        """Draw what the fit found, by a class of `nmfcluster.display`.

        `SimilarityFusionNMF` shows the weights of its sources, and the others show how often two
        samples are in one cluster. `from_estimator` of a display has more options, and
        `BiclusterDisplay.from_estimator(model, X)` shows the biclusters of an `NMFMetaCluster`.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusMatrixDisplay or SourceWeightsDisplay
            The picture, drawn.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ImportError
            If matplotlib is not installed.
        """
        # imported by its name, as pictures stand above all estimators
        display = getattr(import_module("nmfcluster.display"), self._display)
        return display.from_estimator(self, ax=ax)

    def _extend_alone(self, X):
        """Return `_extend` of `X`, in the context of numbers that a fit has."""
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
        """Return how this estimator's parameters say that a solver is run."""
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
            What a warning of fewer clusters adds.
        """
        name = type(self).__name__
        best = factorization.best
        if not best.converged and self.tol >= 0:  # a negative one asks for all updates
            decrease = recent_decrease(best.history) / (factorization.scale or 1)
            reason = "they are too few to tell"
            if decrease > self.tol:
                reason = (
                    f"the loss still fell by {decrease:.1e} of its scale over the last "
                    f"{WINDOW}"
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
                most += f" beside {n_fixed} fixed ones"
            raise ValueError(f"n_clusters={self.n_clusters} must be at most {most}.")

    def _check_not_alone(self, n_samples):
        if n_samples < 2:
            raise ValueError(
                f"n_samples={n_samples}: at least 2 samples are needed to cluster."
            )
