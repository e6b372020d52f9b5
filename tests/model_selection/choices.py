"""A number of clusters that is chosen, for the tests of `choose_n_clusters`."""

import numpy as np
from model_selection.clusterers import X, kmeans

from nmfcluster.model_selection import choose_n_clusters

BLOBS = np.abs(X).max() + X  # nonnegative


def chosen(estimator=None, samples=X, candidates=range(1, 7), **options):
    estimator = kmeans() if estimator is None else estimator
    return choose_n_clusters(
        estimator, samples, candidates, **{"random_state": 0} | options
    )
