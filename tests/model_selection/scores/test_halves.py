"""Prediction strength and transfer, against loops over pairs and over all permutations."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_selection.clusterers import NAMED, W, X, Y, kmeans
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.mixture import GaussianMixture

from nmfcluster import SSNMFClusterer
from nmfcluster.metrics.agreement import differing_share
from nmfcluster.model_selection import PredictionStrengthScorer, TransferScorer
from nmfcluster.model_selection.scores.halves import strength_of_half

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


def literal_strength(own, told):
    """Compute eq. 2 of Tibshirani and Walther (2005) with a loop over pairs."""
    shares = []
    for cluster in sorted(set(own) - {-1}):
        members = [i for i in range(len(own)) if own[i] == cluster]
        pairs = [(i, j) for i in members for j in members if i != j]
        together = sum(told[i] == told[j] and told[i] >= 0 for i, j in pairs)
        shares.append(together / len(pairs) if pairs else 1.0)
    return min(shares, default=0.0)


def literal_difference(own, told, k):
    """Compute eq. 3 of Lange et al. (2004) over all permutations of k labels."""
    return min(
        np.mean([a < 0 or b < 0 or a != order[b] for a, b in zip(own, told, strict=True)])
        for order in permutations(range(k))
    )


def literal_halves(estimator, samples, n_splits, seed, pairwise=False):
    """Cut samples into halves, as the scorers say, and yield the two labellings of the second."""
    for b in range(n_splits):
        order = np.random.default_rng((seed, b)).permutation(len(samples))
        half = len(samples) // 2
        first, second = np.sort(order[:half]), np.sort(order[half : 2 * half])
        blocks = [(first, first), (second, second), (second, first)]
        train, test, asked = (samples[np.ix_(*b)] if pairwise else samples[b[0]] for b in blocks)
        teacher, own = clone(estimator).fit(train), clone(estimator).fit(test)
        labels = own.labels_ if hasattr(own, "labels_") else own.predict(test)
        if hasattr(teacher, "predict"):
            yield labels, teacher.predict(asked)
        else:
            yield labels, teacher.labels_[cdist(test, train).argmin(axis=1)]


ESTIMATORS = {
    "k-means": (kmeans(3), X[:81], False),  # an odd number: one is left out
    "too many": (kmeans(4), X, False),
    "mixture": (GaussianMixture(3, random_state=0), X, False),
    "tree": (AgglomerativeClustering(4), X, False),
    "noise": (DBSCAN(eps=1.2, min_samples=3), X, False),
    "similarity": (SSNMFClusterer(3, affinity="precomputed", n_init=1, random_state=0), W, True),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_strength_is_that_of_a_loop_over_pairs(name):
    estimator, samples, pairwise = ESTIMATORS[name]
    found = PredictionStrengthScorer(3, details=True, random_state=5)(estimator, samples)
    halves = literal_halves(estimator, samples, 3, 5, pairwise)
    strengths = [literal_strength(own, told) for own, told in halves]
    assert_allclose(found["strength"], np.mean(strengths))
    assert_allclose(found["strength_se"], np.std(strengths, ddof=1) / np.sqrt(3))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_transfer_is_that_of_all_permutations(name):
    estimator, samples, pairwise = ESTIMATORS[name]
    found = TransferScorer(3, details=True, random_state=5)(estimator, samples)
    rng = np.random.default_rng(5)
    d, c = [], []
    for own, told in literal_halves(estimator, samples, 3, 5, pairwise):
        k = max(len(set(labels) - {-1}) for labels in (own, told))
        d.append(literal_difference(own, told, k))
        c.append(literal_difference(*rng.integers(k, size=(2, len(own))), k))
    instability = np.mean(d) / np.mean(c)
    error = np.std(d, ddof=1) / np.sqrt(3) / np.mean(c)
    expected = {"transfer": 1 - instability, "instability": instability}
    expected |= {"instability_se": error, "chance": np.mean(c)}
    assert found == pytest.approx(expected)


PAIRS_OF_LABELS = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1)


@given(PAIRS_OF_LABELS)
def test_two_labellings_are_compared_as_by_loops(pairs):
    own, told = np.array(pairs).T
    strength = strength_of_half(own, told)
    assert strength == pytest.approx(literal_strength(own, told))
    assert 0 <= strength <= 1
    assert differing_share(own, told) == pytest.approx(literal_difference(own, told, 4))


@given(PAIRS_OF_LABELS, st.permutations(range(4)), st.permutations(range(4)))
def test_names_of_clusters_do_not_matter(pairs, one, other):
    own, told = np.array(pairs).T
    renamed = np.append(one, -1)[own], np.append(other, -1)[told]
    assert strength_of_half(*renamed) == pytest.approx(strength_of_half(own, told))
    assert differing_share(*renamed) == pytest.approx(differing_share(own, told))


class Random(ClusterMixin, BaseEstimator):
    """Has clusters that have nothing to do with the samples."""

    def __init__(self, n_clusters=3, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        self.rng_ = np.random.default_rng(self.random_state)
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        return self.rng_.integers(self.n_clusters, size=len(X))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_random_clusters_are_as_good_as_chance(k):
    assert abs(TransferScorer(40)(Random(k), X)) < 0.06
    pairs = 1 / k  # the share of pairs that are together by chance
    assert PredictionStrengthScorer(40)(Random(k), X) < pairs


class Known(ClusterMixin, BaseEstimator):
    """Looks up what each sample is, by the name in its first column."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.asarray(self.labels)[X[:, 0].astype(int)]


def test_what_never_changes_has_the_best_score():
    assert PredictionStrengthScorer(3)(Known(Y), NAMED) == 1
    assert TransferScorer(3)(Known(Y), NAMED) == 1


def test_one_cluster_is_strong_and_no_better_than_chance():
    one, none = Known(np.zeros(120, dtype=int)), Known(np.full(120, -1))
    assert PredictionStrengthScorer(3)(one, NAMED) == 1
    assert PredictionStrengthScorer(3)(none, NAMED) == 0
    assert TransferScorer(3)(one, NAMED) == TransferScorer(3)(none, NAMED) == 0


def test_too_few_samples_for_halves_are_refused():
    assert PredictionStrengthScorer(2)(kmeans(2), X[:4]) <= 1
    for scorer in (PredictionStrengthScorer(2), TransferScorer(2)):
        with pytest.raises(ValueError, match=r"X must have at least 4 samples.* got 3"):
            scorer(kmeans(1), X[:3])
