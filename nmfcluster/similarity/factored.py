"""Similarities as products of thin matrices, as the co-association of partitions is."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._utils import storage
from nmfcluster._utils.linalg import RowBlocks
from nmfcluster._utils.storage import bipartite_graph
from nmfcluster.similarity.operators import Explicit, Similarity, inner

_PAIRS = 4096  # entries computed at a time, so that their rows of U stay in cache
_FEW = 2_000  # samples and columns up to which the norm is computed exactly
_SKETCH, _PROBES = (
    24,
    32,
)  # random vectors of an estimated norm: errors up to 4 % were seen


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
        U = sp.csr_array(U) if sp.issparse(U) else np.asarray(U)
        self._U = storage.as_float(U)
        if self._U.ndim != 2:
            raise ValueError(f"U must have shape (n, r), got {self._U.shape}.")
        (n, rank), self.dtype = self._U.shape, self._U.dtype
        self.rank = rank
        self.shape = n, n
        if not isinstance(C, Factored):
            C = C.toarray() if isinstance(C, Similarity) else C
            C = np.ones(rank) if C is None else C if sp.issparse(C) else np.asarray(C)
            C = sp.diags_array(C) if C.ndim == 1 else C
            C = (sp.csr_array(C) if sp.issparse(C) else C).astype(self.dtype)
        if C.shape != (rank, rank):
            raise ValueError(
                f"C must have shape ({rank},) or ({rank}, {rank}), got {C.shape}."
            )
        self._C = C
        self._scale = (
            None if scale is None else np.asarray(scale, self.dtype).reshape(n, 1)
        )

    @cached_property
    def _rows(self) -> RowBlocks:
        return RowBlocks(self._U)

    @property
    def _levels(self) -> list[Factored]:
        """Itself, and what a factored core is made of; the core of the last is an array."""
        return [self, *self._C._levels] if isinstance(self._C, Factored) else [self]

    @property
    def factors(self) -> tuple[Any, Any]:
        """DU of shape (n, r) and C of shape (r, r), both arrays."""
        U, (_, *inner_levels) = self._U, self._levels
        for level in inner_levels:
            U = U @ (level._U if level._scale is None else level._U * level._scale)
        if self._scale is not None:
            U = U * self._scale
        return (U.tocsr() if sp.issparse(U) else U), self._levels[-1]._C

    @property
    def has_root(self) -> bool:
        return self._is_square and 2 * self._levels[-1].rank <= self.shape[0]

    @property
    def _is_square(self) -> bool:
        """Whether C is diagonal and nonnegative, so that A is VV' for some V."""
        C = self._levels[-1]._C
        diagonal = C.diagonal()
        return diagonal.min(initial=0) >= 0 and storage.total(abs(C)) == diagonal.sum()

    @cached_property
    def parts(self) -> np.ndarray | None:
        if not self._is_square:
            return None
        V = self.root()
        if not sp.issparse(V) or V.data.min(initial=0) < 0:  # entries of VV' can cancel
            return None
        # a stored 0 connects nothing
        _, labels = connected_components(bipartite_graph(V > 0), directed=False)
        return np.unique(labels[: self.shape[0]], return_inverse=True)[1]

    def root(self) -> Any:
        U, C = self.factors
        return storage.scaled_columns(U, np.sqrt(C.diagonal()))

    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        levels, products = self._levels, []
        for product in H.reshape(-1, *H.shape[-2:]):
            for level in levels:
                product = level._rows.transposed_product(product, level._scale)
            product = levels[-1]._C @ product
            for level in reversed(levels):
                product = level._rows.product(product)
                if level._scale is not None:
                    product *= level._scale
            products.append(product)
        # one block is not copied: it can be large
        return (products[0] if len(products) == 1 else np.stack(products)).reshape(
            H.shape
        )

    def split(self) -> tuple[Similarity, Similarity | None]:
        U, C = self.factors
        U_minus, C_minus = abs(storage.minimum(U, 0)), abs(storage.minimum(C, 0))
        if storage.total(U_minus) == 0 and storage.total(C_minus) == 0:
            return self, None
        # with V = [U+, U-]: A = V [[C, -C], [-C, C]] V', whose core splits entry by entry
        V = storage.hstack([U + U_minus, U_minus])
        C_plus = C + C_minus
        cores = (
            storage.two_by_two_blocks(C_plus, C_minus),
            storage.two_by_two_blocks(C_minus, C_plus),
        )
        return Factored(V, cores[0]), Factored(V, cores[1])

    def take(self, indices: np.ndarray) -> Similarity:
        U, C = self._U[indices], self._C
        scale = None if self._scale is None else self._scale[indices]
        if sp.issparse(U) and U.shape[1] > len(indices):  # part of the columns will do
            used = np.unique(U.indices)
            U = U[:, used]
            C = C.take(used) if isinstance(C, Factored) else C[used][:, used]
            if isinstance(C, Factored):
                V, C = C.factors
                U = U @ V
        return Factored(U, C, scale)

    def collapse(self, groups: np.ndarray) -> Similarity:
        E = storage.group_indicator(groups, self.dtype)
        if (
            2 * E.shape[1] > E.shape[0]
        ):  # hardly smaller: U itself serves, where it would be copied
            return Factored(E.T, self)
        if self._scale is not None:  # of E, which is smaller than U
            E = storage.scaled_rows(E, self._scale)
        return Factored(E.T @ self._U, self._C)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        U, C, scale = self._U, self._C, self._scale
        if isinstance(C, Factored):
            (U, C), scale = self.factors, None
        values = np.empty(len(rows), dtype=self.dtype)
        for block in storage.row_blocks(len(rows), _PAIRS):
            values[block] = storage.row_inner_products(
                U[rows[block]] @ C, U[columns[block]]
            )
        return values if scale is None else values * scale[rows, 0] * scale[columns, 0]

    def scaled(self, factors: np.ndarray) -> Similarity:
        own = 1 if self._scale is None else self._scale[:, 0]
        return Factored(self._U, self._C, own * factors)

    def toarray(self) -> np.ndarray:
        U, C = self.factors
        return storage.as_dense(U @ C @ U.T)

    def squared_norm(self) -> float:
        r"""Return the sum of the squared entries, ``||A||^2``.

        With more than 2,000 samples and columns, as for a kernel of documents, it would take
        longer than a fit, and is estimated to a few per cent [1]_: exactly on the range of a
        sketch, by random probes on the rest. The estimate is the same in every call.

        References
        ----------
        .. [1] R. A. Meyer, C. Musco, C. Musco, D. P. Woodruff. Hutch++: optimal stochastic trace
           estimation. SOSA 2021.
        """
        n = self.shape[0]
        if min(self.rank, n) <= _FEW:
            return inner(self, self)
        rng = np.random.default_rng(0)
        shapes = (n, _SKETCH), (n, _PROBES)
        sketch, probes = (
            rng.choice([-1.0, 1.0], shape).astype(self.dtype) for shape in shapes
        )
        Q, _ = np.linalg.qr(self @ sketch)
        rest = self @ (probes - Q @ (Q.T @ probes))
        return storage.sum_of_squares(self @ Q) + storage.sum_of_squares(rest) / _PROBES

    def _inner(self, other: Similarity) -> float | None:
        U, C = self.factors
        if isinstance(other, Explicit) and not other.wide:
            used = np.flatnonzero(np.diff(other._array.indptr))  # Z is symmetric
            U, Z = (
                storage.as_float64(array[used]) for array in (U, other._array[:, used])
            )
            blocks = storage.row_blocks(len(used), 1_024)  # <UCU', Z> = <UC, ZU>
            return sum(
                (storage.inner_product(U[rows] @ C, Z[rows] @ U) for rows in blocks),
                0.0,
            )
        if not isinstance(other, Factored):
            return None
        V, D = other.factors
        if min(U.shape[1], V.shape[1]) > self.shape[0]:
            return None
        M = storage.as_float64(U).T @ storage.as_float64(V)  # <UCU', VDV'> = <C M, M D>
        return storage.inner_product(
            storage.as_float64(C) @ M, M @ storage.as_float64(D)
        )
