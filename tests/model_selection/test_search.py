"""The split, the table of a search, and the choice of a candidate."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from model_selection.clusterers import STACK, Stack, X, Y, kmeans
from refusals import raises_naming
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from nmfcluster import SimilarityFusionNMF
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer
from nmfcluster.stack import ViewStack

ALL = FullSampleSplit()

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


def test_the_split_is_all_samples_twice():
    for samples in (X, X.tolist(), sp.coo_matrix(X), Stack(STACK), ["a"] * 120):
        ((train, test),) = FullSampleSplit().split(samples)
        np.testing.assert_array_equal(train, np.arange(120))
        np.testing.assert_array_equal(test, np.arange(120))
    assert FullSampleSplit().get_n_splits() == FullSampleSplit().get_n_splits(X, Y) == 1
    assert repr(FullSampleSplit()) == "FullSampleSplit()"
    search = GridSearchCV(
        kmeans(), {}, scoring=StabilityScorer(3), cv=FullSampleSplit()
    ).fit(X)
    assert search.n_splits_ == 1


def test_a_dict_of_views_is_answered_by_what_can_be_split():
    views = {"one": X, "other": X[:, ::-1]}
    fusion = SimilarityFusionNMF(3, affinity="rbf", n_init=1, random_state=0)
    search = GridSearchCV(
        fusion, {"n_clusters": [2, 3]}, scoring=StabilityScorer(3), cv=ALL
    )
    for refused in (search.fit, partial(StabilityScorer(3), fusion)):
        with raises_naming(ValueError, "dict", "ViewStack"):
            refused(views)
    assert search.fit(ViewStack(views)).best_params_ == {"n_clusters": 3}


def test_details_are_columns_of_the_table():
    search = GridSearchCV(
        kmeans(), {"n_clusters": [5, 3, 2]}, scoring=StabilityScorer(6, details=True), cv=ALL,
        refit="stability", error_score="raise",
    ).fit(X)  # fmt: skip
    for i, k in enumerate([5, 3, 2]):
        for name, value in StabilityScorer(6, details=True)(kmeans(k), X).items():
            assert search.cv_results_[f"mean_test_{name}"][i] == value
    assert search.best_params_ == {"n_clusters": 3}
    assert search.best_score_ == search.score(X) == StabilityScorer(6)(kmeans(3), X)


def test_one_scorer_among_several():
    search = GridSearchCV(
        kmeans(), {"n_clusters": [2, 3]}, cv=ALL, refit="stable", error_score="raise",
        scoring={"stable": StabilityScorer(4), "ratio": StabilityScorer(4, adjust="ratio")},
    ).fit(X)  # fmt: skip
    assert search.best_score_ == StabilityScorer(4)(kmeans(3), X)


def test_a_random_search_sees_the_same_subsamples():
    search = RandomizedSearchCV(
        kmeans(), {"n_clusters": [2, 3, 4]}, n_iter=2, scoring=StabilityScorer(4), cv=ALL,
        random_state=0,
    ).fit(X)  # fmt: skip
    for candidate, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        assert score == StabilityScorer(4)(kmeans(**candidate), X)
