"""Kullback-Leibler losses of sources, and the weights that are best for them.

A symmetric matrix P, scaled to sum to 1, holds the probability that two objects occur together.
"""

from math import fsum

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import entr

from nmfcluster._utils.storage import (
    row_blocks,
    row_inner_products,
    stored_entries,
    total,
)

# smallest information of an informative matrix, in nats: rounding to float32 gives less
MIN_INFORMATION = 1e-6
_DENSE_ROWS = 64  # rows of a block of a dense matrix, which then fits the cache
# entries of a block of a sparse matrix: their rows of the factors then fit the cache
_SPARSE_ENTRIES = 2**13


class DensePairs:
    """A dense P, processed in blocks of rows.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric and nonnegative. It is not copied or scaled; results are divided by its sum.

    Attributes
    ----------
    margin : ndarray of shape (n,)
        The sums of the rows of P.
    entropy : float
        ``-sum p log p``, in nats.
    """

    def __init__(self, matrix):
        self._matrix = matrix
        self._size = total(matrix) or 1.0
        self._blocks = list(row_blocks(len(matrix), _DENSE_ROWS))
        self.margin = matrix.sum(axis=1) / self._size
        self.entropy = sum(
            entropy_of(matrix[rows], self._size) for rows in self._blocks
        )

    def ratio_product(self, W, H):
        """Return ``(P / (W H')) W``, with an elementwise quotient, for a symmetric ``W H'``.

        Parameters
        ----------
        W, H : ndarray of shape (n, k)
            Positive.

        Returns
        -------
        ndarray of shape (n, k)
        """
        product = np.zeros_like(W)
        for rows in self._blocks:  # the upper triangle of the symmetric quotient
            ratio = W[rows] @ H[rows.start :].T
            np.divide(self._matrix[rows, rows.start :], ratio, out=ratio)
            product[rows] += ratio @ W[rows.start :]
            product[rows.stop :] += ratio[:, rows.stop - rows.start :].T @ W[rows]
        return product / self._size

    def cross_entropy(self, W, H):
        """Return ``-sum_ij p_ij log (W H')_ij`` for a symmetric ``W H'``, in nats."""
        return cross_entropy(self._matrix, W, H)


class SparsePairs:
    """A sparse P, stored as its upper triangle with half the diagonal.

    Pairs that are not stored take no time, because their loss follows from the sum of the model.
    `DensePairs` documents the methods.

    Parameters
    ----------
    matrix : csr_array of shape (n, n)
    """

    def __init__(self, matrix):
        half = sp.csr_array(sp.triu(matrix, format="csr"))
        i, j, values = stored_entries(half)
        values = values / (total(matrix) or 1.0)
        self.entropy = 2 * entropy_of(values[i != j]) + entropy_of(values[i == j])
        self._values = np.where(i == j, values / 2, values).astype(matrix.dtype)
        self._rows = i.astype(j.dtype)
        self._columns = j
        self._indptr = half.indptr
        n = matrix.shape[0]
        sums = np.bincount(i, self._values, n) + np.bincount(j, self._values, n)
        self.margin = sums.astype(matrix.dtype)

    def ratio_product(self, W, H):
        quotients = np.empty_like(self._values)
        for block, entries in _blocks_of_entries(W, H, self._rows, self._columns):
            quotients[block] = self._values[block] / entries
        stored = (quotients, self._columns, self._indptr)
        half = sp.csr_array(stored, shape=(len(W), len(W)))
        return half @ W + half.T @ W

    def cross_entropy(self, W, H):
        loss = 0.0
        for block, entries in _blocks_of_entries(W, H, self._rows, self._columns):
            losses = self._values[block] * np.log(entries)
            loss -= float(losses.sum(dtype=np.float64))
        return 2 * loss


