"""Dask arrays in blocks of rows: what is asked of them, and work on every block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import config as dask_config
from dask.base import compute, get_scheduler
from dask.delayed import delayed
from psutil import Process

from nmfcluster._arrays.arguments import check_count, shown
from nmfcluster._arrays.jobs import one_blas_thread

_COPIES = 3  # of a block that a thread holds at a time: the block, its distinct rows, a result
_PART = 2**19  # bytes a column of what is made of a part of a block: measured, 30 MB of 50 columns
_MIB = 2**20


def read_rows(X: Any, name: str = "X", labels: bool = False) -> da.Array:
    """Return a Dask array of two dimensions whose blocks are blocks of whole rows.

    Parameters
    ----------
    X : dask.array.Array
    name : str, default="X"
        What to call it in an error message.
    labels : bool, default=False
        Whether it is a table of labels, of which more is made than of features.

    Raises
    ------
    TypeError
        If it is no Dask array, or one of strings or objects.
    ValueError
        If it has not two dimensions, has blocks of unknown size, or too large ones.
    """
    if hasattr(X, "to_dask_array"):
        raise TypeError(
            f"{name} must be a Dask array, got a data frame: give "
            f"{name}.to_dask_array(lengths=True)."
        )
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} must be a Dask array in blocks of rows, got {type(X).__name__}: "
            "dask.array.from_array makes one; for what fits into memory there are the estimators "
            "of nmfcluster itself."
        )
    if X.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers, got dtype {X.dtype}: give strings numbers first, as "
            "pandas.factorize does, and let map_blocks know of it by its dtype."
        )
    if not isinstance(X._meta, np.ndarray):
        raise TypeError(f"{name} must have blocks that are numpy's, got {type(X._meta).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, rows and columns, got shape {X.shape}.")
    if any(isnan(size) for size in (*X.chunks[0], *X.chunks[1])):
        raise ValueError(
            f"{name} must have blocks of known sizes: call {name}.compute_chunk_sizes() first."
        )
    if 0 in X.shape:
        raise ValueError(f"{name} must hold at least one row and one column, got shape {X.shape}.")
    rows = tuple(size for size in X.chunks[0] if size)  # a filter may leave blocks without any
    X = X.rechunk((rows, -1))
    check_fits(X, name, _PART * X.shape[1] if labels else 0)
    return X


def check_fits(X: da.Array, name: str, part: int) -> None:
    """Raise a ValueError if workers could not hold a block of the array beside their libraries.

    Workers that are next to their limit wait for memory, without a word: they would wait forever.
    `part` is the number of bytes that work on a part of a block takes.
    """
    client: Any = getattr(get_scheduler(), "__self__", None)  # None: no cluster, but this process
    if not hasattr(client, "scheduler_info"):
        return
    rows, width = max(X.chunks[0]), X.shape[1] * X.dtype.itemsize
    needed = _COPIES * rows * width + part
    taken = client.run(_resident)  # after it has loaded what it needs
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        if address not in taken or not worker["memory_limit"]:
            continue
        share, held = taken[address]
        limit, threads = share * worker["memory_limit"], max(worker["nthreads"], 1)
        room = (limit - held) / threads
        if needed > room:
            fitting = int((room - part) / (_COPIES * width))
            cure = f"Give {name}.rechunk(({fitting}, -1)), or write it in such blocks."
            raise ValueError(
                f"{name} has blocks of up to {rows} rows and {rows * width / _MIB:.0f} MiB, for "
                f"which a thread needs {needed / _MIB:.0f} MiB; a worker has "
                f"{max(room, 0) / _MIB:.0f} MiB for each of its {threads} thread(s): of the "
                f"{limit / _MIB:.0f} MiB at which it pauses {held / _MIB:.0f} MiB are taken. "
                + (cure if fitting > 0 else "Give workers more memory, or fewer threads.")
            )


def _resident() -> tuple[float, int]:
    """Return the share of its limit at which this worker pauses, and the bytes that it holds."""
    share = dask_config.get("distributed.worker.memory.pause", 0.8) or 1.0
    return float(share), int(Process().memory_info().rss)


def row_ranges(X: da.Array) -> list[tuple[int, int]]:
    """Return the numbers of the first row of every block and of the first after it."""
    ends = [int(end) for end in np.cumsum((0, *X.chunks[0]))]
    return list(pairwise(ends))


def shared(value: Any) -> Any:
    """Return a value as one node of a graph: it goes to a worker once, and not with every task."""
    return delayed(value, traverse=False)


def on_block(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function on a worker as a fit would: with one BLAS thread, underflow being 0."""
    with one_blas_thread(), np.errstate(under="ignore"):
        return function(*args)


