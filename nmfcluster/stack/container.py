"""Several similarities of the same samples: the container, its checks, and kernels that fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from nmfcluster._arrays.arguments import positions
from nmfcluster._arrays.storage import (
    Seen,
    as_matrix,
    cut,
    embedded,
    is_sparse,
    largest,
    read_only,
    require_symmetric,
    with_nan,
    without_negatives,
)
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.affinity import NAMES, Affinity, make_affinity
from nmfcluster.stack.reading import (
    axes,
    called,
    read_columns,
    read_kernels,
    read_names,
    read_sources,
    read_view,
)

__all__ = ["KernelStack", "SimilarityStack", "cross_sources", "square_sources"]

_KERNELS = [name for name in NAMES if name != "precomputed"]
_ROUNDING = 1e3  # in units of the precision: what is less below 0 counts as 0


class SimilarityStack:
    """Similarities of the same samples by several sources: matrices, dense and sparse mixed.

    It stands for the samples, and is split as they are. For an estimator that takes similarities
    scikit-learn cuts ``stack[np.ix_(rows, columns)]``, both axes of all sources, in
    cross-validation and grid search; ``stack[rows]`` cuts the first axis alone. Sparse sources
    stay sparse.

    NaN stands for a sample that a source has not seen: its row is NaN throughout and, where the
    columns stand for the same samples, its column too. In a sparse source NaN that is stored
    counts, and a single one, say on the diagonal, marks a row that stores nothing else.

    Parameters
    ----------
    sources : list of {array-like, sparse matrix} of shape (n, m), ndarray of shape (n, m, L) or \
            SimilarityStack
        Similarities of n samples to m samples: to each other, n = m, or to the samples that a
        model was fitted on. float32 stays float32 if all sources are, everything else becomes
        float64. Not copied where that can be avoided, and never written to.
    names : sequence of str, default=None
        One name for each source, no two the same; "source0", "source1", ... by default.

    Raises
    ------
    TypeError
        If `sources` is nothing of the above, or a source does not hold numbers.
    ValueError
        If sources differ in shape, there is none, a row and a column are both NaN in part, or
        `names` do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from nmfcluster import SimilarityStack
    >>> stack = SimilarityStack([np.ones((4, 4)), sp.eye_array(4)], names=["all", "self"])
    >>> stack
    SimilarityStack(shape=(4, 4, 2), dtype=float64, names=('all', 'self'))
    >>> stack[np.ix_([0, 2], [1, 2, 3])].toarray()[:, :, 1]
    array([[0., 0., 0.],
           [0., 1., 0.]])
    """

    def __init__(self, sources: Any, *, names: Any = None) -> None:
        if isinstance(sources, SimilarityStack):
            given, parts = sources.names, sources._parts
            self._set(parts, given if names is None else read_names(names, len(parts)))
            return
        self._set(*read_sources(sources, names))

    @classmethod
    def _made(cls, parts: Any, names: tuple[str, ...]) -> Self:
        """Return a stack of parts that need no checks."""
        new = cls.__new__(cls)
        new._set(parts, names)
        return new

    def _set(self, parts: Any, names: tuple[str, ...]) -> None:
        single = all(part.values.dtype == np.float32 for part in parts)
        dtype = np.dtype(np.float32 if single else np.float64)
        cast = (part._replace(values=part.values.astype(dtype, copy=False)) for part in parts)
        self.__setstate__({"_parts": tuple(cast), "_names": names})

    def __setstate__(self, state: dict[str, Any]) -> None:
        # read-only is not kept by pickle, hence here
        self._parts: tuple[Seen, ...] = tuple(
            Seen(*(read_only(array) for array in part)) for part in state["_parts"]
        )
        self._names: tuple[str, ...] = state["_names"]

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(n, m, L)``: samples, samples that they are similar to, sources."""
        n, m = self._parts[0].values.shape
        return n, m, len(self._parts)

    @property
    def ndim(self) -> int:
        """3, the length of `shape`."""
        return 3

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, that of all sources."""
        return np.dtype(self._parts[0].values.dtype)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources."""
        return self._names

    @property
    def sources(self) -> tuple[Any, ...]:
        """The matrices, (n, m) arrays and CSR arrays, with NaN for what was not seen."""
        return tuple(
            part.values if part.rows.all() and part.columns.all() else with_nan(part, mark=True)
            for part in self._parts
        )

    def filled(self) -> tuple[Any, ...]:
        """Return the sources with 0 for NaN; sparse ones store none of either.

        Returns
        -------
        tuple of {ndarray, csr_array} of shape (n, m)
            Not copied, and not to be written to.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([[[1, np.nan], [np.nan, np.nan]]]).filled()
        (array([[1., 0.],
               [0., 0.]]),)
        """
        return tuple(part.values for part in self._parts)

    def seen(self) -> np.ndarray:
        """Return which samples each source has seen: those whose row is not NaN.

        Returns
        -------
        ndarray of shape (n, L), bool

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([np.ones((2, 2)), [[1, np.nan], [np.nan, np.nan]]]).seen()
        array([[ True,  True],
               [ True, False]])
        """
        return np.column_stack([part.rows for part in self._parts])

    def toarray(self) -> np.ndarray:
        """Return all sources as one dense array; the last axis is the sources.

        Returns
        -------
        ndarray of shape (n, m, L)
            With NaN in the rows, and the columns, of samples that a source has not seen.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([np.eye(2), np.ones((2, 2))]).toarray()[0]
        array([[1., 1.],
               [0., 1.]])
        """
        return np.stack([with_nan(part) for part in self._parts], axis=-1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        sparse = [
            name
            for part, name in zip(self._parts, self.names, strict=True)
            if is_sparse(part.values)
        ]
        if sparse:
            raise TypeError(
                f"a SimilarityStack with sparse sources, as {sparse[0]!r}, is not made an array "
                "without being asked to: call toarray()."
            )
        if copy is False:
            raise ValueError("a SimilarityStack is no array without a copy; give copy=None.")
        return self.toarray().astype(self.dtype if dtype is None else dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a SimilarityStack cannot be walked through sample by sample; its matrices are in "
            "stack.sources."
        )

    def __getitem__(self, key: Any) -> Self:
        n, m, _ = self.shape
        rows, columns = axes(key)
        i = positions(rows, n, "row", "a SimilarityStack")
        j = None if columns is None else positions(columns, m, "column", "a SimilarityStack")
        parts = [
            Seen(cut(values, i, j), seen[i], others if j is None else others[j])
            for values, seen, others in self._parts
        ]
        return self._made(parts, self.names)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, names={self.names})"


