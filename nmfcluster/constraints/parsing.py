"""Pairs of samples, ids, groups and labels that a user hands in: read and checked."""

from collections.abc import Hashable, Iterable, Mapping, Set
from contextlib import suppress
from itertools import zip_longest
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.labels import as_vector, clean_labels
from nmfcluster._utils.validation import (
    check_count,
    check_stored,
    counted,
    row_names,
    shown,
)
from nmfcluster.constraints.links import NO_LINKS, Both, Links, distinct_pairs

_CURE = " PairwiseConstraints.from_table and from_ids read names of samples, with ids=X.index."
_BOOLS, _NO_ROWS = {bool, np.bool_}, str | bytes | Mapping
Samples = (
    range | dict[Any, int]
)  # positions of samples, which are called by these or by ids

_SIGNS = dict.fromkeys(("must", "must-link", "must_link", "ml"), 1)
_SIGNS |= dict.fromkeys(("cannot", "cannot-link", "cannot_link", "cl"), -1)
# times the largest weight, of infinite cannot-links: fits of four sets violate 28 of 2,485 at 1,
_KEPT = 3.0  # none at 3 and 10, and from there on their samples come apart from their clusters


def read_pairs(value: Any, name: str, samples: Samples) -> Links:
    """Return pairs of one kind, checked and in one form.

    Parameters
    ----------
    value : array-like, data frame, sparse matrix, iterable of pairs or None
    name : {"must_link", "cannot_link"}
        Name of `value` in an error message; only a must-link may join a sample with itself.
    samples : range, or dict of positions by id
        What samples are called.

    Returns
    -------
    Links
    """
    if value is None:
        return NO_LINKS
    ends, *more = _columns(value, name, samples)
    weights = _as_numbers(more[0], name) if more else np.ones(len(ends))
    return _checked(Links(ends, weights, _are_hard(weights)), name, samples)


def read_table(value: Any, samples: Samples, hard: Any) -> Both:
    """Return the must-links and the cannot-links of one table, checked and in one form.

    Parameters
    ----------
    value : array-like, data frame, sparse matrix or iterable of rows
        Columns, or entries: samples, samples, kinds or signed weights, and perhaps weights, or
        bools that say which pairs are hard.
    samples : range, or dict of positions by id
    hard : bool, array-like of shape (n_pairs,), bool, or None
        Which pairs are hard, beside those of infinite weight; None: as weights say.

    Returns
    -------
    must, cannot : Links
    """
    ends, kinds, *more = _columns(value, "pairs", samples)
    signed = _as_signed(kinds)
    if more and hard is None and set(map(type, more[0])) <= _BOOLS:
        hard = more[0]
    elif more:
        weights = _as_numbers(more[0], "pairs")
        if not (weights > 0).all():
            told = "pairs must have weights above 0, or bools, in a fourth column"
            raise ValueError(
                f"{told}, got {weights.min()}: the third one has the sign."
            )
        signed = signed * weights
    if hard is not None:
        flags = np.asarray(hard, dtype=object)
        if (
            flags.shape not in ((), signed.shape)
            or not set(map(type, flags.flat)) <= _BOOLS
        ):
            form = f"hard must be None, a bool, or one for each of {counted(len(signed), 'pair')}"
            raise ValueError(f"{form}; got {shown(hard)}.")
        hard = flags.astype(bool)
    links = Links(ends, np.abs(signed), _are_hard(np.abs(signed), hard))
    must = _checked(links.where(signed > 0), "must_link", samples)
    return must, _checked(links.where(signed < 0), "cannot_link", samples)


def _columns(value: Any, name: str, samples: Samples) -> list[np.ndarray]:
    """Return the positions of the samples of pairs, (n_pairs, 2), and further columns.

    numpy is not asked to guess the type of what is no array: it would make words of all of a row.
    """
    if sp.issparse(value):  # its rows are the samples, whatever these are called
        samples = range(n := len(samples))
        if value.shape != (n, n):
            told = f"{name} given as a sparse matrix must have shape ({n}, {n}), got {value.shape}"
            cure = "Cross-validation does not split it: pass PairwiseConstraints"
            raise ValueError(f"{told}. {cure}.")
        check_stored(value, name)
        columns = list(sp.find(value * 1))  # numbers, where it holds bools
    else:
        columns = _of_rows(value, name)
    ends = [_positions(column, name, samples) for column in columns[:2]]
    return [np.column_stack(ends), *columns[2:]]


