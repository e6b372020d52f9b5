"""The weights of the sources and the objective, against loops over sources and objects."""

import numpy as np
import pytest
from fusion.cases import (
    each_kind,
    literal_losses,
    literal_objective,
    objective_of,
    problem,
    seeds,
    split,
    starts_of,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.objective import FusionObjective, gibbs_weights


@given(seeds, st.integers(2, 3), st.floats(0.05, 20))
def test_gibbs_weights_are_those_that_a_general_solver_finds(seed, n_sources, eta):
    losses = np.random.default_rng(seed).uniform(-3, 3, size=n_sources)

    def value(a):
        return a @ losses + eta * float(np.sum(a * np.log(np.maximum(a, 1e-300))))

    best = minimize(
        value,
        np.full(n_sources, 1 / n_sources),
        bounds=[(1e-12, 1)] * n_sources,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    weights = gibbs_weights(losses, eta)
    assert value(weights) <= best.fun + 1e-9
    assert_allclose(weights, best.x, atol=2e-4)
    one = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(*[one] * (n_sources - 1), indexing="ij"), axis=-1)
    grid = grid.reshape(-1, n_sources - 1)
    grid = np.column_stack([grid, 1 - grid.sum(axis=1)])
    grid = grid[grid[:, -1] >= 0]
    logs = np.log(np.maximum(grid, 1e-300))
    assert value(weights) <= (grid @ losses + eta * (grid * logs).sum(axis=1)).min() + 1e-12


def test_gibbs_weights_at_the_limits_of_eta():
    losses = np.array([2.0, 1.0, 1.5, 1.0])
    assert_array_equal(gibbs_weights(losses, 0), [0, 1, 0, 0])
    for tiny in (5e-324, 1e-300, 1e-10):
        assert_array_equal(gibbs_weights(losses, tiny), [0, 0.5, 0, 0.5])
    for huge in (1e20, 1e300, np.inf):
        assert_allclose(gibbs_weights(losses, huge), 0.25, rtol=1e-15)
        value = FusionObjective(None, None, huge).weigh(losses)[1]
        assert_allclose(value, losses.mean(), rtol=1e-5)
    for eta in (0, 1e-300, 1.0, np.inf):
        assert_array_equal(gibbs_weights(np.array([7.0]), eta), [1.0])
    assert_allclose(gibbs_weights(losses + 1e6, 0.5), gibbs_weights(losses, 0.5), rtol=1e-9)


# --- the objective -------------------------------------------------------------------------------


@each_kind
def test_losses_are_those_of_loops_over_pairs(kind):
    rng = np.random.default_rng(3)
    mixture, arrays, seen = problem(kind, rng, 13)
    offsets = rng.normal(size=len(arrays))
    objective = FusionObjective(mixture, offsets, 1.0)
    for n_factors, k in [(1, 1), (1, 4), (2, 3)]:
        Z = starts_of(rng, 1, n_factors, 13, k)[0]
        want = literal_losses(arrays, seen, offsets, *split(Z))
        assert_allclose(objective.source_losses(Z), want, rtol=1e-10)
        for eta in (0, 0.1, 1.0, 1e3, np.inf):
            weights, loss = FusionObjective(mixture, offsets, eta).weigh(want)
            assert_allclose(loss, literal_objective(want, eta), rtol=1e-10)
            assert_array_equal(weights, gibbs_weights(want, eta))
    share = np.mean([A.sum(axis=0) / A.sum() for A in arrays], axis=0)  # of the mean source
    apart = [
        np.sum(P[P > 0] * np.log(P[P > 0] / np.outer(share, share)[P > 0]))
        for P in (A / A.sum() for A in arrays)
    ]
    assert_allclose(objective.constant, np.mean(apart), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_of_sources_without_structure_is_not_below_zero(dtype):
    """A scale below 0, if only by rounding, would make every decrease of the loss too small."""
    shares = [np.random.default_rng(n).uniform(0.5, 1, size=n) for n in (2, 3, 14, 17, 32, 100)]
    for A in (np.outer(v, v) for share in shares for v in (share, np.ones(len(share)))):
        n = len(A)
        mixture = make_mixture([A.astype(dtype)], np.ones((n, 1), dtype=bool))
        constant = objective_of(mixture, 1.0).constant
        assert 0 <= constant < 1e-5 if dtype == np.float32 else 0 <= constant < 1e-13
