"""Displays of choices of a parameter, and of the weights of sources."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np

from nmfcluster._utils.validation import format_count, format_value, read_matrix
from nmfcluster.display.style import (
    CHOSEN,
    COLOURS,
    DASHED,
    EMPHASIS,
    FONT,
    HOLLOW,
    LEGEND,
    MAX_MARGIN,
    Display,
    check_fitted,
    cluster_colour,
    set_count_ticks,
)

_ERROR_COLOUR = COLOURS[5]  # colour of reconstruction errors and of their scale
_LABELS = {
    "stability": "agreement of parts",
    "eigengap": "gap between eigenvalues",
    "similarity": "lowest similarity in a cluster",
}
_LONGEST = 30  # largest number of letters in the name of a source, or of a value
# z-score above which two sources agree, as in `SimilarityFusionNMF`
_MIN_SCORE = 5.0
# largest number of sources with correlations in their cells; more would not be legible
_MAX_WRITTEN = 12


class NumberDisplay(Display):
    """Picture of a choice of the number of clusters.

    The picture depends on the method that made the choice:

    - For a vote, a dot shows the number that each criterion chose. The dot is filled if this number
      was chosen in the end. An arrow points to a number outside the candidates.
    - For stability, the curve is the mean agreement of fits to parts of the samples. For the
      eigengap, it is the gap between eigenvalues. For programs that recur in several groups of
      samples, it is the lowest similarity of programs that are merged.
    - For a sweep, the axes are divided in two. The upper part shows how reliably clusters recur in
      the runs, on average and for the least recurrent cluster (left scale), and the reconstruction
      error (right scale). The lower part shows the held-out loss minus its minimum.

    A band shows one standard error. A filled dot on a curve marks a number that is as good as the
    best one by the rule of the method. A dashed line marks the number that was chosen.

    Use `from_estimator` to draw the result of a choice. The constructor takes its columns instead.

    Parameters
    ----------
    table : mapping of str to ndarray of shape (n_candidates,)
        The columns of a choice, with one entry for each candidate. A missing value is NaN. All
        methods have "n_clusters", "as_good" and "chosen". The eigengap has "eigengap", the merging
        of programs has "similarity", and stability has "stability" and "stability_se". A sweep has
        "recurrence", "smallest_recurrence" and "reconstruction_err", and optionally "held_out_loss"
        and "held_out_se".
    votes : dict of str to int, default=None
        The number of clusters that each criterion chose. Votes are drawn instead of curves.
    agreed : bool, default=True
        Whether enough criteria agree. If not, the title says so.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the picture.
    error_ax_, loss_ax_ : matplotlib Axes or None
        The axes of the reconstruction errors, with a scale at the right, and the axes of the
        held-out losses, in the lower part. Only a sweep has such values; otherwise the axes are
        None.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : dict of matplotlib Line2D
        The curves, by the names of their columns, or the dots of a vote, by the names of the
        criteria.

    See Also
    --------
    nmfcluster.model_selection.choose_n_clusters : Makes the choice, and so does sweep_n_clusters.
    StabilityDisplay : Shows scores for the values of any parameter.

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
        """Draw a choice of the number of clusters.

        Parameters
        ----------
        estimator : NumberOfClusters or ClusterSweep
            The result of `choose_n_clusters` or `sweep_n_clusters`.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created. For a sweep, the axes are divided
            in two.

        Returns
        -------
        NumberDisplay
            The drawn picture.
        """
        check_fitted(
            estimator,
            "table",
            expected="a result of choose_n_clusters or sweep_n_clusters",
            cure="Pass choose_n_clusters(estimator, X)",
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
        """Draw a row for every criterion, the first at the top, with a dot at its number."""
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
        ax.patch.set_visible(False)  # it would hide the error, drawn below it
        ax.legend(loc="lower left", **LEGEND)

    def _draw_losses(self, ax, table):
        """Draw losses minus the smallest, on a scale that is linear near 0 and then log."""
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
        if scale > 0:  # show differences between the few losses near the smallest one
            linear = 10 ** np.ceil(np.log10(scale))
            ax.set_yscale("symlog", linthresh=linear)
            ax.set_ylim(bottom=-0.15 * linear)
        ax.yaxis.set_major_formatter("{x:,g}")
        ax.set_ylabel("held-out loss\nabove the least")


class StabilityDisplay(Display):
    """Picture of the scores of a parameter in a search.

    A filled dot marks a value that is as good as the best: its score is at most one standard error
    below the best score. A dashed line marks the value that was chosen. A band shows one standard
    error, if it is known from ``StabilityScorer(details=True)`` or from several splits. Values are
    equally spaced, and numbers are in increasing order.

    Use `from_estimator` to draw the scores of a search. The constructor takes the scores
    themselves.

    Parameters
    ----------
    param_name : str
        Name of the parameter.
    values : sequence of length n_values
        Values of the parameter. Numbers must be in increasing order.
    scores : ndarray of shape (n_values,)
        Score of every value; NaN if it is missing.
    errors : ndarray of shape (n_values,), default=None
        Standard errors of the scores.
    chosen : object, default=None
        The value to mark with a dashed line.
    metric : str, default="score"
        Name of the scores. Larger scores are better.

    Attributes
    ----------
    as_good_ : ndarray of shape (n_values,), bool
        Values that are as good as the best.
    ax_ : matplotlib Axes
        The axes of the picture.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The dots.

    See Also
    --------
    nmfcluster.model_selection.StabilityScorer : Computes scores and their standard errors.
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
        """Draw the scores by which a fitted search chose a value.

        If several parameters varied, the picture shows the one with the most values. The score of a
        value is the best score among all candidates with this value.

        Parameters
        ----------
        estimator : GridSearchCV, RandomizedSearchCV or another search of scikit-learn
            A fitted search, with any scorer.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        StabilityDisplay
            The drawn picture.
        """
        check_fitted(
            estimator,
            "cv_results_",
            expected="a search, such as GridSearchCV",
            cure="To draw other scores, use the constructor",
        )
        results = estimator.cv_results_
        metric = "score" if "mean_test_score" in results else "stability"
        if isinstance(estimator.refit, str):
            metric = estimator.refit
        column = f"mean_test_{metric}"
        if column not in results:
            raise ValueError(
                "refit of the search must be the name of a score, such as 'stability', got "
                f"{estimator.refit!r}."
            )
        scores = np.asarray(results[column], dtype=float)
        if not np.isfinite(scores).any():
            raise ValueError(
                f"{metric} must be finite for a candidate, got NaN for all of them. "
                "error_score='raise' shows why."
            )
        # take standard errors from the scorer, or compute them from several splits
        errors = results.get(f"{column}_se")
        n_splits = estimator.n_splits_
        if errors is None and n_splits > 1:
            errors = results[f"std_test_{metric}"] / np.sqrt(n_splits - 1)
        # find the parameter with the most values, and the candidates with each value
        groups: dict = {}
        for i, candidate in enumerate(results["params"]):
            for name, value in candidate.items():
                groups.setdefault(name, {}).setdefault(str(value), []).append(i)
        param = max(groups, key=lambda name: len(groups[name]))
        # find the best candidate for every value
        ranks = np.nan_to_num(scores, nan=-np.inf)
        best = [max(own, key=lambda i: ranks[i]) for own in groups[param].values()]
        values = [results["params"][i][param] for i in best]
        if all(isinstance(value, Real) for value in values):
            best.sort(key=lambda i: results["params"][i][param])
            values.sort()
        display = cls(
            param_name=param,
            values=values,
            metric=metric,
            scores=scores[best],
            errors=None if errors is None else np.asarray(errors, dtype=float)[best],
            chosen=getattr(estimator, "best_params_", {}).get(param),
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
                f"scores must hold one number per value, got {format_value(self.scores)}."
            )
        ax = self._set_axes(ax, (6.4, 4.2))
        best = int(np.nanargmax(scores))
        error = 0.0 if self.errors is None else np.nan_to_num(self.errors[best])
        self.as_good_ = scores >= scores[best] - error
        x = set_value_ticks(ax, self.param_name, self.values, self.chosen)
        self.line_ = draw_curve(ax, x, scores, self.errors, as_good=self.as_good_)
        ax.set(ylabel=self.metric, ymargin=0.12)


class SourceWeightsDisplay(Display):
    r"""Picture of the weights of the sources of a fusion.

    For one model, a bar shows the weight :math:`\alpha_l` of each source, and the number beside it
    is the loss :math:`x_l`. The loss is the share of the source that the clusters do not explain,
    from 0 to 1. With ``criterion="kl"`` and ``"cross_entropy"``, it is in nats.

    In a new figure, a matrix also shows how well the sources agree. It has a row and a column for
    each source, in the order of the bars, and its entries are the correlations of the residuals of
    two sources. The cells of two sources that agree are blue. A source has a weight because it
    agrees with others.

    For several models that differ in `eta`, a line shows how the weight of a source changes with
    `eta`, as in Figure 1(c) of [1]_. The dashed line shows the weight that every source has if all
    weights are equal.

    Use `from_estimator` or `from_estimators` to draw the weights of models. The constructor takes
    the weights themselves.

    Parameters
    ----------
    names : sequence of str
        Names of the sources.
    weights : ndarray of shape (n_sources,) or (n_values, n_sources)
        The weights. For several models, there is a row for each value of `eta`.
    losses : ndarray of shape (n_sources,), default=None
        The losses of the sources, if there is one model.
    agreement : tuple of ndarray of shape (n_sources, n_sources), default=None
        Correlations and z-scores, as in `SimilarityFusionNMF.agreement_`, if there is one model.
    values : sequence of float, default=None
        Values of `eta`, in increasing order, if there are several models.
    chosen : float, default=None
        The value to mark with a dashed line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the picture.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer or None
        The bars in the order of the sources, if there is one model.
    cells_ : matplotlib QuadMesh or None
        The correlations of sources that agree, if they are shown.
    lines_ : list of matplotlib Line2D
        The line of each source, if there are several models.

    See Also
    --------
    nmfcluster.SimilarityFusionNMF : The estimator whose weights are shown.
    StabilityDisplay : Shows which values of a parameter are stable.

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
        """Draw the weights and the losses of a model, and the agreement of its sources.

        Parameters
        ----------
        estimator : SimilarityFusionNMF
            A fitted model.
        ax : matplotlib Axes, default=None
            Axes in which to draw the weights alone. By default, a new figure shows the weights and
            the agreement of the sources.

        Returns
        -------
        SourceWeightsDisplay
            The drawn picture.
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
        """Draw how the weights change with `eta`.

        Parameters
        ----------
        estimators : iterable of SimilarityFusionNMF
            Fitted models that differ in `eta`, in any order.
        chosen : float, default=None
            The value of `eta` to mark with a dashed line. One of the models must have this value.
        ax : matplotlib Axes, default=None
            Axes to draw in. By default, a new figure is created.

        Returns
        -------
        SourceWeightsDisplay
            The drawn picture.

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
                f"chosen must be the eta of an estimator, one of {values}, got {chosen!r}."
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
        """Draw a cell for every pair of sources at the left of the bars, in their rows."""
        n = len(scores)
        agreeing = np.where(scores > _MIN_SCORE, correlations, np.nan)
        self.figure_.set_figwidth(6.4 + 0.2 * min(n, _MAX_WRITTEN))
        left, right = self.ax_.get_subplotspec().subgridspec(
            1, 2, width_ratios=(min(0.09 * n, 1.0), 1), wspace=0.02
        )
        self.ax_.set_subplotspec(right)
        ax = self.figure_.add_subplot(left, sharey=self.ax_)
        # a correlation of 0 is not white, as sources with a small correlation may agree
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
        cure="To draw other weights, use the constructor",
    )


