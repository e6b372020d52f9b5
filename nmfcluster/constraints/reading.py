"""Pairs of samples, ids, groups, labels and indices that a user hands in: read and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import check_count, counted, positions, shown
from nmfcluster._arrays.labels import as_vector, clean_labels
from nmfcluster.constraints.links import Links, distinct_pairs

_GROUPS = "groups must be a sequence of groups, each a sequence of samples"


def read_pairs(value: Any, name: str, n_samples: int) -> Links:
    """Return pairs of indices of samples, checked and in one form.

    Parameters
    ----------
    value : array-like of shape (n_pairs, 2) or (n_pairs, 3), or sparse matrix
    name : {"must_link", "cannot_link"}
        Name of `value` in an error message; only a must-link may join a sample with itself.
    n_samples : int
        Number of samples.

    Returns
    -------
    Links
    """
    read = _read_matrix if sp.issparse(value) else _read_table
    return _checked(*read(value, name, n_samples), name)


def _read_table(value: Any, name: str, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
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
    listed = _listed(value, name)
    try:
        table = np.asarray(listed)
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


def _listed(value: Any, name: str) -> Any:
    """Return pairs that come one by one, as those of a set or of zip do, in a list.

    A table is returned as it is, and so is what holds no pairs.
    """
    if isinstance(value, Mapping):
        raise TypeError(
            f"{name} must hold pairs, got {shown(value)}: pairs that are keys are given as "
            "list(d), those of a key and its value as list(d.items())."
        )
    by_one = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    if not by_one or sp.issparse(value) or len(getattr(value, "shape", (0,))) != 1:
        return value
    pairs = list(value)
    for number, pair in enumerate(pairs):
        if isinstance(pair, Set):
            if len(pair) != 2:
                raise ValueError(
                    f"{name} must hold pairs, got {shown(pair)}: a set has no order, so that it "
                    "stands for two samples without a weight."
                )
            pairs[number] = tuple(pair)
    return pairs


def _as_numbers(table: np.ndarray, name: str) -> np.ndarray:
    if table.dtype.kind == "O":
        numbers = [_as_float(value, name) for value in table.ravel()]
        return np.array(numbers).reshape(table.shape)
    if table.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} must hold numbers, indices of samples and perhaps weights, got dtype "
            f"{table.dtype}. Names of samples are read by PairwiseConstraints.from_ids(X.index, "
            f"{name}=...)."
        )
    return table


def _as_float(value: Any, name: str) -> float:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must hold numbers, got {shown(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} holds a number too large for a float, {shown(value)}.") from None


def _checked(
    pairs: np.ndarray, weights: np.ndarray, name: str, named: Callable[[int], Any] = int
) -> Links:
    """Return pairs that are in range in one form, their weights checked.

    `named` returns the name that an error message gives a sample, from its index.
    """
    bad = ~((weights >= 0) & np.isfinite(weights))
    if bad.any():
        one, other = (named(end) for end in pairs[bad][0].tolist())
        raise ValueError(
            f"{name} must have weights that are finite and at least 0, got {weights[bad][0]} for "
            f"the pair ({one!r}, {other!r})."
        )
    used, loop = weights > 0, pairs[:, 0] == pairs[:, 1]
    if name == "must_link":
        used &= ~loop
    elif (used & loop).any():
        sample = named(int(pairs[used & loop][0, 0]))
        raise ValueError(
            f"{name} holds the pair ({sample!r}, {sample!r}), but a sample is always in one "
            "cluster with itself."
        )
    return distinct_pairs(pairs[used], weights[used])


def read_ids(ids: Any, must_link: Any, cannot_link: Any) -> tuple[int, Links, Links]:
    """Return pairs of ids as pairs of positions, checked and in one form.

    Parameters
    ----------
    ids : sequence of hashable, pandas Index or pandas DataFrame
    must_link, cannot_link : array-like, DataFrame, sequence or None

    Returns
    -------
    n_samples : int
    must, cannot : Links
    """
    position = positions_of(ids)
    must = _read_id_pairs(must_link, "must_link", position)
    return len(position), must, _read_id_pairs(cannot_link, "cannot_link", position)


def positions_of(ids: Any) -> dict[Any, int]:
    """Return the position of every id: of the index of a data frame, or of a sequence.

    Parameters
    ----------
    ids : sequence of hashable, pandas Index or pandas DataFrame

    Returns
    -------
    dict
    """
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


def _read_id_pairs(value: Any, name: str, position: dict[Any, int]) -> Links:
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
            f"{name} must name samples by their ids, but holds {counted(len(unknown), 'name')} not "
            f"among the {counted(len(position), 'id')}: {named}."
        )
    indices = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return _checked(indices, np.array(weights, dtype=float), name, list(position).__getitem__)


def _rows(value: Any, name: str) -> Iterable[Any]:
    """Return the rows of pairs of ids without making numpy guess a type for them."""
    if value is None:
        return []
    if hasattr(value, "columns"):
        # of pandas, or of polars
        by_row = hasattr(value, "itertuples")
        return value.itertuples(index=False, name=None) if by_row else value.iter_rows()
    listed = _listed(value, name)
    try:
        if sp.issparse(listed):
            raise TypeError
        return list(listed)
    except TypeError:
        raise TypeError(
            f"{name} must hold pairs of ids (a, b), or (a, b, weight), got {shown(value)}."
        ) from None


def read_groups(groups: Any, n_samples: int | None, ids: Any, apart: Any) -> np.ndarray:
    """Return the number of the group of every sample, from 0; -1: in none.

    Parameters
    ----------
    groups : sequence of sequences, or mapping to them
    n_samples : int or None
    ids : sequence of hashable, pandas Index, pandas DataFrame or None
    apart : bool
        Checked only.

    Returns
    -------
    ndarray of shape (n_samples,), int
    """
    if (n_samples is None) == (ids is None):
        given = "none" if ids is None else "both"
        raise TypeError(f"either n_samples or ids must be given, got {given} of them.")
    if not isinstance(apart, bool | np.bool_):
        raise TypeError(f"apart must be a bool, got {shown(apart)}.")
    if ids is None:
        check_count(n_samples, "n_samples", 0)
    position = None if ids is None else positions_of(ids)
    names = range(int(n_samples or 0)) if position is None else list(position)
    codes = np.full(len(names), -1, dtype=np.intp)
    for number, members in enumerate(_members(groups)):
        if position is None:
            samples = _members_by_index(members, len(names))
        else:
            samples = _members_by_id(members, position)
        taken = samples[codes[samples] >= 0]
        if len(taken):
            raise ValueError(
                f"groups must not share samples, but {names[taken[0]]!r} is in groups "
                f"{codes[taken[0]]} and {number}: make one group of them."
            )
        codes[samples] = number
    return codes


def _members(groups: Any) -> Iterator[Any]:
    """Yield the groups; raise unless each is a sequence."""
    if isinstance(groups, str | bytes) or not hasattr(groups, "__iter__"):
        raise TypeError(f"{_GROUPS}; got {shown(groups)}.")
    for members in groups.values() if isinstance(groups, Mapping) else groups:
        single = isinstance(members, str | bytes | Mapping) or not hasattr(members, "__len__")
        if single or getattr(members, "shape", None) == () or sp.issparse(members):
            raise TypeError(f"{_GROUPS}; got the group {shown(members)}.")
        yield list(members) if isinstance(members, Set) else members


def _members_by_index(members: Any, n_samples: int) -> np.ndarray:
    if not len(members):
        return np.empty(0, dtype=np.intp)
    try:
        table = np.asarray(members)
    except ValueError:  # lists of different lengths
        table = np.empty((0, 0))
    if table.ndim != 1 or table.dtype.kind not in "iu":
        raise TypeError(
            f"groups must hold indices of samples, integers, got the group {shown(members)}; "
            "names are read with ids=X.index instead of n_samples."
        )
    bad = (table < 0) | (table >= n_samples)
    if bad.any():
        raise ValueError(
            f"groups must hold indices from 0 to {n_samples - 1}, below n_samples, got "
            f"{table[bad][0]}."
        )
    return table.astype(np.intp)


def _members_by_id(members: Any, position: dict[Any, int]) -> np.ndarray:
    try:
        unknown = [name for name in members if name not in position]
    except TypeError:
        raise TypeError(f"groups must hold hashable ids, got {shown(members)}.") from None
    if unknown:
        raise ValueError(
            f"groups must hold ids of samples, but {unknown[0]!r} is not among the "
            f"{counted(len(position), 'id')}."
        )
    return np.array([position[name] for name in members], dtype=np.intp)


def samples_at(key: Any, n_samples: int) -> np.ndarray:
    """Return the indices, from 0, that a key between square brackets names."""
    if isinstance(key, tuple):  # scikit-learn asks for [key, ...]
        rest = [part for part in key if part is not Ellipsis]
        key = rest[0] if len(rest) == 1 else slice(None) if not rest else key
    elif key is Ellipsis:
        key = slice(None)
    if key is None:
        raise TypeError(
            "samples of PairwiseConstraints must be named by a list or an array of integers, a "
            "mask or a slice, got None."
        )
    return positions(key, n_samples, "sample", "PairwiseConstraints")


def read_labels(labels: Any) -> np.ndarray:
    """Return labels as numbers from 0; -1 stands for a label that is not known."""
    try:
        column = np.asarray(None) if sp.issparse(labels) else as_vector(labels)
    except (TypeError, ValueError):
        raise ValueError(f"labels must have shape (n_samples,), got {shown(labels)}.") from None
    if column.ndim != 1:
        got = f"shape {column.shape}" if column.ndim else shown(labels)
        raise ValueError(f"labels must have shape (n_samples,), got {got}.")
    values, seen = clean_labels(column, "labels")
    codes = np.full(len(column), -1, dtype=np.intp)
    codes[seen] = np.unique(values, return_inverse=True)[1]
    return codes
