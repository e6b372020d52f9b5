"""The vote of several criteria on the number of clusters of samples with features."""

from statistics import median_low

import numpy as np
from sklearn import config_context

import nmfcluster.model_selection.criteria as criteria
from nmfcluster._compat import take_samples
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.sampling import draw_positions
from nmfcluster._utils.sparse_products import center_columns
from nmfcluster._utils.storage import as_dense
from nmfcluster.model_selection.refits import SEEDS, count_entries
from nmfcluster.model_selection.results import format_candidates

DENSITY = "density"
FAR_APART = "far apart"
# samples that the criteria use at most, as the time of some grows with their square
_MAX_SAMPLES = 2000

# principal axes that are kept
_FEW_FEATURES = 5  # features up to which all axes are kept
# samples for each axis: fewer look like clusters along the axis that separates them most
_SAMPLES_PER_AXIS = 30
_MIN_AXES = 2
_MAX_AXES = 20
_NOISE_MARGIN = 1.1  # variance of a kept axis, relative to the largest one of noise


def draw_samples(X, rng: np.random.Generator):
    """Return 2,000 samples drawn at random, in their order; all if there are no more."""
    return take_samples(X, draw_positions(count_entries(X), _MAX_SAMPLES, rng))


def collect_votes(
    X, max_clusters: int, rng: np.random.Generator
) -> tuple[dict[str, int], int]:
    """Return the number of clusters that each criterion finds.

    Criteria use the principal axes that vary more than noise. None of them reliably
    detects a cluster of fewer than eight samples. Where separated clusters have fewer,
    or two clusters would, only the distances of samples vote.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Those that `draw_samples` returns.
    max_clusters : int
        The largest number of clusters that is tried.
    rng : Generator

    Returns
    -------
    votes : dict of str to int
        The number of clusters by the name of each criterion that can tell:

        - "mixture": Gaussian components by BIC, those that share a mode counted as one;
        - "modes": peaks of the density of neighbours that do not arise by chance;
        - "density": clusters of HDBSCAN, for two features or more;
        - "prediction strength": the most clusters that other samples predict;
        - "far apart": clusters that are farther from each other than wide, for few
          samples only.
    certain : int
        The number of modes, or of separated clusters, that is certain.
    """
    n = count_entries(X)
    min_size = criteria.MIN_CLUSTER_SIZE
    if n < min_size * max(max_clusters, 2):
        separated, certain = criteria.count_separated_clusters(
            as_dense(X), max_clusters
        )
        if n < min_size * max(separated, 2):
            return {FAR_APART: separated}, certain
    seed = int(rng.integers(SEEDS))
    # hundreds of small fits, whose input scikit-learn would check each time
    fast = config_context(assume_finite=True, skip_parameter_validation=True)
    with one_thread(), fast:
        Z = project_above_noise(X)
        n_distinct = len(np.unique(Z.round(9), axis=0))  # others differ by rounding
        tried = range(1, min(max_clusters, n // min_size, n_distinct) + 1)
        Z = Z.astype(np.float32)  # whose digits are enough
        modes, certain = criteria.count_density_modes(Z)
        votes = {
            "mixture": criteria.count_mixture_modes(
                criteria.fit_mixture(Z, tried, seed)
            ),
            "modes": modes,
            # along a line the distances of a few neighbours vary too much
            DENSITY: criteria.count_hdbscan_clusters(Z) if Z.shape[1] > 1 else 0,
            "prediction strength": criteria.count_predictable_clusters(Z, tried, rng),
        }
    return {name: k for name, k in votes.items() if k}, certain


def project_above_noise(X):
    r"""Return samples along the principal axes that vary more than noise.

    If p features of n samples are noise of one variance :math:`\sigma^2`, the variance of a
    principal axis is at most about :math:`\sigma^2 (1 + \sqrt{p / n})^2` [1]_. The median over axes
    is the estimate of :math:`\sigma^2`, as few axes separate clusters. All axes of up to five
    features are kept. There are at most 20 axes, and at most one for 30 samples. Entries are
    scaled to a variance of 1 over all of them.

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
    variances, Z = _principal_components(X)
    spread = (1 + np.sqrt(min(n, p) / max(n, p))) ** 2
    noise = np.median(variances[: min(n - 1, p)]) * spread
    n_above = int((variances > _NOISE_MARGIN * noise).sum())
    least = p if p <= _FEW_FEATURES else _MIN_AXES
    most = min(p, _MAX_AXES, max(_MIN_AXES, n // _SAMPLES_PER_AXIS))
    Z = Z[:, : min(most, max(least, n_above))]
    return Z / (Z.std() or 1.0)


def _principal_components(X):
    """Return the variances, times n, and samples along all axes, the largest first.

    They are computed from the products of features, or of samples, whichever are fewer.
    """
    n, p = X.shape
    X, mean = center_columns(X)
    if p <= n:
        products = as_dense(X.T @ X) - n * np.outer(mean, mean)
        variances, axes = np.linalg.eigh(products)
        axes = axes[:, ::-1]
        return np.maximum(variances[::-1], 0), X @ axes - mean @ axes
    along = X @ mean
    products = as_dense(X @ X.T) - along - along[:, None] + mean @ mean
    variances, axes = np.linalg.eigh(products)
    variances = np.maximum(variances[::-1], 0)
    return variances, axes[:, ::-1] * np.sqrt(variances)


def decide(
    votes: dict[str, int], certain: int, candidates: list[int]
) -> tuple[int, int | None]:
    """Return the number of clusters that most criteria vote for.

    A criterion that finds one cluster may also have detected too little. A number that
    two criteria agree on therefore wins over 1. Among numbers with equally many votes,
    that of the first criterion wins. If no two criteria agree, the number is 1 if the
    certain modes and the density say so, which find the fewest clusters where there are
    none, and otherwise the median of all votes above 1. Samples too few to have modes
    are too few for two criteria to be sure, and all criteria must agree.

    Parameters
    ----------
    votes : dict of str to int
    certain : int
        What `collect_votes` returns.
    candidates : list of int

    Returns
    -------
    n_clusters : int
        A candidate: the winner, or the one nearest to it.
    agreed : int or None
        The number that criteria agree on, which may not be a candidate; None if they
        do not agree.
    """
    counts = list(votes.values())
    several = [k for k in counts if k > 1]
    best = max(several, key=lambda k: (several.count(k), k in candidates), default=1)
    if FAR_APART in votes:
        agreed = best == certain > 1
    else:
        if counts.count(best) < 2:
            one_cluster = max(certain, votes.get(DENSITY, 1)) == 1
            best = 1 if one_cluster else median_low(several)
        agreed = counts.count(best) >= (2 if "modes" in votes else len(counts))
    # the nearest candidate, which is 1 only if that is the winner
    nearest_to = best if best > 1 or 1 in candidates else median_low(several or [1])
    allowed = [k for k in candidates if k > 1 or nearest_to == 1] or candidates
    n_clusters = min(allowed, key=lambda k: abs(k - nearest_to))
    return n_clusters, best if agreed else None


def disagreement_message(
    votes: dict[str, int], agreed: int | None, n_clusters: int, candidates
) -> str:
    """Return the warning for criteria that do not agree on the chosen number."""
    counts = list(votes.values())
    if agreed is None:
        names = ", ".join(f"{name} {number}" for name, number in votes.items())
        why = "Too few criteria agree"
        if FAR_APART in votes:
            why = "X has too few samples for a vote"
        why = f"{why} on a number of clusters ({names})"
        return f"{why}: {n_clusters} is often not right."
    needed = "more"
    if agreed < candidates[0]:
        needed = "smaller ones"
    elif agreed > candidates[-1]:
        needed = "larger ones"
    most = f"{counts.count(agreed)} of {len(counts)} criteria answer {agreed}"
    among = f"the candidates {format_candidates(candidates)}"
    return f"{most}, which is not among {among}: give {needed}, too."


def close_candidates(n_clusters: int, agreed: bool, votes: dict[str, int], candidates):
    """Return which candidates are about as good as the winner, which is among them.

    These have at most one vote fewer. Where too few criteria agree, they are all numbers
    from the smallest vote above 1 to the largest, and 1 if any criterion votes for 1.

    Parameters
    ----------
    n_clusters : int
        The winner.
    agreed : bool
        Whether criteria agree on it.
    votes : dict of str to int
    candidates : ndarray of shape (n_candidates,), int

    Returns
    -------
    ndarray of shape (n_candidates,), bool
    """
    counts = list(votes.values())
    n_votes = np.array([counts.count(k) for k in candidates])
    is_winner = candidates == n_clusters
    if agreed:
        return is_winner | (n_votes >= max(counts.count(n_clusters) - 1, 1))
    several = [k for k in counts if k > 1] or [n_clusters]
    is_between = (candidates >= min(several)) & (candidates <= max(several))
    return is_winner | is_between | (n_votes > 0)
