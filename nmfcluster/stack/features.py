"""Features as estimators read them that take several similarities: one table, or several views."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import counted, shown, warn
from nmfcluster._arrays.storage import as_float, asymmetry, is_sparse
from nmfcluster._arrays.tables import order_of, row_names
from nmfcluster._base import read_features
from nmfcluster._compat import num_samples, take_samples
from nmfcluster.affinity import MAKING
from nmfcluster.stack.container import SimilarityStack
from nmfcluster.stack.kernels import KernelStack
from nmfcluster.stack.reading import SimilarityReader, StackReader, check_handed_in
from nmfcluster.stack.views import ViewStack

_OF_VIEWS = "nearest_neighbors"  # kernel of views, where none is named
_MANY = 20_000  # objects: a dense source of more, which is over 3.2 GB in float64, is warned of


def stack_reader(estimator: Any, X: Any, similarities: Any, views: Any) -> StackReader:
    """Return the reader for what an estimator was given.

    Views are told from others by their type. Else "precomputed", the `affinity` of an estimator,
    says that there are similarities; of features kernels are made by `affinity`, and by those of
    the parameters in `MAKING` that the estimator has.
    """
    if similarities is not None and views is not None:
        raise ValueError("similarities and views are both given: one of them must be None.")
    if similarities is None and (views is not None or _holds_views(X)):
        return ViewReader(estimator)
    if _takes_similarities(estimator.affinity):
        return SimilarityReader()
    return FeatureReader(estimator)


def with_tags_of(affinity: Any, tags: Any) -> Any:
    """Return scikit-learn's tags of an estimator whose input `stack_reader` reads."""
    inputs = tags.input_tags
    inputs.sparse = True
    inputs.pairwise = inputs.positive_only = _takes_similarities(affinity)
    return tags


def _takes_similarities(affinity: Any) -> bool:
    return isinstance(affinity, str) and affinity == "precomputed"


def _holds_views(X: Any) -> bool:
    return isinstance(X, ViewStack) or (isinstance(X, dict) and not is_sparse(X))


