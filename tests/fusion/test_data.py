"""SimilarityFusionNMF on features, parts of the objects, missing ones; on data with an answer."""

import os
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler, normalize

import nmfcluster.fusion
from nmfcluster import KernelStack, SimilarityFusionNMF
from nmfcluster.affinity import path_kernel
from nmfcluster.datasets import make_nested_rings
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

VIEWS = [("one", "rbf", slice(0, 3)), ("two", "rbf", slice(3, 6))]
NAMES = list("abcdef")


def features(n=60, seed=0):
    """Draw two views of three clusters: each tells one of them from the other two."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.arange(n) % 3)
    centres = np.zeros((3, 6))
    centres[0, :3] = centres[1, 3:] = 5
    return centres[y] + rng.normal(size=(n, 6)), y


def model(**parameters):
    known = {"n_clusters": 3, "n_init": 2, "tol": 1e-6, "random_state": 0}
    return SimilarityFusionNMF(**known | parameters)


def assert_same_fit(one, other):
    for name in ("labels_", "membership_", "weights_", "source_losses_", "core_", "loss_curve_"):
        assert_array_equal(getattr(one, name), getattr(other, name))


# --- kernels of features -------------------------------------------------------------------------

KERNELS = {
    "a name": {"affinity": "rbf"},
    "gamma": {"affinity": "rbf", "gamma": 0.2},
    "neighbours": {"affinity": "nearest_neighbors", "n_neighbors": 7},
    "neighbours, raw": {"affinity": "nearest_neighbors", "normalize": False},
    "normalised": {"affinity": ["rbf", "nearest_neighbors"], "normalize": True},
    "a list": {"affinity": ["rbf", "nearest_neighbors", laplacian_kernel]},
    "triples": {"affinity": VIEWS},
    "a callable": {"affinity": RBF(3.0)},
    "paths": {"affinity": [path_kernel, partial(path_kernel, scale=2.0), "rbf"]},
    "named columns": {"affinity": [("v", "rbf", ["a", "b"]), ("w", RBF(2.0), "f"), "rbf"]},
}


@pytest.mark.parametrize("kernels", KERNELS)
def test_features_are_their_kernels_as_a_stack(kernels):
    X, _ = features()
    X = pd.DataFrame(X, columns=NAMES) if kernels == "named columns" else X
    options = {"normalize": "auto"} | KERNELS[kernels]
    fitted = model(**options).fit(X)
    maker = KernelStack(options.pop("affinity"), **options)
    stack = maker.fit_transform(X)
    expected = model().fit(stack)
    assert_same_fit(fitted, expected)
    assert fitted.source_names_ == maker.names_
    assert fitted.n_features_in_ == 6
    new = features(9, seed=1)[0]
    new = pd.DataFrame(new, columns=NAMES) if kernels == "named columns" else new
    assert_array_equal(fitted.transform(new), expected.transform(maker.transform(new)))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("max_samples", [None, 40])
def test_views_can_be_columns_of_a_data_frame(library, max_samples, require_names):
    X, _ = features()
    named = [("one", "rbf", NAMES[:3]), ("two", "rbf", NAMES[3:])]
    frame = library(dict(zip(NAMES, X.T, strict=True)))
    require_names(frame)
    fitted = model(affinity=named, max_samples=max_samples).fit(frame)
    expected = model(affinity=VIEWS, max_samples=max_samples).fit(X)
    assert_same_fit(fitted, expected)
    assert_array_equal(fitted.feature_names_in_, NAMES)
    assert_array_equal(fitted.transform(frame), expected.transform(X))


def test_sparse_features():
    X, _ = features()
    X[X < 1] = 0
    options = {"affinity": ["cosine", ("v", "nearest_neighbors", [0, 1, 2, 3])], "max_samples": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rows of zeros are similar to none
        fitted = model(**options).fit(sp.csr_matrix(X))
        expected = model(**options).fit(X)
    assert_array_equal(fitted.labels_, expected.labels_)
    assert_allclose(fitted.membership_, expected.membership_, atol=1e-6)
    assert_allclose(fitted.transform(sp.coo_array(X[:5])), expected.transform(X[:5]), atol=1e-6)


def test_float32_features():
    X, _ = features()
    fitted = model(affinity=VIEWS).fit(X.astype(np.float32))
    assert fitted.membership_.dtype == fitted.transform(X[:2].astype(np.float32)).dtype == "f4"
    assert_array_equal(fitted.labels_, model(affinity=VIEWS).fit(X).labels_)


def test_a_pipeline_is_split_as_by_hand():
    X, _ = features()
    pipeline = Pipeline([("kernels", KernelStack(VIEWS)), ("fusion", model())])
    cv = KFold(3, shuffle=True, random_state=0)
    predicted = cross_val_predict(pipeline, X, cv=cv)
    for train, test in cv.split(X):
        own = [rbf_kernel(X[train, s], gamma=width(X[train, s])) for s in (VIEW_1, VIEW_2)]
        new = [rbf_kernel(X[test, s], X[train, s], width(X[train, s])) for s in (VIEW_1, VIEW_2)]
        expected = model().fit(None, similarities=own).predict(new)
        assert_array_equal(predicted[test], expected)
        assert_array_equal(model(affinity=VIEWS).fit(X[train]).predict(X[test]), expected)


VIEW_1, VIEW_2 = slice(0, 3), slice(3, 6)


def width(X):
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return 1 / np.median(squares[np.triu_indices(len(X), 1)])


@pytest.mark.parametrize("form", ["stack", "array", "features"])
def test_eta_by_stability(form):
    """One view is not enough, and all three are too many: stability sees both."""
    X, y = features(45)
    noisy = np.hstack([X, np.random.RandomState(1).normal(size=(45, 2))])
    kernels = [*VIEWS, ("noise", partial(rbf_kernel, gamma=3), slice(6, 8))]
    stack = KernelStack(kernels).fit_transform(noisy)
    given = {"stack": stack, "array": np.asarray(stack), "features": noisy}[form]
    search = GridSearchCV(
        model(affinity=kernels if form == "features" else "precomputed", n_init=1),
        {"eta": [0.1, 0.5, np.inf]},
        scoring=StabilityScorer(4, subsample_size=0.7, error_score="raise", random_state=0),
        cv=FullSampleSplit(),
        error_score="raise",
    ).fit(given)
    assert search.best_params_ == {"eta": 0.5}
    assert adjusted_rand_score(y, search.best_estimator_.labels_) > 0.9
    if form != "array":
        parallel = clone(search).set_params(n_jobs=2).fit(given)
        for name in ("mean_test_score", "rank_test_score"):
            assert_array_equal(parallel.cv_results_[name], search.cv_results_[name])
        assert_same_fit(parallel.best_estimator_, search.best_estimator_)


# --- parts of the objects ------------------------------------------------------------------------


@pytest.mark.parametrize(("max_samples", "size"), [(40, 40), (0.5, 30), (1.0, 60), (60, 60)])
@pytest.mark.parametrize("affinity", ["precomputed", VIEWS])
def test_a_part_of_the_objects_tells_the_others(max_samples, size, affinity):
    X, y = features()
    given = KernelStack(VIEWS).fit_transform(X) if affinity == "precomputed" else X
    full, part = model(affinity=affinity).fit(given), None
    part = model(affinity=affinity, max_samples=max_samples).fit(given)
    chosen = part.sample_indices_
    assert_array_equal(np.unique(chosen), chosen)
    assert len(chosen) == size
    assert chosen[-1] < 60
    assert part.labels_.shape == (60,)
    assert part.membership_.shape == (60, 3)
    assert adjusted_rand_score(full.labels_, part.labels_) > 0.85
    assert adjusted_rand_score(y, part.labels_) > 0.85
    others = np.setdiff1d(np.arange(60), chosen)
    if size < 60:
        assert_allclose(part.membership_[others], part.transform(given)[others], rtol=1e-12)
        assert_array_equal(part.labels_[others], part.predict(given)[others])
        seeds = [model(max_samples=max_samples, random_state=s, affinity=affinity) for s in (1, 2)]
        assert len({tuple(other.fit(given).sample_indices_) for other in seeds}) == 2
    else:
        assert_same_fit(part, full)


def test_the_part_is_fitted_as_if_it_were_alone():
    X, _ = features()
    stack = KernelStack(VIEWS).fit_transform(X)
    part = model(max_samples=40, n_init=1).fit(stack)
    chosen = part.sample_indices_
    alone = model(n_init=1).fit(stack[np.ix_(chosen, chosen)])
    assert_allclose(part.weights_, alone.weights_)
    assert_allclose(part.loss_curve_, alone.loss_curve_)
    assert adjusted_rand_score(part.labels_[chosen], alone.labels_) == 1


def test_only_similarities_to_the_part_are_looked_at():
    X, _ = features()
    whole = np.asarray(KernelStack(VIEWS).fit_transform(X))
    expected = model(max_samples=25).fit(whole)
    others = np.setdiff1d(np.arange(60), expected.sample_indices_)
    spoilt = whole.copy()
    spoilt[np.ix_(others, others)] = np.random.RandomState(0).uniform(100, size=(35, 35, 2))
    spoilt[np.ix_(expected.sample_indices_, others)] = 77  # nor the other half of the block
    assert_same_fit(model(max_samples=25).fit(spoilt), expected)


def test_kernels_of_all_pairs_are_never_made(monkeypatch):
    monkeypatch.setattr(nmfcluster.fusion, "_ROWS", 16)
    X, _ = features(100)
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return rbf_kernel(A, B, gamma=0.1)

    fitted = model(affinity=kernel, max_samples=20).fit(X)
    assert asked == [(20, 20)] + [(16, 20)] * 5
    fitted.predict(X[:40])
    assert asked[6:] == [(16, 20)] * 2 + [(8, 20)]
    monkeypatch.setattr(nmfcluster.fusion, "_ROWS", 1000)
    assert_allclose(model(affinity=kernel, max_samples=20).fit(X).membership_, fitted.membership_)


# --- objects that sources have not seen ----------------------------------------------------------


def without(S, lost, storage=np.asarray):
    """Return a similarity with NaN for the objects that were lost."""
    S = S.copy()
    S[lost] = S[:, lost] = np.nan
    return storage(S)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("criterion", ["kl", "cross_entropy"])
def test_other_sources_tell_what_one_has_not_seen(storage, criterion):
    X, y = features()
    views = [np.hstack([X[:, VIEW_1], X[:, VIEW_2]]), X + 0.3 * X[:, ::-1]]
    sources = [rbf_kernel(view, gamma=0.05) for view in views]
    lost = [np.arange(0, 20), np.arange(40, 60)]
    given = [without(S, gone, storage) for S, gone in zip(sources, lost, strict=True)]
    fitted = model(criterion=criterion).fit(given)
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert np.isfinite(fitted.membership_).all()
    assert adjusted_rand_score(y, fitted.predict(given)) > 0.9
    assert (np.diff(fitted.loss_curve_) <= 0).all()


@pytest.mark.parametrize("criterion", ["kl", "cross_entropy"])
def test_losses_are_those_of_the_pairs_that_were_seen(criterion, monkeypatch):
    kept = []

    def spy(*given, inner=nmfcluster.fusion.fuse):
        kept.append(inner(*given))
        return kept[-1]

    monkeypatch.setattr(nmfcluster.fusion, "fuse", spy)
    X, _ = features()
    sources = [rbf_kernel(X[:, VIEW_1], gamma=0.1), rbf_kernel(X[:, VIEW_2], gamma=0.1)]
    lost = [[3, 8, 30], []]
    given = [without(S, gone) for S, gone in zip(sources, lost, strict=True)]
    fitted = model(criterion=criterion).fit(given)
    (V,) = kept[0].best.factors[0]
    M = V / V.sum(axis=0) @ V.T
    for S, gone, loss in zip(sources, lost, fitted.source_losses_, strict=True):
        seen = np.setdiff1d(np.arange(60), gone)
        P, model_of_seen = S[np.ix_(seen, seen)], M[np.ix_(seen, seen)]
        P, model_of_seen = P / P.sum(), model_of_seen / model_of_seen.sum()
        expected = -(P * np.log(model_of_seen)).sum()
        if criterion == "kl":
            expected += (P * np.log(P)).sum()
        else:  # what it did not see counts as evenly spread
            expected += 2 * np.log(60 / len(seen))
        assert_allclose(loss, expected, rtol=1e-9)


def test_samples_without_features_in_a_view():
    X, y = features()
    X[:6, VIEW_1] = np.nan
    stack = KernelStack(VIEWS).fit_transform(X)
    fitted = model(affinity=VIEWS).fit(X)
    assert_same_fit(fitted, model().fit(stack))
    seen = np.arange(6, 60)
    assert adjusted_rand_score(y[seen], fitted.labels_[seen]) > 0.9
    assert set(fitted.labels_[:6]) <= {0, 1, 2}
    new = features(4, seed=3)[0]
    new[0, VIEW_2], new[1] = np.nan, np.nan
    labels = fitted.predict(new)
    assert labels[1] == -1
    assert (np.delete(labels, 1) >= 0).all()


@pytest.mark.parametrize("max_samples", [None, 40])
def test_objects_that_no_source_has_seen(max_samples):
    X, _ = features()
    S = without(rbf_kernel(X, gamma=0.05), [2, 50])
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 2 objects"):
        fitted = model(max_samples=max_samples).fit([S, S.copy()])
    assert_array_equal(np.flatnonzero(fitted.labels_ == -1), [2, 50])
    assert_allclose(fitted.membership_[[2, 50]], np.full((2, 3), 1 / 3))


# --- the right answer ----------------------------------------------------------------------------

SIGMAS = (1e-4, 1e-3, 1e-2, 1, 10)
RINGS = [*(partial(rbf_kernel, gamma=1 / (2 * s**2)) for s in SIGMAS), path_kernel]


@pytest.mark.filterwarnings("ignore:SimilarityFusionNMF found 1 clusters")
@pytest.mark.parametrize("seed", range(3))
def test_nested_rings(seed):
    """Lange and Buhmann, Figure 1: only the path kernel tells the rings, and not at any eta."""
    X, y = make_nested_rings(random_state=seed)
    fitted = model(n_clusters=2, eta=0.3, affinity=RINGS).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) == 1
    assert adjusted_rand_score(y, fitted.predict(X)) == 1
    assert fitted.weights_[5] > 0.4
    assert fitted.weights_[:4].sum() < 0.05  # the flattest kernel fits any model, and shares
    uniform = model(n_clusters=2, eta=np.inf, affinity=RINGS).fit(X)
    assert adjusted_rand_score(y, uniform.labels_) < 0.3
    gaussian = model(n_clusters=2, eta=0.3, affinity=RINGS[:5]).fit(X)
    assert adjusted_rand_score(y, gaussian.labels_) < 0.3


@pytest.mark.parametrize("kernel", ["rbf", "nearest_neighbors"])
@pytest.mark.parametrize("seed", range(2))
def test_one_informative_source_among_noise(kernel, seed):
    """Kernels of comparable widths: it is explained best, if one start in five finds it."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.arange(90) % 3)
    X = np.hstack([4 * np.eye(3)[y] + rng.normal(size=(90, 3)), rng.normal(size=(90, 6))])
    views = [(f"view {v}", kernel, slice(3 * v, 3 * v + 3)) for v in range(3)]
    fitted = model(affinity=views, eta=0.1, n_init=5).fit(X)
    assert fitted.weights_[0] > 0.9
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert fitted.source_losses_[0] < fitted.source_losses_[1:].min()


