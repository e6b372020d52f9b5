"""Where the factors of a mixture start: from its eigenvectors, or where random walks on it end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nmfcluster._arrays import storage
from nmfcluster._engine.executor import Start
from nmfcluster._engine.starts import spectral_start
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.similarity import Similarity

_STEPS = 3  # steps of a random walk: far enough to meet neighbours of neighbours
_BACKGROUND = 0.1  # share of a cluster that begins spread over all objects
_LIFT = 1e-3  # of the mean entry of a start: an entry that begins at 0 stays there
_SPREAD = 0.5  # largest relative difference of the two factors at an unsymmetric start


def number_of_starts(n_init: int | str, n_sources: int) -> int:
    """Return the number of starts: "auto" is all that are not random.

    They are those on the mean source, on the sources by what they are worth, and on each alone.
    """
    if isinstance(n_init, str):
        return 2 + n_sources if n_sources > 1 else 1
    return int(n_init)


@dataclass(frozen=True)
class Starts:
    """Starts on mixtures of sources with given weights.

    Attributes
    ----------
    mixture : Mixture
    n_clusters : int
    symmetric : bool
        Whether the two factors are one.
    """

    mixture: Mixture
    n_clusters: int
    symmetric: bool

    def spectral(self, weights: np.ndarray, seed: int) -> Start:
        """Return the start from leading eigenvectors; the seed is that of the other factor."""
        return partial(self._spectral, weights, seed)

    def walks(self, weights: np.ndarray, seeds: list[int]) -> list[Start]:
        """Return starts where random walks end."""
        if not seeds:  # the graph of a mixture is large
            return []
        A, degrees = self._graph(weights)
        return [partial(self._walk, A, degrees, seed) for seed in seeds]

    def _spectral(self, weights: np.ndarray, seed: int) -> np.ndarray:
        A, degrees = self._graph(weights)
        if not degrees.any():  # a similarity of 0 has no eigenvectors
            return self._walk(A, degrees, seed)
        roots = np.sqrt(degrees)
        scaled = A.scaled(storage.inverse(roots))
        H = spectral_start(scaled, self.n_clusters) * roots[:, None]
        H += _LIFT * H.mean()
        return self._factors(H * H.sum(axis=0), np.random.RandomState(seed))

    def _walk(self, A: Similarity, degrees: np.ndarray, seed: int) -> np.ndarray:
        rng = np.random.RandomState(seed)
        return self._factors(walk_start(A, degrees, self.n_clusters, rng), rng)

    def _factors(self, W: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Return W alone, or W and V; their scale is of no importance."""
        if self.symmetric:
            return W[None]
        noise = rng.uniform(1 - _SPREAD, 1 + _SPREAD, size=W.shape).astype(W.dtype)
        return np.stack([W, W * noise])

    def _graph(self, weights: np.ndarray) -> tuple[Similarity, np.ndarray]:
        """Return a mixture without its diagonal, and its degrees."""
        A = self.mixture.similarity(weights).without_diagonal()
        return A, (A @ np.ones((A.shape[0], 1), dtype=A.dtype))[:, 0]


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
