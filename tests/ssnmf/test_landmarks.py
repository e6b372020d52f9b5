"""Fits by landmarks on samples that are hardly data: right, or refused, or warned of."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from refusals import warns_naming
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus, SSNMFClusterer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
CORNERS, CORNER = np.repeat(np.eye(3), 20, axis=0), np.repeat(np.arange(3), 20)
NEAR = CORNERS + 1e-9 * RNG.normal(size=(60, 3))
FAR = np.where(np.arange(60)[:, None] == 0, 1e6, X)
HOLES = sp.csr_array(abs(X) * (RNG.uniform(size=X.shape) < 0.5))


def fitted(samples, n_clusters=3, pairs=None, **options):
    options = {"affinity": "landmarks", "random_state": 0, "n_init": 2} | options
    model = SSNMFClusterer(n_clusters, **options)
    return model.fit(samples, **(pairs or {}))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("samples", "n_landmarks", "options"),
    [
        (X, 100, {}),  # more than samples
        (X, 3, {}),  # as many as clusters
        (X, 1, {}),  # a cluster needs one
        (X, 6, {"n_neighbors": 50}),  # all of them for each sample
        (X, 2_000, {"n_neighbors": 1}),  # every sample a part of its own
        (FAR, 20, {}),
        (HOLES, 20, {}),  # rows of zeros
        (X * 1e200, 20, {}),
        (X * 1e-200, 20, {}),
        (X.astype(np.float32), 20, {}),
        (np.column_stack([X, np.ones(60)]), 20, {}),
        (X, 20, {"normalize": True}),
    ],
)
def test_clusters_are_found_and_finite(samples, n_landmarks, options, few_landmarks):
    few_landmarks(n_landmarks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(samples, **options)
    assert_array_equal(np.unique(model.labels_), np.arange(3))
    assert np.isfinite(model.membership_).all()
    assert np.isfinite(model.loss_)
    assert set(np.unique(model.predict(samples))) <= {0, 1, 2}
    assert np.isfinite(
        model.transform(np.full((2, samples.shape[1]), samples.max()))
    ).all()


@pytest.mark.parametrize("n_landmarks", [10, 1000])
def test_samples_that_coincide_are_together(n_landmarks, few_landmarks):
    few_landmarks(n_landmarks)
    model = fitted(CORNERS)
    assert adjusted_rand_score(CORNER, model.labels_) == 1
    assert_array_equal(model.predict(CORNERS), model.labels_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("samples", "n_clusters", "found"),
    [(np.ones((60, 3)), 3, 1), (CORNERS, 5, 3), (sp.csr_array((60, 3)), 3, 1)],
)
def test_fewer_different_samples_than_clusters_are_warned_of(
    samples, n_clusters, found, few_landmarks
):
    for n_landmarks in (10, 1000):
        few_landmarks(n_landmarks)
        with warns_naming(ConvergenceWarning, "n_clusters", str(found)):
            model = fitted(samples, n_clusters)
        assert len(np.unique(model.labels_)) == found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("hard", [True, False])
def test_pairs_among_samples_of_one_landmark(hard, few_landmarks):
    """Those that are linked there anyway change nothing."""
    few_landmarks(3)
    together = {"must_link": [(0, 1), (20, 21)]}
    options = {"n_neighbors": 1, "hard_must_link": hard}
    model = fitted(NEAR, pairs=together, **options)
    assert adjusted_rand_score(CORNER, model.labels_) == 1
    assert model.satisfaction_ == 1
    apart = fitted(NEAR, pairs={"cannot_link": [(0, 1)]}, beta=100.0, **options)
    assert apart.labels_[0] != apart.labels_[1]
    across = fitted(NEAR, pairs={"must_link": [(0, 21)]}, n_neighbors=1)
    assert across.labels_[0] == across.labels_[21]


def test_landmarks_make_base_partitions_of_a_consensus(few_landmarks):
    few_landmarks(30)
    base = SSNMFClusterer(3, affinity="landmarks")
    options = {"n_estimators": 5, "base_n_clusters": 3, "random_state": 0}
    model = NMFConsensus(3, estimator=base, **options).fit(NEAR)
    assert adjusted_rand_score(CORNER, model.labels_) == 1
