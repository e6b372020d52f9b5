"""Scales, places and ticks of the values of a parameter."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nmfcluster.display import StabilityDisplay

ETA = [10.0, 0.1, 0, 1.0, np.inf, 0.01]


def test_zero_and_infinity_have_places_on_a_logarithmic_axis(results_of, ticks_of):
    results = results_of({"eta": ETA})
    display = StabilityDisplay.from_cv_results(results, best_index=4)
    assert display.ax_.get_xscale() == "log"
    assert display.values == [0, 0.01, 0.1, 1.0, 10.0, np.inf]
    x = display.lines_[0].get_xdata()
    np.testing.assert_allclose(x[1:-1], [0.01, 0.1, 1, 10])
    assert 0 < x[0] < 0.01
    assert 10 < x[-1] < np.inf
    assert list(ticks_of(display)) == ["0", "0.01", "0.1", "1", "10", "∞"]
    low, high = display.ax_.get_xlim()
    assert low < x[0] < x[-1] < high
    assert display.chosen == (0, 5)
    assert display.chosen_.get_xdata()[0] == x[-1]
    dotted = [line for line in display.ax_.get_lines() if line.get_linestyle() == ":"]
    np.testing.assert_allclose([line.get_xdata() for line in dotted], [x[:2], x[-2:]])
    corners = display.bands_[0].get_paths()[0].vertices
    np.testing.assert_allclose([corners[:, 0].min(), corners[:, 0].max()], [0.01, 10])
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("values", "scale", "ticks"),
    [
        ([1, 2, 3], "linear", ["1", "2", "3"]),
        ([0, 1, 2.5], "linear", ["0", "1", "2.5"]),
        ([0, 1, np.inf], "linear", ["0", "1", "∞"]),
        ([-np.inf, 1.0, 50.0], "linear", ["\N{MINUS SIGN}∞", "1", "50"]),
        ([-100.0, 1.0, 100.0], "linear", ["-100", "1", "100"]),
        ([1e-3, 1e3], "log", ["0.001", "1000"]),
        ([0, 0.5], "linear", ["0", "0.5"]),
        ([5], "linear", ["5"]),
        ([np.inf], "linear", ["∞"]),
        ([0, np.inf], "linear", ["0", "∞"]),
        (np.logspace(-3, 3, 25).tolist(), "log",
         [f"$10^{{{p}}}$" for p in range(-3, 4)]),
        (list(range(2, 40)), "linear", [str(t) for t in range(5, 40, 5)]),
        (["rbf", "cosine"], "linear", ["rbf", "cosine"]),
        ([None, "rbf"], "linear", ["None", "rbf"]),
        ([True, False], "linear", ["True", "False"]),
        ([1, "auto"], "linear", ["1", "auto"]),
    ],
)  # fmt: skip
def test_the_axis_suits_the_values(results_of, ticks_of, values, scale, ticks):
    display = StabilityDisplay.from_cv_results(results_of({"p": values}))
    assert display.ax_.get_xscale() == scale
    assert list(ticks_of(display)) == ticks
    x = display.lines_[0].get_xdata()
    assert np.isfinite(x).all()
    assert len(set(x.tolist())) == len(values)
    assert (np.diff(x) > 0).all()


def test_estimators_and_long_names_are_categories(results_of, ticks_of):
    grid = {"scaler": [StandardScaler(), MinMaxScaler(), "a name that is much too long to show"]}
    display = StabilityDisplay.from_cv_results(results_of(grid))
    display.figure_.canvas.draw()
    ticks = list(ticks_of(display))
    assert ticks[:2] == ["StandardScaler()", "MinMaxScaler()"]
    assert ticks[2].startswith("a name that")
    assert len(ticks[2]) == 22
