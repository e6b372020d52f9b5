"""The number of clusters of partitions, by the gaps between eigenvalues of their projector."""

from typing import Any

import numpy as np

from nmfcluster._engine.starts import leading_eigenpairs
from nmfcluster.partitions.given import Memberships, is_soft
from nmfcluster.partitions.reading import LabelTable

_WHOLE = 0.05  # below 1: an eigenvalue that is less than that is of a cluster that is whole


def relative_gaps(partitions: Any, weights: Any, numbers: np.ndarray) -> np.ndarray:
    r"""Return how far the eigenvalues of the mean projector fall behind each number of clusters.

    Eigenvalues of the normalised mean projector are 1 for clusters that no partition mixes, and
    less the more these are mixed. With k clusters, :math:`\lambda_k` is the last one near 1, and

    .. math:: 1 - \frac{1 + \epsilon - \lambda_k}{1 + \epsilon - \lambda_{k+1}}

    is large. It compares how much is mixed, and not eigenvalues: where partitions have at least m
    clusters, these fall most behind m, whatever the clusters are.

    Parameters
    ----------
    partitions : {array-like, DataFrame} of shape (n_samples, n_partitions), or list of memberships
    weights : array-like of shape (n_partitions,) or None
    numbers : ndarray of shape (n_candidates,), int

    Returns
    -------
    ndarray of shape (n_candidates,)
        From 0 to 1.
    """
    if is_soft(partitions):
        table: Any = Memberships(partitions, "X")
    else:
        table = LabelTable(partitions, "X", np.dtype(np.float64))
    A, most = table.problem(weights, True).objective.A, int(numbers[-1]) + 1
    values, _ = leading_eigenpairs(A, min(most, A.shape[0]))
    mixed = 1 + _WHOLE - np.pad(values, (0, most - len(values)))
    return 1 - mixed[numbers - 1] / mixed[numbers]
