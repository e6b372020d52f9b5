"""Kernels of features that make a `SimilarityStack`, and their names."""

from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import fitting, read_features
from nmfcluster._compat import N_JOBS, StrOptions, TakesSparse, fit_context
from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.storage import as_matrix, max_abs, minimum
from nmfcluster._utils.validation import axis_positions, format_value
from nmfcluster.affinity import AFFINITIES, AFFINITY_PARAMETERS, make_affinity
from nmfcluster.stack.container import (
    SimilarityStack,
    Source,
    embed,
    find_seen,
    first_nan,
    has_nan,
    named_in_errors,
    read_names,
)

_KERNELS = [name for name in AFFINITIES if name not in ("auto", "precomputed")]
_OPTIONS = ("gamma", "n_neighbors", "normalize")  # of `make_affinity`
# how little below 0 an entry counts as 0, in precisions of the largest entry of its block
_ROUNDING = 1e3


class _FittedView(NamedTuple):
    """A source of a fitted `KernelStack`."""

    name: str
    columns: np.ndarray | None
    seen: np.ndarray  # bool: the training samples that the view has
    between: Any  # makes similarities to these of features of new samples
    empty: Any  # similarities of 0 samples to these, stored as those of others


# NaN is not allowed by a tag: it must fill a view
class KernelStack(TakesSparse, TransformerMixin, BaseEstimator):
    r"""Similarities of samples by several kernels, or of several views of their features.

    A transformer from features to a `SimilarityStack`, to be used in a `Pipeline` before an
    estimator that takes similarities: `fit_transform` returns the similarities of the training
    samples to each other, `transform` those of new samples to the training samples.
    Cross-validation of the pipeline then splits features, and no similarity to a test sample is
    ever used in training.

    Parameters
    ----------
    kernels : str, callable or list, default="nearest_neighbors"
        A kernel, or a list with a source in each item: a kernel, or a triple
        ``(name, kernel, columns)``. A kernel is "linear", "cosine", "rbf", "landmarks" or
        "nearest_neighbors", see `nmfcluster.affinity.make_affinity`, or a callable:
        ``kernel(X, Y)`` returns the similarities of the rows of X to those of Y, dense or sparse,
        as kernels of `sklearn.metrics.pairwise` and `sklearn.gaussian_process.kernels` do.
        `columns` are those of X that the source sees, a view: a slice, a list of ints, a mask, or
        a name or list of names of columns of a data frame.
    gamma : float, default=None
        Of "rbf" kernels; 1 over the median squared distance of two samples by default, for each
        source its own. For several values give callables, as ``partial(rbf_kernel, gamma=2)``.
    n_neighbors : int, default=None
        Of "nearest_neighbors" and "landmarks" kernels, 10 and 5 by default; at most all others are
        taken.
    normalize : bool or "auto", default=False
        Whether every similarity W is replaced by :math:`D^{-1/2} W D^{-1/2}`, with D its row sums
        and a diagonal of 0. With "auto" only those by "nearest_neighbors" are.
    n_jobs : int, default=None
        Number of jobs that look for neighbours.

    Attributes
    ----------
    names_ : tuple of str
        Names of the sources: those given, or the names of the kernels.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    SimilarityStack : What it returns.

    Notes
    -----
    A sample that has NaN in all columns of a view is missing from that source: the kernel is
    fitted on the others, and the sample's row, and column, of the source is NaN. In a sparse
    source a NaN marks it. So is a row of sparse features that stores NaN, and nothing else.

    The similarities of training samples to each other and to themselves as new samples need not
    agree: neighbours are searched among the others in the one case, among all in the other, so
    that ``fit_transform(X)`` is not ``fit(X).transform(X)``.

    A stack has no columns that could be named, so there is neither `get_feature_names_out` nor
    `set_output`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import KernelStack
    >>> X = load_iris().data
    >>> kernels = [("sepal", "rbf", [0, 1]), ("petal", "nearest_neighbors", slice(2, 4))]
    >>> views = KernelStack(kernels)
    >>> views.fit_transform(X)
    SimilarityStack(shape=(150, 150, 2), dtype=float64, names=('sepal', 'petal'))
    >>> views.transform(X[:3]).shape
    (3, 150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": [StrOptions(set(_KERNELS)), callable, list],
        **{name: AFFINITY_PARAMETERS[name] for name in _OPTIONS},
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        kernels: Any = "nearest_neighbors",
        *,
        gamma: float | None = None,
        n_neighbors: int | None = None,
        normalize: bool | str = False,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the samples that others will be compared with.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : None
            Ignored.

        Returns
        -------
        KernelStack
            The fitted transformer.

        Raises
        ------
        ValueError
            If `X` or a parameter is not as described, a sample is NaN in part of a view, or a
            similarity is infinite.
        TypeError
            If an item of `kernels` is neither a kernel nor a triple.
        """
        self.fit_transform(X)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: Any, y: Any = None) -> SimilarityStack:
        """Keep the samples, and return their similarities to each other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : None
            Ignored.

        Returns
        -------
        SimilarityStack of shape (n_samples, n_samples, L)
            Its matrices are symmetric, and negative where kernels are.

        Raises
        ------
        ValueError
            If `X` or a parameter is not as described, a sample is NaN in part of a view, or a
            similarity is infinite.
        TypeError
            If an item of `kernels` is neither a kernel nor a triple.
        """
        with fitting(self):
            triples = _read_kernels(self.kernels)
            X = self._read(X, reset=True)
            feature_names = getattr(self, "feature_names_in_", None)
            options = {name: getattr(self, name) for name in _OPTIONS}
            sources = []
            views = []
            for name, kernel, columns in triples:
                # the features of the view, and the samples that it has
                label = f"source {name!r} of X"
                numbers, features, seen = _read_view(X, columns, feature_names, label)
                if seen.sum() < 2:
                    raise ValueError(
                        f"{label} needs at least 2 samples that it has seen."
                    )
                # their similarities, and the way to make those of others to them
                if self.normalize == "auto":  # of graphs alone
                    options["normalize"] = kernel == "nearest_neighbors"
                with named_in_errors(label):
                    affinity = make_affinity(
                        features, kernel, **options, n_jobs=self.n_jobs
                    )
                    block = _clear_rounding(affinity.block())
                sources.append(Source(embed(block, seen, seen), seen, seen))
                empty = block[:0].copy()
                views.append(_FittedView(name, numbers, seen, affinity.between, empty))
            self._views_ = views
            self.names_ = tuple(name for name, _, _ in triples)
        return SimilarityStack._unchecked(sources, self.names_)

    def transform(self, X: Any) -> SimilarityStack:
        """Return the similarities of samples to those that `fit` was given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Features of the kind that `fit` was given.

        Returns
        -------
        SimilarityStack of shape (n_new, n_samples, L)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given, a sample is NaN in part of a
            view, or a similarity is infinite.
        """
        check_is_fitted(self)
        X = self._read(X, reset=False)
        sources = []
        with one_blas_thread():  # as in fit
            for view in self._views_:
                label = f"source {view.name!r} of X"
                _, features, seen = _read_view(X, view.columns, None, label)
                block = view.empty
                if seen.any():
                    with named_in_errors(label):
                        block = _clear_rounding(view.between(features))
                whole = embed(block, seen, view.seen)
                sources.append(Source(whole, seen, view.seen))
        return SimilarityStack._unchecked(sources, self.names_)

    def _check_missing(self, X, feature_names) -> None:
        """Raise if a sample is NaN in part of a view, of features of these names, or None."""
        if not has_nan(X):
            return
        for name, _, columns in _read_kernels(self.kernels):
            _read_view(X, columns, feature_names, f"source {name!r} of X")

    def _read(self, X, reset: bool):
        """Return features, in rows: sums of a data frame's columns round otherwise."""
        return read_features(
            self,
            X,
            reset,
            order="C",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )


