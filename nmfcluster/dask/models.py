"""Fitted estimators on Dask arrays: one call for every block of rows."""

from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._utils.validation import check_shape, format_value
from nmfcluster.dask.tables import by_blocks, read_rows

_ELSE = "X.map_blocks calls anything else"


def predict(model: Any, X: da.Array) -> da.Array:
    """Return the cluster of every row of a Dask array, by a model that is in memory.

    The model is sent to every worker once. Nothing is computed before the result is asked for.

    Parameters
    ----------
    model : fitted estimator with `predict`
        One of this package's, or of scikit-learn's.
    X : dask.array.Array of shape (n_samples, n_features)
        What `predict` of the model takes, in blocks of rows.

    Returns
    -------
    dask.array.Array of shape (n_samples,), int64

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `X` is no Dask array, or the model no estimator that does this.
    ValueError
        If its width is not that of what the model was fitted to, or it has blocks of unknown size.

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
    """Return what a model that is in memory makes of every row of a Dask array, its memberships.

    Parameters
    ----------
    model : fitted estimator with `transform`
    X : dask.array.Array of shape (n_samples, n_features)
        What `transform` of the model takes, in blocks of rows.

    Returns
    -------
    dask.array.Array of shape (n_samples, n_clusters)
        Of the type that the model returns for the type of `X`.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If `X` is no Dask array, or the model no estimator that does this.
    ValueError
        If its width is not that of what the model was fitted to, or it has blocks of unknown size.

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
            f"model must make a dense table of numbers of X, got {type(result).__name__}: {_ELSE}."
        )
    return by_blocks(X, partial(_transform, model), of_one.dtype, of_one.shape[1:])


def _transform(model, block):
    return np.asarray(model.transform(np.asarray(block)))


def _checked(model, X, method: str) -> da.Array:
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
            "model must predict one integer a row, as clusterers do, got "
            f"{labels.dtype} of shape {labels.shape}: {_ELSE}."
        )
    return labels.astype(np.int64)
