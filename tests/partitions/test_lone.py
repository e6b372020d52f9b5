"""Clusters of one sample: the warning that names them, and models that far samples do not move."""

import warnings

import numpy as np
import pandas as pd
import pytest
from refusals import warns_naming
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import RobustScaler

from nmfcluster import NMFConsensus, SimilarityFusionNMF, SSNMFClusterer
from nmfcluster.partitions import LandmarkSpectral
from nmfcluster.partitions.ensemble import warn_of_singletons
from nmfcluster.partitions.inputs import LabelTable

Y = np.repeat([0, 1, 2], [150, 40, 20])


def far_from_blobs(n_far, seed):
    """Return three blobs, 20 standard deviations apart, and samples a thousand and more away."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n_far, 4))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    far = directions * rng.uniform(1e3, 4e3, size=(n_far, 1))
    return np.vstack([20 * np.eye(4)[Y] + rng.normal(size=(len(Y), 4)), far])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "model",
    [
        SSNMFClusterer(3),
        SimilarityFusionNMF(3, affinity="nearest_neighbors"),
        LandmarkSpectral(3),
        NMFConsensus(
            3, n_estimators=3, base_n_clusters=3, estimator=LandmarkSpectral(3)
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("n_far", [1, 3])
@pytest.mark.filterwarnings("ignore:Nothing .* the cluster of")  # of the far sample
def test_far_samples_take_no_clusters(model, n_far):
    for seed in (0, 1):
        labels = (
            model.set_params(random_state=seed).fit(far_from_blobs(n_far, seed)).labels_
        )
        assert adjusted_rand_score(Y, labels[: len(Y)]) == 1


def test_far_samples_that_took_clusters_are_named():
    far = np.eye(4)[:1] * [[1e3], [2e3], [3e3]]
    X = np.vstack([far_from_blobs(0, 0), far])
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    base = KMeans(n_init=1)
    model = NMFConsensus(
        3, estimator=base, n_estimators=10, base_n_clusters=3, random_state=0
    )
    with warns_naming(UserWarning, "one sample") as told:
        labels = model.fit(X).labels_
    alone = [i for i in range(len(X)) if np.sum(labels == labels[i]) == 1]
    assert len(alone) == 2
    assert f": {alone[0]}, {alone[1]}. " in str(told[0].message)
    with warns_naming(UserWarning, f"row {alone[0]}", f"row {alone[1]}"):
        model.fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # what the message says helps
        for cured in (X[:-3], np.clip(RobustScaler().fit_transform(X), -5, 5)):
            assert adjusted_rand_score(Y, model.fit(cured).labels_[: len(Y)]) == 1


@pytest.mark.parametrize("seed", range(4))
def test_samples_are_lone_by_their_cluster_and_most_partitions_that_saw_them(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(4, size=(60, 5))
    table[:6] = np.where(
        rng.random((6, 5)) < 0.5, 100 + np.arange(6)[:, None], table[:6]
    )
    table[rng.random(table.shape) < 0.2] = -1
    table[:, 0] = np.maximum(table[:, 0], 0)
    problem, groups = LabelTable(table, "X").problem(None, True)
    alone = rng.choice(60, size=3, replace=False)
    alone[0] = 0
    clusters = np.full(60, 3)
    clusters[alone] = [0, 1, 2]
    expected = []
    for i in range(60):
        seen = [t for t in range(5) if table[i, t] >= 0]
        singles = [t for t in seen if np.sum(table[:, t] == table[i, t]) == 1]
        if np.sum(clusters == clusters[i]) == 1 and len(singles) > len(seen) / 2:
            expected.append(i)
    labels = np.full(problem.counts.shape, 3)
    labels[groups] = clusters
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn_of_singletons(problem, groups, labels, 4, None)
    if expected:
        assert f": {', '.join(map(str, expected))}. If" in str(told[0].message)
    assert len(told) == bool(expected)
    # where small clusters are asked for
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_singletons(problem, groups, labels, 7, None)


def test_many_samples_are_counted():
    table = np.r_[np.zeros(200, dtype=int), np.arange(1, 8)][:, None]
    problem, groups = LabelTable(table, "X").problem(None, True)
    with warns_naming(UserWarning, "7 clusters", "200, 201, 202, 203, 204 and 2 more"):
        warn_of_singletons(problem, groups, np.arange(8), 8, None)


def test_ordinary_clusters_are_not_said_to_be_lone():
    X, _ = make_blobs(120, centers=4, cluster_std=2.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NMFConsensus(4, n_estimators=10, random_state=0).fit(X)
        NMFConsensus(30, n_estimators=10, random_state=0).fit(X)
