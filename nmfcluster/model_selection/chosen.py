"""What `choose_n_clusters` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster.display import NumberDisplay

__all__ = ["NumberOfClusters"]

_OF_FITS = ("stability", "stability_se", "n_fits")


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
    choose_n_clusters : Makes it.
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
            told |= {name: getattr(self, name) for name in _OF_FITS}
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
