"""Pictures of choices: of numbers of clusters, and of the values of parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from nmfcluster.display import NumberDisplay, StabilityDisplay
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer
from nmfcluster.model_selection.results import NumberOfClusters

NUMBERS = np.arange(1, 7)
VOTES = {"mixture": 3, "modes": 3, "silhouette": 2, "density": 9}
SWEPT = {
    "n_clusters": [2, 3, 4],
    "recurrence": [0.9, 1.0, 0.5],
    "smallest_recurrence": [0.8, 1.0, 0.1],
    "reconstruction_err": [30.0, 20.0, 18.0],
    "as_good": [False, True, False],
    "chosen": [False, True, False],
}


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def filled(ax):
    """Return the places of the dots that are marked as good."""
    [dots] = [line for line in ax.lines if line.get_label() == "as good as the best"]
    return dots.get_xdata().tolist()


def voted(**parts):
    told = {
        "candidates": NUMBERS,
        "n_clusters_": 3,
        "as_good": NUMBERS == 3,
        "method": "vote",
    }
    return NumberOfClusters(**told | {"votes": VOTES} | parts)


def test_every_criterion_has_a_dot_at_its_answer():
    display = voted().plot()
    assert isinstance(display, NumberDisplay)
    assert [float(line.get_xdata()[0]) for line in display.lines_.values()] == [
        3,
        3,
        2,
        6.5,
    ]
    assert [line.get_marker() for line in display.lines_.values()] == [
        "o",
        "o",
        "o",
        ">",
    ]
    assert [line.get_ydata()[0] for line in display.lines_.values()] == [0, 1, 2, 3]
    hollow = [line.get_markerfacecolor() == "white" for line in display.lines_.values()]
    assert hollow == [False, False, True, True]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(VOTES)
    low, high = display.ax_.get_ylim()
    assert low > high  # the first is at the top
    assert display.ax_.get_title() == "chosen: 3 clusters"


def test_agreement_is_a_curve():
    heights = np.array([np.nan, 0.8, 0.99, 0.985, 0.7, 0.6])
    parts = {
        "method": "stability",
        "votes": None,
        "as_good": heights > 0.97,
        "n_clusters_": 4,
    }
    chosen = voted(stability=heights, stability_se=np.full(6, 0.02), **parts)
    display = NumberDisplay.from_estimator(chosen)
    assert display.error_ax_ is None
    curve = display.lines_["stability"]
    assert_array_equal(curve.get_xdata(), NUMBERS)
    assert_array_equal(curve.get_ydata(), heights)
    assert filled(display.ax_) == [3, 4]
    assert display.ax_.get_xlabel() == "number of clusters"
    assert display.ax_.get_title() == "chosen: 4 clusters"


def test_one_cluster_and_criteria_that_differ_are_told():
    none = voted(n_clusters_=1, votes=dict.fromkeys(VOTES, 1))
    assert none.plot().ax_.get_title() == "chosen: 1 cluster"
    title = voted(n_clusters_=2, agreed=False).plot().ax_.get_title()
    assert title == "chosen: 2 clusters, no agreement"


@pytest.mark.slow
def test_the_curves_are_those_of_the_sweep(sweep):
    display = NumberDisplay.from_estimator(sweep)
    for name in ("recurrence", "smallest_recurrence", "reconstruction_err"):
        assert_array_equal(display.lines_[name].get_ydata(), getattr(sweep, name))
        assert_array_equal(display.lines_[name].get_xdata(), sweep.candidates)
    losses = sweep.held_out_losses.mean(axis=1)
    excess = display.lines_["held_out_loss"].get_ydata()
    assert_allclose(excess, losses - losses.min())
    assert display.lines_["recurrence"].axes is display.ax_
    assert display.lines_["reconstruction_err"].axes is display.error_ax_
    assert display.lines_["held_out_loss"].axes is display.loss_ax_
    assert display.ax_.get_title() == f"chosen: {sweep.n_clusters_} clusters"
    assert filled(display.loss_ax_) == sweep.candidates[sweep.as_good].tolist()
    # the band is one standard error
    (band,) = display.loss_ax_.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert_allclose(heights.max(), (excess + sweep.held_out_se).max())
    assert_allclose(heights.min(), (excess - sweep.held_out_se).min())
    # the panels share the room and the numbers
    display.figure_.draw_without_rendering()
    upper, lower = (axes.get_position() for axes in (display.ax_, display.loss_ax_))
    assert upper.y0 > lower.y1
    assert_allclose([upper.x0, upper.x1], [lower.x0, lower.x1])
    assert display.ax_.get_xlim() == display.loss_ax_.get_xlim()
    assert (display.ax_.get_xlabel(), display.loss_ax_.get_xlabel()) == (
        "",
        "number of clusters",
    )


@pytest.mark.parametrize("grid", [True, False], ids=["of a grid", "placed"])
def test_given_axes_are_divided(sweep, grid):
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.subplots() if grid else figure.add_axes((0.2, 0.1, 0.5, 0.8))
    room = ax.get_position()
    display = NumberDisplay.from_estimator(sweep, ax=ax)
    assert display.ax_ is ax
    upper, lower = ax.get_position(), display.loss_ax_.get_position()
    assert_allclose([upper.y1, lower.y0], [room.y1, room.y0])
    assert upper.y0 > lower.y1


def test_without_held_out_losses_there_is_one_panel():
    display = NumberDisplay(table=SWEPT).plot()
    assert display.loss_ax_ is None
    assert display.ax_.get_xlabel() == "number of clusters"
    assert set(display.lines_) == {
        "recurrence",
        "smallest_recurrence",
        "reconstruction_err",
    }
    assert list(display.ax_.lines[-1].get_xdata()) == [3, 3]
    assert len(display.ax_.figure.axes) == 2


def test_losses_that_are_equal_or_missing_can_be_drawn():
    equal = {"held_out_loss": [5.0, 5.0, 5.0], "held_out_se": [0.0, 0.0, 0.0]}
    display = NumberDisplay(table=SWEPT | equal).plot()
    assert display.loss_ax_.get_yscale() == "linear"
    missing = {"held_out_loss": [5.0, np.nan, 6.0], "held_out_se": [0.0, np.nan, 1.0]}
    NumberDisplay(table=SWEPT | missing).plot().figure_.draw_without_rendering()


# --- values of any parameter ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(80, centers=6 * np.eye(3), random_state=0)[0]


@pytest.fixture(scope="module")
def search(blobs):
    return GridSearchCV(
        KMeans(n_init=1, random_state=0),
        {"n_clusters": [4, 2, 3]},
        scoring=StabilityScorer(4, subsample_size=0.4, details=True),
        cv=FullSampleSplit(),
        refit="stability",
    ).fit(blobs)


def searched(params, **columns):
    """Return a search with a table of results, as if it had been fitted."""
    model = GridSearchCV(KMeans(), {})
    model.cv_results_ = {"params": params, **columns}
    model.n_splits_ = sum(name.startswith("split") for name in columns) or 1
    return model


def names_of(values):
    """Return the names of the ticks of an axis of values, which stand side by side."""
    scores = np.linspace(0, 1, len(values))
    display = StabilityDisplay(param_name="p", values=values, scores=scores).plot()
    assert_array_equal(display.line_.get_xdata(), np.arange(len(values)))
    return [tick.get_text() for tick in display.ax_.get_xticklabels()]


def test_the_curve_is_that_of_the_table(search):
    display = StabilityDisplay.from_estimator(search)
    order, table = [1, 2, 0], search.cv_results_
    assert display.values == [2, 3, 4]
    assert_array_equal(display.scores, table["mean_test_stability"][order])
    assert_array_equal(display.errors, table["mean_test_stability_se"][order])
    assert display.chosen == search.best_params_["n_clusters"]
    assert_array_equal(display.line_.get_ydata(), display.scores)
    (band,) = display.ax_.collections
    heights = band.get_paths()[0].vertices[:, 1]
    bounds = (
        (display.scores - display.errors).min(),
        (display.scores + display.errors).max(),
    )
    assert_allclose([heights.min(), heights.max()], bounds)
    assert legend_of(display.ax_) == ["± 1 standard error", "as good as the best"]
    assert display.ax_.get_title() == f"chosen: n_clusters = {display.chosen}"
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (
        "n_clusters",
        "stability",
    )


def test_values_within_a_standard_error_of_the_best_are_as_good():
    params = [{"eta": eta} for eta in (1, 2, 3)]
    columns = {
        "mean_test_stability": np.array([0.74, 0.9, 0.76]),
        "mean_test_stability_se": np.array([0.3, 0.15, 0.01]),
    }
    display = StabilityDisplay.from_estimator(searched(params, **columns))
    assert display.as_good_.tolist() == [False, True, True]
    assert filled(display.ax_) == [1, 2]
    assert display.chosen is None  # without a refit
    assert display.ax_.get_title() == ""


def test_other_scores_have_the_error_of_their_splits(blobs):
    search = GridSearchCV(
        KMeans(n_init=1, random_state=0), {"n_clusters": [2, 3]}, cv=4
    )
    results = search.fit(blobs).cv_results_
    display = StabilityDisplay.from_estimator(search)
    assert display.metric == display.ax_.get_ylabel() == "score"
    assert_allclose(display.scores, results["mean_test_score"])
    splits = np.array([results[f"split{i}_test_score"] for i in range(4)])
    assert_allclose(display.errors, splits.std(axis=0, ddof=1) / 2)
    params, scores = [{"eta": 1}, {"eta": 2}], np.array([0.5, 0.9])
    display = StabilityDisplay.from_estimator(searched(params, mean_test_score=scores))
    assert display.errors is None
    assert legend_of(display.ax_) == ["as good as the best"]


def test_of_several_parameters_the_best_candidates_are_shown():
    params = [
        {"eta": eta, "affinity": name}
        for eta in (0.1, 1, 10)
        for name in ("rbf", "cosine")
    ]
    scores = np.array([0.1, 0.3, 0.5, 0.4, np.nan, 0.2])
    model = searched(params, mean_test_score=scores)
    model.best_params_ = params[2]
    display = StabilityDisplay.from_estimator(model)
    assert display.param_name == "eta"  # the one with the most values
    assert display.scores.tolist() == [0.3, 0.5, 0.2]
    assert display.chosen == 1
    marked = [
        line for line in display.ax_.get_lines() if list(line.get_ydata()) == [0, 1]
    ]
    assert [line.get_xdata()[0] for line in marked] == [1]  # its place


def test_values_without_a_score_are_left_out():
    scores = np.array([0.2, np.nan, 0.4])
    errors = np.array([0.1, np.nan, 0.1])
    display = StabilityDisplay(
        param_name="eta", values=[1, 2, 3], scores=scores, errors=errors, chosen=3
    ).plot()
    assert display.as_good_.tolist() == [False, False, True]


def test_values_are_named():
    for values, ticks in (
        ([0, 0.01, 2.5, 1000, np.inf], ["0", "0.01", "2.5", "1000", "inf"]),
        ([5], ["5"]),
        ([None, "rbf", True, 1], ["None", "rbf", "True", "1"]),
        ([StandardScaler(), MinMaxScaler()], ["StandardScaler()", "MinMaxScaler()"]),
        (
            ["a name that is much too long to show"],
            ["a name that is much too long \N{HORIZONTAL ELLIPSIS}"],
        ),
    ):
        assert names_of(values) == ticks
    # no room for all
    assert names_of(list(range(2, 40))) == [str(k) for k in range(2, 40, 4)]


def test_what_is_no_fitted_search_is_refused():
    with pytest.raises(NotFittedError):
        StabilityDisplay.from_estimator(GridSearchCV(KMeans(), {}))
    with raises_naming(ValueError, "refit"):
        StabilityDisplay.from_estimator(searched([{"eta": 1}], mean_test_beauty=[1.0]))
    nothing = searched([{"eta": 1}], mean_test_score=[np.nan])
    with raises_naming(ValueError, "score", "finite"):
        StabilityDisplay.from_estimator(nothing)
