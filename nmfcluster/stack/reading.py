"""What a user says of several sources of similarity, read and checked: matrices, keys, kernels."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from nmfcluster._arrays.arguments import positions, shown
from nmfcluster._arrays.storage import Seen, as_matrix, first_nan, without_nan


def called(index: int, name: str, where: str) -> str:
    """Return what an error message calls a source."""
    return f"source {index} ({name!r}) of {where}"


def read_sources(sources: Any, names: Any) -> tuple[list[Seen], tuple[str, ...]]:
    """Return matrices of one shape, without their NaN, and their names.

    Parameters
    ----------
    sources : list of {array-like, sparse matrix} of shape (n, m), or ndarray of shape (n, m, L)
    names : sequence of str, or None

    Returns
    -------
    parts : list of Seen
    names : tuple of str
    """
    given = _listed(sources)
    names = read_names(names, len(given))
    labels = [called(i, name, "sources") for i, name in enumerate(names)]
    arrays = [_read_source(source, label) for source, label in zip(given, labels, strict=True)]
    for array, label in zip(arrays, labels, strict=True):
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"sources must be of one shape: {label} has shape {array.shape}, {labels[0]} has "
                f"{arrays[0].shape}."
            )
    return [_read_nan(array, label) for array, label in zip(arrays, labels, strict=True)], names


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
    got = f"shape {sources.shape}" if hasattr(sources, "shape") else shown(sources)
    raise TypeError(
        "sources must be a list of similarity matrices, an array of shape (n, m, L) or a "
        f"SimilarityStack, got {got}; a single matrix S is given as [S]."
    )


def read_names(names: Any, n_sources: int) -> tuple[str, ...]:
    """Return the names of sources, which must differ; None: numbers."""
    if names is None:
        return tuple(f"source{i}" for i in range(n_sources))
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise TypeError(f"names must be a list of str, one for each source, got {shown(names)}.")
    names = list(names)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must all be str, got {shown(names)}.")
    if len(names) != n_sources:
        raise ValueError(f"names must name {n_sources} sources, got {len(names)} names.")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"names must differ from each other, got {name!r} {times} times.")
    return tuple(str(name) for name in names)


def _read_source(source: Any, label: str) -> Any:
    try:
        return as_matrix(source)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{label} must be a matrix of numbers, of shape (n, m), dense or sparse: {error}."
        ) from None


def _read_nan(array: Any, label: str) -> Seen:
    seen, stray = without_nan(array)
    if stray is not None:
        raise ValueError(
            f"{label} holds NaN in row {stray[0]}, column {stray[1]}, and numbers beside it. NaN "
            "stands for a sample that the source has not seen: all of its row, or its column, "
            "must be NaN."
        )
    return seen


def axes(key: Any) -> tuple[Any, Any]:
    """Return what a key says of rows and of columns; None: nothing."""
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
        "a SimilarityStack is indexed by rows, stack[rows], or by rows and columns, "
        f"stack[np.ix_(rows, columns)], got {shown(key)}; its sources are in stack.sources."
    )


class View(NamedTuple):
    """One source of a `KernelStack`."""

    name: str
    kernel: Any
    columns: Any  # of X, None: all


def read_kernels(kernels: Any, known: list[str], parameter: str) -> list[View]:
    """Return the views that kernels are taken of, each with a name of its own.

    Parameters
    ----------
    kernels : str, callable or list
        A kernel, or a list of kernels and of triples (name, kernel, columns).
    known : list of str
        Kernels that are known by name.
    parameter : str
        What to call `kernels` in an error message.

    Returns
    -------
    list of View
    """
    items = kernels if isinstance(kernels, list) else [kernels]
    if not items:
        raise ValueError(f"{parameter} must hold at least one kernel, got an empty list.")
    views = [_read_kernel(item, known, parameter) for item in items]
    times = Counter(view.name for view in views if view.name)
    double = [name for name, found in times.items() if found > 1]
    if double:
        raise ValueError(f"{parameter} must have names that differ, got {double[0]!r} twice.")
    return _with_names(views)


def _read_kernel(item: Any, known: list[str], parameter: str) -> View:
    name, kernel, columns = "", item, None
    if isinstance(item, tuple):
        if len(item) != 3 or not isinstance(item[0], str) or not item[0]:
            raise TypeError(
                f"{parameter} must hold kernels, or triples of a name, a kernel and columns, got "
                f"{shown(item)}."
            )
        name, kernel, columns = item
    if callable(kernel):
        return View(name, kernel, columns)
    if not isinstance(kernel, str):
        raise TypeError(f"{parameter} must be of {known} or callables, got {shown(kernel)}.")
    if kernel not in known:
        raise ValueError(f"{parameter} must be of {known} or callables, got {kernel!r}.")
    return View(name, kernel, columns)


def _with_names(views: list[View]) -> list[View]:
    """Name those without a name by their kernels, with numbers where there are several."""
    kinds = [view.name or _kernel_name(view.kernel) for view in views]
    taken, named = {view.name for view in views if view.name}, []
    for view, kind in zip(views, kinds, strict=True):
        if not view.name:
            tried = (f"{kind}-{number}" for number in count(1))
            name = kind if kinds.count(kind) == 1 else next(n for n in tried if n not in taken)
            taken.add(name)
            view = view._replace(name=name)
        named.append(view)
    return named


def _kernel_name(kernel: Any) -> str:
    if isinstance(kernel, str):
        return kernel
    if isinstance(kernel, partial):
        return _kernel_name(kernel.func)
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def read_columns(columns: Any, width: int, names: Any, label: str) -> np.ndarray | None:
    """Return the positions of the columns of a view; None: it has all of them."""
    if columns is None:
        return None
    listed = columns.tolist() if hasattr(columns, "tolist") else columns
    listed = [listed] if isinstance(listed, str) else listed
    if isinstance(listed, list | tuple) and listed and isinstance(listed[0], str):
        return np.array([_position_of(name, names, label) for name in listed])
    found = positions(listed, width, "column", label)
    if not len(found):
        raise ValueError(f"{label} must have at least one column, got {shown(columns)}.")
    return found


def _position_of(name: Any, names: Any, label: str) -> int:
    if names is None:
        raise ValueError(
            f"{label} takes the column {name!r}, but the columns of X have no names; only those "
            "of a data frame have."
        )
    found = [i for i, other in enumerate(names) if other == name]
    if len(found) != 1:
        raise ValueError(
            f"{label} takes the column {name!r}, of which X has {len(found)}; its columns are "
            f"{shown(list(names))}."
        )
    return found[0]


def read_view(X: Any, columns: np.ndarray | None, label: str) -> tuple[Any, np.ndarray]:
    """Return the features of a view, and which samples have any; the others are left out."""
    view = X if columns is None else X[:, columns]
    seen = without_nan(view)[0].rows
    if not seen.all():
        view = view[seen]
    stray = first_nan(view)
    if stray is not None:
        raise ValueError(
            f"{label} has NaN in some features of sample {np.flatnonzero(seen)[stray[0]]} and "
            "numbers in others; only a sample that is NaN in all columns of a view is missing "
            "from it."
        )
    return view, seen
