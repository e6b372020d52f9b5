"""Picture of pairwise constraints: how many are satisfied and violated, and between what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

import nmfcluster.display.style as look
from nmfcluster._arrays.labels import encode
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics.agreement import shared_counts

# from many violated pairs over few, none (grey) and few satisfied ones to many
_SHADES = "#C04E00", "#F9C79F", "#F4F4F4", "#D3E3F1", "#2A6FA8"


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

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    must_link_cells_, cannot_link_cells_ : matplotlib PolyCollection
        The cells of the two triangles, row by row.
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
    [0, 0, 0]
    >>> display.figure_.savefig("constraints.png")  # doctest: +SKIP
    """

    must_link: np.ndarray
    cannot_link: np.ndarray
    names: Sequence[str] | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Show which of its constraints a fitted estimator satisfies.

        Parameters
        ----------
        estimator : SSNMFClusterer
            A fitted one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConstraintDisplay
            The picture, drawn.
        """
        cure = "from_predictions takes labels of any clusterer"
        look.check_fitted(estimator, "constraints_", "an SSNMFClusterer", cure)
        return cls.from_predictions(estimator.labels_, estimator.constraints_, ax=ax)

    @classmethod
    def from_predictions(
        cls, labels: Any, constraints: PairwiseConstraints, *, ax: Any = None
    ) -> Self:
        """Show which constraints any clustering satisfies, whoever made it.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of every sample, as `fit_predict` of any clusterer returns it: integers from 0,
            or strings.
        constraints : PairwiseConstraints
            Constraints of these samples, such as those held out.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConstraintDisplay
            The picture, drawn.

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
            got = type(constraints).__name__
            raise TypeError(f"constraints must be a PairwiseConstraints, got {got}.")
        constraints.satisfied(labels)  # raises where labels do not fit
        codes, (values,) = encode([labels], "labels")
        if codes.min() < 0:
            raise ValueError("labels must hold a cluster for every sample, got samples in none.")
        kinds = constraints.must_link, constraints.cannot_link
        must, cannot = (_pairs_between(codes[:, 0], pairs, len(values)) for pairs in kinds)
        return cls(must_link=must, cannot_link=cannot, names=[str(v) for v in values]).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConstraintDisplay
            Itself.
        """
        n = len(self.must_link)
        side = float(np.clip(0.28 * n, 4.2, 8.4))  # inches: a cell has room for three letters
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(side + 2.2, side + 1.2))
        # cells, of the upper triangle to the right, so that the two edges are told apart
        shift = 1 + max(0.4, n / 40)
        # the two triangles, negative where pairs are violated
        within, below = np.eye(n, dtype=bool), np.tri(n) > 0
        must = np.ma.array(np.where(within, self.must_link, -self.must_link), mask=~below)
        cannot = np.ma.array(np.where(within, -self.cannot_link, self.cannot_link), mask=~below.T)
        tops = max(must.max(), cannot.max()), -min(must.min(), cannot.min())
        self.ax_.set(xlim=(0, n + shift), ylim=(n, 0), aspect="equal", ylabel="cluster")
        self.ax_.grid(False)
        self.ax_.spines[:].set_visible(False)
        cell = look.height_in_points(self.ax_) / (n + shift)
        font = min(look.FONT + 2, 0.36 * cell)  # the four letters of a number fit into a cell
        self.texts_: list[Any] = []
        self.must_link_cells_ = self._draw(must, 0.0, tops, font)
        self.cannot_link_cells_ = self._draw(cannot, shift, tops, font)
        self._name_clusters(must, cannot, shift, cell)
        return self

    def _draw(
        self, values: np.ma.MaskedArray, shift: float, tops: tuple[int, int], font: float
    ) -> Any:
        """Draw the cells of a triangle, numbers in those that count pairs, and return them."""
        from matplotlib.colors import LinearSegmentedColormap

        # Good and bad pairs have a scale each, so that a few bad ones are seen beside many good
        # ones; of square roots, so that few pairs are seen beside many of their own kind.
        heights = np.sqrt(np.maximum(values, 0) / max(tops[0], 1))
        heights = heights - np.sqrt(np.maximum(-values, 0) / max(tops[1], 1))
        stops = zip((0.0, 0.4999, 0.5, 0.5001, 1.0), _SHADES, strict=True)
        shades = LinearSegmentedColormap.from_list("pairs", list(stops), N=1025)
        edges = np.arange(len(values) + 1)
        if font >= 5:  # points: smaller numbers are not read
            for row, column in np.argwhere(values.filled(0) != 0):
                number, dark = values[row, column], abs(heights[row, column]) > 0.7
                place = column + shift + 0.5, row + 0.5
                text = self.ax_.text(*place, _shorten(abs(int(number))), fontsize=font)
                text.set(ha="center", va="center_baseline", color="white" if dark else "black")
                text.set_fontweight("bold" if number < 0 else "normal")
                self.texts_.append(text)
        style = {"edgecolor": "white", "linewidth": min(1.5, 20 / len(values))}
        colours = {"cmap": shades, "vmin": -1, "vmax": 1}
        return self.ax_.pcolor(edges + shift, edges, heights, **colours, **style)

    def _name_clusters(
        self, must: np.ma.MaskedArray, cannot: np.ma.MaskedArray, shift: float, cell: float
    ) -> None:
        """Name the clusters, at three sides, and the colours; count the pairs of both kinds."""
        from matplotlib.patches import Patch

        n = len(self.must_link)
        names = [str(c) for c in range(n)] if self.names is None else list(self.names)
        turned: dict[str, Any] = {"rotation": 90} if max(map(len, names)) > 3 else {}
        # names that would overlap are left out: one needs a line, or the width of three letters
        named = np.arange(0, n, int(np.ceil((1.3 if turned else 2.2) * look.FONT / cell)))
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
        colours = ((_SHADES[-1], "satisfied"), (_SHADES[0], "violated"))
        handles = [Patch(facecolor=colour, label=name) for colour, name in colours]
        self.ax_.legend(handles=handles, **look.LEGEND, **look.BESIDE)


def _pairs_between(groups: np.ndarray, pairs: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the number of pairs with a sample in each of two groups, symmetric."""
    one, other = groups[pairs].T
    counts = shared_counts(one, other, (n_groups, n_groups))
    return counts + np.tril(counts, -1).T + np.triu(counts, 1).T


def _share(values: np.ma.MaskedArray) -> str:
    """Say how many of the pairs of a triangle are satisfied."""
    satisfied, total = int(values.clip(0).sum()), int(abs(values).sum())
    return f"{satisfied:,} of {total:,} satisfied" if total else "none"


def _shorten(number: int) -> str:
    """Return a number in four characters at most: 999, 1.2k, 12k, 123k, 1M ..."""
    from matplotlib.ticker import EngFormatter

    return EngFormatter(places=int(1000 <= number < 9950), sep="")(number)
