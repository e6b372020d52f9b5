"""What all scores have in common: searches, processes, failures, bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from model_selection.clusterers import Fragile
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.model_selection import (
    ConsensusScorer,
    FullSampleSplit,
    GapScorer,
    NullScorer,
    PredictionStrengthScorer,
    RecurrenceScorer,
    SilhouetteScorer,
    StadionScorer,
    TransferScorer,
    first_gap,
)

BLOBS, TRUTH = make_blobs(120, centers=8 * np.eye(4), random_state=1)
DOWN, UP = [6, 5, 4, 3, 2], [1, 2, 3, 4, 5, 6]

SCORERS = {
    "strength": PredictionStrengthScorer(4),
    "transfer": TransferScorer(4),
    "stadion": StadionScorer(4, n_perturbations=2, omega=(2,)),
    "pac": ConsensusScorer(n_subsamples=8, subsample_size=0.9),
    "cophenetic": ConsensusScorer("cophenetic", n_subsamples=8, subsample_size=0.9),
    "silhouette": SilhouetteScorer(max_samples=100),
    "gap": GapScorer(4),
    "gap of axes": GapScorer(4, reference="pca"),
    "null": NullScorer(SilhouetteScorer(), n_references=4),
    "permuted": NullScorer(SilhouetteScorer(), n_references=4, null="permuted"),
}
COPYING = {name: scorer for name, scorer in SCORERS.items() if name != "silhouette"}
KEYS = {
    PredictionStrengthScorer: {"strength", "strength_se"},
    TransferScorer: {"transfer", "instability", "instability_se", "chance"},
    StadionScorer: {"stadion", "between", "within", "noise"},
    ConsensusScorer: {"consensus", "pac", "cophenetic"},
    SilhouetteScorer: {"silhouette", "smallest_silhouette", "n_clusters"},
    GapScorer: {"gap", "gap_se"},
    NullScorer: {"excess", "score", "null", "null_sd", "p_value"},
}
CANDIDATES = dict.fromkeys(SCORERS, DOWN) | {"silhouette": UP, "stadion": UP[1:], "null": UP[1:]}

each = pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
each_copying = pytest.mark.parametrize("scorer", COPYING.values(), ids=COPYING)


def detailed(scorer, **parameters):
    return clone(scorer).set_params(details=True, **parameters)


def kmeans(n_clusters=4, **parameters):
    return KMeans(n_clusters, **{"n_init": 2, "random_state": 0} | parameters)


# --- searches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORERS)
def test_a_search_finds_four_clusters(name):
    search = GridSearchCV(
        kmeans(),
        {"n_clusters": CANDIDATES[name]},
        scoring=SCORERS[name],
        cv=FullSampleSplit(),
        error_score="raise",
    ).fit(BLOBS)
    assert search.best_params_ == {"n_clusters": 4}
    assert search.best_score_ == SCORERS[name](search.best_estimator_, BLOBS)


@pytest.mark.parametrize("reference", ["box", "pca"])
def test_the_first_gap_is_at_four_clusters_and_can_be_at_one(reference):
    search = GridSearchCV(
        kmeans(),
        {"n_clusters": UP},
        scoring=GapScorer(details=True, reference=reference),
        cv=FullSampleSplit(),
        refit=first_gap,
        error_score="raise",
    )
    # in a plane: four clusters on a simplex have no gap at 2, where the rule stops
    flat, _ = make_blobs(120, centers=4, random_state=3)
    assert search.fit(flat).best_params_ == {"n_clusters": 4}
    cloud = np.random.default_rng(0).normal(size=(120, 3))
    assert search.fit(cloud).best_params_ == {"n_clusters": 1}


@each
def test_details_in_a_search_of_a_pipeline(scorer):
    score = detailed(scorer)._score_name()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), kmeans()),
        {"kmeans__n_clusters": [6, 4, 2]},
        scoring=detailed(scorer),
        cv=FullSampleSplit(),
        refit=score,
        error_score="raise",
    ).fit(BLOBS)
    assert search.best_params_ == {"kmeans__n_clusters": 4}
    names = KEYS[type(scorer)]
    columns = {f"mean_test_{name}" for name in names}
    assert columns == {name for name in search.cv_results_ if name.startswith("mean_test_")}
    found = detailed(scorer)(search.best_estimator_, BLOBS)
    assert found.keys() == names
    assert all(type(value) is float for value in found.values())
    assert found[score] == search.best_score_ == scorer(search.best_estimator_, BLOBS)


@each_copying
def test_processes_do_not_matter(scorer):
    model = KMeans(5, n_init=1, init="random").fit(BLOBS)  # its copies have seeds of their own
    once = detailed(scorer)(model, BLOBS)
    assert detailed(scorer, n_jobs=2)(model, BLOBS) == once


@each
def test_a_search_in_processes_finds_the_same(scorer):
    tables = [
        GridSearchCV(
            kmeans(init="random", n_init=1),
            {"n_clusters": [3, 5]},
            scoring=detailed(scorer),
            cv=FullSampleSplit(),
            refit=False,
            n_jobs=n_jobs,
            error_score="raise",
        )
        .fit(BLOBS)
        .cv_results_
        for n_jobs in (1, 2)
    ]
    for name in KEYS[type(scorer)]:
        one, other = (table[f"mean_test_{name}"] for table in tables)
        assert_array_equal(one, other)


# --- manners -----------------------------------------------------------------------------------


@each
def test_a_scorer_is_an_estimator_in_its_manners(scorer):
    parameters = scorer.get_params(deep=False)
    again = clone(scorer)
    assert again.get_params(deep=False).keys() == parameters.keys()
    assert repr(again) == repr(scorer)
    assert set(parameters) - set(scorer._parameter_constraints) <= {"random_state"}
    assert pickle.loads(pickle.dumps(scorer))(kmeans().fit(BLOBS), BLOBS) == again(
        kmeans().fit(BLOBS), BLOBS
    )
    routed = again.set_score_request(sample_weight="mass").get_metadata_routing()
    assert routed.score.requests == {"constraints": True, "sample_weight": "mass"}


@each
def test_the_estimator_and_the_samples_are_left_alone(scorer):
    model, samples = kmeans().fit(BLOBS), BLOBS.copy()
    before = pickle.dumps(model)
    scorer(model, samples)
    assert pickle.dumps(model) == before
    assert_array_equal(samples, BLOBS)


@each
def test_seeds_matter_and_are_repeatable(scorer):
    near = BLOBS + np.random.default_rng(0).normal(scale=3, size=BLOBS.shape)
    model = kmeans(6, n_init=1).fit(near)
    found = [detailed(scorer, random_state=seed)(model, near) for seed in (0, 1, 0)]
    assert found[0] == found[2] != found[1]


@each
def test_frames_lists_and_small_numbers_are_features(scorer):
    whole = np.rint(10 * BLOBS)
    expected = scorer(kmeans().fit(whole), whole)
    frame = pd.DataFrame(whole, columns=list("abcd"), index=np.arange(120)[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for samples in (frame, whole.tolist(), whole.astype(np.int16)):
            model = kmeans().fit(samples)
            assert scorer(model, samples) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["stadion", "gap", "null"])
def test_frames_of_sparse_columns_are_refused_where_tables_are_drawn(name):
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(np.maximum(BLOBS, 0)))
    with pytest.raises(ValueError, match=r"must be dense.* DataFrame: give it X\.sparse\.to_dense"):
        SCORERS[name](kmeans().fit(frame), frame)


@each
def test_clusters_of_any_name_are_scored(scorer):
    class Named(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            super().fit(X)
            self.labels_ = np.array(["ant", "bee", "cat", "dog", "elk"])[self.labels_]
            return self

        def predict(self, X):
            return np.array(["ant", "bee", "cat", "dog", "elk"])[super().predict(X)]

    for k in (2, 5):
        named = Named(k, n_init=1, random_state=0).fit(BLOBS)
        expected = scorer(kmeans(k, n_init=1).fit(BLOBS), BLOBS)
        assert scorer(named, BLOBS) == pytest.approx(expected)


# --- what fit takes ----------------------------------------------------------------------------


class Weighed(KMeans):
    """Asks for a weight of every sample."""

    def fit(self, X, y=None, sample_weight=None):
        if sample_weight is None or len(sample_weight) != len(X):
            raise ValueError("weigh every sample")
        return super().fit(X, sample_weight=sample_weight)


@each_copying
def test_weights_reach_the_copies(scorer):
    model = Weighed(4, n_init=1, random_state=0)
    weights = np.random.default_rng(0).uniform(size=120)
    model.fit(BLOBS, sample_weight=weights)
    strict = clone(scorer).set_params(error_score="raise")
    given = strict(model, BLOBS, sample_weight=weights)
    assert np.isfinite(given)
    held = clone(strict).set_params(fit_params={"sample_weight": weights})
    assert held(model, BLOBS) == given
    with pytest.raises(ValueError, match="weigh every sample"):
        strict(model, BLOBS)
    with pytest.raises(TypeError, match="'sample_weight' is given both in fit_params and"):
        held(model, BLOBS, sample_weight=weights)
    with pytest.raises(ValueError, match="sample_weight in fit_params must have one entry for"):
        strict(model, BLOBS, sample_weight=weights[:-1])
    with pytest.raises(ValueError, match="y must have one entry for each of the 120 samples"):
        strict(model, BLOBS, y=TRUTH[:-1])


@pytest.mark.parametrize("name", ["strength", "transfer", "pac"])
def test_constraints_are_routed_to_the_copies(name):
    pairs = PairwiseConstraints.from_labels(TRUTH, n_pairs=60, random_state=0)
    model = SSNMFClusterer(3, affinity="linear", n_init=1, random_state=0)
    held = clone(SCORERS[name]).set_params(fit_params={"constraints": pairs})
    positive = BLOBS - BLOBS.min(axis=0)
    expected = held(model, positive)
    assert expected != SCORERS[name](model, positive)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            clone(model).set_fit_request(constraints=True),
            {"n_clusters": [3]},
            scoring=SCORERS[name],
            cv=FullSampleSplit(),
            error_score="raise",
        ).fit(positive, constraints=pairs)
    assert search.best_score_ == expected
    with pytest.warns(UserWarning, match="copies without the constraints"):
        SCORERS[name](clone(model).fit(positive, constraints=pairs), positive)


# --- failures ----------------------------------------------------------------------------------


@each_copying
@pytest.mark.parametrize("score", [np.nan, -1])
def test_copies_that_fail_have_the_error_score(scorer, score):
    model = Fragile(4, known=BLOBS).fit(BLOBS)
    says = rf"^{type(scorer).__name__}: \w+ .*failed; the score is {float(score)}.*: too odd"
    for details in (False, True):
        tolerant = clone(scorer).set_params(error_score=score, details=details)
        with pytest.warns(FitFailedWarning, match=says):
            found = tolerant(model, BLOBS)
        values = list(found.values()) if details else [found]
        assert_array_equal(values, float(score))
        assert not details or found.keys() == KEYS[type(scorer)]


@each_copying
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_copies_that_fail_raise_if_asked(scorer, n_jobs):
    strict = clone(scorer).set_params(error_score="raise", n_jobs=n_jobs)
    with pytest.raises(ValueError, match="too odd") as caught:
        strict(Fragile(4, known=BLOBS).fit(BLOBS), BLOBS)
    assert caught.value.__notes__[0].startswith(f"{type(scorer).__name__}: ")


class Square(ClusterMixin, BaseEstimator):
    """Has a table for labels."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros((len(X), 2), dtype=int)


