"""Several similarities of objects as estimators read them: handed in, or made of features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from nmfcluster._arrays.arguments import counted
from nmfcluster._arrays.storage import FLOATS, is_sparse, largest, require_symmetric
from nmfcluster._arrays.tables import check_readable, in_own_order, order_of, row_names
from nmfcluster._base import warn_of_distances
from nmfcluster._compat import num_samples
from nmfcluster.stack.container import SimilarityStack, called, check_values
from nmfcluster.stack.seen import Seen

_ROWS = 2048  # objects whose similarities are made at a time: their memory is bounded


class StackReader(ABC):
    """Reads objects, and compares them with those that a model is fitted to.

    An estimator keeps its reader, but not the objects: a stack, features or views,
    ``objects.shape[0]`` of them.
    """

    parameter = "X"  # that holds the sources, as error messages call it
    names: tuple[str, ...]  # of the sources, once the reader is fitted

    @abstractmethod
    def read(self, estimator: Any, X: Any, beside: Any) -> Any:
        """Return the objects of a fit, from X or from what is given beside it."""

    @abstractmethod
    def read_new(self, estimator: Any, X: Any) -> Any:
        """Return other objects, like those of the fit."""

    def n_columns(self, objects: Any) -> int:
        """Return how many objects these can be compared with: themselves."""
        return int(objects.shape[0])

    @abstractmethod
    def _square(self, objects: Any, chosen: np.ndarray) -> SimilarityStack:
        """Return the similarities of some objects to each other."""

    @abstractmethod
    def _cross(self, objects: Any, numbers: np.ndarray) -> SimilarityStack:
        """Return the similarities of some objects to those that the model is fitted to."""

    def fitted(self, objects: Any, chosen: np.ndarray) -> SimilarityStack:
        """Return the similarities of the objects that the model is fitted to.

        `chosen` holds their positions in what `read` returned. `square_sources` checks the stack.
        """
        stack = self._square(objects, chosen)
        self.names, self._chosen, self._seen = stack.names, chosen, stack.seen()
        return stack

    def cross(self, objects: Any, numbers: np.ndarray) -> list[Any]:
        """Return the similarities of some objects to those that the model is fitted to.

        `numbers` holds their positions. There is a matrix a source, checked by `cross_sources`.
        """
        return self.cross_seen(objects, numbers)[0]

    def cross_seen(self, objects: Any, numbers: np.ndarray) -> tuple[list[Any], np.ndarray]:
        """Return what `cross` does, and which of the objects each source saw, (n_numbers, L)."""
        stack = self._cross(objects, numbers)
        return cross_sources(stack, len(self._chosen), self._seen)

    def compare_with(self, objects: Any, chosen: np.ndarray) -> None:
        """Prepare for `cross`, without the similarities of the chosen objects to each other."""
        self.fitted(objects, chosen)

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
        starts = range(0, len(numbers), _ROWS)
        blocks = (self.cross(objects, numbers[start : start + _ROWS]) for start in starts)
        return np.concatenate([_weighted(prepare(block), weights, profile) for block in blocks])


class SimilarityReader(StackReader):
    """Reads similarities: a stack, a list of matrices, an array of them, or one matrix."""

    def read(self, estimator: Any, X: Any, beside: Any) -> SimilarityStack:
        """Return the similarities of all pairs of objects as a stack."""
        if beside is not None:
            self.parameter = "similarities"
            stack = _read_beside(X, beside)
        else:
            stack = _read_stack(estimator, X, reset=True)
        estimator.n_features_in_, self._columns = stack.shape[1], stack._axes[1]
        landmarks = not getattr(estimator, "symmetric", True)
        if stack.shape[0] != stack.shape[1] and not landmarks:  # a part of it could be square
            raise _not_square(stack, self.parameter)
        return stack

    def n_columns(self, objects: SimilarityStack) -> int:
        """Return the number of columns of the similarities."""
        return objects.shape[1]

    def compare_with(self, objects: SimilarityStack, chosen: np.ndarray) -> None:
        """Prepare for `cross`: the chosen objects are columns."""
        self.names, self._chosen = objects.names, chosen
        self._seen = np.ones((len(chosen), objects.shape[2]), dtype=bool)

    def read_new(self, estimator: Any, X: Any) -> SimilarityStack:
        """Return the similarities of new objects to all objects of the fit as a stack."""
        stack = _read_stack(estimator, X, reset=False)
        if stack.shape[1] != estimator.n_features_in_:
            raise ValueError(
                f"X has {counted(stack.shape[1], 'column')}, but {type(estimator).__name__} was "
                f"fitted to {estimator.n_features_in_} objects: give the similarities to all."
            )
        order = order_of(self._columns, stack._axes[1], "the columns of X", "what fit was given")
        stack = stack if order is None else stack[:, order]
        if not len(stack):
            raise ValueError(
                f"X has 0 sample(s) (shape={stack.shape}) while a minimum of 1 is required by "
                f"{type(estimator).__name__}."
            )
        unnamed = tuple(f"source{i}" for i in range(stack.shape[2]))
        if stack.names != self.names and unnamed not in (stack.names, self.names):
            raise ValueError(
                f"X must have the sources of fit, in their order, {self.names}; got {stack.names}."
            )
        return stack

    def _square(self, objects: SimilarityStack, chosen: np.ndarray) -> SimilarityStack:
        return objects if len(chosen) == len(objects) else objects[np.ix_(chosen, chosen)]

    def _cross(self, objects: SimilarityStack, numbers: np.ndarray) -> SimilarityStack:
        return objects[np.ix_(numbers, self._chosen)]


def _read_beside(X: Any, similarities: Any) -> SimilarityStack:
    """Return similarities that are handed in beside X, of which only the length is used."""
    stack = SimilarityStack(similarities)
    order = order_of(row_names(X), stack.index, "similarities")
    stack = stack if order is None else stack[np.ix_(order, order)]
    if X is not None and num_samples(X) != stack.shape[0]:
        raise ValueError(
            f"similarities must be of the samples of X: they are of {stack.shape[0]} samples, "
            f"X has {num_samples(X)}. Cross-validation cannot split a list of similarities; "
            "give them as X, in a SimilarityStack."
        )
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
    check_handed_in(X)
    if not _is_array(X):
        return SimilarityStack(X)
    check_readable(X)
    X = in_own_order(X, "X")
    form: dict[str, Any] = {"accept_sparse": "csr", "allow_nd": True, "dtype": FLOATS}
    entries: dict[str, Any] = {"ensure_all_finite": "allow-nan", "ensure_non_negative": True}
    checked = check_array(X, **form, **entries, estimator=estimator, input_name="X")
    stack = SimilarityStack([checked] if checked.ndim == 2 else checked)
    stack._axes = row_names(X), row_names(getattr(X, "columns", None))
    named = X if hasattr(X, "columns") else checked
    validate_data(estimator, named, reset=reset, skip_check_array=True)
    return stack


def _is_array(X: Any) -> bool:
    """Return whether X is one array, and not a collection of sources."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and not any(getattr(source, "ndim", 0) == 2 for source in X)
    return not isinstance(X, SimilarityStack)