def _making(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator by which a `KernelStack` makes similarities."""
    own = estimator.get_params(deep=False)
    return {name: own[name] for name in ("n_jobs", *MAKING) if name in own}


class FeatureReader(StackReader):
    """Reads features, of which a `KernelStack` makes similarities."""

    parameter = "affinity"

    def __init__(self, estimator: Any) -> None:
        self._kernels = _Affinity(estimator.affinity, **_making(estimator))

    def read(self, estimator: Any, X: Any, beside: Any) -> Any:
        """Return checked features; a data frame as it is, since views can name its columns."""
        if beside is not None:
            raise ValueError(
                "similarities are given instead of features, and need affinity='precomputed'; got "
                f"affinity={estimator.affinity!r}."
            )
        return self._read(estimator, X, reset=True)

    def read_new(self, estimator: Any, X: Any) -> Any:
        """Return checked features of new objects."""
        return self._read(estimator, X, reset=False)

    @staticmethod
    def _read(estimator: Any, X: Any, reset: bool) -> Any:
        check_handed_in(X)
        checked = read_features(estimator, X, reset, ensure_all_finite="allow-nan")
        return X if hasattr(X, "columns") else checked

    def _square(self, objects: Any, chosen: np.ndarray) -> SimilarityStack:
        kernels = self._kernels.kernels
        _warn_of_size(kernels, len(chosen))
        return self._kernels.fit_transform(take_samples(objects, chosen))

    def _cross(self, objects: Any, numbers: np.ndarray) -> SimilarityStack:
        return self._kernels.transform(take_samples(objects, numbers))


class _Affinity(KernelStack):
    """Kernels that error messages call what the user of an estimator calls them."""

    _parameter = "affinity"


class _ViewKernel(KernelStack):
    """The kernel of one view, which error messages call by its name."""

    _parameter = "affinity"
    where = "views"  # what the view came in

    def _called(self, index: int, name: str) -> str:
        return f"view {name!r} of {self.where}"


class ViewReader(StackReader):
    """Reads views, of each of which a `KernelStack` makes one similarity."""

    parameter = "views"

    def __init__(self, estimator: Any) -> None:
        self._options = _making(estimator)

    def read(self, estimator: Any, X: Any, beside: Any) -> ViewStack:
        """Return the views, in the order of X where they are given beside it."""
        self.parameter = "X" if beside is None else "views"
        given = ViewStack._of(X if beside is None else beside, self.parameter)
        views = given if beside is None else _beside(X, given)
        if _takes_similarities(estimator.affinity) and all(map(_is_similarity, views.views)):
            raise ValueError(
                f"the views {list(views.names)} of {self.parameter} are square and symmetric, as "
                "similarities are: "
                "give those as a SimilarityStack, or as similarities=. If they are features, "
                f"name the affinity, {_OF_VIEWS!r} say."
            )
        self._named = _one_a_view(estimator.affinity, views.names)
        self._widths, estimator.n_features_in_ = views.n_features, sum(views.n_features)
        if views.index is not None:
            estimator.sample_names_ = np.asarray(views.index)
        self.names = views.names
        return views

    def read_new(self, estimator: Any, X: Any) -> ViewStack:
        """Return the views of new objects, in the order of those of the fit."""
        if not isinstance(X, ViewStack | dict | list | tuple):
            raise TypeError(
                f"X must hold the views {list(self.names)} of fit, in a dict, a list or a "
                f"ViewStack; got {shown(X)}."
            )
        named = isinstance(X, ViewStack | dict)
        views = ViewStack._of(X, "X")
        for kernel in self._kernels:
            kernel.where = "X"
        if named and set(views.names) == set(self.names):
            order = [views.names.index(name) for name in self.names]
            views = views.with_views(order)
        elif named or len(views.names) != len(self.names):
            raise ValueError(
                f"X must hold the views of fit, {list(self.names)}; got {list(views.names)}."
            )
        for name, own, width in zip(self.names, self._widths, views.n_features, strict=True):
            if own != width:
                raise ValueError(
                    f"view {name!r} of X has {counted(width, 'feature')}, in fit it had {own}."
                )
        return views

    def _square(self, objects: ViewStack, chosen: np.ndarray) -> SimilarityStack:
        _warn_of_size(self._named, len(chosen))
        views = objects[chosen].views
        self._kernels = [
            _ViewKernel([(name, kernel, None)], **self._options)
            for name, kernel in zip(self.names, self._named, strict=True)
        ]
        for kernel in self._kernels:
            kernel.where = self.parameter
        return self._joined(
            kernel.fit_transform(view) for kernel, view in zip(self._kernels, views, strict=True)
        )

    def _cross(self, objects: ViewStack, numbers: np.ndarray) -> SimilarityStack:
        views = objects[numbers].views
        return self._joined(
            kernel.transform(view) for kernel, view in zip(self._kernels, views, strict=True)
        )

    def _joined(self, stacks: Any) -> SimilarityStack:
        return SimilarityStack._made([part for s in stacks for part in s._parts], self.names)


def _warn_of_size(kernels: Any, n: int) -> None:
    """Warn where kernels by name make large dense similarities; functions may make sparse ones."""
    listed = kernels if isinstance(kernels, list) else [kernels]
    names = [kernel[1] if isinstance(kernel, tuple) else kernel for kernel in listed]
    dense = [name for name in names if isinstance(name, str) and name != _OF_VIEWS]
    if dense and n > _MANY:
        warn(
            f"affinity {dense[0]!r} makes {counted(len(dense), 'dense similarity')} of {n:,} "
            f"objects to each other, {8 * n**2 * len(dense) / 1e9:.0f} GB in float64. Take "
            f"{_OF_VIEWS!r}, which is sparse, or fit to fewer objects, with max_samples."
        )


def _beside(X: Any, views: ViewStack) -> ViewStack:
    """Return views that are handed in beside X, of which the length and the index are used."""
    if _holds_views(X):
        raise ValueError("views are given beside X, which holds views, too: put all into one.")
    order = order_of(row_names(X), views.index, "views")
    views = views if order is None else views[order]
    if X is not None and num_samples(X) != len(views):
        raise ValueError(
            f"views must be of the samples of X: they are of {len(views)} samples, X has "
            f"{num_samples(X)}. Cross-validation cannot split what is given beside X; give it as "
            "X, in a ViewStack."
        )
    return views


def _is_similarity(view: Any) -> bool:
    """Return whether a table looks like similarities of its rows to each other."""
    if view.shape[0] != view.shape[1] or view.shape[0] < 2:
        return False
    table = view if is_sparse(view) else np.asarray(view)
    return table.dtype.kind in "biuf" and asymmetry(as_float(table)) == 0


def _one_a_view(affinity: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the kernel of every view."""
    if _takes_similarities(affinity):
        affinity = _OF_VIEWS
    if not isinstance(affinity, list):
        return [affinity] * len(names)
    if len(affinity) != len(names) or any(isinstance(item, tuple) for item in affinity):
        raise ValueError(
            "affinity must be one kernel for all views, or a list with the kernel of each of "
            f"{list(names)}, without columns; got {shown(affinity)}."
        )
    return affinity
