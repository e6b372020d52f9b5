"""A set of partitions as consensus sees it: distinct label rows, counted, never (n, n)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.labels import cluster_counts, distinct_rows, one_hot, tuple_indicator
from nmfcluster._engine.run import Plan, Solution, Start, draw_seeds, random_start, spectral_start
from nmfcluster._engine.symmetric import Factorization, Problem, SymmetricObjective, fitted_factor
from nmfcluster.similarity import Factored

_ALONE = 1e-12  # weight of the partitions that saw others: less is rounding
_PRODUCTS = 2**20  # of two entries of a row that are held at a time: 8 MiB
_LIFT = 0.2  # added to an indicator so that no entry starts at 0


@dataclass(frozen=True)
class Ensemble:
    """The distinct rows of a label table, and how many samples have each.

    Samples with equal labels in all partitions have equal rows in a factor of the co-association,
    so that the collapsed problem is the whole problem, exactly.

    Attributes
    ----------
    table : ndarray of shape (n, T), int
        Encoded labels; -1: not seen.
    counts : ndarray of shape (m,), int
        Number of samples with each distinct row.
    weights : ndarray of shape (T,)
        Weights of the partitions, which sum to 1.
    n_clusters : ndarray of shape (T,), int
        Number of clusters of every partition.
    rows : ndarray of shape (m,), int, default=None
        Where the distinct rows are in `table`; by default they are all of it.
    """

    table: np.ndarray
    counts: np.ndarray
    weights: np.ndarray
    n_clusters: np.ndarray
    rows: np.ndarray | None = None

    @classmethod
    def from_table(cls, codes: np.ndarray, weights: np.ndarray) -> tuple[Ensemble, np.ndarray]:
        """Return the ensemble of an encoded table, and the distinct row of every sample."""
        first, groups, counts = distinct_rows(codes)
        return cls(codes, counts, weights, cluster_counts(codes), first), groups

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def codes(self) -> np.ndarray:
        """Distinct label rows, (m, T); a large table is better read in blocks."""
        return self.table if self.rows is None else self.table[self.rows]

    @cached_property
    def _factors(self) -> tuple[sp.csr_array, sp.csr_array]:
        """J and A with Z = J A, the indicator of the clusters of all partitions."""
        return tuple_indicator(self.table, self.n_clusters, rows=self.rows)

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
    def observed(self) -> np.ndarray | None:
        """Where a partition saw a row, (m, T), bool; None where all saw all."""
        return None if self.table.min() >= 0 or self.codes.min() >= 0 else self.codes >= 0

    @cached_property
    def coverage(self) -> np.ndarray:
        """Total weight of the partitions that saw each row, (m,)."""
        if self.observed is None:
            return np.full(len(self), self.weights.sum())
        return self.observed @ self.weights

    @cached_property
    def constant(self) -> float:
        """Loss of the zero factor: the weighted mean number of pairs that share a cluster."""
        sizes = self.collect(self.counts.astype(np.float64))
        return float(self.cluster_weights @ sizes**2)

    def similarity(self, dtype: Any) -> Factored:
        """Return the co-association, collapsed to the distinct rows."""
        J, A = (factor.astype(dtype, copy=False) for factor in self._factors)
        return Factored(J, Factored(A, self.cluster_weights), np.sqrt(self.counts))

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
        partitions disagree, and counts only the pairs that a partition saw.
        """
        N = self.contingency(indicator)
        return float(
            self.constant
            - 2 * self.cluster_weights @ (N**2).sum(axis=1)
            + self.weights @ (self.seen_sizes(N) ** 2).sum(axis=1)
        )

    def hard_losses_of_partitions(self) -> np.ndarray:
        """Return the hard loss of every partition as a consensus of all, (T,)."""
        J, A = self._factors
        counts = self.counts[:, None].astype(np.float64)
        shared = (A.T @ ((J.T @ (J * counts)) @ A)).tocsr()  # in this order: T^2 becomes (T / g)^2
        if self.observed is None:
            own = shared.diagonal() ** 2
        else:  # only the part of a cluster that the other partition saw counts
            part = A.T @ ((J * counts).T @ self.observed)
            own = part**2 @ self.weights
        shared.data **= 2
        per_cluster = own - 2 * (shared @ self.cluster_weights)
        return self.constant + np.add.reduceat(per_cluster, self.offsets)

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
        P = memberships.astype(np.float64)
        mass = np.maximum(self.counts @ P, np.finfo(float).tiny)
        return self.cluster_weights[:, None] * self.contingency(P) / mass

    def sample(self, size: int, rng: np.random.RandomState) -> Ensemble:
        """Return the ensemble of `size` samples drawn without replacement."""
        owner = np.repeat(np.arange(len(self)), self.counts)
        drawn = np.bincount(owner[rng.permutation(len(owner))[:size]], minlength=len(self))
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
            return counts * (counts - 1) / 2

        both = np.add.reduceat(pairs(contingency).sum(axis=1), self.offsets)
        ours = np.add.reduceat(pairs(contingency.sum(axis=1)), self.offsets)
        theirs = pairs(self.seen_sizes(contingency)).sum(axis=1)
        everything = pairs(self.seen_sizes(contingency).sum(axis=1))
        expected = ours * theirs / np.maximum(everything, 1)
        spread = (ours + theirs) / 2 - expected
        return np.where(spread == 0, 1.0, (both - expected) / np.where(spread == 0, 1, spread))

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
        own = (np.arange(len(self)), labels)
        together = self.spread(self.cluster_weights[:, None] * contingency)[own]
        sizes = self.weights[:, None] * self.seen_sizes(contingency)
        seen = sizes.sum(axis=0)[labels] if self.observed is None else (self.observed @ sizes)[own]
        others = seen - self.coverage
        alone = others <= _ALONE
        return np.where(alone, 1.0, (together - self.coverage) / np.where(alone, 1, others))


