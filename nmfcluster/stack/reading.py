"""Several similarities of objects as estimators read them: handed in, or made of features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from nmfcluster._arrays.arguments import counted, shown, warn
from nmfcluster._arrays.storage import (
    FLOATS,
    is_sparse,
    largest,
)
from nmfcluster._arrays.tables import check_readable, in_own_order, order_of, row_names
from nmfcluster._base import read_features
from nmfcluster._compat import num_samples
from nmfcluster.stack.container import SimilarityStack, ViewStack
from nmfcluster.stack.kernels import KernelStack
from nmfcluster.stack.sources import called, check_cross, check_square, is_similarity

_OF_VIEWS = "nearest_neighbors"  # kernel of views, where none is named
_MANY = 20_000  # objects: a dense source of more, which is over 3.2 GB in float64, is warned of
_ROWS = 2048  # objects whose similarities are made at a time: their memory is bounded


def read_objects(
    estimator: Any, X: Any, similarities: Any, views: Any
) -> tuple[StackReader, SimilarityStack | ViewStack]:
    """Return the objects of a fit, and the reader of others.

    Views are told from others by their type. Else "precomputed", the `affinity` of an estimator,
    says that there are similarities; of features kernels are made by its `affinity`, `normalize`
    and `n_jobs`.
    """
    if similarities is not None and views is not None:
        raise ValueError("similarities and views are both given: one of them must be None.")
    options = {"normalize": estimator.normalize, "n_jobs": estimator.n_jobs}
    objects: SimilarityStack | ViewStack
    if similarities is None and (views is not None or _holds_views(X)):
        parameter = "X" if views is None else "views"
        objects = _read_views(estimator, X, views)
        kernels = _one_a_view(estimator.affinity, objects.names)
        pairs = zip(objects.names, kernels, strict=True)
        stacks = [_ViewKernel([(name, kernel, None)], **options) for name, kernel in pairs]
        return StackReader(parameter, objects, stacks), objects
    if takes_similarities(estimator.affinity):
        parameter = "X" if similarities is None else "similarities"
        objects = _read_similarities(estimator, X, similarities)
        return StackReader(parameter, objects), objects
    if similarities is not None:
        raise ValueError(
            "similarities are given instead of features, and need affinity='precomputed'; got "
            f"affinity={estimator.affinity!r}."
        )
    objects = _read_features(estimator, X, reset=True)
    return StackReader("affinity", None, [_Affinity(estimator.affinity, **options)]), objects


def takes_similarities(affinity: Any) -> bool:
    """Return whether an `affinity` says that similarities are handed in."""
    return isinstance(affinity, str) and affinity == "precomputed"


def _holds_views(X: Any) -> bool:
    return isinstance(X, ViewStack) or (isinstance(X, dict) and not is_sparse(X))


class StackReader:
    """Compares objects with those that a model is fitted to, and reads new ones.

    Objects come as a stack: of their similarities, or of tables, of each of which a `KernelStack`
    makes similarities. Views are several tables, with one kernel each; other features are one
    table, of which kernels can see columns. An estimator keeps its reader, but not the objects.

    Parameters
    ----------
    parameter : str
        That holds the sources, as error messages call it.
    like : SimilarityStack, ViewStack or None
        What new objects must be like; None: features, which scikit-learn compares.
    kernels : list of KernelStack, default=()
        One a table.

    Attributes
    ----------
    names : tuple of str
        Of the sources, once the model is fitted.
    """

    names: tuple[str, ...]

    def __init__(
        self, parameter: str, like: SimilarityStack | ViewStack | None, kernels: Any = ()
    ) -> None:
        self.parameter, self._kernels = parameter, list(kernels)
        self._widths = like.n_features if isinstance(like, ViewStack) else None
        self._columns = None if like is None else like._columns
        self.names = () if like is None else like.names

    @property
    def labels(self) -> list[str]:
        """What error messages call the sources."""
        return [called(i, name, self.parameter) for i, name in enumerate(self.names)]

    def read_new(self, estimator: Any, X: Any) -> SimilarityStack | ViewStack:
        """Return other objects, like those of the fit."""
        if not self._kernels:
            return self._new_similarities(estimator, X)
        if self._widths is not None:
            return self._new_views(X)
        return _read_features(estimator, X, reset=False)

    def _new_similarities(self, estimator: Any, X: Any) -> SimilarityStack:
        """Return the similarities of new objects to all objects of the fit."""
        stack = _read_stack(estimator, X, reset=False)
        if stack.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {counted(stack.shape[1], 'column')}, but {type(estimator).__name__} was "
                f"fitted to {estimator.n_features_in_} objects: give the similarities to all."
            )
        order = order_of(self._columns, stack._columns, "the columns of X", "what fit was given")
        stack = stack if order is None else stack[:, order]
        if not len(stack):
            raise ValueError(
                f"X has 0 sample(s) (shape={stack.shape}) while a minimum of 1 is required by "
                f"{type(estimator).__name__}."
            )
        unnamed = tuple(f"source{i}" for i in range(len(self.names)))
        fits = unnamed in (stack.names, self.names) and len(stack.names) == len(unnamed)
        if stack.names != self.names and not fits:
            raise ValueError(
                f"X must have the sources of fit, in their order, {self.names}; got {stack.names}."
            )
        return stack

    def _new_views(self, X: Any) -> ViewStack:
        """Return the views of new objects, in the order of those of the fit."""
        if not isinstance(X, ViewStack | dict | list | tuple):
            raise TypeError(
                f"X must hold the views {list(self.names)} of fit, in a dict, a list or a "
                f"ViewStack; got {shown(X)}."
            )
        named = isinstance(X, ViewStack | dict)
        views = ViewStack._of(X, "X")
        if named and set(views.names) == set(self.names):
            order = [views.names.index(name) for name in self.names]
            views = views.with_views(order)
        elif named or len(views.names) != len(self.names):
            raise ValueError(
                f"X must hold the views of fit, {list(self.names)}; got {list(views.names)}."
            )
        for name, own, width in zip(self.names, self._widths or (), views.n_features, strict=True):
            if own != width:
                raise ValueError(
                    f"view {name!r} of X has {counted(width, 'feature')}, in fit it had {own}."
                )
        return views

    def fitted(self, objects: Any, chosen: np.ndarray) -> tuple[list[Any], np.ndarray]:
        """Return the similarities of the objects that the model is fitted to, to each other.

        `chosen` holds their positions in what `read` returned. There is a matrix a source, with 0
        for NaN, and which objects each source saw, of shape (n_chosen, L).
        """
        stack = self._square(objects, chosen)
        if stack.shape[0] != stack.shape[1] or not len(stack):
            raise _not_square(stack, self.parameter)
        for source, label in zip(stack._held, self.labels, strict=True):
            check_square(source, label)
        return list(stack.filled()), self._seen

    def compare_with(self, objects: Any, chosen: np.ndarray) -> None:
        """Prepare for `cross`, without the similarities of the chosen objects to each other."""
        if self._kernels:
            self._square(objects, chosen)
        else:  # the chosen objects are columns
            self.names, self._chosen = objects.names, chosen
            self._seen = np.ones((len(chosen), objects.shape[2]), dtype=bool)

    def cross(self, objects: Any, numbers: np.ndarray) -> tuple[list[Any], np.ndarray]:
        """Return the similarities of some objects to those that the model is fitted to.

        `numbers` holds their positions. There is a matrix a source, with 0 for NaN, and which of
        these objects each source saw, of shape (n_numbers, L).
        """
        if self._kernels:
            pairs = zip(self._kernels, objects[numbers].views, strict=True)
            stack = _side_by_side(kernel.transform(table) for kernel, table in pairs)
        else:
            stack = objects[np.ix_(numbers, self._chosen)]
        for i, (source, known) in enumerate(zip(stack._held, self._seen.T, strict=True)):
            check_cross(source, known, called(i, self.names[i], "X"))
        return list(stack.filled()), stack.seen()

    def blocks(self, objects: Any, numbers: np.ndarray) -> Iterator[tuple[list[Any], np.ndarray]]:
        """Yield what `cross` returns, of some objects at a time."""
        for start in range(0, len(numbers), _ROWS):
            yield self.cross(objects, numbers[start : start + _ROWS])

    def _square(self, objects: Any, chosen: np.ndarray) -> SimilarityStack:
        """Return the similarities of the chosen objects to each other, and keep who they are."""
        if self._kernels:
            _warn_of_size(self._kernels, len(chosen))
            pairs = zip(self._kernels, objects[chosen].views, strict=True)
            stack = _side_by_side(kernel.fit_transform(table) for kernel, table in pairs)
        else:
            stack = objects if len(chosen) == len(objects) else objects[np.ix_(chosen, chosen)]
        self.names, self._chosen, self._seen = stack.names, chosen, stack.seen()
        return stack

    def extended(
        self,
        objects: Any,
        numbers: np.ndarray,
        weights: np.ndarray,
        profile: np.ndarray,
        prepare: Callable[[list[Any]], list[Any]],
    ) -> np.ndarray:
        """Return the similarity of some objects to every cluster, (n_numbers, n_clusters).

        It is ``sum_l w_l S_l @ profile`` for the sources S_l that `prepare` makes of those of
        `cross`, for some rows at a time. The `profile` says what similarity to a fitted object
        tells of every cluster.
        """
        blocks = (prepare(sources) for sources, _ in self.blocks(objects, numbers))
        return np.concatenate([_weighted(block, weights, profile) for block in blocks])


class _Affinity(KernelStack):
    """Kernels that error messages call what the user of an estimator calls them."""

    _parameter = "affinity"


class _ViewKernel(_Affinity):
    """The kernel of one view, which error messages call by its name."""

    def _called(self, index: int, name: str) -> str:
        return f"view {name!r} of views"


def _side_by_side(stacks: Iterable[SimilarityStack]) -> SimilarityStack:
    """Return the sources of several stacks in one."""
    pairs = [pair for stack in stacks for pair in zip(stack._held, stack.names, strict=True)]
    return SimilarityStack._made([held for held, _ in pairs], tuple(name for _, name in pairs))


def _read_similarities(estimator: Any, X: Any, similarities: Any) -> SimilarityStack:
    """Return the similarities in X, or those that are given beside it."""
    if similarities is None:
        stack = _read_stack(estimator, X, reset=True)
    else:
        stack = _read_beside(X, similarities)
    if stack.shape[0] != stack.shape[1] and estimator.symmetric:
        raise _not_square(stack, "X" if similarities is None else "similarities")
    estimator.n_features_in_ = stack.shape[1]
    return stack


def _read_beside(X: Any, similarities: Any) -> SimilarityStack:
    """Return similarities that are handed in beside X, of which only the length is used."""
    stack: SimilarityStack = _in_order_of(X, SimilarityStack(similarities), "similarities")
    shape = np.shape(X) if not hasattr(X, "shape") else X.shape
    if len(shape) > 2 or (len(shape) == 2 and shape[0] == shape[1]):
        raise ValueError(
            "similarities are given instead of those in X: X must be None, or hold features, "
            f"got similarities in it, too, of shape {tuple(shape)}. Put all of them into X, in "
            "a SimilarityStack."
        )
    return stack


def _read_stack(estimator: Any, X: Any, reset: bool) -> SimilarityStack:
    """Return X as a stack; its columns are the objects of a fit."""
    _check_handed_in(X)
    if not _is_array(X):
        return SimilarityStack(X)
    check_readable(X)
    X = in_own_order(X, "X")
    form: dict[str, Any] = {"accept_sparse": "csr", "allow_nd": True, "dtype": FLOATS}
    entries: dict[str, Any] = {"ensure_all_finite": "allow-nan", "ensure_non_negative": True}
    checked = check_array(X, **form, **entries, estimator=estimator, input_name="X")
    stack = SimilarityStack([checked] if checked.ndim == 2 else checked)
    stack.index, stack._columns = row_names(X), row_names(getattr(X, "columns", None))
    named = X if hasattr(X, "columns") else checked
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    return stack


def _is_array(X: Any) -> bool:
    """Return whether X is one array, and not a collection of sources."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and not any(getattr(source, "ndim", 0) == 2 for source in X)
    return not isinstance(X, SimilarityStack)


