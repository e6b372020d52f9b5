"""Picture of the sources of a fusion: their weights, and the weights over a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmfcluster.display.stability import StabilityDisplay
from nmfcluster.display.style import CONTEXT, EMPHASIS, FONT, axes_for, check_estimator

_WANTED = "a SimilarityFusionNMF"
_BAR, _REST = 0.3, 1.0  # inches: of a source, and of what is above and below all
_LONGEST = 30  # letters of a name


class SourceWeightsDisplay:
    r"""Picture of what the sources of a fusion weigh.

    Of one model, a bar shows the weight :math:`\alpha_l` of each source, and the number at its
    side the loss :math:`c_l`, in nats. Of several models that differ in a parameter, a line shows
    how the weight of a source changes with it, as in Figure 1(c) of [1]_. The dashed line is the
    weight that all have if `eta` is infinite.

    A large weight says that the clusters explain a source well. That holds for a source that
    tells nothing, too: what is flat is easy to explain.

    `from_estimator` and `from_estimators` make the pictures; what the constructor takes are their
    contents.

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

    ax_: Any
    figure_: Any
    bars_: Any
    lines_: list[Any]

    def __init__(
        self,
        *,
        names: Sequence[str],
        weights: np.ndarray,
        losses: np.ndarray | None = None,
        param_name: str | None = None,
        values: Sequence[float] | None = None,
        chosen: float | None = None,
    ) -> None:
        self.names = names
        self.weights = weights
        self.losses = losses
        self.param_name = param_name
        self.values = values
        self.chosen = chosen

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
            If `estimator` is no `SimilarityFusionNMF`.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        check_estimator(estimator, "source_names_", _WANTED)
        display = cls(
            names=estimator.source_names_,
            weights=estimator.weights_,
            losses=estimator.source_losses_,
        )
        return display.plot(ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Sequence[Any],
        *,
        param: str = "eta",
        chosen: float | None = None,
        ax: Any = None,
    ) -> SourceWeightsDisplay:
        """Show how the weights change with a parameter.

        Parameters
        ----------
        estimators : list of SimilarityFusionNMF
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
            If one of `estimators` is no `SimilarityFusionNMF`.
        NotFittedError
            If one of them is not fitted.
        ValueError
            If there is none, their sources have different names, or their values of `param` are
            not numbers that differ, or `chosen` is none of these.
        ImportError
            If matplotlib is not installed.
        """
        models = list(estimators)
        if not models:
            raise ValueError("estimators must hold at least one fitted SimilarityFusionNMF.")
        for model in models:
            check_estimator(model, "source_names_", _WANTED)
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
        self.ax_, self.lines_ = ax, []
        self.bars_ = ax.barh(places, self.weights, height=0.66, color=EMPHASIS)
        ax.axvline(1 / n_sources, color=CONTEXT, linewidth=1.0, linestyle=(0, (4, 3)), zorder=3)
        ax.set_yticks(places, [_shortened(name) for name in self.names])
        ax.set_ylim(n_sources - 0.4, -0.6)  # the first on top
        ax.set_xlim(0, 1.06 * float(np.max(self.weights)))
        ax.set_xlabel("weight")
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right"]].set_visible(False)
        if self.losses is not None:
            beside: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": FONT}
            for place, loss in zip(places, _figures(self.losses), strict=True):
                ax.text(1.11, place, loss, transform=ax.get_yaxis_transform(), **beside)
            beside["va"] = "bottom"
            ax.text(1.11, 1.0, "loss", transform=ax.transAxes, **beside)

    def _plot_lines(self, ax: Any) -> None:
        drawn = StabilityDisplay(
            param_name=str(self.param_name),
            values=list(self.values or []),
            curves=np.asarray(self.weights).T,
            names=[_shortened(name) for name in self.names],
            title="source",
            metric="weight",
        ).plot(ax)
        self.figure_, self.ax_ = drawn.figure_, drawn.ax_
        self.bars_, self.lines_ = None, drawn.lines_
        dashed: dict[str, Any] = {"color": CONTEXT, "linewidth": 1.0, "zorder": 1}
        self.ax_.axhline(1 / len(self.names), linestyle=(0, (4, 3)), **dashed)
        if self.chosen is not None:
            place = drawn.lines_[0].get_xdata()[list(self.values or []).index(self.chosen)]
            self.ax_.axvline(place, linestyle=(0, (4, 3)), **dashed)
        self.ax_.set_ylim(-0.02 * float(np.max(self.weights)), 1.06 * float(np.max(self.weights)))


def _values_of(models: list[Any], param: str) -> list[float]:
    """Return the values of a parameter, which must be numbers and differ."""
    known = models[0].get_params()
    if param not in known:
        raise ValueError(f"param must be one of {sorted(known)}, got {param!r}.")
    given = [model.get_params()[param] for model in models]
    try:
        values = [float(value) for value in given]
    except (TypeError, ValueError):
        raise ValueError(f"param must be a number in all estimators; {param} is {given}.") from None
    if len(set(values)) < len(values):
        raise ValueError(f"estimators must differ in {param}, got {given}.")
    return values


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _figures(losses: np.ndarray) -> list[str]:
    """Return losses with as many decimals as two figures of the smallest ask for, 2 to 5."""
    positive = losses[losses > 0]
    smallest = float(positive.min()) if len(positive) else 1.0
    decimals = int(np.clip(1 - np.floor(np.log10(smallest)), 2, 5))
    return [f"{loss:.{decimals}f}" for loss in losses]
