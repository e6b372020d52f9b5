"""Several similarities of objects as estimators read them: passed, or made of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nmfcluster._base import read_features, require_nonnegative
from nmfcluster._utils import validation
from nmfcluster._utils.order import CanonicalOrder, canonical_order
from nmfcluster._utils.storage import is_sparse
from nmfcluster._utils.validation import format_count, format_value
from nmfcluster.stack.container import (
    SimilarityStack,
    ViewStack,
    check_cross,
    check_square,
    cure_of_negative,
    is_similarity,
    read_names,
)
from nmfcluster.stack.kernels import KernelStack

# objects up to which views that name no kernel have a dense one, of 72 MB
_MAX_DENSE = 3_000
_BLOCK = 2048  # objects whose similarities are made at a time, which bounds memory


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
    signed = getattr(estimator, "criterion", None) == "agreement"
    objects: SimilarityStack | ViewStack
    kernels = []
    if views is not None or isinstance(X, ViewStack) or _is_dict(X):
        objects = ViewStack(X if views is None else views)
        of_views = _kernels_of_views(affinity, objects)
        for name, kernel in zip(objects.names, of_views, strict=True):
            kernels.append(KernelStack([(name, kernel, None)], **options))
        n_features = sum(objects.n_features.values())
    elif similarities is not None or affinity == "precomputed":
        if similarities is None:
            similarities = _read_stack(estimator, X, True, signed)
        objects = SimilarityStack(similarities)
        n_features = objects.shape[1]
        if objects.shape[0] != n_features and estimator.symmetric:
            raise ValueError(
                "X, or similarities, must hold the similarities of samples to each other, in shape "
                f"(n, n, L) with the L sources in the last axis, got shape {objects.shape}. "
                "Features in one table need another affinity, such as 'nearest_neighbors'; those "
                "of several views are given to fit as views=; similarities to some objects only "
                "need symmetric=False."
            )
    else:
        objects = _read_features(estimator, X, reset=True)
        kernels.append(KernelStack(affinity, **options))
        return StackReader(estimator.n_features_in_, None, kernels, signed), objects
    return StackReader(n_features, objects, kernels, signed), objects


def _is_dict(X) -> bool:
    return isinstance(X, dict) and not is_sparse(X)  # as a matrix by its keys would be


class StackReader:
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

    seen: np.ndarray
    dtype: np.dtype

    def __init__(
        self, n_features: int, like, kernels: list[KernelStack], signed: bool
    ) -> None:
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
                    f"{new.names}."
                )
        elif self._widths is not None:
            new = ViewStack(X)
            is_named = isinstance(X, ViewStack | dict)
            if not is_named and len(new.names) == len(self.names):
                new.names = self.names  # what has no names is taken by position
            if new.n_features != self._widths:
                raise ValueError(
                    f"X must hold the views of fit, of as many features, {self._widths}; got "
                    f"{new.n_features}."
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

    def order_of(self, objects) -> CanonicalOrder:
        """Return the order in which objects are fitted."""
        if self._kernels:
            tables = []
            for kernel, view in zip(self._kernels, objects._held, strict=True):
                table = validation.read_matrix(view, ensure_all_finite=False)
                kernel._check_missing(table, getattr(view, "columns", None))
                tables.append(table)
        else:
            seen = objects.seen().astype(np.float64)
            if objects.shape[0] == objects.shape[1]:
                return canonical_order(seen, similarities=objects.filled())
            tables = [*objects.filled(), seen]  # columns are no objects
        return canonical_order(*tables)

    def compare_fitted(
        self,
        objects,
        chosen,
        convert: Callable[[Any], Any] | None = None,
        only_fit: bool = False,
    ):
        """Return the similarities of the objects that the model is fitted to.

        `chosen` holds their positions in `objects`. The matrix of every source, with 0 for NaN,
        is replaced by what `convert` makes of it, one after the other: together they can be large.
        With `only_fit` they are not checked, and none is returned. What comparisons of other
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
                if not only_fit:
                    check_square(source, label, chosen, self.signed)
                    converted.append(values if convert is None else convert(values))
        self.seen = np.column_stack(seen)
        self.dtype = np.result_type(*dtypes)
        return converted

    def compare_with_columns(self, objects, numbers, chosen) -> SimilarityStack:
        """Return the similarities of some objects to those that are chosen, as `compare` does.

        These are columns; how similar they are to each other is not checked.
        """
        if self._kernels:
            self.compare_fitted(objects, chosen, only_fit=True)
        else:
            self._chosen = chosen
            self.dtype = objects.dtype
            self.seen = np.ones((len(chosen), objects.shape[2]), dtype=bool)
        return self.compare(objects, numbers)

    def compare(self, objects, numbers) -> SimilarityStack:
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
        for start in range(0, len(numbers), _BLOCK):
            yield self.compare(objects, numbers[start : start + _BLOCK]).filled()


def _read_stack(estimator, X, reset: bool, signed: bool) -> SimilarityStack:
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


def _read_features(estimator, X, reset: bool) -> ViewStack:
    """Return checked features as one table; a data frame as it is: kernels can name its columns."""
    read = read_features(estimator, X, reset, ensure_all_finite="allow-nan")
    table = X if hasattr(X, "columns") else read
    return ViewStack._unchecked([table], ("features",))


def _kernels_of_views(affinity, views: ViewStack):
    """Return the kernel of every view; raise if the views look like similarities."""
    names = list(views.names)
    kernels = affinity
    if affinity == "precomputed":
        if all(map(is_similarity, views._held)):
            raise ValueError(
                f"the views {names} are square and symmetric, as similarities are: give those as a "
                "SimilarityStack, or as similarities=. If they are features, name the affinity, "
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
