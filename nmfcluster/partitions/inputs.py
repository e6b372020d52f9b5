"""The input of a consensus: labels, memberships, or a similarity of samples."""

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from nmfcluster._base import membership, read_features, require_nonnegative
from nmfcluster._compat import take_samples
from nmfcluster._optim.symmetric import Problem
from nmfcluster._utils.labels import (
    NOT_SEEN,
    cluster_counts,
    cluster_votes,
    confidence_of_votes,
    encode_labels,
    indicator,
    noise_weights,
    one_hot,
    set_noise_apart,
)
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.progress import log_line, stage
from nmfcluster._utils.storage import safe_ratio
from nmfcluster._utils.validation import (
    check_shape,
    format_count,
    format_value,
    normalize_weights,
    read_matrix,
    warn,
)
from nmfcluster.metrics import consensus_matrix
from nmfcluster.partitions import base_runs
from nmfcluster.partitions.ensemble import (
    MAX_CLUSTERED,
    MUCH_NEARER,
    Ensemble,
    EnsembleProblem,
    list_samples,
    warn_of_unlabelled,
)
from nmfcluster.similarity import Explicit, Factored, Similarity


class PrecomputedSimilarity:
    """A precomputed similarity, as the input of a consensus.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n_samples, n_samples)
        A symmetric similarity, as `read_similarity` returns it.
    """

    codes = None  # there are no partitions
    estimators = None
    sample_weight = None
    similarity: Similarity

    def __init__(self, X):
        self.order = canonical_order(similarities=[X])
        X = self.order.permute(X)
        self.similarity = Explicit(X)
        self.diagonal = X.diagonal()

    def __len__(self):
        return len(self.order.samples)

    def problem(self, weights, normalize):
        """Return the problem of the similarity, and the row of every sample in it."""
        degrees = (self.similarity @ np.ones((len(self), 1)))[:, 0]
        isolated = self.order.samples[degrees <= self.diagonal]
        if len(isolated) and len(self) > 1:
            warn(
                f"X holds {format_count(len(isolated), 'sample')} with no similarity to any other, "
                f"such as sample {isolated.min()}. Their clusters are arbitrary: leave them out."
            )
        mass = None
        A = self.similarity
        if normalize:
            mass = np.where(degrees > 0, degrees, 1)
            A = A.scaled(1 / np.sqrt(mass))
        return PrecomputedProblem(self, A, mass), self.order.ranks

    def mean_memberships(self, shares):
        """Return mean similarities to every cluster, scaled to sum to 1, and their profile."""
        profile = safe_ratio(shares, shares.sum(axis=0))
        return membership(self.similarity @ profile), profile

    def confidence(self, E, labels):
        """Return the mean similarity of rows to their own cluster, relative to all clusters."""
        return self.mean_memberships(E)[0][np.arange(len(labels)), labels]

    def extended(self, estimator, X, profile):
        """Return the mean similarity of new samples to every cluster."""
        X = read_features(estimator, X, reset=False)
        require_nonnegative(estimator, X, "similarities are at least 0")
        return X[:, self.order.samples] @ profile

    def matrix(self, indices, weights):
        """Return the similarity of some samples as an array."""
        return self.similarity.take(self.order.ranks[indices]).toarray()

    def collapsed(self, groups):
        """Return the similarity of groups of samples as an array, see `Similarity.collapse`."""
        return self.similarity.collapse(groups[self.order.samples]).toarray()


