"""Sources made graphs, against loops over objects."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._arrays.nearest import graph_of, near
from nmfcluster.fusion.sources import n_to_keep, normalised


def source_of(rng, n, ties=False):
    A = rng.integers(0, 4, size=(n, n)) if ties else rng.uniform(size=(n, n))
    A = A * (rng.uniform(size=(n, n)) < 0.8)
    return (A + A.T).astype(float)


def graphs_of(sources, n_nearest):
    """Return the graphs of sources that keep as many similarities of an object, or by the rule."""
    kept = [n_to_keep(S, 2) if n_nearest is None else n_nearest for S in sources]
    return normalised(list(map(graph_of, sources, kept)), kept, axis=1)


def literal_graph(S, n_neighbors):
    """Return the pairs of which one is among the most similar to the other, over root degrees."""
    n = len(S)
    kept = np.zeros((n, n), dtype=bool)
    for i in range(n):
        others = sorted((S[i, j] for j in range(n) if j != i), reverse=True)
        least = others[min(n_neighbors, n - 1) - 1]
        for j in range(n):
            kept[i, j] = j != i and S[i, j] > 0 and S[i, j] >= least
    graph = np.where(kept | kept.T, S, 0)
    degrees = graph.sum(axis=1)
    roots = np.where(degrees > 0, np.sqrt(degrees), 1)
    return graph / np.outer(roots, roots), degrees


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.booleans())
def test_graphs_are_those_of_loops_over_objects(seed, ties):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    sources = [source_of(rng, n, ties), source_of(rng, n)]
    for n_neighbors in (1, 3, n, 2 * n):
        graphs, rule = graphs_of(list(map(sp.csr_array, sources)), n_neighbors)
        dense, _ = graphs_of(sources, n_neighbors)
        for S, graph, same, degrees in zip(sources, graphs, dense, rule.degrees, strict=True):
            expected, sums = literal_graph(S, n_neighbors)
            assert_allclose(graph.toarray(), expected, rtol=1e-6)
            assert_allclose(same.toarray(), expected, rtol=1e-6)
            assert_allclose(degrees, sums)
        assert rule.n_nearest == (n_neighbors, n_neighbors)


@given(st.integers(0, 10**6))
def test_new_objects_join_with_their_own_most_similar(seed):
    rng = np.random.default_rng(seed)
    n, m, n_neighbors = 9, 4, 3
    S, new = source_of(rng, n), rng.uniform(size=(m, n)) * (rng.uniform(size=(m, n)) < 0.7)
    _, rule = graphs_of([S], n_neighbors)
    degrees = literal_graph(S, n_neighbors)[1]
    for storage in (np.asarray, sp.csr_array):
        (rows,) = rule.joined([storage(new)])
        for o in range(m):
            least = sorted(new[o], reverse=True)[n_neighbors - 1]
            kept = np.where((new[o] >= least) & (new[o] > 0), new[o], 0)
            own = kept.sum() if kept.any() else 1
            with_it = np.maximum(degrees, np.where(kept > 0, kept, 1))  # o would be a neighbour
            assert_allclose(rows.toarray()[o], kept / np.sqrt(own * with_it), rtol=1e-6)


def test_shares_of_new_objects_are_at_most_1_beside_next_to_no_degree():
    S = np.full((3, 3), 1e-200)
    _, rule = graphs_of([S], 2)
    (row,) = rule.joined([np.array([[1.0, 0.5, 1e-200]])])
    assert np.isfinite(row.toarray()).all()
    assert 0.5 < row.toarray().max() <= 1


def test_a_graph_is_left_with_all_of_its_edges():
    rng = np.random.default_rng(0)
    n = 100
    few = source_of(rng, n) * (abs(np.subtract.outer(np.arange(n), np.arange(n))) < 5)
    many = source_of(rng, n)
    (thin, thick), rule = graphs_of([few, many], None)
    assert rule.n_nearest == (None, 10)
    assert thin.nnz == np.count_nonzero(few) - np.count_nonzero(few.diagonal())
    assert 10 * n <= thick.nnz <= 20 * n
    (stored, _), rule = graphs_of([sp.csr_array(few), sp.csr_array(many)], None)
    assert rule.n_nearest == (None, 10)
    assert_array_equal(stored.toarray(), thin.toarray())


def test_similarities_that_tie_are_all_kept():
    """Which of several as large are kept would depend on the order of the objects."""
    labels = np.arange(60) % 2
    blocks = (labels[:, None] == labels).astype(float)
    (graph,), _ = graphs_of([blocks], 3)
    assert_array_equal(graph.toarray() > 0, (blocks - np.eye(60)) > 0)
    assert near(np.ones((4, 9)), 2).nnz == 36


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_the_scale_of_a_source_does_not_matter(size):
    S = source_of(np.random.default_rng(1), 20)
    (one,), _ = graphs_of([S], 4)
    (other,), _ = graphs_of([S * size], 4)
    assert_allclose(other.toarray(), one.toarray(), rtol=1e-6)
    assert one.dtype == other.dtype == np.float32


def test_next_to_nothing_is_no_similarity():
    S = np.ones((3, 3))
    S[0, 1] = S[1, 0] = 1e-13
    (graph,), _ = graphs_of([S], 2)
    assert graph.toarray()[0, 1] == 0
    assert_array_equal(graphs_of([np.eye(3)], 2)[0][0].toarray(), np.zeros((3, 3)))


def test_sources_are_not_written_to():
    S = source_of(np.random.default_rng(2), 10)
    stored = sp.csr_array(S)
    for part in (S, stored.data, stored.indices, stored.indptr):
        part.flags.writeable = False
    _, rule = graphs_of([S, stored], 2)
    rule.joined([S, stored])
