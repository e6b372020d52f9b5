"""The only module that imports private names of scikit-learn."""

from __future__ import annotations

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions

__all__ = ["HasMethods", "Interval", "RealNotInt", "StrOptions", "fit_context"]
