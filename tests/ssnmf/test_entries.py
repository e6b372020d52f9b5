"""Figures of all entries of a similarity, which penalties are measured by."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from similarity.cases import factors, stored_in_all_ways

from nmfcluster.similarity import Explicit, Factored
from nmfcluster.ssnmf.constrained import large_entry

seeds = st.integers(0, 10**6)


# --- the large entry ---------------------------------------------------------------------------


def literal_large_entry(dense, share=0.999):
    n = len(dense)
    values = [abs(dense[i, j]) for i in range(n) for j in range(i) if dense[i, j] != 0]
    return np.quantile(values, share) if values else 1.0


@given(seeds, st.integers(1, 30), st.sampled_from([0.999, 0.5]))
def test_the_large_entry_is_a_quantile_of_what_is_not_zero_off_the_diagonal(
    seed, n, share
):
    rng = np.random.default_rng(seed)
    signed = factors(rng, n, n, 0.1)
    signed = signed + signed.T
    for A in (Explicit(signed), Explicit(sp.csr_array(signed))):
        expected = literal_large_entry(signed, share)
        assert large_entry(A, share) == pytest.approx(expected, rel=1e-12)
    dense, kinds = stored_in_all_ways(abs(factors(rng, n, share=0.3)))
    for A in kinds.values():
        expected = literal_large_entry(dense, share)
        assert large_entry(A, share) == pytest.approx(expected, rel=1e-12)


def test_one_matrix_has_one_large_entry_however_it_is_stored():
    n = 400  # of so many all pairs are looked at
    dense, kinds = stored_in_all_ways(
        abs(factors(np.random.default_rng(0), n, 12, share=0.2))
    )
    pairs = dense[np.triu_indices(n, 1)]
    assert (pairs == 0).any()
    for A in kinds.values():
        assert large_entry(A) == pytest.approx(
            np.quantile(pairs[pairs > 0], 0.999), rel=1e-12
        )


def test_zeros_and_the_diagonal_do_not_count():
    dense = np.diag([9.0, 8, 7, 6])
    for storage in (np.asarray, sp.csr_array):
        assert large_entry(Explicit(storage(dense))) == 1.0
    dense[0, 1] = dense[1, 0] = -0.25
    for A in (Explicit(dense), Explicit(sp.csr_array(dense))):
        assert large_entry(A) == 0.25
    stored_zero = sp.csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=(2, 2))
    assert large_entry(Explicit(stored_zero)) == 1.0
    assert large_entry(Factored(np.eye(3))) == 1.0
    assert large_entry(Explicit(np.ones((1, 1)))) == 1.0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["dense", "factored"])
def test_the_large_entry_of_many_is_estimated_and_repeatable(kind):
    rng = np.random.default_rng(0)
    U = rng.exponential(size=(1500, 4))
    A = Factored(U) if kind == "factored" else Explicit(U @ U.T)
    exact = np.quantile((U @ U.T)[np.triu_indices(1500, 1)], 0.999)
    found = large_entry(A)
    assert found == pytest.approx(exact, rel=0.1)
    assert large_entry(A) == found
    assert isinstance(found, float)


def test_stored_entries_are_all_looked_at():
    """A few large entries among very many: no sample of all pairs would find them."""
    n = 3000
    rows, columns = np.arange(20), np.arange(20) + 100
    A = sp.csr_array((np.arange(1.0, 21), (rows, columns)), shape=(n, n))
    assert large_entry(Explicit(A + A.T), 1.0) == 20
    assert large_entry(Explicit(A + A.T), 0.0) == 1
