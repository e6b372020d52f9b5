"""Nonnegative least squares for one factor while the other is fixed, from inner products alone.

With the rows of a factor F as variables, all problems here read: minimise ``<G, FF'> - 2 <N, F>``
over F >= 0, for ``X ~ A'F`` with ``G = AA'`` and ``N = AX``.
"""

from __future__ import annotations

import numpy as np

from nmfcluster._storage import row_blocks

_ROWS = 8192
_RIDGE = 1e-14  # relative: keeps a system of equal columns from being singular
_SURE = 1e-10  # relative: a slope smaller than this may be rounding


def descend(F: np.ndarray, N: np.ndarray, G: np.ndarray, sweeps: int) -> None:
    """Improve F by sweeps of exact coordinate descent over its rows, in place.

    Parameters
    ----------
    F : ndarray of shape (k, m)
        Nonnegative.
    N : ndarray of shape (k, m)
    G : ndarray of shape (k, k) or (k, k, m)
        Positive semidefinite: one for all columns, or one for each. A row of F with a 0 on the
        diagonal is as good as any other, and stays as it is.
    sweeps : int
    """
    N, G, rows = _per_diagonal(N, G)
    for _ in range(sweeps):
        _sweep(F, N, G, rows)


def _per_diagonal(N: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return N and G with rows divided by the diagonal of G, then 0; and those where it was not."""
    diagonal = np.einsum("cc...->c...", G)
    usable = diagonal > np.finfo(G.dtype).tiny
    inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=usable)
    G = G * inverse[:, None]
    np.einsum("cc...->c...", G)[...] = 0
    scaled = N * (inverse if inverse.ndim == 2 else inverse[:, None])
    return scaled, G, np.flatnonzero(usable.reshape(len(usable), -1).any(axis=1))


def _sweep(F: np.ndarray, N: np.ndarray, G: np.ndarray, rows: np.ndarray) -> None:
    for c in rows:
        new = G[c] @ F if G.ndim == 2 else (G[c] * F).sum(axis=0)
        np.subtract(N[c], new, out=new)
        np.maximum(new, 0, out=F[c])


def nonnegative_rows(
    B: np.ndarray, G: np.ndarray, max_sweeps: int = 100, resolution: float = 1e-6
) -> np.ndarray:
    """Return the rows h >= 0 that minimise ``h'Gh - 2 b'h`` for every row b of B.

    With ``B = A[new, :] @ H`` and ``G = H'H`` these are the factor rows of new samples for a
    fixed H. Cyclic coordinate descent, all rows at once.

    Parameters
    ----------
    B : ndarray of shape (n, k)
    G : ndarray of shape (k, k) or (n, k, k)
        Positive semidefinite: one for all rows, or one for each.
    max_sweeps : int, default=100
        Largest number of sweeps over the columns.
    resolution : float, default=1e-6
        It ends when no entry changes by more than this times the largest.

    Returns
    -------
    ndarray of shape (n, k)
    """
    H = np.empty_like(B)
    for block in row_blocks(len(B), _ROWS):  # and these as columns: in cache
        H[block] = _nonnegative_columns(
            B[block].T, G if G.ndim == 2 else np.moveaxis(G[block], 0, -1), max_sweeps, resolution
        ).T
    return H


def _nonnegative_columns(
    N: np.ndarray, G: np.ndarray, max_sweeps: int, resolution: float
) -> np.ndarray:
    N, G, rows = _per_diagonal(N, G)
    F = np.maximum(N, 0) / len(N)
    for _ in range(max_sweeps):
        before = F.copy()
        _sweep(F, N, G, rows)
        if np.abs(F - before).max(initial=0) <= resolution * F.max(initial=0):
            break
    return F


def exact_rows(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return `nonnegative_rows` to rounding: a row does not depend on those beside it.

    Coordinate descent finds which entries are 0; the others solve a linear system. Where that
    does not answer the conditions of optimality, as for columns of G that say the same, what
    coordinate descent found stays.

    Parameters
    ----------
    B : ndarray of shape (n, k)
    G : ndarray of shape (k, k)
        Positive semidefinite.

    Returns
    -------
    ndarray of shape (n, k)
    """
    H = nonnegative_rows(B, G, max_sweeps=500, resolution=1e-8)
    wide, diagonal = G.astype(np.float64), np.diagonal(G)
    scale = np.sqrt(np.where(diagonal > np.finfo(G.dtype).tiny, diagonal, 1))
    for block in row_blocks(len(B), max(1, _ROWS // len(G))):
        H[block] = _polished(H[block], B[block].astype(np.float64), wide, scale)
    return H


def _polished(H: np.ndarray, B: np.ndarray, G: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the rows solved exactly on their positive entries, where that is the solution."""
    free = H > 0
    system = np.where(free[:, :, None] & free[:, None, :], G, 0)
    lift = np.where(free, _RIDGE, 1) * np.square(scale)
    system += lift[:, :, None] * np.eye(len(G))
    solved = np.linalg.solve(system, np.where(free, B, 0)[:, :, None])[..., 0]
    slope = (B - solved @ G) / scale  # must vanish where an entry is free, and else not be above 0
    allowed = _SURE * np.abs(B / scale).max(axis=1, keepdims=True)
    optimal = (solved >= 0) & (np.where(free, np.abs(slope), slope) <= allowed)
    return np.where(optimal.all(axis=1, keepdims=True), solved, H)
