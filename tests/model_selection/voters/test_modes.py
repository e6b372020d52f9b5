"""Modes of a density, beside paths between peaks that are tried one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.neighbors import NearestNeighbors

from nmfcluster.model_selection.voters.modes import Modes, _dimension, modes_of, rises_of_peaks


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


@pytest.mark.parametrize("seed", range(10))
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
    assert modes_of(X) == Modes(1, 1)
    apart = X + 8 * rng.integers(3, size=(600, 1))
    assert modes_of(apart) == Modes(3, 3)
    assert modes_of(1000 * apart[::-1] - 5) == Modes(3, 3)


def test_a_ring_rarely_has_two_certain_modes():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        angle = rng.uniform(0, 2 * np.pi, size=300)
        ring = np.column_stack([np.cos(angle), np.sin(angle)])
        found.append(modes_of(ring + 0.1 * rng.normal(size=ring.shape)))
    assert np.mean([modes.certain > 1 for modes in found]) <= 0.25
    assert np.mean([modes.likely > 1 for modes in found]) > 0.5


def test_few_places_have_no_modes():
    assert modes_of(np.zeros((100, 2))) == Modes(1, 1)
    assert modes_of(np.random.default_rng(0).normal(size=(20, 2))) == Modes(1, 1)
    many = np.repeat([[0.0, 0], [9, 9]], 100, axis=0)
    assert modes_of(many + np.random.default_rng(0).normal(size=many.shape).round()).likely == 2


@pytest.mark.parametrize("p", [1, 2, 5])
def test_the_dimension_is_that_of_the_samples(p):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, p)) @ rng.normal(size=(p, 8))
    distances = NearestNeighbors(n_neighbors=12).fit(X).kneighbors()[0]
    assert_allclose(_dimension(distances), p, rtol=0.2)
