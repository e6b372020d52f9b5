"""A symmetric matrix that is scaled to sum to 1: how often two objects occur together.

The objective of fusion: the losses of the sources, and the weights that are best for them.
"""

from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import entr

from nmfcluster._utils.storage import (
    index_dtype,
    row_blocks,
    row_dots,
    stored_entries,
    total,
)

LEAST = 1e-6  # nats that a matrix must hold about pairs: less is rounding of float32
_ROWS = 64  # of a dense matrix that are worked on at a time: a block stays in the cache
_PAIRS = (
    2**13
)  # of a sparse matrix that are worked on at a time: their rows of factors stay there


class DensePairs:
    """An array P, worked on some rows at a time.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric, nonnegative. Not copied: its sum divides results.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
    margin : ndarray of shape (n,)
        The sums of the rows of P.
    entropy : float
        ``-sum p log p``, in nats.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.shape, self.dtype, self._matrix = matrix.shape, matrix.dtype, matrix
        self._size, self._blocks = (
            total(matrix) or 1.0,
            list(row_blocks(len(matrix), _ROWS)),
        )
        self.margin = matrix.sum(axis=1) / self._size
        self.entropy = sum(
            entropy_of(matrix[rows], self._size) for rows in self._blocks
        )

    def ratio_product(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return ``(P / (W H')) W``, the quotient entry by entry, for a symmetric ``W H'``.

        Parameters
        ----------
        W, H : ndarray of shape (n, k)
            Positive.

        Returns
        -------
        ndarray of shape (n, k)
        """
        product = np.zeros_like(W)
        for rows in self._blocks:  # the upper triangle: R is symmetric
            ratio = W[rows] @ H[rows.start :].T
            np.divide(self._matrix[rows, rows.start :], ratio, out=ratio)
            product[rows] += ratio @ W[rows.start :]
            product[rows.stop :] += ratio[:, rows.stop - rows.start :].T @ W[rows]
        return product / self._size

    def cross_entropy(self, W: np.ndarray, H: np.ndarray) -> float:
        """Return ``-sum_ij p_ij log (W H')_ij`` for a symmetric ``W H'``, in nats."""
        return cross_entropy(self._matrix, W, H)


