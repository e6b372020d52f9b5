"""Pairs of samples, ids, groups and labels that a user hands in: read and checked."""

from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import check_count, counted, shown
from nmfcluster._arrays.labels import as_vector, clean_labels
from nmfcluster._arrays.tables import check_stored
from nmfcluster.constraints.links import Links, distinct_pairs


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
    table = _stored(value, name, n_samples) if sp.issparse(value) else _as_table(value, name)
    table = _as_numbers(table, name)
    indices, weights = table[:, :2], table[:, 2] if table.shape[1] == 3 else np.ones(len(table))
    bad = ~(np.isfinite(indices) & (indices == np.floor(indices)) & (indices >= 0))
    if bad.any():
        raise ValueError(
            f"{name} must hold indices of samples, whole numbers from 0, got {indices[bad][0]}."
        )
    if (indices >= n_samples).any():
        raise ValueError(
            f"{name} holds the index {int(indices[indices >= n_samples][0])}, but n_samples="
            f"{n_samples}. Inside cross-validation a plain list of pairs is not split with the "
            "samples: pass PairwiseConstraints, given as constraints=."
        )
    return _checked(indices.astype(np.intp), weights.astype(np.float64), name)


def _stored(matrix: Any, name: str, n_samples: int) -> np.ndarray:
    """Return the entries of a sparse matrix as rows (i, j, weight)."""
    if matrix.shape != (n_samples, n_samples):
        raise ValueError(
            f"{name} given as a sparse matrix must have shape ({n_samples}, {n_samples}), got "
            f"{matrix.shape}. Cross-validation does not split it: pass PairwiseConstraints."
        )
    check_stored(matrix, name)
    entries = matrix.tocsr(copy=True)
    entries.sum_duplicates()
    entries = entries.tocoo()
    return np.column_stack([entries.row, entries.col, entries.data])


def _as_table(value: Any, name: str) -> np.ndarray:
    """Return an array of shape (n_pairs, 2) or (n_pairs, 3)."""
    form = f"{name} must have shape (n_pairs, 2), or (n_pairs, 3) with weights in the third column"
    listed = _listed(value, name)
    try:
        table = np.asarray(listed)
    except ValueError:
        raise ValueError(f"{form}; got rows of several lengths, {shown(value)}.") from None
    if table.ndim and not len(table):
        return np.empty((0, 2))
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        got = f"shape {table.shape}" if table.ndim else shown(value)
        raise ValueError(f"{form}, or be a sparse matrix of weights; got {got}.")
    return table


def _listed(value: Any, name: str) -> Any:
    """Return pairs that come one by one, as those of a set or of zip do, in a list.

    A table is returned as it is, and so is what holds no pairs.
    """
    if isinstance(value, Mapping):
        raise TypeError(f"{name} must hold pairs, got {shown(value)}: give list(d.items()).")
    by_one = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    return list(value) if by_one and len(getattr(value, "shape", (0,))) == 1 else value


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
    names: Any = None if isinstance(ids, str | bytes) else ids
    if hasattr(ids, "columns"):
        names = getattr(ids, "index", None)  # a data frame of polars has none
    position: dict[Any, int] = {}
    try:
        for number, name in enumerate(names):
            if position.setdefault(name, number) != number:
                raise ValueError(
                    f"ids must differ, but samples {position[name]} and {number} are both {name!r}."
                )
    except TypeError:
        raise TypeError(
            "ids must be a sequence of hashable ids, one a sample, or a pandas Index or DataFrame; "
            f"got {shown(ids)}."
        ) from None
    return position


def _read_id_pairs(value: Any, name: str, position: dict[Any, int]) -> Links:
    form = f"{name} must hold pairs of ids (a, b), or (a, b, weight)"
    pairs, weights = [], []
    for row in _rows(value, name, form):
        # a set has no order: which of three is the weight?
        listed = hasattr(row, "__len__") and not isinstance(row, str | bytes | Set)
        if not listed or len(row) not in (2, 3):
            raise ValueError(f"{form}, got {shown(row)}.")
        one, other, weight = (*row, 1.0)[:3]
        try:
            pairs.append((position[one], position[other]))
        except KeyError as error:
            raise ValueError(
                f"{name} must name samples by their ids, but {error.args[0]!r} is not among the "
                f"{counted(len(position), 'id')}."
            ) from None
        except TypeError:
            raise TypeError(f"{name} must hold hashable ids, got {shown(row)}.") from None
        weights.append(_as_float(weight, name))
    indices = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return _checked(indices, np.array(weights, dtype=float), name, list(position).__getitem__)


def _rows(value: Any, name: str, form: str) -> Iterable[Any]:
    """Return the rows of pairs of ids without making numpy guess a type for them."""
    if hasattr(value, "columns"):
        # of pandas, or of polars
        by_row = hasattr(value, "itertuples")
        return value.itertuples(index=False, name=None) if by_row else value.iter_rows()
    listed = [] if value is None else _listed(value, name)
    if sp.issparse(listed) or not isinstance(listed, Iterable):
        raise TypeError(f"{form}, got {shown(value)}.")
    return listed


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
        raise TypeError("either n_samples or ids must be given, and not both.")
    if not isinstance(apart, bool | np.bool_):
        raise TypeError(f"apart must be a bool, got {shown(apart)}.")
    if ids is None:
        check_count(n_samples, "n_samples", 0)
    position = positions_of(range(int(n_samples or 0)) if ids is None else ids)
    codes = np.full(len(position), -1, dtype=np.intp)
    if isinstance(groups, Mapping):
        groups = groups.values()
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(f"groups must be a sequence of groups, got {shown(groups)}.")
    for number, members in enumerate(groups):
        samples = _samples_of(members, position, "indices" if ids is None else "ids")
        taken = samples[codes[samples] >= 0]
        if len(taken):
            raise ValueError(
                f"groups must not share samples, but {list(position)[taken[0]]!r} is in groups "
                f"{codes[taken[0]]} and {number}: make one group of them."
            )
        codes[samples] = number
    return codes


def _samples_of(members: Any, position: dict[Any, int], kind: str) -> np.ndarray:
    """Return the positions of the samples of a group."""
    form = f"groups must hold sequences of {kind} of samples"
    try:
        names = list(members)
        # letters of a word are no ids, and of a mask True would be taken for 1
        if isinstance(members, str | bytes) or {bool, np.bool_} & set(map(type, names)):
            raise TypeError
        return np.array([position[name] for name in names], dtype=np.intp)
    except TypeError:
        raise TypeError(f"{form}, got the group {shown(members)}.") from None
    except KeyError as error:
        raise ValueError(
            f"{form}, but {error.args[0]!r} is not among the {kind} of the "
            f"{counted(len(position), 'sample')}."
        ) from None


def read_labels(labels: Any) -> np.ndarray:
    """Return labels as numbers from 0; -1 stands for a label that is not known."""
    try:
        column = np.asarray(None) if sp.issparse(labels) else as_vector(labels)
    except (TypeError, ValueError):
        column = np.asarray(None)
    if column.ndim != 1:
        got = f"shape {column.shape}" if column.ndim else shown(labels)
        raise ValueError(f"labels must have shape (n_samples,), got {got}.")
    values, seen = clean_labels(column, "labels")
    codes = np.full(len(column), -1, dtype=np.intp)
    codes[seen] = np.unique(values, return_inverse=True)[1]
    return codes
