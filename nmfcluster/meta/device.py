"""Fits of tables on a device: arrays are numpy's outside of runs, and come back where X is."""

import inspect
from collections.abc import Callable
from contextvars import ContextVar, copy_context
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
    to_numpy,
    with_numpy_arrays,
)
from nmfcluster._utils.validation import warn

C = TypeVar("C", bound=type)

_ADVICE = (
    "call sklearn.set_config(array_api_dispatch=True), and it is fitted where it is"
)

_METHODS = (
    *(
        "fit",
        "predict",
        "transform",
        "inverse_transform",
        "top_features",
        "feature_profiles",
    ),
    *(
        "feature_scores",
        "to_frames",
        "without",
        "merged",
        "consensus_matrix",
        "get_indices",
    ),
)

current_device: ContextVar[Device | None] = ContextVar("current_device", default=None)
"""Where the table is that is fitted; None for numpy."""


def on_devices(estimator: C) -> C:
    """Let methods of an estimator take arrays on a device, and return such."""
    for name in _METHODS:
        setattr(estimator, name, _on_device(getattr(estimator, name)))
    return estimator


def _on_device(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that is given arrays of numpy, and whose answer is moved to where X is."""

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        # with nothing of another library, neither handed in nor fitted, it is the method itself
        model = None if method.__name__ == "fit" else getattr(self, "components_", None)
        if not any(map(library_of, (model, *args, *kwargs.values()))):
            return method(self, *args, **kwargs)
        if method.__name__ != "fit":
            check_is_fitted(self)
        # what was handed in becomes numpy's, but it is noted where the table was
        bound = inspect.signature(method).bind(self, *args, **kwargs)
        given, dispatched = bound.arguments, get_config()["array_api_dispatch"]
        X: Any = given.get("X")
        there = Device.of(X) if dispatched else None
        if library_of(X) and not dispatched:
            if "cpu" not in str(X.device).lower():
                raise TypeError(
                    f"X must be numpy's, or on the CPU, got {X.device}: {_ADVICE}."
                )
            warn(f"X becomes an array of numpy: {_ADVICE}.")
        given.update(
            (name, to_numpy(value)) for name, value in given.items() if name != "self"
        )
        # a fit makes its runs there, and what it found is moved; another answer is of the model
        if method.__name__ == "fit":
            context = copy_context()
            context.run(current_device.set, there)
            context.run(method, *bound.args, **bound.kwargs)
            return _moved(self, there)
        home = Device.of(model) if dispatched else None
        if X is not None and there != home:
            told = f"Inputs passed to {type(self).__name__}.{method.__name__}() must use the same"
            ends = f"{home or 'numpy'} and {there or 'numpy'}"
            raise ValueError(
                f"{told} namespace and device as those of fit(), got {ends}: move X."
            )
        given["self"] = with_numpy_arrays(self)
        return _moved(method(*bound.args, **bound.kwargs), home)

    return called


def _moved(result: Any, there: Device | None) -> Any:
    """Return arrays of numbers, several, or a model that has some, on a device."""
    if there is None:
        return result
    if isinstance(result, tuple):
        return tuple(_moved(part, there) for part in result)
    if isinstance(result, BaseEstimator):
        map_fitted_arrays(result, lambda array: _moved(array, there))
    numbers = isinstance(result, np.ndarray) and result.dtype.kind in "bif"
    return there.moved(result) if numbers else result
