"""Picture of a search: stability over the values of a parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster.display.style import COLOURS, CONTEXT, FONT, axes_for, ticker

_METRICS = ("stability", "disagreement")
_SPAN = 30.0  # largest over smallest value from which an axis is logarithmic
_MOST_LINES = 10
_MOST_TICKS, _CLOSEST = 12, 0.045  # values that are ticks themselves; share of the axis
_LONGEST = 22  # letters of a category
_GAP = 0.12  # of the axis, to the places of 0 and of infinity
_INFINITY = "\N{INFINITY}"


class StabilityDisplay:
    """Picture of how stable the clusters are for the values of a parameter.

    A dot is a candidate of the search, a band or a bar its standard error, where the search kept
    it (``StabilityScorer(details=True)``); the ring is the candidate that was chosen. The axis is
    logarithmic where the values span decades. There, 0 and infinity have places of their own at
    its ends, behind dotted lines. Values that are no numbers stand side by side. There is a line
    for every combination of the values of the other parameters.

    `from_estimator` and `from_cv_results` make the picture; what the constructor takes are its
    contents.

    Parameters
    ----------
    param_name : str
        Name of the parameter.
    values : sequence of length n_values
        Its values; numbers in increasing order.
    curves : ndarray of shape (n_lines, n_values)
        What is drawn; NaN where there was no such candidate, or no score.
    errors : ndarray of shape (n_lines, n_values), default=None
        Standard errors.
    names : sequence of str, default=None
        Names of the lines, if there are several.
    title : str, default=None
        What the names are values of.
    chosen : tuple of int, default=None
        Line and value that were chosen.
    metric : {"stability", "disagreement"}, default="stability"
        What `curves` are.

    Attributes
    ----------
    param_name, values, curves, errors, names, title, chosen, metric
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

    ax_: Any
    figure_: Any
    lines_: list[Any]
    bands_: list[Any]
    chosen_: Any

    def __init__(
        self,
        *,
        param_name: str,
        values: Sequence[Any],
        curves: np.ndarray,
        errors: np.ndarray | None = None,
        names: Sequence[str] | None = None,
        title: str | None = None,
        chosen: tuple[int, int] | None = None,
        metric: str = "stability",
    ) -> None:
        self.param_name = param_name
        self.values = values
        self.curves = curves
        self.errors = errors
        self.names = names
        self.title = title
        self.chosen = chosen
        self.metric = metric

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        param: str | None = None,
        metric: str = "stability",
        ax: Any = None,
    ) -> StabilityDisplay:
        """Show what a fitted search found.

        Parameters
        ----------
        estimator : GridSearchCV, RandomizedSearchCV or another search of scikit-learn
            A fitted one, scored by `StabilityScorer`.
        param : str, default=None
            The parameter along the axis; by default, of those that were searched, the one with
            the most values, numbers before others.
        metric : {"stability", "disagreement"}, default="stability"
            What to show; "disagreement" needs ``StabilityScorer(details=True)``.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StabilityDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is no search.
        NotFittedError
            If `estimator` is not fitted.
        ValueError
            As `from_cv_results`.
        ImportError
            If matplotlib is not installed.
        """
        if not hasattr(estimator, "scoring") or not hasattr(estimator, "refit"):
            raise TypeError(
                f"estimator must be a search, such as GridSearchCV, got {type(estimator).__name__}."
            )
        check_is_fitted(estimator, "cv_results_")
        return cls.from_cv_results(
            estimator.cv_results_,
            param=param,
            metric=metric,
            best_index=getattr(estimator, "best_index_", None),
            ax=ax,
        )

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
        metric : {"stability", "disagreement"}, default="stability"
            What to show; "disagreement" needs ``StabilityScorer(details=True)``.
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
        heights, errors = _columns(cv_results, metric)
        candidates = list(cv_results["params"])
        param = _axis_parameter(candidates, param)
        others = _varied(candidates) - {param}
        values, places = _distinct([c[param] for c in candidates if param in c])
        combinations = [{n: v for n, v in c.items() if n in others} for c in candidates]
        groups, lines = _distinct(
            [g for g, c in zip(combinations, candidates, strict=True) if param in c]
        )
        if len(groups) > _MOST_LINES:
            raise ValueError(
                f"the parameters besides {param!r} have {len(groups)} combinations of values; at "
                f"most {_MOST_LINES} lines can be told apart."
            )
        kept = [i for i, c in enumerate(candidates) if param in c]
        tables = []
        for column in (heights, errors):
            table = np.full((len(groups), len(values)), np.nan)
            table[lines, places] = np.nan if column is None else column[kept]
            tables.append(table)
        title, names = _name_lines(groups)
        chosen = None
        if best_index is not None and best_index in kept:
            at = kept.index(best_index)
            chosen = (lines[at], places[at])
        display = cls(
            param_name=param,
            values=values,
            curves=tables[0],
            errors=None if errors is None else tables[1],
            names=names,
            title=title,
            chosen=chosen,
            metric=metric,
        )
        return display.plot(ax)

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
        axis = _lay_out(self.values)
        legend_beside = self.names is not None or axis.scale == "category"
        self.figure_, self.ax_ = axes_for(ax, figsize=(7.8 if legend_beside else 6.4, 4.2))
        self.lines_, self.bands_ = [], []
        for i in range(len(self.curves)):
            self._draw(i, axis)
        self._mark(axis)
        self._finish(axis)
        return self

    def _draw(self, i: int, axis: _Layout) -> None:
        """Draw a line, its dots and its errors."""
        x, y, colour = self._shifted(i, axis), self.curves[i], COLOURS[i % len(COLOURS)]
        there = np.isfinite(y)
        joined = there & axis.joined
        name = "_" if self.names is None else self.names[i]
        for left, right in axis.breaks:
            ends = there & (left | right)
            if (there & left).any() and (there & right).any():
                last = np.flatnonzero(ends & left)[-1], np.flatnonzero(ends & right)[0]
                self.ax_.plot(x[[*last]], y[[*last]], ":", color=colour, linewidth=1.4)
        if joined.any():
            self.ax_.plot(x[joined], y[joined], color=colour, linewidth=2.0, zorder=2.5)
        marker = {"marker": "os^DvPX"[i // len(COLOURS)], "markersize": 6, "linestyle": "none"}
        self.lines_ += self.ax_.plot(
            x[there], y[there], color=colour, label=name, zorder=3, clip_on=False, **marker
        )
        if self.errors is None:
            return
        error = np.nan_to_num(self.errors[i])
        if joined.sum() > 1:
            bounds = y[joined] - error[joined], y[joined] + error[joined]
            self.bands_.append(
                self.ax_.fill_between(x[joined], *bounds, color=colour, alpha=0.18, linewidth=0)
            )
            there = there & ~joined
        self.ax_.errorbar(
            x[there], y[there], error[there], fmt="none", color=colour, linewidth=1.4, zorder=2
        )

    def _shifted(self, i: int, axis: _Layout) -> np.ndarray:
        """Return the places of a line, categories a little beside those of other lines."""
        if axis.scale != "category":
            return axis.places
        step = min(0.12, 0.6 / len(self.curves))
        return axis.places + step * (i - (len(self.curves) - 1) / 2)

    def _mark(self, axis: _Layout) -> None:
        """Put a ring around the candidate that was chosen."""
        self.chosen_ = None
        if self.chosen is None or not np.isfinite(self.curves[self.chosen]):
            return
        line, place = self.chosen
        x, y = self._shifted(line, axis)[place], self.curves[line, place]
        self.ax_.axvline(x, color=CONTEXT, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        (self.chosen_,) = self.ax_.plot(
            [x],
            [y],
            "o",
            markersize=14,
            markerfacecolor="none",
            markeredgecolor=COLOURS[line % len(COLOURS)],
            markeredgewidth=1.8,
            zorder=4,
            clip_on=False,
            label=f"chosen: {self.param_name} = {_shown(self.values[place])}",
        )

    def _finish(self, axis: _Layout) -> None:
        """Scale and name the axes, and say what is what."""
        ax = self.ax_
        if axis.scale == "log":
            ax.set_xscale("log")
            ax.xaxis.set_minor_locator(ticker().NullLocator())
        if axis.ticks is not None:
            turned = {"rotation": 30, "ha": "right"} if axis.crowded else {}
            ax.set_xticks(axis.ticks, axis.labels, **turned)
        ax.set_xlim(*axis.limits)
        ax.set(xlabel=self.param_name, ylabel=self.metric)
        ax.margins(y=0.12)
        ax.spines[["top", "right"]].set_visible(False)
        handles = self._handles()
        if handles:
            beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
            ax.legend(
                handles=handles,
                title=self.title,
                frameon=False,
                fontsize=FONT,
                title_fontsize=FONT,
                alignment="left",
                **(beside if self.names or axis.scale == "category" else {"loc": "best"}),
            )

    def _handles(self) -> list[Any]:
        """Return what the legend explains: lines, the ring, and errors."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = []
        if self.names is not None:
            joined: dict[str, Any] = {"linewidth": 2.0 if all(map(_is_number, self.values)) else 0}
            for dots in self.lines_:
                style: dict[str, Any] = {
                    "color": dots.get_color(),
                    "marker": dots.get_marker(),
                    "markersize": 5,
                }
                handles.append(Line2D([], [], label=dots.get_label(), **style, **joined))
        if self.chosen_ is not None:
            ring: dict[str, Any] = {
                "markersize": 9,
                "markerfacecolor": "none",
                "markeredgewidth": 1.8,
            }
            edge = self.chosen_.get_markeredgecolor()
            label = self.chosen_.get_label()
            handles.append(
                Line2D([], [], linewidth=0, marker="o", markeredgecolor=edge, label=label, **ring)
            )
        if self.errors is not None:
            colour = COLOURS[0] if len(self.curves) == 1 else CONTEXT
            label = "\N{PLUS-MINUS SIGN} 1 standard error"
            if self.bands_:
                handles.append(Patch(facecolor=colour, alpha=0.25, label=label))
            else:
                handles.append(
                    Line2D([], [], linewidth=0, marker="|", markersize=11, markeredgewidth=1.4,
                           color=colour, label=label)
                )  # fmt: skip
        return handles


@dataclass(frozen=True)
class _Layout:
    """Where the values of a parameter stand.

    Attributes
    ----------
    scale : {"linear", "log", "category"}
    places : ndarray of shape (n_values,)
    joined : ndarray of shape (n_values,), bool
        Whether a value is joined to its neighbours.
    breaks : list of (ndarray, ndarray)
        Masks of values to the left and to the right of a break in the axis.
    ticks, labels : list or None
        None leaves them to matplotlib.
    limits : (float, float)
    crowded : bool
        Whether the labels need to be turned.
    """

    scale: str
    places: np.ndarray
    joined: np.ndarray
    breaks: list[tuple[np.ndarray, np.ndarray]]
    ticks: list[float] | None
    labels: list[str] | None
    limits: tuple[float, float]
    crowded: bool = False


def _lay_out(values: Sequence[Any]) -> _Layout:
    """Choose the scale of the axis, and the places of the values on it."""
    if not all(_is_number(value) for value in values):
        labels = [_shown(value) for value in values]
        crowded = len(labels) * max(map(len, labels)) > 52
        places = np.arange(len(values), dtype=float)
        none = np.zeros(len(values), dtype=bool)
        limits = (-0.5, len(values) - 0.5)
        return _Layout("category", places, none, [], places.tolist(), labels, limits, crowded)
    numbers = np.array([float(value) for value in values])
    finite = np.isfinite(numbers)
    inner = numbers[finite & (numbers > 0)]
    log = (
        len(inner) > 1
        and not (numbers[finite] < 0).any()
        and bool(inner.max() >= _SPAN * inner.min())
    )
    low, high = (finite & (numbers <= 0) if log else numbers == -np.inf), numbers == np.inf
    joined = ~low & ~high
    places = np.log10(numbers, where=joined, out=np.zeros_like(numbers)) if log else numbers.copy()
    inside = places[joined] if joined.any() else np.zeros(1)
    span = np.ptp(inside) or 1.0
    places[low], places[high] = inside.min() - _GAP * span, inside.max() + _GAP * span
    ticks, labels = _ticks(values, numbers, places, joined, log)
    edges = places.min() - 0.04 * span, places.max() + 0.04 * span
    breaks = [pair for pair in ((low, joined), (joined, high)) if pair[0].any() and pair[1].any()]
    if not log:
        return _Layout("linear", places, joined, breaks, ticks, labels, edges)
    powers = 10.0 ** np.array(ticks)
    limits = (float(10 ** edges[0]), float(10 ** edges[1]))
    return _Layout("log", 10**places, joined, breaks, powers.tolist(), labels, limits)


def _ticks(
    values: Sequence[Any], numbers: np.ndarray, places: np.ndarray, joined: np.ndarray, log: bool
) -> tuple[list[float], list[str]]:
    """Return the ticks: the values themselves, where there is room, or else round numbers."""
    gaps = np.diff(places)
    room = len(values) <= _MOST_TICKS and (gaps > _CLOSEST * np.ptp(places)).all()
    labels = [_shown(value) for value in values]
    if room and sum(map(len, labels)) <= 60:
        return places.tolist(), labels
    inside = places[joined]
    if log:
        low, high = math.ceil(inside.min() - 1e-9), math.floor(inside.max() + 1e-9)
        powers = np.arange(low, high + 1, max(1, (high - low) // 7))
        ticks, labels = powers.astype(float).tolist(), [f"$10^{{{p}}}$" for p in powers]
    else:
        found = ticker().MaxNLocator(8).tick_values(inside.min(), inside.max())
        ticks = [t for t in found.tolist() if inside.min() <= t <= inside.max()]
        labels = [f"{t:g}" for t in ticks]
    for i in np.flatnonzero(~joined).tolist():
        ticks.append(float(places[i]))
        labels.append(_shown(values[i]))
    return ticks, labels


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and value == value


def _shown(value: Any) -> str:
    """Return the name of a value of a parameter."""
    if _is_number(value):
        if math.isinf(value):
            return _INFINITY if value > 0 else f"\N{MINUS SIGN}{_INFINITY}"
        return f"{value:.4g}" if abs(value) < 1e5 or value != int(value) else f"{value:g}"
    name = " ".join(str(value).split())
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _columns(cv_results: Mapping[str, Any], metric: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the figures of all candidates, and their standard errors if they are there."""
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {_METRICS}, got {metric!r}.")
    names = [f"mean_test_{metric}"] + ["mean_test_score"] * (metric == "stability")
    name = next((name for name in names if name in cv_results), None)
    if name is None or "params" not in cv_results:
        raise ValueError(
            f"cv_results must hold 'params' and {' or '.join(map(repr, names))}: it is "
            "`cv_results_` of a search with scoring=StabilityScorer(details=True)."
        )
    heights = np.asarray(cv_results[name], dtype=float)
    if not np.isfinite(heights).any():
        raise ValueError(f"cv_results[{name!r}] must hold a finite number; there is none to show.")
    error = f"{names[0]}_se"
    return heights, np.asarray(cv_results[error], dtype=float) if error in cv_results else None


def _distinct(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return distinct values, numbers in increasing order, and which of them each value is."""
    found: list[Any] = []
    for value in values:
        if not any(_same(value, other) for other in found):
            found.append(value)
    if all(_is_number(value) for value in found):
        found.sort()
    return found, [next(i for i, f in enumerate(found) if _same(value, f)) for value in values]


def _same(a: Any, b: Any) -> bool:
    """Compare values of a parameter: estimators and arrays, too."""
    if a is b:
        return True
    if type(a) is type(b) and isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    try:
        return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
    except ValueError:
        return bool(np.array_equal(a, b))


def _varied(candidates: list[dict[str, Any]]) -> set[str]:
    """Return the parameters with several values, or that not all candidates have."""
    names = {name for candidate in candidates for name in candidate}
    return {
        name
        for name in names
        if len(_distinct([c[name] for c in candidates if name in c])[0]) > 1
        or not all(name in c for c in candidates)
    }


def _axis_parameter(candidates: list[dict[str, Any]], param: str | None) -> str:
    """Return the parameter along the axis."""
    searched = list(dict.fromkeys(name for c in candidates for name in c))
    if param is None:
        if not searched:
            raise ValueError("cv_results must hold a parameter; the search had none.")
        values = {n: _distinct([c[n] for c in candidates if n in c])[0] for n in searched}
        return max(
            searched, key=lambda n: (all(map(_is_number, values[n])) and len(values[n]) > 1,
                                     len(values[n])),
        )  # fmt: skip
    if param not in searched:
        raise ValueError(f"param must be a parameter that was searched, {searched}, got {param!r}.")
    return param


def _name_lines(groups: list[dict[str, Any]]) -> tuple[str | None, list[str] | None]:
    """Return what the lines are of, and their names; None if there is a single one."""
    if len(groups) == 1:
        return None, None
    parameters = list(dict.fromkeys(name for group in groups for name in group))
    if len(parameters) == 1:
        return parameters[0], [_shown(group.get(parameters[0], "default")) for group in groups]
    return None, [", ".join(f"{n} = {_shown(v)}" for n, v in g.items()) for g in groups]
