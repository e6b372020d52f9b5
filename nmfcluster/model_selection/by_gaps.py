"""The number of clusters of partitions, by the gaps between eigenvalues of their projector."""

import numpy as np

from nmfcluster._engine.starts import leading_eigenpairs
from nmfcluster.similarity import Similarity

_WHOLE = 0.05  # below 1: an eigenvalue that is less than that is of a cluster that is whole


def relative_gaps(A: Similarity, numbers: np.ndarray) -> np.ndarray:
    r"""Return how far the eigenvalues of the mean projector fall behind each number of clusters.

    Eigenvalues of the normalised mean projector are 1 for clusters that no partition mixes, and
    less the more these are mixed. With k clusters, :math:`\lambda_k` is the last one near 1, and

    .. math:: 1 - \frac{1 + \epsilon - \lambda_k}{1 + \epsilon - \lambda_{k+1}}

    is large. It compares how much is mixed, and not eigenvalues: where partitions have at least m
    clusters, these fall most behind m, whatever the clusters are.

    Parameters
    ----------
    A : Similarity of shape (n, n)
        The normalised mean projector of partitions.
    numbers : ndarray of shape (n_candidates,), int

    Returns
    -------
    ndarray of shape (n_candidates,)
        From 0 to 1.
    """
    most = int(numbers[-1]) + 1
    values, _ = leading_eigenpairs(A, min(most, A.shape[0]))
    mixed = 1 + _WHOLE - np.pad(values, (0, most - len(values)))
    return 1 - mixed[numbers - 1] / mixed[numbers]
