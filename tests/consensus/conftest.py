"""What tests of the consensus share: tables, and a look at the factor that a fit has found."""

import numpy as np
import pytest

from nmfcluster.consensus import estimator
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import EnsembleProblem


@pytest.fixture
def noisy():
    return make_partitions((50, 30, 20), n_partitions=12, noise=0.3, random_state=0)[0]


@pytest.fixture
def holey():
    return make_partitions(
        (50, 30, 20), n_partitions=12, noise=0.2, missing=0.3, random_state=0
    )[0]


@pytest.fixture
def kept(monkeypatch):
    """Return a list that every fit appends what it found to, and the factor H of its samples."""
    found, original = [], estimator.factorize

    def spy(problem, *args):
        factorization = original(problem, *args)
        H = factorization.H
        # a row stands for all samples with these labels
        if isinstance(problem, EnsembleProblem):
            ensemble = problem.ensemble
            H = H / np.sqrt(ensemble.counts)[:, None]
            H = {tuple(row): h for row, h in zip(ensemble.codes, H, strict=True)}
        found.append((factorization, H))
        return factorization

    monkeypatch.setattr(estimator, "factorize", spy)
    return found
