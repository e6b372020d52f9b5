"""Picture of biclusters: the table, its rows and columns ordered so that they are blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list, optimal_leaf_ordering
from scipy.spatial.distance import squareform
from sklearn.utils import check_array

from nmfcluster._arrays.arguments import shown
from nmfcluster._arrays.labels import group_indicator
from nmfcluster._arrays.storage import as_dense
from nmfcluster.display.style import (
    COLOURS,
    LINE,
    axes_for,
    check_estimator,
    divide_into_cells,
    points_below,
    points_beside,
    ticker,
)

_WANTED = "an NMFMetaCluster; from_biclusters takes rows_ and columns_ of others"
_GAP = 3.0  # points between the table and its strips, and beyond these
_PITCH, _ALL_STRIPS = 9.0, 81.0  # points: of a strip with its margin, and at most of all of them
_FILLED = 0.75  # of its pitch that a strip takes
_EMPTY = 0.93  # grey of a strip where its cluster is not
_SMALL = 8.0  # points: font of the names
_LETTERS = 1.1  # heights of the font that two names need
_MOST_OUTLINES = 24  # clusters; with more the outlines would hide the table
_MOST_PIECES = 4  # of the outline of a cluster that one order cannot keep together
_MOST_TURNED = 100  # clusters; with more it takes too long to improve their order
_ROUNDING = 1e-9  # smaller gains are none
_HIGH = 0.99  # share of the entries that are not above the darkest colour


class BiclusterDisplay:
    """Picture of biclusters in their table, which may overlap.

    Rows and columns are put into an order that makes every bicluster a block, as far as one order
    can: clusters that share the most are neighbours, and what two neighbours share lies
    between them. A narrow strip for each cluster, at the left and at the bottom, shows its rows
    and its columns; a row that belongs to several clusters has a mark in several strips. Frames
    in the same colours show the blocks. What is in no cluster comes last.

    Of a large table cells hold the mean over groups of rows and of columns, and a strip is as
    strong as the share of the group that is in its cluster; axes count rows and columns.

    `from_estimator` and `from_biclusters` make the picture; what the constructor takes are its
    contents.

    Parameters
    ----------
    matrix : ndarray of shape (n_row_cells, n_column_cells)
        Mean of the table in every cell.
    row_sizes : ndarray of shape (n_row_cells,), int
        Number of rows of every cell.
    column_sizes : ndarray of shape (n_column_cells,), int
        Number of columns of every cell.
    row_shares : ndarray of shape (n_clusters, n_row_cells)
        Share of the rows of a cell that are in a cluster.
    column_shares : ndarray of shape (n_clusters, n_column_cells)
        The same of columns.
    clusters : ndarray of shape (n_clusters,), int, default=None
        Clusters in the order of the picture.
    row_order : ndarray of shape (n_rows,), int, default=None
        Rows in the order of the picture.
    column_order : ndarray of shape (n_columns,), int, default=None
        Columns in the order of the picture.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.

    Attributes
    ----------
    matrix, row_sizes, column_sizes, row_shares, column_shares, clusters, row_order, column_order, \
