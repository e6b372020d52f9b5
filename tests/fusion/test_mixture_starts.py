"""Starts of a fusion: eigenvectors of a mixture, and random walks on it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.fusion.sources import make_mixture
from nmfcluster.fusion.starts import Starts, number_of_starts, walk_start
from nmfcluster.similarity import Explicit


def walked(A, drawn):
    """Return where three steps of a random walk lead, with a tenth spread over all samples."""
    ends, n = [], len(A)
    for start in drawn:
        shares = np.eye(n)[start]
        for _ in range(3):
            after = np.zeros(n)
            for j in np.flatnonzero(shares):
                for i in range(n):
                    after[i] += shares[j] * A[i, j] / A[:, j].sum()
            shares = after
        ends.append(shares + 0.1 / n)
    return np.stack(ends, axis=1)


@given(st.integers(0, 10**6), st.integers(3, 15), st.integers(1, 3), st.booleans())
def test_walk_start_is_where_random_walks_lead(seed, n, k, sparse):
    A = np.random.default_rng(seed).uniform(size=(n, n))
    A = (A + A.T) * (abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2)
    operator = Explicit(sp.csr_array(A)) if sparse else Explicit(A)
    W = walk_start(operator, A.sum(axis=1), k, np.random.RandomState(seed))
    assert_array_equal(W, walk_start(operator, A.sum(axis=1), k, np.random.RandomState(seed)))
    want = walked(A, range(n))  # from every sample: those that were drawn differ
    nearest = [int(abs(want - column[:, None]).sum(axis=0).argmin()) for column in W.T]
    assert len(set(nearest)) == k
    assert_allclose(W, want[:, nearest], atol=1e-14)
    assert_allclose(W.sum(axis=0), 1.1)
    assert W.min() > 0
    half = Explicit(A.astype(np.float32))
    single = walk_start(half, half.toarray().sum(axis=1), k, np.random.RandomState(seed))
    assert single.dtype == np.float32
    assert_allclose(single, W, atol=1e-5)


def test_walk_start_draws_samples_by_their_degrees():
    A = np.diag([1.0, 2.0, 5.0, 0.0])  # a walk stays where it starts
    rng, count = np.random.RandomState(0), np.zeros(4)
    for _ in range(4000):
        count[walk_start(Explicit(A), A.sum(axis=1), 1, rng).argmax()] += 1
    assert_allclose(count / 4000, [1 / 8, 2 / 8, 5 / 8, 0], atol=0.03)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_walk_start_with_fewer_connected_samples_than_clusters(dtype):
    """Walks that cannot leave end nowhere: their clusters are the spread-out part alone."""
    A = np.zeros((5, 5), dtype=dtype)
    for edges in (0, 1):
        A[0, 1] = A[1, 0] = edges
        W = walk_start(Explicit(A), A.sum(axis=1), 4, np.random.RandomState(0))
        assert W.shape == (5, 4)
        assert W.dtype == dtype
        assert W.min() > 0
        sums = W.sum(axis=0)
        assert ((abs(sums - 0.1) < 1e-6) | (abs(sums - 1.1) < 1e-6)).all()
        assert (sums > 1).sum() <= 2 * edges


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_walk_start_with_similarities_at_the_end_of_the_range(dtype):
    tiny = float(np.finfo(dtype).smallest_subnormal)
    for small in (tiny, 30 * tiny):
        A = np.zeros((6, 6), dtype=dtype)
        for i, value in [(0, small), (2, 100.0), (4, 3 * small)]:
            A[i, i + 1] = A[i + 1, i] = value
        for k in (1, 2, 3, 5):
            W = walk_start(Explicit(A), A.sum(axis=1), k, np.random.RandomState(0))
            assert np.isfinite(W).all()
            assert W.min() > 0
            assert W.sum(axis=0).max() < 1.11


# --- all starts ----------------------------------------------------------------------------------


def starts_on(sources, n_clusters, symmetric=True, seed=0):
    """Return the spectral start, and two from random walks, on the mean source."""
    n, n_sources = sources[0].shape[0], len(sources)
    mixture = make_mixture(sources, np.ones((n, n_sources), dtype=bool))
    starts = Starts(mixture, n_clusters, symmetric)
    walks = starts.walks(mixture.equal, [seed, seed + 1])
    return [start() for start in (starts.spectral(mixture.equal, seed), *walks)]


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_first_start_on_blocks_is_the_degree_of_every_object_in_its_own(storage):
    """Objects of a block have one degree, w (m - 1); its eigenvector is constant."""
    sizes, heights = [4, 7, 12], [3.0, 1.0, 0.2]
    labels = np.repeat(np.arange(3), sizes)
    S = (labels[:, None] == labels) * np.repeat(heights, sizes)
    first, *others = starts_on([storage(S), storage(5 * S)], 3)
    degrees = [(S[i].sum() - S[i, i]) / S.sum() for i in range(23)]
    W = first[0][:, np.argmax(first[0][[0, 4, 11]], axis=1)]  # columns in the order of the blocks
    assert first.shape == (1, 23, 3)
    expected = np.eye(3)[labels] * np.array(degrees)[:, None]
    assert_allclose(W, expected, atol=0.05 * max(degrees))
    assert W.min() > 0
    assert len(others) == 2
    for other in others:  # walks, from other objects each
        assert_allclose(other[0].sum(axis=0), 1.1)
    assert (others[0] != others[1]).any()


def test_an_object_similar_to_no_other_has_an_entry_above_0_in_the_first_start():
    S = np.ones((6, 6))
    S[2] = S[:, 2] = 0
    first, *_ = starts_on([S], 2)
    assert 0 < first[0][2].max() < 1e-2 * first[0].max()
    assert first.min() > 0


def test_two_factors_start_within_half_of_each_other():
    S = np.random.default_rng(0).uniform(size=(40, 40))
    one = starts_on([S + S.T], 4)
    two = starts_on([S + S.T], 4, symmetric=False)
    for (alone,), (W, V) in zip(one, two, strict=True):
        assert_array_equal(W, alone)
        ratio = V / W
        assert 0.5 <= ratio.min() < 0.6
        assert 1.4 < ratio.max() <= 1.5


def test_starts_depend_on_their_seeds_alone():
    S = np.random.default_rng(0).uniform(size=(20, 20))
    same, again, other = (starts_on([S + S.T], 3, seed=seed) for seed in (1, 1, 7))
    for one, two, three in zip(same[1:], again[1:], other[1:], strict=True):
        assert_array_equal(one, two)
        assert (one != three).any()
    assert_array_equal(same[0], other[0])  # the first is not random


def test_a_start_can_be_made_twice():
    S = np.random.default_rng(0).uniform(size=(20, 20))
    mixture = make_mixture([S + S.T], np.ones((20, 1), dtype=bool))
    starts = Starts(mixture, 3, symmetric=False)
    for start in (starts.spectral(mixture.equal, 3), *starts.walks(mixture.equal, [4])):
        assert_array_equal(start(), start())


def test_spectral_start_on_one_source_sees_no_other():
    labels = np.repeat(np.arange(3), 5)
    blocks = (labels[:, None] == labels).astype(float)
    noise = np.random.default_rng(1).uniform(size=(15, 15))
    sources = [noise + noise.T, blocks]
    mixture = make_mixture(sources, np.ones((15, 2), dtype=bool))
    W = Starts(mixture, 3, symmetric=True).spectral(np.array([0.0, 1.0]), 0)()[0]
    assert_array_equal(W.argmax(axis=1)[:, None] == W.argmax(axis=1), blocks > 0)


@pytest.mark.parametrize(("n_sources", "expected"), [(1, 1), (2, 4), (5, 7)])
def test_all_starts_that_are_not_random_are_the_usual_number(n_sources, expected):
    assert number_of_starts("auto", n_sources) == expected
    assert number_of_starts(np.int64(3), n_sources) == 3
