"""Criteria of density: mixtures of two Gaussians, modes by paths, the dip by its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from scipy.stats import multivariate_normal, norm
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from nmfcluster.model_selection.vote.density import (
    _EXCEEDED,
    _SIZES,
    _dimension,
    dip,
    fitted_mixtures,
    has_two_modes,
    lowest_between,
    modes_of,
    n_bumps,
    rises_of_peaks,
)

# --- mixtures ------------------------------------------------------------------------------------


def mixture(weights, means, covariances):
    """Return a mixture as if it had been fitted."""
    made = GaussianMixture(len(means))
    made.weights_, made.means_ = np.array(weights), np.array(means, dtype=float)
    made.covariances_ = np.array(covariances, dtype=float)
    made.precisions_ = np.linalg.inv(made.covariances_)
    made.precisions_cholesky_ = np.linalg.cholesky(made.precisions_)
    return made


@pytest.mark.parametrize(("apart", "n"), [(1.0, 1), (1.9, 1), (2.5, 2), (6.0, 2)])
def test_two_equal_gaussians_have_two_modes_beyond_two_deviations(apart, n):
    made = mixture([0.5, 0.5], [[0.0], [apart]], [[[1.0]], [[1.0]]])
    assert n_bumps(made) == n
    x = np.linspace(-1, apart + 1, 20_001)
    density = (norm.pdf(x) + norm.pdf(x - apart)) / 2
    expected = density[np.searchsorted(x, apart / 2)] / density.max() if n == 2 else 1
    assert_allclose(lowest_between(made, 0, 1), expected, rtol=2e-3)


def test_the_ridge_line_passes_through_all_there_is_between():
    """On a fine grid, the best way between two means is no higher than the ridge line."""
    A, B = np.array([[2, 0.8], [0.8, 0.5]]), np.array([[0.4, -0.3], [-0.3, 1.5]])
    means = np.array([[0.0, 0], [3, 1.5]])
    made = mixture([0.6, 0.4], means, [A, B])
    inverse = [np.linalg.inv(A), np.linalg.inv(B)]
    density = []
    for t in np.linspace(0, 1, 401):
        S = (1 - t) * inverse[0] + t * inverse[1]
        x = np.linalg.solve(S, (1 - t) * inverse[0] @ means[0] + t * inverse[1] @ means[1])
        parts = [multivariate_normal(m, C).pdf(x) for m, C in zip(means, (A, B), strict=True)]
        density.append(0.6 * parts[0] + 0.4 * parts[1])
    density = np.array(density)
    valley = density.argmin()
    lower = min(density[:valley].max(), density[valley:].max())
    assert_allclose(lowest_between(made, 0, 1), density.min() / lower, rtol=0.01)


def test_components_that_touch_in_a_chain_make_one_bump():
    row = [[float(i), 0] for i in (0, 1.5, 3, 4.5, 20)]
    assert n_bumps(mixture(np.full(5, 0.2), row, [np.eye(2)] * 5)) == 2


def test_numbers_that_cannot_be_fitted_are_left_out():
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert list(fitted_mixtures(X, [1, 3, 31], 0)) == [1, 3]
    assert n_bumps(fitted_mixtures(X, [1], 0)[1]) == 1


# --- modes ---------------------------------------------------------------------------------------


def literal_peaks(heights, nearest, persistence):
    """Count nodes from which every way to a higher node goes down by more than that."""
    n = len(heights)
    best = np.full((n, n), -np.inf)  # the lowest node on the best way from i to j
    for i, row in enumerate(nearest):
        best[i, row] = best[row, i] = np.minimum(heights[i], heights[row])
    for k in range(n):
        best = np.maximum(best, np.minimum(best[:, k, None], best[k]))
    count = 0
    for i in range(n):
        higher = heights > heights[i]
        saddle = best[i, higher].max(initial=-np.inf)
        count += heights[i] - saddle > persistence
    return count


@pytest.mark.parametrize("seed", range(2))
def test_peaks_rise_above_their_saddles(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)) + 3 * rng.integers(3, size=(40, 1))
    distances, nearest = NearestNeighbors(n_neighbors=4).fit(X).kneighbors()
    heights = -np.log(distances[:, -1]) + 1e-6 * rng.uniform(size=40)  # none are equal
    rises = rises_of_peaks(heights, nearest)
    for persistence in (0, 0.1, 0.3, 1, 10):
        assert (rises > persistence).sum() == literal_peaks(heights, nearest, persistence)


def test_modes_of_what_is_known():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    assert modes_of(X) == (1, 1)
    apart = X + 8 * rng.integers(3, size=(600, 1))
    assert modes_of(apart) == (3, 3)
    assert modes_of(1000 * apart[::-1] - 5) == (3, 3)


def test_a_ring_rarely_has_two_certain_modes():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        angle = rng.uniform(0, 2 * np.pi, size=300)
        ring = np.column_stack([np.cos(angle), np.sin(angle)])
        found.append(modes_of(ring + 0.1 * rng.normal(size=ring.shape)))
    likely, certain = np.array(found).T
    assert np.mean(certain > 1) <= 0.25
    assert np.mean(likely > 1) > 0.5


def test_few_places_have_no_modes():
    assert modes_of(np.zeros((100, 2))) == (1, 1)
    assert modes_of(np.random.default_rng(0).normal(size=(20, 2))) == (1, 1)
    many = np.repeat([[0.0, 0], [9, 9]], 100, axis=0)
    assert modes_of(many + np.random.default_rng(0).normal(size=many.shape).round())[0] == 2


@pytest.mark.parametrize("p", [1, 5])
def test_the_dimension_is_that_of_the_samples(p):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, p)) @ rng.normal(size=(p, 8))
    distances = NearestNeighbors(n_neighbors=12).fit(X).kneighbors()[0]
    assert_allclose(_dimension(distances), p, rtol=0.2)


# --- dips ----------------------------------------------------------------------------------------


def nearest_unimodal(x, steps, mode):
    """Return the least distance of the distribution of x from those with their mode at a sample.

    Unknown are the values of a distribution at the samples, both limits at the mode, where it may
    jump, and the distance. It is convex before the mode and concave behind it.
    """
    n = len(x)
    at = [*range(mode + 1), *range(mode, n)]
    size = len(at) + 1
    rows, bounds = [], []

    def at_most(pairs, bound):
        row = np.zeros(size)
        for place, value in pairs:
            row[place] += value
        rows.append(row)
        bounds.append(bound)

    for place, i in enumerate(at):
        limits = [steps[i], steps[i + 1]]
        if i == mode:
            limits = [limits[place > mode]]
        for limit in limits:
            at_most([(place, 1), (size - 1, -1)], limit)
            at_most([(place, -1), (size - 1, -1)], -limit)
    for place in range(size - 2):
        at_most([(place, 1), (place + 1, -1)], 0)
    for part, sign in ((range(mode - 1), 1), (range(mode + 1, n - 1), -1)):  # of three samples
        for place in part:
            a, b = (x[at[place + j + 1]] - x[at[place + j]] for j in (0, 1))
            slopes = [(place, -1 / a), (place + 1, 1 / a + 1 / b), (place + 2, -1 / b)]
            at_most([(where, sign * value) for where, value in slopes], 0)
    return linprog(np.eye(size)[-1], A_ub=np.array(rows), b_ub=bounds, bounds=(0, 1)).fun


def literal_dip(x):
    x, counts = np.unique(x, return_counts=True)
    steps = np.append(0, np.cumsum(counts)) / counts.sum()
    return min(nearest_unimodal(x, steps, mode) for mode in range(len(x)))


@pytest.mark.parametrize("seed", range(4))
def test_the_dip_is_the_distance_to_the_nearest_unimodal_distribution(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(4, 10)) + 4 * rng.integers(2)
    if seed % 3 == 0:
        x = np.concatenate([x, rng.normal(size=4) + 9])
    assert dip(x) == pytest.approx(literal_dip(x), abs=1e-7)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=14))
@settings(deadline=None, max_examples=15)
def test_so_it_is_where_samples_are_equal(values):
    x = np.array(values, dtype=float)
    assert dip(x) == pytest.approx(max(literal_dip(x), 1 / (2 * len(x))), abs=1e-7)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40), st.integers(1, 50))
@settings(deadline=None)
def test_the_dip_depends_on_neither_scale_nor_direction_nor_order(values, scale):
    x = np.array(values, dtype=float)
    found = dip(x)
    assert 1 / (2 * len(x)) - 1e-12 <= found <= 0.25 + 1e-12
    assert dip(-scale * x[::-1] + 3) == pytest.approx(found, abs=1e-12)


def test_known_dips():
    assert dip(np.arange(10)) == pytest.approx(1 / 20)
    assert dip(np.repeat([0.0, 1.0], 50)) == pytest.approx(0.25)
    assert dip([3.0]) == pytest.approx(0.5)
    assert dip(np.ones(7)) == pytest.approx(1 / 14)


@pytest.mark.parametrize(("n", "most"), list(zip(_SIZES, _EXCEEDED, strict=True))[::4])
def test_the_table_is_exceeded_by_one_uniform_sample_in_twenty(n, most):
    rng = np.random.default_rng(n)
    samples = 1000 if n < 200 else 200
    exceeded = [np.sqrt(n) * dip(rng.uniform(size=n)) > most for _ in range(samples)]
    assert abs(np.mean(exceeded) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / samples)


def test_two_modes_are_seen_and_one_is_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    assert not has_two_modes(x)
    assert has_two_modes(np.concatenate([x, x + 5]))
    assert not has_two_modes(np.array([0.0, 0.0, 1.0]))  # too few to tell
    assert not has_two_modes(rng.uniform(size=5000))
