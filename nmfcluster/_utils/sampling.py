"""Draw positions and counts at random, split counts, and estimate their overdispersion.

Overdispersion is the variance of counts in excess of that of Poisson numbers.
"""

import numpy as np

from nmfcluster._utils.storage import (
    as_dense,
    as_float64,
    is_sparse,
    row_blocks,
    stored_values,
    with_nonzero_data,
)

_DRAWN_ENTRIES = 2**20  # entries that are drawn at a time: 8 MiB of counts


def draw_positions(size, most, rng):
    """Draw at most `most` of the positions 0 to size - 1 at random, and return them sorted."""
    return np.arange(size) if size <= most else np.sort(rng.permutation(size)[:most])


def draw_preferring(wanted, most, rng):
    """Draw at most `most` positions at random: wanted ones first, up to half of these, then any.

    Parameters
    ----------
    wanted : ndarray of shape (n,), bool
    most : int
    rng : RandomState

    Returns
    -------
    ndarray of int
        Positions in the order in which they were drawn.
    """
    order = rng.permutation(len(wanted))
    first = order[wanted[order]][: most // 2]
    return np.concatenate([first, order[~np.isin(order, first)]])[:most]


def poisson_counts(X, rng):
    """Draw counts from Poisson distributions whose means are the entries of X.

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


def thin_counts(X, n_parts, rng, dispersion=0.0):
    r"""Split counts at random into matrices that sum to X, with equal shares on average.

    The parts of Poisson numbers are independent [1]_. Negative binomial numbers vary more, with
    variance :math:`\mu + \phi \mu^2`. Their parts are independent if the shares are drawn from a
    Dirichlet distribution whose concentrations sum to :math:`1 / \phi` [2]_.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative whole numbers, or NaN, which is NaN in every part. A sparse matrix gives the
        same parts as a dense one if its rows are sorted.
    n_parts : int
        At least 2.
    rng : Generator
    dispersion : float, default=0.0
        :math:`\phi`; 0 for Poisson numbers.

    Returns
    -------
    list of ndarray or csr_array of shape (n, p) and the dtype of X
        They sum exactly to X. Sparse ones store no zeros.

    References
    ----------
    .. [1] A. Neufeld, A. Dharamshi, L. L. Gao, D. Witten. Data thinning for convolution-closed
       distributions. Journal of Machine Learning Research 25, 2024.
    .. [2] A. Neufeld, J. Popp, L. L. Gao, A. Battle, D. Witten. Negative binomial count splitting
       for single-cell RNA sequencing data. arXiv:2307.12985, 2023.
    """
    values = stored_values(X).ravel()
    parts = [values * 0 for _ in range(n_parts)]  # NaN stays NaN
    nonzero = np.flatnonzero(values > 0)  # a sparse matrix may store zeros
    for block in row_blocks(len(nonzero), _DRAWN_ENTRIES):
        places = nonzero[block]
        counts = _split_counts(values[places], n_parts, rng, dispersion)
        for part, share in zip(parts, counts, strict=True):
            part[places] = share
    if is_sparse(X):
        return [with_nonzero_data(X, part) for part in parts]
    return [part.reshape(X.shape) for part in parts]


def _split_counts(counts, n_parts, rng, dispersion):
    """Yield parts of counts one by one; each takes its share of the rest."""
    # large floats are multiples of a number above 1; their parts must be, too, to sum to them
    unit = 1 if counts.dtype.kind in "iu" else np.maximum(np.spacing(counts), 1)
    left = (counts // unit).astype(np.int64)
    for later in range(n_parts - 1, 0, -1):
        share = 1 / (later + 1)
        if dispersion:
            concentration = 1 / (n_parts * dispersion)
            share = rng.beta(concentration, later * concentration, size=len(left))
        part = rng.binomial(left, share)
        left -= part
        yield part * unit
    yield left * unit


def count_non_integers(X):
    """Return how many entries of a matrix are not whole numbers."""
    values = stored_values(X)
    return int(np.count_nonzero(values != np.rint(values)))


# Largest number of rows, and of columns, from which the dispersion is estimated: 10^6 entries.
_MAX_SIDE = 1000


def overdispersion(X, W, H, rng):
    r"""Estimate the :math:`\phi` of counts with variance :math:`\mu + \phi \mu^2` and mean WH.

    The estimate makes the weighted sum of squared residuals equal to that of this variance. The
    weights of entries, :math:`(\mu / (\mu + \phi \mu^2))^2`, suit their precision. Factors that
    follow an entry make its residual too small, so squares are divided by 1 minus the leverage of
    the entry.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Counts; NaN is ignored. A large matrix is represented by some of its rows and columns.
    W : ndarray of shape (n, k)
    H : ndarray of shape (k, p)
        Fitted to X, with its number of components or a few more. With fewer, structure counts as
        dispersion; with many more, noise counts as structure.
    rng : Generator

    Returns
    -------
    float
        0 if counts vary no more than Poisson numbers.
    """
    n, p = X.shape
    rows = draw_positions(n, _MAX_SIDE, rng)
    columns = draw_positions(p, _MAX_SIDE, rng)
    counts = as_float64(as_dense(X[rows][:, columns]))
    W = as_float64(W)[rows]
    H = as_float64(H)[:, columns]
    means = W @ H
    # their inverses are used, so means below 1e-9 of the average are raised to it
    means = np.maximum(means, max(1e-9 * means.mean(), np.finfo(float).tiny))
    # the information on a row comes from all columns, and that on a column from all rows
    is_observed = ~np.isnan(counts)
    variances = np.where(is_observed, means, np.inf)  # missing: no information
    leverage = _leverage(variances, H.T, p / len(columns))
    leverage += _leverage(variances.T, W, n / len(rows)).T
    # an entry of leverage 1 is fitted exactly, and has no information on its variance
    residuals = np.where(is_observed, counts - means, 0)
    squares = residuals**2 / (1 - np.minimum(leverage, 0.9))
    phi = 0.0
    for _ in range(20):  # weights and phi in turn: most matrices need two rounds
        weights = is_observed * (1 + phi * means) ** -2
        excess = float(np.vdot(weights, squares - means))
        if excess <= 0:
            return 0.0
        phi = excess / float(np.vdot(weights, means**2))
    return phi


def _leverage(means, factor, scale):
    """Return the leverage of entries on the coefficients of their rows, (n, p).

    Parameters
    ----------
    means : ndarray of shape (n, p)
        Products of the coefficients and the factor.
    factor : ndarray of shape (p, k)
    scale : float
        Ratio of the information of a row to that of these columns.
    """
    p, k = factor.shape
    pairs = (factor[:, :, None] * factor[:, None, :]).reshape(p, k * k)
    information = ((scale / means) @ pairs).reshape(-1, k, k)
    # directions with almost no curvature, relative to the largest, have no leverage
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    return inverse.reshape(-1, k * k) @ pairs.T / means
