"""What depends on how a matrix is stored, dense or sparse, float32 or float64, is done here.

Graphs of the objects that are nearest to each other, or most similar.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

FLOATS = (np.float64, np.float32)  # types that are kept; others become the first

_EXPONENTS = {
    np.float64: 200,
    np.float32: 30,
}  # of 2: fourth powers and their sums are held
_DISTANCE_SHARE = 0.99  # of the distances: some samples may be at the same place
_SPARSE_SHARE = (
    0.1  # share of entries up to which products with a sparse matrix are faster
)
_SYMMETRY_TOL = 1e-6  # relative: what averaging in float32 may leave


def as_float(array) -> Any:
    """Return the array in float32 or float64: as it is if it can be."""
    return array if array.dtype in FLOATS else array.astype(np.float64)


def as_float64(array) -> Any:
    """Return the array in float64."""
    return array.astype(np.float64, copy=False)


def minimum(array, value: float) -> Any:
    """Return the entry-wise minimum of an array and a number."""
    if sp.issparse(array):  # the cast is for SciPy 1.13, which promotes float32
        return array.minimum(value).astype(array.dtype, copy=False)
    return np.minimum(array, value)


def total(array) -> float:
    """Return the sum of all entries, accumulated in float64."""
    return float(array.sum(dtype=np.float64))


def sum_of_squares(array) -> float:
    """Return the sum of the squared entries, accumulated in float64."""
    values = np.ravel(array.data if sp.issparse(array) else array, order="K")
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def inner_product(a, b) -> float:
    """Return the sum of the products of equal entries, accumulated in float64."""
    if sp.issparse(a):
        return total(a.multiply(b))
    if sp.issparse(b):
        return total(b.multiply(a))
    if a.dtype == b.dtype == np.float64:
        return float(np.vdot(a, b))
    blocks = row_blocks(len(a))  # their copies in float64 stay in cache
    return sum(
        float(np.vdot(as_float64(a[rows]), as_float64(b[rows]))) for rows in blocks
    )


def row_blocks(n: int, size: int = 256) -> Iterator[slice]:
    """Yield the rows 0 to n - 1, at most `size` at a time: so few, where each is long."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def rows_of(array, rows: slice) -> Any:
    """Return some rows of an array, or of a CSR matrix, without a copy of their entries."""
    if not sp.issparse(array):
        return array[rows]
    ends = array.indptr[rows.start : rows.stop + 1]
    stored = slice(ends[0], ends[-1])
    part = sp.csr_array((len(ends) - 1, array.shape[1]), dtype=array.dtype)
    # set, and not handed to the constructor, which would copy a small part of an array
    part.data, part.indices, part.indptr = (
        array.data[stored],
        array.indices[stored],
        ends - ends[0],
    )
    return part


def submatrix(array, rows: np.ndarray, columns: np.ndarray | None = None) -> Any:
    """Return some rows and columns of a matrix, or all columns, in a new matrix of its kind."""
    if not sp.issparse(array):
        return array[rows] if columns is None else array[np.ix_(rows, columns)]
    part = array[rows] if columns is None else array[rows][:, columns]
    part.sort_indices()  # sums are made in the order of what is stored
    return part


def row_inner_products(a, b) -> np.ndarray:
    """Return the inner product of every row of a with the same row of b."""
    if sp.issparse(b):
        a, b = b, a
    if sp.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", a, b)


def scaled_rows(array, factors: np.ndarray) -> Any:
    """Return the array with every row times its factor; it keeps its type."""
    factors = np.asarray(factors, dtype=array.dtype).reshape(-1, 1)
    return (
        sp.csr_array(array.multiply(factors)) if sp.issparse(array) else array * factors
    )


def scaled_columns(array, factors: np.ndarray) -> Any:
    """Return the array with every column times its factor; it keeps its type."""
    factors = np.asarray(factors, dtype=array.dtype).reshape(1, -1)
    return (
        sp.csr_array(array.multiply(factors)) if sp.issparse(array) else array * factors
    )


def without_diagonal(array) -> Any:
    """Return a copy of a square matrix with zeros on its diagonal; a sparse one stores none."""
    if sp.issparse(array):
        stored = array.tocoo()
        off = stored.row != stored.col
        return sp.csr_array(
            (stored.data[off], (stored.row[off], stored.col[off])), array.shape
        )
    array = array.copy()
    np.fill_diagonal(array, 0)
    return array