def _of_rows(value: Any, name: str) -> list[np.ndarray]:
    kind, least = (", kind", 3) if name == "pairs" else ("", 2)
    form = f"{name} must hold pairs (a, b{kind}), or (a, b{kind}, weight), or be a sparse matrix"
    rows: Any = value
    if (
        isinstance(value, np.ndarray)
        and value.ndim == 2
        and value.shape[1] in (least, least + 1)
    ):
        return list(value.T)
    if hasattr(value, "columns"):  # of pandas, or of polars
        by_row = hasattr(value, "itertuples")
        rows = value.itertuples(index=False, name=None) if by_row else value.iter_rows()
    elif isinstance(value, _NO_ROWS) or not isinstance(value, Iterable):
        raise TypeError(f"{form}, got {shown(value)}.")
    rows = list(rows)
    # a set has no order: which of three is the weight?
    kinds = {kind for kind in set(map(type, rows)) if hasattr(kind, "__len__")}
    kinds = {kind for kind in kinds if not issubclass(kind, _NO_ROWS | Set)}
    for row in rows:
        if type(row) not in kinds or len(row) not in (least, least + 1):
            got = f"shape {value.shape}" if hasattr(value, "shape") else shown(row)
            raise ValueError(f"{form}, got {got}.")
    columns = zip_longest(*rows, fillvalue=1.0) if rows else [()] * least
    return [np.fromiter(column, dtype=object, count=len(rows)) for column in columns]


def _positions(names: np.ndarray, name: str, samples: Samples) -> np.ndarray:
    """Return the positions of samples that are called by them, or by ids."""
    if isinstance(samples, dict):
        try:
            return np.array([samples[one] for one in names], dtype=np.intp)
        except KeyError as error:
            told = f"{error.args[0]!r} is not among the {counted(len(samples), 'id')}"
            raise ValueError(
                f"{name} must name samples by their ids, but {told}."
            ) from None
        except TypeError:
            odd = next(
                (one for one in names if not isinstance(one, Hashable)), names[0]
            )
            raise TypeError(
                f"{name} must hold hashable ids, got {shown(odd)}."
            ) from None
    names = _as_numbers(names, name, _CURE)
    bad = ~(np.isfinite(names) & (names == np.floor(names)) & (names >= 0))
    if bad.any():
        form = f"{name} must hold indices of samples, whole numbers from 0"
        raise ValueError(f"{form}, got {names[bad][0]}.")
    if (names >= (n := len(samples))).any():
        told = f"{name} holds the index {int(names[names >= n][0])}, but n_samples={n}"
        why = "Inside cross-validation a plain list of pairs is not split with the samples"
        raise ValueError(
            f"{told}. {why}: pass PairwiseConstraints, given as constraints=."
        )
    return names.astype(np.intp)


def _as_numbers(column: np.ndarray, name: str, cure: str = "") -> np.ndarray:
    if column.dtype.kind in "iuf":
        return column
    odd = {
        kind
        for kind in set(map(type, column))
        if not issubclass(kind, Real) or kind in _BOOLS
    }
    if odd:
        first = next(value for value in column if type(value) in odd)
        told = f"{name} must hold numbers, got {shown(first)}."
        raise TypeError(told + cure * isinstance(first, str))
    try:
        return column.astype(np.float64)
    except OverflowError:
        huge = shown(max(column, key=abs))
        raise ValueError(
            f"{name} holds a number too large for a float, {huge}."
        ) from None


def _as_signed(kinds: np.ndarray) -> np.ndarray:
    """Return signed weights: those of must-links are positive, those of cannot-links negative."""
    real = all(issubclass(kind, Real) for kind in set(map(type, kinds)))
    signed = _as_numbers(kinds, "pairs").astype(float) if real else np.zeros(len(kinds))
    for i in np.flatnonzero(signed == 0):
        with suppress(TypeError, ValueError, OverflowError):
            signed[i] = float(_SIGNS.get(str(kinds[i]).strip().lower(), kinds[i]))
    if (bad := ~(np.abs(signed) > 0)).any():
        form = "must or cannot, 1 or -1, or ML or CL, or a weight with such a sign"
        raise ValueError(f"pairs: the kind must be {form}, got {shown(kinds[bad][0])}.")
    return signed


