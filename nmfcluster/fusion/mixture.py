"""Mixtures of similarity sources: what the Kullback-Leibler updates ask of them.

The sources are scaled to sum to 1: ``P_l = S_l / 1'S_l 1``. They are never copied for it: their
sums go into the weights. All updates see one matrix, the mixture, formed once per change of the
weights, so that an update does not depend on the number of sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import entr

from nmfcluster._arrays.storage import total
from nmfcluster.similarity import Explicit, Similarity


class Mixture(ABC):
    """Sources P_l of one set of objects, and their mixtures ``sum_l w_l P_l``.

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
    def matrix(self, weights: np.ndarray) -> Any:
        """Return the mixture with these weights as a matrix, {ndarray, csr_array} (n, n)."""

    def similarity(self, weights: np.ndarray) -> Similarity:
        """Return the mixture with these weights as a similarity."""
        return Explicit(self.matrix(weights))

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
    def cross_entropies(self, W: np.ndarray, H: np.ndarray, symmetric: bool = False) -> np.ndarray:
        """Return ``-sum_ij p_ij^l log (W H')_ij`` of every source, (L,), in nats.

        Half the work is saved where ``W H'`` is known to be symmetric.
        """

    @abstractmethod
    def told(self, W: np.ndarray, H: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Return what the pairs of every source tell of every cluster, (L, k), in nats.

        ``sum_ij p_ij^l t_ij log(m_ij / (m_i. m_.j))`` for the model ``M = W H'``, the columns of H
        summing to 1, with the share ``t_ij = w_i h_j / m_ij`` of a cluster in a pair; less the
        `shift` of every logarithm.
        """

    @abstractmethod
    def margin(self, P: Any) -> np.ndarray:
        """Return the sums of the rows of a mixture, (n,)."""

    @abstractmethod
    def entropies(self) -> np.ndarray:
        """Return ``-sum_ij p_ij^l log p_ij^l`` of every source, (L,), in nats."""


def entropy_of(values: np.ndarray, size: float = 1.0) -> float:
    """Return ``-sum p log p`` for ``p = values / size``, in float64."""
    return float(entr(values.astype(np.float64) / size).sum())


def margins_of(W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the rows and of the columns of ``W H'``, (n,), above 0."""
    tiny = np.finfo(W.dtype).tiny
    return np.maximum(W @ H.sum(axis=0), tiny), np.maximum(H @ W.sum(axis=0), tiny)
