"""Sources of a stack: matrices and tables as they are read, and what is NaN in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nmfcluster._base import warn_of_distances
from nmfcluster._utils import alignment, storage, validation
from nmfcluster._utils.validation import shown


class Source(NamedTuple):
    """The similarities of a source, and which of its rows and columns are not NaN."""

    values: Any  # a matrix with 0 in the places of NaN
    rows: np.ndarray  # bool: not NaN throughout
    columns: np.ndarray  # bool: not NaN throughout in these rows

    @classmethod
    def of_seen(cls, block: Any, rows: np.ndarray, columns: np.ndarray) -> Source:
        """Return the source of similarities of what was seen alone: masks of rows and columns."""
        return cls(embedded(block, rows, columns), rows, columns)


def read_names(names: Any, n_named: int, kind: str) -> tuple[str, ...]:
    """Return the names of sources or views, which must differ; None: numbers."""
    if names is None:
        return tuple(f"{kind}{i}" for i in range(n_named))
    listed = (
        list(names)
        if isinstance(names, Iterable) and not isinstance(names, str)
        else []
    )
    are_text = all(isinstance(name, str) for name in listed)
    if not are_text or not len(listed) == len(set(listed)) == n_named:
        wanted = f"a list of {n_named} str, one for each {kind}, no two the same"
        raise ValueError(f"names must be {wanted}, got {shown(names)}.")
    return tuple(str(name) for name in listed)


def read_sources(
    sources: Any, names: Any
) -> tuple[list[Source], tuple[str, ...], Any, Any]:
    """Return sources of one shape, their names, and those of their rows and columns."""
    if isinstance(sources, dict) and not sp.issparse(sources):
        names, sources = (
            list(sources) if names is None else names,
            list(sources.values()),
        )
    if isinstance(sources, np.ndarray) and sources.ndim == 3:
        sources = list(np.moveaxis(sources, 2, 0))
    if not isinstance(sources, list | tuple) or not sources:
        validation.check_opened(sources, "sources", "a list of similarity matrices")
        got = f"shape {sources.shape}" if hasattr(sources, "shape") else shown(sources)
        raise TypeError(
            "sources must be a list of at least one similarity matrix, an array of shape "
            f"(n, m, L) or a SimilarityStack, got {got}; a single matrix S is given as [S]."
        )
    names = read_names(names, len(sources), "source")
    labels = [f"source {name!r} of sources" for name in names]
    sources, held_by, index, columns = alignment.in_one_order(list(sources), labels)
    read: list[Source] = []
    for source, some, label in zip(sources, held_by, labels, strict=True):
        validation.check_opened(source, label, "a matrix of numbers")
        with named_in_errors(label):
            array = storage.as_matrix(source)
        if read and some is None and array.shape != read[0].values.shape:
            raise ValueError(
                f"sources must be of one shape: {label} has shape {array.shape}, {labels[0]} has "
                f"{read[0].values.shape}. Some samples can be left out where all sources are data "
                "frames whose index and columns name their samples, not by 0, 1, 2, ...; features "
                "of several views are given to fit as views=."
            )
        found = _read_nan(array, label)
        read.append(found if some is None else _among(found, some))
    return read, names, index, columns


def _among(source: Source, some: np.ndarray) -> Source:
    """Return a source of some samples as one of all, which has not seen the others."""
    rows, columns = np.zeros((2, len(some)), dtype=bool)
    rows[some], columns[some] = source.rows, source.columns
    return Source(embedded(source.values, some, some), rows, columns)


def _read_nan(array: Any, label: str) -> Source:
    """Tell values from the rows and columns that are NaN."""
    if not holds_nan(array):
        return Source(array, *(np.ones(length, dtype=bool) for length in array.shape))
    rows, columns = held(array)
    numbers = np.flatnonzero(rows), np.flatnonzero(columns)
    if (stray := first_nan(storage.cut(array, *numbers))) is not None:
        row, column = (
            named[place] for named, place in zip(numbers, stray, strict=True)
        )
        told = f"{label} holds NaN in row {row}, column {column}, and numbers beside it"
        must = "all of its row, or its column, must be NaN"
        raise ValueError(
            f"{told}. NaN stands for a sample that the source has not seen: {must}."
        )
    if not sp.issparse(array):
        return Source(np.where(np.isnan(array), 0, array), rows, columns)
    values = np.where(np.isnan(array.data), 0, array.data)
    return Source(storage.filled_with(array, values), rows, columns)


def read_tables(views: Any) -> tuple[list[Any], tuple[str, ...], Any]:
    """Return tables with the same samples, their names, and those of the samples."""
    if not isinstance(views, dict | list | tuple) or not views:
        wanted = "a dict or a list of at least one table, or a ViewStack"
        cure = "a single table X is given as [X]"
        raise TypeError(f"views must be {wanted}, got {shown(views)}; {cure}.")
    keys, views = (
        (list(views), list(views.values()))
        if isinstance(views, dict)
        else (None, views)
    )
    names = read_names(keys, len(views), "view")
    labels = [f"view {name!r} of views" for name in names]
    read = [_read_table(view, label) for view, label in zip(views, labels, strict=True)]
    read, index = alignment.with_all_samples(read, labels)
    return read, names, index


def _read_table(view: Any, label: str) -> Any:
    """Return a table of numbers: data frames as they are, else an array or a CSR matrix."""
    table = validation.check_readable(view, label)
    if hasattr(table, "columns"):
        return table
    if table.ndim == 1:
        raise TypeError(
            f"{label} must be a table with a row for every sample, got {shown(view)}."
        )
    with named_in_errors(label):
        return validation.read_table(table, label, ensure_all_finite="allow-nan")


@contextmanager
def named_in_errors(label: str) -> Iterator[None]:
    """Put the name of a source before the message of an error that does not have it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = str(error)
        raise kind(message if label in message else f"{label}: {message}") from error