class PrecomputedProblem(Problem):
    """The factorization of a precomputed similarity, or of the co-association of memberships.

    Parameters
    ----------
    source : PrecomputedSimilarity
    A : Similarity of shape (n, n)
        The matrix to be factorized.
    mass : ndarray of shape (n,), default=None
        If A was normalised, its rows and columns were divided by the square root of `mass`. By
        default, A was not normalised.
    """

    counts = None  # every row is one sample
    weights: Any = None  # of the partitions; None for a similarity
    # weight of the partitions that include each sample, over samples in at least one of them
    coverage: Any = 1.0

    def __init__(self, source, A, mass=None):
        self._source = source
        self.normalize = mass is not None
        super().__init__(A, mass=mass)

    def part(self, size, rng):
        """Return the problem of `size` samples; None for a similarity, which is never sampled."""
        return None if self.weights is None else super().part(size, rng)

    def memberships(self, shares):
        """Return memberships of the samples, and a profile to compute those of new samples.

        If A is not normalised, memberships are the shares. Otherwise, they are mean similarities to
        the clusters. The clusters are those of the factor, or those of k-means on leading
        eigenvectors if these have a much smaller normalised cut.
        """
        if not self.normalize:
            _, profile = self._source.mean_memberships(shares)
            return shares[self._source.order.first], profile
        n_clusters = shares.shape[1]
        clusters = one_hot(shares.argmax(axis=1), n_clusters, shares.dtype)
        if len(self) <= MAX_CLUSTERED:
            labels = self.eigenvector_labels(n_clusters)
            other = one_hot(labels, n_clusters, shares.dtype)
            if self._cut(other) < MUCH_NEARER * self._cut(clusters):
                clusters = other
        P, profile = self._source.mean_memberships(clusters)
        return P[self._source.order.first], profile

    def _cut(self, E):
        """Return the normalised cut of the clusters with the indicator E."""
        scaled = E * np.sqrt(self.mass)[:, None]
        within = (scaled * (self.objective.A @ scaled)).sum(axis=0)
        return E.shape[1] - safe_ratio(within, self.mass @ E).sum()

    def evaluate(self, labels, n_clusters):
        """Return the confidence of every row, and None, as there is no agreement."""
        E = one_hot(labels, n_clusters, self._source.similarity.dtype)
        return self._source.confidence(E, labels)[self._source.order.first], None


def is_soft(partitions):
    """Return whether a list of partitions holds memberships, and not only labels."""
    if not isinstance(partitions, list | tuple):
        return False
    shapes: list = [getattr(partition, "shape", ()) for partition in partitions]
    return any(len(shape) == 2 and shape[1] > 1 for shape in shapes)


class Memberships(PrecomputedSimilarity):
    """Memberships in the clusters of several partitions, as the input of a consensus.

    Interpret the memberships of a sample as probabilities, with which each partition draws its
    cluster. The co-association Z diag(w) Z' is then the expected share of partitions in which two
    samples are together.

    Parameters
    ----------
    partitions : list of {array-like of shape (n_samples, n_clusters_t), label vector}
        A label vector is read as memberships of 0 and 1.
    name : str
        Name of `partitions` in error messages.
    X : {ndarray, csr_array} of shape (n_samples, n_features), default=None
        Features. If they are given, a new sample takes the memberships of the nearest sample. By
        default, users pass the memberships of new samples.
    """

    def __init__(self, partitions, name, X=None):
        self._name = name
        self._X = X
        # sorted labels of every label vector; None for memberships
        self._categories = [
            None if is_soft([p]) else encode_labels([p], name)[1] for p in partitions
        ]
        # number of clusters of every partition, once they are read
        self._widths: list = [None] * len(partitions)
        self._Z, self._codes = self._read(partitions)
        check_length(self._Z, X)
        self.order = canonical_order(np.hstack([self._Z, self._codes]))

    def _read(self, partitions):
        """Return the memberships in the clusters of all partitions, (n, C), and codes, (n, T).

        Codes of memberships are 0, or -2 for a sample that is not included.
        """
        number = len(self._categories)
        if not isinstance(partitions, list | tuple) or len(partitions) != number:
            raise ValueError(
                f"{self._name} must be a list of {format_count(number, 'partition')}, as in fit, "
                f"got {format_value(partitions)}."
            )
        tables: list = []
        all_codes = []
        for t, categories in enumerate(self._categories):
            title = f"{self._name}[{t}]"
            if categories is None:
                table = _read_memberships(partitions[t], title)
                codes = np.where(table.any(axis=1, keepdims=True), 0, NOT_SEEN)
            else:
                codes, _ = encode_labels([partitions[t]], self._name, categories)
                table = indicator(codes, np.array([len(categories[0])])).toarray()
            check_shape(table, title, self._widths[t], len((tables or [table])[0]))
            self._widths[t] = table.shape[1]
            tables.append(table)
            all_codes.append(codes)
        return np.hstack(tables), np.hstack(all_codes)

    def _placed(self, Z, codes):
        """Return memberships, set to 0 for samples that most partitions call noise."""
        codes = set_noise_apart(codes, self.weights)
        return Z * (codes.max(axis=1) >= 0)[:, None]

    def problem(self, weights, normalize):
        """Return the problem of the weighted co-association, and the row of every sample in it.

        Samples that no partition includes have row -1. Rows are divided by the square root of the
        weight of the partitions that include the sample. With `normalize`, the amount that a
        cluster adds to the pairs of its samples is divided by its size, as in `EnsembleProblem`.
        """
        weights = normalize_weights(weights, len(self._widths))
        self.weights = weights
        self._votes = np.repeat(weights, self._widths)
        Z = self._placed(self._Z, self._codes)[self.order.samples]
        # the weight of the partitions that include a sample, as its memberships in one sum to 1
        seen = Z @ self._votes
        mass = np.where(seen > 0, seen, 1)
        self._U = Z / np.sqrt(mass)[:, None]
        self.similarity = Factored(self._U, self._votes)
        votes = self._votes
        if normalize:
            votes = votes / np.maximum(Z.sum(axis=0), 1)
        unlabelled = np.sort(self.order.samples[seen == 0])
        if len(unlabelled):
            warn_of_unlabelled(unlabelled, None, len(self))
        A = Factored(self._U, votes)
        problem = PrecomputedProblem(self, A, mass if normalize else None)
        problem.weights = weights
        problem.coverage = seen[seen > 0]
        ranks = self.order.ranks
        return problem, np.where(seen[ranks] > 0, ranks, -1)

    def confidence(self, E, labels):
        """Return the confidence of every row, see `NMFConsensus`."""
        samples = self.order.samples
        Z = self._placed(self._Z, self._codes)[samples]
        votes = cluster_votes(Z.T @ E, np.array(self._widths), self.weights)
        noise = noise_weights(self._codes[samples], self.weights)
        return confidence_of_votes(Z @ votes, Z @ self._votes, noise, labels)

    def extended(self, estimator, X, profile):
        """Return the mean similarity of new samples to every cluster."""
        if self._X is None:
            Z, codes = self._read(X)
        else:
            X = read_features(estimator, X, reset=False)
            nearest = base_runs.nearest_samples(self._X, X)
            Z = self._Z[nearest]
            codes = self._codes[nearest]
        Z = self._placed(Z, codes)
        return Z @ (self._votes[:, None] * (self._U.T @ profile))


