"""What copies are fitted on, with which seeds, and what happens where one fails."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_selection.clusterers import (
    NAMED,
    STACK,
    Stack,
    StackClusterer,
    Told,
    W,
    X,
    kmeans,
)
from refusals import warns_naming
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import SSNMFClusterer
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

ALL = FullSampleSplit()

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


def test_containers_are_cut_on_both_axes():
    scorer = StabilityScorer(4, subsample_size=0.3)
    expected = scorer(StackClusterer(4), STACK)
    for whole in (Stack(STACK), np.asfortranarray(STACK)):
        assert scorer(StackClusterer(4), whole) == expected


def test_sparse_similarities_are_cut_on_both_axes():
    sparse = np.where(W > 0.01, W, 0)
    estimator = SSNMFClusterer(4, affinity="precomputed", n_init=1, random_state=0)
    scorer = StabilityScorer(3, subsample_size=0.5)
    expected = scorer(estimator, sparse)
    for form in (sp.csr_matrix, sp.coo_matrix, sp.csc_array):
        assert scorer(estimator, form(sparse)) == pytest.approx(expected, abs=0.02)


def test_what_is_cut_is_left_as_it_was():
    """Entries that are stored in parts stay so, and numbers that are text are read as numbers."""
    parts = sp.csr_matrix(np.where(W > 0.01, W, 0))
    indices, ends = np.repeat(parts.indices, 2), 2 * parts.indptr
    twice = sp.csr_matrix((np.repeat(parts.data / 2, 2), indices, ends), shape=W.shape)
    estimator = SSNMFClusterer(4, affinity="precomputed", n_init=1, random_state=0)
    scorer = StabilityScorer(3, subsample_size=0.5)
    expected = scorer(estimator, parts)
    assert scorer(estimator, twice) == pytest.approx(expected)
    assert twice.nnz == 2 * parts.nnz
    text = pd.DataFrame(W).astype(str).astype("string")
    assert scorer(estimator, text) == pytest.approx(scorer(estimator, W))


def test_texts_and_data_frames_are_cut_by_rows():
    scorer = StabilityScorer(4)
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(120)[::-1])
    assert scorer(kmeans(4), frame) == scorer(kmeans(4), X)
    words = ["match goal team coach league", "bank market share profit tax"]
    rng = np.random.RandomState(0)
    texts = [
        " ".join([*rng.choice(words[i % 2].split(), 3), "news"]) for i in range(60)
    ]
    details = StabilityScorer(4, subsample_size=0.5, details=True)(
        make_pipeline(TfidfVectorizer(), kmeans(2)), texts
    )
    assert details["disagreement"] < 0.2
    assert details["chance"] > 0.4


@pytest.mark.slow
@pytest.mark.parametrize(("search_jobs", "scorer_jobs"), [(1, 2), (2, 1)])
def test_n_jobs_do_not_matter(search_jobs, scorer_jobs):
    estimator = KMeans(n_init=1, init="random")  # its random_state is None
    search = GridSearchCV(
        estimator,
        {"n_clusters": [3, 5]},
        scoring=StabilityScorer(5, n_jobs=scorer_jobs),
        cv=ALL,
        n_jobs=search_jobs,
        error_score="raise",
    ).fit(X)
    expected = [
        StabilityScorer(5)(clone(estimator).set_params(n_clusters=k), X) for k in (3, 5)
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)


def test_threads_do_not_matter():
    with joblib.parallel_config("threading", n_jobs=2):
        score = StabilityScorer(5, n_jobs=2)(kmeans(5), X)
    assert score == StabilityScorer(5)(kmeans(5), X)


def test_copies_differ_in_their_seed_if_the_estimator_has_none():
    class Seed(ClusterMixin, BaseEstimator):
        seen = []

        def __init__(self, random_state=None):
            self.random_state = random_state

        def fit(self, X, y=None):
            self.seen.append(self.random_state)
            self.fitted_ = True
            return self

        def predict(self, X):
            return np.arange(len(X)) % 3

    StabilityScorer(4)(Seed(), X)
    assert len(set(Seed.seen)) == 4
    StabilityScorer(4)(make_pipeline(StandardScaler(), Seed(7)), X)
    assert Seed.seen[4:] == [7] * 4
    StabilityScorer(4)(make_pipeline(StandardScaler(), Seed()), X)
    assert Seed.seen[8:] == Seed.seen[:4]


def test_the_estimator_is_left_alone():
    model = kmeans(4).fit(X)
    before = pickle.dumps(model)
    StabilityScorer(4)(model, X)
    assert pickle.dumps(model) == before


# --- copies that fail ------------------------------------------------------------------------


def test_predictions_other_than_labels_are_refused():
    for table, says in (
        (np.full((1, 120), 0.5), ("labels[:, 0]", "0.5")),
        (np.ones((1, 60)), ("120", "labels", "shape", "(60,)")),
    ):
        with warns_naming(FitFailedWarning, says):
            assert np.isnan(StabilityScorer(3)(Told(table), NAMED))


@pytest.mark.parametrize("details", [False, True])
def test_a_copy_that_cannot_be_fitted_has_no_score(details):
    scorer = StabilityScorer(3, subsample_size=4, details=details)
    names = "subsample 0", "4 of 120", "n_clusters=5"
    with warns_naming(FitFailedWarning, names) as caught:
        score = scorer(kmeans(5), X)
    assert caught[0].filename == __file__
    assert np.isnan(score["chance"] if details else score)
    search = GridSearchCV(
        kmeans(), {"n_clusters": [5, 3]}, scoring=scorer, cv=ALL,
        refit="stability" if details else True,
    )  # fmt: skip
    with warns_naming(FitFailedWarning, names) as caught:
        search.fit(X)
    ours = [warning for warning in caught if warning.category is FitFailedWarning]
    assert {warning.filename for warning in ours} == {__file__}
    assert search.best_params_ == {"n_clusters": 3}
