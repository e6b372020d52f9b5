"""Numbers of clusters, as the estimators share them."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.base import clone

import nmfcluster
from nmfcluster._base import membership, number_by_size

ESTIMATORS = [
    nmfcluster.NMFConsensus,
    nmfcluster.NMFMetaCluster,
    nmfcluster.SSNMFClusterer,
    nmfcluster.SimilarityFusionNMF,
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_of_others_are_explained(estimator):
    with raises_naming(TypeError, "verbose", "logging.basicConfig(level=logging.INFO)"):
        estimator(3, verbose=1)
    for name in ("k", "n_components"):
        with raises_naming(TypeError, f"'{name}'", "n_clusters"):
            estimator(**{name: 3})
    with raises_naming(TypeError, "'colour'"):
        estimator(3, colour=1)


def test_a_subclass_may_have_a_parameter_that_is_explained_otherwise():
    class Verbose(nmfcluster.NMFConsensus):
        def __init__(self, n_clusters, *, verbose=0):
            super().__init__(n_clusters)
            self.verbose = verbose

    model = clone(Verbose(3, verbose=2))
    assert (model.n_clusters, model.verbose) == (3, 2)
    assert list(inspect.signature(Verbose).parameters) == ["n_clusters", "verbose"]


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 12), st.booleans())
def test_clusters_are_numbered_by_size_and_rows_in_none_stay_so(seed, k, n, weighted):
    rng = np.random.default_rng(seed)
    labels, P = rng.integers(-1, k, size=n), rng.uniform(size=(n, k))
    counts = rng.integers(1, 9, size=n) if weighted else None
    memberships, found, order = number_by_size(P, labels, counts)
    assert sorted(order) == list(range(k))
    assert_array_equal(memberships, P[:, order])
    mass = np.ones(n) if counts is None else counts
    sizes = [mass[found == c].sum() for c in range(k)]
    assert sizes == sorted(sizes, reverse=True)
    for i in range(n):
        assert found[i] == -1 if labels[i] == -1 else order[found[i]] == labels[i]


def test_rows_in_no_cluster_make_none_larger():
    labels = np.array([2, 2, -1, -1, -1, 0])
    _, found, order = number_by_size(np.eye(6, 3), labels)
    assert_array_equal(order, [2, 0, 1])
    assert_array_equal(found, [0, 0, -1, -1, -1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memberships_are_shares_and_uniform_where_there_is_nothing(dtype):
    P = membership(np.array([[1, 3], [0, 0], [0, 5]], dtype=dtype))
    assert P.dtype == dtype
    assert_allclose(P, [[0.25, 0.75], [0.5, 0.5], [0, 1]])


def test_clusters_of_equal_size_keep_their_order_and_empty_ones_come_last():
    def order(labels, n_clusters, counts=None):
        memberships = np.ones((len(labels), n_clusters))
        return number_by_size(memberships, np.array(labels), counts)[2].tolist()

    labels = [2, 2, 0, 1, 2, 0]
    assert order(labels, 5) == [2, 0, 1, 3, 4]
    assert order([1, 0, 3], 4) == [0, 1, 3, 2]
    assert order(labels, 3, counts=np.array([1, 1, 1, 9, 1, 1])) == [1, 2, 0]
