"""Containers of several sources of the same samples, and functions that read and check sources.

A source is a matrix of similarities or of features.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from nmfcluster._compat import take_samples
from nmfcluster._utils import alignment, storage, validation
from nmfcluster._utils.validation import (
    axis_positions,
    format_count,
    format_value,
    warn,
)

# largest asymmetry that counts as rounding, as a share of the largest entry
_ROUNDED = 1e-12
# largest share of entries that are not 0 in a network
_NETWORK_SHARE = 0.5
# share of negative links, relative to positive ones, above which users are warned
_NEGATIVE_SHARE = 0.05


class Source(NamedTuple):
    """The similarities of a source, and which of its rows and columns are not NaN."""

    values: Any  # a matrix with 0 in place of NaN
    rows: np.ndarray  # bool: rows that are not all NaN
    columns: np.ndarray  # bool: columns that are not all NaN in these rows


class _Stack:
    """Base class of containers of several sources, whose samples are split together.

    Attributes
    ----------
    names : tuple of str
        Names of the sources.
    index : Index or None
        Names of the samples.
    shape : tuple of int
        ``(n, m, L)``: the numbers of rows and columns of each source, and the number of sources.
    """

    shape: tuple[int, int, int]
    _as_array: ClassVar[str]  # what to use instead of numpy.asarray, for its error

    @classmethod
    def _unchecked(cls, held, names, index=None, columns=None):
        """Return a stack of sources that are already checked."""
        new = cls.__new__(cls)
        new._set(held, names, index, columns)
        return new

    def _set(self, held, names, index, columns=None):
        self._held = tuple(held)  # one Source, or matrix of features, for each source
        self.names = names
        self.index = index
        self._columns = columns  # names of the samples of the columns

    def _cut(self, held, rows, columns):
        """Return some rows of one source, and some or (None) all of its columns."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(f"a {type(self).__name__} is not an array: {self._as_array}.")

    def __getitem__(self, key: Any) -> Self:
        owner = f"a {type(self).__name__}"
        rows, columns = _read_axes(key, owner)
        i = axis_positions(rows, self.shape[0], "row", owner)
        index = None if self.index is None else self.index[i]
        j = None
        column_names = self._columns
        if columns is not None:
            j = axis_positions(columns, self.shape[1], "column", owner)
            if column_names is not None:
                column_names = column_names[j]
        held = [self._cut(one, i, j) for one in self._held]
        return self._unchecked(held, self.names, index, column_names)


