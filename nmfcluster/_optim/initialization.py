"""Starting factors: random ones, and ones from leading eigenvectors."""

from functools import partial
from inspect import signature

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.cluster import KMeans

from nmfcluster._utils import storage
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.validation import make_rng
from nmfcluster.similarity import Explicit

# Largest number of rows of an eigenproblem at which a dense solver is faster.
_DENSE = 300
# Relative tolerance of eigenvalues, by the bytes of a float: eigenvalues of elongated clusters are
# close to each other.
_TOL = {4: 1e-6, 8: 1e-8}
# Largest number of products with A before falling back to _FALLBACK_TOL.
_MAX_PRODUCTS = 1_500
# Relative tolerance of the fallback eigensolver: a start need not be exact.
_FALLBACK_TOL = 1e-4
# Smallest dimension of the Krylov space: smaller ones take more products if eigenvalues are close.
_KRYLOV_SIZE = 60
# Largest number of connected components whose eigenproblems are solved separately: each takes time.
_MAX_COMPONENTS = 200
# Largest difference of eigenvalues, relative to the largest eigenvalue, that counts as rounding.
_EQUAL = 1e-7
# Smallest eigenvalue, relative to the largest, that does not count as rounding.
_RANK_TOL = 1e-7
# Number of k-means runs on eigenvectors: a single run is not always the best, and all are short.
_KMEANS_RUNS = 5
# Seed of ARPACK's restarts if many eigenvalues are equal; they are random since scipy 1.17.
_REPRODUCIBLE = {"rng": 0} if "rng" in signature(eigsh).parameters else {}


def draw_seeds(rng, size):
    """Return the seeds of all starts, drawn before any of them runs."""
    return rng.randint(np.iinfo(np.int32).max, size=size).tolist()


