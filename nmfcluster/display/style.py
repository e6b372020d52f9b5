"""How all pictures look, and where their parts go; matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from nmfcluster._arrays.arguments import check_count, counted
from nmfcluster._base import NMFClusterer

# Colours of clusters, by Okabe and Ito: colour-blind readers can tell them apart. Neighbouring
# clusters never share one, and each is named beside it.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
EMPHASIS, CONTEXT = COLOURS[0], "0.6"  # of what the picture is about, and of what is beside it
LINE = "0.25"  # of frames and of lines that lead to a name
_GOOD, _BAD = ("#D3E3F1", "#2A6FA8"), ("#F9C79F", "#C04E00")  # of few pairs and of many
_SHADES = ((0.0, 0.0), (0.5, 0.0), (0.55, 1.0))  # after seven clusters darker, then paler
_NO_PAIR = 0.955  # grey of a cell that counts none
UNKNOWN: dict[str, Any] = {"facecolor": "0.78", "edgecolor": "0.55", "hatch": "//////"}
DASHED: dict[str, Any] = {"color": CONTEXT, "linewidth": 1.0, "linestyle": (0, (4, 3))}
FONT = 9.0  # points
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": FONT}
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}


@dataclass(frozen=True)
class Wanted:
    """What a picture is made of.

    Attributes
    ----------
    attribute : str
        What a fitted estimator must have.
    who : str
        Who has it, for an error message.
    cure : str
        What to do with others.
    any_will_do : bool
        Whether an estimator may come from another package.
    """

    attribute: str
    who: str
    cure: str
    any_will_do: bool = False

    def check(self, estimator: Any) -> None:
        """Raise unless an object is such an estimator, and fitted."""
        theirs = self.any_will_do and hasattr(type(estimator), "fit")
        known = theirs or is_ours(estimator)
        if known and not hasattr(estimator, self.attribute):
            check_is_fitted(estimator)
        if not known or not hasattr(estimator, self.attribute):
            name = type(estimator).__name__
            raise TypeError(f"estimator must be {self.who}, got {name}: {self.cure}.")


def is_ours(estimator: Any) -> bool:
    """Return whether an object is an estimator of this package."""
    return isinstance(estimator, NMFClusterer)


def by_n_clusters(estimators: Iterable[Any], wanted: Wanted) -> dict[str, Any]:
    """Return fitted estimators by the name of their number of clusters; raise as above."""
    found: dict[str, Any] = {}
    for estimator in estimators:
        wanted.check(estimator)
        k = getattr(estimator, "n_clusters", None)
        if k is None:  # of others, which find it
            k = len(np.unique(estimator.labels_[estimator.labels_ >= 0]))
        name = counted(k, "cluster")
        if name in found:
            raise ValueError(
                f"estimators must differ in n_clusters, got two of {name}: leave one out."
            )
        found[name] = estimator
    if not found:
        raise ValueError("estimators must hold at least one, got none.")
    return found


def check_names(names: Sequence[str] | None, n_clusters: int) -> None:
    """Raise unless there is a name for every cluster, or none at all."""
    if names is not None and len(names) != n_clusters:
        raise ValueError(
            f"names must be as many as clusters, {n_clusters}, got {len(names)} of them: give one "
            "for each, or None for numbers."
        )


def divide_into_cells(
    labels: np.ndarray, confidence: np.ndarray, max_cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Divide samples into cells that hold one cluster each.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int
    confidence : ndarray of shape (n_samples,)
        Samples of a cluster are ordered by it, the largest first.
    max_cells : int
        Largest number of cells, unless there are more clusters: each has a cell at least.

    Returns
    -------
    order : ndarray of shape (n_samples,), int
        Samples in the order of the picture.
    groups : ndarray of shape (n_samples,), int
        Cell of ``order[i]``: 0, 1, ... without gaps, increasing.
    cell_labels : ndarray of shape (n_cells,), int
        Cluster of every cell.
    """
    check_count(max_cells, "max_cells", 1)
    order = np.lexsort((-np.round(confidence, 9), labels))  # rounding errors break no ties
    clusters, sizes = np.unique(labels, return_counts=True)
    n_cells = _share_out(sizes, int(max_cells))
    within = np.concatenate([np.arange(size) for size in sizes])
    # in integers: cell j of a cluster begins where j * size / n_cells is first reached
    cell = within * np.repeat(n_cells, sizes) // np.repeat(sizes, sizes)
    offsets = np.concatenate([[0], np.cumsum(n_cells)[:-1]])
    return order, cell + np.repeat(offsets, sizes), np.repeat(clusters, n_cells)


