"""Containers of several sources of the same samples, and how these are read and checked.

A source is a matrix of similarities, or a table of features.
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

# asymmetry that is rounding, as a share of the largest entry
_ROUNDED = 1e-12
# share of entries above which a matrix is no network, and of negative links that are warned of
_NETWORK_SHARE = 0.5
_NEGATIVE_SHARE = 0.05


class Source(NamedTuple):
    """The similarities of a source, and which of its rows and columns are not NaN."""

    values: Any  # a matrix with 0 in the places of NaN
    rows: np.ndarray  # bool: not NaN throughout
    columns: np.ndarray  # bool: not NaN throughout in these rows


class _Stack:
    """Base of the containers: samples in several sources, which are split together.

    Attributes
    ----------
    names : tuple of str
        The names of the sources.
    index : Index or None
        The names of the samples.
    shape : tuple of int
        ``(n, m, L)``: samples, samples that they are similar to, sources.
    """

    shape: tuple[int, int, int]
    _as_array: ClassVar[str]  # what an error of numpy.asarray says to take instead

    @classmethod
    def _unchecked(cls, held, names, index=None, columns=None):
        """Return a stack of sources that are checked."""
        new = cls.__new__(cls)
        new._set(held, names, index, columns)
        return new

    def _set(self, held, names, index, columns=None):
        self._held = tuple(held)  # what is kept of every source
        self.names = names
        self.index = index
        self._columns = columns  # names of the samples that these are similar to

    def _cut(self, held, rows, columns):
        """Return some samples of one source; None: all columns."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(f"a {type(self).__name__} is no array: {self._as_array}.")

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
    """Similarities of the same samples by several sources: matrices, dense and sparse mixed.

    Its length is the number of samples, and it is split like them. Cross-validation and grid search
    of an estimator that takes similarities cut ``stack[np.ix_(rows, columns)]``, both axes of all
    sources; ``stack[rows]`` cuts the first axis alone. Sparse sources stay sparse.

    NaN stands for a sample that a source has not seen: its row is NaN throughout and, if the
    columns stand for the same samples, its column too. In a sparse source only stored NaN count,
    and a single one, say on the diagonal, marks a row that stores nothing else.

    Parameters
    ----------
    sources : list or dict of {array-like, sparse matrix} of shape (n, m), ndarray of shape \
            (n, m, L) or SimilarityStack
        Similarities of n samples to m samples: to each other, n = m, or to the samples that a
        model was fitted on. Rows and columns of data frames are matched by their names, if these
        are not 0, 1, ...; those of other matrices are taken by position, with a warning beside
        data frames that have names. If all sources are data
        frames that have the same names in rows and columns, each can have some of the samples:
        these are then those of all of them, in the order in which they occur, and a source has
        not seen those that its frame does not have. float32 stays float32 if all sources are,
        everything else becomes float64. Not copied where that can be avoided, and never written to.
    names : sequence of str, default=None
        One name for each source, no two the same; the keys of a dict, or "source0", "source1",
        ... by default.

    Attributes
    ----------
    names : tuple of str
        The names of the sources.
    index : Index or None
        Names of the samples, if a data frame has some.
    shape : tuple of int
        ``(n, m, L)``: samples, samples that they are similar to, sources.

    Raises
    ------
    TypeError
        If `sources` is none of the above, or empty, or a source does not hold numbers.
    ValueError
        If sources differ in shape, a row and a column are both NaN in part, `names` do not fit, or
        it is not known which rows of the data frames belong together.

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

    _as_array = (
        "its matrices are in stack.sources, and stack.toarray() makes one of them"
    )

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
        """float32 or float64, that of all sources."""
        return np.dtype(self._held[0].values.dtype)

    @property
    def sources(self) -> tuple[Any, ...]:
        """The matrices, (n, m) arrays and CSR arrays, with NaN for what was not seen."""
        return tuple(map(with_marks, self._held))

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
        return tuple(source.values for source in self._held)

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
        return np.column_stack([source.rows for source in self._held])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False or any(sp.issparse(source.values) for source in self._held):
            return super().__array__()  # which refuses it
        return np.asarray(self.toarray(), dtype=dtype)

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
        return np.stack(list(map(with_nan, self._held)), axis=-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, names={self.names})"

    def _cut(self, held, rows, columns):
        seen_columns = held.columns if columns is None else held.columns[columns]
        return Source(
            storage.submatrix(held.values, rows, columns), held.rows[rows], seen_columns
        )


class ViewStack(_Stack):
    """Views of the same samples: several tables of features, of different widths.

    Its length is the number of samples, and it is split like them: ``views[rows]``. For an
    estimator with ``affinity="precomputed"`` scikit-learn cuts ``views[np.ix_(rows, columns)]``,
    which returns the rows, as similarities are made of features only when a model is fitted.

    Parameters
    ----------
    views : dict or list of {array-like, sparse matrix} of shape (n, p_l), or ViewStack
        Each table has a row for every sample; NaN throughout where the view lacks it. The keys of
        a dict are names. Rows of data frames are matched by their index, if it is not 0, 1, ...:
        the samples are those of all of them, in the order in which they occur, and one that a
        frame does not have is missing from this view. Rows of other tables are taken by position,
        with a warning beside data frames that have names.

    Attributes
    ----------
    names : tuple of str
        The names of the views: the keys of a dict, else "view0", "view1", ...
    index : Index or None
        Names of the samples, if a data frame has some.
    shape : tuple of int
        ``(n, n, L)``, as that of the similarities of n samples by L views.

    Raises
    ------
    TypeError
        If `views` is none of the above, or empty.
    ValueError
        If a table does not hold numbers, or it is not known which rows of the
        tables belong together.

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

    _as_array = (
        "SimilarityFusionNMF clusters by all of its tables; one alone is stack.views[0]"
    )

    def __init__(self, views: Any) -> None:
        if isinstance(views, ViewStack):
            self._set(views._held, views.names, views.index)
        else:
            tables, names, index = read_views(views)
            self._set(tables, names, index)

    def _set(self, held, names, index, columns=None):
        super()._set(held, names, index)
        n = held[0].shape[0]
        # as that of the similarities of n samples by L views
        self.shape = (n, n, len(held))

    @property
    def views(self) -> tuple[Any, ...]:
        """The tables, arrays, CSR arrays or data frames of shape (n, p_l)."""
        return self._held

    @property
    def n_features(self) -> dict[str, int]:
        """The number of features of every view, by its name."""
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
    """Return the parts of a key for rows and for columns; None for all columns."""
    if not isinstance(key, tuple):
        return key, None
    if len(key) == 2:
        rows, columns = key
        if columns is Ellipsis:  # scikit-learn asks for [rows, ...]
            return rows, None
        open_mesh = [(np.size(rows), 1), (1, np.size(columns))]
        if [np.shape(rows), np.shape(columns)] == open_mesh:  # of numpy.ix_
            return np.ravel(rows), np.ravel(columns)
        if isinstance(rows, slice) or isinstance(columns, slice):
            return rows, columns
    raise ValueError(
        f"{owner} is indexed by rows, stack[rows], or by rows and columns, "
        f"stack[np.ix_(rows, columns)], got {format_value(key)}."
    )


