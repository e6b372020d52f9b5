"""Parameters chosen by constraints that were held out, through scikit-learn's own tools."""

import pickle

import numpy as np
import pytest
from model_selection.recorders import (
    CLOSE,
    CLOSE_LABELS,
    CLOSE_NAMED,
    CLOSE_PAIRS,
    ConstrainedRecorder,
)
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample, shuffle

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.model_selection import ConstraintScorer

X, Y, NAMED, KNOWN = CLOSE, CLOSE_LABELS, CLOSE_NAMED, CLOSE_PAIRS
HALVES = ShuffleSplit(2, test_size=0.5, random_state=0)


def quick(n_clusters=3, **parameters):
    """Return a model whose pairs do not spread: they would leave three clusters of any number."""
    return SSNMFClusterer(
        n_clusters, **{"n_init": 1, "propagation": None, "random_state": 0} | parameters
    )


class Fixed(BaseEstimator):
    """Predicts what it was told."""

    def __init__(self, labels):
        self.labels = labels

    def predict(self, X):
        return np.asarray(self.labels)


# --- the score ---------------------------------------------------------------------------------


def literal_score(known, labels):
    must = [labels[i] == labels[j] for i, j in known.must_link]
    cannot = [labels[i] != labels[j] for i, j in known.cannot_link]
    return np.mean([np.mean(kind) for kind in (must, cannot) if kind])


@pytest.mark.parametrize("kinds", ["both", "must_link", "cannot_link"])
def test_the_score_is_the_share_of_satisfied_pairs(kinds):
    rng = np.random.RandomState(0)
    known = PairwiseConstraints.from_labels(
        rng.randint(3, size=30), n_pairs=60, random_state=0
    )
    if kinds != "both":
        known = PairwiseConstraints(30, **{kinds: getattr(known, kinds)})
    scorer = ConstraintScorer()
    for seed in range(5):
        labels = np.random.RandomState(seed).randint(3, size=30)
        expected = literal_score(known, labels)
        for score in (
            scorer(Fixed(labels), X[:30], known),
            scorer(Fixed(labels), X[:30], constraints=known),
            scorer(Fixed(labels), X[:30], labels, constraints=known),  # y is not asked
        ):
            assert score == pytest.approx(expected)
            assert isinstance(score, float)


def test_many_cannot_links_do_not_prevail():
    known = PairwiseConstraints(6, [(0, 1)], [(0, j) for j in range(2, 6)])
    apart = Fixed(np.arange(6))
    assert ConstraintScorer()(apart, X[:6], known) == 0.5


def test_a_sample_in_no_cluster_satisfies_nothing():
    known = PairwiseConstraints(4, [(0, 1)], [(2, 3)])
    assert ConstraintScorer()(Fixed([-1, -1, -1, 2]), X[:4], known) == 0


@pytest.mark.parametrize("y", [None, Y])
def test_without_constraints_it_says_how_to_give_them(y):
    with raises_naming(TypeError, "search.fit(X, pairs, constraints=pairs)", "routing"):
        ConstraintScorer()(Fixed(Y), X, y)


def test_without_a_pair_in_the_test_part_it_says_how_to_make_it_larger():
    with raises_naming(ValueError, "90", "ShuffleSplit(test_size=0.5)"):
        ConstraintScorer()(Fixed(Y), X, PairwiseConstraints(90))


def test_it_is_an_estimator_in_its_manners():
    scorer = ConstraintScorer()
    assert clone(scorer).get_params() == {}
    assert repr(scorer) == "ConstraintScorer()"
    again = pickle.loads(pickle.dumps(scorer))
    assert again(Fixed(Y), X, KNOWN) == 1


# --- splits ------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
def test_every_fold_is_given_the_pairs_among_its_samples(routing):
    given = {"constraints": KNOWN}
    found = cross_validate(
        ConstrainedRecorder(3, n_init=1, random_state=0),
        NAMED,
        None if routing else KNOWN,
        params=given,
        cv=HALVES,
        scoring=ConstraintScorer(),
        return_estimator=True,
        error_score="raise",
    )
    for model, score in zip(found["estimator"], found["test_score"], strict=True):
        assert not set(model.rows_) & set(model.asked_)
        labels = model.predict(NAMED[model.asked_])
        assert score == literal_score(KNOWN[model.asked_], labels)
        assert model.constraints_ == KNOWN[model.rows_]


