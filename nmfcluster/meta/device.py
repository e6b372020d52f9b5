"""Fits of tables on a device: arrays are numpy's outside of runs, and come back where X is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator

from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.device import Device, is_foreign, to_numpy

C = TypeVar("C", bound=type)

_ADVICE = "call sklearn.set_config(array_api_dispatch=True), and it is fitted where it is"

current_device: ContextVar[Device | None] = ContextVar("current_device", default=None)
"""Where the table is that is fitted; None for numpy."""


def on_devices(*methods: str) -> Callable[[C], C]:
    """Return a decorator of estimators whose methods take arrays on a device, and return such."""

    def decorated(estimator: C) -> C:
        for name in methods:
            setattr(estimator, name, _on_device(getattr(estimator, name)))
        return estimator

    return decorated


def on_host(model: Any) -> Any:
    """Return a model with arrays of numpy."""
    twin = copy(model)
    _replace_arrays(twin, to_numpy)
    return twin


def _on_device(method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        model = None if method.__name__ == "fit" else getattr(self, "components_", None)
        if not any(map(is_foreign, (model, *args, *kwargs.values()))):
            return method(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs)
        given, fits = bound.arguments, method.__name__ == "fit"
        there = _device_of(given.get("X"))
        given.update((name, to_numpy(value)) for name, value in given.items() if name != "self")
        if fits:
            before = current_device.set(there)
            try:
                method(*bound.args, **bound.kwargs)
            finally:
                current_device.reset(before)
            return _moved(self, there)
        if "X" in given and get_config()["array_api_dispatch"]:
            _check_same(self, method.__name__, there, Device.of(model))
        given["self"] = on_host(self)
        return _moved(method(*bound.args, **bound.kwargs), Device.of(model))

    return called


def _device_of(X: Any) -> Device | None:
    """Return where a table is; None, with a warning, if it is to become numpy's."""
    if get_config()["array_api_dispatch"] or not is_foreign(X):
        return Device.of(X)
    try:
        to_numpy(X)
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"X is no array of numpy, and not on the CPU: {_ADVICE}.") from error
    warn(f"X becomes an array of numpy: {_ADVICE}.")
    return None


def _check_same(model: Any, method: str, there: Device | None, fitted: Device | None) -> None:
    if there != fitted:
        told = f"Inputs passed to {type(model).__name__}.{method}() must use the same namespace"
        ends = " and ".join(str(end or "numpy") for end in (fitted, there))
        raise ValueError(f"{told} and device as those passed to fit(), got {ends}: move one.")


def _moved(result: Any, there: Device | None) -> Any:
    """Return arrays of numbers, several, or a model that has some, on a device."""
    if there is None:
        return result
    if isinstance(result, tuple):
        return tuple(_moved(part, there) for part in result)
    if isinstance(result, BaseEstimator):
        _replace_arrays(result, lambda array: _moved(array, there))
    numbers = isinstance(result, np.ndarray) and result.dtype.kind in "bif"
    return there.moved(result) if numbers else result


def _replace_arrays(model: Any, function: Callable[[Any], Any]) -> None:
    """Replace fitted arrays by a function of them."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    arrays = {k: v for k, v in fitted.items() if isinstance(v, np.ndarray) or is_foreign(v)}
    vars(model).update({name: function(value) for name, value in arrays.items()})