@pytest.mark.parametrize("name", ["strength", "transfer", "stadion", "pac", "null"])
def test_what_predicts_no_labels_fails(name):
    strict = clone(SCORERS[name]).set_params(error_score="raise")
    with pytest.raises(ValueError, match=r"each of \d+ samples a label, got labels of shape"):
        strict(Square().fit(BLOBS), BLOBS)


@each
def test_parts_of_the_samples_are_refused_in_any_search(scorer):
    with pytest.raises(RuntimeError, match="needs all samples: give the search cv=FullSampleSplit"):
        GridSearchCV(kmeans(), {"n_clusters": [2]}, scoring=scorer, cv=3).fit(BLOBS)


BAD = {
    "details": "yes",
    "error_score": "ignore",
    "n_jobs": 1.5,
    "fit_params": [1],
    "n_splits": 1,
    "n_levels": 1,
    "n_perturbations": 0,
    "max_noise": 0,
    "omega": 3,
    "aggregate": "median",
    "criterion": "area",
    "n_subsamples": 1,
    "subsample_size": 1.0,
    "interval": 0.5,
    "max_samples": 1,
    "metric": "hamming",
    "n_references": 1,
    "reference": "normal",
    "null": "uniform",
    "scorer": "silhouette",
    "random_state": None,
    "statistic": "median",
}


@pytest.mark.parametrize(
    ("scorer", "name"),
    [
        (scorer, name)
        for scorer in [*SCORERS.values(), RecurrenceScorer()]
        for name in scorer.get_params(deep=False)
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_bad_parameters_are_refused_by_name(scorer, name):
    with pytest.raises(ValueError, match=rf"\b{name}\b.* {type(scorer).__name__} must be"):
        clone(scorer).set_params(**{name: BAD[name]})(kmeans().fit(BLOBS), BLOBS)