def test_predictions_and_scores_of_folds():
    params = {"constraints": KNOWN}
    cv = KFold(3, shuffle=True, random_state=0)
    recorder = ConstrainedRecorder(3, n_init=1, random_state=0)
    labels = cross_val_predict(recorder, NAMED, cv=cv, params=params)
    for train, test in cv.split(NAMED):
        model = quick().fit(X[train], constraints=KNOWN[train])
        assert clustering_accuracy(model.predict(X[test]), labels[test]) == 1
    scores = cross_val_score(
        recorder, NAMED, KNOWN, cv=cv, params=params, scoring=ConstraintScorer()
    )
    expected = [literal_score(KNOWN[test], labels[test]) for _, test in cv.split(NAMED)]
    np.testing.assert_allclose(scores, expected)


def test_groups_keep_every_must_link_whole():
    known = PairwiseConstraints.from_labels(Y, n_pairs=25, random_state=0)
    groups = known.components()
    assert len(np.unique(groups)) > 30
    for train, test in GroupKFold(4).split(X, groups=groups):
        kept = len(known[train].must_link) + len(known[test].must_link)
        assert kept == len(known.must_link)
    scores = cross_val_score(
        quick(), X, known, groups=groups, cv=GroupKFold(2), params={"constraints": known},
        scoring=ConstraintScorer(), error_score="raise",
    )  # fmt: skip
    assert scores.min() > 0.5


def test_samples_and_pairs_are_taken_together():
    for X, pairs in (
        train_test_split(NAMED, KNOWN, random_state=0)[::2],
        shuffle(NAMED, KNOWN, random_state=0),
        resample(NAMED, KNOWN, random_state=0),
    ):
        assert isinstance(pairs, PairwiseConstraints)
        ConstrainedRecorder(3, n_init=1, random_state=0).fit(X, constraints=pairs)


def test_plain_pairs_are_not_split_and_say_so():
    with raises_naming(ValueError, "PairwiseConstraints", "constraints="):
        cross_validate(
            quick(), X, params={"must_link": KNOWN.must_link.tolist()}, cv=2,
            scoring=ConstraintScorer(), error_score="raise",
        )  # fmt: skip


# --- searches ----------------------------------------------------------------------------------

GRID = {"n_clusters": [2, 3, 5]}
SEARCHES = {
    "grid": lambda model, **options: GridSearchCV(model, GRID, **options),
    "random": lambda model, **options: RandomizedSearchCV(
        model, GRID, n_iter=3, random_state=0, **options
    ),
    "halving": lambda model, **options: HalvingGridSearchCV(
        model, GRID, min_resources=60, random_state=0, **options
    ),
}


# a candidate of five clusters finds four in a half of the samples
FEWER = pytest.mark.filterwarnings(
    "ignore:SSNMFClusterer found 4 clusters:sklearn.exceptions.ConvergenceWarning"
)


@pytest.mark.sampled(2)
@FEWER
@pytest.mark.parametrize(
    ("search", "routing"),
    [("grid", False), ("random", True), ("halving", False)],
    indirect=["routing"],
)
def test_the_number_of_clusters_is_found(search, routing):
    found = SEARCHES[search](
        quick(contradictions="ignore"),  # two clusters cannot satisfy the pairs
        scoring=ConstraintScorer(),
        cv=HALVES,
        error_score="raise",
    )
    found.fit(X, None if routing else KNOWN, constraints=KNOWN)
    assert found.best_params_ == {"n_clusters": 3}
    assert found.best_score_ > 0.9
    assert found.best_estimator_.constraints_ == KNOWN
    assert clustering_accuracy(Y, found.predict(X)) > 0.9


