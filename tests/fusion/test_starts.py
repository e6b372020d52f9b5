"""Where a fusion starts: at leading eigenvectors of a mixture."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import number_of_starts, spectral_factors


def start_on(sources, n_clusters, weights=None, symmetric=True, seed=0):
    """Return the spectral start on the mean source, or on a mixture with other weights."""
    mixture = make_mixture(sources, np.ones((sources[0].shape[0], len(sources)), dtype=bool))
    weights = mixture.equal if weights is None else weights
    return spectral_factors(mixture, n_clusters, symmetric, weights, seed)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_start_on_blocks_is_the_degree_of_every_object_in_its_own(storage):
    """Objects of a block have one degree, w (m - 1); its eigenvector is constant."""
    sizes, heights = [4, 7, 12], [3.0, 1.0, 0.2]
    labels = np.repeat(np.arange(3), sizes)
    S = (labels[:, None] == labels) * np.repeat(heights, sizes)
    first = start_on([storage(S), storage(5 * S)], 3)
    degrees = [(S[i].sum() - S[i, i]) / S.sum() for i in range(23)]
    W = first[0][:, np.argmax(first[0][[0, 4, 11]], axis=1)]  # columns in the order of the blocks
    assert first.shape == (1, 23, 3)
    expected = np.eye(3)[labels] * np.array(degrees)[:, None]
    assert_allclose(W, expected, atol=0.05 * max(degrees))
    assert W.min() > 0


def test_an_object_similar_to_no_other_has_an_entry_above_0():
    S = np.ones((6, 6))
    S[2] = S[:, 2] = 0
    first = start_on([S], 2)
    assert 0 < first[0][2].max() < 1e-2 * first[0].max()
    assert first.min() > 0


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_where_objects_are_similar_to_themselves_alone_clusters_are_alike(storage):
    (W,) = start_on([storage(np.eye(5, dtype=np.float32))], 3)
    assert W.dtype == np.float32
    assert_array_equal(W, W[0, 0])
    assert W.min() > 0


def test_two_factors_start_within_half_of_each_other_by_the_seed():
    S = np.random.default_rng(0).uniform(size=(40, 40))
    (alone,) = start_on([S + S.T], 4)
    starts = [start_on([S + S.T], 4, symmetric=False, seed=seed) for seed in (1, 1, 7)]
    for W, V in starts:
        assert_array_equal(W, alone)
        ratio = V / W
        assert 0.5 <= ratio.min() < 0.6
        assert 1.4 < ratio.max() <= 1.5
    assert_array_equal(starts[0], starts[1])
    assert (starts[0] != starts[2]).any()


def test_start_on_one_source_sees_no_other():
    labels = np.repeat(np.arange(3), 5)
    blocks = (labels[:, None] == labels).astype(float)
    noise = np.random.default_rng(1).uniform(size=(15, 15))
    W = start_on([noise + noise.T, blocks], 3, weights=np.array([0.0, 1.0]))[0]
    assert_array_equal(W.argmax(axis=1)[:, None] == W.argmax(axis=1), blocks > 0)


def test_number_of_starts():
    """The mean source, all by what they are worth, and each alone; there are no others."""
    assert [number_of_starts("auto", n_sources) for n_sources in (1, 2, 5)] == [1, 4, 7]
    assert [number_of_starts(np.int64(5), n_sources) for n_sources in (1, 2, 5)] == [1, 4, 5]
