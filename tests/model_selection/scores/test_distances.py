"""Silhouettes and gaps, against loops over pairs of samples."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from model_selection.clusterers import W, X, kmeans
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import SSNMFClusterer
from nmfcluster.model_selection import GapScorer, SilhouetteScorer, first_gap
from nmfcluster.model_selection.scores.references import reference_of

ESTIMATORS = {
    "k-means": kmeans(4),
    "one": kmeans(1),
    "tree": AgglomerativeClustering(5),
    "mixture": GaussianMixture(3, random_state=0),
    "noise": DBSCAN(eps=1.2, min_samples=3),
    "pipeline": make_pipeline(StandardScaler(), kmeans(2)),
}


class Labelled(ClusterMixin, BaseEstimator):
    """Has the labels that it is told to have."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y=None):
        self.labels_ = np.asarray(self.labels)
        return self


def labels_of(model, samples):
    last = model[-1] if hasattr(model, "steps") else model
    return last.labels_ if hasattr(last, "labels_") else model.predict(samples)


# --- silhouette --------------------------------------------------------------------------------


def literal_silhouettes(X, labels, distance):
    """Compute the silhouette of Rousseeuw (1987) sample by sample; 0 for those in no cluster."""
    clusters = sorted(set(labels) - {-1})
    values = np.zeros(len(X))
    if len(clusters) < 2:
        return values
    for i, own in enumerate(labels):
        mates = [j for j in range(len(X)) if labels[j] == own and j != i]
        if own < 0 or not mates:
            continue
        a = np.mean([distance(X[i], X[j]) for j in mates])
        b = min(
            np.mean([distance(X[i], X[j]) for j in np.flatnonzero(labels == c)])
            for c in clusters
            if c != own
        )
        values[i] = (b - a) / max(a, b)
    return values


