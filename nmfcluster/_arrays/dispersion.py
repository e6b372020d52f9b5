"""By how much counts vary more than Poisson numbers with given means."""

from typing import Any

import numpy as np

from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.storage import as_dense, as_float64

_SIDE = 1000  # rows, and columns, of a large table that are looked at: a million entries


def overdispersion(X: Any, W: np.ndarray, H: np.ndarray, rng: np.random.Generator) -> float:
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
    rows, columns = (some_positions(size, _SIDE, rng) for size in X.shape)
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
