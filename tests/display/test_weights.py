"""Pictures of the weights of sources: what is drawn, and where."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from nmfcluster import NMFConsensus, SimilarityFusionNMF, SimilarityStack, SSNMFClusterer
from nmfcluster.display import SourceWeightsDisplay

NAMES = ("telling", "noise", "flat")


@pytest.fixture(scope="module")
def stack():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [14, 10])
    noise = rng.uniform(size=(24, 24))
    sources = [0.1 + (y[:, None] == y), noise + noise.T, np.ones((24, 24))]
    return SimilarityStack(sources, names=NAMES)


def fitted(stack, **options):
    model = SimilarityFusionNMF(2, criterion="kl", n_init=1, random_state=0, **options)
    return model.fit(stack)


@pytest.fixture(scope="module")
def models(stack):
    models = [fitted(stack, eta=eta) for eta in (1.0, np.inf, 0.05)]
    with pytest.warns(ConvergenceWarning, match="found 1 cluster"):
        return [*models, fitted(stack, eta=0)]  # the flat source has all the weight


def texts_of(display):
    return [text.get_text() for text in display.ax_.texts]


def test_the_bars_are_the_weights(models):
    display = SourceWeightsDisplay.from_estimator(models[2])
    np.testing.assert_array_equal([bar.get_width() for bar in display.bars_], models[2].weights_)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == list(NAMES)
    first, *_, last = (bar.get_y() for bar in display.bars_)
    bottom, top = display.ax_.get_ylim()
    assert abs(first - top) < abs(last - top)  # in the order of the sources, from the top
    assert bottom > top
    assert display.lines_ == []
    assert display.values is None


def test_the_losses_stand_beside(models):
    display = SourceWeightsDisplay.from_estimator(models[2])
    *numbers, head = texts_of(display)
    assert head == "loss"
    shown = [float(number) for number in numbers]
    np.testing.assert_allclose(shown, models[2].source_losses_, atol=0.005)
    assert all(loss > 0 for loss in shown)


@pytest.mark.parametrize(
    ("losses", "shown"),
    [
        ([5.838, 0.0163, 0.0131], ["5.838", "0.016", "0.013"]),
        ([8.52, 9.21], ["8.52", "9.21"]),
        ([12.0, 0.0], ["12.00", "0.00"]),
        ([0.0, 0.0], ["0.00", "0.00"]),
        ([1.0, 1e-9], ["1.00000", "0.00000"]),
        ([0.72, 1.18, np.inf], ["0.72", "1.18", "inf"]),
    ],
)
def test_losses_have_the_decimals_that_tell_them_apart(losses, shown):
    losses = np.array(losses)
    names = [str(i) for i in range(len(losses))]
    weights = np.full(len(losses), 1 / len(losses))
    display = SourceWeightsDisplay(names=names, weights=weights, losses=losses).plot()
    assert texts_of(display)[:-1] == shown


def test_weights_can_be_shown_without_losses():
    display = SourceWeightsDisplay(names=["a", "b"], weights=np.array([0.25, 0.75])).plot()
    assert texts_of(display) == []
    (line,) = display.ax_.get_lines()
    assert line.get_xdata()[0] == 0.5  # equal weights


def test_the_lines_are_the_weights_in_the_order_of_the_values(models):
    display = SourceWeightsDisplay.from_estimators(models, chosen=1.0)
    assert display.values == [0, 0.05, 1, np.inf]
    expected = [models[i].weights_ for i in (3, 2, 0, 1)]
    np.testing.assert_array_equal(display.weights, expected)
    for line, weights in zip(display.lines_, display.weights.T, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), weights)
    assert [line.get_label() for line in display.lines_] == list(NAMES)
    assert display.bars_ is None
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("eta", "weight")
    marked = [line for line in display.ax_.get_lines() if list(line.get_ydata()) == [0, 1]]
    assert [line.get_xdata()[0] for line in marked] == [1.0]


def test_infinity_can_be_marked(models):
    display = SourceWeightsDisplay.from_estimators(models, chosen=np.inf)
    place = display.lines_[0].get_xdata()[-1]
    assert np.isfinite(place)
    assert any(list(line.get_xdata()) == [place, place] for line in display.ax_.get_lines())


def test_without_a_choice_no_value_is_marked(models):
    display = SourceWeightsDisplay.from_estimators(models)
    assert display.chosen is None
    assert not [line for line in display.ax_.get_lines() if list(line.get_ydata()) == [0, 1]]


def test_another_parameter_can_be_shown(stack):
    models = [fitted(stack, tol=tol) for tol in (0.1, 1e-4, 1e-2)]
    display = SourceWeightsDisplay.from_estimators(models, param="tol")
    assert display.values == [1e-4, 1e-2, 0.1]
    assert display.ax_.get_xlabel() == "tol"
    np.testing.assert_array_equal(display.weights[0], models[1].weights_)


def test_many_sources_have_room_and_long_names_are_cut():
    names = [f"source {i} with a name that is much too long to show" for i in range(40)]
    display = SourceWeightsDisplay(names=names, weights=np.full(40, 1 / 40)).plot()
    display.figure_.canvas.draw()
    boxes = [tick.get_window_extent() for tick in display.ax_.get_yticklabels()]
    edges = [(box.y0, box.y1) for box in boxes]
    assert all(lower[1] <= upper[0] + 1 for upper, lower in pairwise(edges))
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert max(map(len, labels)) == 30
    assert labels[3].startswith("source 3 with")


def test_there_are_markers_for_any_number_of_sources():
    display = SourceWeightsDisplay(
        names=[str(i) for i in range(60)], weights=np.full((2, 60), 1 / 60), values=[0.1, 1.0]
    ).plot()
    looks = [(line.get_marker(), line.get_color()) for line in display.lines_]
    assert len(looks) == 60
    assert len(set(looks)) == 60  # of 21 colours and seven markers


def test_bad_input_is_named(models, stack):
    with pytest.raises(NotFittedError):
        SourceWeightsDisplay.from_estimator(SimilarityFusionNMF(2))
    for other in (SSNMFClusterer(2).fit(np.eye(12)[:, :3]), NMFConsensus(2), "model"):
        with pytest.raises((TypeError, NotFittedError), match=r"SimilarityFusionNMF|not fitted"):
            SourceWeightsDisplay.from_estimator(other)
    draw = SourceWeightsDisplay.from_estimators
    with pytest.raises(ValueError, match="at least one"):
        draw([])
    with pytest.raises(TypeError, match="SimilarityFusionNMF, got int"):
        draw([models[0], 3])
    with pytest.raises(ValueError, match=r"param must be one of .*'eta'.*, got 'Eta'"):
        draw(models, param="Eta")
    with pytest.raises(ValueError, match=r"param must be a number .* max_samples is"):
        draw(models, param="max_samples")
    with pytest.raises(ValueError, match="differ in n_init"):
        draw(models, param="n_init")
    with pytest.raises(ValueError, match=r"chosen must be a value of eta .*, got 7"):
        draw(models, chosen=7)
    renamed = SimilarityStack(stack, names=["a", "b", "c"])
    with pytest.raises(ValueError, match="same sources: one has telling, noise, flat"):
        draw([models[0], fitted(renamed, eta=3)])
