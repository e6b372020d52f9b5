"""Products of two factors where a sparse matrix stores an entry, and entries that are missing."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.array_api import SparseTensor, namespace
from nmfcluster._utils.storage import is_sparse, row_blocks, with_nonzero_data

_FORMED_ENTRIES = (
    2**18
)  # of a product that are formed at a time: they stay in a cache of 2 MiB
_GATHERED_ENTRIES = (
    2**13
)  # stored entries whose rows and columns of the factors are multiplied at a time
_BLAS_FROM = 0.02  # share of stored entries from which all of a block is formed faster


def iter_products(
    places, W: np.ndarray, H: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the entries of WH where a CSR matrix stores one, some rows at a time.

    Parameters
    ----------
    places : csr_array of shape (n, p)
    W : ndarray of shape (n, k)
    H : ndarray of shape (k, p)

    Yields
    ------
    stored : slice
        Which of the stored entries.
    means : ndarray
        What WH has there.
    """
    if isinstance(places, SparseTensor):
        yield from places.products_at(W, H)
        return
    whole = places.nnz >= _BLAS_FROM * places.shape[0] * places.shape[1]
    across = None if whole else np.ascontiguousarray(H.T)
    for block in _blocks(places, whole):
        stored = slice(places.indptr[block.start], places.indptr[block.stop])
        columns = places.indices[stored]
        counts = np.diff(places.indptr[block.start : block.stop + 1])
        if across is None:
            P = W[block] @ H
            firsts = np.arange(0, P.size, P.shape[1])
            yield stored, P.ravel().take(np.repeat(firsts, counts) + columns)
        else:
            own = np.repeat(W[block], counts, axis=0)
            yield stored, np.einsum("ek,ek->e", own, across.take(columns, axis=0))


def _blocks(places, whole: bool) -> Iterator[slice]:
    """Return blocks of rows of a CSR matrix, with about as many entries, all or stored, each."""
    n, p = places.shape
    if whole:
        return row_blocks(n, max(1, _FORMED_ENTRIES // max(1, p)))
    wanted = (
        np.searchsorted(
            places.indptr, np.arange(0, places.nnz, _GATHERED_ENTRIES), side="right"
        )
        - 1
    )
    return (slice(*ends) for ends in pairwise(np.unique([0, *wanted, n]).tolist()))


def product_at(places, W: np.ndarray, H: np.ndarray) -> Any:
    """Return the entries of WH where a CSR matrix stores one, as such a matrix."""
    values = namespace(W).empty_like(places.data, dtype=W.dtype)
    for stored, means in iter_products(places, W, H):
        values[stored] = means
    return with_data(places, values)


def with_data(places, values: np.ndarray) -> Any:
    """Return a CSR matrix with other values in the same places, zeros among them."""
    if isinstance(places, SparseTensor):
        return replace(places, data=values)
    return type(places)((values, places.indices, places.indptr), shape=places.shape)


def sparse_if_few(array, share: float) -> Any:
    """Return a matrix as CSR if no more than a share of its entries are not 0, else as it is."""
    few = not is_sparse(array) and np.count_nonzero(array) <= share * array.size
    return sp.csr_array(array) if few else array


def astype(array, dtype) -> Any:
    """Return an array, or a CSR matrix in the same places, in another type."""
    if not sp.issparse(array) or array.dtype == dtype:
        return array.astype(dtype, copy=False)
    return with_data(array, array.data.astype(dtype))


def scale_rows_columns(array, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Return an array, or a CSR matrix in the same places, times factors of rows and columns."""
    rows, columns = (
        np.asarray(factors, dtype=array.dtype) for factors in (rows, columns)
    )
    if not sp.issparse(array):
        return array * columns * rows[:, None]
    values = columns.take(array.indices)
    values *= array.data
    values *= np.repeat(rows, np.diff(array.indptr))
    return with_data(array, values)


def center_columns(X) -> tuple[Any, np.ndarray]:
    """Return a table to take products of, and the means of its columns that it still has.

    A dense one has none left: products of what is far from 0 would lose digits. A sparse one stays.
    """
    mean = np.asarray(X.mean(axis=0)).ravel()
    return (X, mean) if sp.issparse(X) else (X - mean, np.zeros_like(mean))


def csr_arrays(value) -> Any:
    """Return the arrays that a CSR matrix is made of, and anything else as it is."""
    if not sp.issparse(value):
        return value
    return value.shape, value.indptr, value.indices, value.data


def negative_entries(X) -> np.ndarray:
    """Return the entries of a table that are below 0, which NaN is not."""
    values = X.data if sp.issparse(X) else X
    return values[values < 0]


def split_missing(X) -> tuple[Any, Any]:
    """Return X with 0 for NaN, and a CSR matrix with a 1 for each; None where there is none.

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
    if sp.issparse(X):
        unknown = np.isnan(X.data)
        return with_nonzero_data(X, np.where(unknown, 0, X.data)), with_nonzero_data(
            X, unknown.astype(X.dtype)
        )
    unknown = np.isnan(X)
    known = np.where(unknown, 0, X).astype(X.dtype, copy=False)
    return known, sp.csr_array(unknown, dtype=X.dtype)
