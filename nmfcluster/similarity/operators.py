"""Similarities as operators: symmetric (n, n) matrices that need not exist as arrays.

Solvers ask a similarity for block products, inner products, a split into nonnegative parts and
restrictions, and never how it is stored. Sparse or dense, explicit or factored, float32 or
float64 is decided here and in `_storage`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._arrays.labels import cluster_counts, group_indicator, tuple_indicator
from nmfcluster._arrays.storage import (
    as_float,
    as_float64,
    blocks_of,
    dot,
    each,
    hstack,
    minimum,
    nonzero_off_diagonal,
    row_blocks,
    row_dots,
    scaled_rows,
    total,
    without_diagonal,
)

__all__ = [
    "Explicit",
    "Factored",
    "Similarity",
    "WeightedSum",
    "coassociation",
    "inner",
]

_PAIRS = 4096  # entries of a factored operator that are computed at a time
_COLUMNS = 256  # columns of an operator that are formed at a time where it must be looked at


class Similarity(ABC):
    """A symmetric (n, n) operator; immutable, and never required to exist as an array.

    Sums, differences and multiples of similarities are similarities, see `WeightedSum`.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    dtype : dtype
        float32 or float64; products keep it.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    #: whether one product with several starts side by side is cheaper than one product each
    wide: bool = False
    #: whether some of the samples show what all do: not in a sparse graph, which would fall apart
    can_be_thinned: bool = True

    @abstractmethod
    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        """Return the product with a block of vectors, or a stack of them.

        Parameters
        ----------
        H : ndarray of shape (..., n, k)

        Returns
        -------
        ndarray of shape (..., n, k)
        """

    @abstractmethod
    def split(self) -> tuple[Similarity, Similarity | None]:
        """Return (P, N), both with nonnegative entries, such that A = P - N.

        N is None where A has no negative entry. Multiplicative rules need it.
        """

    @abstractmethod
    def take(self, indices: np.ndarray) -> Similarity:
        """Return the similarity of the samples in `indices`, in that order."""

    @abstractmethod
    def collapse(self, groups: np.ndarray) -> Similarity:
        """Return E'AE for the group indicator E, scaled so that E'E = I.

        A factor whose rows agree within groups is H = Eh, and then
        ``||A - HH'||^2 = ||A||^2 - ||E'AE||^2 + ||E'AE - hh'||^2``: the same problem, smaller.

        Parameters
        ----------
        groups : ndarray of shape (n,), int
            Group of every sample, 0 to g - 1, none empty.

        Returns
        -------
        Similarity of shape (g, g)
        """

    @property
    @abstractmethod
    def is_psd(self) -> bool:
        """Whether the operator is known to be positive semidefinite."""

    @abstractmethod
    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return some entries.

        Parameters
        ----------
        rows, columns : ndarray of shape (n_entries,), int

        Returns
        -------
        ndarray of shape (n_entries,)
        """

    def stored_off_diagonal(self) -> np.ndarray | None:
        """Return the nonzero entries above the diagonal if they are stored as such, else None."""
        return None

    def n_components(self) -> int | None:
        """Return the number of connected components of a stored graph, None for other storage."""
        return None

    @abstractmethod
    def scaled(self, factors: np.ndarray) -> Similarity:
        """Return ``diag(factors) A diag(factors)``.

        Parameters
        ----------
        factors : ndarray of shape (n,)

        Returns
        -------
        Similarity of shape (n, n)
        """

    def without_diagonal(self) -> Similarity:
        """Return the similarity with a diagonal of 0."""
        return self - Explicit(sp.csr_array(sp.diags_array(self.diagonal())))

    def diagonal(self) -> np.ndarray:
        """Return the diagonal as a vector."""
        every = np.arange(self.shape[0])
        return self.entries(every, every)

    def toarray(self) -> np.ndarray:
        """Return the dense (n, n) array: for tests, for plots, for small n."""
        return self @ np.eye(self.shape[0], dtype=self.dtype)

    def __add__(self, other: Similarity) -> Similarity:
        return WeightedSum([self, other], [1.0, 1.0])

    def __sub__(self, other: Similarity) -> Similarity:
        return WeightedSum([self, other], [1.0, -1.0])

    def __mul__(self, weight: float) -> Similarity:
        return WeightedSum([self], [weight])

    __rmul__ = __mul__

    def __neg__(self) -> Similarity:
        return WeightedSum([self], [-1.0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


class Explicit(Similarity):
    """A similarity that is an array.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, n)
        Symmetric; float32 stays float32, everything else becomes float64. Not copied where
        that can be avoided, and never written to.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity import Explicit
    >>> A = Explicit(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    >>> A @ np.ones((2, 1))
    array([[1.],
           [1.]])
    >>> P, N = A.split()
    >>> N.toarray()
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, array: Any) -> None:
        array = sp.csr_array(array) if sp.issparse(array) else np.asarray(array)
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise ValueError(f"array must have shape (n, n), got {array.shape}.")
        self._array = as_float(array)
        self.shape, self.dtype = array.shape, self._array.dtype
        self.wide = self.can_be_thinned = not sp.issparse(array)

    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        if H.ndim == 2:
            return self._array @ H
        if not self.wide:
            return each(self._array.__matmul__, H)
        stacked = np.moveaxis(H, -2, 0)
        wide = self._array @ stacked.reshape(self.shape[0], -1)
        return np.moveaxis(wide.reshape(stacked.shape), 0, -2)

    def split(self) -> tuple[Similarity, Similarity | None]:
        negative = minimum(self._array, 0)
        if total(negative) == 0:
            return self, None
        return Explicit(self._array - negative), Explicit(abs(negative))

    def take(self, indices: np.ndarray) -> Similarity:
        return Explicit(self._array[indices][:, indices])

    def collapse(self, groups: np.ndarray) -> Similarity:
        E = group_indicator(groups, self.dtype)
        return Explicit(E.T @ (self._array @ E))

    @property
    def is_psd(self) -> bool:
        return False

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        found = self._array[rows, columns]
        return np.asarray(found.toarray() if sp.issparse(found) else found).ravel()

    def n_components(self) -> int | None:
        if self.wide:
            return None
        return int(connected_components(self._array, directed=False, return_labels=False))

    def stored_off_diagonal(self) -> np.ndarray | None:
        return None if self.wide else nonzero_off_diagonal(self._array)

    def scaled(self, factors: np.ndarray) -> Similarity:
        return Explicit(scaled_rows(scaled_rows(self._array, factors).T, factors).T)

    def diagonal(self) -> np.ndarray:
        return self._array.diagonal()

    def without_diagonal(self) -> Similarity:
        return Explicit(without_diagonal(self._array))

    def toarray(self) -> np.ndarray:
        return self._array.toarray() if sp.issparse(self._array) else self._array.copy()


