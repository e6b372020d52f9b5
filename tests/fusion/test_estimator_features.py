"""SimilarityFusionNMF on features; on data with an answer."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from fusion.shared import VIEWS, assert_same_fit, default_model, features
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler, normalize

from nmfcluster import KernelStack, SimilarityFusionNMF
from nmfcluster.affinity import path_kernel
from nmfcluster.datasets import make_nested_rings

NAMES = list("abcdef")


KERNELS = {
    "neighbours, raw": {"affinity": "nearest_neighbors", "normalize": False},
    "normalised": {"affinity": ["rbf", "nearest_neighbors"], "normalize": True},
    "a list": {"affinity": ["rbf", "nearest_neighbors", laplacian_kernel]},
    "triples": {"affinity": VIEWS},
    "paths": {"affinity": [path_kernel, partial(path_kernel, scale=2.0), "rbf"]},
    "named columns": {
        "affinity": [("v", "rbf", ["a", "b"]), ("w", RBF(2.0), "f"), "rbf"]
    },
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.usefixtures("as_given")
def test_features_are_their_kernels_as_a_stack(kernels):
    X, _ = features()
    X = pd.DataFrame(X, columns=NAMES) if kernels == "named columns" else X
    options = {"normalize": "auto"} | KERNELS[kernels]
    fitted = default_model(**options).fit(X)
    maker = KernelStack(options.pop("affinity"), **options)
    stack = maker.fit_transform(X)
    expected = default_model().fit(stack)
    assert_same_fit(fitted, expected)
    assert fitted.source_names_ == maker.names_
    assert fitted.n_features_in_ == 6
    new = features(9, seed=1)[0]
    new = pd.DataFrame(new, columns=NAMES) if kernels == "named columns" else new
    assert_array_equal(fitted.transform(new), expected.transform(maker.transform(new)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("library", "max_samples"), [(pd.DataFrame, 40), (pl.DataFrame, None)]
)
def test_views_can_be_columns_of_a_data_frame(library, max_samples, require_names):
    X, _ = features()
    named = [("one", "rbf", NAMES[:3]), ("two", "rbf", NAMES[3:])]
    frame = library(dict(zip(NAMES, X.T, strict=True)))
    require_names(frame)
    fitted = default_model(affinity=named, max_samples=max_samples).fit(frame)
    expected = default_model(affinity=VIEWS, max_samples=max_samples).fit(X)
    assert_same_fit(fitted, expected)
    assert_array_equal(fitted.feature_names_in_, NAMES)
    assert_array_equal(fitted.transform(frame), expected.transform(X))


def test_sparse_features():
    X, _ = features()
    X[X < 1] = 0
    options = {
        "affinity": ["cosine", ("v", "nearest_neighbors", [0, 1, 2, 3])],
        "max_samples": 50,
    }
    with warnings.catch_warnings():
        # rows of zeros are similar to none
        warnings.simplefilter("ignore", UserWarning)
        fitted = default_model(**options).fit(sp.csr_matrix(X))
        expected = default_model(**options).fit(X)
    assert_array_equal(fitted.labels_, expected.labels_)
    assert_allclose(fitted.membership_, expected.membership_, atol=1e-6)
    assert_allclose(
        fitted.transform(sp.coo_array(X[:5])), expected.transform(X[:5]), atol=1e-6
    )


def test_float32_features():
    X, _ = features()
    fitted = default_model(affinity=VIEWS).fit(X.astype(np.float32))
    assert (
        fitted.membership_.dtype
        == fitted.transform(X[:2].astype(np.float32)).dtype
        == "f4"
    )
    assert_array_equal(fitted.labels_, default_model(affinity=VIEWS).fit(X).labels_)


# --- the right answer ----------------------------------------------------------------------------


SIGMAS = (1e-4, 1e-3, 1e-2, 1, 10)


RINGS = [*(partial(rbf_kernel, gamma=1 / (2 * s**2)) for s in SIGMAS), path_kernel]


@pytest.mark.filterwarnings("ignore:SimilarityFusionNMF found 1 cluster")
def test_nested_rings_as_in_the_paper():
    """Lange and Buhmann, Figure 1: sources as they are tell the rings only at some eta."""
    X, y = make_nested_rings(random_state=0)
    scores = {}
    for eta in (0.3, np.inf):
        fitted = SimilarityFusionNMF(2, criterion="kl", eta=eta, affinity=RINGS).fit(X)
        scores[eta] = adjusted_rand_score(y, fitted.labels_)
    assert scores[0.3] == 1
    assert scores[np.inf] < 0.3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("eta", [0, 3.0])
def test_nested_rings_at_any_eta(eta):
    X, y = make_nested_rings(random_state=1)
    fitted = default_model(n_clusters=2, eta=eta, affinity=RINGS).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) == 1
    assert adjusted_rand_score(y, fitted.predict(X)) == 1
    assert fitted.weights_.argmax() == 5
    assert_array_equal(fitted.weights_[:2], 0)  # too narrow to say anything


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", ["cosine", "linear"])
def test_kernels_can_be_negative(kernel):
    """What is negative counts as 0; the printed criteria refuse it, and say so."""
    X, y = features()
    X, views = (
        X - X.mean(axis=0),
        [(name, kernel, columns) for name, _, columns in VIEWS],
    )
    fitted = default_model(affinity=views).fit(X)
    assert_array_equal(fitted.weights_, [0.5, 0.5])
    assert adjusted_rand_score(y, fitted.labels_) > 0.8
    assert adjusted_rand_score(y, fitted.predict(X)) > 0.8
    correlations = [np.corrcoef(np.hstack([X, 0.1 * X**2])), np.corrcoef(X[:, ::-1])]
    for S in correlations:
        assert S.min() < -0.4
    fitted = default_model(weights=[1, 1]).fit(correlations)
    assert adjusted_rand_score(y, fitted.labels_) > 0.8
    positive = default_model(weights=[1, 1]).fit(
        [np.maximum(S, 0) for S in correlations]
    )
    assert_allclose(fitted.membership_, positive.membership_, atol=1e-4)
    with raises_naming(ValueError, "criterion='agreement'", "numpy.maximum(S, 0)"):
        default_model(criterion="kl").fit(correlations)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("load", "n", "views", "floor"),
    [
        (load_digits, 200, (slice(0, 32), slice(32, 64)), 0.5),
        (load_wine, 178, (slice(0, 7), slice(7, 13)), 0.8),
    ],
)
def test_classes_from_two_views(load, n, views, floor):
    X, y = load(return_X_y=True)
    X, y = StandardScaler().fit_transform(X[:n]), y[:n]
    affinity = [
        (name, "nearest_neighbors", view)
        for name, view in zip("ab", views, strict=True)
    ]
    fitted = default_model(n_clusters=len(set(y)), affinity=affinity).fit(X)
    assert adjusted_rand_score(y, fitted.labels_) > floor
    alone = [
        clone(fitted).set_params(affinity=[view]).fit(X).labels_ for view in affinity
    ]
    assert adjusted_rand_score(y, fitted.labels_) > np.mean(
        [adjusted_rand_score(y, labels) for labels in alone]
    )


def test_sports_news_from_two_segments(data_folder):
    """0.96 was measured, 0.93 if predicted; the segments alone have 0.91 and 0.76."""
    with np.load(data_folder / "bbcsport.npz", allow_pickle=False) as data:
        segments, y = (
            [normalize(sp.csr_array(data[name])) for name in ("V0", "V1")],
            data["y"],
        )
    widths = [segment.shape[1] for segment in segments]
    affinity = [
        ("first", "nearest_neighbors", slice(0, widths[0])),
        ("second", "nearest_neighbors", slice(widths[0], sum(widths))),
    ]
    X = sp.hstack(segments, format="csr")
    fitted = default_model(n_clusters=5, affinity=affinity, n_init="auto").fit(X)
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert adjusted_rand_score(y, fitted.predict(X)) > 0.85
