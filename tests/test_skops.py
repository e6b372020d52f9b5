"""Fitted models are saved by skops: it takes arrays, plain values and classes, and no code."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)

pd = pytest.importorskip("pandas")
sio = pytest.importorskip("skops.io")

POINTS, CLASSES = make_blobs(60, centers=3, n_features=4, random_state=1)
ROWS = [f"s{i}" for i in range(60)]
FRAME = pd.DataFrame(POINTS - POINTS.min(axis=0), index=ROWS, columns=list("abcd"))
CLOSE = np.exp(-((POINTS[:, None] - POINTS) ** 2).sum(axis=2) / 50)
KERNEL = pd.DataFrame(CLOSE, index=ROWS, columns=ROWS)
PAIRS = PairwiseConstraints.from_ids(ROWS, [("s1", "s2")], [("s3", "s4")])
PARTITIONS = FRAME.round().astype(int)
SHARED = {"random_state": 0}

FITS = {
    "consensus": (NMFConsensus(3, **SHARED), FRAME, {}),
    "consensus of k-means": (
        NMFConsensus(3, estimator=KMeans(n_init=1), n_estimators=5, **SHARED),
        FRAME,
        {},
    ),
    "consensus of labels": (NMFConsensus(3, affinity="partitions"), PARTITIONS, {}),
    "consensus of a kernel": (NMFConsensus(3, affinity="precomputed"), KERNEL, {}),
    "pairs": (SSNMFClusterer(3, **SHARED), FRAME, {"constraints": PAIRS}),
    "pairs, kernel": (SSNMFClusterer(3, affinity="precomputed"), KERNEL, {}),
    "pairs, landmarks": (SSNMFClusterer(3, affinity="landmarks"), FRAME, {}),
    "fusion": (
        SimilarityFusionNMF(3, affinity="rbf"),
        {"left": FRAME[["a", "b"]], "right": FRAME[["c", "d"]]},
        {},
    ),
    "fusion of kernels": (
        SimilarityFusionNMF(3),
        SimilarityStack({"a": KERNEL, "b": KERNEL**2}),
        {},
    ),
    "programs": (NMFMetaCluster(3, n_estimators=3, **SHARED), FRAME, {}),
    "programs of groups": (
        NMFMetaCluster(3, n_estimators=3, base_n_clusters=3, min_groups=1, **SHARED),
        FRAME,
        {"groups": np.repeat(["x", "y"], 30)},
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", FITS)
def test_a_fitted_model_is_saved(name):
    model, X, fit_params = FITS[name]
    model.fit(X, **fit_params)
    saved = sio.dumps(model)
    types = sio.get_untrusted_types(data=saved)
    loaded = sio.loads(saved, trusted=types)
    assert_array_equal(loaded.labels_, model.labels_)
    assert_array_equal(loaded.predict(X), model.predict(X))
    # what has to be trusted is of this package, scikit-learn and what these stand on
    owners = {one.partition(".")[0] for one in types}
    assert owners <= {"nmfcluster", "sklearn", "numpy", "scipy", "functools"}
