"""Code that depends on versions of other libraries, or uses their private names."""

import sys
import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.metadata import distributions
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import sklearn
from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing as take_samples
from sklearn.utils._array_api import _convert_to_numpy, get_namespace
from sklearn.utils._param_validation import HasMethods as HasMethods
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import (
    InvalidParameterError as InvalidParameterError,
)
from sklearn.utils._param_validation import RealNotInt as RealNotInt
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.parallel import delayed
from threadpoolctl import ThreadpoolController

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
except ImportError:  # scikit-learn < 1.9

    class CallbackSupport:  # type: ignore[no-redef]
        """Empty base class, as this scikit-learn has no callbacks."""


F = TypeVar("F", bound=Callable[..., Any])

# names that are re-exported, besides those imported `as` themselves
__all__ = ["CallbackSupport", "take_samples", "validate_parameter_constraints"]

MAX_COUNT = 2**31 - 1  # largest integer parameter: a loop of more steps never ends


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Return scikit-learn's decorator of `fit` with types, so that `fit` keeps its signature."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


@cache
def array_functions(library):
    """Return the array API namespace of a library; cached, as the look-up is slow."""
    with config_context(array_api_dispatch=True):
        return get_namespace(sys.modules[library].asarray(0.0))[0]


def to_host(array, library):
    """Return an array of a library, on any device, as a numpy array."""
    return np.asarray(_convert_to_numpy(array, sys.modules[library]))


class Interval(_Interval):
    """Interval of numbers that excludes booleans, timedeltas, fractions and huge integers.

    scikit-learn's own class accepts True as 1 and any int, and compares numpy's timedeltas.
    """

    def is_satisfied_by(self, val):
        """Return whether a value is in the interval."""
        too_large = isinstance(val, int) and abs(val) > sys.float_info.max
        number = isinstance(val, int | float | np.number)  # not a Fraction
        if too_large or not number or isinstance(val, bool | np.timedelta64):
            return False
        return bool(super().is_satisfied_by(val))


def at_least(lowest):
    """Return the constraint of an integer parameter that is at least `lowest`."""
    return Interval(Integral, lowest, MAX_COUNT, closed="both")


#: constraints of the parameters that several estimators share
COUNT = at_least(1)
FRACTION = Interval(Real, 0, 1, closed="neither")
_SEEDS = Interval(Integral, 0, 2**32 - 1, closed="both")
RANDOM_STATE = [_SEEDS, np.random.RandomState, np.random.Generator, None]
_MAX_JOBS = 2**16  # largest number of threads or processes; no machine starts more
N_JOBS = [
    Interval(Integral, 1, _MAX_JOBS, closed="both"),
    Interval(Integral, -_MAX_JOBS, -1, closed="both"),
    None,
]


#: names under which scikit-learn keeps callbacks in an estimator during a fit
CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def begin_callbacks(estimator):
    """Notify the callbacks of an estimator, if it has any, that its fit begins."""
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator)


def callback_context(estimator):
    """Return scikit-learn's context of the callbacks of a running fit, or None."""
    return getattr(estimator, CALLBACKS[0], None)


class TakesSparse:
    """Mixin that sets scikit-learn's tag of estimators that accept sparse matrices."""

    def __sklearn_tags__(self):
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


def with_current_config(function):
    """Wrap a function so that another process calls it with scikit-learn's settings of this one.

    scikit-learn's own `Parallel` also passes these settings and the filters of warnings.
    """
    wrapper = delayed(function)()[0]
    if not hasattr(wrapper, "with_config_and_warning_filters"):  # scikit-learn < 1.7
        return wrapper.with_config(get_config())
    filters = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    return wrapper.with_config_and_warning_filters(get_config(), filters)


@lru_cache(maxsize=1)
def _libraries(n_modules):
    """Return the libraries with threads; cached, as the look-up takes 1 to 2 ms."""
    return ThreadpoolController()


def threaded_libraries(user_api):
    """Return the loaded libraries of a kind; searched for again after new imports."""
    return _libraries(len(sys.modules)).select(user_api=user_api)


def set_blas_threads(libraries, number=None):
    """Set the number of threads of libraries in the whole process: `number`, or each its own.

    In threadpoolctl 3.8, a library obeys only the first thread that set its number, as long as
    that thread lives. A fit in another thread would not be limited, so the original function is
    called.
    """
    for library, own in libraries:
        set_number = getattr(library, "_real_set_num_threads", library.set_num_threads)
        set_number(own if number is None else number)


def show_versions() -> None:
    """Print the versions of this package, Python and its libraries, and the threads in use.

    Examples
    --------
    >>> import nmfcluster
    >>> nmfcluster.show_versions()  # doctest: +ELLIPSIS
    nmfcluster: ...
    """
    installed = {found.name: found.version for found in distributions()}
    # libraries that scikit-learn does not list
    for library in ("nmfcluster", "polars", "pyarrow", "dask", "anndata", "torch"):
        print(f"{library}: {installed.get(library, 'not installed')}")
    sklearn.show_versions()