class SimilarityStack(_Stack):
    """Several similarity matrices of the same samples, dense or sparse.

    Each matrix is called a source. The length of a stack is the number of samples, and
    cross-validation splits it by samples. ``stack[rows]`` selects rows of all sources, and
    ``stack[np.ix_(rows, columns)]`` rows and columns, as scikit-learn does to cross-validate
    estimators that take similarities. Sparse sources stay sparse.

    NaN marks a sample that a source does not cover. The whole row of the sample is NaN and, if the
    columns are the same samples, its whole column, too. In a sparse source, only stored entries
    count: a single NaN, for example on the diagonal, marks a row that stores nothing else.

    Parameters
    ----------
    sources : list or dict of matrices of shape (n, m), ndarray of shape (n, m, L), SimilarityStack
        Similarities of n samples to each other (n = m), or to the m samples that a model was
        fitted on. Rows and columns of data frames are matched by their names, unless these are 0,
        1, ... Other matrices are matched by position, with a warning if data frames in the list
        have names. If all sources are data frames whose rows and columns have the same names, each
        can hold a part of the samples. The stack then has the samples of all frames, in the order
        in which they first occur, and a source covers the samples of its frame. The stack is
        float32 if all sources are, and float64 otherwise. Sources are copied only if necessary,
        and never modified.
    names : sequence of str, default=None
        Unique names of the sources. By default, the keys of a dict, or "source0", "source1", ...

    Attributes
    ----------
    names : tuple of str
        Names of the sources.
    index : Index or None
        Names of the samples, if a data frame has some.
    shape : tuple of int
        ``(n, m, L)``: the numbers of rows and columns of each source, and the number of sources.

    Raises
    ------
    TypeError
        If `sources` is none of the above, or empty, or a source does not hold numbers.
    ValueError
        If sources differ in shape, a NaN has numbers in both its row and its column, `names` do
        not match the sources, or rows of data frames cannot be matched.

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
    >>> import pandas as pd
    >>> frames = [pd.DataFrame(np.ones((2, 2)), [*names], [*names]) for names in ("ab", "bc")]
    >>> partial = SimilarityStack(frames)
    >>> list(partial.index), partial.seen()[:, 0]
    (['a', 'b', 'c'], array([ True,  True, False]))
    """

    _as_array = "use its matrices, stack.sources, or a dense array, stack.toarray()"

    def __init__(self, sources: Any, *, names: Any = None) -> None:
        if isinstance(sources, SimilarityStack):
            n = len(sources.names)
            names = sources.names if names is None else read_names(names, n, "source")
            self._set(sources._held, names, sources.index, sources._columns)
        else:
            held, names, index, columns = read_sources(sources, names)
            self._set(held, names, index, columns)

    def _set(self, held, names, index, columns=None):
        dtype = np.result_type(*(source.values.dtype for source in held))
        cast = [
            one._replace(values=one.values.astype(dtype, copy=False)) for one in held
        ]
        super()._set(cast, names, index, columns)
        self.shape = (*self._held[0].values.shape, len(held))

    @property
    def dtype(self) -> np.dtype:
        """Data type of all sources, float32 or float64."""
        return np.dtype(self._held[0].values.dtype)

    @property
    def sources(self) -> tuple[Any, ...]:
        """The matrices, (n, m) arrays and CSR arrays, with NaN for samples not covered."""
        return tuple(map(with_marks, self._held))

    def filled(self) -> tuple[Any, ...]:
        """Return the sources with 0 for NaN; sparse sources do not store these zeros.

        Returns
        -------
        tuple of {ndarray, csr_array} of shape (n, m)
            The matrices themselves, not copies; do not modify them.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([[[1, np.nan], [np.nan, np.nan]]]).filled()
        (array([[1., 0.],
               [0., 0.]]),)
        """
        return tuple(source.values for source in self._held)

    def seen(self) -> np.ndarray:
        """Return which samples each source covers. The rows of the others are NaN.

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
        return np.column_stack([source.rows for source in self._held])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False or any(sp.issparse(source.values) for source in self._held):
            return super().__array__()  # raises an error
        return np.asarray(self.toarray(), dtype=dtype)

    def toarray(self) -> np.ndarray:
        """Return all sources as one dense array, stacked along the last axis.

        Returns
        -------
        ndarray of shape (n, m, L)
            Rows and columns of samples that a source does not cover are NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([np.eye(2), np.ones((2, 2))]).toarray()[0]
        array([[1., 1.],
               [0., 1.]])
        """
        return np.stack(list(map(with_nan, self._held)), axis=-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, names={self.names})"

    def _cut(self, held, rows, columns):
        seen_columns = held.columns if columns is None else held.columns[columns]
        return Source(
            storage.submatrix(held.values, rows, columns), held.rows[rows], seen_columns
        )


class ViewStack(_Stack):
    """Several views of the same samples: feature matrices of different widths.

    The length of a stack is the number of samples, and ``views[rows]`` selects samples of all
    views, as cross-validation does. For an estimator with ``affinity="precomputed"``, scikit-learn
    selects ``views[np.ix_(rows, columns)]``. This selects the rows only, because similarities are
    computed from the features when a model is fitted.

    Parameters
    ----------
    views : dict or list of {array-like, sparse matrix} of shape (n, p_l), or ViewStack
        Each matrix has a row for every sample, which is all NaN if the view lacks the sample. The
        keys of a dict are names of the views. Rows of data frames are matched by their index,
        unless it is 0, 1, ... The stack then has the samples of all frames, in the order in which
        they first occur, and a view lacks samples that are not in its frame. Rows of other
        matrices are matched by position, with a warning if data frames in the list have names.

    Attributes
    ----------
    names : tuple of str
        Names of the views: the keys of a dict, or "view0", "view1", ...
    index : Index or None
        Names of the samples, if a data frame has some.
    shape : tuple of int
        ``(n, n, L)``, the shape of the similarities of n samples in L views.

    Raises
    ------
    TypeError
        If `views` is none of the above, or empty.
    ValueError
        If a view does not hold numbers, or rows of the views cannot be matched.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from nmfcluster.stack import ViewStack
    >>> words = pd.DataFrame({"goal": [3, 0, 4]}, index=["a", "b", "c"])
    >>> links = pd.DataFrame({"in": [1.0, 2.0], "out": [0.0, 1.0]}, index=["b", "d"])
    >>> views = ViewStack({"words": words, "links": links})
    >>> views
    ViewStack(4 samples, words: 1 feature, links: 2 features)
    >>> list(views.index)
    ['a', 'b', 'c', 'd']
    >>> views[[1, 2]].views[1].to_numpy()
    array([[ 1.,  0.],
           [nan, nan]])
    """

    _as_array = "pass it to SimilarityFusionNMF, or use a single view, stack.views[0]"

    def __init__(self, views: Any) -> None:
        if isinstance(views, ViewStack):
            self._set(views._held, views.names, views.index)
        else:
            tables, names, index = read_views(views)
            self._set(tables, names, index)

    def _set(self, held, names, index, columns=None):
        super()._set(held, names, index)
        n = held[0].shape[0]
        # the shape of the similarities of n samples by L views
        self.shape = (n, n, len(held))

    @property
    def views(self) -> tuple[Any, ...]:
        """The views, as arrays, CSR arrays or data frames of shape (n, p_l)."""
        return self._held

    @property
    def n_features(self) -> dict[str, int]:
        """Dict from the name of every view to its number of features."""
        views = zip(self.names, self._held, strict=True)
        return {name: int(view.shape[1]) for name, view in views}

    def __repr__(self) -> str:
        parts = [format_count(len(self), "sample")]
        for name, width in self.n_features.items():
            parts.append(f"{name}: {format_count(width, 'feature')}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _cut(self, held, rows, columns):
        return take_samples(held, rows)


def _read_axes(key, owner):
    """Return the row and the column part of a key; the latter is None for all columns."""
    if not isinstance(key, tuple):
        return key, None
    if len(key) == 2:
        rows, columns = key
        if columns is Ellipsis:  # scikit-learn indexes with [rows, ...]
            return rows, None
        open_mesh = [(np.size(rows), 1), (1, np.size(columns))]
        if [np.shape(rows), np.shape(columns)] == open_mesh:  # from numpy.ix_
            return np.ravel(rows), np.ravel(columns)
        if isinstance(rows, slice) or isinstance(columns, slice):
            return rows, columns
    raise ValueError(
        f"{owner} must be indexed by rows, stack[rows], or by rows and columns, "
        f"stack[np.ix_(rows, columns)], got {format_value(key)}."
    )


# --- reading of sources --------------------------------------------------------------------------


def read_names(names, n_named, kind):
    """Return the names of sources or views, which must differ; numbered names for None."""
    if names is None:
        return tuple(f"{kind}{i}" for i in range(n_named))
    is_listed = isinstance(names, Iterable) and not isinstance(names, str)
    listed = list(names) if is_listed else []
    are_text = all(isinstance(name, str) for name in listed)
    if not are_text or not len(listed) == len(set(listed)) == n_named:
        raise ValueError(
            f"names must be a list of {n_named} different str, one for each {kind}, got "
            f"{format_value(names)}."
        )
    return tuple(str(name) for name in listed)


def read_sources(sources, names):
    """Return sources of the same shape, their names, and the names of their rows and columns."""
    if isinstance(sources, dict) and not sp.issparse(sources):
        if names is None:
            names = list(sources)
        sources = list(sources.values())
    if isinstance(sources, np.ndarray) and sources.ndim == 3:
        sources = list(np.moveaxis(sources, 2, 0))
    if not isinstance(sources, list | tuple) or not sources:
        validation.check_container(sources, "sources", "a list of similarity matrices")
        got = getattr(sources, "shape", None) or format_value(sources)
        raise TypeError(
            "sources must be a list of at least one similarity matrix, an array of shape "
            f"(n, m, L) or a SimilarityStack, got {got}; pass a single matrix S as [S]."
        )
    names = read_names(names, len(sources), "source")
    labels = [f"source {name!r} of sources" for name in names]
    tables, index, columns = alignment.align_similarities(list(sources), labels)
    read: list[Source] = []
    for table, label in zip(tables, labels, strict=True):
        validation.check_container(table, label, "a matrix of numbers")
        with named_in_errors(label):
            array = storage.as_matrix(table)
        if read and array.shape != read[0].values.shape:
            raise ValueError(
                f"sources must have the same shape, but {label} has shape {array.shape}, and "
                f"{labels[0]} has {read[0].values.shape}. To leave samples out of a source, pass "
                "data frames whose index and columns name the samples, other than 0, 1, 2, ... "
                "Pass features of several views to fit as views=."
            )
        read.append(_read_nan(array, label))
    return read, names, index, columns


def _read_nan(array, label):
    """Return the `Source` of a matrix, whose NaN must fill whole rows or columns."""
    if not has_nan(array):
        n, m = array.shape
        return Source(array, np.ones(n, dtype=bool), np.ones(m, dtype=bool))
    rows, columns = find_seen(array)
    part = storage.submatrix(array, rows, columns)
    stray_rows, stray_columns = (part != part).nonzero()
    if len(stray_rows):
        row = np.flatnonzero(rows)[stray_rows[0]]
        column = np.flatnonzero(columns)[stray_columns[0]]
        raise ValueError(
            f"{label} must not hold single NaN, as in row {row}, column {column}. NaN marks a "
            "sample that the source does not cover, whose whole row or column must be NaN; fill "
            "other cells."
        )
    stored = storage.stored_values(array)
    values = np.where(np.isnan(stored), 0, stored)
    if sp.issparse(array):
        values = storage.with_nonzero_data(array, values)
    return Source(values, rows, columns)


def read_views(views):
    """Return views with the same samples, their names, and the names of the samples."""
    if not isinstance(views, dict | list | tuple) or not views:
        raise TypeError(
            "views must be a dict or a list of at least one table, or a ViewStack, got "
            f"{format_value(views)}; pass a single table X as [X]."
        )
    keys = None
    if isinstance(views, dict):
        keys = list(views)
        views = list(views.values())
    names = read_names(keys, len(views), "view")
    labels = [f"view {name!r} of views" for name in names]
    tables = []
    for view, label in zip(views, labels, strict=True):
        table = validation.check_readable(view, label)
        if not hasattr(table, "columns"):  # data frames stay as they are
            with named_in_errors(label):
                table = validation.read_matrix(
                    table, label, ensure_all_finite="allow-nan"
                )
        tables.append(table)
    tables, index = alignment.align_samples(tables, labels)
    return tables, names, index


@contextmanager
def named_in_errors(label):
    """Prefix error messages with the name of a source unless they contain it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = str(error)
        raise kind(message if label in message else f"{label}: {message}") from error


