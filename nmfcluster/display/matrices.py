"""Displays of matrices whose rows are ordered by cluster: a consensus matrix, and biclusters."""

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list, optimal_leaf_ordering
from scipy.spatial.distance import pdist
from sklearn.utils import check_consistent_length

from nmfcluster._utils.labels import encode_labels, group_bounds, share_of_seen
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import as_dense, group_indicator
from nmfcluster._utils.validation import (
    check_count,
    format_value,
    normalize_weights,
    read_matrix,
)
from nmfcluster.display.style import (
    FONT,
    LEGEND,
    LINE,
    UNKNOWN,
    Display,
    check_fitted,
    cluster_colour,
    set_count_ticks,
)
from nmfcluster.metrics import confidence, consensus_matrix

_CO_ASSOCIATION = "co-association"  # the only value with a scale from 0 to 1
# strip in the colours of clusters, in points from the left edge of the axes
_STRIP_LEFT = -11.0
_STRIP_WIDTH = 8.0

# strips of biclusters at the sides, in points
_MAX_PITCH = 9.0  # largest distance from one strip to the next
_GAP = 3.0  # distance from the axes to the first strip
_NAME_FONT = 8.0
# largest share of the shorter side of the axes that all strips may take
_MAX_STRIPS = 0.28


class ConsensusMatrixDisplay(Display):
    """Picture of a co-association matrix with samples ordered by cluster.

    A clear consensus has dark blocks on the diagonal, and is pale outside them. Two clusters that
    the partitions often join share a dark rectangle, and a cluster on which the partitions disagree
    has a pale block. If there are many samples, a cell shows the mean over the pairs of two groups
    of samples. Every group lies within one cluster, and the axes count samples.

    Use `from_estimator` or `from_partitions` to compute the cells and draw them. The constructor
    takes cells that are already computed.

    Parameters
    ----------
    matrix : ndarray of shape (n_cells, n_cells)
        Mean co-association of the samples in two cells. It is NaN if no partition contains a sample
        of each.
    cell_sizes : ndarray of shape (n_cells,), int
        Number of samples of every cell.
    cell_labels : ndarray of shape (n_cells,), int
        Cluster of every cell, in increasing order.
    order : ndarray of shape (n_samples,), int, default=None
        Samples in the order of the picture.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.
    value_name : str, default="co-association"
        Name of the values, which labels the scale of colours. The colours of a co-association range
        from 0 to 1. The colours of any other value range from 0 to the largest value off the
        diagonal.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the picture.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    mesh_ : matplotlib QuadMesh
        The cells.
    colorbar_ : matplotlib Colorbar
        The scale of colours.

    See Also
    --------
    nmfcluster.NMFConsensus.consensus_matrix : Returns the matrix of all samples or of some.
    nmfcluster.NMFMetaCluster.consensus_matrix : Returns the matrix for runs of NMF.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import ConsensusMatrixDisplay
    >>> model = NMFConsensus(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> display = ConsensusMatrixDisplay.from_estimator(model, max_cells=30)
    >>> len(display.matrix) <= 30
    True
    >>> display.figure_.savefig("consensus.png")  # doctest: +SKIP
    """

    matrix: np.ndarray
    cell_sizes: np.ndarray
    cell_labels: np.ndarray
    order: np.ndarray | None = None
    names: Sequence[str] | None = None
    value_name: str = _CO_ASSOCIATION

    @classmethod
    def from_estimator(cls, estimator, *, max_cells: int = 400, ax=None) -> Self:
        """Draw how often a fitted estimator puts two samples together.

        For an `NMFConsensus` or an `NMFMetaCluster`, the cells show the co-association matrix that
        was clustered, or the similarity matrix with ``affinity="precomputed"``. For any other
        estimator, they show the co-membership. This is the probability that two samples are in the
        same cluster if the cluster of each sample is drawn from its row of `membership_`.

        Samples are ordered by cluster, and within a cluster by decreasing confidence, or by
        decreasing membership if the estimator has no confidence. Samples in no cluster come last.

        Parameters
        ----------
        estimator : estimator of this package
            A fitted estimator.
        max_cells : int, default=400
            Largest number of cells in a row. Larger values show more detail. Every cluster has at
            least one cell.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        ConsensusMatrixDisplay
            The drawn picture.
        """
        estimator = check_fitted(
            estimator,
            "membership_",
            expected="an estimator of nmfcluster",
            cure="Pass other clusterings to from_partitions, and fit "
            "NMFConsensus(affinity='precomputed') to a similarity",
        )
        # samples in no cluster form an additional, last cluster
        n_clusters = estimator.membership_.shape[1]
        labels = np.where(estimator.labels_ < 0, n_clusters, estimator.labels_)
        certain = getattr(estimator, "confidence_", estimator.membership_.max(axis=1))
        cells, display = divide_into_cells(labels, certain, max_cells)
        sizes = display["cell_sizes"]
        if not hasattr(estimator, "partitions_"):
            value_name = "co-membership"
            sums = group_indicator(cells).T @ estimator.membership_
            means = sums / np.sqrt(sizes)[:, None]  # the mean row of every cell
            matrix = means @ means.T
        elif estimator.partitions_ is None:
            value_name = "similarity"
            sums = estimator._source_.collapsed(cells)
            matrix = sums / np.sqrt(np.outer(sizes, sizes))
        else:
            value_name = _CO_ASSOCIATION
            # an NMFMetaCluster has no weights
            weights = getattr(estimator, "weights_", None)
            weights = normalize_weights(weights, estimator.partitions_.shape[1])
            matrix = consensus_matrix(estimator.partitions_, weights, cells)
        names = [*map(str, range(n_clusters)), "none"]
        drawn = cls(matrix=matrix, names=names, value_name=value_name, **display)
        return drawn.plot(ax)

    @classmethod
    def from_partitions(
        cls,
        partitions,
        labels,
        *,
        weights=None,
        max_cells: int = 400,
        ax=None,
    ) -> Self:
        """Draw the co-association of partitions, ordered by any labels, such as known classes.

        Parameters
        ----------
        partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
            Partitions in any form that `NMFConsensus.fit` takes.
        labels : array-like of shape (n_samples,)
            Cluster or class of every sample, an integer or a string. A negative number marks a
            sample in no cluster.
        weights : array-like of shape (n_partitions,), default=None
            Nonnegative weights of the partitions. By default, all weights are equal.
        max_cells : int, default=400
            Largest number of cells in a row. Larger values show more detail. Every cluster has at
            least one cell.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        ConsensusMatrixDisplay
            The drawn picture.

        Examples
        --------
        >>> from nmfcluster.datasets import make_partitions
        >>> from nmfcluster.display import ConsensusMatrixDisplay
        >>> partitions, y = make_partitions((60, 30, 10), random_state=0)
        >>> display = ConsensusMatrixDisplay.from_partitions(partitions, y, max_cells=10)
        >>> display.cell_labels
        array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
        """
        codes, _ = encode_labels(partitions, "partitions")
        numbers, [values] = encode_labels([labels], "labels")
        labels = numbers[:, 0].astype(np.intp)
        check_consistent_length(codes, labels)
        weights = normalize_weights(weights, codes.shape[1])
        certain = confidence(codes, labels, weights)
        names = [*map(str, values), "none"]
        # samples in no cluster form an additional, last cluster
        labels = np.where(labels < 0, len(values), labels)
        cells, display = divide_into_cells(labels, certain, max_cells)
        matrix = consensus_matrix(codes, weights, cells)
        return cls(matrix=matrix, names=names[: labels.max() + 1], **display).plot(ax)

    def _draw(self, ax):
        ax = self._set_axes(ax, (6.4, 5.4), has_margins=True)
        edges = group_bounds(self.cell_sizes)
        values = np.ma.masked_invalid(self.matrix)
        largest = 1.0
        extend = "neither"
        if self.value_name != _CO_ASSOCIATION:
            # the similarity of a sample with itself may be far above all others
            others = values.filled(0) * ~np.eye(len(values), dtype=bool)
            largest = float(others.max() or values.max())
            extend = "max"
        mean = "mean " if self.cell_sizes.max() > 1 else ""
        self.mesh_, self.colorbar_ = draw_matrix(
            ax,
            edges,
            edges,
            values,
            label=mean + self.value_name,
            extend=extend,
            cmap="Blues",
            vmin=0,
            vmax=largest,
        )
        ax.set(aspect="equal", xlabel="samples", ylabel="cluster")
        ax.patch.set(**UNKNOWN, linewidth=0)
        clusters, first = np.unique(self.cell_labels, return_index=True)
        names = [str(c) if self.names is None else self.names[c] for c in clusters]
        begin = edges[first]
        _mark_clusters(ax, names, begin, np.append(begin[1:], edges[-1]))
        if np.isnan(self.matrix).any():
            ax.legend(
                [ax.fill_between([], [], **UNKNOWN, linewidth=0)],
                ["never seen together"],
                loc="lower left",
                bbox_to_anchor=(0, 1),
                borderaxespad=0.3,
                borderpad=0,
                **LEGEND,
            )


