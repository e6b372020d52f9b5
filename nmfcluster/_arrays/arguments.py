"""What a user hands in: numbers and indices, checked; and warnings that point at the user."""

import reprlib
import sys
import warnings
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags

from nmfcluster._arrays import storage
from nmfcluster._compat import MOST, Interval

# Folders whose frames are no user's: the package, and what calls its methods for the user.
_FOLDERS = (Path(__file__).parents[1], *sklearn.__path__, *joblib.__path__, *np.__path__)
_NOT_THE_USER = tuple(f"{folder}/" for folder in _FOLDERS)

_LARGEST = 1e8  # of what data are made by: their counts, of up to three such, are 64-bit integers

#: what determines all that is drawn, see `generator_of`
Seed = int | np.random.RandomState | np.random.Generator | None

#: what is said of pairs where one of these parameters is "precomputed"
_PAIRS = {
    **dict.fromkeys(("metric", "dissimilarity"), "distances"),
    **dict.fromkeys(("affinity", "kernel"), "similarities"),
}


def shown(value: Any) -> str:
    """Return a value and its type as an error message shows them."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def kind_of(value: Any) -> str:
    """Return the name of the type of a value; of a class, which should be an instance, its own."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def counted(n: int, noun: str) -> str:
    """Return a number of things: "1 sample", "2 samples", "3 entries"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n} {noun if n == 1 else plural}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user that led here: the first one outside the package.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and Path(frame.f_code.co_filename).as_posix().startswith(_NOT_THE_USER):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_count(value: Any, name: str, least: int | None = None) -> None:
    """Raise unless a value is an int, at least `least`, and no more than can be counted."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.timedelta64):
        raise TypeError(f"{name} must be an int, got {shown(value)}.")
    if int(value) > MOST:
        raise ValueError(f"{name} must be at most {MOST}, got {shown(value)}.")
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")


def check_number(
    value: Any, name: str, low: float, high: float = _LARGEST, closed: str = "left"
) -> None:
    """Raise unless a value is a number of a range, which is closed at the left, or as told."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {shown(value)}.")
    allowed = Interval(Real, low, high, closed=closed)
    if not allowed.is_satisfied_by(value):
        raise ValueError(f"{name} must be {allowed}, got {value}.")


def generator_of(random_state: Any) -> np.random.RandomState:
    """Return the generator of a seed; raise an error that names the parameter.

    That of a Generator, which scikit-learn does not take, is made of a number drawn from it.
    """
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**32))
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        allowed = "an int from 0 to 2**32 - 1, a RandomState, a Generator or None"
        raise ValueError(f"random_state must be {allowed}, got {shown(random_state)}.") from error


def last_step(estimator: Any) -> tuple[str, Any]:
    """Return the estimator at the end of a pipeline, and the prefix that its parameters have."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def pairwise_input(estimator: Any, X: Any = None) -> str | None:
    """Return whether an estimator is given "distances" or "similarities" of all pairs, or neither.

    It says so itself by a parameter, or by scikit-learn's tag. A pipeline is asked by its first
    step; where only its last one wants pairs, those before may make them out of features, or out
    of other pairs: then it is `X` that tells, a symmetric matrix of pairs.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, sparse matrix}, default=None
        What it is given, where that is known.
    """
    first, last = estimator, last_step(estimator)[1]
    while isinstance(first, Pipeline):
        first = next((step for _, step in first.steps if step not in (None, "passthrough")), None)
    kind = _wanted_pairs(first)
    if kind in ("distances", "similarities") or (kind or _wanted_pairs(last)) is None:
        return kind
    X = np.asarray(X) if isinstance(X, list | tuple) or hasattr(X, "columns") else X
    table = storage.is_sparse(X) or isinstance(X, np.ndarray)  # and no container of several
    square = table and X.ndim == 2 and X.shape[0] == X.shape[1] and X.dtype.kind in "biuf"
    if kind is None and not (square and storage.asymmetry(X * 1.0) <= 1e-6 * storage.largest(X)):
        return None
    return "distances" if square and storage.looks_like_distances(X) else "similarities"


def _wanted_pairs(step: Any) -> str | None:
    """Return what `pairwise_input` does of a single step; "pairs" where it does not say of what."""
    for name, kind in _PAIRS.items():
        value = getattr(step, name, None)
        if isinstance(value, str) and value.startswith("precomputed"):
            return kind if value == "precomputed" else "distances"  # of nearest neighbours
    has_tags = hasattr(step, "__sklearn_tags__") and not isinstance(step, type)
    return "pairs" if has_tags and get_tags(step).input_tags.pairwise else None


def positions(key: Any, n: int, noun: str, owner: str) -> np.ndarray:
    """Return the positions, from 0, that a key names on an axis.

    Parameters
    ----------
    key : slice, array-like of int or bool, or None
        Negative numbers count from the end. None: all positions.
    n : int
        Length of the axis.
    noun : str
        What the axis consists of, to name it in an error message: "row".
    owner : str
        What has the axis: "a SimilarityStack".

    Returns
    -------
    ndarray of int
    """
    if key is None:
        return np.arange(n)
    if isinstance(key, slice):
        try:
            return np.arange(n)[key]
        except (TypeError, ValueError) as error:
            must = f"a slice of the {noun}s of {owner} must be of integers, the step not 0"
            raise type(error)(f"{must}, got {key!r}.") from None
    try:
        named = np.asarray(key)
    except (TypeError, ValueError):  # lists of different lengths
        named = np.empty((0, 0))
    if named.ndim == 1 and not len(named):
        return np.empty(0, dtype=np.intp)
    if named.ndim != 1 or named.dtype.kind not in "iub":
        hint = f" For one {noun} say [{key}]." if isinstance(key, Integral) else ""
        allowed = "a list or an array of integers, a mask or a slice"
        raise TypeError(f"{noun}s of {owner} must be named by {allowed}, got {shown(key)}.{hint}")
    if named.dtype.kind == "b":
        if len(named) != n:
            must = f"a mask of the {noun}s of {owner} must have {counted(n, 'entry')}"
            raise ValueError(f"{must}, got {len(named)}.")
        return np.flatnonzero(named)
    if (bad := (named >= n) | (named < -n)).any():
        raise ValueError(f"{noun} {named[bad][0]} is not there: {owner} has {counted(n, noun)}.")
    named = named.astype(np.intp)  # a smaller type could not hold the sum
    return np.where(named < 0, named + n, named)


def normalised_weights(weights: Any, n_partitions: int) -> np.ndarray:
    """Return nonnegative weights of partitions, scaled to sum to 1; equal ones for None."""
    if weights is None:
        return np.full(n_partitions, 1 / n_partitions)
    try:
        read = np.asarray(list(weights), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"weights must be one number a partition, got {shown(weights)}.") from None
    finite = read.shape == (n_partitions,) and np.isfinite(read).all()
    if not finite or (read < 0).any() or read.sum() <= 0:
        wanted = f"{n_partitions} nonnegative numbers, one a partition, finite and not all 0"
        raise ValueError(f"weights must be {wanted}; got {shown(weights)} of shape {read.shape}.")
    return read / read.sum()
