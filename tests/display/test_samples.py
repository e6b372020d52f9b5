"""Pictures of memberships: a row for every cluster, a column for every sample."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.display import MembershipDisplay

P = np.array([[0.2, 0.8], [3.0, 1.0], [0.0, 0.0], [0.45, 0.55], [9.0, 1.0]])


def test_samples_are_ordered_by_cluster_and_membership():
    display = MembershipDisplay.from_matrix(P)
    assert_array_equal(display.order, [4, 1, 0, 3, 2])
    expected = [[0.9, 0.75, 0.2, 0.45, 0], [0.1, 0.25, 0.8, 0.55, 0]]
    assert_allclose(display.shares, expected)
    assert_allclose(display.mesh_.get_array().reshape(2, 5), expected)
    assert display.colorbar_.ax.get_ylabel() == "membership"


@pytest.mark.parametrize("n_samples", [50, 20_000])
def test_cells_are_means_of_samples_of_one_cluster(n_samples):
    rng = np.random.default_rng(0)
    many = rng.dirichlet([0.3] * 4, n_samples)
    display = MembershipDisplay.from_matrix(many, max_cells=20)
    assert 16 < display.shares.shape[1] <= 20
    assert_allclose(display.shares.sum(axis=0), 1)
    start = 0
    for j, size in enumerate(display.cell_sizes):
        inside = display.order[start : start + size]
        assert_allclose(display.shares[:, j], many[inside].mean(axis=0))
        assert len(np.unique(many[inside].argmax(axis=1))) == 1
        start += size
    assert start == n_samples


def test_many_clusters_are_not_all_named():
    many = np.random.default_rng(0).dirichlet([0.1] * 90, 400)
    display = MembershipDisplay.from_matrix(many)
    assert 5 < len(display.ax_.get_yticks()) < 90
    assert display.ax_.get_yticklabels()[0].get_text() == "0"


def test_bad_memberships_are_refused():
    for memberships, options, says in (
        ([[-1.0, 2.0]], {}, "memberships must be at least 0, got -1"),
        (P, {"max_cells": 0}, "max_cells must be at least 1"),
        ([1.0, 2.0], {}, "Expected 2D array"),
        ([[np.nan, 1.0]], {}, "memberships contains NaN"),
    ):
        with pytest.raises(ValueError, match=says):
            MembershipDisplay.from_matrix(memberships, **options)
