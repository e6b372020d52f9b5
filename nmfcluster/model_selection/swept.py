"""What `sweep_n_clusters` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster.display import NumberDisplay

__all__ = ["ClusterSweep"]


@dataclass(frozen=True, eq=False, repr=False)
class ClusterSweep:
    """Fits with several numbers of clusters, and the number that was chosen.

    `sweep_n_clusters` returns it. Entries of arrays belong to `candidates`; those of a candidate
    that could not be fitted are NaN.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,), int
        Numbers of clusters that were tried, in increasing order.
    n_clusters_ : int
        The one that was chosen.
    as_good : ndarray of shape (n_candidates,), bool
        Numbers that the rule cannot tell from it: within one standard error of the least held-out
        loss, or of nearly the largest recurrence.
    method : {"held-out", "recurrence"}
        What it was chosen by.
    held_out_losses : ndarray of shape (n_candidates, n_folds) or None
        Loss of every held-out part; None where it was chosen by recurrence.
    held_out_se : ndarray of shape (n_candidates,) or None
        Standard error of the mean difference from the least held-out loss.
    dispersion : float or None
        By how much counts vary more than Poisson numbers; None where it was chosen by recurrence.
    recurrence : ndarray of shape (n_candidates,)
        Mean of `recurrence_`, how surely clusters come back in the runs.
    smallest_recurrence : ndarray of shape (n_candidates,)
        That of the cluster that comes back least.
    reconstruction_err : ndarray of shape (n_candidates,)
        `reconstruction_err_` of the fits.
    cophenetic : ndarray of shape (n_candidates,)
        Cophenetic correlation of the consensus of the runs, of at most 500 samples.
    estimators : tuple
        The fitted estimators, None for one that failed; all but the one that was chosen may have
        fewer runs than were asked for.

    See Also
    --------
    sweep_n_clusters : Makes it.
    nmfcluster.display.NumberDisplay : Shows it.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_signatures
    >>> from nmfcluster.model_selection import sweep_n_clusters
    >>> X, _, _ = make_signatures(n_signatures=4, random_state=0)
    >>> model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=5, random_state=0)
    >>> sweep = sweep_n_clusters(model, X, range(3, 6), n_folds=3, random_state=0)
    >>> sweep.n_clusters_, sweep.best_estimator_.components_.shape
    (4, (4, 96))
    >>> list(sweep.table)[:3]  # pandas.DataFrame(sweep.table) shows all of it
    ['n_clusters', 'held_out_loss', 'held_out_se']
    """

    candidates: np.ndarray
    n_clusters_: int
    as_good: np.ndarray
    method: str
    held_out_losses: np.ndarray | None
    held_out_se: np.ndarray | None
    dispersion: float | None
    recurrence: np.ndarray
    smallest_recurrence: np.ndarray
    reconstruction_err: np.ndarray
    cophenetic: np.ndarray
    estimators: tuple[Any, ...]

    def __repr__(self) -> str:
        tried = f"{self.candidates[0]} to {self.candidates[-1]}"
        return f"{type(self).__name__}({self.n_clusters_} of {tried}, by {self.method})"

    @property
    def best_estimator_(self) -> Any:
        """The fitted estimator with the number of clusters that was chosen."""
        return self.estimators[int(np.flatnonzero(self.candidates == self.n_clusters_)[0])]

    @property
    def table(self) -> dict[str, np.ndarray]:
        """What is known of every candidate, by the names of columns."""
        held_out = {}
        if self.held_out_losses is not None and self.held_out_se is not None:
            held_out = {
                "held_out_loss": self.held_out_losses.mean(axis=1),
                "held_out_se": self.held_out_se,
            }
        names = ("recurrence", "smallest_recurrence", "reconstruction_err", "cophenetic")
        return {
            "n_clusters": self.candidates,
            **held_out,
            **{name: getattr(self, name) for name in names},
            "as_good": self.as_good,
            "chosen": self.candidates == self.n_clusters_,
        }

    def plot(self, ax: Any = None) -> NumberDisplay:
        """Draw recurrence, error and held-out loss over the number of clusters.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        NumberDisplay
            The picture, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return NumberDisplay.from_estimator(self, ax=ax)
