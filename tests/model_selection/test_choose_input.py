"""What the choice of a number of clusters takes for features, and for pairs of samples."""

import random
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import pairwise_input
from model_selection.choices import chosen
from model_selection.clusterers import W, X, kmeans
from numpy.testing import assert_allclose
from refusals import raises_naming
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AgglomerativeClustering, SpectralClustering
from sklearn.compose import make_column_transformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from nmfcluster import NMFConsensus
from nmfcluster.model_selection.refits import Samples, labels_by_refit, takes_features

pytestmark = pytest.mark.filterwarnings("error::UserWarning")


class Medoids(ClusterMixin, BaseEstimator):
    """Takes distances, and says so by a parameter alone; predicts from those to the fitted."""

    def __init__(self, n_clusters=2, metric="precomputed"):
        self.n_clusters, self.metric = n_clusters, metric

    def fit(self, X, y=None):
        assert X.shape[0] == X.shape[1]
        farthest = [0]
        for _ in range(self.n_clusters - 1):
            farthest.append(int(X[:, farthest].min(axis=1).argmax()))
        self.medoids_ = farthest
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        return X[:, self.medoids_].argmin(axis=1)


TREE = AgglomerativeClustering(metric="precomputed", linkage="average")
D = pairwise_distances(X)
NAMES = [f"s{i}" for i in range(120)]
SPECTRAL = SpectralClustering(affinity="precomputed")
NEAREST = SpectralClustering(affinity="precomputed_nearest_neighbors", n_neighbors=25)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("estimator", "pairs"),
    [
        (TREE, D),
        (TREE, pd.DataFrame(D)),
        (TREE, D.tolist()),
        (make_pipeline(FunctionTransformer(np.square), TREE), D),
        (make_pipeline(FunctionTransformer(pairwise_distances), TREE), X),
        (Medoids(), D),
        (SPECTRAL, W),
        (SPECTRAL, sp.coo_array(W)),
        (NEAREST, D),
        (NEAREST, kneighbors_graph(X, 90, mode="distance")),  # directed
        (
            NMFConsensus(2, affinity="precomputed", n_init=1),
            pd.DataFrame(W, NAMES, NAMES),
        ),
        (make_pipeline(FunctionTransformer(rbf_kernel), SPECTRAL), X),
    ],
    ids=lambda value: type(value).__name__,
)
def test_pairs_of_samples_are_cut_in_rows_and_columns(estimator, pairs):
    with warnings.catch_warnings():
        # by the fit to all
        warnings.filterwarnings("ignore", "Graph is not fully connected")
        found = chosen(estimator, pairs, range(2, 5))
    assert (found.method, found.n_clusters_) == ("stability", 3)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["metric", "affinity", "tag"])
def test_who_does_not_predict_has_the_cluster_of_the_nearest(kind, sparse):
    class Parity(ClusterMixin, BaseEstimator):
        """Labels that no distance tells."""

        def __init__(self, metric="", affinity=""):
            self.metric, self.affinity = metric, affinity

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.pairwise = kind == "tag"
            return tags

        def fit(self, X):
            self.labels_ = np.arange(X.shape[0]) % 2
            return self

    pairs = W.copy() if kind == "affinity" else D.copy()
    np.fill_diagonal(pairs, 0)
    if sparse:
        pairs[:, 7] = pairs[7] = 0  # no neighbours at all
    table = sp.csr_array(pairs) if sparse else pairs
    model = Parity() if kind == "tag" else Parity(**{kind: "precomputed"})
    similar = kind == "affinity"
    samples = Samples(table, None, {}, pairwise_input(model, table))
    assert samples.pairwise == ("similarities" if similar else "distances")
    labels, n_found = labels_by_refit(
        samples, 30, np.arange(120), model, np.random.default_rng(0)
    )
    rows = np.sort(
        np.random.default_rng(0).choice(120, 30, replace=False, shuffle=False)
    )
    for i in range(120):
        place = np.searchsorted(rows, i)
        if i in rows:
            expected = place % 2
        elif sparse and i == 7:
            expected = -1
        else:
            own = [pairs[i, j] if similar or pairs[i, j] else np.inf for j in rows]
            expected = (np.argmax(own) if similar else np.argmin(own)) % 2
        assert labels[i] == expected
    assert n_found == 2


def test_messages_are_those_of_fit():
    model = NMFConsensus(2, affinity="precomputed")
    says = ("X", "affinity='precomputed'", "symmetric")
    with raises_naming(ValueError, says):
        chosen(model, kneighbors_graph(X, 10), range(2, 4))
    with raises_naming(ValueError, "pairs"):
        chosen(TREE, X)
    with raises_naming(ValueError, "X", "'a'"):
        chosen(TREE, pd.DataFrame({"a": list("xy"), "b": [1, 2]}), [2])


# --- one reading of all containers ---------------------------------------------------------------


def _containers(table):
    yield from (pd.DataFrame(table), table.tolist(), tuple(map(tuple, table)))
    try:
        import polars
    except ImportError:
        return
    yield polars.DataFrame(table)


@pytest.mark.slow
def test_the_container_does_not_decide():
    labels = np.column_stack([kmeans(random_state=b).fit(X).labels_ for b in range(3)])
    sparse = [kind(X) for kind in (sp.csr_matrix, sp.csc_array, sp.coo_array)]
    for estimator, table, others in (
        (kmeans(n_init=1), X, sparse),
        (NMFConsensus(2, affinity="partitions", n_init=1, tol=1e-2), labels, []),
    ):
        own = chosen(estimator, table, range(2, 5), method="stability")
        assert own.n_clusters_ == 3
        for other in [*_containers(table), *others]:
            assert takes_features(estimator, other) == (table is X)
            found = chosen(estimator, other, range(2, 5), method="stability")
            assert_allclose(found.stability, own.stability)


@pytest.mark.slow
def test_what_a_pipeline_encodes_is_put_to_a_vote():
    rng = random.Random(0)
    words = (
        "cat dog fur paw tail",
        "star moon orbit sun comet",
        "bread oven flour yeast salt",
    )
    texts = [
        " ".join(rng.choices(topic.split(), k=12)) for topic in words for _ in range(30)
    ]
    steps = TfidfVectorizer(), TruncatedSVD(5, random_state=0)
    pipeline = make_pipeline(*steps, AgglomerativeClustering())
    for samples in (texts, pd.Series(texts)):
        found = chosen(pipeline, samples)
        assert (found.method, found.n_clusters_) == ("vote", 3)
    found = chosen(pipeline, texts, range(2, 5), method="stability")
    assert found.n_clusters_ == 3

    ages = np.random.default_rng(0).normal(np.repeat([20, 50, 80], 30), 3)
    table = pd.DataFrame({"age": ages, "job": np.repeat(list("abc"), 30)})
    scaled = make_column_transformer(
        (StandardScaler(), ["age"]), (OneHotEncoder(), ["job"])
    )
    found = chosen(make_pipeline(scaled, kmeans()), table)
    assert (found.method, found.n_clusters_) == ("vote", 3)
    with raises_naming(ValueError, "X", "numbers"):
        chosen(kmeans(), texts)
