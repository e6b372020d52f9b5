"""Positions drawn at random; counts drawn anew, or shared out, dense or sparse.

By how much counts vary more than Poisson numbers with given means.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nmfcluster._utils.storage import (
    as_dense,
    as_float64,
    is_sparse,
    row_blocks,
    with_nonzero_data,
)

_DRAWN_ENTRIES = 2**20  # of a table that are drawn at a time: 8 MiB of counts


def draw_positions(size: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most so many positions of a table, drawn at random, in order."""
    return np.arange(size) if size <= most else np.sort(rng.permutation(size)[:most])


def draw_preferring(
    wanted: np.ndarray, most: int, rng: np.random.RandomState
) -> np.ndarray:
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


def poisson_counts(X, rng: np.random.Generator) -> Any:
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
        return with_nonzero_data(X, rng.poisson(X.data).astype(X.dtype))
    return rng.poisson(X).astype(X.dtype)


def thin_counts(
    X, n_parts: int, rng: np.random.Generator, dispersion: float = 0.0
) -> list[Any]:
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
    for block in row_blocks(len(places), _DRAWN_ENTRIES):
        where = places[block]
        counts = _split_counts(values[where], n_parts, rng, dispersion)
        for part, share in zip(shared, counts, strict=True):
            part[where] = share
    return [
        with_nonzero_data(X, part) if is_sparse(X) else part.reshape(X.shape)
        for part in shared
    ]


def _split_counts(
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


def count_non_integers(X) -> int:
    """Return how many entries of a table are no whole numbers."""
    values = X.data if is_sparse(X) else X
    return int(np.count_nonzero(values != np.rint(values)))


_MAX_SIDE = (
    1000  # rows, and columns, of a large table that are looked at: a million entries
)


def overdispersion(X, W: np.ndarray, H: np.ndarray, rng: np.random.Generator) -> float:
    r"""Return the :math:`\phi` of counts of variance :math:`\mu + \phi \mu^2`, the mean being WH.

    It balances squared residuals against this variance, each entry weighted by
    :math:`(\mu / (\mu + \phi \mu^2))^2`, as fits its precision. Residuals are small where factors
    follow an entry, so that their squares are divided by what its leverage leaves of them.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Counts. Of a large one some rows and columns are looked at.
    W : ndarray of shape (n, k)
    H : ndarray of shape (k, p)
        Fitted to X, with as many components as it has, or a few more: what they leave out counts as
        dispersion, and too many take noise for structure.
    rng : Generator

    Returns
    -------
    float
        0 where counts vary no more than Poisson numbers.
    """
    rows, columns = (draw_positions(size, _MAX_SIDE, rng) for size in X.shape)
    part = as_float64(as_dense(X[rows][:, columns]))
    W_part, H_part = as_float64(W)[rows], as_float64(H)[:, columns]
    means = W_part @ H_part
    # their inverses count: those below 1e-9 of the average are rounded up to it
    means = np.maximum(means, max(1e-9 * means.mean(), np.finfo(float).tiny))
    # information of a row is that of all columns, and the other way round
    leverage = _leverage(means, H_part.T, X.shape[1] / len(columns))
    leverage += _leverage(means.T, W_part, X.shape[0] / len(rows)).T
    # an entry of leverage 1 is fitted alone, and tells nothing of its variance
    squares = (part - means) ** 2 / (1 - np.minimum(leverage, 0.9))
    phi = 0.0
    for _ in range(20):  # weights and phi in turn: two rounds settle most tables
        weights = (1 + phi * means) ** -2
        excess = float(np.vdot(weights, squares - means))
        if excess <= 0:
            return 0.0
        phi = excess / float(np.vdot(weights, means**2))
    return phi


def _leverage(means: np.ndarray, factor: np.ndarray, scale: float) -> np.ndarray:
    """Return the leverage of entries on the coefficients of their rows, (n, p).

    Parameters
    ----------
    means : ndarray of shape (n, p)
        Products of the coefficients and the factor.
    factor : ndarray of shape (p, k)
    scale : float
        By how much the information of a row is larger than that of these columns.
    """
    p, k = factor.shape
    pairs = (factor[:, :, None] * factor[:, None, :]).reshape(p, k * k)
    information = ((scale / means) @ pairs).reshape(-1, k, k)
    # directions without curvature, next to the largest eigenvalue, have no leverage
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    return inverse.reshape(-1, k * k) @ pairs.T / means
