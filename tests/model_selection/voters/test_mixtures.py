"""Mixtures whose components are merged, beside what is known of two Gaussians."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm
from sklearn.mixture import GaussianMixture

from nmfcluster.model_selection.voters.mixtures import fitted_mixtures, lowest_between, n_bumps


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
    for t in np.linspace(0, 1, 2001):
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