names
        As given.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    mesh_ : matplotlib QuadMesh
        The cells.
    colorbar_ : matplotlib Colorbar or None
        The scale of colours.
    strips_ : list of (PolyCollection, PolyCollection)
        The marks of rows and of columns, one pair a cluster; empty if there are none.
    outlines_ : list of matplotlib Rectangle
        The frames.

    See Also
    --------
    nmfcluster.NMFMetaCluster : The estimator whose biclusters are shown.
    nmfcluster.datasets.make_biclusters : Tables with biclusters to find.
    ConsensusMatrixDisplay : Shows how often runs put two samples together.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_biclusters
    >>> from nmfcluster.display import BiclusterDisplay
    >>> X, W, H = make_biclusters(random_state=0)
    >>> model = NMFMetaCluster(n_clusters=4, random_state=0).fit(X)
    >>> display = BiclusterDisplay.from_estimator(model, X)
    >>> display.matrix.shape
    (21, 35)
    >>> display.figure_.savefig("biclusters.png")  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any
    mesh_: Any
    colorbar_: Any
    strips_: list[Any]
    outlines_: list[Any]

    def __init__(
        self,
        *,
        matrix: np.ndarray,
        row_sizes: np.ndarray,
        column_sizes: np.ndarray,
        row_shares: np.ndarray,
        column_shares: np.ndarray,
        clusters: np.ndarray | None = None,
        row_order: np.ndarray | None = None,
        column_order: np.ndarray | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.matrix = matrix
        self.row_sizes = row_sizes
        self.column_sizes = column_sizes
        self.row_shares = row_shares
        self.column_shares = column_shares
        self.clusters = clusters
        self.row_order = row_order
        self.column_order = column_order
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ax: Any = None,
        max_cells: int = 400,
        cmap: Any = None,
        colorbar: bool = True,
        strip: bool = True,
        outline: bool = True,
    ) -> BiclusterDisplay:
        """Show the biclusters that a fitted estimator found in its table.

        A row that is in several clusters is put to the one that adds most to it, columns likewise.

        Parameters
        ----------
        estimator : NMFMetaCluster
            A fitted one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The table of its `fit`, or another one with its rows and columns.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        max_cells : int, default=400
            Largest number of cells in a row and in a column, unless there are more clusters.
        cmap : str or matplotlib Colormap, default=None
            Colours of the table; from white to black by default, or from brown over white to
            violet if there are negative entries.
        colorbar : bool, default=True
            Whether to show the scale.
        strip : bool, default=True
            Whether to mark the clusters at the sides.
        outline : bool, default=True
            Whether to frame the blocks.

        Returns
        -------
        BiclusterDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is no NMFMetaCluster.
        NotFittedError
            If `estimator` is not fitted.
        ValueError
            If `X` has not the rows and columns of the fit.
        ImportError
            If matplotlib is not installed.
        """
        check_estimator(estimator, "columns_", _WANTED)
        W, H = estimator.factor_, estimator.components_
        table = _check_table(X, (len(W), H.shape[1]))
        display = cls._arranged(
            table,
            (estimator.rows_, W.T * np.linalg.norm(H, axis=1)[:, None]),
            (estimator.columns_, H * np.linalg.norm(W, axis=0)[:, None]),
            max_cells,
            None,
        )
        return display.plot(ax, cmap=cmap, colorbar=colorbar, strip=strip, outline=outline)

    @classmethod
    def from_biclusters(
        cls,
        X: Any,
        rows: Any,
        columns: Any,
        *,
        names: Sequence[str] | None = None,
        ax: Any = None,
        max_cells: int = 400,
        cmap: Any = None,
        colorbar: bool = True,
        strip: bool = True,
        outline: bool = True,
    ) -> BiclusterDisplay:
        """Show any biclusters: `rows_` and `columns_` of scikit-learn's, or known ones.

        A row that is in several clusters is put to the first of them in the picture.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_columns)
            The table.
        rows : array-like of shape (n_clusters, n_rows), bool
            Whether a row is in a cluster.
        columns : array-like of shape (n_clusters, n_columns), bool
            Whether a column is in a cluster.
        names : sequence of str, default=None
            Names of the clusters; their numbers by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        max_cells : int, default=400
            Largest number of cells in a row and in a column, unless there are more clusters.
        cmap : str or matplotlib Colormap, default=None
            Colours of the table; from white to black by default, or from brown over white to
            violet if there are negative entries.
        colorbar : bool, default=True
            Whether to show the scale.
        strip : bool, default=True
            Whether to mark the clusters at the sides.
        outline : bool, default=True
            Whether to frame the blocks.

        Returns
        -------
        BiclusterDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `X` does not hold numbers, or `rows` or `columns` hold something else than booleans.
        ValueError
            If shapes do not fit, or a parameter is not as described.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from sklearn.cluster import SpectralCoclustering
        >>> from sklearn.datasets import make_biclusters
        >>> from nmfcluster.display import BiclusterDisplay
        >>> X, rows, columns = make_biclusters((30, 40), 3, random_state=0)
        >>> model = SpectralCoclustering(3, random_state=0).fit(X)
        >>> display = BiclusterDisplay.from_biclusters(X, model.rows_, model.columns_)
        >>> len(display.outlines_)
        3
        """
        rows, columns = _check_members(rows, "rows"), _check_members(columns, "columns")
        if len(rows) != len(columns):
            raise ValueError(
                f"rows and columns must be of the same clusters, got {len(rows)} and "
                f"{len(columns)} of them."
            )
        if names is not None and len(names) != len(rows):
            raise ValueError(f"names must name {len(rows)} clusters, got {len(names)} names.")
        table = _check_table(X, (rows.shape[1], columns.shape[1]))
        display = cls._arranged(table, (rows, rows), (columns, columns), max_cells, names)
        return display.plot(ax, cmap=cmap, colorbar=colorbar, strip=strip, outline=outline)

    @classmethod
    def _arranged(
        cls,
        X: Any,
        of_rows: tuple[np.ndarray, np.ndarray],
        of_columns: tuple[np.ndarray, np.ndarray],
        max_cells: Any,
        names: Sequence[str] | None,
    ) -> BiclusterDisplay:
        """Put rows and columns, given by members and strengths, in order, and X into cells."""
        if not isinstance(max_cells, Integral) or isinstance(max_cells, bool):
            raise TypeError(f"max_cells must be an int, got {shown(max_cells)}.")
        clusters = _order_of_clusters(of_rows[0], of_columns[0])
        row_order, row_cells, row_shares = _arrange(*of_rows, clusters, int(max_cells))
        column_order, column_cells, column_shares = _arrange(*of_columns, clusters, int(max_cells))
        row_sizes, column_sizes = np.bincount(row_cells), np.bincount(column_cells)
        across = group_indicator(row_cells, X.dtype).T @ X @ group_indicator(column_cells, X.dtype)
        return cls(
            matrix=as_dense(across) / np.sqrt(np.outer(row_sizes, column_sizes)),
            row_sizes=row_sizes,
            column_sizes=column_sizes,
            row_shares=row_shares,
            column_shares=column_shares,
            clusters=clusters,
            row_order=row_order,
            column_order=column_order,
            names=names,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        cmap: Any = None,
        colorbar: bool = True,
        strip: bool = True,
        outline: bool = True,
    ) -> BiclusterDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        cmap : str or matplotlib Colormap, default=None
            Colours of the table; from white to black by default, or from brown over white to
            violet if there are negative entries.
        colorbar : bool, default=True
            Whether to show the scale.
        strip : bool, default=True
            Whether to mark the clusters at the sides.
        outline : bool, default=True
            Whether to frame the blocks.

        Returns
        -------
        BiclusterDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.figure_, self.ax_ = axes_for(ax, figsize=(6.8, 5.2))
        x, y = (np.append(0, np.cumsum(sizes)) for sizes in (self.column_sizes, self.row_sizes))
        style, overflow = self._colours()
        self.mesh_ = self.ax_.pcolormesh(
            x, y, self.matrix, **style | ({"cmap": cmap} if cmap else {})
        )
        self.mesh_.set_rasterized(True)
        self.ax_.set(xlim=(0, x[-1]), ylim=(y[-1], 0), xlabel="columns", ylabel="rows")
        self.ax_.grid(False)
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.set_major_locator(ticker().MaxNLocator(5, integer=True, steps=(1, 2, 5, 10)))
            axis.set_major_formatter(ticker().StrMethodFormatter("{x:,.0f}"))
        self.outlines_, self.strips_, self.colorbar_ = [], [], None
        if outline and len(self.row_shares) <= _MOST_OUTLINES:
            self._draw_outlines(x, y)
        if strip:
            self._draw_strips(x, y)
        if colorbar:
            self.colorbar_ = self.figure_.colorbar(
                self.mesh_, ax=self.ax_, extend=overflow, shrink=0.8
            )
            averaged = max(self.row_sizes.max(), self.column_sizes.max()) > 1
            self.colorbar_.set_label("mean of the table" if averaged else "table")
        return self

    def _colours(self) -> tuple[dict[str, Any], str]:
        """Return the colours of the table, and where some cells lie beyond their scale."""
        sizes = np.abs(self.matrix[self.matrix != 0])
        high = float(np.quantile(sizes, _HIGH, method="higher")) if sizes.size else 1.0
        signed = float(self.matrix.min()) < 0
        style = {
            "cmap": "PuOr" if signed else "Greys",
            "vmin": -high if signed else 0.0,
            "vmax": high,
        }
        above, below = self.matrix.max() > high, self.matrix.min() < style["vmin"]
        overflow = ("both" if below else "max") if above else ("min" if below else "neither")
        return style, overflow

    def _in_order(self) -> list[tuple[int, str]]:
        """Return the clusters in the order of the picture, and their colours."""
        order = range(len(self.row_shares)) if self.clusters is None else self.clusters
        return [(int(c), COLOURS[i % len(COLOURS)]) for i, c in enumerate(order)]

    def _draw_outlines(self, x: np.ndarray, y: np.ndarray) -> None:
        """Frame the blocks that hold most rows and columns of a cluster."""
        from matplotlib.patches import Rectangle
        from matplotlib.patheffects import withStroke

        for c, colour in self._in_order():
            down, along = _pieces(self.row_shares[c]), _pieces(self.column_shares[c])
            if len(down) * len(along) > _MOST_PIECES:
                down, along = _long(down), _long(along)
            if len(down) * len(along) > _MOST_PIECES:
                continue
            for a, b in down:
                for left, right in along:
                    frame = Rectangle((x[left], y[a]), x[right] - x[left], y[b] - y[a], fill=False)
                    frame.set(edgecolor=colour, linewidth=1.6, zorder=2.6)
                    frame.set_path_effects([withStroke(linewidth=3.2, foreground="white")])
                    self.outlines_.append(self.ax_.add_patch(frame))
                    frame.set_clip_on(False)  # half of a line would be, at the edge

    def _draw_strips(self, x: np.ndarray, y: np.ndarray) -> None:
        """Mark rows and columns of every cluster, and name it where its two strips meet."""
        clusters = self._in_order()
        pitch = min(_PITCH, _ALL_STRIPS / len(clusters))
        beside, below = points_beside(self.ax_), points_below(self.ax_)
        every = int(np.ceil(_LETTERS * _SMALL / pitch))
        for i, (c, colour) in enumerate(clusters):
            near = -_GAP - i * pitch
            place = near - _FILLED * pitch, near
            rows, tints = _marks(y, place, self.row_shares[c], colour)
            strip = self._draw_marks(rows[..., ::-1], tints, beside)
            self.strips_.append(
                (strip, self._draw_marks(*_marks(x, place, self.column_shares[c], colour), below))
            )
            if i % every == 0:
                self._name(c, place)
        for axis in "xy":
            self.ax_.tick_params(axis=axis, length=0, pad=_GAP + pitch * len(clusters) + 1)

    def _draw_marks(self, rectangles: np.ndarray, colours: np.ndarray, place: Any) -> Any:
        from matplotlib.collections import PolyCollection

        marks = PolyCollection(list(rectangles), facecolors=colours, linewidth=0, transform=place)
        marks.set_clip_on(False)
        return self.ax_.add_artist(marks)

    def _name(self, cluster: int, place: tuple[float, float]) -> None:
        name = str(cluster if self.names is None else self.names[cluster])
        short = len(name) <= 2  # fits between the strips
        x = sum(place) / 2 if short else place[1]
        self.ax_.annotate(
            name,
            (0, 0),
            (x, sum(place) / 2),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center" if short else "right",
            va="center_baseline",
            fontsize=_SMALL,
            color=LINE,
        )


