"""How all pictures look, and where their parts go; matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import NMFClusterer

# The style of all pictures. The colours are Okabe and Ito's, which colour-blind readers can tell
# apart; clusters beside each other never share one, and are named beside it.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
EMPHASIS, CONTEXT, LINE = "#0072B2", "0.6", "0.25"
UNKNOWN: dict[str, Any] = {"facecolor": "0.78", "edgecolor": "0.55", "hatch": "//////"}
GOOD, BAD = ("#D3E3F1", "#2A6FA8"), ("#F9C79F", "#C04E00")  # of few and of many
NOTHING = 0.955  # grey where there is nothing to count
FONT = 9.0
STRIP, NAMES = (-11.0, -3.0), -24.0  # label strip and names of clusters, points from the axes


def check_estimator(estimator: Any, attribute: str, wanted: str) -> None:
    """Raise unless an object is a fitted estimator with an attribute."""
    if not isinstance(estimator, NMFClusterer):
        raise TypeError(f"estimator must be {wanted}, got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise TypeError(f"estimator must be {wanted}, got {type(estimator).__name__}.")


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
        There are no more cells than this, or as many as clusters if these are more.

    Returns
    -------
    order : ndarray of shape (n_samples,), int
        Samples in the order of the picture.
    groups : ndarray of shape (n_samples,), int
        Cell of ``order[i]``: 0, 1, ... without gaps, increasing.
    cell_labels : ndarray of shape (n_cells,), int
        Cluster of every cell.
    """
    if max_cells < 1:
        raise ValueError(f"max_cells must be at least 1, got {max_cells}.")
    order = np.lexsort((-np.round(confidence, 9), labels))  # rounding errors break no ties
    clusters, sizes = np.unique(labels, return_counts=True)
    n_cells = _share_out(sizes, max_cells)
    within = np.concatenate([np.arange(size) for size in sizes])
    # whole numbers: cell j of c begins where j * size / c is first reached
    cell = within * np.repeat(n_cells, sizes) // np.repeat(sizes, sizes)
    offsets = np.concatenate([[0], np.cumsum(n_cells)[:-1]])
    return order, cell + np.repeat(offsets, sizes), np.repeat(clusters, n_cells)


def _share_out(sizes: np.ndarray, total: int) -> np.ndarray:
    """Return numbers of cells in proportion to sizes: 1 to size each, `total` in all if it can."""
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
    """Return a figure and its axes: those given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Drawing needs matplotlib, which is not installed: pip install "nmfcluster[plot]"'
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="compressed")
    return ax.figure, ax


def ticker() -> Any:
    """Return matplotlib's module of tick locators and formatters."""
    import matplotlib.ticker

    return matplotlib.ticker


def points_beside(ax: Any) -> Any:
    """Return the transform of points from the left edge (x) and data (y)."""
    from matplotlib.transforms import blended_transform_factory

    return blended_transform_factory(_points_from_corner(ax), ax.transData)


def points_below(ax: Any) -> Any:
    """Return the transform of data (x) and points from the bottom edge (y)."""
    from matplotlib.transforms import blended_transform_factory

    return blended_transform_factory(ax.transData, _points_from_corner(ax))


def _points_from_corner(ax: Any) -> Any:
    from matplotlib.transforms import Affine2D, ScaledTranslation

    corner = ScaledTranslation(0, 0, ax.transAxes)
    return Affine2D().scale(1 / 72) + ax.figure.dpi_scale_trans + corner


def height_in_points(ax: Any) -> float:
    """Return the height that square axes have now."""
    box = ax.get_window_extent()
    return float(min(box.width, box.height)) * 72 / ax.figure.dpi


def colours_of_counts(most_good: int, most_bad: int) -> dict[str, Any]:
    """Return the norm and the colours of numbers of pairs, of which the bad ones are negative.

    The scales of the two are apart, so that a few bad pairs are seen beside many good ones, and
    they are of square roots, so that few are seen beside many.
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
    good = LinearSegmentedColormap.from_list("good", GOOD)(steps)
    bad = LinearSegmentedColormap.from_list("bad", BAD)(steps)
    cmap = ListedColormap(np.vstack([bad[::-1], [[*[NOTHING] * 3, 1.0]], good]))
    return {"cmap": cmap, "norm": FuncNorm((forward, inverse), vmin=-tops[1], vmax=tops[0])}


def shorten(number: int) -> str:
    """Return a number in four characters at most: 999, 1.2k, 12k, 123k, 1.2M ..."""
    if number < 1000:
        return str(number)
    power = 3 * min((len(str(number)) - 1) // 3, 3)
    if number >= 999.5 * 10**power and power < 9:  # rounds to a thousand of them
        power += 3
    scaled = number / 10**power
    return (f"{scaled:.1f}" if scaled < 9.95 else f"{scaled:.0f}") + " kMG"[power // 3]