def _mark_clusters(ax, names, begin, end):
    """Frame clusters, mark them at the side, and name as many as there is room for."""
    sizes = end - begin
    ax.barh(
        begin,
        _STRIP_WIDTH,
        sizes,
        _STRIP_LEFT,
        align="edge",
        color=[cluster_colour(i) for i in range(len(begin))],
        linewidth=0,
        transform=points_outside(ax)[0],
        clip_on=False,
    )
    if len(begin) <= 100:  # more frames would hide the matrix
        ax.bar(
            begin,
            sizes,
            sizes,
            begin,
            align="edge",
            fill=False,
            edgecolor=LINE,
            linewidth=0.7,
        )
    # name the largest clusters first, in lines that do not overlap
    line = 1.25 * FONT * end[-1] / shorter_side(ax)  # in samples
    centres = (begin + end) / 2
    named: list = []
    for i in np.argsort(begin - end, kind="stable"):
        if (np.abs(centres[named] - centres[i]) >= line).all():
            named.append(i)
    ax.set_yticks(centres[named], [names[i] for i in named])
    ax.tick_params(axis="y", length=0, pad=3 - _STRIP_LEFT, labelsize=FONT)


class BiclusterDisplay(Display):
    """Picture of biclusters, which may overlap, in their data matrix.

    Rows and columns are ordered such that every bicluster is one block, as far as a single order
    allows it. Clusters that share many rows and columns are next to each other, and the rows and
    columns that they share lie between them. Narrow strips at the left and at the bottom show the
    rows and the columns of each cluster. A row in several clusters has a mark in several strips.
    Frames in the same colours show the blocks. If no order keeps a cluster together, its four
    largest blocks are framed. Rows and columns in no cluster come last.

    In a large matrix, a cell shows the mean over a group of rows and a group of columns. The colour
    of a strip is stronger where a larger share of the group is in the cluster. The axes count rows
    and columns.

    Use `from_estimator` or `from_biclusters` to compute the cells and draw them. The constructor
    takes cells that are already computed.

    Parameters
    ----------
    matrix : ndarray of shape (n_row_cells, n_column_cells)
        Mean of the data matrix in every cell.
    row_sizes : ndarray of shape (n_row_cells,), int
        Number of rows of every cell.
    column_sizes : ndarray of shape (n_column_cells,), int
        Number of columns of every cell.
    row_shares : ndarray of shape (n_clusters, n_row_cells)
        Share of the rows of every cell that are in each cluster.
    column_shares : ndarray of shape (n_clusters, n_column_cells)
        Share of the columns of every cell that are in each cluster.
    clusters : ndarray of shape (n_clusters,), int, default=None
        Clusters in the order of the picture.
    row_order : ndarray of shape (n_rows,), int, default=None
        Rows in the order of the picture.
    column_order : ndarray of shape (n_columns,), int, default=None
        Columns in the order of the picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the picture.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    mesh_ : matplotlib QuadMesh
        The cells.
    colorbar_ : matplotlib Colorbar
        The scale of colours.
    strips_ : list of (QuadMesh, QuadMesh)
        The strips of rows and of columns, one pair for each cluster.
    outlines_ : list of matplotlib Rectangle
        The frames.

    See Also
    --------
    nmfcluster.NMFMetaCluster : Finds biclusters.
    nmfcluster.datasets.make_biclusters : Makes data with known biclusters.
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
    def from_estimator(cls, estimator, X, *, max_cells: int = 400, ax=None) -> Self:
        """Draw the biclusters that a fitted estimator found in its data matrix.

        A row in several clusters is in the block of the cluster that contributes most to it.
        Columns are treated in the same way.

        Parameters
        ----------
        estimator : NMFMetaCluster
            A fitted estimator.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The data matrix that was passed to `fit`, or another one with the same rows and columns.
            The means of cells leave out NaN.
        max_cells : int, default=400
            Largest number of cells in a row and in a column. Larger values show more detail. Every
            cluster has at least one cell.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        BiclusterDisplay
            The drawn picture.
        """
        estimator = check_fitted(
            estimator,
            "factor_",
            expected="an NMFMetaCluster",
            cure="Pass the rows and columns of other clusters to from_biclusters",
        )
        W = estimator.factor_
        H = estimator.components_
        cells = _arrange_table(
            X,
            estimator.rows_,
            estimator.columns_,
            row_strength=W.T * np.linalg.norm(H, axis=1)[:, None],
            column_strength=H * np.linalg.norm(W, axis=0)[:, None],
            max_cells=max_cells,
        )
        return cls(**cells).plot(ax)

    @classmethod
    def from_biclusters(
        cls, X, rows, columns, *, max_cells: int = 400, ax=None
    ) -> Self:
        """Draw given biclusters, such as `rows_` and `columns_` of a scikit-learn estimator.

        A row in several clusters is in the block of the first of them. Columns are treated in the
        same way.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_columns)
            The data matrix. The means of cells leave out NaN.
        rows : array-like of shape (n_clusters, n_rows), bool
            Whether a row is in a cluster.
        columns : array-like of shape (n_clusters, n_columns), bool
            Whether a column is in a cluster.
        max_cells : int, default=400
            Largest number of cells in a row and in a column. Larger values show more detail. Every
            cluster has at least one cell.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        BiclusterDisplay
            The drawn picture.

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
        rows = _check_members(rows, "rows")
        columns = _check_members(columns, "columns")
        if len(rows) != len(columns):
            raise ValueError(
                f"rows and columns must be of the same clusters, got {len(rows)} and "
                f"{len(columns)} clusters."
            )
        cells = _arrange_table(X, rows, columns, rows, columns, max_cells)
        return cls(**cells).plot(ax)

    def _draw(self, ax):
        ax = self._set_axes(ax, (6.8, 5.2), has_margins=True)
        x = group_bounds(self.column_sizes)
        y = group_bounds(self.row_sizes)
        # the darkest colour is at the quantile 0.99 of the entries, to ignore outliers
        sizes = np.abs(self.matrix[np.isfinite(self.matrix) & (self.matrix != 0)])
        high = float(np.quantile(sizes, 0.99, method="higher")) if sizes.size else 1.0
        is_signed = bool((self.matrix < 0).any())
        is_mean = max(self.row_sizes.max(), self.column_sizes.max()) > 1
        self.mesh_, self.colorbar_ = draw_matrix(
            ax,
            x,
            y,
            self.matrix,
            label="mean of the data" if is_mean else "data",
            extend="both" if is_signed else "max",
            cmap="PuOr" if is_signed else "Greys",
            vmin=-high if is_signed else 0,
            vmax=high,
        )
        ax.set(xlabel="columns", ylabel="rows")
        set_count_ticks(ax.yaxis)
        order = self.clusters
        if order is None:
            order = np.arange(len(self.row_shares))
        row_shares = self.row_shares[order]
        column_shares = self.column_shares[order]
        self.outlines_ = _draw_outlines(ax, x, y, row_shares, column_shares)
        self.strips_ = _draw_strips(ax, x, y, row_shares, column_shares, order)