def max_abs(array) -> float:
    """Return the largest absolute value of an entry, without a copy of the array."""
    return max(float(array.max()), -float(array.min()))


def scale_to_range(array) -> Any:
    """Return the array, divided by a power of two where its fourth powers cannot be held.

    Fits multiply up to four entries. A power of two changes no digit of the results; it is even,
    as factors are scaled by its root.
    """
    exponent = _even_exponent(array)
    return (
        array
        if abs(exponent) <= _EXPONENTS[array.dtype.type]
        else divide_by_power(array, exponent)
    )


def scaling_exponent(array, power: int) -> int:
    """Return by what power of two an array is divided so that sums of its powers can be held.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, p)
    power : int
        Which powers of its entries are summed.

    Returns
    -------
    int
        0 where they can be held as they are.
    """
    info, size = np.finfo(array.dtype), max_abs(array)
    most = (float(info.max) / array.shape[0] ** 2 / array.shape[1] ** 2) ** (1 / power)
    least = (float(info.tiny) / float(info.eps) ** 2) ** (
        1 / power
    )  # with digits of a loss
    return 0 if size == 0 or least <= size <= most else _even_exponent(array)


def divide_by_power(array, exponent: int) -> Any:
    """Return an array divided by a power of two: no digit of it changes."""
    if exponent == 0:
        return array
    if sp.issparse(array):
        return with_nonzero_data(array, np.ldexp(array.data, -exponent))
    return np.ldexp(array, -exponent)


def divide_number(value: float, exponent: int) -> float:
    """Return a number above 0 divided by a power of two; still above 0, and finite."""
    info = np.finfo(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.clip(np.ldexp(float(value), -exponent), info.tiny, info.max))


def _even_exponent(array) -> int:
    return int(np.frexp(max_abs(array))[1]) // 2 * 2


def require_symmetric(array, name: str) -> None:
    """Raise if two entries of a square matrix that should be equal differ by more than rounding.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, n)
    name : str
        What to call it in an error message.
    """
    with np.errstate(
        invalid="ignore"
    ):  # infinity less itself, which is refused elsewhere
        difference, size = asymmetry(array), max_abs(array)
    if difference > _SYMMETRY_TOL * size:
        must = f"{name} must be symmetric: two entries that should be equal differ"
        cure = "A directed graph of neighbours S becomes symmetric as 0.5 * (S + S.T)"
        raise ValueError(
            f"{must} by {difference:.3g}, the largest entry is {size:.3g}. {cure}."
        )


def count_missing_pairs(array) -> int:
    """Return for how many pairs a matrix, which is square if it is right, holds NaN."""
    if not np.isnan(total(array)):
        return 0
    both = array + array.T if array.shape[0] == array.shape[1] else array
    return int(
        np.isnan(sp.triu(both).data if sp.issparse(both) else np.triu(both)).sum()
    )


def looks_like_distances(array) -> bool:
    """Return whether a square matrix is 0 on its diagonal and above 0 nearly everywhere else."""
    if sp.issparse(array) or len(array) < 3 or np.diagonal(array).any():
        return False
    return bool(
        np.count_nonzero(array > 0) >= _DISTANCE_SHARE * (array.size - len(array))
    )


def row_sums(array) -> np.ndarray:
    """Return the sum of every row."""
    return np.asarray(array.sum(axis=1)).ravel()


def safe_inverse(values: np.ndarray) -> np.ndarray:
    """Return 1 / values, and 0 where a value is not above 0."""
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)


def identity(n: int, dtype) -> sp.csr_array:
    """Return the identity matrix, sparse."""
    return sp.csr_array(sp.eye_array(n, dtype=dtype))


def group_indicator(groups: np.ndarray, dtype=np.float64) -> sp.csr_array:
    """Return E, sparse (n_samples, n_groups), scaled so that E'E = I.

    Parameters
    ----------
    groups : ndarray of shape (n_samples,), int
        Group of every sample, 0 to n_groups - 1, none empty.
    dtype : dtype, default=float64
        Type of the entries.
    """
    sizes = np.bincount(groups)
    if not sizes.all():
        raise ValueError(
            f"group {int(np.argmin(sizes))} is empty; groups are numbered from 0."
        )
    values = (1 / np.sqrt(sizes)).astype(dtype)[groups]
    return csr_of_equal_rows(values[:, None], groups[:, None], len(sizes))