class Factored(Similarity):
    """A similarity A = D U C U' D with a thin U: a product costs O(nnz(U) k), nothing is (n, n).

    Linear and cosine kernels of features and the co-association of partitions are of this kind.

    Parameters
    ----------
    U : ndarray or sparse matrix of shape (n, r)
        float32 stays float32, everything else becomes float64. Never written to.
    C : array-like, sparse matrix or Similarity of shape (r, r), or vector, default=None
        Symmetric core; a vector of shape (r,) is its diagonal. The identity by default.
    scale : array-like of shape (n,), default=None
        Diagonal of D, so that rows can be scaled without a copy of U. The identity by default.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity import Factored
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> Factored(X).toarray()
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self, U: Any, C: Any = None, scale: Any = None) -> None:
        self._U = as_float(sp.csr_array(U) if sp.issparse(U) else np.asarray(U))
        if self._U.ndim != 2:
            raise ValueError(f"U must have shape (n, r), got {self._U.shape}.")
        rank, self.dtype = self._U.shape[1], self._U.dtype
        if C is None:
            C = np.ones(rank)
        if not sp.issparse(C) and not isinstance(C, Similarity):
            C = np.asarray(C)
            if C.shape == (rank,):
                C = sp.dia_array((C[None, :], [0]), shape=(rank, rank))
        if C.shape != (rank, rank):
            raise ValueError(f"C must have shape ({rank},) or ({rank}, {rank}), got {C.shape}.")
        if isinstance(C, Similarity):
            if C.dtype != self.dtype:
                raise ValueError(f"C must have the dtype of U, {self.dtype}, got {C.dtype}.")
        else:
            C = (sp.csr_array(C) if sp.issparse(C) else C).astype(self.dtype)
        self._C = C
        self.shape = (self._U.shape[0], self._U.shape[0])
        self._scale = None if scale is None else np.asarray(scale, self.dtype).reshape(-1, 1)
        if self._scale is not None and len(self._scale) != self.shape[0]:
            raise ValueError(f"scale must have shape ({self.shape[0]},), got {np.shape(scale)}.")

    @property
    def rank(self) -> int:
        """Number of columns of U, which bounds the rank of A."""
        return int(self._U.shape[1])

    @property
    def factors(self) -> tuple[Any, Any]:
        """DU of shape (n, r) and C of shape (r, r), both arrays."""
        U, C = self._U, self._C
        while isinstance(C, Factored):
            V, C = C.factors
            U = U @ V
        if isinstance(C, Similarity):
            C = C.toarray()
        if self._scale is not None:
            U = U * self._scale
        return (U.tocsr() if sp.issparse(U) else U), C

    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        if H.ndim > 2:
            return each(self.__matmul__, H)
        if self._scale is None:
            return self._U @ (self._C @ (self._U.T @ H))
        product = self._U @ (self._C @ (self._U.T @ (self._scale * H)))
        product *= self._scale
        return product

    def split(self) -> tuple[Similarity, Similarity | None]:
        U, C = self.factors
        U_minus, C_minus = abs(minimum(U, 0)), abs(minimum(C, 0))
        if total(U_minus) == 0 and total(C_minus) == 0:
            return self, None
        # with V = [U+, U-]: A = V [[C, -C], [-C, C]] V', whose core splits entry by entry
        V = hstack([U + U_minus, U_minus])
        C_plus = C + C_minus
        return (
            Factored(V, blocks_of(C_plus, C_minus)),
            Factored(V, blocks_of(C_minus, C_plus)),
        )

    def take(self, indices: np.ndarray) -> Similarity:
        U, C = self._U[indices], self._C
        scale = None if self._scale is None else self._scale[indices]
        if sp.issparse(U) and U.shape[1] > len(indices):  # part of the columns will do
            used = np.unique(U.indices)
            U = U[:, used]
            C = C.take(used) if isinstance(C, Similarity) else C[used][:, used]
            if isinstance(C, Factored):
                V, C = C.factors
                U = U @ V
        return Factored(U, C, scale)

    def collapse(self, groups: np.ndarray) -> Similarity:
        E = group_indicator(groups, self.dtype)
        if 2 * E.shape[1] > E.shape[0]:  # hardly smaller: U itself serves, where it would be copied
            return Factored(E.T, self)
        if self._scale is not None:  # of E, which is smaller than U
            E = scaled_rows(E, self._scale)
        return Factored(E.T @ self._U, self._C)

    @property
    def is_psd(self) -> bool:
        if isinstance(self._C, Similarity):
            return self._C.is_psd
        if not sp.issparse(self._C):
            return False
        off_diagonal = self._C - sp.diags_array(self._C.diagonal())
        return total(abs(off_diagonal)) == 0 and bool((self._C.diagonal() >= 0).all())

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        U, C, scale = self._U, self._C, self._scale
        if isinstance(C, Similarity):
            (U, C), scale = self.factors, None
        found = np.empty(len(rows), dtype=self.dtype)
        for block in row_blocks(len(rows), _PAIRS):
            found[block] = row_dots(U[rows[block]] @ C, U[columns[block]])
        return found if scale is None else found * scale[rows, 0] * scale[columns, 0]

    def scaled(self, factors: np.ndarray) -> Similarity:
        own = 1 if self._scale is None else self._scale[:, 0]
        return Factored(self._U, self._C, own * factors)

    def toarray(self) -> np.ndarray:
        U, C = self.factors
        product = U @ C @ U.T
        return product.toarray() if sp.issparse(product) else product


class WeightedSum(Similarity):
    """A weighted sum of similarities.

    Terms that are arrays are merged into one at construction, factored ones stay factored.

    Parameters
    ----------
    terms : sequence of Similarity, all of shape (n, n)
    weights : sequence of float
        One weight a term, of any sign.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity import Explicit, Factored
    >>> A = Factored(np.ones((2, 1))) - 0.5 * Explicit(np.eye(2))
    >>> A.toarray()
    array([[0.5, 1. ],
           [1. , 0.5]])
    """

    def __init__(self, terms: Any, weights: Any) -> None:
        terms, weights = list(terms), [float(w) for w in weights]
        if not terms or len(terms) != len(weights):
            raise ValueError(f"got {len(terms)} terms and {len(weights)} weights.")
        if len({term.shape for term in terms}) > 1:
            raise ValueError(f"terms must have one shape, got {[term.shape for term in terms]}.")
        pairs = [pair for term, w in zip(terms, weights, strict=True) for pair in _flat(term, w)]
        arrays = [(term._array, w) for term, w in pairs if isinstance(term, Explicit)]
        self._terms = [(term, w) for term, w in pairs if not isinstance(term, Explicit)]
        if arrays:
            merged = arrays[0][0] * arrays[0][1]
            for array, w in arrays[1:]:
                merged = merged + array * w
            self._terms.append((Explicit(merged), 1.0))
        self.shape = terms[0].shape
        self.dtype = np.result_type(*[term.dtype for term in terms])
        self.wide = any(term.wide for term, _ in self._terms)
        self.can_be_thinned = any(term.can_be_thinned for term, _ in self._terms)

    @property
    def terms(self) -> list[tuple[Similarity, float]]:
        """The terms left after merging, and their weights."""
        return list(self._terms)

    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        # python floats do not promote float32
        products = [(term @ H) * w if w != 1 else term @ H for term, w in self._terms]
        return sum(products[1:], start=products[0])

    def split(self) -> tuple[Similarity, Similarity | None]:
        positive: list[tuple[Similarity, float]] = []
        negative: list[tuple[Similarity, float]] = []
        for term, weight in self._terms:
            P, N = term.split()
            gains, losses = (positive, negative) if weight >= 0 else (negative, positive)
            gains.append((P, abs(weight)))
            if N is not None:
                losses.append((N, abs(weight)))
        if not positive:
            positive.append((negative[0][0], 0.0))
        return WeightedSum(*zip(*positive, strict=True)), (
            WeightedSum(*zip(*negative, strict=True)) if negative else None
        )

    def take(self, indices: np.ndarray) -> Similarity:
        return WeightedSum([t.take(indices) for t, _ in self._terms], [w for _, w in self._terms])

    def collapse(self, groups: np.ndarray) -> Similarity:
        return WeightedSum(
            [term.collapse(groups) for term, _ in self._terms], [w for _, w in self._terms]
        )

    @property
    def is_psd(self) -> bool:
        return all(term.is_psd and weight >= 0 for term, weight in self._terms)

    def n_components(self) -> int | None:
        return self._terms[0][0].n_components() if len(self._terms) == 1 else None

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        found = [term.entries(rows, columns) * weight for term, weight in self._terms]
        return sum(found[1:], start=found[0])

    def scaled(self, factors: np.ndarray) -> Similarity:
        return WeightedSum([t.scaled(factors) for t, _ in self._terms], [w for _, w in self._terms])

    def toarray(self) -> np.ndarray:
        arrays = [term.toarray() * weight for term, weight in self._terms]
        return sum(arrays[1:], start=arrays[0])


def inner(A: Similarity, B: Similarity) -> float:
    """Return the Frobenius inner product <A, B> = sum_ij A_ij B_ij, accumulated in float64.

    Parameters
    ----------
    A, B : Similarity of shape (n, n)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity import Factored, inner
    >>> A = Factored(np.array([[1.0], [2.0]]))
    >>> inner(A, A)  # the squared norm of [[1, 2], [2, 4]]
    25.0
    """
    if A.shape != B.shape:
        raise ValueError(f"A and B must have one shape, got {A.shape} and {B.shape}.")
    if isinstance(A, WeightedSum):
        return sum(weight * inner(term, B) for term, weight in A.terms)
    if isinstance(B, WeightedSum):
        return inner(B, A)
    if isinstance(A, Factored) and isinstance(B, Factored):
        (U, C), (V, D) = A.factors, B.factors
        if min(U.shape[1], V.shape[1]) <= A.shape[0]:
            M = as_float64(U).T @ as_float64(V)  # <UCU', VDV'> = <C M, M D>
            return dot(as_float64(C) @ M, M @ as_float64(D))
    if isinstance(A, Explicit) and not A.wide and isinstance(B, Factored):
        stored = A._array.tocoo()
        return dot(stored.data, B.entries(stored.row, stored.col))
    if isinstance(B, Explicit) and not B.wide and isinstance(A, Factored):
        return inner(B, A)
    if isinstance(A, Explicit) and isinstance(B, Explicit):
        if sp.issparse(A._array) or sp.issparse(B._array):
            return dot(as_float64(A._array), as_float64(B._array))
        blocks = row_blocks(A.shape[0], _COLUMNS)
        return sum(dot(A._array[rows], B._array[rows]) for rows in blocks)
    return sum(dot(A @ E, B @ E) for E in unit_blocks(A))


def coassociation(
    codes: np.ndarray,
    weights: np.ndarray | None = None,
    counts: np.ndarray | None = None,
    dtype: Any = np.float64,
) -> Factored:
    r"""Return the weighted co-association of partitions, without forming it.

    :math:`\tilde M_{ij} = \sum_t w_t [\,i \text{ and } j \text{ share a cluster of partition }
    t\,]`, of Li, Ding and Jordan (2007), section 2, is ``Z diag(w) Z'`` with the sparse
    indicator Z of all clusters of all partitions. A pair that a partition did not see together
    adds nothing.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int
        Clusters of every partition, numbered from 0; a negative entry: not seen.
    weights : ndarray of shape (n_partitions,), default=None
        Weight of every partition; equal weights that sum to 1 by default.
    counts : ndarray of shape (n_samples,), default=None
        Row i stands for ``counts[i]`` samples with the same labels: the result is then the
        `Similarity.collapse` of the co-association of all of them.
    dtype : dtype, default=float64
        float64 or float32.

    Returns
    -------
    Factored of shape (n_samples, n_samples)

    References
    ----------
    .. [1] T. Li, C. Ding, M. I. Jordan. Solving consensus and semi-supervised clustering
       problems using nonnegative matrix factorization. ICDM 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity import coassociation
    >>> coassociation(np.array([[0, 0], [0, 1], [1, 1]])).toarray()
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    codes = np.asarray(codes)
    n_clusters = cluster_counts(codes)
    if weights is None:
        weights = np.full(codes.shape[1], 1 / codes.shape[1])
    J, A = tuple_indicator(codes, n_clusters, dtype)
    core = Factored(A, np.repeat(weights, n_clusters))
    return Factored(J, core, None if counts is None else np.sqrt(counts))


def _flat(term: Similarity, weight: float) -> list[tuple[Similarity, float]]:
    if isinstance(term, WeightedSum):
        return [(inside, w * weight) for inside, w in term.terms]
    return [(term, weight)]


def unit_blocks(A: Similarity) -> Iterator[np.ndarray]:
    """Yield the identity, some columns at a time."""
    n = A.shape[0]
    for start in range(0, n, _COLUMNS):
        width = min(_COLUMNS, n - start)
        E = np.zeros((n, width), dtype=A.dtype)
        E[start + np.arange(width), np.arange(width)] = 1
        yield E
