"""Fits in a process that has not enough memory, or nowhere to put what its workers share.

Run with "memory" or "disk", it prints a line for each fit: its estimator, what
was raised, the attributes that the estimator was left with.
"""

import os
import resource
import sys
import tempfile

import numpy as np
import scipy.linalg
from faults.shared import DATA, MODELS, found, result
from sklearn.base import clone
from sklearn.cluster import KMeans

from nmfcluster import NMFConsensus, NMFMetaCluster, SimilarityFusionNMF, SSNMFClusterer
from nmfcluster.consensus import estimator

MEMORY = 24 * 2**20  # more than the process has before the fit
LARGE = {
    "consensus": (
        NMFConsensus(150, affinity="precomputed", n_init=16),
        np.full((1200, 1200), 0.1) + np.eye(1200),
    ),
    "constrained": (
        SSNMFClusterer(3, affinity="rbf"),
        np.linspace(0, 1, 9000).reshape(3000, 3),
    ),
    "fusion": (
        SimilarityFusionNMF(3, affinity="rbf"),
        np.linspace(0, 1, 9000).reshape(3000, 3),
    ),
    "metaclusters": (
        NMFMetaCluster(30, n_estimators=64, max_iter=5),
        np.linspace(0, 1, 900_000).reshape(300, 3000),
    ),
}


def limited(kind, value):
    """Set a limit that can be taken back."""
    resource.setrlimit(kind, (value, resource.RLIM_INFINITY))


def tell(name, model, X):
    try:
        model.fit(X)
        error = "nothing"
    except Exception as raised:
        error = "|".join(kind.__name__ for kind in type(raised).__mro__)
        if "[Errno" in f"{raised} {raised.__cause__}":
            error += "|Errno"
    left = [attribute for attribute in vars(model) if attribute.endswith("_")]
    print(name, error, "|".join(left) or "unfitted", flush=True)


def run_out_of_memory():
    # One job, and what BLAS keeps for itself before: OpenBLAS ends a process that it cannot have
    # a buffer in, and takes one for each thread that is in a product.
    square = np.ones((500, 500))
    assert (square @ square == scipy.linalg.blas.dgemm(1, square, square)).all()
    expected = {name: result(name) for name in MODELS}
    for name, (model, X) in LARGE.items():
        with open("/proc/self/statm") as sizes:
            size = int(sizes.read().split()[0]) * resource.getpagesize()
        limited(resource.RLIMIT_AS, size + MEMORY)
        tell(name, clone(model).set_params(random_state=0), X)
        again = clone(MODELS[name])
        assert found(again.fit(DATA[name]), DATA[name]) == expected[name]
        limited(resource.RLIMIT_AS, resource.RLIM_INFINITY)


def run_out_of_disk():
    # large enough to be put into a file
    X = np.random.RandomState(0).uniform(size=(20_000, 8))
    options = {"n_estimators": 3, "n_init": 1, "max_iter": 20, "tol": 1e-2}
    estimator.COARSE = 300  # samples, of more of which a part is fitted first
    base = KMeans(n_init=1)  # the default base runs need no processes
    model = NMFConsensus(3, estimator=base, random_state=0, **options)
    expected = clone(model).fit(X).labels_
    model.set_params(n_jobs=2)
    with tempfile.TemporaryDirectory() as folder:
        # which is no folder
        os.environ["JOBLIB_TEMP_FOLDER"] = os.path.join(__file__, "below")
        tell("consensus", model, X)
        os.environ["JOBLIB_TEMP_FOLDER"] = folder
        limited(resource.RLIMIT_FSIZE, 2**16)
        tell("consensus", model, X)
        limited(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)
        assert (model.fit(X).labels_ == expected).all()


if __name__ == "__main__":
    {"memory": run_out_of_memory, "disk": run_out_of_disk}[sys.argv[1]]()
