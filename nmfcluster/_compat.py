"""The only module that uses private names of scikit-learn and of threadpoolctl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_samples
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _num_samples as num_samples
from threadpoolctl import ThreadpoolController

F = TypeVar("F", bound=Callable[..., Any])

fit_context: Callable[..., Callable[[F], F]] = _fit_context  # which has no types

__all__ = [
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "fit_context",
    "num_samples",
    "take_samples",
]


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
