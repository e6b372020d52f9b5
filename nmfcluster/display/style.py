"""Style and layout of all pictures; matplotlib is imported when one is drawn."""

from collections.abc import Iterable
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._utils.array_api import with_numpy_arrays
from nmfcluster._utils.validation import check_count, format_value, type_name

# Colours of clusters, by Okabe and Ito: colour-blind readers can tell them apart. Neighbouring
# clusters never share one, and each is named beside it. After seven come the same ones darker,
# half mixed with black, and then paler, mixed with 55 % of white.
# fmt: off
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442",
    "#003959", "#735000", "#004F3A", "#663C54", "#2B5A74", "#6A2F00", "#787221",
    "#8CC0DC", "#F4D48C", "#8CD3C0", "#E8C3D7", "#B3DDF5", "#ECB78C", "#F8F3AA",
)
# fmt: on
EMPHASIS = COLOURS[0]  # of the subject of the picture
CONTEXT = "0.6"  # of what is beside it
LINE = "0.4"  # of frames and lines, visible on light and on dark cells
UNKNOWN = {"facecolor": "0.78", "edgecolor": "0.55", "hatch": "//////"}
DASHED = {
    "color": CONTEXT,
    "linewidth": 1.0,
    "linestyle": (0, (4, 3)),
    "zorder": 1,
}
CHOSEN = DASHED | {"color": LINE}  # the line through the value that was chosen
HOLLOW = {"markerfacecolor": "white", "markeredgewidth": 1.5}  # dots
FONT = 9.0  # points
LEGEND = {"frameon": False, "fontsize": FONT}
LONGEST = 30  # letters of the name of a source, or of a value
# share of the room of axes that labels and legends at one side take at most
_MAX_MARGIN = 0.45


def check_fitted(estimator, attribute, expected, cure):
    """Return an estimator with numpy arrays; raise unless it has what a picture shows.

    Parameters
    ----------
    estimator : object
    attribute : str
    expected : str
        The estimators that have the attribute, for an error message.
    cure : str
        What to do with others.
    """
    if hasattr(estimator, attribute) and not isinstance(estimator, type):
        return with_numpy_arrays(estimator)
    if hasattr(type(estimator), "fit"):
        check_is_fitted(estimator)
    raise TypeError(
        f"estimator must be {expected}, got {type_name(estimator)}: {cure}."
    )


def read_list(values, name):
    """Return values as a list; raise if it is empty."""
    is_iterable = isinstance(values, Iterable) and not isinstance(values, str)
    found = list(values) if is_iterable else []
    if not found:
        raise ValueError(
            f"{name} must be a list of at least one, got {format_value(values)}."
        )
    return found


# --- axes ----------------------------------------------------------------------------