# --- checks of similarities -----------------------------------------------------------------------


def check_values(values, label, signed=False):
    """Raise an error if an entry is infinite, or negative unless `signed`."""
    if not all(values.shape):
        return
    if not np.isfinite(storage.max_abs(values)):
        raise ValueError(
            f"{label} must be finite, but it holds infinity; clip its entries."
        )
    if values.min() < 0 and not signed:
        raise ValueError(f"{label} must not be negative; {_of_negative(values)}.")


def _of_negative(values):
    return f"its smallest entry is {values.min():.3g}: {cure_of_negative(values)}"


def cure_of_negative(values):
    """Return advice for negative similarities, for error messages."""
    if _is_network(values):
        part = "S.{}(0)" if sp.issparse(values) else "numpy.{}(S, 0)"
        return (
            f"pass {part.format('maximum')} and N @ N.T as two sources, where "
            f"N = {part.format('minimum')} holds the negative links, and N @ N.T is large for "
            "objects that share them"
        )
    if values.max() <= 0:
        return "pass negated distances -D through a kernel, as numpy.exp(-D / D.mean())"
    return (
        "use criterion='agreement', which allows negative entries, or set these to 0 with "
        "numpy.maximum(S, 0)"
    )


def _is_network(values):
    """Return whether at least half of the entries are 0, among the rows that are not all 0."""
    n_linked = (storage.row_sums(abs(values)) > 0).sum()
    return (values != 0).sum() <= _NETWORK_SHARE * n_linked * values.shape[1]


