"""What tests of `SSNMFClusterer` share: a look at what a fit found, and few landmarks."""

import pytest

from nmfcluster.ssnmf import estimator


@pytest.fixture
def kept(monkeypatch):
    """Return a list that every fit appends the factorization that it found to."""
    found, original = [], estimator.factorize

    def spy(*args, **options):
        found.append(original(*args, **options))
        return found[-1]

    monkeypatch.setattr(estimator, "factorize", spy)
    return found


@pytest.fixture
def few_landmarks(monkeypatch):
    """Return what makes fits by landmarks take so many."""
    return lambda n: monkeypatch.setattr(estimator, "_LANDMARKS", n)
