"""Pictures of stability: what is drawn, and where."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nmfcluster.display import StabilityDisplay
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

ETA = [10.0, 0.1, 0, 1.0, np.inf, 0.01]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(80, centers=6 * np.eye(3), random_state=0)[0]


def search_for(X, grid, details=True, **options):
    return GridSearchCV(
        KMeans(n_init=1, random_state=0),
        grid,
        scoring=StabilityScorer(4, subsample_size=0.4, details=details),
        cv=FullSampleSplit(),
        refit="stability" if details else True,
        **options,
    ).fit(X)


def results_of(grid, details=True):
    params = list(ParameterGrid(grid))
    stability = np.random.default_rng(0).uniform(0.2, 0.6, size=len(params))
    results = {"params": params, "mean_test_stability": stability}
    if details:
        results["mean_test_stability_se"] = stability / 10
        results["mean_test_disagreement"] = 1 - stability
    return results


def ticks_of(display):
    display.figure_.canvas.draw()
    return {
        tick.get_text(): place
        for tick, place in zip(display.ax_.get_xticklabels(), display.ax_.get_xticks(), strict=True)
    }


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_curve_is_that_of_the_table(blobs):
    search = search_for(blobs, {"n_clusters": [4, 2, 3]})
    display = StabilityDisplay.from_estimator(search)
    order = [1, 2, 0]
    table = search.cv_results_
    assert display.values == [2, 3, 4]
    np.testing.assert_array_equal(display.curves, [table["mean_test_stability"][order]])
    np.testing.assert_array_equal(display.errors, [table["mean_test_stability_se"][order]])
    assert display.chosen == (0, order.index(search.best_index_))
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_xydata()[:, 0], [2, 3, 4])
    np.testing.assert_array_equal(line.get_xydata()[:, 1], display.curves[0])
    (band,) = display.bands_
    corners = band.get_paths()[0].vertices
    expected = (display.curves - display.errors).min(), (display.curves + display.errors).max()
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], expected)
    best = search.best_params_["n_clusters"]
    np.testing.assert_allclose(display.chosen_.get_xydata(), [[best, search.best_score_]])
    assert legend_of(display) == [f"chosen: n_clusters = {best}", "± 1 standard error"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("n_clusters", "stability")
    assert ticks_of(display) == {"2": 2, "3": 3, "4": 4}


def test_without_details_there_is_no_spread(blobs):
    search = search_for(blobs, {"n_clusters": [2, 3]}, details=False)
    display = StabilityDisplay.from_estimator(search)
    np.testing.assert_array_equal(display.curves, [search.cv_results_["mean_test_score"]])
    assert display.errors is None
    assert display.bands_ == []
    assert len(legend_of(display)) == 1


def test_the_disagreement_can_be_shown(blobs):
    search = search_for(blobs, {"n_clusters": [2, 3]})
    display = StabilityDisplay.from_estimator(search, metric="disagreement")
    np.testing.assert_array_equal(display.curves, [search.cv_results_["mean_test_disagreement"]])
    assert display.errors is not None
    assert display.ax_.get_ylabel() == "disagreement"


def test_without_a_refit_nothing_is_chosen(blobs):
    search = GridSearchCV(
        KMeans(n_init=1), {"n_clusters": [2, 3]}, refit=False,
        scoring=StabilityScorer(4, details=True), cv=FullSampleSplit(),
    ).fit(blobs)  # fmt: skip
    display = StabilityDisplay.from_estimator(search)
    assert display.chosen is None
    assert display.chosen_ is None
    assert legend_of(display) == ["± 1 standard error"]


def test_a_random_search_is_drawn_in_order(blobs):
    search = RandomizedSearchCV(
        KMeans(n_init=1, random_state=0), {"tol": [1e-1, 1e-5, 1e-3, 1e-4]}, n_iter=4,
        scoring=StabilityScorer(4, details=True), cv=FullSampleSplit(), refit="stability",
        random_state=0,
    ).fit(blobs)  # fmt: skip
    display = StabilityDisplay.from_estimator(search)
    assert display.values == [1e-5, 1e-4, 1e-3, 1e-1]
    assert display.ax_.get_xscale() == "log"


# --- the axis ----------------------------------------------------------------------------------


def test_zero_and_infinity_have_places_on_a_logarithmic_axis():
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


@pytest.mark.parametrize(
    ("values", "scale", "ticks"),
    [
        ([1, 2, 3], "linear", ["1", "2", "3"]),
        ([0, 1, 2.5], "linear", ["0", "1", "2.5"]),
        ([0, 1, np.inf], "linear", ["0", "1", "∞"]),
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
def test_the_axis_suits_the_values(values, scale, ticks):
    display = StabilityDisplay.from_cv_results(results_of({"p": values}))
    assert display.ax_.get_xscale() == scale
    assert list(ticks_of(display)) == ticks
    x = display.lines_[0].get_xdata()
    assert np.isfinite(x).all()
    assert len(set(x.tolist())) == len(values)
    assert (np.diff(x) > 0).all()


def test_categories_are_not_joined():
    grid = {"affinity": ["rbf", "cosine"], "criterion": ["kl", "ce", "kl2"]}
    display = StabilityDisplay.from_cv_results(results_of(grid), param="affinity", best_index=0)
    assert all(line.get_linestyle() == "None" for line in display.lines_)
    assert display.bands_ == []
    x = np.array([line.get_xdata() for line in display.lines_])
    assert (np.diff(x, axis=0) > 0).all()  # beside each other
    np.testing.assert_allclose(x.mean(axis=0), [0, 1])


def test_estimators_and_long_names_are_categories():
    grid = {"scaler": [StandardScaler(), MinMaxScaler(), "a name that is much too long to show"]}
    display = StabilityDisplay.from_cv_results(results_of(grid))
    ticks = list(ticks_of(display))
    assert ticks[:2] == ["StandardScaler()", "MinMaxScaler()"]
    assert ticks[2].startswith("a name that")
    assert len(ticks[2]) == 22


# --- several lines -----------------------------------------------------------------------------


def test_a_second_parameter_gives_lines():
    results = results_of({"eta": ETA, "n_clusters": [2, 3]})
    display = StabilityDisplay.from_cv_results(results, best_index=3)
    assert display.param_name == "eta"
    assert display.names == ["2", "3"]
    for i, k in enumerate([2, 3]):
        for j, eta in enumerate(sorted(ETA)):
            row = results["params"].index({"eta": eta, "n_clusters": k})
            assert display.curves[i, j] == results["mean_test_stability"][row]
            assert display.errors[i, j] == results["mean_test_stability_se"][row]
    assert len({line.get_color() for line in display.lines_}) == 2
    assert legend_of(display)[:2] == ["2", "3"]
    assert display.ax_.get_legend().get_title().get_text() == "n_clusters"
    assert display.chosen == (1, 2)
    assert display.chosen_.get_markeredgecolor() == display.lines_[1].get_color()


def test_the_axis_can_be_chosen():
    results = results_of({"eta": [0.1, 1.0, 10.0], "n_clusters": [2, 3]})
    display = StabilityDisplay.from_cv_results(results, param="n_clusters")
    assert display.values == [2, 3]
    assert display.names == ["0.1", "1", "10"]


def test_several_other_parameters_are_combined():
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


def test_a_parameter_with_one_value_gives_no_lines():
    display = StabilityDisplay.from_cv_results(results_of({"eta": [1, 2], "n_init": [3]}))
    assert display.names is None
    assert display.param_name == "eta"


def test_grids_that_differ_leave_gaps():
    results = results_of([{"eta": [1, 2, 3], "k": [2]}, {"eta": [2, 3, 4], "k": [3]}, {"k": [9]}])
    display = StabilityDisplay.from_cv_results(results)
    there = np.isfinite(display.curves)
    np.testing.assert_array_equal(there, [[True, True, True, False], [False, True, True, True]])
    assert [len(line.get_xdata()) for line in display.lines_] == [3, 3]


def test_candidates_without_a_score_are_left_out():
    results = results_of({"eta": [1, 2, 3]})
    results["mean_test_stability"][1] = np.nan
    display = StabilityDisplay.from_cv_results(results, best_index=1)
    assert display.lines_[0].get_xdata().tolist() == [1, 3]
    assert display.chosen_ is None


def test_it_draws_where_it_is_told():
    _, ax = plt.subplots()
    display = StabilityDisplay.from_cv_results(results_of({"eta": [1, 2]}), ax=ax)
    assert display.ax_ is ax
    again = display.plot()
    assert again is display
    assert display.ax_ is not ax


# --- bad input ---------------------------------------------------------------------------------


def test_what_is_no_fitted_search_is_refused():
    with pytest.raises(TypeError, match=r"search, such as GridSearchCV, got KMeans"):
        StabilityDisplay.from_estimator(KMeans())
    with pytest.raises(NotFittedError):
        StabilityDisplay.from_estimator(GridSearchCV(KMeans(), {}))


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
def test_bad_tables_are_refused(change, arguments, message):
    results = results_of({"eta": [1, 2], "k": list(range(12))}) | change
    results = {name: column for name, column in results.items() if column is not None}
    with pytest.raises(ValueError, match=message):
        StabilityDisplay.from_cv_results(results, **arguments)
