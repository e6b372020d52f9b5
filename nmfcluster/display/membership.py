"""Picture of soft clusters: how much of every sample is in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

import nmfcluster.display.style as look
from nmfcluster._arrays.storage import group_indicator

_ROW, _REST = 0.24, 1.1  # inches: height of a cluster, and of what is above and below all
_TALLEST = 9.0  # inches


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
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.

    Attributes
    ----------
    shares, cell_sizes, order, names
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
    ConsensusMatrixDisplay : Shows pairs of samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import MembershipDisplay
    >>> model = NMFConsensus(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> display = MembershipDisplay.from_estimator(model, max_cells=30)
    >>> display.shares.shape
    (3, 30)
    >>> display.figure_.savefig("memberships.png")  # doctest: +SKIP
    """

    shares: np.ndarray
    cell_sizes: np.ndarray
    order: np.ndarray | None = None
    names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        max_cells: int = 400,
        ax: Any = None,
        **style: Any,
    ) -> MembershipDisplay:
        """Show the memberships of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of this package, or one that has `predict_proba`
            A fitted one: of others, a mixture or a classifier, say.
        X : array-like of shape (n_samples, n_features), default=None
            Samples to ask `predict_proba`, or `transform` of an estimator of this package, about;
            those of the fit by default, which others do not keep.
        max_cells : int, default=400
            Largest number of cells in a row, unless there are more clusters than that.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `cmap`, `colorbar`.

        Returns
        -------
        MembershipDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` has no memberships, or `max_cells` is not an int.
        ValueError
            If `X` is None for an estimator that keeps none, or `max_cells` is below 1.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        kept = hasattr(type(estimator), "fit") and hasattr(estimator, "membership_")
        tell = getattr(estimator, "predict_proba", None)
        if tell is None and (kept or hasattr(type(estimator), "_extend")):
            tell = estimator.transform
        if tell is None:
            raise TypeError(
                "estimator must be one of nmfcluster, or have predict_proba, got "
                f"{type(estimator).__name__}: from_matrix takes memberships of others, as "
                "their transform may return."
            )
        check_is_fitted(estimator)
        if X is None and not kept:
            raise ValueError(
                f"X must be given: {type(estimator).__name__} keeps no memberships of its fit."
            )
        P = estimator.membership_ if X is None else tell(X)
        return cls.from_matrix(P, max_cells=max_cells, ax=ax, **style)

    @classmethod
    def from_matrix(
        cls,
        memberships: Any,
        *,
        names: Sequence[str] | None = None,
        max_cells: int = 400,
        ax: Any = None,
        **style: Any,
    ) -> MembershipDisplay:
        """Show memberships, whoever made them.

        Parameters
        ----------
        memberships : array-like of shape (n_samples, n_clusters)
            At least 0. Rows are scaled to sum to 1; a row of zeros is in no cluster, and comes
            last.
        names : sequence of str, default=None
            Names of the clusters; their numbers by default.
        max_cells : int, default=400
            Largest number of cells in a row, unless there are more clusters than that.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `cmap`, `colorbar`.

        Returns
        -------
        MembershipDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `max_cells` is not an int.
        ValueError
            If `memberships` is not as described, `names` has another length, or `max_cells` is
            below 1.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from nmfcluster.display import MembershipDisplay
        >>> display = MembershipDisplay.from_matrix([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        >>> display.order
        array([0, 2, 1])
        """
        P = check_array(memberships, dtype=np.float64, input_name="memberships")
        if P.min() < 0:
            raise ValueError(f"memberships must be at least 0, got {P.min():.3g}.")
        look.check_names(names, P.shape[1])
        sums = P.sum(axis=1, keepdims=True)
        P = np.divide(P, sums, out=np.zeros_like(P), where=sums > 0)
        labels = np.where(sums[:, 0] > 0, P.argmax(axis=1), P.shape[1])
        order, groups, _ = look.divide_into_cells(labels, P.max(axis=1), max_cells)
        sizes = np.bincount(groups)
        means = group_indicator(groups).T @ P[order] / np.sqrt(sizes)[:, None]
        display = cls(shares=means.T, cell_sizes=sizes, order=order, names=names)
        return display.plot(ax, **style)

    def plot(
        self, ax: Any = None, *, cmap: Any = "Blues", colorbar: bool = True
    ) -> MembershipDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        cmap : str or matplotlib Colormap, default="Blues"
            Colours from 0 to 1.
        colorbar : bool, default=True
            Whether to show the scale.

        Returns
        -------
        MembershipDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n_clusters = len(self.shares)
        height = min(_ROW * n_clusters + _REST, _TALLEST)
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, height))
        x, y = np.concatenate([[0], np.cumsum(self.cell_sizes)]), np.arange(n_clusters + 1)
        colours = {"cmap": cmap, "vmin": 0, "vmax": 1}
        self.mesh_ = look.draw_cells(self.ax_, x, y, self.shares, **colours)
        look.count_along(self.ax_.xaxis)
        self.ax_.set(xlabel="samples", ylabel="cluster")
        line = 1.25 * look.FONT * n_clusters / look.height_in_points(self.ax_)  # in clusters
        every = int(np.ceil(line))
        named = range(0, n_clusters, every)
        names = [str(c) if self.names is None else str(self.names[c]) for c in named]
        self.ax_.set_yticks([c + 0.5 for c in named], names, fontsize=look.FONT)
        self.ax_.tick_params(axis="y", length=0)
        label = ("mean " if self.cell_sizes.max() > 1 else "") + "membership"
        self.colorbar_ = look.add_colorbar(self.mesh_, "neither", label) if colorbar else None
        return self
