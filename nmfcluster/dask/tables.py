"""Dask arrays in blocks of rows: checks of them, and work on every block."""

from collections.abc import Callable
from math import isnan
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed

from nmfcluster._utils.parallel import one_blas_thread


def read_rows(X, name: str = "X") -> da.Array:
    """Return a Dask array of two dimensions whose blocks are blocks of whole rows.

    Parameters
    ----------
    X : dask.array.Array
    name : str, default="X"
        What to call it in an error message.

    Raises
    ------
    TypeError
        If it is no Dask array, or one of strings or objects.
    ValueError
        If it has not two dimensions, has blocks of unknown size.
    """
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} must be a Dask array in blocks of rows, got {type(X).__name__}: "
            "dask.array.from_array makes one, to_dask_array(lengths=True) of a data frame; for "
            "what fits into memory there are the estimators of nmfcluster itself."
        )
    if X.dtype.kind not in "biuf" or not isinstance(X._meta, np.ndarray):
        raise TypeError(
            f"{name} must hold numbers in numpy's arrays, got {type(X._meta).__name__} of "
            f"{X.dtype}: give strings numbers first, as pandas.factorize does, and let map_blocks "
            "know of it by its dtype."
        )
    if any(isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            f"{name} must have blocks of known sizes: call {name}.compute_chunk_sizes() first."
        )
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"{name} must be a table with rows and columns, got shape {X.shape}."
        )
    # a filter may leave blocks without any rows
    return X.rechunk((tuple(size for size in X.chunks[0] if size), -1))


def on_block(function: Callable[..., Any], value, **options):
    """Call a function on a worker as a fit would: with one BLAS thread, underflow being 0."""
    with one_blas_thread(), np.errstate(under="ignore"):
        return function(value, **options)


_on_block = delayed(on_block, pure=False)


def of_blocks(X: da.Array, function: Callable[..., Any], with_first: bool = False):
    """Return a function of every block, as delayed objects.

    Parameters
    ----------
    X : dask.array.Array
    function : callable
        Takes a block, and the number of its first row as `first` if wanted. It is sent to
        every worker once, with all that it holds.
    with_first : bool, default=False
        Whether it takes that number.
    """
    function = delayed(function, traverse=False)  # one node of the graph
    blocks = X.to_delayed().ravel()
    if not with_first:
        return [_on_block(function, block) for block in blocks]
    firsts = np.cumsum((0, *X.chunks[0][:-1])).tolist()
    pairs = zip(blocks, firsts, strict=True)
    return [_on_block(function, block, first=first) for block, first in pairs]


def by_blocks(
    X: da.Array, function: Callable[[Any], Any], dtype, shape: tuple[int, ...] = ()
) -> da.Array:
    """Return a function of every block as a Dask array, one row for every row.

    Parameters
    ----------
    X : dask.array.Array
    function : callable
        Takes a block, see `of_blocks`.
    dtype : dtype
    shape : tuple of int
        Shape of the result for one row.
    """
    parts = []
    for result, n_rows in zip(of_blocks(X, function), X.chunks[0], strict=True):
        parts.append(da.from_delayed(result, (n_rows, *shape), dtype))
    return da.concatenate(parts)


def reduced(parts, merge: Callable[[list[Any]], Any], fan_in: int = 8):
    """Merge delayed parts, `fan_in` at a time, and compute the result on the scheduler."""
    while len(parts) > 1:
        starts = range(0, len(parts), fan_in)
        parts = [_on_block(merge, list(parts[i : i + fan_in])) for i in starts]
    return compute(parts[0])[0]


def rows_at(X: da.Array, rows):
    """Return some rows of a Dask array, whose numbers increase, as an array in memory."""
    return np.asarray(X[rows])
