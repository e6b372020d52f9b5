"""What a consensus is made of besides labels: a similarity, or memberships in partitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import counted, normalised_weights, shown, warn
from nmfcluster._arrays.labels import encode, indicator, one_hot
from nmfcluster._arrays.order import canonical_order
from nmfcluster._arrays.storage import require_symmetric
from nmfcluster._arrays.tables import read_table
from nmfcluster._base import membership, read_features, read_similarity, require_nonnegative
from nmfcluster._engine.symmetric import SimilarityProblem
from nmfcluster.partitions import handing
from nmfcluster.partitions.lone import warn_of_lost
from nmfcluster.similarity import Explicit, Factored, Similarity


class PrecomputedSimilarity:
    """A similarity of the samples of a fit, and those of new samples to them.

    Parameters
    ----------
    estimator : NMFClusterer
    X : {array-like, sparse matrix} of shape (n_samples, n_samples)
    """

    codes = None  # there are no partitions
    estimators = None
    similarity: Similarity

    def __init__(self, estimator: Any, X: Any) -> None:
        if getattr(estimator, "weights", None) is not None:
            wanted = "it must be None with affinity='precomputed'"
            raise ValueError(f"weights={estimator.weights!r} needs partitions; {wanted}.")
        X = read_similarity(estimator, X)
        require_symmetric(X, "X with affinity='precomputed'")
        self.order = canonical_order(similarities=[X])
        X = self.order.of_both(X)
        self.similarity, self.diagonal = Explicit(X), X.diagonal()

    def __len__(self) -> int:
        return len(self.order.samples)

    def problem(self, weights: Any, normalize: bool) -> PrecomputedProblem:
        """Return the factorization of the similarity."""
        degrees = (self.similarity @ np.ones((len(self), 1)))[:, 0]
        alone = self.order.samples[degrees <= self.diagonal]
        if len(alone) and len(self) > 1:
            first = f"the first is sample {alone.min()}: their clusters mean nothing"
            warn(f"{len(alone)} of the samples in X have no similarity to any other, {first}.")
        if not normalize:
            return PrecomputedProblem(self, self.similarity)
        mass = np.where(degrees > 0, degrees, 1)
        return PrecomputedProblem(self, self.similarity.scaled(1 / np.sqrt(mass)), mass)

    def extended(self, estimator: Any, X: Any, profile: np.ndarray) -> np.ndarray:
        """Return the mean similarity of new samples to every cluster."""
        X = read_features(estimator, X, reset=False)
        require_nonnegative(estimator, X, "similarities are at least 0")
        return np.asarray(X[:, self.order.samples] @ profile)

    def matrix(self, indices: np.ndarray, weights: Any) -> np.ndarray:
        """Return the similarity of some samples as an array."""
        return self.similarity.take(self.order.places[indices]).toarray()

    def collapsed(self, groups: np.ndarray) -> np.ndarray:
        """Return the similarity of groups of samples, see `Similarity.collapse`, as an array."""
        return self.similarity.collapse(groups[self.order.samples]).toarray()


class PrecomputedProblem(SimilarityProblem):
    """A similarity that was given, or is the co-association of memberships, to be factorized.

    Parameters
    ----------
    given : PrecomputedSimilarity
    A : Similarity of shape (n, n)
        What is factorized.
    mass : ndarray of shape (n,), default=None
        By whose root rows and columns of A were divided; by default it was not normalised.
    """

    counts = None  # every row is one sample
    weights: np.ndarray | None = None  # of the partitions, where there are any
    coverage: Any = 1.0  # weight of the partitions that saw each sample which any saw

    def __init__(
        self, given: PrecomputedSimilarity, A: Similarity, mass: np.ndarray | None = None
    ) -> None:
        self._A, self._diagonal, order = given.similarity, given.diagonal, given.order
        self.groups, self._first, self.normalize = order.places, order.first, mass is not None
        super().__init__(A, mass=mass)

    def part(self, size: int, rng: np.random.RandomState) -> SimilarityProblem | None:
        """Return the problem of `size` samples; None for a similarity: it is fitted as it is."""
        return None if self.weights is None else super().part(size, rng)

    def read(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean similarities to every cluster if normalised, else the shares; a profile."""
        mass = np.maximum(shares.sum(axis=0), np.finfo(shares.dtype).tiny)
        profile = shares / mass
        P = membership(self._A @ profile) if self.normalize else shares
        return P[self._first], profile

    def support(self, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, None]:
        """Return every sample's mean similarity to the others of its cluster; 1 if it is alone."""
        E = one_hot(labels, n_clusters, self._A.dtype)
        together = (self._A @ E)[np.arange(len(labels)), labels] - self._diagonal
        others = E.sum(axis=0)[labels] - 1
        means = np.where(others > 0, together / np.maximum(others, 1), 1.0)
        return means[self._first[self.groups]], None


def is_soft(partitions: Any) -> bool:
    """Return whether a list of partitions holds tables of memberships, and not labels alone."""
    several = partitions if isinstance(partitions, list | tuple) else ()
    shapes: list[Any] = [getattr(partition, "shape", ()) for partition in several]
    return any(len(shape) == 2 and shape[1] > 1 for shape in shapes)


