"""Stability against literal loops, and parameters chosen by it through scikit-learn's searches."""

import pickle
import warnings
from itertools import combinations

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import FitFailedWarning, UnsetMetadataPassedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import NMFConsensus, PairwiseConstraints, SSNMFClusterer
from nmfcluster.datasets import make_partitions
from nmfcluster.metrics import disagreement
from nmfcluster.metrics.agreement import disagreements, jackknife, mean_of_pairs
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer, one_standard_error

X, Y = make_blobs(120, centers=6 * np.eye(3), cluster_std=1.0, random_state=0)
W = rbf_kernel(X, gamma=0.1)
STACK = np.stack([W, rbf_kernel(X, gamma=0.5)], axis=2)
KNOWN = PairwiseConstraints.from_labels(Y, n_pairs=300, random_state=0)
ALL = FullSampleSplit()

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


@pytest.fixture(params=[False, True], ids=["no routing", "routing"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


def kmeans(n_clusters=3, **parameters):
    return KMeans(n_clusters, **{"n_init": 2, "random_state": 0} | parameters)


class StackClusterer(ClusterMixin, BaseEstimator):
    """K-means on the rows of a mixture of similarities, `weight` that of the first."""

    def __init__(self, n_clusters=3, weight=0.5):
        self.n_clusters = n_clusters
        self.weight = weight

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def _mixed(self, X):
        X = X.array if isinstance(X, Stack) else X
        return self.weight * X[:, :, 0] + (1 - self.weight) * X[:, :, 1]

    def fit(self, X, y=None):
        mixed = self._mixed(X)
        assert mixed.shape[0] == mixed.shape[1]
        np.testing.assert_allclose(mixed, mixed.T)
        self.model_ = kmeans(self.n_clusters).fit(mixed)
        self.labels_ = self.model_.labels_
        return self

    def predict(self, X):
        return self.model_.predict(self._mixed(X))


class Stack:
    """Has nothing but what splitting asks for."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, key):
        return Stack(self.array[key])


class Told(ClusterMixin, BaseEstimator):
    """Predicts a column of a table, another one for other samples."""

    def __init__(self, table, n_clusters=2):
        self.table = table
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.column_ = int(X[:, 0].sum())
        return self

    def predict(self, X):
        return np.asarray(self.table)[:, self.column_ % np.shape(self.table)[1]]


class Recorder(KMeans):
    """Checks that what it is given belongs to the rows, whose first column names the sample."""

    def fit(self, X, y=None, sample_weight=None, constraints=None):
        rows = X[:, 0].astype(int)
        if sample_weight is not None:
            np.testing.assert_array_equal(sample_weight, WEIGHT[rows])
        if constraints is not None:
            assert constraints == KNOWN[rows]
        if y is not None:
            np.testing.assert_array_equal(y, Y[rows])
        asked = {"weight": sample_weight, "constraints": constraints, "y": y}
        for name in self.wanted:
            assert asked[name] is not None, name
        for name in self.unwanted:
            assert asked[name] is None, name
        return super().fit(X[:, 1:])

    def predict(self, X):
        return super().predict(X[:, 1:])

    wanted, unwanted = (), ()


class WantsWeight(Recorder):
    wanted = ("weight",)


class WantsAll(Recorder):
    wanted = ("weight", "constraints", "y")


class WantsNoWeight(Recorder):
    unwanted = ("weight",)


WEIGHT = np.arange(1.0, 121.0)
NAMED = np.column_stack([np.arange(120), X])


# --- the score ---------------------------------------------------------------------------------


def literal_figures(estimator, X, scorer, cut):
    """Compute stability with loops, from the draws that the scorer documents to be its own."""
    n, B = len(X), scorer.n_subsamples
    size = round(scorer.subsample_size * n)
    labels = []
    for b in range(B):
        rng = np.random.default_rng((scorer.random_state, b))
        rows = np.sort(rng.choice(n, size, replace=False, shuffle=False))
        train, everything = cut(X, rows)
        labels.append(clone(estimator).fit(train).predict(everything))
    rng = np.random.default_rng(scorer.random_state)
    random = [rng.permutation(one) for one in labels]
    pairs = list(combinations(range(B), 2))
    d = np.mean([disagreement(labels[i], labels[j]) for i, j in pairs])
    c = np.mean([disagreement(random[i], random[j]) for i, j in pairs])
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
    "minibatch": (MiniBatchKMeans(4, n_init=1, random_state=0), X, rows_of),
    "mixture": (GaussianMixture(2, random_state=0), X, rows_of),
    "pipeline": (make_pipeline(StandardScaler(), kmeans(4)), X, rows_of),
    "consensus": (NMFConsensus(5, n_estimators=3, n_init=1, random_state=0), X, rows_of),
    "precomputed": (
        SSNMFClusterer(4, affinity="precomputed", n_init=1, random_state=0),
        W,
        block_of,
    ),
    "consensus of a matrix": (
        NMFConsensus(4, affinity="precomputed", n_init=1, random_state=0),
        W,
        block_of,
    ),
    "partitions": (
        NMFConsensus(3, affinity="partitions", n_init=1, random_state=0),
        make_partitions((50, 40, 30), n_partitions=8, noise=0.4, random_state=0)[0],
        rows_of,
    ),
    "stack": (StackClusterer(4), STACK, block_of),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_figures_are_those_of_a_literal_loop(name):
    estimator, samples, cut = ESTIMATORS[name]
    scorer = StabilityScorer(5, subsample_size=0.3, details=True, random_state=3)
    found = scorer(estimator, samples)
    expected = literal_figures(estimator, samples, scorer, cut)
    for figure, value in expected.items():
        assert found[figure] == pytest.approx(value), figure
    c, d = expected["chance"], expected["disagreement"]
    assert 0 < d < c
    for adjust, value in {"difference": c - d, "ratio": 1 - d / c, None: 1 - d}.items():
        score = clone(scorer).set_params(adjust=adjust, details=False)(estimator, samples)
        assert score == pytest.approx(value)
        assert isinstance(score, float)
    assert found["stability"] == pytest.approx(c - d)


@pytest.mark.parametrize("whole", [lambda A: A, Stack, lambda A: np.asfortranarray(A)])
def test_containers_are_cut_on_both_axes(whole):
    scorer = StabilityScorer(4, subsample_size=0.3)
    expected = scorer(StackClusterer(4), STACK)
    assert scorer(StackClusterer(4), whole(STACK)) == expected


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array])
def test_sparse_similarities_are_cut_on_both_axes(form):
    sparse = np.where(W > 0.01, W, 0)
    estimator = SSNMFClusterer(4, affinity="precomputed", n_init=1, random_state=0)
    scorer = StabilityScorer(3, subsample_size=0.5)
    assert scorer(estimator, form(sparse)) == pytest.approx(scorer(estimator, sparse), abs=0.02)


def test_texts_and_data_frames_are_cut_by_rows():
    pd = pytest.importorskip("pandas")
    scorer = StabilityScorer(4)
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(120)[::-1])
    assert scorer(kmeans(4), frame) == scorer(kmeans(4), X)
    words = ["match goal team coach league", "bank market share profit tax"]
    rng = np.random.RandomState(0)
    texts = [" ".join([*rng.choice(words[i % 2].split(), 3), "news"]) for i in range(60)]
    figures = StabilityScorer(4, subsample_size=0.5, details=True)(
        make_pipeline(TfidfVectorizer(), kmeans(2)), texts
    )
    assert figures["disagreement"] < 0.2
    assert figures["chance"] > 0.4


@pytest.mark.parametrize("seed", range(3))
def test_standard_errors_are_those_of_leaving_out_a_labelling(seed):
    rng = np.random.default_rng(seed)
    B = 6
    codes = np.stack([rng.permutation(np.arange(40) % 3) for _ in range(B)])
    left_out = []
    for i in range(B):
        others = [codes[j] for j in range(B) if j != i]
        left_out.append(np.mean([disagreement(a, b) for a, b in combinations(others, 2)]))
    value, error = jackknife(mean_of_pairs, disagreements(codes))
    assert value == pytest.approx(np.mean([disagreement(a, b) for a, b in combinations(codes, 2)]))
    assert error == pytest.approx(np.sqrt((B - 1) * np.var(left_out)))


def test_standard_error_is_that_of_other_subsamples():
    estimator = kmeans(4)
    found = [
        StabilityScorer(12, details=True, random_state=seed)(estimator, X) for seed in range(12)
    ]
    actual = np.std([f["stability"] for f in found], ddof=1)
    estimated = np.mean([f["stability_se"] for f in found])
    assert 0.5 < estimated / actual < 2


# --- what is worthless -------------------------------------------------------------------------


@pytest.mark.parametrize("adjust", ["difference", "ratio", None])
@pytest.mark.parametrize("apart", [0, 1, 5])
def test_one_cluster_is_no_better_than_chance(adjust, apart):
    labels = np.zeros(120, dtype=int)
    labels[:apart] = 1  # always the same samples: no disagreement
    scorer = StabilityScorer(5, adjust=adjust, details=True)
    figures = scorer(Told(labels[:, None]), NAMED)
    assert figures["disagreement"] == 0
    assert figures["stability"] == 0
    good = scorer(kmeans(3), X)
    assert good["stability"] > 0.4


def test_how_much_is_in_one_cluster_can_be_allowed():
    labels = np.repeat([0, 1], [118, 2])[:, None]
    allowed = StabilityScorer(5, adjust="ratio", max_share=1.0)
    assert allowed(Told(labels), NAMED) == 1
    assert allowed(Told(0 * labels), NAMED) == 0  # chance does as well


def test_random_clusters_are_no_better_than_chance():
    table = np.random.default_rng(0).integers(3, size=(120, 120))
    for adjust in ("difference", "ratio"):
        scorer = StabilityScorer(20, adjust=adjust, details=True)
        figures = scorer(Told(table), NAMED)
        assert abs(figures["stability"]) < 0.03
        assert figures["chance"] > 0.5


def test_samples_in_no_cluster_are_placed_differently():
    half = np.where(np.arange(120) < 60, -1, np.arange(120) % 2)[:, None]
    figures = StabilityScorer(4, details=True)(Told(half), NAMED)
    assert figures["disagreement"] == 0.5
    assert figures["largest_share"] == figures["smallest_share"] == 0.25
    nothing = StabilityScorer(4, details=True)(Told(np.full((120, 1), -1)), NAMED)
    assert nothing["stability"] == 0
    assert nothing["disagreement"] == nothing["chance"] == 1
    assert nothing["n_clusters"] == 0


def test_collapse_loses_a_search():
    """A weight of the first similarity that joins everything is perfectly stable."""
    labels = {0.0: np.zeros((120, 1), dtype=int), 1.0: Y[:, None] + 0}
    noisy = np.stack([np.where(np.random.default_rng(s).uniform(size=120) < 0.1, s % 3, Y)
                      for s in range(7)], axis=1)  # fmt: skip
    search = GridSearchCV(
        Told(noisy), {"table": [labels[0.0], noisy]}, scoring=StabilityScorer(8), cv=ALL,
        error_score="raise",
    ).fit(NAMED)  # fmt: skip
    assert search.best_index_ == 1
    raw = StabilityScorer(8, adjust=None, max_share=1.0)
    assert raw(Told(labels[0.0]), NAMED) > raw(Told(noisy), NAMED)


# --- searches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n_blobs", [2, 3, 4, 5, 6])
def test_the_number_of_blobs_is_found(n_blobs, seed):
    centers = 8 * np.eye(n_blobs)
    blobs, y = make_blobs(40 * n_blobs, centers=centers, cluster_std=1.5, random_state=seed)
    search = GridSearchCV(
        kmeans(), {"n_clusters": range(2, 8)}, scoring=StabilityScorer(), cv=ALL,
        error_score="raise",
    ).fit(blobs)  # fmt: skip
    assert search.best_params_ == {"n_clusters": n_blobs}
    assert adjusted_rand_score(y, search.best_estimator_.labels_) > 0.95


def test_the_number_of_components_of_a_mixture_is_found():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GaussianMixture(n_init=3, random_state=0)),
        {"gaussianmixture__n_components": [2, 3, 4, 5]},
        scoring=StabilityScorer(subsample_size=60),
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


@pytest.mark.parametrize("search_jobs", [1, 2])
@pytest.mark.parametrize("scorer_jobs", [1, 2])
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
    expected = [StabilityScorer(5)(clone(estimator).set_params(n_clusters=k), X) for k in (3, 5)]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)


def test_threads_do_not_matter():
    with joblib.parallel_config("threading", n_jobs=2):
        found = StabilityScorer(5, n_jobs=2)(kmeans(5), X)
    assert found == StabilityScorer(5)(kmeans(5), X)


def test_seeds_matter_and_are_repeatable():
    scores = {StabilityScorer(5, random_state=seed)(kmeans(5), X) for seed in (0, 1, 0, 1)}
    assert len(scores) == 2


def test_copies_differ_in_their_seed_if_the_estimator_has_none():
    class Seed(Told):
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


def test_the_estimator_is_left_alone():
    model = kmeans(4).fit(X)
    before = pickle.dumps(model)
    StabilityScorer(4)(model, X)
    assert pickle.dumps(model) == before


def test_it_is_an_estimator_in_its_manners():
    scorer = StabilityScorer(4, fit_params={"constraints": KNOWN}, adjust="ratio")
    again = clone(scorer)
    assert again.get_params()["fit_params"] == {"constraints": KNOWN}
    assert repr(StabilityScorer(4)) == "StabilityScorer(n_subsamples=4)"
    model = SSNMFClusterer(3, n_init=1, random_state=0)
    assert pickle.loads(pickle.dumps(scorer))(model, X) == again(model, X)


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


@pytest.mark.parametrize(
    ("means", "errors", "expected"),
    [
        ([0.1, 0.5, 0.6, 0.61], [0.2, 0.2, 0.2, 0.02], 2),
        ([0.1, 0.5, 0.6, 0.61], [0.0, 0.0, 0.0, 0.0], 3),
        ([np.nan, 0.5, 0.4], [np.nan, 0.2, 0.2], 1),
        ([0.5, 0.5], [0.0, 0.0], 0),
    ],
)
def test_one_standard_error_takes_the_first_that_is_as_good(means, errors, expected):
    results = {"mean_test_stability": means, "mean_test_stability_se": errors}
    assert one_standard_error(results) == expected


def test_one_standard_error_refits():
    search = GridSearchCV(
        kmeans(), {"n_clusters": [5, 4, 3, 2]}, scoring=StabilityScorer(6, details=True), cv=ALL,
        refit=one_standard_error, error_score="raise",
    ).fit(X)  # fmt: skip
    assert search.best_index_ == one_standard_error(search.cv_results_) == 2
    assert search.best_estimator_.n_clusters == 3
    assert not hasattr(search, "best_score_")


def test_one_standard_error_wants_details():
    with pytest.raises(ValueError, match=r"'mean_test_stability'.*details=True"):
        one_standard_error({"mean_test_score": [0.1]})
    nothing = {"mean_test_stability": [np.nan], "mean_test_stability_se": [np.nan]}
    with pytest.raises(ValueError, match="all are NaN"):
        one_standard_error(nothing)


def test_the_split_is_all_samples_twice():
    for samples in (X, X.tolist(), sp.coo_matrix(X), Stack(STACK), ["a"] * 120):
        ((train, test),) = FullSampleSplit().split(samples)
        np.testing.assert_array_equal(train, np.arange(120))
        np.testing.assert_array_equal(test, np.arange(120))
    assert FullSampleSplit().get_n_splits() == FullSampleSplit().get_n_splits(X, Y) == 1
    assert repr(FullSampleSplit()) == "FullSampleSplit()"
    search = GridSearchCV(kmeans(), {}, scoring=StabilityScorer(3), cv=FullSampleSplit()).fit(X)
    assert search.n_splits_ == 1


# --- what goes with the samples ----------------------------------------------------------------


def test_fit_params_are_cut_like_the_samples(routing):
    given = {"sample_weight": WEIGHT, "constraints": KNOWN}
    model = WantsAll(3, n_init=1, random_state=0)
    scorer = StabilityScorer(4, fit_params=given)
    assert scorer(model, NAMED, Y) == StabilityScorer(4)(kmeans(n_init=1), X)
    assert StabilityScorer(4, fit_params={"sample_weight": WEIGHT.tolist()})(
        WantsWeight(3, n_init=1, random_state=0), NAMED
    ) == StabilityScorer(4)(kmeans(n_init=1), X)


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


def test_constraints_reach_the_copies_of_a_pipeline(routing):
    name = "constraints" if routing else "ssnmfclusterer__constraints"
    model = make_pipeline(StandardScaler(), SSNMFClusterer(3, n_init=1, random_state=0))
    given = None if routing else {name: KNOWN}
    search = GridSearchCV(
        model, {}, scoring=StabilityScorer(4, fit_params=given), cv=ALL, error_score="raise"
    ).fit(X, **{name: KNOWN})
    expected = StabilityScorer(4, fit_params={name: KNOWN})(model, X)
    assert search.best_score_ == expected


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_weights_are_routed_as_the_estimator_requests(n_jobs):
    with sklearn.config_context(enable_metadata_routing=True):
        wants = WantsWeight(3, n_init=1, random_state=0).set_fit_request(sample_weight=True)
        wants_not = WantsNoWeight(3, n_init=1, random_state=0).set_fit_request(sample_weight=False)
        for model in (wants, wants_not):
            search = GridSearchCV(
                model, {}, scoring=StabilityScorer(4), cv=ALL, error_score="raise", n_jobs=n_jobs
            ).fit(NAMED, sample_weight=WEIGHT)
            assert search.best_score_ == StabilityScorer(4)(kmeans(n_init=1), X)
        with pytest.raises(UnsetMetadataPassedError):
            StabilityScorer(4)(kmeans(), X, sample_weight=WEIGHT)
        silent = StabilityScorer(4).set_score_request(sample_weight=False)
        GridSearchCV(Recorder(3).set_fit_request(sample_weight=True), {}, scoring=clone(silent),
                     cv=ALL, error_score="raise").fit(NAMED, sample_weight=WEIGHT)  # fmt: skip


def test_weights_reach_the_copies_without_routing():
    scorer = StabilityScorer(4)
    model = WantsWeight(3, n_init=1, random_state=0)
    expected = StabilityScorer(4)(kmeans(n_init=1), X)
    assert scorer(model, NAMED, sample_weight=WEIGHT) == expected
    if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 7):  # before, searches keep them
        search = GridSearchCV(model, {}, scoring=scorer, cv=ALL, error_score="raise")
        assert search.fit(NAMED, sample_weight=WEIGHT).best_score_ == expected


def test_targets_reach_the_copies():
    class WantsTarget(Recorder):
        wanted = ("y",)

    found = StabilityScorer(4)(WantsTarget(3, n_init=1, random_state=0), NAMED, Y)
    assert found == StabilityScorer(4)(kmeans(n_init=1), X)


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_subsamples": 2}, r"n_subsamples.* \[3, inf\).* Got 2"),
        ({"n_subsamples": 4.5}, "n_subsamples.* Got 4.5"),
        ({"subsample_size": 1.0}, r"subsample_size.*\(0\.0, 1\.0\).* Got 1\.0"),
        ({"subsample_size": 0}, "subsample_size.* Got 0"),
        ({"subsample_size": 120}, "subsample_size=120 takes 120 of 120 samples.*fewer than all"),
        ({"subsample_size": 500}, "subsample_size=500 takes 500 of 120"),
        ({"subsample_size": 0.01}, "subsample_size=0.01 takes 1 of 120.*at least 2"),
        ({"subsample_size": "half"}, "subsample_size.* Got 'half'"),
        ({"adjust": "divide"}, "adjust.*'difference'.* Got 'divide'"),
        ({"max_share": 0}, "max_share.* Got 0"),
        ({"max_share": 1.5}, "max_share.* Got 1.5"),
        ({"details": "yes"}, "details.* Got 'yes'"),
        ({"fit_params": [KNOWN]}, "fit_params.* must be an instance of 'dict'"),
        ({"error_score": "ignore"}, "error_score.* Got 'ignore'"),
        ({"n_jobs": 1.5}, "n_jobs.* Got 1.5"),
        ({"random_state": None}, "random_state.*int.*same subsamples; got None"),
        ({"random_state": -1}, "random_state.*0 or larger.*got -1"),
        ({"random_state": np.random.RandomState(0)}, r"random_state.*got RandomState\(MT19937\)"),
        ({"random_state": np.random.default_rng(0)}, "random_state.*got Generator"),
        ({"random_state": True}, "random_state.*got True"),
        ({"fit_params": {"sample_weight": WEIGHT[:50]}}, "sample_weight.*120.*ndarray with 50"),
        ({"fit_params": {"must_link": [(0, 1), (2, 3)]}}, "must_link.*list with 2 entries"),
        ({"fit_params": {"constraints": KNOWN[:60]}}, "PairwiseConstraints with 60 entries"),
        ({"fit_params": {"sample_weight": {"a": 1}}}, "120 samples.*got dict"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        StabilityScorer(**{"n_subsamples": 3} | parameters)(kmeans(), X)


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
    with pytest.raises(ValueError, match=r"cv=FullSampleSplit.*symmetric"):
        StabilityScorer(3)(StackClusterer(), STACK[:60, 60:])


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


def test_what_is_given_twice_is_refused():
    scorer = StabilityScorer(3, fit_params={"constraints": KNOWN})
    with pytest.raises(TypeError, match="'constraints' is given both"):
        scorer(SSNMFClusterer(3), X, constraints=KNOWN)


def test_predictions_that_are_no_labels_are_refused():
    with pytest.raises(ValueError, match=r"predictions.*got the number 0\.5"):
        StabilityScorer(3)(Told(np.full((120, 1), 0.5)), NAMED)
    with pytest.raises(ValueError, match=r"120 labels, got shape \(60,\)"):
        StabilityScorer(3, error_score="raise")(Told(np.ones((60, 1))), NAMED)


@pytest.mark.parametrize("details", [False, True])
def test_a_copy_that_cannot_be_fitted_has_no_score(details):
    scorer = StabilityScorer(3, subsample_size=4, details=details)
    with pytest.warns(FitFailedWarning, match=r"subsample 0 of 3, with 4 of 120.*n_clusters=5"):
        found = scorer(kmeans(5), X)
    assert np.isnan(found["chance"] if details else found)
    search = GridSearchCV(
        kmeans(), {"n_clusters": [5, 3]}, scoring=scorer, cv=ALL,
        refit="stability" if details else True,
    )  # fmt: skip
    with pytest.warns(FitFailedWarning):
        search.fit(X)
    assert search.best_params_ == {"n_clusters": 3}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_copy_that_cannot_be_fitted_raises_if_asked(n_jobs):
    scorer = StabilityScorer(3, subsample_size=4, error_score="raise", n_jobs=n_jobs)
    with pytest.raises(ValueError, match="n_clusters=5") as caught:
        scorer(kmeans(5), X)
    assert "subsample 0 of 3, with 4 of 120 samples" in caught.value.__notes__[0]


def test_copies_without_the_constraints_of_the_estimator_are_warned_of():
    X, y = make_blobs(60, centers=3, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=10, random_state=0)
    fitted = SSNMFClusterer(3, random_state=0).fit(X, constraints=pairs)
    with pytest.warns(UserWarning, match="scores copies without the constraints"):
        StabilityScorer(3, subsample_size=0.5)(fitted, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StabilityScorer(3, subsample_size=0.5, fit_params={"constraints": pairs})(fitted, X)


def test_a_target_of_another_length_is_refused():
    X, _ = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(ValueError, match="y must have one entry for each of the 60 samples"):
        StabilityScorer(3)(KMeans(3), X, np.zeros(5))
