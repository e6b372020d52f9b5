"""Picture of a consensus: the co-association matrix, its samples ordered by cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils import check_consistent_length

from nmfcluster._utils.labels import encode_labels
from nmfcluster._utils.storage import group_indicator
from nmfcluster._utils.validation import normalize_weights
from nmfcluster.display.style import (
    FONT,
    LEGEND,
    LINE,
    UNKNOWN,
    Display,
    check_fitted,
    cluster_colour,
    divide_into_cells,
    draw_matrix,
    points_outside,
    shorter_side,
)
from nmfcluster.metrics import confidence, consensus_matrix

_CO_ASSOCIATION = "co-association"  # whose colours run from 0 to 1
# the strip of colours of clusters, in points from the edge of the axes
_STRIP_LEFT = -11.0
_STRIP_WIDTH = 8.0


@dataclass(kw_only=True, repr=False, eq=False)
class ConsensusMatrixDisplay(Display):
    """Picture of a co-association matrix, its samples ordered by cluster.

    A good consensus has dark blocks on the diagonal and little outside them. Two clusters that
    the partitions often join share a dark rectangle, and a cluster on which the partitions disagree
    has a pale block. If there are many samples, a cell shows the mean over the pairs of two groups
    of samples. Every group lies within one cluster, and the axes count samples.

    `from_estimator` and `from_partitions` compute the cells and draw them; the constructor takes
    cells.

    Parameters
    ----------
    matrix : ndarray of shape (n_cells, n_cells)
        Mean co-association of the samples of two cells; NaN if they were never seen together.
    cell_sizes : ndarray of shape (n_cells,), int
        Number of samples of every cell.
    cell_labels : ndarray of shape (n_cells,), int
        Cluster of every cell, in increasing order.
    order : ndarray of shape (n_samples,), int, default=None
        Samples in the order of the picture.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.
    value_name : str, default="co-association"
        What the colours show. The colours of a co-association run from 0 to 1, and those of any
        other value from 0 to the largest value off the diagonal.

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

    See Also
    --------
    nmfcluster.NMFConsensus.consensus_matrix : The numbers, for some samples or all.
    nmfcluster.NMFMetaCluster.consensus_matrix : The same for the runs of another estimator.

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
        """Show how often a fitted estimator puts two samples together.

        For an `NMFConsensus` or an `NMFMetaCluster`, this is the co-association from which it made
        its clusters, or the similarity with ``affinity="precomputed"``. For any other estimator it
        is the co-membership: the probability that two samples are in the same cluster, if the
        cluster of each is drawn from its row of `membership_`.

        Samples are ordered by cluster, and within a cluster by decreasing confidence, or by
        decreasing membership if the estimator has no confidence. Samples in no cluster come last.

        Parameters
        ----------
        estimator : estimator of this package
            A fitted estimator.
        max_cells : int, default=400
            Largest number of cells in a row; every cluster has at least one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusMatrixDisplay
            The picture, drawn.
        """
        estimator = check_fitted(
            estimator,
            "membership_",
            expected="an estimator of nmfcluster",
            cure="from_partitions takes clusterings of others, "
            "NMFConsensus(affinity='precomputed') a similarity",
        )
        # samples in no cluster are a last one
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
            weights = getattr(estimator, "weights_", None)  # an NMFMetaCluster has none
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
        """Show the co-association of partitions, ordered by any labels, such as known classes.

        Parameters
        ----------
        partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
            As `NMFConsensus.fit` takes them.
        labels : array-like of shape (n_samples,)
            Cluster or class of every sample, an integer or a string. A negative number marks a
            sample in no cluster.
        weights : array-like of shape (n_partitions,), default=None
            Nonnegative weights of the partitions; equal by default.
        max_cells : int, default=400
            Largest number of cells in a row; every cluster has at least one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusMatrixDisplay
            The picture, drawn.

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
        labels = np.where(labels < 0, len(values), labels)  # as those of an estimator
        cells, display = divide_into_cells(labels, certain, max_cells)
        matrix = consensus_matrix(codes, weights, cells)
        return cls(matrix=matrix, names=names[: labels.max() + 1], **display).plot(ax)

    def _draw(self, ax):
        ax = self._set_axes(ax, (6.4, 5.4), has_margins=True)
        edges = np.concatenate([[0], np.cumsum(self.cell_sizes)])
        values = np.ma.masked_invalid(self.matrix)
        largest = 1.0
        extend = "neither"
        if self.value_name != _CO_ASSOCIATION:
            # a sample's similarity to itself may be far above all others
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
    """Frame clusters, mark them at the side, and name those for which there is room."""
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
    if len(begin) <= 100:  # more frames would hide what they frame
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