def check_length(rows, X):
    """Raise if partitions do not have one row per sample of X; X may be None."""
    if X is not None and len(rows) != X.shape[0]:
        raise ValueError(
            f"partitions must have one row per sample: they have {len(rows)} rows, and X has "
            f"{X.shape[0]}. Pass a list of label vectors, or an array with one vector per column."
        )


def _read_memberships(table, name):
    """Return memberships that sum to 1 by rows; rows of NaN, "not included", become zeros."""
    table = read_matrix(
        table,
        name,
        accept_sparse=False,
        dtype=np.float64,
        ensure_all_finite="allow-nan",
    )
    shares = np.where(np.isnan(table).all(axis=1, keepdims=True), 0, table)
    if not (shares >= 0).all():
        raise ValueError(
            f"{name} must hold memberships of samples in clusters, which are at least 0. NaN is "
            "allowed only in whole rows, for samples that are not included."
        )
    return safe_ratio(shares, shares.sum(axis=1, keepdims=True))


# largest default number of clusters of a base partition: 60 resolve 20,000 samples
_MAX_CLUSTERS = 60
# upper end of the default range of base_n_clusters, if the consensus has fewer than ten clusters:
# with narrow ranges, a large cluster is split before small ones are found. Over 24 data sets with
# clusters of sizes such as 340, 40 and 20, the mean ARI is 0.95. With an upper end of 1.5 times
# n_clusters, it is 0.81. Over 31 real data sets, it is 0.52 with both. With ten or more clusters,
# a wider range takes more time and does not help
_ENOUGH_CLUSTERS = 15


