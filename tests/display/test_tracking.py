"""Pictures of samples that move between clusters."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from nmfcluster import NMFConsensus, SSNMFClusterer
from nmfcluster.display import ClusterTrackingDisplay

X = np.random.default_rng(0).normal(size=(40, 3)) + np.repeat(np.eye(4, 3) * 9, 10, axis=0)


def test_a_cluster_keeps_its_number_while_it_keeps_most_of_its_samples():
    rows = {2: [0, 0, 0, 0, 1, 1, 1], 3: [2, 2, 2, 1, 0, 0, 0], 4: [3, 3, 0, 2, 2, 1, 1]}
    display = ClusterTrackingDisplay.from_predictions(rows)
    assert_array_equal(display.numbers_[:2], [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 2, 1, 1, 1]])
    assert_array_equal(display.numbers_[2], [0, 0, 3, 2, 2, 1, 1])
    # from two to three clusters one is split; then a sample of an old one joins another old one
    assert display.moved_ == {3: 0, 4: pytest.approx(1 / 7)}


def test_renamed_clusters_do_not_move():
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=100)
    display = ClusterTrackingDisplay.from_predictions({"a": labels, "b": (labels * 3 + 1) % 5})
    assert display.moved_ == {"b": 0}
    assert_array_equal(display.numbers_[0], display.numbers_[1])


def test_cells_are_the_numbers_of_the_samples_in_order():
    rng = np.random.default_rng(1)
    rows = {k: rng.integers(-1, k, size=60) for k in (2, 3, 4)}
    display = ClusterTrackingDisplay.from_predictions(rows)
    assert_array_equal(np.sort(display.order_), np.arange(60))
    cells = display.mesh_.get_array().reshape(3, -1)
    edges = display.mesh_.get_coordinates()[0, :, 0].astype(int)
    assert_array_equal(
        np.repeat(cells, np.diff(edges), axis=1), display.numbers_[:, display.order_]
    )
    first = display.numbers_[0, display.order_]
    assert (np.diff(first) >= 0).all()


def test_samples_in_no_cluster_are_grey_and_do_not_move():
    display = ClusterTrackingDisplay.from_predictions({"a": [0, 0, -1, 1], "b": [0, 0, 1, -1]})
    assert_array_equal(display.numbers_, [[0, 0, -1, 1], [0, 0, 2, -1]])
    assert display.moved_ == {"b": 0}
    grey = display.mesh_.cmap(display.mesh_.norm(-1))
    assert np.ptp(grey[:3]) < 1e-6
    assert len({display.mesh_.cmap(display.mesh_.norm(c)) for c in (-1, 0, 1, 2)}) == 4


def test_estimators_name_the_rows():
    models = [SSNMFClusterer(2, random_state=0), NMFConsensus(4, random_state=0)]
    display = ClusterTrackingDisplay.from_estimators(model.fit(X) for model in models)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [
        "2 clusters",
        "4 clusters",
    ]
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
    with pytest.raises(NotFittedError):
        ClusterTrackingDisplay.from_estimator(KMeans(2))
    with pytest.raises(TypeError, match="got GaussianMixture: from_predictions takes labels"):
        ClusterTrackingDisplay.from_estimator(GaussianMixture(2).fit(X))
    models = [KMeans(2, n_init=1).fit(X), AgglomerativeClustering(2).fit(X)]
    with pytest.raises(ValueError, match="differ in n_clusters, got two of 2 clusters"):
        ClusterTrackingDisplay.from_estimators(models)


def test_many_clusters_have_colours_of_their_own():
    labels = np.arange(21)
    display = ClusterTrackingDisplay.from_predictions({"all": labels})
    colours = {tuple(display.mesh_.cmap(display.mesh_.norm(c))) for c in labels}
    assert len(colours) == 21