def as_dense(array) -> np.ndarray:
    """Return a matrix as an array."""
    return array.toarray() if sp.issparse(array) else array


def fill_unstored(array, value: float) -> np.ndarray:
    """Return a matrix as an array, with a value where a sparse one stores nothing."""
    if not sp.issparse(array):
        return np.asarray(array)
    dense = np.full(array.shape, value)
    rows, columns, values = stored_entries(array)
    dense[rows, columns] = values
    return dense


def choose_storage(array) -> Any:
    """Return a matrix as CSR if it is sparse and holds few entries, else as an array."""
    if (
        sp.issparse(array)
        and array.nnz <= _SPARSE_SHARE * array.shape[0] * array.shape[1]
    ):
        return array.tocsr()
    return as_dense(array)


def as_writable(array) -> Any:
    """Return a sparse matrix whose parts can be written to; a dense array as it is."""
    parts = (array.data, array.indices, array.indptr) if sp.issparse(array) else ()
    return array if all(part.flags.writeable for part in parts) else array.copy()


def match_storage(array, reference) -> Any:
    """Return a dense array where `reference` is one, and else the array as it is."""
    return array if sp.issparse(reference) else as_dense(array)


def knn_weights(
    distances: np.ndarray,
    nearest: np.ndarray,
    own: np.ndarray,
    others: np.ndarray,
    farthest: float,
) -> sp.csr_array:
    """Return ``exp(-d_ij^2 / (own_i others_j))`` for the neighbours j of every i, sparse.

    Parameters
    ----------
    distances : ndarray of shape (m, n_neighbors)
    nearest : ndarray of shape (m, n_neighbors), int
        The neighbours of every row.
    own : ndarray of shape (m,)
        Scale of every row.
    others : ndarray of shape (n,)
        Scale of every possible neighbour.
    farthest : float
        Largest exponent: a neighbour stays one, however far it is.

    Returns
    -------
    csr_array of shape (m, n)
    """
    weights = np.exp(
        -np.minimum(distances**2 / (own[:, None] * others[nearest]), farthest)
    )
    return csr_of_equal_rows(weights, nearest, len(others))


def csr_of_equal_rows(
    values: np.ndarray, columns: np.ndarray, n_columns: int
) -> sp.csr_array:
    """Return the sparse matrix with as many entries in every row, (m, n_columns).

    Its indices have 32 bits where they can: scikit-learn takes no others.
    """
    kind = index_dtype(max(values.size, n_columns))
    ends = (np.arange(len(values) + 1) * values.shape[1]).astype(kind)
    places = columns.ravel().astype(kind, copy=False)
    return sp.csr_array((values.ravel(), places, ends), (len(values), n_columns))


def index_dtype(largest: int) -> Any:
    """Return the smallest dtype of indices, of 32 or 64 bits, that holds a number."""
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64


