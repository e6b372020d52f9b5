"""Products of factors at the stored entries of a sparse matrix, and missing entries."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.array_api import SparseTensor, namespace
from nmfcluster._utils.storage import (
    is_sparse,
    row_blocks,
    stored_values,
    with_nonzero_data,
)

# Entries of a product that are computed at a time; they fit a cache of 2 MiB.
_FORMED_ENTRIES = 2**18
_GATHERED_ENTRIES = 2**13  # stored entries whose rows of factors are gathered at a time
_SCALED_ROWS = 512  # rows whose factors are repeated for their stored entries at a time
_BLAS_FROM = 0.02  # share of stored entries from which whole blocks are faster


def iter_products(pattern, W, H):
    """Yield the entries of WH at the stored entries of a CSR matrix, some rows at a time.

    Parameters
    ----------
    pattern : csr_array of shape (n, p)
    W : ndarray of shape (n, k)
    H : ndarray of shape (k, p)

    Yields
    ------
    stored : slice
        Positions among the stored entries.
    products : ndarray
        The entries of WH at these.
    """
    if isinstance(pattern, SparseTensor):
        yield from pattern.iter_products(W, H)
        return
    n, p = pattern.shape
    ends = pattern.indptr
    # If many entries are stored, compute all entries of a few rows.
    if pattern.nnz >= _BLAS_FROM * n * p:
        for block in row_blocks(n, max(1, _FORMED_ENTRIES // max(1, p))):
            stored = slice(ends[block.start], ends[block.stop])
            counts = np.diff(ends[block.start : block.stop + 1])
            P = W[block] @ H
            firsts = np.arange(0, P.size, p)
            places = np.repeat(firsts, counts) + pattern.indices[stored]
            yield stored, P.ravel().take(places)
        return
    # Otherwise, multiply rows of the factors, for whole rows with about `_GATHERED_ENTRIES`.
    starts = np.arange(0, pattern.nnz, _GATHERED_ENTRIES)
    cuts = np.searchsorted(ends, starts, side="right") - 1
    cuts = np.unique([0, *cuts, n]).tolist()
    transposed_H = np.ascontiguousarray(H.T)
    for start, stop in pairwise(cuts):
        stored = slice(ends[start], ends[stop])
        rows = np.repeat(np.arange(start, stop), np.diff(ends[start : stop + 1]))
        of_rows = W.take(rows, axis=0)
        of_columns = transposed_H.take(pattern.indices[stored], axis=0)
        yield stored, np.einsum("ek,ek->e", of_rows, of_columns)


def product_at(pattern, W, H):
    """Return the entries of WH at the stored entries of a CSR matrix, as a CSR matrix."""
    values = namespace(W).empty_like(pattern.data, dtype=W.dtype)
    for stored, products in iter_products(pattern, W, H):
        values[stored] = products
    return with_data(pattern, values)


def with_data(pattern, values):
    """Return a CSR matrix with other values for its stored entries; zeros remain stored."""
    if isinstance(pattern, SparseTensor):
        return replace(pattern, data=values)
    parts = (values, pattern.indices, pattern.indptr)
    return type(pattern)(parts, shape=pattern.shape)


def sparse_if_few(array, share):
    """Return a matrix as CSR if at most a share of its entries is not 0, else as it is."""
    few = not is_sparse(array) and np.count_nonzero(array) <= share * array.size
    return sp.csr_array(array) if few else array


def astype(array, dtype):
    """Return an array, or a CSR matrix with the same stored entries, in another dtype."""
    if not sp.issparse(array) or array.dtype == dtype:
        return array.astype(dtype, copy=False)
    return with_data(array, array.data.astype(dtype))


def scale_rows_columns(array, rows, columns):
    """Multiply the rows and columns of an array or a CSR matrix by factors."""
    rows = np.asarray(rows, dtype=array.dtype)
    columns = np.asarray(columns, dtype=array.dtype)
    if not sp.issparse(array):
        return array * columns * rows[:, None]
    values = columns.take(array.indices)
    values *= array.data
    ends = array.indptr
    for block in row_blocks(len(rows), _SCALED_ROWS):
        stored = slice(ends[block.start], ends[block.stop])
        counts = np.diff(ends[block.start : block.stop + 1])
        values[stored] *= np.repeat(rows[block], counts)
    return with_data(array, values)


def center_columns(X):
    """Centre the columns of a dense matrix; return the matrix and the means not subtracted.

    Products of values far from 0 would lose digits. A sparse matrix is not centred.
    """
    mean = np.asarray(X.mean(axis=0)).ravel()
    return (X, mean) if sp.issparse(X) else (X - mean, np.zeros_like(mean))


def csr_arrays(value):
    """Return the arrays of a CSR matrix, and anything else as it is."""
    if not is_sparse(value):
        return value
    return value.shape, value.indptr, value.indices, value.data


def split_missing(X):
    """Return X with 0 for NaN, and a CSR matrix with 1 for each NaN, or None if there is none.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)

    Returns
    -------
    ndarray or csr_array of shape (n, p)
        X itself if nothing is missing.
    csr_array of shape (n, p) or None
        In the dtype of X.
    """
    if not np.isnan(X.sum()):
        return X, None
    values = stored_values(X)
    is_missing = np.isnan(values)
    known = np.where(is_missing, 0, values).astype(X.dtype, copy=False)
    if sp.issparse(X):
        missing = with_nonzero_data(X, is_missing.astype(X.dtype))
        return with_nonzero_data(X, known), missing
    return known, sp.csr_array(is_missing, dtype=X.dtype)
