"""Several similarities of the same samples: the container, and how it reads what it is made of."""

from __future__ import annotations

from collections import Counter
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import counted, positions, shown
from nmfcluster._arrays.storage import as_matrix, largest
from nmfcluster._arrays.tables import check_opened, in_one_order
from nmfcluster.stack.seen import Seen, cut, with_nan, without_nan


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
    sources : list or dict of {array-like, sparse matrix} of shape (n, m), ndarray of shape \
            (n, m, L) or SimilarityStack
        Similarities of n samples to m samples: to each other, n = m, or to the samples that a
        model was fitted on. float32 stays float32 if all sources are, everything else becomes
        float64. Not copied where that can be avoided, and never written to.
    names : sequence of str, default=None
        One name for each source, no two the same; the keys of a dict, or "source0", "source1",
        ... by default.

    Raises
    ------
    TypeError
        If `sources` is none of the above, or a source does not hold numbers.
    ValueError
        If sources differ in shape, the list is empty, a row and a column are both NaN in part, or
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
            own, parts = sources.names, sources._parts
            names = own if names is None else read_names(names, len(parts))
            self._set(parts, names, *sources._axes)
            return
        if isinstance(sources, dict) and not sp.issparse(sources):
            names, sources = list(sources) if names is None else names, list(sources.values())
        self._set(*_read_sources(sources, names))

    @classmethod
    def _made(
        cls, parts: Any, names: tuple[str, ...], index: Any = None, columns: Any = None
    ) -> Self:
        """Return a stack of parts that need no checks."""
        new = cls.__new__(cls)
        new._set(parts, names, index, columns)
        return new

    def _set(self, parts: Any, names: tuple[str, ...], index: Any, columns: Any) -> None:
        single = all(part.values.dtype == np.float32 for part in parts)
        dtype = np.dtype(np.float32 if single else np.float64)
        cast = tuple(part._replace(values=part.values.astype(dtype, copy=False)) for part in parts)
        self.__setstate__({"_parts": cast, "_names": names, "_axes": (index, columns)})

    def __setstate__(self, state: dict[str, Any]) -> None:
        # here, because pickle does not keep arrays read-only
        self._parts: tuple[Seen, ...] = tuple(
            Seen(*(_read_only(array) for array in part)) for part in state["_parts"]
        )
        self._names: tuple[str, ...] = state["_names"]
        self._axes: tuple[Any, Any] = state["_axes"]  # names of the rows, of the columns

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
    def index(self) -> Any:
        """The index of the first data frame among the sources, None if there was none."""
        return self._axes[0]

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
        sparse = [i for i, part in enumerate(self._parts) if sp.issparse(part.values)]
        if sparse:
            raise TypeError(
                f"a SimilarityStack with sparse sources, as {self.names[sparse[0]]!r}, is not made "
                "an array without being asked to: call toarray()."
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
        rows, columns = read_axes(key, "a SimilarityStack", "sources are in stack.sources")
        if rows is None:
            raise TypeError(
                "rows of a SimilarityStack must be named by a list or an array of integers, a mask "
                f"or a slice, got {shown(rows)}."
            )
        i = positions(rows, n, "row", "a SimilarityStack")
        j = None if columns is None else positions(columns, m, "column", "a SimilarityStack")
        parts = [
            Seen(cut(values, i, j), seen[i], others if j is None else others[j])
            for values, seen, others in self._parts
        ]
        axes = zip(self._axes, (i, j), strict=True)
        cut_axes = (names if names is None or at is None else names[at] for names, at in axes)
        return self._made(parts, self.names, *cut_axes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, names={self.names})"


def called(index: int, name: str, where: str) -> str:
    """Return what an error message calls a source."""
    return f"source {index} ({name!r}) of {where}"


def _read_sources(sources: Any, names: Any) -> tuple[list[Seen], tuple[str, ...], Any, Any]:
    """Return matrices of one shape, without their NaN, their names, and those of their axes."""
    listed = _listed(sources)
    names = read_names(names, len(listed))
    labels = [called(i, name, "sources") for i, name in enumerate(names)]
    listed, index, columns = in_one_order(listed, labels)
    arrays = [_read_matrix(source, label) for source, label in zip(listed, labels, strict=True)]
    for array, label in zip(arrays, labels, strict=True):
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"sources must be of one shape: {label} has shape {array.shape}, {labels[0]} has "
                f"{arrays[0].shape}. Features of several views are no similarities: give them to "
                "fit as views=."
            )
    parts = [_read_nan(array, label) for array, label in zip(arrays, labels, strict=True)]
    return parts, names, index, columns


