"""The vote of criteria on how many clusters samples have."""

from statistics import median_low
from typing import Any

import numpy as np
from sklearn import config_context

from nmfcluster._compat import take_samples
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.sampling import some_positions
from nmfcluster._utils.sparse_products import centred
from nmfcluster._utils.storage import as_dense
from nmfcluster.model_selection.refits import SEEDS, n_entries
from nmfcluster.model_selection.results import told
from nmfcluster.model_selection.vote import clusters, density

DENSITY, FAR_APART = "density", "far apart"
_SAMPLES = 2000  # that are looked at: the time of some criteria grows with their square

# axes along which samples vary
_FEW = 5  # features, which are kept as they are
_PER_AXIS = 30  # samples, at least: fewer look like clusters along the axis that parts them best
_LEAST, _MOST = 2, 20  # axes
_LARGER = 1.1  # times the largest variance that noise has along an axis


def some_of(X: Any, rng: np.random.Generator) -> Any:
    """Return 2,000 samples, drawn at random, in their order; all where there are no more."""
    return take_samples(X, some_positions(n_entries(X), _SAMPLES, rng))


def poll_of(X: Any, most: int, rng: np.random.Generator) -> tuple[dict[str, int], int]:
    """Ask criteria how many clusters samples have.

    They look along the axes that vary more than noise. None of them sees a cluster of fewer than
    eight samples for certain. Where clusters that are far apart have fewer, or two would, the
    distances of samples alone are asked.

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
        How many clusters there are, by the name of every criterion that can tell:

        - "mixture": Gaussian components by BIC, those counted as one that make one bump;
        - "modes": peaks of the density of neighbours that chance does not make;
        - "density": clusters of HDBSCAN, of two features or more;
        - "prediction strength": the most clusters that are found again in other samples;
        - "far apart": clusters that are farther from each other than wide, of few samples alone.
    certain : int
        How many modes the density has, or clusters are far apart, for certain.
    """
    n, least = n_entries(X), clusters.PER_CLUSTER
    few, certain = (
        clusters.n_far_apart(as_dense(X), most) if n < least * max(most, 2) else (1, 1)
    )
    if n < least * max(few, 2):
        return {FAR_APART: few}, certain
    seed = int(rng.integers(SEEDS))
    # hundreds of small fits, of which scikit-learn would check every one
    with (
        one_thread(),
        config_context(assume_finite=True, skip_parameter_validation=True),
    ):
        Z = main_axes(X)
        n_places = len(
            np.unique(Z.round(9), axis=0)
        )  # others are at one place but for rounding
        tried = range(1, min(most, n // least, n_places) + 1)
        S = Z.astype(np.float32)  # whose digits are enough
        likely, certain = density.modes_of(S)
        answers = {
            "mixture": density.n_bumps(density.best_mixture(S, tried, seed)),
            "modes": likely,
            # along a line the distances of a few neighbours vary too much
            DENSITY: density.n_dense(S) if S.shape[1] > 1 else 0,
            "prediction strength": clusters.most_predicted(S, tried, rng),
        }
    return {name: k for name, k in answers.items() if k}, certain


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
    noise = (
        np.median(variances[: min(n - 1, p)])
        * (1 + np.sqrt(min(n, p) / max(n, p))) ** 2
    )
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


def tally(
    answers: dict[str, int], certain: int, candidates: list[int]
) -> tuple[int, int | None]:
    """Return what most criteria answer.

    That a criterion sees one cluster can also mean that it sees too little. So a number that two
    criteria agree on wins over 1; of those with as many votes, that of the criterion that comes
    first. Where there is none, it is 1 if the certain modes and the density say so, which see the
    fewest clusters where there are none, and else the median of all answers that see several.
    Samples too few to have modes are too few for two criteria to be sure: all must agree.

    Parameters
    ----------
    answers : dict of str to int
    certain : int
        What `poll_of` returns.
    candidates : list of int

    Returns
    -------
    n_clusters : int
        A candidate: the winner, or the one nearest to it.
    agreed : int or None
        What criteria agree on, which may be none of the candidates; None if they do not.
    """
    said = list(answers.values())
    several = [k for k in said if k > 1]
    best = max(several, key=lambda k: (several.count(k), k in candidates), default=1)
    if FAR_APART in answers:
        agreed = best == certain > 1
    else:
        if said.count(best) < 2:
            best = (
                1 if max(certain, answers.get(DENSITY, 1)) == 1 else median_low(several)
            )
        agreed = said.count(best) >= (2 if "modes" in answers else len(said))
    near = best if best > 1 or 1 in candidates else median_low(several or [1])
    allowed = [k for k in candidates if k > 1 or near == 1] or candidates
    return min(allowed, key=lambda k: abs(k - near)), best if agreed else None


def disagreement(
    answers: dict[str, int], agreed: int | None, k: int, candidates: np.ndarray
) -> str:
    """Return what is to be said where criteria do not agree on the number that was chosen."""
    said, (low, high) = list(answers.values()), candidates[[0, -1]]
    if agreed is not None:
        more = (
            "smaller ones"
            if agreed < low
            else "larger ones"
            if agreed > high
            else "more"
        )
        most = f"{said.count(agreed)} of {len(said)} criteria answer {agreed}"
        return f"{most}, which is not among the candidates {told(candidates)}: give {more}, too."
    names = ", ".join(f"{name} {number}" for name, number in answers.items())
    why = (
        "X has too few samples for a vote"
        if FAR_APART in answers
        else "Too few criteria agree"
    )
    return f"{why} on a number of clusters ({names}): {k} is often not right."


def as_good_as(
    n_clusters: int, agreed: bool, answers: dict[str, int], candidates: np.ndarray
) -> np.ndarray:
    """Return which candidates the winner can hardly be told from, itself among them.

    These have at most one vote fewer. Where too few criteria agree, they are all numbers from the
    smallest answer above 1 to the largest, and 1 if any criterion answers 1.

    Parameters
    ----------
    n_clusters : int
        The winner.
    agreed : bool
        Whether criteria agree on it.
    answers : dict of str to int
    candidates : ndarray of shape (n_candidates,), int

    Returns
    -------
    ndarray of shape (n_candidates,), bool
    """
    said = list(answers.values())
    counts = np.array([said.count(k) for k in candidates])
    winner = candidates == n_clusters
    if agreed:
        return winner | (counts >= max(said.count(n_clusters) - 1, 1))
    several = [k for k in said if k > 1] or [n_clusters]
    between = (candidates >= min(several)) & (candidates <= max(several))
    return winner | between | (counts > 0)
