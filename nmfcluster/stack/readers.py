"""Kernels that compute similarities from features, and readers of the input of estimators.

`KernelStack` is public; estimators read their input with `read_objects`.
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
# largest negative entry that counts as 0, in machine epsilons of the largest entry of its block
_ROUNDING = 1e3
# A column has a larger scale than others if its standard deviation is above _LARGE_SCALE medians.
# Users are warned if such columns have more than _NEARLY_ALL of all variance, as in 3 of 46 real
# data sets, all with different units.
_LARGE_SCALE = 30
_NEARLY_ALL = 0.99
_N_SCALED = 500  # samples from which these variances are computed
# standard deviation relative to the mean up to which a column counts as constant
_CONSTANT = 1e-5
# largest number of objects for which views have a dense kernel by default, of 72 MB
_MAX_DENSE = 3_000
_BLOCK = 2048  # objects per block of similarities; limits memory


class _FittedView(NamedTuple):
    """A source of a fitted `KernelStack`."""

    name: str
    columns: np.ndarray | None
    seen: np.ndarray  # bool: the training samples that the view covers
    means: np.ndarray  # of features, (1, n_features), which replace missing cells
    between: Any  # computes similarities of new samples to these, from features
    empty: Any  # similarities of 0 samples to these, in the storage format of others


class KernelStack(TakesSparse, TransformerMixin, BaseEstimator):
    r"""Compute similarities of samples by several kernels, or from several views of features.

    This transformer turns features into a `SimilarityStack`. Use it in a `Pipeline` before an
    estimator that takes similarities. `fit_transform` returns the similarities of the training
    samples to each other, and `transform` those of new samples to the training samples.
    Cross-validation of the pipeline then splits the features, so that training never uses a
    similarity to a test sample.

    Parameters
    ----------
    kernels : str, callable or list, default="nearest_neighbors"
        A kernel or a list. Each item of a list gives one source; it is a kernel or a triple
        ``(name, kernel, columns)``. A kernel is "linear", "cosine", "rbf", "landmarks" or
        "nearest_neighbors", see `nmfcluster.affinity.make_affinity`, or a callable. A callable
        ``kernel(X, Y)`` returns the similarities of the rows of X to those of Y, dense or sparse,
        as kernels of `sklearn.metrics.pairwise` and `sklearn.gaussian_process.kernels` do.
        `columns` selects the columns of X that the source uses, its view: a slice, a list of ints,
        a mask, or a name or list of names of columns of a data frame.
    gamma : float, default=None
        Larger values limit the similarity of "rbf" kernels to closer samples. By default it is 1
        over the median squared distance of two samples, for each source separately. To use several
        values, pass callables such as ``partial(rbf_kernel, gamma=2)``.
    n_neighbors : int, default=None
        A larger number connects more distant samples. It is the number of neighbours of a sample
        with "nearest_neighbors" (10 by default), or of landmarks of a sample with "landmarks" (5
        by default). If it exceeds the number of others, all are used.
    normalize : bool or "auto", default=False
        Whether to normalise every similarity matrix W to :math:`D^{-1/2} W D^{-1/2}`, with D the
        row sums of W. The diagonal of W is set to 0 before. "auto" normalises "nearest_neighbors"
        only.
    n_jobs : int, default=None
        Number of parallel jobs of the search for neighbours.

    Attributes
    ----------
    names_ : tuple of str
        Names of the sources: those passed, or the names of the kernels.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    SimilarityStack : The container that `transform` returns.

    Notes
    -----
    A source does not cover a sample that is NaN in all columns of its view, or whose sparse row
    stores only NaN. The kernel is then fitted on the other samples. The row and the column of the
    sample are NaN in a dense source, and a single NaN marks them in a sparse source. Other NaN are
    replaced by the mean of their column over the training samples that the view covers.

    ``fit_transform(X)`` can differ from ``fit(X).transform(X)``. Neighbours of a training sample
    are searched among the other training samples, and those of a new sample among all of them.

    There is no `get_feature_names_out` or `set_output`, because a stack has no feature columns.

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
        """Store the samples with which `transform` compares new samples.

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
        """Fit to the samples, and return their similarities to each other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features.
        y : None
            Ignored.

        Returns
        -------
        SimilarityStack of shape (n_samples, n_samples, L)
            The matrices are symmetric. Entries can be negative if those of the kernel can.

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
                # select the features of the view, and the samples that it covers
                label = f"source {name!r} of X"
                numbers, features, seen = _read_view(X, columns, feature_names, label)
                if seen.sum() < 2:
                    raise ValueError(
                        f"{label} must cover at least 2 samples; others are NaN in all of it."
                    )
                if has_nan(features):
                    features = SimpleImputer(keep_empty_features=True).fit_transform(
                        features
                    )
                # imputed cells do not change the means
                means = np.asarray(features.mean(axis=0)).reshape(1, -1)
                # compute similarities, and a function that computes those of new samples
                normalize = self.normalize
                if normalize == "auto":  # normalise only graphs
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
        """Return the similarities of new samples to the samples of `fit`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Features like those of `fit`.

        Returns
        -------
        SimilarityStack of shape (n_new, n_samples, L)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` does not have the type or the number of features of the data of `fit`, or a
            similarity is infinite.
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
        """Return scikit-learn's tags; NaN is allowed for missing values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X, reset):
        """Return features in C order, because sums in the order of data frames round otherwise."""
        return read_features(
            self,
            X,
            reset,
            order="C",
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )


