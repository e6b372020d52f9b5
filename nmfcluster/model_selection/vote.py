"""The vote of several criteria on the number of clusters of samples with features."""

from contextlib import suppress
from itertools import combinations
from statistics import median_low, multimode

import numpy as np
from scipy.cluster.hierarchy import DisjointSet, complete, fcluster, single
from scipy.spatial.distance import pdist
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, KMeans, kmeans_plusplus
from sklearn.metrics.cluster import contingency_matrix
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline

from nmfcluster._compat import take_samples
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.progress import log_line
from nmfcluster._utils.sampling import draw_positions
from nmfcluster._utils.sparse_products import center_columns
from nmfcluster._utils.storage import (
    as_dense,
    as_float64,
    divide_by_power,
    maximum_spanning_edges,
    scaling_exponent,
)
from nmfcluster._utils.validation import read_matrix, warn
from nmfcluster.model_selection.refits import SEEDS, count_entries, set_seeds
from nmfcluster.model_selection.results import NumberOfClusters, format_candidates

DENSITY = "density"
FAR_APART = "far apart"
# largest number of samples for the criteria, as the time of some grows with its square
_MAX_SAMPLES = 2000

# principal axes that are kept
_FEW_FEATURES = 5  # largest number of features for which all axes are kept
# smallest number of samples per axis; fewer look like clusters along the axis that
# separates them most
_SAMPLES_PER_AXIS = 30
_MIN_AXES = 2
_MAX_AXES = 20
_NOISE_MARGIN = 1.1  # variance of a kept axis, relative to the largest one of noise

# smallest cluster, in samples, that the criteria other than separation can detect
_MIN_CLUSTER_SIZE = 8
# smallest separated cluster, in samples; two samples are near each other by chance
_MIN_SEPARATED_SIZE = 3
# Dunn's index above which separated clusters are certain: among random draws of 6 normal
# numbers, 3 % have a larger index, and 8 % have an index above 1
_CERTAIN_DUNN_INDEX = 1.5
_N_SPLITS = 12  # random splits into halves
# splits after which a number is abandoned unless one of them is strong enough, as the
# other splits would hardly make up for these
_N_FIRST_SPLITS = 3
# smallest prediction strength, plus a standard error, of a valid clustering; the paper
# recommends 0.8 to 0.9
_MIN_STRENGTH = 0.8
# density between two peaks, relative to the lower peak, above which they are one mode
_ONE_MODE = 0.98
# numbers of neighbours: small ones detect small clusters, and large ones detect clusters
# that overlap
_N_NEIGHBORS = (8, 12, 16, 24, 32, 48, 64, 96, 128)


def choose_by_vote(estimator, X, numbers, seed, fit_with):
    """Choose the number of clusters that most criteria find.

    In a pipeline, the criteria use the input of its last step.
    """
    log_line("collecting votes of criteria", speaker="choose_n_clusters")
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        steps = clone(estimator[:-1])
        X = set_seeds(steps, np.random.default_rng(seed)).fit_transform(X)
    rng = np.random.default_rng(seed)
    X = read_matrix(
        X,
        ensure_min_samples=2 * _MIN_SEPARATED_SIZE,
        estimator="the vote of choose_n_clusters",
    )
    X = as_float64(draw_samples(X, rng))
    X = divide_by_power(X, scaling_exponent(X, 2))  # criteria do not depend on the unit
    votes, certain = collect_votes(X, int(numbers[-1]), rng)
    k, agreed = decide(votes, certain, numbers.tolist())
    is_agreed = agreed == k
    if not is_agreed:
        warn(disagreement_message(votes, agreed, k, numbers))
    return NumberOfClusters(
        numbers,
        k,
        as_good=close_candidates(k, is_agreed, votes, numbers),
        method="vote",
        agreed=is_agreed,
        votes=votes,
        best_estimator_=fit_with(k),
    )


def draw_samples(X, rng):
    """Return at most 2,000 samples, drawn at random and in the order of X."""
    return take_samples(X, draw_positions(count_entries(X), _MAX_SAMPLES, rng))


