"""Pictures of fits: the losses of their starts, and what the sources of a fusion weigh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import nmfcluster.display.style as look

_SMALLEST_EXCESS = 1e-8  # relative to the loss: what is below is rounding
_FUSED = (
    "source_names_",
    "a SimilarityFusionNMF",
    "the constructor takes names and weights of others",
)


@dataclass(kw_only=True, repr=False, eq=False)
class LossCurveDisplay:
    """Picture of how the loss fell in every start.

    The height of a curve is by how much the loss exceeds the lowest that any start reached,
    relative to that lowest loss, on a logarithmic scale: a curve that levels off high up has ended
    in another, worse minimum; a short one is of a start that was given up. Where the lowest loss is
    next to 0, or no start is above it, the picture shows the loss itself.

    `from_estimator` reads the curves and draws them; the constructor takes curves.

    Parameters
    ----------
    curves : list of ndarray of shape (n_iter + 1,)
        Losses before the first update and after every one, of the kept start first.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : list of matplotlib Line2D
        One a start, in the order of `curves`.

    See Also
    --------
    ConsensusMatrixDisplay : Shows the clusters that came out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import LossCurveDisplay
    >>> model = NMFConsensus(n_clusters=3, n_init=5, random_state=0).fit(load_iris().data)
    >>> display = LossCurveDisplay.from_estimator(model)
    >>> len(display.lines_)
    5
    >>> display.figure_.savefig("loss.png")  # doctest: +SKIP
    """

    curves: list[np.ndarray]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> LossCurveDisplay:
        """Show the loss curves of a fitted estimator.

        Parameters
        ----------
        estimator : estimator of this package, or another one with `loss_curve_`
            A fitted one: of others, which have a single start, an MLPClassifier of scikit-learn,
            say.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        LossCurveDisplay
            The picture, drawn.
        """
        look.check_fitted(
            estimator,
            "loss_curve_",
            "an estimator with loss_curve_, as all of nmfcluster are",
            "LossCurveDisplay(curves=[losses]) takes the losses of others",
            any_will_do=True,
        )
        curves = getattr(estimator, "loss_curves_", [estimator.loss_curve_])
        return cls(curves=curves).plot(ax)

    def plot(self, ax: Any = None) -> LossCurveDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        LossCurveDisplay
            Itself.
        """
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, 4.2))
        heights, label = _above_the_lowest(self.curves)
        if any(np.isfinite(height).any() for height in heights):
            self._draw(heights)
            self.ax_.set_yscale("log")
        else:  # all starts began at their minimum: flat lines, which have no logarithm here
            heights, label = self.curves, "loss"
            self._draw(heights)
            self.ax_.set_ylim(0, 1.1 * float(np.max(heights[0])) or 1.0)
        self.ax_.set(xlabel="update", ylabel=label)
        self.ax_.xaxis.set_major_locator(look.ticker().MaxNLocator(6, integer=True))
        self.ax_.margins(x=0.02)
        handles, labels = self.ax_.get_legend_handles_labels()
        self.ax_.legend(handles[::-1], labels[::-1], **look.LEGEND)
        return self

    def _draw(self, heights: list[np.ndarray]) -> None:
        """Draw a line a start, a dot on its last value; the kept start is on top."""
        n_others = len(heights) - 1
        of_others = "other start" if n_others == 1 else f"{n_others} other starts"
        kept: dict[str, Any] = {"linewidth": 2.2, "markersize": 6, "label": "kept"}
        other: dict[str, Any] = {"linewidth": 1.0, "markersize": 3.5, "colour": look.CONTEXT}
        self.lines_: list[Any] = []
        for i, losses in reversed(list(enumerate(heights))):
            # one line stands in the legend for all others
            style = kept if i == 0 else other | {"label": of_others if i == 1 else "_"}
            last = np.flatnonzero(np.isfinite(losses))[-1:].tolist() or None
            line = look.draw_curve(
                self.ax_, np.arange(len(losses)), losses, markevery=last, **style
            )
            self.lines_.insert(0, line)


