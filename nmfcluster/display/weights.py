"""Picture of the weights of the sources of a fusion."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from nmfcluster.display.style import (
    DASHED,
    EMPHASIS,
    FONT,
    Display,
    add_legend,
    check_fitted,
    cluster_colour,
    draw_curve,
    read_list,
    set_value_ticks,
    shorten,
)

# score above which two sources agree: that of `SimilarityFusionNMF`
_MIN_SCORE = 5.0
# sources whose correlations are written into their cells; more would not be legible
_MAX_WRITTEN = 12


@dataclass(kw_only=True, repr=False, eq=False)
class SourceWeightsDisplay(Display):
    r"""Picture of the weights of the sources of a fusion.

    For one model, a bar shows the weight :math:`\alpha_l` of each source, and the number beside it
    is the loss :math:`x_l`: the share of the source that the clusters do not explain, from 0 to 1,
    or nats with ``criterion="kl"`` and ``"cross_entropy"``. In a new figure, the picture also shows
    how far the sources agree, as a matrix with a row and a column for each source, in the order of
    the bars. Its entries are the correlations of the residuals of two sources. The cells of
    two sources that agree are blue, and such an agreement is why a source has a weight.

    For several models that differ in `eta`, a line shows how the weight of a source changes with
    it, as in Figure 1(c) of [1]_. The dashed line is the weight that all sources have if their
    weights are equal.

    `from_estimator` and `from_estimators` read the weights and draw them; the constructor takes
    weights.

    Parameters
    ----------
    names : sequence of str
        Names of the sources.
    weights : ndarray of shape (n_sources,) or (n_values, n_sources)
        Weights, in a row for each value of `eta`.
    losses : ndarray of shape (n_sources,), default=None
        Losses, if there is one model.
    agreement : tuple of ndarray of shape (n_sources, n_sources), default=None
        Correlations and z-scores, as in `SimilarityFusionNMF.agreement_`, if there is one model.
    values : sequence of float, default=None
        Values of `eta`, in increasing order, if there are several models.
    chosen : float, default=None
        The value to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer or None
        The bars, from the first source to the last, if there is one model.
    cells_ : matplotlib QuadMesh or None
        The correlations of sources that agree, if they are shown.
    lines_ : list of matplotlib Line2D
        The dots, one object for each source, if there are several models.

    See Also
    --------
    nmfcluster.SimilarityFusionNMF : The estimator whose weights are shown.
    StabilityDisplay : Shows which value of a parameter is stable.

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import SimilarityFusionNMF
    >>> from nmfcluster.display import SourceWeightsDisplay
    >>> X = load_iris().data
    >>> views = [("sepal", "rbf", [0, 1]), ("petal", "rbf", [2, 3])]
    >>> models = [
    ...     SimilarityFusionNMF(3, eta=eta, affinity=views, random_state=0).fit(X)
    ...     for eta in (0.01, 0.1, 1)
    ... ]
    >>> display = SourceWeightsDisplay.from_estimator(models[0])
    >>> display.names
    ('sepal', 'petal')
    >>> display.figure_.savefig("weights.png")  # doctest: +SKIP
    >>> SourceWeightsDisplay.from_estimators(models).weights.shape
    (3, 2)
    """

    names: Sequence[str]
    weights: np.ndarray
    losses: np.ndarray | None = None
    agreement: tuple[np.ndarray, np.ndarray] | None = None
    values: Sequence[float] | None = None
    chosen: float | None = None

    @classmethod
    def from_estimator(cls, estimator, *, ax=None) -> Self:
        """Show the weights and the losses of a model, and the agreement of its sources.

        Parameters
        ----------
        estimator : SimilarityFusionNMF
            A fitted model.
        ax : matplotlib Axes, default=None
            Where to draw the weights; a new figure, with the agreement, by default.

        Returns
        -------
        SourceWeightsDisplay
            The picture, drawn.
        """
        model = _check_model(estimator)
        display = cls(
            names=model.source_names_,
            weights=model.weights_,
            losses=model.source_losses_,
            agreement=getattr(model, "agreement_", None),
        )
        return display.plot(ax)

    @classmethod
    def from_estimators(
        cls, estimators: Iterable[Any], *, chosen: float | None = None, ax=None
    ) -> Self:
        """Show how the weights change with `eta`.

        Parameters
        ----------
        estimators : iterable of SimilarityFusionNMF
            Fitted models that differ in `eta`, in any order.
        chosen : float, default=None
            The value of `eta` to mark, which must be that of a model.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        SourceWeightsDisplay
            The picture, drawn.

        Raises
        ------
        ValueError
            If `estimators` is empty, their sources have different names, or `chosen` is not the
            `eta` of one of them.
        """
        models = [_check_model(one) for one in read_list(estimators, "estimators")]
        names = [model.source_names_ for model in models]
        if len(set(names)) != 1:
            raise ValueError(f"estimators must have the same sources, got {names}.")
        models.sort(key=lambda model: model.eta)
        values = [model.eta for model in models]
        if chosen is not None and chosen not in values:
            raise ValueError(
                f"chosen must be the eta of an estimator, {values}, got {chosen!r}."
            )
        weights = np.array([model.weights_ for model in models])
        display = cls(names=names[0], weights=weights, values=values, chosen=chosen)
        return display.plot(ax)

    def _draw(self, ax):
        self.bars_ = self.cells_ = None
        self.lines_: list = []
        if self.values is None:
            self._plot_bars(ax)
        else:
            self._plot_lines(ax)
        if ax is None and self.agreement is not None and len(self.names) > 1:
            self._plot_agreement(*self.agreement)

    def _plot_bars(self, ax):
        n_sources = len(self.names)
        figsize = (6.4, 0.3 * n_sources + 1.0)
        ax = self._set_axes(ax, figsize, has_margins=True)
        rows = np.arange(n_sources)
        self.bars_ = ax.barh(rows, self.weights, height=0.66, color=EMPHASIS)
        ax.axvline(1 / n_sources, **DASHED | {"zorder": 3})
        ax.set_yticks(rows, [shorten(name) for name in self.names])
        ax.set(xlabel="weight", xlim=(0, None), ylim=(n_sources - 0.4, -0.6))
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right"]].set_visible(False)
        if self.losses is None:
            return
        texts = [f"{loss:.3g}" for loss in self.losses]
        for row, text in zip([*rows, -1], [*texts, "loss"], strict=True):
            ax.annotate(
                text,
                (1, row),
                (34, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                xycoords=ax.get_yaxis_transform(),
                fontsize=FONT,
            )

    def _plot_agreement(self, correlations, scores):
        """Draw a cell for every two sources at the left of the bars, in the same rows."""
        n = len(scores)
        agreeing = np.where(scores > _MIN_SCORE, correlations, np.nan)
        self.figure_.set_figwidth(6.4 + 0.2 * min(n, _MAX_WRITTEN))
        left, right = self.ax_.get_subplotspec().subgridspec(
            1, 2, width_ratios=(min(0.09 * n, 1.0), 1), wspace=0.02
        )
        self.ax_.set_subplotspec(right)
        ax = self.figure_.add_subplot(left, sharey=self.ax_)
        # a correlation of 0 is not white, as sources with a small one may agree
        edges = np.arange(n + 1) - 0.5
        self.cells_ = ax.pcolormesh(
            edges, edges, agreeing, cmap="Blues", vmin=-0.3, vmax=1
        )
        for (i, j), value in np.ndenumerate(np.round(correlations, 2) + 0):  # no -0.00
            if i != j and n <= _MAX_WRITTEN:
                ax.text(
                    j,
                    i,
                    f"{value:.2f}",
                    color="white" if agreeing[i, j] > 0.5 else "0.2",
                    ha="center",
                    va="center",
                    fontsize=7,
                )
        ax.set(xticks=[], xlabel="agreement")
        ax.tick_params(length=0)
        self.ax_.tick_params(labelleft=False)

    def _plot_lines(self, ax):
        ax = self._set_axes(ax, (7.8, 4.2), has_margins=True)
        x = set_value_ticks(ax, "eta", self.values, self.chosen)
        for i, name in enumerate(self.names):
            line = draw_curve(
                ax,
                x,
                self.weights[:, i],
                colour=cluster_colour(i),
                label=shorten(name),
            )
            self.lines_.append(line)
        ax.axhline(1 / len(self.names), **DASHED)
        highest = float(np.max(self.weights) or 1)  # all may be 0
        ax.set(ylim=(-0.02 * highest, 1.06 * highest), ylabel="weight")
        add_legend(ax)


def _check_model(estimator):
    """Return a fitted fusion with numpy arrays; raise if it is not one."""
    return check_fitted(
        estimator,
        "source_names_",
        expected="a SimilarityFusionNMF",
        cure="the constructor takes weights of others",
    )
