"""Picture of the sources of a fusion: their weights, and the weights over a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster.display.stability import StabilityDisplay
from nmfcluster.display.style import DASHED, EMPHASIS, FONT, Wanted, axes_for, cut

_WANTED = Wanted(
    "source_names_", "a SimilarityFusionNMF", "the constructor takes names and weights of others"
)
_BAR, _REST = 0.3, 1.0  # inches: height of a source, and of what is above and below all of them
_LONGEST = 30  # letters of a name


@dataclass(kw_only=True, repr=False, eq=False)
class SourceWeightsDisplay:
    r"""Picture of what the sources of a fusion weigh.

    Of one model, a bar shows the weight :math:`\alpha_l` of each source, and the number at its
    side the loss :math:`c_l`, in nats. Of several models that differ in a parameter, a line shows
    how the weight of a source changes with it, as in Figure 1(c) of [1]_. The dashed line is the
    weight of every source if `eta` is infinite.

    A large weight says that the clusters explain a source well. A source that tells nothing can
    have one, too: a flat similarity is easy to explain.

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
    names, weights, losses, param_name, values, chosen
        As given.
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

        Raises
        ------
        TypeError
            If `estimator` is not a `SimilarityFusionNMF`.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        _WANTED.check(estimator)
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
        TypeError
            If one of `estimators` is not a `SimilarityFusionNMF`.
        NotFittedError
            If one of them is not fitted.
        ValueError
            If `estimators` is empty, their sources have different names, their values of `param`
            are not numbers that differ, or `chosen` is not one of these.
        ImportError
            If matplotlib is not installed.
        """
        models = list(estimators)
        if not models:
            raise ValueError("estimators must hold at least one, got none.")
        for model in models:
            _WANTED.check(model)
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

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        if self.values is None:
            self._plot_bars(ax)
        else:
            self._plot_lines(ax)
        return self

    def _plot_bars(self, ax: Any) -> None:
        n_sources = len(self.names)
        self.figure_, ax = axes_for(ax, figsize=(6.4, _BAR * n_sources + _REST))
        places = np.arange(n_sources)
        self.ax_ = ax
        self.lines_: list[Any] = []
        self.bars_ = ax.barh(places, self.weights, height=0.66, color=EMPHASIS)
        ax.axvline(1 / n_sources, zorder=3, **DASHED)
        ax.set_yticks(places, [cut(name, _LONGEST) for name in self.names])
        ax.set_ylim(n_sources - 0.4, -0.6)  # the first on top
        ax.set_xlim(0, 1.06 * float(np.max(self.weights)))
        ax.set_xlabel("weight")
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right"]].set_visible(False)
        if self.losses is not None:
            beside: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": FONT}
            for place, loss in zip(places, _in_decimals(self.losses), strict=True):
                ax.text(1.11, place, loss, transform=ax.get_yaxis_transform(), **beside)
            beside["va"] = "bottom"
            ax.text(1.11, 1.0, "loss", transform=ax.transAxes, **beside)

    def _plot_lines(self, ax: Any) -> None:
        drawn = StabilityDisplay(
            param_name=str(self.param_name),
            values=list(self.values or []),
            curves=np.asarray(self.weights).T,
            names=[cut(name, _LONGEST) for name in self.names],
            title="source",
            metric="weight",
        ).plot(ax)
        self.figure_, self.ax_ = drawn.figure_, drawn.ax_
        self.bars_, self.lines_ = None, drawn.lines_
        self.ax_.axhline(1 / len(self.names), zorder=1, **DASHED)
        if self.chosen is not None:
            place = drawn.lines_[0].get_xdata()[list(self.values or []).index(self.chosen)]
            self.ax_.axvline(place, zorder=1, **DASHED)
        highest = float(np.max(self.weights))
        self.ax_.set_ylim(-0.02 * highest, 1.06 * highest)


def _values_of(models: list[Any], param: str) -> list[float]:
    """Return the values of a parameter, which must be numbers and differ."""
    known = models[0].get_params()
    if param not in known:
        raise ValueError(f"param must be one of {sorted(known)}, got {param!r}.")
    values = [model.get_params()[param] for model in models]
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(
            f"param must be a number in all estimators; {param} is {values}."
        ) from None
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"estimators must differ in {param}, got {values}.")
    return numbers


def _in_decimals(losses: np.ndarray) -> list[str]:
    """Return losses as text, with 2 to 5 decimals: enough for two digits of the smallest."""
    positive = losses[losses > 0]
    smallest = float(positive.min()) if len(positive) else 1.0
    decimals = int(np.clip(1 - np.floor(np.log10(smallest)), 2, 5))
    return [f"{loss:.{decimals}f}" for loss in losses]
