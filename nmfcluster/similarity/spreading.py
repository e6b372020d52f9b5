"""Pairs that spread: a similarity is raised where samples are near pairs that belong together."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils import storage
from nmfcluster._utils.sampling import draw_preferring
from nmfcluster.similarity.factored import Factored
from nmfcluster.similarity.operators import Explicit, Similarity

MOST = 3_000  # samples of a dense similarity: an array of them is made
_ALL = (
    1_000  # samples of which all entries are raised: drawn ones are too rough for few
)
_ENDS = 1_000  # samples in pairs that walks start from, at most: each takes a column
_CELLS = 2**26  # of these columns: 256 MiB, where samples are very many
_ROUNDS = (
    3  # each along what the last has raised; two find less of small clusters of texts
)
_KEPT = 25  # entries of a row, about, that stand for all; half find less; of an array four times
_LEFT = (
    0.05  # of a walk, that is not followed: a hundredth finds no more, and takes longer
)


def raised(
    W: Similarity,
    links: sp.csr_array,
    width: float,
    rng: np.random.RandomState,
    by_landmarks: bool = False,
) -> Similarity:
    r"""Return a similarity that is raised where links say that samples belong together.

    Exhaustive constraint propagation [1]_ takes links along a similarity,

    .. math:: F = (1 - a)^2 (I - aS)^{-1} Z (I - aS)^{-1} ,

    with S the normalised similarity. What is returned is :math:`W / \max W + M`, where
    :math:`M_{ij} = \sqrt{r_i r_j} m_{ij}` and :math:`m_{ij} = \min(1, 3 F_{ij} / \max F)` for F
    above 0 off the diagonal. :math:`r_i` is 1, or twice the sum of row i of :math:`W / \max W` over
    that of m where this is less: few links would else make islands, which are clusters that nothing
    leads out of. Twice is 6s times where there are s links a sample, fewer than 1/3. The sum takes
    the place of W for the next F, twice, so that links that are near each other lead farther.

    Of more than 1,000 samples some 25 entries of m a row are drawn, or 100 where W is no sparse
    graph, and stand for all of them; the largest of F is that of the drawn ones. Links spread from
    1,000 samples that have some, at most. Of more than 3,000 samples by landmarks they spread
    between these, along :math:`B'B` and with the root of a, as a step from a sample to another is
    two of landmarks: M is then that of these, of 25 entries a row.

    Parameters
    ----------
    W : Similarity of shape (n, n)
        Nowhere negative.
    links : csr_array of shape (n, n)
        Z, symmetric: above 0 where samples belong together, below 0 where they do not.
    width : float
        a, in (0, 1): towards 0 links spread to nobody, towards 1 to everybody.
    rng : RandomState
        Draws entries, and samples that have links.
    by_landmarks : bool, default=False
        Whether W is that of `Landmarks`.

    Returns
    -------
    Similarity of shape (n, n)

    Raises
    ------
    ValueError
        If a similarity is negative, or large and neither sparse nor by way of landmarks.

    References
    ----------
    .. [1] Z. Lu, H. H. S. Ip. Constrained spectral clustering via exhaustive and efficient
       constraint propagation. ECCV 2010.
    """
    n = W.shape[0]
    # by landmarks, alone or less its diagonal; of fewer samples an array says more, as soon
    terms = getattr(W, "terms", [(W, 1.0)]) if by_landmarks and n > MOST else []
    near = next((one for one, _ in terms if isinstance(one, Factored)), None)
    is_small = n <= _ALL
    is_dense = near is None and (is_small or W.stored_off_diagonal() is None)
    if is_dense and n > MOST:
        must = f"propagation must be None for more than {MOST:,} samples"
        needed = "unless the similarity is a sparse graph or by way of landmarks"
        raise ValueError(
            f"{must} {needed}: take affinity='nearest_neighbors' or 'landmarks'."
        )
    # samples, or landmarks, along which links spread, and how near samples are to them
    B = storage.identity(n, W.dtype) if near is None else near.factors[0]
    V = W.toarray() if is_dense else sp.csr_array((W if near is None else B.T) @ B)
    V, width = storage.without_diagonal(V), width if near is None else width**0.5
    if (low := float(V.min())) < 0:
        raise ValueError(
            f"propagation must be None where similarities are below 0, got {low:.3g}."
        )
    largest = max(float(V.max()), np.finfo(V.dtype).tiny)
    V = V * (1 / largest)
    # samples that they spread from
    linked, most = (
        np.flatnonzero(np.diff(links.indptr)),
        max(min(_ENDS, _CELLS // V.shape[0]), 2),
    )
    if (
        len(linked) > most
    ):  # must-links, of which there are few, are up to half of what is drawn
        one, other, values = storage.stored_entries(sp.csr_array(sp.triu(links)))
        drawn = draw_preferring(values > 0, most // 2, rng)
        linked = np.union1d(one[drawn], other[drawn])
    Z = links[linked][:, linked].astype(np.float32)
    starts = storage.as_dense(B[linked].T).astype(np.float32)
    # few links speak for others less
    bounds, M = min(2.0, 3.0 * Z.nnz / n) * storage.row_sums(V), None
    for _ in range(_ROUNDS):
        K = walks(V if M is None else V + M, starts, width)
        kept = 4 * _KEPT if is_dense else _KEPT
        M = all_of(K, Z) if is_small else drawn_of(K, Z, kept, rng)
        root = np.sqrt(
            np.minimum(1, bounds * storage.safe_inverse(storage.row_sums(M)))
        )
        M = storage.scaled_columns(storage.scaled_rows(M, root), root).astype(V.dtype)
    if near is None:
        return W.scaled(np.full(n, largest**-0.5)) + Explicit(M)
    scale = 1 / float(near.diagonal().max())
    if near is W:
        return Factored(B, near.factors[1] * scale + M)
    return W.scaled(np.full(n, scale**0.5, W.dtype)) + Factored(B, M)


def walks(V: Any, starts: np.ndarray, width: float) -> np.ndarray:
    """Return ``(1 - a)(I - aS)^-1`` times columns: where walks from these stop.

    Parameters
    ----------
    V : ndarray or csr_array of shape (p, p)
        Similarities, symmetric and nowhere negative; S is ``D^-1/2 V D^-1/2``.
    starts : ndarray of shape (p, m), float32
    width : float
        a.

    Returns
    -------
    ndarray of shape (p, m), float32
        By the iteration of Chebyshev, up to a twentieth; nowhere negative.
    """
    S, starts = (
        (normalized(V) * width).astype(np.float32),
        starts * np.float32(1 - width),
    )
    K, before, pace = starts, np.zeros_like(starts), 2.0
    n_steps = np.log(_LEFT) / np.log(width / (1 + np.sqrt(1 - width**2)))
    for _ in range(int(np.ceil(n_steps))):
        pace = 1 / (1 - width**2 * pace / 4)
        step = S @ K
        step += starts - before
        K, before = before + np.float32(pace) * step, K
    return np.maximum(K, 0)


def all_of(K: np.ndarray, Z: sp.csr_array) -> np.ndarray:
    """Return m of all pairs of points, see `raised`; K and Z are those of `drawn_of`."""
    F = K @ (Z @ K.T)
    np.fill_diagonal(F, 0)
    return np.clip(3.0 * F / max(F.max(), np.finfo(F.dtype).tiny), 0, 1)


def drawn_of(
    K: np.ndarray, Z: sp.csr_array, kept: int, rng: np.random.RandomState
) -> sp.csr_array:
    r"""Return a sparse matrix whose expectation is m, of up to `kept` entries a row.

    The ends of p `kept` / 2 walks that leave from both ends of must-links are drawn, so that a
    pair of points is met in proportion to :math:`F^+`, which is F of must-links alone. What is
    drawn is divided by the chance of that.

    Parameters
    ----------
    K : ndarray of shape (p, m)
        Walks from the ends of links.
    Z : csr_array of shape (m, m)
        The links.
    kept : int
        On average of all rows.
    rng : RandomState

    Returns
    -------
    csr_array of shape (p, p)
    """
    p, n_draws = len(K), len(K) * kept // 2
    must = sp.csr_array(Z.maximum(0))
    one, other, weights = storage.stored_entries(sp.csr_array(sp.triu(must)))
    # all columns of K one after the other: a number up to the sum falls to an entry
    upto = np.cumsum(K.T.ravel(), dtype=np.float64)
    first = np.concatenate([[0], upto[p - 1 :: p]])
    sums = np.diff(first)
    walked = np.cumsum(weights * sums[one] * sums[other])

    def stop(columns: np.ndarray) -> np.ndarray:
        at = first[columns] + rng.random_sample(len(columns)) * sums[columns]
        return np.clip(np.searchsorted(upto, at, side="right") - columns * p, 0, p - 1)

    link = np.searchsorted(
        walked[:-1], rng.random_sample(n_draws) * walked[-1], side="right"
    )
    i, j = np.sort([stop(one[link]), stop(other[link])], axis=0)
    i, j = np.divmod(np.unique((i * p + j)[i < j]), p)
    plus, F = np.empty((2, len(i)))
    at_must, at_all = K @ must, K @ Z
    for block in storage.row_blocks(len(i), 1_024):
        ends = K[j[block]]
        plus[block] = storage.row_inner_products(at_must[i[block]], ends)
        F[block] = storage.row_inner_products(at_all[i[block]], ends)
    chance = -np.expm1(-n_draws * plus / walked[-1])
    m = np.clip(3.0 * F / max(F.max(initial=0), np.finfo(K.dtype).tiny), 0, 1)
    m *= storage.safe_inverse(chance)
    upper = sp.csr_array((m, (i, j)), shape=(p, p))
    upper.eliminate_zeros()
    return sp.csr_array(upper + upper.T)


def normalized(W: Any) -> Any:
    """Return ``D^-1/2 W D^-1/2``, D the row sums of similarities."""
    scale = storage.safe_inverse(np.sqrt(storage.row_sums(W)))
    return storage.scaled_columns(storage.scaled_rows(W, scale), scale)
