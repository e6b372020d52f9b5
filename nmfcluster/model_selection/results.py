"""What `choose_n_clusters` and `sweep_n_clusters` return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster.display import NumberDisplay

__all__ = ["ClusterSweep", "NumberOfClusters"]


@dataclass(frozen=True, eq=False, repr=False)
class NumberOfClusters:
    """A number of clusters, what speaks for it and for others, and a fit with it.

    `choose_n_clusters` returns it. Entries of arrays belong to `candidates`.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,), int
        Numbers of clusters that were asked about, in increasing order.
    n_clusters_ : int
        The one that was chosen.
    as_good : ndarray of shape (n_candidates,), bool
        Those that it can hardly be told from, itself among them: by a vote, those with at most one
        vote fewer, or where no two criteria agree, all numbers between their answers; by stability,
        those whose fits agree nearly as well as those of any number.
    method : {"vote", "stability"}
        What it was chosen by.
    agreed : bool
        False if there was a vote, and no two criteria agree on a number.
    votes : dict of str to int or None
        The answer of every criterion; None if there was no vote.
    stability : ndarray of shape (n_candidates,) or None
        Mean adjusted Rand index of two fits to parts of the samples, NaN where one failed; None
        if there was a vote.
    stability_se : ndarray of shape (n_candidates,) or None
        Its standard error; .15, where there are two fits.
    n_fits : ndarray of shape (n_candidates,), int, or None
        Fits that were compared: two, up to eight where these do not rule a number out, and ten of
        the number that is chosen and of the most stable one.
    best_estimator_ : estimator
        Fitted to all samples with the number that was chosen.

    See Also
    --------
    nmfcluster.model_selection.choose_n_clusters : Makes it.
    nmfcluster.display.NumberDisplay : Shows it.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster.model_selection import choose_n_clusters
    >>> X, _ = make_blobs(300, centers=4, random_state=8)
    >>> chosen = choose_n_clusters(
    ...     KMeans(n_init=3), X, range(2, 6), method="stability", random_state=0
    ... )
    >>> chosen
    NumberOfClusters(4 of 2 to 5, by stability)
    >>> list(chosen.table)  # pandas.DataFrame(chosen.table) shows it
    ['n_clusters', 'stability', 'stability_se', 'n_fits', 'as_good', 'chosen']
    """

    candidates: np.ndarray
    n_clusters_: int
    as_good: np.ndarray
    method: str
    agreed: bool = True
    votes: dict[str, int] | None = None
    stability: np.ndarray | None = None
    stability_se: np.ndarray | None = None
    n_fits: np.ndarray | None = None
    best_estimator_: Any = None

    def __repr__(self) -> str:
        tried = f"{self.candidates[0]} to {self.candidates[-1]}"
        by = self.method
        if self.votes is not None:
            for_it = self._n_votes()[self.candidates == self.n_clusters_].item()
            by = f"{for_it} of {len(self.votes)} votes"
            if not self.agreed:
                by += ": no agreement"
        return f"{type(self).__name__}({self.n_clusters_} of {tried}, by {by})"

    def _n_votes(self) -> np.ndarray:
        """Return how many criteria are for every candidate."""
        answers = list((self.votes or {}).values())
        return np.array([answers.count(k) for k in self.candidates])

    @property
    def table(self) -> dict[str, np.ndarray]:
        """What is known of every candidate, by the names of columns."""
        told: dict[str, Any] = {"n_clusters": self.candidates}
        if self.votes is not None:
            told["n_votes"] = self._n_votes()
        else:
            names = ("stability", "stability_se", "n_fits")
            told |= {name: getattr(self, name) for name in names}
        return told | {"as_good": self.as_good, "chosen": self.candidates == self.n_clusters_}

    def plot(self, ax: Any = None) -> NumberDisplay:
        """Draw the votes, or the stability, of all candidates.

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
    nmfcluster.model_selection.sweep_n_clusters : Makes it.
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