def make_partitions(X, pairs, rng, sample_weight, estimator, **options):
    """Make base partitions of samples; samples of weight 0 are labelled like new samples.

    Clusterers are fitted to samples in the order of X, because a parameter may have a value for
    each row. The default runs find the same partitions in any order.

    Parameters
    ----------
    X, pairs : as `base_runs.read_base_input` returns them
    rng : RandomState
    sample_weight : ndarray of shape (n_samples,) or None
    estimator : estimator, list of estimator or None
    **options
        See `run_bases`.

    Returns
    -------
    BasePartitions
    """
    if sample_weight is not None and not sample_weight.all():
        rule = "sample_weight must be above 0"
        base_runs.check_bases_accept_parts(estimator, X, rule)
        counting = np.flatnonzero(sample_weight)
        part = base_runs.take_part(X, counting, None, pairs, None)
        weights = sample_weight[counting]
        found = make_partitions(part, pairs, rng, weights, estimator, **options)
        # map labels and samples back to rows of X, and label the other rows like new samples
        labels = np.full((X.shape[0], found.labels.shape[1]), NOT_SEEN)
        labels[counting] = found.labels
        found = replace(
            found,
            labels=labels,
            samples=[s if s is None else counting[s] for s in found.samples],
            n_features=base_runs.n_features_of(X),
        )
        others = np.flatnonzero(sample_weight == 0)
        labels[others] = found.predict(take_samples(X, others), X)
        return found
    if pairs:
        order = canonical_order(similarities=[X])
    else:
        order = canonical_order(base_runs.sortable_numbers(X))
    found = run_bases(X, pairs, rng, sample_weight, order, estimator, **options)
    for t, drawn in enumerate(found.samples):
        if drawn is not None:
            _label_copies(found.labels[:, t], drawn, order)
    return found


def _label_copies(labels, drawn, order):
    """Label copies of drawn samples like the drawn samples, in place, in the labels of a run."""
    groups = order.distinct_inverse
    of_equal = np.full(len(order.distinct), NOT_SEEN)
    np.maximum.at(of_equal, groups[drawn], labels[drawn])
    copied = of_equal[groups]
    copied[drawn] = NOT_SEEN  # they have labels of their own
    np.copyto(labels, copied, where=copied > NOT_SEEN)