class Display:
    """A picture, which subclasses draw in the axes that `_set_axes` returns."""

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        object
            Itself.
        """
        self._draw(ax)
        return self

    def _draw(self, ax):
        raise NotImplementedError

    def _set_axes(self, ax, figsize, has_margins=False):
        """Set `ax_` and `figure_` to given axes, or to new ones; return the axes.

        With margins, given axes shrink so that labels and legends at their sides are in
        their room.
        """
        try:
            import matplotlib.pyplot as plt
            from matplotlib.axes import Axes
        except ImportError as error:
            raise ImportError(
                "Drawing needs matplotlib, which is not installed: "
                'pip install "nmfcluster[plot]"'
            ) from error
        if ax is None:
            _, ax = plt.subplots(figsize=figsize, layout="compressed")
        elif not isinstance(ax, Axes):
            raise TypeError(
                f"ax must be one matplotlib Axes, or None, got {format_value(ax)}."
            )
        elif has_margins:
            ax.set_axes_locator(_MarginLocator(ax))
        self.ax_ = ax
        self.figure_ = ax.figure
        return ax


class _MarginLocator:
    """Locates axes inside their room, with margins for labels and legends at their sides.

    Only their ticks, labels and titles reach out, as those of all axes do. Matplotlib calls it
    whenever it draws, and when a layout has changed the room.
    """

    def __init__(self, ax):
        locator = ax.get_axes_locator()
        # the locator of others, if a picture is drawn in the same axes again
        self.outer = getattr(locator, "outer", locator)
        self.get_subplotspec = getattr(
            self.outer, "get_subplotspec", ax.get_subplotspec
        )

    def __call__(self, ax, renderer):
        room = ax.get_position(original=True)
        if self.outer:
            room = self.outer(ax, renderer)
        boxes = [ax.bbox]
        for artist in ax.get_default_bbox_extra_artists():
            if artist not in ax.spines.values() and artist not in ax.child_axes:
                boxes.append(artist.get_tightbbox(renderer))
        # without the height of their labels, which would not fit smaller axes better
        for child in ax.child_axes:
            boxes.append(child.get_tightbbox(renderer, for_layout_only=True))
        around = room.union([box for box in boxes if box])
        margins = around.get_points() - ax.bbox.get_points()
        most = _MAX_MARGIN * room.size
        return room.frozen().from_extents(
            room - np.clip(margins / ax.figure.bbox.size, -most, most)
        )


def split_axes(ax):
    """Return new axes in the lower half of the room of others, which keep the upper half."""
    gap = 0.06  # share of the height
    room = ax.get_subplotspec()
    if room is not None:
        upper, lower = room.subgridspec(2, 1, hspace=gap)
        ax.set_subplotspec(upper)
        return ax.figure.add_subplot(lower, sharex=ax)
    box = ax.get_position()
    height = box.height * (1 - gap) / 2
    ax.set_position([box.x0, box.y1 - height, box.width, height])
    return ax.figure.add_axes((box.x0, box.y0, box.width, height), sharex=ax)


def points_outside(ax):
    """Return transforms that count points from an edge of the axes.

    The first is for the left side: points from the left edge (x) and data (y). The second is for
    the bottom: data (x) and points from the bottom edge (y). The third is for the right side:
    points from the right edge (x) and shares of the height (y).
    """
    from matplotlib.transforms import Affine2D, ScaledTranslation
    from matplotlib.transforms import blended_transform_factory as blended

    points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans
    origin = points + ScaledTranslation(0, 0, ax.transAxes)
    right = points + ScaledTranslation(1, 0, ax.transAxes)
    return (
        blended(origin, ax.transData),
        blended(ax.transData, origin),
        blended(right, ax.transAxes),
    )


def shorter_side(ax):
    """Return the shorter side of axes in points, without the margins that they have by now."""
    ax.get_tightbbox()  # lets them shrink
    return float(min(ax.bbox.size)) * 72 / ax.figure.dpi


# --- parts of pictures -----------------------------------------------------------------


def draw_curve(ax, x, heights, errors=None, *, as_good=None, colour=EMPHASIS, **style):
    """Draw dots on a line, and a band of standard errors around it; return the dots.

    Parameters
    ----------
    ax : matplotlib Axes
    x, heights : array-like of shape (n,)
        Where the dots are; there is none where a height is NaN.
    errors : array-like of shape (n,), default=None
        Standard errors.
    as_good : ndarray of shape (n,), bool, default=None
        Values that are as good as the best, at least one. Their dots are filled, and those of
        others are hollow, which a legend explains.
    colour : str
    **style : dict
        Of the line and the dots.
    """
    x = np.asarray(x)
    heights = np.asarray(heights, dtype=float)
    style = {
        "color": colour,
        "marker": "o",
        "linewidth": 2.0,
        "markersize": 5.5,
    } | style
    if errors is not None:
        ax.fill_between(
            x,
            heights - errors,
            heights + errors,
            linewidth=0,
            color=colour,
            alpha=0.2,
            label="\N{PLUS-MINUS SIGN} 1 standard error",
        )
    if as_good is not None:
        style |= HOLLOW
        filled = style | {
            "linestyle": "none",
            "markerfacecolor": colour,
            "label": "as good as the best",
        }
        ax.plot(x[as_good], heights[as_good], zorder=3, **filled)
        ax.legend(loc="best", **LEGEND)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.plot(x, heights, **style)[0]


def set_value_ticks(ax, name, values, chosen):
    """Put the values of a parameter side by side on the x axis; return their positions.

    A line marks the one that was chosen; None: none was.
    """
    positions = np.arange(len(values))
    step = int(np.ceil(len(values) / 12))  # more names would overlap
    names = [format_tick(value) for value in values[::step]]
    is_long = len(" ".join(names)) > 52
    rotation = {"rotation": 30, "ha": "right"} if is_long else {}
    ax.set_xticks(positions[::step], names, **rotation)
    ax.set(xlabel=name, xlim=(-0.5, len(values) - 0.5))
    if chosen is not None:
        ax.axvline(list(map(str, values)).index(str(chosen)), **CHOSEN)
        ax.set_title(f"chosen: {name} = {format_tick(chosen)}", fontsize="medium")
    return positions


def format_tick(value):
    """Return a number with four digits, or the text of another value, shortened."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return f"{value:.4g}"
    return shorten(" ".join(str(value).split()))


