"""Picture of a search: stability over the values of a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import nmfcluster.display.style as look
from nmfcluster.display.stability_axis import AxisLayout, is_number, lay_out, name_of
from nmfcluster.display.stability_table import read_search

_MARKERS = "os^DvPX"
_LINE = 2.0  # points: width of a curve
_ERROR = 1.4  # points: width of an error bar, and of a curve across a break in the axis
_RING = {"marker": "o", "linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 1.8}


@dataclass(kw_only=True, repr=False, eq=False)
class StabilityDisplay:
    """Picture of how stable the clusters are for the values of a parameter.

    A dot is a candidate of the search, a band or a bar its standard error, where the search kept
    it (``StabilityScorer(details=True)``), a grey strip one standard error below the best: what
    lies in it is as good. The ring is the candidate that was chosen. The axis is
    logarithmic where the values span decades. There, 0 and infinity have places of their own at
    its ends, behind dotted lines. Values that are not numbers stand side by side. There is a line
    for every combination of the values of the other parameters.

    With ``NullScorer(StabilityScorer(), details=True)`` the metric "excess" shows by how much
    candidates exceed tables without clusters, whose standard deviation is a grey band around 0.
    A single cluster exceeds them by nothing; the ring is there if no p-value is .05 or below.

    `from_estimator` and `from_cv_results` read the curves and draw them; the constructor takes
    curves.

    Parameters
    ----------
    param_name : str
        Name of the parameter.
    values : sequence of length n_values
        Its values; numbers in increasing order.
    curves : ndarray of shape (n_lines, n_values)
        Scores; NaN where there was no such candidate, or no score.
    errors : ndarray of shape (n_lines, n_values), default=None
        Standard errors.
    names : sequence of str, default=None
        Names of the lines, if there are several.
    title : str, default=None
        The parameter whose values are the names.
    chosen : tuple of int, default=None
        Line and value that were chosen.
    metric : {"stability", "disagreement", "excess", "score"}, default="stability"
        Name of the scores; "score" is any other.
    null_sd : ndarray of shape (n_lines, n_values), default=None
        Standard deviations of scores of tables without clusters.

    Attributes
    ----------
    param_name, values, curves, errors, names, title, chosen, metric, null_sd
        As given.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : list of matplotlib Line2D
        The dots, one object a line of the picture.
    bands_ : list of matplotlib FillBetweenPolyCollection
        Standard errors of values that are joined by lines, one a line; empty without errors.
    chosen_ : matplotlib Line2D or None
        The ring.
    interval_ : matplotlib Rectangle or None
        The strip of what is as good as the best, where there is one line with errors.
    null_ : list of matplotlib FillBetweenPolyCollection
        Bands of tables without clusters, one a line.

    See Also
    --------
    nmfcluster.model_selection.StabilityScorer : Computes what is shown.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.display import StabilityDisplay
    >>> from nmfcluster.model_selection import FullSampleSplit, StabilityScorer
    >>> X, _ = make_blobs(200, centers=4, random_state=1)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [2, 3, 4, 5, 6]},
    ...     scoring=StabilityScorer(details=True),
    ...     cv=FullSampleSplit(),
    ...     refit="stability",
    ... ).fit(X)
    >>> display = StabilityDisplay.from_estimator(search)
    >>> display.values
    [2, 3, 4, 5, 6]
    >>> display.chosen  # the first line, the third value
    (0, 2)
    >>> display.figure_.savefig("stability.png")  # doctest: +SKIP
    """

    param_name: str
    values: Sequence[Any]
    curves: np.ndarray
    errors: np.ndarray | None = None
    names: Sequence[str] | None = None
    title: str | None = None
    chosen: tuple[int, int] | None = None
    metric: str = "stability"
    null_sd: np.ndarray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        param: str | None = None,
        metric: str = "stability",
        ax: Any = None,
    ) -> StabilityDisplay:
        """Show the scores of a fitted search.

        Parameters
        ----------
        estimator : GridSearchCV, RandomizedSearchCV or another search of scikit-learn
            A fitted one, scored by `StabilityScorer`; one that was scored otherwise is shown, too.
        param : str, default=None
            The parameter along the axis; by default, of those that were searched, the one with
            the most values, numbers before others.
        metric : {"stability", "disagreement", "excess"}, default="stability"
            The score to show; "disagreement" needs ``StabilityScorer(details=True)``, "excess"
            ``NullScorer(StabilityScorer(), details=True)``.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StabilityDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is not a search.
        NotFittedError
            If `estimator` is not fitted.
        ValueError
            As `from_cv_results`.
        ImportError
            If matplotlib is not installed.
        """
        if not hasattr(estimator, "scoring") or not hasattr(estimator, "refit"):
            raise TypeError(
                "estimator must be a search, such as GridSearchCV, got "
                f"{type(estimator).__name__}: from_cv_results takes tables of scores."
            )
        check_is_fitted(estimator, "cv_results_")
        best = getattr(estimator, "best_index_", None)
        found = read_search(estimator.cv_results_, param, metric, best)
        if metric == "stability" and isinstance(estimator.scoring, str | None):
            found["metric"] = "score"  # of scikit-learn, or the estimator's own
        return cls(**found).plot(ax)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        param: str | None = None,
        metric: str = "stability",
        best_index: int | None = None,
        ax: Any = None,
    ) -> StabilityDisplay:
        """Show the table of a search.

        Parameters
        ----------
        cv_results : dict
            `cv_results_` of a search that was scored by `StabilityScorer`, or a data frame of it.
        param : str, default=None
            The parameter along the axis; by default, of those that were searched, the one with
            the most values, numbers before others.
        metric : {"stability", "disagreement", "excess"}, default="stability"
            The score to show; "disagreement" needs ``StabilityScorer(details=True)``, "excess"
            ``NullScorer(StabilityScorer(), details=True)``.
        best_index : int, default=None
            The candidate that was chosen.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StabilityDisplay
            The picture, drawn.

        Raises
        ------
        ValueError
            If `param` was not searched, if `cv_results` does not hold `metric` or holds NaN alone,
            or if the other parameters have more than 10 combinations of values.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from nmfcluster.display import StabilityDisplay
        >>> results = {
        ...     "params": [{"eta": 0.1}, {"eta": 1.0}, {"eta": 10.0}],
        ...     "mean_test_score": [0.2, 0.5, 0.4],
        ... }
        >>> display = StabilityDisplay.from_cv_results(results, best_index=1)
        >>> display.values, display.curves
        ([0.1, 1.0, 10.0], array([[0.2, 0.5, 0.4]]))
        """
        return cls(**read_search(cv_results, param, metric, best_index)).plot(ax)

    def plot(self, ax: Any = None) -> StabilityDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StabilityDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        axis = lay_out(self.values)
        beside = self.names is not None or axis.scale == "category"  # the legend, which needs room
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(7.8 if beside else 6.4, 4.2))
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        for i in range(len(self.curves)):
            self._draw(i, axis)
            if self.errors is not None:
                self._draw_errors(i, axis, np.nan_to_num(self.errors[i]))
        self.interval_ = self._draw_interval()
        self.null_ = [] if self.null_sd is None else self._draw_null(axis, self.null_sd)
        self.chosen_ = self._mark(axis)
        self._finish(axis)
        handles = self._handles()
        if handles:
            title = {"title": self.title, "title_fontsize": look.FONT, "alignment": "left"}
            place = look.BESIDE if beside else {"loc": "best"}
            self.ax_.legend(handles=handles, **title, **look.LEGEND, **place)
        return self

    def _draw(self, i: int, axis: AxisLayout) -> None:
        """Draw the dots of a line, joined where the axis is."""
        x, y = self._places(i, axis), self.curves[i]
        there = np.isfinite(y)
        joined = there & axis.joined
        name = "_" if self.names is None else self.names[i]
        of_line: dict[str, Any] = {"color": look.colour_of(i)}
        for left, right in axis.breaks:
            before, after = np.flatnonzero(there & left), np.flatnonzero(there & right)
            if len(before) and len(after):
                ends = [before[-1], after[0]]
                self.ax_.plot(x[ends], y[ends], ":", linewidth=_ERROR, **of_line)
        if joined.any():
            self.ax_.plot(x[joined], y[joined], linewidth=_LINE, zorder=2.5, **of_line)
        marker = _MARKERS[i // len(look.COLOURS) % len(_MARKERS)]  # others for a second round
        dots = {"marker": marker, "markersize": 6, "linestyle": "none", "zorder": 3}
        dots |= {"label": name, "clip_on": False, **of_line}
        self.lines_ += self.ax_.plot(x[there], y[there], **dots)

    def _draw_errors(self, i: int, axis: AxisLayout, error: np.ndarray) -> None:
        """Draw the errors of a line: a band where its dots are joined, bars elsewhere."""
        x, y, colour = self._places(i, axis), self.curves[i], look.colour_of(i)
        alone = np.isfinite(y)
        joined = alone & axis.joined
        if joined.sum() > 1:
            bounds = y[joined] - error[joined], y[joined] + error[joined]
            style = {"color": colour, "alpha": 0.18, "linewidth": 0}
            self.bands_.append(self.ax_.fill_between(x[joined], *bounds, **style))
            alone = alone & ~joined
        bars: dict[str, Any] = {"fmt": "none", "color": colour, "linewidth": _ERROR, "zorder": 2}
        self.ax_.errorbar(x[alone], y[alone], error[alone], **bars)

    def _draw_interval(self) -> Any:
        """Draw a strip one standard error below the best, and return it."""
        if self.errors is None or len(self.curves) > 1 or self.metric != "stability":
            return None
        best = int(np.nanargmax(self.curves[0]))
        top, error = self.curves[0, best], np.nan_to_num(self.errors[0, best])
        return self.ax_.axhspan(top - error, top, color=look.CONTEXT, alpha=0.2, linewidth=0)

    def _draw_null(self, axis: AxisLayout, null_sd: np.ndarray) -> list[Any]:
        """Draw bands around 0, which is what tables without clusters have, and return them."""
        self.ax_.axhline(0, zorder=1, **look.DASHED)
        style = {"color": look.CONTEXT, "alpha": 0.2, "linewidth": 0}
        spreads = np.nan_to_num(null_sd)
        return [
            self.ax_.fill_between(self._places(i, axis), -spread, spread, **style)
            for i, spread in enumerate(spreads)
        ]

    def _places(self, i: int, axis: AxisLayout) -> np.ndarray:
        """Return the places of a line's dots; those of categories are beside those of others."""
        if axis.scale != "category":
            return axis.places
        step = min(0.12, 0.6 / len(self.curves))
        return axis.places + step * (i - (len(self.curves) - 1) / 2)

    def _mark(self, axis: AxisLayout) -> Any:
        """Put a ring around the candidate that was chosen, and return it."""
        if self.chosen is None or not np.isfinite(self.curves[self.chosen]):
            return None
        line, value = self.chosen
        x, y = self._places(line, axis)[value], self.curves[line, value]
        self.ax_.axvline(x, zorder=1, **look.DASHED)
        ring = {**_RING, "markeredgecolor": look.colour_of(line), "markersize": 14, "zorder": 4}
        label = f"chosen: {self.param_name} = {name_of(self.values[value])}"
        return self.ax_.plot([x], [y], label=label, clip_on=False, **ring)[0]

    def _finish(self, axis: AxisLayout) -> None:
        """Scale and name the axes."""
        if axis.scale == "log":
            self.ax_.set_xscale("log")
            self.ax_.xaxis.set_minor_locator(look.ticker().NullLocator())
        turned = {"rotation": 30, "ha": "right"} if axis.crowded else {}
        self.ax_.set_xticks(axis.ticks, axis.labels, **turned)
        self.ax_.set_xlim(*axis.limits)
        self.ax_.set(xlabel=self.param_name, ylabel=self.metric)
        self.ax_.margins(y=0.12)
        self.ax_.spines[["top", "right"]].set_visible(False)

    def _handles(self) -> list[Any]:
        """Return what the legend explains: lines, the ring, and errors."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        def sample(label: str, **style: Any) -> Any:
            return Line2D([], [], label=label, **{"linewidth": 0, **style})

        handles: list[Any] = []
        if self.names is not None:
            width = _LINE if all(map(is_number, self.values)) else 0
            for dots in self.lines_:
                marker = {"marker": dots.get_marker(), "markersize": 5, "color": dots.get_color()}
                handles.append(sample(dots.get_label(), linewidth=width, **marker))
        if self.chosen_ is not None:
            ring = {**_RING, "markeredgecolor": self.chosen_.get_markeredgecolor()}
            handles.append(sample(self.chosen_.get_label(), markersize=9, **ring))
        if self.errors is not None:
            colour = look.colour_of(0) if len(self.curves) == 1 else look.CONTEXT
            label = "\N{PLUS-MINUS SIGN} 1 standard error"
            if self.bands_:
                handles.append(Patch(facecolor=colour, alpha=0.25, label=label))
            else:
                bar = {"marker": "|", "markersize": 11, "markeredgewidth": _ERROR}
                handles.append(sample(label, color=colour, **bar))
        if self.interval_ is not None:
            label = "as good: 1 standard error below the best"
            handles.append(Patch(facecolor=look.CONTEXT, alpha=0.3, label=label))
        if self.null_:
            label = "no clusters, \N{PLUS-MINUS SIGN} 1 standard deviation"
            handles.append(Patch(facecolor=look.CONTEXT, alpha=0.3, label=label))
        return handles
