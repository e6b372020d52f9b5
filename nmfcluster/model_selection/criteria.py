"""Criteria for the number of clusters: separation, prediction strength and density."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import combinations
from statistics import multimode

import numpy as np
from scipy.cluster.hierarchy import DisjointSet, complete, fcluster, single
from scipy.spatial.distance import pdist
from sklearn import config_context
from sklearn.cluster import HDBSCAN, KMeans, kmeans_plusplus
from sklearn.metrics.cluster import contingency_matrix
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from nmfcluster._utils.storage import maximum_spanning_edges
from nmfcluster.model_selection.refits import SEEDS

# smallest cluster, in samples, that the criteria other than separation can detect
MIN_CLUSTER_SIZE = 8
# smallest cluster, in samples, of separated ones: two are near each other by chance
MIN_SEPARATED_SIZE = 3
# Dunn's index above which separated clusters are certain: 3 % of samples of 6 normal
# numbers have a larger one, and 8 % have one above 1
_CERTAIN_DUNN_INDEX = 1.5
_N_SPLITS = 12  # random splits into halves
# splits after which a number is abandoned unless one of them is strong enough: the
# others would hardly make up for these
_N_FIRST_SPLITS = 3
# prediction strength, standard error included, of a valid clustering; the paper
# recommends 0.8 to 0.9
_MIN_STRENGTH = 0.8
# density between two peaks, relative to the lower one, above which they are one mode
_ONE_MODE = 0.98
# numbers of neighbours: small ones detect small clusters, large ones overlapping ones
_N_NEIGHBORS = (8, 12, 16, 24, 32, 48, 64, 96, 128)


# --- separation --------------------------------------------------------------------


def count_separated_clusters(X, max_clusters: int) -> tuple[int, int]:
    """Return the number of clusters that are farther from each other than they are wide.

    Dunn's index is the smallest distance of samples of two clusters divided by the
    largest distance of two samples of a cluster [1]_. It is above 1 for such clusters.
    Single linkage yields the numerator, complete linkage the denominator, and both yield
    the same clusters.

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
        The same number, but 1 if its index is below 1.5.

    References
    ----------
    .. [1] J. C. Dunn. Well-separated clusters and optimal fuzzy partitions. Journal of
       Cybernetics 4, 1974.
    """
    distances = pdist(X)
    tree = complete(distances)
    gaps = single(distances)[:, 2]
    dunn = {1: 1.0}
    for k in range(2, min(max_clusters, len(X) // MIN_SEPARATED_SIZE) + 1):
        gap = gaps[1 - k]
        width = tree[-k, 2]
        if gap > width:
            sizes = np.bincount(fcluster(tree, k, "maxclust"))[1:]
            if sizes.min() >= MIN_SEPARATED_SIZE:
                dunn[k] = gap / width if width else np.inf
    likely = max(dunn, key=lambda k: dunn[k])
    return likely, likely if dunn[likely] > _CERTAIN_DUNN_INDEX else 1


# --- prediction strength -----------------------------------------------------------


def count_predictable_clusters(
    X, candidates: Iterable[int], rng: np.random.Generator
) -> int:
    """Return the largest number of k-means clusters with a prediction strength of 0.8.

    Samples are split into halves twelve times, and the standard error of the mean is
    added to it [1]_. The largest number is tried first. A number is abandoned if none of
    its first three splits reaches 0.8.

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
    tried = sorted(k for k in candidates if 1 < k and k * MIN_CLUSTER_SIZE <= len(X))
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


#: the samples of both halves, each with two starts of k-means
Split = list[tuple[np.ndarray, list[np.ndarray]]]


def draw_split(X, max_clusters: int, rng: np.random.Generator) -> Split:
    """Split samples into halves at random, and draw two starts of k-means for each.

    A start has `max_clusters` centres. Its first k centres are the start of k clusters,
    as k-means++ draws centres one by one.
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


def split_strength(split: Split, n_clusters: int) -> float:
    """Return the prediction strength of k-means clusters in the second half of a split.

    Of two starts, the one with the smaller inertia counts.
    """
    best = []
    for half, starts in split:
        fits = [
            KMeans(n_clusters, init=start[:n_clusters], n_init=1).fit(half)
            for start in starts
        ]
        best.append(min(fits, key=lambda fit: float(fit.inertia_)))
    first, second = best
    return prediction_strength(second.labels_, first.predict(split[1][0]))


def prediction_strength(labels, predicted) -> float:
    """Return the share of pairs in a cluster that are predicted to be together.

    The share is that of the cluster in which it is smallest.

    Parameters
    ----------
    labels : ndarray of shape (n,), int
        Clusters of samples, numbered from 0, by a fit to them.
    predicted : ndarray of shape (n,), int
        Clusters of these samples, by a fit to others.

    Returns
    -------
    float
        1 for clusters of one sample.
    """
    shared = contingency_matrix(labels, predicted)
    sizes = shared.sum(axis=1)
    together = (shared * (shared - 1)).sum(axis=1)
    pairs = sizes * (sizes - 1)
    shares = np.divide(together, pairs, out=np.ones(len(pairs)), where=pairs > 0)
    return float(shares.min())


# --- Gaussian mixtures ---------------------------------------------------------------


def fit_mixture(X, candidates: Iterable[int], seed: int) -> GaussianMixture:
    """Return the Gaussian mixture with the smallest BIC among numbers of components.

    Components have a covariance each, or share one, as few samples say no more. EM stops
    where an iteration improves BIC too little. BIC adds half the logarithm of n for each
    parameter of a component; the tolerance is a hundredth of that, or scikit-learn's
    default where that is larger.
    """
    n, p = X.shape
    fits = []
    for covariance_type, n_parameters in (
        ("full", (p + 1) * (p + 2) / 2),
        ("tied", p + 1),
    ):
        tol = max(1e-3, 0.01 * n_parameters * np.log(n) / 2 / n)
        for k in candidates:
            # so many iterations that EM stops by its tolerance
            mixture = GaussianMixture(
                k,
                covariance_type=covariance_type,
                tol=tol,
                max_iter=1000,
                random_state=seed,
            )
            # a covariance may be singular in spite of its regularization
            with suppress(ValueError), config_context(array_api_dispatch=False):
                fits.append(mixture.fit(X))
    return min(fits, key=lambda mixture: float(mixture.bic(X)))


def count_mixture_modes(mixture: GaussianMixture) -> int:
    """Return the number of components, where components with one mode count as one.

    All modes of the density of two components are on the ridge line between their
    means [1]_. They count as one mode if the density of the mixture on that line falls
    nowhere below 98 % of the lower of two peaks. Components that share a mode with a
    third one share it with each other.

    Parameters
    ----------
    mixture : GaussianMixture
        Fitted, with full covariances, or with a tied one.

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
    return int(modes.n_subsets)


