"""Pictures in given axes keep to their room, and share a figure with others."""

import itertools
import pickle
import warnings

import numpy as np
import pytest

from nmfcluster.datasets import make_partitions
from nmfcluster.display import (
    BiclusterDisplay,
    ConsensusMatrixDisplay,
    SourceWeightsDisplay,
    StabilityDisplay,
)
from nmfcluster.model_selection.results import NumberOfClusters

plt = pytest.importorskip("matplotlib.pyplot")
grids = pytest.importorskip("mpl_toolkits.axes_grid1")
TightLayoutEngine = pytest.importorskip("matplotlib.layout_engine").TightLayoutEngine

NUMBERS = np.arange(1, 9)
CHOSEN = {"candidates": NUMBERS, "n_clusters_": 3, "as_good": NUMBERS == 3}
STABILITY = {"stability": NUMBERS / 8, "stability_se": NUMBERS / 80}
VOTES = {"mixture": 3, "modes": 1, "density": 20, "prediction strength": 3}
NAMES = [
    f"{name} of the whole data"
    for name in ("images", "words", "sounds", "graph", "genes")
]
SHARES = np.random.default_rng(0).dirichlet(np.ones(20), 4)
ETAS = {"values": [0.01, 0.1, 1, np.inf], "chosen": 1}
FOURS = {
    "choices": ("vote", "stability", "eigengap", "sweep"),
    "weights": ("bars", "lines", "long names", "many names"),
    "matrices": ("consensus", "runs", "never seen", "search"),
    "biclusters": ("biclusters", "signed", "many", "recurrence"),
}


def weights(names, **others):
    return SourceWeightsDisplay(names=names, **others).plot


def members(k):
    return np.eye(k, dtype=bool)


@pytest.fixture(params=FOURS)
def four(request, consensus, biclusters, table, sweep):
    """Return four pictures, each a function of axes, by their names."""
    partitions, y = make_partitions(
        (12, 6, 4), n_partitions=4, missing=0.6, random_state=3
    )
    kinds = np.array(["a long name", "another", "third"])[y]
    rows = biclusters.rows_, biclusters.columns_
    pictures = {
        "vote": NumberOfClusters(**CHOSEN, method="vote", votes=VOTES).plot,
        "stability": NumberOfClusters(**CHOSEN, method="stability", **STABILITY).plot,
        "eigengap": NumberOfClusters(
            **CHOSEN, method="eigengap", eigengap=1 / NUMBERS
        ).plot,
        "sweep": sweep.plot,
        "recurrence": type(sweep)(**vars(sweep) | {"held_out_losses": None}).plot,
        "search": StabilityDisplay(
            param_name="eta",
            values=[1, 2, 3],
            scores=SHARES[:3, 0],
            errors=SHARES[:3, 1],
        ).plot,
        "bars": weights(NAMES, weights=SHARES[0, :5], losses=SHARES[1, :5] / 1e4),
        "lines": weights(["rbf", "cosine"], weights=SHARES[:, :2], **ETAS),
        "long names": weights(NAMES, weights=SHARES[:, :5], **ETAS),
        "many names": weights([f"view {i}" for i in range(20)], weights=SHARES, **ETAS),
        "consensus": lambda ax: ConsensusMatrixDisplay.from_estimator(consensus, ax=ax),
        "runs": lambda ax: ConsensusMatrixDisplay.from_estimator(biclusters, ax=ax),
        "never seen": lambda ax: ConsensusMatrixDisplay.from_partitions(
            partitions, kinds, ax=ax
        ),
        "biclusters": lambda ax: BiclusterDisplay.from_estimator(
            biclusters, table, ax=ax
        ),
        "signed": lambda ax: BiclusterDisplay.from_biclusters(
            1e6 * (table - 1), *rows, max_cells=9, ax=ax
        ),
        "many": lambda ax: BiclusterDisplay.from_biclusters(
            np.eye(25), members(25), members(25), ax=ax
        ),
    }
    return {name: pictures[name] for name in FOURS[request.param]}


