"""Canonical order of samples, which depends only on their values, not on the order of the rows.

In this order, a fit draws samples, breaks ties and adds numbers in the same way for any order of
the rows. Samples are sorted by 64-bit hashes. Two different samples share a hash with probability
2^-64, and then keep their order: with a million samples, this happens in one of thirty million
tables.
"""

import numpy as np

from nmfcluster._utils.storage import (
    is_sparse,
    row_blocks,
    rows_of,
    stored_values,
    submatrix,
    without_diagonal,
)

# Entries of a matrix that are hashed at a time: 256 KiB, which fit the cache.
_HASHED_ENTRIES = 2**15


def _mix(keys):
    """Mix the bits of 64-bit numbers, in place, as the last step of SplitMix64 does."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys ^= keys >> np.uint64(shift)
        keys *= np.uint64(factor)
    keys ^= keys >> np.uint64(31)
    return keys


def _canonical_bits(values):
    """Return numbers as the bits of float64; all NaN are equal, and so are 0 and -0."""
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def hash_rows(X, column_keys=None):
    """Return a hash of every row, which depends on its numbers and their columns.

    It is the sum of the hashes of the nonzero entries, modulo 2^64. It is the same for dense and
    sparse matrices of the same numbers, in float32 and float64.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        A sparse matrix stores every entry once, in any order.
    column_keys : ndarray of shape (p,), uint64, default=None
        Keys that distinguish columns; by default, hashes of their numbers.

    Returns
    -------
    ndarray of shape (n,), uint64
    """
    n, width = X.shape
    if column_keys is None:
        column_keys = _mix(np.arange(1, width + 1, dtype=np.uint64))
    keys = np.empty(n, dtype=np.uint64)
    n_stored = stored_values(X).size
    mean_width = max(-(-n_stored // max(n, 1)), 1)
    for block in row_blocks(n, max(1, _HASHED_ENTRIES // mean_width)):
        rows = rows_of(X, block)
        if is_sparse(rows):
            hashes = _hash_entries(rows.data, column_keys[rows.indices])
            sums = np.zeros(len(hashes) + 1, dtype=np.uint64)
            np.cumsum(hashes, out=sums[1:])
            keys[block] = np.diff(sums[rows.indptr])
        else:
            keys[block] = _hash_entries(rows, column_keys).sum(axis=1)
    return keys


def _hash_entries(values, column_keys):
    """Return the hashes of entries, given the keys of their columns; 0 for zeros."""
    hashes = _mix(_canonical_bits(values) ^ column_keys)
    hashes[values == 0] = 0
    return hashes


def refine_hashes(keys, matrices):
    """Return keys that also depend on the entries of samples in symmetric matrices.

    Two samples keep the same key if their entries are the same up to order, the entries of the
    samples related to them are, and so on. This is the colour refinement of Weisfeiler and Leman.
    A few rounds suffice, as most ties are broken in the first.

    Parameters
    ----------
    keys : ndarray of shape (n,), uint64
        Keys from other data; zeros if there are none.
    matrices : sequence of {ndarray, csr_array} of shape (n, n)
        Similarities, or weights of links.

    Returns
    -------
    ndarray of shape (n,), uint64
    """
    if not matrices:
        return keys
    n_distinct = len(np.unique(keys))
    for _ in range(5):
        if n_distinct == len(keys):
            break
        refined = keys.copy()
        for number, matrix in enumerate(matrices, start=1):
            sums = hash_rows(matrix, _mix(keys + np.uint64(number)))
            refined = _mix(refined ^ _canonical_bits(matrix.diagonal())) + sums
        n_before = n_distinct
        n_distinct = len(np.unique(refined))
        if n_distinct == n_before:
            break
        keys = refined
    return keys


class CanonicalOrder:
    """An order of samples for a fit, and the maps between it and the user's order.

    Parameters
    ----------
    samples : ndarray of shape (n,), int
        ``X[samples]`` is in canonical order.
    first : ndarray of shape (n,), int
        For every position in that order, the first position with an equal sample. Equal samples are
        in the user's order there. Use ``results[first]`` to give all of them the result of the
        first.

    Attributes
    ----------
    ranks : ndarray of shape (n,), int
        Position of every sample in canonical order. ``results[ranks]`` puts results into the
        user's order.
    first_ranks : ndarray of shape (n,), int
        Position of the result of every sample in canonical order: for equal samples, that of the
        first of them.
    distinct : ndarray of int
        One sample of each set of equal samples, in canonical order.
    counts : ndarray of int
        Number of samples that equal each distinct sample.
    distinct_inverse : ndarray of shape (n,), int
        Which distinct sample every sample equals, in the user's order.
    """

    def __init__(self, samples, first):
        self.samples = samples
        self.first = first
        self.ranks = np.empty_like(samples)
        self.ranks[samples] = np.arange(len(samples))  # ten times faster than argsort
        self.first_ranks = first[self.ranks]
        firsts, groups = np.unique(first, return_inverse=True)
        self.distinct = samples[firsts]
        self.counts = np.bincount(groups)
        self.distinct_inverse = groups[self.ranks]

    def permute(self, S):
        """Return a matrix of pairs of samples with rows and columns in canonical order."""
        return submatrix(S, self.samples, self.samples)


def canonical_order(*tables, similarities=(), links=(), weights=None):
    """Return the order of samples by their rows in data matrices, or by their relations.

    Samples are sorted by the extremes of their rows in the first matrix, because rounding or
    scaling the matrix does not change the order of the extremes. Ties are broken by hashes of the
    rows. The sorted samples are then shuffled, always in the same way, so that the first samples
    are typical. Equal samples stay together.

    Parameters
    ----------
    *tables : ndarray or csr_array of shape (n, p)
        If there are several, all are used, and their order does not matter.
    similarities : sequence of {ndarray, csr_array} of shape (n, n), default=()
        Samples are equal if their rows are equal. If there are several, their order does not
        matter.
    links : sequence of csr_array of shape (n, n), default=()
        Weights of pairs, which distinguish equal rows: a sample in a pair equals no other sample.
    weights : ndarray of shape (n,), default=None
        These distinguish equal rows, too. Samples of weight 0 do not change the order of others.
    """
    # Sort by the extremes of rows, which are distinct for most measured data.
    ordered_tables, by = _sort_arrays(tables, off_diagonal=False)
    similarities, by_similarity = _sort_arrays(similarities, off_diagonal=True)
    if similarities:
        by = by_similarity
    n = len(by[0])
    by_size = np.lexsort(by[::-1])
    rng = np.random.default_rng(0)
    differ = np.any([np.diff(extreme[by_size]) != 0 for extreme in by], axis=0)
    if weights is None and differ.all():
        return CanonicalOrder(by_size[rng.permutation(n)], np.arange(n))
    # Break ties by hashes of rows, of related samples, and of links.
    keys = np.zeros(n, dtype=np.uint64)
    for table in ordered_tables:
        keys = _mix(keys) + hash_rows(table)
    keys = refine_hashes(keys, similarities)
    by.append(keys)
    n_links = sum((np.diff(matrix.indptr) for matrix in links), np.zeros(n))
    if n_links.any():
        by.append(refine_hashes(keys, links))
    by += [hash_rows(S) for S in similarities]
    if weights is not None:
        by = [weights == 0, *by, weights]
    order = np.lexsort(by[::-1])
    # Samples of a group are equal in all of these, and in no pair.
    is_new = n_links[order] > 0
    is_new[1:] |= np.any([key[order[1:]] != key[order[:-1]] for key in by], axis=0)
    group = np.cumsum(is_new) - is_new[0]
    # Shuffle the groups.
    place = np.argsort(rng.permutation(int(group[-1]) + 1))[group]
    by_place = np.argsort(place, kind="stable")
    _, first, group = np.unique(place[by_place], return_index=True, return_inverse=True)
    return CanonicalOrder(order[by_place], first[group])


def _sort_arrays(arrays, off_diagonal):
    """Return arrays in canonical order, and the extremes of the rows of the first.

    Arrays are sorted by their largest and smallest entry. If these are equal, as for cosines, they
    are sorted by sums, modulo 2^64, over the extremes and the numbers of stored entries of rows.
    """
    if not arrays:
        return arrays, []
    if len(arrays) > 1:
        keys: list = []
        for X in arrays:
            keys.append((float(X.max()), float(X.min())) if min(X.shape) else ())
        if len(set(keys)) < len(keys):
            for number, X in enumerate(arrays):
                n_stored = np.diff(X.indptr) if is_sparse(X) else np.zeros(1)
                for values in (*_extremes(X, off_diagonal), n_stored):
                    keys[number] += (int(_mix(_canonical_bits(values)).sum()),)
        order = sorted(range(len(arrays)), key=keys.__getitem__)
        arrays = [arrays[i] for i in order]
    return arrays, _extremes(arrays[0], off_diagonal)


def _extremes(array, off_diagonal):
    """Return the largest and the smallest entry of every row; 0 where it is NaN.

    With `off_diagonal`, the array is a similarity: its diagonal, mostly 0 or 1, and zeros are
    ignored, and two entries that should be equal are replaced by the larger one.
    """
    n, width = array.shape
    extremes = [(np.zeros(n), np.maximum, -np.inf), (np.zeros(n), np.minimum, np.inf)]
    if is_sparse(array):
        if off_diagonal:
            array = without_diagonal(array)
            array = array.maximum(array.T).tocsr()
            array.eliminate_zeros()
        n_stored = np.diff(array.indptr)
        is_filled = np.flatnonzero(n_stored)
        for found, extreme, _ in extremes:
            found[is_filled] = extreme.reduceat(array.data, array.indptr[is_filled])
            if not off_diagonal:  # entries that are not stored are 0
                found[n_stored < width] = extreme(found, 0)[n_stored < width]
        return [np.nan_to_num(found) for found, _, _ in extremes]
    for block in row_blocks(n, max(1, _HASHED_ENTRIES // max(width, 1))):
        rows = array[block]
        if off_diagonal:
            rows = np.maximum(rows, array[:, block].T)
            rows[np.arange(len(rows)), np.arange(block.start, block.stop)] = 0
        for found, extreme, neutral in extremes:
            counting = np.where(rows == 0, neutral, rows) if off_diagonal else rows
            initial = None if width else 0
            found[block] = extreme.reduce(counting, axis=1, initial=initial)
    return [np.nan_to_num(found, posinf=0, neginf=0) for found, _, _ in extremes]
