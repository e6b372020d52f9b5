"""The co-association of an ensemble as a problem: its objective, and its hard loss."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from operator import itemgetter

import numpy as np

from nmfcluster._arrays.labels import one_hot
from nmfcluster._base import hard_labels, membership
from nmfcluster._engine.loop import Solution
from nmfcluster._engine.symmetric import Factorization, Problem, SymmetricObjective, fitted_factor
from nmfcluster.partitions.ensemble import Ensemble

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
        self, ensemble: Ensemble, groups: np.ndarray | None, dtype: np.dtype, normalize: bool
    ) -> None:
        self.ensemble, self.dtype, self.normalize = ensemble, dtype, normalize
        self.name = f"{len(ensemble)} label rows"
        self.groups, self.counts, self.weights = groups, ensemble.counts, ensemble.weights
        self.coverage = ensemble.coverage
        # of more rows an update takes a second: a tenth of the tolerance moves 3 labels of 100,000
        self.polish_tol = 1e-4 if len(ensemble) <= 100_000 else 1e-3
        # by what the votes of base clusters are divided: one that no sample reaches has none
        sizes = ensemble.sizes
        self._sizes = np.where(sizes > 0, sizes, 1) if normalize else np.ones(len(sizes))
        self._votes = ensemble.cluster_weights / self._sizes
        # the weight of a sample of each distinct row, whose root rows are divided by
        self._weight = self.coverage if normalize else np.ones(len(ensemble))
        # the loss of the zero factor: the weighted mean of the squared norms of the partitions
        sums = ensemble.collect(ensemble.counts / self._weight)
        constant = float(ensemble.cluster_weights @ (sums / self._sizes) ** 2)
        A = ensemble.similarity(dtype, self._votes, 1 / np.sqrt(self._weight))
        self.friendly, self.mass = A, self.counts * self._weight
        self.objective = SymmetricObjective(A, constant)

    def rank(self, form: type[Factorization]) -> Callable[[Solution], float]:
        """Return the hard loss of what is read off a factor."""
        ranking = copy(self)
        ranking.groups = None  # one number a sample, which workers need not be sent
        return partial(ranking._hard_loss_of, form)

    def _hard_loss_of(self, form: type[Factorization], solution: Solution) -> float:
        H = form.factor_of(solution)
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
        return normalised_loss(self.objective.constant, self._votes, N, self.mass @ indicator)

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
        return EnsembleProblem(self.ensemble.sample(size, rng), None, self.dtype, self.normalize)

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
        return membership(self.ensemble.spread(profile).astype(self.dtype, copy=False)), profile

    def support(self, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """Return how similar samples are to the others of their cluster, and agreements.

        The second are those of every partition with the clustering of the distinct rows.
        """
        contingency = self.ensemble.contingency(one_hot(labels, n_clusters))
        confidence = self.ensemble.item_consensus(contingency, labels)[self.groups]
        return confidence, self.ensemble.agreement(contingency)

    def beside(self, samples: np.ndarray, labels: np.ndarray, profile: np.ndarray) -> tuple:
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
        return membership(similar), own, np.where(own < 0, 0, rest.item_consensus(contingency, own))


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
