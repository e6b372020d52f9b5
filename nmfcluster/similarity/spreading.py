"""Pairs that spread: a similarity is raised where samples are near pairs that belong together."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from nmfcluster._arrays import storage
from nmfcluster._arrays.draws import some_with
from nmfcluster._arrays.nearest import stacked
from nmfcluster.similarity.factored import Factored
from nmfcluster.similarity.operators import Explicit, Similarity

MOST = 3_000  # points, that samples or landmarks are each, at most: arrays of them are solved for
_EACH = 1_500  # of a graph with few links: of more samples, fewer points lead farther, and sooner
_POINTS = 1_000  # that links of more samples spread between
_NEAREST = 5  # points of a sample, as many as its landmarks
_KEPT = 50  # entries of a row, about, that stand for all of it; half as many find a little less


def raised(
    W: Similarity,
    links: sp.csr_array,
    width: float,
    rng: np.random.RandomState,
    by_landmarks: bool = False,
    to_itself: bool = False,
) -> Similarity:
    r"""Return a similarity that is raised where links say that samples belong together.

    Exhaustive constraint propagation [1]_ takes links along a similarity,

    .. math:: F = (1 - a)^2 (I - aS)^{-1} Z (I - aS)^{-1} ,

    with S the normalised similarity. What is returned is :math:`W / \max W + M`, where
    :math:`M_{ij} = \sqrt{r_i r_j} m_{ij}` and :math:`m_{ij} = \min(1, 3 F_{ij} / \max|F|)` for F
    above 0 off the diagonal. :math:`r_i` is 1, or twice the sum of row i of :math:`W / \max W` over
    that of m where this is less: few links would else make islands, which are clusters that nothing
    leads out of. Twice is 6s times where there are s links a sample, fewer than 1/3. The sum takes
    the place of W for the next F, twice, so that links that are near each other lead farther.

    Samples are points each: up to 1,500 of a graph with few links, up to 3,000 of one with 1/3 link
    a sample or more, and of other similarities. Else up to 3,000 landmarks are, with a bound of
    half, not twice, the sum. Of more samples or landmarks 1,000 that are drawn at random are, and
    every sample is as near to the points as W says. Of more than 1,500 points M is that of the
    first F, and sampled: some 50 entries of a row stand for all of it.

    Parameters
    ----------
    W : Similarity of shape (n, n)
        Nowhere negative.
    links : csr_array of shape (n, n)
        Z, symmetric: above 0 where samples belong together, below 0 where they do not.
    width : float
        a, in (0, 1): towards 0 links spread to nobody, towards 1 to everybody.
    rng : RandomState
        Draws points, and entries.
    by_landmarks : bool, default=False
        Whether W is that of `Landmarks`.
    to_itself : bool, default=False
        Whether W keeps its diagonal where samples are points each, so that one can be a cluster.

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
    # few links speak for others less: bounds shrink in proportion below a third of a link a sample
    whole = min(1.0, links.nnz / 2 / links.shape[0] / (1 / 3))
    fine = by_landmarks or whole == 1
    V, B = points_of(W, links, rng, by_landmarks, fine)
    each = len(V) == W.shape[0]
    # samples share landmarks, and lose their own ties to too much of what these gain
    bound = 0.5 if by_landmarks and not each else 2.0
    few = len(V) <= _EACH  # of more points further rounds take long, and so does all that is raised
    M: Any = spread_links(V, sp.csr_array(B.T @ links @ B), width, whole * bound, 3 if few else 1)
    M = M if few else _sampled(M, rng)
    stored = W.stored_off_diagonal()
    if each:
        near = _unit(V)
        if to_itself:
            np.fill_diagonal(near, W.diagonal() / max(float(V.max()), np.finfo(V.dtype).tiny))
        return Explicit((near if stored is None else sp.csr_array(near)) + M)
    largest = float((W.diagonal() if stored is None else stored).max())
    return W * (1 / largest) + Factored(B, M)


def points_of(
    W: Similarity,
    links: sp.csr_array,
    rng: np.random.RandomState,
    by_landmarks: bool,
    fine: bool = False,
) -> tuple[np.ndarray, sp.csr_array]:
    """Return points that links spread between.

    Parameters
    ----------
    W : Similarity of shape (n, n)
    links : csr_array of shape (n, n)
        Samples with entries are drawn first.
    rng : RandomState
    by_landmarks : bool
    fine : bool, default=False
        Whether up to 3,000 samples of a graph, or landmarks, are points each, and not 1,500.

    Returns
    -------
    ndarray of shape (p, p)
        Similarities of points.
    csr_array of shape (n, p)
        How near samples are to them; the identity where samples are points each.
    """
    n, stored = W.shape[0], W.stored_off_diagonal()
    if n <= MOST and (fine or n <= _EACH or stored is None):
        array = W.toarray()
        np.fill_diagonal(array, 0)
        _check_signs(array)
        return array, storage.identity(n, array.dtype)
    if by_landmarks and isinstance(W, Factored):
        B, C = W.factors
        near = B
        if B.shape[1] > (MOST if fine else _EACH):
            near = _nearest(B @ _near_drawn(B.T @ B, sp.csr_array(B.T @ links @ B), rng))
        G = B.T @ near
        return storage.as_dense(G.T @ C @ G), near
    if stored is None:
        raise ValueError(
            f"propagation must be None for more than {MOST:,} samples unless the similarity is a "
            "sparse graph or by way of landmarks: take affinity='nearest_neighbors' or 'landmarks'."
        )
    _check_signs(stored)
    graph = sp.csr_array(W @ storage.identity(n, W.dtype))
    B = _near_drawn(graph, links, rng)
    return storage.as_dense(B.T @ graph @ B), B


