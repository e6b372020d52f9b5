"""Estimators that do not predict, and splits that do not hand over all samples."""

import pytest
import scipy.sparse as sp
from model_selection.clusterers import STACK, Stack, StackClusterer, W, X, kmeans
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import SSNMFClusterer
from nmfcluster.model_selection import ConstraintScorer, FullSampleSplit, StabilityScorer


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (DBSCAN(), "predict.*DBSCAN has none"),
        (make_pipeline(StandardScaler(), DBSCAN()), "predict.*Pipeline has none"),
        (StandardScaler(), "predict.*StandardScaler has none"),
        (KMeans.predict, "fit and get_params.*got function"),
        (None, "fit and get_params.*got NoneType"),
    ],
)
def test_what_does_not_predict_is_refused(estimator, message):
    with pytest.raises(TypeError, match=message):
        StabilityScorer(3)(estimator, X)


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        (W[:40], r"shape \(40, 120\).*cv=FullSampleSplit"),
        (W[:40, 40:80], r"symmetric.*"),
        (W[0], r"shape \(120,\)"),
        (W.tolist(), r"shape \(\)"),
        (sp.csr_array(W[:60, 60:]), "symmetric"),
    ],
)
def test_similarities_that_are_not_whole_are_refused(similarity, message):
    estimator = SSNMFClusterer(3, affinity="precomputed")
    with pytest.raises(ValueError, match=message):
        StabilityScorer(3)(estimator, similarity)


def test_stacks_that_are_not_whole_are_refused():
    for part in (STACK[:40], Stack(STACK[:40])):
        with pytest.raises(ValueError, match=r"shape \(40, 120, 2\).*cv=FullSampleSplit"):
            StabilityScorer(3)(StackClusterer(), part)
    second = STACK.copy()
    second[0, 1, 1] = 2
    for asymmetric in (STACK[:60, 60:], second):
        with pytest.raises(ValueError, match=r"cv=FullSampleSplit.*symmetric"):
            StabilityScorer(3)(StackClusterer(), asymmetric)


def test_a_data_frame_of_similarities_is_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"sparse matrix.*got DataFrame"):
        StabilityScorer(3)(StackClusterer(), pd.DataFrame(W))


@pytest.mark.parametrize(
    ("estimator", "samples"),
    [
        (kmeans(), X),
        (make_pipeline(StandardScaler(), kmeans()), X),
        (SSNMFClusterer(3, affinity="precomputed", n_init=1), W),
        (StackClusterer(), STACK),
    ],
)
@pytest.mark.parametrize("cv", [5, KFold(3, shuffle=True, random_state=0)])
def test_other_splits_are_refused(estimator, samples, cv):
    with pytest.raises(ValueError, match="cv=FullSampleSplit"):
        cross_validate(estimator, samples, scoring=StabilityScorer(3), cv=cv, error_score="raise")


def test_halves_of_a_similarity_are_refused():
    for estimator, samples in (
        (SSNMFClusterer(3, affinity="precomputed"), W),
        (StackClusterer(), STACK),
    ):
        with pytest.raises(ValueError, match=r"cv=FullSampleSplit.*symmetric"):
            cross_validate(
                estimator, samples, scoring=StabilityScorer(3), cv=2, error_score="raise"
            )


@pytest.mark.slow
@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("estimator", "cv", "kind", "says"),
    [
        (KMeans(n_init=1), 3, RuntimeError, "FullSampleSplit"),
        (AgglomerativeClustering(), FullSampleSplit(), TypeError, "AgglomerativeClustering has"),
    ],
    ids=["folds", "no predict"],
)
def test_a_search_cannot_hide_how_it_is_misused(estimator, cv, kind, says, n_jobs, details):
    scorer = StabilityScorer(3, details=details)
    refit = "stability" if details else True
    candidates = {"n_clusters": [2, 3]}
    search = GridSearchCV(estimator, candidates, scoring=scorer, cv=cv, n_jobs=n_jobs, refit=refit)
    with pytest.raises(kind, match=says):
        search.fit(X)


def test_a_search_cannot_hide_that_constraints_were_not_given():
    candidates = {"n_clusters": [2, 3]}
    search = GridSearchCV(SSNMFClusterer(2), candidates, scoring=ConstraintScorer(), cv=2)
    with pytest.raises(TypeError, match="ConstraintScorer needs constraints"):
        search.fit(X)
