"""Sources of a stack: matrices and tables as they are read, and what is NaN in them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nmfcluster._base import warn_of_distances
from nmfcluster._utils import alignment, storage, validation
from nmfcluster._utils.validation import format_value


class Source(NamedTuple):
    """The similarities of a source, and which of its rows and columns are not NaN."""

    values: Any  # a matrix with 0 in the places of NaN
    rows: np.ndarray  # bool: not NaN throughout
    columns: np.ndarray  # bool: not NaN throughout in these rows

    @classmethod
    def of_seen(cls, block, rows, columns) -> Source:
        """Return the source of similarities of what was seen alone: masks of rows and columns."""
        return cls(embed(block, rows, columns), rows, columns)


def read_names(names, n_named: int, kind: str):
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
        got = format_value(sources)
        if hasattr(sources, "shape"):
            got = f"shape {sources.shape}"
        raise TypeError(
            "sources must be a list of at least one similarity matrix, an array of shape "
            f"(n, m, L) or a SimilarityStack, got {got}; a single matrix S is given as [S]."
        )
    names = read_names(names, len(sources), "source")
    labels = [f"source {name!r} of sources" for name in names]
    tables, masks, index, columns = alignment.align_similarities(list(sources), labels)
    read: list[Source] = []
    for table, mask, label in zip(tables, masks, labels, strict=True):
        validation.check_container(table, label, "a matrix of numbers")
        with named_in_errors(label):
            array = storage.as_matrix(table)
        if read and mask is None and array.shape != read[0].values.shape:
            raise ValueError(
                f"sources must be of one shape: {label} has shape {array.shape}, {labels[0]} has "
                f"{read[0].values.shape}. Some samples can be left out where all sources are data "
                "frames whose index and columns name their samples, not by 0, 1, 2, ...; features "
                "of several views are given to fit as views=."
            )
        source = _read_nan(array, label)
        if mask is not None:  # it has not seen the samples outside the mask
            rows = mask.copy()
            rows[mask] = source.rows
            seen_columns = mask.copy()
            seen_columns[mask] = source.columns
            source = Source(embed(source.values, mask, mask), rows, seen_columns)
        read.append(source)
    return read, names, index, columns


def _read_nan(array, label: str) -> Source:
    """Tell values from the rows and columns that are NaN."""
    if not has_nan(array):
        rows, columns = (np.ones(length, dtype=bool) for length in array.shape)
        return Source(array, rows, columns)
    rows, columns = find_seen(array)
    row_numbers = np.flatnonzero(rows)
    column_numbers = np.flatnonzero(columns)
    stray = first_nan(storage.submatrix(array, row_numbers, column_numbers))
    if stray is not None:
        row = row_numbers[stray[0]]
        column = column_numbers[stray[1]]
        raise ValueError(
            f"{label} holds NaN in row {row}, column {column}, and numbers beside it. NaN stands "
            "for a sample that the source has not seen: all of its row, or its column, must be "
            "NaN."
        )
    stored = array.data if sp.issparse(array) else array
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
            if table.ndim == 1:
                raise TypeError(
                    f"{label} must be a table with a row for every sample, "
                    f"got {format_value(view)}."
                )
            with named_in_errors(label):
                table = validation.read_matrix(
                    table, label, ensure_all_finite="allow-nan"
                )
        tables.append(table)
    tables, index = alignment.align_samples(tables, labels)
    return tables, names, index


@contextmanager
def named_in_errors(label: str):
    """Put the name of a source before the message of an error that does not have it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = str(error)
        raise kind(message if label in message else f"{label}: {message}") from error


def check_values(values, label: str, signed: bool = False) -> None:
    """Raise if an entry is infinite, or negative unless these are `signed`."""
    if not all(values.shape):
        return
    if not np.isfinite(storage.max_abs(values)):
        raise ValueError(f"{label} must be finite; it holds infinity.")
    if values.min() < 0 and not signed:
        raise ValueError(f"{label} must not be negative; {_of_negative(values)}.")


def _of_negative(values) -> str:
    return f"its smallest entry is {values.min():.3g}: {cure_of_negative(values)}"


def cure_of_negative(values) -> str:
    """Return what to do about negative similarities."""
    if values.max() <= 0:
        return "negated distances -D need a kernel, numpy.exp(-D / D.mean()) say"
    return "criterion='agreement' takes what is negative, or set it to 0, numpy.maximum(S, 0)"


def check_square(source: Source, label: str, numbers, signed: bool = False) -> None:
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
    warn_of_distances(values, label)
    check_above_0(values, label)


def check_above_0(values, label: str) -> None:
    """Raise if no entry is above 0."""
    if values.max() <= 0:
        found = _of_negative(values) if storage.max_abs(values) else "all entries are 0"
        raise ValueError(f"{label} must hold a similarity above 0; {found}.")


def check_cross(
    source: Source,
    known,
    label: str,
    numbers,
    signed: bool = False,
) -> None:
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


def is_similarity(view) -> bool:
    """Return whether a table looks like similarities of its rows, but for NaN, to each other."""
    table = view if sp.issparse(view) else np.asarray(view)
    if table.dtype.kind not in "biuf" or table.shape[0] < table.shape[1]:
        return False
    rows, columns = find_seen(table)
    names = validation.sample_names(view)
    if names is not None and set(names[rows]) == set(view.columns[columns]):
        return True
    table = storage.submatrix(table, np.flatnonzero(rows), np.flatnonzero(columns))
    is_square = table.shape[0] == table.shape[1] > 1
    return is_square and storage.asymmetry(storage.as_float(table)) == 0


# --- what is NaN, and so is not equal to itself; of a sparse matrix the stored entries count -----


def has_nan(array) -> bool:
    """Return whether an entry is NaN."""
    return bool(np.isnan(array.data if sp.issparse(array) else array).any())


def first_nan(array):
    """Return the row and the column of a NaN, None where there is none."""
    i, j = (array != array).nonzero()
    return (int(i[0]), int(j[0])) if len(i) else None


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


def with_nan(source: Source, mark: bool = False):
    """Return a matrix with NaN in the rows and columns that were not seen.

    Parameters
    ----------
    source : Source
    mark : bool, default=False
        Whether a sparse matrix stays one, with one NaN in each row that was not seen; else it
        becomes an array. What has no NaN is not copied then.

    Returns
    -------
    ndarray or csr_array
    """
    values, rows, columns = source
    if mark and rows.all() and columns.all():
        return values
    if not mark or not sp.issparse(values):
        array = np.array(storage.as_dense(values))
        array[~rows] = np.nan
        array[:, ~columns] = np.nan
        return array
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
    row_numbers = np.flatnonzero(rows)
    column_numbers = np.flatnonzero(columns)
    if sp.issparse(array):
        stored = array.tocoo()
        cells = (row_numbers[stored.row], column_numbers[stored.col])
        return sp.csr_array((stored.data, cells), shape=shape)
    whole = np.zeros(shape, dtype=array.dtype)
    whole[np.ix_(row_numbers, column_numbers)] = array
    return whole
