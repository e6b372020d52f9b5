"""Operations on arrays: in place for numpy, and by the array API for other libraries.

The factors of runs are on the device of their data matrix. Values with one number per start, such
as losses, shares and masks, are always numpy arrays.
"""

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._compat import array_functions, to_host
from nmfcluster._utils.storage import row_blocks, stored_entries

_LIBRARIES = ("torch", "cupy", "array_api_strict")

# Entries of gathered rows of factors that are multiplied at a time; they fit a cache of 4 MiB.
_CPU_ENTRIES = 2**20
# Entries that are computed at a time on devices without such a cache: 256 MiB.
_DEVICE_ENTRIES = 2**26


def library_of(array):
    """Return the name of the library of an array; "" for numpy and others."""
    for kind in type(array).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in _LIBRARIES:
            return library
    return ""


def namespace(array):
    """Return the array API namespace of an array, which may be numpy."""
    return np if isinstance(array, np.ndarray) else array_functions(library_of(array))


def to_numpy(array):
    """Convert an array to numpy, or a sparse tensor of torch to CSR; return others as they are."""
    library = library_of(array)
    if not library:
        return array
    try:
        if hasattr(array, "detach"):  # from the computation of gradients in torch
            array = array.detach()
        if "sparse" not in str(getattr(array, "layout", "")):
            return to_host(array, library)
        stored = array.to_sparse_csr()
        parts = (stored.values(), stored.col_indices(), stored.crow_indices())
        arrays = tuple(to_host(part, library) for part in parts)
        return sp.csr_array(arrays, shape=tuple(array.shape))
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"An array of {library} cannot be read: {error}. Pass a dense array, or a sparse one "
            "with two dimensions, of float32 or float64."
        ) from error


def with_numpy_arrays(model):
    """Return a copy of a model whose fitted arrays are numpy arrays."""
    twin = copy(model)
    map_fitted_arrays(twin, to_numpy)
    return twin


def map_fitted_arrays(model, function):
    """Apply a function to the fitted arrays of a model, and replace them by the results."""
    for name, value in vars(model).copy().items():
        if name.endswith("_") and (isinstance(value, np.ndarray) or library_of(value)):
            setattr(model, name, function(value))


@dataclass(frozen=True)
class Device:
    """Library and device of an array.

    Attributes
    ----------
    library : str
        Name of the module.
    device : object
        Its device, as the library represents it.
    """

    library: str
    device: Any

    @classmethod
    def of(cls, array):
        """Return the device of an array; None for numpy and unknown libraries."""
        library = library_of(array)
        return cls(library, array.device) if library else None


def to_device(array, there):
    """Copy a numpy array to a device, and a CSR matrix to a `SparseTensor`.

    An input of None is returned as it is, and so is any input if the device is None, which means
    numpy.
    """
    if there is None or array is None:
        return array
    if sp.issparse(array):
        return SparseTensor.of(array, there)
    xp = array_functions(there.library)
    return xp.asarray(array, device=there.device, copy=True)


def asarray_like(values, F, dtype=None):
    """Move values of numpy to the device of F, in their own dtype or another."""
    if isinstance(F, np.ndarray):
        return values if dtype is None else values.astype(dtype, copy=False)
    return namespace(F).asarray(values, dtype=dtype, device=F.device)


def chunk_size(F, in_cache):
    """Return how many entries to compute at a time: `in_cache` on a CPU, and more elsewhere."""
    is_on_cpu = isinstance(F, np.ndarray) or "cpu" in str(F.device).lower()
    return in_cache if is_on_cpu else _DEVICE_ENTRIES


def call_with_out(out, function, *arrays):
    """Call a function of arrays; numpy writes the result into `out`."""
    if isinstance(out, np.ndarray):
        function = partial(function, out=out)
    return function(*arrays)


def take_starts(F, mask):
    """Select some of the starts, the first axis of F."""
    if isinstance(F, np.ndarray):
        return F[mask]
    return namespace(F).take(F, asarray_like(np.flatnonzero(mask), F), axis=0)


def contiguous_transpose(F):
    """Return the transpose of a matrix; in C order for numpy."""
    return np.ascontiguousarray(F.T) if isinstance(F, np.ndarray) else F.T


def put_starts(F, mask, values):
    """Set F for some of the starts."""
    if isinstance(F, np.ndarray):
        F[mask] = values
        return
    for i, start in enumerate(np.flatnonzero(mask).tolist()):
        F[start, ...] = values[i, ...]


def sum_to_numpy(F, axis):
    """Return sums over axes as a numpy array of float64."""
    xp = namespace(F)
    return np.asarray(to_numpy(xp.sum(F, axis=axis, dtype=xp.float64)))


def einsum_inner_products(X, Y):
    """Return <X_s, Y_s> for every start s, accumulated in float64.

    `linalg.inner_products` splits long arrays among threads, and sums float64 by BLAS. The last
    bits of its results differ.
    """
    xp = namespace(X)
    if xp is np:
        return np.einsum("skn,skn->s", X, Y, dtype=np.float64)
    return np.asarray(to_numpy(xp.sum(xp.astype(X * Y, xp.float64), axis=(1, 2))))


@dataclass(frozen=True)
class SparseTensor:
    """Sparse matrix of torch whose entries are stored in the order of rows and of columns.

    Attributes
    ----------
    shape : tuple of int
    data : tensor of shape (n_stored,)
        Values, in the order of rows.
    places : tuple of tensors of shape (n_stored,)
        Rows and columns of the values.
    ends : tuple of tensors of shapes (n + 1,) and (p + 1,)
        Positions at which the entries of every row, and of every column, begin and end.
    by_column : tensor of shape (n_stored,)
        Positions of the entries in the order of columns.
    is_transposed : bool
        Whether this is the transpose.
    """

    shape: Any
    data: Any
    places: Any
    ends: Any
    by_column: Any
    is_transposed: bool = False

    @classmethod
    def of(cls, X, device):
        """Convert a CSR matrix to a sparse matrix of torch."""
        if device.library != "torch":
            raise TypeError(
                f"X must be dense and without NaN if it is an array of {device.library}: "
                "use torch for sparse arrays."
            )
        numbers = type(X)((np.arange(X.nnz), X.indices, X.indptr), shape=X.shape)
        by_column = numbers.tocsc()
        rows, columns, data = stored_entries(X)
        move = partial(to_device, there=device)
        return cls(
            shape=X.shape,
            data=move(data),
            places=(move(rows), move(columns)),
            ends=(move(X.indptr), move(by_column.indptr)),
            by_column=move(by_column.data),
        )

    @property
    def T(self):  # noqa: N802 - as in numpy
        """The transpose."""
        return replace(
            self, shape=self.shape[::-1], is_transposed=not self.is_transposed
        )

    def __matmul__(self, F):
        """Return the product with F of shape (p, k)."""
        data = self.data
        columns = self.places[1]
        if self.is_transposed:
            data = data[self.by_column]
            columns = self.places[0][self.by_column]
        ends = self.ends[self.is_transposed]
        matrix = namespace(F).sparse_csr_tensor(
            ends, columns, data, self.shape, check_invariants=False
        )
        return matrix @ F

    def iter_products(self, W, H):
        """Yield the entries of WH at the stored ones, as `sparse_products.iter_products` does."""
        rows, columns = self.places
        W = W.contiguous()
        transposed_H = H.T.contiguous()
        size = max(1, chunk_size(W, _CPU_ENTRIES) // H.shape[0])
        for stored in row_blocks(len(rows), size):
            products = W[rows[stored]] * transposed_H[columns[stored]]
            yield stored, products.sum(axis=1)
