"""Pictures of samples in a row: how much of each is in every cluster, and where it moves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import linear_sum_assignment

import nmfcluster.display.style as look
from nmfcluster._arrays.arguments import counted, shown
from nmfcluster._arrays.labels import distinct_rows, encode
from nmfcluster._arrays.tables import read_table
from nmfcluster.display.cells import divide_into_cells, means_of_rows
from nmfcluster.metrics.agreement import shared_counts


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


@dataclass(kw_only=True, repr=False, eq=False)
class ClusterTrackingDisplay:
    """Picture of how samples move between clusters as the number of clusters grows.

    A row is a clustering, a column a sample, a colour a cluster. A cluster keeps its colour from
    one row to the next where it keeps most of its samples, and a new one has a new colour. Where
    clusters are split and no more, colours nest; samples that change between old clusters from row
    to row belong to none of them for sure, and `moved_` counts these.

    `from_estimators` reads labels and draws them; the constructor takes labels.

    Parameters
    ----------
    labels : mapping of name to array-like of shape (n_samples,)
        Labels of the same samples, as `fit_predict` of any clusterer returns them, in the order of
        the rows: integers or strings; a negative number, None or NaN: in no cluster.

    Attributes
    ----------
    order_ : ndarray of shape (n_samples,), int
        Samples in the order of the picture: by their cluster in the first row, then in the second,
        and so on.
    numbers_ : ndarray of shape (n_rows, n_samples), int
        Clusters of the samples, numbered alike in all rows; -1: in none.
    moved_ : dict of float
        Share of the samples whose number is not that of the row before, and not a new one.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    mesh_ : matplotlib QuadMesh
        The cells.

    See Also
    --------
    nmfcluster.model_selection.choose_n_clusters : Chooses the number of clusters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import ClusterTrackingDisplay
    >>> X = load_iris().data
    >>> models = [NMFConsensus(k, n_estimators=20, random_state=0).fit(X) for k in (2, 3, 4)]
    >>> display = ClusterTrackingDisplay.from_estimators(models)
    >>> list(display.moved_)
    ['3 clusters', '4 clusters']
    >>> rows = {"two": [0, 0, 1, 1, 1], "three": [1, 1, 2, 2, 0]}
    >>> ClusterTrackingDisplay(labels=rows).plot().numbers_
    array([[0, 0, 1, 1, 1],
           [0, 0, 1, 1, 2]])
    >>> display.figure_.savefig("tracking.png")  # doctest: +SKIP
    """

    labels: Mapping[Any, Any]

    @classmethod
    def from_estimators(cls, estimators: Iterable[Any], *, ax: Any = None) -> Self:
        """Show the clusters of estimators that were fitted to the same samples.

        Parameters
        ----------
        estimators : iterable of clusterers with `labels_`
            Fitted ones, of this package or another, with different numbers of clusters, in the
            order of the rows.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterTrackingDisplay
            The picture, drawn.
        """
        rows: dict[str, Any] = {}
        for estimator in look.listed(estimators, "estimators"):
            who, cure = "a clusterer with labels_", "the constructor takes labels of others"
            look.check_fitted(estimator, "labels_", who, cure)
            name = counted(len(set(estimator.labels_.tolist()) - {-1}), "cluster")
            if name in rows:
                raise ValueError(
                    f"estimators must differ in n_clusters, got two of {name}: leave one out."
                )
            rows[name] = estimator.labels_
        return cls(labels=rows).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterTrackingDisplay
            Itself.
        """
        if not isinstance(self.labels, Mapping):
            raise TypeError(f"labels must be a dict of labels, got {shown(self.labels)}.")
        names = [str(name) for name in self.labels]
        if not names:
            raise ValueError("labels must hold at least one clustering, got none.")
        codes, _ = encode(list(self.labels.values()), "labels")
        self.numbers_, moved = _numbered_alike(codes.T)
        self.moved_ = dict(zip(list(self.labels)[1:], moved, strict=True))
        first, owner, counts = distinct_rows(self.numbers_.T)
        kinds = self.numbers_[:, first]
        along = np.lexsort(kinds[::-1])  # the first row is the first key
        self.order_ = np.argsort(np.argsort(along)[owner], kind="stable")
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, 0.8 + 0.45 * len(names)))
        edges = np.concatenate([[0], np.cumsum(counts[along])])
        rows = np.arange(len(names) + 1)
        cells = kinds[:, along]
        self.mesh_ = look.draw_cells(self.ax_, edges, rows, cells, **_colours_of(cells))
        self.ax_.set(xlabel="samples", yticks=rows[:-1] + 0.5, yticklabels=names)
        self.ax_.tick_params(axis="y", length=0)
        for row in rows[1:-1]:
            self.ax_.axhline(row, color="white", linewidth=2)
        return self


def _colours_of(numbers: np.ndarray) -> dict[str, Any]:
    """Return the colour map and the norm of cluster numbers; -1, in no cluster, is grey."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    many = max(int(numbers.max()) + 1, 1)
    cmap = ListedColormap([look.UNKNOWN["facecolor"], *map(look.colour_of, range(many))])
    return {"cmap": cmap, "norm": BoundaryNorm(np.arange(-1.5, many), many + 1)}


def _numbered_alike(rows: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return clusters numbered so that one keeps its number while it keeps most of its samples.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_samples), int
        -1: in no cluster.

    Returns
    -------
    numbers : ndarray of shape (n_rows, n_samples), int
    moved : list of float
        Share of the samples, for every row but the first, that came to a number that was there
        before and is another.
    """
    numbers, moved = [rows[0]], []
    used = int(rows[0].max()) + 1
    for row in rows[1:]:
        k, before = int(row.max()) + 1, numbers[-1]
        both = (row >= 0) & (before >= 0)
        shared = shared_counts(row[both], before[both], (k, used))
        new, old = linear_sum_assignment(shared, maximize=True)
        name = np.full(k + 1, -1)  # the last is that of samples in no cluster
        kept = shared[new, old] > 0
        name[new[kept]] = old[kept]
        fresh = np.flatnonzero(name[:k] < 0)
        name[fresh] = used + np.arange(len(fresh))
        numbers.append(name[row])
        moved.append(float(np.mean(both & (numbers[-1] != before) & (numbers[-1] < used))))
        used += len(fresh)
    return np.array(numbers), moved