def check_handed_in(X: Any) -> None:
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


def square_sources(stack: SimilarityStack, name: str = "X") -> tuple[list[Any], np.ndarray]:
    """Return the similarities of samples to each other, checked.

    Parameters
    ----------
    stack : SimilarityStack of shape (n, n, L)
    name : str, default="X"
        What to call it in an error message.

    Returns
    -------
    sources : list of {ndarray, csr_array} of shape (n, n)
        Symmetric, nonnegative and not 0, with 0 in the rows and columns of samples that the
        source has not seen. Not copied, and not to be written to.
    seen : ndarray of shape (n, L), bool
        Which samples each source has seen.

    Raises
    ------
    ValueError
        If a source is not square, symmetric, finite and nonnegative, is 0 throughout, has seen
        no sample, or if a sample is NaN in its row but not in its column, or the reverse.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.stack import SimilarityStack, square_sources
    >>> square_sources(SimilarityStack([[[1, np.nan], [np.nan, np.nan]]]))
    ([array([[1., 0.],
           [0., 0.]])], array([[ True],
           [False]]))
    """
    if stack.shape[0] != stack.shape[1] or not len(stack):
        raise _not_square(stack, name)
    for part, label in _labelled(stack, name):
        check_values(part.values, label)
        _check_unseen(part, label)
        require_symmetric(part.values, label)
        warn_of_distances(part.values, label)
        if largest(part.values) == 0:
            raise ValueError(f"{label} must hold a similarity above 0; all entries are 0.")
    return list(stack.filled()), stack.seen()