def _are_hard(weights: np.ndarray, hard: Any = None) -> np.ndarray:
    """Return which pairs are hard: those said to be, or else of weight 1 and more, and infinite."""
    infinite = np.isinf(weights)
    if hard is not None:
        return infinite | hard
    return infinite if infinite.any() else weights >= 1


def _checked(links: Links, name: str, samples: Samples) -> Links:
    """Return pairs that are in range in one form, their weights checked."""
    pairs, weights, hard = links
    if (bad := ~(weights >= 0)).any():
        told = f"{name} must have weights that are at least 0, got {weights[bad][0]}"
        raise ValueError(f"{told} for the pair {_called(pairs[bad][0], samples)}.")
    infinite = np.isinf(weights)
    if infinite.any():
        largest = max(1.0, weights[~infinite].max(initial=1))
        weights = np.where(
            infinite, largest * (_KEPT if name == "cannot_link" else 1), weights
        )
    used, loop = weights > 0, pairs[:, 0] == pairs[:, 1]
    if name == "must_link":
        used &= ~loop
    elif (used & loop).any():
        told = f"{name} holds the pair {_called(pairs[used & loop][0], samples)}"
        raise ValueError(f"{told}, but a sample is always in one cluster with itself.")
    return distinct_pairs(pairs[used], weights[used].astype(np.float64), hard[used])


def _called(positions: np.ndarray, samples: Samples) -> tuple[Any, ...]:
    """Return what a message calls some samples."""
    return tuple(map(list(samples).__getitem__, positions))


def read_samples(n_samples: int | None, ids: Any) -> tuple[Samples, Any]:
    """Return what samples are called, and names to keep.

    Parameters
    ----------
    n_samples : int or None
    ids : sequence of hashable, pandas Index, pandas DataFrame or None
        Either this or `n_samples` must be given.

    Returns
    -------
    samples : range, or dict of positions by id
    names : pandas Index, ndarray or None
    """
    if (n_samples is None) == (ids is None):
        raise TypeError("either n_samples or ids must be given, and not both.")
    if ids is None:
        check_count(n_samples, "n_samples", 0)
        return range(int(n_samples or 0)), None
    names: Any = None if isinstance(ids, str | bytes) else ids
    if hasattr(ids, "columns"):
        names = getattr(ids, "index", None)  # a data frame of polars has none
    position: dict[Any, int] = {}
    try:
        for number, name in enumerate(names):
            if position.setdefault(name, number) != number:
                told = f"samples {position[name]} and {number} are both {name!r}"
                raise ValueError(f"ids must differ, but {told}.")
    except TypeError:
        form = (
            "a sequence of hashable ids, one a sample, or a pandas Index or DataFrame"
        )
        raise TypeError(f"ids must be {form}; got {shown(ids)}.") from None
    index = row_names(ids)
    names = (
        np.fromiter(position, dtype=object, count=len(position))
        if index is None
        else index
    )
    return position, names


def read_groups(groups: Any, samples: Samples, apart: Any) -> np.ndarray:
    """Return the number of the group of every sample, from 0; -1: in none.

    Parameters
    ----------
    groups : sequence of sequences, or mapping to them
    samples : range, or dict of positions by id
    apart : bool
        Checked only.

    Returns
    -------
    ndarray of shape (n_samples,), int
    """
    if not isinstance(apart, bool | np.bool_):
        raise TypeError(f"apart must be a bool, got {shown(apart)}.")
    codes = np.full(len(samples), -1, dtype=np.intp)
    if isinstance(groups, Mapping):
        groups = groups.values()
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(f"groups must be a sequence of groups, got {shown(groups)}.")
    for number, members in enumerate(groups):
        try:
            names = np.fromiter(members, dtype=object)
            # letters of a word are no ids, and of a mask True would be taken for 1
            if isinstance(members, str | bytes) or _BOOLS & set(map(type, names)):
                raise TypeError
        except TypeError:
            form = "groups must hold sequences of samples, by index or by id"
            raise TypeError(f"{form}, got the group {shown(members)}.") from None
        own = _positions(names, "groups", samples)
        if len(taken := own[codes[own] >= 0]):
            told = f"{_called(taken, samples)[0]!r} is in groups {codes[taken[0]]} and {number}"
            raise ValueError(
                f"groups must not share samples, but {told}: make one group of them."
            )
        codes[own] = number
    return codes


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
