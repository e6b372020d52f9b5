"""Dense or sparse, float32 or float64: decided here and in `similarity`, and asked nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

_ROWS = 256  # rows compared at a time


def as_float(array: Any) -> Any:
    """Return the array in float32 or float64: as it is if it can be."""
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def as_float64(array: Any) -> Any:
    """Return the array in float64."""
    return array.astype(np.float64, copy=False)


def each(product: Any, H: np.ndarray) -> np.ndarray:
    """Apply a product to every (n, k) block of a stack; sparse operators lose in one wide block."""
    stack = H.reshape(-1, *H.shape[-2:])
    if len(stack) == 1:  # no copy of a large block
        return product(stack[0]).reshape(H.shape)
    return np.stack([product(block) for block in stack]).reshape(H.shape)


def minimum(array: Any, value: float) -> Any:
    """Return the entry-wise minimum of an array and a number."""
    if sp.issparse(array):  # the cast is for SciPy 1.13, which promotes float32
        return array.minimum(value).astype(array.dtype, copy=False)
    return np.minimum(array, value)


def total(array: Any) -> float:
    """Return the sum of all entries, accumulated in float64."""
    return float(array.sum(dtype=np.float64))


def dot(a: Any, b: Any) -> float:
    """Return the sum of the products of equal entries, accumulated in float64."""
    if sp.issparse(a):
        return total(a.multiply(b))
    if sp.issparse(b):
        return total(b.multiply(a))
    return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))


def hstack(arrays: list[Any]) -> Any:
    """Return the arrays side by side; all of them dense, or all sparse."""
    return sp.hstack(arrays, format="csr") if sp.issparse(arrays[0]) else np.hstack(arrays)


def blocks_of(same: Any, cross: Any) -> Any:
    """Return the symmetric matrix [[same, cross], [cross, same]]."""
    blocks = [[same, cross], [cross, same]]
    return sp.block_array(blocks, format="csr") if sp.issparse(same) else np.block(blocks)


def asymmetry(array: Any) -> float:
    """Return the largest difference between an entry of a matrix and its transpose's.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, n)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster._storage import asymmetry
    >>> asymmetry(np.array([[1.0, 2.0], [2.5, 1.0]]))
    0.5
    """
    if sp.issparse(array):
        return float(abs(array - array.T).max())
    rows = range(0, len(array), _ROWS)
    return max(float(abs(array[i : i + _ROWS] - array[:, i : i + _ROWS].T).max()) for i in rows)