METRICS = {
    "euclidean": lambda a, b: np.sqrt(((a - b) ** 2).sum()),
    "manhattan": lambda a, b: np.abs(a - b).sum(),
    "cosine": lambda a, b: 1 - a @ b / np.sqrt(a @ a * (b @ b)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("metric", METRICS)
def test_silhouettes_are_those_of_loops(name, metric):
    samples = X[:60] + 9
    model = clone(ESTIMATORS[name]).fit(samples)
    labels = labels_of(model, samples)
    values = literal_silhouettes(samples, labels, METRICS[metric])
    clusters = sorted(set(labels) - {-1})
    expected = {
        "silhouette": values.mean(),
        "smallest_silhouette": min(values[labels == c].mean() for c in clusters),
        "n_clusters": len(clusters),
    }
    found = SilhouetteScorer(metric, details=True)(model, samples)
    assert found == pytest.approx(expected)
    called = SilhouetteScorer(METRICS[metric], details=True)(model, samples)
    assert called == pytest.approx(expected)


def test_of_many_samples_some_silhouettes_are_computed():
    model = kmeans(4).fit(X)
    drawn = np.random.default_rng(7).permutation(120)[:50]
    found = SilhouetteScorer(max_samples=50, random_state=7)(model, X)
    assert found == pytest.approx(silhouette_score(X[drawn], model.labels_[drawn]))
    assert found != SilhouetteScorer(max_samples=50, random_state=8)(model, X)


def test_silhouettes_of_sparse_tables_are_those_of_dense_ones():
    model = kmeans(4).fit(X)
    for form in (sp.csr_array, sp.coo_matrix):
        assert SilhouetteScorer()(model, form(X)) == pytest.approx(SilhouetteScorer()(model, X))


@pytest.mark.parametrize("labels", [np.zeros(120), np.arange(120), np.full(120, -1)])
def test_no_two_clusters_have_silhouette_0(labels):
    found = SilhouetteScorer(details=True)(Labelled(labels.astype(int)).fit(X), X)
    assert found["silhouette"] == found["smallest_silhouette"] == 0
    assert found["n_clusters"] == len(set(labels) - {-1})


LABELLINGS = st.lists(st.integers(-1, 3), min_size=120, max_size=120)


@given(LABELLINGS, st.permutations(range(4)))
def test_names_of_clusters_do_not_matter(labels, order):
    renamed = np.append(order, -1)[labels]
    for scorer in (SilhouetteScorer(details=True), GapScorer(2)):
        one, other = (scorer(Labelled(y).fit(X), X) for y in (labels, renamed))
        assert one == pytest.approx(other)
    assert -1 <= SilhouetteScorer()(Labelled(labels).fit(X), X) <= 1


# --- gap ---------------------------------------------------------------------------------------


def literal_log_dispersion(X, labels):
    """Compute log W of Tibshirani, Walther and Hastie (2001), eqs. 1 and 2, pair by pair."""
    total = 0.0
    for c in set(labels) - {-1}:
        rows = X[labels == c]
        total += sum(((a - b) ** 2).sum() for a in rows for b in rows) / (2 * len(rows))
    return np.log(total)


def literal_tables(X, reference, n_references, seed):
    for b in range(n_references):
        rng = np.random.default_rng((seed, b))
        if reference == "box":
            yield rng.uniform(X.min(axis=0), X.max(axis=0), X.shape)
            continue
        mean = X.mean(axis=0)
        axes = np.linalg.svd(X - mean, full_matrices=False)[2]
        turned = (X - mean) @ axes.T
        yield rng.uniform(turned.min(axis=0), turned.max(axis=0), X.shape) @ axes + mean


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("reference", ["box", "pca"])
def test_gaps_are_those_of_pairwise_distances(name, reference):
    samples, B = X[:50] * [1, 2, 3], 3
    model = clone(ESTIMATORS[name]).set_params(**({"eps": 2.5} if name == "noise" else {}))
    model.fit(samples)
    own = literal_log_dispersion(samples, labels_of(model, samples))
    logs = []
    for table in literal_tables(samples, reference, B, 6):
        copy = clone(model).fit(table)
        logs.append(literal_log_dispersion(table, labels_of(copy, table)))
    mean = sum(logs) / B
    sd = np.sqrt(sum((log - mean) ** 2 for log in logs) / B)
    expected = {"gap": mean - own, "gap_se": sd * np.sqrt(1 + 1 / B)}
    scorer = GapScorer(B, reference=reference, details=True, random_state=6)
    assert scorer(model, samples) == pytest.approx(expected)


def test_uniform_tables_stay_where_the_data_are():
    turned = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] * [1, 5, 1]
    box = reference_of(turned, "box").drawn(np.random.default_rng(0))
    assert (box.min(axis=0) >= turned.min(axis=0)).all()
    assert (box.max(axis=0) <= turned.max(axis=0)).all()
    pca = reference_of(turned, "pca").drawn(np.random.default_rng(0))
    _, axes = np.linalg.eigh(np.cov(turned.T))  # in another order, of other signs
    ends = [((table - turned.mean(axis=0)) @ axes).T for table in (pca, turned)]
    assert (ends[0].min(axis=1) >= ends[1].min(axis=1)).all()
    assert (ends[0].max(axis=1) <= ends[1].max(axis=1)).all()


def test_a_uniform_table_has_no_gap():
    table = np.random.default_rng(3).uniform(size=(200, 2))
    found = GapScorer(20, details=True)(kmeans(1).fit(table), table)
    assert abs(found["gap"]) < 3 * found["gap_se"]
    assert GapScorer()(kmeans(3).fit(X), X) > 0.3


def test_clusters_of_equal_samples_have_no_gap():
    table = np.repeat(np.eye(2), 5, axis=0)
    with pytest.warns(FitFailedWarning, match=r"log W of X failed.*fit fewer clusters"):
        assert np.isnan(GapScorer(2)(kmeans(2).fit(table), table))
    assert np.isfinite(GapScorer(2)(kmeans(1).fit(table), table))


def test_a_reference_in_which_all_is_noise_has_no_gap():
    """Density finds clusters in the data, and none in a uniform table."""
    table = np.vstack([X, [[99.0, 99.0, 99.0]]])  # references fill the box up to it
    model = DBSCAN(eps=1.2, min_samples=3).fit(table)
    with pytest.warns(FitFailedWarning, match=r"reference 0 of 2 \(n_references\) failed.*W=0"):
        found = GapScorer(2, details=True)(model, table)
    assert np.isnan(list(found.values())).all()


@pytest.mark.parametrize("scorer", [SilhouetteScorer(), GapScorer(2)], ids=str)
def test_what_distances_need_is_asked_for(scorer):
    with pytest.raises(NotFittedError):
        scorer(kmeans(), X)
    model = SSNMFClusterer(3, affinity="precomputed", n_init=1, random_state=0).fit(W)
    with pytest.raises(ValueError, match=r"X must hold features for .*holds similarities"):
        scorer(model, W)
    with pytest.raises(TypeError, match=r"must have labels_ or predict.* StandardScaler has"):
        scorer(StandardScaler().fit(X), X)
    with pytest.raises(ValueError, match="X has 60 samples, but the estimator was fitted on 120"):
        scorer(kmeans().fit(X), X[:60])


def test_gaps_need_dense_tables():
    with pytest.raises(ValueError, match=r"X must be dense for GapScorer.*X\.toarray\(\)"):
        GapScorer(2)(kmeans().fit(X), sp.csr_array(X))


# --- the first gap -----------------------------------------------------------------------------

COLUMN = st.floats(-1, 1) | st.just(np.nan)


@given(st.lists(st.tuples(COLUMN, st.floats(0, 0.5)), min_size=1, max_size=8))
def test_the_first_gap_is_that_of_a_loop(rows):
    gaps, errors = np.array(rows).T
    results = {"mean_test_gap": gaps, "mean_test_gap_se": errors}
    known = [i for i in range(len(gaps)) if not np.isnan(gaps[i])]
    if not known:
        with pytest.raises(ValueError, match="cv_results must hold a gap; all are NaN"):
            first_gap(results)
        return
    expected = known[-1]
    for i, j in reversed(list(pairwise(known))):
        if gaps[i] >= gaps[j] - errors[j]:
            expected = i
    assert first_gap(results) == expected


def test_the_first_gap_asks_for_gaps():
    with pytest.raises(ValueError, match=r"'mean_test_gap'.*scoring=GapScorer\(details=True\)"):
        first_gap({"mean_test_score": [1.0]})
    with pytest.raises(ValueError, match="'mean_test_gap_se'"):
        first_gap({"mean_test_gap": [1.0]})
