"""Check Dask arrays, apply functions to their blocks, and predict with fitted estimators."""

from functools import partial
from math import isnan
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from sklearn.utils.validation import check_is_fitted

from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.validation import check_shape, format_value

_ELSE = "use X.map_blocks for other functions"


def read_rows(X):
    """Check a Dask array, and return it in blocks of whole rows.

    Parameters
    ----------
    X : dask.array.Array

    Raises
    ------
    TypeError
        If it is not a Dask array, or holds strings or objects.
    ValueError
        If it does not have two dimensions, or has blocks of unknown size.
    """
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask array in blocks of rows, got {type(X).__name__}: "
            "use dask.array.from_array, or to_dask_array(lengths=True) for a data frame; for "
            "data in memory, use the estimators of nmfcluster itself."
        )
    if X.dtype.kind not in "biuf" or not isinstance(X._meta, np.ndarray):
        raise TypeError(
            f"X must hold numbers in numpy arrays, got {type(X._meta).__name__} of "
            f"{X.dtype}: encode strings as numbers first, e.g. by map_blocks and pandas.factorize, "
            "and pass map_blocks the new dtype."
        )
    if any(isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(
            "X must have blocks of known sizes: call X.compute_chunk_sizes() first."
        )
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"X must be a table with rows and columns, got shape {X.shape}."
        )
    # drop blocks without rows, which a filter may leave
    return X.rechunk((tuple(size for size in X.chunks[0] if size), -1))


def on_block(function, value, **options):
    """Call a function under the settings of a fit: one BLAS thread, and 0 for underflow."""
    with one_blas_thread(), np.errstate(under="ignore"):
        return function(value, **options)


_on_block = delayed(on_block, pure=False)


def of_blocks(X, function, with_first=False):
    """Return the results of a function for every block, as delayed objects.

    Parameters
    ----------
    X : dask.array.Array
    function : callable
        Called with a block and, if `with_first`, the number of its first row as `first`. It is
        sent to every worker once, with the data that it holds.
    with_first : bool, default=False
        Whether the function takes `first`.
    """
    function = delayed(function, traverse=False)  # one node of the graph
    blocks = X.to_delayed().ravel()
    first = 0
    parts = []
    for block, n_rows in zip(blocks, X.chunks[0], strict=True):
        options = {"first": first} if with_first else {}
        parts.append(_on_block(function, block, **options))
        first += n_rows
    return parts


def by_blocks(X, function, dtype, shape=()):
    """Return the results of a function for every block as a Dask array, one row for each row of X.

    Parameters
    ----------
    X : dask.array.Array
    function : callable
        Called with a block, see `of_blocks`.
    dtype : dtype
    shape : tuple of int
        Shape of the result for one row.
    """
    parts = []
    for result, n_rows in zip(of_blocks(X, function), X.chunks[0], strict=True):
        parts.append(da.from_delayed(result, (n_rows, *shape), dtype))
    return da.concatenate(parts)


def reduced(parts, merge):
    """Merge delayed parts in pairs, and compute the result on the scheduler.

    A worker holds only the parts that it merges. With 50 partitions, 200,000 distinct rows take
    10 MB.
    """
    while len(parts) > 1:
        starts = range(0, len(parts), 2)
        parts = [_on_block(merge, parts[i : i + 2]) for i in starts]
    return compute(parts[0])[0]


# --- fitted estimators -----------------------------------------------------------------


def predict(model: Any, X: da.Array) -> da.Array:
    """Return the cluster of every row of a Dask array, predicted by a model in memory.

    The model is sent to every worker once. Labels are computed only when the result is read.

    Parameters
    ----------
    model : fitted estimator with `predict`
        An estimator of this package or of scikit-learn.
    X : dask.array.Array of shape (n_samples, n_features)
        Input of the model's `predict`, in blocks of rows.

    Returns
    -------
    dask.array.Array of shape (n_samples,), int64

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `X` is not a Dask array, or the model is not an estimator with this method.
    ValueError
        If `X` does not have the columns of the fit, or has blocks of unknown size.

    Examples
    --------
    >>> import dask.array as da
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.dask import predict
    >>> X = da.random.default_rng(0).uniform(size=(1000, 8), chunks=(300, 8))
    >>> model = NMFMetaCluster(n_clusters=2, n_estimators=3, random_state=0).fit(X[:200].compute())
    >>> predict(model, X).shape
    (1000,)
    """
    return by_blocks(
        _checked(model, X, "predict"), partial(_predicted, model), np.int64
    )


def transform(model: Any, X: da.Array) -> da.Array:
    """Return `transform` of every row of a Dask array, such as memberships, by a model in memory.

    Parameters
    ----------
    model : fitted estimator with `transform`
    X : dask.array.Array of shape (n_samples, n_features)
        Input of the model's `transform`, in blocks of rows.

    Returns
    -------
    dask.array.Array of shape (n_samples, n_clusters)
        The dtype is the one that the model returns for input of the dtype of `X`.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `X` is not a Dask array, or the model is not an estimator with this method.
    ValueError
        If `X` does not have the columns of the fit, or has blocks of unknown size.

    Examples
    --------
    >>> import dask.array as da
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.dask import transform
    >>> X = da.random.default_rng(0).uniform(size=(1000, 8), chunks=(300, 8))
    >>> model = NMFMetaCluster(n_clusters=2, n_estimators=3, random_state=0).fit(X[:200].compute())
    >>> transform(model, X).shape
    (1000, 2)
    """
    X = _checked(model, X, "transform")
    result = model.transform(np.ones((1, X.shape[1]), dtype=X.dtype))
    of_one = np.asarray(result)
    if of_one.dtype.kind not in "biuf" or of_one.ndim != 2:
        raise TypeError(
            f"model must transform X to a dense matrix, got {type(result).__name__}: {_ELSE}."
        )
    return by_blocks(X, partial(_transform, model), of_one.dtype, of_one.shape[1:])


def _transform(model, block):
    return np.asarray(model.transform(np.asarray(block)))


def _checked(model, X, method):
    if (
        isinstance(model, type)
        or not hasattr(model, "fit")
        or not hasattr(model, method)
    ):
        raise TypeError(
            f"model must be a fitted estimator with `{method}`, got {format_value(model)}."
        )
    check_is_fitted(model)
    X = read_rows(X)
    check_shape(X, "X", getattr(model, "n_features_in_", X.shape[1]))
    return X


def _predicted(model, block):
    labels = np.asarray(model.predict(np.asarray(block)))
    if labels.dtype.kind not in "biu" or labels.ndim != 1:
        raise TypeError(
            "model must predict one integer per row, as clusterers do, got "
            f"{labels.dtype} of shape {labels.shape}: {_ELSE}."
        )
    return labels.astype(np.int64)
