"""Hartigan's dip, beside its definition solved by linear programming."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from nmfcluster.model_selection.voters.dips import _EXCEEDED, _SIZES, dip, has_two_modes


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


@pytest.mark.parametrize("seed", range(12))
def test_the_dip_is_the_distance_to_the_nearest_unimodal_distribution(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(4, 10)) + 4 * rng.integers(2)
    if seed % 3 == 0:
        x = np.concatenate([x, rng.normal(size=4) + 9])
    assert dip(x) == pytest.approx(literal_dip(x), abs=1e-7)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=14))
@settings(deadline=None)
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


@pytest.mark.parametrize(("n", "most"), list(zip(_SIZES, _EXCEEDED, strict=True))[::3])
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
