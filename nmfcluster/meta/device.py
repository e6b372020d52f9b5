"""Fits on a device such as a GPU: only the runs use it, and results return to the device of X."""

import inspect
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nmfcluster._utils.array_api import (
    Device,
    library_of,
    map_fitted_arrays,
    to_device,
    to_numpy,
    with_numpy_arrays,
)
from nmfcluster._utils.validation import warn

C = TypeVar("C", bound=type)

_ADVICE = "call sklearn.set_config(array_api_dispatch=True) to fit it on its device"

_METHODS = (
    "fit",
    "predict",
    "transform",
    "inverse_transform",
    "components_of",
    "top_features",
    "feature_profiles",
    "feature_scores",
    "to_frames",
    "without",
    "merged",
    "consensus_matrix",
    "get_indices",
)

current_device: ContextVar[Device | None] = ContextVar("current_device", default=None)
"""Device of the X that is fitted; None for numpy."""


def on_devices(estimator):
    """Let methods of an estimator take and return arrays on a device."""
    for name in _METHODS:
        setattr(estimator, name, _on_device(getattr(estimator, name)))
    return estimator


def _on_device(method):
    """Return a method that converts its arguments to numpy, and moves its result back."""
    name = method.__name__
    is_fit = name == "fit"

    @wraps(method)
    def called(self, *args, **kwargs):
        # without arrays of another library, passed or fitted, call the method itself
        fitted = None if is_fit else getattr(self, "components_", None)
        if not any(map(library_of, [fitted, *args, *kwargs.values()])):
            return method(self, *args, **kwargs)
        if not is_fit:
            check_is_fitted(self)
        # convert the arguments to numpy, and note the device of X
        bound = inspect.signature(method).bind(self, *args, **kwargs)
        X: Any = bound.arguments.get("X")
        is_dispatched = get_config()["array_api_dispatch"]
        there = Device.of(X) if is_dispatched else None
        if library_of(X) and not is_dispatched:
            if "cpu" not in str(X.device).lower():
                raise TypeError(
                    f"X must be a numpy array or on the CPU, got {X.device}: {_ADVICE}."
                )
            warn(f"X was converted to a numpy array: {_ADVICE}.")
        for argument, value in bound.arguments.items():
            bound.arguments[argument] = to_numpy(value)
        # runs of a fit use the device of X; other results are moved to the device of the model
        if not is_fit:
            home = Device.of(fitted) if is_dispatched else None
            if X is not None and there != home:
                raise ValueError(
                    f"Inputs passed to {type(self).__name__}.{name}() must use the same "
                    "namespace and device as those of fit(), got "
                    f"{home or 'numpy'} and {there or 'numpy'}: move X to that of fit()."
                )
            there = home
            bound.arguments["self"] = with_numpy_arrays(self)
        token = current_device.set(there if is_fit else None)
        try:
            result = method(*bound.args, **bound.kwargs)
        finally:
            current_device.reset(token)
        return _moved(self if is_fit else result, there)

    return called


def _moved(result, there):
    """Return an array of numbers, a tuple of arrays, or a model with arrays on a device."""
    if there is None:
        return result
    if isinstance(result, tuple):
        return tuple(_moved(part, there) for part in result)
    if isinstance(result, BaseEstimator):
        map_fitted_arrays(result, lambda array: _moved(array, there))
    numbers = isinstance(result, np.ndarray) and result.dtype.kind in "bif"
    return to_device(result, there) if numbers else result