# --- curves, ticks and legends -------------------------------------------------------


def draw_curve(ax, x, heights, errors=None, *, as_good=None, colour=EMPHASIS, **style):
    """Draw a line with dots, and a band of standard errors around it; return the line.

    Parameters
    ----------
    ax : matplotlib Axes
    x, heights : array-like of shape (n,)
        Positions of the dots; a height of NaN has no dot.
    errors : array-like of shape (n,), default=None
        Standard errors.
    as_good : ndarray of shape (n,), bool, default=None
        Values that are as good as the best, at least one. Their dots are filled, and other dots
        are hollow. A legend explains this.
    colour : str
    **style : dict
        Style of the line and the dots.
    """
    x = np.asarray(x)
    heights = np.asarray(heights, dtype=float)
    style = {
        "color": colour,
        "marker": "o",
        "linewidth": 2.0,
        "markersize": 5.5,
    } | style
    if errors is not None:
        ax.fill_between(
            x,
            heights - errors,
            heights + errors,
            linewidth=0,
            color=colour,
            alpha=0.2,
            label="\N{PLUS-MINUS SIGN} 1 standard error",
        )
    if as_good is not None:
        style |= HOLLOW
        filled = style | {
            "linestyle": "none",
            "markerfacecolor": colour,
            "label": "as good as the best",
        }
        ax.plot(x[as_good], heights[as_good], zorder=3, **filled)
        ax.legend(loc="best", **LEGEND)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.plot(x, heights, **style)[0]


