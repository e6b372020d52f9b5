"""Connectedness as a similarity: how long the longest step between two samples must be.

Similarities of new samples to those of a fit, times a matrix, without all that a fit had.

From features to similarities, and from new samples to those that a model was fitted on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import cophenet, single
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import euclidean_distances

from nmfcluster import _compat
from nmfcluster._compat import COUNT, N_JOBS, RANDOM_STATE, Interval, StrOptions
from nmfcluster._utils import sparse_products, storage
from nmfcluster._utils.storage import divide_by_power, divide_number, scaling_exponent
from nmfcluster._utils.validation import (
    check_number,
    check_shape,
    columns_in_row_order,
    read_matrix,
)
from nmfcluster.similarity import Explicit, Factored, Similarity
from nmfcluster.similarity.landmarks import Landmarks
from nmfcluster.similarity.neighbors import NeighborGraph, are_few, few_enough
from nmfcluster.similarity.operators import N_SAMPLED_ENTRIES


def path_kernel(X: Any, Y: Any = None, *, scale: float | None = None) -> np.ndarray:
    r"""Return how well samples are connected: :math:`\exp(-e_{ij} / \text{scale})`.

    :math:`e_{ij}` is the longest step on the path from i to j whose longest step is shortest, with
    all steps from one sample to another: the effective dissimilarity of [1]_. Two ends of
    one ring are near by it, and two rings are not, however close. For ``affinity=`` and for
    `nmfcluster.stack.KernelStack`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples.
    Y : array-like of shape (n_others, n_features), default=None
        The samples that paths go through, and lead to; X by default.
    scale : float, default=None
        The median of e between samples of Y by default.

    Returns
    -------
    ndarray of shape (n_samples, n_others)

    Raises
    ------
    ValueError
        If Y has fewer than two samples, X and Y have not the same number of features, or
        `scale` is no number above 0.

    Notes
    -----
    O(m^2) for m samples in Y, and O(m^2) more for every sample that is not in Y.

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
        check_number(scale, "scale", 0, np.inf, closed="neither")
    if X.shape[1] != Y.shape[1] or len(Y) < 2:
        got = f"got shape {Y.shape} for X of shape {X.shape}"
        raise ValueError(
            f"Y must hold at least 2 samples, with as many features as X; {got}."
        )
    exponent = max(scaling_exponent(X, 2), scaling_exponent(Y, 2), key=abs)
    near, far = divide_by_power(X, exponent), divide_by_power(Y, exponent)
    # the heights of single linkage are the longest steps of shortest trees
    steps = squareform(cophenet(single(pdist(far))))
    usual = float(np.median(steps[np.triu_indices(len(Y), 1)])) or 1.0
    unit = usual if scale is None else divide_number(scale, exponent)
    if X is not Y and not np.array_equal(X, Y):
        first = euclidean_distances(
            near, far
        )  # then on from the sample that was reached
        steps = np.array([np.maximum(row[:, None], steps).min(axis=0) for row in first])
    with np.errstate(over="ignore"):  # exp(-inf) is 0
        return np.exp(-steps / unit).astype(X.dtype)


Products = Callable[
    [Any], np.ndarray
]  # of new samples: their similarities, times a matrix


