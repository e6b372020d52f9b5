"""Stability against literal loops, and parameters chosen by it."""

import pickle
from itertools import combinations, product

import numpy as np
import pytest
from model_selection.clusterers import (
    NAMED,
    STACK,
    StackClusterer,
    Told,
    W,
    X,
    Y,
    kmeans,
)
from refusals import raises_naming
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nmfcluster import NMFConsensus, PairwiseConstraints, SSNMFClusterer
from nmfcluster.datasets import make_partitions
from nmfcluster.metrics import differing_share
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer, scorers

KNOWN = PairwiseConstraints.from_labels(Y, n_pairs=300, random_state=0)
ALL = FullSampleSplit()

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


def literal_details(estimator, X, scorer, cut):
    """Compute stability with loops, from the draws that the scorer documents to be its own."""
    n, B = len(X), scorer.n_subsamples
    size = round(scorer.subsample_size * n)
    labels = []
    for b in range(B):
        rng = np.random.default_rng((scorer.random_state, b))
        rows = np.sort(rng.choice(n, size, replace=False, shuffle=False))
        train, everything = cut(X, rows)
        # as the scorer does: small fits are slower in two threads
        with threadpool_limits(1):
            copy = clone(estimator).fit(train)
        if hasattr(copy, "predict"):
            labels.append(copy.predict(everything))
        else:  # as the nearest one
            labels.append(copy.labels_[cdist(everything, train).argmin(axis=1)])
    rng = np.random.default_rng(scorer.random_state)
    random = [rng.permutation(one) for one in labels]
    pairs = list(combinations(range(B), 2))
    d = np.mean([differing_share(labels[i], labels[j]) for i, j in pairs])
    c = np.mean([differing_share(random[i], random[j]) for i, j in pairs])
    sizes = [np.unique(one[one >= 0], return_counts=True)[1] / n for one in labels]
    return {
        "disagreement": d,
        "chance": c,
        "largest_share": np.mean([s.max() for s in sizes]),
        "smallest_share": np.mean([s.min() for s in sizes]),
        "n_clusters": np.mean([len(s) for s in sizes]),
    }


def rows_of(X, rows):
    return X[rows], X


def block_of(X, rows):
    return X[np.ix_(rows, rows)], X[:, rows]