def _above_the_lowest(curves: list[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Return what to draw on a logarithmic axis, NaN where it cannot be shown, and its name."""
    lowest = min(float(np.min(curve)) for curve in curves)
    highest = max(float(np.max(curve)) for curve in curves)
    if lowest <= 1e-4 * highest:  # as good as 0
        heights, label = [np.asarray(curve) for curve in curves], "loss"
        floor = max(_SMALLEST_EXCESS * highest, np.finfo(float).tiny)
    else:
        heights = [np.asarray(curve) / lowest - 1 for curve in curves]
        label, floor = "loss / lowest loss \N{MINUS SIGN} 1", _SMALLEST_EXCESS
    return [np.where(height > floor, height, np.nan) for height in heights], label


@dataclass(kw_only=True, repr=False, eq=False)
class SourceWeightsDisplay:
    r"""Picture of what the sources of a fusion weigh.

    Of one model, a bar shows the weight :math:`\alpha_l` of each source, and the number at its
    side the loss :math:`x_l`: by default the share of the source that the clusters do not explain,
    from 0 to 1, and of the other criteria a divergence in nats. Of several models that differ in a
    parameter, a line shows how the weight of a source changes with it, as in Figure 1(c) of [1]_.
    The dashed line is the weight of every source if `eta` is infinite.

    A large weight says that the clusters explain a large share of a source. With ``criterion="kl"``
    or ``"cross_entropy"`` a source that tells nothing can have one, too: a flat similarity is easy
    to explain.

    `from_estimator` and `from_estimators` read the weights and draw them; the constructor takes
    weights.

    Parameters
    ----------
    names : sequence of str
        Names of the sources.
    weights : ndarray of shape (n_sources,) or (n_values, n_sources)
        Weights, in a row for each value of the parameter.
    losses : ndarray of shape (n_sources,), default=None
        Losses, where there is one model.
    param_name : str, default=None
        The parameter that several models differ in.
    values : sequence of float, default=None
        Its values, in increasing order.
    chosen : float, default=None
        The value to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer or None
        The bars, from the first source to the last, where there is one model.
    lines_ : list of matplotlib Line2D
        The dots, one object a source, where there are several.

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
    param_name: str | None = None
    values: Sequence[float] | None = None
    chosen: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> SourceWeightsDisplay:
        """Show the weights and the losses of a model.

        Parameters
        ----------
        estimator : SimilarityFusionNMF
            A fitted one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        SourceWeightsDisplay
            The picture, drawn.
        """
        look.check_fitted(estimator, *_FUSED)
        display = cls(
            names=estimator.source_names_,
            weights=estimator.weights_,
            losses=estimator.source_losses_,
        )
        return display.plot(ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Iterable[Any],
        *,
        param: str = "eta",
        chosen: float | None = None,
        ax: Any = None,
    ) -> SourceWeightsDisplay:
        """Show how the weights change with a parameter.

        Parameters
        ----------
        estimators : iterable of SimilarityFusionNMF
            Fitted ones that differ in a parameter, in any order.
        param : str, default="eta"
            The parameter, one that is a number.
        chosen : float, default=None
            The value to mark, one that a model has.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        SourceWeightsDisplay
            The picture, drawn.

        Raises
        ------
        ValueError
            If `estimators` is empty, their sources have different names, their values of `param`
            are not numbers that differ, or `chosen` is not one of these.
        """
        models = list(estimators)
        if not models:
            raise ValueError("estimators must hold at least one, got none.")
        for model in models:
            look.check_fitted(model, *_FUSED)
        names = models[0].source_names_
        for model in models:
            if model.source_names_ != names:
                raise ValueError(
                    "estimators must have the same sources: one has "
                    f"{', '.join(names)}, another {', '.join(model.source_names_)}."
                )
        values = _values_of(models, param)
        if chosen is not None and chosen not in values:
            raise ValueError(
                f"chosen must be a value of {param} that one of the estimators has, "
                f"{', '.join(f'{value:g}' for value in values)}, got {chosen!r}."
            )
        order = np.argsort(values)
        display = cls(
            names=names,
            weights=np.array([models[i].weights_ for i in order]),
            param_name=param,
            values=[values[i] for i in order],
            chosen=chosen,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> SourceWeightsDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        SourceWeightsDisplay
            Itself.
        """
        if self.values is None:
            self._plot_bars(ax)
        else:
            self._plot_lines(self.values, ax)
        return self

    def _plot_bars(self, ax: Any) -> None:
        n_sources = len(self.names)
        self.figure_, ax = look.axes_for(ax, figsize=(6.4, 0.3 * n_sources + 1.0))
        places = np.arange(n_sources)
        self.ax_ = ax
        self.lines_: list[Any] = []
        self.bars_ = ax.barh(places, self.weights, height=0.66, color=look.EMPHASIS)
        ax.axvline(1 / n_sources, **look.DASHED | {"zorder": 3})
        ax.set_yticks(places, [look.cut(name, look.LONGEST) for name in self.names])
        ax.set_ylim(n_sources - 0.4, -0.6)  # the first on top
        ax.set_xlim(0, 1.06 * float(np.max(self.weights)))
        ax.set_xlabel("weight")
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right"]].set_visible(False)
        if self.losses is not None:
            beside: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": look.FONT}
            for place, loss in zip(places, self.losses, strict=True):
                ax.text(1.11, place, f"{loss:.3g}", transform=ax.get_yaxis_transform(), **beside)
            beside["va"] = "bottom"
            ax.text(1.11, 1.0, "loss", transform=ax.transAxes, **beside)

    def _plot_lines(self, values: Sequence[float], ax: Any) -> None:
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(7.8, 4.2))
        self.bars_ = None
        places, _ = look.place_values(self.ax_, str(self.param_name), values)
        self.lines_ = [
            look.draw_curve(
                self.ax_, places, own, colour=look.colour_of(i), label=look.cut(name, look.LONGEST)
            )
            for i, (name, own) in enumerate(zip(self.names, self.weights.T, strict=True))
        ]
        self.ax_.axhline(1 / len(self.names), **look.DASHED)
        highest = float(np.max(self.weights))
        self.ax_.set(ylim=(-0.02 * highest, 1.06 * highest), ylabel="weight")
        look.mark_value(self.ax_, places, values, self.chosen)
        title = {"title": "source", "title_fontsize": look.FONT, "alignment": "left"}
        self.ax_.legend(**title, **look.LEGEND, **look.BESIDE)


def _values_of(models: list[Any], param: str) -> list[float]:
    """Return the values of a parameter, which must be numbers and differ."""
    values = [model.get_params().get(param) for model in models]
    if not all(map(look.is_number, values)):
        raise ValueError(f"param must be a number in all estimators; {param} is {values}.")
    if len(set(values)) < len(values):
        raise ValueError(f"estimators must differ in {param}, got {values}.")
    return values