def _read_features(estimator: Any, X: Any, reset: bool) -> ViewStack:
    """Return checked features as one table; a data frame as it is: kernels can name its columns."""
    _check_handed_in(X)
    checked = read_features(estimator, X, reset, ensure_all_finite="allow-nan")
    return ViewStack._made([X if hasattr(X, "columns") else checked], ("features",))


def _check_handed_in(X: Any) -> None:
    """Raise where scikit-learn would speak of a scalar, and numpy of an empty reduction."""
    if X is None:
        raise ValueError(
            "X is None: give similarities or, with another affinity than 'precomputed', features. "
            "Only fit takes similarities= or views= instead of X."
        )
    shape = getattr(X, "shape", ())
    if len(shape) == 3 and 0 in shape[1:] and not isinstance(X, SimilarityStack):
        raise ValueError(
            f"X must hold similarities to at least one sample, by at least one source, in shape "
            f"(n, m, L); got shape {tuple(shape)}."
        )


def _read_views(estimator: Any, X: Any, beside: Any) -> ViewStack:
    """Return the views in X, or those beside it in the order of X."""
    if beside is not None and _holds_views(X):
        raise ValueError("views are given beside X, which holds views, too: put all into one.")
    views = ViewStack._of(X if beside is None else beside, "X" if beside is None else "views")
    views = views if beside is None else _in_order_of(X, views, "views")
    if takes_similarities(estimator.affinity) and all(map(is_similarity, views.views)):
        raise ValueError(
            f"the views {list(views.names)} are square and symmetric, as similarities are: "
            "give those as a SimilarityStack, or as similarities=. If they are features, "
            f"name the affinity, {_OF_VIEWS!r} say."
        )
    estimator.n_features_in_ = sum(views.n_features)
    if views.index is not None:
        estimator.sample_names_ = np.asarray(views.index)
    return views


