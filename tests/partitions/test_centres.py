"""The nearest centres of many runs of k-means: what each would predict."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import Birch, BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs

from nmfcluster.partitions import base_partitions, centres
from nmfcluster.partitions.centres import Centres

X = make_blobs(300, n_features=6, centers=5, cluster_std=4.0, random_state=0)[0]
NEW = make_blobs(200, n_features=6, centers=7, cluster_std=6.0, random_state=1)[0]


def fitted(dtype=np.float64, features=(None, None, None)):
    made = [KMeans(4, n_init=1, random_state=0), MiniBatchKMeans(3, n_init=1, random_state=1)]
    made.append(KMeans(1, n_init=1, random_state=2))
    return [
        estimator.fit(X.astype(dtype) if chosen is None else X[:, chosen].astype(dtype))
        for estimator, chosen in zip(made, features, strict=True)
    ]


@pytest.mark.parametrize(
    ("dtype", "features"),
    [
        (np.float32, (None, None, None)),
        (np.float64, (np.array([0, 2]), np.array([1, 3, 4]), np.array([2]))),  # not the last one
        (np.float64, (np.array([5]), None, np.array([0, 1]))),
    ],
    ids=["all", "some", "both"],
)
def test_the_nearest_centres_are_what_each_run_predicts(dtype, features, monkeypatch):
    estimators = fitted(dtype, features)
    found = Centres.of(estimators, list(features))
    new = NEW.astype(dtype)
    labels = found.nearest(new)
    assert labels.dtype == np.int64
    for t, (estimator, chosen) in enumerate(zip(estimators, features, strict=True)):
        own = new if chosen is None else new[:, chosen]
        assert_array_equal(labels[:, t], estimator.predict(np.ascontiguousarray(own)))
    monkeypatch.setattr(centres, "_PRODUCTS", 8 * 9)  # nine rows at a time
    assert_array_equal(found.nearest(new), labels)
    monkeypatch.setattr(centres, "_PRODUCTS", 1)
    assert_array_equal(found.nearest(new[:5]), labels[:5])
    assert found.nearest(new[:0]).shape == (0, 3)


class OwnKMeans(KMeans):
    """May predict in another way."""


def test_other_clusterers_have_no_centres_to_compare_with():
    for other in (Birch(n_clusters=3), BisectingKMeans(3), OwnKMeans(3)):
        assert Centres.of([*fitted(), other.fit(X)], [None] * 4) is None


def test_new_samples_are_checked_before_they_are_compared():
    made = base_partitions(X, n_estimators=3, max_features=0.5, random_state=0)
    for width in (5, 7):
        with pytest.raises(ValueError, match=f"X must have 6 columns, got {width}"):
            made.predict(np.zeros((2, width)))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        made.predict(np.full((2, 6), np.nan))


def test_features_far_from_zero_are_no_trouble():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2)) + 8 * rng.integers(4, size=(500, 1))
    runs = [KMeans(4, n_init=1, random_state=seed).fit(X) for seed in range(3)]
    expected = np.stack([run.labels_ for run in runs], axis=1)
    far = (X + 2e4).astype(np.float32)
    moved = [KMeans(4, n_init=1, random_state=seed).fit(far) for seed in range(3)]
    for run, old in zip(moved, runs, strict=True):  # the same centres, but for the move
        run.cluster_centers_ = (old.cluster_centers_ + 2e4).astype(np.float32)
    found = Centres.of(moved, [None] * 3).nearest(far)
    assert (found == expected).mean() > 0.99
