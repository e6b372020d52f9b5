"""Similarities as operators: arrays, products of thin matrices, and weighted sums.

Only this module and `_utils` distinguish sparse from dense, explicit from factored, and float32
from float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._utils import storage
from nmfcluster._utils.linalg import RowBlocks

# entries of a similarity that are sampled: enough for their median and 0.999-quantile
N_SAMPLED_ENTRIES = 100_000

# entries of a block of a factored similarity, whose rows of U then fit the cache
_BLOCK_ENTRIES = 4096
# largest number of samples, or columns, for which the norm of a factored similarity is exact
_MAX_EXACT_NORM = 2_000
# random vectors of an estimated norm, in the sketch and as probes: errors were at most 4 %
_N_SKETCH = 24
_N_PROBES = 32


class Similarity(ABC):
    """An immutable symmetric (n, n) operator, which need not exist as an array.

    Sums, differences and multiples of similarities are similarities, too. See `WeightedSum`.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    dtype : dtype
        float32 or float64; products keep it.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    #: whether one product with the columns of several starts is faster than a product for each
    wide = False
    #: whether a subset of the samples represents all; a sparse graph would fall into parts
    can_be_thinned = True

    @abstractmethod
    def __matmul__(self, H):
        """Return the product with a block of vectors, or a stack of blocks, (..., n, k)."""

    @abstractmethod
    def split(self) -> tuple[Similarity, Similarity | None]:
        """Return (P, N), both with nonnegative entries, such that A = P - N.

        N is None if A has no negative entry. Multiplicative update rules need this split.
        """

    @abstractmethod
    def take(self, indices: np.ndarray) -> Similarity:
        """Return the similarity of the samples in `indices`, in that order."""

    @abstractmethod
    def collapse(self, groups: np.ndarray) -> Similarity:
        """Return E'AE for the group indicator E, scaled so that E'E = I.

        A factor with equal rows within groups is H = Eh, and then
        ``||A - HH'||^2 = ||A||^2 - ||E'AE||^2 + ||E'AE - hh'||^2``. Hence h is the solution of a
        smaller problem of the same form.

        Parameters
        ----------
        groups : ndarray of shape (n,), int
            Group of every sample, from 0 to g - 1. No group is empty.

        Returns
        -------
        Similarity of shape (g, g)
        """

    @abstractmethod
    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return the entries at some rows and columns.

        Parameters
        ----------
        rows, columns : ndarray of shape (n_entries,), int

        Returns
        -------
        ndarray of shape (n_entries,)
        """

    def root(self) -> Any:
        """Return V, dense or CSR, if A = VV' and V has at most n / 2 columns, else None.

        The nonzero eigenvalues of A are those of V'V, which is smaller.
        """
        return None

    def stored_off_diagonal(self) -> np.ndarray | None:
        """Return the nonzero entries above the diagonal if A is a sparse array, else None."""
        return None

    @property
    def parts(self) -> np.ndarray | None:
        """The connected component of every sample, (n,), or None if it is not known."""
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

    def squared_norm(self) -> float:
        """Return the sum of the squared entries, accumulated in float64."""
        return inner(self, self)

    def without_diagonal(self) -> Similarity:
        """Return the similarity with a diagonal of 0."""
        return self - Explicit(sp.diags_array(self.diagonal()))

    def diagonal(self) -> np.ndarray:
        """Return the diagonal as a vector."""
        every = np.arange(self.shape[0])
        return self.entries(every, every)

    def toarray(self) -> np.ndarray:
        """Return the dense (n, n) array, for tests, plots and small n."""
        return self @ np.eye(self.shape[0], dtype=self.dtype)

    def __add__(self, other: Similarity) -> Similarity:
        return WeightedSum([self, other], [1.0, 1.0])

    def __sub__(self, other: Similarity) -> Similarity:
        return WeightedSum([self, other], [1.0, -1.0])

    def __mul__(self, weight: float) -> Similarity:
        return WeightedSum([self], [weight])

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


class Explicit(Similarity):
    """A similarity that is stored as an array.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, n)
        A symmetric matrix. The dtype float32 is kept, and all others are converted to float64. The
        array is copied only if necessary, and never modified.

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
        if array.dtype.kind not in "fiub":
            raise TypeError(f"array must hold real numbers, got dtype {array.dtype}.")
        self._array = storage.as_float(array)
        self._rows = RowBlocks(self._array)
        self.shape = array.shape
        self.dtype = self._array.dtype
        self._is_dense = not sp.issparse(array)
        self.wide = self._is_dense
        self.can_be_thinned = self._is_dense

    def __matmul__(self, H):
        if H.ndim == 2:
            return self._rows.product(H)
        if self._is_dense:
            stacked = np.moveaxis(H, -2, 0)
            product = self._rows.product(stacked.reshape(self.shape[0], -1))
            return np.moveaxis(product.reshape(stacked.shape), 0, -2)
        return _multiply_stack(self, H)  # for sparse matrices one wide block is slower

    def __add__(self, other):
        if isinstance(other, Explicit) and other.shape == self.shape:
            return Explicit(self._array + other._array)
        return super().__add__(other)

    def split(self) -> tuple[Similarity, Similarity | None]:
        negative = storage.negative_part(self._array)
        if storage.total(negative) == 0:
            return self, None
        return Explicit(self._array + negative), Explicit(negative)

    def is_nonnegative(self) -> bool:
        """Return whether no entry is below 0, and at least one is above 0."""
        return float(self._array.min()) >= 0 < float(self._array.max())

    def take(self, indices: np.ndarray) -> Similarity:
        return Explicit(self._array[indices][:, indices])

    def collapse(self, groups: np.ndarray) -> Similarity:
        E = storage.group_indicator(groups, self.dtype)
        return Explicit(E.T @ (self._array @ E))

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        values = storage.as_dense(self._array[rows, columns])
        return np.asarray(values).ravel()

    @cached_property
    def parts(self):
        if self._is_dense:
            return None
        return connected_components(self._array, directed=False)[1]

    def stored_off_diagonal(self) -> np.ndarray | None:
        if self._is_dense:
            return None
        stored = sp.triu(self._array, 1).data
        return stored[stored != 0]

    def scaled(self, factors: np.ndarray) -> Similarity:
        return Explicit(storage.scaled_both(self._array, factors))

    def without_diagonal(self) -> Similarity:
        return Explicit(storage.without_diagonal(self._array))

    def toarray(self) -> np.ndarray:
        return self._array.toarray() if sp.issparse(self._array) else self._array.copy()


