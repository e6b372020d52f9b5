"""Criteria that look at the density of samples: how many bumps or peaks it has."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import combinations
from statistics import multimode

import numpy as np
from scipy.cluster.hierarchy import DisjointSet
from sklearn import config_context
from sklearn.cluster import HDBSCAN
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from nmfcluster._utils.storage import highest_edges

_ONE_BUMP = (
    0.98  # of the lower of two peaks, which a density between them need not fall below
)
_NEIGHBORS = (
    8,
    12,
    16,
    24,
    32,
    48,
    64,
    96,
    128,
)  # few see small clusters, many see overlaps


def best_mixture(X: np.ndarray, numbers: Iterable[int], seed: int) -> GaussianMixture:
    """Return the mixture with the least BIC, of so many components.

    Components have a covariance each, or share one: few samples tell no more. EM ends where an
    iteration gains too little to matter to BIC, which takes half the logarithm of n for each
    parameter of a component: a hundredth of that, or the default of scikit-learn, if that is more.
    """
    n, p = X.shape
    fits = []
    for kind, n_parameters in (("full", (p + 1) * (p + 2) / 2), ("tied", p + 1)):
        tol = max(1e-3, 0.01 * n_parameters * np.log(n) / 2 / n)
        for k in numbers:
            # so many iterations that EM ends by its tolerance
            mixture = GaussianMixture(k, covariance_type=kind, tol=tol, max_iter=1000)
            # a covariance may be singular in spite of what is added
            with suppress(ValueError), config_context(array_api_dispatch=False):
                fits.append(mixture.set_params(random_state=seed).fit(X))
    return min(fits, key=lambda mixture: float(mixture.bic(X)))


def n_bumps(mixture: GaussianMixture) -> int:
    """Return the number of components, those counted as one that make one bump.

    The density of two components has all its modes on the ridge line between their means [1]_.
    They make one bump if the mixture falls nowhere on it below 98 % of the lower of two peaks.
    What makes one bump with a third makes one with it, too.

    Parameters
    ----------
    mixture : GaussianMixture
        Fitted, with full covariances, or one that is tied.

    Returns
    -------
    int

    References
    ----------
    .. [1] S. Ray, B. G. Lindsay. The topography of multivariate normal mixtures. Annals of
       Statistics 33, 2005.
    """
    bumps = DisjointSet(range(mixture.n_components))
    for i, j in combinations(bumps, 2):
        if not bumps.connected(i, j) and lowest_between(mixture, i, j) > _ONE_BUMP:
            bumps.merge(i, j)
    return int(bumps.n_subsets)


def lowest_between(mixture: GaussianMixture, i: int, j: int) -> float:
    """Return how low the density falls on the ridge line of two components, over the lower peak.

    1 if it only rises, only falls, or rises and then falls.
    """
    share = np.linspace(0, 1, 41)[:, None, None]
    k, p = mixture.means_.shape
    A, B = np.broadcast_to(mixture.precisions_, (k, p, p))[[i, j]]
    a, b = A @ mixture.means_[i], B @ mixture.means_[j]
    both = (1 - share) * A + share * B
    line = np.linalg.solve(
        both, ((1 - share[..., 0]) * a + share[..., 0] * b)[..., None]
    )[..., 0]
    density = mixture.score_samples(line)  # its logarithm
    before = np.maximum.accumulate(density)
    after = np.maximum.accumulate(density[::-1])[::-1]
    return float(np.exp((density - np.minimum(before, after)).min()))


def modes_of(X: np.ndarray) -> tuple[int, int]:
    r"""Return how many modes the density of samples has, by most numbers of neighbours.

    With the distance :math:`r_k` to the k-th neighbour, :math:`-p \log r_k` is the logarithm of
    the density up to a constant, with an error of about :math:`1 / \sqrt k`. On the graph of these
    neighbours, a peak that rises less than :math:`\sqrt{\log n / k}` above the highest saddle to a
    higher peak is none [1]_. Of the counts for all k the most frequent is returned, and of several
    such the largest.

    Along a ring, say, there are many places for a peak and a saddle to be at, and p is more than
    the dimension in which samples differ. So a certain mode rises twice as much, with the dimension
    that distances have [2]_ instead of p.

    Parameters
    ----------
    X : ndarray of shape (n, p)

    Returns
    -------
    likely : int
        Those that chance hardly makes; 0 where samples are too few, or at too few places, to tell.
    certain : int
        Those that it hardly makes even of samples on a curve or a surface.

    References
    ----------
    .. [1] F. Chazal, L. J. Guibas, S. Y. Oudot, P. Skraba. Persistence-based clustering in
       Riemannian manifolds. Journal of the ACM 60, 2013.
    .. [2] E. Levina, P. J. Bickel. Maximum likelihood estimation of intrinsic dimension. NIPS 17,
       2004.
    """
    n, p = X.shape
    tried = [k for k in _NEIGHBORS if k < n / 4]
    if not tried:
        return 0, 0
    distances, nearest = NearestNeighbors(n_neighbors=tried[-1]).fit(X).kneighbors()
    likely, certain = [], []
    for k in tried:
        radius = distances[:, k - 1]
        if not radius.any():
            return 0, 0
        heights = -np.log(np.maximum(radius, radius[radius > 0].min()))
        chance, rises = np.sqrt(np.log(n) / k), rises_of_peaks(heights, nearest[:, :k])
        likely.append(int((p * rises > chance).sum()))
        dimension = min(p, max(1.0, _dimension(distances[:, :k])))
        certain.append(int((dimension * rises > 2 * chance).sum()))
    return max(multimode(likely)), max(multimode(certain))


def _dimension(distances: np.ndarray) -> float:
    """Return in how many dimensions samples differ, by the distances of their neighbours."""
    k, least = distances.shape[1], np.finfo(float).tiny
    logarithms = np.log(np.maximum(distances, least))
    growth = (logarithms[:, -1:] - logarithms[:, :-1]).mean() * (k - 1) / (k - 2)
    return float(1 / max(growth, least))


def rises_of_peaks(heights: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Return how far every peak of a graph rises above the highest saddle to a higher one.

    Parameters
    ----------
    heights : ndarray of shape (n,)
    nearest : ndarray of shape (n, k), int
        Nodes that a node is joined with.

    Returns
    -------
    ndarray of shape (n_peaks,)
        Infinity for the highest peak of every connected part. Nodes that are no peaks rise by 0,
        and can be among them.
    """
    parts, peaks, rises = DisjointSet(range(len(heights))), heights.tolist(), []
    for i, j, saddle in highest_edges(heights, nearest):
        low, high = sorted((peaks[parts[i]], peaks[parts[j]]))
        parts.merge(i, j)
        peaks[parts[i]] = (
            high  # of a part that has grown, at the sample that stands for it
        )
        rises.append(low - saddle)
    return np.array(rises + [np.inf] * parts.n_subsets)


def n_dense(X: np.ndarray) -> int:
    """Return the number of clusters of HDBSCAN, which may be one.

    A cluster has one of 50 samples, and five at least.
    """
    fewest = 5
    size = max(fewest, len(X) // 50)
    found = HDBSCAN(
        min_cluster_size=size, min_samples=fewest, allow_single_cluster=True, copy=True
    )
    return max(int(found.fit(X).labels_.max()) + 1, 1)