def collect_votes(X, max_clusters, rng):
    """Return the number of clusters that each criterion finds.

    Criteria use the principal axes that vary more than noise. None of them reliably
    detects a cluster of fewer than eight samples. If there are fewer than eight samples
    per separated cluster, or fewer than 16 in all, only the distances of samples vote.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        The samples that `draw_samples` returns.
    max_clusters : int
        The largest number of clusters that is tried.
    rng : Generator

    Returns
    -------
    votes : dict of str to int
        The number of clusters by the name of each criterion that finds one:

        - "mixture": Gaussian components by BIC; components that share a mode count as one;
        - "modes": peaks of the density of neighbours that do not arise by chance;
        - "density": clusters of HDBSCAN, for two features or more;
        - "prediction strength": the largest number of clusters that other samples predict;
        - "far apart": clusters that are farther from each other than they are wide; for
          few samples only.
    certain : int
        The number of modes, or of separated clusters, that are certain.
    """
    n = count_entries(X)
    if n < _MIN_CLUSTER_SIZE * max(max_clusters, 2):
        separated, certain = count_separated_clusters(as_dense(X), max_clusters)
        if n < _MIN_CLUSTER_SIZE * max(separated, 2):
            return {FAR_APART: separated}, certain
    seed = int(rng.integers(SEEDS))
    # scikit-learn would check the input of hundreds of small fits
    fast = config_context(assume_finite=True, skip_parameter_validation=True)
    with one_thread(), fast:
        Z = project_above_noise(X)
        n_distinct = len(np.unique(Z.round(9), axis=0))  # up to rounding errors
        tried = range(1, min(max_clusters, n // _MIN_CLUSTER_SIZE, n_distinct) + 1)
        Z = Z.astype(np.float32)  # single precision is enough
        modes, certain = count_density_modes(Z)
        votes = {
            "mixture": count_mixture_modes(fit_mixture(Z, tried, seed)),
            "modes": modes,
            # with one feature, the distances of a few neighbours vary too much
            DENSITY: count_hdbscan_clusters(Z) if Z.shape[1] > 1 else 0,
            "prediction strength": count_predictable_clusters(Z, tried, rng),
        }
    return {name: k for name, k in votes.items() if k}, certain


def decide(votes, certain, candidates):
    """Return the number of clusters that most criteria vote for.

    1. The number above 1 with the most votes wins if at least two criteria agree on it.
       It also wins over 1, as a criterion that votes for 1 may have missed clusters. If
       several numbers have equally many votes, a candidate wins over other numbers, and
       then the number of the first criterion wins.
    2. If no two criteria agree, the number is 1 if there is at most one mode that
       stays above twice the threshold, and one cluster by density. These two find the
       fewest clusters in data without any.
    3. Otherwise the number is the median of all votes above 1.

    The criteria agree on 1, too, if at least two of them vote for it. If there are too few
    samples for modes, two criteria are not reliable, and all of them must agree.

    Parameters
    ----------
    votes : dict of str to int
        The votes that `collect_votes` returns.
    certain : int
        The number of modes, or of separated clusters, that pass the stricter threshold, as
        `collect_votes` returns it.
    candidates : list of int

    Returns
    -------
    n_clusters : int
        The winner, or the candidate that is nearest to it.
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
    # the nearest candidate, but 1 only if 1 is the winner
    nearest_to = best if best > 1 or 1 in candidates else median_low(several or [1])
    allowed = [k for k in candidates if k > 1 or nearest_to == 1] or candidates
    n_clusters = min(allowed, key=lambda k: abs(k - nearest_to))
    return n_clusters, best if agreed else None


def disagreement_message(votes, agreed, n_clusters, candidates):
    """Return the warning for criteria that do not agree on the chosen number."""
    counts = list(votes.values())
    if agreed is None:
        names = ", ".join(f"{name} {number}" for name, number in votes.items())
        why = "Too few criteria agree"
        if FAR_APART in votes:
            why = "X has too few samples for a vote"
        why = f"{why} on a number of clusters ({names})"
        return f"{why}: {n_clusters} is often wrong. Compare several numbers."
    needed = "more"
    if agreed < candidates[0]:
        needed = "smaller ones"
    elif agreed > candidates[-1]:
        needed = "larger ones"
    most = f"{counts.count(agreed)} of {len(counts)} criteria vote for {agreed}"
    among = f"the candidates {format_candidates(candidates)}"
    return f"{most}, which is not among {among}: give {needed}, too."


def close_candidates(n_clusters, agreed, votes, candidates):
    """Return which candidates are about as good as the winner, including the winner.

    They have at most one vote fewer. If too few criteria agree, they are all numbers from
    the smallest vote above 1 to the largest, and 1 if any criterion votes for 1.

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


# --- principal axes ------------------------------------------------------------


def project_above_noise(X):
    r"""Return the coordinates of samples on the principal axes that vary more than noise.

    If p features of n samples are noise with one variance :math:`\sigma^2`, the variance along a
    principal axis is at most about :math:`\sigma^2 (1 + \sqrt{p / n})^2` [1]_. The median over axes
    estimates :math:`\sigma^2`, as few axes separate clusters. All axes of up to five features are
    kept. There are at most 20 axes, and at most one per 30 samples, but at least two. All entries
    are divided by the same number, so that their variance is 1.

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
    # coordinates on all axes, the largest variance first, by the products of features or
    # of samples, whichever are fewer
    X, mean = center_columns(X)
    if p <= n:
        products = as_dense(X.T @ X) - n * np.outer(mean, mean)
    else:
        along = X @ mean
        products = as_dense(X @ X.T) - along - along[:, None] + mean @ mean
    variances, axes = np.linalg.eigh(products)
    variances = np.maximum(variances[::-1], 0)  # times n
    axes = axes[:, ::-1]
    Z = X @ axes - mean @ axes if p <= n else axes * np.sqrt(variances)

    # keep the axes above noise
    spread = (1 + np.sqrt(min(n, p) / max(n, p))) ** 2
    noise = np.median(variances[: min(n - 1, p)]) * spread
    n_above = int((variances > _NOISE_MARGIN * noise).sum())
    least = p if p <= _FEW_FEATURES else _MIN_AXES
    most = min(p, _MAX_AXES, max(_MIN_AXES, n // _SAMPLES_PER_AXIS))
    Z = Z[:, : min(most, max(least, n_above))]
    return Z / (Z.std() or 1.0)


# --- separation --------------------------------------------------------------------


def count_separated_clusters(X, max_clusters):
    """Return the number of clusters that are farther from each other than they are wide.

    Dunn's index is the smallest distance between samples of two clusters divided by the
    largest distance between two samples of one cluster [1]_. It is above 1 for such
    clusters. Single linkage returns the numerator, and complete linkage the denominator.
    Both find the same clusters if the index is above 1.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    max_clusters : int

    Returns
    -------
    likely : int
        The number with the largest index; 1 if no index is above 1, or if a cluster has
        fewer than three samples.
    certain : int
        The same number, or 1 if its index is at most 1.5.

    References
    ----------
    .. [1] J. C. Dunn. Well-separated clusters and optimal fuzzy partitions. Journal of
       Cybernetics 4, 1974.
    """
    distances = pdist(X)
    tree = complete(distances)
    gaps = single(distances)[:, 2]
    dunn = {1: 1.0}
    for k in range(2, min(max_clusters, len(X) // _MIN_SEPARATED_SIZE) + 1):
        gap = gaps[1 - k]
        width = tree[-k, 2]
        if gap > width:
            sizes = np.bincount(fcluster(tree, k, "maxclust"))[1:]
            if sizes.min() >= _MIN_SEPARATED_SIZE:
                dunn[k] = gap / width if width else np.inf
    likely = max(dunn, key=dunn.__getitem__)
    return likely, likely if dunn[likely] > _CERTAIN_DUNN_INDEX else 1


# --- prediction strength -----------------------------------------------------------


def count_predictable_clusters(X, candidates, rng):
    """Return the largest number of k-means clusters with a prediction strength of 0.8.

    The strength of a number of clusters is the mean over twelve random splits into
    halves, plus its standard error [1]_. The largest number is tried first. A number is
    abandoned if none of its first three splits reaches 0.8.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    candidates : iterable of int
    rng : Generator

    Returns
    -------
    int
        1 if no larger number has this strength.

    References
    ----------
    .. [1] R. Tibshirani, G. Walther. Cluster validation by prediction strength. Journal
       of Computational and Graphical Statistics 14, 2005.
    """
    tried = sorted(k for k in candidates if 1 < k and k * _MIN_CLUSTER_SIZE <= len(X))
    if not tried:
        return 1
    splits = [draw_split(X, tried[-1], rng) for _ in range(_N_SPLITS)]
    for k in reversed(tried):
        strengths = [split_strength(split, k) for split in splits[:_N_FIRST_SPLITS]]
        if max(strengths) < _MIN_STRENGTH:
            continue
        strengths += [split_strength(split, k) for split in splits[_N_FIRST_SPLITS:]]
        error = np.std(strengths, ddof=1) / np.sqrt(_N_SPLITS)
        if np.mean(strengths) + error >= _MIN_STRENGTH:
            return k
    return 1


def draw_split(X, max_clusters, rng):
    """Return the samples of two random halves, each with two starts of k-means.

    A start has `max_clusters` centres. k-means++ draws them one by one, so its first k
    centres are a start for k clusters.
    """
    order = rng.permutation(len(X))
    middle = len(X) // 2
    seeded = np.random.RandomState(int(rng.integers(SEEDS)))
    split = []
    for rows in (order[:middle], order[middle:]):
        half = X[rows]
        starts = [
            kmeans_plusplus(half, max_clusters, random_state=seeded)[0]
            for _ in range(2)
        ]
        split.append((half, starts))
    return split


def split_strength(split, n_clusters):
    """Return the prediction strength of k-means clusters in the second half of a split.

    Each half is fitted from both of its starts, and the fit with the smaller inertia is
    used.
    """
    best = []
    for half, starts in split:
        fits = [
            KMeans(n_clusters, init=start[:n_clusters], n_init=1).fit(half)
            for start in starts
        ]
        best.append(min(fits, key=lambda fit: fit.inertia_))
    first, second = best
    return prediction_strength(second.labels_, first.predict(split[1][0]))


def prediction_strength(labels, predicted):
    """Return the smallest share, over clusters, of pairs that are predicted to be together.

    Parameters
    ----------
    labels : ndarray of shape (n,), int
        Clusters of samples, numbered from 0, found by a fit to these samples.
    predicted : ndarray of shape (n,), int
        Clusters of these samples, predicted by a fit to other samples.

    Returns
    -------
    float
        1 if every cluster has one sample.
    """
    shared = contingency_matrix(labels, predicted)
    sizes = shared.sum(axis=1)
    together = (shared * (shared - 1)).sum(axis=1)
    pairs = sizes * (sizes - 1)
    has_pairs = pairs > 0
    shares = together[has_pairs] / pairs[has_pairs]
    return float(shares.min(initial=1))


# --- Gaussian mixtures ---------------------------------------------------------------


def fit_mixture(X, candidates, seed):
    """Return the Gaussian mixture with the smallest BIC over all numbers of components.

    Either each component has a covariance of its own, or all share one, as few samples
    support no more. EM stops when an iteration improves BIC too little. BIC adds half the
    logarithm of n for each parameter of a component. The tolerance is a hundredth of this
    sum, or scikit-learn's default if that is larger.
    """
    n, p = X.shape
    fits = []
    for covariance_type, n_parameters in (
        ("full", (p + 1) * (p + 2) / 2),
        ("tied", p + 1),
    ):
        tol = max(1e-3, 0.01 * n_parameters * np.log(n) / 2 / n)
        for k in candidates:
            # enough iterations for EM to reach its tolerance
            mixture = GaussianMixture(
                k,
                covariance_type=covariance_type,
                tol=tol,
                max_iter=1000,
                random_state=seed,
            )
            # a covariance may be singular despite its regularization
            with suppress(ValueError), config_context(array_api_dispatch=False):
                fits.append(mixture.fit(X))
    return min(fits, key=lambda mixture: mixture.bic(X))


def count_mixture_modes(mixture):
    """Return the number of components, where components that share a mode count as one.

    All modes of the density of two components are on the ridge line between their
    means [1]_. The two share a mode if the density of the mixture on that line falls
    nowhere below 98 % of the lower of two peaks. Two components that share a mode with a
    third one also share it with each other.

    Parameters
    ----------
    mixture : GaussianMixture
        A fitted mixture with full or tied covariances.

    Returns
    -------
    int

    References
    ----------
    .. [1] S. Ray, B. G. Lindsay. The topography of multivariate normal mixtures. Annals
       of Statistics 33, 2005.
    """
    modes = DisjointSet(range(mixture.n_components))
    for i, j in combinations(modes, 2):
        if not modes.connected(i, j) and ridge_line_dip(mixture, i, j) > _ONE_MODE:
            modes.merge(i, j)
    return modes.n_subsets


def ridge_line_dip(mixture, i, j):
    """Return the density of a mixture at its dip between two components.

    The density is divided by that of the lower of the peaks on both sides of the dip. It
    is 1 if the density on the ridge line only rises, only falls, or rises and then falls.
    """
    share = np.linspace(0, 1, 41)[:, None, None]
    k, p = mixture.means_.shape
    A, B = np.broadcast_to(mixture.precisions_, (k, p, p))[[i, j]]
    a = (A @ mixture.means_[i])[:, None]
    b = (B @ mixture.means_[j])[:, None]
    # points of the ridge line
    precisions = (1 - share) * A + share * B
    points = np.linalg.solve(precisions, (1 - share) * a + share * b)[..., 0]

    # the highest density before and after each point
    log_density = mixture.score_samples(points)
    before = np.maximum.accumulate(log_density)
    after = np.maximum.accumulate(log_density[::-1])[::-1]
    return float(np.exp((log_density - np.minimum(before, after)).min()))


# --- nearest neighbours --------------------------------------------------------------


def count_density_modes(X):
    r"""Return the number of modes of the density that most numbers of neighbours find.

    With the distance :math:`r_k` to the k-th neighbour, :math:`-p \log r_k` is the logarithm of
    the density up to a constant, with an error of about :math:`1 / \sqrt k`. The prominence of a
    peak is its height above the highest saddle to a higher peak on the graph of these neighbours. A
    peak is a mode if its prominence is above :math:`\sqrt{\log n / k}` [1]_. The most frequent
    number over all k is returned, and the largest one if several are equally frequent.

    Along a ring, for example, peaks and saddles can be in many places, and p exceeds the intrinsic
    dimension. A mode is certain if its prominence is above twice the threshold, with the intrinsic
    dimension estimated from distances [2]_ in place of p.

    Parameters
    ----------
    X : ndarray of shape (n, p)

    Returns
    -------
    likely : int
        Number of modes that are unlikely to arise by chance; 0 if there are too few samples, or too
        few distinct ones.
    certain : int
        Number of modes that are unlikely to arise by chance even if samples are on a curve or a
        surface.

    References
    ----------
    .. [1] F. Chazal, L. J. Guibas, S. Y. Oudot, P. Skraba. Persistence-based clustering in
       Riemannian manifolds. Journal of the ACM 60, 2013.
    .. [2] E. Levina, P. J. Bickel. Maximum likelihood estimation of intrinsic dimension. NIPS 17,
       2004.
    """
    n, p = X.shape
    tried = [k for k in _N_NEIGHBORS if k < n / 4]
    if not tried:
        return 0, 0
    distances, nearest = NearestNeighbors(n_neighbors=tried[-1]).fit(X).kneighbors()
    likely = []
    certain = []
    for k in tried:
        radius = distances[:, k - 1]
        if not radius.any():
            return 0, 0
        heights = -np.log(np.maximum(radius, radius[radius > 0].min()))
        threshold = np.sqrt(np.log(n) / k)
        prominences = peak_prominences(heights, nearest[:, :k])
        likely.append(int((p * prominences > threshold).sum()))
        dimension = min(p, max(1.0, _intrinsic_dimension(distances[:, :k])))
        certain.append(int((dimension * prominences > 2 * threshold).sum()))
    return max(multimode(likely)), max(multimode(certain))


def _intrinsic_dimension(distances):
    """Return the intrinsic dimension of samples, estimated from distances of neighbours."""
    k = distances.shape[1]
    tiny = np.finfo(float).tiny
    logarithms = np.log(np.maximum(distances, tiny))
    growth = (logarithms[:, -1:] - logarithms[:, :-1]).mean() * (k - 1) / (k - 2)
    return float(1 / max(growth, tiny))


def peak_prominences(heights, nearest):
    """Return the height of each peak of a graph above the highest saddle to a higher peak.

    Parameters
    ----------
    heights : ndarray of shape (n,)
    nearest : ndarray of shape (n, k), int
        Neighbours of each node.

    Returns
    -------
    ndarray of shape (n_peaks,)
        Infinity for the highest peak of every connected component. Some entries may be 0:
        these nodes are not peaks.
    """
    components = DisjointSet(range(len(heights)))
    peaks = heights.tolist()  # height of the peak of a component, by its root node
    prominences = []
    for i, j, saddle in maximum_spanning_edges(heights, nearest):
        low, high = sorted((peaks[components[i]], peaks[components[j]]))
        components.merge(i, j)
        peaks[components[i]] = high
        prominences.append(low - saddle)
    return np.array(prominences + [np.inf] * components.n_subsets)


def count_hdbscan_clusters(X):
    """Return the number of clusters of HDBSCAN, which may be 1.

    A cluster has at least 2 % of the samples, and at least five samples.
    """
    min_samples = 5
    model = HDBSCAN(
        min_cluster_size=max(min_samples, len(X) // 50),
        min_samples=min_samples,
        allow_single_cluster=True,
        copy=True,
    )
    return max(int(model.fit(X).labels_.max()) + 1, 1)
