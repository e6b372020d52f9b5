"""Models in memory on blocks of rows: what they say of the whole array."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.cluster import DBSCAN, KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import nmfcluster
from nmfcluster.datasets import make_partitions

da = pytest.importorskip("dask.array")
nd = pytest.importorskip("nmfcluster.dask")

X = np.abs(make_blobs(120, n_features=4, centers=3, random_state=0)[0])
NEW = np.abs(
    make_blobs(130, n_features=4, centers=4, cluster_std=3.0, random_state=1)[0]
)
TABLE = make_partitions(
    (50, 40, 30), n_partitions=6, noise=0.2, missing=0.1, random_state=0
)[0]
NEW_TABLE = make_partitions(
    (60, 40, 30), n_partitions=6, noise=0.4, missing=0.2, random_state=1
)[0]
QUICK = {"n_clusters": 3, "random_state": 0}

MODELS = {
    "consensus of features": (nmfcluster.NMFConsensus(n_estimators=4, **QUICK), X, NEW),
    "consensus of partitions": (
        *(nmfcluster.NMFConsensus(affinity="partitions", **QUICK), TABLE, NEW_TABLE),
    ),
    "constraints": (nmfcluster.SSNMFClusterer(**QUICK), X, NEW),
    "fusion": (
        *(
            nmfcluster.SimilarityFusionNMF(
                affinity=["rbf", "nearest_neighbors"], **QUICK
            ),
            X,
            NEW,
        ),
    ),
    "metaclusters": (nmfcluster.NMFMetaCluster(n_estimators=4, **QUICK), X, NEW),
    "a pipeline": (
        *(
            make_pipeline(
                StandardScaler(), nmfcluster.NMFConsensus(n_estimators=4, **QUICK)
            ),
            X,
            NEW,
        ),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_labels_and_memberships_are_those_in_memory(name):
    model, old, every = MODELS[name]
    model.fit(old)
    for rows, new in ((1, every[:3]), (50, every)):
        blocks = da.from_array(new, chunks=(rows, 3))
        labels, shares = nd.predict(model, blocks), nd.transform(model, blocks)
        wanted = model.transform(new)
        assert isinstance(labels, da.Array)
        assert (labels.shape, labels.dtype) == ((len(new),), np.int64)
        assert (shares.shape, shares.dtype) == (wanted.shape, wanted.dtype)
        assert labels.chunks[0] == shares.chunks[0] == blocks.chunks[0]
        assert labels.compute().dtype == np.int64
        assert shares.compute().dtype == wanted.dtype
        assert_array_equal(labels.compute(), model.predict(new))
        assert_allclose(shares.compute(), wanted, atol=1e-12)


def test_float32_stays_float32():
    model = nmfcluster.NMFMetaCluster(n_estimators=4, **QUICK).fit(X.astype(np.float32))
    new = NEW.astype(np.float32)
    shares = nd.transform(model, da.from_array(new, chunks=(50, 4)))
    assert shares.dtype == shares.compute().dtype == np.float32
    assert_allclose(shares.compute(), model.transform(new), atol=1e-6)


def test_models_of_others_will_do():
    model, blocks = (
        KMeans(3, n_init=1, random_state=0).fit(X),
        da.from_array(NEW, chunks=(50, 4)),
    )
    assert_array_equal(nd.predict(model, blocks).compute(), model.predict(NEW))
    assert_allclose(nd.transform(model, blocks).compute(), model.transform(NEW))
    few = PCA(2).fit(X)
    assert nd.transform(few, blocks).shape == (130, 2)


def test_nothing_is_computed_before_it_is_asked_for(counted):
    model = KMeans(3, n_init=1, random_state=0).fit(X)
    blocks, calls = counted(NEW, 50)
    labels, shares = nd.predict(model, blocks), nd.transform(model, blocks)
    assert not calls
    labels[:60].compute()
    assert calls == [50, 50]
    shares[120:].compute()
    assert calls[2:] == [30]


@pytest.mark.parametrize(
    "function", [nd.predict, nd.transform], ids=["predict", "transform"]
)
def test_what_is_no_model_or_no_table_of_its_width_is_refused(function):
    blocks, model = da.from_array(NEW, chunks=(50, 4)), KMeans(3, n_init=1).fit(X)
    with pytest.raises(NotFittedError):
        function(nmfcluster.NMFConsensus(3), blocks)
    for other in (3, None, KMeans, DBSCAN()):
        with raises_naming(TypeError, "model", "fitted"):
            function(other, blocks)
    for width in (3, 5):
        with raises_naming(ValueError, "X", "4", str(width)):
            function(model, da.zeros((10, width)))
    with raises_naming(TypeError, "X", "Dask"):
        function(model, NEW)


@pytest.mark.parametrize(
    "function", [nd.predict, nd.transform], ids=["predict", "transform"]
)
def test_missing_numbers_are_refused_when_they_are_met(function):
    lost = NEW.copy()
    lost[77] = np.nan
    found = function(KMeans(3, n_init=1).fit(X), da.from_array(lost, chunks=(50, 4)))
    assert np.isfinite(found[:50].compute()).all()
    with raises_naming(ValueError, "NaN"):
        found.compute()


def test_models_that_make_something_else_are_refused():
    X = da.random.default_rng(0).integers(3, size=(60, 2), chunks=(20, 2))
    held = X.compute()
    regression = LinearRegression().fit(held, held[:, 0] / 2)
    with raises_naming(TypeError, "model", "integer"):
        nd.predict(regression, X).compute()
    with raises_naming(TypeError, "model", "dense"):
        nd.transform(OneHotEncoder(handle_unknown="ignore").fit(held), X)
