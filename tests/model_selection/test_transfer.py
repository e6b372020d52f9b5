"""Stability by transfer, against all permutations of labels."""

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from model_selection.clusterers import NAMED, Fragile, W, X, Y, kmeans
from model_selection.recorders import KNOWN, WEIGHT, WantsAll, WantsWeight
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from nmfcluster import SSNMFClusterer
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer, one_standard_error

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


def transfer(n_splits=3, **parameters):
    return StabilityScorer(n_splits, measure="transfer", **parameters)


def literal_difference(own, told, k):
    """Compute eq. 3 of Lange et al. (2004) over all permutations of k labels."""
    return min(
        np.mean([a < 0 or b < 0 or a != order[b] for a, b in zip(own, told, strict=True)])
        for order in permutations(range(k))
    )


def literal_halves(estimator, samples, n_splits, seed, pairwise=False):
    """Cut samples into halves, as the scorer says, and yield the two labellings of the second."""
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
    "mixture": (GaussianMixture(3, random_state=0), X, False),
    "tree": (AgglomerativeClustering(4), X, False),
    "noise": (DBSCAN(eps=1.2, min_samples=3), X, False),
    "similarity": (SSNMFClusterer(3, affinity="precomputed", n_init=1, random_state=0), W, True),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_transfer_is_that_of_all_permutations(name):
    estimator, samples, pairwise = ESTIMATORS[name]
    scorer = transfer(details=True, random_state=5)
    found = scorer(estimator, samples)
    rng = np.random.default_rng(5)
    d, c, sizes = [], [], []
    for own, told in literal_halves(estimator, samples, 3, 5, pairwise):
        k = max(len(set(labels) - {-1}) for labels in (own, told))
        d.append(literal_difference(own, told, k))
        c.append(literal_difference(*rng.integers(k, size=(2, len(own))), k))
        sizes.append(np.unique(own[own >= 0], return_counts=True)[1] / len(own))
    error = np.std(d, ddof=1) / np.sqrt(3)
    expected = {
        "stability": 1 - np.mean(d) / np.mean(c),
        "stability_se": error / np.mean(c),
        "disagreement": np.mean(d),
        "disagreement_se": error,
        "chance": np.mean(c),
        "largest_share": np.mean([share.max() for share in sizes]),
        "smallest_share": np.mean([share.min() for share in sizes]),
        "n_clusters": np.mean([len(share) for share in sizes]),
    }
    assert found == pytest.approx(expected)
    # which neither subsamples nor other scores of them change
    others = scorer.set_params(subsample_size=0.9, adjust=None, details=False)
    assert others(estimator, samples) == found["stability"]


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


class Known(ClusterMixin, BaseEstimator):
    """Looks up what each sample is, by the name in its first column."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.asarray(self.labels)[X[:, 0].astype(int)]


def test_chance_is_worth_nothing_and_what_never_changes_has_the_best_score():
    for k in (2, 3, 5):
        assert abs(transfer(40)(Random(k), X)) < 0.06
    assert transfer()(Known(Y), NAMED) == 1
    one, none = np.zeros(120, dtype=int), np.full(120, -1)
    assert transfer()(Known(one), NAMED) == transfer()(Known(none), NAMED) == 0


def test_a_search_finds_the_number_of_clusters():
    search = GridSearchCV(
        kmeans(), {"n_clusters": [6, 5, 4, 3, 2]}, scoring=transfer(4, details=True),
        cv=FullSampleSplit(), refit=one_standard_error, error_score="raise",
    ).fit(X)  # fmt: skip
    assert search.best_params_ == {"n_clusters": 3}
    best = search.cv_results_["mean_test_stability"][search.best_index_]
    assert best == transfer(4)(search.best_estimator_, X)


def test_names_of_clusters_do_not_matter_but_seeds_do():
    model = KMeans(5, n_init=1, init="random")  # its copies have seeds of their own
    found = [transfer(random_state=seed)(model, X) for seed in (0, 0, 1)]
    assert found[0] == found[1] != found[2]

    class Named(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            super().fit(X)
            self.labels_ = np.array(["ant", "bee", "cat"])[self.labels_]
            return self

        def predict(self, X):
            return np.array(["ant", "bee", "cat"])[super().predict(X)]

    assert transfer()(Named(3, n_init=2, random_state=0), X) == transfer()(kmeans(), X)


def test_frames_lists_and_small_numbers_are_features():
    whole = np.rint(10 * X)
    frame = pd.DataFrame(whole, columns=list("abc"), index=np.arange(120)[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for samples in (frame, whole.tolist(), whole.astype(np.int16)):
            assert transfer()(kmeans(), samples) == pytest.approx(transfer()(kmeans(), whole))


def test_what_goes_into_fit_is_cut_with_the_samples():
    given = {"sample_weight": WEIGHT, "constraints": KNOWN}
    expected = transfer()(kmeans(n_init=1), X)
    assert transfer(fit_params=given)(WantsAll(3, n_init=1, random_state=0), NAMED, Y) == expected
    weighed = transfer()(WantsWeight(3, n_init=1, random_state=0), NAMED, sample_weight=WEIGHT)
    assert weighed == expected


def test_copies_that_fail_have_no_score():
    model = Fragile(4, known=X).fit(X)
    says = "^StabilityScorer: split 0 of 3 failed; the score is nan.*: too odd"
    with pytest.warns(FitFailedWarning, match=says):
        found = transfer(details=True)(model, X)
    assert_array_equal(list(found.values()), np.nan)
    square = Known(np.zeros((120, 2), dtype=int))
    with pytest.warns(FitFailedWarning, match="each of 60 samples a label, got labels of shape"):
        assert np.isnan(transfer()(square, NAMED))
