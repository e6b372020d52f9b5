"""The axes along which samples vary more than noise does."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmfcluster._arrays.places import centred
from nmfcluster._arrays.storage import as_dense

_FEW = 5  # features, which are kept as they are
_PER_AXIS = 30  # samples, at least: fewer look like clusters along the axis that parts them best
_LEAST, _MOST = 2, 20  # axes
_LARGER = 1.1  # times the largest variance that noise has along an axis


def main_axes(X: Any) -> np.ndarray:
    r"""Return samples along the principal axes that vary more than noise, with a variance of 1.

    Where p features of n samples are noise of one variance :math:`\sigma^2`, no principal axis has
    more than about :math:`\sigma^2 (1 + \sqrt{p / n})^2` [1]_. The median over axes is taken for
    :math:`\sigma^2`, as few axes part clusters. Five features and fewer are all kept; there are
    never more axes than 20, or than one for 30 samples. The variance is that of all entries.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)

    Returns
    -------
    ndarray of shape (n, n_axes)

    References
    ----------
    .. [1] V. A. Marchenko, L. A. Pastur. Distribution of eigenvalues for some sets of random
       matrices. Mathematics of the USSR-Sbornik 1, 1967.
    """
    n, p = X.shape
    most = min(p, _MOST, max(_LEAST, n // _PER_AXIS))
    variances, Z = _principal(X)
    noise = np.median(variances[: min(n - 1, p)]) * (1 + np.sqrt(min(n, p) / max(n, p))) ** 2
    larger = int((variances > _LARGER * noise).sum())
    least = p if p <= _FEW else _LEAST
    Z = Z[:, : min(most, max(least, larger))]
    return Z / (Z.std() or 1.0)


def _principal(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return variances, times n, and the samples along all principal axes, the largest first.

    They are found from the products of features, or of samples, whichever are fewer.
    """
    n, p = X.shape
    X, mean = centred(X)
    if p <= n:
        variances, axes = np.linalg.eigh(as_dense(X.T @ X) - n * np.outer(mean, mean))
        Z = X @ axes[:, ::-1] - mean @ axes[:, ::-1]
        return np.maximum(variances[::-1], 0), Z
    products, along = as_dense(X @ X.T), X @ mean
    variances, axes = np.linalg.eigh(products - along - along[:, None] + mean @ mean)
    variances = np.maximum(variances[::-1], 0)
    return variances, axes[:, ::-1] * np.sqrt(variances)
