"""A similarity that was handed in, in the place of partitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.labels import one_hot
from nmfcluster._base import membership, read_features, read_similarity, require_nonnegative
from nmfcluster._engine.symmetric import SimilarityProblem
from nmfcluster.partitions.problem import Reading, Support
from nmfcluster.similarity import Explicit


class PrecomputedSimilarity:
    """A similarity of the samples of a fit, and those of new samples to them.

    Parameters
    ----------
    estimator : NMFClusterer
    X : {array-like, sparse matrix} of shape (n_samples, n_samples)
    """

    codes = None  # there are no partitions
    estimators = None

    def __init__(self, estimator: Any, X: Any) -> None:
        if getattr(estimator, "weights", None) is not None:
            raise ValueError(
                f"weights={estimator.weights!r} needs partitions; it must be None with "
                "affinity='precomputed'."
            )
        X = read_similarity(estimator, X)
        self.similarity, self._diagonal = Explicit(X), X.diagonal()

    def __len__(self) -> int:
        return self.similarity.shape[0]

    def problem(self, weights: Any, normalize: bool) -> PrecomputedProblem:
        """Return the factorization of the similarity."""
        degrees = (self.similarity @ np.ones((len(self), 1)))[:, 0]
        alone = np.flatnonzero(degrees <= self._diagonal)
        if len(alone) and len(self) > 1:
            warn(
                f"{len(alone)} of the samples in X have no similarity to any other, the first is "
                f"sample {alone[0]}: their clusters mean nothing."
            )
        return PrecomputedProblem(self.similarity, self._diagonal, degrees if normalize else None)

    def extended(self, estimator: Any, X: Any, profile: np.ndarray) -> np.ndarray:
        """Return the mean similarity of new samples to every cluster."""
        X = read_features(estimator, X, reset=False)
        require_nonnegative(estimator, X, "similarities are at least 0")
        return np.asarray(X @ profile)

    def matrix(self, indices: np.ndarray, weights: Any) -> np.ndarray:
        """Return the similarity of some samples as an array."""
        return self.similarity.take(indices).toarray()


class PrecomputedProblem(SimilarityProblem):
    """A similarity that was handed in, to be factorized whole; by its `degrees` normalised."""

    counts = None  # every row is one sample
    groups = slice(None)
    weights = None
    is_complete = True

    def __init__(self, A: Explicit, diagonal: np.ndarray, degrees: np.ndarray | None) -> None:
        self._A, self._diagonal, self.normalize = A, diagonal, degrees is not None
        if degrees is None:
            super().__init__(A)
        else:
            mass = np.where(degrees > 0, degrees, 1)
            super().__init__(A.scaled(1 / np.sqrt(mass)), mass=mass)

    def part(self, size: int, rng: np.random.RandomState) -> None:
        """Return None: what was handed in is fitted as it is."""
        return None

    def read(self, shares: np.ndarray) -> Reading:
        """Return mean similarities to every cluster if normalised, else the shares."""
        mass = np.maximum(shares.sum(axis=0), np.finfo(shares.dtype).tiny)
        profile = shares / mass
        return Reading(membership(self._A @ profile) if self.normalize else shares, profile)

    def support(self, labels: np.ndarray, n_clusters: int) -> Support:
        """Return what the similarity says of a clustering."""
        return Support(self._mean_similarity(labels, n_clusters), None)

    def _mean_similarity(self, labels: np.ndarray, n_clusters: int) -> np.ndarray:
        """Return every sample's mean similarity to the others of its cluster; 1 if it is alone."""
        E = one_hot(labels, n_clusters, self._A.dtype)
        own = (self._A @ E)[np.arange(len(labels)), labels] - self._diagonal
        others = E.sum(axis=0)[labels] - 1
        return np.where(others > 0, own / np.maximum(others, 1), 1.0)
