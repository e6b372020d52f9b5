"""Losses relative to independent objects, against loops over pairs, and what they promise."""

from itertools import pairwise

import numpy as np
import pytest
from fusion.cases import (
    each_kind,
    literal_losses,
    problem,
    run,
    split,
    starts_of,
)
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._engine.executor import Plan
from nmfcluster._engine.loop import StopRule
from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import fuse, fusion_nmf
from nmfcluster.fusion.objective import objective_of

ETAS = (0, 0.1, 1.0, 10.0, np.inf)


def divergence(P, M):
    return sum(P[i, j] * np.log(P[i, j] / M[i, j]) for i, j in np.argwhere(P > 0))


def literal_scales(arrays):
    """Return ``D(P || r r')``, pair by pair."""
    shares = [A / A.sum() for A in arrays]
    return np.array([divergence(P, np.outer(P.sum(axis=1), P.sum(axis=1))) for P in shares])


def literal_objective(x, eta):
    if eta in (0, np.inf):
        return x.min() if eta == 0 else x.mean()
    return -eta * np.log(np.mean([np.exp(-value / eta) for value in x]))


@each_kind
def test_objective_and_weights_are_those_of_the_formula(kind):
    rng = np.random.default_rng(1)
    mixture, arrays, seen = problem(kind, rng, 13)
    Z = starts_of(rng, 1, 1, 13, 3)[0]
    entropies = [sum(p * np.log(p) for p in (A / A.sum())[A > 0]) for A in arrays]
    losses = literal_losses(arrays, seen, entropies, *split(Z)) / literal_scales(arrays)
    for eta in ETAS:
        objective = objective_of(mixture, "relative", eta)
        assert_allclose(objective.scales, literal_scales(arrays), atol=1e-12)
        assert_allclose(objective.source_losses(Z), losses, rtol=1e-9)
        for x in (losses, losses / losses.max() * 0.9, losses / np.median(losses)):
            weights, smallest = objective.weigh(x)
            explained = x < 1
            if not explained.any():
                continue
            assert_allclose(smallest, literal_objective(np.minimum(x, 1), eta), rtol=1e-10)
            assert (weights[~explained] == 0).all()
            if 0 < eta < np.inf:
                shares = np.where(explained, np.exp(-x / eta), 0)
                assert_allclose(weights, shares / shares.sum(), rtol=1e-10)


def test_where_no_source_is_explained_losses_count_as_they_are():
    mixture, *_ = problem("kernels", np.random.default_rng(2), 10)
    losses = np.array([1.0, 1.5, 4.0])
    for eta, used in [(0.05, 0.05), (0.3, 0.3), (1.0, 0.3), (np.inf, 0.3)]:
        weights, smallest = objective_of(mixture, "relative", eta).weigh(losses)
        shares = np.exp(-losses / used)
        assert_allclose(weights, shares / shares.sum())
        assert smallest > 1


def test_the_objective_has_no_jump_where_the_first_source_is_explained():
    mixture, *_ = problem("kernels", np.random.default_rng(2), 10)
    objective = objective_of(mixture, "relative", 1.0)
    losses = np.array([1.0, 1.0, 1.0])
    assert_allclose(objective.weigh(losses)[1], 1)
    assert_allclose(objective.weigh(losses - 1e-9)[1], 1)


@each_kind
def test_weights_of_the_mixture_are_the_slopes_of_the_objective(kind):
    """Numerical derivatives of F by the losses, in nats, that the mixture's EM steps lower."""
    mixture, arrays, _ = problem(kind, np.random.default_rng(3), 12)
    losses = np.linspace(0.4, 0.9, len(arrays))
    for eta in (0.1, 1.0):
        objective, slopes = objective_of(mixture, "relative", eta), np.zeros(len(arrays))
        for source, scale in enumerate(objective.scales):
            step = 1e-6 * np.eye(len(arrays))[source] / scale
            up, down = objective.weigh(losses + step)[1], objective.weigh(losses - step)[1]
            slopes[source] = (up - down) / 2e-6
        shares = objective.shares(objective.weigh(losses)[0])
        assert_allclose(shares, slopes / slopes.sum(), rtol=1e-5)


@each_kind
def test_the_objective_never_rises(kind):
    rng = np.random.default_rng(4)
    mixture, *_ = problem(kind, rng, 15)
    for n_factors, eta in [(1, 0), (2, 0), (2, 0.1), (1, 1.0), (2, np.inf)]:
        objective = objective_of(mixture, "relative", eta)
        history = [loss for _, loss in run(objective, starts_of(rng, 1, n_factors, 15, 3), 12)]
        for before, after in pairwise(history):
            assert (after <= before).all()
        assert (history[-1] < history[0]).all()


def noise_beside_blocks(rng, n=90, n_noise=2):
    """Return two sources of three groups, noise, and a constant but for 5 %."""
    labels = rng.permutation(np.arange(n) % 3)
    telling = [(labels[:, None] == labels) + rng.uniform(0, 0.8, size=(n, n)) for _ in range(2)]
    noise = [np.exp(-3 * rng.uniform(size=(n, n))) for _ in range(n_noise)]
    constant = 1 + 0.05 * rng.uniform(size=(n, n))
    return [A + A.T for A in (*telling, *noise, constant)], labels


@pytest.mark.parametrize("eta", [0.1, np.inf])
def test_noise_and_constants_have_no_weight_at_any_eta(eta):
    sources, labels = noise_beside_blocks(np.random.default_rng(5))
    mixture = make_mixture(sources, np.ones((90, 5), dtype=bool))
    plan = Plan(3, fusion_nmf, 7, StopRule(100, 1e-4), None)
    objective = objective_of(mixture, "relative", eta)
    fusion = fuse(objective, plan, np.random.RandomState(0), symmetric=True)
    found = fusion.best.factors[0][-1].argmax(axis=1)
    assert_array_equal(found[:, None] == found, labels[:, None] == labels)
    assert_array_equal(fusion.best.factors[1] > 0, [True, True, False, False, False])
    assert (objective.source_losses(fusion.best.factors[0])[2:] > 1).all()


def test_a_source_that_holds_nothing_has_no_weight():
    """A constant holds exactly as much as independent objects: 0 / 0 is no explanation."""
    (first, *_), _ = noise_beside_blocks(np.random.default_rng(6), 30)
    share = np.linspace(1, 2, 30)
    for dtype in (np.float64, np.float32):
        sources = [A.astype(dtype) for A in (first, np.ones((30, 30)), np.outer(share, share))]
        mixture = make_mixture(sources, np.ones((30, 3), dtype=bool))
        objective = objective_of(mixture, "relative", 1.0)
        assert_allclose(objective.scales[1:], 0, atol=1e-6)
        Z = starts_of(np.random.default_rng(7), 1, 1, 30, 3).astype(dtype)
        (*_, ((_, weights), loss)) = run(objective, Z, 20)
        assert_array_equal(weights[0], [1, 0, 0])
        assert 0 < loss[0] < 1
