"""Several similarities of objects: kernels that make them of features, and their readers.

`KernelStack` is what users have; estimators read what they are passed by `read_objects`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import check_is_fitted, validate_data

from nmfcluster._base import fitting, read_features, require_nonnegative
from nmfcluster._compat import N_JOBS, StrOptions, TakesSparse, fit_context
from nmfcluster._utils import storage, validation
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.validation import (
    axis_positions,
    format_count,
    format_value,
    warn,
)
from nmfcluster.affinity import AFFINITIES, AFFINITY_PARAMETERS, make_affinity
from nmfcluster.stack.container import (
    SimilarityStack,
    Source,
    ViewStack,
    check_cross,
    check_square,
    cure_of_negative,
    embed,
    find_seen,
    has_nan,
    is_similarity,
    named_in_errors,
    read_names,
)

_KERNELS = [name for name in AFFINITIES if name not in ("auto", "precomputed")]
# how little below 0 an entry counts as 0, in precisions of the largest entry of its block
_ROUNDING = 1e3
# a column with a standard deviation above so many times the median has another scale, and a
# warning is given if such columns have this share of all variance: of 46 real tables, of three in
# which units differ
_LARGE_SCALE = 30
_NEARLY_ALL = 0.99
_N_SCALED = 500  # samples from which this is computed
# standard deviation relative to the mean up to which a column counts as constant
_CONSTANT = 1e-5
# objects up to which views that name no kernel have a dense one, of 72 MB
_MAX_DENSE = 3_000
_BLOCK = 2048  # objects whose similarities are made at a time, which bounds memory


class _FittedView(NamedTuple):
    """A source of a fitted `KernelStack`."""

    name: str
    columns: np.ndarray | None
    seen: np.ndarray  # bool: the training samples that the view has
    means: np.ndarray  # of features, (1, n_features), put into cells that are missing
    between: Any  # makes similarities to these of features of new samples
    empty: Any  # similarities of 0 samples to these, stored as those of others


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
    source a NaN marks it. So is a row of sparse features that stores NaN, and nothing else. A cell
    that is NaN beside others takes the mean of its column over the training samples that the view
    has.

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
        "gamma": AFFINITY_PARAMETERS["gamma"],
        "n_neighbors": AFFINITY_PARAMETERS["n_neighbors"],
        "normalize": AFFINITY_PARAMETERS["normalize"],
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
            If `X` or a parameter is not as described, or a similarity is infinite.
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
            If `X` or a parameter is not as described, or a similarity is infinite.
        TypeError
            If an item of `kernels` is neither a kernel nor a triple.
        """
        with fitting(self):
            triples = _read_kernels(self.kernels)
            X = self._read(X, reset=True)
            feature_names = getattr(self, "feature_names_in_", None)
            shown = np.arange(X.shape[1]) if feature_names is None else feature_names
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
                if has_nan(features):
                    features = SimpleImputer(keep_empty_features=True).fit_transform(
                        features
                    )
                # means do not change by cells that hold them
                means = np.asarray(features.mean(axis=0)).reshape(1, -1)
                # their similarities, and the way to make those of others to them
                normalize = self.normalize
                if normalize == "auto":  # of graphs alone
                    normalize = kernel == "nearest_neighbors"
                if isinstance(kernel, str):
                    own = slice(None) if numbers is None else numbers
                    _warn_of_scales(features, shown[own], label)
                with named_in_errors(label):
                    affinity = make_affinity(
                        features,
                        kernel,
                        gamma=self.gamma,
                        n_neighbors=self.n_neighbors,
                        normalize=normalize,
                        n_jobs=self.n_jobs,
                    )
                    block = _clear_rounding(affinity.block())
                sources.append(Source(embed(block, seen, seen), seen, seen))
                empty = block[:0].copy()
                views.append(
                    _FittedView(name, numbers, seen, means, affinity.between, empty)
                )
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
            If `X` is not of the kind or width that `fit` was given, or a similarity is
            infinite.
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
                    if has_nan(features):
                        imputer = SimpleImputer(keep_empty_features=True)
                        features = imputer.fit(view.means).transform(features)
                    with named_in_errors(label):
                        block = _clear_rounding(view.between(features))
                whole = embed(block, seen, view.seen)
                sources.append(Source(whole, seen, view.seen))
        return SimilarityStack._unchecked(sources, self.names_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: NaN is what is missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X, reset):
        """Return features, in rows: sums of a data frame's columns round otherwise."""
        return read_features(
            self,
            X,
            reset,
            order="C",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )


