"""NMFC of the mean projector of the partitions: every base cluster counts by 1 over its size.

The similarity is ``Z diag(w_t / n_c) Z'``. Its rows sum to 1 as it is, so that nothing is left to
normalise. Everything else is as NMFConsensus has it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.methods import Method, timed
from nmfcluster._arrays.labels import cluster_counts, distinct_rows
from nmfcluster._base import membership
from nmfcluster._engine.run import Plan, StopRule
from nmfcluster._engine.symmetric import bregman_nmf, factorize
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.problem import EnsembleProblem


class _Projectors(Ensemble):
    @cached_property
    def cluster_weights(self) -> np.ndarray:
        weights = np.repeat(self.weights, self.n_clusters)
        return weights / self.collect(self.counts.astype(float))

    def squared_pairs(self, scale: np.ndarray) -> float:
        return self.similarity(np.float64).squared_norm()

    def best_partitions(self) -> np.ndarray:
        """Rank them as the co-association does."""
        plain = Ensemble(self.table, self.counts, self.weights, self.n_clusters, self.rows)
        return plain.best_partitions()


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    ensemble, groups = _ensemble(table)
    problem = EnsembleProblem(ensemble, groups, np.dtype(float), normalize=True)
    plan = Plan(k, bregman_nmf, 3, StopRule(500, 1e-6), 1, lambda line: None)
    best = factorize(problem, plan, np.random.RandomState(seed))
    return problem.memberships(membership(best.H)).argmax(axis=1)[groups]


def _ensemble(table: np.ndarray) -> tuple[_Projectors, np.ndarray]:
    codes = np.column_stack([np.unique(labels, return_inverse=True)[1] for labels in table.T])
    first, groups, counts = distinct_rows(codes)
    weights = np.full(codes.shape[1], 1 / codes.shape[1])
    return _Projectors(codes, counts, weights, cluster_counts(codes), first), groups


METHODS = [Method("NMFC, mean projector", timed(cluster))]