@dataclass(frozen=True)
class NewSamples:
    """How similar new samples are to those of a fit; it can be pickled without their similarity.

    Attributes
    ----------
    block_of : callable
        Returns their similarities, where they are divided as those of the fit.
    product_of : callable or None
        ``product_of(P)`` is a function that returns them times P; None: they are made for that.
    scale : ndarray of shape (n_samples,) or None
        Roots of the inverse row sums of the fit; None: nothing is normalised.
    counts : ndarray of shape (n_samples,), int, or None
        How many samples each row of the fit stands for; None: one.
    rows : int or None
        New samples of which similarities are made at a time for a product; None: all.
    read : callable
        Returns new samples like those of the fit, see `like_fit`.
    """

    block_of: Callable[[Any], Any]
    product_of: Callable[[np.ndarray], Products] | None
    scale: np.ndarray | None
    counts: np.ndarray | None
    rows: int | None
    read: Callable[[Any], Any]

    def between(self, X: Any) -> Any:
        """Return the similarities of new samples."""
        block = self.block_of(self.read(X))
        if self.scale is None:
            return block
        sums = storage.row_sums(block) if self.counts is None else block @ self.counts
        return sparse_products.scale_rows_columns(
            block, inverse_root(sums.astype(block.dtype)), self.scale
        )

    def onto(self, P: np.ndarray) -> Products:
        """Return a function of new samples: their similarities times P."""
        if self.scale is not None:  # a column more becomes their row sums
            ones = np.ones(len(P)) if self.counts is None else self.counts
            P = np.column_stack([P * self.scale[:, None], ones.astype(P.dtype)])
        product_of = self.product_of or partial(
            partial, _block_product, self.block_of, self.rows
        )
        return partial(_product, product_of(P), self.read, self.scale is not None)


def _product(product: Products, read: Any, is_normalized: bool, X: Any) -> np.ndarray:
    made = product(read(X))
    return made[:, :-1] * inverse_root(made[:, -1])[:, None] if is_normalized else made


def like_fit(exponent: int | None, width: int, X: Any) -> Any:
    """Return new samples, divided by the power of 2 that those of the fit were.

    None: they are no features of a known kind. There must be as many columns, the `width`.
    """
    X = read_matrix(X)
    check_shape(X, "X", width)
    if exponent is None:
        return X
    divided = storage.divide_by_power(X, exponent)
    if storage.scaling_exponent(divided, 2) > 0:
        why = "so far from those of fit that distances to them cannot be held"
        raise ValueError(
            f"X must not hold values as large as {storage.max_abs(X):.3g}, {why}."
        )
    return divided


def _block_product(
    block_of: Callable[[Any], Any], rows: int | None, P: np.ndarray, X: Any
) -> np.ndarray:
    if rows is None:
        return block_of(X) @ P
    blocks = storage.row_blocks(X.shape[0], rows)
    return np.concatenate([block_of(X[block]) @ P for block in blocks])