# --- what a model asks of a stack ----------------------------------------------------------------


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
    n, m, _ = stack.shape
    if n != m or not n:
        raise ValueError(
            f"{name} must hold the similarities of samples to each other, in shape (n, n, L) with "
            f"the L sources in the last axis, got shape {stack.shape}."
        )
    for part, label in _labelled(stack, name):
        _check_values(part.values, label)
        _check_unseen(part, label)
        require_symmetric(part.values, label)
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
        _check_values(part.values, label)
        lost = np.flatnonzero(~part.columns & known)
        if len(lost):
            raise ValueError(
                f"{label} holds NaN in column {lost[0]}, the similarities to a sample that it had "
                "seen in fit."
            )
    return list(stack.filled()), stack.seen()


def _labelled(stack: SimilarityStack, name: str) -> Iterator[tuple[Seen, str]]:
    for i, (part, source) in enumerate(zip(stack._parts, stack.names, strict=True)):
        yield part, called(i, source, name)


def _check_values(values: Any, label: str) -> None:
    """Raise if an entry is negative or infinite."""
    if not all(values.shape):
        return
    if not np.isfinite(largest(values)):
        raise ValueError(f"{label} must be finite; it holds infinity.")
    smallest = float(values.min())
    if smallest < 0:
        raise ValueError(f"{label} must not be negative; its smallest entry is {smallest:.3g}.")


def _check_unseen(part: Seen, label: str) -> None:
    """Raise if the samples that are NaN in their rows are not those that are in their columns."""
    values, rows, columns = part
    if not rows.any():
        raise ValueError(f"{label} must have seen a sample; all of it is NaN.")
    unmarked = np.flatnonzero(~rows & columns)
    if is_sparse(values):  # what is not stored is no number
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


# --- from features -------------------------------------------------------------------------------


class _FittedView(NamedTuple):
    """What is kept of a source for new samples."""

    columns: np.ndarray | None
    seen: np.ndarray  # bool, which training samples were
    between: Callable[[Any], Any]
    nobody: Any  # the similarities of no samples to them, stored as those of others


