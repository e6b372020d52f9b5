"""Every update of GSG' against its formula in dense arrays, and what they promise."""

from itertools import islice, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import bregman_nmf, multiplicative_gsg
from numpy.testing import assert_allclose
from optim.cases import kinds, of, seeds, signed, solved

from nmfcluster.similarity import Explicit

GSG_KINDS = ["signed", "signed sparse", "semidefinite", "nonnegative", "constrained"]


def gsg_loss(A, G, S):
    return ((A - G @ S @ G.T) ** 2).sum()


def normalized(G, S):
    length = np.linalg.norm(G, axis=0)
    return G / np.where(length > 0, length, 1), S * np.outer(length, length)


def quotient(above, below):
    """Return above / below, and 0 for 0/0, which a lost cluster leads to."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def gsg_step(P, N, G, S):
    """Return the factors after one update, and whether the root was too long a step."""
    K = G.T @ G
    S = S * quotient(G.T @ P @ G, G.T @ N @ G + K @ S @ K)
    ratio = quotient(P @ G @ S, N @ G @ S + G @ S @ G.T @ G @ S)
    longer = G * ratio**0.5
    short = gsg_loss(P - N, longer, S) > gsg_loss(P - N, G, S)
    return *normalized(G * ratio**0.25 if short else longer, S), short


@pytest.mark.parametrize("kind", GSG_KINDS)
def test_gsg_updates_are_the_split_rules(kind):
    """S o G'PG / (G'NG + KSK), then G o (PGS / (NGS + GSKS))^1/2, then columns of length 1."""
    rng = np.random.default_rng(5)
    objective, start = kinds(rng, 9)[kind], rng.uniform(0.1, 1, size=(2, 9, 3))
    A = objective.A.toarray()
    positive, negative = objective.A.split()  # a factored A may be split with overlap
    P, N = positive.toarray(), 0 * A if negative is None else negative.toarray()
    path = list(islice(multiplicative_gsg(objective, start), 15))
    for s in range(2):
        G, S = path[0][0][0][s], path[0][0][1][s]
        assert_allclose(G, start[s] / np.linalg.norm(start[s], axis=0))
        for (found_G, found_S), loss in path:
            assert_allclose(found_G[s], G, rtol=1e-7, atol=1e-12)
            assert_allclose(found_S[s], S, rtol=1e-7, atol=1e-12)
            assert_allclose(loss[s], gsg_loss(A, G, S), rtol=1e-9, atol=1e-9)
            G, S, _ = gsg_step(P, N, G, S)


def test_gsg_starts_with_every_cluster():
    """An S that starts at 0 stays there: a cluster with it, or the link between two."""
    for kind in GSG_KINDS:
        rng = np.random.default_rng(7)
        (_, S), _ = next(
            multiplicative_gsg(kinds(rng, 9)[kind], rng.uniform(0.1, 1, (20, 9, 3)))
        )
        assert (S > 0).all()


def test_gsg_from_random_starts_leaves_zero_with_negative_similarities():
    """Four clusters, similar within and dissimilar between."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 15)
    objective = of(Explicit(1.0 * (y[:, None] == y) + 0.05 * signed(rng, 60) - 0.4))
    H = rng.uniform(size=(5, 60, 4))
    found = solved(multiplicative_gsg(objective, H), max_iter=500, tol=1e-6, scale=1)
    assert max(s.loss for s in found) < 0.95 * objective.constant


def test_gsg_takes_the_shorter_step_where_the_root_would_raise_the_loss():
    """Two starts, of which only one meets such steps."""
    A = np.array([[0.0, -3, 50, 54], [-3, 0, 0, 0], [50, 0, 0, -48], [54, 0, -48, 0]])
    P, N = np.maximum(A, 0), np.maximum(-A, 0)
    start = np.array(
        [[[0.04, 0.07], [0.3, 0.66], [0.03, 0.04], [0.03, 0.01]], np.eye(4, 2) + 0.5]
    )
    path = list(islice(multiplicative_gsg(of(Explicit(A)), start), 7))
    rescued = [0, 0]
    for (before, after), s in product(pairwise(path), range(2)):
        G, S, short = gsg_step(P, N, before[0][0][s], before[0][1][s])
        assert_allclose(after[0][0][s], G, rtol=1e-7, atol=1e-9)
        assert_allclose(after[0][1][s], S, rtol=1e-7, atol=1e-9)
        assert after[1][s] <= before[1][s]
        rescued[s] += short
    assert rescued[0] > rescued[1] == 0