class Factored(Similarity):
    """A similarity A = D U C U' D with a thin U, which never forms an (n, n) array.

    A product takes time O(nnz(U) k). Linear and cosine kernels of features and the co-association
    of partitions are of this kind.

    Parameters
    ----------
    U : ndarray or sparse matrix of shape (n, r)
        The dtype float32 is kept, and all others are converted to float64. U is never modified.
    C : array-like, sparse matrix or Similarity of shape (r, r), or vector, default=None
        The symmetric core. A vector of shape (r,) holds the diagonal of a diagonal core. The
        default is the identity.
    scale : array-like of shape (n,), default=None
        Diagonal of D, which scales the rows without a copy of U. By default, D is the identity.

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
        U = sp.csr_array(U) if sp.issparse(U) else np.asarray(U)
        if U.ndim != 2:
            raise ValueError(f"U must have shape (n, r), got {U.shape}.")
        self._U = storage.as_float(U)
        self._rows = RowBlocks(self._U)
        self.dtype = self._U.dtype
        n, self.rank = U.shape
        self.shape = (n, n)
        # the core is an array, dense or CSR, or factored itself
        if C is None:
            C = np.ones(self.rank)
        if not isinstance(C, Factored):
            C = C.toarray() if isinstance(C, Similarity) else C
            C = C if sp.issparse(C) else np.asarray(C)
            C = sp.diags_array(C) if C.ndim == 1 else C
            C = (sp.csr_array(C) if sp.issparse(C) else C).astype(self.dtype)
        if C.shape != (self.rank, self.rank):
            raise ValueError(
                f"C must have shape ({self.rank},) or ({self.rank}, {self.rank}), "
                f"got {C.shape}."
            )
        self._core = C
        # the innermost array: the core of the core, if that is factored itself
        self._center: Any = C._center if isinstance(C, Factored) else C
        self._scale = None
        if scale is not None:
            self._scale = np.asarray(scale, self.dtype).reshape(n, 1)

    @property
    def factors(self) -> tuple[Any, Any]:
        """DU of shape (n, r) and C of shape (r, r), both arrays."""
        U = self._U
        core = self._core
        while isinstance(core, Factored):
            U = U @ (core._U if core._scale is None else core._U * core._scale)
            core = core._core
        if self._scale is not None:
            U = U * self._scale
        return (U.tocsr() if sp.issparse(U) else U), self._center

    def root(self) -> Any:
        return self._root() if 2 * self._center.shape[0] <= self.shape[0] else None

    def _root(self):
        """Return V with A = VV' if C is diagonal and nonnegative, else None."""
        weights = self._center.diagonal()
        has_other_entries = storage.total(abs(self._center)) != weights.sum()
        if has_other_entries or weights.min(initial=0) < 0:
            return None
        return storage.scaled_columns(self.factors[0], np.sqrt(weights))

    @cached_property
    def parts(self):
        V = self._root()
        if not sp.issparse(V) or V.data.min(initial=0) < 0:  # entries of VV' can cancel
            return None
        # a stored 0 connects nothing
        graph = storage.bipartite_graph(V > 0)
        _, labels = connected_components(graph, directed=False)
        return np.unique(labels[: self.shape[0]], return_inverse=True)[1]

    def __matmul__(self, H):
        if H.ndim > 2:
            return _multiply_stack(self, H)
        of_columns = self._rows.transposed_product(H, self._scale)
        product = self._rows.product(self._core @ of_columns)
        if self._scale is not None:
            product *= self._scale
        return product

    def split(self) -> tuple[Similarity, Similarity | None]:
        U, C = self.factors
        U_minus = storage.negative_part(U)
        C_minus = storage.negative_part(C)
        if storage.total(U_minus) == 0 and storage.total(C_minus) == 0:
            return self, None
        # with V = [U+, U-]: A = V [[C, -C], [-C, C]] V', whose core splits entry by entry
        V = storage.block_matrix([[U + U_minus, U_minus]])
        C_plus = C + C_minus
        P = Factored(V, storage.block_matrix([[C_plus, C_minus], [C_minus, C_plus]]))
        N = Factored(V, storage.block_matrix([[C_minus, C_plus], [C_plus, C_minus]]))
        return P, N

    def take(self, indices: np.ndarray) -> Factored:
        U = self._U[indices]
        C = self._core
        scale = None if self._scale is None else self._scale[indices]
        if sp.issparse(U) and U.shape[1] > len(indices):
            # only the columns in use
            used = np.unique(U.indices)
            U = U[:, used]
            if isinstance(C, Factored):
                V, C = C.take(used).factors
                U = U @ V
            else:
                C = C[used][:, used]
        return Factored(U, C, scale)

    def collapse(self, groups: np.ndarray) -> Similarity:
        E = storage.group_indicator(groups, self.dtype)
        if 2 * E.shape[1] > E.shape[0]:
            # the result is hardly smaller: use U itself instead of a copy
            return Factored(E.T, self)
        if self._scale is not None:  # scale E, which is smaller than U
            E = storage.scaled_rows(E, self._scale[:, 0])
        return Factored(E.T @ self._U, self._core)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        U = self._U
        C = self._core
        scale = self._scale
        if isinstance(C, Factored):
            U, C = self.factors
            scale = None
        values = np.empty(len(rows), dtype=self.dtype)
        for block in storage.row_blocks(len(rows), _BLOCK_ENTRIES):
            products = U[rows[block]] @ C
            values[block] = storage.row_inner_products(products, U[columns[block]])
        return values if scale is None else values * scale[rows, 0] * scale[columns, 0]

    def scaled(self, factors: np.ndarray) -> Similarity:
        own = 1 if self._scale is None else self._scale[:, 0]
        return Factored(self._U, self._core, own * factors)

    def toarray(self) -> np.ndarray:
        U, C = self.factors
        return storage.as_dense(U @ C @ U.T)

    def squared_norm(self) -> float:
        r"""Return the sum of the squared entries, ``||A||^2``.

        With more than 2,000 samples and columns, as in a kernel of documents, the exact sum would
        take longer than a fit. The sum is then estimated to within a few percent [1]_. It is exact
        on the range of a random sketch, and estimated from random probes on the rest. All calls use
        the same random vectors, so that they return the same estimate.

        References
        ----------
        .. [1] R. A. Meyer, C. Musco, C. Musco, D. P. Woodruff. Hutch++: optimal stochastic trace
           estimation. SOSA 2021.
        """
        n = self.shape[0]
        if min(self.rank, n) <= _MAX_EXACT_NORM:
            return inner(self, self)
        rng = np.random.default_rng(0)
        sketch = rng.choice([-1.0, 1.0], (n, _N_SKETCH)).astype(self.dtype)
        probes = rng.choice([-1.0, 1.0], (n, _N_PROBES)).astype(self.dtype)
        Q, _ = np.linalg.qr(self @ sketch)
        rest = self @ (probes - Q @ (Q.T @ probes))
        estimated = storage.sum_of_squares(rest) / _N_PROBES
        return storage.sum_of_squares(self @ Q) + estimated


