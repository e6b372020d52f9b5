"""Dask arrays that are given to estimators in memory: gathered with a warning, or refused."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.datasets import make_blobs

import nmfcluster
from nmfcluster.datasets import make_partitions

da = pytest.importorskip("dask.array")

X = np.abs(make_blobs(90, n_features=4, centers=3, random_state=0)[0])
TABLE = make_partitions((40, 30, 20), n_partitions=6, noise=0.2, random_state=0)[0]
QUICK = {"n_clusters": 3, "random_state": 0}
ESTIMATORS = {
    "consensus": (nmfcluster.NMFConsensus(n_estimators=3, **QUICK), X),
    "partitions": (nmfcluster.NMFConsensus(affinity="partitions", **QUICK), TABLE),
    "constraints": (nmfcluster.SSNMFClusterer(**QUICK), X),
    "precomputed": (
        nmfcluster.SSNMFClusterer(affinity="precomputed", **QUICK),
        X @ X.T,
    ),
    "fusion": (nmfcluster.SimilarityFusionNMF(affinity="rbf", **QUICK), X),
    "metaclusters": (nmfcluster.NMFMetaCluster(n_estimators=3, **QUICK), X),
}
NAMED = (
    "NMFConsensus for tables of labels",
    "base_partitions for features",
    "predict",
    "transform",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["partitions", "constraints", "fusion", "metaclusters"]
)
def test_a_small_array_is_gathered_with_a_warning(name):
    model, table = ESTIMATORS[name]
    blocks = da.from_array(table, chunks=(20, 2))
    with warns_naming(UserWarning, "X", "Dask") as caught:
        labels = model.fit(blocks).labels_
    (told,) = caught
    assert told.filename == __file__
    assert "was gathered into memory" in str(told.message)
    assert "nmfcluster.dask has" in str(told.message)
    assert all(each in str(told.message) for each in NAMED)
    assert_array_equal(labels, model.fit(table).labels_)
    with warns_naming(UserWarning, "X", "Dask"):
        assert_array_equal(model.predict(blocks), model.predict(table))


def test_partitions_beside_features_are_gathered_with_a_warning():
    model = nmfcluster.NMFConsensus(**QUICK)
    with warns_naming(UserWarning, "partitions", "Dask") as caught:
        labels = model.fit(X, partitions=da.from_array(TABLE, chunks=(20, 2))).labels_
    assert len(caught) == 1
    assert_array_equal(labels, model.fit(X, partitions=TABLE).labels_)


def uncomputed(rows, columns):
    """Return an array that is never computed."""

    def fail(block):
        raise AssertionError("it was computed")

    made = da.zeros((rows, columns), chunks=(max(rows // 4, 1), columns))
    return made.map_blocks(fail, dtype=float, meta=made._meta)


def test_a_large_array_is_refused_before_anything_is_computed():
    large = uncomputed(2**26 + 1, 2)  # of 8 bytes: a row more than 2^30 bytes
    for model, _ in ESTIMATORS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with raises_naming(ValueError, "X", "in memory") as told:
                model.fit(large)
        assert "more than the 1024 MiB" in str(told.value)
        assert "pass X.compute()" in str(told.value)
        assert all(each in str(told.value) for each in NAMED)


def test_large_partitions_beside_features_are_refused():
    with raises_naming(ValueError, "partitions", "Dask"):
        nmfcluster.NMFConsensus(**QUICK).fit(X, partitions=uncomputed(2**26 + 1, 2))


def test_the_stated_size_is_the_largest_that_is_gathered(monkeypatch):
    monkeypatch.setattr("nmfcluster._utils.validation._MAX_DASK_BYTES", X.nbytes)
    model, _ = ESTIMATORS["metaclusters"]
    with warns_naming(UserWarning, "gathered"):
        model.fit(da.from_array(X))
    with raises_naming(ValueError, "in memory"):
        model.fit(da.from_array(np.r_[X, X[:1]]))


def test_blocks_of_unknown_size_are_gathered_with_a_warning():
    blocks = da.from_array(X, chunks=(20, 4))
    with warns_naming(UserWarning, "X", "gathered"):
        found = ESTIMATORS["metaclusters"][0].fit(blocks[blocks[:, 0] > 0])
    assert len(found.labels_) == 90
