"""Numbers of clusters of label tables, by eigenvalues against the formula written out."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs

import nmfcluster.dask
from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.model_selection.choose import _rank, measure_gaps
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
    gaps = np.array([1 - (1.05 - values[k - 1]) / (1.05 - values[k]) for k in numbers])
    if values[1] >= 0.9:
        return gaps
    alone = np.sum((weights / np.sum(weights)) ** 2)
    left = [max(value - alone, 0) / (1 - alone) + 0.02 for value in values]
    return 1 - (1 - gaps) * [left[k] / left[k - 1] for k in numbers]


@pytest.mark.parametrize("missing", [0, 0.3])
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_gaps_are_those_of_the_mean_projector(noise, missing):
    table, _ = make_partitions(
        (30, 20, 10), n_partitions=9, noise=noise, missing=missing, random_state=0
    )
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
        "repeated",
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


@pytest.mark.filterwarnings("ignore:The partitions support")
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


# --- partitions of several granularities, and noisy copies ---------------------------------------

SIZES = np.array([400, 250, 150, 80, 40, 20])
SIX = np.repeat(np.arange(6), SIZES)
COARSE = np.array([0, 0, 0, 1, 1, 2])[SIX]


def of_resolutions(n_six, n_coarse, n_fine=12, seed=0):
    """Return columns of the six clusters, of three that hold them, and of pieces of them."""
    rng = np.random.default_rng(seed)
    pieces = [
        SIX * 10 + rng.integers(np.maximum(1, SIZES // (100 - 4 * i))[SIX])
        for i in range(n_fine)
    ]
    wrong = rng.random((n_six, len(SIX))) < 0.01
    six = np.where(wrong, rng.integers(6, size=wrong.shape), SIX)
    return np.column_stack([COARSE] * n_coarse + [*six] + pieces)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:The partitions support")
@pytest.mark.parametrize(("n_six", "n_coarse"), [(12, 4), (12, 10), (20, 10)])
def test_the_clustering_that_most_partitions_repeat_is_found(n_six, n_coarse):
    table = of_resolutions(n_six, n_coarse)
    found = choose_n_clusters(CONSENSUS, table, range(2, 16), random_state=0)
    assert found.n_clusters_ == 6
    share = np.array([n_coarse, n_six]) / table.shape[1]
    assert_allclose(found.repeated[[1, 4]], share)
    assert found.repeated.sum() == pytest.approx(share.sum())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n_six", "chosen", "other"), [(10, 6, 3), (4, 3, 6)])
def test_a_finer_clustering_is_chosen_if_enough_partitions_repeat_it(
    n_six, chosen, other
):
    """More resolutions repeat a coarse clustering than a fine one."""
    table = of_resolutions(n_six, 12)
    with warns_naming(UserWarning, f"{chosen} clusters", str(other)):
        found = choose_n_clusters(CONSENSUS, table, range(2, 10), random_state=0)
    assert found.n_clusters_ == chosen
    assert_array_equal(found.candidates[found.as_good], [3, 6])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("noise", [0.5, 0.3])
@pytest.mark.parametrize(
    "sizes", [(500, 250, 150, 70, 30), (200,) * 5, (90, 80, 70) * 5]
)
def test_small_clusters_in_noisy_copies_are_counted(sizes, noise):
    table, _ = make_partitions(sizes, n_partitions=100, noise=noise, random_state=0)
    numbers = np.arange(2, 20)
    figures, _ = measure_gaps(CONSENSUS, table, numbers, 0)
    best, _ = _rank(figures["eigengap"], figures["repeated"])
    assert numbers[best] == len(sizes)


def test_weights_of_partitions_count_in_shares():
    weights = np.ones(32)
    weights[:10] = 4  # those of three clusters
    model = NMFConsensus(2, affinity="partitions", weights=weights, random_state=0)
    figures, _ = measure_gaps(model, of_resolutions(10, 10), np.arange(2, 9), 0)
    assert_allclose(figures["repeated"][[1, 4]], [40 / 62, 10 / 62])


def test_features_have_no_eigenvalues_to_ask():
    with raises_naming(ValueError, "method='eigengap'", "labels"):
        choose_n_clusters(KMeans(), BLOBS, method="eigengap")