class SparsePairs:
    """A sparse P: of i, j and j, i one is kept, and an object with itself counts half.

    A pair that is not stored costs nothing: what a model puts there is known from its sum. The
    methods are those of `DensePairs`, which says what they return.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
    """

    def __init__(self, matrix: sp.csr_array) -> None:
        n, size = matrix.shape[0], total(matrix) or 1.0
        i, j, values = stored_entries(matrix)
        upper = i <= j
        i, j, values = i[upper], j[upper], values[upper] / size
        self.shape, self.dtype = matrix.shape, matrix.dtype
        self.entropy = 2 * entropy_of(values[i != j]) + entropy_of(values[i == j])
        self._values = np.where(i == j, values / 2, values).astype(self.dtype)
        kind = index_dtype(max(n, len(i)))
        self._rows, self._columns = i.astype(kind), j.astype(kind)
        self._indptr = np.searchsorted(i, np.arange(n + 1)).astype(kind)
        self._blocks = list(row_blocks(len(i), _PAIRS))
        sums = np.bincount(i, self._values, n) + np.bincount(j, self._values, n)
        self.margin = sums.astype(self.dtype)

    def ratio_product(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        quotients = np.empty_like(self._values)
        for block in self._blocks:
            model = _entries(W, H, self._rows[block], self._columns[block])
            np.divide(self._values[block], model, out=quotients[block])
        half = sp.csr_array((quotients, self._columns, self._indptr), shape=self.shape)
        return half @ W + half.T @ W

    def cross_entropy(self, W: np.ndarray, H: np.ndarray) -> float:
        left = 0.0
        for block in self._blocks:
            logs = np.log(_entries(W, H, self._rows[block], self._columns[block]))
            left -= float((self._values[block] * logs).sum(dtype=np.float64))
        return 2 * left


Pairs = DensePairs | SparsePairs


def make_pairs(matrix: Any) -> Pairs:
    """Return the pairs of a symmetric, nonnegative matrix, {ndarray, csr_array} (n, n)."""
    return SparsePairs(matrix) if sp.issparse(matrix) else DensePairs(matrix)


def cross_entropy(S: Any, W: np.ndarray, H: np.ndarray) -> float:
    """Return ``-sum_ij p_ij log (W H')_ij`` of a matrix scaled to sum to 1, in nats.

    Parameters
    ----------
    S : {ndarray, csr_array} of shape (n, p)
    W, H : ndarray of shape (n, k) and (p, k)
    """
    left = 0.0
    if sp.issparse(S):
        i, j, values = stored_entries(S)
        for block in row_blocks(len(values), _PAIRS):
            left -= float(values[block] @ np.log(_entries(W, H, i[block], j[block])))
    else:
        for rows in row_blocks(len(S), _ROWS):
            left -= float(
                row_dots(S[rows], np.log(W[rows] @ H.T)).sum(dtype=np.float64)
            )
    return left / (total(S) or 1.0)


def left_unexplained(S: sp.csr_array, W: np.ndarray, H: np.ndarray) -> float:
    r"""Return the share of what there is to explain of pairs that a model leaves unexplained.

    Pairs are drawn by the model or, with a probability of their own, by independent objects:

    .. math:: \min_{0 \le \lambda \le 1} \frac{D\bigl(P \,\|\, \lambda W H' / M
              + (1 - \lambda)\, r s'\bigr)}{D(P \,\|\, r s')} , \quad P = S / 1'S1 ,

    r and s the margins of P, and M the mass of the model on the rows and columns that hold entries.

    Parameters
    ----------
    S : csr_array of shape (n, p)
    W, H : ndarray of shape (n, k) and (p, k)

    Returns
    -------
    float
        Between 0 and 1; 1, too, where there is nothing to explain.
    """
    i, j, values = stored_entries(S)
    p = values.astype(np.float64) / (total(S) or 1.0)
    r, s = np.bincount(i, p, S.shape[0]), np.bincount(j, p, S.shape[1])
    there = entropy_of(r) + entropy_of(s) - entropy_of(p)
    if there <= LEAST:
        return 1.0
    mass = W[r > 0].sum(axis=0, dtype=np.float64) @ H[s > 0].sum(
        axis=0, dtype=np.float64
    )
    times = np.empty(
        len(p)
    )  # how often as by independence; above 0, which less 1 would not tell
    for block in row_blocks(len(p), _PAIRS):
        rows, columns = i[block], j[block]
        times[block] = _entries(W, H, rows, columns) / mass / r[rows] / s[columns]

    def slope(share: float) -> float:
        return float(p @ ((times - 1) / (1 - share + share * times)))

    share = (
        0.0
        if slope(0) <= 0
        else 1.0
        if slope(1) >= 0
        else brentq(slope, 0, 1, xtol=1e-4)
    )
    return float(1 - p @ np.log(1 - share + share * times) / there)


def told_of_clusters(S: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return what the pairs of a matrix tell of every cluster, (k,), in nats times its sum.

    ``sum_ij s_ij t_ij log(m_ij / (m_i. m_.j))`` for the model ``M = W H'``, scaled to sum to 1,
    with the share ``t_ij = w_i h_j / (W H')_ij`` of a cluster in a pair.

    Parameters
    ----------
    S : {ndarray, csr_array} of shape (n, p)
        Its entries can be negative.
    W, H : ndarray of shape (n, k) and (p, k)
    """
    i, j, values = stored_entries(sp.csr_array(S))
    own, others = W @ H.sum(axis=0), H @ W.sum(axis=0)
    mass, told = own.sum(), np.zeros(W.shape[1])
    for block in row_blocks(len(values), _PAIRS):
        rows, columns = i[block], j[block]
        shares = W.take(rows, axis=0) * H.take(columns, axis=0)
        model = shares.sum(axis=1)
        gains = values[block] * np.log(model * mass / own[rows] / others[columns])
        told += (gains / model) @ shares
    return told


def _entries(
    W: np.ndarray, H: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return entries of ``W H'``."""
    return np.einsum("ec,ec->e", W.take(rows, axis=0), H.take(columns, axis=0))


def entropy_of(values: np.ndarray, size: float = 1.0) -> float:
    """Return ``-sum p log p`` for ``p = values / size``, in float64."""
    return float(entr(values.astype(np.float64) / size).sum())


@dataclass(frozen=True)
class FusionObjective:
    """How far pairs are from a model: ``D(P || W H')``, ``W = H diag(q)``.

    Attributes
    ----------
    pairs : Pairs
    relative : bool
        Whether it is a share of what there is to explain, ``D(P || r r')`` with the margins r of
        P; else it is in nats.
    shift : float
        What a graph of objects and landmarks adds to both, in nats.
    """

    pairs: Pairs
    relative: bool
    shift: float

    wide = False  # starts side by side are not faster: a quotient is as large as the similarity

    @cached_property
    def there(self) -> float:
        """What there is to explain, in nats."""
        return max(
            2 * entropy_of(self.pairs.margin) - self.pairs.entropy - self.shift, LEAST
        )

    @property
    def constant(self) -> float:
        """Scale of a change of the loss."""
        return 1.0 if self.relative else self.there

    def loss(self, W: np.ndarray) -> float:
        """Return the loss of a factor W, (n, k), that sums to 1."""
        left = (
            self.pairs.cross_entropy(W, W / W.sum(axis=0))
            - self.pairs.entropy
            - self.shift
        )
        return left / self.there if self.relative else left


def gibbs_weights(losses: np.ndarray, eta: float, prior: np.ndarray) -> np.ndarray:
    """Return the weights ``a_l ~ p_l exp(-x_l / eta)`` that are best for losses (eq. 7).

    They minimise ``a'x + eta D(a || p)``; with equal p that is ``a'x - eta H(a)``, but for a
    constant.

    Parameters
    ----------
    losses : ndarray of shape (L,)
        The x_l.
    eta : float
        In the unit of the losses; 0 gives all weight to the first of the sources with the smallest
        loss, infinity gives every source its p.
    prior : ndarray of shape (L,)
        The p_l, which sum to 1. One of 0 leaves a source out; all can be.

    Returns
    -------
    ndarray of shape (L,)

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.fusion.kl_loss import gibbs_weights
    >>> gibbs_weights(np.array([1.0, 1.0, 1.0 + np.log(2)]), 1.0, np.full(3, 1 / 3))
    array([0.4, 0.4, 0.2])
    """
    if np.isinf(eta) or not prior.any():
        return prior
    losses = np.where(prior > 0, losses, np.inf)
    if eta == 0:
        return np.eye(len(losses))[losses.argmin()]
    with np.errstate(over="ignore"):  # a quotient that overflows is a weight of 0
        shares = prior * np.exp(-(losses - losses.min()) / eta)
    return np.asarray(shares / fsum(shares))  # the same in any order of the sources


def smallest_objective(losses: np.ndarray, eta: float, prior: np.ndarray) -> float:
    """Return the smallest ``a'x + eta D(a || p)``: ``-eta log sum_l p_l exp(-x_l / eta)``.

    It lies between the smallest loss, for eta 0, and the mean loss, for infinity.
    """
    losses, prior = losses[prior > 0], prior[prior > 0]
    if np.isinf(eta) or not len(prior):
        return fsum(prior * losses)
    best = float(losses.min())
    if eta == 0:
        return best
    with np.errstate(
        over="ignore"
    ):  # the exponential of a quotient that overflows is 0
        rest = fsum(prior * np.expm1(-(losses - best) / eta))
    return best - eta * float(np.log1p(rest))