def shorten(name):
    """Return a name, with an ellipsis at the end if it is too long."""
    if len(name) <= LONGEST:
        return name
    return name[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def divide_into_cells(labels, confidence, max_cells):
    """Divide samples into cells that hold one cluster each.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int
    confidence : ndarray of shape (n_samples,)
        Samples of a cluster are ordered by it, the largest first.
    max_cells : int
        Largest number of cells; but every cluster has one.

    Returns
    -------
    cells : ndarray of shape (n_samples,), int
        Cell of every sample: 0, 1, ... without gaps, in the order of the picture.
    display : dict
        Attributes of a display: the order of the samples, and the size and the cluster of every
        cell.
    """
    max_cells = check_count(max_cells, "max_cells")
    # rounded, as rounding errors must not break ties
    order = np.lexsort((-np.round(confidence, 9), labels))
    clusters, sizes = np.unique(labels, return_counts=True)
    # numbers of cells in proportion to the sizes, from 1 to one for each sample
    n_cells = np.clip(sizes * max_cells // len(labels), 1, sizes)
    # in integers: cell j of a cluster begins where j * size / n_cells is first reached
    first = np.cumsum(n_cells) - n_cells
    cells = np.empty(len(order), dtype=np.intp)
    cells[order] = np.concatenate(
        [
            np.arange(size) * n // size + start
            for size, n, start in zip(sizes, n_cells, first, strict=True)
        ]
    )
    return cells, {
        "order": order,
        "cell_sizes": np.bincount(cells),
        "cell_labels": np.repeat(clusters, n_cells),
    }


def draw_matrix(ax, x, y, values, label, extend, **colours):
    """Draw a matrix, its first row on top, and a scale of its colours; return both.

    Cells have the edges `x` and `y`. The scale has a label, and is pointed as matplotlib's
    `extend` says.
    """
    mesh = ax.pcolormesh(x, y, values, **colours)
    mesh.set_rasterized(True)  # thousands of cells in a PDF are slow to show
    ax.set(xlim=(0, x[-1]), ylim=(y[-1], 0))
    set_count_ticks(ax.xaxis)
    ax.grid(False)
    beside = ax.inset_axes((8, 0.1, 9, 0.8), transform=points_outside(ax)[2])
    bar = ax.figure.colorbar(mesh, cax=beside, extend=extend)
    bar.set_label(label, fontsize=FONT)
    bar.formatter.set_powerlimits((-3, 4))  # digits of large numbers are wide
    return mesh, bar


def add_legend(ax):
    """Add a legend at the right of axes, in letters small enough for a part of their room."""

    def draw(font, scale=None):
        return ax.legend(
            title="source",
            alignment="left",
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0,
            fontsize=font,
            title_fontsize=font,
            markerscale=scale,
        )

    room = ax.get_position(original=True).size * ax.figure.bbox.size * (_MAX_MARGIN, 1)
    shares = 0.9 * room / draw(FONT).get_window_extent().size
    # small letters do not shrink in proportion
    font = FONT * min(1, shares.min())
    draw(font, font / FONT)


def set_count_ticks(axis, n_ticks=5):
    """Put a few round numbers on an axis that counts samples, clusters or updates."""
    axis.get_major_locator().set_params(
        nbins=n_ticks, integer=True, steps=(1, 2, 5, 10)
    )
    axis.set_major_formatter("{x:,.0f}")


def cluster_colour(i):
    """Return the colour of the i-th cluster, line or source; after 21 they begin again."""
    return COLOURS[i % len(COLOURS)]
