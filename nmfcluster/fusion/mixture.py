"""Mixtures of similarity sources: what the Kullback-Leibler updates ask of them, and starts.

The sources are scaled to sum to 1: ``P_l = S_l / 1'S_l 1``. They are never copied for it: their
sums go into the weights. All updates see one matrix, the mixture, formed once per change of the
weights, so that an update does not depend on the number of sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from nmfcluster._arrays.storage import as_matrix, row_blocks, row_dots, stored_entries, total
from nmfcluster._engine.run import Plan, Start
from nmfcluster._engine.starts import draw_seeds, spectral_start
from nmfcluster.similarity import Explicit, Similarity
from nmfcluster.stack import SimilarityStack, square_sources
from nmfcluster.stack.container import called

_ROWS = 64  # rows of a dense mixture worked on at a time: a block stays in the cache
_ENTRIES = 2**13  # entries of a sparse mixture worked on at a time, for the same reason
_ROOM = 1e3  # times the sum of a source, or over it, must not overflow: sums grow in the products
_STEPS = 3  # steps of a random walk: far enough to meet neighbours of neighbours
_BACKGROUND = 0.1  # share of a cluster that begins spread over all objects
_LIFT = 1e-3  # of the mean entry of a start: an entry that begins at 0 stays there
_SPREAD = 0.5  # largest relative difference of the two factors at an unsymmetric start


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
    equal : ndarray of shape (L,)
        The weights of the mean source.
    """

    def __init__(self, sources: list[Any], seen: np.ndarray) -> None:
        self.shape, self.dtype = sources[0].shape, sources[0].dtype
        self.totals = np.array([total(source) for source in sources])
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


