"""The choice of a number of clusters: what decides, what is fitted, and what is refused."""

import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_selection import choices
from model_selection.choices import BLOBS, chosen
from model_selection.clusterers import STACK, X, Y, kmeans
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import NMFConsensus, NMFMetaCluster, SSNMFClusterer
from nmfcluster.datasets import make_biclusters, make_signatures
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.model_selection.results import (
    ClusterSweep,
    NumberOfClusters,
    read_candidates,
)

pytestmark = pytest.mark.filterwarnings("error::UserWarning")

RUNS = NMFMetaCluster(2, loss="kullback-leibler", n_estimators=3)
NONE = np.random.default_rng(0).uniform(size=(200, 3))


@pytest.fixture(scope="module")
def vote():
    return chosen()


# --- features: a vote --------------------------------------------------------------------------


def test_a_vote_decides_on_features(vote):
    assert isinstance(vote, NumberOfClusters)
    assert (vote.method, vote.n_clusters_) == ("vote", 3)
    assert len(vote.votes) == 4
    answers = list(vote.votes.values())
    assert answers.count(3) >= 3
    assert vote.stability is vote.stability_se is None
    assert_array_equal(vote.candidates, range(1, 7))
    assert vote.as_good[2]
    assert vote.best_estimator_.n_clusters == 3
    assert adjusted_rand_score(vote.best_estimator_.labels_, Y) > 0.95
    assert (
        repr(vote) == f"NumberOfClusters(3 of 1 to 6, by {answers.count(3)} of 4 votes)"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (KMeans(3, n_init=1), "vote"),
        (GaussianMixture(), "vote"),
        (KMeans(3, n_init=1), "stability"),
        (NMFConsensus(3, affinity="partitions"), "eigengap"),
        (RUNS, "held-out"),
        (RUNS, "recurrence"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_underflows_is_0_where_numpy_was_told_to_raise(estimator, method):
    narrow = X + 1e3 * np.eye(3)[Y]
    tables = [narrow, X * 1e-160, X * 1e140]
    if estimator is RUNS:
        tables = [np.round(10 * BLOBS)]
    if method == "eigengap":
        labels = np.random.default_rng(0).integers(3, size=(120, 9))
        labels[:, :4] = Y[:, None]
        tables = [labels]
    for table in tables:
        arguments = {"samples": table, "candidates": range(2, 5), "method": method}
        expected = chosen(estimator, **arguments)
        with np.errstate(all="raise"):
            found = chosen(estimator, **arguments)
            assert set(np.geterr().values()) == {"raise"}
        assert repr(found) == repr(expected)
        for name, column in expected.table.items():
            assert_array_equal(found.table[name], column)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exponent", [-900, 505])
def test_a_vote_has_no_unit(exponent):
    expected = choose_n_clusters(KMeans(n_init=1), X, range(1, 6), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of the last fit
        samples = X * 2.0**exponent
        found = choose_n_clusters(
            KMeans(n_init=1), samples, range(1, 6), random_state=0
        )
    assert found.votes == expected.votes


def test_there_may_be_no_clusters():
    found = chosen(samples=NONE)
    assert found.n_clusters_ == 1
    assert_array_equal(found.best_estimator_.labels_, 0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "estimator",
    [
        AgglomerativeClustering(),
        GaussianMixture(),
        NMFConsensus(2, n_estimators=5),
        make_pipeline(StandardScaler(), GaussianMixture()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_anything_with_a_number_of_clusters_is_fitted(estimator):
    before = repr(estimator)
    found = chosen(estimator, BLOBS, range(1, 5))
    assert found.n_clusters_ == 3
    best = found.best_estimator_
    labels = best.predict(BLOBS) if hasattr(best, "predict") else best.labels_
    assert adjusted_rand_score(labels, Y) > 0.9
    assert repr(estimator) == before


def test_a_pipeline_votes_on_what_its_last_step_sees():
    wide = np.column_stack([X, 1e4 * np.random.default_rng(0).normal(size=(120, 1))])
    scaled = make_pipeline(StandardScaler(), kmeans())
    assert chosen(scaled, wide, range(1, 5)).n_clusters_ == 3
    assert chosen(kmeans(), wide, range(1, 5)).n_clusters_ != 3


@pytest.mark.slow
def test_frames_and_sparse_tables_are_features(vote):
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    found = chosen(samples=table)
    assert found.votes == vote.votes
    assert list(found.best_estimator_.feature_names_in_) == ["a", "b", "c"]
    assert chosen(samples=sp.csr_array(X)).votes == vote.votes
    assert chosen(samples=tuple(map(tuple, X))).votes == vote.votes


def test_only_candidates_are_chosen(vote):
    found = chosen(candidates=[5, 3, 4])
    assert found.n_clusters_ == 3
    assert_array_equal(found.candidates, [3, 4, 5])
    with warns_naming(UserWarning, "3", "4, 6"):
        found = chosen(candidates=[4, 6])
    assert found.n_clusters_ == 4
    assert not found.agreed
    for_it = found.table["n_votes"][0]
    assert for_it < 2
    assert (
        repr(found)
        == f"NumberOfClusters(4 of 4, 6, by {for_it} of 4 votes: no agreement)"
    )
    pytest.importorskip("matplotlib").use("Agg")
    assert found.plot().ax_.get_title() == "chosen: 4 clusters, no agreement"
    pytest.importorskip("matplotlib.pyplot").close("all")


def test_a_tuple_of_two_is_a_range():
    for candidates, numbers in (
        ((2, 5), [2, 3, 4, 5]),
        ((3, 3), [3]),
        ((2, 5, 9), [2, 5, 9]),
    ):
        assert_array_equal(read_candidates(candidates, 9), numbers)
    assert_array_equal(read_candidates([5, 2], 9), [2, 5])


def test_few_samples_are_told_apart_or_not_without_a_word():
    rng = np.random.default_rng(0)
    few = np.repeat([[0, 0], [1000, 0], [0, 1000.0]], 3, axis=0) + rng.normal(
        size=(9, 2)
    )
    found = chosen(samples=few)
    assert (found.n_clusters_, found.votes) == (3, {"far apart": 3})
    assert chosen(samples=few[:6]).n_clusters_ == 2
    with warns_naming(UserWarning, "X", "few"):
        found = chosen(samples=rng.normal(size=(9, 2)))
    assert found.n_clusters_ == 1
    assert not found.agreed


def test_the_largest_candidate_is_told():
    with warns_naming(UserWarning, "candidates", "3") as warned:
        assert chosen(candidates=range(1, 4)).n_clusters_ == 3
    assert warned[0].filename == choices.__file__  # the line that called


def test_default_candidates_end_with_the_samples():
    with warns_naming(UserWarning, "few"):
        found = choose_n_clusters(kmeans(), X[:11], random_state=0)
    assert found.candidates[-1] == 11
    assert_array_equal(chosen(candidates=np.arange(2, 5)).candidates, [2, 3, 4])


def test_stages_are_told_before_they_start(caplog):
    caplog.set_level("INFO", "nmfcluster")
    chosen(candidates=range(1, 5))
    assert caplog.messages == [
        "choose_n_clusters: collecting votes of criteria",
        "choose_n_clusters: fitting n_clusters=3 to all samples",
    ]


def test_weights_leave_the_vote_to_features():
    weights = np.ones(120)
    found = chosen(candidates=range(1, 5), fit_params={"sample_weight": weights})
    assert found.method == "vote"


class Weighed(ClusterMixin, BaseEstimator):
    """Keeps the weights that it is given."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def fit(self, X, y=None, sample_weight=None):
        self.weights_, self.labels_ = sample_weight, np.zeros(len(X), dtype=int)
        return self


def test_the_fit_to_all_samples_is_given_what_fit_takes():
    weights = np.arange(120.0)
    found = chosen(
        Weighed(), candidates=range(1, 5), fit_params={"sample_weight": weights}
    )
    assert_array_equal(found.best_estimator_.weights_, weights)


# --- runs of NMF -------------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_are_decided_by_a_sweep():
    counts = make_signatures(60, 3, 40, random_state=0)[0]
    found = chosen(RUNS, counts, [2, 3, 4])
    assert isinstance(found, ClusterSweep)
    assert (found.method, found.n_clusters_) == ("held-out", 3)
    by_recurrence = chosen(RUNS, counts, [2, 3, 4, 5], method="recurrence")
    assert (by_recurrence.method, by_recurrence.n_clusters_) == ("recurrence", 3)
    by_stability = chosen(RUNS, counts, [2, 3, 4, 5], method="stability")
    assert isinstance(by_stability, NumberOfClusters)


def test_recurrence_leaves_out_one():
    table = make_biclusters((40, 30), 3, noise=0.1, random_state=0)[0]
    runs = NMFMetaCluster(2, n_estimators=4)
    found = chosen(runs, table, [1, 2, 3, 4])
    assert found.method == "recurrence"
    assert_array_equal(found.candidates, [2, 3, 4])
    with raises_naming(ValueError, "2", "recurrence"):
        chosen(runs, table, [1])


# --- what results depend on --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vote", "stability"])
def test_results_depend_on_the_seed_alone(method):
    one = chosen(KMeans(n_init=1), method=method, random_state=1)
    two = chosen(KMeans(n_init=1), method=method, random_state=1, n_jobs=2)
    assert one.votes == two.votes
    if method == "stability":
        assert_array_equal(one.stability, two.stability)
    assert_array_equal(one.best_estimator_.labels_, two.best_estimator_.labels_)
    assert one.best_estimator_.random_state is not None


# --- the result --------------------------------------------------------------------------------


def test_the_table_has_a_row_for_every_candidate(vote, stability):
    for result, column in ((vote, "n_votes"), (stability, "stability")):
        table = pd.DataFrame(result.table)
        assert list(table["n_clusters"]) == result.candidates.tolist()
        assert table.loc[table["chosen"], "n_clusters"].tolist() == [3]
        assert column in table
    assert vote.table["n_votes"].sum() <= 4
    with pytest.raises(FrozenInstanceError):
        vote.n_clusters_ = 2


@pytest.mark.parametrize(
    ("says", "arguments", "error"),
    [
        (("estimator", "n_clusters"), {"estimator": StandardScaler()}, TypeError),
        (("estimator", "n_clusters"), {"estimator": 3}, TypeError),
        (("candidates", "2"), {"candidates": [1], "method": "stability"}, ValueError),
        (("candidates", "(low, high)"), {"candidates": (6, 2)}, ValueError),
        ("'method'", {"method": "elbow"}, ValueError),
        (("estimator", "NMFMetaCluster"), {"method": "held-out"}, TypeError),
        ("minimum of 6", {"samples": X[:5], "candidates": [1]}, ValueError),
        (("X", "NaN"), {"samples": np.where(X > 5, np.nan, X)}, ValueError),
        (("method='vote'", "features"), {"samples": STACK, "method": "vote"}, ValueError),
        ("random_state", {"random_state": "x"}, ValueError),
        (("X", "entry"), {"samples": {"words": X}}, ValueError),
        ("'fit_params'", {"fit_params": 3}, ValueError),
        (("fit_params", "groups"), {"estimator": RUNS, "fit_params": {"a": 1}}, ValueError),
        (
            ("sample_weight", "fit_params"),
            {"fit_params": {"sample_weight": [1]}, "method": "stability"},
            ValueError,
        ),
        (("fit_params", "KMeans"), {"fit_params": {"c": 1}}, TypeError),
        (
            "constraints=PairwiseConstraints(n_samples, must_link, cannot_link)",
            {"estimator": SSNMFClusterer(2), "fit_params": {"cannot_link": np.eye(120)}},
            ValueError,
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_chosen_from_is_refused(says, arguments, error):
    with raises_naming(error, says):
        chosen(**{"estimator": kmeans()} | arguments)
