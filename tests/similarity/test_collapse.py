"""Operators of some samples and of groups of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from refusals import raises_naming
from similarity.cases import anything, exactly, make

from nmfcluster.similarity import Explicit, Factored, inner


def groups_of(rng, n):
    """Draw groups 0 to g - 1, none empty."""
    return np.unique(rng.integers(0, max(1, n // 2), size=n), return_inverse=True)[1]


def scaled_indicator(groups):
    E = np.zeros((len(groups), max(groups) + 1))
    for c in range(E.shape[1]):
        members = [i for i in range(len(groups)) if groups[i] == c]
        for i in members:
            E[i, c] = 1 / len(members) ** 0.5
    return E


@anything
def test_take_restricts_reorders_and_repeats(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    indices = rng.integers(0, n, size=n + 2)
    assert_allclose(A.take(indices).toarray(), dense[indices][:, indices], **exactly)
    assert_allclose(
        A.take(indices) @ np.eye(n + 2), dense[indices][:, indices], **exactly
    )


@anything
def test_collapse_is_the_congruence_with_the_scaled_indicator(kind, seed, n):
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    groups = groups_of(rng, n)
    E = scaled_indicator(groups)
    small = A.collapse(groups)
    assert small.shape == (E.shape[1], E.shape[1])
    assert_allclose(small.toarray(), E.T @ dense @ E, **exactly)
    assert_allclose(small @ np.eye(E.shape[1]), E.T @ dense @ E, **exactly)


@anything
def test_collapse_keeps_the_objective_up_to_a_constant(kind, seed, n):
    """||A - HH'||^2 = ||A||^2 - ||A_c||^2 + ||A_c - hh'||^2 for H = Eh."""
    rng = np.random.default_rng(seed)
    A, dense = make(kind, n, rng)
    groups = groups_of(rng, n)
    E, small = scaled_indicator(groups), A.collapse(groups)
    h = rng.uniform(size=(E.shape[1], 2))
    whole = ((dense - E @ h @ (E @ h).T) ** 2).sum()
    part = ((small.toarray() - h @ h.T) ** 2).sum()
    assert_allclose(inner(A, A) - inner(small, small) + part, whole, **exactly)


@pytest.mark.parametrize(
    "collapse", [Explicit(np.eye(3)).collapse, Factored(np.eye(3)).collapse]
)
def test_collapse_refuses_an_empty_group(collapse):
    with raises_naming(ValueError, "group 1"):
        collapse(np.array([0, 2, 2]))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_collapse_that_keeps_most_rows_copies_no_features(storage, scaled):
    """Of pairs and single samples; it is then restricted, collapsed and scaled like any other."""
    rng = np.random.default_rng(0)
    U = storage(rng.uniform(size=(12, 40)) * (rng.uniform(size=(12, 40)) < 0.3))
    A = Factored(U, scale=rng.uniform(1, 2, size=12) if scaled else None)
    groups = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0])
    small = A.collapse(groups)
    E = np.eye(10)[groups] / np.sqrt(np.bincount(groups))[groups, None]
    expected = E.T @ A.toarray() @ E
    assert small.factors[0].shape == (10, 40)
    assert_allclose(small.toarray(), expected, atol=1e-12)
    assert_allclose(small @ np.eye(10), expected, atol=1e-12)
    assert_allclose(small.diagonal(), expected.diagonal(), atol=1e-12)
    chosen = np.array([9, 3, 0])
    part = small.take(chosen)
    assert_allclose(part.toarray(), expected[chosen][:, chosen], atol=1e-12)
    assert_allclose(part @ np.eye(3), expected[chosen][:, chosen], atol=1e-12)
    assert_allclose(inner(small, small), (expected**2).sum())
    again = small.collapse(np.arange(10) // 5)
    halves = np.kron(np.eye(2), np.ones((5, 1))) / np.sqrt(5)
    assert_allclose(again.toarray(), halves.T @ expected @ halves, atol=1e-12)


def test_a_part_of_the_samples_has_the_columns_that_it_uses():
    U = sp.csr_array(np.kron(np.eye(30), np.ones((1, 2))))
    C = np.random.default_rng(0).uniform(size=(60, 60))
    for core in (None, C + C.T, sp.csr_array(C + C.T)):
        A = Factored(U, core)
        part = A.take(np.array([5, 2]))
        assert part.rank == 4
        assert_allclose(part.toarray(), A.toarray()[[5, 2]][:, [5, 2]])
