"""How all pictures look, and where their parts go; matplotlib is imported when one is drawn."""

from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._utils.array_api import on_host
from nmfcluster._utils.validation import kind_of, shown

# Colours of clusters, by Okabe and Ito: colour-blind readers can tell them apart. Neighbouring
# clusters never share one, and each is named beside it.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
EMPHASIS, CONTEXT = (
    COLOURS[0],
    "0.6",
)  # of what the picture is about, and of what is beside it
LINE = "0.4"  # of frames and lines, on light ground and on dark
UNKNOWN: dict[str, Any] = {"facecolor": "0.78", "edgecolor": "0.55", "hatch": "//////"}
DASHED: dict[str, Any] = {
    "color": CONTEXT,
    "linewidth": 1.0,
    "linestyle": (0, (4, 3)),
    "zorder": 1,
}
HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 1.5}  # dots
CHOSEN = DASHED | {"color": LINE}  # the line through the value that was chosen
FONT = 9.0  # points
_SURROUNDINGS = 0.45  # of the room of axes, which what stands at a side takes at most
LONGEST = 30  # letters of the name of a source, or of a value
NOTE: dict[str, Any] = {
    "textcoords": "offset points",
    "ha": "right",
}  # that stands outside
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": FONT}


def check_fitted(estimator: Any, attribute: str, who: str, cure: str) -> Any:
    """Return an estimator with arrays of numpy; raise unless it has what a picture shows.

    Parameters
    ----------
    estimator : object
    attribute : str
    who : str
        Who has it, for an error message.
    cure : str
        What to do with others.
    """
    if hasattr(estimator, attribute) and not isinstance(estimator, type):
        return on_host(estimator)
    if hasattr(type(estimator), "fit"):
        check_is_fitted(estimator)
    raise TypeError(f"estimator must be {who}, got {kind_of(estimator)}: {cure}.")


def listed(values: Any, name: str) -> list[Any]:
    """Return several things in a list; raise if there is none."""
    found = (
        []
        if isinstance(values, str) or not isinstance(values, Iterable)
        else list(values)
    )
    if not found:
        raise ValueError(f"{name} must be a list of at least one, got {shown(values)}.")
    return found


def axes_for(
    ax: Any, figsize: tuple[float, float], crowded: bool = False
) -> tuple[Any, Any]:
    """Return the figure of some axes and these; without axes, a new figure and its own.

    Given axes are crowded if what stands around them is to be in their room.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
    except ImportError as error:
        cure = 'pip install "nmfcluster[plot]"'
        raise ImportError(
            f"Drawing needs matplotlib, which is not installed: {cure}"
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="compressed")
    elif not isinstance(ax, Axes):
        raise TypeError(f"ax must be one matplotlib Axes, or None, got {shown(ax)}.")
    elif crowded:
        ax.set_axes_locator(_Inside(ax))
    return ax.figure, ax


class _Inside:
    """Where axes are in their room, of which what stands around them leaves them a part.

    Only their ticks, labels and titles reach out, as those of all axes do. Matplotlib asks whenever
    it draws, and when a layout has changed the room.
    """

    def __init__(self, ax: Any) -> None:
        locator = ax.get_axes_locator()
        self.before = getattr(
            locator, "before", locator
        )  # not twice, if drawn in again
        self.get_subplotspec = getattr(
            self.before, "get_subplotspec", ax.get_subplotspec
        )

    def __call__(self, ax: Any, renderer: Any) -> Any:
        own = [*ax.spines.values(), *ax.child_axes]
        others = [
            artist
            for artist in ax.get_default_bbox_extra_artists()
            if artist not in own
        ]
        boxes = [artist.get_tightbbox(renderer) for artist in others]
        # without the height of their labels, for which smaller axes would be no help
        boxes += [
            child.get_tightbbox(renderer, for_layout_only=True)
            for child in ax.child_axes
        ]
        room = (
            self.before(ax, renderer) if self.before else ax.get_position(original=True)
        )
        around = room.union([ax.bbox, *filter(None, boxes)])
        beyond = around.get_points() - ax.bbox.get_points()
        most = _SURROUNDINGS * room.size
        return room.frozen().from_extents(
            room - np.clip(beyond / ax.figure.bbox.size, -most, most)
        )


def panel_below(ax: Any) -> Any:
    """Return new axes in the lower part of the room of others, which keep the upper part."""
    figure, room, gap = ax.figure, ax.get_subplotspec(), 0.06  # of the height
    if room is not None:
        upper, lower = room.subgridspec(2, 1, hspace=gap)
        ax.set_subplotspec(upper)
        return figure.add_subplot(lower, sharex=ax)
    box = ax.get_position()
    height = box.height * (1 - gap) / 2
    ax.set_position([box.x0, box.y1 - height, box.width, height])
    return figure.add_axes((box.x0, box.y0, box.width, height), sharex=ax)


def draw_curve(
    ax: Any,
    x: Any,
    heights: Any,
    errors: Any = None,
    *,
    as_good: np.ndarray | None = None,
    colour: str = EMPHASIS,
    **style: Any,
) -> Any:
    """Draw dots that a line joins, and a band of standard errors around it; return the dots.

    Parameters
    ----------
    ax : matplotlib Axes
    x, heights : array-like of shape (n,)
        Where the dots are; there is none where a height is NaN.
    errors : array-like of shape (n,), default=None
        Standard errors.
    as_good : ndarray of shape (n,), bool, default=None
        Values that are as good as the best, at least one: their dots are filled, those of others
        are hollow, which a legend tells.
    colour : str
    **style : dict
        Of the line and the dots.
    """
    x, heights = np.asarray(x), np.asarray(heights, dtype=float)
    options = {
        "color": colour,
        "marker": "o",
        "linewidth": 2.0,
        "markersize": 5.5,
    } | style
    if errors is not None:
        band = {
            "color": colour,
            "alpha": 0.2,
            "label": "\N{PLUS-MINUS SIGN} 1 standard error",
        }
        ax.fill_between(x, heights - errors, heights + errors, linewidth=0, **band)
    if as_good is not None:
        options |= HOLLOW
        filled = {
            "linestyle": "none",
            "markerfacecolor": colour,
            "label": "as good as the best",
        }
        ax.plot(x[as_good], heights[as_good], zorder=3, **options | filled)
        ax.legend(loc="best", **LEGEND)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.plot(x, heights, **options)[0]


def place_values(ax: Any, name: str, values: Sequence[Any], chosen: Any) -> np.ndarray:
    """Put the values of a parameter side by side, and name them; return where they stand.

    A line marks the one that was chosen; None: none was.
    """
    places = np.arange(len(values))
    every = int(np.ceil(len(values) / 12))  # more names would overlap
    names = [name_of(value) for value in values[::every]]
    turned = {"rotation": 30, "ha": "right"} if len(" ".join(names)) > 52 else {}
    ax.set_xticks(places[::every], names, **turned)
    ax.set(xlabel=name, xlim=(-0.5, len(values) - 0.5))
    if chosen is not None:
        ax.axvline(list(map(str, values)).index(str(chosen)), **CHOSEN)
        ax.set_title(f"chosen: {name} = {name_of(chosen)}", fontsize="medium")
    return places


def name_of(value: Any) -> str:
    """Return a value as an axis shows it: a number of four digits, another one cut if long."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return f"{value:.4g}" if number else cut(" ".join(str(value).split()))


