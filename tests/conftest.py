"""What the tests share: the public estimators in all their modes, and the data folder."""

import builtins
import inspect
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_clusterer
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import nmfcluster

# Every public estimator is tested with its defaults; these are the modes it has besides.
OTHER_MODES = {
    "KernelStack": [{"kernels": "rbf"}],
    "NMFConsensus": [{"affinity": "precomputed"}, {"affinity": "partitions"}],
    "NMFMetaCluster": [
        {"meta": "nmf", "base_n_clusters": (2, 4), "solver": "mu", "n_runs": 4, "max_iter": 200},
        {"meta": "kmeans", "sparsity": 0.1, "penalty": "l1_rows"},
    ],
    "SSNMFClusterer": [
        {"affinity": "precomputed"},
        {"affinity": "cosine"},
        {"affinity": "rbf", "factorization": "tri", "core": "full"},
    ],
    "SimilarityFusionNMF": [
        {"affinity": "rbf"},
        {"affinity": ["nearest_neighbors", "rbf"], "symmetric": False, "perplexity": 1.5},
    ],
}

# These compare results as arrays; with "rbf", whose stack is dense, all of them pass.
SPARSE = "a stack with sparse sources is made an array by toarray() alone, not in passing"

# (class, affinity or kernels): checks of scikit-learn that must fail, and why.
EXPECTED_FAILURES = {
    ("KernelStack", "nearest_neighbors"): {
        "check_estimators_pickle": SPARSE,
        "check_fit_idempotent": SPARSE,
        "check_methods_sample_order_invariance": SPARSE,
        "check_methods_subset_invariance": SPARSE,
        "check_pipeline_consistency": SPARSE,
        "check_transformer_data_not_an_array": SPARSE,
        "check_transformer_general": SPARSE,
    },
    ("SimilarityFusionNMF", "precomputed"): {
        "check_clustering": "fits standardised features, which are no similarity, whatever the "
        "tags say",
    },
    ("NMFMetaCluster", "None"): {
        "check_clustering": "fits standardised features, some of them negative, whatever the tags "
        "say",
    },
    ("NMFConsensus", "precomputed"): {
        "check_clustering": "fits standardised features, which are no similarity, whatever the "
        "tags say",
    },
    ("NMFConsensus", "partitions"): {
        "check_clustering": "fits standardised features, whose fractions are no labels",
        "check_positive_only_tag_during_fit": "fits normally distributed numbers, whose fractions "
        "are no labels; there is no tag for that, and negative labels are allowed (not seen)",
    },
    ("SSNMFClusterer", "precomputed"): {
        "check_clustering": "fits standardised features, which are no similarity, whatever the "
        "tags say",
    },
}


def estimators():
    """Return every public estimator, once a mode."""
    found = []
    for name in nmfcluster.__all__:
        public = getattr(nmfcluster, name)
        if inspect.isclass(public) and issubclass(public, BaseEstimator):
            signature = inspect.signature(public).parameters
            needed = {"n_clusters": 3} if "n_clusters" in signature else {}
            found += [public(**needed, **mode) for mode in [{}, *OTHER_MODES.get(name, [])]]
    return found


def expected_failures(estimator):
    given = estimator.get_params()
    mode = given.get("affinity", given.get("kernels"))
    return EXPECTED_FAILURES.get((type(estimator).__name__, str(mode)), {})


def input_of(estimator, n_samples=60):
    """Return three well separated clusters in the form that the estimator's tags ask for."""
    X, y = make_blobs(n_samples, centers=np.eye(3) * 10, cluster_std=1.0, random_state=0)
    tags = get_tags(estimator).input_tags
    if tags.categorical:  # a table of labels: the clusters, each time with a few mistakes
        rng = np.random.RandomState(0)
        wrong = rng.uniform(size=(n_samples, 9)) < 0.1
        return np.where(wrong, rng.randint(3, size=wrong.shape), y[:, None]), y
    if tags.pairwise:
        return rbf_kernel(X, gamma=0.05), y
    return (np.maximum(X, 0) if tags.positive_only else X), y


def pytest_generate_tests(metafunc):
    """Hand every clusterer, in each mode, or every check of every estimator, to those who ask."""
    asked = set(metafunc.fixturenames)
    if {"public_estimator", "check"} <= asked:
        mark = parametrize_with_checks(estimators(), expected_failed_checks=expected_failures)
        metafunc.parametrize("public_estimator, check", *mark.args[1:], **mark.kwargs)
    elif "public_estimator" in asked:
        clusterers = [estimator for estimator in estimators() if is_clusterer(estimator)]
        metafunc.parametrize("public_estimator", clusterers, ids=repr)


@pytest.fixture
def make_input():
    return input_of


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Make every import of matplotlib fail."""
    really_import = builtins.__import__

    def importing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return really_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


@pytest.fixture
def require_names():
    """Return a function that skips the test where scikit-learn sees no names in a data frame."""

    def require(frame):
        if not hasattr(StandardScaler().fit(frame), "feature_names_in_"):
            pytest.skip("this scikit-learn does not see the names of columns of this polars")

    return require


@pytest.fixture
def load_data():
    """Return a function from the name of a data set to X and y."""
    folder = os.environ.get("NMFCLUSTER_DATA")
    if not folder:
        pytest.skip("NMFCLUSTER_DATA does not name a folder with the data sets")

    def load(name):
        with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as data:
            if "indptr" not in data:
                return data["X"].astype(float), data["y"]
            parts = data["data"].astype(float), data["indices"], data["indptr"]
            return sp.csr_array(parts, shape=tuple(data["shape"])), data["y"]

    return load
