"""An order of samples that depends on what they hold alone, and not on how they were handed in.

A fit in this order draws, breaks ties and sums alike for any order of the rows. Samples are sorted
by keys of 64 bits. Two different ones share a key with a chance of 2^-64, and are then taken as
they come: of a million samples that happens once in thirty million tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nmfcluster._utils.storage import (
    is_sparse,
    row_blocks,
    rows_of,
    submatrix,
    without_diagonal,
)

_HASHED_ENTRIES = (
    2**15
)  # of a table that are mixed at a time: 256 KiB, which stay in cache


def _mix(keys: np.ndarray) -> np.ndarray:
    """Scramble numbers of 64 bits, in place: the last step of the generator SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys ^= keys >> np.uint64(shift)
        keys *= np.uint64(factor)
    keys ^= keys >> np.uint64(31)
    return keys


def _canonical_bits(values: np.ndarray) -> np.ndarray:
    """Return what float64 stores of numbers: a copy, alike for all that are NaN, and for 0, -0."""
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _hash_entries(values: np.ndarray, of_columns: np.ndarray) -> np.ndarray:
    """Return a key of every entry, 0 where it is 0."""
    keys = _mix(_canonical_bits(values) ^ of_columns)
    keys[values == 0] = 0
    return keys


def _sum_hashes(table, of_columns: np.ndarray) -> np.ndarray:
    """Return a key of every row: the sum of those of its nonzero entries, modulo 2^64."""
    keys = np.empty(table.shape[0], dtype=np.uint64)
    stored = len(table.data) if is_sparse(table) else table.size
    width = -(-stored // max(len(keys), 1))  # of a row on average
    for block in row_blocks(len(keys), max(1, _HASHED_ENTRIES // max(width, 1))):
        rows = rows_of(table, block)
        if is_sparse(rows):
            ends = np.zeros(len(rows.data) + 1, dtype=np.uint64)
            np.cumsum(_hash_entries(rows.data, of_columns[rows.indices]), out=ends[1:])
            keys[block] = np.diff(ends[rows.indptr])
        else:
            keys[block] = _hash_entries(rows, of_columns).sum(axis=1)
    return keys


def hash_rows(X) -> np.ndarray:
    """Return a key of every row, which depends on the numbers it holds and their columns.

    It is the same for dense and sparse tables of these numbers, in float32 and float64.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        A sparse one stores every entry once, in any order.

    Returns
    -------
    ndarray of shape (n,), uint64
    """
    return _sum_hashes(X, _mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64)))


def refine_hashes(keys: np.ndarray, *matrices) -> np.ndarray:
    """Return keys that also depend on the entries of samples in symmetric matrices.

    Two samples keep one key where their entries are the same in some order, and so are the entries
    of those samples, and so on: the refinement of colours by Weisfeiler and Leman, a few rounds of
    it, as ties are mostly gone after the first.

    Parameters
    ----------
    keys : ndarray of shape (n,), uint64
        Zeros, if nothing else tells samples apart.
    *matrices : ndarray or csr_array of shape (n, n)
        Similarities, or weights of links.

    Returns
    -------
    ndarray of shape (n,), uint64
    """
    n_distinct = len(np.unique(keys)) if matrices else len(keys)
    for _ in range(5):
        if n_distinct == len(keys):
            break
        refined = keys.copy()
        for number, matrix in enumerate(matrices, start=1):
            of_columns = _mix(keys + np.uint64(number))
            refined = _mix(refined ^ _canonical_bits(matrix.diagonal())) + _sum_hashes(
                matrix, of_columns
            )
        n_before, n_distinct = n_distinct, len(np.unique(refined))
        if n_distinct == n_before:
            break
        keys = refined
    return keys


@dataclass(frozen=True)
class CanonicalOrder:
    """Where samples go for a fit, and where its results come from.

    Attributes
    ----------
    samples : ndarray of shape (n,), int
        ``X[samples]`` is in canonical order.
    first : ndarray of shape (n,), int
        Of every place in that order, the first place that holds an equal sample. Equal ones stand
        there as they were handed in, so that a result is theirs alike only if it is that of one:
        ``results[first]``.
    """

    samples: np.ndarray
    first: np.ndarray

    @cached_property
    def ranks(self) -> np.ndarray:
        """Place of every sample in canonical order.

        Results in canonical order are ``results[ranks]`` in the user's.
        """
        ranks = np.empty_like(self.samples)
        ranks[self.samples] = np.arange(
            len(ranks)
        )  # an argsort takes ten times as long
        return ranks

    @cached_property
    def first_ranks(self) -> np.ndarray:
        """Place of the result of every sample, (n,), among those in canonical order.

        Equal samples have that of the first of them.
        """
        return self.first[self.ranks]

    @cached_property
    def distinct(self) -> np.ndarray:
        """Samples of which no two are equal, and which all others equal; in canonical order."""
        return self.samples[self._firsts]

    @cached_property
    def counts(self) -> np.ndarray:
        """How many samples each of the distinct ones stands for."""
        return np.bincount(self._group)

    @cached_property
    def distinct_inverse(self) -> np.ndarray:
        """Which of the distinct ones every sample equals, (n,), in the user's order."""
        return self._group[self.ranks]

    @cached_property
    def _firsts(self) -> np.ndarray:
        return np.unique(self.first)

    @cached_property
    def _group(self) -> np.ndarray:
        return np.searchsorted(self._firsts, self.first)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Return the largest of the values, in canonical order, that equal samples have."""
        if len(self._firsts) == len(values):
            return values
        out = values[self._firsts]
        np.maximum.at(out, self._group, values)
        return out[self._group]

    def permute(self, S) -> Any:
        """Return a matrix with its rows and its columns, the same samples, in canonical order."""
        return submatrix(S, self.samples, self.samples)


def canonical_order(
    *tables,
    similarities: Sequence[Any] = (),
    links: Sequence[Any] = (),
    weights: np.ndarray | None = None,
) -> CanonicalOrder:
    """Return the order of samples by their rows in tables, or by how they are related.

    They are sorted by the extremes of their rows in the first of these, which stay in order where
    it is multiplied by a number or rounded, and those of which these are equal by their keys. What
    is sorted is then shuffled, always in the same way, so that the first samples are like all
    others. Equal ones stay together.

    Parameters
    ----------
    *tables : ndarray or csr_array of shape (n, p)
        Of several all count, in any order.
    similarities : sequence of {ndarray, csr_array} of shape (n, n), default=()
        Samples are equal if their rows are. Of several all count, in any order.
    links : sequence of csr_array of shape (n, n), default=()
        Weights of pairs, which tell equal rows apart: a sample in a pair is equal to no other.
    weights : ndarray of shape (n,), default=None
        These tell equal rows apart, too; what counts 0 times changes the order of no other.
    """
    n = (*tables, *similarities)[0].shape[0]
    tables, by_table = _sort_arrays(tables, off_diagonal=False)
    similarities, by_similarity = _sort_arrays(similarities, off_diagonal=True)
    by = by_similarity if similarities else by_table
    by_size = np.lexsort(by[::-1])
    differ = np.any([np.diff(extreme[by_size]) != 0 for extreme in by], axis=0)
    if weights is None and differ.all():  # as of most that is measured
        return CanonicalOrder(by_size[_fixed_permutation(n)], np.arange(n))
    keys = np.zeros(n, dtype=np.uint64)
    for table in tables:
        keys = _mix(keys) + hash_rows(table)
    by.append(refine_hashes(keys, *similarities))
    linked = sum((np.diff(matrix.indptr) for matrix in links), np.zeros(n))
    if linked.any():
        by.append(refine_hashes(by[-1], *links))
    by += map(hash_rows, similarities)
    if weights is not None:
        by = [weights == 0, *by, weights]
    in_order = np.lexsort(by[::-1])
    new = linked[in_order] > 0
    new[1:] |= np.any([key[in_order[1:]] != key[in_order[:-1]] for key in by], axis=0)
    group = np.cumsum(new) - new[0]
    place = np.argsort(_fixed_permutation(int(group[-1]) + 1))[group]
    by_place = np.argsort(place, kind="stable")
    _, first, group = np.unique(place[by_place], return_index=True, return_inverse=True)
    return CanonicalOrder(in_order[by_place], first[group])


def _sort_arrays(
    arrays: Sequence[Any], off_diagonal: bool
) -> tuple[tuple[Any, ...], list[np.ndarray]]:
    """Return arrays in an order of their own, and the extremes of the rows of the first.

    They are sorted by their largest entry and their smallest; where these are the same, as those of
    cosines are, by sums, modulo 2^64, over the extremes and how many entries of a row are stored.
    """
    if len(arrays) <= 1:
        return tuple(arrays), _extremes(arrays[0], off_diagonal) if arrays else []
    keys: list[tuple[float, ...]] = [
        (float(array.max()), float(array.min())) if min(array.shape) else ()
        for array in arrays
    ]
    if len(set(keys)) < len(keys):
        for number, array in enumerate(arrays):
            stored = np.diff(array.indptr) if is_sparse(array) else np.zeros(1)
            of_rows = (*_extremes(array, off_diagonal), stored)
            keys[number] += tuple(
                int(_mix(_canonical_bits(part)).sum()) for part in of_rows
            )
    order = sorted(range(len(arrays)), key=keys.__getitem__)
    return tuple(arrays[i] for i in order), _extremes(arrays[order[0]], off_diagonal)


def _fixed_permutation(n: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(n)


def _extremes(array, off_diagonal: bool = False) -> list[np.ndarray]:
    """Return the largest and the smallest entry of every row; 0 where that is NaN.

    Off the diagonal of a similarity, on which most have 0 or 1, zeros do not count, and of two
    entries that should be equal the larger one is that of both.
    """
    n, width = array.shape
    found, extremes = np.zeros((2, n)), (np.maximum, np.minimum)
    if is_sparse(array):
        if off_diagonal:
            array = without_diagonal(array)
            array = array.maximum(array.T).tocsr()
            array.eliminate_zeros()
        n_stored = np.diff(array.indptr)
        some, all_but_some = (
            np.flatnonzero(n_stored),
            not off_diagonal and (n_stored < width),
        )
        for row, extreme in zip(found, extremes, strict=True):
            row[some] = extreme.reduceat(array.data, array.indptr[some])
            row[all_but_some] = extreme(row, 0)[all_but_some]
        return list(np.nan_to_num(found))
    for block in row_blocks(n, max(1, _HASHED_ENTRIES // max(width, 1))):
        rows = array[block]
        if off_diagonal:
            rows = np.maximum(rows, array[:, block].T)
            rows[np.arange(len(rows)), np.arange(block.start, block.stop)] = 0
        for row, extreme, zero in zip(found, extremes, (-np.inf, np.inf), strict=True):
            counting = np.where(rows == 0, zero, rows) if off_diagonal else rows
            row[block] = extreme.reduce(counting, axis=1, initial=None if width else 0)
    return list(np.nan_to_num(found, posinf=0, neginf=0))
