"""An order of samples that depends on what they hold alone, and not on how they were handed in.

A fit in this order draws, breaks ties and sums alike for any order of the rows. Samples are sorted
by keys of 64 bits. Two different ones share a key with a chance of 2^-64, and are then taken as
they come: of a million samples that happens once in thirty million tables.
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

# Entries of a matrix that are hashed at a time: 256 KiB, which stay in cache.
_HASHED_ENTRIES = 2**15


def _mix(keys):
    """Scramble numbers of 64 bits, in place: the last step of the generator SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys ^= keys >> np.uint64(shift)
        keys *= np.uint64(factor)
    keys ^= keys >> np.uint64(31)
    return keys


def _canonical_bits(values):
    """Return a copy of numbers as the bits of float64, the same for every NaN, and for 0 and -0."""
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def hash_rows(X, column_keys=None):
    """Return a key of every row, which depends on the numbers it holds and their columns.

    It is the sum of keys of its nonzero entries, modulo 2^64: the same for dense and sparse
    matrices of these numbers, in float32 and float64.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        A sparse one stores every entry once, in any order.
    column_keys : ndarray of shape (p,), uint64, default=None
        What tells columns apart; their numbers by default.

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
    """Return the keys of entries in columns; 0 for zeros."""
    hashes = _mix(_canonical_bits(values) ^ column_keys)
    hashes[values == 0] = 0
    return hashes


def refine_hashes(keys, matrices):
    """Return keys that also depend on the entries of samples in symmetric matrices.

    Two samples keep one key where their entries are the same in some order, and so are the entries
    of those samples, and so on: the refinement of colours by Weisfeiler and Leman, a few rounds of
    it, as ties are mostly gone after the first.

    Parameters
    ----------
    keys : ndarray of shape (n,), uint64
        Zeros, if nothing else distinguishes samples.
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
    """An order of samples for a fit, and where results of samples come from.

    Parameters
    ----------
    samples : ndarray of shape (n,), int
        ``X[samples]`` is in canonical order.
    first : ndarray of shape (n,), int
        For every place in that order, the first place that holds an equal sample. Equal samples
        stand there in the user's order, so that their results are the same only if they take that
        of one of them: ``results[first]``.

    Attributes
    ----------
    ranks : ndarray of shape (n,), int
        Place of every sample in canonical order. Results in canonical order are
        ``results[ranks]`` in the user's.
    first_ranks : ndarray of shape (n,), int
        Place of the result of every sample among those in canonical order. Equal samples have
        that of the first of them.
    distinct : ndarray of int
        Samples of which no two are equal, and which all others equal; in canonical order.
    counts : ndarray of int
        Number of samples that are equal to each of the distinct ones.
    distinct_inverse : ndarray of shape (n,), int
        Which of the distinct ones every sample equals, in the user's order.
    """

    def __init__(self, samples, first):
        self.samples = samples
        self.first = first
        self.ranks = np.empty_like(samples)
        self.ranks[samples] = np.arange(len(samples))  # ten times as fast as argsort
        self.first_ranks = first[self.ranks]
        firsts, groups = np.unique(first, return_inverse=True)
        self.distinct = samples[firsts]
        self.counts = np.bincount(groups)
        self.distinct_inverse = groups[self.ranks]

    def permute(self, S):
        """Return a matrix with its rows and its columns, the same samples, in canonical order."""
        return submatrix(S, self.samples, self.samples)


def canonical_order(*tables, similarities=(), links=(), weights=None):
    """Return the order of samples by their rows in data matrices, or by how they are related.

    They are sorted by the extremes of their rows in the first of these, which stay in order where
    it is multiplied by a number or rounded, and those of which these are equal by their keys. The
    sorted samples are then shuffled, always in the same way, so that the first samples are like all
    others. Equal ones stay together.

    Parameters
    ----------
    *tables : ndarray or csr_array of shape (n, p)
        If there are several, all count, in any order.
    similarities : sequence of {ndarray, csr_array} of shape (n, n), default=()
        Samples are equal if their rows are. If there are several, all count, in any order.
    links : sequence of csr_array of shape (n, n), default=()
        Weights of pairs, which distinguish equal rows: a sample in a pair is equal to no other.
    weights : ndarray of shape (n,), default=None
        They distinguish equal rows, too; a weight of 0 changes the order of no other sample.
    """
    # Sort by the extremes of rows. Those of most measured data differ.
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
    # Sort the others by hashes of their rows, of all that they are related to, and of links.
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
    # Samples of one group are equal in all of these, and in no pair.
    is_new = n_links[order] > 0
    is_new[1:] |= np.any([key[order[1:]] != key[order[:-1]] for key in by], axis=0)
    group = np.cumsum(is_new) - is_new[0]
    # Shuffle the groups.
    place = np.argsort(rng.permutation(int(group[-1]) + 1))[group]
    by_place = np.argsort(place, kind="stable")
    _, first, group = np.unique(place[by_place], return_index=True, return_inverse=True)
    return CanonicalOrder(order[by_place], first[group])


def _sort_arrays(arrays, off_diagonal):
    """Return arrays in an order of their own, and the extremes of the rows of the first.

    They are sorted by their largest entry and their smallest; where these are the same, as those of
    cosines are, by sums, modulo 2^64, over the extremes and how many entries of a row are stored.
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
    """Return the largest and the smallest entry of every row; 0 where that is NaN.

    Off the diagonal of a similarity, on which most have 0 or 1, zeros do not count, and of two
    entries that should be equal the larger one is that of both.
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
