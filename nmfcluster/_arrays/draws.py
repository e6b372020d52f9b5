"""Positions drawn at random; counts drawn anew, or shared out, dense or sparse."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nmfcluster._arrays.storage import filled_with, is_sparse, row_blocks

_ENTRIES = 2**20  # of a table that are drawn at a time: 8 MiB of counts


def some_positions(size: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most so many positions of a table, drawn at random, in order."""
    return np.arange(size) if size <= most else np.sort(rng.permutation(size)[:most])


def some_with(wanted: np.ndarray, most: int, rng: np.random.RandomState) -> np.ndarray:
    """Return at most so many positions, drawn at random: wanted ones first, up to half of these.

    Parameters
    ----------
    wanted : ndarray of shape (n,), bool
    most : int
    rng : RandomState

    Returns
    -------
    ndarray of int
        In the order in which they were drawn.
    """
    order = rng.permutation(len(wanted))
    first = order[wanted[order]][: most // 2]
    return np.concatenate([first, order[~np.isin(order, first)]])[:most]


def poisson_counts(X: Any, rng: np.random.Generator) -> Any:
    """Return a table of counts, every entry from a Poisson distribution with that of X as its mean.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative.
    rng : Generator

    Returns
    -------
    ndarray or csr_array of shape (n, p) and the dtype of X
        A sparse one stores no zeros.
    """
    if is_sparse(X):
        return filled_with(X, rng.poisson(X.data).astype(X.dtype))
    return rng.poisson(X).astype(X.dtype)


def thinned(X: Any, n_parts: int, rng: np.random.Generator, dispersion: float = 0.0) -> list[Any]:
    r"""Return tables of counts that sum to X; each has the same share of every count, on average.

    Parts of Poisson numbers are independent [1]_. Counts that vary more, as negative binomial
    numbers do, of variance :math:`\mu + \phi \mu^2`, have independent parts if the shares are
    drawn, too, from a Dirichlet distribution whose concentrations sum to :math:`1 / \phi` [2]_.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative whole numbers. A sparse one is equal to the dense one, if its rows are sorted.
    n_parts : int
        At least 2.
    rng : Generator
    dispersion : float, default=0.0
        :math:`\phi`; 0 for Poisson numbers.

    Returns
    -------
    list of ndarray or csr_array of shape (n, p) and the dtype of X
        They sum to X to the last bit. Sparse ones store no zeros.

    References
    ----------
    .. [1] A. Neufeld, A. Dharamshi, L. L. Gao, D. Witten. Data thinning for convolution-closed
       distributions. Journal of Machine Learning Research 25, 2024.
    .. [2] A. Neufeld, J. Popp, L. L. Gao, A. Battle, D. Witten. Negative binomial count splitting
       for single-cell RNA sequencing data. arXiv:2307.12985, 2023.
    """
    values = X.data if is_sparse(X) else X.ravel()
    shared = [np.zeros_like(values) for _ in range(n_parts)]
    places = np.flatnonzero(values)  # a sparse table may store zeros
    for block in row_blocks(len(places), _ENTRIES):
        where = places[block]
        counts = _shared_out(values[where], n_parts, rng, dispersion)
        for part, share in zip(shared, counts, strict=True):
            part[where] = share
    return [filled_with(X, part) if is_sparse(X) else part.reshape(X.shape) for part in shared]


def _shared_out(
    counts: np.ndarray, n_parts: int, rng: np.random.Generator, dispersion: float
) -> Iterator[np.ndarray]:
    """Yield parts of counts, one after the other; each takes its share of what is left."""
    # large floats are multiples of a number above 1; so are their parts, which sum to them then
    unit = 1 if counts.dtype.kind in "iu" else np.maximum(np.spacing(counts), 1)
    left = (counts // unit).astype(np.int64)
    for later in range(n_parts - 1, 0, -1):
        share: Any = 1 / (later + 1)
        if dispersion:
            concentration = 1 / (n_parts * dispersion)
            share = rng.beta(concentration, later * concentration, size=len(left))
        part = rng.binomial(left, share)
        left -= part
        yield part * unit
    yield left * unit


def n_not_whole(X: Any) -> int:
    """Return how many entries of a table are no whole numbers."""
    values = X.data if is_sparse(X) else X
    return int(np.count_nonzero(values != np.rint(values)))