class Memberships(PrecomputedSimilarity):
    """Memberships of the samples of a fit in the clusters of partitions, which may be soft.

    Their co-association Z diag(w) Z' is the expected share of partitions that hold two samples
    together, where a partition puts each into one of its clusters by its memberships.

    Parameters
    ----------
    partitions : list of {array-like of shape (n_samples, n_clusters_t), label vector}
        Labels are columns of a table of memberships that are 0 or 1.
    name : str
        What to call them in an error message.
    X : {ndarray, csr_array} of shape (n_samples, n_features), default=None
        Features, by which a new sample has the memberships of the nearest one; by default those
        are given for new samples, too.
    """

    def __init__(self, partitions: Any, name: str, X: Any = None) -> None:
        self._name, self._X = name, X
        self._known = [None if is_soft([p]) else encode([p], name)[1] for p in partitions]
        blocks = self._blocks(partitions)
        self._widths = [block.shape[1] for block in blocks]
        self._Z = self._side_by_side(blocks)
        if X is not None:
            check_length(self._Z, X)
        self.order = canonical_order(self._Z)

    def _blocks(self, partitions: Any) -> list[np.ndarray]:
        """Return the memberships in the clusters of every partition."""
        if not isinstance(partitions, list | tuple) or len(partitions) != len(self._known):
            wanted = f"a list of {counted(len(self._known), 'partition')}, as in fit"
            raise ValueError(f"{self._name} must be {wanted}, got {shown(partitions)}.")
        blocks = []
        for t, (partition, known) in enumerate(zip(partitions, self._known, strict=True)):
            if known is None:
                blocks.append(_shares(partition, f"{self._name}[{t}]"))
            else:
                codes, _ = encode([partition], self._name, known)
                blocks.append(indicator(codes, np.array([len(known[0])])).toarray())
        return blocks

    def _side_by_side(self, blocks: list[np.ndarray]) -> np.ndarray:
        """Return the memberships in the clusters of all partitions, (n, C)."""
        if len(set(map(len, blocks))) > 1 or [block.shape[1] for block in blocks] != self._widths:
            shapes = ", ".join(str(block.shape) for block in blocks)
            wanted = "rows for the same samples, and as many columns each as in fit"
            raise ValueError(f"{self._name} must have {wanted}, got shapes {shapes}.")
        return np.hstack(blocks)

    def problem(self, weights: Any, normalize: bool) -> PrecomputedProblem:
        """Return the factorization of the co-association under weights of the partitions.

        Rows are divided by the root of the weight of the partitions that saw a sample; normalised,
        what a cluster adds to pairs is divided by its size, as in `EnsembleProblem`.
        """
        weights, Z = normalised_weights(weights, len(self._widths)), self._Z[self.order.samples]
        self._votes = np.repeat(weights, self._widths)
        seen = Z @ self._votes  # as memberships of a sample sum to 1
        mass = np.where(seen > 0, seen, 1)
        self._U = Z / np.sqrt(mass)[:, None]
        self.similarity, self.diagonal = Factored(self._U, self._votes), self._U**2 @ self._votes
        votes = self._votes / np.maximum(Z.sum(axis=0), 1) if normalize else self._votes
        if len(lost := np.sort(self.order.samples[seen == 0])):
            warn_of_lost(lost, None)
        A = Factored(self._U, votes)
        problem = PrecomputedProblem(self, A, mass if normalize else None)
        problem.weights, problem.coverage = weights, seen[seen > 0]
        problem.groups = np.where(seen[problem.groups] > 0, problem.groups, -1)
        return problem

    def extended(self, estimator: Any, X: Any, profile: np.ndarray) -> np.ndarray:
        """Return the mean similarity of new samples to every cluster."""
        if self._X is None:
            Z = self._side_by_side(self._blocks(X))
        else:
            X = read_features(estimator, X, reset=False)
            Z = self._Z[handing.nearest_samples(self._X, X)]
        return np.asarray(Z @ (self._votes[:, None] * (self._U.T @ profile)))


def check_length(rows: Any, X: Any) -> None:
    """Raise unless partitions that were given beside X have a row for each of its samples."""
    if len(rows) != X.shape[0]:
        told = f"partitions must label every sample: they have {len(rows)} rows, X has {X.shape[0]}"
        form = "A list holds one label vector an element, an array one a column"
        raise ValueError(f"{told}. {form}.")


def _shares(table: Any, name: str) -> np.ndarray:
    """Return memberships that sum to 1; a row of NaN, or of zeros, says: not seen."""
    options: dict[str, Any] = {"accept_sparse": False, "dtype": np.float64}
    table = read_table(table, name, ensure_all_finite="allow-nan", **options)
    shares = np.where(np.isnan(table).all(axis=1, keepdims=True), 0, table)
    if not (shares >= 0).all():
        allowed = "at least 0, and NaN only in whole rows, where a sample was not seen"
        raise ValueError(f"{name} must hold memberships of samples in clusters: {allowed}.")
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
