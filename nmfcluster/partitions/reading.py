"""What a consensus is made of: base partitions, made or given, or a similarity instead of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from math import isqrt
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nmfcluster._arrays import storage, tables
from nmfcluster._arrays.arguments import counted, normalised_weights, warn
from nmfcluster._arrays.labels import cluster_counts, encode, indicator
from nmfcluster._arrays.order import canonical_order
from nmfcluster._base import read_features
from nmfcluster._compat import COUNT, take_samples
from nmfcluster._engine.report import say, stage
from nmfcluster.metrics.co_occurrence import consensus_matrix
from nmfcluster.partitions import handing, making
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.given import Memberships, PrecomputedSimilarity, check_length, is_soft
from nmfcluster.partitions.lone import listed, warn_of_lost
from nmfcluster.partitions.problem import EnsembleProblem

_FINEST = 60  # clusters of a base partition, unless more are wanted: as many tell of 20,000 samples
#: what the parameters may be by which an estimator has base partitions made
MAKING: dict[str, list[Any]] = making.OPTIONS | {"base_n_clusters": [COUNT, tuple, list, None]}


def read_partitions(
    estimator: Any, X: Any, partitions: Any, rng: np.random.RandomState, sample_weight: Any = None
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
    sample_weight : array-like of shape (n_samples,), default=None

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
    soft = is_soft(X if estimator.affinity == "partitions" else partitions)
    if sample_weight is not None and (soft or estimator.affinity == "precomputed"):
        raise ValueError("sample_weight needs features or labels: repeat rows, drop those of zero.")
    names = tables.row_names(X)
    weights_of = cache(partial(tables.read_weights, sample_weight, names, estimator.n_clusters))
    if estimator.affinity == "precomputed":
        return PrecomputedSimilarity(estimator, X)
    if estimator.affinity == "partitions":
        if soft:
            return Memberships(X, "X")
        X = _checked_table(estimator, X, reset=True)
        table = LabelTable(X, "X", np.dtype(np.float64), names)
        n_samples, n_partitions = table.codes.shape
        if n_samples < n_partitions:
            cure = "a row is a sample. If a row is a partition, give X.T"
            hint = f"X holds {n_partitions} partitions of {n_samples} samples: {cure}."
            if (k := estimator.n_clusters) > n_samples:
                raise ValueError(f"n_clusters={k} must be at most n_samples={n_samples}. {hint}")
            warn(hint)
        table.warn_of_single()
    elif partitions is not None:
        partitions = tables.in_order_of(names, partitions, "partitions")
        if soft:
            return Memberships(partitions, "partitions", read_features(estimator, X))
        table = PartitionsOfFeatures(partitions, read_features(estimator, X), names)
        table.warn_of_single()
    else:
        checks, X, pairs = handing.checks_for(making.clusterers(estimator.estimator), X)
        X = _read_for(checks, estimator, X)
        made = _made(estimator, X, pairs, rng, weights_of(X.shape[0]))
        table = PartitionsOfFeatures(made, X, names)
    table.sample_weight = weights_of(len(table))
    return table


def _made(estimator: Any, X: Any, pairs: Any, rng: Any, weights: Any) -> making.BasePartitions:
    """Make base partitions by the parameters of an estimator, of the samples in canonical order."""
    if weights is not None and not weights.all():  # samples that do not count are labelled as new
        some, others = np.flatnonzero(weights), np.flatnonzero(weights == 0)
        part = handing.part_of(X, some, None, pairs, None)
        made = _made(estimator, part, pairs, rng, weights[some])
        labels = np.where(weights[:, None] > 0, made.labels[np.cumsum(weights > 0) - 1], -1)
        samples = [s if s is None else some[s] for s in made.samples]
        made = replace(made, labels=labels, samples=samples, n_features=(*X.shape, 1)[1])
        labels[others] = made.predict(take_samples(X, others), X)
        return made
    estimator._check_not_alone(X.shape[0])
    estimator._check_n_clusters(X.shape[0])
    by_rows = () if pairs else (handing.numbers_of(X),)
    order = canonical_order(*by_rows, similarities=[X] if pairs else ())
    sizes = estimator.base_n_clusters
    if sizes is None:  # as many as tell of the samples, and no more than these differ
        finest = min(isqrt(X.shape[0]), _FINEST, len(order.distinct))
        fewest = max(2, estimator.n_clusters)
        sizes = (fewest, max(fewest, finest))
    low, high = making.range_of_clusters(sizes, "base_n_clusters")
    clusters = low if low == high else f"{low} to {high}"
    task = f"{counted(estimator.n_estimators, 'base partition')} of {clusters} clusters"
    plans = making.draw_plans(rng, X.shape, (low, high), estimator)
    X = order.of_both(X) if pairs else take_samples(X, order.samples)
    if weights is not None:  # equal samples share them, in whatever order they come
        same = order.among_distinct
        weights = (np.bincount(same, weights) / order.counts)[same][order.samples]
        plans = [plan._replace(weights=weights) for plan in plans]
    with stage(task, len(plans)) as told:
        made = making.run_plans(X, estimator, plans, pairs, told.heard)
    samples = [s if s is None else np.sort(order.samples[s]) for s in made.samples]
    for column in made.labels.T:  # in place, as there can be many; copies have the label of one
        column[order.samples] = order.largest(column)
    return replace(made, samples=samples)


def _read_for(checks: dict[str, Any] | None, estimator: Any, X: Any, reset: bool = True) -> Any:
    """Return X as floats, or as it is, see `handing.checks_for`."""
    if checks is None:
        return _checked_table(estimator, X, reset, "one table", ensure_2d=False)
    return read_features(estimator, X, reset, **checks)


def _checked_table(
    estimator: Any, X: Any, reset: bool, wanted: str = "one table of labels", **options: Any
) -> Any:
    """Return X with its columns checked and its entries untouched."""
    X = handing.as_it_is(X, wanted, estimator=estimator, **options)
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
    names : pandas Index, default=None
        Names of the samples, for a warning.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int32
        Encoded labels; -1: not seen.
    categories : list of ndarray
        The labels of every partition that codes stand for.
    n_clusters : ndarray of shape (n_partitions,), int
    estimators : list of estimator or None
        Fitted base clusterers, if there are any.
    sample_weight : ndarray of shape (n_samples,) or None
        How many samples each counts as; one by default.
    """

    estimators: list[Any] | None = None
    sample_weight: np.ndarray | None = None

    def __init__(self, labels: Any, name: str, dtype: np.dtype, names: Any = None) -> None:
        self.codes, self.categories = encode(labels, name)
        self.n_clusters = cluster_counts(self.codes)
        self.name, self.dtype, self._names = name, dtype, names

    def __len__(self) -> int:
        return len(self.codes)

    def warn_of_single(self) -> None:
        """Warn of partitions of which there is one cluster, and missing labels."""
        single = np.flatnonzero((self.n_clusters == 1) & (self.codes.min(axis=0) < 0))
        if len(single):
            says = "a negative number says that a sample was not seen. If -1 is a label, number "
            several = f"{counted(len(single), 'partition')} of {self.name}, such as {single[0]},"
            warn(f"{several} with one cluster and missing labels: {says}clusters from 0.")

    def problem(self, weights: Any, normalize: bool) -> EnsembleProblem:
        """Return the factorization of the co-association under weights of the partitions."""
        ensemble, groups = self._ensemble(self._weights(weights))
        say(f"{len(ensemble)} distinct label rows of {len(self)} samples")
        return EnsembleProblem(ensemble, groups, self.dtype, normalize)

    def _weights(self, weights: Any) -> np.ndarray:
        """Return weights that sum to 1, one a partition."""
        return normalised_weights(weights, self.codes.shape[1])

    def _ensemble(self, weights: np.ndarray) -> tuple[Ensemble, np.ndarray]:
        """Return the distinct rows, and which of them every sample has, see `labelled_rows`."""
        if len(empty := np.flatnonzero((self.n_clusters == 0) & (weights > 0))):
            which = f"partition {empty[0]} is: a negative number says that a sample was not seen"
            raise ValueError(f"{self.name} must not hold an empty partition: {which}.")
        ensemble, groups = Ensemble.from_table(self.codes, weights)
        if len(lost := np.flatnonzero(ensemble.coverage[groups] <= 0)):
            self._warn_of_lost(lost)
        if self.sample_weight is not None:
            exponent = storage.exponent_beyond(self.sample_weight[:, None], 10)
            w = storage.divided(self.sample_weight, exponent)  # float32 has to hold their inverse
            own = w @ np.minimum(w, 1) / w.sum()
            ensemble = replace(ensemble, counts=np.bincount(groups, w), own=own)
        return labelled_rows(ensemble, groups)

    def _warn_of_lost(self, lost: np.ndarray) -> None:
        """Warn of samples that no partition labels."""
        warn_of_lost(lost, self._names)

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

    def __init__(self, partitions: Any, X: Any, names: Any = None) -> None:
        made = partitions if isinstance(partitions, making.BasePartitions) else None
        dtype = handing.float_type(X) or np.dtype(np.float64)
        super().__init__(partitions if made is None else made.labels, "partitions", dtype, names)
        check_length(self.codes, X)
        self._made, self.estimators = made, None if made is None else made.estimators
        kept = made is None or made.needs_training_data
        self._X = take_samples(X, np.arange(X.shape[0])) if kept else None

    def _weights(self, weights: Any) -> np.ndarray:
        """Return weights that sum to 1, of the base runs that were kept."""
        if weights is not None and self._made is not None and not self._made.kept.all():
            if np.shape(weights) != self.n_clusters.shape:  # one a run that was asked for
                weights = normalised_weights(weights, len(self._made.kept))[self._made.kept]
        return super()._weights(weights)

    def _warn_of_lost(self, lost: np.ndarray) -> None:
        """Warn of samples that are noise in all base runs; raise if there are others."""
        undrawn = lost
        for drawn in [None] if self._made is None else self._made.samples:
            undrawn = np.setdiff1d(undrawn, lost if drawn is None else drawn)
        if len(undrawn):
            cure = "predict_unseen=True labels them; or raise n_estimators or max_samples"
            which = f"{counted(len(undrawn), 'sample')}: {listed(undrawn, self._names)}"
            must = "max_samples must be such that base runs draw every sample"
            raise ValueError(f"{must}, but none drew {which}. {cure}.")
        super()._warn_of_lost(lost)

    def codes_of(self, estimator: Any, X: Any) -> tuple[np.ndarray, np.dtype]:
        """Return the encoded labels of new samples, and the type of X."""
        if self._made is None:
            X = read_features(estimator, X, reset=False)
            return self.codes[handing.nearest_samples(self._X, X)], X.dtype
        X = _read_for(self._made.checks, estimator, X, reset=False)
        labels = self._made.predict(X, self._X)
        codes, _ = encode(labels, "estimator's labels", self.categories)
        return codes, handing.float_type(X) or self.dtype


def labelled_rows(ensemble: Ensemble, groups: np.ndarray) -> tuple[Ensemble, np.ndarray]:
    """Return the rows that count and were seen with a weight, and which samples have; -1: none.

    Parameters
    ----------
    ensemble : Ensemble
    groups : ndarray of shape (n,), int
        Which of its rows every sample has.
    """
    kept = np.flatnonzero((ensemble.coverage > 0) & (ensemble.counts > 0))
    if len(kept) == len(ensemble):
        return ensemble, groups
    places = np.full(len(ensemble), -1)
    places[kept] = np.arange(len(kept))
    rows = kept if ensemble.rows is None else ensemble.rows[kept]
    return replace(ensemble, counts=ensemble.counts[kept], rows=rows), places[groups]
