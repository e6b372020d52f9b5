"""Pictures of biclusters: what is drawn, and where."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster import NMFConsensus
from nmfcluster.display import BiclusterDisplay

plt = pytest.importorskip("matplotlib.pyplot")


def test_a_small_table_is_shown_entry_by_entry(biclusters, table):
    display = BiclusterDisplay.from_estimator(biclusters, table)
    assert_array_equal(np.sort(display.row_order), np.arange(len(table)))
    assert_array_equal(np.sort(display.column_order), np.arange(table.shape[1]))
    assert_array_equal(
        display.matrix, table[display.row_order][:, display.column_order]
    )
    assert_array_equal(display.row_shares, biclusters.rows_[:, display.row_order])
    assert_array_equal(
        display.column_shares, biclusters.columns_[:, display.column_order]
    )
    assert_array_equal(
        display.mesh_.get_array().reshape(display.matrix.shape), display.matrix
    )


def test_few_large_entries_do_not_hide_the_others(planted):
    X, rows, columns, _ = planted()
    X[0, 0] = 1000 * X.max()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    low, high = display.mesh_.get_clim()
    assert low == 0
    assert high < X.max() / 100
    assert display.colorbar_.extend == "max"


def test_negative_entries_have_a_colour_of_their_own(planted):
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X - X.mean(), rows, columns)
    low, high = display.mesh_.get_clim()
    assert low == -high < 0
    white = display.mesh_.get_cmap()(display.mesh_.norm(0.0))
    assert min(white) > 0.95
    zeros = BiclusterDisplay.from_biclusters(0 * X, rows, columns)
    assert zeros.mesh_.get_clim() == (0, 1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_cells_are_means_of_what_was_observed(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, size=(40, 30))
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X[:4, :3] = np.nan  # a cell of which nothing was observed
    rows, columns = (np.arange(n) < n // 2 for n in X.shape)
    display = BiclusterDisplay.from_biclusters(
        kind(X), [rows, ~rows], [columns, ~columns], max_cells=10
    )
    sizes = display.row_sizes, display.column_sizes
    row_ends, column_ends = (np.cumsum(s) for s in sizes)
    ordered = X[np.ix_(display.row_order, display.column_order)]
    for i, (stop, n) in enumerate(zip(row_ends, sizes[0], strict=True)):
        for j, (end, p) in enumerate(zip(column_ends, sizes[1], strict=True)):
            cell = ordered[stop - n : stop, end - p : end]
            seen = cell[~np.isnan(cell)]
            expected = seen.mean() if seen.size else np.nan
            assert_allclose(display.matrix[i, j], expected)
    assert display.mesh_.norm.vmax <= 2
    assert np.isnan(display.matrix).sum() == display.mesh_.get_array().mask.sum()


def test_the_first_row_is_on_top(biclusters, table):
    display = BiclusterDisplay.from_estimator(biclusters, table)
    assert display.ax_.get_xlim() == (0, table.shape[1])
    assert display.ax_.get_ylim() == (len(table), 0)


def test_estimators_without_biclusters_are_refused(table):
    consensus = NMFConsensus(2, n_estimators=3, random_state=0).fit(table)
    with raises_naming(TypeError, "NMFConsensus", "from_biclusters"):
        BiclusterDisplay.from_estimator(consensus, table)


def test_bad_input_is_named():
    given = {
        "X": np.ones((4, 5)),
        "rows": np.ones((2, 4), bool),
        "columns": np.ones((2, 5), bool),
    }
    for change, error, message in (
        (
            {"X": np.ones((3, 4))},
            ValueError,
            ("X", "4", "rows", "5", "shape", "(3, 4)"),
        ),
        (
            {"X": np.ones((5, 4))},
            ValueError,
            ("X", "4", "rows", "shape", "(5, 4)"),
        ),
        ({"X": np.full((4, 5), np.inf)}, ValueError, ("X", "infinity")),
        ({"X": np.ones(4)}, ValueError, "2D array"),
        ({"X": [["a"] * 5] * 4}, ValueError, ("X", "numbers")),
        ({"rows": np.ones(4, dtype=bool)}, ValueError, "2D array"),
        ({"rows": np.ones((0, 4))}, ValueError, r"minimum of 1"),
        (
            {"rows": [[1, 0], [1]]},
            ValueError,
            ("rows", "length"),
        ),
        ({"rows": np.full((2, 4), 0.5)}, TypeError, ("rows", "booleans")),
        ({"rows": np.full((2, 4), 2)}, TypeError, ("rows", "booleans")),
        (
            {"columns": [["x"] * 5] * 2},
            ValueError,
            "columns",
        ),
        (
            {"columns": np.ones((3, 5), bool)},
            ValueError,
            ("clusters", "2", "3"),
        ),
        ({"max_cells": 0}, ValueError, ("max_cells", "1", "0")),
        ({"max_cells": 2.5}, TypeError, ("max_cells", "int", "2.5")),
    ):
        with raises_naming(error, message):
            BiclusterDisplay.from_biclusters(**given | change)
    assert plt.get_fignums() == []


def test_a_table_of_other_size_than_the_fit_is_refused(biclusters, table):
    with raises_naming(ValueError, "X", "34", "49", "(34, 48)"):
        BiclusterDisplay.from_estimator(biclusters, table[:, 1:])


# --- frames and strips ---------------------------------------------------------------------------


def shares_of(strip):
    return strip.get_array().ravel()


def test_the_frames_hold_their_biclusters(planted):
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    for cluster, frame in zip(display.clusters, display.outlines_, strict=True):
        (left, top), width, height = (
            frame.get_xy(),
            frame.get_width(),
            frame.get_height(),
        )
        inside_rows = display.row_order[top : top + height]
        inside_columns = display.column_order[left : left + width]
        assert_array_equal(np.sort(inside_rows), np.flatnonzero(rows[cluster]))
        assert_array_equal(np.sort(inside_columns), np.flatnonzero(columns[cluster]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("pieces", "widths"), [([10], [10]), ([5, 1], [5, 5, 1, 1])])
def test_clusters_in_pieces_have_a_frame_each(pieces, widths):
    share = np.concatenate([[0.0, *[1.0] * size] for size in pieces] + [[0.4]])
    ones = np.ones(len(share), dtype=int)
    display = BiclusterDisplay(
        matrix=np.outer(share, share),
        row_sizes=ones,
        column_sizes=ones,
        row_shares=share[None],
        column_shares=share[None],
    ).plot()
    assert sorted(frame.get_width() for frame in display.outlines_) == sorted(widths)
    many = np.tile([1.0, 0.0], 9)[None]
    display.row_shares = display.column_shares = many
    display.row_sizes = display.column_sizes = np.ones(18, dtype=int)
    display.matrix = np.zeros((18, 18))
    assert len(display.plot().outlines_) == 4


def test_strips_show_the_members_of_a_cluster_in_its_colour(planted):
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    assert (rows.sum(axis=0) > 1).any()  # rows of several clusters have several marks
    colours = set()
    for cluster, frame, strips in zip(
        display.clusters, display.outlines_, display.strips_, strict=True
    ):
        assert_array_equal(shares_of(strips[0]), rows[cluster, display.row_order])
        assert_array_equal(shares_of(strips[1]), columns[cluster, display.column_order])
        for strip in strips:
            assert_allclose(strip.get_cmap()(1.0), frame.get_edgecolor(), atol=1e-6)
        colours.add(frame.get_edgecolor())
    assert len(colours) == 5
    # they stand outside: those of rows at the left, those of columns below
    display.figure_.draw_without_rendering()
    table = display.ax_.get_window_extent()
    for of_rows, of_columns in display.strips_:
        renderer = display.figure_.canvas.get_renderer()
        assert of_rows.get_tightbbox(renderer).x1 < table.x0
        assert of_columns.get_tightbbox(renderer).y1 < table.y0
    assert display.ax_.get_xlim() == (0, X.shape[1])


def test_marks_of_cells_are_as_strong_as_the_share():
    rows = np.array([[1, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    rows[1, 2] = True
    display = BiclusterDisplay.from_biclusters(np.eye(4), rows, rows, max_cells=2)
    assert_allclose(display.row_shares, [[1, 0], [1 / 3, 1]])
    strip = display.strips_[1][0]
    assert_allclose(shares_of(strip), [1 / 3, 1])
    empty, full = np.full(3, 0.93), np.array(strip.get_cmap()(1.0)[:3])
    assert_allclose(strip.to_rgba([1 / 3])[0, :3], (2 * empty + full) / 3, atol=0.01)


def test_an_empty_cluster_has_no_mark():
    rows = np.array([[True, True, False], [False] * 3, [False, False, True]])
    display = BiclusterDisplay.from_biclusters(np.eye(3), rows, rows)
    shown = dict(zip(display.clusters.tolist(), display.strips_, strict=True))
    assert not shares_of(shown[1][0]).any()
    assert not shares_of(shown[1][1]).any()
    assert len(display.outlines_) == 2


def test_clusters_are_named_where_there_is_room(planted):
    display = BiclusterDisplay.from_biclusters(*planted()[:3])
    assert [text.get_text() for text in display.ax_.texts] == [
        str(c) for c in display.clusters
    ]
    many = np.eye(25, dtype=bool)
    display = BiclusterDisplay.from_biclusters(np.eye(25), many, many)
    assert 5 <= len(display.ax_.texts) <= 10
    display.figure_.draw_without_rendering()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    assert all(
        not one.overlaps(other)
        for i, one in enumerate(boxes)
        for other in boxes[i + 1 :]
    )
    assert display.outlines_ == []  # they would hide the table


# --- order of rows and columns -------------------------------------------------------------------


def cells_of(order, sizes):
    ends = np.cumsum(sizes)
    return [order[end - size : end] for end, size in zip(ends, sizes, strict=True)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "max_cells"), [(np.asarray, 5), (sp.csr_array, 16), (np.float32, 40)]
)
def test_cells_hold_means(biclusters, table, form, max_cells):
    display = BiclusterDisplay.from_estimator(
        biclusters, form(table), max_cells=max_cells
    )
    down = cells_of(display.row_order, display.row_sizes)
    along = cells_of(display.column_order, display.column_sizes)
    assert max(len(down), len(along)) <= max_cells + 4
    expected = [[table[np.ix_(a, b)].mean() for b in along] for a in down]
    assert_allclose(display.matrix, expected, rtol=1e-5, atol=1e-6)
    for members, shares, cells in (
        (biclusters.rows_, display.row_shares, down),
        (biclusters.columns_, display.column_shares, along),
    ):
        assert_allclose(
            shares, [[row[cell].mean() for cell in cells] for row in members]
        )


def test_a_sparse_table_is_not_made_dense():
    n, p = 200_000, 150_000  # 240 GB as an array
    rows, columns = np.zeros((2, n), dtype=bool), np.zeros((2, p), dtype=bool)
    rows[0, ::2], rows[1, 1::2] = True, True
    columns[0, : p // 3], columns[1, p // 3 :] = True, True
    places = np.arange(0, n, 50)
    X = sp.csr_array((np.ones(len(places)), (places, places % p)), shape=(n, p))
    display = BiclusterDisplay.from_biclusters(X, rows, columns, max_cells=20)
    assert max(display.matrix.shape) <= 21
    mass = display.matrix * np.outer(display.row_sizes, display.column_sizes)
    assert mass.sum() == pytest.approx(len(places))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [0, 3])
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
        place[
            max(
                np.flatnonzero(biclusters.rows_[:, i]),
                key=lambda c: biclusters.factor_[i, c],
            )
        ]
        for i in display.row_order
        if biclusters.rows_[:, i].any()
    ]
    assert (np.diff(own) >= 0).all()


def test_the_order_does_not_depend_on_that_of_the_table(biclusters, table):
    rng = np.random.RandomState(1)
    rows, columns = rng.permutation(len(table)), rng.permutation(table.shape[1])
    one = BiclusterDisplay.from_biclusters(table, biclusters.rows_, biclusters.columns_)
    other = BiclusterDisplay.from_biclusters(
        table[rows][:, columns],
        biclusters.rows_[:, rows],
        biclusters.columns_[:, columns],
    )
    assert_array_equal(one.clusters, other.clusters)
    assert_array_equal(one.row_shares, other.row_shares)
    assert_array_equal(one.column_shares, other.column_shares)


def test_few_clusters_will_do():
    for n_clusters in (1, 3):
        rows = np.eye(n_clusters, 5, dtype=bool)
        display = BiclusterDisplay.from_biclusters(np.eye(5), rows, rows)
        assert_array_equal(display.clusters, np.arange(n_clusters))
        assert len(display.strips_) == n_clusters