def check_square(source, label, numbers, signed=False):
    """Raise an error unless samples can be clustered by these similarities to each other.

    They must be symmetric, finite, nonnegative unless `signed`, and some must be above 0. A sample
    whose row is NaN must have a NaN column. Messages identify the samples by their `numbers`.
    """
    values, rows, columns = source
    check_values(values, label, signed)
    if not rows.any():
        raise ValueError(
            f"{label} must cover at least one sample, but all of it is NaN; drop it."
        )
    differs = rows != columns
    if sp.issparse(values):  # columns that store nothing may belong to either kind
        differs &= rows | (abs(values).sum(axis=0) > 0)
    if differs.any():
        raise ValueError(
            f"{label} must be symmetric, but only one of the row and the column of sample "
            f"{numbers[differs].min()} is NaN; set both to NaN if the source does not cover it."
        )
    storage.require_symmetric(values, label)
    seen = values if rows.all() else storage.submatrix(values, rows, columns)
    if storage.looks_like_distances(seen):
        raise ValueError(
            f"{label} must hold similarities, but seems to hold distances D: its diagonal is 0, "
            "and two samples with large entries for a third one have a small entry for each other. "
            "Pass numpy.exp(-(D / numpy.median(D)) ** 2). If they are similarities, set the "
            "diagonal to the largest one."
        )
    check_above_0(values, label)
    n_negative = (values < 0).sum()
    is_signed = n_negative > _NEGATIVE_SHARE * (values > 0).sum()
    if is_signed and _is_network(values):
        warn(
            f"{label} has {n_negative:,} negative links, which are ignored. To use them, "
            f"{cure_of_negative(values)}."
        )


