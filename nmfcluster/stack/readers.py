"""Several similarities of objects as estimators read them: handed in, or made of features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nmfcluster._base import read_features, require_nonnegative
from nmfcluster._utils import validation
from nmfcluster._utils.order import CanonicalOrder, canonical_order
from nmfcluster._utils.storage import is_sparse, largest
from nmfcluster._utils.validation import counted, shown
from nmfcluster.stack.container import SimilarityStack, ViewStack
from nmfcluster.stack.kernels import KernelStack
from nmfcluster.stack.parsing import (
    check_cross,
    check_square,
    cure_of_negative,
    is_similarity,
)

Read = tuple[list[Any], np.ndarray]  # of every source, and which objects each has seen

_FEW = (
    3_000  # objects up to which views that name no kernel have a dense one: 72 MB each
)
_ROWS = 2048  # objects whose similarities are made at a time: their memory is bounded


def read_objects(
    estimator: Any, X: Any, similarities: Any, views: Any
) -> tuple[StackReader, SimilarityStack | ViewStack]:
    """Return the objects of a fit, and the reader of others.

    Views are told from others by their type. Else "precomputed", the `affinity` of an estimator,
    says that `X` holds similarities; of features kernels are made by its `affinity`, `normalize`
    and `n_jobs`. Similarities can be negative where its `criterion` is "agreement".
    """
    if sum(given is not None for given in (X, similarities, views)) > 1:
        told = (
            "X, similarities and views stand for each other: two of them must be None"
        )
        cure = (
            "Cross-validation splits X alone: give it a SimilarityStack, or a ViewStack"
        )
        raise ValueError(f"{told}. {cure}.")
    options = {"normalize": estimator.normalize, "n_jobs": estimator.n_jobs}
    signed = getattr(estimator, "criterion", None) == "agreement"
    objects: SimilarityStack | ViewStack
    if views is not None or isinstance(X, ViewStack) or _is_dict(X):
        objects = _read_views(estimator, X if views is None else views)
        pairs = zip(
            objects.names, _one_a_view(estimator.affinity, objects), strict=True
        )
        stacks = [
            KernelStack([(name, kernel, None)], **options) for name, kernel in pairs
        ]
        return StackReader(objects, stacks, signed), objects
    if similarities is not None or takes_similarities(estimator.affinity):
        given = (
            _read_stack(estimator, X, True, signed)
            if similarities is None
            else similarities
        )
        objects = SimilarityStack(given)
        if objects.shape[0] != objects.shape[1] and estimator.symmetric:
            raise _not_square(objects)
        _keep_sizes(estimator, objects, objects.shape[1])
        return StackReader(objects, signed=signed), objects
    objects = _read_features(estimator, X, reset=True)
    return StackReader(
        None, [KernelStack(estimator.affinity, **options)], signed
    ), objects


def _keep_sizes(estimator: Any, objects: Any, n_features: int) -> None:
    """Keep the number of columns, and the names of objects that have some."""
    estimator.n_features_in_ = n_features
    if objects.index is not None:
        estimator.sample_names_ = np.asarray(objects.index)


def takes_similarities(affinity: Any) -> bool:
    """Return whether an `affinity` says that similarities are handed in."""
    return isinstance(affinity, str) and affinity == "precomputed"


def _is_dict(X: Any) -> bool:
    return isinstance(X, dict) and not is_sparse(X)  # as a matrix by its keys would be


class StackReader:
    """Compares objects with those that a model is fitted to, and reads new ones.

    Objects come as a stack: of their similarities, or of tables, of each of which a `KernelStack`
    makes similarities. Views are several tables, with one kernel each; other features are one
    table, of which kernels can see columns. An estimator keeps its reader, but not the objects.

    Parameters
    ----------
    like : SimilarityStack, ViewStack or None
        What new objects must be like; None: features, which scikit-learn compares.
    kernels : list of KernelStack, default=()
        One a table.
    signed : bool, default=False
        Whether similarities can be negative.

    Attributes
    ----------
    names : tuple of str
        Of the sources, once the model is fitted.
    signed : bool
        Whether similarities can be negative.
    """

    def __init__(self, like: Any, kernels: Any = (), signed: bool = False) -> None:
        self._kernels, self.signed = list(kernels), signed
        self._widths = like.n_features if isinstance(like, ViewStack) else None
        self._columns = None if like is None else like._columns
        self.names: tuple[str, ...] = () if like is None else like.names

    @property
    def labels(self) -> list[str]:
        """What error messages call the sources; of features these are their kernels."""
        kind = "the kernel of source" if self._kernels else "source"
        return [f"{kind} {name!r} of X" for name in self.names]

    def read_new(self, estimator: Any, X: Any) -> SimilarityStack | ViewStack:
        """Return other objects, like those of the fit."""
        new: SimilarityStack | ViewStack
        if not self._kernels:
            new = self._new_similarities(estimator, X)
        elif self._widths is not None:
            new = self._new_views(X, self._widths)
        else:
            new = _read_features(estimator, X, reset=False)
        if not len(new):
            raise ValueError(
                f"X has 0 sample(s) while a minimum of 1 is required, got {new!r}."
            )
        return new

    def _new_similarities(self, estimator: Any, X: Any) -> SimilarityStack:
        """Return the similarities of new objects to all objects of the fit."""
        stack = _read_stack(estimator, X, False, self.signed)
        if stack.shape[1] != estimator.n_features_in_:
            of_fit = f"{type(estimator).__name__} was fitted to {estimator.n_features_in_} objects"
            told = f"X has {counted(stack.shape[1], 'column')}, but {of_fit}"
            raise ValueError(f"{told}: give the similarities to all.")
        own, given = self._columns, stack._columns
        order = validation.order_of(own, given, "X", "what fit was given", "column")
        stack = stack if order is None else stack[:, order]
        n_sources = len(self.names)
        given_names = {self.names, stack.names} - {
            tuple(f"source{i}" for i in range(n_sources))
        }
        if len(stack.names) != n_sources or len(given_names) > 1:
            wanted = f"the sources of fit, in their order, {self.names}"
            raise ValueError(f"X must have {wanted}; got {stack.names}.")
        return stack

    def _new_views(self, X: Any, widths: dict[str, int]) -> ViewStack:
        """Return the views of new objects, in the order of those of the fit."""
        views = ViewStack(X)
        if not isinstance(X, ViewStack | dict) and len(views.names) == len(self.names):
            views.names = self.names  # what has no names is taken by position
        if views.n_features != widths:
            wanted = f"the views of fit, of as many features, {widths}"
            raise ValueError(f"X must hold {wanted}; got {views.n_features}.")
        held = [views.views[views.names.index(name)] for name in self.names]
        return ViewStack._made(held, self.names, views.index)

    def order_of(self, objects: Any) -> CanonicalOrder:
        """Return the order in which objects are fitted."""
        if not self._kernels:
            values, seen = objects.filled(), objects.seen().astype(np.float64)
            if objects.shape[0] != objects.shape[1]:  # columns are others
                return canonical_order(*values, seen)
            return canonical_order(seen, similarities=values)
        read = [
            validation.read_table(view, ensure_all_finite=False)
            for view in objects.views
        ]
        for kernel, table, view in zip(self._kernels, read, objects.views, strict=True):
            kernel._check_missing(table, getattr(view, "columns", None))
        return canonical_order(*read)

    def fitted(
        self, objects: Any, chosen: np.ndarray, reading: Callable[[Any], Any]
    ) -> Read:
        """Return what is read of the similarities of the objects that the model is fitted to.

        `chosen` holds their positions in what `read` returned. A matrix a source, with 0 for NaN,
        is given to `reading`, one after the other: together they can be large. Returns what that
        returned, and which objects each source saw, of shape (n_chosen, L).
        """
        self.names, self._chosen, read, seen = (), chosen, [], []
        for stack in self._squares(objects, chosen):
            self.names += stack.names
            seen.append(stack.seen())
            labels = self.labels[-len(stack.names) :]
            for source, label in zip(stack._held, labels, strict=True):
                check_square(source, label, chosen, self.signed)
                read.append(reading(source.values))
        self._seen = np.hstack(seen)
        return read, self._seen

    def to_chosen(self, objects: Any, numbers: np.ndarray, chosen: np.ndarray) -> Read:
        """Return what `cross` does, without a look at how similar the chosen are to each other."""
        if self._kernels:
            stacks = list(self._squares(objects, chosen))
            self.names = sum((stack.names for stack in stacks), ())
            self._seen = np.hstack([stack.seen() for stack in stacks])
        else:  # the chosen objects are columns
            self._seen = np.ones((len(chosen), objects.shape[2]), dtype=bool)
        self._chosen = chosen
        return self.cross(objects, numbers)

    def cross(self, objects: Any, numbers: np.ndarray) -> Read:
        """Return the similarities of some objects to those that the model is fitted to.

        `numbers` holds their positions. There is a matrix a source, with 0 for NaN, and which of
        these objects each source saw, of shape (n_numbers, L).
        """
        if self._kernels:
            pairs = zip(self._kernels, objects[numbers].views, strict=True)
            held = [
                one for kernel, table in pairs for one in kernel.transform(table)._held
            ]
            stack = SimilarityStack._made(held, self.names)
        else:
            stack = objects[np.ix_(numbers, self._chosen)]
        for source, known, label in zip(
            stack._held, self._seen.T, self.labels, strict=True
        ):
            check_cross(source, known, label, self._chosen, self.signed)
        return list(stack.filled()), stack.seen()

    def blocks(self, objects: Any, numbers: np.ndarray) -> Iterator[Read]:
        """Yield what `cross` returns, of some objects at a time."""
        for start in range(0, len(numbers), _ROWS):
            yield self.cross(objects, numbers[start : start + _ROWS])

    def _squares(self, objects: Any, chosen: np.ndarray) -> Iterator[SimilarityStack]:
        """Yield the similarities of the chosen objects to each other, of some sources at a time."""
        if self._kernels:
            pairs = zip(self._kernels, objects[chosen].views, strict=True)
            yield from (kernel.fit_transform(table) for kernel, table in pairs)
        else:
            for held, name in zip(objects._held, objects.names, strict=True):
                yield SimilarityStack._made(
                    [objects._cut(held, chosen, chosen)], (name,)
                )

    def extended(
        self,
        objects: Any,
        numbers: np.ndarray,
        profile: np.ndarray,
        joined: Callable[[list[Any]], Any],
    ) -> np.ndarray:
        """Return the similarity of some objects to every cluster, (n_numbers, n_clusters).

        It is ``S @ profile`` for the one S that `joined` makes of the sources of `cross`, for some
        rows at a time. The `profile` says what similarity to a fitted object tells of a cluster.
        """
        parts = []
        for sources, _ in self.blocks(objects, numbers):
            with np.errstate(over="ignore", invalid="ignore"):
                parts.append(np.asarray(joined(sources) @ profile))
            if not np.isfinite(parts[-1]).all():
                told = f"too large for their dtype, {sources[0].dtype}"
                most = f"the largest is {max(map(largest, sources)):.3g}"
                raise ValueError(
                    f"X must not hold similarities whose sums are {told}; {most}."
                )
        return np.concatenate(parts)


def _read_stack(estimator: Any, X: Any, reset: bool, signed: bool) -> SimilarityStack:
    """Return X as a stack; its columns are the objects of a fit."""
    listed = isinstance(X, list | tuple) and any(
        getattr(one, "ndim", 0) == 2 for one in X
    )
    array = isinstance(X, np.ndarray) and X.ndim == 3
    if listed or array or isinstance(X, SimilarityStack) or _is_dict(X):
        return SimilarityStack(X)
    X = validation.in_own_order(X, "X")
    form: dict[str, Any] = {"allow_nd": True, "ensure_all_finite": "allow-nan"}
    checked = validation.read_table(X, estimator=estimator, **form)
    stack = SimilarityStack([checked] if checked.ndim == 2 else checked)
    for source in () if signed else stack.filled():
        require_nonnegative(estimator, source, cure_of_negative(source))
    stack.index = validation.sample_names(X)
    stack._columns = validation.row_names(getattr(X, "columns", None))
    named = X if hasattr(X, "columns") else checked
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    return stack


def _read_features(estimator: Any, X: Any, reset: bool) -> ViewStack:
    """Return checked features as one table; a data frame as it is: kernels can name its columns."""
    checked = read_features(estimator, X, reset, ensure_all_finite="allow-nan")
    return ViewStack._made([X if hasattr(X, "columns") else checked], ("features",))


def _read_views(estimator: Any, X: Any) -> ViewStack:
    """Return the tables of a fit, which must not look like similarities."""
    views = ViewStack(X)
    if takes_similarities(estimator.affinity) and all(map(is_similarity, views.views)):
        told = f"the views {list(views.names)} are square and symmetric, as similarities are"
        cure = "give those as a SimilarityStack, or as similarities="
        raise ValueError(
            f"{told}: {cure}. If they are features, name the affinity, 'rbf' say."
        )
    _keep_sizes(estimator, views, sum(views.n_features.values()))
    return views


def _one_a_view(affinity: Any, views: ViewStack) -> list[Any]:
    """Return the kernel of every view."""
    names = views.names
    by_default = "rbf" if len(views) <= _FEW else "nearest_neighbors"
    kernels = by_default if takes_similarities(affinity) else affinity
    if not isinstance(kernels, list):
        return [kernels] * len(names)
    if len(kernels) != len(names) or any(isinstance(item, tuple) for item in kernels):
        wanted = f"a list with the kernel of each of {list(names)}, without columns"
        one = "affinity must be one kernel for all views"
        raise ValueError(f"{one}, or {wanted}; got {shown(kernels)}.")
    return kernels


def _not_square(stack: SimilarityStack) -> ValueError:
    return ValueError(
        "X, or similarities, must hold the similarities of samples to each other, in shape "
        f"(n, n, L) with the L sources in the last axis, got shape {stack.shape}. Features in one "
        "table need another affinity, such as 'nearest_neighbors'; those of several views are "
        "given to fit as views=; similarities to some objects only need symmetric=False."
    )
