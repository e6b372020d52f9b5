"""Products of large arrays by blocks of rows, and nonnegative least squares.

Threads share the blocks, which do not depend on the number of threads.

The least squares problems fit one factor while the other is fixed, from inner products alone. With
the rows of a factor F as variables, they minimise ``<G, FF'> - 2 <N, F>`` over F >= 0, for
``X ~ A'F`` with ``G = AA'`` and ``N = AX``.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, reduce

import numpy as np
from joblib import effective_n_jobs
from scipy.optimize import nnls

from nmfcluster._utils import array_api
from nmfcluster._utils.array_api import asarray_like, chunk_size, namespace
from nmfcluster._utils.storage import is_sparse, row_blocks, rows_of

BLOCK_ROWS = 32_768  # rows of a block; with ten columns it fits a cache of 2 MiB

# Threads of other pools do not inherit it: if starts share the cores, blocks do not.
_pool: ContextVar = ContextVar("pool", default=None)


@contextmanager
def share_blocks(n_jobs):
    """Let `n_jobs` threads share the blocks of the calling thread in this context."""
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield
        return
    with ThreadPoolExecutor(n_threads) as pool:  # it starts threads when needed
        before = _pool.set(pool)
        try:
            yield
        finally:
            _pool.reset(before)


def map_blocks(work, n_rows):
    """Return the results of a function for every block of rows, in order.

    Parameters
    ----------
    work : callable
        Called with the slice of a block.
    n_rows : int

    Returns
    -------
    iterator
    """
    blocks = row_blocks(n_rows, BLOCK_ROWS)
    pool = _pool.get()
    if pool is None or n_rows <= BLOCK_ROWS:
        return map(work, blocks)
    return pool.map(np.errstate(**error_state())(work), blocks)


def error_state():
    """Return numpy's error settings of this thread, to pass them to other threads."""
    return {"call": np.geterrcall(), **np.geterr()}


def sum_blocks(work, n_rows):
    """Return the sum of the results of a function for every block of rows, added in order."""
    return reduce(np.add, map_blocks(work, n_rows))


def map_rows(function, *arrays):
    """Apply a function, which acts on each row alone, to blocks of rows of arrays.

    Parameters
    ----------
    function : callable
        Called with the rows of a block of every array; returns the same number of rows.
    *arrays : ndarray of shape (n_starts, n, k)

    Returns
    -------
    ndarray of shape (n_starts, n, k) and the dtype of the first
    """
    if arrays[0].shape[1] <= BLOCK_ROWS:
        return function(*arrays)
    out = np.empty_like(arrays[0])

    def fill(block):
        out[:, block] = function(*[array[:, block] for array in arrays])

    list(map_blocks(fill, out.shape[1]))
    return out


def sum_rows(function, *arrays):
    """Sum a function, itself a sum over rows, over blocks of arrays (n_starts, n, k)."""
    return sum_blocks(
        lambda block: function(*[array[:, block] for array in arrays]),
        arrays[0].shape[1],
    )


def gram(X, Y):
    """Return ``X'Y`` of every start, (n_starts, k, k), for X and Y of shape (n_starts, n, k)."""
    return sum_rows(lambda X, Y: X.mT @ Y, X, Y)


def inner_products(X, Y):
    """Return <X_s, Y_s> for every start s, accumulated in float64."""
    if not isinstance(X, np.ndarray):
        return array_api.einsum_inner_products(X, Y)
    return sum_rows(block_inner_products, X, Y)


def block_inner_products(X, Y):
    """Return `inner_products` of the rows of one block."""
    if X.dtype == np.float64:
        return np.array(list(map(np.vdot, X, Y)))
    pairs = zip(X, Y, strict=True)
    return np.array([np.einsum("ij,ij->", x, y, dtype=np.float64) for x, y in pairs])


def matmul_rows(X, M):
    """Multiply the rows of every start, X of shape (n_starts, n, k), by its (k, k) matrix."""
    return map_rows(lambda rows: rows @ M, X)


