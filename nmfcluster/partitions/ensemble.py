"""Partitions as distinct rows of labels, and the factorization of their co-association.

Samples with equal labels in all partitions share a row, and no (n, n) matrix is formed. Warnings
name samples in no cluster or in clusters of their own, and say if the consensus depends on the
seed.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.cluster import AgglomerativeClustering

from nmfcluster._base import hard_labels, membership
from nmfcluster._optim.initialization import spectral_start
from nmfcluster._optim.symmetric import (
    Problem,
    fitted_factor,
    symmetric_factor,
    updated_factor,
)
from nmfcluster._utils import storage
from nmfcluster._utils.labels import (
    adjusted_rand,
    cluster_counts,
    cluster_votes,
    confidence_of_votes,
    distinct_rows,
    indicator,
    noise_weights,
    one_hot,
    set_noise_apart,
    tuple_indicator,
)
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.validation import format_count, make_rng, warn
from nmfcluster.similarity import Explicit, Factored


@dataclass
class Ensemble:
    """The distinct rows of labels of some partitions, and the number of samples with each row.

    Samples with equal labels in all partitions have equal rows in a factor of the co-association.
    The problem of the distinct rows is therefore equivalent to the problem of all samples.

    Attributes
    ----------
    codes : ndarray of shape (m, T), int
        The distinct rows of encoded labels. -1 is noise, and -2 is not included.
    counts : ndarray of shape (m,)
        Number of samples with each distinct row, or the sum of their weights.
    weights : ndarray of shape (T,)
        Weights of the partitions, which sum to 1.
    n_clusters : ndarray of shape (T,), int
        Number of clusters of every partition.
    max_tuples : int, default=None
        Largest number of tuples, see `tuple_indicator`. If it is given, the sums of a row do not
        depend on the other rows.
    self_weight : float, default=1
        Mean weight of the pair of a sample with itself. `agreement` subtracts these pairs. It is 1
        unless some samples have weights below 1.
    offsets : ndarray of shape (T,), int
        Index of the first cluster of every partition.
    cluster_weights : ndarray of shape (sum of n_clusters,)
        For every cluster, the weight of its partition.
    sizes : ndarray of shape (sum of n_clusters,)
        Number of samples of every cluster of every partition.
    is_complete : bool
        Whether every partition includes all rows; always False if `max_tuples` is given.
    coverage : ndarray of shape (m,)
        Total weight of the partitions that include each row.
    """

    codes: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    n_clusters: np.ndarray
    max_tuples: int | None = None
    self_weight: float = 1.0

    def __post_init__(self):
        self.offsets = np.cumsum(self.n_clusters) - self.n_clusters
        self.cluster_weights = np.repeat(self.weights, self.n_clusters)
        # Z = J A is the indicator of the clusters of all partitions. If there are fewer rows than
        # partitions, they hardly share tuples: then J is Z, and all pairs of rows take less time.
        is_independent = self.max_tuples is not None
        self._is_short = not is_independent and len(self.counts) < len(self.n_clusters)
        if self._is_short:
            self._J = indicator(self.codes, self.n_clusters)
            self._A = storage.identity(self._J.shape[1], self._J.dtype)
        else:
            self._J, self._A = tuple_indicator(
                self.codes, self.n_clusters, self.max_tuples
            )
        self.sizes = self.cluster_sums(self.counts.astype(np.float64))
        self.is_complete = not is_independent and bool(self.codes.min() >= 0)
        if self.is_complete:
            self.coverage = np.full(len(self), self.weights.sum())
        else:
            self.coverage = self.row_sums(self.cluster_weights[:, None])[:, 0]

    @classmethod
    def from_table(cls, codes, weights, sample_weight=None):
        """Return the ensemble of encoded labels, and the distinct row of every sample.

        `sample_weight` holds the weights of the samples, 1 by default.
        """
        first, groups, counts = distinct_rows(codes)
        self_weight = 1.0
        if sample_weight is not None:
            # scale the weights so that float32 can hold their inverses
            exponent = storage.scaling_exponent(sample_weight[:, None], 10)
            w = storage.divide_by_power(sample_weight, exponent)
            self_weight = w @ np.minimum(w, 1) / w.sum()
            counts = np.bincount(groups, w)
        n_clusters = cluster_counts(codes)
        ensemble = cls(
            codes[first], counts, weights, n_clusters, self_weight=self_weight
        )
        return ensemble, groups

    def __len__(self):
        return len(self.counts)

    def row_sums(self, per_cluster):
        """Return Z X, which sums, for every row of labels, the rows of X of its clusters.

        Parameters
        ----------
        per_cluster : ndarray of shape (sum of n_clusters, k)
            X.

        Returns
        -------
        ndarray of shape (m, k)
        """
        return self._J @ (self._A @ per_cluster)

    def cluster_sums(self, per_row):
        """Return Z' X, which sums, for every cluster of every partition, the rows of X in it.

        Parameters
        ----------
        per_row : ndarray of shape (m, k) or (m,)
            X.

        Returns
        -------
        ndarray of shape (sum of n_clusters, k) or (sum of n_clusters,)
        """
        return self._A.T @ (self._J.T @ per_row)

    def similarity(self, dtype, votes, scale):
        """Return the co-association, collapsed to the distinct rows.

        Parameters
        ----------
        dtype : dtype
        votes : ndarray of shape (sum of n_clusters,)
            What each cluster adds to every pair of its samples. For the co-association, this is the
            weight of its partition.
        scale : ndarray of shape (m,)
            Factor by which the row and the column of every sample are multiplied.
        """
        scale = np.sqrt(self.counts) * scale
        if self._is_short:
            Z = storage.scaled_columns(self._J, np.sqrt(votes))
            Z = storage.choose_storage(Z)
            pairs = storage.as_dense(Z @ Z.T)
            return Explicit(pairs.astype(dtype)).scaled(scale)
        # D J (A diag(votes) A') J' D with D = diag(scale): rows of J have few entries, A is small
        of_tuples = Factored(self._A.astype(dtype, copy=False), votes)
        return Factored(self._J.astype(dtype, copy=False), of_tuples, scale)

    def contingency(self, memberships):
        """Return the number of samples that each base cluster shares with each consensus cluster.

        Parameters
        ----------
        memberships : ndarray of shape (m, k)
            An indicator, or soft memberships, of the distinct rows of labels.
        """
        return self.cluster_sums(memberships * self.counts[:, None])

    def hard_loss(self, E):
        """Return the hard loss of a partition, its weighted mean distance to the base partitions.

        `E` is the indicator of the partition, with one row per distinct row of labels. If all
        partitions include all samples, the distance of two partitions is the number of ordered
        pairs on which they disagree. The loss is then eq. 12 of Li et al. up to a constant.
        """
        samples = E * self.counts[:, None]
        N = self.cluster_sums(samples)
        shared = self.cluster_weights @ (N * N).sum(axis=1)
        pairs = (samples.sum(axis=0) ** 2).sum()
        constant = float(self.cluster_weights @ self.sizes**2)
        return float(constant - 2 * shared + (self.weights * pairs).sum())

    def cluster_profile(self, memberships):
        """Return the profile by which samples are assigned to consensus clusters.

        The profile is the mean co-association of base clusters with consensus clusters.
        ``indicator(labels of a sample) @ profile`` is the mean co-association of the sample with
        the members of every consensus cluster.

        Parameters
        ----------
        memberships : ndarray of shape (m, k)
            Rows sum to 1.

        Returns
        -------
        ndarray of shape (sum of n_clusters, k)
        """
        P = storage.as_float64(memberships)
        sums = self.cluster_weights[:, None] * self.contingency(P)
        return storage.safe_ratio(sums, self.counts @ P)

    def sample(self, size, rng):
        """Return the ensemble of `size` samples, which are drawn by `draw_counts`."""
        return self.of_counts(self.draw_counts(size, rng))

    def draw_counts(self, size, rng):
        """Draw samples without replacement; return the number of drawn samples of each row, (m,).

        If counts are sums of weights, samples are drawn with replacement, in proportion to these
        weights.
        """
        counts = self.counts
        if counts.dtype.kind == "f":
            counts = rng.multinomial(size, counts / counts.sum())
        owner = np.repeat(np.arange(len(self)), counts)
        chosen = owner[rng.permutation(len(owner))[:size]]
        return np.bincount(chosen, minlength=len(self))

    def of_counts(self, counts):
        """Return the ensemble with other counts, without the rows of count 0."""
        kept = np.flatnonzero(counts)
        return replace(self, counts=counts[kept], codes=self.codes[kept])

    def labelled_rows(self, groups):
        """Drop rows of count 0, and rows that no partition saw.

        Parameters
        ----------
        groups : ndarray of shape (n,), int
            The row of every sample.

        Returns
        -------
        ensemble : Ensemble
        groups : ndarray of shape (n,), int
            The new row of every sample; -1 if its row was dropped.
        """
        counting = (self.coverage > 0) & (self.counts > 0)
        if counting.all():
            return self, groups
        new_rows = np.where(counting, np.cumsum(counting) - 1, -1)
        return self.of_counts(np.where(counting, self.counts, 0)), new_rows[groups]

    def agreement(self, contingency):
        """Return the adjusted Rand index of every partition with a consensus, (T,).

        Parameters
        ----------
        contingency : ndarray of shape (sum of n_clusters, k)
            `contingency` of the indicator of the consensus.
        """

        def pairs(counts):
            return counts * (counts - self.self_weight) / 2

        seen_sizes = np.add.reduceat(contingency, self.offsets, axis=0)
        both = np.add.reduceat(pairs(contingency).sum(axis=1), self.offsets)
        in_partition = np.add.reduceat(pairs(contingency.sum(axis=1)), self.offsets)
        in_consensus = pairs(seen_sizes).sum(axis=1)
        total = pairs(seen_sizes.sum(axis=1))
        total = np.where(total > 0, total, 1)
        return adjusted_rand(both, in_partition, in_consensus, total)

    def confidence(self, contingency, labels):
        """Return the confidence of every row in its consensus cluster, see `NMFConsensus`.

        Parameters
        ----------
        contingency : ndarray of shape (sum of n_clusters, k)
            `contingency` of the indicator of the consensus.
        labels : ndarray of shape (m,)
            Consensus label of every distinct row; -1 if it is in no cluster.

        Returns
        -------
        ndarray of shape (m,)
        """
        votes = cluster_votes(contingency, self.n_clusters, self.weights)
        noise = noise_weights(self.codes, self.weights)
        return confidence_of_votes(self.row_sums(votes), self.coverage, noise, labels)


#: largest number of rows whose eigenvectors are also clustered by k-means: more rows are slow
MAX_CLUSTERED = 10_000
# largest number of distinct label rows that average linkage clusters: it needs all pairs
_MAX_LINKED = 2_000
#: other clusters replace those of the factor if their distance is below this share of the distance
#: of the factor's clusters. Over 70 data sets with clusters of unequal sizes, the mean ARI is 0.94
#: for 0.8 to 0.95 (0.90 with the factor alone). Over 31 real data sets, smaller shares give a
#: higher index
MUCH_NEARER = 0.85
# the third of the profiles is taken if its distance is below this share of that of the others. Over
# 119 data sets, 0.9 has the highest mean ARI, whichever set is left out, and 0.8 to 0.95 lose at
# most 0.001; 1 loses 0.01 on given runs of k-means on 31 real data sets
_NEARER = 0.9


class Candidate(NamedTuple):
    """Clusters among which the result is chosen.

    Attributes
    ----------
    loss : float
        The hard loss of the clusters.
    profile : ndarray of shape (sum of n_clusters, k)
        See `assignment_profiles`.
    distance : float
        Half the squared distance of their projector to the mean projector, up to a constant. It is
        0 if all partitions hold these clusters.
    """

    loss: float
    profile: np.ndarray
    distance: float


class EnsembleProblem(Problem):
    r"""The factorization of the co-association of an ensemble, with starts ranked by hard loss.

    With `normalize`, partition t is represented by the projector :math:`P^t` onto the indicators of
    its clusters. A cluster of s samples then adds 1 / s, instead of 1, to every pair of its
    samples. A pair that a partition does not include counts as 0. Rows and columns are divided by
    the square root of the weight of the partitions that include the sample. This compensates for
    partitions that do not include it.

    Parameters
    ----------
    ensemble : Ensemble
    dtype : dtype
        Type of the computations, float32 or float64.
    normalize : bool
        Whether all clusters have equal weight. If False, all pairs have equal weight, and
        partitions must include all samples.
    """

    # smallest number of updates: where partitions agree, they determine the factor well
    polish_min_iter = 1

    def __init__(self, ensemble, dtype, normalize):
        self.ensemble = ensemble
        self.dtype = dtype
        self.normalize = normalize
        self.counts = ensemble.counts
        self.weights = ensemble.weights
        self.coverage = ensemble.coverage
        # above 100,000 rows, an update takes a second; 1e-3 changes 3 labels of 100,000
        self.polish_tol = 1e-4 if len(ensemble) <= 100_000 else 1e-3
        # the votes of a base cluster are divided by its size, those of an empty one by 1
        sizes = ensemble.sizes
        self._sizes = np.ones(len(sizes))
        # rows of samples are divided by the square root of this weight of each distinct row
        self._weight = np.ones(len(ensemble))
        if normalize:
            self._sizes = np.where(sizes > 0, sizes, 1)
            self._weight = self.coverage
        self._votes = ensemble.cluster_weights / self._sizes
        # the loss of the zero factor: the weighted mean of the squared norms of the partitions
        sums = ensemble.cluster_sums(ensemble.counts / self._weight)
        constant = float(ensemble.cluster_weights @ (sums / self._sizes) ** 2)
        A = ensemble.similarity(dtype, self._votes, 1 / np.sqrt(self._weight))
        super().__init__(A, constant=constant, mass=self.counts * self._weight)
        self.name = f"{len(ensemble)} label rows"

    def rank(self, solution):
        """Return the hard loss of the clusters of a factor."""
        H = symmetric_factor(solution)
        E = one_hot(H.argmax(axis=1), H.shape[1])
        if self.normalize:
            return self._nearest_clusters(E).loss
        return self.ensemble.hard_loss(E)

    def _nearest_clusters(self, E):
        """Assign every row to the most similar cluster of the indicator E.

        The profile is one of `assignment_profiles`, see `choose_profile`.

        Parameters
        ----------
        E : ndarray of shape (m, k)
            Rows may be zero.

        Returns
        -------
        Candidate
        """
        profiles = assignment_profiles(
            self.ensemble.cluster_weights,
            self._votes,
            self.ensemble.contingency(E),
            self.counts @ E,
        )
        weights = []
        for profile in profiles:
            labels = self.ensemble.row_sums(profile).argmax(axis=1)
            nearest = one_hot(labels, E.shape[1])
            N = self.ensemble.contingency(nearest)
            weights.append(projector_weights(self._votes, N, self.mass @ nearest))
        chosen = choose_profile(weights)
        loss = normalised_loss(self.objective.constant, weights[chosen])
        return Candidate(loss, profiles[chosen], projector_distance(weights[chosen]))

    def part(self, size, rng):
        """Return the problem of `size` samples."""
        sampled = self.ensemble.sample(size, rng)
        return EnsembleProblem(sampled, self.dtype, self.normalize)

    def extended(self, part, H):
        """Return a factor of all rows, fitted to the factor of a part of the samples."""
        rows = H / np.sqrt(part.counts)[:, None]
        scaled = rows / np.sqrt(part._weight)[:, None]
        profile = self._votes[:, None] * part.ensemble.contingency(scaled)
        votes = self.ensemble.row_sums(profile) / np.sqrt(self._weight)[:, None]
        fitted = fitted_factor(votes, (rows * part.counts[:, None]).T @ rows)
        fitted *= np.sqrt(self.counts)[:, None]
        return fitted.astype(H.dtype, copy=False)

    def memberships(self, shares):
        """Return memberships of the distinct rows, and a profile to compute those of new samples.

        With `normalize`, memberships are computed by one of the `assignment_profiles`. The clusters
        are those of the factor, or other clusters if these are much nearer to the mean projector.
        Without `normalize`, memberships are the shares, and the profile is
        `Ensemble.cluster_profile`.

        Parameters
        ----------
        shares : ndarray of shape (m, k)
            Rows of the factor, scaled to sum to 1.
        """
        if not self.normalize:
            return shares, self.ensemble.cluster_profile(shares)
        n_clusters = shares.shape[1]
        best = self._nearest_clusters(one_hot(shares.argmax(axis=1), n_clusters))
        to_beat = MUCH_NEARER * best.distance
        for E in self._other_clusters(n_clusters):
            other = self._nearest_clusters(E)
            if other.distance < to_beat:
                best = other
                to_beat = other.distance
        means = self.ensemble.row_sums(best.profile).astype(self.dtype, copy=False)
        return membership(means), best.profile

    def _other_clusters(self, n_clusters):
        """Return indicators of clusters by two other methods, (m, k).

        A factor can split a large cluster and miss a small one. K-means on leading eigenvectors and
        average linkage also make such errors, but for other data. Rows that a method did not use
        are zero.
        """
        found = []
        if len(self) <= MAX_CLUSTERED:
            found.append(one_hot(self.eigenvector_labels(n_clusters), n_clusters))
        rows = np.arange(len(self))
        if len(self) > _MAX_LINKED:
            rows = np.sort(make_rng(0).permutation(len(self))[:_MAX_LINKED])
        if len(rows) >= n_clusters > 1:
            S = self.init_similarity.take(rows).toarray()
            lengths = np.sqrt(S.diagonal())
            linkage = AgglomerativeClustering(
                n_clusters, metric="precomputed", linkage="average"
            )
            labels = linkage.fit_predict(1 - S / np.outer(lengths, lengths))
            linked = np.zeros((len(self), n_clusters))
            linked[rows] = one_hot(labels, n_clusters)
            found.append(linked)
        return found

    def evaluate(self, labels, n_clusters):
        """Return the confidence of every distinct row, and the agreement of every partition."""
        contingency = self.ensemble.contingency(one_hot(labels, n_clusters))
        confidence = self.ensemble.confidence(contingency, labels)
        return confidence, self.ensemble.agreement(contingency)

    def predict_unlabelled(self, codes, labels, profile):
        """Return memberships, labels and confidence of samples that have no row in the problem.

        Parameters
        ----------
        codes : ndarray of shape (n_unlabelled, n_partitions), int
            Encoded labels of these samples.
        labels : ndarray of shape (m,), int
            Clusters of the distinct rows.
        profile : ndarray of shape (sum of n_clusters, k)
            The profile that `memberships` returned.
        """
        codes = set_noise_apart(codes, self.weights)
        others = replace(self.ensemble, counts=np.zeros(len(codes)), codes=codes)
        means = others.row_sums(profile)
        new_labels = hard_labels(means)
        contingency = self.ensemble.contingency(one_hot(labels, profile.shape[1]))
        confidence = others.confidence(contingency, new_labels)
        return membership(means), new_labels, confidence


def assignment_profiles(cluster_weights, votes, contingency, sizes):
    """Return three profiles by which samples are assigned to clusters, (3, C, k).

    The product ``indicator(labels of a sample) @ profile`` compares a sample with all clusters:

    1. It is the mean co-association of the sample with the members of each cluster.
    2. The same, where a pair of samples counts less if its base cluster is large.
    3. The first, divided by the mean co-association of the members with each other.

    The first two can assign samples of large clusters to small ones, because the members of large
    clusters are less often together. The third can assign samples of small clusters to large ones,
    if many labels are missing or wrong.

    Parameters
    ----------
    cluster_weights : ndarray of shape (C,)
        For every base cluster, the weight of its partition.
    votes : ndarray of shape (C,)
        The same, divided by the size of the base cluster.
    contingency : ndarray of shape (C, k)
        Number of samples that each base cluster shares with every cluster.
    sizes : ndarray of shape (k,)
        Number of samples of every cluster.
    """
    means = storage.safe_ratio(cluster_weights[:, None] * contingency, sizes)
    by_size = storage.safe_ratio(votes[:, None] * contingency, sizes)
    within = storage.safe_ratio((means * contingency).sum(axis=0), sizes)
    return np.stack([means, by_size, storage.safe_ratio(means, within)])


def choose_profile(weights):
    """Return the index of the profile whose clusters are taken.

    It is the one of the first two with the smaller hard loss. The third replaces it only if its
    clusters are much nearer to the mean projector. A hard loss that is only a little smaller is no
    sign of better clusters.

    Parameters
    ----------
    weights : list of three ndarrays of shape (k,)
        The `projector_weights` of the clusters by each of the `assignment_profiles`.
    """
    best = 0 if weights[0] @ weights[0] >= weights[1] @ weights[1] else 1
    to_beat = _NEARER * projector_distance(weights[best])
    return 2 if projector_distance(weights[2]) < to_beat else best


def projector_weights(votes, contingency, volumes):
    r"""Return the weight :math:`\lambda_c = u_c' A u_c` of each cluster of a partition, (k,).

    :math:`u_c` is the indicator of cluster c, multiplied by the square root of the mass of the
    samples and scaled to length 1. :math:`\lambda_c` is 1 if all partitions contain the cluster,
    and 0 for a cluster without samples.

    Parameters
    ----------
    votes : ndarray of shape (C,)
        What each base cluster adds to every pair of its samples.
    contingency : ndarray of shape (C, k)
        Number of samples that each base cluster shares with every cluster.
    volumes : ndarray of shape (k,)
        The mass of every cluster.
    """
    within = votes @ contingency**2
    return storage.safe_ratio(within, volumes)


def projector_distance(weights):
    """Return half the squared distance of clusters to the mean projector, up to a constant.

    `weights` are those of `projector_weights`. The distance is 0 if all partitions contain the
    clusters.
    """
    return max(len(weights) - weights.sum(), 0.0)  # rounding can make it negative


def normalised_loss(constant, weights):
    r"""Return the smallest loss of a factor whose rows are nonzero only in their own cluster.

    It is the loss of :math:`\sum_c \lambda_c u_c u_c'`, see `projector_weights`. `constant` is the
    loss of the zero factor.
    """
    return constant - float(weights @ weights)


# smallest number of base runs whose quarters are compared: fewer do not show how seeds differ
_MIN_RUNS = 20
# number of parts that are compared: two halves predict the agreement of seeds less well
_N_PARTS = 4
# largest number of distinct label rows that are compared, so that it takes little time
_MAX_COMPARED = 3_000
# updates of the factor of a quarter, which starts from leading eigenvectors: on halves, 10
# predicted the agreement of seeds as well as 500
_PART_UPDATES = 10
# mean adjusted Rand index of quarters with the consensus below which a warning is given. In 549
# fits, the index is lower in 83 % of those whose seeds agree to less than 0.8, and in 2 % of those
# whose seeds agree to more than 0.95. 0.77 or 0.78 is best, whichever of 49 data sets is left out.
_MIN_AGREEMENT = 0.77


def warn_of_seeds(problem, labels, n_clusters):
    """Warn if quarters of the base runs find other clusters, as other seeds then probably do.

    Parameters
    ----------
    problem : EnsembleProblem
    labels : ndarray of shape (m,), int
        Clusters of the distinct rows.
    n_clusters : int
    """
    runs = np.flatnonzero(problem.weights)
    if n_clusters == 1 or len(runs) < _MIN_RUNS:
        return
    ensemble = problem.ensemble
    if len(ensemble) > _MAX_COMPARED:
        drawn = ensemble.draw_counts(_MAX_COMPARED, make_rng(0))
        ensemble = ensemble.of_counts(drawn)
        labels = labels[drawn > 0]
    # base clusterers take turns: random parts have runs of each
    order = make_rng(0).permutation(runs)
    found = [
        _labels_of_runs(problem, ensemble, members, n_clusters)
        for members in np.array_split(order, _N_PARTS)
    ]
    parts = Ensemble(
        np.column_stack(found),
        ensemble.counts,
        np.full(_N_PARTS, 1 / _N_PARTS),
        np.full(_N_PARTS, n_clusters),
    )
    contingency = parts.contingency(one_hot(labels, n_clusters))
    agreement = parts.agreement(contingency).mean()
    if agreement < _MIN_AGREEMENT:
        warn(
            "Another random_state may give other clusters: the clusters of each quarter of the "
            f"base runs have an adjusted Rand index of only {agreement:.2f} with the consensus, on "
            f"average. Try an n_clusters other than {n_clusters} (see choose_n_clusters), or raise "
            f"n_estimators above {len(problem.weights)}, which helps with some data."
        )


def _labels_of_runs(problem, ensemble, members, n_clusters):
    """Return the clusters that some runs find, approximately; -1 for rows they did not see."""
    weights = problem.weights[members]
    part, groups = Ensemble.from_table(
        ensemble.codes[:, members],
        weights / weights.sum(),
        ensemble.counts.astype(np.float64),
    )
    part, groups = part.labelled_rows(groups)
    if not len(part):
        return groups
    of_part = EnsembleProblem(part, problem.dtype, problem.normalize)
    with one_thread():  # the number of threads would decide the last bits
        H = spectral_start(of_part.init_similarity, n_clusters)
        H = updated_factor(of_part.objective, H, _PART_UPDATES)
    return np.where(groups < 0, -1, H.argmax(axis=1)[groups])


NO_LABEL = (
    "labels_ is -1 for {} in no cluster: no partition includes them, or they are noise in most of "
    "the partitions that include them (if -1 means not included, pass NaN or -2)"
)
_MAX_LISTED = 5  # largest number of samples that a warning names
# mean size of clusters from which on singletons are named: none of the simulated Gaussian
# mixtures with such clusters had a singleton
_MIN_MEAN_SIZE = 10


def warn_of_singletons(problem, groups, labels, n_clusters, names):
    """Warn of clusters of one sample that is alone in most partitions; return whether it warned.

    There is no warning if clusters are small on average.

    Parameters
    ----------
    problem : EnsembleProblem
    groups : ndarray of shape (n,), int
        The distinct row of every sample; -1 for none.
    labels : ndarray of shape (m,), int
        Clusters of the distinct rows.
    n_clusters : int
    names : Index or None
        Names of the samples.
    """
    sizes = np.bincount(labels, weights=problem.counts)
    is_single = sizes[labels] == 1
    if not is_single.any() or problem.counts.sum() < _MIN_MEAN_SIZE * n_clusters:
        return False
    ensemble = problem.ensemble
    single_weights = ensemble.cluster_weights * (ensemble.sizes == 1)
    weights = ensemble.row_sums(single_weights[:, None])[:, 0]
    is_single &= weights / ensemble.coverage > 0.5
    samples = np.flatnonzero(is_single[groups] & (groups >= 0))
    if not len(samples):
        return False
    warn(
        f"The consensus has {format_count(len(samples), 'cluster')} of one sample, "
        "alone in most base partitions, too: "
        f"{list_samples(samples, names)}. If these are outliers, fewer clusters are left for other "
        "samples: leave the outliers out, clip features with "
        "numpy.clip(RobustScaler().fit_transform(X), -5, 5), or pass "
        "estimator=LandmarkSpectral() with base_n_clusters=n_clusters."
    )
    return True


def warn_of_unlabelled(samples, names, n_samples):
    """Warn of samples in no cluster; raise if all are. `names` is their index, or None."""
    if len(samples) == n_samples:
        raise ValueError(
            "partitions must put some samples into clusters, but most of them call every sample "
            "noise (-1). If -1 means not included, pass NaN or -2."
        )
    number = format_count(len(samples), "sample")
    warn(f"{NO_LABEL.format(number)}: {list_samples(samples, names)}.")


def list_samples(samples, names):
    """Return a text with the names, or positions, of the first samples, and how many follow."""
    shown = samples[:_MAX_LISTED]
    if names is not None:
        shown = names[shown]
    n_more = len(samples) - _MAX_LISTED
    more = f" and {n_more} more" if n_more > 0 else ""
    return f"{', '.join(map(str, shown))}{more}"