def inverse_root(values: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(values), and 0 where a value is not above 0."""
    return storage.safe_inverse(np.sqrt(values.clip(0)))


__all__ = ["make_affinity", "path_kernel"]

#: the affinities that are known by name
NAMES = (
    "auto",
    "nearest_neighbors",
    "landmarks",
    "linear",
    "cosine",
    "rbf",
    "precomputed",
)
#: the parameters of an estimator by which they are made, and what these may be
MAKING: dict[str, list[Any]] = {
    "gamma": [Interval(Real, 0, None, closed="neither"), None],
    "n_neighbors": [COUNT, None],
    "n_landmarks": [COUNT],
    "normalize": ["boolean", StrOptions({"auto"})],
}

# the highest powers of features that are summed: squares, and for "linear" those of the products
_POWERS = {"linear": 4, "cosine": 2, "rbf": 2, "nearest_neighbors": 2, "landmarks": 2}
_ROWS = 512  # new samples compared with all others at a time
_ROUNDING = {4: 1e-4, 8: 1e-10}  # of a row sum, relative to a sum with random signs
_FEW = 5  # landmarks of a sample, unless given


@dataclass(frozen=True)
class Affinity:
    """How similar samples are to each other, and new ones to them.

    Attributes
    ----------
    similarity : Similarity of shape (n_samples, n_samples)
    onto : callable
        ``onto(P)``, P of shape (n_samples, r), returns a function of new samples: their
        similarities to these, (n_new, n_samples), times P. It keeps no more than it needs.
    between : callable
        ``between(X_new)`` returns these similarities, dense or CSR.
    name : str
        What it is made by, which "auto" leaves open; "callable" where that has no name.
    counts : ndarray of shape (n_samples,), int, or None
        How many samples each row stands for, divided by what they have in common where that says
        nothing; None: it is one.
    """

    similarity: Similarity
    onto: Callable[[np.ndarray], Products]
    between: Callable[[Any], Any]
    name: str
    counts: np.ndarray | None = None
    is_even: bool = False
    to_itself: bool = False

    def cross(self, X: Any, P: np.ndarray) -> np.ndarray:
        """Return the similarities of new samples to those of the fit, times P."""
        return self.onto(P)(X)

    def block(self) -> Any:
        """Return the similarity of the samples as an array; CSR where it is stored so."""
        if self.similarity.stored_off_diagonal() is None:
            return self.similarity.toarray()
        return self.similarity @ storage.identity(
            self.similarity.shape[0], self.similarity.dtype
        )


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
    r"""Return the similarity of samples.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
        Features, or with ``affinity="precomputed"`` the similarity itself.
    affinity : str or callable, default="auto"
        - "nearest_neighbors": a sparse graph of the rows that differ,
          :math:`\exp(-\|x_i - x_j\|^2 / (s_i s_j))` where one is among the K nearest of the
          other, or as near as these, with :math:`s_i` the distance to the K-th of them [1]_, and 1
          between equal rows;
        - "landmarks": :math:`B \Lambda^{-1} B'`, :math:`b_{ij}` how near a sample is to each of its
          K nearest landmarks and :math:`\Lambda` its column sums [2]_, never formed, and
          O(n_samples) to make;
        - "auto": "nearest_neighbors" for up to 3,000 dense or 10,000 sparse samples, "landmarks"
          for more;
        - "linear": :math:`x_i'x_j`, never formed;
        - "cosine": :math:`x_i'x_j / (\|x_i\| \|x_j\|)`, never formed;
        - "rbf": :math:`\exp(-\gamma \|x_i - x_j\|^2)`, a dense array;
        - "precomputed": X is the similarity, dense or sparse;
        - a callable: ``affinity(X, Y)`` returns the similarities of the rows of X to those of Y,
          dense or sparse.
    gamma : float, default=None
        For "rbf"; 1 over the median squared distance by default.
    n_neighbors : int, default=None
        For "nearest_neighbors", of at most all other rows that differ, and for "landmarks", of at
        most all of them; 10, or fewer where there are few rows a cluster, and 5 by default.
    n_landmarks : int, default=2_000
        For "landmarks"; up to as many samples are landmarks themselves.
    normalize : bool or "auto", default=False
        Whether to return :math:`D^{-1/2} W D^{-1/2}`, W with a diagonal of 0 and D its row sums; a
        graph keeps its diagonal where `n_clusters` is given, so that one sample can be a cluster.
        "auto": for "nearest_neighbors", and where W is nowhere negative and clusters have 14 rows
        or more, on average; rows of "landmarks" sum to 1 as they are.
    n_clusters : int, default=None
        Number of clusters that are wanted: where "nearest_neighbors" or "landmarks" fall into more
        parts that nothing connects, these are linked to what is nearest to them. None: never.
    random_state : int, RandomState, Generator or None, default=0
        Determines the landmarks, where not all samples are.
    n_jobs : int, default=None
        Number of jobs that look for neighbours.
    counts : ndarray of shape (n_samples,), int, default=None
        How many samples each row of features stands for, in sums over samples; 1 by default.

    Returns
    -------
    Affinity
        `similarity` is that of the samples, a `nmfcluster.similarity.Similarity`, and ``block()``
        the same as an array, CSR where it is stored so. ``cross(X_new, P)`` returns the
        similarities of new samples to those of X, (n_new, n_samples), times P of shape
        (n_samples, r); ``between(X_new)`` returns them themselves, dense or CSR; ``onto(P)`` is a
        function of new samples that keeps no more of X than ``cross`` needs. `name` is what "auto"
        has chosen.

    Raises
    ------
    ValueError
        If `affinity` is not known, a callable returns something else than a similarity, or
        `normalize` meets a row that sums to less than 0.

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
    allowed = MAKING | {
        "n_clusters": [COUNT, None],
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
    }
    given = {name: value for name, value in locals().items() if name in allowed}
    _compat.validate_parameter_constraints(allowed, given, caller_name="make_affinity")
    X = read_matrix(columns_in_row_order(X, "X") if affinity == "precomputed" else X)
    name = affinity if isinstance(affinity, str) else "callable"
    if name == "auto":
        name = "nearest_neighbors" if few_enough(X) else "landmarks"
    exponent, onto = None, None
    if name in _POWERS:
        exponent = storage.scaling_exponent(X, _POWERS[name])
        if exponent and gamma:
            gamma = storage.divide_number(gamma, -2 * exponent)
        X = X.copy() if exponent == 0 else storage.divide_by_power(X, exponent)
    # the similarity, and how that of new samples is made
    W: Similarity
    between: Callable[[Any], Any]
    if name == "landmarks":
        if n_clusters is not None and n_landmarks < n_clusters:
            raise ValueError(
                f"n_landmarks={n_landmarks} must be at least n_clusters={n_clusters}."
            )
        some, counts = n_neighbors or _FEW, in_proportion(counts)
        points = Landmarks(
            X, n_landmarks, some, random_state, n_clusters, counts=counts
        )
        W, between, onto = points.similarity, points.between, points.onto
    elif name == "nearest_neighbors":
        graph = NeighborGraph(X, n_neighbors, n_jobs, n_clusters)
        W, between = Explicit(graph.array), graph.between
    elif name in ("linear", "cosine"):
        lengths = inverse_root(Factored(X).diagonal()) if name == "cosine" else None
        W, between = Factored(X, scale=lengths), partial(_linear, X, lengths)
        onto = partial(_linear_onto, X, lengths)
    elif name == "rbf":
        width = 1 / _median_square(X) if gamma is None else gamma
        W, between, onto = Explicit(_rbf(X, width, X)), partial(_rbf, X, width), None
    elif name == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be square with affinity='precomputed', got shape {X.shape}."
            )
        storage.require_symmetric(X, "X with affinity='precomputed'")
        W, between = Explicit(X), storage.as_float  # they are read as such: as they are
    elif callable(affinity) and not isinstance(affinity, type):
        called = _called(affinity, X, X)
        storage.require_symmetric(called, "what affinity returns for X and X")
        W, between = Explicit(called), partial(_called, affinity, X)
    else:
        kinds = f"one of {NAMES} or a callable that is no class"
        raise ValueError(f"affinity must be {kinds}, got {affinity!r}.")
    wanted = (
        _is_to_normalize(name, X, W, n_clusters)
        if normalize == "auto"
        else bool(normalize)
    )
    rows = _ROWS if name == "rbf" else None
    new = NewSamples(
        between, onto, None, counts, rows, partial(like_fit, exponent, X.shape[1])
    )
    # the diagonal of a graph counts where clusters are looked for, of which one row can be one
    return _evened(
        W, new, name, wanted, name == "nearest_neighbors" and n_clusters is not None
    )


