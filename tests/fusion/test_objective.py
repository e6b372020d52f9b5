"""The objective, and the weights that are best for the losses, against general solvers."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import literal_divergence
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from nmfcluster._utils.storage import bipartite_graph
from nmfcluster.fusion.kl_loss import FusionObjective, gibbs_weights

EQUAL = np.full(4, 0.25)


def weights_of(losses, eta, prior):
    return gibbs_weights(losses, eta, prior)[0]


def smallest_of(losses, eta, prior):
    return gibbs_weights(losses, eta, prior)[1]


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.integers(2, 3), st.floats(0.05, 20))
def test_weights_are_those_that_a_general_solver_finds(seed, n_sources, eta):
    rng = np.random.default_rng(seed)
    losses, prior = (
        rng.uniform(-3, 3, size=n_sources),
        rng.dirichlet(np.ones(n_sources)),
    )

    def value(a):
        return a @ losses + eta * float(
            np.sum(a * np.log(np.maximum(a, 1e-300) / prior))
        )

    best = minimize(
        value,
        prior,
        bounds=[(1e-12, 1)] * n_sources,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    weights = weights_of(losses, eta, prior)
    assert value(weights) <= best.fun + 1e-9
    assert_allclose(weights, best.x, atol=2e-4)
    assert_allclose(
        smallest_of(losses, eta, prior), value(weights), rtol=1e-9, atol=1e-9
    )


def test_weights_at_the_limits_of_eta():
    losses = np.array([2.0, 1.0, 1.5, 1.0])
    assert_array_equal(weights_of(losses, 0, EQUAL), [0, 1, 0, 0])
    for tiny in (5e-324, 1e-300, 1e-10):
        assert_array_equal(weights_of(losses, tiny, EQUAL), [0, 0.5, 0, 0.5])
        assert_allclose(smallest_of(losses, tiny, EQUAL), 1)
    for huge in (1e9, 1e300, np.inf):
        assert_allclose(weights_of(losses, huge, EQUAL), 0.25, rtol=1e-8)
        assert_allclose(smallest_of(losses, huge, EQUAL), losses.mean(), rtol=1e-8)
    assert_allclose(
        weights_of(losses + 1e6, 0.5, EQUAL),
        weights_of(losses, 0.5, EQUAL),
        rtol=1e-9,
    )


def test_sources_that_do_not_count_have_no_weight_whatever_their_loss():
    losses, prior = np.array([0.1, 0.5, 0.9]), np.array([0, 0.5, 0.5])
    for eta in (0, 1e-3, 0.3, 1e3, np.inf):
        weights = weights_of(losses, eta, prior)
        assert weights[0] == 0
        assert_allclose(weights.sum(), 1)
        assert 0.5 <= smallest_of(losses, eta, prior) <= 0.7
    for eta in (0, 0.3, np.inf):  # nobody counts
        assert_array_equal(weights_of(losses, eta, np.zeros(3)), 0)
        assert smallest_of(losses, eta, np.zeros(3)) == 0


def matrices(rng, n=11):
    A = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.7)
    return A + A.T


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_loss_is_the_divergence_from_the_model(storage):
    rng = np.random.default_rng(3)
    A = matrices(rng)
    W = rng.dirichlet(np.ones(33)).reshape(11, 3)
    P, M = A / A.sum(), W @ (W / W.sum(axis=0)).T
    r = P.sum(axis=1)
    there, left = literal_divergence(P, np.outer(r, r)), literal_divergence(P, M)
    nats, share = (FusionObjective(storage(A), rel, 0.0) for rel in (False, True))
    assert_allclose(nats.loss(W), left, rtol=1e-10)
    assert_allclose(share.loss(W), left / there, rtol=1e-10)
    assert_allclose(
        [nats.max_loss, nats.constant, share.constant], [there, there, 1], rtol=1e-10
    )


def test_the_graph_of_objects_and_landmarks_has_the_loss_of_both_factors():
    rng = np.random.default_rng(4)
    S = rng.uniform(size=(9, 6))
    W, H = rng.uniform(size=(9, 2)), rng.dirichlet(np.ones(6), size=2).T
    W /= W.sum()
    both = np.vstack([W, H * W.sum(axis=0)]) / 2
    objective = FusionObjective(bipartite_graph(sp.csr_array(S)), True, np.log(2))
    P = S / S.sum()
    there = literal_divergence(P, np.outer(P.sum(axis=1), P.sum(axis=0)))
    assert_allclose(
        objective.loss(both), literal_divergence(P, W @ H.T) / there, rtol=1e-9
    )
    assert_allclose(objective.max_loss, there, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_where_there_is_nothing_to_explain(dtype):
    """A scale of 0 or below, if only by rounding, would make every decrease too small."""
    shares = [np.random.default_rng(n).uniform(0.5, 1, size=n) for n in (2, 3, 17, 100)]
    for A in (np.outer(v, v) for share in shares for v in (share, np.ones(len(share)))):
        objective = FusionObjective(A.astype(dtype), False, 0.0)
        assert 0 < objective.constant < 1e-5
