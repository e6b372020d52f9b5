"""Frames and strips of clusters in pictures of biclusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.display import BiclusterDisplay


def test_the_frames_hold_their_biclusters(planted):
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    for cluster, frame in zip(display.clusters, display.outlines_, strict=True):
        (left, top), width, height = frame.get_xy(), frame.get_width(), frame.get_height()
        inside_rows = display.row_order[top : top + height]
        inside_columns = display.column_order[left : left + width]
        assert_array_equal(np.sort(inside_rows), np.flatnonzero(rows[cluster]))
        assert_array_equal(np.sort(inside_columns), np.flatnonzero(columns[cluster]))


@pytest.mark.parametrize(
    ("pieces", "frames"),
    [
        ([10], 1),
        ([5, 1], 4),  # two of rows, two of columns
        ([9, 1, 1, 1, 1], 1),  # the long one alone
        ([6, 1, 1, 5], 4),
        ([1, 1, 1, 1, 1], 0),  # none of them tells more than the strips do
    ],
)
def test_clusters_in_pieces_have_few_frames(marks_of, pieces, frames):
    share = np.concatenate([[0.0, *[1.0] * size] for size in pieces] + [[0.4]])
    ones = np.ones(len(share), dtype=int)
    display = BiclusterDisplay(
        matrix=np.outer(share, share),
        row_sizes=ones,
        column_sizes=ones,
        row_shares=share[None],
        column_shares=share[None],
    ).plot()
    assert len(display.outlines_) == frames
    framed = {frame.get_width() for frame in display.outlines_}
    assert not frames or max(framed) == max(pieces)
    assert len(marks_of(display.strips_[0][0], 1)) == len(pieces) + 1  # that of a share of 0.4


def test_a_row_of_several_clusters_has_several_marks(planted, marks_of):
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    seen = {}
    for cluster, strips in zip(display.clusters, display.strips_, strict=True):
        for side, (strip, members, order) in enumerate(
            zip(strips, (rows, columns), (display.row_order, display.column_order), strict=True)
        ):
            marked = np.zeros(len(order), dtype=int)
            for colour, low, high in marks_of(strip, 1 - side):
                marked[order[int(low) : int(high)]] += 1
                seen.setdefault(cluster, set()).add(tuple(colour))
            assert_array_equal(marked, members[cluster])
    assert (rows.sum(axis=0) > 1).any()
    assert all(len(colours) == 1 for colours in seen.values())  # the same at both sides
    assert len(set.union(*seen.values())) == 5


def test_strips_and_frames_have_the_colours_of_the_cluster(marks_of, biclusters, table):
    display = BiclusterDisplay.from_biclusters(table, biclusters.rows_, biclusters.columns_)
    by_frames = {tuple(frame.get_edgecolor()) for frame in display.outlines_}
    by_strips = {tuple(marks_of(strip, 1)[0][0]) for strip, _ in display.strips_}
    assert by_frames == by_strips


def test_marks_of_cells_are_as_strong_as_the_share(marks_of):
    rows = np.array([[1, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    rows[1, 2] = True
    display = BiclusterDisplay.from_biclusters(np.eye(4), rows, rows, max_cells=2)
    shares = display.row_shares
    assert_allclose(shares, [[1, 0], [1 / 3, 1]])
    alphas = [colour[3] for colour, *_ in marks_of(display.strips_[1][0], 1)]
    assert_allclose(alphas, [1 / 3, 1])


def test_an_empty_cluster_has_no_mark(marks_of):
    rows = np.array([[True, True, False], [False] * 3, [False, False, True]])
    display = BiclusterDisplay.from_biclusters(np.eye(3), rows, rows)
    shown = dict(zip(display.clusters.tolist(), display.strips_, strict=True))
    assert marks_of(shown[1][0], 1) == marks_of(shown[1][1], 0) == []
    assert len(display.outlines_) == 2


def test_clusters_are_named_where_there_is_room(planted):
    X, rows, columns, chain = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    assert [text.get_text() for text in display.ax_.texts] == [str(c) for c in display.clusters]
    names = [f"kind {place}" for place in chain]
    display = BiclusterDisplay.from_biclusters(X, rows, columns, names=names)
    assert [text.get_text() for text in display.ax_.texts] == [names[c] for c in display.clusters]
    many = np.eye(30, dtype=bool)
    display = BiclusterDisplay.from_biclusters(np.eye(30), many, many)
    assert 5 <= len(display.ax_.texts) <= 10
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    assert all(not one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[i + 1 :])
    assert display.outlines_ == []  # they would hide the table
