"""A set of partitions as consensus sees it: distinct label rows, counted, never (n, n)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

import nmfcluster._arrays.labels as coded
from nmfcluster._arrays import storage
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
    def from_table(cls, codes: np.ndarray, weights: np.ndarray) -> tuple[Ensemble, np.ndarray]:
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
        return coded.tuple_indicator(self.table, self.n_clusters, rows=self.rows, most=self.most)

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
        if self.most is None and self.is_complete:  # else a row depended on those beside it
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

    def similarity(self, dtype: Any, votes: np.ndarray, scale: np.ndarray) -> Similarity:
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
        shared, pairs = self.cluster_weights @ (N * N).sum(axis=1), (counted.sum(axis=0) ** 2).sum()
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
            return counts * (counts - self.own) / 2

        both = np.add.reduceat(pairs(contingency).sum(axis=1), self.offsets)
        ours = np.add.reduceat(pairs(contingency.sum(axis=1)), self.offsets)
        theirs = pairs(self.seen_sizes(contingency)).sum(axis=1)
        everything = pairs(self.seen_sizes(contingency).sum(axis=1))
        return coded.adjusted_rand(both, ours, theirs, np.where(everything > 0, everything, 1))

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
