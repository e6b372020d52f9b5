"""Picture of samples in a row: how much of each is in every cluster."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

import nmfcluster.display.style as look
from nmfcluster._arrays.tables import read_table
from nmfcluster.display.cells import divide_into_cells, means_of_rows


@dataclass(kw_only=True, repr=False, eq=False)
class MembershipDisplay:
    """Picture of memberships: a row for every cluster, a column for every sample.

    Samples are ordered by the cluster that they are most in, and there by how much. A sure
    clustering shows dark steps and little beside them; where two clusters share samples, the end of
    the one's step is dark in the other's row, too. Of many samples a cell shows the mean of some
    that follow each other.

    `from_estimator` and `from_matrix` compute the cells and draw them; the constructor takes cells.

    Parameters
    ----------
    shares : ndarray of shape (n_clusters, n_cells)
        Mean membership of the samples of every cell.
    cell_sizes : ndarray of shape (n_cells,), int
        Number of samples of every cell.
    order : ndarray of shape (n_samples,), int, default=None
        Samples in the order of the picture.

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
    ConsensusMatrixDisplay : Shows pairs of samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import MembershipDisplay
    >>> model = NMFConsensus(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> display = MembershipDisplay.from_estimator(model, max_cells=30)
    >>> display.shares.shape
    (3, 29)
    >>> display.figure_.savefig("memberships.png")  # doctest: +SKIP
    """

    shares: np.ndarray
    cell_sizes: np.ndarray
    order: np.ndarray | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_cells: int = 400, ax: Any = None) -> Self:
        """Show the memberships of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of this package
            A fitted one.
        max_cells : int, default=400
            Largest number of cells in a row; but every cluster has one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        MembershipDisplay
            The picture, drawn.
        """
        cure = "from_matrix takes memberships of others, such as predict_proba returns"
        look.check_fitted(estimator, "membership_", "an estimator of nmfcluster", cure)
        return cls.from_matrix(estimator.membership_, max_cells=max_cells, ax=ax)

    @classmethod
    def from_matrix(cls, memberships: Any, *, max_cells: int = 400, ax: Any = None) -> Self:
        """Show memberships, whoever made them: `predict_proba` of a mixture, say.

        Parameters
        ----------
        memberships : array-like of shape (n_samples, n_clusters)
            At least 0. Rows are scaled to sum to 1; a row of zeros is in no cluster, and comes
            last.
        max_cells : int, default=400
            Largest number of cells in a row; but every cluster has one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        MembershipDisplay
            The picture, drawn.

        Examples
        --------
        >>> from nmfcluster.display import MembershipDisplay
        >>> display = MembershipDisplay.from_matrix([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        >>> display.order
        array([0, 2, 1])
        """
        P = read_table(memberships, "memberships", accept_sparse=False, dtype=np.float64)
        if P.min() < 0:
            raise ValueError(f"memberships must be at least 0, got {P.min():.3g}.")
        sums = P.sum(axis=1, keepdims=True)
        P = np.divide(P, sums, out=np.zeros_like(P), where=sums > 0)
        labels = np.where(sums[:, 0] > 0, P.argmax(axis=1), P.shape[1])
        order, cells, _ = divide_into_cells(labels, P.max(axis=1), max_cells)
        shares, sizes = means_of_rows(P[order], cells[order]).T, np.bincount(cells)
        return cls(shares=shares, cell_sizes=sizes, order=order).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        MembershipDisplay
            Itself.
        """
        n_clusters = len(self.shares)
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, min(0.24 * n_clusters + 1.1, 9.0)))
        x, y = np.concatenate([[0], np.cumsum(self.cell_sizes)]), np.arange(n_clusters + 1)
        self.mesh_ = look.draw_cells(self.ax_, x, y, self.shares, cmap="Blues", vmin=0, vmax=1)
        self.ax_.set(xlabel="samples", ylabel="cluster")
        line = 1.25 * look.FONT * n_clusters / look.height_in_points(self.ax_)  # in clusters
        named = range(0, n_clusters, int(np.ceil(line)))  # names that would overlap are left out
        self.ax_.set_yticks([c + 0.5 for c in named], map(str, named), fontsize=look.FONT)
        self.ax_.tick_params(axis="y", length=0)
        label = ("mean " if self.cell_sizes.max() > 1 else "") + "membership"
        self.colorbar_ = look.add_colorbar(self.mesh_, label)
        return self