def _evened(
    W: Similarity, new: NewSamples, name: str, wanted: bool, to_itself: bool
) -> Affinity:
    """Return an affinity, normalised if that is wanted."""
    is_even = wanted or name == "landmarks"
    if wanted:
        counts = in_proportion(new.counts)  # which is what row sums are divided by
        W, scale = normalized(W, counts, to_itself)
        new = replace(new, scale=scale, counts=counts)
    return Affinity(W, new.onto, new.between, name, new.counts, is_even, to_itself)


def _is_to_normalize(name: str, X: Any, W: Similarity, n_clusters: int | None) -> bool:
    """Return whether no similarity is negative, and one row cannot be a cluster of a kernel."""
    of_kernel = name != "nearest_neighbors"
    if name == "landmarks" or (of_kernel and are_few(X.shape[0], n_clusters)):
        return False  # rows of landmarks sum to 1
    if isinstance(W, Explicit):
        return W.is_nonnegative()
    return float(X.min()) >= 0 and storage.max_abs(X) > 0


def in_proportion(counts: np.ndarray | None) -> np.ndarray | None:
    """Return counts over the largest number that divides all of them."""
    return None if counts is None else counts // np.gcd.reduce(counts)


def normalized(
    W: Similarity, counts: np.ndarray | None = None, to_itself: bool = False
) -> tuple[Similarity, np.ndarray]:
    """Return ``D^-1/2 W D^-1/2``, D the row sums of W, and the diagonal of ``D^-1/2``.

    It turns the objective of kernel k-means into that of normalised cut: Li et al. (2007),
    section 2.3.2. The diagonal of W is put to 0 first, or a sample far from all others would be a
    cluster of its own, unless it says how similar a sample is `to_itself` among its neighbours.
    `counts` says how many samples each row stands for; None: one.
    """
    W = W if to_itself else W.without_diagonal()
    ones = (
        np.ones(W.shape[0], dtype=W.dtype) if counts is None else counts.astype(W.dtype)
    )
    degrees = (W @ ones[:, None])[:, 0]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(W.shape[0], 1))
    rounding = _ROUNDING[W.dtype.itemsize] * float(abs(W @ signs.astype(W.dtype)).max())
    if degrees.min() < -rounding or degrees.max() <= rounding:
        needed = "rows that sum to 0 or more, and not all to 0 as those of centred features do"
        lowest = f"row {int(degrees.argmin())} sums to {degrees.min():.3g}"
        raise ValueError(f"normalize=True needs similarities with {needed}; {lowest}.")
    degrees[degrees <= rounding] = 0
    scale = inverse_root(degrees)
    return W.scaled(scale), scale