def stored_entries(array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows, columns and values that a CSR matrix stores, in its order."""
    return (
        np.repeat(np.arange(array.shape[0]), np.diff(array.indptr)),
        array.indices,
        array.data,
    )


def with_nonzero_data(array, values: np.ndarray) -> sp.csr_array:
    """Return a CSR matrix with other values in the places of those stored; zeros are dropped."""
    filled = sp.csr_array(
        (values, array.indices, array.indptr), shape=array.shape, copy=True
    )
    filled.eliminate_zeros()
    return filled


def hstack(arrays: list[Any]) -> Any:
    """Return the arrays side by side; all of them dense, or all sparse."""
    return (
        sp.hstack(arrays, format="csr") if sp.issparse(arrays[0]) else np.hstack(arrays)
    )


def two_by_two_blocks(same, cross) -> Any:
    """Return the symmetric matrix [[same, cross], [cross, same]]."""
    blocks = [[same, cross], [cross, same]]
    return (
        sp.block_array(blocks, format="csr") if sp.issparse(same) else np.block(blocks)
    )


def asymmetry(array) -> float:
    """Return the largest difference between an entry of a matrix and its transpose's.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, n)

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster._utils.storage import asymmetry
    >>> asymmetry(np.array([[1.0, 2.0], [2.5, 1.0]]))
    0.5
    """
    if sp.issparse(array):
        return float(abs(array - array.T).max())
    return max(
        float(abs(array[rows] - array[:, rows].T).max())
        for rows in row_blocks(len(array))
    )


def is_sparse(array) -> bool:
    """Return whether a matrix is stored as a sparse one."""
    return bool(sp.issparse(array))


def as_matrix(value) -> Any:
    """Return a matrix of floats: a C-contiguous array, or CSR in canonical form, without zeros.

    Parameters
    ----------
    value : array-like or sparse matrix
        Never written to, and not copied where that can be avoided.

    Returns
    -------
    ndarray or csr_array

    Raises
    ------
    TypeError
        If it does not hold real numbers.
    ValueError
        If it is not a matrix.
    """
    array = value if sp.issparse(value) else np.asarray(value)
    if array.dtype.kind not in "fiubO":
        raise TypeError(f"it holds {array.dtype}, not numbers")
    if array.ndim != 2:
        raise ValueError(f"it has shape {array.shape}, not (n, m)")
    if not sp.issparse(array):
        return np.ascontiguousarray(as_float(array))
    array = as_float(sp.csr_array(array))
    if not array.has_canonical_format or (array.data == 0).any():
        array = array.copy()
        array.sum_duplicates()
        array.eliminate_zeros()
    return array


_MIN_SIMILARITY = 1e-12  # of the largest entry: less is no similarity


def nearest_similarities(
    rows: np.ndarray, n_neighbors: int, among=slice(None)
) -> sp.csr_array:
    """Return the similarities of every row that are not below the K-th largest, sparse.

    Parameters
    ----------
    rows : ndarray of shape (r, n)
        Nonnegative.
    n_neighbors : int
        K.
    among : ndarray of int or slice, default=slice(None)
        The columns whose entries are counted: of those that are equal, one.

    Returns
    -------
    csr_array of shape (r, n)
        More than K of a row where several are as large as its K-th.
    """
    kept, counted = rows > _MIN_SIMILARITY * max_abs(rows), rows[:, among]
    if n_neighbors < counted.shape[1]:
        kept &= (
            rows >= np.partition(counted, -n_neighbors, axis=1)[:, -n_neighbors, None]
        )
    return sp.csr_array(np.where(kept, rows, 0))


def vstack(blocks: list[Any]) -> Any:
    """Return blocks of rows as one matrix, CSR if they are sparse."""
    sparse = sp.issparse(blocks[0])
    return (
        sp.csr_array(sp.vstack(blocks, format="csr"))
        if sparse
        else np.concatenate(blocks)
    )


def bipartite_graph(array: sp.csr_array) -> sp.csr_array:
    """Return ``[[0, S], [S', 0]]``: the graph of the rows and the columns of S, (n + p, n + p)."""
    return sp.csr_array(sp.block_array([[None, array], [array.T, None]]))


def maximum_spanning_edges(
    heights: np.ndarray, nearest: np.ndarray
) -> list[tuple[int, int, float]]:
    """Return the edges of a tree that joins all that a graph joins, as high as possible.

    Parameters
    ----------
    heights : ndarray of shape (n,)
        An edge is as high as the lower one of its nodes.
    nearest : ndarray of shape (n, k), int
        Nodes that a node has an edge to.

    Returns
    -------
    list of tuple
        Both nodes and the height of n - 1 edges, or fewer, the highest first.
    """
    n, k = nearest.shape
    kind = index_dtype(nearest.size)  # SciPy 1.13 makes trees of no others
    ends, starts = nearest.ravel().astype(kind), np.arange(0, n * k + 1, k, dtype=kind)
    depth = (
        heights.max() - np.minimum(heights[:, None], heights[nearest]) + 1
    )  # 0: no edge
    graph = sp.csr_array(
        (depth.ravel(), ends, starts), shape=(n, n)
    )  # one way is enough
    tree = sp.coo_array(minimum_spanning_tree(graph))
    saddles = np.minimum(heights[tree.row], heights[tree.col])
    order = np.argsort(-saddles, kind="stable")
    parts = (part[order].tolist() for part in (tree.row, tree.col, saddles))
    return list(zip(*parts, strict=True))