def run_bases(
    X,
    pairs,
    rng,
    sample_weight,
    order,
    estimator,
    *,
    n_clusters,
    base_n_clusters,
    n_estimators,
    n_jobs,
    **sizes,
):
    """Run the base clusterers on samples whose weights are all above 0.

    Parameters
    ----------
    X, pairs, rng, sample_weight : as for `make_partitions`
    order : CanonicalOrder
        Order of the samples of X.
    estimator : as for `make_partitions`
    n_clusters : int
        Number of clusters of the consensus.
    base_n_clusters, n_estimators, n_jobs, **sizes
        Parameters of an estimator, see `base_runs.BASE_PARAMETERS`.
    """
    if base_n_clusters is None:  # no more clusters than distinct samples
        fewest = max(2, n_clusters)
        most = isqrt(X.shape[0])
        if estimator is None:
            enough = min(isqrt(len(order.distinct)), _ENOUGH_CLUSTERS)
            most = max(fewest + fewest // 2, enough)
        most = min(most, _MAX_CLUSTERS, len(order.distinct))
        base_n_clusters = (fewest, max(fewest, most))
    low, high = base_runs.range_of_clusters(base_n_clusters, "base_n_clusters")
    runs = base_runs.draw_base_runs(
        rng, X, estimator, (low, high), n_estimators=n_estimators, **sizes
    )
    if runs[0].samples is not None:
        # runs draw positions in the canonical order, so that the order of rows does not matter
        runs = [
            run._replace(samples=np.sort(order.samples[run.samples])) for run in runs
        ]
    clusters = low if low == high else f"{low} to {high}"
    task = f"{format_count(n_estimators, 'base partition')} of {clusters} clusters"
    with stage(task, len(runs)) as progress:
        return base_runs.run_base_clusterers(
            X, estimator, runs, pairs, n_jobs, sample_weight, progress.batch_done
        )


class LabelTable:
    """Labels by several partitions, as the input of a consensus.

    Parameters
    ----------
    labels : BasePartitions, array-like of shape (n_samples, n_partitions), DataFrame or list of \
            label vectors
    name : str
        Name of `labels` in error messages.
    names : pandas Index, default=None
        Names of the samples, for warnings.
    X : {ndarray, csr_array} of shape (n_samples, n_features), or as clusterers read it, or None
        Features. If they are given, new samples are labelled by the clusterers that made the base
        partitions, or like the nearest sample. By default, users pass the labels of new samples.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int32
        Encoded labels. -1 is noise, and -2 is not included.
    categories : list of ndarray
        The original labels of every partition, in the order of their codes.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of clusters of every partition.
    dtype : dtype
        Type of the computations.
    estimators : list of estimator or None
        Fitted base clusterers, if there are any.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the samples; None if all are 1.
    """

    dtype = np.dtype(np.float64)
    estimators: Any = None
    sample_weight: Any = None
    names = None
    _base: Any = None
    _X = None

    def __init__(self, labels, name, names=None, X=None):
        if isinstance(labels, base_runs.BasePartitions):
            self._base = labels
            self.estimators = labels.estimators
            labels = labels.labels
        self.codes, self.categories = encode_labels(labels, name)
        self.n_clusters = cluster_counts(self.codes)
        self.name = name
        self.names = None if names is None else np.asarray(names)
        check_length(self.codes, X)
        self.dtype = base_runs.float_type(X) or self.dtype
        if X is not None and (self._base is None or self._base.needs_training_data):
            self._X = take_samples(X, np.arange(X.shape[0]))

    def __len__(self):
        return len(self.codes)

    def warn_of_single(self):
        """Warn of partitions with one cluster and missing labels."""
        single = np.flatnonzero((self.n_clusters == 1) & (self.codes.min(axis=0) < 0))
        if len(single):
            warn(
                f"{self.name} holds {format_count(len(single), 'partition')} with one cluster and "
                f"missing labels, such as partition {single[0]}. -1 was read as noise, other "
                "negative numbers as not included. If -1 is a label, number clusters from 0."
            )

    def problem(self, weights, normalize):
        """Return the problem of the weighted co-association, and the row of every sample in it.

        The rows of the problem are the distinct rows of labels. Samples without a label, or of
        weight 0, have row -1.
        """
        n_partitions = len(self.n_clusters)
        if weights is not None and self._base is not None:
            # users pass weights of all base runs, including runs that were left out
            if np.shape(weights) != (n_partitions,):
                kept = self._base.kept
                weights = normalize_weights(weights, len(kept))[kept]
        weights = normalize_weights(weights, n_partitions)
        empty = np.flatnonzero((self.n_clusters == 0) & (weights > 0))
        if len(empty):
            raise ValueError(
                f"{self.name} must hold labels in every partition, but partition {empty[0]} has "
                "none: leave it out. Negative numbers mean noise or not included."
            )
        codes = set_noise_apart(self.codes, weights)
        ensemble, groups = Ensemble.from_table(codes, weights, self.sample_weight)
        unlabelled = np.flatnonzero(ensemble.coverage[groups] <= 0)
        if len(unlabelled):
            if self._base is not None:
                self._require_drawn(unlabelled, self._base.samples)
            warn_of_unlabelled(unlabelled, self.names, len(self))
        return self._problem_of(ensemble, groups, normalize)

    def _problem_of(self, ensemble, groups, normalize):
        """Return the problem of the rows that have a label, and the row of every sample in it."""
        self._weights = ensemble.weights
        ensemble, groups = ensemble.labelled_rows(groups)
        log_line(f"{len(ensemble)} distinct label rows of {len(self)} samples")
        return EnsembleProblem(ensemble, self.dtype, normalize), groups

    def _require_drawn(self, samples, drawn):
        """Raise if samples have no label because no base run drew them."""
        if any(of_run is None for of_run in drawn):
            return
        undrawn = np.setdiff1d(samples, np.concatenate(drawn))
        if len(undrawn):
            raise ValueError(
                "max_samples must be so large that base runs draw every sample, but none drew "
                f"{format_count(len(undrawn), 'sample')}: {list_samples(undrawn, self.names)}. "
                "Raise it or n_estimators, or set predict_unseen=True to label such samples."
            )

    def matrix(self, indices, weights):
        """Return the co-association of some samples as an array."""
        return consensus_matrix(self.codes[indices], weights)

    def extended(self, estimator, X, profile):
        """Return the similarity of new samples to every cluster.

        `profile` holds the similarity of base clusters to every cluster, see
        `Ensemble.cluster_profile`.
        """
        dtype = self.dtype
        if self._base is not None:
            labels, own = self._base.predict_with_type(X, self._X, estimator)
            dtype = own or dtype
            codes, _ = encode_labels(labels, "estimator's labels", self.categories)
        elif self._X is not None:
            X = read_features(estimator, X, reset=False)
            dtype = X.dtype
            codes = self.codes[base_runs.nearest_samples(self._X, X)]
        else:
            X = base_runs.read_unconverted(
                X, estimator=estimator, reset=False, are_labels=True
            )
            codes, _ = encode_labels(X, self.name, self.categories)
        codes = set_noise_apart(codes, self._weights)
        rows = indicator(codes, self.n_clusters) @ profile
        return rows.astype(dtype, copy=False)
