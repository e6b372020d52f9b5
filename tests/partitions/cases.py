"""Ensembles, plans and losses that the tests of ensembles as problems share."""

import numpy as np
import pytest

from nmfcluster._engine.run import Plan
from nmfcluster._engine.stopping import StopRule
from nmfcluster._engine.symmetric import Factorization, bregman_nmf, factorize
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.problem import EnsembleProblem

float64 = np.dtype(np.float64)
in_both_forms = pytest.mark.parametrize("normalize", [True, False], ids=["normalized", "paper"])


def factorize_ensemble(
    ensemble, plan, rng, normalize, form=Factorization, coarse_size=None, dtype=float64
):
    problem = EnsembleProblem(ensemble, None, dtype, normalize)
    return factorize(problem, plan, rng, form, coarse_size)


def plan(n_clusters=3, solver=bregman_nmf, *, n_init=1, max_iter=500, tol=1e-6, n_jobs=None):
    said = []
    made = Plan(n_clusters, solver, n_init, StopRule(max_iter, tol), n_jobs, said.append)
    return made, said


def table(seed=0, missing=0.0, noise=0.3, sizes=(60, 30, 20), n_partitions=6):
    codes, y = make_partitions(
        sizes, n_partitions=n_partitions, noise=noise, missing=missing, random_state=seed
    )
    weights = np.random.default_rng(seed).uniform(0.5, 1, size=n_partitions)
    return codes, weights / weights.sum(), y


def loss_of_samples(codes, weights, H):
    """Sum w_t (M^t_ij - h_i h_j)^2 over the pairs that partition t saw, for all samples."""
    total = 0.0
    for column, w in zip(codes.T, weights, strict=True):
        seen = column >= 0
        M = (column[:, None] == column).astype(float)
        total += w * ((M - H @ H.T)[np.ix_(seen, seen)] ** 2).sum()
    return total


def hard_loss(codes, weights, labels):
    return loss_of_samples(codes, weights, (labels[:, None] == np.unique(labels)).astype(float))


class Recorder:
    """A solver that goes nowhere and notes its starts."""

    def __init__(self, loss=lambda start: 0.0):
        self.starts, self.loss = [], loss

    def __call__(self, objective, H):
        numbers = range(len(self.starts), len(self.starts) + len(H))
        self.starts.extend(H)
        losses = np.array([float(self.loss(number)) for number in numbers])
        while True:
            keep = yield (H,), losses
            H, losses = (H, losses) if keep is None else (H[keep], losses[keep])
