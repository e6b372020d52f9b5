"""Pairs of samples, ids, groups and labels that users pass: read and checked."""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from itertools import zip_longest
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.labels import as_label_vector, clean_labels
from nmfcluster._utils.validation import (
    check_count,
    check_sparse_indices,
    format_count,
    format_value,
    row_names,
)
from nmfcluster.constraints.graph import NO_LINKS, Links, make_links

_HINT_OF_NAMES = (
    " PairwiseConstraints.from_table and from_ids read names of samples, with "
    "ids=X.index."
)
_BOOLS = {bool, np.bool_}
_NO_ROWS = str | bytes | Mapping | Set  # iterable, but no pair

# positions of samples, which are called by these or by ids
Samples = range | dict[Any, int]

#: signs of the words for a kind of pair
_SIGNS = dict.fromkeys(("must", "must-link", "must_link", "ml"), 1)
_SIGNS |= dict.fromkeys(("cannot", "cannot-link", "cannot_link", "cl"), -1)

# weight of infinite cannot-links, in units of the largest finite weight: fits of four data sets
# violate 28 of 2,485 at 1 and none at 3 and 10, and from there on their samples come apart from
# their clusters
_INFINITE_CANNOT_LINK = 3.0


def read_pairs(value, name: str, samples: Samples) -> Links:
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
    pairs, *columns = _read_columns(value, name, samples)
    weights = _as_numbers(columns[0], name) if columns else np.ones(len(pairs))
    return _normalize_links(Links(pairs, weights, _find_hard(weights)), name, samples)


def read_signed_pairs(value, samples: Samples, hard) -> tuple[Links, Links]:
    """Return the must-links and the cannot-links of one table, checked and in one form.

    Parameters
    ----------
    value : array-like, data frame, sparse matrix or iterable of rows
        Columns, or entries: samples, samples, kinds or signed weights, and perhaps weights, or
        bools that mark the pairs that are hard.
    samples : range, or dict of positions by id
    hard : bool, array-like of shape (n_pairs,), bool, or None
        Which pairs are hard, besides those of infinite weight; None: as their weights imply.

    Returns
    -------
    must, cannot : Links
    """
    pairs, kinds, *columns = _read_columns(value, "pairs", samples)
    signed = _read_signed_weights(kinds)
    # a fourth column of weights, or of which pairs are hard
    if columns and hard is None and set(map(type, columns[0])) <= _BOOLS:
        hard = columns[0]
    elif columns:
        weights = _as_numbers(columns[0], "pairs")
        if not (weights > 0).all():
            raise ValueError(
                "pairs must have weights above 0, or bools, in a fourth column, got "
                f"{weights.min()}: the third one has the sign."
            )
        signed = signed * weights
    if hard is not None:
        flags = np.asarray(hard, dtype=object)
        fits = flags.shape in ((), signed.shape)
        if not fits or not set(map(type, flags.flat)) <= _BOOLS:
            form = (
                f"None, a bool, or one for each of {format_count(len(signed), 'pair')}"
            )
            raise ValueError(f"hard must be {form}; got {format_value(hard)}.")
        hard = flags.astype(bool)
    weights = np.abs(signed)
    links = Links(pairs, weights, _find_hard(weights, hard))
    must = _normalize_links(links.where(signed > 0), "must_link", samples)
    cannot = _normalize_links(links.where(signed < 0), "cannot_link", samples)
    return must, cannot


def _read_columns(value, name: str, samples: Samples):
    """Return the positions of the samples of pairs, (n_pairs, 2), and further columns.

    NumPy does not guess the type of what is no array: it would make words of all of a row.
    """
    if sp.issparse(value):
        n = len(samples)
        samples = range(n)  # its rows are the samples, even where these have ids
        if value.shape != (n, n):
            raise ValueError(
                f"{name} given as a sparse matrix must have shape ({n}, {n}), got {value.shape}. "
                "Cross-validation does not split it: pass PairwiseConstraints."
            )
        check_sparse_indices(value, name)
        columns = list(sp.find(value * 1))  # numbers, where it holds bools
    else:
        columns = _split_columns(value, name)
    ends = [_read_positions(column, name, samples) for column in columns[:2]]
    return [np.column_stack(ends), *columns[2:]]


