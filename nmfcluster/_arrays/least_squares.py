"""Nonnegative least squares for one factor while the other is fixed, from inner products alone.

With the rows of a factor F as variables, all problems here read: minimise ``<G, FF'> - 2 <N, F>``
over F >= 0, for ``X ~ A'F`` with ``G = AA'`` and ``N = AX``.
"""

from typing import Any

import numpy as np
from scipy.optimize import nnls

from nmfcluster._arrays.device import at_a_time, beside, namespace
from nmfcluster._arrays.storage import row_blocks

_CACHED = 2**18  # entries of F and N, of starts that are swept side by side: a cache of 2 MiB
_ENTRIES = 2**20  # of small systems that are solved at a time: 8 MiB
_SURE = 1e-12  # times the largest |b| of a row: a slope below may be rounding
_PATIENCE = 3  # rounds in which entries change sides before fewer of them are on the wrong one


def descend(
    F: Any, N: Any, G: Any, sweeps: int, n_fixed: int = 0, column_by_column: bool = False
) -> None:
    """Improve F by sweeps of exact coordinate descent over its rows, in place, for every start.

    Parameters
    ----------
    F : array of shape (n_starts, k, m)
        Nonnegative.
    N : array of shape (n_starts, k, m)
    G : array of shape (n_starts, k, k)
        Positive semidefinite. A row of F with a 0 on the diagonal is as good as any other, and
        stays as it is.
    sweeps : int
    n_fixed : int, default=0
        How many of the first rows stay as they are.
    column_by_column : bool, default=False
        Whether a column adds up the same whatever is beside it, as in no product of matrices.
    """
    size = max(1, at_a_time(F, _CACHED) // max(1, 2 * F.shape[1] * F.shape[2]))
    for part in row_blocks(F.shape[0], size):
        some = F[part, ...]
        rows = _rows(some, *_per_diagonal(N[part, ...], G[part, ...]), n_fixed)
        for _ in range(sweeps):
            _sweep(some, rows, column_by_column)


def _per_diagonal(N: Any, G: Any) -> tuple[Any, Any]:
    """Return N and G with rows over the diagonal of G, which becomes 0.

    Where it was 0 it becomes -1, and the rest of the row 0: a sweep leaves such a row as it is.
    """
    xp, k = namespace(G), G.shape[-1]
    diagonal = xp.linalg.diagonal(G)
    usable = diagonal > float(xp.finfo(G.dtype).smallest_normal)
    inverse = xp.where(usable, 1 / xp.where(usable, diagonal, 1), 0)[..., None]
    stay = xp.where(usable, 0 * diagonal, -1)[..., None]
    return N * inverse, xp.where(beside(np.eye(k, dtype=bool), G), stay, G * inverse)


def _rows(F: Any, N: Any, G: Any, n_fixed: int = 0) -> list[tuple[Any, ...]]:
    """Return views of the rows of all starts that a sweep sets one after the other."""
    return [tuple(A[:, c : c + 1, :] for A in (F, N, G)) for c in range(n_fixed, F.shape[1])]


def _sweep(F: Any, rows: list[tuple[Any, ...]], column_by_column: bool = False) -> None:
    xp = namespace(F)
    for f, n, g in rows:
        new = xp.sum(g.mT * F, axis=1, keepdims=True) if column_by_column else g @ F
        if xp is np:
            np.subtract(n, new, out=new)
            np.maximum(new, 0, out=f)
        else:
            f[...] = xp.clip(n - new, min=0)


def nonnegative_rows(
    B: np.ndarray, G: np.ndarray, max_sweeps: int = 100, resolution: float = 1e-6
) -> np.ndarray:
    """Return the rows h >= 0 that minimise ``h'Gh - 2 b'h`` for every row b of B.

    With ``B = A[new, :] @ H`` and ``G = H'H`` these are the factor rows of new samples for a
    fixed H. Cyclic coordinate descent, all rows at once.

    Parameters
    ----------
    B : ndarray of shape (n, k)
    G : ndarray of shape (k, k)
        Positive semidefinite.
    max_sweeps : int, default=100
        Largest number of sweeps over the columns.
    resolution : float, default=1e-6
        It ends when no entry changes by more than this times the largest.

    Returns
    -------
    ndarray of shape (n, k)
    """
    H = np.empty_like(B)
    for block in row_blocks(len(B), 8192):  # so many columns of F and N stay in cache
        N, unit = _per_diagonal(B[block].T[None], G[None])
        F = np.maximum(N, 0) / len(G)
        rows = _rows(F, N, unit)
        for _ in range(max_sweeps):
            before = F.copy()
            _sweep(F, rows)
            if np.abs(F - before).max(initial=0) <= resolution * F.max(initial=0):
                break
        H[block] = F[0].T
    return H


def exact_rows(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the rows h >= 0 that minimise ``h'Gh - 2 b'h``, to rounding.

    Block principal pivoting [1]_: some entries of a row are taken to be above 0 and solved for;
    all entries that turn out to be on the wrong side change sides, until none is. A row does not
    depend on those beside it.

    Parameters
    ----------
    B : ndarray of shape (n, k)
    G : ndarray of shape (k, k) or (n, k, k)
        Positive semidefinite: one for all rows, or one for each.

    Returns
    -------
    ndarray of shape (n, k)

    References
    ----------
    .. [1] J. Kim, H. Park. Fast nonnegative matrix factorization: an active-set-like method and
       comparisons. SIAM Journal on Scientific Computing 33, 2011.
    """
    diagonal = np.einsum("...cc->...c", G).astype(np.float64)
    scale = np.sqrt(np.where(diagonal > np.finfo(G.dtype).tiny, diagonal, 1))
    # the diagonal becomes 1, and a little more: a system of equal columns is not singular
    unit = G / scale[..., None] / scale[..., None, :] + 1e-14 * np.eye(B.shape[1])
    H = np.empty_like(B)
    for block in row_blocks(len(B), max(1, _ENTRIES // B.shape[1] ** 2)):
        system, by = (unit, scale) if G.ndim == 2 else (unit[block], scale[block])
        H[block] = _pivoted(B[block] / by, system) / by
    return H


def _pivoted(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the rows of `exact_rows` for G of unit diagonal, in float64."""
    n, k = B.shape
    H, todo, circling = np.empty((n, k)), np.arange(n), []
    free = B > 0  # the entries that are solved for
    fewest, patience = np.full(n, k + 1), np.full(n, _PATIENCE)
    while len(todo):
        # solve for the free entries of all rows that are not done
        systems = _of_rows(G, todo)
        solved = _solved(B[todo], systems, free[todo])
        H[todo] = np.maximum(solved, 0)
        # find the entries on the wrong side: free ones below 0, others that would rise from it
        allowed = _SURE * np.abs(B[todo]).max(axis=1, keepdims=True)
        back = solved @ G if G.ndim == 2 else np.einsum("nc,ncd->nd", solved, systems)
        wrong = np.where(free[todo], solved < 0, B[todo] - back > allowed)
        # count the rounds in which they have not become fewer
        count = wrong.sum(axis=1)
        patience[todo] = np.where(count < fewest[todo], _PATIENCE, patience[todo] - 1)
        fewest[todo] = np.minimum(count, fewest[todo])
        # let them change sides; rows go on that have some, unless too many rounds were in vain
        free[todo] ^= wrong
        circling.append(todo[(count > 0) & (patience[todo] < 0)])
        todo = todo[(count > 0) & (patience[todo] >= 0)]
    rest = np.concatenate(circling) if circling else todo
    if len(rest):
        H[rest] = _one_by_one(B[rest], _of_rows(G, rest))
    return H


def _of_rows(G: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the G of some rows: one for all, or one for each."""
    return G if G.ndim == 2 else G[rows]


def _one_by_one(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the rows of `_pivoted` by an active set method, which changes one entry at a time.

    It is needed where columns are nearly equal: exchanges of many entries then go in circles.
    """
    if G.ndim == 3:
        return np.concatenate([_one_by_one(b[None], g) for b, g in zip(B, G, strict=True)])
    values, vectors = np.linalg.eigh(G)
    roots = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
    A, targets = roots[:, None] * vectors.T, (B @ vectors) / roots  # A'A = G, A'y = b
    # SciPy's own limit of 3 k steps can be too few
    return np.array([nnls(A, y, maxiter=100 * len(G))[0] for y in targets])


def _solved(B: np.ndarray, G: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Return the rows that solve ``Gh = b`` in the free entries; the others are 0."""
    system = np.where(free[:, :, None] & free[:, None, :], G, 0)
    np.einsum("ncc->nc", system)[~free] = 1
    return np.linalg.solve(system, np.where(free, B, 0)[:, :, None])[..., 0]
