"""What a fit says of its columns: the strongest, profiles, scores."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from scipy.optimize import nnls
from sklearn.base import clone

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs

X = make_programs(50, 30, 3, depth=300, random_state=0)[0].astype(float)
X[:, 4] = 2  # the same in all samples
NAMES = [f"gene {j}" for j in range(30)]


@pytest.fixture(scope="module", params=["frobenius", "kullback-leibler"])
def model(request):
    return NMFMetaCluster(3, loss=request.param, n_estimators=4, random_state=0).fit(X)


def test_top_features_are_the_largest_entries(model):
    names, weights = model.top_features(5)
    for c, row in enumerate(model.components_):
        assert_array_equal(weights[c], np.sort(row)[::-1][:5])
        assert_array_equal(row[names[c]], weights[c])
    assert model.top_features(99)[0].shape == (3, 30)


def test_top_features_have_the_names_that_are_passed(model):
    positions = model.top_features(5)[0]
    named = model.top_features(5, feature_names=NAMES)[0]
    assert_array_equal(named, np.array(NAMES)[positions])


def test_top_features_have_the_names_of_a_frame():
    model = NMFMetaCluster(3, n_estimators=2, random_state=0).fit(
        pd.DataFrame(X, columns=NAMES)
    )
    names, weights = model.top_features(
        4, model.feature_scores(pd.DataFrame(X, columns=NAMES))
    )
    assert set(names.ravel()) <= set(NAMES)
    assert (np.diff(weights, axis=1) <= 0).all()


def test_profiles_are_the_best_rows_for_memberships(model):
    profiles = model.feature_profiles(X)
    expected = np.array([nnls(model.membership_, column)[0] for column in X.T]).T
    assert_allclose(profiles, expected, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_components_of_other_columns_are_the_best_for_the_usages(model, kind):
    """Each column is a convex problem, whose optimality conditions are checked."""
    rng = np.random.default_rng(0)
    other = rng.poisson(model.factor_ @ rng.gamma(1, 1, (3, 9))).astype(float)
    H = model.components_of(kind(other))
    W = model.factor_
    fitted = W @ H
    slope = W.T @ (fitted - other)
    if model.loss == "kullback-leibler":
        slope = W.T @ (1 - other / np.maximum(fitted, 1e-300))
    slope /= W.sum(axis=0)[:, None] * other.mean()
    assert slope.min() > -1e-6
    assert np.abs(slope[H > 1e-9]).max() < 1e-6
    parts = [model.components_of(kind(other[:, part])) for part in ([0, 1], [5])]
    assert_allclose(np.hstack(parts), H[:, [0, 1, 5]], rtol=1e-9)
    # columns of the fit are nearly its own
    assert_allclose(model.components_of(kind(X)), model.components_, atol=0.01)


def test_components_of_rows_with_names_are_matched_by_these():
    frame = pd.DataFrame(X, index=[f"cell {i}" for i in range(50)], columns=NAMES)
    frame.iloc[:2, :5] = 0  # samples that are in no cluster
    model = NMFMetaCluster(3, loss="kullback-leibler", n_estimators=2, random_state=0)
    model.fit(frame.iloc[:, :5])
    H = model.components_of(frame)
    assert np.isfinite(H).all()
    with warns_naming(UserWarning, "X", "fit"):
        backwards = model.components_of(frame[::-1])
    assert_allclose(backwards, H, rtol=1e-6, atol=1e-12)
    frame.iloc[7, 9] = np.nan
    assert_allclose(model.components_of(frame)[:, :9], H[:, :9], rtol=1e-6, atol=1e-12)


def test_scores_are_the_least_coefficients_of_a_regression(model):
    Z = (model.membership_ - model.membership_.mean(axis=0)) / model.membership_.std(
        axis=0
    )
    varying = np.flatnonzero(X.std(axis=0))
    Y = (X - X.mean(axis=0))[:, varying] / X[:, varying].std(axis=0)
    expected = np.linalg.lstsq(Z, Y, rcond=1e-9)[0]
    scores = model.feature_scores(X)
    assert_allclose(scores[:, varying], expected, atol=1e-6)
    assert_array_equal(scores[:, X.std(axis=0) == 0], 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_tables_in_any_form_say_the_same(model, kind, dtype):
    """Memberships that sum to 1 but for rounding leave no direction to blow up."""
    table = kind(X.astype(dtype))
    assert_allclose(model.feature_scores(table), model.feature_scores(X), atol=1e-5)
    assert_allclose(model.feature_profiles(table), model.feature_profiles(X), rtol=1e-5)
    other = clone(model).fit(table)
    assert np.abs(other.feature_scores(table)).max() < 2  # in standard deviations


def test_tables_of_other_samples_can_be_asked(model):
    assert model.feature_profiles(X[:20]).shape == (3, 30)
    assert np.isfinite(model.feature_scores(X[:20])).all()


def test_groups_of_different_sizes_are_merged():
    rng = np.random.default_rng(0)
    X = rng.poisson(4.0, size=(30, 6)).astype(float)
    model = NMFMetaCluster(4, n_estimators=4, random_state=0).fit(X)
    merged = model.merged([[0], (1, 3)], X)
    assert merged.n_clusters == 3
    assert_allclose(merged.factor_, model.merged([[3, 1]], X).factor_)
    # the second is the sum of what both are in the table
    sums = model.factor_.sum(axis=0)
    both = sums[1] * model.components_[1] + sums[3] * model.components_[3]
    assert_allclose(
        merged.components_[1] / merged.components_[1].sum(), both / both.sum()
    )
