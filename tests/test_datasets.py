"""Made-up partitions and rings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.datasets import make_nested_rings, make_partitions


@pytest.mark.parametrize("sizes", [(5, 1, 9), [3, 3], np.array([4])])
def test_copies_without_noise_are_the_partition_renamed(sizes):
    partitions, y = make_partitions(sizes, n_partitions=30, noise=0, random_state=0)
    assert_array_equal(np.bincount(y), sizes)
    names = set()
    for column in partitions.T:
        assert len(set(zip(column, y, strict=True))) == len(sizes)
        names.add(tuple(dict.fromkeys(column)))
    assert len(names) == {1: 1, 2: 2, 3: 6}[len(sizes)]  # every renaming occurs


def test_a_number_of_samples_is_divided_evenly():
    partitions, y = make_partitions(11, n_clusters=3, n_partitions=2, random_state=0)
    assert_array_equal(np.bincount(y), [4, 4, 3])
    assert partitions.shape == (11, 2)


def test_noise_is_the_share_of_labels_drawn_at_random():
    partitions, y = make_partitions(6000, n_partitions=4, noise=0.6, random_state=0)
    for column in partitions.T:
        table = np.array([np.bincount(column[y == c], minlength=3) for c in range(3)])
        assert_allclose(np.sort(table.ravel())[-3:] / 2000, 0.4 + 0.6 / 3, atol=0.05)
        assert_allclose(np.sort(table.ravel())[:6] / 2000, 0.6 / 3, atol=0.05)


@pytest.mark.parametrize("missing", [0.3, 0.9, 1.0])
def test_missing_labels_leave_every_sample_one(missing):
    partitions, _ = make_partitions(500, n_partitions=10, missing=missing, random_state=0)
    seen = partitions >= 0
    assert seen.any(axis=1).all()
    assert partitions.min() == -1
    assert_allclose(seen.mean(), 1 - 0.9 * missing, atol=0.03)


def test_the_seed_determines_the_result():
    one, two, other = (make_partitions(40, random_state=seed)[0] for seed in (1, 1, 2))
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert_array_equal(make_partitions(40, random_state=np.random.RandomState(1))[0], one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 1.1}, r"noise must be in \[0, 1\], got 1.1"),
        ({"missing": -0.1}, r"missing must be in \[0, 1\], got -0.1"),
        ({"n_partitions": 0}, "n_partitions must be at least 1, got 0"),
        ({"n_clusters": 0}, "n_clusters must be at least 1, got 0"),
        ({"n_samples": (3, 0)}, "n_samples must give every cluster a sample"),
        ({"n_samples": ()}, "n_samples must give every cluster a sample"),
        ({"n_samples": 2, "n_clusters": 3}, "n_samples must give every cluster a sample"),
    ],
)
def test_what_cannot_be_made_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_partitions(**options)


# --- rings ---------------------------------------------------------------------------------------


def test_rings_without_noise_are_circles():
    X, y = make_nested_rings(101, radii=(1.0, 2.0, 0.5), noise=0, random_state=0)
    assert X.shape == (101, 2)
    assert_array_equal(np.bincount(y), [34, 34, 33])
    assert_allclose(np.hypot(*X.T), np.array([1.0, 2.0, 0.5])[y], rtol=1e-12)


def test_noise_of_rings_is_the_spread_of_the_distances():
    X, y = make_nested_rings(20_000, radii=(2.0, 5.0), noise=0.3, random_state=0)
    distances = np.hypot(*X.T) - np.array([2.0, 5.0])[y]
    assert_allclose(distances.mean(), 0, atol=0.01)
    for ring in (0, 1):
        assert_allclose(distances[y == ring].std(), 0.3, rtol=0.05)
    assert_allclose(distances[np.abs(distances) > 0.3].size / 20_000, 0.317, atol=0.02)  # normal


def test_points_are_spread_evenly_over_a_ring():
    X, y = make_nested_rings(16_000, random_state=0)
    for ring in (0, 1):
        angles = np.arctan2(*X[y == ring].T)
        shares = np.histogram(angles, bins=8, range=(-np.pi, np.pi))[0] / 8_000
        assert_allclose(shares, 1 / 8, atol=0.015)


def test_the_seed_determines_the_rings():
    one, two, other = (make_nested_rings(random_state=seed)[0] for seed in (1, 1, 2))
    assert one.shape == (400, 2)
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert_array_equal(make_nested_rings(random_state=np.random.RandomState(1))[0], one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radii": ()}, r"radii must be above 0.*got \(\)"),
        ({"radii": (1.0, 0.0)}, r"radii must be above 0.*got \(1.0, 0.0\)"),
        ({"radii": (1.0, -2.0)}, r"radii must be above 0.*got \(1.0, -2.0\)"),
        ({"noise": -0.1}, "noise must be at least 0, got -0.1"),
        ({"n_samples": 1}, "n_samples must give every cluster a sample, got 1"),
    ],
)
def test_rings_that_cannot_be_made_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_nested_rings(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radii": (1.0, np.nan)}, "radii must be above 0"),
        ({"radii": (1.0, np.inf)}, "radii must be finite"),
        ({"noise": np.nan}, "noise must be at least 0, got nan"),
        ({"noise": np.inf}, "noise must be at least 0, got inf, and finite"),
        ({"n_samples": (3, 4, 5)}, "n_samples must be one number"),
    ],
)
def test_rings_of_no_size_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_nested_rings(**options)


def test_radii_can_be_an_array():
    X, y = make_nested_rings(10, radii=np.array([1.0, 4.0]), noise=0, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), np.where(y, 4.0, 1.0))
