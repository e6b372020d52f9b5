"""Pairs of samples: read, checked, brought into one form, and followed to copies of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import check_count, positions, shown


class Links(NamedTuple):
    """Pairs of samples of one kind, and what each counts."""

    pairs: np.ndarray  # (n_pairs, 2), i < j, sorted, distinct
    weights: np.ndarray  # (n_pairs,), positive


def distinct_pairs(pairs: np.ndarray, weights: np.ndarray) -> Links:
    """Return every pair once, as (i, j) with i <= j and sorted, with its largest weight.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64

    Returns
    -------
    Links
    """
    pairs = np.sort(pairs, axis=1)
    order = np.lexsort((weights, pairs[:, 1], pairs[:, 0]))
    pairs, weights = pairs[order], weights[order]
    last = np.ones(len(pairs), dtype=bool)  # of its kind, hence the one of largest weight
    last[:-1] = (pairs[1:] != pairs[:-1]).any(axis=1)
    return Links(pairs[last], weights[last])


def copied_pairs(pairs: np.ndarray, origin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of copies: all (a, b) with ``(origin[a], origin[b])`` a pair.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
    origin : ndarray of shape (n_copies,), int
        What every new vertex is a copy of; a vertex may have no copy, one or many.

    Returns
    -------
    copies : ndarray of shape (n_found, 2), int
    source : ndarray of shape (n_found,), int
        ``pairs[source]`` are the pairs that they come from.
    """
    highest = max(pairs.max(initial=-1), origin.max(initial=-1))
    counts = np.bincount(origin, minlength=highest + 1)
    starts, by_origin = np.cumsum(counts) - counts, np.argsort(origin, kind="stable")
    one, other = pairs.T
    numbers = counts[one] * counts[other]
    source = np.repeat(np.arange(len(pairs)), numbers)
    position = np.arange(len(source)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    row, column = np.divmod(position, counts[other[source]])
    copies = [by_origin[starts[one[source]] + row], by_origin[starts[other[source]] + column]]
    return np.column_stack(copies), source


def checked_links(
    pairs: np.ndarray, weights: np.ndarray, name: str, named: Callable[[int], Any] = int
) -> Links:
    """Check pairs that are in range, and their weights, and bring them into their form.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64
    name : {"must_link", "cannot_link"}
        What the pairs are; only samples that must be linked may be given twice in a pair.
    named : callable, default=int
        What to call a sample in an error message, from its index.

    Returns
    -------
    Links
    """
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        one, other = (named(end) for end in pairs[bad][0].tolist())
        raise ValueError(
            f"{name} must have weights that are finite and at least 0, got {weights[bad][0]} for "
            f"the pair ({one!r}, {other!r})."
        )
    loop = pairs[:, 0] == pairs[:, 1]
    used = (weights > 0) & ~(loop & (name == "must_link"))
    if (loop & used).any():
        sample = named(int(pairs[loop & used][0, 0]))
        raise ValueError(
            f"{name} holds the pair ({sample!r}, {sample!r}), but a sample is always in one "
            "cluster with itself."
        )
    return distinct_pairs(pairs[used], weights[used])


def read_pairs(value: Any, name: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return given pairs, which must be in range, and their weights, not checked yet.

    Parameters
    ----------
    value : array-like of shape (n_pairs, 2) or (n_pairs, 3), sparse matrix or None
    name : str
        What to call `value` in an error message.
    n_samples : int
        Number of samples.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64
    """
    if sp.issparse(value):
        return _read_matrix(value, name, n_samples)
    table = _as_numbers(_as_table(value, name), name)
    indices = table[:, :2]
    bad = ~(np.isfinite(indices) & (indices == np.floor(indices)))
    if bad.any():
        raise ValueError(
            f"{name} must hold indices of samples, whole numbers, got {indices[bad][0]}."
        )
    if (indices < 0).any():
        raise ValueError(
            f"{name} holds the index {int(indices[indices < 0][0])}, but indices of samples are "
            "at least 0."
        )
    if (indices >= n_samples).any():
        raise ValueError(
            f"{name} holds the index {int(indices[indices >= n_samples][0])}, but n_samples="
            f"{n_samples}. Inside cross-validation a plain list of pairs is not split with the "
            "samples: pass PairwiseConstraints, given as constraints=."
        )
    weights = table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
    return indices.astype(np.intp), weights.astype(np.float64)


def _read_matrix(matrix: Any, name: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    if matrix.shape != (n_samples, n_samples):
        raise ValueError(
            f"{name} given as a sparse matrix must have shape ({n_samples}, {n_samples}), "
            f"(n_samples, n_samples), got {matrix.shape}. Inside cross-validation such a matrix is "
            "not split as it should: pass PairwiseConstraints, given as constraints=."
        )
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {matrix.dtype}.")
    entries = matrix.tocsr(copy=True)
    entries.sum_duplicates()
    entries = entries.tocoo()
    pairs = np.column_stack([entries.row, entries.col]).astype(np.intp)
    return pairs, entries.data.astype(np.float64)


def _as_table(value: Any, name: str) -> np.ndarray:
    """Return an array of shape (n_pairs, 2) or (n_pairs, 3)."""
    form = f"{name} must have shape (n_pairs, 2), or (n_pairs, 3) with weights in the third column"
    if hasattr(value, "must_link_weights"):
        raise TypeError(f"{form}; got {type(value).__name__}, which holds pairs of both kinds.")
    try:
        table = np.asarray(() if value is None else value)
    except (TypeError, ValueError):
        raise ValueError(f"{form}; got rows of several lengths, {shown(value)}.") from None
    if table.ndim and not len(table):
        return np.empty((0, 2))
    if table.ndim == 0:
        raise TypeError(f"{form}; got {shown(value)}.")
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        square = table.shape == (table.shape[0],) * 2
        hint = " A matrix of weights has to be sparse, such as scipy.sparse.csr_array." * square
        raise ValueError(f"{form}; got shape {table.shape}.{hint}")
    return table


def _as_numbers(table: np.ndarray, name: str) -> np.ndarray:
    if table.dtype.kind == "O":
        numbers = [_as_float(value, name) for value in table.ravel()]
        return np.array(numbers).reshape(table.shape)
    if table.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must hold numbers, indices of samples and perhaps weights, got dtype "
            f"{table.dtype}."
        )
    return table


def _as_float(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must hold numbers, got {shown(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} holds a number too large for a float, {shown(value)}.") from None


def positions_of(ids: Any) -> dict[Any, int]:
    """Return the position of every id: of the index of a data frame, or of a sequence."""
    form = "ids must be a sequence with the id of every sample, a pandas Index or DataFrame"
    if hasattr(ids, "columns"):
        if not hasattr(ids, "iloc"):
            raise TypeError(f"{form}; got a {type(ids).__name__} without an index.")
        ids = ids.index
    if isinstance(ids, str | bytes) or sp.issparse(ids):
        raise TypeError(f"{form}; got {shown(ids)}.")
    position: dict[Any, int] = {}
    try:
        for number, name in enumerate(ids):
            if position.setdefault(name, number) != number:
                raise ValueError(
                    f"ids must differ, but samples {position[name]} and {number} are both {name!r}."
                )
    except TypeError:
        raise TypeError(f"{form}, hashable; got {shown(ids)}.") from None
    return position


def read_ids(value: Any, name: str, position: dict[Any, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return given pairs of ids as pairs of positions, and their weights, not checked yet.

    Parameters
    ----------
    value : array-like of shape (n_pairs, 2) or (n_pairs, 3), DataFrame, sequence or None
    name : str
        What to call `value` in an error message.
    position : dict
        Position of every id.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64
    """
    pairs, weights = [], []
    unknown: dict[Any, None] = {}
    for row in _rows(value, name):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) not in (2, 3):
            raise ValueError(
                f"{name} must hold pairs of ids (a, b), or (a, b, weight), got {shown(row)}."
            )
        one, other, weight = (*row, 1.0)[:3]
        try:
            unknown.update(dict.fromkeys(key for key in (one, other) if key not in position))
        except TypeError:
            raise TypeError(f"{name} must hold hashable ids, got {shown(row)}.") from None
        weights.append(_as_float(weight, name))
        pairs.append((position.get(one, 0), position.get(other, 0)))
    if unknown:
        named = ", ".join(repr(key) for key in list(unknown)[:5])
        raise ValueError(
            f"{name} must name samples by their ids, but holds {len(unknown)} that are not among "
            f"the {len(position)} ids: {named}."
        )
    return np.array(pairs, dtype=np.intp).reshape(-1, 2), np.array(weights, dtype=np.float64)


def _rows(value: Any, name: str) -> Iterable[Any]:
    """Return the rows of pairs of ids without making numpy guess a type for them."""
    if value is None:
        return []
    if hasattr(value, "columns"):
        columns = (
            [value.iloc[:, c] for c in range(value.shape[1])]
            if hasattr(value, "iloc")
            else [value[column] for column in value.columns]
        )
        return zip(*columns, strict=True)
    try:
        if sp.issparse(value):
            raise TypeError
        return list(value)
    except TypeError:
        raise TypeError(
            f"{name} must hold pairs of ids (a, b), or (a, b, weight), got {shown(value)}."
        ) from None


def samples_at(key: Any, n_samples: int) -> np.ndarray:
    """Return the indices, from 0, that a key names."""
    if isinstance(key, tuple):  # scikit-learn asks for [key, ...]
        rest = [part for part in key if part is not Ellipsis]
        key = rest[0] if len(rest) == 1 else slice(None) if not rest else key
    elif key is Ellipsis:
        key = slice(None)
    return positions(key, n_samples, "sample", "PairwiseConstraints")


def draw_numbers(rng: np.random.RandomState, total: int, n_pairs: int, n_known: int) -> np.ndarray:
    """Draw distinct numbers below `total`, all sets of them with the same chance."""
    check_count(n_pairs, "n_pairs", 0)
    if n_pairs > total:
        raise ValueError(
            f"n_pairs must be at most {total}, the number of pairs of the {n_known} samples whose "
            f"label is known, got {n_pairs}."
        )
    if 3 * n_pairs > total:
        return rng.permutation(total)[:n_pairs]
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < n_pairs:
        more = rng.randint(total, size=2 * (n_pairs - len(drawn)), dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:n_pairs]


def pair_numbered(numbers: np.ndarray) -> np.ndarray:
    """Return the pairs (a, b), a < b, that are counted (0, 1), (0, 2), (1, 2), (0, 3) ..."""
    b = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    b -= b * (b - 1) // 2 > numbers  # rounding may lift the root over a whole number, never below
    return np.column_stack([numbers - b * (b - 1) // 2, b])
