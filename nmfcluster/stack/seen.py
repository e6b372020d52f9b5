"""What a source of similarities has seen: rows and columns of NaN, apart from its values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.storage import filled_with, stored_entries


class Seen(NamedTuple):
    """A source: its similarities, and which of its rows and columns are not NaN."""

    values: Any  # a matrix with 0 in the places of NaN
    rows: np.ndarray  # bool: not NaN throughout
    columns: np.ndarray  # bool: not NaN throughout in these rows


def without_nan(array: Any) -> tuple[Seen, tuple[int, int] | None]:
    """Tell values from rows and columns that are NaN throughout.

    In a sparse matrix the entries that are stored count.

    Parameters
    ----------
    array : ndarray or csr_array
        At least one entry is NaN.

    Returns
    -------
    part : Seen
    stray : tuple of int, or None
        Position of a NaN whose row and column both hold numbers.
    """
    nan = np.isnan(array.data if sp.issparse(array) else array)
    if sp.issparse(array):
        return _without_stored_nan(array, nan)
    rows = ~nan.all(axis=1)
    stray = nan & rows[:, None]
    columns = (~nan & rows[:, None]).any(axis=0) | ~stray.any(axis=0)
    stray &= columns
    first = int(stray.argmax())
    position = divmod(first, array.shape[1]) if stray.flat[first] else None
    return Seen(np.where(nan, 0, array), rows, columns), position


def _without_stored_nan(array: Any, nan: np.ndarray) -> tuple[Seen, tuple[int, int] | None]:
    i, j, data = stored_entries(array)
    rows = _held(i, nan, array.shape[0])
    left = rows[i]
    columns = _held(j[left], nan[left], array.shape[1])
    stray = np.flatnonzero(nan & left & columns[j])
    position = (int(i[stray[0]]), int(j[stray[0]])) if len(stray) else None
    return Seen(filled_with(array, np.where(nan, 0, data)), rows, columns), position


def _held(lines: np.ndarray, nan: np.ndarray, n: int) -> np.ndarray:
    """Return which of the lines 0 to n - 1 hold a number, or no NaN."""
    numbers, missing = (np.bincount(lines[part], minlength=n) for part in (~nan, nan))
    return (numbers > 0) | (missing == 0)


def with_nan(part: Seen, mark: bool = False) -> Any:
    """Return a matrix with NaN in the rows and columns that were not seen.

    Parameters
    ----------
    part : Seen
    mark : bool, default=False
        Whether a sparse matrix stays one, with one NaN in each row that was not seen; else it
        becomes an array.

    Returns
    -------
    ndarray or csr_array
    """
    values, rows, columns = part
    if not mark or not sp.issparse(values):
        array = values.toarray() if sp.issparse(values) else values.copy()
        array[~rows] = np.nan
        array[:, ~columns] = np.nan
        return array
    lost, stored = np.flatnonzero(~rows if values.shape[1] else []), values.tocoo()
    marks = np.full(len(lost), np.nan, dtype=values.dtype)
    places = np.minimum(lost, values.shape[1] - 1)  # the diagonal, where there is one
    data = np.concatenate([stored.data, marks])
    at = np.concatenate([stored.row, lost]), np.concatenate([stored.col, places])
    return sp.csr_array((data, at), shape=values.shape)


def first_nan(array: Any) -> tuple[int, int] | None:
    """Return the row and the column of a NaN, None where there is none."""
    if sp.issparse(array):
        i, j, data = stored_entries(array)
        places = np.column_stack([i, j])[np.isnan(data)]
    else:
        places = np.argwhere(np.isnan(array))
    return (int(places[0, 0]), int(places[0, 1])) if len(places) else None


def cut(array: Any, rows: np.ndarray, columns: np.ndarray | None = None) -> Any:
    """Return some rows and columns of a matrix, or all columns, in a new matrix of its kind."""
    if not sp.issparse(array):
        return array[rows] if columns is None else array[np.ix_(rows, columns)]
    part = array[rows] if columns is None else array[rows][:, columns]
    part.sort_indices()
    return part


def embedded(array: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Return a matrix of zeros that holds another one where two masks cross.

    Parameters
    ----------
    array : ndarray or csr_array of shape (rows.sum(), columns.sum())
    rows, columns : ndarray of bool

    Returns
    -------
    ndarray or csr_array of shape (len(rows), len(columns))
    """
    shape, rows, columns = (len(rows), len(columns)), np.flatnonzero(rows), np.flatnonzero(columns)
    if sp.issparse(array):
        stored = array.tocoo()
        return sp.csr_array((stored.data, (rows[stored.row], columns[stored.col])), shape=shape)
    whole = np.zeros(shape, dtype=array.dtype)
    whole[np.ix_(rows, columns)] = array
    return whole
