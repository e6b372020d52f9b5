"""Picture of the runs of a solver: their loss curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster.display.style import CONTEXT, EMPHASIS, LEGEND, Wanted, axes_for, ticker

_WANTED = Wanted(
    "loss_curve_",
    "an estimator with loss_curve_, as all of nmfcluster are",
    "LossCurveDisplay(curves=[losses]) takes the losses of others",
    any_will_do=True,
)
_SMALLEST_EXCESS = 1e-8  # relative to the loss: what is below is rounding
_PERFECT = 1e-4  # share of the largest loss: a smaller one is as good as 0


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
    curves : list of ndarray
        As given.
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

        Raises
        ------
        TypeError
            If `estimator` has no loss curve.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        _WANTED.check(estimator)
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

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.figure_, self.ax_ = axes_for(ax, figsize=(6.4, 4.2))
        heights, label = _above_the_lowest(self.curves)
        if any(np.isfinite(height).any() for height in heights):
            self._draw(heights)
            self.ax_.set_yscale("log")
        else:  # all starts began at their minimum: flat lines, which have no logarithm here
            heights, label = self.curves, "loss"
            self._draw(heights)
            self.ax_.set_ylim(0, 1.1 * float(np.max(heights[0])) or 1.0)
        self.ax_.set(xlabel="update", ylabel=label)
        self.ax_.xaxis.set_major_locator(ticker().MaxNLocator(6, integer=True))
        self.ax_.margins(x=0.02)
        self.ax_.spines[["top", "right"]].set_visible(False)
        handles, labels = self.ax_.get_legend_handles_labels()
        self.ax_.legend(handles[::-1], labels[::-1], **LEGEND)
        return self

    def _draw(self, heights: list[np.ndarray]) -> None:
        """Draw a line a start, a dot on its last value; the kept start is on top."""
        n_others = len(heights) - 1
        lines = []
        for i in reversed(range(len(heights))):
            style = {"color": CONTEXT, "linewidth": 1.0, "markersize": 3.5, "label": "_"}
            if i == 0:
                style = {"color": EMPHASIS, "linewidth": 2.2, "markersize": 6, "label": "kept"}
            elif i == 1:  # stands in the legend for all others
                style["label"] = "other start" if n_others == 1 else f"{n_others} other starts"
            last = np.flatnonzero(np.isfinite(heights[i]))[-1:].tolist()
            lines += self.ax_.plot(heights[i], marker="o", markevery=last or None, **style)
        self.lines_ = lines[::-1]


def _above_the_lowest(curves: list[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Return what to draw on a logarithmic axis, NaN where it cannot be shown, and its name."""
    lowest = min(float(np.min(curve)) for curve in curves)
    highest = max(float(np.max(curve)) for curve in curves)
    if lowest <= _PERFECT * highest:
        heights, label = [np.asarray(curve) for curve in curves], "loss"
        floor = max(_SMALLEST_EXCESS * highest, np.finfo(float).tiny)
    else:
        heights = [np.asarray(curve) / lowest - 1 for curve in curves]
        label, floor = "loss / lowest loss \N{MINUS SIGN} 1", _SMALLEST_EXCESS
    return [np.where(height > floor, height, np.nan) for height in heights], label