class Support(NamedTuple):
    """What partitions, or a similarity, say of a clustering."""

    confidence: np.ndarray  # (n_samples,): how similar a sample is to the others of its cluster
    agreement: np.ndarray | None  # (T,): that of every partition with the clustering
    profile: np.ndarray  # what new samples are compared with, see `Ensemble.cluster_profile`


@dataclass(frozen=True)
class SeenPairsObjective(SymmetricObjective):
    r"""The objective where partition t saw the samples in :math:`O_t`, and only pairs of these.

    :math:`J(H) = \sum_t w_t \sum_{i,j \in O_t} (M^t_{ij} - (HH')_{ij})^2`, with C(H) the sum of
    ``w_t 1_{O_t} H H_t'H_t``. A is the co-association with a pair that was not seen counted as 0.

    Attributes
    ----------
    observed : ndarray of shape (n, T), bool
        Where a partition saw a sample.
    weights : ndarray of shape (T,)
        Weights of the partitions.
    """

    observed: np.ndarray
    weights: np.ndarray

    @property
    def quartic_bound(self) -> float:
        """3 times the largest weight of a pair."""
        return 3.0 * float(np.sum(self.weights))

    def quartic(self, H: np.ndarray) -> np.ndarray:
        """Return C(H), of the shape of H: (n_starts, n, k)."""
        return np.stack([self._of_one(factor) for factor in H])

    def _of_one(self, H: np.ndarray) -> np.ndarray:
        n, k = H.shape
        size = max(1, _PRODUCTS // (k * k))  # n x k^2 is formed some rows at a time
        blocks = [slice(start, start + size) for start in range(0, n, size)]
        G = np.zeros((self.observed.shape[1], k * k), dtype=H.dtype)
        for b in blocks:
            pairs = (H[b, :, None] * H[b, None, :]).reshape(-1, k * k)
            G += self.observed[b].T.astype(H.dtype) @ pairs
        G *= np.asarray(self.weights, dtype=H.dtype)[:, None]
        C = np.empty_like(H)
        for b in blocks:  # row i: the sum of w_t G_t over the partitions that saw i, times h_i
            seen = (self.observed[b].astype(H.dtype) @ G).reshape(-1, k, k)
            C[b] = np.einsum("ncd,nd->nc", seen, H[b])
        return C


class EnsembleProblem(Problem):
    """The co-association of an ensemble, to be factorized; the smallest hard loss ranks first.

    Parameters
    ----------
    ensemble : Ensemble
    groups : ndarray of shape (n,), int, or None
        The distinct row of every sample.
    dtype : dtype
        float32 or float64, to compute in.
    """

    polish_tol = 1e-4  # partitions that agree fix the factor well
    polish_min_iter = 1

    def __init__(self, ensemble: Ensemble, groups: np.ndarray | None, dtype: np.dtype) -> None:
        self.ensemble, self.dtype = ensemble, dtype
        self.name = f"{len(ensemble)} label rows"
        self.groups, self.counts, self.weights = groups, ensemble.counts, ensemble.weights

    @property
    def is_complete(self) -> bool:
        """Whether every partition saw all samples."""
        return self.ensemble.observed is None

    def __len__(self) -> int:
        return len(self.ensemble)

    @cached_property
    def objective(self) -> SymmetricObjective:  # type: ignore[override]  # made when it is needed
        """The objective, for the pairs that were seen where some were not."""
        A, observed = self.ensemble.similarity(self.dtype), self.ensemble.observed
        if observed is None:
            return SymmetricObjective(A, self.ensemble.constant)
        return SeenPairsObjective(A, self.ensemble.constant, observed, self.ensemble.weights)

    def starts(self, plan: Plan, rng: np.random.RandomState) -> list[Start]:
        """Return a start from eigenvectors, then in turn a random one and a base partition."""
        mass, k = self.ensemble.counts.astype(np.float64), plan.n_clusters
        ranking = np.empty(0, dtype=int)
        if plan.n_init > 2:
            ranking = np.argsort(self.ensemble.hard_losses_of_partitions(), kind="stable")
        starts: list[Start] = [partial(spectral_start, self.objective.A, k)]
        for i, seed in enumerate(draw_seeds(rng, plan.n_init - 1)):
            if i % 2 and i // 2 < len(ranking):
                labels = self.ensemble.codes[:, ranking[i // 2]]
                starts.append(partial(label_start, labels, mass, k, seed, self.dtype))
            else:
                starts.append(partial(random_start, mass, k, seed, self.dtype))
        return starts

    def rank(self, form: type[Factorization]) -> Callable[[Solution], float]:
        """Return the hard loss of the largest entries of the rows."""

        def hard_loss(solution: Solution) -> float:
            H = form.factor_of(solution)
            return self.ensemble.hard_loss(one_hot(H.argmax(axis=1), H.shape[1]))

        return hard_loss

    def part(self, size: int, rng: np.random.RandomState) -> EnsembleProblem:
        """Return the problem of `size` samples."""
        return EnsembleProblem(self.ensemble.sample(size, rng), None, self.dtype)

    def extended(self, part: Problem, H: np.ndarray) -> np.ndarray:
        """Return the factor of all rows that fits best to the factor of a part of the samples."""
        assert isinstance(part, EnsembleProblem)
        coarse, whole = part.ensemble, self.ensemble
        rows = H / np.sqrt(coarse.counts)[:, None]
        profile = whole.cluster_weights[:, None] * coarse.contingency(rows)
        weighted = rows * coarse.counts[:, None]
        if whole.observed is None:
            G = weighted.T @ rows
        else:  # a row is compared with the samples that its partitions saw
            k = H.shape[1]
            pairs = (weighted[:, :, None] * rows[:, None, :]).reshape(-1, k * k)
            seen = np.asarray((coarse.codes >= 0).T @ pairs) * whole.weights[:, None]
            G = (whole.observed @ seen).reshape(-1, k, k)
        fitted = fitted_factor(whole.spread(profile), G)
        return (fitted * np.sqrt(whole.counts)[:, None]).astype(H.dtype)

    def support(self, memberships: np.ndarray, labels: np.ndarray) -> Support:
        """Return what the partitions say of a clustering of the distinct rows."""
        ensemble = self.ensemble
        contingency = ensemble.contingency(one_hot(labels, memberships.shape[1]))
        confidence = ensemble.item_consensus(contingency, labels)[self.groups]
        profile = ensemble.cluster_profile(memberships)
        return Support(confidence, ensemble.agreement(contingency), profile)


def label_start(
    labels: np.ndarray, mass: np.ndarray, n_clusters: int, seed: int, dtype: np.dtype
) -> np.ndarray:
    """Return the lifted indicator of a partition's largest clusters, (n, n_clusters).

    Samples outside them, and clusters that the partition does not have, start with small
    random entries. A row stands for `mass` samples; a label of -1 is none.
    """
    rng = np.random.RandomState(seed)
    H = _LIFT * rng.uniform(0.5, 1.0, size=(len(labels), n_clusters))
    seen = labels >= 0
    sizes = np.bincount(labels[seen], weights=mass[seen])
    for column, cluster in enumerate(np.argsort(-sizes, kind="stable")[:n_clusters]):
        H[labels == cluster, column] += 1
    return (H * np.sqrt(mass)[:, None]).astype(dtype)
