"""What the pictures share: cells, and places and lengths of names."""

import numpy as np
import pytest

from nmfcluster.display.style import (
    COLOURS,
    colour_of,
    cut,
    divide_into_cells,
    shorten,
    spread,
    to_name,
)


@pytest.mark.parametrize("max_cells", [1, 3, 5, 17, 50, 400, 2000])
@pytest.mark.parametrize("sizes", [(1000,), (900, 60, 40), (500, 499, 1), (1,) * 40, (3, 1, 2)])
def test_cells_respect_clusters(sizes, max_cells):
    rng = np.random.RandomState(0)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)) * 2, sizes))  # numbers with gaps
    confidence = rng.uniform(size=len(labels))
    order, groups, cell_labels = divide_into_cells(labels, confidence, max_cells)
    n_cells = len(cell_labels)
    assert sorted(order) == list(range(len(labels)))
    assert n_cells == min(max(max_cells, len(sizes)), len(labels))
    assert np.array_equal(np.unique(groups), np.arange(n_cells))
    assert (np.diff(groups) >= 0).all()
    np.testing.assert_array_equal(labels[order], cell_labels[groups])  # none straddles two
    assert set(cell_labels) == set(labels)  # every cluster has one
    for cluster in np.unique(labels):
        own = confidence[order][labels[order] == cluster]
        assert (np.diff(own) <= 0).all()
        of_cluster = np.bincount(groups)[cell_labels == cluster]
        assert np.ptp(of_cluster) <= 1  # cells of one cluster are of one size


@pytest.mark.parametrize(
    ("max_cells", "error"), [(0, ValueError), (2.5, TypeError), (True, TypeError)]
)
def test_max_cells_is_a_positive_int(max_cells, error):
    with pytest.raises(error, match=rf"max_cells must be .*, got {max_cells}"):
        divide_into_cells(np.zeros(3, dtype=int), np.zeros(3), max_cells)


def test_cells_are_shared_out_by_size():
    labels = np.repeat([0, 1, 2], [6000, 3000, 1000])
    _, _, cell_labels = divide_into_cells(labels, np.zeros(10_000), 100)
    assert np.abs(np.bincount(cell_labels) - [60, 30, 10]).max() <= 1


def test_names_keep_their_order_and_distance():
    sizes = np.array([60_000, 25_000, 8_000, 4_000, 1_800, 700, 300, 120, 50, 30])
    centres = np.cumsum(sizes) - sizes / 2
    places = spread(centres, sizes, 3_000.0, 100_000)
    assert np.diff(places).min() >= 3_000 - 1e-6
    assert places[0] == pytest.approx(centres[0])
    assert 1_499 < places[-1] <= 98_500 + 1e-6


def test_names_without_room_are_left_out():
    sizes = np.array([100, 100, 1, 1, 1, 1, 100])
    assert to_name(sizes, 10.0, 304).tolist() == list(range(7))
    assert to_name(sizes, 50.0, 304).tolist() == [0, 1, 6]
    assert len(to_name(np.ones(1000, dtype=int), 50.0, 1000)) == 20


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1234, "1.2k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (99_900, "100k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (123_456_789, "123M"),
        (2_000_000_000, "2.0G"),
    ],
)
def test_numbers_are_shortened(number, text):
    assert shorten(number) == text


def test_long_names_are_cut():
    assert cut("a name", 6) == "a name"
    assert cut("a long name", 6) == "a lon…"


def test_colours_do_not_repeat_below_twenty_clusters():
    colours = [colour_of(i) for i in range(22)]
    assert tuple(colours[:7]) == COLOURS
    assert len(set(colours)) == 21
    assert colours[21] == colours[0]


# Machado, Oliveira, Fernandes (2009), severity 1: what an eye without one kind of cones sees of
# linear red, green and blue
EYES = {
    "all cones": np.eye(3),
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no middle": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no short": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@pytest.mark.parametrize("eye", EYES)
def test_colour_blind_readers_tell_seven_clusters_apart(eye):
    colours = [colour_of(i) for i in range(7)]
    rgb = np.array([[int(c[at : at + 2], 16) / 255 for at in (1, 3, 5)] for c in colours])
    seen = np.clip(((rgb + 0.055) / 1.055) ** 2.4 @ np.array(EYES[eye]).T, 0, 1)
    x, y, z = np.cbrt(seen @ XYZ.T / XYZ.sum(axis=1)).T
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(7, 1)]
    assert apart.min() > 14  # about 2.3 are just seen
