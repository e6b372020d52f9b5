"""The vote of six criteria on how many clusters samples have."""

from __future__ import annotations

from statistics import median_low
from typing import Any

import numpy as np
from sklearn import config_context

from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.jobs import one_thread
from nmfcluster._arrays.places import centred
from nmfcluster._arrays.storage import as_dense
from nmfcluster._compat import take_samples
from nmfcluster.model_selection.copies import SEEDS, n_entries
from nmfcluster.model_selection.vote import clusters, density

SEPARATION, PREDICTION, DENSITY = "separation", "prediction strength", "density"
_SAMPLES = 2000  # that are looked at: the time of some criteria grows with their square

# axes along which samples vary
_FEW = 5  # features, which are kept as they are
_PER_AXIS = 30  # samples, at least: fewer look like clusters along the axis that parts them best
_LEAST, _MOST = 2, 20  # axes
_LARGER = 1.1  # times the largest variance that noise has along an axis


def some_of(X: Any, rng: np.random.Generator) -> Any:
    """Return 2,000 samples, drawn at random, in their order; all where there are no more."""
    n_samples = n_entries(X)
    if n_samples <= _SAMPLES:
        return X
    return take_samples(X, some_positions(n_samples, _SAMPLES, rng))


def poll_of(X: Any, most: int, rng: np.random.Generator) -> tuple[dict[str, int], int]:
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
    answers : dict of str to int
        How many clusters there are, by the name of every criterion:

        - "mixture": Gaussian components by BIC, those counted as one that make one bump;
        - "modes": peaks of the density of neighbours that chance does not make;
        - "silhouette": that of the mixture with the largest mean silhouette;
        - "separation": the most clusters of Ward's tree of which any two have a gap between them,
          by the dip test;
        - "prediction strength": the most clusters that are found again in other samples;
        - "density": clusters of HDBSCAN.
    certain_modes : int
        How many modes the density has for certain.
    """
    seed = int(rng.integers(SEEDS))
    # hundreds of small fits, of which scikit-learn would check every one
    checked = config_context(assume_finite=True, skip_parameter_validation=True)
    with one_thread(), checked:
        Z = main_axes(X)
        n_places = len(np.unique(Z.round(9), axis=0))  # others are at one place but for rounding
        tried = range(2, min(most, len(Z) // clusters.PER_CLUSTER, n_places) + 1)
        S = Z.astype(np.float32)  # whose digits are enough, but to solve systems of equations
        mixtures = density.fitted_mixtures(S, [1, *tried], seed)
        labellings = {k: mixture.predict(S) for k, mixture in mixtures.items()}
        best = min(mixtures.values(), key=lambda mixture: float(mixture.bic(S)))
        likely_modes, certain_modes = density.modes_of(S)
        answers = {
            "mixture": density.n_bumps(best),
            "modes": likely_modes,
            "silhouette": clusters.largest_silhouette(S, labellings),
            SEPARATION: clusters.most_apart(Z, tried),
            PREDICTION: clusters.most_predicted(S, tried, rng),
            DENSITY: density.n_dense(S),
        }
    return answers, certain_modes


def main_axes(X: Any) -> np.ndarray:
    r"""Return samples along the principal axes that vary more than noise, with a variance of 1.

    Where p features of n samples are noise of one variance :math:`\sigma^2`, no principal axis has
    more than about :math:`\sigma^2 (1 + \sqrt{p / n})^2` [1]_. The median over axes is taken for
    :math:`\sigma^2`, as few axes part clusters. Five features and fewer are all kept; there are
    never more axes than 20, or than one for 30 samples. The variance is that of all entries.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)

    Returns
    -------
    ndarray of shape (n, n_axes)

    References
    ----------
    .. [1] V. A. Marchenko, L. A. Pastur. Distribution of eigenvalues for some sets of random
       matrices. Mathematics of the USSR-Sbornik 1, 1967.
    """
    n, p = X.shape
    most = min(p, _MOST, max(_LEAST, n // _PER_AXIS))
    variances, Z = _principal(X)
    noise = np.median(variances[: min(n - 1, p)]) * (1 + np.sqrt(min(n, p) / max(n, p))) ** 2
    larger = int((variances > _LARGER * noise).sum())
    least = p if p <= _FEW else _LEAST
    Z = Z[:, : min(most, max(least, larger))]
    return Z / (Z.std() or 1.0)


def _principal(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return variances, times n, and the samples along all principal axes, the largest first.

    They are found from the products of features, or of samples, whichever are fewer.
    """
    n, p = X.shape
    X, mean = centred(X)
    if p <= n:
        variances, axes = np.linalg.eigh(as_dense(X.T @ X) - n * np.outer(mean, mean))
        Z = X @ axes[:, ::-1] - mean @ axes[:, ::-1]
        return np.maximum(variances[::-1], 0), Z
    products, along = as_dense(X @ X.T), X @ mean
    variances, axes = np.linalg.eigh(products - along - along[:, None] + mean @ mean)
    variances = np.maximum(variances[::-1], 0)
    return variances, axes[:, ::-1] * np.sqrt(variances)


