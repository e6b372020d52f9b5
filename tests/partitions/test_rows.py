"""A clusterer that the user gives gets the rows of the user, in the order of the user."""

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_array_equal
from refusals import raises_naming
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AgglomerativeClustering, KMeans, spectral_clustering
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from nmfcluster import NMFConsensus
from nmfcluster.model_selection import StabilityScorer, choose_n_clusters
from nmfcluster.partitions import base_partitions

SIDE = 20
RNG = np.random.default_rng(0)
ROWS, COLUMNS = np.indices((SIDE, SIDE)).reshape(2, -1)
# a map of four regions with one noisy value at each place
REGIONS = ROWS // 10 * 2 + COLUMNS // 10
VALUES = (REGIONS + 0.45 * RNG.normal(size=SIDE**2))[:, None]
LINKS = grid_to_graph(SIDE, SIDE)
MAP = AgglomerativeClustering(4, connectivity=LINKS)


def with_places(X):
    return np.column_stack([X, ROWS / 5, COLUMNS / 5])


def first_centers(X, n_clusters, random_state):
    return X[[0, 10, 210, 399]]


OF_PLACES = {
    "a matrix": MAP,
    "a list": AgglomerativeClustering(4, connectivity=LINKS.toarray().tolist()),
    "in a pipeline": make_pipeline(StandardScaler(), MAP),
    "a function": AgglomerativeClustering(4, connectivity=lambda X: LINKS),
    "a step": make_pipeline(FunctionTransformer(with_places), KMeans(4, n_init=1)),
    "centers": KMeans(4, init=first_centers, n_init=1),
}


def consensus(base, k=4, **parameters):
    options = {"base_n_clusters": k, "n_estimators": 2, "random_state": 0}
    return NMFConsensus(k, estimator=base, **options | parameters)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("X", [VALUES, VALUES.round()], ids=["measured", "rounded"])
@pytest.mark.parametrize("name", OF_PLACES)
def test_what_a_clusterer_knows_of_places_is_of_the_rows_that_it_gets(name, X):
    base = OF_PLACES[name]
    alone = base.fit_predict(X)
    weights = np.arange(SIDE**2) + 1.0
    for n_jobs, weight in ((None, None), (2, weights)):
        with parallel_config(backend="threading"):
            model = consensus(base, n_jobs=n_jobs).fit(X, sample_weight=weight)
        if name != "a step" and weight is None:
            assert adjusted_rand_score(alone, model.partitions_[:, 0]) == 1
        found = adjusted_rand_score(REGIONS, model.labels_)
        assert found > adjusted_rand_score(REGIONS, alone) - 0.05


