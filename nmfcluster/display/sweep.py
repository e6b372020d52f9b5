"""Picture of fits with several numbers of clusters: stability, error, and loss of held-out data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nmfcluster.display.style as look
from nmfcluster._arrays.arguments import counted

_SWEPT = look.Wanted(
    "held_out_losses",
    "what sweep_n_clusters returned",
    "ask sweep_n_clusters(estimator, X), or give fits to from_estimators",
)
_FITS = look.Wanted(
    "recurrence_", "an NMFMetaCluster", "choose_n_clusters and NumberDisplay are for others"
)
_STABLE, _ERROR, _HELD_OUT = look.COLOURS[0], look.COLOURS[5], look.COLOURS[2]
_LINE, _DOT = 2.0, 5.5  # points: width of a curve, size of its dots
_GAP = 0.06  # of the height of the axes, between its two panels
_ROOM = 0.15  # below the least loss, as a share of the linear part
_DECADES = 1.0  # height of the linear part of the lower panel, in decades
_FIELDS = ("candidates", "recurrence", "smallest_recurrence", "reconstruction_err")


@dataclass(kw_only=True, repr=False, eq=False)
class ClusterSweepDisplay:
    """Picture of fits with several numbers of clusters.

    Above, how surely clusters come back in the runs, all of them on average and the one that does
    so least, against the left scale, and the reconstruction error against the right one. Below,
    where there is one, the held-out loss over the least of it; the band is one standard error of
    the difference. The dashed line is the number that was chosen; a filled dot is a number that is
    as good by the rule.

    `from_estimator` reads the curves of a sweep and draws them, `from_estimators` those of fits;
    the constructor takes curves.

    Parameters
    ----------
    candidates : sequence of int of length n_candidates
        Numbers of clusters, in increasing order.
    recurrence, smallest_recurrence, reconstruction_err : ndarray of shape (n_candidates,)
        What is drawn above; NaN where there is nothing.
    held_out_loss : ndarray of shape (n_candidates,), default=None
        What is drawn below.
    held_out_se : ndarray of shape (n_candidates,), default=None
        Standard errors.
    as_good : ndarray of shape (n_candidates,), bool, default=None
        Numbers that cannot be told from the one that was chosen.
    n_clusters : int, default=None
        The number that was chosen.

    Attributes
    ----------
    candidates, recurrence, smallest_recurrence, reconstruction_err
        As given.
    held_out_loss, held_out_se, as_good, n_clusters
        As given.
    ax_ : matplotlib Axes
        Where it was drawn: recurrences.
    error_ax_ : matplotlib Axes
        The scale of errors, at the right of it.
    loss_ax_ : matplotlib Axes or None
        Held-out losses, below it.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : dict of matplotlib Line2D
        The curves, by the names of the parameters.

    See Also
    --------
    nmfcluster.model_selection.sweep_n_clusters : Computes what is shown.
    StabilityDisplay : Shows the stability of other estimators.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_signatures
    >>> from nmfcluster.display import ClusterSweepDisplay
    >>> X, _, _ = make_signatures(n_signatures=4, random_state=0)
    >>> models = [
    ...     NMFMetaCluster(k, loss="kullback-leibler", n_estimators=5, random_state=0).fit(X)
    ...     for k in (3, 4, 5)
    ... ]
    >>> display = ClusterSweepDisplay.from_estimators(models)
    >>> display.candidates
    array([3, 4, 5])
    >>> display.figure_.savefig("sweep.png")  # doctest: +SKIP
    """

    candidates: Any
    recurrence: np.ndarray
    smallest_recurrence: np.ndarray
    reconstruction_err: np.ndarray
    held_out_loss: np.ndarray | None = None
    held_out_se: np.ndarray | None = None
    as_good: np.ndarray | None = None
    n_clusters: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ClusterSweepDisplay:
        """Show a sweep.

        Parameters
        ----------
        estimator : ClusterSweep
            What `nmfcluster.model_selection.sweep_n_clusters` returned.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterSweepDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is not a sweep.
        ImportError
            If matplotlib is not installed.
        """
        if not hasattr(estimator, "held_out_losses"):
            _SWEPT.check(estimator)
        losses = estimator.held_out_losses
        return cls(
            **{name: getattr(estimator, name) for name in _FIELDS},
            held_out_loss=None if losses is None else losses.mean(axis=1),
            held_out_se=estimator.held_out_se,
            as_good=estimator.as_good,
            n_clusters=estimator.n_clusters_,
        ).plot(ax)

    @classmethod
    def from_estimators(cls, estimators: Iterable[Any], *, ax: Any = None) -> ClusterSweepDisplay:
        """Show fits with several numbers of clusters.

        Parameters
        ----------
        estimators : iterable of NMFMetaCluster
            Fitted to the same table, with different `n_clusters`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClusterSweepDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If they are not `NMFMetaCluster`.
        NotFittedError
            If one is not fitted.
        ValueError
            If two have the same number of clusters, or there are none.
        ImportError
            If matplotlib is not installed.
        """
        found = look.by_n_clusters(estimators, _FITS).values()
        fits = sorted(found, key=lambda fit: fit.n_clusters)
        return cls(
            candidates=np.array([fit.n_clusters for fit in fits]),
            recurrence=np.array([fit.recurrence_.mean() for fit in fits]),
            smallest_recurrence=np.array([fit.recurrence_.min() for fit in fits]),
            reconstruction_err=np.array([fit.reconstruction_err_ for fit in fits]),
        ).plot(ax)

    def plot(self, ax: Any = None) -> ClusterSweepDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default. Held-out losses are drawn below it.

        Returns
        -------
        ClusterSweepDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        below = self.held_out_loss is not None
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, 5.6 if below else 3.8))
        self.loss_ax_ = _panel_below(self.ax_) if below else None
        self.error_ax_ = self.ax_.twinx()
        self.lines_: dict[str, Any] = {}
        self._draw(self.error_ax_, "reconstruction_err", _ERROR, "s")
        self._draw(self.ax_, "recurrence", _STABLE, "o", label="mean of all clusters")
        least = {"linestyle": (0, (3, 1.5)), "label": "least recurrent cluster"}
        self._draw(self.ax_, "smallest_recurrence", _STABLE, "^", **least)
        self._finish_upper(below)
        if self.loss_ax_ is not None:
            self._draw_losses(self.loss_ax_)
        lowest = self.loss_ax_ or self.ax_
        lowest.set_xlabel("number of clusters")
        lowest.xaxis.set_major_locator(look.ticker().MaxNLocator(12, integer=True))
        if self.n_clusters is not None:
            for panel in {self.ax_, lowest}:
                panel.axvline(self.n_clusters, zorder=1, **{**look.DASHED, "color": look.LINE})
            self.ax_.set_title(
                f"chosen: {counted(self.n_clusters, 'cluster')}", fontsize=look.FONT + 1
            )
        return self

    def _draw(self, axes: Any, name: str, colour: str, marker: str, **style: Any) -> None:
        """Draw a curve of one of the parameters."""
        look_of = {"color": colour, "marker": marker, "linewidth": _LINE, "markersize": _DOT}
        heights = getattr(self, name)
        (self.lines_[name],) = axes.plot(self.candidates, heights, **{**look_of, **style})

    def _finish_upper(self, below: bool) -> None:
        """Scale and name the axes of recurrence and error, each in the colour of its curve."""
        self.ax_.set(ylim=(0, 1.05), ylabel="recurrence")
        self.error_ax_.set_ylabel("reconstruction error")
        for axes, colour in ((self.ax_, _STABLE), (self.error_ax_, _ERROR)):
            axes.yaxis.label.set_color(colour)
            axes.tick_params(axis="y", colors=colour)
            axes.spines["top"].set_visible(False)
        self.ax_.tick_params(axis="x", labelbottom=not below)
        self.error_ax_.margins(y=0.15)
        self.ax_.set_zorder(self.error_ax_.get_zorder() + 1)
        self.ax_.patch.set_visible(False)  # it would hide the error, which is below
        self.ax_.legend(loc="lower left", **look.LEGEND)

    def _draw_losses(self, axes: Any) -> None:
        """Draw the held-out losses over the least one, with their errors."""
        assert self.held_out_loss is not None
        x, excess = np.asarray(self.candidates), self.held_out_loss - np.nanmin(self.held_out_loss)
        style = {"color": _HELD_OUT, "linewidth": _LINE, "markersize": _DOT + 1, "marker": "o"}
        style |= {"markerfacecolor": "white", "markeredgewidth": 1.5, "clip_on": False}
        (self.lines_["held_out_loss"],) = axes.plot(x, excess, **style)
        if self.held_out_se is not None:
            bounds = excess - self.held_out_se, excess + self.held_out_se
            label = "\N{PLUS-MINUS SIGN} 1 standard error"
            axes.fill_between(x, *bounds, color=_HELD_OUT, alpha=0.2, linewidth=0, label=label)
        if self.as_good is not None:
            dots = {"color": _HELD_OUT, "markersize": _DOT + 1, "linestyle": "none", "marker": "o"}
            label = "within 1 standard error of the least"
            axes.plot(x[self.as_good], excess[self.as_good], zorder=3, label=label, **dots)
        scale = float(np.nanmax(excess if self.held_out_se is None else self.held_out_se))
        if scale > 0:  # few losses are near the least, and these are what is looked at
            linear = 10 ** np.ceil(np.log10(scale))
            axes.set_yscale("symlog", linthresh=linear, linscale=_DECADES)
            axes.set_ylim(bottom=-_ROOM * linear)
        axes.yaxis.set_major_formatter(look.ticker().StrMethodFormatter("{x:,g}"))
        axes.set_ylabel("held-out loss\nabove the least")
        axes.spines[["top", "right"]].set_visible(False)
        handles, _ = axes.get_legend_handles_labels()
        if handles:
            axes.legend(loc="best", **look.LEGEND)


def _panel_below(ax: Any) -> Any:
    """Return new axes in the lower part of the room of others, which keep the upper part."""
    figure, room = ax.figure, ax.get_subplotspec()
    if room is not None:
        upper, lower = room.subgridspec(2, 1, hspace=_GAP)
        ax.set_subplotspec(upper)
        return figure.add_subplot(lower, sharex=ax)
    box = ax.get_position()
    height = box.height * (1 - _GAP) / 2
    ax.set_position([box.x0, box.y1 - height, box.width, height])
    return figure.add_axes((box.x0, box.y0, box.width, height), sharex=ax)
