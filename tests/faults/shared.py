"""What the tests of faults share: a problem for each estimator, and what is compared of a fit.

Worker processes import this, which they cannot do from a test file; run as a script, it prints
what the fits find, or with "workers" what one finds whose base runs are in processes.
"""

import hashlib
import signal
import sys
import time
from contextlib import contextmanager

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from nmfcluster import NMFConsensus, NMFMetaCluster, SimilarityFusionNMF, SSNMFClusterer

FEATURES, CLASSES = make_blobs(
    60, centers=10 * np.eye(3), cluster_std=1.0, random_state=0
)
MODELS = {
    "consensus": NMFConsensus(3, n_estimators=6, random_state=0),
    "constrained": SSNMFClusterer(3, random_state=0),
    "fusion": SimilarityFusionNMF(3, affinity="rbf", n_init=4, random_state=0),
    "metaclusters": NMFMetaCluster(3, n_estimators=6, random_state=0),
}
DATA = {name: FEATURES - FEATURES.min() for name in MODELS}


def found(model, X):
    """Return what a fitted model holds, as bytes."""
    arrays = [model.labels_, model.membership_, model.loss_curve_]
    return [
        array.tobytes() for array in (*arrays, model.predict(X), model.transform(X))
    ]


@contextmanager
def heeding_interrupts():
    """Take notice of interrupts, as what a shell starts behind it does not."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def result(name):
    X = DATA[name]
    return found(clone(MODELS[name]).fit(X), X)


def digest(name):
    return hashlib.sha256(b"".join(result(name))).hexdigest()


def comes_true(condition, seconds=20):
    """Tell whether a condition is met within some time: threads that nobody needs end late."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def result_of_workers(n_jobs):
    """Return what a fit finds whose base runs joblib may send to processes."""
    base = KMeans(n_init=1)
    model = clone(MODELS["consensus"]).set_params(estimator=base, n_jobs=n_jobs)
    return found(model.fit(FEATURES), FEATURES)


if __name__ == "__main__":
    if sys.argv[1:] == ["workers"]:
        with joblib.parallel_config("loky"):
            parts = result_of_workers(n_jobs=-1)
        print(hashlib.sha256(b"".join(parts)).hexdigest())
        sys.exit()
    for name in MODELS:
        print(digest(name))
