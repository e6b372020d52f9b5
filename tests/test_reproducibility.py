"""One seed, one result: whatever the number of jobs and threads, and wherever they run."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

import nmfcluster
from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
    datasets,
)
from nmfcluster.affinity import make_affinity
from nmfcluster.consensus import estimator
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions import base_partitions

# A few updates are enough to compare.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

FEATURES, CLASSES = make_blobs(
    500, n_features=8, centers=5, cluster_std=4, random_state=0
)
PAIRS = PairwiseConstraints.from_labels(CLASSES, n_pairs=300, random_state=0)
# of integers: the same for any BLAS
KERNEL = rbf_kernel(np.round(FEATURES), gamma=0.005)
TABLE, _ = make_partitions((200, 100, 50), n_partitions=20, noise=0.5, random_state=0)
HOLEY, _ = make_partitions(
    (200, 100), n_partitions=20, noise=0.4, missing=0.3, random_state=0
)

# the dense similarity is large enough for BLAS to use threads, and its starts share a batch
PROBLEMS = {
    "features": (FEATURES, {"n_clusters": 5, "n_estimators": 6}),
    "parts of features": (
        FEATURES,
        {"n_clusters": 5, "n_estimators": 9, "max_samples": 0.6, "max_features": 0.5},
    ),
    "labels": (TABLE, {"n_clusters": 3, "affinity": "partitions"}),
    "labels, a part": (TABLE, {"n_clusters": 3, "affinity": "partitions"}),
    "missing labels": (HOLEY, {"n_clusters": 2, "affinity": "partitions"}),
    "labels, pairs": (
        TABLE,
        {"n_clusters": 3, "affinity": "partitions", "normalize": False},
    ),
    "similarity": (
        KERNEL,
        {
            "n_clusters": 4,
            "affinity": "precomputed",
            "n_init": 5,
            "max_iter": 20,
            "tol": -1,
        },
    ),
}
# of whole numbers, so that products for distances are the same for any BLAS
WHOLE = np.round(FEATURES)
CONSTRAINED = {
    "neighbours, hard": (FEATURES, {"n_clusters": 5}),
    "kernel, soft": (
        WHOLE,
        {"n_clusters": 5, "affinity": "rbf", "hard_must_link": False, "max_iter": 20},
    ),
    "cosine": (
        FEATURES,
        {
            "n_clusters": 5,
            "affinity": "cosine",
            "max_iter": 40,
        },
    ),
    "similarity, full core": (
        KERNEL,
        {
            "n_clusters": 4,
            "affinity": "precomputed",
            "factorization": "tri",
            "max_iter": 20,
            "tol": -1,
        },
    ),
}
FUSED = {
    "sources": (
        SimilarityStack(
            [KERNEL, rbf_kernel(WHOLE[:, :4], gamma=0.02), sp.csr_array(KERNEL > 0.1)]
        ),
        {"n_clusters": 4, "eta": 0.3, "max_iter": 3, "tol": -1},
    ),
    "kernels, a part": (
        WHOLE,
        {
            "n_clusters": 5,
            "affinity": ["rbf", "nearest_neighbors"],
            "symmetric": False,
            "max_samples": 300,
            "max_iter": 5,
            "tol": -1,
        },
    ),
}
COUNTS = np.random.RandomState(0).poisson(np.exp(FEATURES[:400] @ np.eye(8, 300) / 3))
METACLUSTERED = {
    "counts": (
        COUNTS,
        {"n_clusters": 5, "n_estimators": 12, "max_iter": 4, "tol": -1},
    ),
    "counts, sparse factors": (
        sp.csr_array(COUNTS),
        {
            "n_clusters": 4,
            "n_estimators": 12,
            "meta": "nmf",
            "base_n_clusters": (3, 6),
            "sparsity": 0.1,
            "max_iter": 5,
        },
    ),
    "counts, many runs": (
        COUNTS,
        {"n_clusters": 5, "n_estimators": 60, "meta": "nmf", "max_iter": 4},
    ),
}
PROBLEMS |= CONSTRAINED | FUSED | METACLUSTERED
ATTRIBUTES = ["labels_", "membership_", "loss_curve_"]


def result(problem, **parameters):
    """Return the fitted attributes as bytes, and the loss."""
    X, options = PROBLEMS[problem]
    few = {"random_state": 7, "n_init": 3, "max_iter": 20}
    options = few | options | parameters
    if problem in CONSTRAINED:
        model = SSNMFClusterer(**options).fit(X, constraints=PAIRS)
        own = ["core_", "must_link_groups_"]
    elif problem in FUSED:
        model = SimilarityFusionNMF(**options).fit(X)
        own = ["core_", "weights_", "source_losses_", "sample_indices_"]
    elif problem in METACLUSTERED:
        model = NMFMetaCluster(**options).fit(X)
        own = [
            "components_",
            "factor_",
            "correspondence_",
            "run_losses_",
            "confidence_",
        ]
    else:
        part = 100 if problem == "labels, a part" else estimator.COARSE
        with patch.object(estimator, "COARSE", part):
            model = NMFConsensus(**options).fit(X)
        own = ["core_", "partitions_", "confidence_"]
    found = {name: getattr(model, name) for name in [*ATTRIBUTES, *own]}
    return {name: None if a is None else a.tobytes() for name, a in found.items()} | {
        "loss_": model.loss_,
        "predict": model.predict(X).tobytes(),
    }


@pytest.fixture(scope="module")
def expected():
    """Return the results with one job and one thread; each is computed once."""
    results = {}

    def of(problem):
        if problem not in results:
            with threadpool_limits(1):
                results[problem] = result(problem)
        return results[problem]

    return of


def assert_same(actual, expected):
    assert {name for name in expected if actual[name] != expected[name]} == set()


def digest(result):
    return hashlib.sha256(repr(sorted(result.items())).encode()).hexdigest()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_same_seed_same_result_with_other_threads(problem, expected):
    """A generator from the seed is as good as the seed."""
    with threadpool_limits(2):
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
        assert_same(
            result(problem, random_state=np.random.RandomState(7)), expected(problem)
        )


@pytest.mark.sampled(8)
def test_every_fit_draws_its_seed_from_a_generator(public_estimator, make_input):
    X, draws = make_input(public_estimator)[0], np.random.default_rng(7)
    model = clone(public_estimator).set_params(random_state=np.random.default_rng(7))
    for _ in range(2):
        copy = clone(model)
        seeded = clone(public_estimator).set_params(
            random_state=int(draws.integers(2**32))
        )
        expected = seeded.fit(X)
        for found in (copy.fit(X), model.fit(X)):
            assert_array_equal(found.membership_, expected.membership_)
            assert [*map(list, found.loss_curves_)] == [
                *map(list, expected.loss_curves_)
            ]


def test_functions_draw_from_a_generator():
    X = FEATURES[:60]
    for draw in [
        lambda **seed: make_partitions(40, **seed)[0],
        lambda **seed: datasets.make_nested_rings(40, **seed)[0],
        lambda **seed: datasets.make_biclusters(**seed)[0],
        lambda **seed: datasets.make_programs(**seed)[0],
        lambda **seed: datasets.make_signatures(n_signatures=3, **seed)[0],
        lambda **seed: PairwiseConstraints.from_labels(CLASSES, 20, **seed).must_link,
        lambda **seed: (
            base_partitions(X, n_estimators=3, max_samples=0.5, **seed).labels
        ),
        lambda **seed: make_affinity(
            X, "landmarks", n_landmarks=9, **seed
        ).similarity.toarray(),
    ]:
        rng = np.random.default_rng(1)
        first, second = (draw(random_state=rng) for _ in range(2))
        assert_array_equal(draw(random_state=np.random.default_rng(1)), first)
        assert not np.array_equal(first, second)


@pytest.mark.slow
def test_other_seed_other_partitions(expected):
    for problem in ["features", "parts of features"]:
        assert (
            result(problem, random_state=8)["partitions_"]
            != expected(problem)["partitions_"]
        )


@pytest.mark.slow
def test_other_seed_other_starts():
    for cls, problem, changes in [
        (SSNMFClusterer, "kernel, soft", {"n_init": 10}),  # the last ones are random
        (SimilarityFusionNMF, "sources", {"max_samples": 0.7}),  # so are the objects
    ]:
        X, options = PROBLEMS[problem]
        model = cls(**options, **changes)
        ends = {
            tuple(
                curve[-1]
                for curve in model.set_params(random_state=seed).fit(X).loss_curves_
            )
            for seed in (7, 8)
        }
        assert len(ends) == 2


@pytest.mark.sampled(8)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_number_of_jobs_does_not_matter(problem, expected):
    assert_same(result(problem, n_jobs=3), expected(problem))


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_backend_of_joblib_does_not_matter(problem, backend, expected):
    # as above: joblib keeps its processes
    with joblib.parallel_config(backend=backend, n_jobs=3):
        assert_same(result(problem), expected(problem))


@pytest.mark.slow
def test_a_dask_cluster_does_not_matter(expected):
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        for problem in PROBLEMS:
            assert_same(result(problem), expected(problem))


@pytest.mark.slow
def test_environment_of_the_process_does_not_matter(expected):
    """Threads are set here before the libraries load, as users do it: two, above one."""
    libraries = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
    search_path = {"PYTHONPATH": str(Path(nmfcluster.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__],
        env=os.environ | dict.fromkeys(libraries, "2") | search_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        digest(expected(problem)) for problem in PROBLEMS
    ]


if __name__ == "__main__":
    for problem in PROBLEMS:
        print(digest(result(problem)))