def check_values(values: Any, label: str, signed: bool = False) -> None:
    """Raise if an entry is infinite, or negative unless these are `signed`."""
    if not all(values.shape):
        return
    if not np.isfinite(storage.largest(values)):
        raise ValueError(f"{label} must be finite; it holds infinity.")
    if values.min() < 0 and not signed:
        raise ValueError(f"{label} must not be negative; {_of_negative(values)}.")


def _of_negative(values: Any) -> str:
    return f"its smallest entry is {values.min():.3g}: {cure_of_negative(values)}"


def cure_of_negative(values: Any) -> str:
    """Return what to do about negative similarities."""
    if values.max() <= 0:
        return "negated distances -D need a kernel, numpy.exp(-D / D.mean()) say"
    return "criterion='agreement' takes what is negative, or set it to 0, numpy.maximum(S, 0)"


def check_square(
    source: Source, label: str, numbers: np.ndarray, signed: bool = False
) -> None:
    """Raise unless samples can be clustered by their similarities to each other.

    These must be symmetric, finite, nonnegative unless `signed`, and some above 0; and a sample
    that is NaN in its row must be so in its column. Messages call the samples by their `numbers`.
    """
    values, rows, columns = source
    check_values(values, label, signed)
    if not rows.any():
        raise ValueError(f"{label} must have seen a sample; all of it is NaN.")
    apart = rows != columns
    if sp.issparse(
        values
    ):  # an entry that is not stored counts neither as a number nor as NaN
        apart &= rows | (abs(values).sum(axis=0) > 0)
    if apart.any():
        told = f"sample {numbers[apart].min()} is NaN in its row or in its column"
        why = "as one that the source has not seen, but not in both"
        raise ValueError(f"{label} must be symmetric: {told}, {why}.")
    storage.require_symmetric(values, label)
    warn_of_distances(values, label)
    check_above_0(values, label)


def check_above_0(values: Any, label: str) -> None:
    """Raise if no entry is above 0."""
    if values.max() <= 0:
        found = _of_negative(values) if storage.largest(values) else "all entries are 0"
        raise ValueError(f"{label} must hold a similarity above 0; {found}.")


def check_cross(
    source: Source,
    known: np.ndarray,
    label: str,
    numbers: np.ndarray,
    signed: bool = False,
) -> None:
    """Raise unless new samples can be placed by their similarities to those of a fit.

    These must be finite, and nonnegative unless `signed`; no number may be missing for a sample of
    the fit that was `known` to the source. Messages call these samples by their `numbers`.
    """
    check_values(source.values, label, signed)
    if len(lost := np.flatnonzero(~source.columns & known)):
        told = f"{label} holds NaN in column {numbers[lost].min()}"
        raise ValueError(
            f"{told}, the similarities to a sample that it had seen in fit."
        )


def is_similarity(view: Any) -> bool:
    """Return whether a table looks like similarities of its rows, but for NaN, to each other."""
    table = view if sp.issparse(view) else np.asarray(view)
    if table.dtype.kind not in "biuf" or table.shape[0] < table.shape[1]:
        return False
    rows, columns = held(table)
    names = validation.sample_names(view)
    if names is not None and set(names[rows]) == set(view.columns[columns]):
        return True
    table = storage.cut(table, np.flatnonzero(rows), np.flatnonzero(columns))
    return (
        table.shape[0] == table.shape[1] > 1
        and storage.asymmetry(storage.as_float(table)) == 0
    )


# --- what is NaN, and so is not equal to itself; of a sparse matrix the stored entries count -----


def holds_nan(array: Any) -> bool:
    """Return whether an entry is NaN."""
    return bool(np.isnan(array.data if sp.issparse(array) else array).any())


def first_nan(array: Any) -> tuple[int, int] | None:
    """Return the row and the column of a NaN, None where there is none."""
    i, j = (array != array).nonzero()
    return (int(i[0]), int(j[0])) if len(i) else None


def held(array: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are not NaN throughout, and which columns are not so in these rows."""
    array = (
        sp.csr_array(array) if sp.issparse(array) else array
    )  # whose sums are arrays
    nan = array != array
    numbers = (
        storage.filled_with(array, ~np.isnan(array.data))
        if sp.issparse(array)
        else ~nan
    )
    rows = (numbers.sum(axis=1) > 0) | (nan.sum(axis=1) == 0)
    return rows, (numbers[rows].sum(axis=0) > 0) | (nan[rows].sum(axis=0) == 0)


def with_nan(source: Source, mark: bool = False) -> Any:
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
        array = values.toarray() if sp.issparse(values) else values.copy()
        array[~rows] = np.nan
        array[:, ~columns] = np.nan
        return array
    lost = np.flatnonzero(~rows if values.shape[1] else [])
    places = np.minimum(lost, values.shape[1] - 1)  # the diagonal, where there is one
    marks = np.full(len(lost), np.nan, dtype=values.dtype)
    return sp.csr_array(
        values + sp.csr_array((marks, (lost, places)), shape=values.shape)
    )


# --- parts of a matrix ---------------------------------------------------------------------------


def embedded(array: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
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
    shape, rows, columns = (
        (len(rows), len(columns)),
        np.flatnonzero(rows),
        np.flatnonzero(columns),
    )
    if sp.issparse(array):
        stored = array.tocoo()
        return sp.csr_array(
            (stored.data, (rows[stored.row], columns[stored.col])), shape=shape
        )
    whole = np.zeros(shape, dtype=array.dtype)
    whole[np.ix_(rows, columns)] = array
    return whole