class KernelStack(TransformerMixin, BaseEstimator):
    r"""Similarities of samples by several kernels, or of several views of their features.

    A transformer from features to a `SimilarityStack`, to stand before an estimator that takes
    similarities, in a `Pipeline`: `fit_transform` gives those of the training samples to each
    other, `transform` those of new samples to the training samples. Cross-validation of the
    pipeline then splits features, and no similarity to a test sample is ever used in training.

    Parameters
    ----------
    kernels : str, callable or list, default="nearest_neighbors"
        A kernel, or a list with a source in each item: a kernel, or a triple
        ``(name, kernel, columns)``. A kernel is "linear", "cosine", "rbf" or "nearest_neighbors",
        see `nmfcluster.affinity.make_affinity`, or a callable: ``kernel(X, Y)`` returns the
        similarities of the rows of X to those of Y, dense or sparse, as kernels of
        `sklearn.metrics.pairwise` and `sklearn.gaussian_process.kernels` do. `columns` are those
        of X that the source sees, a view: a slice, a list of ints, a mask, or a name or list of
        names of columns of a data frame.
    gamma : float, default=None
        Of "rbf" kernels; 1 over the median squared distance of two samples by default, for each
        source its own. For several values give callables, as ``partial(rbf_kernel, gamma=2)``.
    n_neighbors : int, default=10
        Of "nearest_neighbors" kernels; at most all other samples are taken.
    normalize : bool or "auto", default=False
        Whether every similarity W is replaced by :math:`D^{-1/2} W D^{-1/2}`, D its row sums, with
        a diagonal of 0. "auto": those by "nearest_neighbors" only.
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

    A stack has no columns that could be named, so that there is neither `get_feature_names_out`
    nor `set_output`.

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

    _parameter = "kernels"  # as error messages call it

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernels": [StrOptions(set(_KERNELS)), callable, list],
        "gamma": [Interval(Real, 0, None, closed="neither"), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "normalize": ["boolean", StrOptions({"auto"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        kernels: Any = "nearest_neighbors",
        *,
        gamma: float | None = None,
        n_neighbors: int = 10,
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
            similarity is negative.
        TypeError
            If an item of `kernels` is neither a kernel nor a triple.
        """
        self.fit_transform(X)
        return self

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
            Its matrices are symmetric.

        Raises
        ------
        ValueError
            If `X` or a parameter is not as described, a sample is NaN in part of a view, or a
            similarity is negative.
        TypeError
            If an item of `kernels` is neither a kernel nor a triple.
        """
        before = dict(vars(self))
        try:
            return self._fit_transform(X)
        except BaseException:  # an earlier fit stays what it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit_transform(self, X: Any) -> SimilarityStack:
        self._validate_params()
        views = read_kernels(self.kernels, _KERNELS, self._parameter)
        X = self._read_samples(X, reset=True)
        fitted, parts = [], []
        names = getattr(self, "feature_names_in_", None)
        for i, view in enumerate(views):
            label = called(i, view.name, self._parameter)
            columns = read_columns(view.columns, X.shape[1], names, label)
            V, seen = read_view(X, columns, label)
            if seen.sum() < 2:
                raise ValueError(f"{label} needs at least 2 samples that it has seen.")
            with _one_thread(label):
                affinity = self._make_affinity(V, view.kernel)
                block = _read_block(affinity.block(), label)
            parts.append(Seen(embedded(block, seen, seen), seen, seen))
            nobody = cut(block, np.empty(0, dtype=np.intp))
            fitted.append(_FittedView(columns, seen, affinity.between, nobody))
        self._views, self.names_ = fitted, tuple(view.name for view in views)
        return SimilarityStack._made(parts, self.names_)

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
            view, or a similarity is negative.
        """
        check_is_fitted(self)
        X = self._read_samples(X, reset=False)
        parts = []
        for i, (name, view) in enumerate(zip(self.names_, self._views, strict=True)):
            label = called(i, name, self._parameter)
            V, seen = read_view(X, view.columns, label)
            with _one_thread(label):
                block = _read_block(view.between(V), label) if seen.any() else view.nobody
            parts.append(Seen(embedded(block, seen, view.seen), seen, view.seen))
        return SimilarityStack._made(parts, self.names_)

    def _read_samples(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",  # sums of a data frame's columns round otherwise
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )

    def _make_affinity(self, X: Any, kernel: Any) -> Affinity:
        normalize = self.normalize
        if normalize == "auto":
            normalize = isinstance(kernel, str) and kernel == "nearest_neighbors"
        return make_affinity(
            X,
            kernel,
            gamma=self.gamma,
            n_neighbors=self.n_neighbors,
            normalize=bool(normalize),
            n_jobs=self.n_jobs,
        )

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; NaN is not allowed as such, for it must fill a view."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _read_block(block: Any, label: str) -> Any:
    """Return similarities, in which no entry is negative but for rounding, which is undone."""
    block = as_matrix(block)
    rounding = _ROUNDING * float(np.finfo(block.dtype).eps) * largest(block)
    if -rounding <= float(block.min()) < 0:
        return without_negatives(block)
    _check_values(block, label)
    return block


@contextmanager
def _one_thread(label: str) -> Iterator[None]:
    """Compute a source with one thread, so that its sums are repeatable; name it in errors."""
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    except ValueError as error:
        message = str(error)
        raise ValueError(message if label in message else f"{label}: {message}") from error