def _split_columns(value, name: str):
    """Return the columns of a table of pairs that is no sparse matrix."""
    of_both_kinds = name == "pairs"
    lengths = (3, 4) if of_both_kinds else (2, 3)
    kind = ", kind" if of_both_kinds else ""
    form = f"{name} must hold pairs (a, b{kind}), or (a, b{kind}, weight), or be a sparse matrix"
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] in lengths:
        return list(value.T)
    if hasattr(value, "itertuples"):  # a data frame of pandas
        rows = list(value.itertuples(index=False, name=None))
    elif hasattr(value, "iter_rows"):  # of polars
        rows = list(value.iter_rows())
    elif isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{form}, got {format_value(value)}.")
    else:
        rows = list(value)
    for row in rows:
        # a set has no order: which of three is the weight?
        is_sequence = hasattr(row, "__len__") and not isinstance(row, _NO_ROWS)
        if not is_sequence or len(row) not in lengths:
            got = (
                f"shape {value.shape}" if hasattr(value, "shape") else format_value(row)
            )
            raise ValueError(f"{form}, got {got}.")
    if not rows:
        return [np.empty(0, dtype=object)] * lengths[0]
    columns = zip_longest(*rows, fillvalue=1.0)  # 1: of pairs without a weight
    return [np.fromiter(column, dtype=object, count=len(rows)) for column in columns]


def _read_positions(names, name: str, samples: Samples):
    """Return the positions of samples that are called by them, or by ids."""
    if isinstance(samples, dict):
        return _look_up_ids(names, name, samples)
    n = len(samples)
    numbers = _as_numbers(names, name, _HINT_OF_NAMES)
    is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    bad = ~(is_whole & (numbers >= 0))
    if bad.any():
        raise ValueError(
            f"{name} must hold indices of samples, whole numbers from 0, got {numbers[bad][0]}."
        )
    too_large = numbers[numbers >= n]
    if len(too_large):
        raise ValueError(
            f"{name} holds the index {int(too_large[0])}, but n_samples={n}. Inside "
            "cross-validation a plain list of pairs is not split with the samples: pass "
            "PairwiseConstraints, given as constraints=."
        )
    return numbers.astype(np.intp)


def _look_up_ids(ids, name: str, samples: dict[Any, int]):
    positions = []
    for one in ids:
        try:
            positions.append(samples[one])
        except KeyError:
            known = format_count(len(samples), "id")
            raise ValueError(
                f"{name} must name samples by their ids, but {one!r} is not among the {known}."
            ) from None
        except TypeError:
            raise TypeError(
                f"{name} must hold hashable ids, got {format_value(one)}."
            ) from None
    return np.array(positions, dtype=np.intp)


def _as_numbers(column, name: str, hint: str = ""):
    """Return a column as numbers; `hint` is added to the error where it holds text."""
    if column.dtype.kind in "iuf":
        return column
    types = set(map(type, column))
    odd = {kind for kind in types if kind in _BOOLS or not issubclass(kind, Real)}
    for value in column:
        if type(value) in odd:
            hint = hint if isinstance(value, str) else ""
            raise TypeError(
                f"{name} must hold numbers, got {format_value(value)}.{hint}"
            )
    try:
        return column.astype(np.float64)
    except OverflowError:
        huge = format_value(max(column, key=abs))
        raise ValueError(
            f"{name} holds a number too large for a float, {huge}."
        ) from None


def _read_signed_weights(kinds):
    """Return signed weights: those of must-links are positive, those of cannot-links negative."""
    signed = np.zeros(len(kinds))
    if all(issubclass(kind, Real) for kind in set(map(type, kinds))):
        signed = _as_numbers(kinds, "pairs").astype(float)
    for i in np.flatnonzero(signed == 0):
        with suppress(TypeError, ValueError, OverflowError):
            signed[i] = float(_SIGNS.get(str(kinds[i]).strip().lower(), kinds[i]))
    bad = ~(np.abs(signed) > 0)
    if bad.any():
        form = "must or cannot, 1 or -1, or ML or CL, or a weight with such a sign"
        raise ValueError(
            f"pairs: the kind must be {form}, got {format_value(kinds[bad][0])}."
        )
    return signed