def _arrange_table(X, rows, columns, row_strength, column_strength, max_cells):
    """Divide a matrix into cells, in an order that makes its biclusters blocks.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_columns)
        The data matrix. NaN marks missing entries, which are left out of the means of cells.
    rows, columns : ndarray of shape (n_clusters, n), bool
        Whether each row or column is in each cluster.
    row_strength, column_strength : ndarray of shape (n_clusters, n)
        How strongly each row or column belongs to each cluster, at least 0.
    max_cells : int
        Largest number of cells in a row and in a column. Larger values show more detail. Every
        cluster has at least one cell.

    Returns
    -------
    dict
        Parameters of a `BiclusterDisplay`, by their names.
    """
    X = read_matrix(X, ensure_all_finite="allow-nan")
    n_rows = rows.shape[1]
    n_columns = columns.shape[1]
    if X.shape != (n_rows, n_columns):
        raise ValueError(
            f"X must have the {n_rows} rows and {n_columns} columns of the biclusters, "
            f"got shape {X.shape}."
        )
    # order clusters such that neighbours share many rows and columns
    clusters = np.arange(len(rows))
    if len(rows) > 2:
        distances = pdist(rows, "jaccard") + pdist(columns, "jaccard")
        clusters = leaves_list(optimal_leaf_ordering(average(distances), distances))
        if clusters[0] > clusters[-1]:
            clusters = clusters[::-1]
    row_cells, of_rows = _arrange_side("row", rows, row_strength, clusters, max_cells)
    column_cells, of_columns = _arrange_side(
        "column", columns, column_strength, clusters, max_cells
    )
    # compute means over the observed entries of each cell
    down = group_indicator(row_cells, X.dtype).T
    across = group_indicator(column_cells, X.dtype)
    X, missing = split_missing(X)
    sizes = np.sqrt(np.outer(of_rows["row_sizes"], of_columns["column_sizes"]))
    matrix = as_dense(down @ X @ across) / sizes
    if missing is not None:
        n_missing = np.rint(as_dense(down @ missing @ across) * sizes)
        matrix = share_of_seen(matrix * sizes**2, sizes**2 - n_missing)
    return {"matrix": matrix, "clusters": clusters, **of_rows, **of_columns}


