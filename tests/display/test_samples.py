"""Pictures of samples in a row: memberships, and clusters that samples move between."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from nmfcluster import NMFConsensus, SSNMFClusterer
from nmfcluster.display import ClusterTrackingDisplay, MembershipDisplay

P = np.array([[0.2, 0.8], [3.0, 1.0], [0.0, 0.0], [0.45, 0.55], [9.0, 1.0]])
X = np.random.default_rng(0).normal(size=(40, 3)) + np.repeat(np.eye(4, 3) * 9, 10, axis=0)


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


# --- clusters that samples move between ----------------------------------------------------------


def track(rows):
    return ClusterTrackingDisplay(labels=rows).plot()


def test_a_cluster_keeps_its_number_while_it_keeps_most_of_its_samples():
    display = track({2: [0, 0, 0, 0, 1, 1, 1], 3: [2, 2, 2, 1, 0, 0, 0], 4: [3, 3, 0, 2, 2, 1, 1]})
    assert_array_equal(display.numbers_[:2], [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 2, 1, 1, 1]])
    assert_array_equal(display.numbers_[2], [0, 0, 3, 2, 2, 1, 1])
    # from two to three clusters one is split; then a sample of an old one joins another old one
    assert display.moved_ == {3: 0, 4: pytest.approx(1 / 7)}


def test_renamed_clusters_do_not_move():
    labels = np.random.default_rng(0).integers(5, size=100)
    display = track({"a": labels, "b": (labels * 3 + 1) % 5})
    assert display.moved_ == {"b": 0}
    assert_array_equal(display.numbers_[0], display.numbers_[1])


def test_cells_are_the_numbers_of_the_samples_in_order():
    rng = np.random.default_rng(1)
    display = track({k: rng.integers(-1, k, size=60) for k in (2, 3, 4)})
    assert_array_equal(np.sort(display.order_), np.arange(60))
    cells = display.mesh_.get_array().reshape(3, -1)
    edges = display.mesh_.get_coordinates()[0, :, 0].astype(int)
    shown = np.repeat(cells, np.diff(edges), axis=1)
    assert_array_equal(shown, display.numbers_[:, display.order_])
    assert (np.diff(display.numbers_[0, display.order_]) >= 0).all()


def test_samples_in_no_cluster_are_grey_and_do_not_move():
    display = track({"a": [0, 0, -1, 1], "b": [0, 0, 1, -1]})
    assert_array_equal(display.numbers_, [[0, 0, -1, 1], [0, 0, 2, -1]])
    assert display.moved_ == {"b": 0}
    grey = display.mesh_.cmap(display.mesh_.norm(-1))
    assert np.ptp(grey[:3]) < 1e-6
    many = track({"all": np.arange(-1, 21)}).mesh_
    assert len({tuple(many.cmap(many.norm(c))) for c in range(-1, 21)}) == 22


def test_estimators_name_the_rows():
    models = [SSNMFClusterer(2, random_state=0), NMFConsensus(4, random_state=0)]
    display = ClusterTrackingDisplay.from_estimators(model.fit(X) for model in models)
    rows = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert rows == ["2 clusters", "4 clusters"]
    assert_array_equal(display.labels["4 clusters"], models[1].labels_)


def test_any_clusterer_with_labels_is_shown():
    models = [
        KMeans(1, n_init=1, random_state=0).fit(X),
        AgglomerativeClustering(2).fit(X),
        AgglomerativeClustering(None, distance_threshold=30).fit(X[:, :2]),
        DBSCAN(3, min_samples=3).fit(X),
    ]
    display = ClusterTrackingDisplay.from_estimators(models)
    counts = [len(set(model.labels_.tolist()) - {-1}) for model in models]
    assert counts[:2] == [1, 2]
    assert list(display.labels) == ["1 cluster", *(f"{k} clusters" for k in counts[1:])]
    assert_array_equal(display.labels["1 cluster"], 0)


def test_what_has_no_labels_is_refused():
    draw = ClusterTrackingDisplay.from_estimators
    with pytest.raises(NotFittedError):
        draw([KMeans(2)])
    with pytest.raises(TypeError, match="got GaussianMixture: the constructor takes labels"):
        draw([GaussianMixture(2).fit(X)])
    models = [KMeans(2, n_init=1).fit(X), AgglomerativeClustering(2).fit(X)]
    with pytest.raises(ValueError, match="differ in n_clusters, got two of 2 clusters"):
        draw(models)
    with pytest.raises(ValueError, match=r"estimators must be a list of at least one, got \[\]"):
        draw([])
