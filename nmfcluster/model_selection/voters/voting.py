"""The vote of six criteria on how many clusters samples have."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.cluster import HDBSCAN

from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.threads import one_thread
from nmfcluster._compat import take_samples
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import SEEDS
from nmfcluster.model_selection.voters.axes import main_axes
from nmfcluster.model_selection.voters.mixtures import fitted_mixtures, n_bumps
from nmfcluster.model_selection.voters.modes import modes_of
from nmfcluster.model_selection.voters.separation import most_apart
from nmfcluster.model_selection.voters.silhouettes import largest_silhouette
from nmfcluster.model_selection.voters.strength import most_predicted

SEPARATION, PREDICTION, DENSITY = "separation", "prediction strength", "density"
_SAMPLES = 2000  # that are looked at: the time of some criteria grows with their square
_PER_CLUSTER = 4  # samples that a cluster has on average, at least
_DENSE = 5  # neighbours of a sample that is not alone, and samples of a dense cluster, at least
_SHARE = 50  # a dense cluster has one of so many samples, at least
_DIGITS = 9  # by which samples are told from each other: others are at one place but for rounding
_ONE = 3  # criteria that must say that there is one cluster
_AGREE = 2  # criteria, at least, that tell a number from others
_AHEAD = 2  # more than say another number, where prediction strength is not among them


class Poll(NamedTuple):
    """What criteria say.

    Attributes
    ----------
    answers : dict of str to int
        How many clusters there are, by the name of every criterion.
    certain_modes : int
        How many modes the density has for certain.
    """

    answers: dict[str, int]
    certain_modes: int


def some_of(X: Any, rng: np.random.Generator) -> Any:
    """Return 2,000 samples, drawn at random, in their order; all where there are no more."""
    n_samples = n_entries(X)
    if n_samples <= _SAMPLES:
        return X
    return take_samples(X, some_positions(n_samples, _SAMPLES, rng))


def poll_of(X: Any, most: int, rng: np.random.Generator) -> Poll:
    """Ask six criteria how many clusters samples have.

    They look along the axes that vary more than noise.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Of many samples, those that `some_of` returns.
    most : int
        The largest number of clusters that is tried.
    rng : Generator

    Returns
    -------
    Poll
        - "mixture": Gaussian components by BIC, those counted as one that make one bump;
        - "modes": peaks of the density of neighbours that chance does not make;
        - "silhouette": that of the mixture with the largest mean silhouette;
        - "separation": the most clusters of Ward's tree of which any two have a gap between them,
          by the dip test;
        - "prediction strength": the most clusters that are found again in other samples;
        - "density": clusters of HDBSCAN.
    """
    seed = int(rng.integers(SEEDS))
    # hundreds of small fits, of which scikit-learn would check every one
    checked = config_context(assume_finite=True, skip_parameter_validation=True)
    with one_thread(), checked:
        Z = main_axes(X)
        n_places = len(np.unique(Z.round(_DIGITS), axis=0))
        tried = range(2, min(most, len(Z) // _PER_CLUSTER, n_places) + 1)
        S = Z.astype(np.float32)  # whose digits are enough, but to solve systems of equations
        mixtures = fitted_mixtures(S, [1, *tried], seed)
        of_mixtures = {k: mixture.predict(S) for k, mixture in mixtures.items()}
        best = min(mixtures.values(), key=lambda mixture: float(mixture.bic(S)))
        modes = modes_of(S)
        found = {
            "mixture": n_bumps(best),
            "modes": modes.likely,
            "silhouette": largest_silhouette(S, of_mixtures),
            SEPARATION: most_apart(Z, tried),
            PREDICTION: most_predicted(S, tried, rng),
            DENSITY: _dense(S),
        }
    return Poll(found, modes.certain)


def _dense(Z: np.ndarray) -> int:
    size = max(_DENSE, len(Z) // _SHARE)
    found = HDBSCAN(min_cluster_size=size, min_samples=_DENSE, allow_single_cluster=True, copy=True)
    return max(int(found.fit(Z).labels_.max()) + 1, 1) if len(Z) > size else 1


class Tally(NamedTuple):
    """What a vote ended with.

    Attributes
    ----------
    n_clusters : int
    n_votes : int
        How many criteria answered so.
    """

    n_clusters: int
    n_votes: int

    @property
    def agreed(self) -> bool:
        """Whether two criteria, at least, answered so."""
        return self.n_votes >= _AGREE


def tally(poll: Poll, candidates: Sequence[int]) -> Tally:
    """Return what most criteria answer; answers that are not among the candidates do not count.

    That a criterion sees one cluster can also mean that it sees too little. So 1 wins in two ways
    alone: at least three criteria say so, and two more than any other number, or not fewer and
    prediction strength among them; or the three that see least where there is nothing, certain
    modes, prediction strength and density, all say so.

    Separation says whether there are several, and not how many: clusters that touch have no gap
    between them. Of the other answers with as many votes the one of the criterion that comes first
    is taken. Where no two agree, the median of all answers that see several is.

    Parameters
    ----------
    poll : Poll
    candidates : sequence of int
        If the median is none of them, the nearest one is taken.

    Returns
    -------
    Tally
    """
    answers = poll.answers
    votes = [k for k in answers.values() if k in candidates]
    ones = votes.count(1)
    most = max((votes.count(k) for k in votes if k > 1), default=0)
    strict = (poll.certain_modes, answers[PREDICTION], answers[DENSITY])
    decisive = ones >= most + _AHEAD or (ones >= most and answers[PREDICTION] == 1)
    if 1 in candidates and (max(strict) == 1 or (ones >= _ONE and decisive)):
        return Tally(1, ones)
    counted = [k for name, k in answers.items() if name != SEPARATION and k > 1 and k in candidates]
    agreed = max(map(counted.count, counted), default=0)
    if agreed >= _AGREE:
        k = next(k for k in counted if counted.count(k) == agreed)
    else:
        middle = median_low([k for k in answers.values() if k > 1] or [1])
        several = [k for k in candidates if k > 1] or candidates
        k = min(several, key=lambda k: abs(k - middle))
    return Tally(k, votes.count(k))


def as_good_as(tally: Tally, poll: Poll, candidates: Sequence[int]) -> np.ndarray:
    """Return which candidates the winner can hardly be told from, itself among them.

    These have at most one vote fewer. Where no two criteria agree, they are all numbers from the
    smallest answer to the largest, those that see one cluster aside, and 1 if any sees one.

    Parameters
    ----------
    tally : Tally
    poll : Poll
    candidates : sequence of int

    Returns
    -------
    ndarray of shape (n_candidates,), bool
    """
    numbers, answers = np.asarray(candidates), list(poll.answers.values())
    counts = np.array([answers.count(k) for k in numbers])
    own = numbers == tally.n_clusters
    if tally.agreed:
        return own | (counts >= tally.n_votes - 1)
    several = [k for k in answers if k > 1] or [tally.n_clusters]
    between = (numbers >= min(several)) & (numbers <= max(several))
    return own | between | (counts > 0)
