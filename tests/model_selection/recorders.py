"""Clusterers that check that what they are given belongs to their samples.

Worker processes import them, which they cannot do from a test file.
"""

import numpy as np
from model_selection.clusterers import Y
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from nmfcluster import PairwiseConstraints, SSNMFClusterer

KNOWN = PairwiseConstraints.from_labels(Y, n_pairs=300, random_state=0)
WEIGHT = np.arange(1.0, 121.0)

CLOSE, CLOSE_LABELS = make_blobs(
    90, centers=3 * np.eye(3), cluster_std=1.0, random_state=0
)
CLOSE_NAMED = np.column_stack([np.arange(90), CLOSE])
CLOSE_PAIRS = PairwiseConstraints.from_labels(CLOSE_LABELS, n_pairs=400, random_state=0)


class Recorder(KMeans):
    """Fits rows of NAMED, with their entries of Y, KNOWN and WEIGHT."""

    wanted, unwanted = (), ()

    def fit(self, X, y=None, sample_weight=None, constraints=None):
        rows = X[:, 0].astype(int)
        if sample_weight is not None:
            np.testing.assert_array_equal(sample_weight, WEIGHT[rows])
        if constraints is not None:
            assert constraints == KNOWN[rows]
        if y is not None:
            np.testing.assert_array_equal(y, Y[rows])
        asked = {"weight": sample_weight, "constraints": constraints, "y": y}
        for name in self.wanted:
            assert asked[name] is not None, name
        for name in self.unwanted:
            assert asked[name] is None, name
        return super().fit(X[:, 1:])

    def predict(self, X):
        return super().predict(X[:, 1:])


class WantsWeight(Recorder):
    wanted = ("weight",)


class WantsNoWeight(Recorder):
    unwanted = ("weight",)


class WantsAll(Recorder):
    wanted = ("weight", "constraints", "y")


class WantsTarget(Recorder):
    wanted = ("y",)


class ConstrainedRecorder(SSNMFClusterer):
    """Fits rows of CLOSE_NAMED, with their constraints of CLOSE_PAIRS."""

    def fit(self, X, y=None, *, constraints=None):
        rows = X[:, 0].astype(int)
        assert constraints == CLOSE_PAIRS[rows]
        super().fit(X[:, 1:], y, constraints=constraints)
        self.rows_ = rows
        return self

    def predict(self, X):
        self.asked_ = X[:, 0].astype(int)
        return super().predict(X[:, 1:])
