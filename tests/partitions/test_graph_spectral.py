"""Spectral clustering of a graph against the formula written out; data that is hardly any."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import canonical_order
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.preprocessing import normalize

from nmfcluster.partitions import GraphSpectral, base_partitions

BLOBS, OF_BLOBS = make_blobs(
    300, n_features=3, centers=5, cluster_std=3, random_state=1
)


def literal_rows(X, new, n_clusters, n_neighbors, seed):
    """Return where new samples are by the extension of eigenvectors of D^-1/2 W D^-1/2."""
    n = len(X)
    kept = np.sort(np.random.RandomState(seed).permutation(n)[: int(0.7 * n)])
    points = X[kept]
    W = np.zeros((len(points), len(points)))
    for i, row in enumerate(pairwise_distances(points)):
        W[i, np.argsort(row)[: n_neighbors + 1]] = 1
    W = np.maximum(W, W.T)
    d = W.sum(axis=1)
    values, vectors = np.linalg.eigh(W / np.sqrt(np.outer(d, d)))
    values, vectors = values[::-1][:n_clusters], vectors[:, ::-1][:, :n_clusters]
    rows = np.zeros((len(new), n_clusters))
    for i, distances in enumerate(pairwise_distances(new, points)):
        for j in np.argsort(distances)[: n_neighbors + 1]:
            rows[i] += vectors[j] / np.sqrt(d[j]) / values
    return normalize(rows)


@pytest.mark.parametrize(("n_clusters", "n_neighbors", "seed"), [(5, 10, 0), (4, 7, 1)])
def test_rows_are_those_of_the_formula(n_clusters, n_neighbors, seed):
    """Up to the signs of eigenvectors."""
    X = BLOBS[canonical_order(BLOBS).samples]
    model = GraphSpectral(n_clusters, n_neighbors=n_neighbors, random_state=seed).fit(X)
    new = X[:50] + 0.1
    found = normalize(model._onto(new))
    expected = literal_rows(X, new, n_clusters, n_neighbors, seed)
    signs = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * signs, expected, atol=1e-5)
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(
    "shapes",
    [
        make_moons(400, noise=0.05, random_state=0),
        make_circles(400, noise=0.03, factor=0.4, random_state=0),
    ],
    ids=["moons", "circles"],
)
def test_clusters_that_are_not_round(shapes):
    X, y = shapes
    for storage in (np.asarray, sp.csr_array):
        model = GraphSpectral(2, random_state=0).fit(storage(X))
        assert adjusted_rand_score(y, model.labels_) == 1
        for new in (X, sp.coo_array(X)):  # however the samples of the fit were stored
            assert adjusted_rand_score(y, model.predict(new)) == 1


def test_copies_are_one_place_of_the_graph():
    """Ten copies of a row are not each other's neighbours, and have one label."""
    y = np.repeat([0, 1, 2], 30)
    X = 8 * np.eye(5)[y] + np.random.default_rng(0).normal(size=(90, 5))
    once = GraphSpectral(3, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, once) == 1
    often = GraphSpectral(3, random_state=0).fit(np.repeat(X, 10, axis=0)).labels_
    assert_array_equal(often, np.repeat(once, 10))


@pytest.mark.parametrize(
    ("n_samples", "n_places"), [(1, 1), (2, 1), (500, 1), (60, 3), (60, 2), (6, 6)]
)
def test_hardly_any_places(n_samples, n_places):
    """Copies stay together; there are no more clusters than places."""
    X = np.arange(n_places)[np.arange(n_samples) % n_places, None] * np.ones((1, 2))
    labels = GraphSpectral(min(n_samples, 4), random_state=0).fit(X).labels_
    assert len(np.unique(labels)) == n_places or n_places > 4
    for place in range(n_places):
        assert len(np.unique(labels[X[:, 0] == place])) == 1


@pytest.mark.parametrize("seed", range(5))
def test_of_few_samples_a_third_are_neighbours_at_most(seed):
    """Of 16 samples 11 are in the graph: with more than 3 neighbours each, nothing changes."""
    X = np.random.default_rng(seed).normal(size=(16, 2))
    most = GraphSpectral(2, n_neighbors=10, random_state=0).fit(X)
    third = GraphSpectral(2, n_neighbors=3, random_state=0).fit(X)
    assert_array_equal(most.labels_, third.labels_)
    new = np.random.default_rng(seed + 100).normal(size=(300, 2))
    assert_array_equal(most.predict(new), third.predict(new))


def test_as_a_base_clusterer_it_predicts():
    X, _ = make_blobs(200, centers=3, random_state=0)
    found = base_partitions(
        X, GraphSpectral(), n_estimators=3, n_clusters=(3, 6), random_state=0
    )
    assert not found.needs_training_data
    assert_array_equal(found.predict(X), found.labels)