def _listed(sources: Any) -> list[Any]:
    """Return the sources of a stack as a list."""
    if isinstance(sources, list | tuple):
        if not sources:
            raise ValueError("sources must hold at least one similarity matrix, got none.")
        return list(sources)
    if isinstance(sources, np.ndarray) and sources.ndim == 3:
        if not sources.shape[2]:
            raise ValueError(
                f"sources must hold at least one similarity matrix, got shape {sources.shape}, "
                "whose last axis is the sources."
            )
        return list(np.moveaxis(sources, 2, 0))
    check_opened(sources, "sources", "a list of similarity matrices")
    got = f"shape {sources.shape}" if hasattr(sources, "shape") else shown(sources)
    raise TypeError(
        "sources must be a list of similarity matrices, an array of shape (n, m, L) or a "
        f"SimilarityStack, got {got}; a single matrix S is given as [S]."
    )


def read_names(names: Any, n_named: int, kind: str = "source") -> tuple[str, ...]:
    """Return the names of sources, or of another kind of things, which must differ.

    None: numbers.
    """
    if names is None:
        return tuple(f"{kind}{i}" for i in range(n_named))
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise TypeError(f"names must be a list of str, one for each {kind}, got {shown(names)}.")
    names = list(names)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must all be str, got {shown(names)}.")
    if len(names) != n_named:
        raise ValueError(f"names must name {counted(n_named, kind)}, got {len(names)}.")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"names must differ from each other, got {name!r} {times} times.")
    return tuple(str(name) for name in names)


def _read_matrix(source: Any, label: str) -> Any:
    check_opened(source, label, "a matrix of numbers")
    try:
        return as_matrix(source)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{label} must be a matrix of numbers, of shape (n, m), dense or sparse: {error}."
        ) from None


def _read_nan(array: Any, label: str) -> Seen:
    """Tell values from the rows and columns that are NaN."""
    if not holds_nan(array):
        return Seen(array, *(np.ones(length, dtype=bool) for length in array.shape))
    part, stray = without_nan(array)
    if stray is not None:
        raise ValueError(
            f"{label} holds NaN in row {stray[0]}, column {stray[1]}, and numbers beside it. NaN "
            "stands for a sample that the source has not seen: all of its row, or its column, "
            "must be NaN."
        )
    return part


def read_axes(key: Any, owner: str, inside: str) -> tuple[Any, Any]:
    """Return what a key says of rows and of columns; None: nothing.

    An error message calls a stack `owner`, and says where to find what is `inside` of it.
    """
    if not isinstance(key, tuple):
        return key, None
    named = [part for part in key if part is not Ellipsis]  # scikit-learn asks for [rows, ...]
    if len(named) == 1 and len(key) <= 2 and key[0] is not Ellipsis:
        return named[0], None
    if len(named) == 2 and len(key) == 2:
        rows, columns = named
        if isinstance(rows, slice) or isinstance(columns, slice):
            return rows, columns
        if isinstance(rows, np.ndarray) and isinstance(columns, np.ndarray):
            if rows.shape == (rows.size, 1) and columns.shape == (1, columns.size):  # np.ix_
                return rows.ravel(), columns.ravel()
    raise ValueError(
        f"{owner} is indexed by rows, stack[rows], or by rows and columns, "
        f"stack[np.ix_(rows, columns)], got {shown(key)}; its {inside}."
    )


def _read_only(array: Any) -> Any:
    """Return the matrix, not copied, in a form whose entries cannot be written to."""
    values = (array.data if sp.issparse(array) else array).view()
    values.flags.writeable = False
    if not sp.issparse(array):
        return values
    return sp.csr_array((values, array.indices, array.indptr), shape=array.shape)


def holds_nan(array: Any) -> bool:
    """Return whether an entry that is stored is NaN."""
    return bool(np.isnan(array.data if sp.issparse(array) else array).any())


def check_values(values: Any, label: str) -> None:
    """Raise if an entry is negative or infinite."""
    if not all(values.shape):
        return
    if not np.isfinite(largest(values)):
        raise ValueError(f"{label} must be finite; it holds infinity.")
    smallest = float(values.min())
    if smallest < 0:
        raise ValueError(f"{label} must not be negative; its smallest entry is {smallest:.3g}.")
