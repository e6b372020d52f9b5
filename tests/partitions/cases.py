"""Ensembles, plans and losses that the tests of ensembles as problems share."""

import numpy as np
import pytest
from internals import factorize

from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import EnsembleProblem

float64 = np.dtype(np.float64)
in_both_forms = pytest.mark.parametrize(
    "normalize", [True, False], ids=["normalized", "paper"]
)
in_all_forms = pytest.mark.parametrize(  # and tables, of which one has missing labels
    ("name", "normalize"), [("noisy", True), ("noisy", False), ("holey", True)]
)
# where labels are missing clusters must count, and rows have weights
in_two_ways = pytest.mark.parametrize(
    ("normalize", "missing"), [(True, 0.3), (False, 0.0)], ids=["normalized", "paper"]
)
complete_or_not = pytest.mark.parametrize(
    "missing", [0.3, 0.0], ids=["missing", "complete"]
)


def factorize_ensemble(ensemble, plan, rng, normalize, coarse_size=None, dtype=float64):
    problem = EnsembleProblem(ensemble, dtype, normalize)
    return factorize(problem, plan, rng, coarse_size)


def table(seed=0, missing=0.0, noise=0.3, sizes=(60, 30, 20), n_partitions=6):
    codes, y = make_partitions(
        sizes,
        n_partitions=n_partitions,
        noise=noise,
        missing=missing,
        random_state=seed,
    )
    weights = np.random.default_rng(seed).uniform(0.5, 1, size=n_partitions)
    return codes, weights / weights.sum(), y


def loss_of_samples(codes, weights, H):
    """Sum w_t (M^t_ij - h_i h_j)^2 over all pairs of samples, of which partitions saw all."""
    total = 0.0
    for column, w in zip(codes.T, weights, strict=True):
        total += w * (((column[:, None] == column) - H @ H.T) ** 2).sum()
    return total


def hard_loss(codes, weights, labels):
    return loss_of_samples(
        codes, weights, (labels[:, None] == np.unique(labels)).astype(float)
    )