@pytest.mark.filterwarnings("ignore:SimilarityFusionNMF found 2 clusters")
def test_what_the_criteria_make_of_a_flat_source():
    """A model of nothing explains it at no cost in "kl"; in cross-entropy it costs the most."""
    X, y = features()
    telling, flat = rbf_kernel(X, gamma=0.03), rbf_kernel(X, gamma=1e-5)
    kl, paper = (
        model(eta=0.01, criterion=criterion).fit([telling, flat])
        for criterion in ("kl", "cross_entropy")
    )
    assert kl.weights_[1] > 0.5
    assert kl.source_losses_[1] < 1e-4
    assert paper.weights_[0] > 0.99
    assert adjusted_rand_score(y, paper.labels_) == 1


@pytest.mark.parametrize(
    ("load", "n", "views", "floor"),
    [
        (load_digits, 400, (slice(0, 32), slice(32, 64)), 0.5),
        (load_wine, 178, (slice(0, 7), slice(7, 13)), 0.8),
    ],
)
def test_classes_from_two_views(load, n, views, floor):
    X, y = load(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:n]), y[:n]
    affinity = [(name, "nearest_neighbors", view) for name, view in zip("ab", views, strict=True)]
    fitted = model(n_clusters=len(set(y)), affinity=affinity).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) > floor
    alone = [clone(fitted).set_params(affinity=[view]).fit(X).labels_ for view in affinity]
    assert adjusted_rand_score(y, fitted.labels_) > np.mean(
        [adjusted_rand_score(y, labels) for labels in alone]
    )


def test_sports_news_from_two_segments():
    """0.94 was measured, 0.90 if predicted; the segments alone have 0.91 and 0.76."""
    folder = os.environ.get("NMFCLUSTER_DATA")
    if not folder:
        pytest.skip("NMFCLUSTER_DATA does not name a folder with the data sets")
    with np.load(Path(folder) / "bbcsport.npz", allow_pickle=False) as data:
        segments, y = [normalize(sp.csr_array(data[name])) for name in ("V0", "V1")], data["y"]
    widths = [segment.shape[1] for segment in segments]
    affinity = [
        ("first", "nearest_neighbors", slice(0, widths[0])),
        ("second", "nearest_neighbors", slice(widths[0], sum(widths))),
    ]
    X = sp.hstack(segments, format="csr")
    fitted = model(n_clusters=5, affinity=affinity).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert adjusted_rand_score(y, fitted.predict(X)) > 0.85
