"""Criteria of density: mixtures of two Gaussians, and modes by paths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from nmfcluster.model_selection.vote import (
    _intrinsic_dimension,
    count_density_modes,
    count_mixture_modes,
    fit_mixture,
    peak_prominences,
    ridge_line_dip,
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
    assert count_mixture_modes(made) == n
    x = np.linspace(-1, apart + 1, 20_001)
    density = (norm.pdf(x) + norm.pdf(x - apart)) / 2
    expected = density[np.searchsorted(x, apart / 2)] / density.max() if n == 2 else 1
    assert_allclose(ridge_line_dip(made, 0, 1), expected, rtol=2e-3)


def test_the_ridge_line_passes_through_all_there_is_between():
    """On a fine grid, the best way between two means is no higher than the ridge line."""
    A, B = np.array([[2, 0.8], [0.8, 0.5]]), np.array([[0.4, -0.3], [-0.3, 1.5]])
    means = np.array([[0.0, 0], [3, 1.5]])
    made = mixture([0.6, 0.4], means, [A, B])
    inverse = [np.linalg.inv(A), np.linalg.inv(B)]
    density = []
    for t in np.linspace(0, 1, 401):
        S = (1 - t) * inverse[0] + t * inverse[1]
        x = np.linalg.solve(
            S, (1 - t) * inverse[0] @ means[0] + t * inverse[1] @ means[1]
        )
        parts = [
            multivariate_normal(m, C).pdf(x) for m, C in zip(means, (A, B), strict=True)
        ]
        density.append(0.6 * parts[0] + 0.4 * parts[1])
    density = np.array(density)
    valley = density.argmin()
    lower = min(density[:valley].max(), density[valley:].max())
    assert_allclose(ridge_line_dip(made, 0, 1), density.min() / lower, rtol=0.01)


def test_components_that_touch_in_a_chain_make_one_bump():
    row = [[float(i), 0] for i in (0, 1.5, 3, 4.5, 20)]
    assert count_mixture_modes(mixture(np.full(5, 0.2), row, [np.eye(2)] * 5)) == 2


def test_one_covariance_that_is_shared_counts_as_one_each():
    means, S = [[0.0, 0], [1.5, 0], [6, 1]], np.array([[1.0, 0.4], [0.4, 0.8]])
    each = mixture([0.3, 0.4, 0.3], means, [S] * 3)
    tied = GaussianMixture(3, covariance_type="tied")
    tied.weights_, tied.means_, tied.covariances_ = each.weights_, each.means_, S
    tied.precisions_ = each.precisions_[0]
    tied.precisions_cholesky_ = each.precisions_cholesky_[0]
    assert count_mixture_modes(tied) == count_mixture_modes(each) == 2
    assert_allclose(ridge_line_dip(tied, 0, 2), ridge_line_dip(each, 0, 2))


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_the_mixture_with_the_least_bic_is_taken(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[:60] = (X[:60] + 6) * ([3, 1, 1, 0.2] if kind == "full" else 1)
    found = fit_mixture(X, [1, 2, 3, 500], 0)  # as many cannot be fitted
    bics = [
        GaussianMixture(k, covariance_type=shape, random_state=0).fit(X).bic(X)
        for shape in ("full", "tied")
        for k in (1, 2, 3)
    ]
    assert (found.covariance_type, found.n_components, count_mixture_modes(found)) == (
        kind,
        2,
        2,
    )
    assert_allclose(found.bic(X), min(bics), rtol=1e-3)


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
    rises = peak_prominences(heights, nearest)
    for persistence in (0, 0.1, 0.3, 1, 10):
        assert (rises > persistence).sum() == literal_peaks(
            heights, nearest, persistence
        )


def test_count_density_modes_what_is_known():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    assert count_density_modes(X) == (1, 1)
    apart = X + 8 * rng.integers(3, size=(600, 1))
    assert count_density_modes(apart) == (3, 3)
    assert count_density_modes(1000 * apart[::-1] - 5) == (3, 3)


def test_a_ring_rarely_has_two_certain_modes():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        angle = rng.uniform(0, 2 * np.pi, size=300)
        ring = np.column_stack([np.cos(angle), np.sin(angle)])
        found.append(count_density_modes(ring + 0.1 * rng.normal(size=ring.shape)))
    likely, certain = np.array(found).T
    assert np.mean(certain > 1) <= 0.25
    assert np.mean(likely > 1) > 0.5


def test_few_places_have_no_modes():
    assert count_density_modes(np.zeros((100, 2))) == (0, 0)
    assert count_density_modes(np.random.default_rng(0).normal(size=(32, 2))) == (0, 0)
    many = np.repeat([[0.0, 0], [9, 9]], 100, axis=0)
    assert (
        count_density_modes(
            many + np.random.default_rng(0).normal(size=many.shape).round()
        )[0]
        == 2
    )


@pytest.mark.parametrize("p", [1, 5])
def test_the_dimension_is_that_of_the_samples(p):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, p)) @ rng.normal(size=(p, 8))
    distances = NearestNeighbors(n_neighbors=12).fit(X).kneighbors()[0]
    assert_allclose(_intrinsic_dimension(distances), p, rtol=0.2)
