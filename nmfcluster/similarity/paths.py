"""Connectedness as a similarity: how long the longest step between two samples must be."""

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import cophenet, single
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import euclidean_distances

from nmfcluster._arrays.arguments import check_number
from nmfcluster._arrays.storage import divided, divided_number, exponent_beyond
from nmfcluster._arrays.tables import read_table


def path_kernel(X: Any, Y: Any = None, *, scale: float | None = None) -> np.ndarray:
    r"""Return how well samples are connected: :math:`\exp(-e_{ij} / \text{scale})`.

    :math:`e_{ij}` is the longest step on the path from i to j whose longest step is shortest, with
    all steps from one sample to another: the effective dissimilarity of [1]_. Two ends of
    one ring are near by it, and two rings are not, however close. For ``affinity=`` and for
    `nmfcluster.stack.KernelStack`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples.
    Y : array-like of shape (n_others, n_features), default=None
        The samples that paths go through, and lead to; X by default.
    scale : float, default=None
        The median of e between samples of Y by default.

    Returns
    -------
    ndarray of shape (n_samples, n_others)

    Raises
    ------
    ValueError
        If Y has fewer than two samples, X and Y have not the same number of features, or
        `scale` is no number above 0.

    Notes
    -----
    O(m^2) for m samples in Y, and O(m^2) more for every sample that is not in Y.

    References
    ----------
    .. [1] B. Fischer, V. Roth, J. M. Buhmann. Clustering with the connectivity kernel. NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.affinity import path_kernel
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> -np.log(path_kernel(X, scale=1.0)).round(6) + 0.0
    array([[0., 1., 1., 3.],
           [1., 0., 1., 3.],
           [1., 1., 0., 3.],
           [3., 3., 3., 0.]])
    """
    X = read_table(X, accept_sparse=False)
    Y = X if Y is None else read_table(Y, "Y", accept_sparse=False)
    if scale is not None:
        check_number(scale, "scale", 0, np.inf, closed="neither")
    if X.shape[1] != Y.shape[1] or len(Y) < 2:
        got = f"got shape {Y.shape} for X of shape {X.shape}"
        raise ValueError(f"Y must hold at least 2 samples, with as many features as X; {got}.")
    exponent = max(exponent_beyond(X, 2), exponent_beyond(Y, 2), key=abs)
    near, far = divided(X, exponent), divided(Y, exponent)
    # the heights of single linkage are the longest steps of shortest trees
    steps = squareform(cophenet(single(pdist(far))))
    usual = float(np.median(steps[np.triu_indices(len(Y), 1)])) or 1.0
    unit = usual if scale is None else divided_number(scale, exponent)
    if X is not Y and not np.array_equal(X, Y):
        first = euclidean_distances(near, far)  # then on from the sample that was reached
        steps = np.array([np.maximum(row[:, None], steps).min(axis=0) for row in first])
    with np.errstate(over="ignore"):  # exp(-inf) is 0
        return np.exp(-steps / unit).astype(X.dtype)
