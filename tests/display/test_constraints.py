"""Pictures of constraints: what is counted, and where it is drawn."""

import numpy as np
import pytest

from nmfcluster import PairwiseConstraints
from nmfcluster.display import ConstraintDisplay
from nmfcluster.display.constraints import _shorten


def places_of(cells):
    """Return the row and the column of every cell of a triangle, as drawn."""
    corners = np.array([path.vertices[:4].min(axis=0) for path in cells.get_paths()])
    return [(round(row), round(x - corners[:, 0].min())) for x, row in corners]


def counted_by_hand(labels, pairs, must):
    """Count the pairs of a triangle one by one, with a minus if violated."""
    clusters = sorted(set(labels))
    n = len(clusters)
    counts = {
        (row, column): 0
        for row in range(n)
        for column in range(n)
        if (column <= row if must else row <= column)
    }
    for i, j in pairs:
        ends = [clusters.index(x) for x in (labels[i], labels[j])]
        good = (labels[i] == labels[j]) == must
        cell = (max(ends), min(ends)) if must else (min(ends), max(ends))
        counts[cell] += 1 if good else -1
    return counts


def top_label(display):
    return display.ax_.child_axes[0].get_xlabel()


@pytest.mark.parametrize(("k", "n_pairs"), [(1, 30), (2, 10), (5, 400)])
def test_cells_count_pairs(k, n_pairs):
    rng = np.random.RandomState(k)
    y = rng.randint(max(k, 2), size=200)
    labels = np.where(rng.uniform(size=200) < 0.3, rng.randint(k, size=200), y % k) * 3
    pairs = PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    display = ConstraintDisplay.from_predictions(labels, pairs)
    n = len(display.must_link)
    assert n == k
    must = counted_by_hand(labels, pairs.must_link, must=True)
    cannot = counted_by_hand(labels, pairs.cannot_link, must=False)
    assert places_of(display.must_link_cells_) == list(must)
    assert places_of(display.cannot_link_cells_) == list(cannot)
    # the numbers stand in the cells, bold where pairs are violated
    counts = [count for count in (*must.values(), *cannot.values()) if count]
    assert [text.get_text() for text in display.texts_] == [str(abs(count)) for count in counts]
    weights = ["bold" if count < 0 else "normal" for count in counts]
    assert [text.get_fontweight() for text in display.texts_] == weights
    must_ok, cannot_ok = pairs.satisfied(labels)
    for ok, axis_label in ((must_ok, display.ax_.get_xlabel()), (cannot_ok, top_label(display))):
        assert axis_label.endswith(f": {ok.sum():,} of {len(ok):,} satisfied")


def test_a_picture_of_constraints_in_full():
    labels = ["b", "a", "a", "a", "b", "b"]
    pairs = PairwiseConstraints(
        6,
        must_link=[(1, 2), (2, 3), (0, 1)],  # two within a, one to b
        cannot_link=[(0, 2), (4, 5)],  # one between a and b, one within b
    )
    display = ConstraintDisplay.from_predictions(labels, pairs)
    assert display.names == ["a", "b"]
    assert display.must_link.tolist() == [[2, 1], [1, 0]]
    assert display.cannot_link.tolist() == [[0, 1], [1, 1]]
    assert display.ax_.get_xlabel() == "must-links: 2 of 3 satisfied"
    assert top_label(display) == "cannot-links: 1 of 2 satisfied"
    shown = [(text.get_text(), text.get_fontweight()) for text in display.texts_]
    must, cannot = [("2", "normal"), ("1", "bold")], [("1", "normal"), ("1", "bold")]
    assert shown == must + cannot
    ticks = [display.ax_.get_yticklabels(), display.ax_.get_xticklabels()]
    for labels in [*ticks, display.ax_.child_axes[0].get_xticklabels()]:
        assert [label.get_text() for label in labels] == ["a", "b"]


