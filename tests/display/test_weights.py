"""Picture of the weights of sources."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from nmfcluster import NMFConsensus, SimilarityFusionNMF, SimilarityStack
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
    with warns_naming(ConvergenceWarning, "1 cluster"):
        return [*models, fitted(stack, eta=0)]  # the flat source has all the weight


def texts_of(display):
    return [text.get_text() for text in display.ax_.texts]


def test_the_bars_are_the_weights_and_the_losses_stand_beside(models):
    display = SourceWeightsDisplay.from_estimator(models[2])
    assert_array_equal([bar.get_width() for bar in display.bars_], models[2].weights_)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == list(NAMES)
    first, *_, last = (bar.get_y() for bar in display.bars_)
    bottom, top = display.ax_.get_ylim()
    # in the order of the sources, from the top
    assert abs(first - top) < abs(last - top)
    assert bottom > top
    assert display.lines_ == []
    assert display.values is None
    *numbers, head = texts_of(display)
    assert head == "loss"
    assert_allclose(
        [float(number) for number in numbers], models[2].source_losses_, rtol=5e-3
    )


def test_sources_that_agree_have_a_cell_of_their_own(models):
    correlations = np.array([[1.0, 0.6, 0.9], [0.6, 1.0, -0.004], [0.9, -0.004, 1.0]])
    scores = np.array([[0.0, 50.0, 4.0], [50.0, 0.0, -0.3], [4.0, -0.3, 0.0]])
    agreement = {"agreement": (correlations, scores)}
    display = SourceWeightsDisplay(
        names=NAMES, weights=np.ones(3) / 3, **agreement
    ).plot()
    blue = np.ma.filled(display.cells_.get_array(), 0)
    assert_array_equal(blue, [[0, 0.6, 0], [0.6, 0, 0], [0, 0, 0]])
    written = [text.get_text() for text in display.cells_.axes.texts]
    assert written == ["0.60", "0.90", "0.60", "0.00", "0.90", "0.00"]
    assert display.cells_.axes.get_ylim() == display.ax_.get_ylim()
    # criterion="kl"
    assert SourceWeightsDisplay.from_estimator(models[0]).cells_ is None


def test_the_agreement_of_a_model_is_shown_beside_its_weights(stack):
    telling, noise = stack.sources[:2]
    model = SimilarityFusionNMF(2).fit(similarities=[telling, noise, telling + noise])
    display = SourceWeightsDisplay.from_estimator(model)
    agree = model.agreement_.scores > 5
    assert_array_equal(np.ma.getmaskarray(display.cells_.get_array()), ~agree)
    assert agree.sum() == 4
    # there is room for the weights alone
    assert display.plot(display.ax_).cells_ is None


def test_sources_that_say_nothing_are_shown_without_a_bar():
    nothing = {"weights": np.zeros(2), "agreement": (np.eye(2), np.zeros((2, 2)))}
    display = SourceWeightsDisplay(names=["a", "b"], **nothing).plot()
    assert [bar.get_width() for bar in display.bars_] == [0, 0]
    assert np.ma.getmaskarray(display.cells_.get_array()).all()
    one = SourceWeightsDisplay(
        names=["a"], weights=np.ones(1), agreement=(np.eye(1), np.eye(1))
    )
    assert one.plot().cells_ is None  # with which other one should it agree?


def test_weights_can_be_shown_without_losses():
    display = SourceWeightsDisplay(
        names=["a", "b"], weights=np.array([0.25, 0.75])
    ).plot()
    assert texts_of(display) == []
    (line,) = display.ax_.get_lines()
    assert line.get_xdata()[0] == 0.5  # equal weights


def test_the_lines_are_the_weights_in_the_order_of_the_values(models):
    display = SourceWeightsDisplay.from_estimators(models, chosen=1.0)
    assert display.values == [0, 0.05, 1, np.inf]
    expected = [models[i].weights_ for i in (3, 2, 0, 1)]
    assert_array_equal(display.weights, expected)
    for line, weights in zip(display.lines_, display.weights.T, strict=True):
        assert_array_equal(line.get_ydata(), weights)
    assert [line.get_label() for line in display.lines_] == list(NAMES)
    assert len({line.get_color() for line in display.lines_}) == 3
    assert display.bars_ is None
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("eta", "weight")
    for chosen, place in ((1.0, [2, 2]), (np.inf, [3, 3]), (None, None)):
        drawn = SourceWeightsDisplay.from_estimators(models, chosen=chosen)
        marked = [
            line for line in drawn.ax_.get_lines() if list(line.get_ydata()) == [0, 1]
        ]
        assert [list(line.get_xdata()) for line in marked] == ([place] if place else [])


def test_many_sources_have_room_and_long_names_are_cut():
    names = [f"source {i} with a name that is much too long to show" for i in range(30)]
    display = SourceWeightsDisplay(names=names, weights=np.full(30, 1 / 30)).plot()
    display.figure_.draw_without_rendering()
    boxes = [tick.get_window_extent() for tick in display.ax_.get_yticklabels()]
    edges = [(box.y0, box.y1) for box in boxes]
    assert all(lower[1] <= upper[0] + 1 for upper, lower in pairwise(edges))
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert max(map(len, labels)) == 30
    assert labels[3].startswith("source 3 with")


def test_bad_sources_are_named(models, stack):
    draw = SourceWeightsDisplay.from_estimators
    with raises_naming(ValueError, "at least one"):
        draw([])
    with raises_naming(TypeError, "SimilarityFusionNMF", "int"):
        draw([models[0], 3])
    with pytest.raises(NotFittedError):
        draw([models[0], NMFConsensus(2)])
    with raises_naming(ValueError, "chosen", "eta", "7"):
        draw(models, chosen=7)
    renamed = SimilarityStack(stack, names=["a", "b", "c"])
    with raises_naming(ValueError, "'telling'", "'noise'", "'flat'"):
        draw([models[0], fitted(renamed, eta=3)])