def draw_cells(
    ax: Any,
    edges: Sequence[Any],
    values: np.ndarray,
    scale: tuple[str, str],
    **colours: Any,
) -> tuple[Any, Any]:
    """Draw a matrix, its first row on top, and a scale of its colours; return both.

    Columns are counted below it; the edges of cells are those along x and along y. The scale has a
    name, and is pointed as matplotlib's `extend` says.
    """
    mesh = ax.pcolormesh(*edges, values, **colours)
    mesh.set_rasterized(
        True
    )  # in a PDF, too: thousands of cells are slow to show one by one
    ax.set(xlim=(0, edges[0][-1]), ylim=(edges[1][-1], 0))
    count_along(ax.xaxis)
    ax.grid(False)
    beside = ax.inset_axes((8, 0.1, 9, 0.8), transform=points_outside(ax)[2])
    bar = ax.figure.colorbar(mesh, cax=beside, extend=scale[1])
    bar.set_label(scale[0], fontsize=FONT)
    bar.formatter.set_powerlimits((-3, 4))  # digits of large numbers are wide
    return mesh, bar


def add_legend(ax: Any, title: str) -> None:
    """Name lines at the right of axes, in letters so small that a part of their room is enough."""
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
    legend = partial(ax.legend, title=title, alignment="left", frameon=False, **place)
    room = (
        ax.get_position(original=True).size * ax.figure.bbox.size * (_SURROUNDINGS, 1)
    )
    size = legend(fontsize=FONT, title_fontsize=FONT).get_window_extent().size
    font = FONT * min(
        1, *(0.9 * room / size)
    )  # small letters do not shrink in proportion
    legend(fontsize=font, title_fontsize=font, markerscale=font / FONT)


def count_along(axis: Any, most: int = 5) -> None:
    """Put a few round numbers on an axis that counts samples, clusters or updates."""
    axis.get_major_locator().set_params(nbins=most, integer=True, steps=(1, 2, 5, 10))
    axis.set_major_formatter("{x:,.0f}")


def points_outside(ax: Any) -> tuple[Any, Any, Any]:
    """Return transforms that count points from an edge of the axes.

    For what stands at the left, points from the left edge (x) and data (y); for what stands below,
    data (x) and points from the bottom edge (y); for what stands at the right, points from the
    right edge (x) and shares of the height (y).
    """
    from matplotlib.transforms import Affine2D, ScaledTranslation
    from matplotlib.transforms import blended_transform_factory as blended

    points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans
    left, right = (points + ScaledTranslation(x, 0, ax.transAxes) for x in (0, 1))
    return (
        blended(left, ax.transData),
        blended(ax.transData, left),
        blended(right, ax.transAxes),
    )


def side_of(ax: Any) -> float:
    """Return the shorter side of axes in points, once what stands around them by now has room."""
    ax.get_tightbbox()  # which lets them shrink
    return float(min(ax.bbox.size)) * 72 / ax.figure.dpi


def colour_of(i: int) -> str:
    """Return the colour of the i-th cluster, line or source; after 21 they begin again."""
    # after seven colours the same darker, then paler: mixed with black, then with white
    share, tone = ((0.0, 0), (0.5, 0), (0.55, 255))[i // len(COLOURS) % 3]
    colour = COLOURS[i % len(COLOURS)]
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(
        f"{round((1 - share) * part + share * tone):02X}" for part in parts
    )


def cut(name: str) -> str:
    """Return a name, with an ellipsis where it was cut because it was long."""
    return (
        name
        if len(name) <= LONGEST
        else name[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
    )