ESTIMATORS = {
    "k-means": (kmeans(4), X, rows_of),
    "mixture": (GaussianMixture(2, random_state=0), X, rows_of),
    "consensus": (
        NMFConsensus(5, n_estimators=3, n_init=1, random_state=0),
        X,
        rows_of,
    ),
    "precomputed": (
        SSNMFClusterer(4, affinity="precomputed", n_init=1, random_state=0),
        W,
        block_of,
    ),
    "partitions": (
        NMFConsensus(3, affinity="partitions", n_init=1, random_state=0),
        make_partitions((50, 40, 30), n_partitions=8, noise=0.4, random_state=0)[0],
        rows_of,
    ),
    "stack": (StackClusterer(4), STACK, block_of),
    "tree": (AgglomerativeClustering(4), X, rows_of),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_details_are_those_of_a_literal_loop(name):
    estimator, samples, cut = ESTIMATORS[name]
    scorer = StabilityScorer(5, subsample_size=0.3, details=True, random_state=3)
    details = scorer(estimator, samples)
    expected = literal_details(estimator, samples, scorer, cut)
    for detail, value in expected.items():
        assert details[detail] == pytest.approx(value), detail
    c, d = expected["chance"], expected["disagreement"]
    assert 0 < d < c
    assert details["stability"] == pytest.approx(c - d)
    score = clone(scorer).set_params(adjust="ratio", details=False)(estimator, samples)
    assert score == pytest.approx(1 - d / c)
    assert isinstance(score, float)


def test_standard_error_is_that_of_other_subsamples():
    estimator = kmeans(4, n_init=1)
    scorers = [
        StabilityScorer(8, details=True, random_state=seed) for seed in range(12)
    ]
    details = [scorer(estimator, X) for scorer in scorers]
    actual = np.std([d["stability"] for d in details], ddof=1)
    estimated = np.mean([d["stability_se"] for d in details])
    assert 0.5 < estimated / actual < 2


def test_seeds_matter_and_are_repeatable():
    scores = {
        StabilityScorer(5, random_state=seed)(kmeans(5), X) for seed in (0, 1, 0, 1)
    }
    assert len(scores) == 2


def test_it_is_an_estimator_in_its_manners():
    scorer = StabilityScorer(4, fit_params={"constraints": KNOWN}, adjust="ratio")
    again = clone(scorer)
    assert again.get_params()["fit_params"] == {"constraints": KNOWN}
    assert repr(StabilityScorer(4)) == "StabilityScorer(n_subsamples=4)"
    model = SSNMFClusterer(3, n_init=1, random_state=0)
    assert pickle.loads(pickle.dumps(scorer))(model, X) == again(model, X)


# --- what is worthless -----------------------------------------------------------------------


def test_one_cluster_is_no_better_than_chance():
    for adjust, apart in product(("difference", "ratio"), (0, 1, 5)):
        labels = np.zeros(120, dtype=int)
        labels[:apart] = 1  # always the same samples: no disagreement
        details = StabilityScorer(5, adjust=adjust, details=True)(
            Told(labels[None]), NAMED
        )
        assert details["disagreement"] == 0
        assert details["stability"] == 0


def test_nearly_all_samples_in_one_cluster_are_no_better_than_chance(monkeypatch):
    table = (np.random.default_rng(0).uniform(size=(7, 120)) < 0.03).astype(int)
    scorer = StabilityScorer(5, details=True)
    scored = scorer(Told(table), NAMED)
    assert scored["stability"] <= 0
    assert scored["stability_se"] == 0
    two = np.repeat([0, 1], [118, 2])[None]
    ratio = StabilityScorer(5, adjust="ratio")
    assert ratio(Told(two), NAMED) == 0
    monkeypatch.setattr(scorers, "_MAX_LARGEST_SHARE", 1.0)
    assert scorer(Told(table), NAMED)["stability_se"] > 0
    assert ratio(Told(two), NAMED) == 1
    assert ratio(Told(0 * two), NAMED) == 0  # chance does as well


def test_random_clusters_are_no_better_than_chance():
    table = np.random.default_rng(0).integers(3, size=(119, 120))
    for adjust in ("difference", "ratio"):
        scorer = StabilityScorer(20, adjust=adjust, details=True)
        details = scorer(Told(table), NAMED)
        assert abs(details["stability"]) < 0.03
        assert details["chance"] > 0.5


def test_samples_in_no_cluster_are_placed_differently():
    half = np.where(np.arange(120) < 60, -1, np.arange(120) % 2)[None]
    details = StabilityScorer(4, details=True)(Told(half), NAMED)
    assert details["disagreement"] == 0.5
    assert details["largest_share"] == details["smallest_share"] == 0.25
    nothing = StabilityScorer(4, details=True)(Told(np.full((1, 120), -1)), NAMED)
    assert nothing["stability"] == 0
    assert nothing["disagreement"] == nothing["chance"] == 1
    assert nothing["n_clusters"] == 0


def test_collapse_loses_a_search():
    """All samples in one cluster are perfectly stable."""
    collapsed = np.zeros((1, 120), dtype=int)
    noisy = np.stack([np.where(np.random.default_rng(s).uniform(size=120) < 0.1, s % 3, Y)
                      for s in range(7)])  # fmt: skip
    search = GridSearchCV(
        Told(noisy), {"table": [collapsed, noisy]}, scoring=StabilityScorer(8), cv=ALL,
        error_score="raise",
    ).fit(NAMED)  # fmt: skip
    assert search.best_index_ == 1
    told = StabilityScorer(8, details=True)
    assert (
        told(Told(collapsed), NAMED)["disagreement"]
        < told(Told(noisy), NAMED)["disagreement"]
    )


# --- what is chosen --------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n_blobs", "seed"), [(2, 0), (6, 1)])
def test_the_number_of_blobs_is_found(n_blobs, seed):
    centers = 8 * np.eye(n_blobs)
    blobs, y = make_blobs(
        40 * n_blobs, centers=centers, cluster_std=1.5, random_state=seed
    )
    search = GridSearchCV(
        kmeans(), {"n_clusters": range(2, 8)}, scoring=StabilityScorer(6), cv=ALL,
        error_score="raise",
    ).fit(blobs)  # fmt: skip
    assert search.best_params_ == {"n_clusters": n_blobs}
    assert adjusted_rand_score(y, search.best_estimator_.labels_) > 0.95


def test_the_number_of_components_of_a_mixture_is_found():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GaussianMixture(random_state=0)),
        {"gaussianmixture__n_components": [2, 3, 4, 5]},
        scoring=StabilityScorer(5, subsample_size=60),
        cv=ALL,
        error_score="raise",
    ).fit(X)
    assert search.best_params_ == {"gaussianmixture__n_components": 3}


def test_a_weight_of_sources_is_found():
    rng = np.random.default_rng(0)
    noise = rng.uniform(size=(120, 120))
    stack = np.stack([W, (noise + noise.T) / 2], axis=2)
    search = GridSearchCV(
        StackClusterer(3), {"weight": [0.0, 0.5, 1.0]}, scoring=StabilityScorer(8), cv=ALL,
        error_score="raise",
    ).fit(stack)  # fmt: skip
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] < scores[2] - 0.3
    assert search.best_params_ != {"weight": 0.0}


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"subsample_size": 1.0}, ("subsample_size", "(0.0, 1.0)", "1.0")),
        ({"subsample_size": 0.01}, ("subsample_size=0.01", "1", "120", "2")),
        ({"subsample_size": "half"}, ("subsample_size", "'half'")),
        (
            {"random_state": np.random.RandomState(0)},
            ("random_state", "RandomState(MT19937)"),
        ),
        ({"random_state": True}, ("random_state", "True")),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with raises_naming(ValueError, message):
        StabilityScorer(**{"n_subsamples": 3} | parameters)(kmeans(), X)