def spread_links(
    W: np.ndarray, links: sp.csr_array, width: float, most: float, rounds: int = 3
) -> np.ndarray:
    r"""Return how far links reach from the points that have them to others, in [0, 1].

    Parameters
    ----------
    W : ndarray of shape (p, p)
        Similarities, symmetric and nowhere negative.
    links : csr_array of shape (p, p)
        Z, symmetric.
    width : float
        a.
    most : float
        Sum of a row of m from which on it is scaled down, in sums of the row of ``W / max W``.
    rounds : int, default=3
        Each spreads links along what the last has raised; more than 3 change hardly anything.

    Returns
    -------
    ndarray of shape (p, p)
        M after the last round, with a diagonal of 0.
    """
    linked = np.flatnonzero(np.diff(links.indptr))
    W, Z = _unit(W), links[linked][:, linked]
    M: Any = None
    bounds = most * W.sum(axis=1)
    for _ in range(rounds):
        K = walks(W if M is None else W + M, linked, width)
        M = K @ (Z @ K.T)
        largest = max(float(M.max(initial=0)), -float(M.min(initial=0)), np.finfo(M.dtype).tiny)
        M *= 3.0 / largest  # so a link need not be the strongest to be a full one
        np.clip(M, 0, 1, out=M)
        np.fill_diagonal(M, 0)
        root = np.sqrt(np.minimum(1, bounds * storage.inverse(M.sum(axis=1))))
        M *= root[:, None] * root
    return M


def _sampled(M: np.ndarray, rng: np.random.RandomState) -> sp.csr_array:
    r"""Return a sparse array whose expectation is M, of some `_KEPT` entries a row.

    With :math:`t_{ij}` the smaller of the sums of rows i and j over `_KEPT`, an entry below it
    becomes :math:`t_{ij}` with probability :math:`M_{ij} / t_{ij}`, and is dropped else.
    """
    share = M.sum(axis=1) / _KEPT
    parts = []
    for rows in storage.row_blocks(len(M)):
        least = np.minimum(share[rows, None], share)
        kept = np.triu(M[rows] > rng.random_sample(least.shape) * least, rows.start + 1)
        parts.append(sp.csr_array(np.where(kept, np.maximum(M[rows], least), 0)))
    upper = stacked(parts)
    return sp.csr_array(upper + upper.T)


def walks(W: np.ndarray, ends: np.ndarray, width: float) -> np.ndarray:
    """Return columns of ``(1 - a)(I - aS)^-1``: where walks from these ends stop.

    Parameters
    ----------
    W : ndarray of shape (p, p)
        Similarities, symmetric and nowhere negative; S is ``D^-1/2 W D^-1/2``.
    ends : ndarray of shape (n_ends,), int
    width : float
        a.

    Returns
    -------
    ndarray of shape (p, n_ends)
    """
    S = normalized(W)
    to_ends = np.zeros((len(S), len(ends)), dtype=S.dtype)
    to_ends[ends, np.arange(len(ends))] = 1 - width
    system = S * -width
    system[np.diag_indices(len(S))] += 1
    return scipy.linalg.solve(system, to_ends, assume_a="pos", overwrite_a=True, overwrite_b=True)


def _unit(W: np.ndarray) -> np.ndarray:
    return W / max(float(W.max(initial=0)), np.finfo(W.dtype).tiny)


def normalized(W: np.ndarray) -> np.ndarray:
    """Return ``D^-1/2 W D^-1/2``, D the row sums of an array of similarities."""
    scale = storage.inverse(np.sqrt(W.sum(axis=1)))
    S = W * scale[:, None]
    S *= scale
    return S


def _near_drawn(graph: sp.csr_array, links: sp.csr_array, rng: np.random.RandomState) -> Any:
    """Return how near samples are to drawn ones, in two steps; half of these have links."""
    n = graph.shape[0]
    drawn = some_with(np.diff(links.indptr) > 0, _POINTS, rng)
    to_drawn = storage.identity(n, graph.dtype)[:, drawn]
    one_step = graph @ to_drawn
    near = _nearest(one_step + graph @ one_step)
    others = np.ones(n, dtype=graph.dtype)
    others[drawn] = 0  # a drawn sample is its own point
    return sp.csr_array(storage.scaled_rows(near, others) + to_drawn)


def _nearest(A: Any) -> sp.csr_array:
    """Return the `_NEAREST` largest entries of every row, of equal ones the first, of sum 1."""
    A = sp.csr_array(A)
    A.sort_indices()
    rows = np.repeat(np.arange(A.shape[0], dtype=A.indices.dtype), np.diff(A.indptr))
    order = np.lexsort((-A.data, rows))
    kept = order[np.arange(A.nnz) - A.indptr[rows] < _NEAREST]  # rows stay where they are
    near = sp.csr_array((A.data[kept], (rows[kept], A.indices[kept])), shape=A.shape)
    return storage.scaled_rows(near, storage.inverse(storage.row_sums(near)))


def _check_signs(similarities: np.ndarray) -> None:
    low = float(similarities.min(initial=0))
    if low < 0:
        raise ValueError(f"propagation must be None where similarities are below 0, got {low:.3g}.")
