"""Operations on matrices for every storage: dense or sparse, float32 or float64.

Some of them build graphs of samples that are near or similar to each other.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

#: Floating dtypes that are kept; others are converted to the first.
FLOATS = (np.float64, np.float32)

# Largest exponents of 2 for which sums of fourth powers of entries do not overflow.
_EXPONENTS = {np.float64: 200, np.float32: 30}
# Smallest share of entries off the diagonal that are above 0 in a matrix of distances; some
# samples may be equal.
_DISTANCE_SHARE = 0.9
# Largest entry on the diagonal of distances, relative to the mean of all; above rounding.
_DISTANCE_ROUNDING = 1e-3
# Number of samples whose products are compared to distinguish distances from similarities.
_N_COMPARED = 300
# Correlation of centred entries with the products over a third sample, below which entries are
# distances. It was at most -0.33 for eight metrics on four data sets from 12 samples on, at least
# 0.38 for six kernels, and between -0.18 and 0.5 for noise of 30 samples.
_DISTANCE_CORRELATION = -0.2
# Share of nonzero entries up to which products with a sparse matrix are faster.
_SPARSE_SHARE = 0.1
_SYMMETRY_TOL = 1e-6  # relative difference that may remain after averaging in float32


is_sparse = sp.issparse  #: whether a matrix is sparse


def as_float(array):
    """Return the array in float32 or float64, unchanged if it is in one of these."""
    return array if array.dtype in FLOATS else array.astype(np.float64)


def as_float64(array):
    """Return the array in float64."""
    return array.astype(np.float64, copy=False)


def stored_values(array):
    """Return the stored values of a sparse matrix, or a dense array as it is."""
    return array.data if is_sparse(array) else array


def negative_part(array):
    """Return -x for every entry x below 0, and 0 for the others."""
    if is_sparse(array):  # the cast is for SciPy 1.13, which promotes float32
        return abs(array.minimum(0).astype(array.dtype, copy=False))
    return abs(np.minimum(array, 0))


def total(array):
    """Return the sum of all entries, accumulated in float64."""
    return float(array.sum(dtype=np.float64))


def sum_of_squares(array):
    """Return the sum of the squared entries, accumulated in float64."""
    values = np.ravel(stored_values(array), order="K")
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def inner_product(a, b):
    """Return the sum of the products of corresponding entries, accumulated in float64."""
    if is_sparse(a):
        return total(a.multiply(b))
    if is_sparse(b):
        return total(b.multiply(a))
    if a.dtype == b.dtype == np.float64:
        return float(np.vdot(a, b))
    # copies of blocks in float64 fit the cache
    products = [
        np.vdot(as_float64(a[rows]), as_float64(b[rows])) for rows in row_blocks(len(a))
    ]
    return sum(map(float, products))


def row_blocks(n, size=256):
    """Yield slices of the rows 0 to n - 1, each of at most `size` rows."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def rows_of(array, rows):
    """Return some rows of an array or a CSR matrix, without copying their entries."""
    if not is_sparse(array):
        return array[rows]
    ends = array.indptr[rows.start : rows.stop + 1]
    stored = slice(ends[0], ends[-1])
    part = sp.csr_array((len(ends) - 1, array.shape[1]), dtype=array.dtype)
    # The constructor would copy a small part of an array, so the arrays are set here.
    part.data = array.data[stored]
    part.indices = array.indices[stored]
    part.indptr = ends - ends[0]
    return part


def submatrix(array, rows, columns=None):
    """Return some rows and columns of a matrix, or all columns, as a new matrix."""
    if not is_sparse(array):
        return array[rows] if columns is None else array[np.ix_(rows, columns)]
    part = array[rows] if columns is None else array[rows][:, columns]
    part.sort_indices()  # the order of stored entries changes the last bits of sums
    return part


