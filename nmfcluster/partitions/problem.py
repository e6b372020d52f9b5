"""The co-association of an ensemble as a problem: its objective, its starts, its hard loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from nmfcluster._arrays.labels import one_hot
from nmfcluster._arrays.storage import row_blocks
from nmfcluster._base import membership
from nmfcluster._engine.run import Plan, Solution, Start, loss_of
from nmfcluster._engine.starts import draw_seeds, random_start, spectral_start
from nmfcluster._engine.symmetric import Factorization, Problem, SymmetricObjective, fitted_factor
from nmfcluster.partitions.ensemble import Ensemble

_PRODUCTS = 2**20  # of two entries of a row that are held at a time: 8 MiB
_LIFT = 0.2  # added to an indicator so that no entry starts at 0


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
        blocks = list(row_blocks(n, size))
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
    """The co-association of an ensemble, to be factorized.

    Normalised, it is divided by the roots of its row sums, a pair that was not seen counts as 0,
    and the smallest loss ranks first; as it is, the smallest hard loss does.

    Parameters
    ----------
    ensemble : Ensemble
    groups : ndarray of shape (n,), int, or None
        The distinct row of every sample.
    dtype : dtype
        float32 or float64, to compute in.
    normalize : bool
        Whether to factorize the normalised co-association.
    """

    polish_tol = 1e-4  # partitions that agree fix the factor well
    polish_min_iter = 1

    def __init__(
        self, ensemble: Ensemble, groups: np.ndarray | None, dtype: np.dtype, normalize: bool
    ) -> None:
        self.ensemble, self.dtype, self.normalize = ensemble, dtype, normalize
        self.name = f"{len(ensemble)} label rows"
        self.groups, self.counts, self.weights = groups, ensemble.counts, ensemble.weights

    @property
    def is_complete(self) -> bool:
        """Whether every partition saw all samples."""
        return self.ensemble.observed is None

    def __len__(self) -> int:
        return len(self.ensemble)

    @cached_property
    def _scale(self) -> np.ndarray:
        """By what the row and the column of a sample of each distinct row are multiplied, (m,)."""
        return 1 / np.sqrt(self.ensemble.degrees) if self.normalize else np.ones(len(self))

    @cached_property
    def objective(self) -> SymmetricObjective:  # type: ignore[override]  # made when it is needed
        """The objective, for the pairs that were seen where some were not."""
        ensemble = self.ensemble
        A = ensemble.similarity(self.dtype, self._scale)
        constant = ensemble.squared_pairs(self._scale)
        if self.normalize or ensemble.observed is None:
            return SymmetricObjective(A, constant)
        return SeenPairsObjective(A, constant, ensemble.observed, ensemble.weights)

    def starts(self, plan: Plan, rng: np.random.RandomState) -> list[Start]:
        """Return a start from eigenvectors, then in turn a random one and a base partition."""
        mass, k = self.ensemble.counts / self._scale**2, plan.n_clusters
        ranking = self.ensemble.best_partitions() if plan.n_init > 2 else np.empty(0, dtype=int)
        starts: list[Start] = [partial(spectral_start, self.objective.A, k)]
        for i, seed in enumerate(draw_seeds(rng, plan.n_init - 1)):
            if i % 2 and i // 2 < len(ranking):
                labels = self.ensemble.codes[:, ranking[i // 2]]
                starts.append(partial(label_start, labels, mass, k, seed, self.dtype))
            else:
                starts.append(partial(random_start, mass, k, seed, self.dtype))
        return starts

    def rank(self, form: type[Factorization]) -> Callable[[Solution], float]:
        """Return the hard loss of the largest entries of the rows; the loss if normalised."""
        if self.normalize:
            return loss_of

        def hard_loss(solution: Solution) -> float:
            H = form.factor_of(solution)
            return self.ensemble.hard_loss(one_hot(H.argmax(axis=1), H.shape[1]))

        return hard_loss

    def part(self, size: int, rng: np.random.RandomState) -> EnsembleProblem:
        """Return the problem of `size` samples."""
        return EnsembleProblem(self.ensemble.sample(size, rng), None, self.dtype, self.normalize)

    def extended(self, part: Problem, H: np.ndarray) -> np.ndarray:
        """Return the factor of all rows that fits best to the factor of a part of the samples."""
        assert isinstance(part, EnsembleProblem)
        coarse, whole = part.ensemble, self.ensemble
        rows = H / np.sqrt(coarse.counts)[:, None]
        scaled = rows * part._scale[:, None]
        profile = whole.cluster_weights[:, None] * coarse.contingency(scaled)
        weighted = rows * coarse.counts[:, None]
        if self.normalize or whole.observed is None:
            G = weighted.T @ rows
        else:  # a row is compared with the samples that its partitions saw
            k = H.shape[1]
            pairs = (weighted[:, :, None] * rows[:, None, :]).reshape(-1, k * k)
            seen = np.asarray((coarse.codes >= 0).T @ pairs) * whole.weights[:, None]
            G = (whole.observed @ seen).reshape(-1, k, k)
        fitted = fitted_factor(whole.spread(profile) * self._scale[:, None], G)
        return (fitted * np.sqrt(whole.counts)[:, None]).astype(H.dtype)

    def memberships(self, shares: np.ndarray) -> np.ndarray:
        """Return how much the distinct rows belong to each cluster, (m, k).

        Normalised, that is their mean co-association with every cluster; else their shares.

        Parameters
        ----------
        shares : ndarray of shape (m, k)
            Rows of the factor, scaled to sum to 1.
        """
        if not self.normalize:
            return shares
        similarity = self.ensemble.spread(self.ensemble.cluster_profile(shares))
        return membership(similarity.astype(self.dtype, copy=False))

    def support(self, shares: np.ndarray, labels: np.ndarray) -> Support:
        """Return what the partitions say of a clustering of the distinct rows."""
        ensemble = self.ensemble
        contingency = ensemble.contingency(one_hot(labels, shares.shape[1]))
        confidence = ensemble.item_consensus(contingency, labels)[self.groups]
        profile = ensemble.cluster_profile(shares)
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
