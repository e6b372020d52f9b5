"""Which values, lines and names a picture of stability reads from the table of a search."""

import numpy as np
import pytest

from nmfcluster.display import StabilityDisplay


def test_the_axis_can_be_chosen(results_of):
    results = results_of({"eta": [0.1, 1.0, 10.0], "n_clusters": [2, 3]})
    display = StabilityDisplay.from_cv_results(results, param="n_clusters")
    assert display.values == [2, 3]
    assert display.names == ["0.1", "1", "10"]


def test_several_other_parameters_are_combined(results_of):
    results = results_of({"eta": [0.1, 1.0, 10.0], "n_clusters": [2, 3], "mode": ["a", "b"]})
    display = StabilityDisplay.from_cv_results(results)
    expected = [f"mode = {m}, n_clusters = {k}" for m in "ab" for k in (2, 3)]
    assert sorted(display.names) == expected
    for name, curve in zip(display.names, display.curves, strict=True):
        mode, k = name[7], int(name[-1])
        rows = [
            results["params"].index({"eta": eta, "n_clusters": k, "mode": mode})
            for eta in (0.1, 1.0, 10.0)
        ]
        np.testing.assert_array_equal(curve, results["mean_test_stability"][rows])
    assert display.title is None


def test_a_parameter_with_one_value_gives_no_lines(results_of):
    display = StabilityDisplay.from_cv_results(results_of({"eta": [1, 2], "n_init": [3]}))
    assert display.names is None
    assert display.param_name == "eta"


def test_grids_that_differ_leave_gaps(results_of):
    results = results_of([{"eta": [1, 2, 3], "k": [2]}, {"eta": [2, 3, 4], "k": [3]}, {"k": [9]}])
    display = StabilityDisplay.from_cv_results(results)
    there = np.isfinite(display.curves)
    np.testing.assert_array_equal(there, [[True, True, True, False], [False, True, True, True]])
    assert [len(line.get_xdata()) for line in display.lines_] == [3, 3]


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, {"param": "alpha"}, r"param must be .*\['eta', 'k'\], got 'alpha'"),
        ({}, {"metric": "score"}, r"metric must be one of .*got 'score'"),
        ({}, {"param": "eta"}, r"besides 'eta' have 12 combinations"),
        ({"mean_test_disagreement": None}, {"metric": "disagreement"}, r"details=True"),
        ({"mean_test_stability": None}, {}, r"'mean_test_stability' or 'mean_test_score'"),
        ({"params": None}, {}, r"'params'"),
        ({"params": [{}] * 24}, {}, r"must hold a parameter"),
        ({"mean_test_stability": np.full(24, np.nan)}, {}, r"finite number"),
    ],
)
def test_bad_tables_are_refused(results_of, change, arguments, message):
    results = results_of({"eta": [1, 2], "k": list(range(12))}) | change
    results = {name: column for name, column in results.items() if column is not None}
    with pytest.raises(ValueError, match=message):
        StabilityDisplay.from_cv_results(results, **arguments)
