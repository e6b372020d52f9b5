"""A set of partitions as consensus sees it: distinct label rows, counted, never (n, n).

The co-association of an ensemble as a problem: its objective, and its hard loss.

Samples so far from all others that base runs, and the consensus, spend clusters on them.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp

import nmfcluster._utils.labels as coded
from nmfcluster._base import hard_labels, membership
from nmfcluster._optim.run import Solution
from nmfcluster._optim.symmetric import (
    Problem,
    SymmetricObjective,
    fitted_factor,
    symmetric_factor,
)
from nmfcluster._utils import storage
from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.validation import counted, warn
from nmfcluster.similarity import Explicit, Factored, Similarity


@dataclass(frozen=True)
class Ensemble:
    """The distinct rows of a label table, and how many samples have each.

    Samples with equal labels in all partitions have equal rows in a factor of the co-association,
    so that the collapsed problem is the whole problem, exactly.

    Attributes
    ----------
    table : ndarray of shape (n, T), int
        Encoded labels; -1: not seen.
    counts : ndarray of shape (m,)
        Number of samples with each distinct row, or the sum of their weights.
    weights : ndarray of shape (T,)
        Weights of the partitions, which sum to 1.
    n_clusters : ndarray of shape (T,), int
        Number of clusters of every partition.
    rows : ndarray of shape (m,), int, default=None
        Where the distinct rows are in `table`; by default they are all of it.
    most : int, default=None
        See `tuple_indicator`: a number makes sums of a row independent of the rows beside it.
    own : float, default=1
        What a sample makes no pair with: itself, which counts as 1; in the mean, where some count
        as less.
    """

    table: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    n_clusters: np.ndarray
    rows: np.ndarray | None = None
    most: int | None = None
    own: float = 1.0

    @classmethod
    def from_table(
        cls, codes: np.ndarray, weights: np.ndarray
    ) -> tuple[Ensemble, np.ndarray]:
        """Return the ensemble of an encoded table, and the distinct row of every sample."""
        first, groups, counts = coded.distinct_rows(codes)
        return cls(codes, counts, weights, coded.cluster_counts(codes), first), groups

    def __getstate__(self) -> dict[str, Any]:
        """Return the distinct rows alone: a cluster is not sent the table of all samples."""
        state = {**vars(self), "table": self.codes, "rows": None}
        state.pop("codes", None)  # which is the table now
        return state

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def codes(self) -> np.ndarray:
        """Distinct label rows, (m, T); a large table is better read in blocks."""
        return self.table if self.rows is None else self.table[self.rows]

    @cached_property
    def _is_short(self) -> bool:
        """Whether there are fewer rows than partitions: all pairs of rows take less than labels."""
        return self.most is None and len(self) < len(self.n_clusters)

    @cached_property
    def _factors(self) -> tuple[sp.csr_array, sp.csr_array]:
        """J and A with Z = J A, the indicator of the clusters of all partitions."""
        if self._is_short:  # rows hardly share a tuple: J is Z
            Z = coded.indicator(self.codes, self.n_clusters)
            return Z, storage.identity(Z.shape[1], Z.dtype)
        return coded.tuple_indicator(
            self.table, self.n_clusters, rows=self.rows, most=self.most
        )

    def spread(self, per_cluster: np.ndarray) -> np.ndarray:
        """Return Z X: the sum, for every row, of what X says of its clusters.

        Parameters
        ----------
        per_cluster : ndarray of shape (sum of n_clusters, k)

        Returns
        -------
        ndarray of shape (m, k)
        """
        J, A = self._factors
        return J @ (A @ per_cluster)

    def collect(self, per_row: np.ndarray) -> np.ndarray:
        """Return Z' X: the sum, for every cluster of every partition, over its rows.

        Parameters
        ----------
        per_row : ndarray of shape (m, k) or (m,)

        Returns
        -------
        ndarray of shape (sum of n_clusters, k) or (sum of n_clusters,)
        """
        J, A = self._factors
        return A.T @ (J.T @ per_row)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Number of the first cluster of every partition, (T,)."""
        return np.concatenate([[0], np.cumsum(self.n_clusters)[:-1]])

    @cached_property
    def cluster_weights(self) -> np.ndarray:
        """Weight of its partition for every cluster."""
        return np.repeat(self.weights, self.n_clusters)

    @cached_property
    def is_complete(self) -> bool:
        """Whether every partition saw all rows."""
        return bool(self.table.min() >= 0 or self.codes.min() >= 0)

    def over_seen(self, per_partition: np.ndarray) -> np.ndarray:
        """Return the sum, for every row, of what X says of the partitions that saw it, (m, k).

        Parameters
        ----------
        per_partition : ndarray of shape (T, k)
        """
        return self.spread(np.repeat(per_partition, self.n_clusters, axis=0))

    @cached_property
    def coverage(self) -> np.ndarray:
        """Total weight of the partitions that saw each row, (m,)."""
        if (
            self.most is None and self.is_complete
        ):  # else a row depended on those beside it
            return np.full(len(self), self.weights.sum())
        return self.over_seen(self.weights[:, None])[:, 0]

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of samples of every cluster of every partition, (sum of n_clusters,)."""
        return self.collect(self.counts.astype(np.float64))

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factor: the weighted mean number of pairs that share a cluster."""
        return float(self.cluster_weights @ self.sizes**2)

    def similarity(
        self, dtype: Any, votes: np.ndarray, scale: np.ndarray
    ) -> Similarity:
        """Return the co-association, collapsed to the distinct rows.

        Parameters
        ----------
        dtype : dtype
        votes : ndarray of shape (sum of n_clusters,)
            What each cluster adds to every pair that it holds: the weight of its partition in
            the co-association itself.
        scale : ndarray of shape (m,)
            By what every sample's row and column are multiplied.
        """
        (J, A), scale = self._factors, np.sqrt(self.counts) * scale
        if self._is_short:
            Z = storage.stored_as_fits(storage.scaled_columns(J, np.sqrt(votes)))
            return Explicit(storage.as_dense(Z @ Z.T).astype(dtype)).scaled(scale)
        inner = Factored(A.astype(dtype, copy=False), votes)
        return Factored(J.astype(dtype, copy=False), inner, scale)

    def contingency(self, memberships: np.ndarray) -> np.ndarray:
        """Return Z' diag(counts) memberships: what every cluster of every partition holds.

        Parameters
        ----------
        memberships : ndarray of shape (m, k)
            One row a distinct row: an indicator, or soft memberships.
        """
        return self.collect(memberships * self.counts[:, None])

    def seen_sizes(self, contingency: np.ndarray) -> np.ndarray:
        """Return the number of samples of every cluster that each partition saw, (T, k)."""
        return np.add.reduceat(contingency, self.offsets, axis=0)

    def hard_loss(self, indicator: np.ndarray) -> float:
        """Return the loss of a partition: the weighted mean of its distances to all of them.

        This is eq. 12 of Li et al. up to a constant, the number of ordered pairs on which two
        partitions disagree, where all partitions saw all samples.
        """
        counted = indicator * self.counts[:, None]
        N = self.collect(counted)
        shared, pairs = (
            self.cluster_weights @ (N * N).sum(axis=1),
            (counted.sum(axis=0) ** 2).sum(),
        )
        return float(self.constant - 2 * shared + (self.weights * pairs).sum())

    def cluster_profile(self, memberships: np.ndarray) -> np.ndarray:
        """Return what membership of a base cluster says of the consensus clusters.

        ``indicator(labels of a sample) @ profile`` is its mean co-association with the members of
        every consensus cluster.

        Parameters
        ----------
        memberships : ndarray of shape (m, k)
            Rows sum to 1.

        Returns
        -------
        ndarray of shape (sum of n_clusters, k)
        """
        P = memberships.astype(np.float64, copy=False)
        mass = np.maximum(self.counts @ P, np.finfo(float).tiny)
        return self.cluster_weights[:, None] * self.contingency(P) / mass

    def sample(self, size: int, rng: np.random.RandomState) -> Ensemble:
        """Return the ensemble of `size` samples drawn without replacement; with, by weights."""
        n = self.counts
        n = rng.multinomial(size, n / n.sum()) if n.dtype.kind == "f" else n
        owner = np.repeat(np.arange(len(self)), n)
        drawn = np.bincount(
            owner[rng.permutation(len(owner))[:size]], minlength=len(self)
        )
        kept = np.flatnonzero(drawn)
        rows = kept if self.rows is None else self.rows[kept]
        return Ensemble(self.table, drawn[kept], self.weights, self.n_clusters, rows)

    def agreement(self, contingency: np.ndarray) -> np.ndarray:
        """Return the adjusted Rand index of every partition with a consensus, (T,).

        Parameters
        ----------
        contingency : ndarray of shape (sum of n_clusters, k)
            `contingency` of the consensus' indicator.
        """

        def pairs(counts: np.ndarray) -> np.ndarray:
            return counts * (counts - self.own) / 2

        both = np.add.reduceat(pairs(contingency).sum(axis=1), self.offsets)
        ours = np.add.reduceat(pairs(contingency.sum(axis=1)), self.offsets)
        theirs = pairs(self.seen_sizes(contingency)).sum(axis=1)
        everything = pairs(self.seen_sizes(contingency).sum(axis=1))
        return coded.adjusted_rand(
            both, ours, theirs, np.where(everything > 0, everything, 1)
        )

    def item_consensus(self, contingency: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how often a sample shares a cluster with the others of its consensus cluster.

        Parameters
        ----------
        contingency : ndarray of shape (sum of n_clusters, k)
        labels : ndarray of shape (m,)
            Consensus label of every distinct row.

        Returns
        -------
        ndarray of shape (m,)
            A mean over the pairs that were seen, in [0, 1]; 1 for a cluster of one sample.
        """
        at = (np.arange(len(self)), labels)
        together = self.spread(self.cluster_weights[:, None] * contingency)[at]
        sizes = self.weights[:, None] * self.seen_sizes(contingency)
        alike = self.most is None and self.is_complete
        seen = sizes.sum(axis=0)[labels] if alike else self.over_seen(sizes)[at]
        own = self.coverage * np.minimum(self.counts, self.own)
        others = seen - own
        alone = others <= coded.NEVER
        return np.where(alone, 1.0, (together - own) / np.where(alone, 1, others))


#: a base cluster's votes for a sample are divided by its size to one of these powers
POWERS = (0.0, 0.5, 1.0)


class EnsembleProblem(Problem):
    r"""The co-association of an ensemble, to be factorized; the smallest hard loss ranks first.

    Normalised, partition t is the projector :math:`P^t` onto the indicators of its clusters: a
    cluster of s samples adds 1 / s to the pairs that it holds, and not 1. A pair that was not seen
    counts as 0, and rows and columns are divided by the root of the weight of the partitions that
    saw the sample, so that the rows of the sum have the same length again.

    Parameters
    ----------
    ensemble : Ensemble
    groups : ndarray of shape (n,), int, or None
        The distinct row of every sample.
    dtype : dtype
        float32 or float64, to compute in.
    normalize : bool
        Whether to weigh clusters, and not pairs, which needs partitions that saw all samples.
    """

    polish_min_iter = 1  # updates: partitions that agree fix the factor well

    def __init__(
        self,
        ensemble: Ensemble,
        groups: np.ndarray | None,
        dtype: np.dtype,
        normalize: bool,
    ) -> None:
        self.ensemble, self.dtype, self.normalize = ensemble, dtype, normalize
        self.name = f"{len(ensemble)} label rows"
        self.groups, self.counts, self.weights = (
            groups,
            ensemble.counts,
            ensemble.weights,
        )
        self.coverage = ensemble.coverage
        # of more rows an update takes a second: a tenth of the tolerance moves 3 labels of 100,000
        self.polish_tol = 1e-4 if len(ensemble) <= 100_000 else 1e-3
        # by what the votes of base clusters are divided: one that no sample reaches has none
        sizes = ensemble.sizes
        self._sizes = (
            np.where(sizes > 0, sizes, 1) if normalize else np.ones(len(sizes))
        )
        self._votes = ensemble.cluster_weights / self._sizes
        # the weight of a sample of each distinct row, whose root rows are divided by
        self._weight = self.coverage if normalize else np.ones(len(ensemble))
        # the loss of the zero factor: the weighted mean of the squared norms of the partitions
        sums = ensemble.collect(ensemble.counts / self._weight)
        constant = float(ensemble.cluster_weights @ (sums / self._sizes) ** 2)
        A = ensemble.similarity(dtype, self._votes, 1 / np.sqrt(self._weight))
        self.init_similarity, self.mass = A, self.counts * self._weight
        self.objective = SymmetricObjective(A, constant)

    def rank(self) -> Callable[[Solution], float]:
        """Return the hard loss of what is read off a factor."""
        ranking = copy(self)
        ranking.groups = None  # one number a sample, which workers need not be sent
        return ranking._hard_loss_of

    def _hard_loss_of(self, solution: Solution) -> float:
        H = symmetric_factor(solution)
        if self.normalize:
            return self._best_profile(membership(H))[0]
        return self.ensemble.hard_loss(one_hot(H.argmax(axis=1), H.shape[1]))

    def hard_loss(self, indicator: np.ndarray) -> float:
        r"""Return the smallest normalised loss of a factor whose rows have one entry, as here.

        With :math:`u_c` the column of cluster c times the root of the mass of the samples, scaled
        to length 1, it is that of :math:`\sum_c \lambda_c u_c u_c'`,
        :math:`\lambda_c = u_c' A u_c`.
        """
        N = self.ensemble.collect(indicator * self.counts[:, None])
        return normalised_loss(
            self.objective.constant, self._votes, N, self.mass @ indicator
        )

    def _best_profile(self, shares: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the smallest hard loss of the readings, and the profile that is read there."""
        plain, readings = self.ensemble.cluster_profile(shares), []
        for power in POWERS:
            profile = plain / self._sizes[:, None] ** power
            labels = self.ensemble.spread(profile).argmax(axis=1)
            readings.append((self.hard_loss(one_hot(labels, shares.shape[1])), profile))
        return min(readings, key=itemgetter(0))

    def part(self, size: int, rng: np.random.RandomState) -> EnsembleProblem:
        """Return the problem of `size` samples."""
        return EnsembleProblem(
            self.ensemble.sample(size, rng), None, self.dtype, self.normalize
        )

    def extended(self, part: Problem, H: np.ndarray) -> np.ndarray:
        """Return the factor of all rows that fits best to the factor of a part of the samples."""
        assert isinstance(part, EnsembleProblem)
        coarse, whole = part.ensemble, self.ensemble
        rows = H / np.sqrt(coarse.counts)[:, None]
        scaled = rows / np.sqrt(part._weight)[:, None]
        profile = self._votes[:, None] * coarse.contingency(scaled)
        votes = whole.spread(profile)
        votes /= np.sqrt(self._weight)[:, None]
        fitted = fitted_factor(votes, (rows * coarse.counts[:, None]).T @ rows)
        fitted *= np.sqrt(whole.counts)[:, None]
        return fitted.astype(H.dtype, copy=False)

    def read(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how much the distinct rows belong to each cluster, and what new ones do by.

        Normalised, that is their mean co-association with every cluster; else their shares. For
        new samples see `Ensemble.cluster_profile`.

        Parameters
        ----------
        shares : ndarray of shape (m, k)
            Rows of the factor, scaled to sum to 1.
        """
        if not self.normalize:
            return shares, self.ensemble.cluster_profile(shares)
        _, profile = self._best_profile(shares)
        return membership(
            self.ensemble.spread(profile).astype(self.dtype, copy=False)
        ), profile

    def support(
        self, labels: np.ndarray, n_clusters: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how similar samples are to the others of their cluster, and agreements.

        The second are those of every partition with the clustering of the distinct rows.
        """
        contingency = self.ensemble.contingency(one_hot(labels, n_clusters))
        confidence = self.ensemble.item_consensus(contingency, labels)[self.groups]
        return confidence, self.ensemble.agreement(contingency)

    def beside(
        self, samples: np.ndarray, labels: np.ndarray, profile: np.ndarray
    ) -> tuple:
        """Return memberships, labels and confidence of samples that are in no row, as they are new.

        Parameters
        ----------
        samples : ndarray of int
        labels : ndarray of shape (m,), int
            Clusters of the distinct rows.
        profile : ndarray of shape (sum of n_clusters, k)
        """
        rest = replace(self.ensemble, counts=np.zeros(len(samples)), rows=samples)
        own = hard_labels(similar := rest.spread(profile))
        contingency = self.ensemble.contingency(one_hot(labels, profile.shape[1]))
        return (
            membership(similar),
            own,
            np.where(own < 0, 0, rest.item_consensus(contingency, own)),
        )


def normalised_loss(
    constant: float, votes: np.ndarray, contingency: np.ndarray, volumes: np.ndarray
) -> float:
    """Return the loss of a partition, see `EnsembleProblem.hard_loss`.

    Parameters
    ----------
    constant : float
        Loss of the zero factor.
    votes : ndarray of shape (C,)
        What each base cluster adds to every pair that it holds.
    contingency : ndarray of shape (C, k)
        What it holds of every cluster.
    volumes : ndarray of shape (k,)
        The mass of every cluster.
    """
    within = votes @ contingency**2
    shares = np.divide(within, volumes, out=np.zeros_like(within), where=volumes > 0)
    return constant - float(shares @ shares)


NO_LABEL = "No partition labels {}, whose labels_ are -1"
_SHOWN = 5  # samples that a warning names
_SIZE = 10  # samples a cluster in the mean, from which on none was ever alone among drawn Gaussians


def lone_samples(
    problem: EnsembleProblem, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return the samples that are clusters, and are so in most partitions that saw them.

    None where clusters are small in the mean.

    Parameters
    ----------
    problem : EnsembleProblem
    labels : ndarray of shape (m,), int
        Clusters of its distinct rows.
    n_clusters : int

    Returns
    -------
    ndarray of int
    """
    ensemble, sizes = problem.ensemble, np.bincount(labels, weights=problem.counts)
    lone = sizes[labels] == 1
    if not lone.any() or problem.counts.sum() < _SIZE * n_clusters:
        return np.empty(0, dtype=int)
    alone = ensemble.cluster_weights * (ensemble.sizes == 1)
    lone &= ensemble.spread(alone[:, None])[:, 0] / ensemble.coverage > 0.5
    groups = np.asarray(problem.groups)
    return np.flatnonzero(lone[groups] & (groups >= 0))  # -1: in no partition


def warn_of_lone(problem: Any, labels: np.ndarray, n_clusters: int, names: Any) -> None:
    """Warn of samples that a consensus and most of its partitions spend clusters on.

    `names` is the index of the samples, or None; a similarity that was handed in has no partitions.
    """
    of_partitions = isinstance(problem, EnsembleProblem)
    if not of_partitions or not len(
        samples := lone_samples(problem, labels, n_clusters)
    ):
        return
    warn(
        f"{counted(len(samples), 'cluster')} of one sample, alone in most base partitions, too: "
        f"{listed(samples, names)}. If they are outliers, they take clusters that others "
        "need: leave them out, or clip features, as by numpy.clip(RobustScaler().fit_transform(X), "
        "-5, 5), or give estimator=LandmarkSpectral() with base_n_clusters=n_clusters."
    )


def warn_of_lost(samples: np.ndarray, names: Any) -> None:
    """Warn of samples that no partition labels; `names` is their index, or None."""
    warn(
        f"{NO_LABEL.format(counted(len(samples), 'sample'))}: {listed(samples, names)}."
    )


def listed(samples: np.ndarray, names: Any) -> str:
    """Return the names of the first of some samples, or their numbers, and how many more are."""
    shown = samples[:_SHOWN] if names is None else names[samples[:_SHOWN]]
    more = f" and {len(samples) - _SHOWN} more" if len(samples) > _SHOWN else ""
    return f"{', '.join(map(str, shown))}{more}"
