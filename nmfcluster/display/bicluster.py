"""Picture of biclusters: the table, its rows and columns ordered so that they are blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

import nmfcluster.display.style as look
from nmfcluster._arrays.arguments import counted, shown
from nmfcluster.display.bicluster_marks import Cluster, draw_outlines, draw_strips
from nmfcluster.display.bicluster_order import arrange

_WANTED = "an NMFMetaCluster; from_biclusters takes rows_ and columns_ of others"
_HIGH = 0.99  # share of the entries that are not above the darkest colour: outliers do not count


@dataclass(kw_only=True, repr=False, eq=False)
class BiclusterDisplay:
    """Picture of biclusters in their table, which may overlap.

    Rows and columns are put into an order that makes every bicluster a block, as far as one order
    can: clusters that share the most are neighbours, and what two neighbours share lies
    between them. A narrow strip for each cluster, at the left and at the bottom, shows its rows
    and its columns; a row that belongs to several clusters has a mark in several strips. Frames
    in the same colours show the blocks. Rows and columns in no cluster come last.

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

    matrix: np.ndarray
    row_sizes: np.ndarray
    column_sizes: np.ndarray
    row_shares: np.ndarray
    column_shares: np.ndarray
    clusters: np.ndarray | None = None
    row_order: np.ndarray | None = None
    column_order: np.ndarray | None = None
    names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, max_cells: int = 400, **style: Any
    ) -> BiclusterDisplay:
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
            Largest number of cells in a row and in a column, unless there are more clusters.
        **style : dict
            Keywords of `plot`: `ax`, `cmap`, `colorbar`, `strip`, `outline`.

        Returns
        -------
        BiclusterDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is not an NMFMetaCluster, or `max_cells` is not an int.
        NotFittedError
            If `estimator` is not fitted.
        ValueError
            If `X` does not have the rows and columns of the fit, or `max_cells` is below 1.
        ImportError
            If matplotlib is not installed.
        """
        look.check_estimator(estimator, "columns_", _WANTED)
        W, H = estimator.factor_, estimator.components_
        table = _check_table(X, (len(W), H.shape[1]))
        rows = estimator.rows_, W.T * np.linalg.norm(H, axis=1)[:, None]
        columns = estimator.columns_, H * np.linalg.norm(W, axis=0)[:, None]
        return cls(**arrange(table, rows, columns, max_cells)).plot(**style)

    @classmethod
    def from_biclusters(
        cls,
        X: Any,
        rows: Any,
        columns: Any,
        *,
        names: Sequence[str] | None = None,
        max_cells: int = 400,
        **style: Any,
    ) -> BiclusterDisplay:
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
        names : sequence of str, default=None
            Names of the clusters; their numbers by default.
        max_cells : int, default=400
            Largest number of cells in a row and in a column, unless there are more clusters.
        **style : dict
            Keywords of `plot`: `ax`, `cmap`, `colorbar`, `strip`, `outline`.

        Returns
        -------
        BiclusterDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `X` does not hold numbers, `rows` or `columns` hold anything but booleans, or
            `max_cells` is not an int.
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
            raise ValueError(f"names must name {counted(len(rows), 'cluster')}, got {len(names)}.")
        table = _check_table(X, (rows.shape[1], columns.shape[1]))
        contents = arrange(table, (rows, rows), (columns, columns), max_cells)
        return cls(**contents, names=names).plot(**style)

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
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.8, 5.2))
        x, y = (np.append(0, np.cumsum(sizes)) for sizes in (self.column_sizes, self.row_sizes))
        colours, overflow = self._colours()
        if cmap:
            colours["cmap"] = cmap
        self.mesh_ = look.draw_cells(self.ax_, x, y, self.matrix, **colours)
        self.ax_.set(xlabel="columns", ylabel="rows")
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            look.count_along(axis, steps=(1, 2, 5, 10))
        clusters = self._shown_clusters()
        self.outlines_ = draw_outlines(self.ax_, x, y, clusters) if outline else []
        self.strips_ = draw_strips(self.ax_, x, y, clusters) if strip else []
        averaged = max(self.row_sizes.max(), self.column_sizes.max()) > 1
        label = "mean of the table" if averaged else "table"
        self.colorbar_ = look.add_colorbar(self.mesh_, overflow, label) if colorbar else None
        return self

    def _colours(self) -> tuple[dict[str, Any], str]:
        """Return the colours of the table, and at which ends some cells lie beyond their scale."""
        values = self.matrix[np.isfinite(self.matrix)]
        sizes = np.abs(values[values != 0])
        high = float(np.quantile(sizes, _HIGH, method="higher")) if sizes.size else 1.0
        signed = bool((values < 0).any())
        low = -high if signed else 0.0
        above, below = (values > high).any(), (values < low).any()
        overflow = ("both" if below else "max") if above else ("min" if below else "neither")
        return {"cmap": "PuOr" if signed else "Greys", "vmin": low, "vmax": high}, overflow

    def _shown_clusters(self) -> list[Cluster]:
        """Return the clusters in the order of the picture."""
        order = range(len(self.row_shares)) if self.clusters is None else self.clusters
        names = range(len(self.row_shares)) if self.names is None else self.names
        return [
            Cluster(str(names[c]), look.colour_of(i), self.row_shares[c], self.column_shares[c])
            for i, c in enumerate(order)
        ]


def _check_table(X: Any, shape: tuple[int, int]) -> Any:
    """Return X in floats, dense or CSR; raise unless it has the shape of the biclusters."""
    try:
        kinds = [np.float64, np.float32]
        X = check_array(
            X, accept_sparse="csr", dtype=kinds, ensure_all_finite="allow-nan", input_name="X"
        )
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X must be a table of finite numbers, or NaN: {error}") from error
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
