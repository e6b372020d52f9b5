"""Clusters of unequal sizes, outliers in views, and networks."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.shared import default_model
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from sklearn.metrics import adjusted_rand_score

from nmfcluster.fusion.residuals import agrees_with_clusters, compute_residual

SIZES = np.repeat(np.arange(4), (300, 60, 25, 12))
EVEN = np.repeat(np.arange(4), (90, 80, 70, 60))


def clusters(rng, y, n_features, distance):
    """Draw a view of Gaussian clusters."""
    centres = distance * rng.normal(size=(y.max() + 1, n_features))
    return centres[y] + rng.normal(size=(len(y), n_features))


def network(rng, y, inside, outside):
    """Draw links, which are more frequent between objects of a class."""
    links = rng.random((len(y), len(y))) < np.where(y[:, None] == y, inside, outside)
    upper = np.triu(links, 1)
    return (upper | upper.T).astype(float)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [103, 104])
def test_small_clusters_are_found_beside_a_large_one(seed):
    """The divergence alone splits the largest: 0.84 and 0.54."""
    rng = np.random.default_rng(seed)
    views = [clusters(rng, SIZES, 6, 1.6) for _ in range(3)]
    fitted = default_model(n_clusters=4).fit(views=views)
    assert adjusted_rand_score(SIZES, fitted.labels_) > 0.98
    assert_array_equal(fitted.membership_.argmax(axis=1), fitted.labels_)
    again = adjusted_rand_score(fitted.predict(views), fitted.labels_)
    assert again > 0.97
    assert fitted.loss_ == fitted.loss_curve_[-1]
    by_landmarks = default_model(n_clusters=4, symmetric=False, max_samples=200)
    labels = by_landmarks.fit(views=views).labels_
    assert adjusted_rand_score(SIZES, labels) > 0.95


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [103, 104])
def test_outliers_in_views_do_not_hide_the_clusters(seed):
    """One row in twenty is eight times too far out, in each view another one."""
    rng = np.random.default_rng(seed)
    views = [clusters(rng, EVEN, 8, 1.3) for _ in range(3)]
    for view in views:
        view[rng.random(300) < 0.05] *= 8
    fitted = default_model(n_clusters=4).fit(views=views)
    assert adjusted_rand_score(EVEN, fitted.labels_) > 0.95
    assert fitted.counted_.all()


def test_a_network_is_the_same_dense_and_sparse():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    layers = [network(rng, y, 0.12, 0.04) for _ in range(3)]
    layers.append(network(rng, y, 0.06, 0.06))
    fitted = default_model(n_clusters=4).fit(similarities=layers)
    assert fitted.agreement_.scores.max() < 7  # some pairs are below the threshold
    sparse = [sp.csr_array(layer) for layer in layers]
    same = default_model(n_clusters=4).fit(similarities=sparse)
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    assert_array_equal(fitted.counted_, [True, True, True, False])
    assert_array_equal(fitted.labels_, same.labels_)
    assert_allclose(fitted.agreement_.scores, same.agreement_.scores)


def test_noise_does_not_agree_with_clusters_of_others():
    """Nor does a source with few large eigenvalues, whose scores have a long tail."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    vectors = (y - y.mean())[:, None]
    n_agreeing = 0
    for _ in range(200):
        position = rng.normal(size=100)
        source = np.exp(-((position[:, None] - position) ** 2) / 8)
        n_agreeing += agrees_with_clusters(compute_residual(source), vectors)
    assert n_agreeing == 0
    layers = [network(rng, y, 0.14, 0.1) for _ in range(20)]
    n_agreeing = sum(agrees_with_clusters(compute_residual(S), vectors) for S in layers)
    assert n_agreeing > 5


def test_nodes_that_are_missing_from_layers():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    layers = [network(rng, y, 0.15, 0.03) for _ in range(4)]
    layers.append(network(rng, y, 0.06, 0.06))
    for layer in layers:
        lost = rng.random(300) < 0.25
        layer[lost] = 0
        layer[:, lost] = 0
    fitted = default_model(n_clusters=4).fit(similarities=layers)
    assert_array_equal(fitted.counted_, [True] * 4 + [False])
    assert adjusted_rand_score(y, fitted.labels_) > 0.95


def test_the_warning_that_nothing_agrees_names_outliers():
    rng = np.random.default_rng(0)
    views = {"one": clusters(rng, EVEN, 8, 1.3), "noise": rng.normal(size=(300, 8))}
    views["one"][[3, 50, 217]] *= 6
    with warns_naming(UserWarning, "[3, 50, 217]", "outliers", "'one'"):
        default_model(n_clusters=4).fit(views=views)
