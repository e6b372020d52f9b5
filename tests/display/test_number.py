"""Pictures of a choice of the number of clusters: what is drawn, and where."""

import numpy as np
from numpy.testing import assert_array_equal

from nmfcluster.display import NumberDisplay
from nmfcluster.model_selection.results import NumberOfClusters

NUMBERS = np.arange(1, 7)
VOTES = {"mixture": 3, "modes": 3, "silhouette": 2, "density": 9}


def voted(**parts):
    told = {"candidates": NUMBERS, "n_clusters_": 3, "as_good": NUMBERS == 3, "method": "vote"}
    return NumberOfClusters(**told | {"votes": VOTES} | parts)


def agreed():
    heights = np.array([np.nan, 0.8, 0.99, 0.985, 0.7, 0.6])
    parts = {"method": "stability", "votes": None, "as_good": heights > 0.97, "n_clusters_": 4}
    return voted(stability=heights, stability_se=np.full(6, 0.02), **parts)


def test_every_criterion_has_a_dot_at_its_answer():
    display = voted().plot()
    assert isinstance(display, NumberDisplay)
    assert_array_equal(display.dots_.get_xdata(), [3, 3])
    assert_array_equal(display.dots_.get_ydata(), [0, 1])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(VOTES)
    others = [line for line in display.ax_.lines if line.get_marker() == "o"][1:]
    assert [float(line.get_xdata()[0]) for line in others] == [2]
    [beyond] = [line for line in display.ax_.lines if line.get_marker() == ">"]
    assert beyond.get_xdata()[0] == 6.5
    assert display.ax_.get_title() == "chosen: 3 clusters"
    display.figure_.canvas.draw()


def test_the_first_criterion_is_at_the_top():
    low, high = voted().plot().ax_.get_ylim()
    assert low > high


def test_agreement_is_a_curve():
    display = NumberDisplay.from_estimator(agreed())
    curve = display.ax_.lines[0]
    assert_array_equal(curve.get_xdata(), NUMBERS)
    assert_array_equal(curve.get_ydata(), agreed().stability)
    assert_array_equal(display.dots_.get_xdata(), [3, 4])
    assert display.ax_.get_xlabel() == "number of clusters"
    assert display.ax_.get_title() == "chosen: 4 clusters"
    display.figure_.canvas.draw()


def test_one_cluster_is_told_in_the_singular():
    none = voted(n_clusters_=1, votes=dict.fromkeys(VOTES, 1))
    assert none.plot().ax_.get_title() == "chosen: 1 cluster"


def test_criteria_that_differ_are_told():
    title = voted(n_clusters_=2, agreed=False).plot().ax_.get_title()
    assert title == "chosen: 2 clusters, no agreement"
