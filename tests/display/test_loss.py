"""Pictures of loss curves: what is drawn, and where."""

import numpy as np
import pytest
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neural_network import MLPClassifier

from nmfcluster import NMFMetaCluster
from nmfcluster.display import LossCurveDisplay


def test_loss_curves_are_relative_to_the_lowest():
    curves = [np.array([8.0, 5.0, 4.4]), np.array([9.0, 4.0]), np.array([6.0, 6.0])]
    display = LossCurveDisplay(curves=curves).plot()
    kept, lowest, flat = (line.get_ydata() for line in display.lines_)
    np.testing.assert_allclose(kept, [1.0, 0.25, 0.1])
    np.testing.assert_allclose(lowest, [1.25, np.nan])  # 0 has no logarithm
    np.testing.assert_allclose(flat, [0.5, 0.5])
    assert display.ax_.get_yscale() == "log"
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["kept", "2 other starts"]


@pytest.mark.parametrize(
    "curves",
    [
        [np.array([5.0, 1e-9])],
        [np.array([5.0, 0.0]), np.array([3.0, 2.0])],
        [np.array([0.0, 0.0])],
        [np.array([2.0, 2.0])],
        [np.array([2.0])],
    ],
)
def test_losses_of_a_perfect_fit_can_be_drawn(curves):
    display = LossCurveDisplay(curves=curves).plot()
    assert len(display.lines_) == len(curves)
    display.figure_.canvas.draw()


def test_a_loss_that_never_fell_is_shown_all_the_same():
    display = LossCurveDisplay(curves=[np.array([3.0, 3.0, 3.0])]).plot()
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [3, 3, 3])
    assert display.ax_.get_yscale() == "linear"
    assert display.ax_.get_ylim()[0] == 0
    assert display.ax_.get_ylabel() == "loss"


def test_the_kept_start_is_on_top(consensus):
    display = LossCurveDisplay.from_estimator(consensus)
    assert len(display.lines_) == len(consensus.loss_curves_) == 4
    assert display.ax_.lines[-1] is display.lines_[0]
    assert len(display.lines_[0].get_ydata()) == consensus.n_iter_ + 1


def test_others_with_a_loss_curve_have_one_start(table):
    y = np.arange(len(table)) % 2
    model = MLPClassifier((4,), max_iter=20, tol=0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(table, y)
    display = LossCurveDisplay.from_estimator(model)
    assert display.curves == [model.loss_curve_]
    assert len(display.lines_[0].get_ydata()) == 20
    says = r"got NMF: LossCurveDisplay\(curves=\[losses\]\) takes"
    with pytest.raises(TypeError, match=says):
        LossCurveDisplay.from_estimator(NMF(2, init="random", max_iter=500).fit(table))
    with pytest.raises(NotFittedError):
        LossCurveDisplay.from_estimator(MLPClassifier())


def test_the_loss_of_the_last_factorization_is_shown(table):
    model = NMFMetaCluster(4, n_estimators=3, random_state=0).fit(table)
    display = LossCurveDisplay.from_estimator(model)
    assert len(display.lines_) == len(model.loss_curves_)
    assert len(display.lines_[0].get_ydata()) == model.n_iter_ + 1
    display.figure_.canvas.draw()