def check_above_0(values, label):
    """Raise an error if no entry is above 0."""
    if values.max() <= 0:
        found = _of_negative(values) if storage.max_abs(values) else "all entries are 0"
        raise ValueError(f"{label} must hold a similarity above 0; {found}.")


def check_cross(
    source,
    known,
    label,
    numbers,
    signed=False,
):
    """Raise an error unless new samples can be labelled by their similarities to those of a fit.

    These must be finite, and nonnegative unless `signed`. Columns of samples that the source
    covered in the fit, the mask `known`, must not be NaN. Messages identify samples by `numbers`.
    """
    check_values(source.values, label, signed)
    lost = ~source.columns & known
    if lost.any():
        raise ValueError(
            f"{label} must not hold NaN in column {numbers[lost].min()}, because it covered this "
            "sample in fit; compute the similarities to it."
        )


def is_similarity(view):
    """Return whether a view looks like similarities of its rows to each other, apart from NaN."""
    table = view if sp.issparse(view) else np.asarray(view)
    if table.dtype.kind not in "biuf" or table.shape[0] < table.shape[1]:
        return False
    rows, columns = find_seen(table)
    names = validation.sample_names(view)
    if names is not None and set(names[rows]) == set(view.columns[columns]):
        return True
    table = storage.submatrix(table, rows, columns)
    if not table.shape[0] == table.shape[1] > 1:
        return False
    table = storage.as_float(table)
    return storage.asymmetry(table) <= _ROUNDED * storage.max_abs(table)


# --- NaN, which does not equal itself; only the stored entries of sparse matrices count ----------


def has_nan(array):
    """Return whether an entry is NaN."""
    return bool(np.isnan(storage.stored_values(array)).any())


def find_seen(array):
    """Return which rows are not all NaN, and which columns are not all NaN in these rows."""
    if sp.issparse(array):
        array = sp.csr_array(array)  # sums of other formats are no arrays
        numbers = storage.with_nonzero_data(array, ~np.isnan(array.data))
        nan = array != array
    else:
        nan = array != array
        numbers = ~nan
    rows = (numbers.sum(axis=1) > 0) | (nan.sum(axis=1) == 0)
    columns = (numbers[rows].sum(axis=0) > 0) | (nan[rows].sum(axis=0) == 0)
    return rows, columns


def with_nan(source):
    """Return a dense array with NaN in the rows and columns of samples not covered."""
    array = np.array(storage.as_dense(source.values))
    array[~source.rows] = np.nan
    array[:, ~source.columns] = np.nan
    return array


def with_marks(source):
    """Return `with_nan` of a dense source, or a sparse one with a NaN in each row not covered.

    Sources without NaN are not copied.
    """
    values, rows, columns = source
    if rows.all() and columns.all():
        return values
    if not sp.issparse(values):
        return with_nan(source)
    lost = np.flatnonzero(~rows if values.shape[1] else [])
    # mark rows on the diagonal, or in the last column where it has ended
    places = np.minimum(lost, values.shape[1] - 1)
    marks = np.full(len(lost), np.nan, dtype=values.dtype)
    marked = sp.csr_array((marks, (lost, places)), shape=values.shape)
    return sp.csr_array(values + marked)


def embed(array, rows, columns):
    """Put a matrix at the rows and columns of two masks into zeros; if all are True, return it.

    Parameters
    ----------
    array : ndarray or csr_array of shape (rows.sum(), columns.sum())
    rows, columns : ndarray of bool

    Returns
    -------
    ndarray or csr_array of shape (len(rows), len(columns))
    """
    if rows.all() and columns.all():
        return array
    shape = (len(rows), len(columns))
    if sp.issparse(array):
        stored = storage.stored_entries(array)
        places = (np.flatnonzero(rows)[stored[0]], np.flatnonzero(columns)[stored[1]])
        return sp.csr_array((stored[2], places), shape=shape)
    whole = np.zeros(shape, dtype=array.dtype)
    whole[np.ix_(rows, columns)] = array
    return whole