def _arrange_side(side, members, strength, clusters, max_cells):
    """Order the rows of a matrix, or its columns, and divide them into cells.

    Parameters
    ----------
    side : {"row", "column"}
    members : ndarray of shape (k, n), bool
        Whether each row is in each cluster.
    strength : ndarray of shape (k, n)
        How strongly each row belongs to each cluster. A row is in the block of its
        strongest cluster.
    clusters : ndarray of shape (k,), int
        The order of the blocks.
    max_cells : int

    Returns
    -------
    cells : ndarray of shape (n,), int
        Cell of every row, for the rows in the order of the matrix.
    display : dict
        Attributes of a display: the rows in the order of the picture, the size of every cell, and
        the share of its rows that are in each cluster, (k, n_cells).
    """
    belongs = members[clusters]
    strength = strength[clusters]
    is_unassigned = ~belongs.any(axis=0)  # rows in no cluster form the last block
    strongest = np.where(belongs | is_unassigned, strength, -1).argmax(axis=0)
    block = np.where(is_unassigned, len(clusters), strongest)
    # Within a block, rows are ordered by the mean position of their clusters. Ties are
    # broken by the number of clusters, then by the strength.
    n_clusters = belongs.sum(axis=0)
    position = np.arange(len(clusters)) @ belongs / np.maximum(n_clusters, 1)
    position = np.where(is_unassigned, strongest, position)
    largest = strength[strongest, np.arange(len(block))].astype(np.float64)
    rank = np.argsort(np.lexsort((-largest, -n_clusters, position, block)))
    cells, display = divide_into_cells(block, -rank, max_cells)
    sizes = display["cell_sizes"]
    counts = np.stack([np.bincount(cells, cluster) for cluster in members])
    return cells, {
        f"{side}_order": display["order"],
        f"{side}_sizes": sizes,
        f"{side}_shares": counts / sizes,
    }


