"""Sources on one footing, against loops over objects."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._arrays.nearest import near
from nmfcluster.fusion.sources import Footing

storages = pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array])


def source_of(rng, n, ties=False):
    A = rng.integers(0, 4, size=(n, n)) if ties else rng.uniform(size=(n, n))
    A = A * (rng.uniform(size=(n, n)) < 0.8)
    return (A + A.T).astype(float)


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


@storages
@given(st.integers(0, 10**6), st.booleans())
def test_graphs_are_those_of_loops_over_objects(storage, seed, ties):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    sources = [source_of(rng, n, ties), source_of(rng, n)]
    for n_neighbors in (1, 3, n, 2 * n):
        stored = [storage(S) if S.any() else S for S in sources]
        graphs, footing = Footing.of(list(map(sp.csr_array, stored)), n_neighbors, 2)
        dense, _ = Footing.of(sources, n_neighbors, 2)
        for S, graph, same, degrees in zip(sources, graphs, dense, footing.degrees, strict=True):
            expected, sums = literal_graph(S, n_neighbors)
            assert_allclose(graph.toarray(), expected, rtol=1e-6)
            assert_allclose(same.toarray(), expected, rtol=1e-6)
            assert_allclose(degrees, sums)
        assert footing.n_neighbors == (n_neighbors, n_neighbors)


@given(st.integers(0, 10**6))
def test_new_objects_join_with_their_own_most_similar(seed):
    rng = np.random.default_rng(seed)
    n, m, n_neighbors = 9, 4, 3
    S, new = source_of(rng, n), rng.uniform(size=(m, n)) * (rng.uniform(size=(m, n)) < 0.7)
    _, footing = Footing.of([S], n_neighbors, 2)
    degrees = literal_graph(S, n_neighbors)[1]
    for storage in (np.asarray, sp.csr_array):
        (rows,) = footing.rows([storage(new)])
        for o in range(m):
            least = sorted(new[o], reverse=True)[n_neighbors - 1]
            kept = np.where((new[o] >= least) & (new[o] > 0), new[o], 0)
            own = kept.sum() if kept.any() else 1
            with_it = np.maximum(degrees, np.where(kept > 0, kept, 1))  # o would be a neighbour
            assert_allclose(rows.toarray()[o], kept / np.sqrt(own * with_it), rtol=1e-6)


def test_shares_of_new_objects_are_at_most_1_beside_next_to_no_degree():
    S = np.full((3, 3), 1e-200)
    _, footing = Footing.of([S], 2, 2)
    (row,) = footing.rows([np.array([[1.0, 0.5, 1e-200]])])
    assert np.isfinite(row.toarray()).all()
    assert 0.5 < row.toarray().max() <= 1


def test_a_graph_is_left_with_all_of_its_edges():
    rng = np.random.default_rng(0)
    n = 100
    few = source_of(rng, n) * (abs(np.subtract.outer(np.arange(n), np.arange(n))) < 5)
    many = source_of(rng, n)
    (thin, thick), footing = Footing.of([few, many], "auto", 2)
    assert footing.n_neighbors == (None, 10)
    assert thin.nnz == np.count_nonzero(few) - np.count_nonzero(few.diagonal())
    assert 10 * n <= thick.nnz <= 20 * n
    (stored, _), footing = Footing.of([sp.csr_array(few), sp.csr_array(many)], "auto", 2)
    assert footing.n_neighbors == (None, 10)
    assert_array_equal(stored.toarray(), thin.toarray())


def test_similarities_that_tie_are_all_kept():
    """Which of several as large are kept would depend on the order of the objects."""
    labels = np.arange(60) % 2
    blocks = (labels[:, None] == labels).astype(float)
    (graph,), _ = Footing.of([blocks], 3, 2)
    assert_array_equal(graph.toarray() > 0, (blocks - np.eye(60)) > 0)
    assert near(np.ones((4, 9)), 2).nnz == 36


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_the_scale_of_a_source_does_not_matter(size):
    S = source_of(np.random.default_rng(1), 20)
    (one,), _ = Footing.of([S], 4, 2)
    (other,), _ = Footing.of([S * size], 4, 2)
    assert_allclose(other.toarray(), one.toarray(), rtol=1e-6)
    assert one.dtype == other.dtype == np.float32


def test_next_to_nothing_is_no_similarity():
    S = np.ones((3, 3))
    S[0, 1] = S[1, 0] = 1e-13
    (graph,), _ = Footing.of([S], 2, 2)
    assert graph.toarray()[0, 1] == 0
    assert_array_equal(Footing.of([np.eye(3)], 2, 2)[0][0].toarray(), np.zeros((3, 3)))


def test_sources_are_not_written_to():
    S = source_of(np.random.default_rng(2), 10)
    stored = sp.csr_array(S)
    for part in (S, stored.data, stored.indices, stored.indptr):
        part.flags.writeable = False
    _, footing = Footing.of([S, stored], 2, 2)
    footing.rows([S, stored])
