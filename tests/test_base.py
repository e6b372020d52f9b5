"""Numbers of clusters and indices of samples, as the estimators share them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from nmfcluster._base import check_indices, numbered

law = settings(max_examples=60, deadline=None, derandomize=True)


@law
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 12), st.booleans())
def test_clusters_are_numbered_by_size_and_rows_in_none_stay_so(seed, k, n, weighted):
    rng = np.random.default_rng(seed)
    labels, P = rng.integers(-1, k, size=n), rng.uniform(size=(n, k))
    counts = rng.integers(1, 9, size=n) if weighted else None
    memberships, found, order = numbered(P, labels, counts)
    assert sorted(order) == list(range(k))
    assert_array_equal(memberships, P[:, order])
    mass = np.ones(n) if counts is None else counts
    sizes = [mass[found == c].sum() for c in range(k)]
    assert sizes == sorted(sizes, reverse=True)
    for i in range(n):
        assert found[i] == -1 if labels[i] == -1 else order[found[i]] == labels[i]


def test_rows_in_no_cluster_make_none_larger():
    labels = np.array([2, 2, -1, -1, -1, 0])
    _, found, order = numbered(np.eye(6, 3), labels)
    assert_array_equal(order, [2, 0, 1])
    assert_array_equal(found, [0, 0, -1, -1, -1, 1])


@pytest.mark.parametrize(
    ("indices", "expected"),
    [(None, [0, 1, 2, 3]), ([3, 0], [3, 0]), ((-4, -1), [-4, -1]), (np.array([], int), [])],
)
def test_indices_are_those_asked_for(indices, expected):
    found = check_indices(indices, 4)
    assert found.dtype.kind == "i"
    assert_array_equal(found, expected)
    assert_array_equal(np.arange(4)[found], np.arange(4)[expected] if expected else [])


@pytest.mark.parametrize(
    "indices", [[4], [-5], [0.0], [True, False, True, True], [[0]], 2, "0", ["0"], [None]]
)
def test_indices_that_are_none_are_named(indices):
    with pytest.raises(ValueError, match="indices must be integers from 0 to 3, got"):
        check_indices(indices, 4)