def _draw_outlines(ax, x, y, row_shares, column_shares):
    """Frame the largest blocks of every cluster; x and y are the edges of cells."""
    from matplotlib.patheffects import withStroke

    outlines: list = []
    if len(row_shares) > 24:  # so many frames would hide the matrix
        return outlines
    for i, shares in enumerate(row_shares):
        blocks = [
            (left, bottom - top, right - left, top)
            for top, bottom in _runs(y, shares)
            for left, right in _runs(x, column_shares[i])
        ]
        blocks.sort(key=lambda block: -block[1] * block[2])
        for left, height, width, top in blocks[:4]:  # the strips show the other pieces
            outlines += ax.bar(
                left,
                height,
                width,
                top,
                align="edge",
                edgecolor=cluster_colour(i),
                clip_on=False,  # keeps the outer half of lines at the edge of the matrix
                fill=False,
                linewidth=1.6,
                zorder=2.6,
                path_effects=[withStroke(linewidth=3.2, foreground="white")],
            )
    return outlines


def _runs(edges, shares):
    """Return the edges, (n, 2), of runs of cells with at least half in a cluster."""
    steps = np.flatnonzero(np.diff(np.concatenate([[0], shares >= 0.5, [0]])))
    return edges[steps].reshape(-1, 2)


def _draw_strips(ax, x, y, row_shares, column_shares, names):
    """Mark rows and columns of every cluster, and name it where its two strips meet."""
    from matplotlib.colors import LinearSegmentedColormap

    pitch = min(_MAX_PITCH, _MAX_STRIPS * shorter_side(ax) / len(names))
    step = int(np.ceil(1.1 * _NAME_FONT / pitch))  # more names would overlap
    left, below, _ = points_outside(ax)
    strips = []
    for i, name in enumerate(names):
        end = -_GAP - i * pitch
        across = [end - 0.75 * pitch, end]  # the rest is margin
        colours = ["0.93", cluster_colour(i)]
        cmap = LinearSegmentedColormap.from_list("strip", colours)
        draw = partial(ax.pcolormesh, cmap=cmap, vmin=0, vmax=1, clip_on=False)
        row_strip = draw(across, y, row_shares[i][:, None], transform=left)
        column_strip = draw(x, across, column_shares[i][None], transform=below)
        strips.append((row_strip, column_strip))
        if i % step == 0:
            ax.annotate(
                str(name),
                (0, 0),
                (end, sum(across) / 2),
                textcoords="offset points",
                ha="right",
                va="center_baseline",
                xycoords="axes fraction",
                fontsize=_NAME_FONT,
            )
    ax.tick_params(length=0, pad=_GAP + pitch * len(names) + 1)
    return strips