# --- how sources are read ------------------------------------------------------------------------


def read_names(names, n_named, kind):
    """Return the names of sources or views, which must differ; numbered names for None."""
    if names is None:
        return tuple(f"{kind}{i}" for i in range(n_named))
    is_listed = isinstance(names, Iterable) and not isinstance(names, str)
    listed = list(names) if is_listed else []
    are_text = all(isinstance(name, str) for name in listed)
    if not are_text or not len(listed) == len(set(listed)) == n_named:
        raise ValueError(
            f"names must be a list of {n_named} str, one for each {kind}, no two the same, got "
            f"{format_value(names)}."
        )
    return tuple(str(name) for name in listed)


def read_sources(sources, names):
    """Return sources of one shape, their names, and those of their rows and columns."""
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
            f"(n, m, L) or a SimilarityStack, got {got}; a single matrix S is given as [S]."
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
                f"sources must be of one shape: {label} has shape {array.shape}, {labels[0]} has "
                f"{read[0].values.shape}. Some samples can be left out where all sources are data "
                "frames whose index and columns name their samples, not by 0, 1, 2, ...; features "
                "of several views are given to fit as views=."
            )
        read.append(_read_nan(array, label))
    return read, names, index, columns


def _read_nan(array, label):
    """Tell values from the rows and columns that are NaN."""
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
            f"{label} holds NaN in row {row}, column {column}, and numbers beside it. NaN stands "
            "for a sample that the source has not seen: all of its row, or its column, must be "
            "NaN."
        )
    stored = storage.stored_values(array)
    values = np.where(np.isnan(stored), 0, stored)
    if sp.issparse(array):
        values = storage.with_nonzero_data(array, values)
    return Source(values, rows, columns)


