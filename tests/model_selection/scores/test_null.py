"""Scores against those of tables without clusters, and the tables themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
from model_selection.clusterers import W, X, Y, kmeans
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score, silhouette_score

from nmfcluster import NMFConsensus, SSNMFClusterer
from nmfcluster.model_selection import (
    NullScorer,
    PredictionStrengthScorer,
    SilhouetteScorer,
    StabilityScorer,
)
from nmfcluster.model_selection.scores.null import against_null
from nmfcluster.model_selection.scores.references import reference_of

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")

KEYS = {"excess", "score", "null", "null_sd", "p_value"}


def neg_inertia(estimator, X, y=None):
    return -estimator.inertia_


def literal_tables(X, null, n_references, seed):
    mean = X.mean(axis=0)
    _, lengths, axes = np.linalg.svd(X - mean, full_matrices=False)
    for b in range(n_references):
        rng = np.random.default_rng((seed, b))
        if null == "permuted":
            yield rng.permuted(X, axis=0)
        else:
            deviations = lengths / np.sqrt(len(X) - 1)
            yield rng.standard_normal(X.shape) * deviations @ axes + mean


@pytest.mark.parametrize("null", ["gaussian", "permuted"])
@pytest.mark.parametrize(
    ("scorer", "literal"),
    [
        (SilhouetteScorer(), lambda model, X: silhouette_score(X, model.labels_)),
        (neg_inertia, neg_inertia),
    ],
    ids=["silhouette", "inertia"],
)
def test_excess_and_p_value_are_those_of_loops(null, scorer, literal):
    model = kmeans(4).fit(X)
    B = 6
    own = literal(model, X)
    others = [literal(clone(model).fit(table), table) for table in literal_tables(X, null, B, 3)]
    found = NullScorer(scorer, null=null, n_references=B, details=True, random_state=3)(model, X)
    assert found == pytest.approx(
        {
            "excess": own - np.mean(others),
            "score": own,
            "null": np.mean(others),
            "null_sd": np.std(others, ddof=1),
            "p_value": (1 + sum(other >= own for other in others)) / (1 + B),
        }
    )
    assert (
        NullScorer(scorer, null=null, n_references=B, random_state=3)(model, X) == found["excess"]
    )


def test_the_share_of_tables_that_score_no_less_is_the_p_value():
    """Eq. 1 of the docstring, for ranks in between, which clusters seldom have."""

    class Numbers:
        def __init__(self):
            self.left = iter([0.5, 0.1, 0.5, 0.9, 0.2])

        def __call__(self, estimator, X):
            return next(self.left)

    found = NullScorer(Numbers(), n_references=4, details=True)(kmeans(2), X)
    assert found["score"] == 0.5
    assert found["p_value"] == 3 / 5
    assert found["null"] == pytest.approx(0.425)


def test_one_cloud_is_no_better_than_chance():
    cloud = np.random.default_rng(1).normal(size=(150, 3)) * [1, 2, 4]
    details = NullScorer(SilhouetteScorer(), details=True)(kmeans(2).fit(cloud), cloud)
    assert details["p_value"] > 0.05
    assert abs(details["excess"]) < 0.1


@pytest.mark.parametrize("null", ["gaussian", "permuted"])
def test_clusters_have_the_least_p_value(null):
    blobs, _ = make_blobs(150, centers=4, random_state=3)
    model = kmeans(4).fit(blobs)
    scorer = NullScorer(SilhouetteScorer(), null=null, n_references=24, details=True)
    details = scorer(model, blobs)
    assert details["p_value"] == 1 / 25
    assert details["excess"] > 0.2


def relative_range(X):
    """Return a score of two clusters: they have a smaller range than a Gaussian of their width."""
    return -(np.ptp(X, axis=0) / X.std(axis=0)).max()


def p_value(table, rng):
    reference = reference_of(table, "gaussian")
    others = np.array([relative_range(reference.drawn(rng)) for _ in range(9)])
    return against_null(relative_range(table), others)[-1]


def test_p_values_of_clouds_are_uniform():
    """The test holds its level: of clouds without clusters as few have a small p-value."""
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(40, 2)) @ [[1, 1], [0, 3]] + 5 for _ in range(400)]
    found = np.array([p_value(cloud, rng) for cloud in clouds])
    for level in (0.1, 0.3, 0.5, 0.8):
        error = np.sqrt(level * (1 - level) / 400)
        assert abs(np.mean(found <= level + 1e-9) - level) < 3 * error
    apart = clouds[0] + np.repeat([[0, 0], [30, 60]], 20, axis=0)
    assert p_value(apart, rng) == 0.1


@pytest.mark.parametrize("scorer", [StabilityScorer(4), PredictionStrengthScorer(3)], ids=str)
def test_scorers_that_fit_copies_take_what_is_not_fitted(scorer):
    details = NullScorer(scorer, n_references=4, details=True)(kmeans(3), X)
    assert details.keys() == KEYS
    assert details["score"] == scorer(kmeans(3), X)
    assert details["p_value"] == 1 / 5


def test_a_target_reaches_the_other_scorer():
    def agreement(estimator, X, y):
        return adjusted_rand_score(y, estimator.fit_predict(X))

    found = NullScorer(agreement, n_references=3, details=True)(kmeans(3), X, Y)
    assert found["score"] == agreement(kmeans(3), X, Y)
    assert found["null"] < 0.2


# --- the tables --------------------------------------------------------------------------------


def test_permuted_tables_hold_what_the_columns_hold():
    table = np.random.default_rng(0).poisson(1.0, size=(40, 5))
    dense = reference_of(table, "permuted").drawn(np.random.default_rng(1))
    sparse = reference_of(sp.csr_array(table), "permuted").drawn(np.random.default_rng(1))
    assert sparse.format == "csr"
    for drawn in (dense, sparse.toarray()):
        assert_array_equal(np.sort(drawn, axis=0), np.sort(table, axis=0))
        assert (drawn != table).any()
        assert drawn.dtype == table.dtype


@pytest.mark.parametrize("shape", [(60, 3), (5, 8)], ids=["tall", "wide"])
def test_gaussian_tables_have_the_covariances_of_the_data(shape):
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1])) + 100
    drawn = [reference_of(data, "gaussian").drawn(np.random.default_rng(b)) for b in range(2000)]
    covariance = np.cov(data.T)
    found = np.mean([np.cov(table.T) for table in drawn], axis=0)
    assert_allclose(found, covariance, atol=0.05 * np.abs(covariance).max())
    deviations = data.std(axis=0, ddof=1)
    assert (abs(np.mean(drawn, axis=(0, 1)) - data.mean(axis=0)) < 0.1 * deviations).all()


def test_sparse_tables_are_permuted():
    counts = sp.csr_array(np.random.default_rng(0).poisson(0.7, size=(30, 6)))
    model = NMFConsensus(2, n_estimators=2, n_init=1, random_state=0).fit(counts)
    scorer = NullScorer(SilhouetteScorer(), null="permuted", n_references=2)
    assert -2 < scorer(model, counts) < 2
    with pytest.raises(ValueError, match=r"X must be dense for NullScorer.*null='permuted'"):
        scorer.set_params(null="gaussian")(model, counts)


# --- what cannot be scored ---------------------------------------------------------------------


def test_a_score_is_a_number():
    with pytest.raises(TypeError, match=r"scorer must return a number, got .*has details=False"):
        NullScorer(SilhouetteScorer(details=True))(kmeans(2).fit(X), X)


def test_other_scores_may_not_exist():
    def clusters_apart(estimator, X):
        if silhouette_score(X, estimator.labels_) < 0.9:
            raise ValueError("too near")
        return 1.0

    scorer = NullScorer(clusters_apart, n_references=2)
    with pytest.warns(FitFailedWarning, match=r"NullScorer: the score of X failed.* too near"):
        assert np.isnan(scorer(kmeans(3).fit(X), X))
    far = X + 90 * np.eye(3)[Y]
    with pytest.warns(FitFailedWarning, match=r"reference 0 of 2 \(n_references\) failed"):
        assert np.isnan(scorer(kmeans(3).fit(far), far))


def test_misuse_of_the_other_scorer_is_raised():
    with pytest.raises(NotFittedError):
        NullScorer(SilhouetteScorer(), n_references=2)(kmeans(2), X)
    with pytest.raises(TypeError, match="AgglomerativeClustering has none"):
        NullScorer(StabilityScorer(3))(AgglomerativeClustering(2), X)


def test_of_a_score_that_is_nan_nothing_is_known():
    details = NullScorer(lambda estimator, X: np.nan, n_references=2, details=True)(kmeans(), X)
    assert details.keys() == KEYS
    assert np.isnan(list(details.values())).all()


def test_similarities_have_no_reference():
    model = SSNMFClusterer(3, affinity="precomputed", n_init=1, random_state=0).fit(W)
    with pytest.raises(ValueError, match="X must hold features for NullScorer"):
        NullScorer(StabilityScorer(3))(model, W)