class WeightedSum(Similarity):
    """A weighted sum of similarities.

    The constructor adds all terms that are arrays to one array. Factored terms stay factored.

    Parameters
    ----------
    terms : sequence of Similarity, all of shape (n, n)
    weights : sequence of float
        One weight for each term, of any sign.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity import Explicit, Factored
    >>> A = Factored(np.ones((2, 1))) - 0.5 * Explicit(np.eye(2))
    >>> A.toarray()
    array([[0.5, 1. ],
           [1. , 0.5]])
    """

    #: the merged terms, and their weights
    terms: list[tuple[Similarity, float]]

    def __init__(self, terms: Any, weights: Any) -> None:
        # expand sums among the terms
        pairs: list = []
        for term, weight in zip(terms, weights, strict=True):
            summands = getattr(term, "terms", [(term, 1.0)])
            pairs += [(summand, float(own * weight)) for summand, own in summands]
        shapes = [term.shape for term, _ in pairs]
        if len(set(shapes)) != 1:
            raise ValueError(f"terms must have the same shape, got {shapes}.")
        self.shape = shapes[0]
        self.dtype = reduce(np.promote_types, [term.dtype for term, _ in pairs])
        # merge arrays into one
        arrays = [term._array * w for term, w in pairs if isinstance(term, Explicit)]
        self.terms = [(term, w) for term, w in pairs if not isinstance(term, Explicit)]
        if arrays:
            self.terms.append((Explicit(reduce(add, arrays)), 1.0))
        self.wide = any(term.wide for term, _ in self.terms)
        self.can_be_thinned = any(term.can_be_thinned for term, _ in self.terms)

    def __matmul__(self, H):
        # weights are Python floats, which do not promote float32
        products = [term @ H if w == 1 else (term @ H) * w for term, w in self.terms]
        return reduce(add, products)

    def split(self) -> tuple[Similarity, Similarity | None]:
        gains: list = []
        losses: list = []
        for term, weight in self.terms:
            parts = term.split()
            gain, loss = parts if weight >= 0 else reversed(parts)
            if gain is not None:
                gains.append((gain, abs(weight)))
            if loss is not None:
                losses.append((loss, abs(weight)))
        if not gains:
            gains = [(losses[0][0], 0.0)]
        return _sum_of_pairs(gains), _sum_of_pairs(losses) if losses else None

    def _map_terms(self, method, argument):
        """Return the weighted sum of the results of a method of the terms."""
        changed = [(getattr(term, method)(argument), w) for term, w in self.terms]
        return _sum_of_pairs(changed)

    def take(self, indices: np.ndarray) -> Similarity:
        return self._map_terms("take", indices)

    def collapse(self, groups: np.ndarray) -> Similarity:
        return self._map_terms("collapse", groups)

    def scaled(self, factors: np.ndarray) -> Similarity:
        return self._map_terms("scaled", factors)

    @property
    def parts(self) -> np.ndarray | None:
        return self.terms[0][0].parts if len(self.terms) == 1 else None

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return reduce(add, [term.entries(rows, columns) * w for term, w in self.terms])

    def squared_norm(self) -> float:
        square = 0.0
        for i, (term, weight) in enumerate(self.terms):
            square += weight**2 * term.squared_norm()
            others = self.terms[i + 1 :]
            square += sum(2 * weight * w * inner(term, other) for other, w in others)
        return square

    def toarray(self) -> np.ndarray:
        return reduce(add, [term.toarray() * weight for term, weight in self.terms])