def row_inner_products(a, b):
    """Return the inner product of every row of a with the same row of b."""
    if is_sparse(b):  # terms are added in the order of the entries of b
        return row_sums(b.multiply(a))
    if is_sparse(a):
        return row_sums(a.multiply(b))
    return np.einsum("ij,ij->i", a, b)


def scaled_rows(array, factors):
    """Return the array with every row times its factor, in the same dtype."""
    return scaled_columns(array, np.asarray(factors)[:, None])


def scaled_columns(array, factors):
    """Return the array with every column times its factor, in the same dtype."""
    factors = np.asarray(factors, dtype=array.dtype)
    if is_sparse(array):
        return sp.csr_array(array.multiply(factors))
    return array * factors


def scaled_both(array, factors):
    """Return a square matrix with every row and every column times its factor."""
    return scaled_columns(scaled_rows(array, factors), factors)


def without_diagonal(array):
    """Return a copy of a square matrix with zeros on its diagonal; a sparse one stores none."""
    if is_sparse(array):
        coo = array.tocoo()
        off = coo.row != coo.col
        places = (coo.row[off], coo.col[off])
        return sp.csr_array((coo.data[off], places), array.shape)
    array = array.copy()
    np.fill_diagonal(array, 0)
    return array


def max_abs(array):
    """Return the largest absolute value of an entry, without a copy of the array."""
    return max(float(array.max()), -float(array.min()))


def scale_to_range(array):
    """Return the array, divided by a power of two if its fourth powers would overflow or underflow.

    Fits multiply up to four entries. A power of two changes no digit of the results. Its exponent
    is even, as factors are scaled by its root.
    """
    exponent = _even_exponent(array)
    is_in_range = abs(exponent) <= _EXPONENTS[array.dtype.type]
    return array if is_in_range else divide_by_power(array, exponent)


def scaling_exponent(array, power):
    """Return the exponent of 2 by which to divide an array, so that sums of its powers can be held.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, p)
    power : int
        Power of the entries that are summed.

    Returns
    -------
    int
        0 if nothing has to be divided.
    """
    size = max_abs(array)
    if size == 0:
        return 0
    info = np.finfo(array.dtype)
    n, p = array.shape
    upper = (float(info.max) / n**2 / p**2) ** (1 / power)
    # above this, a loss is precise
    lower = (float(info.tiny) / float(info.eps) ** 2) ** (1 / power)
    return 0 if lower <= size <= upper else _even_exponent(array)


def divide_by_power(array, exponent):
    """Return an array divided by a power of two, which changes no digit."""
    if exponent == 0:
        return array
    if is_sparse(array):
        return with_nonzero_data(array, np.ldexp(array.data, -exponent))
    return np.ldexp(array, -exponent)


