"""The choice of a number of clusters by how stable they are, and of which fits."""

import numpy as np
import pytest
from model_selection.choices import BLOBS, chosen
from model_selection.clusterers import STACK, Stack, StackClusterer, X, Y, kmeans
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import AffinityPropagation, AgglomerativeClustering, KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from nmfcluster import (
    NMFConsensus,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster.model_selection import StabilityScorer, choose_n_clusters
from nmfcluster.model_selection.choose import (
    _agreement,
    _undecided,
    measure_stability,
    select_best,
)
from nmfcluster.model_selection.refits import Samples
from nmfcluster.stack import ViewStack

pytestmark = pytest.mark.filterwarnings("error::UserWarning")


def test_fits_to_halves_decide(stability):
    assert (stability.method, stability.n_clusters_) == ("stability", 3)
    assert stability.votes == {}
    assert_array_equal(stability.candidates, range(2, 7))
    assert stability.stability.argmax() == 1
    assert_array_equal(
        stability.as_good, stability.stability >= stability.stability[1] - 0.025
    )
    assert (stability.stability_se >= 0).all()
    assert (
        repr(stability)
        == "NumberOfClusters(3 of 2 to 6, by stability, which cannot choose 1)"
    )


def test_distances_without_clusters_get_several_and_are_told_so():
    points = np.random.default_rng(0).normal(size=(60, 2))
    model = AgglomerativeClustering(metric="precomputed", linkage="average")
    with warns_naming(UserWarning, "candidates", "1 is not a candidate"):
        found = choose_n_clusters(
            model, pairwise_distances(points), range(1, 9), random_state=0
        )
    assert "cannot choose 1" in repr(found)
    assert_array_equal(found.candidates, range(2, 9))


def test_agreement_is_the_mean_of_all_pairs_of_fits():
    samples = Samples(X, None, {}, None)
    numbers = np.array([2, 3, 6])
    models = {k: kmeans(k) for k in numbers}
    figures, failures = measure_stability(models, samples, 3, n_jobs=None)
    means, errors, all_fits = (
        figures[name] for name in ("stability", "stability_se", "n_fits")
    )
    assert_array_equal(figures["n_found"], numbers)
    assert all_fits[1] == 6
    assert all_fits.min() == 2
    for i, k in enumerate(numbers):
        labels, n_fits = [], all_fits[i]
        for b in range(n_fits):
            rng = np.random.default_rng((3, b))
            rows = np.sort(rng.choice(120, 60, replace=False, shuffle=False))
            labels.append(kmeans(k).fit(X[rows]).predict(X))
        pairs = [
            adjusted_rand_score(labels[a], labels[b])
            for a in range(n_fits)
            for b in range(a)
        ]
        assert_allclose(means[i], np.mean(pairs))
        if n_fits == 2:
            assert errors[i] == 0.1
            continue
        left = [
            np.mean(
                [
                    adjusted_rand_score(labels[a], labels[b])
                    for a in own
                    for b in own
                    if a > b
                ]
            )
            for own in ([c for c in range(n_fits) if c != out] for out in range(n_fits))
        ]
        share = (n_fits - 1) / n_fits
        assert_allclose(errors[i], np.sqrt(share * np.sum((left - np.mean(left)) ** 2)))
    assert failures == [None] * 3


def test_fits_are_made_where_they_can_decide():
    class Agreeing(BaseEstimator):
        """Of 2 and 3 clusters always the same, of 4 nearly, of 5 and 6 by chance."""

        def __init__(self, n_clusters=2, random_state=None):
            self.n_clusters, self.random_state = n_clusters, random_state

        def fit(self, X):
            return self

        def predict(self, X):
            rng = np.random.default_rng(self.random_state)
            labels = np.arange(len(X)) % self.n_clusters
            share = {4: 0.02, 5: 1, 6: 1}.get(self.n_clusters, 0)
            wrong = rng.uniform(size=len(X)) < share
            return np.where(wrong, rng.integers(self.n_clusters, size=len(X)), labels)

    samples = Samples(X, None, {}, None)
    figures, _ = measure_stability(
        {k: Agreeing(k) for k in range(2, 7)}, samples, 0, None
    )
    n_fits = figures["n_fits"]
    assert_array_equal(n_fits[3:], 2)
    assert n_fits[2] >= 4  # two do not rule it out
    assert n_fits[0] == 6  # the first of those that agree best
    assert_array_equal(figures["stability"][:2], 1)


@pytest.mark.parametrize(
    ("means", "errors", "n_fits", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.5], [0.1] * 4, [2, 2, 2, 2], [0, 1]),
        ([0.9, 0.8, 0.7, 0.5], [0.05] * 4, [4, 4, 2, 2], [0]),
        ([0.9, 0.84, 0.89, 0.5], [0.05] * 4, [4, 4, 2, 2], [2]),
        ([0.9, 0.86, 0.85, 0.5], [0.05] * 4, [4, 4, 4, 2], [0, 2]),
        # the third is ruled out
        ([0.9, 0.86, 0.86, 0.5], [0.05] * 4, [6, 4, 6, 2], [1]),
        ([0.9, 0.86, 0.88, 0.5], [0.05] * 4, [6, 4, 6, 2], []),
        ([0.9, np.nan, 0.7, 0.5], [0.05, np.nan, 0.05, 0.1], [4, 2, 2, 2], [0]),
        ([np.nan] * 4, [np.nan] * 4, [2] * 4, []),
    ],
)
def test_more_fits_are_made_of_those_that_are_not_decided(
    means, errors, n_fits, expected
):
    assert _undecided(*map(np.array, (means, errors, n_fits))) == expected


