"""Similarities computed from features: of samples, and of new samples to training samples."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from operator import matmul
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import cophenet, single
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import euclidean_distances

from nmfcluster._compat import (
    COUNT,
    N_JOBS,
    RANDOM_STATE,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from nmfcluster._utils import storage
from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.sparse_products import scale_rows_columns
from nmfcluster._utils.storage import divide_by_power, divide_number, scaling_exponent
from nmfcluster._utils.validation import (
    check_number,
    check_shape,
    columns_in_row_order,
    read_matrix,
    warn,
)
from nmfcluster.similarity import Explicit, Factored, Similarity
from nmfcluster.similarity.neighbors import (
    Landmarks,
    NeighborGraph,
    has_small_clusters,
    suits_neighbor_graph,
)
from nmfcluster.similarity.operators import N_SAMPLED_ENTRIES

__all__ = ["make_affinity", "path_kernel"]

#: names of the affinities
AFFINITIES = (
    "auto",
    "nearest_neighbors",
    "landmarks",
    "linear",
    "cosine",
    "rbf",
    "precomputed",
)
#: constraints of the parameters of estimators that compute affinities
AFFINITY_PARAMETERS: dict = {
    "gamma": [Interval(Real, 0, None, closed="neither"), None],
    "n_neighbors": [COUNT, None],
    "n_landmarks": [COUNT],
    "normalize": ["boolean", StrOptions({"auto"})],
}

# constraints of all parameters of make_affinity
_PARAMETERS = AFFINITY_PARAMETERS | {
    "n_clusters": [COUNT, None],
    "random_state": RANDOM_STATE,
    "n_jobs": N_JOBS,
}
# new samples that "rbf" compares with all others in one block
_BLOCK_ROWS = 512
# rounding of a row sum, by bytes of its dtype, relative to a sum with random signs
_ROUNDING = {4: 1e-4, 8: 1e-10}
# default number of landmarks of a sample
_N_NEAREST_LANDMARKS = 5
# quantiles of row sums that are compared, so that a few samples far from all others do not count
_EXTREMES = (0.02, 0.98)
# ratio of these quantiles above which the largest clusters dominate the objective
_MIN_RATIO = 10.0
# similarity between two clusters, relative to that within them, above which they may be one: it was
# at least 0.79 between halves of a Gaussian cluster, and about 0.4 between other clusters
_MIN_RELATIVE_SIMILARITY = 0.7

# largest mean cosine of samples for which "linear" and "cosine" are normalised: measurements often
# exceed 0.3, where the first eigenvector of normalised rows dominates and all samples can end in
# one cluster; 13 sets of texts have at most 0.07
_MAX_COSINE = 0.2

# function of new samples that returns their similarities times a matrix
Product = Callable[[Any], np.ndarray]


def path_kernel(X: Any, Y: Any = None, *, scale: float | None = None) -> np.ndarray:
    r"""Return the connectivity kernel of samples, :math:`\exp(-e_{ij} / \text{scale})`.

    Use it for elongated or ring-shaped clusters. The kernel is large for two samples of the same
    ring, and small for samples of different rings, even if the rings are close to each other.

    A path leads from sample i to sample j through other samples. The cost of a path is the length
    of its longest step, and the effective dissimilarity :math:`e_{ij}` of [1]_ is the smallest cost
    of all paths from i to j. Pass this function as ``affinity=``, or to
    `nmfcluster.stack.KernelStack`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples.
    Y : array-like of shape (n_others, n_features), default=None
        Samples that paths pass through and end at. By default, these are the samples in X.
    scale : float, default=None
        Larger values make all samples more similar. The default is the median of :math:`e_{ij}`
        over pairs of samples in Y.

    Returns
    -------
    ndarray of shape (n_samples, n_others)

    Raises
    ------
    ValueError
        If Y has fewer than two samples, X and Y have different numbers of features, or `scale` is
        not a number above 0.

    Notes
    -----
    The kernel takes time O(m^2) for m samples in Y. If X differs from Y, it takes time O(m^2) more
    for every sample in X.

    References
    ----------
    .. [1] B. Fischer, V. Roth, J. M. Buhmann. Clustering with the connectivity kernel. NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.affinity import path_kernel
    >>> X = np.array([[0.0], [1.0], [2.0], [5.0]])
    >>> -np.log(path_kernel(X, scale=1.0)).round(6) + 0.0
    array([[0., 1., 1., 3.],
           [1., 0., 1., 3.],
           [1., 1., 0., 3.],
           [3., 3., 3., 0.]])
    """
    X = read_matrix(X, accept_sparse=False)
    Y = X if Y is None else read_matrix(Y, "Y", accept_sparse=False)
    if scale is not None:
        check_number(scale, "scale", np.inf, closed="neither")
    if X.shape[1] != Y.shape[1] or len(Y) < 2:
        raise ValueError(
            "Y must hold at least 2 samples, and have as many features as X, got shape "
            f"{Y.shape} for X of shape {X.shape}."
        )
    exponent = max(scaling_exponent(X, 2), scaling_exponent(Y, 2), key=abs)
    Y_divided = divide_by_power(Y, exponent)
    # the merge heights of single linkage are the longest steps of the best paths
    steps = squareform(cophenet(single(pdist(Y_divided))))
    if scale is None:
        unit = float(np.median(steps[np.triu_indices(len(Y), 1)])) or 1.0
    else:
        unit = divide_number(scale, exponent)
    if X is not Y and not np.array_equal(X, Y):
        # try every sample of Y as the first step, and the best path from there
        first = euclidean_distances(divide_by_power(X, exponent), Y_divided)
        steps = np.array([np.maximum(row[:, None], steps).min(axis=0) for row in first])
    with np.errstate(over="ignore"):  # exp(-inf) is 0
        return np.exp(-steps / unit).astype(X.dtype)


@dataclass(frozen=True)
class Affinity:
    """The similarities of samples, and functions that compare new samples with them.

    Attributes
    ----------
    similarity : Similarity of shape (n_samples, n_samples)
    onto : callable
        ``onto(P)``, with P of shape (n_samples, r), returns a function of new samples. This
        function multiplies the similarities of the new samples to the training samples, (n_new,
        n_samples), by P. It can be pickled, and stores only the data that it needs.
    between : callable
        ``between(X_new)`` returns the similarities of new samples to the training samples, (n_new,
        n_samples), dense or CSR.
    name : str
        Name of the affinity that is used. If `affinity` was "auto", it is the selected one. For a
        function, it is "callable".
    counts : ndarray of shape (n_samples,), int, or None
        How many samples each row represents, divided by their greatest common divisor if this
        changes no result. None means that each row represents one sample.
    is_normalized : bool
        Whether all rows have the same weight.
    keeps_diagonal : bool
        Whether the diagonal of the similarity is kept when it is normalised.
    """

    similarity: Similarity
    onto: Callable[[np.ndarray], Product]
    between: Callable[[Any], Any]
    name: str
    counts: np.ndarray | None = None
    is_normalized: bool = False
    keeps_diagonal: bool = False

    def cross(self, X: Any, P: np.ndarray) -> np.ndarray:
        """Return the similarities of new samples to the training samples, times P."""
        return self.onto(P)(X)

    def block(self) -> Any:
        """Return the similarity of the samples as an array, in CSR format if it is sparse."""
        W = self.similarity
        if W.stored_off_diagonal() is None:
            return W.toarray()
        return W @ storage.identity(W.shape[0], W.dtype)


def make_affinity(
    X: Any,
    affinity: str | Callable[[Any, Any], Any] = "auto",
    *,
    gamma: float | None = None,
    n_neighbors: int | None = None,
    n_landmarks: int = 2_000,
    normalize: bool | str = False,
    n_clusters: int | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    counts: np.ndarray | None = None,
) -> Affinity:
    r"""Compute the similarities of samples, and functions that compare new samples with them.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
        The features, or the similarity matrix if ``affinity="precomputed"``.
    affinity : str or callable, default="auto"
        - "nearest_neighbors": a sparse graph of the distinct rows. The similarity of neighbours is
          :math:`\exp(-\|x_i - x_j\|^2 / (s_i s_j))`, with :math:`s_i` the distance from i to its
          K-th neighbour [1]_. Two rows are neighbours if one of them is among the K nearest
          neighbours of the other, or as near as the K-th. Equal rows have similarity 1.
        - "landmarks": :math:`B \Lambda^{-1} B'`, where row i of B holds the weights of the K
          landmarks nearest to sample i, and :math:`\Lambda` holds the column sums of B [2]_. The
          matrix is never formed, and the computation takes time O(n_samples).
        - "auto": "nearest_neighbors" for up to 3,000 dense or 10,000 sparse samples, "landmarks"
          for more.
        - "linear": :math:`x_i'x_j`, never formed.
        - "cosine": :math:`x_i'x_j / (\|x_i\| \|x_j\|)`, never formed.
        - "rbf": :math:`\exp(-\gamma \|x_i - x_j\|^2)`, a dense array.
        - "precomputed": X is the similarity, dense or sparse.
        - a callable: ``affinity(X, Y)`` returns the similarities of the rows of X to those of Y,
          dense or sparse.
    gamma : float, default=None
        Larger values make the similarity of "rbf" fall faster with the distance, so that only close
        samples are similar. The default is 1 divided by the median squared distance of two samples.
    n_neighbors : int, default=None
        The number K. Larger values connect samples that are farther apart. For "nearest_neighbors",
        K is at most the number of other distinct rows. The default is 10, or less if clusters have
        few rows. For "landmarks", K is at most the number of landmarks, and the default is 5.
    n_landmarks : int, default=2_000
        Number of landmarks for "landmarks". Larger values represent the samples more finely, and
        take longer. If there are at most `n_landmarks` samples, every sample is a landmark.
    normalize : bool or "auto", default=False
        Whether to return :math:`D^{-1/2} W D^{-1/2}` instead of the similarity W, where D holds the
        row sums of W. The diagonal of W is first set to 0. Only "nearest_neighbors" keeps the
        diagonal if `n_clusters` is passed, so that a single sample can be a cluster.

        "auto" always normalises "nearest_neighbors", and never "landmarks", whose rows already sum
        to 1. It normalises other affinities if no similarity is negative and clusters have at least
        14 rows on average. For "linear" and "cosine", the mean cosine of two samples must also be
        at most 0.2, as is usual for texts.
    n_clusters : int, default=None
        Number of clusters. If the graph of "nearest_neighbors" or "landmarks" has more connected
        components, the smallest ones are linked to the samples nearest to them. None adds no links.
    random_state : int, RandomState, Generator or None, default=0
        Determines the landmarks, unless all samples are landmarks.
    n_jobs : int, default=None
        Number of parallel jobs that search for neighbours.
    counts : ndarray of shape (n_samples,), int, default=None
        How many samples each row of features represents. Sums over samples are weighted by these
        numbers; by default, each row counts once.

    Returns
    -------
    Affinity
        The attribute `similarity` is the similarity of the samples, a
        `nmfcluster.similarity.Similarity`. The attribute `name` is the affinity that is used, which
        "auto" may have selected.

        ``block()`` returns the similarity as an array, in CSR format if it is sparse.
        ``between(X_new)`` returns the similarities of new samples to the samples in X, (n_new,
        n_samples), dense or CSR. ``cross(X_new, P)`` returns these similarities times P, of shape
        (n_samples, r). ``onto(P)`` returns the function of new samples that ``cross`` calls. It
        stores no more of X than it needs.

    Raises
    ------
    ValueError
        If `affinity` is unknown, if a callable does not return a similarity, or if the similarity
        is normalised and a row has a negative sum.

    References
    ----------
    .. [1] L. Zelnik-Manor, P. Perona. Self-tuning spectral clustering. NIPS 2004.
    .. [2] W. Liu, J. He, S.-F. Chang. Large graph construction for scalable semi-supervised
       learning. ICML 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster.affinity import make_affinity
    >>> make_affinity(load_iris().data).similarity
    Explicit(shape=(150, 150), dtype=float64)
    """
    # read the parameters and the samples
    values = {name: value for name, value in locals().items() if name in _PARAMETERS}
    validate_parameter_constraints(_PARAMETERS, values, caller_name="make_affinity")
    X = read_matrix(columns_in_row_order(X, "X") if affinity == "precomputed" else X)
    name = affinity if isinstance(affinity, str) else "callable"
    if name == "auto":
        name = "nearest_neighbors" if suits_neighbor_graph(X) else "landmarks"
    # divide counts by their greatest common divisor, which does not change normalised rows
    reduced_counts = None if counts is None else counts // np.gcd.reduce(counts)
    X, exponent = _scale_features(X, name)
    # compute the similarity W. `compare` returns the similarities of new samples, and
    # rows(X) @ project(P) is these times P
    W: Similarity
    rows: Any
    project: Any = None  # None leaves P as it is
    if name == "landmarks":
        if n_landmarks < (n_clusters or 0):
            raise ValueError(
                f"n_landmarks={n_landmarks} must be at least n_clusters={n_clusters}."
            )
        counts = reduced_counts
        landmarks = Landmarks(
            X,
            n_landmarks,
            n_neighbors or _N_NEAREST_LANDMARKS,
            random_state,
            n_clusters,
            counts=counts,
        )
        W = landmarks.similarity
        compare = landmarks.between
        rows = landmarks.rows
        project = landmarks.project
    elif name == "nearest_neighbors":
        graph = NeighborGraph(X, n_neighbors, n_jobs, n_clusters)
        W = Explicit(graph.array)
        compare = rows = graph.between
    else:
        W, compare, rows, project = _compute_kernel(X, affinity, gamma, exponent)
    # a graph keeps its diagonal if n_clusters is passed, because a single row can be a cluster
    keeps_diagonal = name == "nearest_neighbors" and n_clusters is not None
    if normalize == "auto":
        normalize = _is_to_normalize(name, X, W, n_clusters)
    scale = None
    if normalize:
        counts = reduced_counts
        W, scale = normalize_similarity(W, counts, keeps_diagonal)
    read = partial(_read_new, exponent, X.shape[1])
    return Affinity(
        W,
        partial(_onto, rows, project, read, scale, counts, name),
        partial(_between, compare, read, scale, counts),
        name,
        counts,
        is_normalized=bool(normalize) or name == "landmarks",
        keeps_diagonal=keeps_diagonal,
    )


def _scale_features(X, name):
    """Return features, divided by a power of two if sums of their powers would overflow.

    Also returns the exponent, or None if X is a similarity or the input of a callable.
    """
    if name not in AFFINITIES or name == "precomputed":
        return X, None
    exponent = scaling_exponent(X, 4 if name == "linear" else 2)
    return X.copy() if exponent == 0 else divide_by_power(X, exponent), exponent


def _compute_kernel(X, affinity, gamma, exponent):
    """Return a similarity that is computed pair by pair, and functions to compare new samples.

    The functions are `compare`, `rows` and `project` of `make_affinity`.
    """
    compare: Any
    if affinity in ("linear", "cosine"):
        read = storage.as_float
        lengths = None
        if affinity == "cosine":
            read = _unit_rows
            lengths = _inverse_lengths(X)
        U = read(X)
        compare = partial(_compare_features, U, read)
        return Factored(X, scale=lengths), compare, read, partial(matmul, U.T)
    array = X
    if affinity == "rbf":
        if gamma is None:
            gamma = 1 / _median_square(X)
        elif exponent:  # scale gamma inversely to the squared distances
            gamma = divide_number(gamma, -2 * exponent)
        compare = partial(_rbf, X, gamma)
        array = compare(X)
    elif affinity == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be square with affinity='precomputed', got shape {X.shape}."
            )
        storage.require_symmetric(X, "X with affinity='precomputed'")
        compare = storage.as_float  # new samples are already similarities
    elif callable(affinity) and not isinstance(affinity, type):
        compare = partial(_call, affinity, X)
        array = compare(X)
        storage.require_symmetric(array, "the result of affinity(X, X)")
    else:
        raise ValueError(
            f"affinity must be one of {AFFINITIES} or a callable, but not a class, got "
            f"{affinity!r}."
        )
    return Explicit(array), compare, compare, None


def _is_to_normalize(name, X, W, n_clusters):
    """Return whether normalize="auto" normalises this similarity, see `make_affinity`."""
    if name == "landmarks":
        return False  # rows sum to 1
    if name != "nearest_neighbors" and has_small_clusters(X.shape[0], n_clusters):
        return False
    if isinstance(W, Explicit):
        return W.is_nonnegative()
    if float(X.min()) < 0 or storage.max_abs(X) == 0:
        return False
    # the sum of the cosines of all pairs is the squared length of the sum of the unit rows
    n = X.shape[0]
    directions = X.T @ _inverse_lengths(X)
    return float(directions @ directions) - n <= _MAX_COSINE * n * (n - 1)


def normalize_similarity(W, counts=None, keeps_diagonal=False):
    """Return ``D^-1/2 W D^-1/2``, D the row sums of W, and the diagonal of ``D^-1/2``.

    This turns the objective of kernel k-means into that of the normalised cut. See Li et al.
    (2007), section 2.3.2.

    Parameters
    ----------
    W : Similarity of shape (n, n)
    counts : ndarray of shape (n,), int, default=None
        How many samples each row represents; 1 by default.
    keeps_diagonal : bool, default=False
        Whether the diagonal of W is kept. By default it is set to 0, because a sample far from all
        others would otherwise form a cluster of its own.

    Returns
    -------
    Similarity of shape (n, n), ndarray of shape (n,)
    """
    if not keeps_diagonal:
        W = W.without_diagonal()
    n = W.shape[0]
    ones = np.ones(n) if counts is None else counts
    degrees = (W @ ones.astype(W.dtype)[:, None])[:, 0]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(n, 1))
    random_sums = W @ signs.astype(W.dtype)
    rounding = _ROUNDING[W.dtype.itemsize] * float(abs(random_sums).max())
    if degrees.min() < -rounding or degrees.max() <= rounding:
        raise ValueError(
            "normalize=True needs similarities whose row sums are at least 0, and not all 0, but "
            f"row {int(degrees.argmin())} sums to {degrees.min():.3g}. Use normalize=False, or "
            "similarities that are not negative. Features that were centred have row sums of 0."
        )
    degrees[degrees <= rounding] = 0
    scale = _inverse_root(degrees)
    return W.scaled(scale), scale


def _read_new(exponent, n_features, X):
    """Return new samples, divided by the same power of 2 as those of the fit.

    The exponent is that of `_scale_features`.
    """
    X = read_matrix(X)
    check_shape(X, "X", n_features)
    if exponent is None:
        return X
    divided = divide_by_power(X, exponent)
    if scaling_exponent(divided, 2) > 0:
        raise ValueError(
            f"X must not hold values as large as {storage.max_abs(X):.3g}, because distances to "
            "the samples of fit would overflow; drop or clip such samples."
        )
    return divided


def _between(compare, read, scale, counts, X):
    """Return the similarities of new samples, normalised like those of the fit.

    The scale is the diagonal of ``D^-1/2`` of the fit, or None if it is not normalised.
    """
    block = compare(read(X))
    if scale is None:
        return block
    sums = storage.row_sums(block) if counts is None else block @ counts
    return scale_rows_columns(block, _inverse_root(sums.astype(block.dtype)), scale)


def _onto(rows, project, read, scale, counts, name, P):
    """Return a function of new samples that returns the similarities of `_between` times P."""
    if scale is not None:
        # add a column that yields the row sums
        ones = np.ones(len(P)) if counts is None else counts
        P = np.column_stack([P * scale[:, None], ones.astype(P.dtype)])
    C = P if project is None else project(P)
    return partial(_multiply, rows, C, read, scale is not None, name)


def _multiply(rows, C, read, is_normalized, name, X):
    X = read(X)
    # arrays of distances are large: compute them in blocks of rows
    blocks = storage.row_blocks(
        X.shape[0], _BLOCK_ROWS if name == "rbf" else X.shape[0]
    )
    product = np.concatenate([rows(X[block]) @ C for block in blocks])
    if is_normalized:
        return product[:, :-1] * _inverse_root(product[:, -1])[:, None]
    return product


def _inverse_root(values):
    """Return 1 / sqrt(values), or 0 for values of 0 or less."""
    return storage.safe_inverse(np.sqrt(values.clip(0)))


def _inverse_lengths(X):
    return _inverse_root(Factored(X).diagonal())


def _unit_rows(X):
    """Return rows scaled to length 1, whose inner products are cosines."""
    return storage.scaled_rows(X, _inverse_lengths(X))


def _compare_features(U, read, X):
    """Return the inner products of new samples, after `read`, with those of the fit."""
    return storage.as_dense(read(X) @ U.T)


def _median_square(X):
    """Return the median squared distance of two samples, or of a random subset of many samples."""
    n = X.shape[0]
    if n * (n - 1) // 2 > N_SAMPLED_ENTRIES:
        size = int((2 * N_SAMPLED_ENTRIES) ** 0.5)
        drawn = np.random.default_rng(0).choice(n, size=size, replace=False)
        X = X[np.sort(drawn)]
    squares = euclidean_distances(X, squared=True)[np.triu_indices(X.shape[0], 1)]
    squares = squares[squares > 0]  # equal samples are not informative about the width
    return float(np.median(squares)) if len(squares) else 1.0


def _rbf(X_fit, gamma, X):
    K = euclidean_distances(X, X_fit, squared=True)
    with np.errstate(over="ignore"):  # exp(-inf) is 0
        K *= -gamma
    return np.exp(K, out=K)


def _call(affinity, X_fit, X):
    """Return the result of a callable as floats, or raise an error if it is not a similarity."""
    W = affinity(X, X_fit)
    shape = (X.shape[0], X_fit.shape[0])
    if getattr(W, "shape", None) != shape or not hasattr(W, "dtype"):
        raise ValueError(
            f"affinity must return a dense or sparse array of shape {shape}, got "
            f"{getattr(W, 'shape', type(W).__name__)}."
        )
    return read_matrix(W, "the result of affinity")


def measure_unevenness(W, labels, n_clusters):
    """Return the ratio of row sums of a similarity, and the relative similarity of two clusters.

    Parameters
    ----------
    W : Similarity of shape (n, n)
        The diagonal is ignored.
    labels : ndarray of shape (n,), int
    n_clusters : int

    Returns
    -------
    tuple of float
        The first number is the 98th percentile of the row sums divided by the second percentile. It
        is 0 if the second percentile is not positive. The second number compares clusters of at
        least two samples. It is the largest ratio of the mean similarity between two clusters to
        the smaller of the mean similarities within them.
    """
    # compute row sums without the diagonal
    E = one_hot(labels, n_clusters, W.dtype)
    to_clusters = W @ E
    diagonal = W.diagonal()
    low, high = np.quantile(to_clusters.sum(axis=1) - diagonal, _EXTREMES)
    if low <= 0:
        return 0.0, 0.0
    # compute mean similarities between clusters and within them
    sizes = E.sum(axis=0)
    used = sizes > 1
    sums = E.T @ to_clusters - np.diag(E.T @ diagonal)
    n_pairs = np.outer(sizes, sizes) - np.diag(sizes)
    means = (sums / np.maximum(n_pairs, 1))[np.ix_(used, used)]
    within = np.diagonal(means)
    smaller = np.maximum(np.minimum(within[:, None], within), np.finfo(W.dtype).tiny)
    with np.errstate(over="ignore"):  # the similarity within a cluster may be 0
        relative = means / smaller
    np.fill_diagonal(relative, 0)
    return float(high / low), float(relative.max(initial=0))


def warn_of_split(W, labels, n_clusters):
    """Warn if a similarity that was not normalised is likely to have split a large cluster."""
    ratio, similarity = measure_unevenness(W, labels, n_clusters)
    if ratio >= _MIN_RATIO and similarity >= _MIN_RELATIVE_SIMILARITY:
        warn(
            f"A large cluster may be split, and small ones merged: row sums of the similarity "
            f"differ by a factor of {ratio:.0f}, as with clusters of very different size, and the "
            f"similarity between two clusters is {similarity:.2f} times that within one of them. "
            "Set normalize=True."
        )
