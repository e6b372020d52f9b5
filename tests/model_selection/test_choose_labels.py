"""Numbers of clusters of label tables, by eigenvalues against the formula written out."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs

import nmfcluster.dask
from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.model_selection.choose import measure_gaps
from nmfcluster.partitions import base_partitions

CONSENSUS = NMFConsensus(2, affinity="partitions", random_state=0)
BLOBS, _ = make_blobs(150, centers=3, random_state=1)


@pytest.fixture(scope="module")
def labels():
    return base_partitions(
        BLOBS, n_estimators=20, n_clusters=(6, 14), random_state=0
    ).labels


def literal_gaps(table, weights, numbers):
    """Compare eigenvalues of projectors, divided by the roots of the weights that saw rows."""
    P, seen = np.zeros((len(table), len(table))), np.zeros(len(table))
    for labels, weight in zip(table.T, weights / np.sum(weights), strict=True):
        seen += weight * (labels >= 0)
        for cluster in np.unique(labels[labels >= 0]):
            own = (labels == cluster).astype(float)
            P += weight * np.outer(own, own) / own.sum()
    values = np.linalg.eigvalsh(P / np.sqrt(np.outer(seen, seen)))[::-1]
    return [1 - (1.05 - values[k - 1]) / (1.05 - values[k]) for k in numbers]


@pytest.mark.parametrize("missing", [0, 0.3])
def test_gaps_are_those_of_the_mean_projector(missing):
    table, _ = make_partitions((30, 20, 10), n_partitions=9, noise=0.3, missing=missing)
    weights, numbers = np.arange(1, 10), np.arange(2, 8)
    expected = literal_gaps(table, weights, numbers)
    estimator = NMFConsensus(2, affinity="partitions", weights=weights)
    figures, failures = measure_gaps(estimator, table, numbers, 0)
    assert_allclose(figures["eigengap"], expected, rtol=1e-6)
    assert not any(failures)


def test_labels_have_the_number_of_clusters_that_partitions_mix_least(labels):
    found = choose_n_clusters(CONSENSUS, labels, range(2, 9), random_state=0)
    assert (found.method, found.n_clusters_) == ("eigengap", 3)
    assert_array_equal(found.as_good, found.candidates == 3)
    assert list(found.table) == [
        "n_clusters",
        "eigengap",
        "n_found",
        "as_good",
        "chosen",
    ]
    assert len(np.unique(found.best_estimator_.labels_)) == 3


def test_it_is_the_same_in_any_container(labels):
    expected = choose_n_clusters(CONSENSUS, labels, range(2, 9), random_state=0)
    lazy = nmfcluster.dask.NMFConsensus(2, random_state=0)
    text = pd.DataFrame(labels.astype(str))
    for model, table in [
        (lazy, da.from_array(labels, chunks=(50, 20))),
        (CONSENSUS, text),
        (CONSENSUS, labels.tolist()),
        (CONSENSUS, labels[::-1]),
    ]:
        found = choose_n_clusters(model, table, range(2, 9), random_state=0)
        assert_allclose(found.eigengap, expected.eigengap, rtol=1e-6)
        assert found.n_clusters_ == 3


def test_digits_in_runs_of_kmeans():
    X, _ = load_digits(n_class=4, return_X_y=True)
    runs = [KMeans(4, n_init=1, random_state=seed).fit_predict(X) for seed in range(10)]
    assert (
        choose_n_clusters(CONSENSUS, np.transpose(runs), random_state=0).n_clusters_
        == 4
    )


@pytest.mark.filterwarnings("ignore:NMFConsensus found 4 clusters")
def test_fits_that_find_fewer_clusters_are_passed_over():
    """The widest gap is behind 4, but one partition has no fifth cluster to find."""
    table = np.repeat([[0], [1], [2], [3]], 10, axis=0)
    found = choose_n_clusters(CONSENSUS, table, [2, 4, 6], random_state=0)
    assert found.n_clusters_ == 4
    with raises_naming(ValueError, "candidates", "4"):
        choose_n_clusters(CONSENSUS, table, [5, 6], random_state=0)


def test_features_have_no_eigenvalues_to_ask():
    with raises_naming(ValueError, "method='eigengap'", "labels"):
        choose_n_clusters(KMeans(), BLOBS, method="eigengap")
