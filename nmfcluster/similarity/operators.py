"""Similarities as operators: the form of all of them, arrays, and weighted sums.

Sparse or dense, explicit or factored, float32 or float64 is decided here and in `_utils`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._utils import storage
from nmfcluster._utils.linalg import RowBlocks

SAMPLED = 100_000  # random entries of a similarity: enough for their median, and .999-quantile


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
        """Return the product with a block of vectors, or a stack of them, (..., n, k)."""

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

    @property
    def has_root(self) -> bool:
        """Whether A = VV' with a V of at most n / 2 columns: its eigenpairs are those of V'V."""
        return False

    def root(self) -> Any:
        """Return that V, dense or CSR, where there is one."""
        raise NotImplementedError

    def stored_off_diagonal(self) -> np.ndarray | None:
        """Return the nonzero entries above the diagonal if they are stored as such, else None."""
        return None

    @property
    def parts(self) -> np.ndarray | None:
        """The connected component of every sample, (n,), if what is stored shows it."""
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

    def _inner(self, other: Similarity) -> float | None:
        """Return the inner product with an operator that is not a sum; None: by blocks."""
        return None

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
        if array.dtype.kind not in "fiub":
            raise TypeError(f"array must hold real numbers, got dtype {array.dtype}.")
        self._array = storage.as_float(array)
        self.shape, self.dtype = array.shape, self._array.dtype
        self.wide = self.can_be_thinned = not sp.issparse(array)

    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        if H.ndim == 2:
            return self._rows.product(H)
        if self.wide:
            stacked = np.moveaxis(H, -2, 0)
            product = self._rows.product(stacked.reshape(self.shape[0], -1))
            return np.moveaxis(product.reshape(stacked.shape), 0, -2)
        # a sparse matrix is slower on one wide block; the product of one alone is not copied
        products = [self._rows.product(block) for block in H.reshape(-1, *H.shape[-2:])]
        return (products[0] if len(products) == 1 else np.stack(products)).reshape(
            H.shape
        )

    @cached_property
    def _rows(self) -> RowBlocks:
        return RowBlocks(self._array)

    def __add__(self, other: Similarity) -> Similarity:
        if isinstance(other, Explicit) and other.shape == self.shape:
            return Explicit(self._array + other._array)
        return super().__add__(other)

    def split(self) -> tuple[Similarity, Similarity | None]:
        negative = storage.minimum(self._array, 0)
        if storage.total(negative) == 0:
            return self, None
        return Explicit(self._array - negative), Explicit(abs(negative))

    def is_nonnegative(self) -> bool:
        """Return whether no entry is below 0, and some are above."""
        return float(self._array.min()) >= 0 < float(self._array.max())

    def take(self, indices: np.ndarray) -> Similarity:
        return Explicit(self._array[indices][:, indices])

    def collapse(self, groups: np.ndarray) -> Similarity:
        E = storage.group_indicator(groups, self.dtype)
        return Explicit(E.T @ (self._array @ E))

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        values = self._array[rows, columns]
        return np.asarray(values.toarray() if sp.issparse(values) else values).ravel()

    @cached_property
    def parts(self) -> np.ndarray | None:
        return (
            None if self.wide else connected_components(self._array, directed=False)[1]
        )

    def stored_off_diagonal(self) -> np.ndarray | None:
        if self.wide:
            return None
        found = sp.triu(self._array, 1).data
        return found[found != 0]

    def scaled(self, factors: np.ndarray) -> Similarity:
        return Explicit(
            storage.scaled_rows(storage.scaled_rows(self._array, factors).T, factors).T
        )

    def without_diagonal(self) -> Similarity:
        return Explicit(storage.without_diagonal(self._array))

    def toarray(self) -> np.ndarray:
        return self._array.toarray() if sp.issparse(self._array) else self._array.copy()

    def _inner(self, other: Similarity) -> float | None:
        if not isinstance(other, Explicit):
            return other._inner(self)
        if sp.issparse(self._array) or sp.issparse(other._array):
            return storage.inner_product(
                storage.as_float64(self._array), storage.as_float64(other._array)
            )
        return storage.inner_product(self._array, other._array)


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
        pairs: list[tuple[Similarity, float]] = []
        for term, weight in zip(terms, weights, strict=True):
            inside = term.terms if isinstance(term, WeightedSum) else [(term, 1.0)]
            pairs += [(each, float(w * weight)) for each, w in inside]
        if len({term.shape for term, _ in pairs}) != 1:
            raise ValueError(
                f"terms must have one shape, got {[term.shape for term, _ in pairs]}."
            )
        arrays = [term._array * w for term, w in pairs if isinstance(term, Explicit)]
        #: the terms left after merging, and their weights
        self.terms: list[tuple[Similarity, float]]
        self.terms = [(term, w) for term, w in pairs if not isinstance(term, Explicit)]
        if arrays:
            self.terms.append((Explicit(reduce(add, arrays)), 1.0))
        self.shape = pairs[0][0].shape
        self.dtype = np.result_type(*[term.dtype for term, _ in pairs])
        self.wide = any(term.wide for term, _ in self.terms)
        self.can_be_thinned = any(term.can_be_thinned for term, _ in self.terms)

    def __matmul__(self, H: np.ndarray) -> np.ndarray:
        # python floats do not promote float32
        return reduce(
            add, ((term @ H) * w if w != 1 else term @ H for term, w in self.terms)
        )

    def split(self) -> tuple[Similarity, Similarity | None]:
        parts: dict[bool, list[tuple[Similarity, float]]] = {True: [], False: []}
        for term, weight in self.terms:
            for part, is_gain in zip(
                term.split(), (weight >= 0, weight < 0), strict=True
            ):
                if part is not None:
                    parts[is_gain].append((part, abs(weight)))
        gains, losses = parts[True], parts[False]
        N = WeightedSum(*zip(*losses, strict=True)) if losses else None
        return WeightedSum(*zip(*(gains or [(losses[0][0], 0.0)]), strict=True)), N

    def _of_terms(self, change: Callable[[Similarity], Similarity]) -> WeightedSum:
        return WeightedSum(
            [change(term) for term, _ in self.terms], [w for _, w in self.terms]
        )

    def take(self, indices: np.ndarray) -> Similarity:
        return self._of_terms(lambda term: term.take(indices))

    def collapse(self, groups: np.ndarray) -> Similarity:
        return self._of_terms(lambda term: term.collapse(groups))

    @property
    def parts(self) -> np.ndarray | None:
        return self.terms[0][0].parts if len(self.terms) == 1 else None

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return reduce(
            add, (term.entries(rows, columns) * weight for term, weight in self.terms)
        )

    def scaled(self, factors: np.ndarray) -> Similarity:
        return self._of_terms(lambda term: term.scaled(factors))

    def squared_norm(self) -> float:
        square = 0.0
        for i, (term, weight) in enumerate(self.terms):
            square += weight**2 * term.squared_norm()
            square += sum(
                2 * weight * w * inner(term, other) for other, w in self.terms[i + 1 :]
            )
        return square

    def toarray(self) -> np.ndarray:
        return reduce(add, (term.toarray() * weight for term, weight in self.terms))


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
    value = A._inner(B)
    return (
        sum(storage.inner_product(A @ E, B @ E) for E in unit_blocks(A))
        if value is None
        else value
    )


def unit_blocks(A: Similarity) -> Iterator[np.ndarray]:
    """Yield the identity, some columns at a time."""
    n = A.shape[0]
    for block in storage.row_blocks(n):
        yield np.eye(n, block.stop - block.start, -block.start, dtype=A.dtype)
