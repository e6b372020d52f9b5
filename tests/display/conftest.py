"""What the tests of pictures share: models, tables of results, and that figures are closed."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from nmfcluster import NMFConsensus, NMFMetaCluster, PairwiseConstraints, SSNMFClusterer
from nmfcluster.datasets import make_biclusters, make_partitions, make_signatures
from nmfcluster.model_selection import sweep_n_clusters


@pytest.fixture(autouse=True)
def _close_figures():
    """Let no window open, and close what a test drew."""
    pytest.importorskip("matplotlib").use("Agg")
    yield
    pytest.importorskip("matplotlib.pyplot").close("all")


@pytest.fixture(scope="session")
def consensus():
    partitions, _ = make_partitions(
        (60, 25, 9, 2), n_partitions=15, noise=0.3, random_state=0
    )
    return NMFConsensus(
        n_clusters=4, affinity="partitions", n_init=4, random_state=0
    ).fit(partitions)


@pytest.fixture(scope="session")
def constrained():
    X, y = make_blobs(90, centers=4, cluster_std=3.0, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=150, random_state=0)
    model = SSNMFClusterer(n_clusters=4, hard_must_link=False, random_state=0)
    return model.fit(X, constraints=pairs)


@pytest.fixture(scope="session")
def outside():
    """Return the number of rows, and of columns, of the table that are in no bicluster."""
    return 4


@pytest.fixture(scope="session")
def table(outside):
    """Return a shuffled table of overlapping biclusters, and of rows and columns of zeros."""
    X, _, _ = make_biclusters((30, 45), 4, random_state=1)
    rng = np.random.RandomState(0)
    X = np.pad(X, ((0, outside), (0, outside)))
    return X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])]


@pytest.fixture(scope="session")
def biclusters(table):
    return NMFMetaCluster(4, n_estimators=6, random_state=0).fit(table)


@pytest.fixture(scope="session")
def sweep():
    """Return a sweep over counts with four clusters."""
    X, _, _ = make_signatures(30, 4, 20, random_state=0)
    model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=2, random_state=0)
    return sweep_n_clusters(model, X, range(3, 6), n_folds=2, random_state=0)


@pytest.fixture(scope="session")
def planted():
    """Return a function that makes a shuffled chain of biclusters, and says where each one was."""

    def make(seed=3):
        X, W, H = make_biclusters(
            (50, 80), 5, overlap=0.3, twins=False, random_state=seed
        )
        rng = np.random.RandomState(seed)
        rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
        chain = rng.permutation(5)
        return (
            X[rows][:, columns],
            W.T[chain][:, rows] > 0,
            H[chain][:, columns] > 0,
            chain,
        )

    return make
