"""Random positions, random counts, and counts split into parts, dense or sparse.

And the overdispersion of counts: by how much they vary more than Poisson numbers.
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
    """Return at most so many positions of a table, drawn at random, in order."""
    return np.arange(size) if size <= most else np.sort(rng.permutation(size)[:most])


def draw_preferring(wanted, most, rng):
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


def poisson_counts(X, rng):
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


def thin_counts(X, n_parts, rng, dispersion=0.0):
    r"""Return matrices of counts that sum to X; each has the same share of a count, on average.

    Parts of Poisson numbers are independent [1]_. Counts that vary more, as negative binomial
    numbers do, of variance :math:`\mu + \phi \mu^2`, have independent parts if the shares are
    drawn, too, from a Dirichlet distribution whose concentrations sum to :math:`1 / \phi` [2]_.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Nonnegative whole numbers, or NaN, which is NaN in every part. A sparse one is equal to the
        dense one, if its rows are sorted.
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
    """Yield parts of counts, one after the other; each takes its share of what is left."""
    # large floats are multiples of a number above 1; so are their parts, which sum to them then
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
    """Return how many entries of a table are no whole numbers."""
    values = stored_values(X)
    return int(np.count_nonzero(values != np.rint(values)))


# Rows, and columns, of a large matrix from which the dispersion is estimated: a million entries.
_MAX_SIDE = 1000


def overdispersion(X, W, H, rng):
    r"""Return the :math:`\phi` of counts of variance :math:`\mu + \phi \mu^2`, the mean being WH.

    It balances squared residuals against this variance, each entry weighted by
    :math:`(\mu / (\mu + \phi \mu^2))^2`, as fits its precision. Residuals are small where factors
    follow an entry, so that their squares are divided by what its leverage leaves of them.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Counts; NaN is left out. A large one is represented by some of its rows and columns.
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
    n, p = X.shape
    rows = draw_positions(n, _MAX_SIDE, rng)
    columns = draw_positions(p, _MAX_SIDE, rng)
    counts = as_float64(as_dense(X[rows][:, columns]))
    W = as_float64(W)[rows]
    H = as_float64(H)[:, columns]
    means = W @ H
    # their inverses count: those below 1e-9 of the average are rounded up to it
    means = np.maximum(means, max(1e-9 * means.mean(), np.finfo(float).tiny))
    # information of a row is that of all columns, and the other way round
    is_observed = ~np.isnan(counts)
    variances = np.where(is_observed, means, np.inf)  # without information otherwise
    leverage = _leverage(variances, H.T, p / len(columns))
    leverage += _leverage(variances.T, W, n / len(rows)).T
    # an entry of leverage 1 is fitted alone, and has no information on its variance
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
        By how much the information of a row is larger than that of these columns.
    """
    p, k = factor.shape
    pairs = (factor[:, :, None] * factor[:, None, :]).reshape(p, k * k)
    information = ((scale / means) @ pairs).reshape(-1, k, k)
    # directions without curvature, next to the largest eigenvalue, have no leverage
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    return inverse.reshape(-1, k * k) @ pairs.T / means
