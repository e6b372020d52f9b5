"""Starting factors: nonnegative, of shape (n, k); solvers rescale them."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from nmfcluster.similarity import Similarity

_DENSE = 300  # an eigenproblem up to this size is solved as a dense one
_TOL = 1e-4  # of an eigenvalue: a start need not be better
_STEPS = 3  # of a random walk: far enough to meet neighbours of neighbours
_BACKGROUND = 0.1  # of a cluster that begins spread over all samples
_LIFT = 0.2  # added to an indicator so that no entry starts at 0


def random_start(
    mass: np.ndarray, n_clusters: int, rng: np.random.RandomState, dtype: np.dtype
) -> np.ndarray:
    """Draw a factor uniformly from (0, 1).

    Parameters
    ----------
    mass : ndarray of shape (n,)
        Number of samples a row stands for: the rows of a collapsed problem are longer by its root.
    n_clusters : int
    rng : RandomState
    dtype : dtype

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    H = rng.uniform(size=(len(mass), n_clusters)) * np.sqrt(mass)[:, None]
    return H.astype(dtype)


def label_start(
    labels: np.ndarray,
    mass: np.ndarray,
    n_clusters: int,
    rng: np.random.RandomState,
    dtype: np.dtype,
) -> np.ndarray:
    """Return the lifted indicator of a partition's largest clusters.

    Samples outside them, and clusters that the partition does not have, start with small
    random entries.

    Parameters
    ----------
    labels : ndarray of shape (n,), int
        -1: not seen.
    mass : ndarray of shape (n,)
        Number of samples a row stands for.
    n_clusters : int
    rng : RandomState
    dtype : dtype

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    H = _LIFT * rng.uniform(0.5, 1.0, size=(len(labels), n_clusters))
    seen = labels >= 0
    sizes = np.bincount(labels[seen], weights=mass[seen])
    for column, cluster in enumerate(np.argsort(-sizes, kind="stable")[:n_clusters]):
        H[labels == cluster, column] += 1
    return (H * np.sqrt(mass)[:, None]).astype(dtype)


def leading_eigenpairs(A: Similarity, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of A, in decreasing order, and their eigenvectors.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_components : int
        At most n.

    Returns
    -------
    values : ndarray of shape (n_components,)
    vectors : ndarray of shape (n, n_components)
    """
    n = A.shape[0]
    if n <= max(_DENSE, 3 * n_components):
        # all of them: LAPACK's driver for a subset fails where many eigenvalues are equal
        values, vectors = scipy.linalg.eigh(A.toarray(), driver="evd")
        values, vectors = values[-n_components:], vectors[:, -n_components:]
    else:
        values, vectors = eigsh(
            _linear_operator(A), k=n_components, which="LA", tol=_TOL, v0=_fixed(n)
        )
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _linear_operator(A: Similarity) -> LinearOperator:
    dtype = np.dtype(np.float64)
    return LinearOperator(
        A.shape,
        matvec=lambda v: (A @ v.reshape(-1, 1).astype(A.dtype)).ravel().astype(dtype),
        matmat=lambda V: (A @ V.astype(A.dtype)).astype(dtype),
        dtype=dtype,
    )


def _fixed(n: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 1.0, n)  # ARPACK's own start is not reproducible


def spectral_start(A: Similarity, n_clusters: int) -> np.ndarray:
    """Return the nonnegative part of the leading eigenvectors, turned towards the axes.

    ``V diag(values)^1/2 R`` reproduces the best rank-k part of A for every rotation R. The one
    taken here makes k rows of the product, chosen by a pivoted QR decomposition [1]_, as close as
    it can to multiples of unit vectors: for a block diagonal A that is the solution. Nothing
    is random, and it does not matter which basis of an eigenspace the eigensolver returns.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_clusters : int

    Returns
    -------
    ndarray of shape (n, n_clusters)

    References
    ----------
    .. [1] A. Damle, V. Minden, L. Ying. Simple, direct and efficient multi-way spectral
       clustering. Information and Inference 8, 2019.
    """
    n_components = min(n_clusters, A.shape[0])
    values, vectors = leading_eigenpairs(A, n_components)
    _, _, pivots = scipy.linalg.qr(vectors.T, mode="economic", pivoting=True)
    U, _, Vt = np.linalg.svd(vectors[pivots[:n_components]].T)
    H = np.maximum((vectors * np.sqrt(np.maximum(values, 0))) @ (U @ Vt), 0)
    H += 1e-2 * H.mean()  # a positive entry everywhere, for the multiplicative rules
    missing = n_clusters - n_components
    H = np.pad(H, ((0, 0), (0, missing)), constant_values=1e-2 * float(H.mean()))
    return H.astype(A.dtype)


def walk_start(
    A: Similarity, degrees: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return where a few steps of a random walk lead from samples that are drawn, one a cluster.

    Samples are drawn in proportion to their degrees. On sparse graphs such starts are as diverse
    as random factors, but do not have to find first which samples belong together.

    Parameters
    ----------
    A : Similarity of shape (n, n)
        Nonnegative.
    degrees : ndarray of shape (n,)
        Its row sums.
    n_clusters : int
        At most n.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n, n_clusters)
        Every entry is above 0. Columns sum to the same, but those of samples that are similar to
        no other, which are drawn only if there are too few others: their walks end nowhere.
    """
    n = A.shape[0]
    known = degrees >= np.finfo(degrees.dtype).tiny  # below it a quotient can overflow
    chances = np.where(known, degrees, 0) / degrees.sum(dtype=np.float64) if known.any() else known
    enough = np.count_nonzero(chances) >= n_clusters
    drawn = rng.choice(n, n_clusters, replace=False, p=chances if enough else None)
    W = np.zeros((n, n_clusters), dtype=A.dtype)
    W[drawn, np.arange(n_clusters)] = 1
    shares = np.divide(1, degrees, out=np.zeros_like(degrees), where=known)[:, None]
    for _ in range(_STEPS):
        W = A @ (shares * W)
    return W / np.maximum(W.sum(axis=0), np.finfo(A.dtype).tiny) + _BACKGROUND / n
