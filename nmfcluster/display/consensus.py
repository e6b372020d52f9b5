"""Picture of a consensus: the co-association matrix, its samples ordered by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

import nmfcluster.display.style as look
from nmfcluster._arrays.arguments import normalised_weights
from nmfcluster._arrays.labels import encode
from nmfcluster.display.consensus_cells import SHARE, Pairs, cells_of, in_own_order, of_estimator
from nmfcluster.partitions.ensemble import confidence, consensus_matrix

_WANTED = look.Wanted(
    "labels_",
    "an estimator of nmfcluster",
    "from_partitions takes several clusterings of others, from_matrix their similarity",
)
_ROUNDING = 1e-6  # by which a share may exceed 1
_STRIP = (-11.0, -3.0)  # points from the axes: edges of the strip of colours
_NAMES = -24.0  # points from the axes: names of clusters, far enough for lines that lead to them
_ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.3, "borderpad": 0}
_MOST_OUTLINES = 100  # clusters; with more of them the outlines would hide what they frame


@dataclass(kw_only=True, repr=False, eq=False)
class ConsensusMatrixDisplay:
    """Picture of a co-association matrix, its samples ordered by cluster.

    A good consensus shows dark blocks on the diagonal and little outside them: two clusters that
    the partitions often join share a dark rectangle, and a cluster that they do not agree upon has
    a pale block. Of many samples a cell shows the mean over the pairs of two groups; every group
    lies within one cluster, and the axes count samples.

    `from_estimator`, `from_partitions` and `from_matrix` compute the cells and draw them; the
    constructor takes cells.

    Parameters
    ----------
    matrix : ndarray of shape (n_cells, n_cells)
        Mean co-association of the samples of two cells; NaN: never seen together.
    cell_sizes : ndarray of shape (n_cells,), int
        Number of samples of every cell.
    cell_labels : ndarray of shape (n_cells,), int
        Cluster of every cell, in increasing order.
    order : ndarray of shape (n_samples,), int, default=None
        Samples in the order of the picture.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.
    value_name : str, default="co-association"
        What the colours show.

    Attributes
    ----------
    matrix, cell_sizes, cell_labels, order, names, value_name
        As given.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    mesh_ : matplotlib QuadMesh
        The cells.
    colorbar_ : matplotlib Colorbar or None
        The scale of colours.

    See Also
    --------
    nmfcluster.NMFConsensus.consensus_matrix : The numbers, for some samples or all.
    nmfcluster.NMFMetaCluster.consensus_matrix : The same of the runs of another estimator.
    LossCurveDisplay : Shows the runs behind the clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import ConsensusMatrixDisplay
    >>> model = NMFConsensus(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> display = ConsensusMatrixDisplay.from_estimator(model, max_cells=30)
    >>> display.matrix.shape
    (30, 30)
    >>> display.figure_.savefig("consensus.png")  # doctest: +SKIP
    """

    matrix: np.ndarray
    cell_sizes: np.ndarray
    cell_labels: np.ndarray
    order: np.ndarray | None = None
    names: Sequence[str] | None = None
    value_name: str = SHARE

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_cells: int = 400, ax: Any = None, **style: Any
    ) -> ConsensusMatrixDisplay:
        """Show what a fitted estimator says of pairs of samples.

        That is the co-association from which an `NMFConsensus` or an `NMFMetaCluster` made its
        clusters, or the similarity with ``affinity="precomputed"``. Of any other estimator it is
        the co-membership: the chance that two samples are in the same cluster, if each is in one
        by its row of `membership_`.

        Samples are ordered by cluster, and within a cluster by decreasing confidence, or membership
        in it; those in no cluster come last.

        Parameters
        ----------
        estimator : estimator of this package
            A fitted one.
        max_cells : int, default=400
            Largest number of cells in a row, unless there are more clusters than that.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `cmap`, `colorbar`, `strip`.

        Returns
        -------
        ConsensusMatrixDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is none of this package, or `max_cells` is not an int.
        ValueError
            If `max_cells` is below 1.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        _WANTED.check(estimator)
        return cls(**of_estimator(estimator, max_cells)).plot(ax, **style)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        labels: Any,
        *,
        value_name: str = SHARE,
        max_cells: int = 400,
        ax: Any = None,
        **style: Any,
    ) -> ConsensusMatrixDisplay:
        """Show a consensus matrix, or another similarity, that was made elsewhere.

        Parameters
        ----------
        matrix : {array-like, sparse matrix} of shape (n_samples, n_samples)
            Symmetric, nonnegative; NaN in an array: not known.
        labels : array-like of shape (n_samples,)
            Cluster or class of every sample: integers or strings.
        value_name : str, default="co-association"
            What the colours show. Those of a co-association run from 0 to 1, those of anything
            else up to the largest value beside the diagonal.
        max_cells : int, default=400
            Largest number of cells in a row, unless there are more clusters than that.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `cmap`, `colorbar`, `strip`.

        Returns
        -------
        ConsensusMatrixDisplay
            The picture, drawn.

        Raises
        ------
        ValueError
            If `matrix` is not as described, lengths differ, a co-association is above 1, or
            `max_cells` is below 1.
        TypeError
            If `max_cells` is not an int.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.metrics.pairwise import rbf_kernel
        >>> from nmfcluster.display import ConsensusMatrixDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> display = ConsensusMatrixDisplay.from_matrix(
        ...     rbf_kernel(X), y, value_name="similarity", max_cells=30
        ... )
        >>> display.matrix.shape
        (30, 30)
        """
        pairs, labels = Pairs(matrix), column_or_1d(labels)
        if value_name == SHARE and pairs.largest > 1 + _ROUNDING:
            raise ValueError(
                f"matrix must have entries in [0, 1], got {pairs.largest:.3g}: where it is no "
                f"{SHARE}, give value_name='similarity', or what it is."
            )
        if len(labels) != len(pairs):
            raise ValueError(f"labels must be {len(pairs)}, one a sample, got {len(labels)}.")
        names, clusters = np.unique(labels, return_inverse=True)
        order, groups, cells = cells_of(clusters, pairs.confidence(clusters), max_cells)
        means = pairs.of_cells(in_own_order(order, groups))
        named = [str(name) for name in names]
        return cls(matrix=means, names=named, value_name=value_name, **cells).plot(ax, **style)

    @classmethod
    def from_partitions(
        cls,
        partitions: Any,
        labels: Any,
        *,
        weights: Any = None,
        max_cells: int = 400,
        ax: Any = None,
        **style: Any,
    ) -> ConsensusMatrixDisplay:
        """Show the co-association of partitions, ordered by any labels, such as known classes.

        Parameters
        ----------
        partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
            As `NMFConsensus.fit` takes them; a negative number, NaN or None: not seen.
        labels : array-like of shape (n_samples,)
            Cluster or class of every sample: integers or strings.
        weights : array-like of shape (n_partitions,), default=None
            Nonnegative weights of the partitions; equal by default.
        max_cells : int, default=400
            Largest number of cells in a row, unless there are more clusters than that.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `cmap`, `colorbar`, `strip`.

        Returns
        -------
        ConsensusMatrixDisplay
            The picture, drawn.

        Raises
        ------
        ValueError
            If lengths differ, or a parameter is not as described.
        TypeError
            If the labels of a partition are neither integers nor strings, or `max_cells` is not an
            int.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from nmfcluster.datasets import make_partitions
        >>> from nmfcluster.display import ConsensusMatrixDisplay
        >>> partitions, y = make_partitions((90, 8, 2), random_state=0)
        >>> display = ConsensusMatrixDisplay.from_partitions(partitions, y, max_cells=10)
        >>> display.cell_labels
        array([0, 0, 0, 0, 0, 0, 0, 0, 1, 2])
        """
        codes, _ = encode(partitions, "partitions")
        labels = column_or_1d(labels)
        check_consistent_length(codes, labels)
        weights = normalised_weights(weights, codes.shape[1])
        names, labels = np.unique(labels, return_inverse=True)
        order, groups, cells = cells_of(labels, confidence(codes, labels, weights), max_cells)
        matrix = consensus_matrix(codes[order], weights, groups)
        return cls(matrix=matrix, names=[str(name) for name in names], **cells).plot(ax, **style)

    def plot(
        self, ax: Any = None, *, cmap: Any = "Blues", colorbar: bool = True, strip: bool = True
    ) -> ConsensusMatrixDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours from 0 up.
        colorbar : bool, default=True
            Whether to show the scale.
        strip : bool, default=True
            Whether to mark the clusters at the side.

        Returns
        -------
        ConsensusMatrixDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, 5.4))
        edges = np.concatenate([[0], np.cumsum(self.cell_sizes)])
        largest, overflow = self._largest_colour()
        values = np.ma.masked_invalid(self.matrix)
        colours = {"cmap": cmap, "vmin": 0, "vmax": largest}
        self.mesh_ = look.draw_cells(self.ax_, edges, edges, values, **colours)
        self.ax_.set(aspect="equal", xlabel="samples", ylabel="cluster" if strip else "samples")
        self.ax_.patch.set(**look.UNKNOWN, linewidth=0)
        look.count_along(self.ax_.xaxis)
        self._outline_clusters(edges)
        if strip:
            self._draw_strip(edges)
        else:
            look.count_along(self.ax_.yaxis)
        label = ("mean " if self.cell_sizes.max() > 1 else "") + self.value_name
        self.colorbar_ = look.add_colorbar(self.mesh_, overflow, label) if colorbar else None
        if np.isnan(self.matrix).any():
            self._explain_unknown()
        return self

    def _largest_colour(self) -> tuple[float, str]:
        """Return the value of the darkest colour, and at which end some cell lies beyond it."""
        if self.value_name == SHARE:
            return 1.0, "neither"
        others = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        largest = float(np.nanmax(others)) if np.isfinite(others).any() else 0.0
        highest = float(np.nanmax(self.matrix))
        if largest <= 0:  # there is nothing but the diagonal
            return highest, "neither"
        return largest, "max" if highest > largest * (1 + 1e-9) else "neither"

    def _clusters(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the clusters that have cells, and where each begins and ends."""
        clusters, first = np.unique(self.cell_labels, return_index=True)
        begin = edges[first]
        return clusters, begin, np.append(begin[1:], edges[-1])

    def _outline_clusters(self, edges: np.ndarray) -> None:
        from matplotlib.patches import Rectangle

        clusters, begin, end = self._clusters(edges)
        if len(clusters) > _MOST_OUTLINES:
            return
        for a, b in zip(begin, end, strict=True):
            frame = Rectangle((a, a), b - a, b - a, fill=False, edgecolor=look.LINE, linewidth=0.7)
            self.ax_.add_patch(frame)

    def _draw_strip(self, edges: np.ndarray) -> None:
        """Mark the clusters beside the matrix and name them, moving names that would overlap."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Rectangle

        clusters, begin, end = self._clusters(edges)
        beside, _ = look.points_outside(self.ax_)
        for i, (a, b) in enumerate(zip(begin, end, strict=True)):
            box = Rectangle((_STRIP[0], a), _STRIP[1] - _STRIP[0], b - a, transform=beside)
            box.set(facecolor=look.colour_of(i), linewidth=0, clip_on=False)
            self.ax_.add_patch(box)
        line = 1.25 * look.FONT * edges[-1] / look.height_in_points(self.ax_)  # in samples
        named = look.to_name(end - begin, line, edges[-1])
        begin, end = begin[named], end[named]
        places = look.spread((begin + end) / 2, end - begin, line, edges[-1])
        names = [str(c) if self.names is None else self.names[c] for c in clusters[named]]
        self.ax_.set_yticks(places, names)
        self.ax_.tick_params(axis="y", length=0, pad=-_NAMES, labelsize=look.FONT)
        for place, anchor in zip(places, np.clip(places, begin, end), strict=True):
            x = (_STRIP[0], _NAMES + 2, _NAMES)
            leader = Line2D(x, (anchor, place, place), color=look.LINE, linewidth=0.6)
            leader.set(transform=beside, clip_on=False)
            self.ax_.add_line(leader)

    def _explain_unknown(self) -> None:
        from matplotlib.patches import Patch

        unknown = Patch(**look.UNKNOWN, linewidth=0, label="never seen together")
        self.ax_.legend(handles=[unknown], **_ABOVE, **look.LEGEND)