def _linear(X_fit: Any, scale: np.ndarray | None, X: Any) -> np.ndarray:
    """Return the inner products, or with the inverse lengths of samples their cosines."""
    products = storage.as_dense(X @ X_fit.T)
    if scale is None:
        return products
    return sparse_products.scale_rows_columns(
        products, inverse_root(Factored(X).diagonal()), scale
    )


def _linear_onto(X_fit: Any, scale: np.ndarray | None, P: np.ndarray) -> Products:
    scaled = P if scale is None else P * scale[:, None]
    return partial(_linear_product, X_fit.T @ scaled, scale is not None)


def _linear_product(C: np.ndarray, is_cosine: bool, X: Any) -> np.ndarray:
    product: np.ndarray = X @ C
    return (
        product * inverse_root(Factored(X).diagonal())[:, None]
        if is_cosine
        else product
    )


def _median_square(X: Any) -> float:
    """Return the median squared distance of two samples: of all pairs, or of many drawn ones."""
    n = X.shape[0]
    if n * (n - 1) // 2 > N_SAMPLED_ENTRIES:
        rng = np.random.default_rng(0)
        X = X[
            np.sort(
                rng.choice(n, size=int((2 * N_SAMPLED_ENTRIES) ** 0.5), replace=False)
            )
        ]
    squares = euclidean_distances(X, squared=True)[np.triu_indices(X.shape[0], 1)]
    squares = squares[squares > 0]  # samples that coincide say nothing of the width
    return float(np.median(squares)) if len(squares) else 1.0


def _rbf(X_fit: Any, gamma: float, X: Any) -> np.ndarray:
    K = euclidean_distances(X, X_fit, squared=True)
    with np.errstate(over="ignore"):  # exp(-inf) is 0
        K *= -gamma
    return np.exp(K, out=K)


def _called(affinity: Callable[[Any, Any], Any], X_fit: Any, X: Any) -> Any:
    """Return what a callable returns, as floats, if it is what it must be."""
    W, shape = affinity(X, X_fit), (X.shape[0], X_fit.shape[0])
    if getattr(W, "shape", None) != shape or not hasattr(W, "dtype"):
        got = getattr(W, "shape", type(W).__name__)
        wanted = f"a dense or sparse array of shape {shape}"
        raise ValueError(f"affinity must return {wanted}, got {got}.")
    return read_matrix(W, "what affinity returns")
