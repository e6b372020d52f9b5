"""What depends on other libraries: their versions, and all private names of them in use."""

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
        """Nothing: this scikit-learn has no callbacks."""


F = TypeVar("F", bound=Callable[..., Any])

# names that are re-exported unchanged, beside those imported as themselves
__all__ = ["CallbackSupport", "take_samples", "validate_parameter_constraints"]

MAX_COUNT = 2**31 - 1  # largest integer parameter: a loop of more steps never ends


#: scikit-learn's decorator of `fit`, which has no types there
def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[F], F]:
    """Return scikit-learn's decorator of `fit`, typed: `fit` keeps its signature."""
    return _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)


@cache
def array_functions(library):
    """Return the functions of a library by the array API standard; to look for them takes long."""
    with config_context(array_api_dispatch=True):
        return get_namespace(sys.modules[library].asarray(0.0))[0]


def to_host(array, library):
    """Return an array of a library as numpy's, wherever it is."""
    return np.asarray(_convert_to_numpy(array, sys.modules[library]))


class Interval(_Interval):
    """Numbers from left to right; no truth values, durations nor fractions.

    scikit-learn takes True for 1, any int for a number, and compares with numpy's durations.
    """

    def is_satisfied_by(self, val):
        """Return whether a value is such a number."""
        too_large = isinstance(val, int) and abs(val) > sys.float_info.max
        number = isinstance(val, int | float | np.number)  # a Fraction is none to numpy
        if too_large or not number or isinstance(val, bool | np.timedelta64):
            return False
        return bool(super().is_satisfied_by(val))


def at_least(lowest):
    """Return the constraint of an integer parameter from a number on."""
    return Interval(Integral, lowest, MAX_COUNT, closed="both")


#: scikit-learn constraints of the parameters that several estimators have
COUNT = at_least(1)
FRACTION = Interval(Real, 0, 1, closed="neither")
_SEEDS = Interval(Integral, 0, 2**32 - 1, closed="both")
RANDOM_STATE = [_SEEDS, np.random.RandomState, np.random.Generator, None]
_MAX_JOBS = 2**16  # threads or processes: more than any machine starts
N_JOBS = [
    Interval(Integral, 1, _MAX_JOBS, closed="both"),
    Interval(Integral, -_MAX_JOBS, -1, closed="both"),
    None,
]


#: names under which scikit-learn keeps callbacks in an estimator during a fit
CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def begin_callbacks(estimator):
    """Tell the callbacks of an estimator, if it has any, that its fit begins."""
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator)


def callback_context(estimator):
    """Return scikit-learn's context of the callbacks of a running fit, or None."""
    return getattr(estimator, CALLBACKS[0], None)


class TakesSparse:
    """Tells scikit-learn that an estimator takes sparse matrices."""

    def __sklearn_tags__(self):
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


def with_current_config(function):
    """Return a function that another process calls with scikit-learn's settings of this one.

    Those, and the filters of warnings, are what scikit-learn's own `Parallel` hands over.
    """
    wrapper = delayed(function)()[0]
    if not hasattr(wrapper, "with_config_and_warning_filters"):  # scikit-learn < 1.7
        return wrapper.with_config(get_config())
    filters = getattr(warnings, "_get_filters", lambda: warnings.filters)()
    return wrapper.with_config_and_warning_filters(get_config(), filters)


@lru_cache(maxsize=1)
def _libraries(n_modules):
    """Return the libraries with threads: to look for them takes a millisecond or two."""
    return ThreadpoolController()


def threaded_libraries(user_api):
    """Return the libraries of a kind that are loaded: another one comes with another module."""
    return _libraries(len(sys.modules)).select(user_api=user_api)


def set_blas_threads(libraries, number=None):
    """Set how many threads libraries may use, for the whole process: as told, or as many for all.

    In threadpoolctl 3.8 a library obeys the thread alone that first set its number, as long as it
    lives, and takes no notice of others: a fit in another thread would not be limited.
    """
    for library, own in libraries:
        set_number = getattr(library, "_real_set_num_threads", library.set_num_threads)
        set_number(own if number is None else number)


def show_versions() -> None:
    """Print the versions of this package, of Python and of the libraries, and their threads.

    Examples
    --------
    >>> import nmfcluster
    >>> nmfcluster.show_versions()  # doctest: +ELLIPSIS
    nmfcluster: ...
    """
    installed = {found.name: found.version for found in distributions()}
    # and those which scikit-learn does not know of
    for library in ("nmfcluster", "polars", "pyarrow", "dask", "anndata", "torch"):
        print(f"{library}: {installed.get(library, 'not installed')}")
    sklearn.show_versions()
