"""Base partitions as estimators read them: weights, coverage, and the labels of new samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from nmfcluster import NMFConsensus
from nmfcluster._arrays.arguments import normalised_weights
from nmfcluster.partitions.reading import check_coverage


def test_partitions_have_as_many_clusters_as_the_consensus_and_two_at_least():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for n_clusters, fewest, most in ((3, 3, 4), (1, 2, 4), (6, 6, 6)):
        model = NMFConsensus(n_clusters, n_estimators=20, random_state=0).fit(X)
        assert set(model.partitions_.max(axis=0) + 1) == set(range(fewest, most + 1))


@pytest.mark.parametrize(("storage", "scale"), [(np.asarray, 1e300), (sp.csr_array, 1)])
def test_partitions_have_no_more_clusters_than_samples_differ(storage, scale):
    X = storage(np.repeat(np.eye(3) * scale, 40, axis=0))
    model = NMFConsensus(2, n_estimators=10, random_state=0).fit(X)
    assert set(model.partitions_.max(axis=0) + 1) == {2, 3}


def test_weights_are_scaled_to_sum_to_1():
    assert_allclose(normalised_weights(None, 4), 0.25)
    assert_allclose(normalised_weights([1, 0, 3], 3), [0.25, 0, 0.75])


def test_weights_that_do_not_fit_are_refused():
    for weights in ([1, 2], [[1, 2, 3]], [1, -1, 2], [0, 0, 0]):
        with pytest.raises(ValueError, match="weights must be 3 nonnegative numbers"):
            normalised_weights(weights, 3)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"weights must be 2 .*finite"):
            normalised_weights([1, bad], 2)


def test_coverage():
    check_coverage(np.array([[0, -1], [-1, 0]]), "P")
    with pytest.raises(ValueError, match="without a label: 2 samples, the first is sample 1"):
        check_coverage(np.array([[0, 1], [-1, -1], [-1, -1]]), "P")
    with pytest.raises(ValueError, match="partition 1 is"):
        check_coverage(np.array([[0, -1], [1, -1]]), "P")