def cross_entropy(S, W, H):
    """Return ``-sum_ij p_ij log (W H')_ij`` in nats, where ``P = S / 1'S1``.

    Parameters
    ----------
    S : {ndarray, csr_array} of shape (n, p)
    W, H : ndarray of shape (n, k) and (p, k)
    """
    loss = 0.0
    if sp.issparse(S):
        i, j, values = stored_entries(S)
        for block, entries in _blocks_of_entries(W, H, i, j):
            loss -= float(values[block] @ np.log(entries))
    else:
        for rows in row_blocks(len(S), _DENSE_ROWS):
            dots = row_inner_products(S[rows], np.log(W[rows] @ H.T))
            loss -= float(dots.sum(dtype=np.float64))
    return loss / (total(S) or 1.0)


def unexplained_share(S, W, H):
    r"""Return the share of the information in pairs that a model leaves unexplained.

    A pair is drawn from the model with probability :math:`\lambda`. Otherwise it is a pair of
    independent objects, drawn from the margins r and s of P:

    .. math:: \min_{0 \le \lambda \le 1} \frac{D\bigl(P \,\|\, \lambda W H' / M
              + (1 - \lambda)\, r s'\bigr)}{D(P \,\|\, r s')} , \quad P = S / 1'S1 .

    M is the sum of the model over the rows and columns of S that are not 0.

    Parameters
    ----------
    S : csr_array of shape (n, p)
    W, H : ndarray of shape (n, k) and (p, k)

    Returns
    -------
    float
        Between 0 and 1. It is 1 if there is nothing to explain.
    """
    # the information to explain is the divergence of the pairs from independent objects
    i, j, values = stored_entries(S)
    p = values.astype(np.float64) / (total(S) or 1.0)
    r = np.bincount(i, p, S.shape[0])
    s = np.bincount(j, p, S.shape[1])
    information = entropy_of(r) + entropy_of(s) - entropy_of(p)
    if information <= MIN_INFORMATION:
        return 1.0
    # the ratio of the probability of a pair under the model to that under independence
    row_mass = W[r > 0].sum(axis=0, dtype=np.float64)
    mass = row_mass @ H[s > 0].sum(axis=0, dtype=np.float64)
    ratios = np.empty_like(p)
    for block, entries in _blocks_of_entries(W, H, i, j):
        ratios[block] = entries / mass / r[i[block]] / s[j[block]]

    def slope(share):
        return float(p @ ((ratios - 1) / (1 - share + share * ratios)))

    # find the best share of the model: the slope is 0 there, unless it is an end of the interval
    if slope(0) <= 0:
        share = 0.0
    elif slope(1) >= 0:
        share = 1.0
    else:
        share = brentq(slope, 0, 1, xtol=1e-4)
    return float(1 - p @ np.log(1 - share + share * ratios) / information)


def explained_by_clusters(S, W, H):
    """Return how much every cluster explains of a matrix, (k,), in nats times the sum of S.

    It is ``sum_ij s_ij t_ij log(m_ij / (m_i. m_.j))``, where ``M = W H'`` is scaled to sum to 1,
    and ``t_ij = w_i h_j / (W H')_ij`` is the share of the cluster in a pair.

    Parameters
    ----------
    S : {ndarray, csr_array} of shape (n, p)
        Its entries can be negative.
    W, H : ndarray of shape (n, k) and (p, k)
    """
    i, j, values = stored_entries(sp.csr_array(S))
    row_sums = W @ H.sum(axis=0)
    column_sums = H @ W.sum(axis=0)
    mass = row_sums.sum()
    explained = np.zeros(W.shape[1])
    for block in row_blocks(len(values), _SPARSE_ENTRIES):
        rows = i[block]
        columns = j[block]
        shares = W.take(rows, axis=0) * H.take(columns, axis=0)
        model = shares.sum(axis=1)
        ratios = model * mass / row_sums[rows] / column_sums[columns]
        gains = values[block] * np.log(ratios)
        explained += (gains / model) @ shares
    return explained


