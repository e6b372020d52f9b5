"""Arrays of other libraries, as on a GPU, by the array API standard; numpy's are written in place.

Factors of runs are where their table is. What is one number a start, as losses, shares and masks,
is numpy's everywhere.
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

# Entries of gathered rows of factors that are multiplied at a time: a cache of 4 MiB.
_CPU_ENTRIES = 2**20
# Entries that are formed at a time where there is no such cache: 256 MiB.
_DEVICE_ENTRIES = 2**26


def library_of(array):
    """Return the name of the library that an array is of; "" for numpy and others."""
    for kind in type(array).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in _LIBRARIES:
            return library
    return ""


def namespace(array):
    """Return the functions for an array: numpy, or those of its library by the standard."""
    return np if isinstance(array, np.ndarray) else array_functions(library_of(array))


def to_numpy(array):
    """Return an array as numpy's, a sparse one of torch as CSR; anything else as it is."""
    library = library_of(array)
    if not library:
        return array
    try:
        if hasattr(array, "detach"):  # from torch's computation of gradients
            array = array.detach()
        if "sparse" not in str(getattr(array, "layout", "")):
            return to_host(array, library)
        stored = array.to_sparse_csr()
        parts = (stored.values(), stored.col_indices(), stored.crow_indices())
        arrays = tuple(to_host(part, library) for part in parts)
        return sp.csr_array(arrays, shape=tuple(array.shape))
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"An array of {library} cannot be read, {error}; give float32 or float64, dense or "
            "sparse with two dimensions."
        ) from error


def with_numpy_arrays(model):
    """Return a model with fitted arrays of numpy."""
    twin = copy(model)
    map_fitted_arrays(twin, to_numpy)
    return twin


def map_fitted_arrays(model, function):
    """Replace the fitted arrays of a model by a function of them."""
    for name, value in vars(model).copy().items():
        if name.endswith("_") and (isinstance(value, np.ndarray) or library_of(value)):
            setattr(model, name, function(value))


@dataclass(frozen=True)
class Device:
    """Where a table is.

    Attributes
    ----------
    library : str
        Name of the module that its array is of.
    device : object
        What that has as a device.
    """

    library: str
    device: Any

    @classmethod
    def of(cls, array):
        """Return where an array is; None if it is none of another library."""
        library = library_of(array)
        return cls(library, array.device) if library else None


def to_device(array, there):
    """Return a copy of an array of numpy on a device, a CSR matrix as `SparseTensor`.

    It is returned as it is for numpy, which has no device, and None as None.
    """
    if there is None or array is None:
        return array
    if sp.issparse(array):
        return SparseTensor.of(array, there)
    xp = array_functions(there.library)
    return xp.asarray(array, device=there.device, copy=True)


def asarray_like(values, F, dtype=None):
    """Return values of numpy where F is, in their own type or another."""
    if isinstance(F, np.ndarray):
        return values if dtype is None else values.astype(dtype, copy=False)
    return namespace(F).asarray(values, dtype=dtype, device=F.device)


def chunk_size(F, in_cache):
    """Return how many entries are formed at a time where F is: as a cache holds, or many."""
    is_on_cpu = isinstance(F, np.ndarray) or "cpu" in str(F.device).lower()
    return in_cache if is_on_cpu else _DEVICE_ENTRIES


def call_with_out(out, function, *arrays):
    """Return a function of arrays, which numpy writes into one of them."""
    if isinstance(out, np.ndarray):
        function = partial(function, out=out)
    return function(*arrays)


def take_starts(F, mask):
    """Return F for some of the starts, its first axis."""
    if isinstance(F, np.ndarray):
        return F[mask]
    return namespace(F).take(F, asarray_like(np.flatnonzero(mask), F), axis=0)


def contiguous_transpose(F):
    """Return the transpose of a matrix; numpy's in C order."""
    return np.ascontiguousarray(F.T) if isinstance(F, np.ndarray) else F.T


def put_starts(F, mask, values):
    """Set F for some of the starts."""
    if isinstance(F, np.ndarray):
        F[mask] = values
        return
    for i, start in enumerate(np.flatnonzero(mask).tolist()):
        F[start, ...] = values[i, ...]


def sum_to_numpy(F, axis):
    """Return sums over axes, numpy's in float64."""
    xp = namespace(F)
    return np.asarray(to_numpy(xp.sum(F, axis=axis, dtype=xp.float64)))


def einsum_inner_products(X, Y):
    """Return <X_s, Y_s> for every start s, accumulated in float64.

    That of `blocks` shares long arrays out to threads, and sums float64 by BLAS: its last bit is
    another.
    """
    xp = namespace(X)
    if xp is np:
        return np.einsum("skn,skn->s", X, Y, dtype=np.float64)
    return np.asarray(to_numpy(xp.sum(xp.astype(X * Y, xp.float64), axis=(1, 2))))


@dataclass(frozen=True)
class SparseTensor:
    """A sparse matrix of torch, which knows its entries in the order of rows and of columns.

    Attributes
    ----------
    shape : tuple of int
    data : tensor of shape (n_stored,)
        Values, in the order of rows.
    places : tuple of tensors of shape (n_stored,)
        Their rows and columns.
    ends : tuple of tensors of shapes (n + 1,) and (p + 1,)
        Where the entries of every row, and of every column, begin and end.
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
        """Return a CSR matrix as one of torch."""
        if device.library != "torch":
            raise TypeError(
                f"X must be dense and hold no NaN where it is an array of {device.library}: "
                "torch has sparse ones."
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
    def T(self):  # noqa: N802 - as arrays have it
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
        """Yield the entries of WH where this stores one, as `sparse_products.iter_products`."""
        rows, columns = self.places
        W = W.contiguous()
        transposed_H = H.T.contiguous()
        size = max(1, chunk_size(W, _CPU_ENTRIES) // H.shape[0])
        for stored in row_blocks(len(rows), size):
            products = W[rows[stored]] * transposed_H[columns[stored]]
            yield stored, products.sum(axis=1)