def _warn_of_scales(features, columns, label):
    """Warn if columns on another scale than most make up nearly all distances of samples.

    Parameters
    ----------
    features : {ndarray, csr_array} of shape (n, p)
    columns : ndarray of shape (p,)
        Their names, or numbers.
    label : str
    """
    with np.errstate(over="ignore", invalid="ignore"):
        some = features[:: -(-features.shape[0] // _N_SCALED)]
        if storage.is_sparse(some):
            means, variances = mean_variance_axis(some, axis=0)
        else:  # not by StandardScaler, whose checks take longer than small kernels
            means = some.mean(axis=0, dtype=np.float64)
            variances = some.var(axis=0, dtype=np.float64)
        varies = variances > (_CONSTANT * means) ** 2
        if not varies.any():
            return
        variances = np.where(varies, variances, 0)
        median = np.quantile(variances[varies], 0.5, method="lower")
        is_large = variances > _LARGE_SCALE**2 * median
        if not variances[is_large].sum() > _NEARLY_ALL * variances.sum():
            return
    largest = variances.argmax()
    warn(
        f"{label}: nearly all distances come from {format_count(is_large.sum(), 'column')}, such "
        f"as column {columns.tolist()[largest]!r}, whose standard deviation is "
        f"{(variances[largest] / median) ** 0.5:,.0f} times the median. If units differ, scale the "
        "columns first, as StandardScaler does."
    )


def _clear_rounding(block):
    """Return similarities as a matrix, without negative entries if these are all rounding."""
    block = storage.as_matrix(block)
    rounding = _ROUNDING * float(np.finfo(block.dtype).eps) * storage.max_abs(block)
    if -rounding <= float(block.min()) < 0:
        return block + storage.negative_part(block)
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
    triples = []
    kinds = []
    for item in items:
        triple = item if isinstance(item, tuple) else ("", item, None)
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
        triples.append(triple)
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


def _read_view(X, columns, names, label):
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
                those = known or "without names, which data frames have"
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
    return numbers, view[seen], seen


# --- what estimators read -------------------------------------------------------------------------


def read_objects(estimator, X, similarities, views):
    """Return the objects of a fit, and the reader of others.

    Views are known by their type. Otherwise `X` holds similarities if the `affinity` of the
    estimator is "precomputed"; of features kernels are made by its `affinity`, `normalize` and
    `n_jobs`. Similarities can be negative if its `criterion` is "agreement".
    """
    if sum(data is not None for data in (X, similarities, views)) > 1:
        raise ValueError(
            "X, similarities and views stand for each other: two of them must be None. "
            "Cross-validation splits X alone: give it a SimilarityStack, or a ViewStack."
        )
    affinity = estimator.affinity
    options = {"normalize": estimator.normalize, "n_jobs": estimator.n_jobs}
    signed = estimator.criterion == "agreement"
    objects: SimilarityStack | ViewStack
    kernels = []
    if (
        views is not None
        or isinstance(X, ViewStack)
        or _is_dict(X)
        or _are_views(X, estimator)
    ):
        objects = ViewStack(X if views is None else views)
        of_views = zip(objects.names, _kernels_of_views(affinity, objects), strict=True)
        kernels = [KernelStack([(*named, None)], **options) for named in of_views]
        n_features = sum(objects.n_features.values())
    elif similarities is not None or affinity == "precomputed":
        if similarities is None:
            similarities = _read_stack(estimator, X, True, signed)
        objects = SimilarityStack(similarities)
        n_features = objects.shape[1]
        if objects.shape[0] != n_features and estimator.symmetric:
            raise ValueError(
                "For features in one table pass affinity='rbf', and for features in several a dict "
                "of views. Else X, or similarities, must hold the similarities of samples to each "
                "other, in shape (n, n, L) with the L sources in the last axis, got shape "
                f"{objects.shape}; similarities to some objects only need symmetric=False."
            )
    else:
        objects = _read_features(estimator, X, reset=True)
        kernels.append(KernelStack(affinity, **options))
        return StackReader(estimator.n_features_in_, None, kernels, signed), objects
    return StackReader(n_features, objects, kernels, signed), objects


def _is_dict(X):
    """Return whether X is a dict, and no sparse matrix that is stored as one."""
    return isinstance(X, dict) and not storage.is_sparse(X)


def _are_views(X, estimator):
    """Return whether a list holds tables that are no similarities: frames, or any for kernels."""
    if not isinstance(X, list | tuple):
        return False
    shapes = [getattr(one, "shape", ()) for one in X]
    if not shapes or any(len(shape) != 2 for shape in shapes):
        return False
    if estimator.affinity != "precomputed":
        return True
    are_square = all(len(set(shape)) == 1 for shape in shapes)
    has_frame = any(hasattr(one, "columns") for one in X)
    return has_frame and estimator.symmetric and not are_square


class StackReader(validation.SavesIndices):
    """Compares objects with those that a model is fitted to, and reads new ones.

    Objects come as a stack: of their similarities, or of tables, of each of which a `KernelStack`
    makes similarities. Views are several tables, with one kernel each; other features are one
    table, of which kernels can see columns. An estimator keeps its reader, but not the objects.

    Parameters
    ----------
    n_features : int
        Number of columns of similarities, or of all tables.
    like : SimilarityStack, ViewStack or None
        What new objects must be like; None: features, which scikit-learn compares.
    kernels : list of KernelStack
        One a table.
    signed : bool
        Whether similarities can be negative.

    Attributes
    ----------
    n_features : int
    names : tuple of str
        Of the sources, once the model is fitted.
    signed : bool
        Whether similarities can be negative.
    seen : ndarray of shape (n_chosen, L), bool
        Which of the objects that the model is fitted to each source saw.
    dtype : dtype
        Of the similarities, once the model is fitted.
    """

    _indices = ("_columns",)

    seen: np.ndarray
    dtype: np.dtype

    def __init__(self, n_features, like, kernels, signed):
        self.n_features = n_features
        self.signed = signed
        self._kernels = kernels
        self._widths = like.n_features if isinstance(like, ViewStack) else None
        self._columns = None if like is None else like._columns
        self.names: tuple[str, ...] = () if like is None else like.names

    @property
    def labels(self):
        """What error messages call the sources; of features these are their kernels."""
        kind = "the kernel of source" if self._kernels else "source"
        return [f"{kind} {name!r} of X" for name in self.names]

    def read_new(self, estimator, X):
        """Return other objects, like those of the fit, in the order of its sources."""
        new: SimilarityStack | ViewStack
        if not self._kernels:  # similarities to all objects of the fit
            new = _read_stack(estimator, X, False, self.signed)
            if new.shape[1] != self.n_features:
                raise ValueError(
                    f"X has {format_count(new.shape[1], 'column')}, but "
                    f"{type(estimator).__name__} was fitted to {self.n_features} objects: give the "
                    "similarities to all."
                )
            order = validation.row_order(
                self._columns, new._columns, "X", "what fit was given", "column"
            )
            if order is not None:
                new = new[:, order]
            n_sources = len(self.names)
            by_default = read_names(None, n_sources, "source")
            is_same = new.names == self.names or by_default in (new.names, self.names)
            if len(new.names) != n_sources or not is_same:
                raise ValueError(
                    f"X must have the sources of fit, in their order, {self.names}; got "
                    f"{new.names}. One that has not seen the new objects holds rows of NaN."
                )
        elif self._widths is not None:
            new = ViewStack(X)
            is_named = isinstance(X, ViewStack | dict)
            if not is_named and len(new.names) == len(self.names):
                new.names = self.names  # what has no names is taken by position
            if new.n_features != self._widths:
                raise ValueError(
                    f"X must hold the views of fit, of as many features, {self._widths}; got "
                    f"{new.n_features}. A view that lacks the new objects holds rows of NaN."
                )
            tables = [new._held[new.names.index(name)] for name in self.names]
            new = ViewStack._unchecked(tables, self.names, new.index)
        else:
            new = _read_features(estimator, X, reset=False)
        if not len(new):
            raise ValueError(
                f"X has 0 sample(s) while a minimum of 1 is required, got {new!r}."
            )
        return new

    def order_of(self, objects):
        """Return the order in which objects are fitted."""
        if self._kernels:
            tables = [
                validation.read_matrix(view, ensure_all_finite=False)
                for view in objects._held
            ]
        else:
            seen = objects.seen().astype(np.float64)
            if objects.shape[0] == objects.shape[1]:
                return canonical_order(seen, similarities=objects.filled())
            tables = [*objects.filled(), seen]  # columns are no objects
        return canonical_order(*tables)

    def compare_fitted(self, objects, chosen, convert=None):
        """Return the similarities of the objects that the model is fitted to.

        `chosen` holds their positions in `objects`. The matrix of every source, with 0 for NaN,
        is checked, and replaced by what `convert` makes of it, one after the other: together they
        can be large. None: they are not checked, and none is returned. What comparisons of other
        objects with these need is kept.
        """
        self._chosen = chosen
        self.names = ()
        seen = []
        dtypes = []
        converted = []
        for number, name in enumerate(objects.names):
            sources = (objects._cut(objects._held[number], chosen, chosen),)
            names = (name,)
            if self._kernels:
                stack = self._kernels[number].fit_transform(sources[0])
                sources = stack._held
                names = stack.names
            self.names += names
            labels = self.labels[-len(names) :]
            for source, label in zip(sources, labels, strict=True):
                values = source.values
                seen.append(source.rows)
                dtypes.append(values.dtype)
                if convert is not None:
                    check_square(source, label, chosen, self.signed)
                    converted.append(convert(values))
        self.seen = np.column_stack(seen)
        self.dtype = np.result_type(*dtypes)
        return converted

    def compare_with_columns(self, objects, numbers, chosen):
        """Return the similarities of some objects to those that are chosen, as `compare` does.

        These are columns; how similar they are to each other is not checked.
        """
        if self._kernels:
            self.compare_fitted(objects, chosen)
        else:
            self._chosen = chosen
            self.dtype = objects.dtype
            self.seen = np.ones((len(chosen), objects.shape[2]), dtype=bool)
        return self.compare(objects, numbers)

    def compare(self, objects, numbers):
        """Return the similarities of some objects to those that the model is fitted to.

        `numbers` holds their positions.
        """
        if self._kernels:
            held: list[Any] = []
            tables = objects[numbers]._held
            for kernel, table in zip(self._kernels, tables, strict=True):
                held += kernel.transform(table)._held
            stack = SimilarityStack._unchecked(held, self.names)
        else:
            stack = objects[np.ix_(numbers, self._chosen)]
        for source, known, label in zip(
            stack._held, self.seen.T, self.labels, strict=True
        ):
            check_cross(source, known, label, self._chosen, self.signed)
        return stack

    def compare_in_blocks(self, objects, numbers):
        """Yield the matrices of `compare`, with 0 for NaN, of some objects at a time."""
        for block in storage.row_blocks(len(numbers), _BLOCK):
            yield self.compare(objects, numbers[block]).filled()


def _read_stack(estimator, X, reset, signed):
    """Return X as a stack; its columns are the objects of a fit."""
    is_stack = isinstance(X, SimilarityStack) or _is_dict(X)
    if isinstance(X, list | tuple):
        is_stack = any(getattr(one, "ndim", 0) == 2 for one in X)
    elif isinstance(X, np.ndarray):
        is_stack = X.ndim == 3
    if is_stack:
        return SimilarityStack(X)
    X = validation.columns_in_row_order(X, "X")
    read = validation.read_matrix(
        X, estimator=estimator, allow_nd=True, ensure_all_finite="allow-nan"
    )
    stack = SimilarityStack([read] if read.ndim == 2 else read)
    if not signed:
        for source in stack.filled():
            require_nonnegative(estimator, source, cure_of_negative(source))
    stack.index = validation.sample_names(X)
    stack._columns = validation.row_names(getattr(X, "columns", None))
    named = X if hasattr(X, "columns") else read
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    return stack


def _read_features(estimator, X, reset):
    """Return checked features as one table; a data frame as it is: kernels can name its columns."""
    read = read_features(estimator, X, reset, ensure_all_finite="allow-nan")
    table = X if hasattr(X, "columns") else read
    return ViewStack._unchecked([table], ("features",))


def _kernels_of_views(affinity, views):
    """Return the kernel of every view; raise if the views look like similarities."""
    names = list(views.names)
    kernels = affinity
    if affinity == "precomputed":
        if all(map(is_similarity, views._held)):
            raise ValueError(
                f"the views {names} are square and symmetric, as similarities and distances D are: "
                "give similarities as a SimilarityStack, or as similarities=, such as "
                "numpy.exp(-(D / numpy.median(D)) ** 2). If they are features, name the affinity, "
                "'rbf' say."
            )
        kernels = "rbf" if len(views) <= _MAX_DENSE else "nearest_neighbors"
    if not isinstance(kernels, list):
        return [kernels] * len(names)
    if len(kernels) != len(names) or any(isinstance(item, tuple) for item in kernels):
        raise ValueError(
            "affinity must be one kernel for all views, or a list with the kernel of each of "
            f"{names}, without columns; got {format_value(kernels)}."
        )
    return kernels