def _blocks_of_entries(W, H, rows, columns):
    """Yield slices of the stored entries, and the entries of ``W H'`` at these positions."""
    for start in range(0, len(rows), _SPARSE_ENTRIES):
        block = slice(start, start + _SPARSE_ENTRIES)
        of_rows = W.take(rows[block], axis=0)
        of_columns = H.take(columns[block], axis=0)
        yield block, np.einsum("ec,ec->e", of_rows, of_columns)


def entropy_of(values, size=1.0):
    """Return ``-sum p log p`` for ``p = values / size``, in float64."""
    return float(entr(values.astype(np.float64) / size).sum())


class FusionObjective:
    """The divergence of pairs from a model: ``D(P || W H')``, ``W = H diag(q)``.

    Parameters
    ----------
    matrix : {ndarray, csr_array} of shape (n, n)
        Symmetric and nonnegative. P is this matrix, scaled to sum to 1.
    relative : bool
        Whether the loss is divided by the largest loss, ``D(P || r r')``, where r are the margins
        of P. Otherwise the loss is in nats.
    shift : float
        Number of nats that is subtracted from both losses. It is their excess for a graph of
        objects and landmarks, and 0 for other graphs.

    Attributes
    ----------
    pairs : DensePairs or SparsePairs
    max_loss : float
        Loss of independent objects, in nats.
    constant : float
        Scale to which changes of the loss are compared: 1 if the loss is relative, else `max_loss`.
    """

    # starts in one array would not be faster, as each quotient is as large as the similarity
    wide = False

    def __init__(self, matrix, relative, shift):
        pairs = (SparsePairs if sp.issparse(matrix) else DensePairs)(matrix)
        largest = 2 * entropy_of(pairs.margin) - pairs.entropy - shift
        self.pairs = pairs
        self.relative = relative
        self.shift = shift
        self.max_loss = max(largest, MIN_INFORMATION)
        self.constant = 1.0 if relative else self.max_loss

    def loss(self, W):
        """Return the loss of a factor W, (n, k), that sums to 1."""
        pairs = self.pairs
        loss = pairs.cross_entropy(W, W / W.sum(axis=0)) - pairs.entropy - self.shift
        return loss / self.max_loss if self.relative else loss


def gibbs_weights(losses, eta, prior):
    """Return the weights ``a_l ~ p_l exp(-x_l / eta)`` that are best for losses (eqs. 6 and 7).

    They minimise ``a'x + eta D(a || p)``. If all p_l are equal, this is ``a'x - eta H(a)`` up to a
    constant, with the entropy H.

    Parameters
    ----------
    losses : ndarray of shape (L,)
        The x_l.
    eta : float
        Larger values make the weights more like the prior. The unit is that of the losses. With 0,
        the first source with the smallest loss has all the weight. With infinity, the weights are
        the p_l.
    prior : ndarray of shape (L,)
        The p_l, which sum to 1. Sources with p_l = 0 are left out. If all p_l are 0, they are the
        result.

    Returns
    -------
    weights : ndarray of shape (L,)
    smallest : float
        The minimum, ``-eta log sum_l p_l exp(-x_l / eta)``. As eta grows, it rises from the
        smallest loss to the mean loss.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.fusion.kl_loss import gibbs_weights
    >>> gibbs_weights(np.array([1.0, 1.0, 1.0 + np.log(2)]), 1.0, np.full(3, 1 / 3))[0]
    array([0.4, 0.4, 0.2])
    """
    if np.isinf(eta) or not prior.any():
        return prior, fsum(prior * losses)
    losses = np.where(prior > 0, losses, np.inf)
    lowest = float(losses.min())
    if eta == 0:
        return np.eye(len(losses))[losses.argmin()], lowest
    with np.errstate(over="ignore"):  # a quotient that overflows gives a weight of 0
        exponents = -(losses - lowest) / eta
        shares = prior * np.exp(exponents)
        rest = fsum(prior * np.expm1(exponents))
    # fsum gives the same sum for any order of the sources
    return shares / fsum(shares), lowest - eta * float(np.log1p(rest))
