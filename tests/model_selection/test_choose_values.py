"""Numbers of clusters by the values of a parameter, against fits that are compared by hand."""

import numpy as np
import pytest
from model_selection.clusterers import kmeans
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, HDBSCAN, AgglomerativeClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.neighbors import radius_neighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster.model_selection import choose_n_clusters

X, Y = make_blobs([80, 60, 40, 30], random_state=8)
WARD = AgglomerativeClustering(n_clusters=None, distance_threshold=1)


class Components(ClusterMixin, BaseEstimator):
    """Connected components of a graph of near samples: a clusterer with a resolution."""

    def __init__(self, resolution=1.0):
        self.resolution = resolution

    def fit(self, X, y=None):
        graph = radius_neighbors_graph(X, 1 / self.resolution)
        _, self.labels_ = connected_components(graph)
        return self


def chosen(estimator, values, name, samples=X, **options):
    options = {"param_name": name, "random_state": 0} | options
    return choose_n_clusters(estimator, samples, values, **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("estimator", "name", "values"),
    [
        (DBSCAN(), "eps", np.geomspace(0.2, 6, 12)),
        (HDBSCAN(copy=True), "min_cluster_size", [5, 10, 15, 20, 25, 30, 70]),
        (WARD, "distance_threshold", np.geomspace(2, 200, 12)),
        (Components(), "resolution", 1 / np.geomspace(0.3, 8, 12)),
        (
            make_pipeline(StandardScaler(), DBSCAN()),
            "dbscan__eps",
            np.geomspace(0.05, 1, 10),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_number_is_found_by_any_parameter(estimator, name, values):
    found = chosen(estimator, values, name)
    assert (found.n_clusters_, found.method) == (4, "stability")
    best = found.best_estimator_
    own = found.values[4]
    assert best.get_params()[name] == own[len(own) // 2]
    assert adjusted_rand_score(best.fit_predict(X), Y) > 0.9
    assert found.candidates.tolist() == [k for k in found.values if k > 1]
    listed = np.concatenate(list(found.values.values()))
    assert_array_equal(np.sort(listed), np.sort(values))
    assert repr(found).endswith(", by stability, which cannot choose 1)")


def test_distances_of_pairs_are_cut_in_rows_and_columns():
    model = DBSCAN(metric="precomputed")
    found = chosen(model, np.geomspace(0.5, 6, 8), "eps", pairwise_distances(X))
    assert found.n_clusters_ == 4


@pytest.mark.slow  # starts workers
def test_the_result_does_not_depend_on_jobs():
    values = np.geomspace(0.5, 6, 8)
    expected = chosen(DBSCAN(), values, "eps")
    found = chosen(DBSCAN(), values, "eps", n_jobs=2)
    assert_array_equal(found.stability, expected.stability)


def test_fits_are_compared_by_the_numbers_that_they_found():
    """KMeans finds what it is told to, so that four halves have one fit of each number."""
    found = chosen(kmeans(), [5, 2, 4], "n_clusters", random_state=1)
    assert_array_equal(found.candidates, [2, 4, 5])
    assert_array_equal(found.n_fits, 4)
    seed = int(np.random.RandomState(1).randint(2**31 - 1))
    for k, stability in zip(found.candidates, found.stability, strict=True):
        labels = []
        for half in range(4):
            rng = np.random.default_rng((seed, half))
            rows = np.sort(
                rng.choice(len(X), len(X) // 2, replace=False, shuffle=False)
            )
            labels.append(kmeans(int(k)).fit(X[rows]).predict(X))
        indices = [
            adjusted_rand_score(a, b) for i, a in enumerate(labels) for b in labels[:i]
        ]
        assert_allclose(stability, np.mean(indices))


def test_values_that_fail_are_told():
    with warns_naming(FitFailedWarning, "eps=-1"):
        found = chosen(DBSCAN(), [-1, 1, 1.5, 2], "eps")
    assert sum(map(len, found.values.values())) == 3


def test_the_picture_is_that_of_stability():
    pytest.importorskip("matplotlib").use("Agg")
    found = chosen(DBSCAN(), [0.7, 1, 1.5, 2], "eps")
    assert found.plot().ax_.get_title() == "chosen: 4 clusters"
    pytest.importorskip("matplotlib.pyplot").close("all")
