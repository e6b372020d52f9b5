"""What a consensus is made of: base partitions, made or given, or a similarity instead of them."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from nmfcluster._arrays import storage, tables
from nmfcluster._arrays.arguments import counted, normalised_weights, warn
from nmfcluster._arrays.labels import cluster_counts, encode, indicator, one_hot
from nmfcluster._arrays.order import canonical_order
from nmfcluster._base import membership, read_features, read_similarity, require_nonnegative
from nmfcluster._compat import COUNT
from nmfcluster._engine.report import say, stage
from nmfcluster._engine.symmetric import SimilarityProblem
from nmfcluster.metrics.co_occurrence import consensus_matrix
from nmfcluster.partitions import making
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.problem import EnsembleProblem
from nmfcluster.similarity import Explicit

_FINEST = 60  # clusters of a base partition, unless more are wanted: as many tell of 20,000 samples
#: what the parameters may be by which an estimator has base partitions made
MAKING: dict[str, list[Any]] = {
    **making.OPTIONS,
    "base_n_clusters": [COUNT, tuple, list, None],
}


def read_partitions(
    estimator: Any, X: Any, partitions: Any, rng: np.random.RandomState
) -> LabelTable | PrecomputedSimilarity:
    """Return what the `affinity` of an estimator makes of X and of partitions given beside it.

    Parameters
    ----------
    estimator : NMFClusterer
        Its parameters say how base partitions are made, see `MAKING`.
    X : {array-like, sparse matrix}
        Features, a label table, or a similarity; also a `LabelTable`, which is returned.
    partitions : array-like of shape (n_samples, n_partitions), list of label vectors, or None
    rng : RandomState

    Returns
    -------
    LabelTable or PrecomputedSimilarity
    """
    if isinstance(X, LabelTable):  # of distinct rows that were counted elsewhere
        return X
    if X is None:
        cure = " Without features, give partitions as X, one a column, with affinity='partitions'."
        raise ValueError(f"X must be a table, got None.{'' if partitions is None else cure}")
    if estimator.affinity != "coassociation" and partitions is not None:
        reason = ": X is." if estimator.affinity == "partitions" else "."
        raise ValueError(f"partitions cannot be given with affinity={estimator.affinity!r}{reason}")
    if estimator.affinity == "precomputed":
        return PrecomputedSimilarity(estimator, X)
    if estimator.affinity == "partitions":
        table = LabelTable(_checked_table(estimator, X, reset=True), "X", np.dtype(np.float64))
        n_samples, n_partitions = table.codes.shape
        if estimator.n_clusters <= n_samples < n_partitions:
            cure = "a row is a sample. If a row is a partition, give X.T"
            warn(f"X holds {n_partitions} partitions of {n_samples} samples: {cure}.")
        return table
    if partitions is not None:
        partitions = tables.in_order_of(tables.row_names(X), partitions, "partitions")
    X = read_features(estimator, X)
    return PartitionsOfFeatures(_made(estimator, X, rng) if partitions is None else partitions, X)


def _made(estimator: Any, X: Any, rng: np.random.RandomState) -> making.BasePartitions:
    """Make base partitions by the parameters of an estimator, of the samples in canonical order."""
    estimator._check_not_alone(X.shape[0])
    estimator._check_n_clusters(X.shape[0])
    order, sizes = canonical_order(X), estimator.base_n_clusters
    if sizes is None:  # as many as tell of the samples, and no more than these differ
        finest = min(isqrt(X.shape[0]), _FINEST, len(order.distinct))
        fewest = max(2, estimator.n_clusters)
        sizes = (fewest, max(fewest, finest))
    low, high = making.range_of_clusters(sizes, "base_n_clusters")
    clusters = low if low == high else f"{low} to {high}"
    task = f"{counted(estimator.n_estimators, 'base partition')} of {clusters} clusters"
    drawn = estimator.n_estimators, estimator.max_samples, estimator.max_features
    plans = making.draw_plans(rng, X.shape, (low, high), *drawn)
    base, unseen, jobs = estimator.estimator, estimator.predict_unseen, estimator.n_jobs
    with stage(task, len(plans)) as told:
        made = making.run_plans(X[order.samples], base, plans, unseen, jobs, told.heard)
    samples = [s if s is None else np.sort(order.samples[s]) for s in made.samples]
    for column in made.labels.T:  # in place, as there can be many; copies have the label of one
        column[order.samples] = order.largest(column)
    return replace(made, samples=samples)


def _checked_table(estimator: Any, X: Any, reset: bool) -> Any:
    """Return X with its columns checked and its labels untouched."""
    tables.check_opened(X, "X", "one table of labels")
    if hasattr(X, "columns"):
        tables.check_columns_differ(X, "X")
    else:
        X = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


class LabelTable:
    """Labels of the samples of a fit by base partitions, and those of new samples.

    Parameters
    ----------
    labels : array-like of shape (n_samples, n_partitions), DataFrame or list of label vectors
    name : str
        What to call them in an error message.
    dtype : dtype
        To compute in.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int32
        Encoded labels; -1: not seen.
    categories : list of ndarray
        The labels of every partition that codes stand for.
    n_clusters : ndarray of shape (n_partitions,), int
    estimators : list of estimator or None
        Fitted base clusterers, if there are any.
    """

    estimators: list[Any] | None = None

    def __init__(self, labels: Any, name: str, dtype: np.dtype) -> None:
        self.codes, self.categories = encode(labels, name)
        self.n_clusters = cluster_counts(self.codes)
        self.name, self.dtype = name, dtype

    def __len__(self) -> int:
        return len(self.codes)

    def problem(self, weights: Any, normalize: bool) -> EnsembleProblem:
        """Return the factorization of the co-association under weights of the partitions."""
        ensemble, groups = self._ensemble(normalised_weights(weights, self.codes.shape[1]))
        say(f"{len(ensemble)} distinct label rows of {ensemble.counts.sum()} samples")
        return EnsembleProblem(ensemble, groups, self.dtype, normalize)

    def _ensemble(self, weights: np.ndarray) -> tuple[Ensemble, np.ndarray]:
        """Return the distinct rows, and which of them every sample has."""
        check_coverage(self.codes if weights.all() else self.codes[:, weights > 0], self.name)
        return Ensemble.from_table(self.codes, weights)

    def matrix(self, indices: np.ndarray, weights: Any) -> np.ndarray:
        """Return the co-association of some samples as an array."""
        return consensus_matrix(self.codes[indices], weights)

    def codes_of(self, estimator: Any, X: Any) -> tuple[np.ndarray, np.dtype]:
        """Return the encoded labels of new samples, and the type to compute in."""
        X = _checked_table(estimator, X, reset=False)
        return encode(X, self.name, self.categories)[0], self.dtype

    def extended(self, estimator: Any, X: Any, profile: np.ndarray) -> np.ndarray:
        """Return the similarity of new samples to every cluster.

        `profile` says what membership of every base cluster tells, see `Ensemble.cluster_profile`.
        """
        codes, dtype = self.codes_of(estimator, X)
        rows = indicator(codes, self.n_clusters) @ profile
        return np.asarray(rows.astype(dtype, copy=False))


class PartitionsOfFeatures(LabelTable):
    """Partitions of features: made of them, so that clusterers label new samples, or given.

    Where they were given a new sample has the labels of the nearest one.
    """

    def __init__(self, partitions: Any, X: Any) -> None:
        made = partitions if isinstance(partitions, making.BasePartitions) else None
        super().__init__(partitions if made is None else made.labels, "partitions", X.dtype)
        if len(self.codes) != X.shape[0]:
            raise ValueError(
                f"partitions must label every sample: they have {len(self.codes)} rows, X has "
                f"{X.shape[0]}. A list holds one label vector an element, an array one a column."
            )
        self._made, self.estimators = made, None if made is None else made.estimators
        self._X = storage.own_copy(X) if made is None or made.needs_training_data else None

    def codes_of(self, estimator: Any, X: Any) -> tuple[np.ndarray, np.dtype]:
        """Return the encoded labels of new samples, and the type of X."""
        X = read_features(estimator, X, reset=False)
        if self._made is None:
            return self.codes[making.nearest_samples(self._X, X)], X.dtype
        labels = self._made.predict(X, self._X)
        return encode(labels, "estimator's labels", self.categories)[0], X.dtype


def check_coverage(codes: np.ndarray, name: str) -> None:
    """Raise a ValueError if a sample is in no partition, or a partition saw no sample."""
    if codes.min() >= 0:
        return
    seen = codes >= 0
    lost, empty = np.flatnonzero(~seen.any(axis=1)), np.flatnonzero(~seen.any(axis=0))
    if len(lost):
        raise ValueError(
            f"{name} must label every sample at least once; without a label: "
            f"{counted(len(lost), 'sample')}, the first is sample {lost[0]}. (Made by an "
            "estimator: raise n_estimators or max_samples, or leave out samples that it calls "
            "noise in every run.)"
        )
    if len(empty):
        raise ValueError(f"{name} must not hold an empty partition: partition {empty[0]} is.")


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
            wanted = "it must be None with affinity='precomputed'"
            raise ValueError(f"weights={estimator.weights!r} needs partitions; {wanted}.")
        X = read_similarity(estimator, X)
        self.order = canonical_order(similarities=[X])
        X = self.order.of_both(X)
        self.similarity, self.diagonal = Explicit(X), X.diagonal()

    def __len__(self) -> int:
        return self.similarity.shape[0]

    def problem(self, weights: Any, normalize: bool) -> PrecomputedProblem:
        """Return the factorization of the similarity."""
        degrees = (self.similarity @ np.ones((len(self), 1)))[:, 0]
        alone = self.order.samples[degrees <= self.diagonal]
        if len(alone) and len(self) > 1:
            first = f"the first is sample {alone.min()}: their clusters mean nothing"
            warn(f"{len(alone)} of the samples in X have no similarity to any other, {first}.")
        return PrecomputedProblem(self, degrees if normalize else None)

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
    """A similarity that was handed in, to be factorized whole; by its `degrees` normalised."""

    counts = None  # every row is one sample
    weights = None
    is_complete = True

    def __init__(self, given: PrecomputedSimilarity, degrees: np.ndarray | None) -> None:
        self._A, self._diagonal, order = given.similarity, given.diagonal, given.order
        self.groups, self._first, self.normalize = order.places, order.first, degrees is not None
        mass = None if degrees is None else np.where(degrees > 0, degrees, 1)
        super().__init__(self._A if mass is None else self._A.scaled(1 / np.sqrt(mass)), mass=mass)

    def part(self, size: int, rng: np.random.RandomState) -> None:
        """Return None: what was handed in is fitted as it is."""
        return None

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
