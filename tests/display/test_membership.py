"""Pictures of memberships: what is drawn, in which order."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from nmfcluster.display import MembershipDisplay

P = np.array([[0.2, 0.8], [3.0, 1.0], [0.0, 0.0], [0.45, 0.55], [9.0, 1.0]])


def test_samples_are_ordered_by_cluster_and_membership():
    display = MembershipDisplay.from_matrix(P)
    np.testing.assert_array_equal(display.order, [4, 1, 0, 3, 2])
    expected = [[0.9, 0.75, 0.2, 0.45, 0], [0.1, 0.25, 0.8, 0.55, 0]]
    np.testing.assert_allclose(display.shares, expected)
    np.testing.assert_allclose(display.mesh_.get_array().reshape(2, 5), expected)
    assert display.colorbar_.ax.get_ylabel() == "membership"


@pytest.mark.parametrize("n_samples", [50, 100_000])
def test_cells_are_means_of_samples_of_one_cluster(n_samples):
    rng = np.random.default_rng(0)
    many = rng.dirichlet([0.3] * 4, n_samples)
    display = MembershipDisplay.from_matrix(many, max_cells=20, colorbar=False)
    assert display.shares.shape == (4, 20)
    np.testing.assert_allclose(display.shares.sum(axis=0), 1)
    assert display.colorbar_ is None
    start = 0
    for j, size in enumerate(display.cell_sizes):
        own = display.order[start : start + size]
        np.testing.assert_allclose(display.shares[:, j], many[own].mean(axis=0))
        assert len(np.unique(many[own].argmax(axis=1))) == 1
        start += size
    assert start == n_samples
    display.figure_.canvas.draw()


def test_others_with_probabilities_are_shown(consensus):
    X = load_iris().data
    mixture = GaussianMixture(3, random_state=0).fit(X)
    display = MembershipDisplay.from_estimator(mixture, X)
    assert display.shares.shape == (3, 150)
    with pytest.raises(ValueError, match="X must be given: GaussianMixture keeps no memberships"):
        MembershipDisplay.from_estimator(mixture)
    with pytest.raises(TypeError, match="estimator must be one of nmfcluster, or have predict_pro"):
        MembershipDisplay.from_estimator(KMeans(2).fit(X), X)
    with pytest.raises(NotFittedError):
        MembershipDisplay.from_estimator(GaussianMixture(3), X)


def test_many_clusters_are_not_all_named():
    rng = np.random.default_rng(0)
    display = MembershipDisplay.from_matrix(rng.dirichlet([0.1] * 90, 400))
    assert 5 < len(display.ax_.get_yticks()) < 90
    names = [f"topic {i}" for i in range(90)]
    named = MembershipDisplay.from_matrix(rng.dirichlet([0.1] * 90, 400), names=names)
    assert named.ax_.get_yticklabels()[0].get_text() == "topic 0"


@pytest.mark.parametrize(
    ("memberships", "options", "says"),
    [
        ([[-1.0, 2.0]], {}, "memberships must be at least 0, got -1"),
        (P, {"names": ["a"]}, "names must be as many as clusters, 2, got 1 of them"),
        (P, {"max_cells": 0}, "max_cells must be at least 1"),
        ([1.0, 2.0], {}, "Expected 2D array"),
        ([[np.nan, 1.0]], {}, "memberships contains NaN"),
    ],
)
def test_bad_memberships_are_refused(memberships, options, says):
    with pytest.raises(ValueError, match=says):
        MembershipDisplay.from_matrix(memberships, **options)
