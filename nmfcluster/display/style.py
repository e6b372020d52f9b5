"""Style and layout of all displays. Drawing requires matplotlib."""

from dataclasses import dataclass
from typing import Any, Self, dataclass_transform

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._utils.array_api import with_numpy_arrays
from nmfcluster._utils.validation import format_value, type_name

# Colours of clusters: the seven of Okabe and Ito, which colour-blind readers can tell apart; then
# these mixed with 50 % of black, and then with 55 % of white. Neighbouring clusters never share a
# colour, and each has its name beside it.
# fmt: off
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442",
    "#003959", "#735000", "#004F3A", "#663C54", "#2B5A74", "#6A2F00", "#787221",
    "#8CC0DC", "#F4D48C", "#8CD3C0", "#E8C3D7", "#B3DDF5", "#ECB78C", "#F8F3AA",
)
# fmt: on
EMPHASIS = COLOURS[0]  # colour of the subject of a picture
CONTEXT = "0.6"  # grey of everything else
LINE = "0.4"  # grey of frames and lines, visible on light and on dark cells
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
# largest share of the room of axes that labels and legends at one side may take
MAX_MARGIN = 0.45


def check_fitted(estimator, attribute, expected, cure):
    """Return an estimator with numpy arrays; raise unless it has the attribute to draw.

    Parameters
    ----------
    estimator : object
    attribute : str
    expected : str
        The estimators that have the attribute, for an error message.
    cure : str
        The end of the message, which advises what to do with other estimators.
    """
    if hasattr(estimator, attribute) and not isinstance(estimator, type):
        return with_numpy_arrays(estimator)
    if hasattr(type(estimator), "fit"):
        check_is_fitted(estimator)
    raise TypeError(
        f"estimator must be {expected}, got {type_name(estimator)}. {cure}."
    )


# --- axes ----------------------------------------------------------------------------


@dataclass_transform(kw_only_default=True, eq_default=False)
class Display:
    """Base class of displays. A subclass draws in the axes that `_set_axes` returns.

    Subclasses are data classes, and their fields are the parameters of the constructor.
    """

    def __init_subclass__(cls):
        dataclass(kw_only=True, repr=False, eq=False)(cls)

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        object
            The display itself.
        """
        self._draw(ax)
        return self

    def _draw(self, ax):
        raise NotImplementedError

    def _set_axes(self, ax, figsize, has_margins=False):
        """Set `ax_` and `figure_` to given axes, or to new ones; return the axes.

        With `has_margins`, given axes shrink to make room for labels and legends at their sides.
        """
        try:
            import matplotlib.pyplot as plt
            from matplotlib.axes import Axes
        except ImportError as error:
            raise ImportError(
                "Drawing needs matplotlib, which is not installed. Run "
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
    """Locate axes inside their room, with margins for labels and legends at their sides.

    Only ticks, labels and titles of the axes may extend beyond the room, as for all axes.
    Matplotlib calls the locator whenever it draws, and when a layout has changed the room.
    """

    def __init__(self, ax):
        locator = ax.get_axes_locator()
        # if a picture is drawn in the same axes again, keep the locator below this one
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
        # leave out the height of labels of child axes, which smaller axes would not fit better
        for child in ax.child_axes:
            boxes.append(child.get_tightbbox(renderer, for_layout_only=True))
        around = room.union([box for box in boxes if box])
        margins = around.get_points() - ax.bbox.get_points()
        most = MAX_MARGIN * room.size
        return room.frozen().from_extents(
            room - np.clip(margins / ax.figure.bbox.size, -most, most)
        )


# --- parts of pictures -----------------------------------------------------------------


def set_count_ticks(axis, n_ticks=5):
    """Put a few round numbers on an axis that counts samples, clusters or updates."""
    axis.get_major_locator().set_params(
        nbins=n_ticks, integer=True, steps=(1, 2, 5, 10)
    )
    axis.set_major_formatter("{x:,.0f}")


def cluster_colour(i):
    """Return the colour of the i-th cluster, line or source; colours repeat after 21."""
    return COLOURS[i % len(COLOURS)]
