"""Constraint propagation: raise the similarity of samples near must-linked pairs."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils import storage
from nmfcluster._utils.sampling import draw_preferring
from nmfcluster.similarity.operators import Explicit, Factored, WeightedSum

# largest number of samples of a dense similarity, for which propagation forms an (n, n) array
MAX_DENSE_SAMPLES = 3_000
# largest number of samples for which all entries are raised: sampling is too noisy for few samples
_MAX_EXACT_SAMPLES = 1_000
# largest number of linked samples from which walks start: each takes a column
_MAX_STARTS = 1_000
# largest number of entries of these columns for very many samples: 256 MiB
_MAX_START_ENTRIES = 2**26
# rounds, each along the similarity that the last one raised; two find fewer small clusters of texts
_N_ROUNDS = 3
# entries drawn for a row, on average: half as many are less accurate. A dense similarity has four
# times as many
_ENTRIES_PER_ROW = 25
# relative tolerance of walks: 0.01 is not more accurate, and takes longer
_WALK_TOL = 0.05
# largest width: walks of 100,000 steps on average reach all samples, and longer ones take long
_MAX_WIDTH = 1 - 1e-5


def propagate_constraints(
    W,
    links,
    width,
    rng,
    by_landmarks=False,
):
    r"""Return a similarity that is larger between samples near must-linked pairs.

    Exhaustive constraint propagation [1]_ spreads the links Z to other pairs of samples,

    .. math:: F = (1 - a)^2 (I - aS)^{-1} Z (I - aS)^{-1} ,

    with S the normalised similarity.

    1. Let :math:`m_{ij} = \min(1, 3 F_{ij} / \max F)` where F is above 0 off the diagonal, and 0
       elsewhere.
    2. :math:`M_{ij} = \sqrt{r_i r_j} m_{ij}` is added to :math:`W / \max W`. The factor :math:`r_i`
       limits the sum of row i of m to twice that of :math:`W / \max W`. Without this limit, a few
       links would cut their neighbourhood off from all other samples. If there are s < 1/3 links
       per sample, the limit is 6s times that sum.
    3. The sum replaces W in S, and steps 1 and 2 are repeated twice. M is always added to the
       original :math:`W / \max W`. As a result, links that are close to each other reach farther.

    Above 1,000 samples, only a random sample of the entries of m is computed: about 25 entries a
    row, or 100 if W is dense. They are scaled to represent all entries, and :math:`\max F` is the
    largest drawn entry. Links spread from at most 1,000 linked samples.

    Above 3,000 samples, if W is the similarity of `Landmarks`, links spread between the landmarks
    instead of the samples, along :math:`B'B`. M is then a matrix of the landmarks, with about 25
    entries a row. The square root of a replaces a, because a step between samples corresponds to
    two steps between landmarks.

    Parameters
    ----------
    W : Similarity of shape (n, n)
        Nonnegative.
    links : csr_array of shape (n, n)
        Z, a symmetric matrix. Entries are positive for must-links, and negative for cannot-links.
    width : float
        a, in (0, 1). Larger values spread links farther. Near 0, links reach no other sample. Near
        1, they reach all samples.
    rng : RandomState
        Draws the entries and the linked samples.
    by_landmarks : bool, default=False
        Whether W is the similarity of `Landmarks`, with or without its diagonal.

    Returns
    -------
    Similarity of shape (n, n)

    Raises
    ------
    ValueError
        If a similarity is negative, or if W has more than 3,000 samples and is neither sparse nor
        the similarity of `Landmarks`.

    References
    ----------
    .. [1] Z. Lu, H. H. S. Ip. Constrained spectral clustering via exhaustive and efficient
       constraint propagation. ECCV 2010.
    """
    n = W.shape[0]
    width = min(width, _MAX_WIDTH)
    # spread links between the landmarks if there are many samples; below, an array is as fast
    landmarks: Any = None
    if by_landmarks and n > MAX_DENSE_SAMPLES:
        landmarks = W.terms[0][0] if isinstance(W, WeightedSum) else W
    is_small = n <= _MAX_EXACT_SAMPLES
    is_dense = landmarks is None and (is_small or W.stored_off_diagonal() is None)
    if is_dense and n > MAX_DENSE_SAMPLES:
        raise ValueError(
            f"propagation must be None for more than {MAX_DENSE_SAMPLES:,} samples with a dense "
            "similarity; set affinity='nearest_neighbors' or 'landmarks', or propagation=None."
        )
    B, V = _connect_points(W, landmarks, is_dense)
    largest = max(float(V.max()), np.finfo(V.dtype).tiny)
    V = V * (1 / largest)
    # select the links between the samples that walks start from
    linked = _draw_linked(links, V.shape[0], rng)
    Z = links[linked][:, linked].astype(np.float32)
    starts = storage.as_dense(B[linked].T).astype(np.float32)
    # spread them in rounds, along the similarity raised so far; few links may raise it less
    max_sums = min(2.0, 3.0 * Z.nnz / n) * storage.row_sums(V)
    per_row = 4 * _ENTRIES_PER_ROW if is_dense else _ENTRIES_PER_ROW
    raised = V
    for _ in range(_N_ROUNDS):
        K = run_walks(raised, starts, width if landmarks is None else width**0.5)
        M = compute_entries(K, Z) if is_small else draw_entries(K, Z, per_row, rng)
        shares = np.minimum(1, max_sums * storage.safe_inverse(storage.row_sums(M)))
        M = storage.scaled_both(M, np.sqrt(shares)).astype(V.dtype)
        raised = V + M
    # return the result in the form of W
    if landmarks is None:
        return W.scaled(np.full(n, largest**-0.5)) + Explicit(M)
    scale = 1 / float(landmarks.diagonal().max())
    if landmarks is W:
        return Factored(B, W.factors[1] * scale + M)
    return W.scaled(np.full(n, scale**0.5, W.dtype)) + Factored(B, M)


def _connect_points(W, landmarks, is_dense):
    """Return the similarities of samples to points, and of the points to each other.

    Links spread between the points. These are the landmarks if there are any, and the samples
    otherwise. The similarities of points have a diagonal of 0.
    """
    if landmarks is None:
        B = storage.identity(W.shape[0], W.dtype)
        V = W.toarray() if is_dense else sp.csr_array(W @ B)
    else:
        B, _ = landmarks.factors
        V = sp.csr_array(B.T @ B)
    V = storage.without_diagonal(V)
    lowest = float(V.min())
    if lowest < 0:
        raise ValueError(
            f"propagation must be None if similarities are below 0, got {lowest:.3g}."
        )
    return B, V


def _draw_linked(links, n_points, rng):
    """Return the linked samples; if there are too many, a sample that prefers must-links."""
    most = max(min(_MAX_STARTS, _MAX_START_ENTRIES // n_points), 2)
    linked = np.flatnonzero(np.diff(links.indptr))
    if len(linked) <= most:
        return linked
    one, other, values = storage.stored_entries(sp.csr_array(sp.triu(links)))
    drawn = draw_preferring(values > 0, most // 2, rng)
    return np.union1d(one[drawn], other[drawn])


def run_walks(V, starts, width):
    """Return ``(1 - a)(I - aS)^-1`` times columns, which says where random walks end.

    Parameters
    ----------
    V : ndarray or csr_array of shape (p, p)
        Similarities, symmetric and nonnegative. S is ``D^-1/2 V D^-1/2``.
    starts : ndarray of shape (p, m), float32
    width : float
        a.

    Returns
    -------
    ndarray of shape (p, m), float32
        Nonnegative, and accurate to 5 %. It is computed by Chebyshev's iteration.
    """
    roots = np.sqrt(storage.row_sums(V))
    S = storage.scaled_both(V, storage.safe_inverse(roots)) * width
    S = S.astype(np.float32)
    starts = starts * np.float32(1 - width)
    K = starts
    previous = np.zeros_like(starts)
    pace = 2.0
    rate = width / (1 + np.sqrt(1 - width**2))
    n_steps = np.log(_WALK_TOL) / np.log(rate)
    for _ in range(int(np.ceil(n_steps))):
        pace = 1 / (1 - width**2 * pace / 4)
        step = S @ K
        step += starts - previous
        following = previous + np.float32(pace) * step
        previous = K
        K = following
    return np.maximum(K, 0)


def compute_entries(K, Z):
    """Return m of `propagate_constraints` for all pairs; arguments are those of `draw_entries`."""
    F = K @ (Z @ K.T)
    np.fill_diagonal(F, 0)
    return _rescale(F, K.dtype)


def draw_entries(K, Z, per_row, rng):
    r"""Return a sparse matrix whose expectation is m, with up to `per_row` entries a row.

    There are p × `per_row` / 2 draws. Each draws a must-link and a walk from each of its two
    samples, and takes the ends of the two walks. A pair of points is thus drawn in proportion to
    :math:`F^+`, which is F for the must-links alone. Drawn entries are divided by the probability
    that they are drawn.

    Parameters
    ----------
    K : ndarray of shape (p, m)
        Walks from the ends of links.
    Z : csr_array of shape (m, m)
        The links.
    per_row : int
        Largest mean number of entries a row.
    rng : RandomState

    Returns
    -------
    csr_array of shape (p, p)
    """
    p = len(K)
    n_draws = p * per_row // 2
    must = sp.csr_array(Z.maximum(0))
    one, other, weights = storage.stored_entries(sp.csr_array(sp.triu(must)))
    # concatenate the columns of K, so that a random number up to their sum selects an entry
    cumulative = np.cumsum(K.T.ravel(), dtype=np.float64)
    first = np.concatenate([[0], cumulative[p - 1 :: p]])
    sums = np.diff(first)

    def draw_ends(columns):
        at = first[columns] + rng.random_sample(len(columns)) * sums[columns]
        entries = np.searchsorted(cumulative, at, side="right")
        return np.clip(entries - columns * p, 0, p - 1)

    # draw must-links, then an end of a walk from both their samples; keep each pair i < j once
    link_mass = np.cumsum(weights * sums[one] * sums[other])
    at = rng.random_sample(n_draws) * link_mass[-1]
    link = np.searchsorted(link_mass[:-1], at, side="right")
    i, j = np.sort([draw_ends(one[link]), draw_ends(other[link])], axis=0)
    drawn = np.unique((i * p + j)[i < j])
    i, j = np.divmod(drawn, p)
    # compute F of the pairs, of must-links alone and of all links
    F_must = _compute_at(K @ must, K, i, j)
    F = _compute_at(K @ Z, K, i, j)
    probability = -np.expm1(-n_draws * F_must / link_mass[-1])
    m = _rescale(F, K.dtype) * storage.safe_inverse(probability)
    upper = sp.csr_array((m, (i, j)), shape=(p, p))
    upper.eliminate_zeros()
    return sp.csr_array(upper + upper.T)


def _compute_at(A, B, i, j):
    """Return the entries of AB' at rows i and columns j."""
    values = np.empty(len(i))
    for block in storage.row_blocks(len(i), 1_024):
        values[block] = storage.row_inner_products(A[i[block]], B[j[block]])
    return values


def _rescale(F, dtype):
    """Return 3 F divided by the largest F, clipped to [0, 1]."""
    largest = max(F.max(initial=0), np.finfo(dtype).tiny)
    return np.clip(3.0 * F / largest, 0, 1)