def read_views(views):
    """Return tables with the same samples, their names, and those of the samples."""
    if not isinstance(views, dict | list | tuple) or not views:
        raise TypeError(
            "views must be a dict or a list of at least one table, or a ViewStack, got "
            f"{format_value(views)}; a single table X is given as [X]."
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
    """Put the name of a source before the message of an error that does not have it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = str(error)
        raise kind(message if label in message else f"{label}: {message}") from error


# --- what estimators ask of similarities ----------------------------------------------------------


def check_values(values, label, signed=False):
    """Raise if an entry is infinite, or negative unless these are `signed`."""
    if not all(values.shape):
        return
    if not np.isfinite(storage.max_abs(values)):
        raise ValueError(f"{label} must be finite; it holds infinity.")
    if values.min() < 0 and not signed:
        raise ValueError(f"{label} must not be negative; {_of_negative(values)}.")


def _of_negative(values):
    return f"its smallest entry is {values.min():.3g}: {cure_of_negative(values)}"


def cure_of_negative(values):
    """Return what to do about negative similarities."""
    if _is_network(values):
        part = "S.{}(0)" if sp.issparse(values) else "numpy.{}(S, 0)"
        return (
            f"pass {part.format('maximum')} and N @ N.T as two sources, where "
            f"N = {part.format('minimum')} has the negative links, and objects with the same ones "
            "are alike"
        )
    if values.max() <= 0:
        return "negated distances -D need a kernel, numpy.exp(-D / D.mean()) say"
    return "criterion='agreement' takes what is negative, or set it to 0, numpy.maximum(S, 0)"


def _is_network(values):
    """Return whether most entries are 0, among the rows that are not 0."""
    n_linked = (storage.row_sums(abs(values)) > 0).sum()
    return (values != 0).sum() <= _NETWORK_SHARE * n_linked * values.shape[1]


def check_square(source, label, numbers, signed=False):
    """Raise unless samples can be clustered by their similarities to each other.

    These must be symmetric, finite, nonnegative unless `signed`, and some above 0; and a sample
    that is NaN in its row must be so in its column. Messages call the samples by their `numbers`.
    """
    values, rows, columns = source
    check_values(values, label, signed)
    if not rows.any():
        raise ValueError(f"{label} must have seen a sample; all of it is NaN.")
    differs = rows != columns
    if sp.issparse(values):  # what is not stored is neither a number nor NaN
        differs &= rows | (abs(values).sum(axis=0) > 0)
    if differs.any():
        raise ValueError(
            f"{label} must be symmetric: sample {numbers[differs].min()} is NaN in its row or in "
            "its column, as one that the source has not seen, but not in both."
        )
    storage.require_symmetric(values, label)
    seen = values if rows.all() else storage.submatrix(values, rows, columns)
    if storage.looks_like_distances(seen):
        raise ValueError(
            f"{label} must hold similarities, and seems to hold distances D: it is 0 on the "
            "diagonal, and samples that are far from a third one are near to each other. Pass "
            "numpy.exp(-(D / numpy.median(D)) ** 2). If they are similarities, set the diagonal "
            "to the largest one."
        )
    check_above_0(values, label)
    n_negative = (values < 0).sum()
    is_signed = n_negative > _NEGATIVE_SHARE * (values > 0).sum()
    if is_signed and _is_network(values):
        warn(
            f"{label} has {n_negative:,} links below 0, which count as none: "
            f"{cure_of_negative(values)}."
        )


def check_above_0(values, label):
    """Raise if no entry is above 0."""
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
    """Raise unless new samples can be placed by their similarities to those of a fit.

    These must be finite, and nonnegative unless `signed`; no number may be missing for a sample of
    the fit that was `known` to the source. Messages call these samples by their `numbers`.
    """
    check_values(source.values, label, signed)
    lost = ~source.columns & known
    if lost.any():
        raise ValueError(
            f"{label} holds NaN in column {numbers[lost].min()}, the similarities to a sample "
            "that it had seen in fit."
        )


def is_similarity(view):
    """Return whether a table looks like similarities of its rows, but for NaN, to each other."""
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


# --- what is NaN, and so is not equal to itself; of a sparse matrix the stored entries count -----


def has_nan(array):
    """Return whether an entry is NaN."""
    return bool(np.isnan(storage.stored_values(array)).any())


def find_seen(array):
    """Return which rows are not NaN throughout, and which columns are not so in these rows."""
    if sp.issparse(array):
        array = sp.csr_array(array)  # whose sums are arrays
        numbers = storage.with_nonzero_data(array, ~np.isnan(array.data))
        nan = array != array
    else:
        nan = array != array
        numbers = ~nan
    rows = (numbers.sum(axis=1) > 0) | (nan.sum(axis=1) == 0)
    columns = (numbers[rows].sum(axis=0) > 0) | (nan[rows].sum(axis=0) == 0)
    return rows, columns


def with_nan(source):
    """Return an array with NaN in the rows and columns that were not seen."""
    array = np.array(storage.as_dense(source.values))
    array[~source.rows] = np.nan
    array[:, ~source.columns] = np.nan
    return array


def with_marks(source):
    """Return a matrix as `with_nan` does, but sparse if it is, with one NaN in each row not seen.

    It is not copied if it has no NaN.
    """
    values, rows, columns = source
    if rows.all() and columns.all():
        return values
    if not sp.issparse(values):
        return with_nan(source)
    lost = np.flatnonzero(~rows if values.shape[1] else [])
    places = np.minimum(lost, values.shape[1] - 1)  # the diagonal, where there is one
    marks = np.full(len(lost), np.nan, dtype=values.dtype)
    marked = sp.csr_array((marks, (lost, places)), shape=values.shape)
    return sp.csr_array(values + marked)


def embed(array, rows, columns):
    """Return a matrix of zeros that holds another one where two masks cross; itself if all do.

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
