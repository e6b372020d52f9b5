"""Similarities by the longest step of the best path, which Floyd and Warshall find here."""

from fractions import Fraction

import numpy as np
import pytest
from affinities import samples, square
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster.affinity import make_affinity, path_kernel
from nmfcluster.datasets import make_nested_rings


def literal_steps(X):
    """Return the longest step of the best path between all pairs, after Floyd and Warshall."""
    n = len(X)
    e = [
        [0.0 if i == j else square(X[i], X[j]) ** 0.5 for j in range(n)]
        for i in range(n)
    ]
    for over in range(n):
        for i in range(n):
            for j in range(n):
                e[i][j] = min(e[i][j], max(e[i][over], e[over][j]))
    return np.array(e)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_paths_have_the_shortest_longest_step(width):
    X = samples(width=width)
    steps = literal_steps(X)
    for scale in (None, 0.3, 20.0):
        size = np.median(steps[np.triu_indices(25, 1)]) if scale is None else scale
        for Y in (None, X, X.copy(), X.tolist()):
            assert_allclose(
                path_kernel(X, Y, scale=scale), np.exp(-steps / size), rtol=1e-10
            )
    assert_array_equal(path_kernel(X), path_kernel(X).T)


def test_paths_of_new_samples_lead_through_the_others_alone():
    X, new = samples(), samples(9, 6)
    size = np.median(literal_steps(X)[np.triu_indices(25, 1)])
    found = path_kernel(new, X)
    for sample, row in zip(new, found, strict=True):
        steps = literal_steps(np.vstack([X, sample]))[-1, :-1]
        assert_allclose(row, np.exp(-steps / size), rtol=1e-10)
    assert_allclose(path_kernel(new[:1], X), found[:1], rtol=1e-12)  # one at a time
    own = path_kernel(X)
    assert_allclose(path_kernel(X[3:8], X), own[3:8], rtol=1e-10)


def test_paths_connect_rings_and_not_two_of_them():
    X, y = make_nested_rings(200, noise=0, radii=(1.0, 2.0), random_state=0)
    steps = -np.log(path_kernel(X, scale=1.0))
    same = y[:, None] == y
    assert steps[same].max() < steps[~same].min()
    assert steps[~same].max() == pytest.approx(1.0, abs=0.1)


def test_paths_between_samples_that_coincide():
    X = np.array([[1.0, 2.0]] * 3 + [[1.0, 5.0]])
    steps = np.array([[0, 0, 0, 3.0], [0, 0, 0, 3], [0, 0, 0, 3], [3, 3, 3, 0]])
    assert_allclose(path_kernel(X, scale=3.0), np.exp(-steps / 3), rtol=1e-12)
    assert_array_equal(path_kernel(X[:3]), np.ones((3, 3)))  # a median of 0 is no scale


def test_paths_as_an_affinity():
    X, new = samples(), samples(9, 6)
    found = make_affinity(X, path_kernel)
    assert_allclose(found.similarity.toarray(), path_kernel(X), rtol=1e-12)
    assert_allclose(found.between(new), path_kernel(new, X), rtol=1e-12)


def test_scales_of_paths_that_there_are_not():
    for scale in (0, np.nan, np.inf, True, "a", Fraction(1, 2)):
        with raises_naming((TypeError, ValueError), "scale"):
            path_kernel(np.arange(6.0)[:, None], scale=scale)


def test_paths_keep_float32():
    X = np.arange(6, dtype=np.float32)[:, None]
    assert path_kernel(X).dtype == path_kernel(X[:2], X).dtype == np.float32
