"""The squared norm: exact where a similarity is small, near where it is large."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from similarity.cases import factors, stored_in_all_ways

from nmfcluster.similarity import Explicit, Factored

seeds = st.integers(0, 10**6)


# --- the squared norm --------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(seeds, st.integers(1, 12), st.integers(1, 20))
def test_the_norm_is_the_sum_of_the_squared_entries(seed, n, width):
    rng = np.random.default_rng(seed)
    dense, kinds = stored_in_all_ways(factors(rng, n, width))
    spikes = sp.csr_array(np.triu(factors(rng, n, n, 0.2), 1))
    spikes = spikes + spikes.T
    for A in kinds.values():
        assert A.squared_norm() == pytest.approx((dense**2).sum(), rel=1e-9, abs=1e-12)
        changed = A + 2.0 * Explicit(spikes) - 0.5 * Factored(np.ones((n, 1)))
        expected = ((dense + 2 * spikes.toarray() - 0.5) ** 2).sum()
        assert changed.squared_norm() == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert isinstance(changed.squared_norm(), float)


def documents(seed, n=2100, width=3000, dtype=np.float64):
    """Draw sparse nonnegative rows, some words far more common than others."""
    rng = np.random.default_rng(seed)
    share = 0.02 / (1 + np.arange(width) / 50)
    X = sp.csr_array(sp.random(n, width, density=0.01, random_state=rng))
    topics = sp.csr_array(
        (rng.uniform(size=(n, width)) < share) * rng.exponential(size=width)
    )
    return sp.csr_array((X + topics).astype(dtype))


@pytest.mark.slow
def test_the_norm_of_many_documents_is_estimated():
    errors = []
    for seed in (2, 3, 4):
        A = Factored(documents(seed))
        K = A.factors[0].astype(np.float64)
        exact = float(((K @ K.T).data ** 2).sum())
        found = A.squared_norm()
        assert found != exact  # else this is no test of an estimate
        assert A.squared_norm() == found
        errors.append(found / exact - 1)
    single = Factored(documents(4, dtype=np.float32))
    assert single.squared_norm() == pytest.approx(found, rel=1e-3)
    assert np.sqrt(np.mean(np.square(errors))) < 0.02


def test_what_constraints_add_to_an_estimated_norm_is_exact():
    X = documents(1)
    A, (i, j), w = Factored(X), (4, 7), 30.0
    pairs = Explicit(sp.csr_array(([1.0, 1.0], ([i, j], [j, i])), shape=A.shape))
    entry = float((X[[i]] @ X[[j]].T).toarray()[0, 0])
    added = (A + w * pairs).squared_norm() - A.squared_norm()
    assert added == pytest.approx(2 * ((entry + w) ** 2 - entry**2), rel=1e-6)


def test_only_factors_of_many_samples_and_columns_are_estimated():
    rng = np.random.default_rng(2)
    for n, width, wide in [(2001, 2001, True), (2300, 1900, False), (300, 2600, False)]:
        U = sp.csr_array(sp.random(n, width, density=0.002, random_state=rng))
        exact = ((U @ U.T).toarray() ** 2).sum()
        found = Factored(U).squared_norm()
        assert (abs(found / exact - 1) > 1e-9) == wide


def test_the_estimate_is_the_mean_over_the_probes():
    """Of the identity all of n but what the sketch spans is left to the probes."""
    n = 2100
    found = Factored(sp.csr_array(sp.eye_array(n))).squared_norm()
    # one probe more or less in the mean: 3e-2
    assert found == pytest.approx(n, rel=2e-3)


def test_the_estimate_is_exact_where_the_rank_is_small():
    rng = np.random.default_rng(3)
    L, R = rng.normal(size=(2100, 6)), rng.normal(size=(6, 2200))
    small = L.T @ L @ R @ R.T  # UU' = LRR'L' has the squared norm tr((L'L RR')^2)
    assert Factored(L @ R).squared_norm() == pytest.approx(
        np.trace(small @ small), rel=1e-9
    )
