"""One graph of several sources, against sums of z-scores in loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import (
    dense,
    literal_graph,
    literal_largest,
    literal_over_roots,
    literal_told,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.fusion.residuals import (
    compute_residual,
    counted_sources,
    divide_by_degrees,
    fused_graph,
    fused_rows,
    n_neighbors_to_keep,
)


def sources_of(rng, n, p=None):
    """Draw three sources, of which the second has not seen all, and the third is sparse."""
    arrays = [rng.uniform(0.1, 1, size=(n, p or n)) ** 2 for _ in range(3)]
    arrays[2] *= rng.uniform(size=arrays[2].shape) < 0.6
    arrays = arrays if p else [A + A.T for A in arrays]
    arrays[1][[0, 3]] = 0
    if p is None:
        arrays[1][:, [0, 3]] = 0
    return arrays


def residuals_of(arrays, square=True):
    stored = [arrays[0].copy(), arrays[1].copy(), sp.csr_array(arrays[2])]
    return [compute_residual(one, square) for one in stored]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("p", [None, 9])
@settings(max_examples=8)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_alike_is_who_is_so_in_the_sum_of_z_scores(p, seed, K):
    rng = np.random.default_rng(seed)
    arrays, weights = sources_of(rng, 12, p), rng.dirichlet(np.ones(3))
    square = p is None
    for used in (weights, weights * [1, 0, 1], weights * [0, 1, 0]):
        R, parts = literal_told(arrays, used, square)
        residuals = residuals_of(arrays, square)
        found = fused_rows(residuals, used, K)
        assert_allclose(found.toarray(), literal_largest(R, K), rtol=1e-4, atol=1e-4)
        graph = fused_graph([residuals], used, K)
        A, degrees = literal_graph(arrays, used, K, square)
        assert_allclose(graph.A.toarray(), A, rtol=1e-4, atol=1e-5)
        assert_allclose(graph.degrees, degrees, rtol=1e-4)
        assert_allclose(
            graph.contributions.sum(axis=0), graph.A.data, rtol=1e-4, atol=1e-6
        )
        i, j = graph.A.nonzero()
        G = graph.A.data / R[i, j]
        assert_allclose(
            graph.contributions,
            [parts[own][i, j] * G for own in counted_sources(residuals, used)],
            atol=1e-4,
        )


def test_graphs_keep_all_pairs_of_their_union_that_are_above_independence():
    rng = np.random.default_rng(1)
    arrays = [np.triu(rng.uniform(size=(14, 14)) < 0.3, 1) * 1.0 for _ in range(2)]
    arrays = [A + A.T for A in arrays]
    weights = np.array([0.7, 0.3])
    R, _ = literal_told(arrays, weights)
    union = (arrays[0] > 0) | (arrays[1] > 0)
    expected = np.where(union, np.maximum(R, 0), 0)
    residuals = [compute_residual(sp.csr_array(A), True) for A in arrays]
    graph = fused_graph([residuals], weights, None)
    assert_allclose(
        graph.A.toarray(), literal_over_roots(expected), rtol=1e-4, atol=1e-6
    )
    assert 0 < np.count_nonzero(expected) < np.count_nonzero(union)


def test_objects_in_blocks_of_rows_are_those_of_all_at_once():
    rng = np.random.default_rng(2)
    S, new = (rng.uniform(size=shape) for shape in ((9, 9), (300, 9)))
    old = compute_residual(S + S.T, True)
    whole = fused_graph([[old.residual_of_new(new.copy())]], np.ones(1), 3)
    blocks = (
        [old.residual_of_new(new[rows].copy())]
        for rows in (slice(0, 120), slice(120, 300))
    )
    parts = fused_graph(blocks, np.ones(1), 3)
    for one, other in zip(whole, parts, strict=True):
        assert_allclose(dense(one), dense(other), rtol=1e-6)


def test_who_is_as_alike_as_the_kth_is_kept():
    """Which of several as large are kept would depend on the order of the objects."""
    labels = np.arange(60) % 2
    blocks = (labels[:, None] == labels).astype(float)
    found = fused_rows([compute_residual(blocks.copy(), True)], np.ones(1), 3)
    assert_array_equal(found.toarray() > 0, (blocks - np.eye(60)) > 0)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_the_scale_of_a_source_does_not_matter(factor):
    S = sources_of(np.random.default_rng(3), 10)[0]
    one, other = (
        fused_rows([compute_residual(T, True)], np.ones(1), 4)
        for T in (S.copy(), S * factor)
    )
    assert_allclose(one.toarray(), other.toarray(), rtol=1e-5)


def test_without_sources_nobody_is_alike():
    nothing = compute_residual(np.ones((5, 5)), True)
    graph = fused_graph([[nothing, nothing]], np.array([0.5, 0.5]), 2)
    assert graph.A.shape == (5, 5)
    assert graph.A.nnz == 0


def test_how_many_neighbours_are_kept():
    def sources(n, n_entries=None):
        S = np.random.default_rng(0).uniform(size=(n, n))
        if n_entries is None:
            return compute_residual(S + S.T, True)
        S *= abs(np.subtract.outer(np.arange(n), np.arange(n))) <= n_entries // 2
        return compute_residual(sp.csr_array(S + S.T), True)

    whole, graph, full = sources(120), sources(120, 10), sources(120, 60)
    both = np.array([0.5, 0.5])
    assert n_neighbors_to_keep([whole], np.ones(1), 2) == 10  # the root of 120
    assert n_neighbors_to_keep([whole], np.ones(1), 12) == 8  # three quarters of ten
    assert n_neighbors_to_keep([whole], np.ones(1), 119) == 2
    assert n_neighbors_to_keep([graph, graph], both, 2) is None
    # sparse, but with most pairs: no graph yet
    assert n_neighbors_to_keep([graph, full], both, 2) == 10
    # of those that count
    assert n_neighbors_to_keep([graph, whole], np.array([1.0, 0.0]), 2) is None
    assert n_neighbors_to_keep([graph, whole], both, 2) == 10


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_over_roots(storage):
    rng = np.random.default_rng(4)
    G = sp.csr_array(rng.uniform(size=(5, 8)) * (rng.uniform(size=(5, 8)) < 0.7))
    # of what they were alike before
    degrees = np.array([1e-200, 0.0, 3, 4, 5, 6, 7, 8])
    found = divide_by_degrees(G, degrees)
    assert_allclose(
        found.toarray(), literal_over_roots(G.toarray(), degrees), rtol=1e-6
    )
    assert found.max() <= 1