def set_value_ticks(ax, name, values, chosen):
    """Put the values of a parameter side by side on the x axis; return their positions.

    A line marks the chosen value, unless it is None.
    """
    positions = np.arange(len(values))
    step = int(np.ceil(len(values) / 12))  # more names would overlap
    names = [format_tick(value) for value in values[::step]]
    is_long = len(" ".join(names)) > 52
    rotation = {"rotation": 30, "ha": "right"} if is_long else {}
    ax.set_xticks(positions[::step], names, **rotation)
    ax.set(xlabel=name, xlim=(-0.5, len(values) - 0.5))
    if chosen is not None:
        ax.axvline(list(map(str, values)).index(str(chosen)), **CHOSEN)
        ax.set_title(f"chosen: {name} = {format_tick(chosen)}", fontsize="medium")
    return positions


def format_tick(value):
    """Return a number as text with four digits, or any other value as shortened text."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return f"{value:.4g}"
    return shorten(" ".join(str(value).split()))


def shorten(name):
    """Return a name, with an ellipsis at the end if it is too long."""
    if len(name) <= _LONGEST:
        return name
    return name[: _LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def read_list(values, name):
    """Return values as a list; raise if it is empty."""
    is_iterable = isinstance(values, Iterable) and not isinstance(values, str)
    found = list(values) if is_iterable else []
    if not found:
        raise ValueError(
            f"{name} must be a list with at least one entry, got {format_value(values)}."
        )
    return found


def split_axes(ax):
    """Shrink axes to the upper half of their room; return new axes in the lower half."""
    room = ax.get_subplotspec()
    if room is None:
        left, bottom, right, top = ax.get_position().extents
        sides = {"left": left, "bottom": bottom, "right": right, "top": top}
        room = ax.figure.add_gridspec(1, 1, **sides)[0]
    upper, lower = room.subgridspec(2, 1, hspace=0.06)
    ax.set_subplotspec(upper)
    return ax.figure.add_subplot(lower, sharex=ax)


def add_legend(ax):
    """Add a legend at the right of axes, with a font small enough for its share of room."""

    def draw(font, scale=None):
        return ax.legend(
            title="source",
            alignment="left",
            frameon=False,
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0,
            fontsize=font,
            title_fontsize=font,
            markerscale=scale,
        )

    room = ax.get_position(original=True).size * ax.figure.bbox.size * (MAX_MARGIN, 1)
    shares = 0.9 * room / draw(FONT).get_window_extent().size
    # the size of a legend is not quite proportional to its font, so leave 10 % of room
    font = FONT * min(1, shares.min())
    draw(font, font / FONT)