def _check_members(value, name):
    """Return booleans of shape (n_clusters, n)."""
    members = read_matrix(value, name, accept_sparse=False, dtype=None)
    if members.dtype.kind != "b":
        raise TypeError(f"{name} must hold booleans, got {format_value(value)}.")
    return members


# --- cells and what surrounds them ---------------------------------------------------


def divide_into_cells(labels, confidence, max_cells):
    """Divide samples into cells that hold one cluster each.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,), int
    confidence : ndarray of shape (n_samples,)
        The samples of a cluster are ordered by decreasing confidence.
    max_cells : int
        Largest number of cells; every cluster has at least one.

    Returns
    -------
    cells : ndarray of shape (n_samples,), int
        Cell of every sample. Cells are numbered from 0 without gaps, in the order of the picture.
    display : dict
        Attributes of a display: the order of the samples, and the size and the cluster of every
        cell.
    """
    max_cells = check_count(max_cells, "max_cells")
    # round confidence, as rounding errors must not break ties
    order = np.lexsort((-np.round(confidence, 9), labels))
    clusters, sizes = np.unique(labels, return_counts=True)
    # numbers of cells are proportional to sizes, from one per cluster to one per sample
    n_cells = np.clip(sizes * max_cells // len(labels), 1, sizes)
    # cell j of a cluster begins at its sample j * size / n_cells, rounded up
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
    """Draw a matrix, with its first row on top, and a scale of its colours; return both.

    `x` and `y` are the edges of cells. `label` and `extend` are those of matplotlib's colour
    bar.
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


def points_outside(ax):
    """Return transforms from points at an edge of the axes to positions in the figure.

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
    """Return the shorter side of axes in points, without their current margins."""
    ax.get_tightbbox()  # makes axes shrink to their margins
    return float(min(ax.bbox.size)) * 72 / ax.figure.dpi
