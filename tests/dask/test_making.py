"""Base partitions of features in blocks: those in memory, whatever the blocks are."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.cluster import AgglomerativeClustering, KMeans, MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

from nmfcluster.partitions import base_partitions

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
nd = pytest.importorskip("nmfcluster.dask")

X = make_blobs(400, n_features=5, centers=4, cluster_std=3.0, random_state=0)[0]
NEW = make_blobs(100, n_features=5, centers=5, cluster_std=5.0, random_state=1)[0]
COMMON = {"n_estimators": 5, "random_state": 0}


def in_blocks(array, rows=90, columns=2):
    return da.from_array(array, chunks=(rows, columns))


def in_memory(array, **options):
    options = {"max_samples": min(10_000, len(array))} | COMMON | options
    options.setdefault("estimator", KMeans(n_init=1))
    return base_partitions(array, predict_unseen=True, **options)


WAYS = {
    "all_samples": {},
    "some": {"max_samples": 60},
    "features": {"max_features": 0.5, "max_samples": 0.2, "n_clusters": (2, 9)},
    "mini_batches": {"estimator": MiniBatchKMeans(n_init=1), "max_samples": 120},
    "no_predict": {
        **{
            "estimator": AgglomerativeClustering(),
            "max_samples": 50,
            "max_features": 3,
        },
    },
    "several": {
        "estimator": [KMeans(n_init=1), AgglomerativeClustering(), GaussianMixture()],
        **{"max_samples": 150, "n_clusters": (2, 4)},
    },
}


def labels_of_new(made, t):
    """Return what a clusterer predicts, or the labels of the nearest samples that it was given."""
    estimator, features = made.estimators[t], made.features[t]
    own, new = (each if features is None else each[:, features] for each in (X, NEW))
    if hasattr(estimator, "predict"):
        return estimator.predict(np.ascontiguousarray(new))
    samples = made.samples[t]
    distances = ((new[:, None] - own[None, samples]) ** 2).sum(axis=2)
    return made.labels[samples, t][distances.argmin(axis=1)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
def test_labels_are_those_in_memory(way):
    wanted = in_memory(X, **WAYS[way])
    made = nd.base_partitions(in_blocks(X), **COMMON, **WAYS[way])
    assert isinstance(made.labels, da.Array)
    assert made.labels.shape == wanted.labels.shape
    assert made.labels.chunks[0] == in_blocks(X).chunks[0]
    labels = made.labels.compute()
    assert labels.dtype == made.labels.dtype == np.int8
    assert_array_equal(labels, wanted.labels)
    assert [type(one) for one in made.estimators] == [
        type(one) for one in wanted.estimators
    ]
    found = made.predict(in_blocks(NEW, 33)).compute()
    for t in range(found.shape[1]):
        assert_array_equal(found[:, t], labels_of_new(wanted, t))


def test_labels_do_not_depend_on_the_blocks():
    options = {"max_samples": 70, "n_clusters": (2, 7)}
    wanted = nd.base_partitions(in_blocks(X), **COMMON, **options).labels.compute()
    for rows in (17, 400):
        made = nd.base_partitions(in_blocks(X, rows, 5), **COMMON, **options)
        assert_array_equal(made.labels.compute(), wanted)


def test_float32_stays_float32_and_integers_are_features_too():
    for table, dtype in (
        (X.astype(np.float32), np.float32),
        (np.rint(X).astype(int), np.float64),
    ):
        made = nd.base_partitions(in_blocks(table), max_samples=100, **COMMON)
        assert made.estimators[0].cluster_centers_.dtype == dtype
        wanted = in_memory(table.astype(dtype), max_samples=100)
        assert_array_equal(made.labels.compute(), wanted.labels)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n_clusters", "dtype"), [(128, np.int8), (129, np.int16)])
def test_labels_are_of_the_smallest_type_that_holds_them(n_clusters, dtype):
    made = nd.base_partitions(
        in_blocks(X),
        n_estimators=2,
        n_clusters=n_clusters,
        random_state=0,
        max_samples=300,
    )
    assert made.labels.dtype == dtype
    labels = made.labels.compute()
    assert labels.min() == 0
    assert labels.max() == n_clusters - 1


def test_samples_that_are_no_multiple_of_anything_are_drawn_as_in_memory():
    few = X[:7]
    # fewer than max_samples
    made = nd.base_partitions(in_blocks(few, 3), n_clusters=2, **COMMON)
    assert_array_equal(made.labels.compute(), in_memory(few, n_clusters=2).labels)


def test_rows_are_read_once_for_what_is_drawn_and_once_for_labels(counted):
    array, calls = counted(X, 100)
    made = nd.base_partitions(array, max_samples=50, **COMMON)
    assert len(calls) == 4
    labels = made.labels
    made.predict(array)
    assert len(calls) == 4
    labels[:150].compute()
    assert len(calls) == 6


def test_labels_are_written_by_dask():
    made = nd.base_partitions(in_blocks(X), max_samples=80, **COMMON)
    out = np.full((400, 5), -9)
    da.store(made.labels, out)
    assert_array_equal(out, in_memory(X, max_samples=80).labels)


def test_runs_that_found_only_noise_are_left_out():
    class Picky(KMeans):
        """Finds only noise where it is told of three clusters."""

        def fit_predict(self, X, y=None):
            labels = super().fit_predict(X)
            return labels - 9 if self.n_clusters == 3 else labels

    options = {
        "n_estimators": 6,
        "n_clusters": (2, 4),
        "random_state": 0,
        "max_samples": 100,
    }
    with warns_naming(UserWarning, "6", "noise"):
        wanted = base_partitions(X, Picky(n_init=1), predict_unseen=True, **options)
    with warns_naming(UserWarning, "6", "noise"):
        made = nd.base_partitions(in_blocks(X), Picky(n_init=1), **options)
    assert made.labels.shape[1] < 6
    assert_array_equal(made.labels.compute(), wanted.labels)


def test_new_samples_must_have_as_many_columns():
    made = nd.base_partitions(in_blocks(X), **COMMON)
    for width in (4, 6):
        with raises_naming(ValueError, "X", "5", str(width)):
            made.predict(da.zeros((10, width), chunks=(5, width)))


def test_features_lead_to_the_planted_clusters():
    blobs, y = make_blobs(900, centers=np.eye(3) * 20, random_state=0)
    made = nd.base_partitions(
        in_blocks(blobs, 200),
        n_estimators=8,
        n_clusters=(3, 6),
        max_samples=200,
        random_state=0,
    )
    labels = nd.NMFConsensus(3, random_state=0).fit_predict(made.labels).compute()
    assert len(set(zip(y, labels, strict=True))) == 3


def test_blocks_of_pairs_are_labelled_by_the_nearest_sample():
    D = np.abs(X[:80, None] - X[:80]).sum(axis=2)
    base = AgglomerativeClustering(metric="precomputed", linkage="average")
    blocks = nd.base_partitions(in_blocks(D, 30, 80), base, **COMMON)
    local = base_partitions(D, base, **COMMON)
    assert_array_equal(blocks.labels.compute(), local.labels)
    new = np.abs(NEW[:, None] - X[:80]).sum(axis=2)
    assert_array_equal(
        blocks.predict(in_blocks(new, 30, 80)).compute(), local.predict(new)
    )
    with raises_naming(ValueError, "X", "square"):
        nd.base_partitions(in_blocks(D, 30, 80), base, max_samples=20, **COMMON)
