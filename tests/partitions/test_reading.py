"""Base partitions as estimators read them: weights, coverage, and the labels of new samples."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from partitions.cases import in_two_ways
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions
from nmfcluster.display import ConsensusMatrixDisplay
from nmfcluster.partitions import base_partitions


def test_partitions_have_as_many_clusters_as_the_consensus_and_two_at_least():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for n_clusters, fewest, most in ((3, 3, 4), (1, 2, 4), (6, 6, 6)):
        model = NMFConsensus(
            n_clusters, estimator=KMeans(n_init=1), n_estimators=20, random_state=0
        ).fit(X)
        found = set(model.partitions_.max(axis=0) + 1)
        assert found == set(range(fewest, most + 1))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("storage", "scale"), [(np.asarray, 1e300), (sp.csr_array, 1)])
def test_partitions_have_no_more_clusters_than_samples_differ(storage, scale):
    X = storage(np.repeat(np.eye(3) * scale, 40, axis=0))
    model = NMFConsensus(2, n_estimators=10, random_state=0).fit(X)
    assert set(model.partitions_.max(axis=0) + 1) == {2, 3}


def test_weights_are_scaled_to_sum_to_1():
    # each pair of rows is together in one partition
    table = np.array([[0, 0, 0], [0, 1, 1], [1, 1, 0]])
    for weights, scaled in ((None, [1 / 3] * 3), ([1, 0, 3], [0.25, 0, 0.75])):
        model = NMFConsensus(2, affinity="partitions", weights=weights).fit(table)
        C = model.consensus_matrix()
        assert_allclose([C[0, 1], C[1, 2], C[0, 2]], scaled)


def test_weights_that_do_not_fit_are_refused():
    def fit(weights):
        table = np.repeat([[0], [0], [1]], 3, axis=1)
        return NMFConsensus(2, affinity="partitions", weights=weights).fit(table)

    with raises_naming(ValueError, "weights", "above zero"):
        fit([0, 0, 0])
    for weights in ([1, 2], [[1, 2, 3]], [1, -1, 2]):
        with raises_naming(ValueError, "weights", "3"):
            fit(weights)
    for bad in (np.nan, np.inf):
        with raises_naming(ValueError, "weights", "3", "finite"):
            fit([1, bad, 1])


LOST = [3, 20, 21, 22, 60, 61, 99]


@pytest.mark.sampled(2)
@in_two_ways
def test_samples_in_no_partition_are_in_no_cluster_and_change_nothing(
    normalize, missing
):
    given = {"n_partitions": 8, "noise": 0.3, "missing": missing, "random_state": 0}
    table, _ = make_partitions((50, 30, 20), **given)
    table[LOST] = -1
    names = [f"row {i}" for i in range(100)]
    others = np.setdiff1d(np.arange(100), LOST)
    model = NMFConsensus(3, affinity="partitions", normalize=normalize, random_state=0)
    alone = clone(model).fit(table[others])
    with warns_naming(UserWarning, "7 samples", "row 3", "row 60", "2 more"):
        model.fit(pd.DataFrame(table, index=names))
    for name in ("labels_", "membership_", "confidence_"):
        assert_array_equal(getattr(model, name)[others], getattr(alone, name))
    for name in ("loss_curve_", "core_", "agreement_", "weights_"):
        assert_array_equal(getattr(model, name), getattr(alone, name))
    assert_array_equal(np.flatnonzero(model.labels_ < 0), LOST)
    assert_array_equal(model.predict(table)[LOST], -1)
    assert_allclose(model.membership_[LOST], 1 / 3)
    assert_allclose(model.transform(table)[LOST], 1 / 3)
    assert_array_equal(model.confidence_[LOST], 0)
    assert np.isnan(model.consensus_matrix()[3]).all()
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=20)
    assert display.cell_sizes[display.cell_labels == 3].sum() == 7
    assert np.isnan(display.matrix[display.cell_labels == 3]).all()


def test_samples_that_count_in_no_partition_are_in_no_cluster():
    table = np.column_stack([np.repeat([0, 1], [12, 8])] * 3)
    table[3, :2] = -1
    model = NMFConsensus(2, affinity="partitions", weights=[1, 1, 0], random_state=0)
    with warns_naming(UserWarning, "1 sample", "3"):
        model.fit(table)
    assert_array_equal(model.labels_, np.where(np.arange(20) == 3, -1, table[:, 2]))
    assert_array_equal(model.predict(table), model.labels_)


def test_noise_of_all_runs_is_in_no_cluster_and_what_none_drew_is_refused():
    X, y = make_blobs(120, centers=3, cluster_std=0.5, random_state=2)
    X[:2] = [[40.0, 0.0], [0.0, 40.0]]
    base = DBSCAN(eps=1)
    options = {
        "estimator": base,
        "n_estimators": 12,
        "max_samples": 0.8,
        "random_state": 0,
    }
    model = NMFConsensus(3, **options)
    with warns_naming(UserWarning, "2 samples", "0, 1"):
        model.fit(X)
    assert_array_equal(np.flatnonzero(model.labels_ < 0), [0, 1])
    assert adjusted_rand_score(y[2:], model.labels_[2:]) > 0.95
    with raises_naming(ValueError, "predict_unseen=True"):
        model.set_params(max_samples=3, n_estimators=4, estimator=KMeans(n_init=1)).fit(
            X
        )
    with raises_naming(ValueError, "drew", "sample"):
        model.fit(pd.DataFrame(X, index=[f"sample {i}" for i in range(120)]))


class AtTimes(ClusterMixin, BaseEstimator):
    """Calls everything noise, or raises, at some seeds."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit_predict(self, X, y=None):
        if self.random_state % 3 == 0:
            raise np.linalg.LinAlgError("SVD did not converge")
        return (
            np.full(len(X), -1) if self.random_state % 3 == 1 else np.arange(len(X)) % 2
        )