def test_the_largest_of_those_that_agree_nearly_as_well_is_chosen():
    failures = [None, None, None, None, ValueError("too many"), None]
    numbers = np.arange(2, 8)
    figures = {"stability": np.array([1.0, 0.99, 0.976, 0.97, np.nan, 0.2])}
    figures |= {
        "stability_se": np.full(6, 0.01),
        "n_fits": np.full(6, 6),
        "n_found": numbers + 0,
    }
    with warns_naming(FitFailedWarning, "n_clusters=6"):
        found = select_best(
            "stability", numbers, figures, failures, lambda k: kmeans(k).fit(X), X
        )
    assert (found.n_clusters_, found.best_estimator_.n_clusters) == (4, 4)
    assert_array_equal(found.as_good, [True, True, True, False, False, False])
    assert_array_equal(found.stability_se, [0.01] * 4 + [np.nan, 0.01])

    # the fit to all samples finds fewer
    with pytest.warns(FitFailedWarning):
        found = select_best(
            "stability",
            numbers,
            figures,
            failures,
            lambda k: kmeans(min(k, 3)).fit(X),
            X,
        )
    assert found.n_clusters_ == 3
    assert_array_equal(found.n_found, [2, 3, 3, 5, 6, 7])
    assert_array_equal(
        np.isnan(found.stability), [False, False, True, False, True, False]
    )


# --- numbers of which fits find fewer ------------------------------------------------------------

TRUE = np.repeat(range(4), [60, 30, 20, 10])
FEW = np.array([[0.0, 0], [9, 0], [0, 9]])[np.arange(90) % 3]  # distinct rows
BLOCKS = np.where(TRUE[:, None] == TRUE, 1.0, 0.1)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("estimator", "samples", "expected"),
    [
        (
            NMFConsensus(2, affinity="partitions", n_init=1),
            np.column_stack([TRUE] * 6),
            4,
        ),
        (NMFConsensus(2, affinity="precomputed", n_init=1), BLOCKS, 4),
        (SSNMFClusterer(2, affinity="precomputed", n_init=1), BLOCKS, 4),
        (SSNMFClusterer(2, n_init=1), FEW, 3),
        (KMeans(n_init=1), FEW, 3),
        (make_pipeline(FunctionTransformer(), KMeans(n_init=1)), FEW, 3),
        (GaussianMixture(), FEW, 3),
    ],
)
def test_clusters_that_are_empty_are_not_counted(estimator, samples, expected):
    # fits to parts warn
    found = chosen(estimator, samples, range(2, 9), method="stability")
    labels = found.best_estimator_.fit_predict(samples)
    assert found.n_clusters_ == len(np.unique(labels)) == expected


def test_a_few_fits_may_miss_a_small_cluster():
    labels = np.arange(12) % 4
    assert _agreement([(labels, 4), (labels, 3)], 4) == (1, 0.1, 4)
    mean, error, n_found = _agreement(
        [(labels, 4), (labels, 3), (labels, 3), (labels, 3)], 4
    )
    assert np.isnan([mean, error]).all()
    assert n_found == 3


def test_where_fits_find_fewer_larger_numbers_are_not_tried():
    found = chosen(KMeans(n_init=1), FEW, range(2, 14), method="stability")
    assert_array_equal(found.n_found, [2, 3, 3, 3] + 8 * [0])
    assert_array_equal(found.n_fits[2:], 2 * [2] + 8 * [0])
    assert np.isnan(found.stability[2:]).all()


@pytest.mark.parametrize(("samples", "at_most"), [(FEW, 3), (np.ones((40, 2)), 1)])
def test_if_all_numbers_are_too_large_an_error_says_what_is_found(samples, at_most):
    says = "candidates", "5", "7", str(at_most)
    with raises_naming(ValueError, says):
        chosen(KMeans(n_init=1), samples, range(5, 8), method="stability")


class Noise(KMeans):
    """Has its first cluster for noise."""

    def fit(self, X, y=None, sample_weight=None):
        super().fit(X)
        self.labels_ = self.labels_ - 1
        return self


