"""What the tests of faults share: a problem for each estimator, and what is compared of a fit.

Worker processes import this, which they cannot do from a test file; run as a script, it prints
what the fits find.
"""

import hashlib
import signal
import time
from contextlib import contextmanager

import numpy as np
from sklearn.base import clone
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


if __name__ == "__main__":
    for name in MODELS:
        print(digest(name))