@FEWER
def test_too_few_clusters_for_the_pairs_have_no_score():
    search = GridSearchCV(quick(), GRID, scoring=ConstraintScorer(), cv=HALVES)
    with warns_naming(FitFailedWarning, "n_clusters=2", "small"):
        search.fit(X, KNOWN, constraints=KNOWN)
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(np.isnan(scores), [True, False, False])
    assert search.best_params_ != {"n_clusters": 2}


@pytest.mark.sampled(2)
def test_weights_are_found_where_must_links_are_soft(routing):
    noisy, y = make_blobs(120, centers=2 * np.eye(3), cluster_std=1.2, random_state=1)
    known = PairwiseConstraints.from_labels(y, n_pairs=900, random_state=0)
    search = GridSearchCV(
        quick(hard_must_link=False),
        {"alpha": [0, 2], "beta": [0, 1]},
        scoring=ConstraintScorer(),
        cv=HALVES,
        error_score="raise",
    ).fit(noisy, None if routing else known, constraints=known)
    scores = {
        (p["alpha"], p["beta"]): score
        for p, score in zip(
            search.cv_results_["params"],
            search.cv_results_["mean_test_score"],
            strict=True,
        )
    }
    assert len(scores) == 4
    assert scores[2, 1] > scores[0, 0]
    assert search.best_params_ != {"alpha": 0, "beta": 0}


@FEWER
@pytest.mark.slow
def test_n_jobs_of_a_search_do_not_matter():
    tables = []
    for n_jobs in (1, 2):
        search = GridSearchCV(
            quick(),
            {"n_clusters": [3, 5]},
            scoring=ConstraintScorer(),
            cv=HALVES,
            n_jobs=n_jobs,
        )
        search.fit(X, KNOWN, constraints=KNOWN)
        tables.append(search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(*tables)


def test_documents_in_a_pipeline_are_searched():
    rng = np.random.RandomState(0)
    words = ["match goal team coach league", "bank market share profit tax"]
    y = np.arange(60) % 2
    texts = [" ".join([*rng.choice(words[c].split(), 3), "year", "new"]) for c in y]
    known = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    search = GridSearchCV(
        make_pipeline(
            TfidfVectorizer(), quick(2, affinity="cosine", hard_must_link=False)
        ),
        {"ssnmfclusterer__alpha": [0.5, 2], "ssnmfclusterer__n_clusters": [2, 4]},
        scoring=ConstraintScorer(),
        cv=HALVES,
        error_score="raise",
    )
    search.fit(texts, known, ssnmfclusterer__constraints=known)
    assert search.best_params_["ssnmfclusterer__n_clusters"] == 2
    assert clustering_accuracy(y, search.predict(texts)) > 0.95


def test_scaled_features_in_a_pipeline_reach_the_estimator_with_their_pairs(routing):
    model = make_pipeline(StandardScaler(), quick())
    name = "constraints" if routing else "ssnmfclusterer__constraints"
    model.fit(X, **{name: KNOWN})
    direct = quick().fit(StandardScaler().fit_transform(X), constraints=KNOWN)
    np.testing.assert_array_equal(model[-1].labels_, direct.labels_)


@pytest.mark.sampled(2)
def test_fit_predict_and_fit_transform_take_constraints(routing):
    model = quick().fit(X, constraints=KNOWN)
    labels = quick().fit_predict(X, constraints=KNOWN)
    np.testing.assert_array_equal(labels, model.labels_)
    np.testing.assert_array_equal(
        quick().fit_transform(X, constraints=KNOWN), model.transform(X)
    )


def test_what_a_precomputed_similarity_needs_is_cut_on_both_axes():
    W = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)
    search = GridSearchCV(
        quick(affinity="precomputed", contradictions="ignore"), GRID, cv=HALVES,
        scoring=ConstraintScorer(), error_score="raise",
    )  # fmt: skip
    search.fit(W, KNOWN, constraints=KNOWN)
    assert search.best_params_ == {"n_clusters": 3}
    assert search.best_estimator_.n_features_in_ == 90