def inner(A, B):
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
        raise ValueError(
            f"A and B must have the same shape, got {A.shape} and {B.shape}."
        )
    if isinstance(A, WeightedSum):
        return sum(weight * inner(term, B) for term, weight in A.terms)
    if isinstance(B, WeightedSum):
        return inner(B, A)
    if isinstance(A, Explicit) and isinstance(B, Explicit):
        a = A._array
        b = B._array
        if not (A._is_dense and B._is_dense):
            a = storage.as_float64(a)
            b = storage.as_float64(b)
        return storage.inner_product(a, b)
    if isinstance(A, Explicit):
        A, B = B, A
    n = A.shape[0]
    if isinstance(A, Factored):
        U, C = A.factors
        if isinstance(B, Explicit) and not B._is_dense:
            # <UCU', Z> = <UC, ZU> for a symmetric Z, over its rows with stored entries
            used = np.flatnonzero(np.diff(B._array.indptr))
            U = storage.as_float64(U[used])
            Z = storage.as_float64(B._array[:, used][used])
            blocks = storage.row_blocks(len(used), 1_024)
            products = [storage.inner_product(U[b] @ C, Z[b] @ U) for b in blocks]
            return sum(products, 0.0)
        if isinstance(B, Factored):
            V, D = B.factors
            if min(U.shape[1], V.shape[1]) <= n:
                # <UCU', VDV'> = <CM, MD> with M = U'V
                M = storage.as_float64(U).T @ storage.as_float64(V)
                CM = storage.as_float64(C) @ M
                return storage.inner_product(CM, M @ storage.as_float64(D))
    # compute all entries in blocks of columns
    total = 0.0
    for block in storage.row_blocks(n):
        E = np.eye(n, block.stop - block.start, -block.start, dtype=A.dtype)
        total += storage.inner_product(A @ E, B @ E)
    return total


def _multiply_stack(A, H):
    """Return the product with every block of a stack, without a copy if there is one block."""
    products = []
    for block in H.reshape((-1, *H.shape[-2:])):
        products.append(A @ block)
    stacked = products[0] if len(products) == 1 else np.stack(products)
    return stacked.reshape(H.shape)


def _sum_of_pairs(pairs):
    terms = [term for term, _ in pairs]
    return WeightedSum(terms, [weight for _, weight in pairs])
