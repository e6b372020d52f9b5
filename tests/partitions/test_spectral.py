"""Spectral clustering on landmarks against the formula written out; data that is hardly any."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from internals import canonical_order
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import estimator_checks, get_tags

from nmfcluster import NMFConsensus
from nmfcluster.partitions import LandmarkSpectral, base_partitions
from nmfcluster.similarity.neighbors import Landmarks

BLOBS, OF_BLOBS = make_blobs(300, n_features=3, centers=5, random_state=1)


def literal_labels(X, n_clusters, n_landmarks, n_neighbors, seed):
    """Cluster the rows, of length 1, of the leading eigenvectors of B diag(colsum)^-1 B'."""
    rng = np.random.RandomState(seed)
    B = Landmarks(X, n_landmarks, n_neighbors, rng, common_width=True).rows(X).toarray()
    B = B[:, B.sum(axis=0) > 0]
    W = B @ np.diag(1 / B.sum(axis=0)) @ B.T
    values, vectors = np.linalg.eigh(W)
    E = vectors[:, np.argsort(-values)[:n_clusters]]
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    return KMeans(n_clusters, n_init=1, random_state=rng).fit_predict(E)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n_samples", "n_landmarks", "n_neighbors"),
    [(300, 40, 5), (300, 75, 9), (700, 90, 5)],
)
def test_labels_are_those_of_the_formula(n_samples, n_landmarks, n_neighbors):
    """Overlapping clusters: one eigenvalue is 1, and the vectors have one direction each."""
    X, _ = make_blobs(n_samples, n_features=3, centers=5, cluster_std=3, random_state=1)
    X = X[canonical_order(X).samples]  # by which landmarks are drawn
    for seed in range(3):
        expected = literal_labels(X, 5, n_landmarks, n_neighbors, seed)
        options = {
            "n_landmarks": n_landmarks,
            "n_neighbors": n_neighbors,
            "random_state": seed,
        }
        found = LandmarkSpectral(5, **options).fit(X).labels_
        # vectors are not known to all digits
        assert adjusted_rand_score(found, expected) > 0.98


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("shapes", "n_landmarks"),
    [
        (make_moons(400, noise=0.05, random_state=0), 60),
        (make_circles(400, noise=0.03, factor=0.4, random_state=0), 100),
    ],
    ids=["moons", "circles"],
)
def test_clusters_that_are_not_round(shapes, n_landmarks):
    X, y = shapes
    for seed in range(3):
        model = LandmarkSpectral(2, n_landmarks=n_landmarks, random_state=seed).fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1
        assert adjusted_rand_score(y, model.predict(X + 1e-3)) == 1
    assert adjusted_rand_score(y, KMeans(2, n_init=3).fit_predict(X)) < 0.6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_landmarks", [30, 1000])
def test_training_samples_are_predicted_as_they_were_clustered(n_landmarks):
    for seed in range(3):
        model = LandmarkSpectral(5, n_landmarks=n_landmarks, random_state=seed).fit(
            BLOBS
        )
        assert_array_equal(model.predict(BLOBS), model.labels_)
        assert_array_equal(model.predict(BLOBS[7:9]), model.labels_[7:9])
        assert_array_equal(np.unique(model.labels_), np.arange(5))


def test_sparse_and_dense_samples_agree():
    X = np.where(abs(BLOBS) < 2, 0, BLOBS)
    dense = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(X)
    for storage in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(storage(X))
        assert_array_equal(sparse.labels_, dense.labels_)
        assert_array_equal(sparse.predict(storage(X)), dense.labels_)


def test_the_result_depends_on_random_state_alone():
    X, _ = make_blobs(400, centers=4, cluster_std=4, random_state=0)

    def labels(random_state):
        return (
            LandmarkSpectral(4, n_landmarks=30, random_state=random_state)
            .fit(X)
            .labels_
        )

    first = labels(0)
    assert_array_equal(labels(0), first)
    assert_array_equal(labels(np.random.RandomState(0)), first)
    assert any(adjusted_rand_score(labels(seed), first) < 1 for seed in (1, 2, 3))


def test_the_type_of_the_samples_is_that_of_the_vectors():
    dtype = np.float32
    X = BLOBS.astype(dtype)
    model = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(X)
    assert model._onto(X).dtype == dtype
    assert model._kmeans.cluster_centers_.dtype == dtype
    assert_array_equal(model.predict(X), model.labels_)
    wide = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(BLOBS)
    assert adjusted_rand_score(model.labels_, wide.labels_) == 1


