"""Estimators that cannot be scored, and splits that do not hand over all samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from model_selection.clusterers import STACK, Stack, StackClusterer, W, X, kmeans
from refusals import raises_naming, warns_naming
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import SSNMFClusterer
from nmfcluster.model_selection import ConstraintScorer, StabilityScorer


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (KMeans.predict, ("get_params", "function")),
        (None, ("get_params", "NoneType")),
    ],
)
def test_what_cannot_be_asked_for_clusters_is_refused(estimator, message):
    with raises_naming(TypeError, message):
        StabilityScorer(3)(estimator, W)


def test_similarities_that_are_not_whole_are_refused():
    pd = pytest.importorskip("pandas")
    estimator = SSNMFClusterer(3, affinity="precomputed")
    for similarity, message in (
        (W[:40], ("shape", "(40, 120)", "cv=FullSampleSplit")),
        (W[:40, 40:80], "symmetric"),
        (W[0], ("shape", "(120,)")),
        (W[:40].tolist(), ("shape", "(40, 120)")),
        (sp.csr_array(W[:60, 60:]), "symmetric"),
        (pd.DataFrame(W[:60, 60:]), "symmetric"),
        (pd.DataFrame(W[:60, 60:]).astype(pd.SparseDtype(float, 0)), "symmetric"),
    ):
        with raises_naming(ValueError, message):
            StabilityScorer(3)(estimator, similarity)


def test_stacks_that_are_not_whole_are_refused():
    for part in (STACK[:40], Stack(STACK[:40])):
        with raises_naming(ValueError, "(40, 120, 2)", "cv=FullSampleSplit"):
            StabilityScorer(3)(StackClusterer(), part)
    second = STACK.copy()
    second[0, 1, 1] = 2
    for asymmetric in (STACK[:60, 60:], second):
        with raises_naming(ValueError, "cv=FullSampleSplit", "symmetric"):
            StabilityScorer(3)(StackClusterer(), asymmetric)


@pytest.mark.parametrize(
    ("estimator", "samples"),
    [
        (kmeans(), X),
        (make_pipeline(StandardScaler(), kmeans()), X),
        (SSNMFClusterer(3, affinity="precomputed", n_init=1), W),
        (StackClusterer(), STACK),
    ],
)
def test_other_splits_are_refused(estimator, samples):
    for cv in (5, KFold(3, shuffle=True, random_state=0)):
        with raises_naming(ValueError, "cv=FullSampleSplit"):
            cross_validate(
                estimator,
                samples,
                scoring=StabilityScorer(3),
                cv=cv,
                error_score="raise",
            )


def test_halves_of_a_similarity_are_refused():
    for estimator, samples in (
        (SSNMFClusterer(3, affinity="precomputed"), W),
        (StackClusterer(), STACK),
    ):
        with raises_naming(ValueError, "cv=FullSampleSplit", "symmetric"):
            cross_validate(
                estimator,
                samples,
                scoring=StabilityScorer(3),
                cv=2,
                error_score="raise",
            )


MISUSED = {
    "folds": (kmeans(), StabilityScorer(3), 3, ValueError, "cv=FullSampleSplit"),
    "no pairs": (
        SSNMFClusterer(2),
        ConstraintScorer(),
        2,
        TypeError,
        "constraints",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", MISUSED)
def test_a_search_makes_nan_of_misuse_or_raises_if_asked(how):
    estimator, scorer, cv, kind, says = MISUSED[how]
    search = GridSearchCV(estimator, {}, scoring=scorer, cv=cv, refit=False)
    with warns_naming(UserWarning, "Scoring failed", says):
        search.fit(X)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    with raises_naming(kind, says):
        search.set_params(error_score="raise").fit(X)