def _share_out(sizes: np.ndarray, total: int) -> np.ndarray:
    """Return numbers of cells in proportion to sizes: from 1 to the size, `total` if they can."""
    if sizes.sum() <= total:
        return sizes
    cells = np.clip((sizes * total) // sizes.sum(), 1, sizes)
    while cells.sum() > max(total, len(sizes)):
        density = np.where(cells > 1, cells / sizes, -np.inf)
        cells[np.argmax(density)] -= 1
    while cells.sum() < total:
        spare = np.where(cells < sizes, sizes / cells, -np.inf)
        cells[np.argmax(spare)] += 1
    return cells


def to_name(sizes: np.ndarray, line: float, length: int) -> np.ndarray:
    """Return the clusters to name: all if there is room, or else the large ones."""
    if len(sizes) * line <= length:
        return np.arange(len(sizes))
    large = np.flatnonzero(sizes >= line)
    room = max(int(length / line), 1)
    return large if len(large) else np.sort(np.argsort(-sizes, kind="stable")[:room])


def spread(centres: np.ndarray, sizes: np.ndarray, line: float, length: float) -> np.ndarray:
    """Return the places nearest to the centres, in their order, that are a line apart.

    Large clusters give way to small ones: a name may stand anywhere beside a large one.
    """
    steps = line * np.arange(len(centres))
    low, high = line / 2, length - line / 2 - steps[-1]
    fitted = isotonic_regression(
        centres - steps, sample_weight=1 / sizes, y_min=low, y_max=max(low, high)
    )
    return fitted + steps


def axes_for(ax: Any, figsize: tuple[float, float]) -> tuple[Any, Any]:
    """Return the figure of some axes and these; without axes, a new figure and its own."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "nmfcluster[plot]"'
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="compressed")
    return ax.figure, ax


def draw_cells(ax: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray, **colours: Any) -> Any:
    """Draw a matrix, its first row on top, and return the mesh; x and y are edges of the cells."""
    mesh = ax.pcolormesh(x, y, values, **colours)
    mesh.set_rasterized(True)  # in a PDF, too: thousands of cells are slow to show one by one
    ax.set(xlim=(0, x[-1]), ylim=(y[-1], 0))
    ax.grid(False)
    return mesh


def add_colorbar(mesh: Any, extend: str, label: str) -> Any:
    """Draw the scale of colours beside a mesh, pointed where `extend` says, and return it."""
    colorbar = mesh.axes.figure.colorbar(mesh, ax=mesh.axes, extend=extend, shrink=0.8)
    colorbar.set_label(label)
    return colorbar


def count_along(axis: Any, **steps: Any) -> None:
    """Put about five round numbers on an axis that counts samples, rows or columns."""
    axis.set_major_locator(ticker().MaxNLocator(5, integer=True, **steps))
    axis.set_major_formatter(ticker().StrMethodFormatter("{x:,.0f}"))


def ticker() -> Any:
    """Return matplotlib's module of tick locators and formatters."""
    import matplotlib.ticker

    return matplotlib.ticker


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


def height_in_points(ax: Any) -> float:
    """Return the height that square axes have now."""
    box = ax.get_window_extent()
    return float(min(box.width, box.height)) * 72 / ax.figure.dpi


def colour_of(i: int) -> str:
    """Return the colour of the i-th cluster, line or source; after 21 they begin again."""
    share, tone = _SHADES[i // len(COLOURS) % len(_SHADES)]
    colour = COLOURS[i % len(COLOURS)]
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round((1 - share) * part + 255 * share * tone):02X}" for part in parts)


def colours_of_clusters(numbers: np.ndarray) -> dict[str, Any]:
    """Return the colour map and the norm of cluster numbers; -1, in no cluster, is grey."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    many = max(int(numbers.max()) + 1, 1)
    cmap = ListedColormap([UNKNOWN["facecolor"], *(colour_of(i) for i in range(many))])
    return {"cmap": cmap, "norm": BoundaryNorm(np.arange(-1.5, many), many + 1)}


def colours_of_counts(most_good: int, most_bad: int) -> dict[str, Any]:
    """Return the colour map and the norm of numbers of pairs, negative for the bad ones.

    Good and bad pairs have a scale each, so that a few bad ones are seen beside many good ones.
    The scales are of square roots, so that few pairs are seen beside many of their own kind.
    """
    from matplotlib.colors import FuncNorm, LinearSegmentedColormap, ListedColormap

    tops = max(most_good, 1), max(most_bad, 1)

    def forward(value: Any) -> Any:
        value = np.asarray(value, dtype=float)
        return np.sign(value) * np.sqrt(abs(value) / np.where(value < 0, tops[1], tops[0]))

    def inverse(height: Any) -> Any:
        height = np.asarray(height, dtype=float)
        return height * abs(height) * np.where(height < 0, tops[1], tops[0])

    steps = np.linspace(0, 1, 128)
    good = LinearSegmentedColormap.from_list("good", _GOOD)(steps)
    bad = LinearSegmentedColormap.from_list("bad", _BAD)(steps)
    cmap = ListedColormap(np.vstack([bad[::-1], [[*[_NO_PAIR] * 3, 1.0]], good]))
    return {"cmap": cmap, "norm": FuncNorm((forward, inverse), vmin=-tops[1], vmax=tops[0])}


def shorten(number: int) -> str:
    """Return a number in four characters at most: 999, 1.2k, 12k, 123k, 1.2M ..."""
    if number < 1000:
        return str(number)
    power = 3 * min((len(str(number)) - 1) // 3, 3)
    if number >= 999.5 * 10**power and power < 9:  # rounds to 1.0 of the next letter
        power += 3
    scaled = number / 10**power
    return (f"{scaled:.1f}" if scaled < 9.95 else f"{scaled:.0f}") + " kMG"[power // 3]


def cut(name: str, length: int) -> str:
    """Return a name of at most `length` letters, with an ellipsis where it was cut."""
    return name if len(name) <= length else name[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"
