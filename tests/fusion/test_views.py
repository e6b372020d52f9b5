"""SimilarityFusionNMF of views: the same as of their kernels, aligned, split, and predicted."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fusion.shared import VIEW_1, VIEW_2, assert_same_fit
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
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


@pytest.mark.sampled(2)
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


# --- what people bring ---------------------------------------------------------------------------


def test_a_list_of_frames_holds_views_as_a_dict_does():
    given = [frames()["one"].iloc[:52], frames()["two"].iloc[8:]]
    expected = SimilarityFusionNMF(3).fit(dict(zip(TABLES, given, strict=True)))
    fitted = SimilarityFusionNMF(3).fit(given)
    assert_same_fit(fitted, expected)
    assert_array_equal(fitted.sample_names_, NAMES)
    new = [frame.iloc[:5] for frame in frames().values()]
    assert_array_equal(fitted.predict(new), expected.predict(new))


@pytest.mark.parametrize("square", [False, True])
def test_an_array_beside_a_frame_with_names_is_warned_of(square):
    one, two = frames().values()
    if square:
        one, two = (
            pd.DataFrame(rbf_kernel(V), index=NAMES, columns=NAMES) for V in (one, two)
        )
    fit = SimilarityFusionNMF(3).fit
    with warns_naming(UserWarning, "position", "index"):
        fit(**{"similarities" if square else "views": [one, two.to_numpy()]})


def test_positions_in_another_order_are_matched_as_names_are():
    order = np.random.RandomState(0).permutation(len(X))
    one, two = (pd.DataFrame(table) for table in TABLES.values())
    expected = SimilarityFusionNMF(3).fit([one.iloc[order], two.iloc[order]])
    with warns_naming(UserWarning, "'view1'", "order", "index"):
        fitted = SimilarityFusionNMF(3).fit([one.iloc[order], two])
    assert_same_fit(fitted, expected)
    assert_array_equal(fitted.sample_names_, order)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["precomputed", "nearest_neighbors"])
def test_cells_that_are_missing(affinity):
    rng = np.random.RandomState(0)
    given = {
        name: np.where(rng.uniform(size=V.shape) < 0.1, np.nan, V)
        for name, V in TABLES.items()
    }
    model = SimilarityFusionNMF(3, affinity=affinity)
    assert adjusted_rand_score(Y, model.fit(given).labels_) > 0.9
    for fitted in (model, clone(model).fit(TABLES)):  # with cells, and without them
        labels = fitted.predict(given)
        assert adjusted_rand_score(Y, labels) > 0.9
        alone = [
            fitted.predict({k: V[i : i + 1] for k, V in given.items()}) for i in (0, 9)
        ]
        assert_array_equal(np.ravel(alone), labels[[0, 9]])


def test_a_column_on_another_scale_is_named():
    table = frames()["one"].set_axis([*"abc"], axis=1)
    views = {"one": table.assign(c=3_000 * table["c"]), "two": TABLES["two"]}
    with warns_naming(UserWarning, "'one'", "'c'", "StandardScaler"):
        SimilarityFusionNMF(3).fit({"one": views["one"], "two": frames()["two"]})
    with warns_naming(UserWarning, "'two'", "column 1", "StandardScaler"):
        SimilarityFusionNMF(3).fit(
            {"one": TABLES["one"], "two": TABLES["two"] * [1, 0.001, 1] * [1, 10**6, 1]}
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scales in ([1, 20, 1], [3_000] * 3, [0, 1, 1]):
            SimilarityFusionNMF(3).fit(
                {"one": TABLES["one"] * scales, "two": TABLES["two"]}
            )


def test_negative_links_are_warned_of_and_the_cure_uses_them():
    rng = np.random.RandomState(0)
    y = np.arange(120) % 3
    same = y[:, None] == y
    likes = rng.uniform(size=same.shape) < 0.1
    dislikes = rng.uniform(size=same.shape) < np.where(same, 0.02, 0.3)
    S = np.triu(likes * 1.0 - (dislikes & ~likes), 1)
    S = S + S.T
    for storage in (np.asarray, sp.csr_array):
        with warns_naming(UserWarning, "'source0'", "negative", "N @ N.T"):
            SimilarityFusionNMF(3).fit(storage(S))
    N = np.minimum(S, 0)
    fitted = SimilarityFusionNMF(3, weights=[0, 1]).fit([np.maximum(S, 0), N @ N.T])
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    with warnings.catch_warnings():  # correlations are no network
        warnings.simplefilter("error")
        SimilarityFusionNMF(3).fit(np.corrcoef(X))


@pytest.mark.parametrize("noise", [False, True])
def test_similarities_with_a_diagonal_of_0_are_no_distances(noise):
    kernels = [rbf_kernel(V, gamma=0.02) for V in TABLES.values()]
    if noise:
        drawn = np.random.RandomState(0).uniform(size=(60, 60))
        kernels.append(drawn + drawn.T)
    for kernel in kernels:
        np.fill_diagonal(kernel, 0)
    fitted = SimilarityFusionNMF(3).fit(kernels)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