def test_noise_is_no_cluster():
    with raises_naming(ValueError, "2", "5", "4"):
        chosen(Noise(n_init=1), X, range(2, 6), method="stability")


# --- kinds of input ------------------------------------------------------------------------------


@pytest.mark.slow
def test_similarities_are_decided_by_stability():
    some, pairs = X[:60], STACK[:60, :60]
    consensus = NMFConsensus(2, affinity="precomputed", n_init=1, tol=1e-2)
    fusion = SimilarityFusionNMF(2, n_init=1, tol=1e-2)
    for model, samples in (
        (consensus, pairs[..., 0]),
        (fusion, SimilarityStack([pairs[..., 0], pairs[..., 1]])),
        (fusion, pairs),
        (StackClusterer(), Stack(pairs)),
        (clone(fusion).set_params(affinity="rbf"), ViewStack([some, some[:, :2]])),
    ):
        found = chosen(model, samples, range(2, 5))
        assert (found.method, found.n_clusters_) == ("stability", 3)


def test_labels_of_partitions_are_no_features():
    table = np.column_stack(
        [kmeans(3, random_state=b).fit(X[:, :2]).labels_ for b in range(5)]
    )
    model = NMFConsensus(2, affinity="partitions", n_init=1)
    with warns_naming(UserWarning, "candidates", "3"):
        found = chosen(model, table, range(1, 4))
    assert (found.method, found.n_clusters_) == ("eigengap", 3)
    with raises_naming(ValueError, "similarities", "distances", "labels"):
        chosen(model, table, method="vote")


@pytest.mark.slow
def test_constraints_are_cut_with_the_samples():
    pairs = PairwiseConstraints.from_labels(Y, n_pairs=60, random_state=0)
    found = chosen(
        SSNMFClusterer(2, n_init=1, tol=1e-2),
        BLOBS,
        range(1, 5),
        fit_params={"constraints": pairs},
    )
    assert (found.method, found.n_clusters_) == ("stability", 3)
    assert found.best_estimator_.constraints_.n_samples == 120


def test_numbers_that_only_parts_allow_are_not_chosen():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    pairs = PairwiseConstraints.from_labels(y[order], n_pairs=100, random_state=0)
    model = SSNMFClusterer(2, n_init=1, propagation=None, random_state=0)
    options = {"fit_params": {"constraints": pairs}, "random_state": 1}
    failed = warns_naming(FitFailedWarning, "n_clusters=2", "small")
    with failed:
        found = chosen(model, X[order], [2, 4, 20], **options)
    assert found.n_clusters_ == 4
    assert np.isnan(found.stability[0])
    assert found.best_estimator_.n_clusters == 4


def test_samples_that_were_left_out_are_in_the_cluster_of_the_nearest():
    assert chosen(AgglomerativeClustering(), method="stability").n_clusters_ == 3


class Fails(KMeans):
    """Cannot be fitted with some numbers of clusters."""

    def fit(self, X, y=None, sample_weight=None):
        if self.n_clusters > 3 or len(X) < 50:
            raise ValueError("too many")
        return super().fit(X)


def test_numbers_that_fail_are_told_and_not_chosen():
    with pytest.warns(FitFailedWarning, match=r"n_clusters=[45]\b") as told:
        found = chosen(Fails(), candidates=range(2, 6), method="stability")
    assert len(told) == 2
    assert_array_equal(np.isnan(found.stability), [False, False, True, True])
    assert found.n_clusters_ == 3


def test_if_all_fail_the_first_error_is_raised():
    with raises_naming(ValueError, "too many") as caught:
        chosen(Fails(), X[:80], method="stability")
    assert "choose_n_clusters: all 5 candidates failed." in caught.value.__notes__


class Medoids(AgglomerativeClustering):
    """A clusterer of distances whose `predict` is for features alone."""

    def __init__(self, n_clusters=2, metric="precomputed", linkage="complete"):
        super().__init__(n_clusters, metric=metric, linkage=linkage)

    def predict(self, X):
        raise NotImplementedError("distances")


def test_new_samples_are_near_fitted_ones_where_predict_fails():
    points, _ = make_blobs(120, centers=10 * np.eye(4), random_state=0)
    D = pairwise_distances(points)
    tree = AgglomerativeClustering(metric="precomputed", linkage="complete")
    found = choose_n_clusters(Medoids(), D, range(2, 9), random_state=0)
    same = choose_n_clusters(tree, D, range(2, 9), random_state=0)
    assert found.n_clusters_ == 4
    assert_allclose(found.stability, same.stability)
    exemplars = AffinityPropagation(affinity="precomputed", damping=0.9)
    assert StabilityScorer(3, subsample_size=0.5)(exemplars, -(D**2)) > 0.3
    with raises_naming(TypeError, "estimator", "instance", "KMeans(...)"):
        choose_n_clusters(KMeans, points)
