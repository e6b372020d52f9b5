"""SimilarityFusionNMF of views: the same as of their kernels, aligned, split, and predicted."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fusion.shared import VIEW_1, VIEW_2, assert_same_fit
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, cross_val_predict

from nmfcluster import KernelStack, SimilarityFusionNMF
from nmfcluster.model_selection import StabilityScorer
from nmfcluster.stack import ViewStack

RNG = np.random.RandomState(0)
Y = RNG.permutation(np.arange(60) % 3)
X = np.hstack([6 * np.eye(3)[Y], 6 * np.eye(3)[Y]]) + RNG.normal(size=(60, 6))
TABLES = {"one": X[:, VIEW_1], "two": X[:, VIEW_2]}
NAMES = [f"s{i}" for i in range(len(X))]


def frames():
    return {name: pd.DataFrame(table, index=NAMES) for name, table in TABLES.items()}


@pytest.mark.parametrize(
    ("affinity", "few", "kernel"),
    [
        ("nearest_neighbors", 3_000, "nearest_neighbors"),
        ("precomputed", 3_000, "rbf"),
        ("precomputed", 10, "nearest_neighbors"),
    ],
)
@pytest.mark.usefixtures("as_given")
def test_views_are_their_kernels(affinity, few, kernel, monkeypatch):
    monkeypatch.setattr("nmfcluster.stack.readers._MAX_DENSE", few)
    kernels = KernelStack(
        [("one", kernel, VIEW_1), ("two", kernel, VIEW_2)], normalize="auto"
    )
    expected = SimilarityFusionNMF(3).fit(kernels.fit_transform(X))
    fitted = SimilarityFusionNMF(3, affinity=affinity).fit(TABLES)
    assert_same_fit(fitted, expected)
    assert fitted.source_names_ == ("one", "two")
    assert fitted.n_features_in_ == 6
    assert_array_equal(fitted.predict(TABLES), expected.predict(kernels.transform(X)))


def test_ways_to_give_views():
    expected = SimilarityFusionNMF(3).fit(TABLES)
    for given in (
        ViewStack(TABLES),
        {name: sp.csr_matrix(V) for name, V in TABLES.items()},
    ):
        assert_allclose(
            SimilarityFusionNMF(3).fit(given).weights_, expected.weights_, rtol=1e-5
        )
    for views in (TABLES, ViewStack(TABLES), list(TABLES.values())):
        assert_same_fit(SimilarityFusionNMF(3).fit(views=views), expected)


@pytest.mark.usefixtures("as_given")
def test_a_kernel_a_view():
    kernels = KernelStack(
        [("one", "rbf", VIEW_1), ("two", "nearest_neighbors", VIEW_2)]
    )
    own = SimilarityFusionNMF(3, affinity=["rbf", "nearest_neighbors"], normalize=False)
    assert_same_fit(
        own.fit(TABLES), SimilarityFusionNMF(3).fit(kernels.fit_transform(X))
    )


def test_frames_are_matched_by_their_index():
    rng = np.random.RandomState(0)
    order = rng.permutation(len(X))
    expected = SimilarityFusionNMF(3).fit(frames())
    given = frames()
    given["two"] = given["two"].iloc[order]
    fitted = SimilarityFusionNMF(3).fit(given)
    assert_same_fit(fitted, expected)
    assert_array_equal(fitted.sample_names_, NAMES)


def test_samples_that_views_lack():
    given = frames()
    given["one"], given["two"] = given["one"].iloc[:52], given["two"].iloc[8:]
    fitted = SimilarityFusionNMF(3).fit(given)
    assert_array_equal(fitted.sample_names_, NAMES)
    assert adjusted_rand_score(Y[8:52], fitted.labels_[8:52]) > 0.9
    holes = {name: V.reindex(NAMES).to_numpy() for name, V in given.items()}
    assert_same_fit(SimilarityFusionNMF(3).fit(holes), fitted)
    predicted = fitted.predict({"one": np.full((60, 3), np.nan), "two": TABLES["two"]})
    assert (predicted >= 0).all()


def test_predict():
    fitted = SimilarityFusionNMF(3).fit({name: V[:40] for name, V in TABLES.items()})
    new = {name: V[40:] for name, V in TABLES.items()}
    labels = fitted.predict(new)
    assert adjusted_rand_score(Y[40:], labels) > 0.9
    for given in (ViewStack(new), list(new.values()), dict(reversed(new.items()))):
        assert_array_equal(fitted.predict(given), labels)
    assert_array_equal(fitted.transform(new).argmax(axis=1), labels)


def test_fit_transform():
    fitted = SimilarityFusionNMF(3)
    expected = fitted.fit(TABLES).transform(TABLES)
    assert_array_equal(fitted.fit_transform(TABLES), expected)
    assert_array_equal(fitted.fit_transform(None, views=TABLES), expected)


def test_cross_validation():
    views, model = ViewStack(TABLES), SimilarityFusionNMF(3)
    options = {"scoring": "adjusted_rand_score", "error_score": "raise", "cv": 2}
    search = GridSearchCV(model, {"eta": [0.3, 1]}, **options)
    assert search.fit(views, Y).best_score_ > 0.9
    named = model.set_params(affinity="nearest_neighbors")
    assert len(cross_val_predict(named, views, cv=2)) == 60
    assert StabilityScorer(3, subsample_size=0.5)(model, views) > 0.4


def test_part_of_the_objects():
    fitted = SimilarityFusionNMF(3, max_samples=40, random_state=0).fit(TABLES)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
    assert len(fitted.sample_indices_) == 40
