"""Figures of Li, Ding and Jordan (2007), Table 1: accuracy of the consensus of 40 k-means runs.

Raw features, base partitions of as many clusters as there are classes, random starts of k-means,
averaged over five trials, as there.
"""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine

from nmfcluster import NMFConsensus
from nmfcluster.metrics import clustering_accuracy


def mean_accuracies(X, y, n_trials=5):
    """Return the accuracy of k-means and of its consensus, both to two digits as printed."""
    k = len(np.unique(y))
    single, consensus = [], []
    for seed in range(n_trials):
        model = NMFConsensus(
            k,
            estimator=KMeans(init="random", n_init=1),
            n_estimators=40,
            base_n_clusters=k,
            n_init=5,
            random_state=seed,
        ).fit(X)
        consensus.append(clustering_accuracy(y, model.labels_))
        single += [clustering_accuracy(y, labels) for labels in model.partitions_.T]
    return round(np.mean(single), 2), round(np.mean(consensus), 2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("load", "published"), [(load_iris, 0.89), (load_wine, 0.70)], ids=["iris", "wine"]
)
def test_consensus_is_as_accurate_as_published(load, published):
    single, consensus = mean_accuracies(*load(return_X_y=True))
    assert consensus >= published
    assert consensus >= single


@pytest.mark.slow
def test_consensus_of_digits_is_as_accurate_as_published(load_data):
    single, consensus = mean_accuracies(*load_data("digits389"))
    assert consensus >= 0.73
    assert consensus >= single
