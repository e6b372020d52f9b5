"""Convex combinations of similarity sources, and what the Kullback-Leibler updates ask of them.

The sources are scaled to sum to 1: ``P_l = S_l / 1'S_l 1``. They are never copied for it: their
sums go into the weights. All updates see one matrix, the mixture, formed once per change of the
weights, so that an update does not depend on the number of sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from nmfcluster._arrays.storage import as_matrix, row_blocks, row_dots, stored_entries, total
from nmfcluster.similarity import Explicit, Similarity

_ROWS = 64  # of a dense mixture at a time, so that a block stays in cache
_ENTRIES = 2**13  # of a sparse one


class Mixture(ABC):
    """Sources P_l of one set of objects, and their mixtures ``sum_l w_l P_l``.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    dtype : dtype
        float32 or float64.
    totals : ndarray of shape (L,)
        Sums of the sources as they were given.
    seen : ndarray of shape (n, L), bool
        Which objects a source saw. Rows of others are 0 in it.
    complete : ndarray of shape (L,), bool
        Which sources saw all of them.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    totals: np.ndarray
    seen: np.ndarray
    complete: np.ndarray

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        self.shape, self.dtype = sources[0].shape, sources[0].dtype
        self.totals = np.array([total(source) for source in sources])
        self.seen = seen
        self.complete = np.asarray(seen.all(axis=0))

    @abstractmethod
    def mixed(self, weights: np.ndarray, out: Any = None) -> Any:
        """Return ``sum_l w_l P_l``, in the place of an earlier mixture if one is given.

        Parameters
        ----------
        weights : ndarray of shape (L,)
        out : object, default=None
            What this method returned before, and is wanted no more.

        Returns
        -------
        object
            The mixture, for `ratio_product` and `ratio_products`.
        """

    @abstractmethod
    def similarity(self, weights: np.ndarray) -> Similarity:
        """Return the mixture with these weights as a similarity."""

    @abstractmethod
    def ratio_product(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return ``(P / (W H')) W``, the quotient entry by entry, for a symmetric ``W H'``.

        Parameters
        ----------
        P : object
            A mixture.
        W, H : ndarray of shape (n, k)
            Positive.

        Returns
        -------
        ndarray of shape (n, k)
        """

    @abstractmethod
    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``R H`` and ``R' W`` for the quotient ``R = P / (W H')`` of any W and H."""

    @abstractmethod
    def cross_entropies(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return ``-sum_ij p_ij^l log (W H')_ij`` of every source, (L,), in nats."""

    @abstractmethod
    def margin(self, P: Any) -> np.ndarray:
        """Return the sums of the rows of a mixture, (n,)."""

    @abstractmethod
    def entropies(self) -> np.ndarray:
        """Return ``-sum_ij p_ij^l log p_ij^l`` of every source, (L,), in nats."""


def make_mixture(sources: list[Any], seen: np.ndarray) -> Mixture:
    """Return the mixture of sources: a sparse one if all of them are sparse.

    Parameters
    ----------
    sources : list of {ndarray, csr_array} of shape (n, n)
        Symmetric, nonnegative, all of one dtype, none of them 0.
    seen : ndarray of shape (n, L), bool

    Returns
    -------
    Mixture
    """
    sources = [as_matrix(source) for source in sources]
    sparse = all(sp.issparse(source) for source in sources)
    return SparseMixture(sources, seen) if sparse else DenseMixture(sources, seen)


class DenseMixture(Mixture):
    """Mixtures that are arrays: formed and worked on some rows at a time.

    Parameters
    ----------
    sources : list of {ndarray, csr_array} of shape (n, n)
    seen : ndarray of shape (n, L), bool

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.fusion.mixture import make_mixture
    >>> mixture = make_mixture([np.eye(2), np.ones((2, 2))], np.ones((2, 2), dtype=bool))
    >>> mixture.mixed(np.array([0.5, 0.5]))
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        super().__init__(sources, seen)
        self._sources = sources

    def mixed(self, weights: np.ndarray, out: Any = None) -> Any:
        out = np.empty(self.shape, dtype=self.dtype) if out is None else out
        scaled = (weights / self.totals).astype(self.dtype)
        dense = [(w, s) for w, s in zip(scaled, self._sources, strict=True) if not sp.issparse(s)]
        sparse = [(w, s) for w, s in zip(scaled, self._sources, strict=True) if sp.issparse(s)]
        for rows in row_blocks(self.shape[0], _ROWS):
            weight, first = dense[0]
            np.multiply(first[rows], weight, out=out[rows])
            for weight, source in dense[1:]:
                out[rows] += weight * source[rows]
        for weight, source in sparse:
            i, j, values = stored_entries(source)
            out[i, j] += weight * values
        return out

    def similarity(self, weights: np.ndarray) -> Similarity:
        return Explicit(self.mixed(weights))

    def ratio_product(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        product = np.zeros_like(W)
        for rows in row_blocks(len(W), _ROWS):  # the upper triangle: R is symmetric
            ratio = W[rows] @ H[rows.start :].T
            np.divide(P[rows, rows.start :], ratio, out=ratio)
            product[rows] += ratio @ W[rows.start :]
            product[rows.stop :] += ratio[:, rows.stop - rows.start :].T @ W[rows]
        return product

    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        forth, back = np.empty_like(W), np.zeros_like(H)
        for rows in row_blocks(len(W), _ROWS):
            ratio = W[rows] @ H.T
            np.divide(P[rows], ratio, out=ratio)
            forth[rows] = ratio @ H
            back += ratio.T @ W[rows]
        return forth, back

    def margin(self, P: Any) -> np.ndarray:
        return P.sum(axis=1)

    def cross_entropies(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        found = np.zeros(len(self._sources))
        for rows in row_blocks(len(W), _ROWS):
            logs = W[rows] @ H.T
            np.log(logs, out=logs)
            for number, source in enumerate(self._sources):
                found[number] -= row_dots(source[rows], logs).sum(dtype=np.float64)
        return found / self.totals

    def entropies(self) -> np.ndarray:
        found = []
        for source, size in zip(self._sources, self.totals, strict=True):
            if sp.issparse(source):
                found.append(_entropy(stored_entries(source)[2], size))
            else:
                blocks = row_blocks(len(source), _ROWS)
                found.append(sum(_entropy(source[rows], size) for rows in blocks))
        return np.array(found)


class SparseMixture(Mixture):
    """Mixtures that are sparse: the values of all sources in the places where one has an entry.

    A place that no source has costs nothing: what the model puts there is known from its sum.

    Parameters
    ----------
    sources : list of csr_array of shape (n, n)
    seen : ndarray of shape (n, L), bool
    """

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        super().__init__(sources, seen)
        n = self.shape[0]
        stored = [stored_entries(source) for source in sources]
        numbers = [i.astype(np.int64) * n + j for i, j, _ in stored]
        places = np.unique(np.concatenate(numbers))
        self._values = np.stack(
            [
                np.bincount(np.searchsorted(places, number), values, len(places))
                for number, (_, _, values) in zip(numbers, stored, strict=True)
            ]
        ).astype(self.dtype)
        kind = np.int32 if max(n, len(places)) < np.iinfo(np.int32).max else np.int64
        self._rows: np.ndarray = (places // n).astype(kind)
        self._columns: np.ndarray = (places % n).astype(kind)
        self._indptr = np.searchsorted(self._rows, np.arange(n + 1)).astype(kind)

    def mixed(self, weights: np.ndarray, out: Any = None) -> Any:
        return (weights / self.totals).astype(self.dtype) @ self._values

    def similarity(self, weights: np.ndarray) -> Similarity:
        return Explicit(self._matrix(self.mixed(weights)))

    def ratio_product(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        return self._ratio(P, W, H) @ W

    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratio = self._ratio(P, W, H)
        return ratio @ H, ratio.T @ W

    def margin(self, P: Any) -> np.ndarray:
        return np.bincount(self._rows, P, self.shape[0]).astype(self.dtype)

    def cross_entropies(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        found = np.zeros(len(self.totals))
        for places in row_blocks(len(self._rows), _ENTRIES):
            logs = np.log(self._model(W, H, places))
            found -= (self._values[:, places] * logs).sum(axis=1, dtype=np.float64)
        return found / self.totals

    def entropies(self) -> np.ndarray:
        return np.array([_entropy(v, t) for v, t in zip(self._values, self.totals, strict=True)])

    def _model(self, W: np.ndarray, H: np.ndarray, places: slice) -> np.ndarray:
        """Return entries of ``W H'``."""
        rows, columns = self._rows[places], self._columns[places]
        return np.einsum("ec,ec->e", W.take(rows, axis=0), H.take(columns, axis=0))

    def _ratio(self, P: Any, W: np.ndarray, H: np.ndarray) -> sp.csr_array:
        ratio = np.empty_like(P)
        for places in row_blocks(len(P), _ENTRIES):
            np.divide(P[places], self._model(W, H, places), out=ratio[places])
        return self._matrix(ratio)

    def _matrix(self, values: np.ndarray) -> sp.csr_array:
        return sp.csr_array((values, self._columns, self._indptr), shape=self.shape)


def _entropy(values: np.ndarray, size: float) -> float:
    """Return ``-sum p log p`` for ``p = values / size``, in float64."""
    return float(entr(values.astype(np.float64) / size).sum())
