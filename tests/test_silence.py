"""No wrong answer in silence: what looks like something else is said, or refused, by name."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import load_breast_cancer, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from nmfcluster import NMFConsensus, NMFMetaCluster, SimilarityFusionNMF, SSNMFClusterer
from nmfcluster.affinity import AFFINITIES, path_kernel

POINTS, CLASSES = make_blobs(40, centers=3, random_state=0)
DISTANCES = euclidean_distances(POINTS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "model",
    [
        NMFConsensus(3, affinity="precomputed", random_state=0),
        SSNMFClusterer(3, affinity="precomputed", random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_distances_are_said_not_to_be_similarities(model):
    with warns_naming(UserWarning, "distances", "numpy.exp"):
        model.fit(DISTANCES)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.exp(-((DISTANCES / np.median(DISTANCES)) ** 2)))


def test_partitions_in_rows_are_said_to_be():
    table = np.random.default_rng(0).integers(3, size=(8, 40))
    with warns_naming(UserWarning, "40 partitions", "8 samples", "X.T"):
        NMFConsensus(3, affinity="partitions", random_state=0).fit(table)


def test_labels_of_some_samples_are_no_constraints():
    known = np.where(np.arange(40) % 4, -1, CLASSES)
    with warns_naming(UserWarning, "PairwiseConstraints.from_labels(y)"):
        SSNMFClusterer(3, random_state=0).fit(POINTS, known)


NUMBERS = [
    (type(model), name)
    for model in (
        NMFConsensus(3),
        SSNMFClusterer(3),
        SimilarityFusionNMF(3),
        NMFMetaCluster(3),
    )
    for name, value in model.get_params().items()
    if isinstance(value, int | float) and not isinstance(value, bool)
]


def test_true_is_no_number():
    for cls, name in [*NUMBERS, (NMFConsensus, "random_state")]:
        with raises_naming(TypeError, f"'{name}'", cls.__name__, "True"):
            cls(**{"n_clusters": 3, name: True}).fit(POINTS - POINTS.min())


def test_numbers_without_an_end_are_refused():
    for model, says in (
        (NMFConsensus(3, n_estimators=10**30), ("'n_estimators'", "2147483647")),
        (SSNMFClusterer(3, n_init=10**30), ("'n_init'", "2147483647")),
        (SSNMFClusterer(3, alpha=10**400), "'alpha'"),
        (SSNMFClusterer(3, n_jobs=0), "'n_jobs'"),
        (SSNMFClusterer(3, n_jobs=10**30), "'n_jobs'"),
        (NMFConsensus(3, n_init=np.timedelta64(1, "s")), ("'n_init'", "timedelta64")),
        (
            NMFConsensus(3, random_state=np.timedelta64(1)),
            ("'random_state'", "timedelta64"),
        ),
    ):
        with raises_naming(ValueError, says):
            model.fit(POINTS)


def test_small_integers_of_numpy_are_taken():
    model = SSNMFClusterer(
        np.uint8(3), n_init=np.uint8(1), max_iter=np.uint8(255), random_state=0
    )
    expected = SSNMFClusterer(3, n_init=1, max_iter=255, random_state=0).fit_predict(
        POINTS
    )
    assert_array_equal(model.fit_predict(POINTS), expected)
    # more than there are clusters
    parts = sp.csr_array(np.kron(np.eye(5), np.ones((4, 4))))
    model.set_params(affinity="precomputed")
    with warns_naming(UserWarning, "5 parts"):
        model.fit(parts)
    assert len(set(model.labels_.tolist())) == 3


def test_no_loss_is_below_0_and_none_falls_by_less():
    blocks = np.kron(np.eye(3), np.ones((4, 4)))
    with warns_naming(ConvergenceWarning, "max_iter=19"):
        model = SSNMFClusterer(
            3, affinity="precomputed", max_iter=19, random_state=0
        ).fit(blocks)
    assert model.loss_ >= 0
    assert all((curve >= 0).all() for curve in [model.loss_curve_, *model.loss_curves_])
    with warns_naming(ConvergenceWarning, "max_iter=3"):
        SSNMFClusterer(1, affinity="precomputed", max_iter=3, random_state=0).fit(
            np.ones((4, 4))
        )


def test_clusters_of_equal_components_come_last():
    with warns_naming(ConvergenceWarning, "1 cluster"):
        model = NMFMetaCluster(2, random_state=0).fit([[1.0], [2.0], [3.0]])
    assert_array_equal(model.labels_, 0)
    assert_array_equal(model.predict([[1.0], [2.0], [3.0]]), 0)


def test_a_large_eta_is_that_of_equal_weights():
    kernels = ["rbf", "nearest_neighbors"]
    model = SimilarityFusionNMF(
        3, affinity=kernels, eta=10**30, n_init=2, random_state=0
    )
    assert_allclose(model.fit(POINTS).weights_, 0.5)


def test_the_training_samples_of_clusters_that_are_alike_are_predicted_where_they_were():
    """Coordinate descent stopped far from the least squares fits: none came back."""
    X = load_breast_cancer().data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SSNMFClusterer(
            8, affinity="linear", normalize=False, random_state=0
        ).fit(X)
    assert np.mean(model.predict(X) == model.labels_) > 0.9


# --- similarities have no unit -------------------------------------------------------------------

SCALES = {
    np.float64: [2.0**514, 2.0**1000, 2.0**-350, 2.0**-540, 2.0**-900],
    np.float32: [2.0**100, 2.0**-90],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("cls", "dtype", "storage"),
    [
        (NMFConsensus, np.float64, sp.csr_array),
        (NMFConsensus, np.float32, np.asarray),
        (SSNMFClusterer, np.float64, np.asarray),
        (SSNMFClusterer, np.float32, sp.csr_array),
    ],
)
def test_the_scale_of_a_similarity_does_not_matter(cls, dtype, storage):
    kernel = rbf_kernel(POINTS, gamma=0.05).astype(dtype)
    kernel = kernel * (kernel > 1e-3)  # so that nothing falls below the smallest number
    model = cls(3, affinity="precomputed", random_state=0, n_init=1)
    expected = clone(model).fit(storage(kernel))
    for scale in SCALES[dtype]:
        found = clone(model).fit(storage(kernel * dtype(scale)))
        assert_array_equal(found.labels_, expected.labels_)
        assert_array_equal(found.membership_, expected.membership_)
        assert_array_equal(
            found.predict(storage(kernel * dtype(scale))), expected.predict(kernel)
        )


AXES = np.abs(make_blobs(40, centers=10 * np.eye(3), random_state=0)[0])
FEATURES = [
    NMFConsensus(3, n_estimators=5, random_state=0),
    *(
        SSNMFClusterer(3, affinity=name, n_init=1, random_state=0)
        for name in AFFINITIES[:6]
    ),
    *(
        SimilarityFusionNMF(3, affinity=name, n_init=1, random_state=0)
        for name in AFFINITIES[1:6]
    ),
    SSNMFClusterer(3, affinity=path_kernel, n_init=1, random_state=0),
]
FAR = {
    np.float64: [2.0**515, 2.0**-565, 2.0**-900],
    np.float32: [2.0**100, 2.0**-66],
}


def name_of(model):
    affinity = getattr(model.affinity, "__name__", model.affinity)
    return f"{type(model).__name__} {affinity}"


@pytest.mark.slow
@pytest.mark.parametrize("model", FEATURES, ids=name_of)
def test_the_scale_of_features_does_not_matter(model):
    storage = np.asarray if model.affinity in (path_kernel, "rbf") else sp.csr_array
    for dtype, scales in FAR.items():
        X = AXES.astype(dtype)
        expected = clone(model).fit(storage(X))
        for scale in scales:
            scaled = storage(X * dtype(scale))
            found = clone(model).fit(scaled)
            assert_array_equal(found.labels_, expected.labels_)
            assert_array_equal(found.predict(scaled), expected.predict(storage(X)))


def test_the_nearest_sample_has_the_labels_at_any_scale():
    partitions = np.column_stack([CLASSES, CLASSES])
    for scale in (2.0**600, 2.0**-600):
        model = NMFConsensus(3, random_state=0).fit(
            POINTS * scale, partitions=partitions
        )
        assert_array_equal(model.predict(POINTS * scale), model.labels_)


def test_scales_that_others_cannot_hold_are_refused():
    for scale in [2.0**600, 2.0**-600]:
        X = (POINTS - POINTS.min()) * scale
        for model in (
            NMFConsensus(3, estimator=KMeans(n_init=1)),
            NMFMetaCluster(3),
        ):
            with raises_naming(ValueError, "X", "scale"):
                model.fit(X)


def test_a_width_is_in_the_unit_of_the_features():
    model = SSNMFClusterer(3, affinity="rbf", gamma=0.1, random_state=0)
    expected = model.fit_predict(POINTS)
    model.set_params(gamma=0.1 * 2.0**-1040)
    assert_array_equal(model.fit_predict(POINTS * 2.0**520), expected)
    step = path_kernel(POINTS, scale=2.0)
    assert_array_equal(path_kernel(POINTS * 2.0**600, scale=2.0**601), step)


def _affinities(X):
    others = [
        SSNMFClusterer(3, affinity=name, random_state=0) for name in AFFINITIES[:6]
    ]
    fused = SimilarityFusionNMF(
        3, affinity="nearest_neighbors", n_init=2, random_state=0
    )
    beside = NMFConsensus(3, random_state=0).fit(X, partitions=CLASSES[:, None])
    dense = NMFConsensus(3, estimator=DBSCAN(eps=4.0), n_estimators=3, random_state=0)
    meta = NMFMetaCluster(3, n_estimators=3, random_state=0)
    return [beside, *(model.fit(X) for model in [*others, fused, dense, meta])]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.array, sp.csr_array])
def test_a_model_does_not_change_with_the_array_it_was_fitted_on(storage):
    X = storage(AXES)
    models = _affinities(X)
    before = [model.transform(storage(AXES)) for model in models]
    (X.data if sp.issparse(X) else X)[:] = 0.5
    for model, expected in zip(models, before, strict=True):
        assert_array_equal(model.transform(storage(AXES)), expected)
        assert_array_equal(
            pickle.loads(pickle.dumps(model)).transform(storage(AXES)), expected
        )