def test_numbers_stand_in_their_cells():
    rng = np.random.RandomState(0)
    pairs = PairwiseConstraints.from_labels(rng.randint(7, size=300), n_pairs=300, random_state=0)
    display = ConstraintDisplay.from_predictions(rng.randint(7, size=300), pairs)
    display.figure_.draw_without_rendering()
    boxes = []
    for cells in (display.must_link_cells_, display.cannot_link_cells_):
        for path, colour in zip(cells.get_paths(), cells.get_facecolors(), strict=True):
            if np.ptp(colour[:3]) > 0.01:  # not grey: it counts pairs
                boxes.append(display.ax_.transData.transform(path.vertices[:4]))
    for text, box in zip(display.texts_, boxes, strict=True):
        extent = text.get_window_extent()
        assert extent.x0 > box[:, 0].min()
        assert extent.x1 < box[:, 0].max()
        assert extent.y0 > box[:, 1].min()
        assert extent.y1 < box[:, 1].max()


def test_satisfied_and_violated_have_colours_of_their_own():
    pairs = PairwiseConstraints(
        40, must_link=[(0, i) for i in range(1, 40)], cannot_link=[(20, 39), (20, 38)]
    )
    display = ConstraintDisplay.from_predictions([0] * 39 + [1], pairs)
    display.figure_.draw_without_rendering()  # which looks the colours up
    many, violated, nothing = display.must_link_cells_.get_facecolors()
    of_cannot, few, _ = display.cannot_link_cells_.get_facecolors()
    np.testing.assert_array_equal(of_cannot, violated)  # one scale for both triangles
    assert many[2] > many[0] + 0.2  # blue
    assert few[2] > few[0]
    assert sum(many[:3]) < sum(few[:3])  # the more, the darker
    assert violated[0] > violated[2] + 0.2  # orange
    assert np.ptp(nothing[:3]) < 0.01  # grey
    patches = display.ax_.get_legend().get_patches()
    np.testing.assert_allclose([patch.get_facecolor() for patch in patches], [many, violated])


def test_an_estimator_and_its_labels_give_one_picture_of_constraints(constrained):
    one = ConstraintDisplay.from_estimator(constrained)
    other = ConstraintDisplay.from_predictions(constrained.labels_, constrained.constraints_)
    np.testing.assert_array_equal(one.must_link, other.must_link)
    np.testing.assert_array_equal(one.cannot_link, other.cannot_link)
    n_violated = len(constrained.violated_must_link_), len(constrained.violated_cannot_link_)
    assert (np.tril(one.must_link, -1).sum(), one.cannot_link.trace()) == n_violated
    assert min(n_violated) > 0


def test_constraints_can_be_missing():
    display = ConstraintDisplay.from_predictions(
        [0, 0, 1], PairwiseConstraints(3, must_link=[(0, 1)])
    )
    assert display.ax_.get_xlabel() == "must-links: 1 of 1 satisfied"
    assert top_label(display) == "cannot-links: none"


def test_where_there_is_no_room_for_numbers_there_are_none():
    y = np.arange(240) % 120
    pairs = PairwiseConstraints(240, [(0, 120), (1, 2)], [(5, 6), (5, 126)])
    display = ConstraintDisplay.from_predictions(y, pairs)
    assert display.texts_ == []
    places = display.ax_.get_yticks()
    assert 1 < len(places) < 60  # names that would overlap are left out


def test_wrong_constraints_are_refused():
    pairs = PairwiseConstraints(3, must_link=[(0, 1)])
    with pytest.raises(TypeError, match="constraints must be a PairwiseConstraints, got list"):
        ConstraintDisplay.from_predictions([0, 0, 1], [(0, 1)])
    for labels, says in (
        ([0, 0], r"n_samples=3.*, got 2"),
        ([0, -1, 1], "labels must hold a cluster for every sample"),
    ):
        with pytest.raises(ValueError, match=says):
            ConstraintDisplay.from_predictions(labels, pairs)


def test_numbers_are_shortened():
    for number, text in (
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (99_900, "100k"),
        (999_499, "999k"),
        (999_500, "1M"),
        (123_456_789, "123M"),
        (2_000_000_000, "2G"),
    ):
        assert _shorten(number) == text
