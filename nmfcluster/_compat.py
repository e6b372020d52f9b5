"""The only module that uses private names of scikit-learn and of threadpoolctl."""

from __future__ import annotations

import sys
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_samples
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    RealNotInt,
    StrOptions,
)
from sklearn.utils.validation import _num_samples as num_samples
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "HasMethods",
    "Interval",
    "RaisedLater",
    "RealNotInt",
    "StrOptions",
    "blas_threads",
    "check_kinds",
    "fit_context",
    "hides_errors",
    "num_samples",
    "set_blas_threads",
    "take_samples",
]

_MOST = 2**31 - 1  # of anything that is counted: more never ends


fit_context: Callable[..., Callable[[F], F]] = _fit_context  # which has no types


def check_kinds(estimator: Any) -> None:
    """Raise for parameters that pass for numbers and are none, and for counts without an end.

    scikit-learn takes True for 1, and any int for a count.
    """
    allowed = estimator._parameter_constraints
    for name, value in estimator.get_params(deep=False).items():
        constraints = allowed.get(name, [])
        words = {kind for kind in constraints if isinstance(kind, str)}
        number = any(isinstance(kind, Interval) or kind is Integral for kind in constraints)
        number = (number or "random_state" in words) and not words & {"boolean", "verbose"}
        what = f"The {name!r} parameter of {type(estimator).__name__} must"
        if isinstance(value, bool | np.bool_ | np.timedelta64) and number:
            kind = type(value).__name__
            raise InvalidParameterError(f"{what} be a number. Got {value!r} ({kind}).")
        counted = any(getattr(kind, "type", None) is Integral for kind in constraints)
        if counted and isinstance(value, int | np.integer) and value > _MOST:
            raise InvalidParameterError(f"{what} be at most {_MOST}. Got {value}.")
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise InvalidParameterError(
                f"{what} be a number that a float can hold, got one of {len(str(value))} digits."
            )


def hides_errors(depth: int) -> bool:
    """Return whether a scorer, `depth` calls above this one, is called by a search.

    A search of scikit-learn, unless error_score="raise", makes NaN of what a scorer raises.
    """
    frame = sys._getframe(depth + 1)
    ours = frame.f_globals.get("__name__") == "sklearn.model_selection._validation"
    return ours and frame.f_locals.get("error_score", "raise") != "raise"


class RaisedLater:
    """In place of a score: raises an error when a search takes the number out of it."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def item(self) -> float:
        """Raise the error, as one that searches let through."""
        kind = TypeError if isinstance(self._error, TypeError) else RuntimeError
        raise kind(str(self._error)) from self._error


def blas_threads() -> list[tuple[Any, int]]:
    """Return the BLAS libraries that are loaded, and the number of threads that each may use."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [(library, library.num_threads) for library in libraries]


def set_blas_threads(numbers: list[tuple[Any, int]]) -> None:
    """Set how many threads each library may use, for the whole process.

    In threadpoolctl 3.8 a library obeys the thread alone that first set its number, as long as it
    lives, and takes no notice of others: a fit in another thread would not be limited.
    """
    for library, number in numbers:
        getattr(library, "_real_set_num_threads", library.set_num_threads)(number)