def drawn(four, axes):
    """Draw a picture in each of four axes; return the axes of each, which have become more."""
    own = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of layouts that gave up
        for (name, draw), ax in zip(four.items(), axes.flat, strict=True):
            before = set(ax.figure.axes)
            draw(ax)
            own[name] = [ax, *set(ax.figure.axes) - before]
        ax.figure.draw_without_rendering()
        if isinstance(ax.figure.get_layout_engine(), TightLayoutEngine):
            ax.figure.draw_without_rendering()  # it knows only then how large squares have become
    return own


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "size", [(6.4, 4.8), pytest.param((10, 8), marks=pytest.mark.slow)]
)
def test_only_ticks_labels_and_titles_leave_the_room(four, size):
    figure, axes = plt.subplots(2, 2, figsize=size)
    rooms = [ax.get_window_extent().frozen() for ax in axes.flat]
    for (name, own), room in zip(drawn(four, axes).items(), rooms, strict=True):
        for ax in own:
            legend = [ax.get_legend()] if ax.get_legend() else []
            # colour bars, with all that is written at them
            boxes = [
                one.get_tightbbox() for one in (*ax.child_axes, *ax.texts, *legend)
            ]
            for box in (ax.get_window_extent(), *boxes):
                assert (box.min >= room.min - 1.5).all(), name
                assert (box.max <= room.max + 1.5).all(), name
            # the picture is not small for all that
            assert ax.bbox.width > 0.3 * room.width, name
            assert ax.bbox.height > 0.4 * room.height / (2 if name == "sweep" else 1), (
                name
            )
            ax.set(title="", xlabel="", ylabel="")
            ax.xaxis.set_visible(False)
            ax.yaxis.set_visible(False)
    # and there is no ink between the rooms, but for half of a line around them
    figure.canvas.draw()
    ink = (np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3] < 250).any(axis=2)
    for room in rooms:
        (x0, y0), (x1, y1) = (
            np.floor(room.min).astype(int) - 2,
            np.ceil(room.max).astype(int) + 2,
        )
        ink[y0:y1, x0:x1] = False
    assert not ink.any()


# without a layout engine: in the test before, where rooms are smaller
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "layout", ["constrained", pytest.param("tight", marks=pytest.mark.slow)]
)
def test_pictures_stand_beside_each_other(four, layout):
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout=layout)
    own = drawn(four, axes)
    for name, (ax, *_) in own.items():
        assert (ax.bbox.size > (150, 90)).all(), name  # pixels
    boxes = {name: [ax.get_tightbbox() for ax in group] for name, group in own.items()}
    for one, other in itertools.combinations(boxes, 2):
        pairs = itertools.product(boxes[one], boxes[other])
        assert not any(a.overlaps(b) for a, b in pairs), (one, other)
    for box in itertools.chain(*boxes.values()):
        assert (box.min > -1).all()
        assert (box.max < figure.bbox.size + 1).all()


def figure_parts():
    """Return axes of any kind, each beside others."""
    figure = plt.figure(figsize=(16, 9), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = right.subplots(2, 2)
    axes[0, 1].set_axis_off()
    return {
        "inset": axes[0, 1].inset_axes((0.2, 0.2, 0.7, 0.7)),
        "of a subfigure": axes[1, 0],
        "placed": left.add_axes((0.3, 0.2, 0.5, 0.6)),
        "of a divider": grids.make_axes_locatable(axes[1, 1]).append_axes(
            "right", "200%"
        ),
    }


@pytest.mark.slow
def test_the_room_is_that_of_any_axes(biclusters, table):
    parts, others = figure_parts(), figure_parts()
    figures = [part["placed"].figure.figure for part in (parts, others)]
    for figure in figures:
        figure.draw_without_rendering()
    rooms = {name: ax.get_window_extent().frozen() for name, ax in parts.items()}
    displays = {}
    for name, ax in parts.items():
        displays[name] = BiclusterDisplay.from_estimator(biclusters, table, ax=ax)
        BiclusterDisplay.from_estimator(biclusters, table, ax=others[name]).plot(
            others[name]
        )
    for figure in figures:
        figure.set_layout_engine("none")
        figure.draw_without_rendering()
    for name, display in displays.items():
        ax, again, room = parts[name], others[name], rooms[name]
        marks = [mesh.get_tightbbox() for mesh in display.strips_[-1]]
        assert min(box.x0 for box in marks) == pytest.approx(room.x0, abs=6), name
        assert min(box.y0 for box in marks) == pytest.approx(room.y0, abs=6), name
        assert display.colorbar_.ax.get_tightbbox().x1 == pytest.approx(
            room.x1, abs=1
        ), name
        assert ax.bbox.x1 < room.x1 - 20
        np.testing.assert_allclose(
            ax.bbox.get_points(), again.bbox.get_points(), atol=1
        )


@pytest.mark.slow
def test_figures_can_be_pickled_and_made_narrow():
    figure, axes = plt.subplots(2, 2)
    BiclusterDisplay.from_biclusters(
        np.eye(25), members(25), members(25), ax=axes[0, 0]
    )
    pickle.loads(pickle.dumps(figure)).draw_without_rendering()
    figure.subplots_adjust(left=0.45)
    figure.draw_without_rendering()
    assert axes[0, 0].bbox.x0 > 0.45 * figure.bbox.width
    figure.set_size_inches(0.8, 0.6)  # where strips, names and scale have no room
    figure.draw_without_rendering()
    assert (axes[0, 0].bbox.size > 0).all()
