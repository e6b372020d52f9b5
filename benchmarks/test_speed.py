"""Timings that guard the speed of fits, with pytest-benchmark: `pytest benchmarks/test_speed.py`.

Each takes a few seconds at most, on one thread, so that two commits can be compared in minutes. The
tests of the package do not collect them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster.affinity import make_affinity
from nmfcluster.datasets import make_biclusters, make_partitions, make_programs

pytestmark = pytest.mark.benchmark(min_rounds=3)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


def test_consensus_of_features(benchmark, digits):
    model = NMFConsensus(10, n_estimators=20, random_state=0)
    benchmark(model.fit, digits[0])


def test_consensus_of_partitions(benchmark):
    table, _ = make_partitions(
        20_000, n_clusters=10, n_partitions=20, noise=0.2, random_state=0
    )
    model = NMFConsensus(10, affinity="partitions", random_state=0)
    benchmark(model.fit, table)


def test_ssnmf_without_pairs(benchmark, digits):
    benchmark(SSNMFClusterer(10, random_state=0).fit, digits[0])


def test_ssnmf_with_pairs(benchmark, digits):
    X, y = digits
    pairs = PairwiseConstraints.from_labels(y, n_pairs=500, random_state=0)
    benchmark(SSNMFClusterer(10, random_state=0).fit, X, constraints=pairs)


def test_fusion_of_two_views(benchmark, digits):
    X = digits[0]
    model = SimilarityFusionNMF(10, random_state=0)
    benchmark(model.fit, {"top": X[:, :32], "bottom": X[:, 32:]})


def test_metaclusters_of_squares(benchmark):
    X = make_biclusters((100, 400), 6, noise=0.25, random_state=0)[0]
    benchmark(NMFMetaCluster(6, n_estimators=20, random_state=0).fit, X)


def test_metaclusters_of_counts(benchmark):
    X = make_programs(200, 500, 6, random_state=0)[0]
    model = NMFMetaCluster(6, n_estimators=10, loss="kullback-leibler", random_state=0)
    benchmark(model.fit, X)


def test_product_of_an_operator(benchmark):
    X, _ = make_blobs(50_000, n_features=10, centers=10, random_state=0)
    similarity = make_affinity(X, "landmarks", random_state=0).similarity
    H = np.random.default_rng(0).uniform(size=(len(X), 10))
    benchmark(similarity.__matmul__, H)