def tally(answers: dict[str, int], certain_modes: int, candidates: list[int]) -> tuple[int, int]:
    """Return what most criteria answer; answers that are not among the candidates do not count.

    That a criterion sees one cluster can also mean that it sees too little. So 1 wins in two cases
    alone. Either at least three criteria answer 1, and two more than any other number; where
    prediction strength is among them, not fewer are enough. Or prediction strength, density and the
    certain modes all say 1: these three see the fewest clusters where there are none.

    Separation says whether there are several, and not how many: clusters that touch have no gap
    between them. Of the other answers with as many votes the one of the criterion that comes first
    is taken. Where no two agree, the median of all answers that see several is.

    Parameters
    ----------
    answers : dict of str to int
    certain_modes : int
        What `poll_of` returns.
    candidates : list of int
        If the median is none of them, the nearest one is taken.

    Returns
    -------
    n_clusters, n_votes : int
        The winner, and how many criteria answered so.
    """
    votes = [k for k in answers.values() if k in candidates]
    ones = votes.count(1)
    most = max((votes.count(k) for k in votes if k > 1), default=0)
    strict = (certain_modes, answers[PREDICTION], answers[DENSITY])
    decisive = ones >= most + 2 or (ones >= most and answers[PREDICTION] == 1)
    if 1 in candidates and (max(strict) == 1 or (ones >= 3 and decisive)):
        return 1, ones
    counted = [k for name, k in answers.items() if name != SEPARATION and k > 1 and k in candidates]
    agreed = max(map(counted.count, counted), default=0)
    if agreed >= 2:
        k = next(k for k in counted if counted.count(k) == agreed)
    else:
        middle = median_low([k for k in answers.values() if k > 1] or [1])
        several = [k for k in candidates if k > 1] or candidates
        k = min(several, key=lambda k: abs(k - middle))
    return k, votes.count(k)


def as_good_as(
    n_clusters: int, n_votes: int, answers: dict[str, int], candidates: np.ndarray
) -> np.ndarray:
    """Return which candidates the winner can hardly be told from, itself among them.

    These have at most one vote fewer. Where no two criteria agree, they are all numbers from the
    smallest answer above 1 to the largest, and 1 if any criterion answers 1.

    Parameters
    ----------
    n_clusters, n_votes : int
        What `tally` returns.
    answers : dict of str to int
    candidates : ndarray of shape (n_candidates,), int

    Returns
    -------
    ndarray of shape (n_candidates,), bool
    """
    said = list(answers.values())
    counts = np.array([said.count(k) for k in candidates])
    winner = candidates == n_clusters
    if n_votes >= 2:
        return winner | (counts >= n_votes - 1)
    several = [k for k in said if k > 1] or [n_clusters]
    between = (candidates >= min(several)) & (candidates <= max(several))
    return winner | between | (counts > 0)
