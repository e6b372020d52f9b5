"""Picture of a choice of the number of clusters: the votes, or how well fits agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import nmfcluster.display.style as look
from nmfcluster._arrays.arguments import counted

_CHOSEN = look.Wanted(
    "stability_se",
    "what choose_n_clusters returned, by vote or by stability",
    "ask choose_n_clusters(estimator, X)",
)
_LINE, _DOT = 2.0, 6.5  # points: width of the curve, size of a dot
_TICKS = 12  # numbers on the axis of candidates, at most
_ROW = 0.35  # inches of height, for a criterion
_FIELDS = ("candidates", "n_clusters_", "as_good", "agreed", "votes", "stability", "stability_se")


@dataclass(kw_only=True, repr=False, eq=False)
class NumberDisplay:
    """Picture of a choice of the number of clusters.

    Of a vote there is a dot for the answer of every criterion; filled ones are for the number that
    was chosen, and an arrow is an answer beyond the candidates. Of stability there is the mean
    agreement of fits to halves of the samples; the band is one standard error, and a filled dot is
    a number that is as good by the rule. The dashed line is the number that was chosen.

    `from_estimator` reads a choice and draws it; the constructor takes its parts.

    Parameters
    ----------
    candidates : ndarray of shape (n_candidates,), int
        Numbers of clusters, in increasing order.
    n_clusters : int
        The one that was chosen.
    as_good : ndarray of shape (n_candidates,), bool
        Those that it can hardly be told from.
    votes : dict of str to int, default=None
        The answer of every criterion.
    stability : ndarray of shape (n_candidates,), default=None
        Mean agreement, instead of votes; NaN where there is none.
    stability_se : ndarray of shape (n_candidates,), default=None
        Its standard error.
    agreed : bool, default=True
        False if no two criteria agree.

    Attributes
    ----------
    candidates, n_clusters, as_good, votes, stability, stability_se, agreed
        As given.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    dots_ : matplotlib Line2D
        The dots for the number that was chosen, or for those that are as good.

    See Also
    --------
    nmfcluster.model_selection.choose_n_clusters : Computes what is shown.
    ClusterSweepDisplay : Shows the choice of a number of NMF clusters.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.display import NumberDisplay
    >>> display = NumberDisplay(
    ...     candidates=np.arange(1, 6),
    ...     n_clusters=3,
    ...     as_good=np.arange(1, 6) == 3,
    ...     votes={"mixture": 3, "modes": 3, "silhouette": 2},
    ... ).plot()
    >>> display.ax_.get_title()
    'chosen: 3 clusters'
    """

    candidates: np.ndarray
    n_clusters: int
    as_good: np.ndarray
    votes: dict[str, int] | None = None
    stability: np.ndarray | None = None
    stability_se: np.ndarray | None = None
    agreed: bool = True

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> NumberDisplay:
        """Show a choice.

        Parameters
        ----------
        estimator : NumberOfClusters
            What `nmfcluster.model_selection.choose_n_clusters` returned.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        NumberDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is not a choice.
        ImportError
            If matplotlib is not installed.
        """
        if not hasattr(estimator, "stability_se"):
            _CHOSEN.check(estimator)
        parts = {name.rstrip("_"): getattr(estimator, name) for name in _FIELDS}
        return cls(**parts).plot(ax)

    def plot(self, ax: Any = None) -> NumberDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        NumberDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        height = 3.4 if self.votes is None else 1.2 + _ROW * len(self.votes)
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.0, height))
        if self.votes is None:
            self._draw_stability()
        else:
            self._draw_votes(self.votes)
        low, high = self.candidates[0], self.candidates[-1]
        self.ax_.set(xlabel="number of clusters", xlim=(low - 0.6, high + 0.6))
        self.ax_.xaxis.set_major_locator(look.ticker().MaxNLocator(_TICKS, integer=True))
        self.ax_.axvline(self.n_clusters, zorder=1, **{**look.DASHED, "color": look.LINE})
        doubt = "" if self.agreed else ", no agreement"
        self.ax_.set_title(
            f"chosen: {counted(self.n_clusters, 'cluster')}{doubt}", fontsize=look.FONT + 1
        )
        for side in ("top", "right"):
            self.ax_.spines[side].set_visible(False)
        return self

    def _draw_votes(self, votes: dict[str, int]) -> None:
        """Draw a row for every criterion, the first at the top, with a dot at its answer."""
        low, high = self.candidates[0], self.candidates[-1]
        answers, rows = np.array(list(votes.values())), np.arange(len(votes))
        for_it, beyond = answers == self.n_clusters, (answers < low) | (answers > high)
        dots = {"linestyle": "none", "marker": "o", "markersize": _DOT, "color": look.EMPHASIS}
        hollow = {**dots, "markerfacecolor": "white", "markeredgewidth": 1.5}
        (self.dots_,) = self.ax_.plot(answers[for_it], rows[for_it], **dots)
        others = ~for_it & ~beyond
        self.ax_.plot(answers[others], rows[others], **hollow)
        for row in rows[beyond]:
            edge, sign = (high + 0.5, ">") if answers[row] > high else (low - 0.5, "<")
            self.ax_.plot(edge, row, clip_on=False, **{**hollow, "marker": sign})
        self.ax_.set(yticks=rows, yticklabels=list(votes), ylim=(len(votes) - 0.5, -0.5))
        self.ax_.grid(axis="y", color="0.9", linewidth=0.8)
        self.ax_.set_axisbelow(True)

    def _draw_stability(self) -> None:
        """Draw the curve of agreement, its errors, and the numbers that are as good."""
        x, heights = self.candidates, np.asarray(self.stability)
        style = {"color": look.EMPHASIS, "linewidth": _LINE, "markersize": _DOT, "marker": "o"}
        self.ax_.plot(x, heights, markerfacecolor="white", markeredgewidth=1.5, **style)
        if self.stability_se is not None:
            bounds = heights - self.stability_se, heights + self.stability_se
            label = "\N{PLUS-MINUS SIGN} 1 standard error"
            self.ax_.fill_between(
                x, *bounds, color=look.EMPHASIS, alpha=0.2, linewidth=0, label=label
            )
        dots = {**style, "linestyle": "none", "label": "as good as the best"}
        (self.dots_,) = self.ax_.plot(x[self.as_good], heights[self.as_good], **dots)
        self.ax_.set_ylabel("agreement of halves")
        self.ax_.legend(loc="best", **look.LEGEND)