def _warn_of_scales(features, columns, label):
    """Warn if columns with a larger scale than most make up nearly all distances of samples.

    Parameters
    ----------
    features : {ndarray, csr_array} of shape (n, p)
    columns : ndarray of shape (p,)
        Names or numbers of the columns.
    label : str
    """
    with np.errstate(over="ignore", invalid="ignore"):
        some = features[:: -(-features.shape[0] // _N_SCALED)]
        if storage.is_sparse(some):
            means, variances = mean_variance_axis(some, axis=0)
        else:  # checks of StandardScaler would take longer than small kernels
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
        "columns first, for example with StandardScaler."
    )


def _clear_rounding(block):
    """Return similarities as a matrix, with 0 for negative entries if all of these are rounding."""
    block = storage.as_matrix(block)
    rounding = _ROUNDING * float(np.finfo(block.dtype).eps) * storage.max_abs(block)
    if -rounding <= float(block.min()) < 0:
        return block + storage.negative_part(block)
    return block


def _read_kernels(kernels):
    """Return the name, the kernel and the columns of every source; None for all columns.

    A source without a name gets that of its kernel, with a number if several have this name.
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
                "kernels, or affinity, must hold kernels, or triples (name, kernel, columns), "
                f"got {format_value(triple)}."
            )
        name, kernel, _ = triple
        if callable(kernel):
            function = kernel.func if isinstance(kernel, partial) else kernel
            kind = str(getattr(function, "__name__", type(function).__name__))
        elif isinstance(kernel, str) and kernel in _KERNELS:
            kind = kernel
        else:
            raise ValueError(
                f"kernels, or affinity, must be among {_KERNELS}, or callables, "
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
    """Return the columns of a view, the features of the samples that it covers, and their mask.

    Columns are positions, or among the `names` of those of X; positions are returned, or None for
    all.
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
                those = f"are {known}" if known else "have no names; use a data frame"
                raise ValueError(
                    f"{label} takes the column {missing[0]!r}; those of X {those}."
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


# --- the input of estimators ----------------------------------------------------------------------


def read_objects(estimator, X, similarities, views):
    """Return a reader, which also reads new objects later, and the objects of a fit.

    Views are recognised by their type. Other data in `X` are similarities if the `affinity` of the
    estimator is "precomputed", and else features. Kernels of features depend on its `affinity`,
    `normalize` and `n_jobs`. Similarities can be negative if its `criterion` is "agreement".
    """
    if sum(data is not None for data in (X, similarities, views)) > 1:
        raise ValueError(
            "only one of X, similarities and views may be passed; the others must be None. "
            "Cross-validation splits only X; pass it a SimilarityStack or a ViewStack."
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
                "X, or similarities, must hold the similarities of samples to each other, in shape "
                f"(n, n, L) with the L sources in the last axis, got shape {objects.shape}. For a "
                "matrix of features set affinity='rbf'; for several pass a dict of views. For "
                "similarities to some objects only set symmetric=False."
            )
    else:
        objects = _read_features(estimator, X, reset=True)
        kernels.append(KernelStack(affinity, **options))
        return StackReader(estimator.n_features_in_, None, kernels, signed), objects
    return StackReader(n_features, objects, kernels, signed), objects


def _is_dict(X):
    """Return whether X is a dict, other than a sparse matrix in dictionary format."""
    return isinstance(X, dict) and not storage.is_sparse(X)


def _are_views(X, estimator):
    """Return whether X is a list of views.

    With "precomputed" these are data frames that are not square; with kernels any matrices.
    """
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
    """Computes similarities to the objects that a model is fitted to, and reads new objects.

    Objects are in a stack of similarities or of matrices of features. A `KernelStack` for each
    matrix computes similarities from features. Several matrices are views, with one kernel each; a
    single one can have several kernels of some columns. An estimator keeps its reader, but not the
    objects.

    Parameters
    ----------
    n_features : int
        Number of columns of similarities, or of all matrices of features.
    like : SimilarityStack, ViewStack or None
        Stack that new objects must match. None for features in `X`, which scikit-learn checks.
    kernels : list of KernelStack
        One for each matrix of features.
    signed : bool
        Whether similarities can be negative.

    Attributes
    ----------
    n_features : int
    names : tuple of str
        Names of the sources, once the model is fitted.
    signed : bool
        Whether similarities can be negative.
    seen : ndarray of shape (n_chosen, L), bool
        Which of the objects that the model is fitted to each source covers.
    dtype : dtype
        Dtype of the similarities, once the model is fitted.
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
        """Names of the sources, or of their kernels, in error messages."""
        kind = "the kernel of source" if self._kernels else "source"
        return [f"{kind} {name!r} of X" for name in self.names]

    def read_new(self, estimator, X):
        """Return new objects, checked against those of the fit, in the order of its sources."""
        new: SimilarityStack | ViewStack
        if not self._kernels:  # similarities to all objects of the fit
            new = _read_stack(estimator, X, False, self.signed)
            if new.shape[1] != self.n_features:
                raise ValueError(
                    f"X has {format_count(new.shape[1], 'column')}, but "
                    f"{type(estimator).__name__} was fitted to {self.n_features} objects; pass the "
                    "similarities to all of them."
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
                    f"X must have the sources of fit in the same order, {self.names}, got "
                    f"{new.names}. Pass rows of NaN for new objects that a source lacks."
                )
        elif self._widths is not None:
            new = ViewStack(X)
            is_named = isinstance(X, ViewStack | dict)
            if not is_named and len(new.names) == len(self.names):
                new.names = self.names  # views without names are matched by position
            if new.n_features != self._widths:
                raise ValueError(
                    "X must hold the views of fit with the same numbers of features, "
                    f"{self._widths}, got {new.n_features}. Pass rows of NaN for new objects that "
                    "a view lacks."
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
        """Return the canonical order, in which objects are fitted."""
        if self._kernels:
            tables = [
                validation.read_matrix(view, ensure_all_finite=False)
                for view in objects._held
            ]
        else:
            seen = objects.seen().astype(np.float64)
            if objects.shape[0] == objects.shape[1]:
                return canonical_order(seen, similarities=objects.filled())
            tables = [*objects.filled(), seen]  # columns are not the objects
        return canonical_order(*tables)

    def compare_fitted(self, objects, chosen, convert=None):
        """Return the similarities of the objects that the model is fitted to.

        `chosen` holds their positions in `objects`. The matrix of every source, with 0 for NaN, is
        checked and passed to `convert`, whose results are returned. This is done one source after
        the other, because all together can be large. If `convert` is None, nothing is checked or
        returned. The reader stores what it needs to compare new objects with these.
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
        """Return the similarities of some objects to the chosen columns, as `compare` does.

        Similarities between the columns are not checked.
        """
        if self._kernels:
            self.compare_fitted(objects, chosen)
        else:
            self._chosen = chosen
            self.dtype = objects.dtype
            self.seen = np.ones((len(chosen), objects.shape[2]), dtype=bool)
        return self.compare(objects, numbers)

    def compare(self, objects, numbers):
        """Return the similarities of objects at positions `numbers` to the fitted objects."""
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
        """Yield the matrices of `compare`, with 0 for NaN, in blocks of objects."""
        for block in storage.row_blocks(len(numbers), _BLOCK):
            yield self.compare(objects, numbers[block]).filled()


def _read_stack(estimator, X, reset, signed):
    """Return X as a stack, whose columns are the objects of the fit."""
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
    """Return checked features as a stack of one view.

    A data frame stays one, because kernels can select its columns by name.
    """
    read = read_features(estimator, X, reset, ensure_all_finite="allow-nan")
    table = X if hasattr(X, "columns") else read
    return ViewStack._unchecked([table], ("features",))


def _kernels_of_views(affinity, views):
    """Return the kernel of every view; raise an error if the views look like similarities."""
    names = list(views.names)
    kernels = affinity
    if affinity == "precomputed":
        if all(map(is_similarity, views._held)):
            raise ValueError(
                f"the views {names} are square and symmetric, so they look like similarities or "
                "distances D, not features. Pass similarities, such as "
                "numpy.exp(-(D / numpy.median(D)) ** 2), as similarities= or in a SimilarityStack. "
                "For features set an affinity, such as 'rbf'."
            )
        kernels = "rbf" if len(views) <= _MAX_DENSE else "nearest_neighbors"
    if not isinstance(kernels, list):
        return [kernels] * len(names)
    if len(kernels) != len(names) or any(isinstance(item, tuple) for item in kernels):
        raise ValueError(
            "affinity must be one kernel for all views, or a list with one kernel, without "
            f"columns, for each of {names}, got {format_value(kernels)}."
        )
    return kernels
