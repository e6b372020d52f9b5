"""Order of rows and columns in pictures of biclusters, and their cells."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.display import BiclusterDisplay


def cells_of(order, sizes):
    ends = np.cumsum(sizes)
    return [order[end - size : end] for end, size in zip(ends, sizes, strict=True)]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, np.float32])
@pytest.mark.parametrize("max_cells", [5, 7, 16, 40])
def test_cells_hold_means(biclusters, table, form, max_cells):
    cells_alone = {"colorbar": False, "strip": False, "outline": False}
    display = BiclusterDisplay.from_estimator(
        biclusters, form(table), max_cells=max_cells, **cells_alone
    )
    down = cells_of(display.row_order, display.row_sizes)
    along = cells_of(display.column_order, display.column_sizes)
    assert len(down) == min(max_cells, len(table))
    assert len(along) == min(max_cells, table.shape[1])
    expected = [[table[np.ix_(a, b)].mean() for b in along] for a in down]
    assert_allclose(display.matrix, expected, rtol=1e-5, atol=1e-6)
    for members, shares, cells in (
        (biclusters.rows_, display.row_shares, down),
        (biclusters.columns_, display.column_shares, along),
    ):
        assert_allclose(shares, [[own[cell].mean() for cell in cells] for own in members])


def test_a_sparse_table_is_not_made_dense():
    n, p = 200_000, 150_000  # 240 GB as an array
    rows, columns = np.zeros((2, n), dtype=bool), np.zeros((2, p), dtype=bool)
    rows[0, ::2], rows[1, 1::2] = True, True
    columns[0, : p // 3], columns[1, p // 3 :] = True, True
    places = np.arange(0, n, 50)
    X = sp.csr_array((np.ones(len(places)), (places, places % p)), shape=(n, p))
    display = BiclusterDisplay.from_biclusters(X, rows, columns, max_cells=20)
    assert display.matrix.shape == (20, 20)
    mass = display.matrix * np.outer(display.row_sizes, display.column_sizes)
    assert mass.sum() == pytest.approx(len(places))


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_of_overlapping_biclusters_becomes_blocks(planted, seed):
    X, rows, columns, chain = planted(seed=seed)
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    places = chain[display.clusters]
    assert places.tolist() in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])
    for shares in (display.row_shares, display.column_shares):
        for share in shares:  # every cluster in one piece, those on its border included
            assert np.count_nonzero(np.diff(np.pad(share, 1))) == 2
    assert len(display.outlines_) == 5


def test_what_is_in_no_cluster_comes_last(outside, biclusters, table):
    display = BiclusterDisplay.from_estimator(biclusters, table)
    for members, order, shares in (
        (biclusters.rows_, display.row_order, display.row_shares),
        (biclusters.columns_, display.column_order, display.column_shares),
    ):
        none = np.flatnonzero(~members.any(axis=0))
        assert len(none) >= outside
        assert_array_equal(np.sort(order[-len(none) :]), none)
        assert not shares[:, -len(none) :].any()


def test_rows_go_to_the_cluster_that_adds_most(biclusters, table):
    display = BiclusterDisplay.from_estimator(biclusters, table)
    place = np.argsort(display.clusters)
    own = [
        place[max(np.flatnonzero(biclusters.rows_[:, i]), key=lambda c: biclusters.factor_[i, c])]
        for i in display.row_order
        if biclusters.rows_[:, i].any()
    ]
    assert (np.diff(own) >= 0).all()


def test_the_order_does_not_depend_on_that_of_the_table(biclusters, table):
    rng = np.random.RandomState(1)
    rows, columns = rng.permutation(len(table)), rng.permutation(table.shape[1])
    one = BiclusterDisplay.from_biclusters(table, biclusters.rows_, biclusters.columns_)
    other = BiclusterDisplay.from_biclusters(
        table[rows][:, columns], biclusters.rows_[:, rows], biclusters.columns_[:, columns]
    )
    assert_array_equal(one.clusters, other.clusters)
    assert_array_equal(one.row_shares, other.row_shares)
    assert_array_equal(one.column_shares, other.column_shares)


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_few_clusters_will_do(n_clusters):
    rows = np.eye(n_clusters, 5, dtype=bool)
    display = BiclusterDisplay.from_biclusters(np.eye(5), rows, rows)
    assert_array_equal(display.clusters, np.arange(n_clusters))
    assert len(display.strips_) == n_clusters