def random_start(mass, n_clusters, seed, dtype):
    """Return a factor with entries drawn uniformly from (0, 1).

    Parameters
    ----------
    mass : ndarray of shape (n,)
        Number of samples that each row stands for. Rows are multiplied by its root.
    n_clusters : int
    seed : int or RandomState
    dtype : dtype

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    H = make_rng(seed).uniform(size=(len(mass), n_clusters))
    return (H * np.sqrt(mass)[:, None]).astype(dtype)


def leading_eigenpairs(A, n_components):
    """Return the largest eigenvalues of A, in decreasing order, and their eigenvectors.

    If A stores its connected components, they are solved one by one. Among components with equal
    eigenvalues, the largest comes first.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_components : int
        Number of eigenpairs, at most n.

    Returns
    -------
    values : ndarray of shape (n_components,)
    vectors : ndarray of shape (n, n_components)
    """
    component = A.parts
    if component is None or not 0 < component.max() < _MAX_COMPONENTS:
        return _eigenpairs(A, n_components)
    # Find the largest eigenvalue of every component. Equal eigenvalues of several components are
    # hard for the eigensolver only if it has to find them together.
    sizes = np.bincount(component)
    by_component = np.argsort(component, kind="stable")
    members = np.split(by_component, np.cumsum(sizes)[:-1])
    blocks = [A.take(rows) for rows in members]
    pairs = [_eigenpairs(block, 1) for block in blocks]
    largest = np.concatenate([values for values, _ in pairs])
    # Find all eigenpairs of components that can have several leading eigenvalues: those whose
    # largest one is above the n_components-th largest of all.
    padded = np.pad(largest, (n_components, 0), constant_values=-np.inf)
    threshold = np.sort(padded)[-n_components]
    rounding = _EQUAL * float(max(abs(largest).max(), np.finfo(float).tiny))
    for c in np.flatnonzero(largest > threshold + rounding):
        pairs[c] = _eigenpairs(blocks[c], n_components)
    # Collect all eigenvalues, their vectors and their components.
    owners = np.repeat(np.arange(len(pairs)), [len(values) for values, _ in pairs])
    all_values = np.concatenate([values for values, _ in pairs])
    columns = [column for _, vectors in pairs for column in vectors.T]
    # Select the largest ones. Eigenvalues are rounded, so that equal ones are ordered by the size
    # of their component.
    rounded = np.round(all_values / rounding)
    first = np.lexsort((-sizes[owners], -rounded))[:n_components]
    first = first[np.argsort(-all_values[first], kind="stable")]
    # Fill their vectors with 0 outside of their component.
    whole = np.zeros((A.shape[0], n_components), dtype=columns[0].dtype)
    for place, chosen in enumerate(first):
        whole[members[owners[chosen]], place] = columns[chosen]
    return all_values[first], whole


def _eigenpairs(A, n_components):
    """Return the leading eigenpairs by a solver for the size and the form of A."""
    n = A.shape[0]
    if n <= max(_DENSE, 3 * n_components):
        # Compute all: LAPACK's driver for a subset fails if many eigenvalues are equal.
        values, vectors = scipy.linalg.eigh(A.toarray(), driver="evd")
        return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    root = A.root()
    if root is not None:
        return _eigenpairs_of_gram(root, n_components)

    def product(v):
        return (A @ v.reshape(-1, 1).astype(A.dtype)).ravel().astype(np.float64)

    width = min(max(2 * n_components + 1, _KRYLOV_SIZE), n)
    solve = partial(
        eigsh,
        LinearOperator(A.shape, matvec=product, dtype=np.float64),
        k=n_components,
        which="LA",
        # ARPACK's own start is not reproducible.
        v0=np.random.default_rng(0).uniform(0.5, 1.0, n),
        ncv=width,
        **_REPRODUCIBLE,
    )
    restarts = max(_MAX_PRODUCTS // (width - n_components), 1)
    try:
        values, vectors = solve(tol=_TOL[A.dtype.itemsize], maxiter=restarts)
    except ArpackNoConvergence:  # almost equal eigenvalues of many rows
        values, vectors = solve(tol=_FALLBACK_TOL)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _eigenpairs_of_gram(V, n_components):
    """Return the leading eigenpairs of VV', computed from those of the smaller V'V."""
    gram = storage.as_float64(storage.choose_storage(V.T @ V))
    values, vectors = _eigenpairs(Explicit(gram), n_components)
    n_missing = n_components - len(values)
    values = np.pad(values, (0, n_missing))
    vectors = np.pad(vectors, ((0, 0), (0, n_missing)))
    values = np.where(values > _RANK_TOL * values[0], values, 0)
    scaled = storage.safe_ratio(vectors, np.sqrt(values))  # 0 where the eigenvalue is 0
    return values, np.asarray(V @ scaled.astype(V.dtype))


def cluster_eigenvectors(vectors, mass):
    """Return the clusters that k-means finds in leading eigenvectors, (n,), int.

    The eigenvectors relax the partition with the smallest normalised cut. A factorization can miss
    it, and split a large cluster instead of finding a small one.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Eigenvectors of a similarity that is divided by the roots of the masses.
    mass : ndarray of shape (n,)
        Weight of every row; rows of the eigenvectors are longer by its root.
    """
    rows = vectors * storage.safe_inverse(np.sqrt(mass))[:, None]
    search = KMeans(vectors.shape[1], n_init=_KMEANS_RUNS, random_state=0)
    with one_thread():  # ties would depend on the number of threads
        return search.fit(rows, sample_weight=mass).labels_


def spectral_start(A, n_clusters):
    """Return the nonnegative part of the leading eigenvectors of A, rotated towards the axes.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_clusters : int

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    values, vectors = leading_eigenpairs(A, min(n_clusters, A.shape[0]))
    return rotate_to_axes(values, vectors, n_clusters).astype(A.dtype)


def rotate_to_axes(values, vectors, n_clusters):
    """Return the nonnegative part of eigenvectors, rotated towards the axes.

    ``V diag(values)^1/2 R`` reproduces the best rank-k approximation of a matrix for every rotation
    R. A pivoted QR decomposition chooses k rows of the product [1]_. R moves these as close as
    possible to multiples of unit vectors, which is the solution for a block diagonal matrix.
    Nothing is random, and the result does not depend on the basis of an eigenspace that the
    eigensolver returns.

    Parameters
    ----------
    values : ndarray of shape (n_components,)
        As `leading_eigenpairs` returns them.
    vectors : ndarray of shape (n, n_components)
    n_clusters : int
        Number of columns to return, at least n_components.

    Returns
    -------
    ndarray of shape (n, n_clusters)

    References
    ----------
    .. [1] A. Damle, V. Minden, L. Ying. Simple, direct and efficient multi-way spectral
       clustering. Information and Inference 8, 2019.
    """
    n_components = len(values)
    _, _, pivots = scipy.linalg.qr(vectors.T, mode="economic", pivoting=True)
    U, _, Vt = np.linalg.svd(vectors[pivots[:n_components]].T)
    scaled = vectors * np.sqrt(np.maximum(values, 0))
    H = np.maximum(scaled @ (U @ Vt), 0)
    H += 1e-2 * H.mean()  # multiplicative rules need positive entries
    n_missing = n_clusters - n_components
    fill = 1e-2 * float(H.mean())
    return np.pad(H, ((0, 0), (0, n_missing)), constant_values=fill)