def _clear_rounding(block):
    """Return similarities as a matrix, without negative entries if these are all rounding."""
    block = as_matrix(block)
    rounding = _ROUNDING * float(np.finfo(block.dtype).eps) * max_abs(block)
    if -rounding <= float(block.min()) < 0:
        return block - minimum(block, 0)
    return block


def _read_kernels(kernels):
    """Return the name, the kernel and the columns of every source; a column of None is all.

    A source without a name is called by its kernel, with a number where there are several such.
    """
    items = kernels if isinstance(kernels, list) else [kernels]
    if not items:
        raise ValueError(
            "kernels, or affinity, must hold at least one kernel, got an empty list."
        )
    triples = [item if isinstance(item, tuple) else ("", item, None) for item in items]
    kinds = []
    for triple in triples:
        if len(triple) != 3 or not isinstance(triple[0], str):
            raise TypeError(
                "kernels, or affinity, must hold kernels, or triples of a name, a kernel and "
                f"columns, got {format_value(triple)}."
            )
        name, kernel, _ = triple
        if callable(kernel):
            function = kernel.func if isinstance(kernel, partial) else kernel
            kind = str(getattr(function, "__name__", type(function).__name__))
        elif isinstance(kernel, str) and kernel in _KERNELS:
            kind = kernel
        else:
            raise ValueError(
                f"kernels, or affinity, must be of {_KERNELS} or callables, "
                f"got {format_value(kernel)}."
            )
        kinds.append(name or kind)
    named = []
    for i, (name, kernel, columns) in enumerate(triples):
        kind = kinds[i]
        if not name and kinds.count(kind) > 1:
            kind = f"{kind}-{kinds[:i].count(kind) + 1}"
        named.append((kind, kernel, columns))
    with named_in_errors("kernels, or affinity"):
        read_names([name for name, _, _ in named], len(named), "kernel")
    return named


def _read_view(X, columns, names, label: str):
    """Return the columns of a view, its features of the samples that have any, and which do.

    Columns, by position or by the `names` of those of X, are returned as positions; None: all.
    """
    numbers = None
    view = X
    if columns is not None:
        listed = columns.tolist() if hasattr(columns, "tolist") else columns
        if isinstance(listed, str):
            listed = [listed]
        if isinstance(listed, list | tuple) and listed and isinstance(listed[0], str):
            known = [] if names is None else list(names)
            missing = [name for name in listed if name not in known]
            if missing:
                those = "without names, which data frames have"
                if known:
                    those = format_value(known)
                raise ValueError(
                    f"{label} takes the column {missing[0]!r}; those of X are {those}."
                )
            listed = [known.index(name) for name in listed]
        numbers = axis_positions(listed, X.shape[1], "column", label)
        if not len(numbers):
            raise ValueError(
                f"{label} must have at least one column, got {format_value(columns)}."
            )
        view = X[:, numbers]
    if not has_nan(view):
        return numbers, view, np.ones(X.shape[0], dtype=bool)
    seen = find_seen(view)[0]
    view = view[seen]
    stray = first_nan(view)
    if stray is not None:
        sample = np.flatnonzero(seen)[stray[0]]
        raise ValueError(
            f"{label} has NaN in some features of sample {sample} and numbers in others; only a "
            "sample that is NaN in all columns of a view is missing from it. SimpleImputer puts "
            "in numbers."
        )
    return numbers, view, seen