@pytest.mark.filterwarnings("ignore:.*base runs (found only noise|failed)")
def test_weights_are_those_of_the_runs_that_were_asked_for():
    X = np.random.default_rng(0).normal(size=(20, 2))
    made = base_partitions(X, AtTimes(), n_estimators=20, random_state=0)
    options = {
        "estimator": AtTimes(),
        "n_estimators": 20,
        "base_n_clusters": 8,
        "random_state": 0,
    }
    weights = np.arange(20.0)
    seeds = [own.random_state for own in made.estimators]
    assert all(seed % 3 == 2 for seed in seeds)
    assert made.kept.sum() == len(seeds) < 20
    model = NMFConsensus(2, weights=weights, **options).fit(X)
    assert_allclose(model.weights_, weights[made.kept] / weights[made.kept].sum())
    model = NMFConsensus(2, weights=weights[made.kept]).fit(X, partitions=made)
    assert_allclose(model.weights_, weights[made.kept] / weights[made.kept].sum())
    for wrong in (weights[:-1], [[1.0] * 20]):
        with raises_naming(ValueError, "weights", "20"):
            NMFConsensus(2, weights=wrong, **options).fit(X)
    with raises_naming(ValueError, "weights", "above zero"):
        NMFConsensus(2, weights=1.0 - made.kept, **options).fit(X)


def test_labels_of_plus_and_minus_one_are_said_to_be_half_missing():
    y = np.repeat([-1, 1], [9, 11])
    table, model = (
        np.column_stack([y > 0, y, -y]),
        NMFConsensus(2, affinity="partitions"),
    )
    says = ("2", "partitions", "X", "1", "negative")
    with warns_naming(UserWarning, says):
        model.fit(table)
    with warns_naming(UserWarning, "2 partitions", "1"):
        NMFConsensus(2).fit(table, partitions=list(table.T))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(model.fit(table > 0).predict(table > 0), model.labels_)
        base_partitions(y[:, None], DBSCAN(eps=0.5), n_estimators=2, max_samples=0.9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_runs_as_rows_are_asked_about_whatever_the_number_of_clusters():
    runs = np.tile(np.repeat([0, 1], 10), (3, 1))
    for n_clusters in (1, 2, 3):
        with warns_naming(UserWarning, "20 partitions", "3 samples", "X.T"):
            NMFConsensus(n_clusters, affinity="partitions").fit(runs)
    with raises_naming(ValueError, "n_clusters=4", "n_samples=3", "X.T"):
        NMFConsensus(4, affinity="partitions").fit(runs)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_clusters", [2, 3, (2, 5), 6])
def test_more_runs_than_samples_are_not_asked_about_but_runs_as_rows_are(n_clusters):
    rng = np.random.default_rng(0)
    model = NMFConsensus(2, affinity="partitions", n_init=1, max_iter=1)
    given = {"n_clusters": n_clusters, "estimator": KMeans(n_init=1)}
    for n, n_runs, X in (
        (12, 60, 9 * np.eye(3)[np.arange(12) % 3]),
        (20, 50, np.zeros((20, 3))),
    ):
        X = X + rng.normal(size=(n, 3))
        for max_samples in (1.0, 0.8):
            given |= {"max_samples": max_samples, "random_state": n}
            runs = base_partitions(X, n_estimators=n_runs, **given).labels
            with warnings.catch_warnings():
                warnings.filterwarnings("error", ".*pass X.T")
                model.fit(runs)
    found = base_partitions(np.tile(X, (20, 1)), n_estimators=10, **given).labels
    with warns_naming(UserWarning, "400 partitions", "X.T"):
        model.fit(found.T)
