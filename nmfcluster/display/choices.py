"""Pictures of the choice of the number of clusters, or of the value of any parameter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np

from nmfcluster._utils.validation import format_count, format_value, read_matrix
from nmfcluster.display.style import (
    CHOSEN,
    COLOURS,
    EMPHASIS,
    HOLLOW,
    LEGEND,
    Display,
    check_fitted,
    draw_curve,
    read_list,
    set_count_ticks,
    set_value_ticks,
    split_axes,
)

_ERROR_COLOUR = COLOURS[5]  # of reconstruction errors and their scale
_LABELS = {
    "stability": "agreement of parts",
    "eigengap": "gap between eigenvalues",
    "similarity": "lowest similarity in a cluster",
}


@dataclass(kw_only=True, repr=False, eq=False)
class NumberDisplay(Display):
    """Picture of a choice of the number of clusters.

    The picture depends on the method that made the choice:

    - A vote has a dot for the number that each criterion chose. A filled dot is the number that was
      chosen in the end, and an arrow points to a number beyond the candidates.
    - For stability, the curve is the mean agreement of fits to parts of the samples. For the
      eigengap, it is the gap between eigenvalues. For programs of groups, it is the lowest
      similarity at which programs are put together.
    - A sweep divides its axes in two. The upper part shows how reliably clusters recur in the runs,
      on average and for the least recurrent cluster (left scale), and the reconstruction error
      (right scale). The lower part shows the held-out loss minus its minimum.

    A band is one standard error, a filled dot on a curve is a number that is as good as the best by
    the rule of the method, and the dashed line is the number that was chosen.

    `from_estimator` reads a choice and draws it; the constructor takes its table.

    Parameters
    ----------
    table : mapping of str to ndarray of shape (n_candidates,)
        The columns "n_clusters", "as_good" and "chosen", and the columns of a method: "eigengap";
        "similarity"; "stability" and "stability_se"; or "recurrence", "smallest_recurrence" and
        "reconstruction_err", optionally with "held_out_loss" and "held_out_se". A missing value is
        NaN.
    votes : dict of str to int, default=None
        The number of clusters that each criterion chose, drawn instead of curves.
    agreed : bool, default=True
        Whether at least two criteria agree.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    error_ax_, loss_ax_ : matplotlib Axes or None
        The axes of the reconstruction errors, whose scale is at the right, and those of the
        held-out losses, below. None if there are no such figures: only a sweep has them.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : dict of matplotlib Line2D
        The curves, by the names of their columns, or the dots of a vote, by the names of the
        criteria.

    See Also
    --------
    nmfcluster.model_selection.choose_n_clusters : Computes what is shown, as sweep_n_clusters.
    StabilityDisplay : Shows the values of any parameter.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster.display import NumberDisplay
    >>> from nmfcluster.model_selection import choose_n_clusters
    >>> X, _ = make_blobs(100, centers=4, random_state=8)
    >>> chosen = choose_n_clusters(KMeans(n_init=3), X, range(1, 7), random_state=0)
    >>> display = NumberDisplay.from_estimator(chosen)  # or chosen.plot()
    >>> display.ax_.get_title()
    'chosen: 4 clusters'
    """

    table: Mapping[str, Any]
    votes: Mapping[str, int] | None = None
    agreed: bool = True

    @classmethod
    def from_estimator(cls, estimator, *, ax=None) -> Self:
        """Show a choice.

        Parameters
        ----------
        estimator : NumberOfClusters or ClusterSweep
            What `choose_n_clusters` or `sweep_n_clusters` returned.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. A sweep divides it.

        Returns
        -------
        NumberDisplay
            The picture, drawn.
        """
        check_fitted(
            estimator,
            "table",
            expected="what choose_n_clusters or sweep_n_clusters returned",
            cure="ask choose_n_clusters(estimator, X)",
        )
        display = cls(
            table=estimator.table, votes=estimator.votes, agreed=estimator.agreed
        )
        return display.plot(ax)

    def _draw(self, ax):
        table = {name: np.asarray(column) for name, column in self.table.items()}
        candidates = table["n_clusters"]
        n_clusters = int(candidates[table["chosen"]].item())
        has_losses = "held_out_loss" in table
        height = 5.2 if has_losses else 3.6
        if self.votes:
            height = 1.2 + 0.35 * len(self.votes)
        ax = self._set_axes(ax, (6.0, height))
        panels = [ax]
        self.error_ax_ = None
        self.loss_ax_ = None
        if has_losses:
            self.loss_ax_ = split_axes(ax)
            panels.append(self.loss_ax_)
        self.lines_: dict = {}
        criterion = next((name for name in _LABELS if name in table), None)
        if self.votes:
            self._draw_votes(ax, self.votes, candidates, n_clusters)
        elif criterion is not None:
            errors = table.get(f"{criterion}_se")
            self._draw_curve(
                ax, table, criterion, errors=errors, as_good=table["as_good"]
            )
            ax.set_ylabel(_LABELS[criterion])
        else:
            self._draw_recurrence(ax, table)
        if has_losses:
            ax.tick_params(axis="x", labelbottom=False)
            self._draw_losses(panels[-1], table)
        panels[-1].set(
            xlabel="number of clusters",
            xlim=(candidates[0] - 0.7, candidates[-1] + 0.7),
        )
        set_count_ticks(panels[-1].xaxis, 12)
        for panel in panels:
            panel.axvline(n_clusters, **CHOSEN)
        title = f"chosen: {format_count(n_clusters, 'cluster')}"
        if not self.agreed:
            title += ", no agreement"
        ax.set_title(title, fontsize="medium")

    def _draw_curve(self, ax, table, name, **style):
        self.lines_[name] = draw_curve(ax, table["n_clusters"], table[name], **style)

    def _draw_votes(self, ax, votes, candidates, n_clusters):
        """Draw a row for every criterion, the first at the top, with a dot at its answer."""
        low = candidates[0]
        high = candidates[-1]
        for row, (name, answer) in enumerate(votes.items()):
            marker = "o"
            if answer > high:
                marker = ">"
            elif answer < low:
                marker = "<"
            style = {} if answer == n_clusters else HOLLOW
            x = np.clip([answer], low - 0.5, high + 0.5)
            self.lines_[name] = draw_curve(
                ax, x, [row], clip_on=False, marker=marker, **style
            )
        ax.set(
            yticks=range(len(votes)),
            yticklabels=list(votes),
            ylim=(len(votes) - 0.5, -0.5),
        )
        ax.grid(axis="y", color="0.5", alpha=0.2, linewidth=0.8)

    def _draw_recurrence(self, ax, table):
        """Draw recurrence and error, each scale in the colour of its curves."""
        error_ax = ax.twinx()
        self.error_ax_ = error_ax
        self._draw_curve(
            error_ax, table, "reconstruction_err", colour=_ERROR_COLOUR, marker="s"
        )
        self._draw_curve(ax, table, "recurrence", label="mean of all clusters")
        self._draw_curve(
            ax,
            table,
            "smallest_recurrence",
            label="least recurrent cluster",
            marker="^",
            linestyle="--",
        )
        ax.set(ylim=(0, 1.05), ylabel="recurrence")
        error_ax.set(ylabel="reconstruction error", ymargin=0.15)
        error_ax.spines["right"].set_visible(True)
        for axes, colour in (
            (ax, EMPHASIS),
            (error_ax, _ERROR_COLOUR),
        ):
            axes.yaxis.label.set_color(colour)
            axes.tick_params(axis="y", colors=colour)
        ax.set_zorder(error_ax.get_zorder() + 1)
        ax.patch.set_visible(False)  # it would hide the error, which is below
        ax.legend(loc="lower left", **LEGEND)

    def _draw_losses(self, ax, table):
        """Draw the held-out losses minus the least one: linear near it, else a logarithm."""
        losses = table["held_out_loss"]
        errors = table["held_out_se"]
        self._draw_curve(
            ax,
            table | {"held_out_loss": losses - np.nanmin(losses)},
            "held_out_loss",
            errors=errors,
            as_good=table["as_good"],
            colour=COLOURS[2],
            clip_on=False,
        )
        scale = float(np.nanmax(errors))
        if scale > 0:  # the few losses near the least are the ones to compare
            linear = 10 ** np.ceil(np.log10(scale))
            ax.set_yscale("symlog", linthresh=linear)
            ax.set_ylim(bottom=-0.15 * linear)
        ax.yaxis.set_major_formatter("{x:,g}")
        ax.set_ylabel("held-out loss\nabove the least")


@dataclass(kw_only=True, repr=False, eq=False)
class StabilityDisplay(Display):
    """Picture of a search: the scores of the values of a parameter.

    A band is one standard error, if it is known: that of ``StabilityScorer(details=True)``, or that
    of the mean over several splits. A filled dot is a value as good as the best: its score is at
    most one standard error of the best score below that score. The dashed line is the value that
    was chosen. Values are equally spaced, numbers in increasing order.

    `from_estimator` reads the scores and draws them; the constructor takes scores.

    Parameters
    ----------
    param_name : str
    values : sequence of length n_values
        Values of the parameter; numbers in increasing order.
    scores : ndarray of shape (n_values,)
        Scores; a missing one is NaN.
    errors : ndarray of shape (n_values,), default=None
        Standard errors.
    chosen : object, default=None
        The value to mark.
    metric : str, default="score"
        Name of the scores. Larger scores are better.

    Attributes
    ----------
    as_good_ : ndarray of shape (n_values,), bool
        Values that are as good as the best.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The dots.

    See Also
    --------
    nmfcluster.model_selection.StabilityScorer : Computes what is shown.
    NumberDisplay : Shows a choice of the number of clusters.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.display import StabilityDisplay
    >>> from nmfcluster.model_selection import FullSampleSplit, StabilityScorer
    >>> X, _ = make_blobs(100, centers=4, random_state=1)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=1, random_state=0),
    ...     {"n_clusters": [3, 4, 5]},
    ...     scoring=StabilityScorer(10, details=True),
    ...     cv=FullSampleSplit(),
    ...     refit="stability",
    ... ).fit(X)
    >>> display = StabilityDisplay.from_estimator(search)
    >>> display.values, display.chosen
    ([3, 4, 5], 4)
    >>> display.figure_.savefig("stability.png")  # doctest: +SKIP
    """

    param_name: str
    values: Sequence[Any]
    scores: np.ndarray
    errors: np.ndarray | None = None
    chosen: Any = None
    metric: str = "score"

    @classmethod
    def from_estimator(cls, estimator, *, ax=None) -> Self:
        """Show the scores by which a fitted search chose.

        If several parameters varied, the picture shows the one with the most values. The score of a
        value is the best one among all candidates that have this value.

        Parameters
        ----------
        estimator : GridSearchCV, RandomizedSearchCV or another search of scikit-learn
            A fitted search, with any scorer.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StabilityDisplay
            The picture, drawn.
        """
        check_fitted(
            estimator,
            "cv_results_",
            expected="a search, such as GridSearchCV",
            cure="the constructor takes scores of others",
        )
        results = estimator.cv_results_
        metric = "score" if "mean_test_score" in results else "stability"
        if isinstance(estimator.refit, str):
            metric = estimator.refit
        if f"mean_test_{metric}" not in results:
            raise ValueError(
                "refit of the search must be the name of a score, got "
                f"{estimator.refit!r}."
            )
        column = f"mean_test_{metric}"
        scores = np.asarray(results[column], dtype=float)
        if not np.isfinite(scores).any():
            raise ValueError(
                f"{metric} must have a finite value to show, got NaN for all candidates."
            )
        # standard errors are known, or those of the mean over several splits
        errors = results.get(f"{column}_se")
        n_splits = sum(
            name.startswith("split") and name.endswith(f"test_{metric}")
            for name in results
        )
        if errors is None and n_splits > 1:
            errors = results[f"std_test_{metric}"] / np.sqrt(n_splits - 1)
        # the parameter with the most values, and the candidates with each of these
        groups: dict = {}
        for i, candidate in enumerate(results["params"]):
            for name, value in candidate.items():
                groups.setdefault(name, {}).setdefault(str(value), []).append(i)
        param = max(groups, key=lambda name: len(groups[name]))
        # the best candidate of every value
        ranks = np.nan_to_num(scores, nan=-np.inf)
        best = [max(own, key=lambda i: ranks[i]) for own in groups[param].values()]
        values = [results["params"][i][param] for i in best]
        if all(isinstance(value, Real) for value in values):
            best.sort(key=lambda i: results["params"][i][param])
            values.sort()
        index = getattr(estimator, "best_index_", None)
        display = cls(
            param_name=param,
            values=values,
            metric=metric,
            scores=scores[best],
            errors=None if errors is None else np.asarray(errors, dtype=float)[best],
            chosen=None if index is None else results["params"][index].get(param),
        )
        return display.plot(ax)

    def _draw(self, ax):
        scores = read_matrix(
            read_list(self.scores, "scores"),
            "scores",
            ensure_2d=False,
            ensure_all_finite="allow-nan",
        )
        n_values = len(read_list(self.values, "values"))
        if scores.shape != (n_values,) or np.isnan(scores).all():
            raise ValueError(
                f"scores must be one number a value, got {format_value(self.scores)}."
            )
        ax = self._set_axes(ax, (6.4, 4.2))
        best = int(np.nanargmax(scores))
        error = 0.0 if self.errors is None else np.nan_to_num(self.errors[best])
        self.as_good_ = scores >= scores[best] - error
        x = set_value_ticks(ax, self.param_name, self.values, self.chosen)
        self.line_ = draw_curve(ax, x, scores, self.errors, as_good=self.as_good_)
        ax.set(ylabel=self.metric, ymargin=0.12)