class RowBlocks:
    """A matrix in blocks of rows, which are made once, and share its memory.

    Parameters
    ----------
    array : ndarray or csr_array of shape (n, m)
    """

    def __init__(self, array):
        self._array = array
        self.n_rows = array.shape[0]
        self._parts = {0: array}
        if self.n_rows > BLOCK_ROWS:
            blocks = row_blocks(self.n_rows, BLOCK_ROWS)
            self._parts = {block.start: rows_of(array, block) for block in blocks}

    def __reduce__(self):
        return RowBlocks, (self._array,)  # blocks would be pickled as copies

    def product(self, H):
        """Return the product with H of shape (m, k), sparse with a sparse H."""
        if len(self._parts) == 1 or is_sparse(H):
            return self._array @ H
        out = np.empty((self.n_rows, H.shape[1]), dtype=H.dtype)

        def fill(block):
            out[block] = self._parts[block.start] @ H

        list(map_blocks(fill, self.n_rows))
        return out

    def transposed_product(self, H, scale=None):
        """Return the product of the transpose with H of shape (n, k), its rows scaled or not."""
        if scale is not None:
            H = scale * H
        if len(self._parts) == 1:
            return self._transposes[0] @ H
        if self._wide_transpose is not None:
            return self._wide_transpose.product(H)
        return sum_blocks(
            lambda block: self._transposes[block.start] @ H[block], self.n_rows
        )

    @cached_property
    def _transposes(self):
        """Transposes of the blocks; in scipy, making one takes as long as a small product."""
        return {start: part.T for start, part in self._parts.items()}

    @cached_property
    def _wide_transpose(self):
        """Transpose of a wide sparse matrix, whose products need no sum over blocks; or None."""
        if is_sparse(self._array) and self._array.shape[1] >= self.n_rows:
            return RowBlocks(self._array.T.tocsr())
        return None


# Entries of F and N, for the starts that are swept together; they fit a cache of 2 MiB.
_SWEPT_ENTRIES = 2**18
_SOLVED_ENTRIES = 2**20  # entries of small systems that are solved at a time: 8 MiB
# Slope, relative to the largest |b| of a row, below which it counts as rounding.
_SLOPE_TOL = 1e-12
_PATIENCE = 3  # rounds that may pass without fewer entries on the wrong side


