"""Mixtures of which at least one source is dense, and the choice of the kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.storage import as_matrix, row_blocks, row_dots, stored_entries
from nmfcluster.fusion.mixture import Mixture, entropy_of, margins_of
from nmfcluster.fusion.sparse import SparseMixture

_ROWS = 64  # rows of a dense mixture worked on at a time: a block stays in the cache


class DenseMixture(Mixture):
    """Mixtures that are arrays: formed and worked on some rows at a time.

    Parameters
    ----------
    sources : list of {ndarray, csr_array} of shape (n, n)
    seen : ndarray of shape (n, L), bool

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.fusion.dense import make_mixture
    >>> mixture = make_mixture([np.eye(2), np.ones((2, 2))], np.ones((2, 2), dtype=bool))
    >>> mixture.mixed(np.array([0.5, 0.5]))
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        super().__init__(sources, seen)
        self._sources, self._blocks = sources, list(row_blocks(self.shape[0], _ROWS))

    def mixed(self, weights: np.ndarray, out: Any = None) -> Any:
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
        return np.asarray(self.mixed(weights))

    def ratio_product(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        product = np.zeros_like(W)
        for rows in self._blocks:  # the upper triangle: R is symmetric
            ratio = W[rows] @ H[rows.start :].T
            np.divide(P[rows, rows.start :], ratio, out=ratio)
            product[rows] += ratio @ W[rows.start :]
            product[rows.stop :] += ratio[:, rows.stop - rows.start :].T @ W[rows]
        return product

    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        forth, back = np.empty_like(W), np.zeros_like(H)
        for rows in self._blocks:
            ratio = W[rows] @ H.T
            np.divide(P[rows], ratio, out=ratio)
            forth[rows] = ratio @ H
            back += ratio.T @ W[rows]
        return forth, back

    def margin(self, P: Any) -> np.ndarray:
        return P.sum(axis=1)

    def cross_entropies(self, W: np.ndarray, H: np.ndarray, symmetric: bool = False) -> np.ndarray:
        sums = np.zeros(len(self._sources))
        for rows in self._blocks:
            logs = W[rows] @ H.T
            np.log(logs, out=logs)
            for number, source in enumerate(self._sources):
                sums[number] -= row_dots(source[rows], logs).sum(dtype=np.float64)
        return sums / self.totals

    def told(self, W: np.ndarray, H: np.ndarray, shift: float = 0.0) -> np.ndarray:
        own, others = margins_of(W, H)
        told = np.zeros((len(self._sources), W.shape[1]))
        for rows in self._blocks:
            model = W[rows] @ H.T
            factor = (np.log(model / own[rows, None] / others) - shift) / model
            for number, source in enumerate(self._sources):
                told[number] += (((source[rows] * factor) @ H) * W[rows]).sum(axis=0)
        return told / self.totals[:, None]

    def entropies(self) -> np.ndarray:
        entropies = []
        for source, size in zip(self._sources, self.totals, strict=True):
            if sp.issparse(source):
                entropies.append(entropy_of(stored_entries(source)[2], size))
            else:
                entropies.append(sum(entropy_of(source[rows], size) for rows in self._blocks))
        return np.array(entropies)


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