def divide_number(value, exponent):
    """Return a number above 0 divided by a power of two, still above 0 and finite."""
    info = np.finfo(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return float(np.clip(np.ldexp(float(value), -exponent), info.tiny, info.max))


def _even_exponent(array):
    return int(np.frexp(max_abs(array))[1]) // 2 * 2


def require_symmetric(array, name):
    """Raise if a square matrix is not symmetric, up to rounding.

    Parameters
    ----------
    array : ndarray or sparse matrix of shape (n, n)
    name : str
        What to call it in an error message.
    """
    with np.errstate(invalid="ignore"):  # inf - inf: infinity is refused elsewhere
        difference = asymmetry(array)
        size = max_abs(array)
    if difference > _SYMMETRY_TOL * size:
        raise ValueError(
            f"{name} must be symmetric: two entries that should be equal differ by "
            f"{difference:.3g}, and the largest entry is {size:.3g}. For a directed graph of "
            "neighbours S, pass 0.5 * (S + S.T)."
        )


def looks_like_distances(array):
    """Return whether a square matrix looks like distances.

    Distances are 0 on the diagonal and above 0 nearly everywhere else, and two samples that are
    far from a third one tend to be near each other. With similarities, two samples that are
    similar to a third one tend to be similar.
    """
    n = array.shape[0]
    if n < 3 or (array > 0).sum() < _DISTANCE_SHARE * n * (n - 1):
        return False
    # entries of some samples, relative to the largest, without the diagonal
    largest = float(array.max())
    chosen = slice(None, None, -(-n // _N_COMPARED))
    part = as_dense(array[chosen][:, chosen]) / largest
    np.fill_diagonal(part, 0)
    m = len(part)
    mean = part.sum() / (m * (m - 1))
    if abs(array.diagonal()).max() > _DISTANCE_ROUNDING * mean * largest:
        return False
    # centre rows and columns, ignoring the diagonal
    effects = (part.sum(axis=1) - (m - 1) * mean) / max(m - 2, 1)
    part -= mean + effects[:, None] + effects
    np.fill_diagonal(part, 0)
    products = part @ part
    np.fill_diagonal(products, 0)
    size = np.linalg.norm(part) * np.linalg.norm(products)
    return bool((part * products).sum() < _DISTANCE_CORRELATION * size)


def row_sums(array):
    """Return the sum of every row."""
    return np.asarray(array.sum(axis=1)).ravel()


def safe_ratio(numerator, denominator):
    """Return a quotient in the shape of the numerator; 0 where the denominator is not above 0."""
    zeros = np.zeros_like(numerator)
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0)


def safe_inverse(values):
    """Return 1 / values, and 0 where a value is not above 0."""
    return safe_ratio(np.ones_like(values), values)


def identity(n, dtype):
    """Return the identity matrix, sparse."""
    return sp.eye_array(n, dtype=dtype, format="csr")


def group_indicator(groups, dtype=np.float64):
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


def as_dense(array):
    """Return a matrix as an array."""
    return array.toarray() if is_sparse(array) else array


def fill_unstored(array, value):
    """Return a matrix as an array, with a value where a sparse matrix stores none."""
    if not is_sparse(array):
        return np.asarray(array)
    dense = np.full(array.shape, value)
    rows, columns, values = stored_entries(array)
    dense[rows, columns] = values
    return dense


def choose_storage(array):
    """Return a matrix as CSR if it is sparse and stores few entries, else as an array."""
    if (
        is_sparse(array)
        and array.nnz <= _SPARSE_SHARE * array.shape[0] * array.shape[1]
    ):
        return array.tocsr()
    return as_dense(array)


def as_writable(array):
    """Return a sparse matrix with writeable arrays; a dense one as it is."""
    if is_sparse(array):
        parts = (array.data, array.indices, array.indptr)
        if not all(part.flags.writeable for part in parts):
            return array.copy()
    return array


def match_storage(array, reference):
    """Return a dense array if `reference` is dense, and otherwise the array as it is."""
    return array if is_sparse(reference) else as_dense(array)


def csr_of_equal_rows(values, columns, n_columns):
    """Return the sparse matrix with the same number of entries in every row, (m, n_columns).

    Indices have 32 bits if possible, as scikit-learn and the trees of SciPy 1.13 accept no others.
    """
    n, width = values.shape
    kind = index_dtype(max(values.size, n_columns))
    ends = (np.arange(n + 1) * width).astype(kind)
    indices = columns.ravel().astype(kind, copy=False)
    return sp.csr_array((values.ravel(), indices, ends), (n, n_columns))


def index_dtype(largest):
    """Return the smallest dtype of indices, with 32 or 64 bits, that holds a number."""
    return np.int32 if largest < np.iinfo(np.int32).max else np.int64


def stored_entries(array):
    """Return the rows, columns and values that a CSR matrix stores, in its order."""
    rows = np.repeat(np.arange(array.shape[0]), np.diff(array.indptr))
    return rows, array.indices, array.data


def with_nonzero_data(array, values):
    """Return a CSR matrix with other values for its stored entries; zeros are dropped."""
    parts = (values, array.indices, array.indptr)
    matrix = sp.csr_array(parts, shape=array.shape, copy=True)
    matrix.eliminate_zeros()
    return matrix


def block_matrix(blocks):
    """Return the matrix that consists of rows of blocks, all dense or all sparse."""
    if is_sparse(blocks[0][0]):
        return sp.block_array(blocks, format="csr")
    return np.block(blocks)


def asymmetry(array):
    """Return the largest difference between the entries of a matrix and of its transpose.

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
    with np.errstate(invalid="ignore"):  # the difference of infinite entries is NaN
        if is_sparse(array):
            return float(abs(array - array.T).max())
        blocks = row_blocks(len(array))
        return max(float(abs(array[rows] - array[:, rows].T).max()) for rows in blocks)


def as_matrix(value):
    """Return a matrix of floats: a C-contiguous array, or CSR in canonical form, without zeros.

    Parameters
    ----------
    value : array-like or sparse matrix
        Never written to, and copied only if necessary.

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
    array = value if is_sparse(value) else np.asarray(value)
    if array.dtype == object and hasattr(value, "iloc"):
        array = value.to_numpy(na_value=np.nan)  # NA of pandas is no number
    if array.dtype.kind not in "fiubO":
        raise TypeError(f"it holds {array.dtype}, not numbers")
    if array.ndim != 2:
        raise ValueError(f"it has shape {array.shape}, not (n, m)")
    if not is_sparse(array):
        return np.ascontiguousarray(as_float(array))
    array = as_float(sp.csr_array(array))
    if not array.has_canonical_format or (array.data == 0).any():
        array = array.copy()
        array.sum_duplicates()
        array.eliminate_zeros()
    return array


_MIN_SIMILARITY = 1e-12  # smallest similarity, relative to the largest entry


def nearest_similarities(rows, n_neighbors, among=slice(None)):
    """Return the similarities of every row that reach the K-th largest, as a sparse matrix.

    Parameters
    ----------
    rows : ndarray of shape (r, n)
        Nonnegative.
    n_neighbors : int
        K.
    among : ndarray of int or slice, default=slice(None)
        The columns whose entries are counted: one of each set of equal columns.

    Returns
    -------
    csr_array of shape (r, n)
        A row has more than K entries if several equal its K-th largest.
    """
    is_kept = rows > _MIN_SIMILARITY * max_abs(rows)
    counted = rows[:, among]
    if n_neighbors < counted.shape[1]:
        ordered = np.partition(counted, -n_neighbors, axis=1)
        is_kept &= rows >= ordered[:, -n_neighbors, None]
    return sp.csr_array(np.where(is_kept, rows, 0))


def vstack(blocks):
    """Stack blocks of rows into one matrix, CSR if they are sparse."""
    if is_sparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    return np.concatenate(blocks)


def bipartite_graph(array):
    """Return ``[[0, S], [S', 0]]``: the graph of the rows and the columns of S, (n + p, n + p)."""
    return sp.block_array([[None, array], [array.T, None]], format="csr")


def maximum_spanning_edges(heights, nearest):
    """Return the edges of a maximum spanning forest of a graph.

    Parameters
    ----------
    heights : ndarray of shape (n,)
        Heights of the nodes. The height of an edge is that of its lower node.
    nearest : ndarray of shape (n, k), int
        Nodes to which each node has an edge.

    Returns
    -------
    list of tuple
        Both nodes and the height of at most n - 1 edges, the highest first.
    """
    # SciPy computes minimum trees, where 0 means no edge
    edge_heights = np.minimum(heights[:, None], heights[nearest])
    depth = heights.max() - edge_heights + 1
    graph = csr_of_equal_rows(
        depth, nearest, len(heights)
    )  # one direction of an edge suffices
    tree = sp.coo_array(minimum_spanning_tree(graph))
    saddles = np.minimum(heights[tree.row], heights[tree.col])
    order = np.argsort(-saddles, kind="stable")
    columns = [part[order].tolist() for part in (tree.row, tree.col, saddles)]
    return list(zip(columns[0], columns[1], columns[2], strict=True))