def _in_order_of(X: Any, stack: Any, name: str) -> Any:
    """Return a stack that is given beside X, of which the length and the index are used."""
    order = order_of(row_names(X), stack.index, name)
    stack = stack if order is None else stack[np.ix_(order, order)]
    if X is not None and num_samples(X) != len(stack):
        raise ValueError(
            f"{name} must be of the samples of X: they are of {len(stack)} samples, X has "
            f"{num_samples(X)}. Cross-validation cannot split what is given beside X: give it as "
            f"X, in a {type(stack).__name__}."
        )
    return stack


def _one_a_view(affinity: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the kernel of every view."""
    kernels = _OF_VIEWS if takes_similarities(affinity) else affinity
    if not isinstance(kernels, list):
        return [kernels] * len(names)
    if len(kernels) != len(names) or any(isinstance(item, tuple) for item in kernels):
        raise ValueError(
            "affinity must be one kernel for all views, or a list with the kernel of each of "
            f"{list(names)}, without columns; got {shown(kernels)}."
        )
    return kernels


def _warn_of_size(kernels: list[KernelStack], n: int) -> None:
    """Warn where kernels by name make large dense similarities; functions may make sparse ones."""
    listed = [one.kernels if isinstance(one.kernels, list) else [one.kernels] for one in kernels]
    items = [item[1] if isinstance(item, tuple) else item for one in listed for item in one]
    dense = [name for name in items if isinstance(name, str) and name != _OF_VIEWS]
    if dense and n > _MANY:
        warn(
            f"affinity {dense[0]!r} makes {counted(len(dense), 'dense similarity')} of {n:,} "
            f"objects to each other, {8 * n**2 * len(dense) / 1e9:.0f} GB in float64. Take "
            f"{_OF_VIEWS!r}, which is sparse, or fit to fewer objects, with max_samples."
        )


def _weighted(sources: list[Any], weights: np.ndarray, profile: np.ndarray) -> np.ndarray:
    """Return the sum of the sources, each times its weight and the profile."""
    terms = zip(weights, sources, strict=True)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = sum(float(weight) * (source @ profile) for weight, source in terms)
    if not np.isfinite(rows).all():
        raise ValueError(
            "X must not hold similarities whose sums are too large for their dtype, "
            f"{sources[0].dtype}; the largest is {max(largest(s) for s in sources):.3g}."
        )
    return np.asarray(rows)


def _not_square(stack: SimilarityStack, name: str) -> ValueError:
    return ValueError(
        f"{name} must hold the similarities of samples to each other, in shape (n, n, L) with "
        f"the L sources in the last axis, got shape {stack.shape}. Features in one table need "
        "another affinity, such as 'nearest_neighbors'; those of several views are given to fit "
        "as views=; similarities to some objects only need symmetric=False."
    )
