"""What marks the clusters in a picture of biclusters: frames of blocks, and strips at the sides."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nmfcluster.display.style import LINE, points_outside

_GAP = 3.0  # points between the table and its strips, and beyond these
_PITCH, _ALL_STRIPS = 9.0, 81.0  # points: of a strip with its margin, and at most of all of them
_FILLED = 0.75  # of its pitch that a strip takes; the rest is margin
_EMPTY = 0.93  # grey of a strip where its cluster is not
_SMALL = 8.0  # points: font of the names, which fits into a pitch
_LETTERS = 1.1  # heights of the font from one name to the next
_MOST_OUTLINES = 24  # clusters; with more of them the outlines would hide the table
_MOST_PIECES = 4  # frames of a cluster that no order keeps together; more tell less than strips


@dataclass(frozen=True)
class Cluster:
    """A cluster as a picture shows it.

    Attributes
    ----------
    name, colour : str
    rows : ndarray of shape (n_row_cells,)
        Share of the rows of a cell that are in it.
    columns : ndarray of shape (n_column_cells,)
    """

    name: str
    colour: str
    rows: np.ndarray
    columns: np.ndarray


def draw_outlines(ax: Any, x: np.ndarray, y: np.ndarray, clusters: list[Cluster]) -> list[Any]:
    """Frame the blocks that hold most rows and columns of a cluster; x and y are edges of cells."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    outlines: list[Any] = []
    if len(clusters) > _MOST_OUTLINES:
        return outlines
    for cluster in clusters:
        down, along = _pieces(cluster.rows), _pieces(cluster.columns)
        if len(down) * len(along) > _MOST_PIECES:
            down, along = _long(down), _long(along)
        if len(down) * len(along) > _MOST_PIECES:
            continue
        for top, bottom in down:
            for left, right in along:
                size = x[right] - x[left], y[bottom] - y[top]
                frame = Rectangle((x[left], y[top]), *size, fill=False)
                frame.set(edgecolor=cluster.colour, linewidth=1.6, zorder=2.6)
                frame.set_path_effects([withStroke(linewidth=3.2, foreground="white")])
                outlines.append(ax.add_patch(frame))
                frame.set_clip_on(False)  # at the edge of the table half of the line would be cut
    return outlines


def draw_strips(
    ax: Any, x: np.ndarray, y: np.ndarray, clusters: list[Cluster]
) -> list[tuple[Any, Any]]:
    """Mark rows and columns of every cluster, and name it where its two strips meet."""
    pitch = min(_PITCH, _ALL_STRIPS / len(clusters))
    every = int(np.ceil(_LETTERS * _SMALL / pitch))  # names that would overlap are left out
    beside, below = points_outside(ax)
    strips = []
    for i, cluster in enumerate(clusters):
        near = -_GAP - i * pitch
        across = near - _FILLED * pitch, near
        down, shades = _marks(y, across, cluster.rows, cluster.colour)
        of_rows = _draw_marks(ax, down[..., ::-1], shades, beside)
        along, shades = _marks(x, across, cluster.columns, cluster.colour)
        strips.append((of_rows, _draw_marks(ax, along, shades, below)))
        if i % every == 0:
            _name(ax, cluster.name, across)
    ax.tick_params(length=0, pad=_GAP + pitch * len(clusters) + 1)
    return strips


def _pieces(shares: np.ndarray) -> list[tuple[int, int]]:
    """Return the ranges of cells, ends excluded, of which most are in a cluster."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], shares >= 0.5, [0]])))
    return [(int(a), int(b)) for a, b in steps.reshape(-1, 2)]


def _long(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges that are at least half as long as the longest."""
    longest = max(b - a for a, b in pieces)
    return [(a, b) for a, b in pieces if 2 * (b - a) >= longest]


def _marks(
    edges: np.ndarray, across: tuple[float, float], shares: np.ndarray, colour: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rectangles of a strip, (n, 4, 2), and their colours, (n, 4).

    The first coordinate is along the strip; the first rectangle is the empty strip.
    """
    from matplotlib.colors import to_rgba

    changes = np.flatnonzero(np.diff(shares)) + 1
    runs = [(0, len(shares)), *pairwise([0, *changes.tolist(), len(shares)])]
    low, high = across
    rectangles = [
        [(edges[a], low), (edges[b], low), (edges[b], high), (edges[a], high)] for a, b in runs
    ]
    colours = [(_EMPTY,) * 3 + (1.0,), *(to_rgba(colour, shares[a]) for a, _ in runs[1:])]
    return np.array(rectangles), np.array(colours)


def _draw_marks(ax: Any, rectangles: np.ndarray, colours: np.ndarray, place: Any) -> Any:
    from matplotlib.collections import PolyCollection

    marks = PolyCollection(list(rectangles), facecolors=colours, linewidth=0, transform=place)
    marks.set_clip_on(False)
    return ax.add_artist(marks)


def _name(ax: Any, name: str, across: tuple[float, float]) -> None:
    middle, near = sum(across) / 2, across[1]
    short = len(name) <= 2  # letters: fits between the strips
    place = {"xycoords": "axes fraction", "textcoords": "offset points"}
    text = ax.annotate(name, (0, 0), (middle if short else near, middle), **place)
    text.set(ha="center" if short else "right", va="center_baseline", fontsize=_SMALL, color=LINE)
