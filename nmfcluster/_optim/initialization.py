"""Where runs start: at random, or from leading eigenvectors."""

from inspect import signature
from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from nmfcluster._utils import storage
from nmfcluster._utils.validation import generator_of
from nmfcluster.similarity import Explicit, Similarity

_DENSE = 300  # rows of an eigenproblem up to which a dense solver is faster
# of eigenvalues, relative, by bytes a number: those of clusters that are long differ by little
_TOL = {4: 1e-6, 8: 1e-8}
_ROUGH_TOL = 1e-4  # where that takes too long
_PRODUCTS = 1_500  # with A, after which it does
_WIDTH = 60  # vectors of a Krylov space: fewer take more products where eigenvalues are close
_MOST_PARTS = 200  # that are solved one by one, which takes time for each
_EQUAL = 1e-7  # of the largest eigenvalue: a difference that is rounding
_RANK = 1e-7  # of the largest eigenvalue: what is not above it is rounding
# ARPACK begins anew where many eigenvalues are equal, at random since scipy 1.17
_ANEW = {"rng": 0} if "rng" in signature(eigsh).parameters else {}


def draw_seeds(rng: np.random.RandomState, size: int) -> list[int]:
    """Draw the seeds of starts before any of them runs."""
    return rng.randint(np.iinfo(np.int32).max, size=size).tolist()


def random_start(
    mass: np.ndarray, n_clusters: int, seed: Any, dtype: np.dtype
) -> np.ndarray:
    """Draw a factor uniformly from (0, 1).

    Parameters
    ----------
    mass : ndarray of shape (n,)
        Number of samples a row stands for: the rows of a collapsed problem are longer by its root.
    n_clusters : int
    seed : int or RandomState
    dtype : dtype

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    H = (
        generator_of(seed).uniform(size=(len(mass), n_clusters))
        * np.sqrt(mass)[:, None]
    )
    return H.astype(dtype)


def leading_eigenpairs(
    A: Similarity, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
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
    if A.parts is not None and 0 < A.parts.max() < _MOST_PARTS:
        return _of_parts(A, A.parts, n_components)
    return _of_one_part(A, n_components)


def _of_parts(
    A: Similarity, parts: np.ndarray, n_components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return those of parts that nothing connects: one by one, equal eigenvalues are no trouble.

    Of parts with as large an eigenvalue the largest come first.
    """
    # the largest eigenvalue of every part, and the smallest of those that can be among the first
    sizes = np.bincount(parts)
    members = np.split(np.argsort(parts, kind="stable"), np.cumsum(sizes)[:-1])
    blocks = [A.take(part) for part in members]
    spectra, bases = map(
        list, zip(*(_of_one_part(block, 1) for block in blocks), strict=True)
    )
    largest = np.concatenate(spectra)
    enough = np.sort(np.pad(largest, (0, n_components), constant_values=-np.inf))[
        -n_components
    ]
    least = _EQUAL * float(max(abs(largest).max(), np.finfo(float).tiny))
    # parts whose largest is above it can have more of the first: all that may be
    for c in np.flatnonzero(largest > enough + least):
        spectra[c], bases[c] = _of_one_part(blocks[c], min(n_components, int(sizes[c])))
    # all eigenvalues, of which part each is, and its number there
    values, n_found = np.concatenate(spectra), np.array(list(map(len, spectra)))
    owner = np.repeat(np.arange(len(members)), n_found)
    place = np.arange(len(values)) - np.repeat(np.cumsum(n_found) - n_found, n_found)
    # the first ones: in steps of rounding, so that of equal ones the largest part's come first
    first = np.lexsort((-sizes[owner], -np.round(values / least)))[:n_components]
    first = first[np.argsort(-values[first], kind="stable")]
    # their vectors, which are 0 outside of their part
    vectors = np.zeros((A.shape[0], n_components), dtype=bases[0].dtype)
    for column, chosen in enumerate(first):
        part = owner[chosen]
        vectors[members[part], column] = bases[part][:, place[chosen]]
    return values[first], vectors


def _of_one_part(A: Similarity, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    n = A.shape[0]
    if n <= max(_DENSE, 3 * n_components):
        # all of them: LAPACK's driver for a subset fails where many eigenvalues are equal
        values, vectors = scipy.linalg.eigh(A.toarray(), driver="evd")
        return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
    if A.has_root:
        return _through_root(A.root(), n_components)

    def product(v: np.ndarray) -> np.ndarray:
        return (A @ v.reshape(-1, 1).astype(A.dtype)).ravel().astype(np.float64)

    operator = LinearOperator(A.shape, matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).uniform(
        0.5, 1.0, n
    )  # ARPACK's own is not reproducible
    width = min(max(2 * n_components + 1, _WIDTH), n)
    options = {"k": n_components, "which": "LA", "v0": start, "ncv": width, **_ANEW}
    restarts = max(_PRODUCTS // (width - n_components), 1)
    try:
        values, vectors = eigsh(
            operator, tol=_TOL[A.dtype.itemsize], maxiter=restarts, **options
        )
    except (
        ArpackNoConvergence
    ):  # next to equal eigenvalues of many rows: a start need not be exact
        values, vectors = eigsh(operator, tol=_ROUGH_TOL, **options)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _through_root(V: Any, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenpairs of VV' from those of the smaller V'V, which has the same."""
    n_small = min(n_components, V.shape[1])
    inner_products = storage.stored_as_fits(V.T @ V)
    values, inner = _of_one_part(Explicit(storage.as_float64(inner_products)), n_small)
    values = np.pad(values, (0, n_components - n_small))
    inner = np.pad(inner, ((0, 0), (0, n_components - n_small)))
    positive = values > _RANK * values[0]
    lengths = np.sqrt(
        np.where(positive, values, np.inf)
    )  # a vector of 0 where there is none
    return np.where(positive, values, 0), np.asarray(
        V @ (inner / lengths).astype(V.dtype)
    )


def spectral_start(A: Similarity, n_clusters: int) -> np.ndarray:
    """Return the nonnegative part of the leading eigenvectors of A, turned towards the axes.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_clusters : int

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    values, vectors = leading_eigenpairs(A, min(n_clusters, A.shape[0]))
    return turned(values, vectors, n_clusters).astype(A.dtype)


def turned(values: np.ndarray, vectors: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the nonnegative part of eigenvectors, turned towards the axes.

    ``V diag(values)^1/2 R`` reproduces the best rank-k part of a matrix for every rotation R. The
    one taken here makes k rows of the product, chosen by a pivoted QR decomposition [1]_, as close
    as it can to multiples of unit vectors: for a block diagonal matrix that is the solution.
    Nothing is random, and it does not matter which basis of an eigenspace the eigensolver returns.

    Parameters
    ----------
    values : ndarray of shape (n_components,)
        As `leading_eigenpairs` returns them.
    vectors : ndarray of shape (n, n_components)
    n_clusters : int
        At least as many.

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
    H = np.maximum((vectors * np.sqrt(np.maximum(values, 0))) @ (U @ Vt), 0)
    H += 1e-2 * H.mean()  # a positive entry everywhere, for the multiplicative rules
    missing = n_clusters - n_components
    return np.pad(H, ((0, 0), (0, missing)), constant_values=1e-2 * float(H.mean()))