@pytest.mark.parametrize("factor", [2.0**-600, 1e200])
def test_large_and_small_magnitudes_are_scaled(factor):
    plain = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(BLOBS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(BLOBS * factor)
        assert_array_equal(scaled.labels_, plain.labels_)
        assert_array_equal(scaled.predict(BLOBS * factor), plain.labels_)


def test_samples_far_from_all_others_have_a_cluster():
    model = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(BLOBS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for far in (1e3, 1e30, 1e300):
            assert np.isin(model.predict(far * np.eye(3)), range(5)).all()


# --- data that is hardly any -------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("times", "n_landmarks"), [(20, 25), (200, 6), (200, 1000)])
def test_samples_that_coincide_have_one_cluster(times, n_landmarks):
    X = np.repeat(np.eye(6, 4) + np.arange(6)[:, None], times, axis=0)
    own = np.repeat(np.arange(6), times)
    for n_clusters in (2, 6):
        model = LandmarkSpectral(
            n_clusters, n_landmarks=n_landmarks, n_neighbors=2, random_state=0
        )
        labels = model.fit(X).labels_
        assert len({*zip(own, labels, strict=True)}) == 6
        assert_array_equal(model.predict(X), labels)


def test_samples_that_are_all_equal_are_one_cluster():
    with warns_naming(ConvergenceWarning, "distinct clusters"):
        model = LandmarkSpectral(3, n_landmarks=20, random_state=0).fit(
            np.ones((500, 2))
        )
    assert_array_equal(model.labels_, 0)
    assert_array_equal(model.predict([[1.0, 1.0], [5.0, 2.0]]), 0)


def test_constant_features_tell_nothing():
    plain = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(BLOBS)
    wider = LandmarkSpectral(5, n_landmarks=40, random_state=0)
    wider.fit(np.column_stack([BLOBS, np.full(300, 7.0), np.zeros(300)]))
    assert adjusted_rand_score(wider.labels_, plain.labels_) == 1


def test_a_handful_of_samples():
    for n_samples, n_clusters in ((1, 1), (2, 1), (2, 2), (5, 5)):
        X = np.arange(2.0 * n_samples).reshape(n_samples, 2) ** 2
        model = LandmarkSpectral(n_clusters, n_neighbors=2, random_state=0).fit(X)
        assert len(np.unique(model.labels_)) == n_clusters
        assert_array_equal(model.predict(X), model.labels_)


def test_as_many_clusters_as_landmarks_and_no_more():
    model = LandmarkSpectral(6, n_landmarks=6, random_state=0).fit(BLOBS)
    assert len(np.unique(model.labels_)) == 6
    too_few = ("n_clusters=7", "300", "n_landmarks=6")
    with raises_naming(ValueError, too_few):
        LandmarkSpectral(7, n_landmarks=6).fit(BLOBS)
    with raises_naming(ValueError, "n_clusters=4", "3 samples", "n_landmarks=1000"):
        LandmarkSpectral(4).fit(BLOBS[:3])


# --- as others see it --------------------------------------------------------------------------


def test_a_refused_fit_leaves_the_estimator_as_it_was():
    model = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(BLOBS)
    before = model.labels_
    with raises_naming(ValueError, "n_clusters=41"):
        model.set_params(n_clusters=41).fit(BLOBS)
    assert model.labels_ is before
    assert_array_equal(model.predict(BLOBS), before)


def test_is_a_clusterer_with_a_documented_page():
    assert get_tags(LandmarkSpectral()).estimator_type == "clusterer"
    for name in LandmarkSpectral().get_params():
        assert f"{name} : " in LandmarkSpectral.__doc__


@pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning"
)
def test_checks_that_scikit_learn_keeps_for_itself():
    for check in (
        estimator_checks.check_param_validation,
        estimator_checks.check_dataframe_column_names_consistency,
        estimator_checks.check_inplace_ensure_writeable,
    ):
        check("LandmarkSpectral", LandmarkSpectral(3))


def test_a_stored_model_predicts_as_before_and_keeps_no_samples():
    X = np.tile(BLOBS, (20, 1)) + np.random.default_rng(0).normal(size=(6000, 3))
    model = LandmarkSpectral(5, n_landmarks=40, random_state=0).fit(X)
    stored = pickle.dumps(model)
    assert_array_equal(pickle.loads(stored).predict(X), model.predict(X))
    assert len(stored) < model.labels_.nbytes + 20_000 < X.nbytes


def test_a_copy_fits_to_the_same():
    model = LandmarkSpectral(5, n_landmarks=40, random_state=3).fit(BLOBS)
    assert_array_equal(clone(model).fit_predict(BLOBS), model.labels_)


def test_as_base_clusterer_each_run_has_landmarks_and_clusters_of_its_own():
    base = LandmarkSpectral(n_landmarks=60)
    made = base_partitions(
        BLOBS, base, n_estimators=6, n_clusters=(4, 9), random_state=0
    )
    assert {len(np.unique(column)) for column in made.labels.T} <= set(range(4, 10))
    assert len({tuple(column) for column in made.labels.T}) == 6
    assert base.get_params() == LandmarkSpectral(n_landmarks=60).get_params()


def test_a_consensus_of_spectral_clusterings_finds_moons_and_predicts_them():
    X, y = make_moons(500, noise=0.05, random_state=0)
    options = {"n_estimators": 12, "base_n_clusters": (4, 12), "max_samples": 0.9}
    model = NMFConsensus(
        2, estimator=LandmarkSpectral(n_landmarks=80), random_state=0, **options
    )
    model.fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    new, of_new = make_moons(100, noise=0.05, random_state=1)
    assert adjusted_rand_score(of_new, model.predict(new)) > 0.9