def ridge_line_dip(mixture: GaussianMixture, i: int, j: int) -> float:
    """Return the density of a mixture at its dip between two components.

    It is relative to the lower of the peaks on both sides of the dip. It is 1 if the
    density on the ridge line only rises, only falls, or rises and then falls.
    """
    share = np.linspace(0, 1, 41)[:, None, None]
    k, p = mixture.means_.shape
    A, B = np.broadcast_to(mixture.precisions_, (k, p, p))[[i, j]]
    a = A @ mixture.means_[i]
    b = B @ mixture.means_[j]
    # points of the ridge line
    precisions = (1 - share) * A + share * B
    weighted = (1 - share[..., 0]) * a + share[..., 0] * b
    points = np.linalg.solve(precisions, weighted[..., None])[..., 0]

    # the peaks before and behind each of them
    log_density = mixture.score_samples(points)
    before = np.maximum.accumulate(log_density)
    after = np.maximum.accumulate(log_density[::-1])[::-1]
    return float(np.exp((log_density - np.minimum(before, after)).min()))


# --- nearest neighbours --------------------------------------------------------------


def count_density_modes(X) -> tuple[int, int]:
    r"""Return the number of modes of the density that most numbers of neighbours find.

    With the distance :math:`r_k` to the k-th neighbour, :math:`-p \log r_k` is the logarithm of
    the density up to a constant, with an error of about :math:`1 / \sqrt k`. On the graph of these
    neighbours, a peak whose prominence, its height above the highest saddle to a higher peak, is
    less than :math:`\sqrt{\log n / k}` is not a mode [1]_. The most frequent number over all k is
    returned, and the largest of several that are equally frequent.

    Along a ring, for example, peaks and saddles can be in many places, and p is more than the
    intrinsic dimension. The prominence of a certain mode is therefore twice as large, with the
    intrinsic dimension that distances have [2]_ instead of p.

    Parameters
    ----------
    X : ndarray of shape (n, p)

    Returns
    -------
    likely : int
        Modes that are unlikely to arise by chance; 0 if there are too few samples, or too few
        distinct ones, to tell.
    certain : int
        Modes that are unlikely to arise by chance even among samples on a curve or a surface.

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


def _intrinsic_dimension(distances) -> float:
    """Return the intrinsic dimension of samples by the distances of their neighbours."""
    k = distances.shape[1]
    tiny = np.finfo(float).tiny
    logarithms = np.log(np.maximum(distances, tiny))
    growth = (logarithms[:, -1:] - logarithms[:, :-1]).mean() * (k - 1) / (k - 2)
    return float(1 / max(growth, tiny))


def peak_prominences(heights, nearest):
    """Return how far each peak of a graph is above the highest saddle to a higher one.

    Parameters
    ----------
    heights : ndarray of shape (n,)
    nearest : ndarray of shape (n, k), int
        Nodes that a node is joined with.

    Returns
    -------
    ndarray of shape (n_peaks,)
        Infinity for the highest peak of every connected component. Nodes that are no
        peaks have a prominence of 0, and can be among them.
    """
    components = DisjointSet(range(len(heights)))
    peaks = heights.tolist()  # of a component, at the node that represents it
    prominences = []
    for i, j, saddle in maximum_spanning_edges(heights, nearest):
        low, high = sorted((peaks[components[i]], peaks[components[j]]))
        components.merge(i, j)
        peaks[components[i]] = high
        prominences.append(low - saddle)
    return np.array(prominences + [np.inf] * components.n_subsets)


def count_hdbscan_clusters(X) -> int:
    """Return the number of clusters of HDBSCAN, which may be one.

    A cluster has at least one of 50 samples, and at least five samples.
    """
    min_samples = 5
    model = HDBSCAN(
        min_cluster_size=max(min_samples, len(X) // 50),
        min_samples=min_samples,
        allow_single_cluster=True,
        copy=True,
    )
    return max(int(model.fit(X).labels_.max()) + 1, 1)
