"""Mixtures of sparse sources: the pairs that one of them has, each of them once."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.storage import index_dtype, row_blocks, stored_entries
from nmfcluster.fusion.mixture import Mixture, entropy_of, margins_of

_PAIRS = 2**13  # worked on at a time: their rows of the factors stay in the cache


class SparseMixture(Mixture):
    """Mixtures that are sparse: the values of all sources for the pairs that one of them has.

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
        blocks = row_blocks(len(pairs), _PAIRS)
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
                logs = np.log(_entries(one, other, rows, columns))
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
            np.divide(P[block], _entries(W, H, rows, columns), out=quotients[block])
        return quotients

    def _matrix(self, values: np.ndarray) -> sp.csr_array:
        return sp.csr_array((values, self._columns, self._indptr), shape=self.shape)


def _upper_half(source: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of a symmetric matrix above its diagonal, and half of those on it."""
    i, j, values = stored_entries(source)
    upper = i <= j
    i, j, values = i[upper], j[upper], values[upper]
    return i, j, np.where(i == j, values / 2, values)


def _entries(W: np.ndarray, H: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return entries of ``W H'``."""
    return np.einsum("ec,ec->e", W.take(rows, axis=0), H.take(columns, axis=0))