def cross_sources(
    stack: SimilarityStack, n_fit: int, seen_fit: np.ndarray, name: str = "X"
) -> tuple[list[Any], np.ndarray]:
    """Return the similarities of new samples to those that a model was fitted on, checked.

    Parameters
    ----------
    stack : SimilarityStack of shape (r, n_fit, L)
    n_fit : int
        Number of samples that the model was fitted on.
    seen_fit : ndarray of shape (n_fit, L), bool
        Which of them each source has seen.
    name : str, default="X"
        What to call the stack in an error message.

    Returns
    -------
    sources : list of {ndarray, csr_array} of shape (r, n_fit)
        Nonnegative, with 0 in the rows of new samples that the source has not seen, and in
        columns of NaN. Not copied, and not to be written to.
    seen : ndarray of shape (r, L), bool
        Which new samples each source has seen.

    Raises
    ------
    ValueError
        If the stack is of another shape, a source is not finite and nonnegative, or the
        similarities to a training sample that the source has seen are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.stack import SimilarityStack, cross_sources
    >>> stack = SimilarityStack([[[0.5, np.nan], [np.nan, np.nan]]])
    >>> sources, seen = cross_sources(stack, 2, np.array([[True], [False]]))
    >>> seen
    array([[ True],
           [False]])
    """
    n_sources = seen_fit.shape[1]
    if stack.shape[1:] != (n_fit, n_sources):
        raise ValueError(
            f"{name} must hold the similarities of samples to the {n_fit} samples of fit, by "
            f"{n_sources} sources, in shape (n, {n_fit}, {n_sources}), got shape {stack.shape}."
        )
    for (part, label), known in zip(_labelled(stack, name), seen_fit.T, strict=True):
        check_values(part.values, label)
        lost = np.flatnonzero(~part.columns & known)
        if len(lost):
            raise ValueError(
                f"{label} holds NaN in column {lost[0]}, the similarities to a sample that it had "
                "seen in fit."
            )
    return list(stack.filled()), stack.seen()


def _not_square(stack: SimilarityStack, name: str) -> ValueError:
    return ValueError(
        f"{name} must hold the similarities of samples to each other, in shape (n, n, L) with "
        f"the L sources in the last axis, got shape {stack.shape}. Features in one table need "
        "another affinity, such as 'nearest_neighbors'; those of several views are given to fit "
        "as views=; similarities to some objects only need symmetric=False."
    )


def _labelled(stack: SimilarityStack, name: str) -> Iterator[tuple[Seen, str]]:
    for i, (part, source) in enumerate(zip(stack._parts, stack.names, strict=True)):
        yield part, called(i, source, name)


def _check_unseen(part: Seen, label: str) -> None:
    """Raise if the samples that are NaN in their rows are not those that are in their columns."""
    values, rows, columns = part
    if not rows.any():
        raise ValueError(f"{label} must have seen a sample; all of it is NaN.")
    unmarked = np.flatnonzero(~rows & columns)
    if is_sparse(values):  # an entry that is not stored counts neither as a number nor as NaN
        unmarked = unmarked[values.sum(axis=0)[unmarked] > 0]
    for lost, one, other in (
        (unmarked, "row", "column"),
        (np.flatnonzero(rows & ~columns), "column", "row"),
    ):
        if len(lost):
            raise ValueError(
                f"{label} must be symmetric: sample {lost[0]} is NaN in its {one}, as one that the "
                f"source has not seen, but not in its {other}."
            )
