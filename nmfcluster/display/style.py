"""How all pictures look, and where their parts go; matplotlib is imported when one is drawn."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._arrays.arguments import kind_of, shown
from nmfcluster._arrays.device import on_host

# Colours of clusters, by Okabe and Ito: colour-blind readers can tell them apart. Neighbouring
# clusters never share one, and each is named beside it.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
EMPHASIS, CONTEXT = COLOURS[0], "0.6"  # of what the picture is about, and of what is beside it
LINE = "0.25"  # of frames and of lines that lead to a name
UNKNOWN: dict[str, Any] = {"facecolor": "0.78", "edgecolor": "0.55", "hatch": "//////"}
DASHED: dict[str, Any] = {"color": CONTEXT, "linewidth": 1.0, "linestyle": (0, (4, 3)), "zorder": 1}
CHOSEN = DASHED | {"color": LINE}  # the line through the value that was chosen
FONT = 9.0  # points
LONGEST = 30  # letters of the name of a source, or of a value
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": FONT}
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}


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
    found = [] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
    if not found:
        raise ValueError(f"{name} must be a list of at least one, got {shown(values)}.")
    return found


def axes_for(ax: Any, figsize: tuple[float, float]) -> tuple[Any, Any]:
    """Return the figure of some axes and these; without axes, a new figure and its own."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
    except ImportError as error:
        cure = 'pip install "nmfcluster[plot]"'
        raise ImportError(f"Drawing needs matplotlib, which is not installed: {cure}") from error
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="compressed")
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be one matplotlib Axes, or None, got {shown(ax)}.")
    return ax.figure, ax


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
        Values that are as good as the best: their dots are filled, those of others are hollow.
    colour : str
    **style : dict
        Of the line and the dots.
    """
    x, heights = np.asarray(x), np.asarray(heights, dtype=float)
    options = {"color": colour, "marker": "o", "linewidth": 2.0, "markersize": 5.5} | style
    if errors is not None:
        band = {"color": colour, "alpha": 0.2, "label": "\N{PLUS-MINUS SIGN} 1 standard error"}
        ax.fill_between(x, heights - errors, heights + errors, linewidth=0, **band)
    if as_good is not None:
        options |= {"markerfacecolor": "white", "markeredgewidth": 1.5}
        filled = {"linestyle": "none", "markerfacecolor": colour, "label": "as good as the best"}
        ax.plot(x[as_good], heights[as_good], zorder=3, **options | filled)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.plot(x, heights, **options)[0]


def place_values(ax: Any, name: str, values: Sequence[Any]) -> np.ndarray:
    """Put the values of a parameter side by side, and name them; return where they stand."""
    places = np.arange(len(values))
    every = int(np.ceil(len(values) / 12))  # more names would overlap
    names = [name_of(value) for value in values[::every]]
    turned = {"rotation": 30, "ha": "right"} if len(" ".join(names)) > 52 else {}
    ax.set_xticks(places[::every], names, **turned)
    ax.set(xlabel=name, xlim=(-0.5, len(values) - 0.5))
    return places


def name_of(value: Any) -> str:
    """Return a value as an axis shows it: a number of four digits, another one cut if long."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return f"{value:.4g}" if number else cut(" ".join(str(value).split()))


def mark_value(ax: Any, values: Sequence[Any], chosen: Any) -> None:
    """Draw a line through a value, and name it; None: through none."""
    if chosen is not None:
        ax.axvline(list(map(str, values)).index(str(chosen)), **CHOSEN)
        ax.set_title(f"chosen: {ax.get_xlabel()} = {name_of(chosen)}", fontsize="medium")


def draw_cells(ax: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray, **colours: Any) -> Any:
    """Draw a matrix, its first row on top, and return the mesh; x and y are edges of the cells.

    The columns are counted below it.
    """
    mesh = ax.pcolormesh(x, y, values, **colours)
    mesh.set_rasterized(True)  # in a PDF, too: thousands of cells are slow to show one by one
    ax.set(xlim=(0, x[-1]), ylim=(y[-1], 0))
    count_along(ax.xaxis)
    ax.grid(False)
    return mesh


def add_colorbar(mesh: Any, label: str, extend: str = "neither") -> Any:
    """Draw the scale of colours beside a mesh, pointed where `extend` says, and return it."""
    return mesh.axes.figure.colorbar(mesh, ax=mesh.axes, extend=extend, shrink=0.8, label=label)


def count_along(axis: Any, most: int = 5) -> None:
    """Put a few round numbers on an axis that counts samples, clusters or updates."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(most, integer=True, steps=(1, 2, 5, 10)))
    axis.set_major_formatter("{x:,.0f}")


def points_outside(ax: Any) -> tuple[Any, Any]:
    """Return two transforms that count points from an edge of the axes.

    For what stands at the left, points from the left edge (x) and data (y); for what stands below,
    data (x) and points from the bottom edge (y).
    """
    from matplotlib.transforms import Affine2D, ScaledTranslation
    from matplotlib.transforms import blended_transform_factory as blended

    corner = ScaledTranslation(0, 0, ax.transAxes)
    points = Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans + corner
    return blended(points, ax.transData), blended(ax.transData, points)


def colour_of(i: int) -> str:
    """Return the colour of the i-th cluster, line or source; after 21 they begin again."""
    # after seven colours the same darker, then paler: mixed with black, then with white
    share, tone = ((0.0, 0), (0.5, 0), (0.55, 255))[i // len(COLOURS) % 3]
    colour = COLOURS[i % len(COLOURS)]
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round((1 - share) * part + share * tone):02X}" for part in parts)


def cut(name: str) -> str:
    """Return a name, with an ellipsis where it was cut because it was long."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