def _find_hard(weights, hard=None):
    """Return which pairs are hard: those of infinite weight, and those that `hard` marks.

    Without it and infinite weights, they are those of weight 1 and more.
    """
    infinite = np.isinf(weights)
    if hard is not None:
        return infinite | hard
    return infinite if infinite.any() else weights >= 1


def _normalize_links(links: Links, name: str, samples: Samples) -> Links:
    """Return pairs that are in range in one form, their weights checked."""
    pairs, weights, hard = links
    bad = ~(weights >= 0)
    if bad.any():
        raise ValueError(
            f"{name} must have weights that are at least 0, got {weights[bad][0]} for the pair "
            f"{_names_at(pairs[bad][0], samples)}."
        )
    infinite = np.isinf(weights)
    if infinite.any():
        largest = max(1.0, weights[~infinite].max(initial=1))
        if name == "cannot_link":
            largest *= _INFINITE_CANNOT_LINK
        weights = np.where(infinite, largest, weights)
    used = weights > 0
    is_loop = pairs[:, 0] == pairs[:, 1]
    if name == "must_link":
        used &= ~is_loop
    elif (used & is_loop).any():
        pair = _names_at(pairs[used & is_loop][0], samples)
        raise ValueError(
            f"{name} holds the pair {pair}, but a sample is always in one cluster with itself."
        )
    return make_links(pairs[used], weights[used].astype(np.float64), hard[used])


def _names_at(positions, samples: Samples):
    """Return what a message calls some samples."""
    names = list(samples)
    return tuple(names[i] for i in positions)


def read_ids(n_samples, ids) -> tuple[Samples, Any]:
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
        return range(int(n_samples)), None
    names: Any = None if isinstance(ids, str | bytes) else ids
    if hasattr(ids, "columns"):
        names = getattr(ids, "index", None)  # a data frame of polars has none
    position: dict[Any, int] = {}
    try:
        for number, name in enumerate(names):
            first = position.setdefault(name, number)
            if first != number:
                raise ValueError(
                    f"ids must differ, but samples {first} and {number} are both {name!r}."
                )
    except TypeError:
        form = (
            "a sequence of hashable ids, one a sample, or a pandas Index or DataFrame"
        )
        raise TypeError(f"ids must be {form}; got {format_value(ids)}.") from None
    index = row_names(ids)
    return position, np.fromiter(position, dtype=object) if index is None else index


def read_groups(groups, samples: Samples, apart):
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
    if type(apart) not in _BOOLS:
        raise TypeError(f"apart must be a bool, got {format_value(apart)}.")
    codes = np.full(len(samples), -1, dtype=np.intp)
    if isinstance(groups, Mapping):
        groups = groups.values()
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(
            f"groups must be a sequence of groups, got {format_value(groups)}."
        )
    for number, members in enumerate(groups):
        try:
            names = np.fromiter(members, dtype=object)
            # letters of a word are no ids, and of a mask True would be taken for 1
            if isinstance(members, str | bytes) or _BOOLS & set(map(type, names)):
                raise TypeError
        except TypeError:
            form = "groups must hold sequences of samples, by index or by id"
            raise TypeError(f"{form}, got the group {format_value(members)}.") from None
        own = _read_positions(names, "groups", samples)
        taken = own[codes[own] >= 0]
        if len(taken):
            sample = _names_at(taken, samples)[0]
            raise ValueError(
                f"groups must not share samples, but {sample!r} is in groups {codes[taken[0]]} "
                f"and {number}: make one group of them."
            )
        codes[own] = number
    return codes


def read_labels(labels):
    """Return labels as numbers from 0; -1 stands for a label that is not known."""
    column = np.asarray(None)
    with suppress(TypeError, ValueError):
        column = as_label_vector(labels)
    if column.ndim != 1:
        got = f"shape {column.shape}" if column.ndim else format_value(labels)
        raise ValueError(f"labels must have shape (n_samples,), got {got}.")
    values, seen = clean_labels(column, "labels")
    codes = np.full(len(column), -1, dtype=np.intp)
    codes[seen] = np.unique(values, return_inverse=True)[1]
    return codes
