"""What base clusterers are handed: frames, text and NaN as they are, pairs, and copies."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from comparing import same_partition
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import (
    DBSCAN,
    HDBSCAN,
    AffinityPropagation,
    AgglomerativeClustering,
    KMeans,
    SpectralClustering,
)
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from nmfcluster import NMFConsensus
from nmfcluster.partitions import base_partitions

N = 60
X, Y = make_blobs(N, centers=3, n_features=4, cluster_std=0.8, random_state=1)
ORDER = np.random.default_rng(1).permutation(N)
HOLES = X.copy()
HOLES[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
FRAME = pd.DataFrame(X, columns=list("abcd"), index=[f"sample {i}" for i in range(N)])
MIXED = FRAME.assign(kind=np.array(["red", "green", "blue"])[Y])
WORDS = np.array([["cat", "purr"], ["dog", "bark"], ["cow", "moo"]])[Y]
TEXTS = [f"{one} {other} {i + 10}" for i, (one, other) in enumerate(WORDS)]
KMEANS = KMeans(n_init=1)
NEAR = AgglomerativeClustering(3)  # of features
TREE = AgglomerativeClustering(metric="precomputed", linkage="average")


def consensus(base, **parameters):
    return NMFConsensus(
        3, estimator=base, n_estimators=4, n_init=1, random_state=0, **parameters
    )


def taken(data, rows):
    if isinstance(data, list):
        return [data[i] for i in rows]
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def by_names(base):
    columns = [(StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["kind"])]
    return make_pipeline(make_column_transformer(*columns), base)


READABLE = {
    "an imputer": (make_pipeline(SimpleImputer(), KMEANS), HOLES),
    "an imputer, without predict": (
        make_pipeline(SimpleImputer(), AgglomerativeClustering()),
        HOLES,
    ),
    "columns by name": (by_names(KMEANS), MIXED),
    "columns by name, without predict": (by_names(AgglomerativeClustering()), MIXED),
    "NaN in a frame": (
        make_pipeline(SimpleImputer(), KMEANS),
        FRAME.mask(np.isnan(HOLES)),
    ),
    "text": (make_pipeline(TfidfVectorizer(), KMEANS), TEXTS),
    "text in a series": (make_pipeline(TfidfVectorizer(), KMEANS), pd.Series(TEXTS)),
    "sparse NaN": (make_pipeline(SimpleImputer(), KMEANS), sp.csr_array(HOLES)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", READABLE)
def test_clusterers_that_are_given_are_asked_what_they_can_read(name):
    (base, data), draws = READABLE[name], {"max_samples": 0.7, "predict_unseen": True}
    model = consensus(base, **draws).fit(data)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert adjusted_rand_score(Y, model.predict(data)) > 0.9
    again = clone(model).fit(taken(data, ORDER))
    assert adjusted_rand_score(model.labels_[ORDER], again.labels_) > 0.9
    assert_array_equal(again.predict(taken(data, ORDER)), again.predict(data)[ORDER])
    made = base_partitions(
        data, base, n_estimators=3, n_clusters=3, random_state=0, **draws
    )
    assert made.labels.shape == (N, 3)
    assert made.predict(
        data, data if isinstance(data, pd.DataFrame) else HOLES
    ).shape == (N, 3)


def test_a_clusterer_that_takes_nan_gets_it():
    model = consensus(HDBSCAN(copy=True, min_cluster_size=4), max_samples=0.9)
    with warns_naming(UserWarning, "in no cluster"):
        model.fit(HOLES)
    kept = model.labels_ >= 0
    assert adjusted_rand_score(Y[kept], model.labels_[kept]) > 0.9
    # by distances over what is there
    assert adjusted_rand_score(Y, model.predict(HOLES)) > 0.8


def test_frames_of_polars_are_handed_on():
    pl = pytest.importorskip("polars")
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7):
        pytest.skip("scikit-learn finds no columns of polars by their names before 1.7")
    frame = pl.DataFrame({name: MIXED[name].to_numpy() for name in MIXED})
    base = by_names(KMEANS)
    model = consensus(base, max_samples=0.8, predict_unseen=True).fit(frame)
    same = consensus(base, max_samples=0.8, predict_unseen=True).fit(MIXED)
    assert_array_equal(model.labels_, same.labels_)
    assert_array_equal(model.predict(frame[:20]), same.predict(MIXED[:20]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("base", [NEAR, DBSCAN(eps=2), [NEAR, KMEANS]])
def test_new_samples_in_frames_have_the_labels_of_the_nearest(base):
    model, same = (consensus(base).fit(table) for table in (FRAME, X))
    assert_array_equal(model.labels_, same.labels_)
    assert_array_equal(model.predict(FRAME[:20] + 0.01), same.predict(X[:20] + 0.01))


def test_features_of_frames_are_drawn():
    base = make_pipeline(StandardScaler(), KMEANS)
    model = consensus(base, max_features=2).fit(FRAME)
    assert_array_equal(model.labels_, consensus(base, max_features=2).fit(X).labels_)
    assert model.estimators_[0].n_features_in_ == 2
    assert set(model.estimators_[0].feature_names_in_) < set("abcd")
    assert_array_equal(model.predict(FRAME), model.labels_)


def test_what_a_clusterer_cannot_read_it_refuses_itself():
    for base, data, says in (
        (None, HOLES, ("X", "NaN", "SimpleImputer")),
        (KMEANS, HOLES, ("X", "NaN", "SimpleImputer")),
        (GaussianMixture(), HOLES, "GaussianMixture"),
        (KMEANS, MIXED, ("'kind'", "X")),
        (make_pipeline(SimpleImputer(), KMEANS), X * np.inf, "infinity"),
        (by_names(KMEANS), MIXED[[]], "0 feature"),
        (by_names(KMEANS), MIXED[:0], "n_samples=0"),
    ):
        with raises_naming(ValueError, says):
            consensus(base).fit(data)
    with warns_naming(
        FitFailedWarning, "2 of 4", "GaussianMixture()", "ValueError", "NaN"
    ):
        consensus([make_pipeline(SimpleImputer(), KMEANS), GaussianMixture()]).fit(
            HOLES
        )


# --- clusterers that write to their input -------------------------------------------------------


class Writing(ClusterMixin, BaseEstimator):
    """k-means that leaves zeros behind it."""

    def __init__(self, n_clusters=3, random_state=None):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit_predict(self, X, y=None):
        self.inner_ = KMeans(
            self.n_clusters, n_init=1, random_state=self.random_state
        ).fit(X)
        X[:] = 0
        return self.inner_.labels_

    def predict(self, X):
        labels = self.inner_.predict(X)
        X[:] = 0
        return labels


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "base",
    [
        Writing(),
        make_pipeline(StandardScaler(copy=False), KMEANS),
        KMeans(n_init=1, copy_x=False),
        HDBSCAN(min_cluster_size=5, copy=False),
    ],
    ids=lambda base: type(base).__name__,
)
def test_clusterers_may_write_to_what_they_are_handed(base):
    before = X + 100.0
    data, new = before.copy(), before.copy()
    model = consensus(base).fit(data)
    assert adjusted_rand_score(model.labels_, model.predict(new)) > 0.95
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert_array_equal(data, before)
    assert_array_equal(new, before)
    made = base_partitions(
        data, base, n_estimators=3, n_clusters=3, max_samples=0.8, predict_unseen=True
    )
    made.predict(new, data)
    assert_array_equal(data, before)
    assert_array_equal(new, before)


# --- pairs --------------------------------------------------------------------------------------

D = pairwise_distances(X, metric="manhattan")
S = np.exp(-D / D.mean())
PAIRS = {
    "a tree": (TREE, D),
    "dense regions": (DBSCAN(metric="precomputed", eps=4), D),
    "a spectral clusterer": (SpectralClustering(affinity="precomputed", n_init=1), S),
    "exemplars": (AffinityPropagation(affinity="precomputed", damping=0.9), -(D**2)),
    "a pipeline": (make_pipeline(FunctionTransformer(np.square), TREE), D),
    "sparse distances": (
        DBSCAN(metric="precomputed", eps=4),
        sp.csr_array(np.where(D < 6, D, 0)),
    ),
}


def labels_by_pair(made, pairs, farthest):
    """Return the label of the nearest sample that each run saw, by loops; -2 for none."""
    found = np.full((len(pairs), made.labels.shape[1]), -2)
    for i, t in np.ndindex(found.shape):
        seen = [j for j in range(pairs.shape[1]) if made.labels[j, t] >= -1]
        nearest = min(pairs[i, j] for j in seen)
        if nearest < farthest:
            found[i, t] = max(made.labels[j, t] for j in seen if pairs[i, j] == nearest)
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_cut_on_both_axes_and_new_samples_go_where_the_nearest_are(name):
    base, pairs = PAIRS[name]
    options = {"max_samples": 0.8, "predict_unseen": True}
    made = base_partitions(
        pairs, base, n_estimators=3, n_clusters=3, random_state=0, **options
    )
    n_fitted = {getattr(e, "n_features_in_", 48) for e in made.estimators}
    assert n_fitted == {48}
    dense = pairs.toarray() if sp.issparse(pairs) else pairs
    nearness = dense if made.pairs == "distances" else -dense
    if sp.issparse(pairs):
        nearness = np.where(dense + np.eye(N) > 0, dense, 99.0)
        nearness[np.diag_indices(N)] = 99.0  # a sparse matrix stores no 0
    some = base_partitions(
        pairs, base, n_estimators=3, n_clusters=3, random_state=0, max_samples=0.8
    )
    farthest = 99.0 if sp.issparse(pairs) else np.inf
    expected = labels_by_pair(some, nearness, farthest)
    assert_array_equal(some.predict(pairs), expected)
    for t, drawn in enumerate(some.samples):
        left = np.setdiff1d(np.arange(N), drawn)
        assert_array_equal(made.labels[left, t], expected[left, t])
        assert_array_equal(made.labels[drawn, t], some.labels[drawn, t])
    model = consensus(base, base_n_clusters=3, **options).fit(pairs)
    kept = model.labels_ >= 0
    assert adjusted_rand_score(Y[kept], model.labels_[kept]) > 0.9
    assert model.__sklearn_tags__().input_tags.pairwise or name == "a pipeline"
    again = clone(model).fit(pairs[ORDER][:, ORDER])
    assert same_partition(again.labels_, model.labels_[ORDER])
    new = pairs[:30]
    assert same_partition(again.predict(new[:, ORDER]), model.predict(new))


def test_frames_of_pairs_are_put_in_one_order():
    names = FRAME.index
    frame = pd.DataFrame(D, index=names, columns=names)
    expected = consensus(TREE, max_samples=0.8).fit(D).labels_
    with warns_naming(UserWarning, "order"):
        labels = consensus(TREE, max_samples=0.8).fit(frame.iloc[:, ORDER]).labels_
    assert_array_equal(labels, expected)


def test_pairs_that_are_none_are_refused():
    for base, data, options, says in (
        (
            TREE,
            D[:40],
            {},
            ("X", "square", "distances", "(40, 60)"),
        ),
        (
            TREE,
            D,
            {"max_features": 0.5},
            ("max_features", "1.0", "X"),
        ),
        ([TREE, KMEANS], D, {}, ("X", "some", "distances", "features")),
    ):
        with raises_naming(ValueError, says):
            consensus(base, **options).fit(data)
        options["n_clusters"] = 3
        with raises_naming(ValueError, says):
            base_partitions(data, base, n_estimators=2, **options)
    model = consensus(TREE).fit(D)
    with raises_naming(ValueError, "X", "40", "60"):
        model.predict(D[:, :40])


def test_lists_of_distances_are_pairs():
    base = AgglomerativeClustering(metric="precomputed", linkage="average")
    D = pairwise_distances(X)
    expected = consensus(base, max_samples=0.8).fit(D).labels_
    assert_array_equal(
        consensus(base, max_samples=0.8).fit(D.tolist()).labels_, expected
    )
