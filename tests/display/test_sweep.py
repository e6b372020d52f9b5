"""Pictures of sweeps over numbers of clusters: what is drawn, and where."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster import NMFMetaCluster
from nmfcluster.display import ClusterSweepDisplay

CURVES = {
    "candidates": [2, 3, 4],
    "recurrence": np.array([0.9, 1.0, 0.5]),
    "smallest_recurrence": np.array([0.8, 1.0, 0.1]),
    "reconstruction_err": np.array([30.0, 20.0, 18.0]),
}


def heights(display, name):
    return display.lines_[name].get_ydata()


def test_the_curves_are_those_of_the_sweep(sweep):
    display = ClusterSweepDisplay.from_estimator(sweep)
    for name in ("recurrence", "smallest_recurrence", "reconstruction_err"):
        assert_array_equal(heights(display, name), getattr(sweep, name))
        assert_array_equal(display.lines_[name].get_xdata(), sweep.candidates)
    losses = sweep.held_out_losses.mean(axis=1)
    assert_allclose(heights(display, "held_out_loss"), losses - losses.min())
    assert display.lines_["recurrence"].axes is display.ax_
    assert display.lines_["reconstruction_err"].axes is display.error_ax_
    assert display.lines_["held_out_loss"].axes is display.loss_ax_
    assert display.ax_.get_title() == f"chosen: {sweep.n_clusters_} clusters"
    display.figure_.canvas.draw()


def test_panels_share_the_room_and_the_numbers(sweep):
    display = ClusterSweepDisplay.from_estimator(sweep)
    display.figure_.canvas.draw()
    upper, lower = (axes.get_position() for axes in (display.ax_, display.loss_ax_))
    assert upper.y0 > lower.y1
    assert_allclose([upper.x0, upper.x1], [lower.x0, lower.x1])
    assert display.ax_.get_xlim() == display.loss_ax_.get_xlim()
    assert (display.ax_.get_xlabel(), display.loss_ax_.get_xlabel()) == ("", "number of clusters")


@pytest.mark.parametrize("grid", [True, False], ids=["of a grid", "placed"])
def test_given_axes_are_divided(sweep, grid):
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.subplots() if grid else figure.add_axes((0.2, 0.1, 0.5, 0.8))
    room = ax.get_position()
    display = ClusterSweepDisplay.from_estimator(sweep, ax=ax)
    assert display.ax_ is ax
    upper, lower = ax.get_position(), display.loss_ax_.get_position()
    assert_allclose([upper.y1, lower.y0], [room.y1, room.y0])
    assert upper.y0 > lower.y1


def test_bands_are_standard_errors_of_the_difference(sweep):
    display = ClusterSweepDisplay.from_estimator(sweep)
    (band,) = display.loss_ax_.collections
    corners = band.get_paths()[0].vertices
    excess = heights(display, "held_out_loss")
    assert_allclose(corners[:, 1].max(), (excess + sweep.held_out_se).max())
    assert_allclose(corners[:, 1].min(), (excess - sweep.held_out_se).min())
    filled = display.loss_ax_.lines[1]
    assert_array_equal(filled.get_xdata(), sweep.candidates[sweep.as_good])


def test_without_held_out_losses_there_is_one_panel():
    display = ClusterSweepDisplay(**CURVES, n_clusters=3).plot()
    assert display.loss_ax_ is None
    assert display.ax_.get_xlabel() == "number of clusters"
    assert set(display.lines_) == {"recurrence", "smallest_recurrence", "reconstruction_err"}
    assert display.ax_.lines[-1].get_xdata() == [3, 3]
    assert len(display.ax_.figure.axes) == 2
    display.figure_.canvas.draw()


@pytest.mark.parametrize("losses", [[7.0, 5.0, 5.5], [5.0, 5.0, 5.0], [5.0, np.nan, 6.0]])
def test_losses_without_errors_can_be_drawn(losses):
    display = ClusterSweepDisplay(**CURVES, held_out_loss=np.array(losses)).plot()
    assert not display.loss_ax_.collections
    assert display.ax_.get_title() == ""
    display.figure_.canvas.draw()


def test_fits_are_put_in_order():
    X = np.random.default_rng(0).uniform(size=(20, 8))
    fits = [NMFMetaCluster(k, n_estimators=3, random_state=0).fit(X) for k in (4, 2, 3)]
    display = ClusterSweepDisplay.from_estimators(iter(fits))
    assert_array_equal(display.candidates, [2, 3, 4])
    errors = [fits[i].reconstruction_err_ for i in (1, 2, 0)]
    assert_array_equal(heights(display, "reconstruction_err"), errors)
    smallest = [fits[i].recurrence_.min() for i in (1, 2, 0)]
    assert_array_equal(heights(display, "smallest_recurrence"), smallest)
    assert display.as_good is display.n_clusters is display.loss_ax_ is None
