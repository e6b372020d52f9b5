"""What a consensus is made of besides labels: a similarity, or memberships in partitions.

What a consensus is made of: base partitions, made or given, or a similarity instead of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from math import isqrt
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from nmfcluster._base import (
    membership,
    read_features,
    read_similarity,
    require_nonnegative,
)
from nmfcluster._compat import COUNT, take_samples
from nmfcluster._optim.symmetric import SimilarityProblem
from nmfcluster._utils import storage, validation
from nmfcluster._utils.labels import cluster_counts, encode, indicator, one_hot
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.progress import say, stage
from nmfcluster._utils.storage import require_symmetric
from nmfcluster._utils.validation import (
    counted,
    normalised_weights,
    read_table,
    shown,
    warn,
)
from nmfcluster.metrics.co_occurrence import consensus_matrix
from nmfcluster.partitions import base_runs
from nmfcluster.partitions.ensemble import (
    Ensemble,
    EnsembleProblem,
    listed,
    warn_of_lost,
)
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
            raise ValueError(
                f"weights={estimator.weights!r} needs partitions; {wanted}."
            )
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
            warn(
                f"{len(alone)} of the samples in X have no similarity to any other, {first}."
            )
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
        self,
        given: PrecomputedSimilarity,
        A: Similarity,
        mass: np.ndarray | None = None,
    ) -> None:
        self._A, self._diagonal, order = given.similarity, given.diagonal, given.order
        self.groups, self._first, self.normalize = (
            order.places,
            order.first,
            mass is not None,
        )
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
        self._known = [
            None if is_soft([p]) else encode([p], name)[1] for p in partitions
        ]
        blocks = self._blocks(partitions)
        self._widths = [block.shape[1] for block in blocks]
        self._Z = self._side_by_side(blocks)
        if X is not None:
            check_length(self._Z, X)
        self.order = canonical_order(self._Z)

    def _blocks(self, partitions: Any) -> list[np.ndarray]:
        """Return the memberships in the clusters of every partition."""
        if not isinstance(partitions, list | tuple) or len(partitions) != len(
            self._known
        ):
            wanted = f"a list of {counted(len(self._known), 'partition')}, as in fit"
            raise ValueError(f"{self._name} must be {wanted}, got {shown(partitions)}.")
        blocks = []
        for t, (partition, known) in enumerate(
            zip(partitions, self._known, strict=True)
        ):
            if known is None:
                blocks.append(_shares(partition, f"{self._name}[{t}]"))
            else:
                codes, _ = encode([partition], self._name, known)
                blocks.append(indicator(codes, np.array([len(known[0])])).toarray())
        return blocks

    def _side_by_side(self, blocks: list[np.ndarray]) -> np.ndarray:
        """Return the memberships in the clusters of all partitions, (n, C)."""
        if (
            len(set(map(len, blocks))) > 1
            or [block.shape[1] for block in blocks] != self._widths
        ):
            shapes = ", ".join(str(block.shape) for block in blocks)
            wanted = "rows for the same samples, and as many columns each as in fit"
            raise ValueError(f"{self._name} must have {wanted}, got shapes {shapes}.")
        return np.hstack(blocks)

    def problem(self, weights: Any, normalize: bool) -> PrecomputedProblem:
        """Return the factorization of the co-association under weights of the partitions.

        Rows are divided by the root of the weight of the partitions that saw a sample; normalised,
        what a cluster adds to pairs is divided by its size, as in `EnsembleProblem`.
        """
        weights, Z = (
            normalised_weights(weights, len(self._widths)),
            self._Z[self.order.samples],
        )
        self._votes = np.repeat(weights, self._widths)
        seen = Z @ self._votes  # as memberships of a sample sum to 1
        mass = np.where(seen > 0, seen, 1)
        self._U = Z / np.sqrt(mass)[:, None]
        self.similarity, self.diagonal = (
            Factored(self._U, self._votes),
            self._U**2 @ self._votes,
        )
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
            Z = self._Z[base_runs.nearest_samples(self._X, X)]
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
        raise ValueError(
            f"{name} must hold memberships of samples in clusters: {allowed}."
        )
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)


_FINEST = 60  # clusters of a base partition, unless more are wanted: as many tell of 20,000 samples
#: what the parameters may be by which an estimator has base partitions made
MAKING: dict[str, list[Any]] = base_runs.OPTIONS | {
    "base_n_clusters": [COUNT, tuple, list, None]
}


def read_partitions(
    estimator: Any,
    X: Any,
    partitions: Any,
    rng: np.random.RandomState,
    sample_weight: Any = None,
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
        raise ValueError(
            f"X must be a table, got None.{'' if partitions is None else cure}"
        )
    if estimator.affinity != "coassociation" and partitions is not None:
        reason = ": X is." if estimator.affinity == "partitions" else "."
        raise ValueError(
            f"partitions cannot be given with affinity={estimator.affinity!r}{reason}"
        )
    soft = is_soft(X if estimator.affinity == "partitions" else partitions)
    if sample_weight is not None and (soft or estimator.affinity == "precomputed"):
        raise ValueError(
            "sample_weight needs features or labels: repeat rows, drop those of zero."
        )
    names = validation.row_names(X)
    weights_of = cache(
        partial(validation.read_weights, sample_weight, names, estimator.n_clusters)
    )
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
                raise ValueError(
                    f"n_clusters={k} must be at most n_samples={n_samples}. {hint}"
                )
            warn(hint)
        table.warn_of_single()
    elif partitions is not None:
        partitions = validation.in_order_of(names, partitions, "partitions")
        if soft:
            return Memberships(partitions, "partitions", read_features(estimator, X))
        table = PartitionsOfFeatures(partitions, read_features(estimator, X), names)
        table.warn_of_single()
    else:
        checks, X, pairs = base_runs.checks_for(
            base_runs.clusterers(estimator.estimator), X
        )
        X = _read_for(checks, estimator, X)
        made = _made(estimator, X, pairs, rng, weights_of(X.shape[0]))
        table = PartitionsOfFeatures(made, X, names)
    table.sample_weight = weights_of(len(table))
    return table


def _made(
    estimator: Any, X: Any, pairs: Any, rng: Any, weights: Any
) -> base_runs.BasePartitions:
    """Make base partitions by the parameters of an estimator, of the samples in canonical order."""
    if (
        weights is not None and not weights.all()
    ):  # samples that do not count are labelled as new
        some, others = np.flatnonzero(weights), np.flatnonzero(weights == 0)
        part = base_runs.part_of(X, some, None, pairs, None)
        made = _made(estimator, part, pairs, rng, weights[some])
        labels = np.where(
            weights[:, None] > 0, made.labels[np.cumsum(weights > 0) - 1], -1
        )
        samples = [s if s is None else some[s] for s in made.samples]
        made = replace(
            made, labels=labels, samples=samples, n_features=(*X.shape, 1)[1]
        )
        labels[others] = made.predict(take_samples(X, others), X)
        return made
    estimator._check_not_alone(X.shape[0])
    estimator._check_n_clusters(X.shape[0])
    by_rows = () if pairs else (base_runs.numbers_of(X),)
    order = canonical_order(*by_rows, similarities=[X] if pairs else ())
    sizes = estimator.base_n_clusters
    if sizes is None:  # as many as tell of the samples, and no more than these differ
        finest = min(isqrt(X.shape[0]), _FINEST, len(order.distinct))
        fewest = max(2, estimator.n_clusters)
        sizes = (fewest, max(fewest, finest))
    low, high = base_runs.range_of_clusters(sizes, "base_n_clusters")
    clusters = low if low == high else f"{low} to {high}"
    task = f"{counted(estimator.n_estimators, 'base partition')} of {clusters} clusters"
    plans = base_runs.draw_plans(rng, X.shape, (low, high), estimator)
    X = order.of_both(X) if pairs else take_samples(X, order.samples)
    if weights is not None:  # equal samples share them, in whatever order they come
        same = order.among_distinct
        weights = (np.bincount(same, weights) / order.counts)[same][order.samples]
        plans = [plan._replace(weights=weights) for plan in plans]
    with stage(task, len(plans)) as told:
        made = base_runs.run_plans(X, estimator, plans, pairs, told.heard)
    samples = [s if s is None else np.sort(order.samples[s]) for s in made.samples]
    for (
        column
    ) in made.labels.T:  # in place, as there can be many; copies have the label of one
        column[order.samples] = order.largest(column)
    return replace(made, samples=samples)


def _read_for(
    checks: dict[str, Any] | None, estimator: Any, X: Any, reset: bool = True
) -> Any:
    """Return X as floats, or as it is, see `base_runs.checks_for`."""
    if checks is None:
        return _checked_table(estimator, X, reset, "one table", ensure_2d=False)
    return read_features(estimator, X, reset, **checks)


def _checked_table(
    estimator: Any,
    X: Any,
    reset: bool,
    wanted: str = "one table of labels",
    **options: Any,
) -> Any:
    """Return X with its columns checked and its entries untouched."""
    X = base_runs.as_it_is(X, wanted, estimator=estimator, **options)
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

    def __init__(
        self, labels: Any, name: str, dtype: np.dtype, names: Any = None
    ) -> None:
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
            warn(
                f"{several} with one cluster and missing labels: {says}clusters from 0."
            )

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
            w = storage.divided(
                self.sample_weight, exponent
            )  # float32 has to hold their inverse
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
        made = partitions if isinstance(partitions, base_runs.BasePartitions) else None
        dtype = base_runs.float_type(X) or np.dtype(np.float64)
        super().__init__(
            partitions if made is None else made.labels, "partitions", dtype, names
        )
        check_length(self.codes, X)
        self._made, self.estimators = made, None if made is None else made.estimators
        kept = made is None or made.needs_training_data
        self._X = take_samples(X, np.arange(X.shape[0])) if kept else None

    def _weights(self, weights: Any) -> np.ndarray:
        """Return weights that sum to 1, of the base runs that were kept."""
        if weights is not None and self._made is not None and not self._made.kept.all():
            if (
                np.shape(weights) != self.n_clusters.shape
            ):  # one a run that was asked for
                weights = normalised_weights(weights, len(self._made.kept))[
                    self._made.kept
                ]
        return super()._weights(weights)

    def _warn_of_lost(self, lost: np.ndarray) -> None:
        """Warn of samples that are noise in all base runs; raise if there are others."""
        undrawn = lost
        for drawn in [None] if self._made is None else self._made.samples:
            undrawn = np.setdiff1d(undrawn, lost if drawn is None else drawn)
        if len(undrawn):
            cure = (
                "predict_unseen=True labels them; or raise n_estimators or max_samples"
            )
            which = f"{counted(len(undrawn), 'sample')}: {listed(undrawn, self._names)}"
            must = "max_samples must be such that base runs draw every sample"
            raise ValueError(f"{must}, but none drew {which}. {cure}.")
        super()._warn_of_lost(lost)

    def codes_of(self, estimator: Any, X: Any) -> tuple[np.ndarray, np.dtype]:
        """Return the encoded labels of new samples, and the type of X."""
        if self._made is None:
            X = read_features(estimator, X, reset=False)
            return self.codes[base_runs.nearest_samples(self._X, X)], X.dtype
        X = _read_for(self._made.checks, estimator, X, reset=False)
        labels = self._made.predict(X, self._X)
        codes, _ = encode(labels, "estimator's labels", self.categories)
        return codes, base_runs.float_type(X) or self.dtype


def labelled_rows(
    ensemble: Ensemble, groups: np.ndarray
) -> tuple[Ensemble, np.ndarray]:
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
