"""Counts drawn anew, dense or sparse."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from nmfcluster._arrays.storage import as_float64, filled_with, is_sparse

_ENTRIES = 2**20  # of a dense table that are drawn at a time: 8 MiB of counts


def drawn(X: Any, way: str, rng: np.random.Generator) -> Any:
    """Return a table of counts whose expectation is X.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative; whole numbers for "multinomial".
    way : {"poisson", "multinomial"}
        Every entry from a Poisson distribution; or as many counts a row as it has, spread over
        its columns as X has them.
    rng : Generator

    Returns
    -------
    ndarray or csr_array of shape (n, p) and the dtype of X
        A sparse one stores no zeros.
    """
    if is_sparse(X):
        if way == "poisson":
            return filled_with(X, rng.poisson(X.data).astype(X.dtype))
        ends = X.indptr
        rows = [X.data[start:stop] for start, stop in pairwise(ends)]
        counts = [_spread(row, rng) for row in rows]
        return filled_with(X, np.concatenate(counts).astype(X.dtype))
    if way == "poisson":
        made = np.empty_like(X)
        size = max(1, _ENTRIES // X.shape[1])
        for start in range(0, len(X), size):
            made[start : start + size] = rng.poisson(X[start : start + size])
        return made
    return np.stack([_spread(row, rng) for row in X]).astype(X.dtype)


def _spread(row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return as many counts as a row has, drawn with its shares as probabilities."""
    total = float(row.sum(dtype=np.float64))
    if total == 0:
        return np.zeros(len(row))
    return rng.multinomial(round(total), as_float64(row) / total)


def holds_whole_numbers(X: Any) -> bool:
    """Return whether all entries of a table are whole numbers."""
    values = X.data if is_sparse(X) else X
    return bool((values == np.rint(values)).all())
