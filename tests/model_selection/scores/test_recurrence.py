"""The recurrence of a fit as its score."""

import numpy as np
import pytest
from model_selection.clusterers import X, kmeans
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_signatures
from nmfcluster.model_selection import FullSampleSplit, RecurrenceScorer

COUNTS, _, _ = make_signatures(60, 4, 40, random_state=0)
RUNS = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=5, random_state=0)


@pytest.fixture(scope="module")
def model():
    return clone(RUNS).set_params(n_clusters=6).fit(COUNTS)


def test_details_are_attributes_of_the_fit(model):
    details = RecurrenceScorer(details=True)(model, COUNTS)
    assert len(set(model.recurrence_)) > 1
    assert details == {
        "smallest_recurrence": min(model.recurrence_),
        "recurrence": pytest.approx(sum(model.recurrence_) / 6),
        "neg_reconstruction_err": -model.reconstruction_err_,
    }
    assert RecurrenceScorer()(model, COUNTS) == details["smallest_recurrence"]
    assert RecurrenceScorer("mean")(model, COUNTS) == details["recurrence"]
    assert RecurrenceScorer("mean", details=True)(model, COUNTS) == details


@pytest.mark.parametrize("statistic", ["min", "mean"])
def test_the_number_of_signatures_is_found_in_a_pipeline(statistic):
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), RUNS),
        {"nmfmetacluster__n_clusters": [6, 5, 4]},
        scoring=RecurrenceScorer(statistic),
        cv=FullSampleSplit(),
        error_score="raise",
    ).fit(COUNTS)
    assert search.best_params_ == {"nmfmetacluster__n_clusters": 4}
    best = search.best_estimator_[-1].recurrence_
    assert search.best_score_ == pytest.approx(best.min() if statistic == "min" else best.mean())


@pytest.mark.parametrize("other", [kmeans(), make_pipeline(MaxAbsScaler(), kmeans()), 3])
def test_what_has_no_runs_is_refused(other):
    with pytest.raises(TypeError, match="estimator must"):
        RecurrenceScorer()(other, X)


def test_it_needs_a_fit_to_all_samples(model):
    with pytest.raises(NotFittedError):
        RecurrenceScorer()(RUNS, COUNTS)
    with pytest.raises(ValueError, match="X has 30 samples, but the estimator was fitted on 60"):
        RecurrenceScorer()(model, COUNTS[:30])
    with pytest.raises(ValueError, match="'statistic' parameter of RecurrenceScorer"):
        RecurrenceScorer("median")(model, COUNTS)
    assert np.isfinite(RecurrenceScorer()(model, COUNTS))
