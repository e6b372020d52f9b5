"""What goes with the samples reaches the copies, cut like the samples."""

import warnings

import numpy as np
import pytest
import sklearn
from model_selection.clusterers import NAMED, X, Y, kmeans
from model_selection.recorders import (
    KNOWN,
    WEIGHT,
    WantsAll,
    WantsNoWeight,
    WantsTarget,
    WantsWeight,
)
from refusals import raises_naming, warns_naming
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

# a copy that fails must not pass for one without a score
pytestmark = [
    pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning"),
    pytest.mark.filterwarnings("error:StabilityScorer scores copies without"),
]

ALL = FullSampleSplit()


def test_fit_params_are_cut_like_the_samples(routing):
    given = {"sample_weight": WEIGHT, "constraints": KNOWN}
    model = WantsAll(3, n_init=1, random_state=0)
    scorer = StabilityScorer(4, fit_params=given)
    assert scorer(model, NAMED, Y) == StabilityScorer(4)(kmeans(n_init=1), X)
    assert StabilityScorer(4, fit_params={"sample_weight": WEIGHT.tolist()})(
        WantsWeight(3, n_init=1, random_state=0), NAMED
    ) == StabilityScorer(4)(kmeans(n_init=1), X)


@pytest.mark.sampled(2)
def test_constraints_reach_the_copies(routing):
    blurred = X + 5 * np.random.default_rng(0).normal(size=X.shape)
    model = SSNMFClusterer(3, n_init=1, random_state=0)
    given = {"constraints": KNOWN}
    search = GridSearchCV(
        model, {}, scoring=StabilityScorer(4, fit_params=None if routing else given), cv=ALL,
        error_score="raise",
    ).fit(blurred, constraints=KNOWN)  # fmt: skip
    assert search.best_score_ == StabilityScorer(4, fit_params=given)(model, blurred)
    assert search.best_score_ != StabilityScorer(4)(model, blurred)


@pytest.mark.sampled(2)
def test_constraints_reach_the_copies_of_a_pipeline(routing):
    name = "constraints" if routing else "ssnmfclusterer__constraints"
    model = make_pipeline(StandardScaler(), SSNMFClusterer(3, n_init=1, random_state=0))
    given = None if routing else {name: KNOWN}
    search = GridSearchCV(
        model,
        {},
        scoring=StabilityScorer(4, fit_params=given),
        cv=ALL,
        error_score="raise",
    ).fit(X, **{name: KNOWN})
    expected = StabilityScorer(4, fit_params={name: KNOWN})(model, X)
    assert search.best_score_ == expected


def test_weights_are_routed_as_the_estimator_requests():
    with sklearn.config_context(enable_metadata_routing=True):
        wants = WantsWeight(3, n_init=1, random_state=0).set_fit_request(
            sample_weight=True
        )
        wants_not = WantsNoWeight(3, n_init=1, random_state=0).set_fit_request(
            sample_weight=False
        )
        for model in (wants, wants_not):
            search = GridSearchCV(
                model, {}, scoring=StabilityScorer(4), cv=ALL, error_score="raise"
            ).fit(NAMED, sample_weight=WEIGHT)
            assert search.best_score_ == StabilityScorer(4)(kmeans(n_init=1), X)
        with pytest.raises(UnsetMetadataPassedError):
            StabilityScorer(4)(kmeans(), X, sample_weight=WEIGHT)


def test_weights_reach_the_copies_without_routing():
    scorer = StabilityScorer(4)
    model = WantsWeight(3, n_init=1, random_state=0)
    expected = StabilityScorer(4)(kmeans(n_init=1), X)
    assert scorer(model, NAMED, sample_weight=WEIGHT) == expected
    # before, searches keep them
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 7):
        search = GridSearchCV(model, {}, scoring=scorer, cv=ALL, error_score="raise")
        assert search.fit(NAMED, sample_weight=WEIGHT).best_score_ == expected


def test_targets_reach_the_copies():
    score = StabilityScorer(4)(WantsTarget(3, n_init=1, random_state=0), NAMED, Y)
    assert score == StabilityScorer(4)(kmeans(n_init=1), X)


# --- bad input -------------------------------------------------------------------------------


def test_what_is_given_twice_is_refused():
    scorer = StabilityScorer(3, fit_params={"constraints": KNOWN})
    with raises_naming(TypeError, "'constraints'"):
        scorer(SSNMFClusterer(3), X, constraints=KNOWN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_weight": WEIGHT[:50]}, ("sample_weight", "120", "ndarray", "50")),
        (
            {"must_link": np.zeros((120, 2))},
            ("must_link", "fit_params", "PairwiseConstraints"),
        ),
        ({"constraints": KNOWN[:60]}, ("PairwiseConstraints", "60")),
        ({"sample_weight": {"a": 1}}, ("120", "dict")),
    ],
)
def test_arguments_of_another_length_are_refused(arguments, message):
    with raises_naming(ValueError, message):
        StabilityScorer(3, fit_params=arguments)(kmeans(), X)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_copies_without_the_constraints_of_the_estimator_are_warned_of(kind):
    X, y = make_blobs(60, centers=3, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=10, random_state=0)
    pairs = PairwiseConstraints(60, **{kind: getattr(pairs, kind)})
    fitted = SSNMFClusterer(3, n_init=1, random_state=0).fit(X, constraints=pairs)
    with warns_naming(UserWarning, "constraints") as caught:
        StabilityScorer(3, subsample_size=0.5)(fitted, X)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StabilityScorer(3, subsample_size=0.5, fit_params={"constraints": pairs})(
            fitted, X
        )


def test_a_target_of_another_length_is_refused():
    X, _ = make_blobs(60, centers=3, random_state=0)
    with raises_naming(ValueError, "y", "60"):
        StabilityScorer(3)(KMeans(3), X, np.zeros(5))
