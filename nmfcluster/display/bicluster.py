"""Picture of biclusters: the table, its rows and columns ordered so that they are blocks."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

import numpy as np

import nmfcluster.display.style as look
from nmfcluster._utils.validation import read_table, shown
from nmfcluster.display.cells import arrange_table

_PITCH, _SMALL = (
    9.0,
    8.0,
)  # points: from a strip to the next at most, and of the names' font
_ALL_STRIPS = 0.28  # of the shorter side of the axes, at most

_Cluster = tuple[
    str, np.ndarray, np.ndarray
]  # its colour, and shares of cells that are in it


@dataclass(kw_only=True, repr=False, eq=False)
class BiclusterDisplay:
    """Picture of biclusters in their table, which may overlap.

    Rows and columns are put into an order that makes every bicluster a block, as far as one order
    can: clusters that share the most are neighbours, and what two neighbours share lies
    between them. A narrow strip for each cluster, at the left and at the bottom, shows its rows
    and its columns; a row that belongs to several clusters has a mark in several strips. Frames
    in the same colours show the blocks, the four largest ones of a cluster that no order keeps
    together. Rows and columns in no cluster come last.

    Of a large table a cell shows the mean over a group of rows and of columns, and a strip is as
    strong as the share of the group that is in its cluster; the axes count rows and columns.

    `from_estimator` and `from_biclusters` compute the cells and draw them; the constructor takes
    cells.

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

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    mesh_ : matplotlib QuadMesh
        The cells.
    colorbar_ : matplotlib Colorbar
        The scale of colours.
    strips_ : list of (QuadMesh, QuadMesh)
        The marks of rows and of columns, one pair a cluster.
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
    >>> model = NMFMetaCluster(4, n_estimators=5, random_state=0).fit(X)
    >>> display = BiclusterDisplay.from_estimator(model, X)
    >>> display.matrix.shape
    (21, 35)
    >>> display.figure_.savefig("biclusters.png")  # doctest: +SKIP
    """

    matrix: np.ndarray
    row_sizes: np.ndarray
    column_sizes: np.ndarray
    row_shares: np.ndarray
    column_shares: np.ndarray
    clusters: np.ndarray | None = None
    row_order: np.ndarray | None = None
    column_order: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, max_cells: int = 400, ax: Any = None
    ) -> Self:
        """Show the biclusters that a fitted estimator found in its table.

        A row of several clusters joins the block of the one that adds most to it, and a column
        likewise.

        Parameters
        ----------
        estimator : NMFMetaCluster
            A fitted one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The table of its `fit`, or another one with its rows and columns. Means leave NaN out.
        max_cells : int, default=400
            Largest number of cells in a row and in a column; but every cluster has one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        BiclusterDisplay
            The picture, drawn.
        """
        cure = (
            "from_biclusters takes the rows and columns of clusters that others found"
        )
        estimator = look.check_fitted(estimator, "factor_", "an NMFMetaCluster", cure)
        W, H = estimator.factor_, estimator.components_
        table = _check_table(X, (len(W), H.shape[1]))
        rows = estimator.rows_, W.T * np.linalg.norm(H, axis=1)[:, None]
        columns = estimator.columns_, H * np.linalg.norm(W, axis=0)[:, None]
        return cls(**arrange_table(table, rows, columns, max_cells)).plot(ax)

    @classmethod
    def from_biclusters(
        cls, X: Any, rows: Any, columns: Any, *, max_cells: int = 400, ax: Any = None
    ) -> Self:
        """Show any biclusters: `rows_` and `columns_` of scikit-learn's, or known ones.

        A row of several clusters joins the block of the first of them, and a column likewise.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_columns)
            The table. Means leave NaN out.
        rows : array-like of shape (n_clusters, n_rows), bool
            Whether a row is in a cluster.
        columns : array-like of shape (n_clusters, n_columns), bool
            Whether a column is in a cluster.
        max_cells : int, default=400
            Largest number of cells in a row and in a column; but every cluster has one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        BiclusterDisplay
            The picture, drawn.

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
            got = f"{len(rows)} and {len(columns)}"
            raise ValueError(
                f"rows and columns must be of the same clusters, got {got} of them."
            )
        table = _check_table(X, (rows.shape[1], columns.shape[1]))
        return cls(
            **arrange_table(table, (rows, rows), (columns, columns), max_cells)
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        BiclusterDisplay
            Itself.
        """
        self.figure_, self.ax_ = look.axes_for(ax, (6.8, 5.2), crowded=True)
        x, y = (
            np.append(0, np.cumsum(sizes))
            for sizes in (self.column_sizes, self.row_sizes)
        )
        # the darkest colour is that of the largest entries but a hundredth: outliers do not count
        sizes = np.abs(self.matrix[np.isfinite(self.matrix) & (self.matrix != 0)])
        high = float(np.quantile(sizes, 0.99, method="higher")) if sizes.size else 1.0
        signed = bool((self.matrix < 0).any())
        colours = (
            {"cmap": "PuOr", "vmin": -high} if signed else {"cmap": "Greys", "vmin": 0}
        )
        averaged = max(self.row_sizes.max(), self.column_sizes.max()) > 1
        scale = (
            "mean of the table" if averaged else "table",
            "both" if signed else "max",
        )
        drawn = look.draw_cells(
            self.ax_, (x, y), self.matrix, scale, vmax=high, **colours
        )
        self.mesh_, self.colorbar_ = drawn
        self.ax_.set(xlabel="columns", ylabel="rows")
        look.count_along(self.ax_.yaxis)
        order = (
            np.arange(len(self.row_shares)) if self.clusters is None else self.clusters
        )
        shares = zip(self.row_shares[order], self.column_shares[order], strict=True)
        clusters = [(look.colour_of(i), *both) for i, both in enumerate(shares)]
        # more frames would hide the table
        self.outlines_ = (
            _draw_outlines(self.ax_, x, y, clusters) if len(clusters) <= 24 else []
        )
        self.strips_ = _draw_strips(self.ax_, x, y, clusters, order)
        return self


def _draw_outlines(
    ax: Any, x: np.ndarray, y: np.ndarray, clusters: list[_Cluster]
) -> list[Any]:
    """Frame the blocks of every cluster, the largest ones; x and y are edges of cells."""
    from matplotlib.patheffects import withStroke

    outlines: list[Any] = []
    around = [withStroke(linewidth=3.2, foreground="white")]
    # at the edge of the table half of the line would be cut
    style = {"fill": False, "linewidth": 1.6, "zorder": 2.6, "path_effects": around}
    for colour, rows, columns in clusters:
        runs = product(_runs(y, rows), _runs(x, columns))
        blocks = [
            (left, bottom - top, right - left, top)
            for (top, bottom), (left, right) in runs
        ]
        blocks.sort(key=lambda block: -block[1] * block[2])
        for block in blocks[:4]:  # more pieces tell less than the strips
            outlines += ax.bar(
                *block, align="edge", edgecolor=colour, clip_on=False, **style
            )
    return outlines


def _runs(edges: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the edges, (n, 2), of the runs of cells of which most are in a cluster."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], shares >= 0.5, [0]])))
    return edges[steps].reshape(-1, 2)


def _draw_strips(
    ax: Any,
    x: np.ndarray,
    y: np.ndarray,
    clusters: list[_Cluster],
    names: Iterable[int],
) -> list[tuple[Any, Any]]:
    """Mark rows and columns of every cluster, and name it where its two strips meet."""
    from matplotlib.colors import LinearSegmentedColormap

    gap, pitch = (
        3.0,
        min(_PITCH, _ALL_STRIPS * look.side_of(ax) / len(clusters)),
    )  # points
    every = int(np.ceil(1.1 * _SMALL / pitch))  # names that would overlap are left out
    beside, below, _ = look.points_outside(ax)
    strips = []
    for i, (name, (colour, rows, columns)) in enumerate(
        zip(names, clusters, strict=True)
    ):
        near = -gap - i * pitch
        across = [near - 0.75 * pitch, near]  # the rest is margin
        cmap = LinearSegmentedColormap.from_list("strip", ["0.93", colour])
        style = {"cmap": cmap, "vmin": 0, "vmax": 1, "clip_on": False}
        of_rows = ax.pcolormesh(across, y, rows[:, None], transform=beside, **style)
        of_columns = ax.pcolormesh(x, across, columns[None], transform=below, **style)
        strips.append((of_rows, of_columns))
        if i % every == 0:
            place = {
                "xycoords": "axes fraction",
                "va": "center_baseline",
                "fontsize": _SMALL,
            }
            ax.annotate(str(name), (0, 0), (near, sum(across) / 2), **look.NOTE | place)
    ax.tick_params(length=0, pad=gap + pitch * len(clusters) + 1)
    return strips


def _check_table(X: Any, shape: tuple[int, int]) -> Any:
    """Return X in floats, dense or CSR; raise unless it has the shape of the biclusters."""
    X = read_table(X, ensure_all_finite="allow-nan")
    if X.shape != shape:
        wanted = f"{shape[0]} rows and {shape[1]} columns"
        raise ValueError(
            f"X must have the {wanted} of the biclusters, got shape {X.shape}."
        )
    return X


def _check_members(value: Any, name: str) -> np.ndarray:
    """Return booleans of shape (n_clusters, n)."""
    members = read_table(value, name, accept_sparse=False, dtype=None)
    if members.dtype.kind != "b":
        raise TypeError(f"{name} must hold booleans, got {shown(value)}.")
    return members