class Recorder(ClusterMixin, BaseEstimator):
    """Cluster i is the i-th value; keeps what it got."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit_predict(self, X, y=None, sample_weight=None):
        self.got_ = X.copy(), sample_weight
        return np.arange(len(X)) % self.n_clusters


def test_rows_weights_and_labels_are_those_of_the_user():
    X = np.repeat(RNG.normal(size=(6, 2)), 2, axis=0)
    weights = RNG.uniform(1, 2, size=12)
    model = consensus(Recorder(), 2).fit(X, sample_weight=weights)
    rows, got = model.estimators_[0].got_
    assert_array_equal(rows, X)
    assert_array_equal(got, weights)
    assert_array_equal(model.partitions_[:, 0], np.arange(12) % 2)  # copies differ
    # samples that are drawn come in their order; copies of them that are not have their labels
    model = consensus(Recorder(), 2, max_samples=8, n_estimators=9).fit(X)
    for clusterer, labels in zip(model.estimators_, model.partitions_.T, strict=True):
        drawn = clusterer.got_[0]
        place = [np.flatnonzero((X == row).all(axis=1))[0] for row in drawn]
        assert (np.diff(place) >= 0).all()
        is_seen = (X[:, None] == drawn).all(axis=2).any(axis=1)
        assert_array_equal(labels >= 0, is_seen)


# --- graphs --------------------------------------------------------------------------------


class Graph(ClusterMixin, BaseEstimator):
    """A clusterer of a graph that does not declare that it takes one."""

    def __init__(self, n_clusters=3):
        self.n_clusters = n_clusters

    def fit(self, A, y=None):
        assert A.shape[0] == A.shape[1]
        assert abs(A - A.T).max() == 0
        self.labels_ = spectral_clustering(
            A, n_clusters=self.n_clusters, random_state=0
        )
        return self


class Tagged(Graph):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


GROUPS = RNG.permutation(np.repeat(range(3), 30))
UPPER = np.triu(
    RNG.random((90, 90)) < np.where(GROUPS[:, None] == GROUPS, 0.5, 0.03), 1
)
GRAPH = (UPPER + UPPER.T).astype(float)
GRAPH[0] = GRAPH[1]  # a copy
GRAPH[:, 0] = GRAPH[:, 1]
CLUSTERERS = [Graph(), Tagged(), make_pipeline(FunctionTransformer(np.sqrt), Graph())]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("base", CLUSTERERS, ids=["plain", "tagged", "pipeline"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_graph_has_its_columns_in_the_order_of_its_rows(base, form):
    for n_jobs, weight in ((None, None), (2, np.arange(90) + 1.0)):
        with parallel_config(backend="threading"):
            model = consensus(base, 3, n_jobs=n_jobs)
            model.fit(form(GRAPH), sample_weight=weight)
        assert adjusted_rand_score(GROUPS, model.labels_) > 0.95


# --- fits to parts of the samples ----------------------------------------------------------


def test_clusterers_that_cannot_be_cut_with_the_samples_are_refused_by_name():
    zeros = np.arange(SIDE**2) > 0
    for name in ("a matrix", "a list", "in a pipeline"):
        base = OF_PLACES[name]
        parameter = name == "in a pipeline" and "agglomerativeclustering__connectivity"
        for fit, says in (
            (lambda b: consensus(b, max_samples=0.8).fit(VALUES), "max_samples"),
            (lambda b: base_partitions(VALUES, b, max_samples=0.8), "max_samples"),
            (lambda b: consensus(b).fit(VALUES, sample_weight=zeros), "sample_weight"),
            (
                lambda b: choose_n_clusters(b, VALUES, (2, 5), method="stability"),
                "estimator",
            ),
            (lambda b: StabilityScorer(3)(b, VALUES), "estimator"),
            (lambda b: StabilityScorer(3)(consensus([b, b]), VALUES), "estimator"),
        ):
            with raises_naming(ValueError, says, parameter or "connectivity", "400"):
                fit(base)


def test_a_symmetric_matrix_is_cut_only_if_it_is_known_what_it_holds():
    some = np.arange(90) % 9 > 0
    for base in (
        *CLUSTERERS[::2],
        consensus(Graph(), 3),
        consensus([Graph(), Graph()], 3),
    ):
        for fit in (
            lambda b: consensus(b, 3, max_samples=0.8).fit(GRAPH),
            lambda b: consensus(b, 3).fit(GRAPH, sample_weight=some),
            lambda b: choose_n_clusters(b, GRAPH, (2, 4)),
            lambda b: StabilityScorer(3)(b, GRAPH),
        ):
            with raises_naming(ValueError, "symmetric", "input_tags.pairwise"):
                fit(base)
    model = consensus(Tagged(), 3, max_samples=0.9, n_estimators=8).fit(GRAPH)
    assert adjusted_rand_score(GROUPS, model.labels_) > 0.9
    found = choose_n_clusters(Tagged(), GRAPH, (2, 4), random_state=0)
    assert found.n_clusters_ == 3
    # clusterers of scikit-learn say what they take: rows of any matrix are features
    model = consensus(KMeans(n_init=1), 3, max_samples=0.9, n_estimators=8).fit(GRAPH)
    assert adjusted_rand_score(GROUPS, model.labels_) > 0.9