def of_blocks(X: da.Array, function: Callable[..., Any], *args: Any, rows: bool = False) -> Any:
    """Return what a function makes of every block, as delayed objects.

    Parameters
    ----------
    X : dask.array.Array
    function : callable
        Takes a block, with `rows` the number of its first row, and `args`.
    *args : object
        Delayed objects, or such as are small.
    rows : bool, default=False
    """
    call = delayed(on_block, pure=False)
    blocks = X.to_delayed().ravel()
    firsts = [(first,) if rows else () for first, _ in row_ranges(X)]
    return [
        call(function, block, *first, *args) for block, first in zip(blocks, firsts, strict=True)
    ]


def by_blocks(
    X: da.Array, function: Callable[..., Any], held: Any, dtype: Any, shape: tuple[int, ...] = ()
) -> da.Array:
    """Return what a function makes of every block as a Dask array, one row for every row.

    Parameters
    ----------
    X : dask.array.Array
    function : callable
        Takes a block and what is held.
    held : object
        Sent to every worker once.
    dtype : dtype
    shape : tuple of int
        Of what is made of one row.
    """
    made = of_blocks(X, function, shared(held))
    parts = [
        da.from_delayed(part, (last - first, *shape), dtype)
        for part, (first, last) in zip(made, row_ranges(X), strict=True)
    ]
    return da.concatenate(parts)


def reduced(parts: Sequence[Any], merge: Callable[[list[Any]], Any], fan: int = 8) -> Any:
    """Compute what delayed parts come to, `fan` at a time, on whatever scheduler is set."""
    call = delayed(on_block, pure=False)
    while len(parts) > 1:
        groups = [list(parts[i : i + fan]) for i in range(0, len(parts), fan)]
        parts = [call(merge, group) for group in groups]
    return compute(parts[0])[0]


def rows_at(X: da.Array, rows: np.ndarray) -> np.ndarray:
    """Return some rows of a Dask array, whose numbers increase, as an array in memory."""
    ends = np.searchsorted(rows, np.cumsum(X.chunks[0]))
    firsts = (first for first, _ in row_ranges(X))
    parts = [some - first for some, first in zip(np.split(rows, ends[:-1]), firsts, strict=True)]
    call = delayed(_taken, pure=False)
    blocks = zip(X.to_delayed().ravel(), parts, strict=True)
    return np.concatenate(compute(*(call(b, shared(part)) for b, part in blocks if len(part))))


def _taken(block: Any, rows: np.ndarray) -> np.ndarray:
    return np.asarray(block)[rows]


def create_npy(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Create a .npy file whose entries are to be written, and return where they begin, in bytes."""
    made: Any = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    return int(made.offset)


def read_npy(path: str | Path, rows: int = 250_000) -> da.Array:
    """Return the table in a .npy file as a Dask array that reads one block of rows at a time.

    Blocks are read, and not mapped into memory, where pages count for the worker that looked at
    them. Every worker must see the file.

    Parameters
    ----------
    path : str or Path
        A file that `numpy.save` wrote, of an array of two dimensions in C order.
    rows : int, default=250_000
        Rows of a block.

    Returns
    -------
    dask.array.Array of shape (n_rows, n_columns)

    Raises
    ------
    ValueError
        If it is no .npy file, or its array has not two dimensions, or is in Fortran order.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from nmfcluster.dask import read_npy
    >>> path = os.path.join(tempfile.mkdtemp(), "labels.npy")
    >>> np.save(path, np.zeros((1000, 5), dtype=np.int8))
    >>> read_npy(path, rows=300).chunks
    ((300, 300, 300, 100), (5,))
    """
    check_count(rows, "rows", 1)
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be the name of a .npy file, got {shown(path)}.")
    path = Path(path).absolute()
    try:
        mapped: Any = np.lib.format.open_memmap(path, mode="r")  # its header is read, nothing else
    except ValueError as error:
        raise ValueError(
            f"path must name a .npy file with a table of numbers, got {path}."
        ) from error
    shape, dtype, offset = mapped.shape, mapped.dtype, mapped.offset
    if len(shape) != 2 or 0 in shape or not mapped.flags.c_contiguous:
        order = "C" if mapped.flags.c_contiguous else "Fortran"
        raise ValueError(
            f"path must name the file of an array of two dimensions in C order, not empty, got "
            f"shape {shape} in {order} order: {path}."
        )
    blocks = [(first, min(first + rows, shape[0])) for first in range(0, shape[0], rows)]
    read = delayed(_read_rows, pure=False)  # the file may be written anew, under its name
    parts = [
        da.from_delayed(
            read(path, dtype, shape[1], offset, *block), (block[1] - block[0], shape[1]), dtype
        )
        for block in blocks
    ]
    return da.concatenate(parts)


def _read_rows(
    path: Path, dtype: np.dtype, n_columns: int, offset: int, first: int, last: int
) -> np.ndarray:
    width = n_columns * dtype.itemsize
    numbers = np.fromfile(path, dtype, (last - first) * n_columns, offset=offset + first * width)
    return numbers.reshape(last - first, n_columns)
