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

from nmfcluster.fusion.objective import (
    FusionObjective,
    entropy,
    eta_of_perplexity,
    gibbs_weights,
)
from nmfcluster.fusion.sources import make_mixture


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
    for eta in (0, 1e-300, 1.0, np.inf):
        assert_array_equal(gibbs_weights(np.array([7.0]), eta), [1.0])
    assert_allclose(gibbs_weights(losses + 1e6, 0.5), gibbs_weights(losses, 0.5), rtol=1e-9)


@given(seeds, st.integers(2, 9), st.floats(0, 1))
def test_eta_of_perplexity_hits_the_perplexity(seed, n_sources, share):
    losses = np.random.default_rng(seed).exponential(size=n_sources) * 10.0 ** (seed % 7 - 3)
    wanted = 1 + share * (n_sources - 1)
    weights = gibbs_weights(losses, eta_of_perplexity(losses, wanted))
    assert_allclose(np.exp(entropy(weights)), wanted, rtol=1e-7)


@given(seeds, st.integers(2, 9), st.floats(1, 9), st.floats(1, 9))
def test_eta_of_perplexity_grows_with_it(seed, n_sources, one, other):
    losses = np.random.default_rng(seed).uniform(size=n_sources)
    low, high = np.clip(sorted([one, other]), 1, n_sources)
    assert eta_of_perplexity(losses, low) <= eta_of_perplexity(losses, high) * (1 + 1e-9)


@pytest.mark.parametrize("n_sources", range(1, 30))
def test_eta_of_perplexities_at_the_ends(n_sources):
    losses = np.linspace(0, 2, n_sources)
    assert eta_of_perplexity(losses, n_sources) == np.inf
    assert_array_equal(gibbs_weights(losses, eta_of_perplexity(losses, 1)), np.eye(n_sources)[0])
    almost = np.nextafter(n_sources, 0) if n_sources > 1 else 1.0
    weights = gibbs_weights(losses, eta_of_perplexity(losses, almost))
    assert_allclose(weights, 1 / n_sources, rtol=1e-5)


@pytest.mark.parametrize("n_tied", [2, 3, 5])
@pytest.mark.parametrize("n_others", [0, 1, 4])
@pytest.mark.parametrize("perplexity", [1.0, 1.5, 1.999])
def test_sources_that_tie_share_even_where_they_are_more_than_the_perplexity(
    n_tied, n_others, perplexity
):
    """Then the entropy is larger than asked for, and the mean loss is as small as it can be."""
    losses = np.repeat([1.0, 2.0], [n_tied, n_others])
    weights = gibbs_weights(losses, eta_of_perplexity(losses, perplexity))
    assert_allclose(weights, np.repeat([1 / n_tied, 0], [n_tied, n_others]), atol=1e-12)


@pytest.mark.parametrize("eta", [1e6, 1e12, 1e18, 1e300])
def test_a_huge_eta_is_as_good_as_infinity(eta):
    losses = np.array([3.0, 1.0, 2.5])
    weights, value, _ = FusionObjective(None, None, eta).weigh(losses)
    assert_allclose(weights, 1 / 3, rtol=1e-5)
    assert_allclose(value, losses.mean(), rtol=1e-5)


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
            weights, loss, used = FusionObjective(mixture, offsets, eta).weigh(want)
            assert_allclose(loss, literal_objective(want, eta), rtol=1e-10)
            assert_array_equal(weights, gibbs_weights(want, eta))
            assert used == eta
    share = np.mean([A.sum(axis=0) / A.sum() for A in arrays], axis=0)
    apart = [
        np.sum(P[P > 0] * np.log(P[P > 0] / np.outer(share, share)[P > 0]))
        for P in (A / A.sum() for A in arrays)
    ]
    assert_allclose(objective.margin, share, atol=1e-16)
    assert_allclose(objective.constant, np.mean(apart), atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 14, 17, 32, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_of_sources_without_structure_is_not_below_zero(n, dtype):
    """A scale below 0, if only by rounding, would make every decrease of the loss too small."""
    share = np.random.default_rng(n).uniform(0.5, 1, size=n)
    for A in (np.ones((n, n)), np.outer(share, share)):
        mixture = make_mixture([A.astype(dtype)], np.ones((n, 1), dtype=bool))
        constant = objective_of(mixture, 1.0).constant
        assert 0 <= constant < 1e-5 if dtype == np.float32 else 0 <= constant < 1e-13
