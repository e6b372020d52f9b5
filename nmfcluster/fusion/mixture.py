"""Mixtures of similarity sources: what the Kullback-Leibler updates ask of them.

The sources are scaled to sum to 1: ``P_l = S_l / 1'S_l 1``. They are never copied for it: their
sums go into the weights. All updates see one matrix, the mixture, formed once per change of the
weights, so that an update does not depend on the number of sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from nmfcluster._arrays.storage import (
    as_matrix,
    index_dtype,
    row_blocks,
    row_dots,
    stored_entries,
    total,
)

_ROWS = 64  # rows of a dense mixture worked on at a time: a block stays in the cache
PAIRS = 2**13  # of a sparse mixture worked on at a time: their rows of the factors stay there


class _Sources:
    """Sources P_l of one set of objects, whose mixtures ``sum_l w_l P_l`` are worked with.

    Attributes
    ----------
    shape : tuple of int
        (n, n).
    dtype : dtype
        float32 or float64.
    totals : ndarray of shape (L,)
        Sums of the sources; 1 for one without an entry.
    seen : ndarray of shape (n, L), bool
        Which objects a source saw. Rows of others are 0 in it.
    complete : ndarray of shape (L,), bool
        Which sources saw all of them.
    equal : ndarray of shape (L,)
        The weights of the mean source.
    """

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        self.shape, self.dtype = sources[0].shape, sources[0].dtype
        totals = np.array([total(source) for source in sources])
        self.totals = np.where(totals > 0, totals, 1)
        self.seen = seen
        self.complete = np.asarray(seen.all(axis=0))
        self.equal = np.full(len(sources), 1 / len(sources))


class DenseMixture(_Sources):
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
        self._sources, self._blocks = sources, list(row_blocks(self.shape[0], _ROWS))

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
        out = np.empty(self.shape, dtype=self.dtype) if out is None else out
        scaled = (weights / self.totals).astype(self.dtype)
        dense = [(w, s) for w, s in zip(scaled, self._sources, strict=True) if not sp.issparse(s)]
        sparse = [(w, s) for w, s in zip(scaled, self._sources, strict=True) if sp.issparse(s)]
        for rows in self._blocks:
            weight, first = dense[0]
            np.multiply(first[rows], weight, out=out[rows])
            for weight, source in dense[1:]:
                out[rows] += weight * source[rows]
        for weight, source in sparse:
            i, j, values = stored_entries(source)
            out[i, j] += weight * values
        return out

    def matrix(self, weights: np.ndarray) -> np.ndarray:
        """Return the mixture with these weights as a matrix, {ndarray, csr_array} (n, n)."""
        return np.asarray(self.mixed(weights))

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
        product = np.zeros_like(W)
        for rows in self._blocks:  # the upper triangle: R is symmetric
            ratio = W[rows] @ H[rows.start :].T
            np.divide(P[rows, rows.start :], ratio, out=ratio)
            product[rows] += ratio @ W[rows.start :]
            product[rows.stop :] += ratio[:, rows.stop - rows.start :].T @ W[rows]
        return product

    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``R H`` and ``R' W`` for the quotient ``R = P / (W H')`` of any W and H."""
        forth, back = np.empty_like(W), np.zeros_like(H)
        for rows in self._blocks:
            ratio = W[rows] @ H.T
            np.divide(P[rows], ratio, out=ratio)
            forth[rows] = ratio @ H
            back += ratio.T @ W[rows]
        return forth, back

    def margin(self, P: Any) -> np.ndarray:
        """Return the sums of the rows of a mixture, (n,)."""
        return P.sum(axis=1)

    def cross_entropies(self, W: np.ndarray, H: np.ndarray, symmetric: bool = False) -> np.ndarray:
        """Return ``-sum_ij p_ij^l log (W H')_ij`` of every source, (L,), in nats.

        Half the work is saved where ``W H'`` is known to be symmetric.
        """
        sums = np.zeros(len(self._sources))
        for rows in self._blocks:
            logs = W[rows] @ H.T
            np.log(logs, out=logs)
            for number, source in enumerate(self._sources):
                sums[number] -= row_dots(source[rows], logs).sum(dtype=np.float64)
        return sums / self.totals

    def told(self, W: np.ndarray, H: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Return what the pairs of every source tell of every cluster, (L, k), in nats.

        ``sum_ij p_ij^l t_ij log(m_ij / (m_i. m_.j))`` for the model ``M = W H'``, the columns of H
        summing to 1, with the share ``t_ij = w_i h_j / m_ij`` of a cluster in a pair; less the
        `shift` of every logarithm.
        """
        own, others = margins_of(W, H)
        told = np.zeros((len(self._sources), W.shape[1]))
        for rows in self._blocks:
            model = W[rows] @ H.T
            factor = (np.log(model / own[rows, None] / others) - shift) / model
            for number, source in enumerate(self._sources):
                told[number] += (((source[rows] * factor) @ H) * W[rows]).sum(axis=0)
        return told / self.totals[:, None]

    def entropies(self) -> np.ndarray:
        """Return ``-sum_ij p_ij^l log p_ij^l`` of every source, (L,), in nats."""
        entropies = []
        for source, size in zip(self._sources, self.totals, strict=True):
            if sp.issparse(source):
                entropies.append(entropy_of(stored_entries(source)[2], size))
            else:
                entropies.append(sum(entropy_of(source[rows], size) for rows in self._blocks))
        return np.array(entropies)


class SparseMixture(_Sources):
    """Mixtures that are sparse: the values of all sources for the pairs that one of them has.

    Its methods are those of `DenseMixture`, which says what they return.

    A pair that no source has costs nothing: what the model puts there is known from its sum. The
    sources are symmetric: of i, j and j, i one is kept. An object with itself counts half, so that
    every entry stands for two.

    Parameters
    ----------
    sources : list of csr_array of shape (n, n)
    seen : ndarray of shape (n, L), bool
    """

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        super().__init__(sources, seen)
        n = self.shape[0]
        stored = [_upper_half(source) for source in sources]
        numbers = [i.astype(np.int64) * n + j for i, j, _ in stored]
        pairs = np.unique(np.concatenate(numbers))
        spread = [
            np.bincount(np.searchsorted(pairs, number), values, len(pairs))
            for number, (_, _, values) in zip(numbers, stored, strict=True)
        ]
        self._values = np.stack(spread).astype(self.dtype)
        kind = index_dtype(max(n, len(pairs)))
        self._rows: np.ndarray = (pairs // n).astype(kind)
        self._columns: np.ndarray = (pairs % n).astype(kind)
        self._indptr = np.searchsorted(self._rows, np.arange(n + 1)).astype(kind)
        blocks = row_blocks(len(pairs), PAIRS)
        self._blocks = [(block, self._rows[block], self._columns[block]) for block in blocks]

    def mixed(self, weights: np.ndarray, out: Any = None) -> Any:
        return (weights / self.totals).astype(self.dtype) @ self._values

    def matrix(self, weights: np.ndarray) -> sp.csr_array:
        half = self._matrix(self.mixed(weights))
        return sp.csr_array(half + half.T)

    def ratio_product(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        half = self._matrix(self._quotients(P, W, H))
        return half @ W + half.T @ W

    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = self._matrix(self._quotients(P, W, H))
        back = self._matrix(self._quotients(P, H, W)).T
        return there @ H + back @ H, there.T @ W + back.T @ W

    def margin(self, P: Any) -> np.ndarray:
        n = self.shape[0]
        sums = np.bincount(self._rows, P, n) + np.bincount(self._columns, P, n)
        return sums.astype(self.dtype)

    def cross_entropies(self, W: np.ndarray, H: np.ndarray, symmetric: bool = False) -> np.ndarray:
        sums, times = np.zeros(len(self.totals)), 2 if symmetric else 1
        for one, other in ((W, H),) if symmetric else ((W, H), (H, W)):
            for block, rows, columns in self._blocks:
                logs = np.log(entries(one, other, rows, columns))
                sums -= times * (self._values[:, block] * logs).sum(axis=1, dtype=np.float64)
        return sums / self.totals

    def told(self, W: np.ndarray, H: np.ndarray, shift: float = 0.0) -> np.ndarray:
        told = np.zeros((len(self.totals), W.shape[1]))
        for one, other in ((W, H), (H, W)):
            own, others = margins_of(one, other)
            for block, rows, columns in self._blocks:
                shares = one.take(rows, axis=0) * other.take(columns, axis=0)
                model = shares.sum(axis=1)
                factor = (np.log(model / own[rows] / others[columns]) - shift) / model
                told += (self._values[:, block] * factor) @ shares
        return told / self.totals[:, None]

    def entropies(self) -> np.ndarray:
        same = self._rows == self._columns
        return np.array(
            [
                entropy_of(2 * values[same], size) + 2 * entropy_of(values[~same], size)
                for values, size in zip(self._values, self.totals, strict=True)
            ]
        )

    def _quotients(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the entries of a mixture over those of ``W H'``."""
        quotients = np.empty_like(P)
        for block, rows, columns in self._blocks:
            np.divide(P[block], entries(W, H, rows, columns), out=quotients[block])
        return quotients

    def _matrix(self, values: np.ndarray) -> sp.csr_array:
        return sp.csr_array((values, self._columns, self._indptr), shape=self.shape)


Mixture = DenseMixture | SparseMixture


def make_mixture(sources: list[Any], seen: np.ndarray) -> Mixture:
    """Return the mixture of sources: a sparse one if all of them are sparse.

    Parameters
    ----------
    sources : list of {ndarray, csr_array} of shape (n, n)
        Symmetric, nonnegative, all of one dtype, none 0 throughout.
    seen : ndarray of shape (n, L), bool

    Returns
    -------
    Mixture
    """
    sources = [as_matrix(source) for source in sources]
    sparse = all(sp.issparse(source) for source in sources)
    return SparseMixture(sources, seen) if sparse else DenseMixture(sources, seen)


def _upper_half(source: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of a symmetric matrix above its diagonal, and half of those on it."""
    i, j, values = stored_entries(source)
    upper = i <= j
    i, j, values = i[upper], j[upper], values[upper]
    return i, j, np.where(i == j, values / 2, values)


def entries(W: np.ndarray, H: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return entries of ``W H'``."""
    return np.einsum("ec,ec->e", W.take(rows, axis=0), H.take(columns, axis=0))


def entropy_of(values: np.ndarray, size: float = 1.0) -> float:
    """Return ``-sum p log p`` for ``p = values / size``, in float64."""
    return float(entr(values.astype(np.float64) / size).sum())


def margins_of(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the rows and of the columns of ``W H'``, (n,), above 0."""
    tiny = np.finfo(W.dtype).tiny
    return np.maximum(W @ H.sum(axis=0), tiny), np.maximum(H @ W.sum(axis=0), tiny)
