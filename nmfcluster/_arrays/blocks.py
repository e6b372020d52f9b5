"""Large arrays by blocks of rows, which threads share: the same blocks for any number of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs

from nmfcluster._arrays import device
from nmfcluster._arrays.storage import is_sparse, row_blocks, rows_of

T = TypeVar("T")

ROWS = 32_768  # of a block: with ten columns it stays in a cache of 2 MiB

# a thread that the caller starts does not have it: where starts share the cores, blocks do not
_pool: ContextVar[Executor | None] = ContextVar("pool", default=None)


@contextmanager
def shared_blocks(n_jobs: int | None) -> Iterator[None]:
    """Let `n_jobs` threads share the blocks that the calling thread works on in this context."""
    n_threads = effective_n_jobs(n_jobs)  # of which none is started before the first block
    with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext(_pool.get()) as pool:
        before = _pool.set(pool)
        try:
            yield
        finally:
            _pool.reset(before)


def by_rows(work: Callable[[slice], T], n_rows: int) -> Iterator[T]:
    """Return what some work makes of every block of rows, in their order.

    Parameters
    ----------
    work : callable
        Takes the slice of a block.
    n_rows : int

    Returns
    -------
    iterator
    """
    if 0 < n_rows <= ROWS:  # by the way of many blocks a fit of small factors takes a tenth longer
        return map(work, (slice(0, n_rows),))
    blocks, pool = row_blocks(n_rows, ROWS), _pool.get()
    if pool is None:
        return map(work, blocks)
    return pool.map(np.errstate(**handling_of_errors())(work), blocks)


def handling_of_errors() -> dict[str, Any]:
    """Return how numpy handles errors in this thread: others do not know of it."""
    return {"call": np.geterrcall(), **np.geterr()}


def summed(work: Callable[[slice], np.ndarray], n_rows: int) -> np.ndarray:
    """Return the sum of what some work makes of every block of rows, added in their order."""
    return reduce(np.add, by_rows(work, n_rows))


def filled(out: np.ndarray, work: Callable[[slice], np.ndarray], axis: int = 0) -> np.ndarray:
    """Fill an array with what some work makes of every block of its rows, along an axis."""

    def fill(block: slice) -> None:
        out[(slice(None),) * axis + (block,)] = work(block)

    for _ in by_rows(fill, out.shape[axis]):
        pass
    return out


def mapped(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Return a function of arrays that acts on each of their rows alone.

    Parameters
    ----------
    function : callable
        Takes the rows of a block of every array, and returns as many.
    *arrays : ndarray of shape (n_starts, n, k)

    Returns
    -------
    ndarray of shape (n_starts, n, k) and the dtype of the first
    """
    if arrays[0].shape[1] <= ROWS:
        return function(*arrays)
    out = np.empty_like(arrays[0])
    return filled(out, lambda block: function(*(array[:, block] for array in arrays)), axis=1)


def gram(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return ``X'Y`` of every start, (n_starts, k, k), for X and Y of shape (n_starts, n, k)."""
    if X.shape[1] <= ROWS:
        return X.mT @ Y
    return summed(lambda block: X[:, block].mT @ Y[:, block], X.shape[1])


def dots(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return <X_s, Y_s> for every start s, accumulated in float64."""
    if not isinstance(X, np.ndarray):
        return device.dots(X, Y)
    if X.shape[1] > ROWS:
        return summed(lambda block: dots(X[:, block], Y[:, block]), X.shape[1])
    if X.dtype == np.float64:
        return np.array(list(map(np.vdot, X, Y)))
    pairs = zip(X, Y, strict=True)
    return np.array([np.einsum("ij,ij->", x, y, dtype=np.float64) for x, y in pairs])


def times(X: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the rows of every start, X of shape (n_starts, n, k), times its (k, k) matrix."""
    return mapped(lambda rows: rows @ M, X)


def scaled(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Multiply X of shape (n_starts, n, k) in place by values that each of its rows has."""
    if X.shape[1] <= ROWS:
        return np.multiply(X, values, out=X)
    return filled(X, lambda block: X[:, block] * values, axis=1)


def beyond(start: np.ndarray, end: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return what lies behind the end of a step, by a share of the step: end + share (end - start).

    Arrays are of shape (n_starts, n, k), shares of shape (n_starts, 1, 1). It is one pass over
    large arrays, as in the next two functions, and no array is held for a part of the sum.
    """
    if end.shape[1] > ROWS:
        return mapped(lambda start, end: beyond(start, end, share), start, end)
    step = end - start
    step *= share
    step += end
    return step


def rectified_sum(a: np.ndarray, X: np.ndarray, b: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return the positive part of a X + b Y, for numbers a and b of every start."""
    if X.shape[1] > ROWS:
        return mapped(lambda X, Y: rectified_sum(a, X, b, Y), X, Y)
    V = X * a
    V += b * Y
    return np.maximum(V, 0, out=V)


def products_of_step(start: np.ndarray, end: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return <D, D>, <start, D> and <slope, D> of every start, (3, n_starts), D = end - start."""
    if start.shape[1] > ROWS:
        arrays = (start, end, slope)
        return summed(lambda b: products_of_step(*(A[:, b] for A in arrays)), start.shape[1])
    D = end - start
    return np.stack([dots(D, D), dots(start, D), dots(slope, D)])


class RowBlocks:
    """A matrix by blocks of rows, which are cut once: those of a sparse one share its memory.

    Parameters
    ----------
    array : ndarray or csr_array of shape (n, m)
    """

    def __init__(self, array: Any) -> None:
        self._array, self.n_rows = array, array.shape[0]
        self._parts = {0: array}
        if self.n_rows > ROWS:
            self._parts = {b.start: rows_of(array, b) for b in row_blocks(self.n_rows, ROWS)}

    def __reduce__(self) -> tuple[type[RowBlocks], tuple[Any]]:
        return RowBlocks, (self._array,)  # parts are pickled as copies

    def product(self, H: np.ndarray) -> np.ndarray:
        """Return the product with H of shape (m, k), sparse with a sparse H."""
        if len(self._parts) == 1 or is_sparse(H):
            return self._array @ H
        out = np.empty((self.n_rows, H.shape[1]), dtype=H.dtype)
        return filled(out, lambda block: self._parts[block.start] @ H)

    def transposed_product(self, H: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
        """Return the product of the transpose with H of shape (n, k), its rows scaled or not."""
        if len(self._parts) == 1:
            return self._turned[0] @ (H if scale is None else scale * H)
        if self._across is not None:
            return self._across.product(H if scale is None else scale * H)

        def of_block(block: slice) -> np.ndarray:
            rows = H[block] if scale is None else scale[block] * H[block]
            return self._turned[block.start] @ rows

        return summed(of_block, self.n_rows)

    @cached_property
    def _turned(self) -> dict[int, Any]:
        """The transposes of the blocks: to make one of scipy's costs as much as a small product."""
        return {start: part.T for start, part in self._parts.items()}

    @cached_property
    def _across(self) -> RowBlocks | None:
        """The transpose of a sparse matrix, if it has the more rows: its products are no sums."""
        wide = is_sparse(self._array) and self._array.shape[1] >= self.n_rows
        return RowBlocks(self._array.T.tocsr()) if wide else None
