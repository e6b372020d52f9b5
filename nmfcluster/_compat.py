"""The only module that imports private names of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_samples
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _num_samples as num_samples

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