@given(seeds, st.integers(2, 12), st.integers(1, 4), st.sampled_from(GSG_KINDS))
def test_gsg_never_raises_the_loss_and_keeps_its_form(seed, n, k, kind):
    rng = np.random.default_rng(seed)
    objective = kinds(rng, n)[kind]
    start = (
        rng.uniform(size=(3, n, k)) * 10.0 ** rng.uniform(-3, 0, size=(3, n, k)) + 1e-6
    )
    start[2, 0] *= 1e3  # with one row out of proportion
    path = list(islice(multiplicative_gsg(objective, start), 40))
    losses = np.array([loss for _, loss in path])
    assert np.diff(losses, axis=0).max() <= 1e-12 * objective.constant
    assert losses.dtype == np.float64
    for (G, S), _ in path:
        lengths = np.linalg.norm(G, axis=1)
        assert (
            (abs(lengths - 1) < 1e-9) | (lengths == 0)
        ).all()  # a column may be lost
        assert G.min() >= 0 <= S.min()
        assert_allclose(S, S.mT, rtol=1e-7, atol=1e-9 * objective.constant)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["semidefinite", "nonnegative"])
def test_gsg_approaches_a_stationary_point(kind):
    rng = np.random.default_rng(8)
    objective = kinds(rng, 14)[kind]
    A = objective.A.toarray()

    def residual(G, S):
        """Return how far a projected gradient step moves G and S, relative to their size."""
        K = G.T @ G
        slope_G, slope_S = 2 * (G @ S @ K @ S - A @ G @ S), K @ S @ K - G.T @ A @ G
        size = np.linalg.norm(A) * (1 + np.linalg.norm(S))
        step_G = G - np.maximum(G - slope_G / size, 0)
        step_S = S - np.maximum(S - slope_S, 0)
        return np.linalg.norm(step_G) + np.linalg.norm(step_S) / np.linalg.norm(A)

    steps = multiplicative_gsg(objective, rng.uniform(0.1, 1, size=(1, 14, 3)))
    found = [residual(G[0], S[0]) for (G, S), _ in islice(steps, 3000)]
    assert found[-1] < 1e-3 < found[0]
    assert found[-1] < found[300] < found[10]


@pytest.mark.slow
def test_gsg_finds_clusters_that_are_linked_to_each_other():
    """A full S holds what HH' cannot: similarity between clusters, here none within."""
    S = np.array([[0.0, 3.0], [3.0, 0.0]])
    G = np.kron(np.eye(2), np.ones((6, 1)) / np.sqrt(6))
    A = G @ S @ G.T
    start = np.random.default_rng(2).uniform(0.1, 1, size=(1, 12, 2)) + 2 * G
    solution = solved(
        multiplicative_gsg(of(Explicit(A)), start), max_iter=2000, tol=-1, scale=1
    )[0]
    assert solution.loss < 1e-4
    assert_allclose(solution.factors[1], S, atol=0.05)
    diagonal = solved(
        bregman_nmf(of(Explicit(A)), start), max_iter=500, tol=-1, scale=1
    )
    assert diagonal[0].loss > 1


def test_gsg_survives_samples_without_similarity_and_with_penalties_alone():
    A = np.zeros((5, 5))
    A[:2, :2] = 1
    A[4, 0] = A[0, 4] = -0.5
    start = np.full((1, 5, 2), 0.3) + np.eye(5, 2)
    steps = multiplicative_gsg(of(Explicit(A)), start)
    (solution,) = solved(steps, max_iter=900, tol=-1, scale=1)
    G = solution.factors[0]
    assert np.isfinite(G).all()
    assert_allclose(G[2:], 0)
    # of the two entries that no factor can have
    assert_allclose(solution.loss, 0.5, atol=1e-4)


def test_gsg_keeps_float32():
    rng = np.random.default_rng(3)
    A = (signed(rng, 12) * 10).astype(np.float32)
    objective = of(Explicit(A))
    start = rng.uniform(size=(2, 12, 3)).astype(np.float32)
    losses = []
    for factors, loss in islice(multiplicative_gsg(objective, start), 60):
        assert {factor.dtype for factor in factors} == {np.dtype(np.float32)}
        assert loss.dtype == np.float64
        losses.append(loss)
    rise = np.diff(losses, axis=0).max()
    assert rise <= 16 * np.finfo(np.float32).eps * objective.constant