def coordinate_descent(
    F,
    N,
    G,
    sweeps,
    n_fixed=0,
    column_by_column=False,
):
    """Improve F by sweeps of exact coordinate descent over its rows, in place, for every start.

    Parameters
    ----------
    F : array of shape (n_starts, k, m)
        Nonnegative.
    N : array of shape (n_starts, k, m)
    G : array of shape (n_starts, k, k)
        Positive semidefinite. If its diagonal is 0 for a row of F, any values are optimal, and the
        row is unchanged.
    sweeps : int
    n_fixed : int, default=0
        Number of first rows that are fixed.
    column_by_column : bool, default=False
        Whether the sums of a column are independent of the others, to the last bit, which matrix
        products do not ensure.
    """
    size = max(1, chunk_size(F, _SWEPT_ENTRIES) // max(1, 2 * F.shape[1] * F.shape[2]))
    for part in row_blocks(F.shape[0], size):
        F_part = F[part, ...]
        N_part, G_part = _scale_to_unit_diagonal(N[part, ...], G[part, ...])
        rows = _rows(F_part, N_part, G_part, n_fixed)
        for _ in range(sweeps):
            _sweep(F_part, rows, column_by_column)


def _scale_to_unit_diagonal(N, G):
    """Return N and G with rows divided by the diagonal of G, which is then set to 0.

    Where the diagonal was 0, it is set to -1, and the rest of the row to 0, so that a sweep does
    not change the row.
    """
    xp = namespace(G)
    diagonal = xp.linalg.diagonal(G)
    is_usable = diagonal > float(xp.finfo(G.dtype).smallest_normal)
    inverse = xp.where(is_usable, 1 / xp.where(is_usable, diagonal, 1), 0)[..., None]
    new_diagonal = xp.where(is_usable, 0 * diagonal, -1)[..., None]
    on_diagonal = asarray_like(np.eye(G.shape[-1], dtype=bool), G)
    return N * inverse, xp.where(on_diagonal, new_diagonal, G * inverse)


def _rows(F, N, G, n_fixed=0):
    """Return views of the rows of all starts, which a sweep updates one after the other."""
    rows = []
    for c in range(n_fixed, F.shape[1]):
        row = slice(c, c + 1)
        rows.append((F[:, row, :], N[:, row, :], G[:, row, :]))
    return rows


def _sweep(F, rows, column_by_column=False):
    """Set every row of F to its optimum, given all others."""
    xp = namespace(F)
    for f, n, g in rows:
        new = xp.sum(g.mT * F, axis=1, keepdims=True) if column_by_column else g @ F
        if xp is np:
            np.subtract(n, new, out=new)
            np.maximum(new, 0, out=f)
        else:
            f[...] = xp.clip(n - new, min=0)


def approximate_nnls_rows(B, G, max_sweeps=100, resolution=1e-6):
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
        Sweeps end when no entry changes by more than this times the largest entry.

    Returns
    -------
    ndarray of shape (n, k)
    """
    H = np.empty_like(B)
    for block in row_blocks(len(B), 8192):  # 8192 columns of F and N fit the cache
        N, scaled_G = _scale_to_unit_diagonal(B[block].T[None], G[None])
        F = np.maximum(N, 0) / len(G)
        rows = _rows(F, N, scaled_G)
        for _ in range(max_sweeps):
            before = F.copy()
            _sweep(F, rows)
            if np.abs(F - before).max(initial=0) <= resolution * F.max(initial=0):
                break
        H[block] = F[0].T
    return H


def nnls_rows(B, G):
    """Return the rows h >= 0 that minimise ``h'Gh - 2 b'h``, to rounding.

    Block principal pivoting [1]_ assumes that some entries of a row are above 0, and solves for
    them. All entries that turn out to be on the wrong side change sides, until none does. The
    result of a row does not depend on the other rows.

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
    # the diagonal becomes slightly more than 1, so that equal columns give no singular system
    G = G / scale[..., None] / scale[..., None, :] + 1e-14 * np.eye(B.shape[1])
    H = np.empty_like(B)
    for block in row_blocks(len(B), max(1, _SOLVED_ENTRIES // B.shape[1] ** 2)):
        of_block = slice(None) if G.ndim == 2 else block
        H[block] = _pivot(B[block] / scale[of_block], G[of_block]) / scale[of_block]
    return H


def _pivot(B, G):
    """Return the rows of `nnls_rows` for G of unit diagonal, in float64."""
    n, k = B.shape
    H = np.empty((n, k))
    todo = np.arange(n)
    cycling = []  # rows whose exchanges cycle
    free = B > 0  # the entries that are solved for
    fewest = np.full(n, k + 1)
    patience = np.full(n, _PATIENCE)
    while len(todo):
        # solve for the free entries of all rows that are not done
        systems = G if G.ndim == 2 else G[todo]
        solved = _solve_free(B[todo], systems, free[todo])
        H[todo] = np.maximum(solved, 0)
        # find the entries on the wrong side: free ones below 0, and others that would rise above 0
        tolerance = _SLOPE_TOL * np.abs(B[todo]).max(axis=1, keepdims=True)
        if G.ndim == 2:
            product = solved @ G
        else:
            product = np.einsum("nc,ncd->nd", solved, systems)
        is_wrong = np.where(free[todo], solved < 0, B[todo] - product > tolerance)
        # count the rounds in which their number has not decreased
        n_wrong = is_wrong.sum(axis=1)
        is_fewer = n_wrong < fewest[todo]
        patience[todo] = np.where(is_fewer, _PATIENCE, patience[todo] - 1)
        fewest[todo] = np.minimum(n_wrong, fewest[todo])
        # let them change sides; continue with rows that had some, unless out of patience
        free[todo] ^= is_wrong
        cycling.append(todo[(n_wrong > 0) & (patience[todo] < 0)])
        todo = todo[(n_wrong > 0) & (patience[todo] >= 0)]
    rest = np.concatenate([todo, *cycling])
    if len(rest):
        H[rest] = _active_set(B[rest], G if G.ndim == 2 else G[rest])
    return H


def _active_set(B, G):
    """Return the rows of `_pivot` by an active set method, which changes one entry at a time.

    It is needed if columns are nearly equal, as exchanges of many entries then cycle.
    """
    if G.ndim == 3:
        pairs = zip(B, G, strict=True)
        return np.concatenate([_active_set(b[None], g) for b, g in pairs])
    values, vectors = np.linalg.eigh(G)
    roots = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
    A = roots[:, None] * vectors.T  # A'A = G
    targets = (B @ vectors) / roots  # A'target = b
    # SciPy's own limit of 3 k steps can be too few
    return np.array([nnls(A, y, maxiter=100 * len(G))[0] for y in targets])


def _solve_free(B, G, free):
    """Return the rows that solve ``Gh = b`` in the free entries; the others are 0."""
    system = np.where(free[:, :, None] & free[:, None, :], G, 0)
    np.einsum("ncc->nc", system)[~free] = 1
    return np.linalg.solve(system, np.where(free, B, 0)[:, :, None])[..., 0]