def _order_of_clusters(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return clusters such that neighbours share many rows and columns."""
    n = len(rows)
    if n < 3:
        return np.arange(n)
    shared = _jaccard(rows) + _jaccard(columns)
    distances = squareform(2 - shared, checks=False)
    order = leaves_list(optimal_leaf_ordering(average(distances), distances))
    if n <= _MOST_TURNED:
        order = _turned(order, shared)
    return order if order[0] < order[-1] else order[::-1]


def _turned(order: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Turn parts of an order round for as long as its neighbours come to share more."""
    n, better = len(order), True
    joint = np.zeros((n + 1, n + 1))  # with a cluster before the first and after the last one
    joint[:n, :n] = shared
    order = np.concatenate([[n], order, [n]])
    while better:
        better = False
        for i, j in combinations(range(1, n + 1), 2):
            a, b, c, d = order[[i - 1, i, j, j + 1]]
            if joint[a, c] + joint[b, d] > joint[a, b] + joint[c, d] + _ROUNDING:
                order[i : j + 1] = order[i : j + 1][::-1]
                better = True
    return order[1:-1]


def _jaccard(members: np.ndarray) -> np.ndarray:
    """Return the share of their members that two clusters have in common, (k, k)."""
    counts = members.astype(np.float64)
    common, sizes = counts @ counts.T, counts.sum(axis=1)
    union = sizes[:, None] + sizes - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def _arrange(
    members: np.ndarray, strength: np.ndarray, clusters: np.ndarray, max_cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put objects into the order of the picture, and divide them into cells.

    Parameters
    ----------
    members : ndarray of shape (k, n), bool
    strength : ndarray of shape (k, n)
        At least 0; the strongest of its clusters is the block that an object is put into.
    clusters : ndarray of shape (k,), int
        The order of the blocks.
    max_cells : int

    Returns
    -------
    order : ndarray of shape (n,), int
    cells : ndarray of shape (n,), int
        Cell of every object, in the order in which they are given.
    shares : ndarray of shape (k, n_cells)
        Share of a cell that is in a cluster.
    """
    members_there, strength = members[clusters], strength[clusters]
    alone = ~members_there.any(axis=0)
    block = np.where(members_there, strength, -1).argmax(axis=0)
    strongest = np.where(alone, strength.argmax(axis=0), block)
    # between the block before and the next one, as its clusters are
    number = members_there.sum(axis=0)
    middle = np.arange(len(clusters)) @ members_there / np.maximum(number, 1)
    middle = np.where(alone, strongest, middle)
    height = strength[strongest, np.arange(len(block))].astype(np.float64)
    block = np.where(alone, len(clusters), block)
    rank = np.empty(len(block))
    rank[np.lexsort((-height, -number, middle, block))] = np.arange(len(block))
    order, groups, _ = divide_into_cells(block, -rank, max_cells)
    cells = np.empty_like(groups)
    cells[order] = groups
    return order, cells, np.stack([np.bincount(cells, own) for own in members]) / np.bincount(cells)


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


def _check_table(X: Any, shape: tuple[int, int]) -> Any:
    """Return X in floats, dense or CSR; raise if it has not the shape of the biclusters."""
    try:
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X must be a table of finite numbers: {error}") from error
    if X.shape != shape:
        raise ValueError(
            f"X must have the {shape[0]} rows and {shape[1]} columns of the biclusters, got shape "
            f"{X.shape}."
        )
    return X


def _check_members(value: Any, name: str) -> np.ndarray:
    """Return booleans of shape (n_clusters, n)."""
    try:
        members = np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name} must have one row a cluster, of equal length.") from error
    if members.ndim != 2 or not members.size:
        raise ValueError(
            f"{name} must have shape (n_clusters, n_{name}), none of them 0, got {members.shape}."
        )
    whole = members.dtype.kind in "biu" and ((members == 0) | (members == 1)).all()
    if not whole:
        raise TypeError(f"{name} must hold booleans, got {shown(value)}.")
    return members.astype(bool)
