"""What sources say beyond independence, and how far they agree in it, against loops over pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import dense, literal_correlation, literal_factor, literal_residual
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

from nmfcluster.fusion.residuals import (
    compute_residual,
    find_duplicates,
    inner_product,
    measure_agreement,
)

STORAGES = {
    "dense": np.array,
    "sparse": sp.csr_array,
    "float32": lambda S: S.astype(np.float32),
    "sparse float32": lambda S: sp.csr_array(S.astype(np.float32)),
}
each_storage = pytest.mark.parametrize("storage", STORAGES)


def source_of(rng, n, p=None, density=1.0, signed=False):
    """Draw a source, symmetric unless p is given, with a scale of its own."""
    S = rng.uniform(
        -0.5 if signed else 0.05, 1, size=(n, p or n)
    ) * 10.0 ** rng.integers(-3, 4)
    S = S if p else S + S.T
    pattern = rng.uniform(size=S.shape) < density
    return S * (pattern if p else np.triu(pattern) | np.triu(pattern).T)


def explicit(R):
    """Return what a residual stands for, off its diagonal."""
    return dense(R.block(slice(0, R.stored.shape[0]))) * (
        1 - np.eye(R.stored.shape[0]) if R.square else 1
    )


@pytest.mark.sampled(2)
@each_storage
@pytest.mark.parametrize("p", [None, 7])
@settings(max_examples=10)
@given(st.integers(0, 10**6), st.booleans())
def test_residual_is_what_is_beyond_independence(storage, p, seed, signed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 15))  # of three objects all can be explained
    S = source_of(rng, n, p, 0.8, signed)
    S[1] = 0  # similar to none
    if p is None:
        S[:, 1] = 0
    square = p is None
    expected, pairs, size = literal_residual(S, square)
    if square and "sparse" in storage and (np.count_nonzero(S > 0) < n**2 / 3):
        return  # parts of two objects, which have a test of their own
    R = compute_residual(STORAGES[storage](S), square)
    assert_allclose(explicit(R), expected, atol=1e-6)
    if square and n > 6:
        assert_allclose(explicit(R).sum(axis=1), 0, atol=1e-4)
    assert_allclose(R.size, size, rtol=1e-4)
    assert_array_equal(R.seen, pairs.any(axis=1))
    assert_allclose(inner_product(R, R), (expected**2).sum(), rtol=1e-4)
    i, j = np.nonzero(pairs)
    assert_allclose(R.entries(i, j), expected[i, j], atol=1e-6)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_constant_says_nothing(storage):
    for dtype in (np.float32, np.float64):
        assert (
            compute_residual(STORAGES[storage](np.full((30, 30), 3, dtype)), True).size
            == 0
        )
        product = np.outer(np.arange(1, 31), np.arange(1, 10)).astype(dtype)
        assert compute_residual(STORAGES[storage](product), False).size == 0
    assert compute_residual(STORAGES[storage](np.eye(5)), True).size == 0


def test_lone_pairs_of_a_sparse_source_say_nothing():
    S = np.zeros((9, 9))
    # a path of four, and a pair; three are alone
    S[[0, 1, 2, 4], [1, 2, 3, 5]] = [1, 2, 1, 9]
    expected = literal_residual((S + S.T)[:4, :4])[0]
    for storage in (np.array, sp.csr_array):  # a network is one however it is stored
        R = compute_residual(storage(S + S.T), True)
        assert_array_equal(R.seen, np.arange(9) < 4)
        assert_allclose(explicit(R)[:4, :4], expected, atol=1e-6)
        assert_array_equal(explicit(R)[4:], 0)


def test_a_network_is_known_by_its_entries():
    rng = np.random.default_rng(0)
    links = np.triu(rng.random((100, 100)) < 0.15, 1) + 0.0  # 15 a row
    many = np.triu(rng.random((100, 100)) < 0.4, 1) + 0.0
    lengths = rng.uniform(1, 2, size=(100, 100))
    for S, is_graph in (
        (links, True),
        (links * lengths, True),
        (many, True),
        (many * lengths, False),
        (1 - many, False),  # more than half of the pairs
        (lengths, False),
    ):
        for storage in (np.array, sp.csr_array):
            assert compute_residual(storage(S + S.T), True).is_graph == is_graph


def test_next_to_nothing_and_what_is_negative_count_as_0():
    S = np.full((6, 6), 0.5) + np.eye(6)
    S[0, 1] = S[1, 0] = 1.0
    zero, tiny, negative = S.copy(), S.copy(), S.copy()
    for other, value in ((zero, 0.0), (tiny, 1e-13), (negative, -3.0)):
        other[2, 3] = other[3, 2] = value
    for storage in (np.array, sp.csr_array):
        want = explicit(compute_residual(storage(zero), True))
        for other in (tiny, negative):
            assert_array_equal(explicit(compute_residual(storage(other), True)), want)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_new_objects_are_judged_by_the_sums_of_the_old(storage):
    rng = np.random.default_rng(0)
    S, new = source_of(rng, 9, density=0.9), source_of(rng, 4, 9, 0.8)
    new[2] = 0
    R = compute_residual(STORAGES[storage](S), True)
    hollow = S * (1 - np.eye(9))
    degrees = hollow.sum(axis=0)
    mean = degrees.mean()
    N = new / np.sqrt(np.outer(new.sum(axis=1) + mean, degrees + mean))
    scaled = hollow / np.sqrt(np.outer(degrees + mean, degrees + mean))
    u = literal_factor(scaled.sum(axis=1))
    for given_as in (np.array, sp.csr_array):
        found = R.residual_of_new(given_as(new))
        assert_allclose(
            explicit(found), N - np.outer(N.sum(axis=1) / u.sum(), u), atol=1e-6
        )
        assert_array_equal(found.seen, [True, True, False, True])


# --- agreement -----------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@each_storage
@pytest.mark.parametrize("p", [None, 12])
def test_agreement_is_the_correlation_over_the_pairs_that_both_saw(storage, p):
    rng = np.random.default_rng(1)
    arrays = [source_of(rng, 16, p, density) for density in (1.0, 0.9, 0.6)]
    arrays[1] = arrays[1] / arrays[1].max() + 0.8 * arrays[0] / arrays[0].max()
    for lost in (None, [2, 5, 11]):
        if lost is not None:
            arrays[1][lost] = 0
            if p is None:
                arrays[1][:, lost] = 0
        found = measure_agreement(
            [compute_residual(STORAGES[storage](S), p is None) for S in arrays]
        )
        assert_array_equal(found.correlations, found.correlations.T)
        assert_array_equal(found.correlations.diagonal(), 1)
        assert_array_equal(found.scores.diagonal(), 0)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            told, n_pairs = literal_correlation(arrays[i], arrays[j], p is None)
            assert_allclose(found.correlations[i, j], told, atol=1e-5)
            assert_allclose(found.scores[i, j], told * np.sqrt(n_pairs), atol=1e-3)


def test_dense_and_sparse_sources_agree_as_their_arrays_do():
    rng = np.random.default_rng(2)
    S, T = source_of(rng, 20), source_of(rng, 20, density=0.5)
    want = literal_correlation(S, T)[0]
    for pair in ((S.copy(), sp.csr_array(T)), (sp.csr_array(S), T.copy())):
        found = measure_agreement([compute_residual(one, True) for one in pair])
        assert_allclose(found.correlations[0, 1], want, atol=1e-5)


def noise_sources(n, number, storage):
    """Draw kernels, or graphs of neighbours, of 1 to 5 features of noise; some saw few objects."""
    rng = np.random.default_rng(0)
    for count in range(number):
        X = rng.normal(size=(n, 1 + count % 5))
        if storage == "sparse":
            graph = kneighbors_graph(X, 8)
            S = sp.csr_array(graph.maximum(graph.T))
        else:
            S = rbf_kernel(X)
            if count % 4 == 0:
                S[: n // 4] = S[:, : n // 4] = 0
        yield compute_residual(S, True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_scores_of_independent_sources_are_standard(storage):
    found = measure_agreement(list(noise_sources(70, 25, storage)))
    scores = found.scores[np.triu_indices(25, 1)]
    assert len(scores) == 300
    assert abs(scores.mean()) < 3 / np.sqrt(300)
    assert 0.85 < scores.std() < 1.15
    assert scores.max() < 5


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse float32"])
def test_copies_are_alike_inside_of_clusters_too(storage):
    labels = np.arange(60) % 3
    blocks = (labels[:, None] == labels) + 0.0
    rng = np.random.default_rng(3)
    S, T = (blocks + 0.1 * (E + E.T) for E in rng.uniform(size=(2, 60, 60)))
    near = S + 1e-3 * T
    many = np.where(np.add.outer(labels, labels) % 2, 0.5, 1.0) * blocks
    sources = [S, T, 5 * S, near, blocks, 2 * blocks, many]
    residuals = [
        compute_residual(STORAGES[storage](one.copy()), True) for one in sources
    ]
    found = measure_agreement(residuals)
    assert found.correlations[0, 1] > 0.95
    expected = np.eye(7, dtype=bool)
    # what is constant in clusters differs by rounding alone
    for group in ([0, 2, 3], [4, 5, 6]):
        expected[np.ix_(group, group)] = True
    assert_array_equal(find_duplicates(residuals, found), expected)
