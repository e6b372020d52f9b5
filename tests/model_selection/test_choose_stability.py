"""The choice of a number of clusters by how stable they are, and of which fits."""

import numpy as np
import pytest
from model_selection.choices import BLOBS, chosen
from model_selection.clusterers import STACK, Stack, StackClusterer, W, X, Y, kmeans
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import (
    NMFConsensus,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster.model_selection.by_stability import _undecided, agreement_of_parts, steadiest
from nmfcluster.model_selection.copies import Samples
from nmfcluster.stack import ViewStack

pytestmark = pytest.mark.filterwarnings("error::UserWarning")


def test_fits_to_halves_decide(stability):
    assert (stability.method, stability.n_clusters_) == ("stability", 3)
    assert stability.votes is None
    assert_array_equal(stability.candidates, range(2, 7))
    assert stability.stability.argmax() == 1
    assert_array_equal(stability.as_good, stability.stability >= stability.stability[1] - 0.025)
    assert (stability.stability_se >= 0).all()
    assert repr(stability) == "NumberOfClusters(3 of 2 to 6, by stability)"


def test_agreement_is_the_mean_of_all_pairs_of_fits():
    samples = Samples(X, None, {}, False)
    numbers = np.array([2, 3, 6])
    models = [kmeans().set_params(n_clusters=k) for k in numbers]
    means, errors, all_fits, failures = agreement_of_parts(models, samples, 50, 3, n_jobs=None)
    assert all_fits[1] == 10
    assert all_fits.min() == 2
    for i, k in enumerate(numbers):
        labels, n_fits = [], all_fits[i]
        for b in range(n_fits):
            rng = np.random.default_rng((3, b))
            rows = np.sort(rng.choice(120, 50, replace=False, shuffle=False))
            labels.append(kmeans(k).fit(X[rows]).predict(X))
        pairs = [adjusted_rand_score(labels[a], labels[b]) for a in range(n_fits) for b in range(a)]
        assert_allclose(means[i], np.mean(pairs))
        if n_fits == 2:
            assert errors[i] == 0.15
            continue
        left = [
            np.mean([adjusted_rand_score(labels[a], labels[b]) for a in own for b in own if a > b])
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

    samples = Samples(X, None, {}, False)
    numbers = np.arange(2, 7)
    models = [Agreeing(k) for k in numbers]
    means, _, n_fits, _ = agreement_of_parts(models, samples, 50, 0, None)
    assert_array_equal(n_fits[3:], 2)
    assert n_fits[2] >= 4  # two do not rule it out
    assert n_fits[0] == 10  # the first of those that agree best
    assert n_fits[1] >= 8
    assert_array_equal(means[:2], 1)


@pytest.mark.parametrize(
    ("means", "errors", "n_fits", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.5], [0.1] * 4, [2, 2, 2, 2], [0, 1]),
        ([0.9, 0.8, 0.7, 0.5], [0.05] * 4, [4, 4, 2, 2], [0]),
        ([0.9, 0.84, 0.89, 0.5], [0.05] * 4, [8, 8, 6, 2], [2]),
        ([0.9, 0.86, 0.85, 0.5], [0.05] * 4, [8, 8, 8, 2], [0, 2]),
        ([0.9, 0.86, 0.86, 0.5], [0.05] * 4, [10, 8, 10, 2], [1]),  # the third is ruled out
        ([0.9, 0.86, 0.88, 0.5], [0.05] * 4, [10, 8, 10, 2], []),
        ([0.9, np.nan, 0.7, 0.5], [0.05, np.nan, 0.05, 0.1], [8, 2, 2, 2], [0]),
        ([np.nan] * 4, [np.nan] * 4, [2] * 4, []),
    ],
)
def test_more_fits_are_made_of_those_that_are_not_decided(means, errors, n_fits, expected):
    assert _undecided(*map(np.array, (means, errors, n_fits))) == expected


def test_the_largest_of_those_that_agree_nearly_as_well_is_chosen():
    means = np.array([1.0, 0.99, 0.976, 0.97, np.nan, 0.2])
    failures = [None, None, None, None, ValueError("too many"), None]
    agreement = means, np.full(6, 0.01), np.full(6, 10), failures
    with pytest.warns(FitFailedWarning, match="n_clusters=6 failed"):
        found = steadiest(np.arange(2, 8), *agreement, fitted=lambda k: f"fit of {k}")
    assert (found.n_clusters_, found.best_estimator_) == (4, "fit of 4")
    assert_array_equal(found.as_good, [True, True, True, False, False, False])
    assert_array_equal(found.stability_se, [0.01] * 4 + [np.nan, 0.01])


def test_similarities_are_decided_by_stability():
    model = SpectralClustering(affinity="precomputed")
    with pytest.raises(TypeError, match="SpectralClustering has none"):
        chosen(model, W)
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
    table = np.column_stack([kmeans(3, random_state=b).fit(X[:, :2]).labels_ for b in range(5)])
    model = NMFConsensus(2, affinity="partitions", n_init=1)
    with pytest.warns(UserWarning, match="largest of the candidates was chosen, 3"):
        found = chosen(model, table, range(1, 4))
    assert (found.method, found.n_clusters_) == ("stability", 3)
    with pytest.raises(ValueError, match="similarities, or labels"):
        chosen(model, table, method="vote")


def test_constraints_are_cut_with_the_samples():
    pairs = PairwiseConstraints.from_labels(Y, n_pairs=60, random_state=0)
    found = chosen(
        SSNMFClusterer(2, n_init=1, tol=1e-2), BLOBS, range(1, 5), fit_params={"constraints": pairs}
    )
    assert (found.method, found.n_clusters_) == ("stability", 3)
    assert found.best_estimator_.constraints_.n_samples == 120


def test_numbers_that_only_parts_allow_are_not_chosen():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    pairs = PairwiseConstraints.from_labels(y[order], n_pairs=100, random_state=0)
    model = SSNMFClusterer(2, n_init=1, propagation=None, random_state=0)
    options = {"fit_params": {"constraints": pairs}, "random_state": 1}
    failed = pytest.warns(FitFailedWarning, match="n_clusters=2 failed.*too small")
    with pytest.warns(UserWarning, match="Labels violate"), failed:
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
    with pytest.warns(FitFailedWarning, match=r"n_clusters=[45] failed") as told:
        found = chosen(Fails(), candidates=range(2, 6), method="stability")
    assert len(told) == 2
    assert_array_equal(np.isnan(found.stability), [False, False, True, True])
    assert found.n_clusters_ == 3


def test_if_all_fail_the_first_error_is_raised():
    with pytest.raises(ValueError, match="too many") as caught:
        chosen(Fails(), X[:80], method="stability")
    assert "choose_n_clusters: all 5 candidates failed." in caught.value.__notes__
