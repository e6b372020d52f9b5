"""The only module that imports private names of scikit-learn."""

from __future__ import annotations

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as take_samples
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "fit_context",
    "num_samples",
    "take_samples",
]