def mixture_of(stack: SimilarityStack, name: str) -> Mixture:
    """Return the mixture of a stack, which is checked first.

    Parameters
    ----------
    stack : SimilarityStack of shape (n, n, L)
    name : str
        What to call it in an error message.

    Returns
    -------
    Mixture

    Raises
    ------
    ValueError
        If a source is no similarity of objects to each other, see `square_sources`; or if it, or
        its logarithms, cannot be summed, or it cannot be divided by its sum.
    """
    sources, seen = square_sources(stack, name)
    with np.errstate(over="ignore"):  # a sum that is too large is refused below
        mixture = make_mixture(sources, seen)
    most = float(np.finfo(mixture.dtype).max) / _ROOM
    for i, (size, source) in enumerate(zip(mixture.totals, stack.names, strict=True)):
        if not 1 / most < size < most:
            raise ValueError(
                f"{called(i, source, name)} must have a sum that {mixture.dtype} can hold with "
                f"some room, got {size:.3g}; scale it."
            )
    return mixture


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

    def similarity(self, weights: np.ndarray) -> Similarity:
        return Explicit(self.mixed(weights))

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

    def cross_entropies(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        sums = np.zeros(len(self._sources))
        for rows in self._blocks:
            logs = W[rows] @ H.T
            np.log(logs, out=logs)
            for number, source in enumerate(self._sources):
                sums[number] -= row_dots(source[rows], logs).sum(dtype=np.float64)
        return sums / self.totals

    def entropies(self) -> np.ndarray:
        entropies = []
        for source, size in zip(self._sources, self.totals, strict=True):
            if sp.issparse(source):
                entropies.append(_entropy(stored_entries(source)[2], size))
            else:
                entropies.append(sum(_entropy(source[rows], size) for rows in self._blocks))
        return np.array(entropies)


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
        spread = [
            np.bincount(np.searchsorted(places, number), values, len(places))
            for number, (_, _, values) in zip(numbers, stored, strict=True)
        ]
        self._values = np.stack(spread).astype(self.dtype)
        kind = np.int32 if max(n, len(places)) < np.iinfo(np.int32).max else np.int64
        self._rows: np.ndarray = (places // n).astype(kind)
        self._columns: np.ndarray = (places % n).astype(kind)
        self._indptr = np.searchsorted(self._rows, np.arange(n + 1)).astype(kind)
        blocks = row_blocks(len(places), _ENTRIES)
        self._blocks = [(block, self._rows[block], self._columns[block]) for block in blocks]

    def mixed(self, weights: np.ndarray, out: Any = None) -> Any:
        return (weights / self.totals).astype(self.dtype) @ self._values

    def similarity(self, weights: np.ndarray) -> Similarity:
        return Explicit(self._matrix(self.mixed(weights)))

    def ratio_product(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        return self._matrix(self._quotients(P, W, H)) @ W

    def ratio_products(self, P: Any, W: np.ndarray, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ratio = self._matrix(self._quotients(P, W, H))
        return ratio @ H, ratio.T @ W

    def margin(self, P: Any) -> np.ndarray:
        return np.bincount(self._rows, P, self.shape[0]).astype(self.dtype)

    def cross_entropies(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        sums = np.zeros(len(self.totals))
        for places, rows, columns in self._blocks:
            model = np.einsum("ec,ec->e", W.take(rows, axis=0), H.take(columns, axis=0))
            sums -= (self._values[:, places] * np.log(model)).sum(axis=1, dtype=np.float64)
        return sums / self.totals

    def entropies(self) -> np.ndarray:
        return np.array([_entropy(v, t) for v, t in zip(self._values, self.totals, strict=True)])

    def _quotients(self, P: Any, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the entries of a mixture over those of ``W H'``."""
        quotients = np.empty_like(P)
        for places, rows, columns in self._blocks:
            model = np.einsum("ec,ec->e", W.take(rows, axis=0), H.take(columns, axis=0))
            np.divide(P[places], model, out=quotients[places])
        return quotients

    def _matrix(self, values: np.ndarray) -> sp.csr_array:
        return sp.csr_array((values, self._columns, self._indptr), shape=self.shape)


def _entropy(values: np.ndarray, size: float) -> float:
    """Return ``-sum p log p`` for ``p = values / size``, in float64."""
    return float(entr(values.astype(np.float64) / size).sum())


def draw_starts(
    mixture: Mixture, plan: Plan, rng: np.random.RandomState, symmetric: bool
) -> list[Start]:
    """Return the starts on the mean source: one from its eigenvectors, the others random walks.

    Parameters
    ----------
    mixture : Mixture
    plan : Plan
    rng : RandomState
    symmetric : bool
        Whether the two factors are one.

    Returns
    -------
    list of callable
    """
    A = mixture.similarity(mixture.equal).without_diagonal()
    degrees = (A @ np.ones((A.shape[0], 1), dtype=A.dtype))[:, 0]
    return [
        partial(_start, A, degrees, plan.n_clusters, seed, number == 0, symmetric)
        for number, seed in enumerate(draw_seeds(rng, plan.n_init))
    ]


def _start(
    A: Similarity, degrees: np.ndarray, n_clusters: int, seed: int, first: bool, symmetric: bool
) -> np.ndarray:
    """Return W alone, or W and V; their scale is of no importance."""
    rng = np.random.RandomState(seed)
    if first and degrees.any():  # a similarity of 0 has neither eigenvectors nor walks
        roots = np.sqrt(degrees)
        scaled = A.scaled(np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0))
        H = spectral_start(scaled, n_clusters) * roots[:, None]
        H += _LIFT * H.mean()
        W = H * H.sum(axis=0)
    else:
        W = walk_start(A, degrees, n_clusters, rng)
    if symmetric:
        return W[None]
    noise = rng.uniform(1 - _SPREAD, 1 + _SPREAD, size=W.shape).astype(W.dtype)
    return np.stack([W, W * noise])


def walk_start(
    A: Similarity, degrees: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return where a few steps of a random walk lead from objects that are drawn, one a cluster.

    Objects are drawn in proportion to their degrees. On sparse graphs such starts are as diverse
    as random factors, but do not have to find first which objects belong together.

    Parameters
    ----------
    A : Similarity of shape (n, n)
        Nonnegative.
    degrees : ndarray of shape (n,)
        Its row sums.
    n_clusters : int
        At most n.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n, n_clusters)
        Every entry is above 0. Columns have the same sum, except those of objects that are similar
        to no other: their walks end nowhere. They are drawn only if there are too few others.
    """
    n = A.shape[0]
    known = degrees >= np.finfo(degrees.dtype).tiny  # below it a quotient can overflow
    chances = np.where(known, degrees, 0) / degrees.sum(dtype=np.float64) if known.any() else known
    enough = np.count_nonzero(chances) >= n_clusters
    drawn = rng.choice(n, n_clusters, replace=False, p=chances if enough else None)
    W = np.zeros((n, n_clusters), dtype=A.dtype)
    W[drawn, np.arange(n_clusters)] = 1
    shares = np.divide(1, degrees, out=np.zeros_like(degrees), where=known)[:, None]
    for _ in range(_STEPS):
        W = A @ (shares * W)
    return W / np.maximum(W.sum(axis=0), np.finfo(A.dtype).tiny) + _BACKGROUND / n
