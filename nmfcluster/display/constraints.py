"""Picture of pairwise constraints: how many are satisfied and violated, and between what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import nmfcluster.display.style as look
from nmfcluster._arrays.labels import encode
from nmfcluster.constraints import PairwiseConstraints

_WANTED = look.Wanted(
    "constraints_", "an SSNMFClusterer", "from_predictions takes labels of any clusterer"
)
_SMALLEST_FONT = 5.0  # points: smaller numbers cannot be read
_LETTER = 0.62  # heights of the font: width of a digit
_CELL = 0.28  # inches: side of a cell, for numbers of three letters
_GAP = 0.4  # cells: between the two triangles, so that their edges are told apart


@dataclass(kw_only=True, repr=False, eq=False)
class ConstraintDisplay:
    """Picture of how many constraints a clustering satisfies and violates, and where.

    Two triangles of cells share their rows, the clusters. The lower left one counts must-link
    pairs: its edge those within a cluster, which are satisfied, and the cells below those between
    two clusters, which are violated. The upper right one counts cannot-link pairs: its edge those
    within a cluster, which are violated, and the cells above those between two clusters, which are
    satisfied. A blue cell counts satisfied pairs, an orange one violated pairs. Two clusters that
    many violated must-links join might be one; a cluster with many violated cannot-links might be
    two.

    `from_estimator` and `from_predictions` count the pairs and draw them; the constructor takes
    counts.

    Parameters
    ----------
    must_link : ndarray of shape (n_clusters, n_clusters), int
        Number of must-link pairs with a sample in each of two clusters; symmetric.
    cannot_link : ndarray of shape (n_clusters, n_clusters), int
        The same of cannot-link pairs.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.
    unassigned : bool, default=False
        Whether the last row counts the samples that are in no cluster: all their pairs are
        violated.

    Attributes
    ----------
    must_link, cannot_link, names, unassigned
        As given.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    must_link_cells_, cannot_link_cells_ : matplotlib PolyCollection
        The cells of the two triangles, row by row; their values are the numbers of pairs, with a
        minus where these are violated.
    texts_ : list of matplotlib Text
        Numbers in the cells, must-links first; empty where there is no room.

    See Also
    --------
    nmfcluster.SSNMFClusterer : Clusters under constraints.
    nmfcluster.PairwiseConstraints.satisfied : Which pairs are satisfied.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> from nmfcluster.display import ConstraintDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    >>> model = SSNMFClusterer(n_clusters=3, random_state=0).fit(X, constraints=pairs)
    >>> display = ConstraintDisplay.from_estimator(model)
    >>> display.must_link.tolist()
    [[11, 0, 0], [0, 9, 0], [0, 0, 7]]
    >>> display.cannot_link.diagonal().tolist()  # within clusters: violated
    [1, 0, 0]
    >>> display.figure_.savefig("constraints.png")  # doctest: +SKIP
    """

    must_link: np.ndarray
    cannot_link: np.ndarray
    names: Sequence[str] | None = None
    unassigned: bool = False

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **style: Any) -> ConstraintDisplay:
        """Show which of its constraints a fitted estimator satisfies.

        Parameters
        ----------
        estimator : SSNMFClusterer
            A fitted one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `include_values`.

        Returns
        -------
        ConstraintDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is not an SSNMFClusterer.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        _WANTED.check(estimator)
        return cls.from_predictions(estimator.labels_, estimator.constraints_, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls, labels: Any, constraints: PairwiseConstraints, *, ax: Any = None, **style: Any
    ) -> ConstraintDisplay:
        """Show which constraints any clustering satisfies, whoever made it.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of every sample, as `fit_predict` of any clusterer returns it: integers or
            strings; a negative number, None or NaN: in no cluster.
        constraints : PairwiseConstraints
            Constraints of these samples, such as those held out.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        **style : dict
            Keywords of `plot`: `include_values`.

        Returns
        -------
        ConstraintDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `constraints` is not a PairwiseConstraints, or the labels are of several kinds.
        ValueError
            If the number of labels is not that of the samples.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from nmfcluster import PairwiseConstraints
        >>> from nmfcluster.display import ConstraintDisplay
        >>> known = PairwiseConstraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)])
        >>> display = ConstraintDisplay.from_predictions(["a", "a", "b", "b"], known)
        >>> display.must_link
        array([[1, 1],
               [1, 0]])
        >>> display.cannot_link  # within b: violated
        array([[0, 0],
               [0, 1]])
        """
        if not isinstance(constraints, PairwiseConstraints):
            raise TypeError(
                f"constraints must be a PairwiseConstraints, got {type(constraints).__name__}."
            )
        constraints.satisfied(labels)  # raises where labels do not fit
        codes, (values,) = encode([labels], "labels")
        groups = codes[:, 0]
        names = [str(value) for value in values]
        unassigned = bool((groups < 0).any())
        if unassigned:
            groups = np.where(groups < 0, len(names), groups)
            names.append("none")
        display = cls(
            must_link=_pairs_between(groups, constraints.must_link, len(names)),
            cannot_link=_pairs_between(groups, constraints.cannot_link, len(names)),
            names=names,
            unassigned=unassigned,
        )
        return display.plot(ax, **style)

    def plot(self, ax: Any = None, *, include_values: bool = True) -> ConstraintDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        include_values : bool, default=True
            Whether to write the numbers into the cells, if there is room.

        Returns
        -------
        ConstraintDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        n = len(self.must_link)
        side = float(np.clip(_CELL * n, 4.2, 8.4))
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(side + 2.2, side + 1.2))
        shift = 1 + max(_GAP, n / 40)  # cells, of the upper triangle to the right
        must, cannot = self._signed()
        most, worst = max(must.max(), cannot.max()), -min(must.min(), cannot.min())
        edges = {"edgecolor": "white", "linewidth": min(1.5, 20 / n)}
        style = edges | look.colours_of_counts(most, worst)
        self.must_link_cells_ = self._draw(must, 0.0, style)
        self.cannot_link_cells_ = self._draw(cannot, shift, style)
        self.ax_.set(xlim=(0, n + shift), ylim=(n, 0), aspect="equal", ylabel="cluster")
        self.ax_.grid(False)
        self.ax_.spines[:].set_visible(False)
        cell = look.height_in_points(self.ax_) / (n + shift)
        self._name_clusters(must, cannot, shift, cell)
        self.texts_: list[Any] = []
        font = _font_for(must, cannot, cell)
        if include_values and font >= _SMALLEST_FONT:
            self._write(must, 0.0, font)
            self._write(cannot, shift, font)
        self._explain(must, cannot)
        return self

    def _signed(self) -> tuple[np.ma.MaskedArray, np.ma.MaskedArray]:
        """Return the numbers of the two triangles, negative where pairs are violated."""
        n = len(self.must_link)
        within = np.eye(n, dtype=bool)
        outside = np.zeros((n, n), dtype=bool)  # with a sample that is in no cluster
        if self.unassigned:
            outside[-1], outside[:, -1] = True, True
        must = np.where(within & ~outside, self.must_link, -self.must_link)
        cannot = np.where(within | outside, -self.cannot_link, self.cannot_link)
        below = np.tri(n, dtype=bool)
        return np.ma.array(must, mask=~below), np.ma.array(cannot, mask=~below.T)

    def _draw(self, values: np.ma.MaskedArray, shift: float, style: dict[str, Any]) -> Any:
        """Draw the cells of a triangle, and return them."""
        from matplotlib.collections import PolyCollection

        rows, columns = np.nonzero(~values.mask)
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        squares = np.column_stack([columns + shift, rows])[:, None] + corners
        cells = PolyCollection(squares, array=values.compressed(), **style)
        return self.ax_.add_collection(cells)

    def _name_clusters(
        self, must: np.ma.MaskedArray, cannot: np.ma.MaskedArray, shift: float, cell: float
    ) -> None:
        """Name the clusters at three sides, and say how many pairs each triangle counts."""
        n = len(self.must_link)
        names = [str(c) for c in range(n)] if self.names is None else list(self.names)
        height, width = 1.3 * look.FONT, _LETTER * look.FONT * (max(map(len, names)) + 1)
        turned: dict[str, Any] = {"rotation": 90} if width > max(cell, 3 * look.FONT) else {}
        every = max(1, int(np.ceil((height if turned else max(height, width)) / cell)))
        named = np.arange(0, n, every)  # names that would overlap are left out
        labels = [names[c] for c in named]
        self.ax_.set_yticks(named + 0.5, labels)
        self.ax_.set_xticks(named + 0.5, labels, **turned)
        self.ax_.set_xlabel(f"must-links: {_share(must)}")
        top = self.ax_.secondary_xaxis("top")
        top.set_xticks(named + 0.5 + shift, labels, **turned)
        top.set_xlabel(f"cannot-links: {_share(cannot)}")
        top.spines[:].set_visible(False)
        for axis in (self.ax_, top):
            axis.tick_params(length=0, labelsize=look.FONT)

    def _write(self, values: np.ma.MaskedArray, shift: float, font: float) -> None:
        """Write numbers into the cells of a triangle; those of violated pairs are bold."""
        cells = self.must_link_cells_
        for row, column in np.argwhere(values.filled(0) != 0).tolist():
            value = int(values[row, column])
            red, green, blue, _ = cells.cmap(cells.norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
            place, number = (column + 0.5 + shift, row + 0.5), look.shorten(abs(value))
            text = self.ax_.text(*place, number, ha="center", va="center_baseline", fontsize=font)
            text.set_color("white" if dark else "black")
            text.set_fontweight("bold" if value < 0 else "normal")
            self.texts_.append(text)

    def _explain(self, must: np.ma.MaskedArray, cannot: np.ma.MaskedArray) -> None:
        """Name the colours; where no cell shows its number, say how large the numbers are."""
        from matplotlib.patches import Patch

        cells = self.must_link_cells_
        handles = []
        for sign, name in ((1, "satisfied"), (-1, "violated")):
            most = max((sign * must).max(), (sign * cannot).max(), 0)
            amount = f", up to {most:,} a cell" if most and not self.texts_ else ""
            colour = cells.cmap(cells.norm(sign * max(most, 1)))
            handles.append(Patch(facecolor=colour, label=name + amount))
        self.ax_.legend(handles=handles, **look.LEGEND, **look.BESIDE)


def _pairs_between(groups: np.ndarray, pairs: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the number of pairs with a sample in each of two groups, symmetric."""
    one, other = groups[pairs].T
    counts = np.bincount(one * n_groups + other, minlength=n_groups**2)
    counts = counts.reshape(n_groups, n_groups)
    return counts + np.tril(counts, -1).T + np.triu(counts, 1).T


def _share(values: np.ma.MaskedArray) -> str:
    """Say how many of the pairs of a triangle are satisfied."""
    satisfied, total = int(values.clip(0).sum()), int(abs(values).sum())
    return f"{satisfied:,} of {total:,} satisfied" if total else "none"


def _font_for(must: np.ma.MaskedArray, cannot: np.ma.MaskedArray, cell: float) -> float:
    """Return the largest font in which all numbers fit into cells of a size in points."""
    numbers = np.unique(np.ma.concatenate([must, cannot]).compressed())
    widest = max(len(look.shorten(abs(number))) for number in numbers.tolist())
    return min(look.FONT + 2, 0.9 * cell / (_LETTER * widest), 0.8 * cell)
