"""Picture of how samples move between clusters as the number of clusters grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import nmfcluster.display.style as look
from nmfcluster._arrays.labels import distinct_rows, encode

_WANTED = look.Wanted(
    "labels_",
    "a clusterer with labels_",
    "from_predictions takes labels of others",
    any_will_do=True,
)


@dataclass(kw_only=True, repr=False, eq=False)
class ClusterTrackingDisplay:
    """Picture of how samples move between clusters as the number of clusters grows.

    A row is a clustering, a column a sample, a colour a cluster. A cluster keeps its colour from
    one row to the next where it keeps most of its samples, and a new one has a new colour. Where
    clusters are split and no more, colours nest; samples that change between old clusters from row
    to row belong to none of them for sure, and `moved_` counts these.

    `from_estimator`, `from_estimators` and `from_predictions` draw the picture; the constructor
    takes labels.

    Parameters
    ----------
    labels : mapping of name to array-like of shape (n_samples,)
        Labels of the same samples, in the order of the rows; a negative number: in no cluster.

    Attributes
    ----------
    labels : mapping
        As given.
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
    ConsensusCDFDisplay : Compares the numbers of clusters by how much partitions agree.

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
    >>> display.figure_.savefig("tracking.png")  # doctest: +SKIP
    """

    labels: Mapping[Any, Any]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ClusterTrackingDisplay:
        """Show the clusters of one fitted estimator, in a single row.

        Parameters
        ----------
        estimator : clusterer with `labels_`
            A fitted one, of this package or another.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterTrackingDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` has no labels.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        return cls.from_estimators([estimator], ax=ax)

    @classmethod
    def from_estimators(
        cls, estimators: Iterable[Any], *, ax: Any = None
    ) -> ClusterTrackingDisplay:
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

        Raises
        ------
        TypeError
            If an estimator has no labels.
        ValueError
            If there is none, two have one number of clusters, or numbers of samples differ.
        NotFittedError
            If an estimator is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        found = look.by_n_clusters(estimators, _WANTED)
        return cls(labels={name: model.labels_ for name, model in found.items()}).plot(ax)

    @classmethod
    def from_predictions(
        cls, labels: Mapping[Any, Any], *, ax: Any = None
    ) -> ClusterTrackingDisplay:
        """Show clusterings, whoever made them.

        Parameters
        ----------
        labels : mapping of name to array-like of shape (n_samples,)
            Clusters, as `fit_predict` of any clusterer returns them, in the order of the rows:
            integers or strings; a negative number, None or NaN: in no cluster.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterTrackingDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `labels` is no mapping, or labels are neither integers nor strings.
        ValueError
            If there is none, or numbers of samples differ.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from nmfcluster.display import ClusterTrackingDisplay
        >>> rows = {"two": [0, 0, 1, 1, 1], "three": [1, 1, 2, 2, 0]}
        >>> ClusterTrackingDisplay.from_predictions(rows).numbers_
        array([[0, 0, 1, 1, 1],
               [0, 0, 1, 1, 2]])
        """
        if not isinstance(labels, Mapping):
            raise TypeError(
                f"labels must be a mapping of names to labels, got {type(labels).__name__}."
            )
        return cls(labels=labels).plot(ax)

    def plot(self, ax: Any = None) -> ClusterTrackingDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterTrackingDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
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
        self.mesh_ = look.draw_cells(
            self.ax_, edges, rows, cells, **look.colours_of_clusters(cells)
        )
        self.ax_.set_yticks(rows[:-1] + 0.5, names)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("samples")
        for row in rows[1:-1]:
            self.ax_.axhline(row, color="white", linewidth=2)
        look.count_along(self.ax_.xaxis)
        return self


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
        shared = np.zeros((k, used))
        np.add.at(shared, (row[both], before[both]), 1)
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
