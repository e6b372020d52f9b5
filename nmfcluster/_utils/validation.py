"""Checks of numbers, keys and tables that users pass, and warnings that point at their code.

Tables that numpy would misread are refused. Two tables of the same samples are matched by the
names in their index. If one of them has no index, or the default of pandas, 0, 1, 2, ..., they are
matched by position.
"""

import re
import reprlib
import sys
import warnings
from collections import Counter
from contextlib import suppress
from copy import copy
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_random_state, get_tags

from nmfcluster._compat import (
    Interval,
    InvalidParameterError,
    at_least,
    take_samples,
)
from nmfcluster._utils import storage
from nmfcluster._utils.array_api import to_numpy
from nmfcluster._utils.storage import FLOATS

# modules of clusterers that declare whether they take features or pairs of samples
_DECLARING = ("sklearn.cluster", "sklearn.mixture", "nmfcluster", "sklearn.pipeline")

# Folders of code that is not the user's: this package, and libraries that call its methods.
_FOLDERS = (
    Path(__file__).parents[1],
    *sklearn.__path__,
    *joblib.__path__,
    *np.__path__,
)
_NOT_THE_USER = tuple(f"{folder}/" for folder in _FOLDERS)

# Titles of columns that name rows, and the number of rows from which a column 0, 1, 2, ... counts
# as one that numbers them.
_ID_TITLE = re.compile(r"(.*[ _.-])?(id|ids|index|idx)|unnamed: 0", re.IGNORECASE)
_MIN_COUNTED = 10

# Largest parameter of generated data. Counts are products of up to three such numbers, and must
# be 64-bit integers.
_MAX_NUMBER = 1e8

#: type of `random_state`, see `make_rng`
Seed = int | np.random.RandomState | np.random.Generator | None

#: what the entries of X are if one of these parameters is "precomputed"
_PAIRWISE_PARAMETERS = {
    **dict.fromkeys(("metric", "dissimilarity"), "distances"),
    **dict.fromkeys(("affinity", "kernel"), "similarities"),
}


def format_value(value):
    """Return a value and its type as an error message shows them."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def type_name(value):
    """Return the name of the type of a value; for a class, "the class" and its own name."""
    return (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else type(value).__name__
    )


def require_instance(estimator):
    """Raise if an estimator, or the last step of a pipeline, is a class."""
    step = last_step(estimator)[1]
    if isinstance(step, type):
        raise TypeError(
            f"estimator must be an instance, such as {step.__name__}(...), not the class."
        )


def format_count(n, noun):
    """Return a number of things: "1 sample", "2 samples", "3 entries"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n} {noun if n == 1 else plural}"


def warn(message, category=UserWarning):
    """Warn at the line of the user's code that led here, the first one outside the package.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
    """
    frame = sys._getframe(1)
    level = 2
    while frame.f_back:
        path = Path(frame.f_code.co_filename).as_posix()
        if not path.startswith(_NOT_THE_USER):
            break
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def check_count(value, name, least=1):
    """Check that a count is an int from `least` to `MAX_COUNT`, and return it as Python's int.

    Small integers of numpy would wrap around.
    """
    _check_allowed(value, name, at_least(least))
    return int(value)


def check_number(value, name, high=_MAX_NUMBER, closed="left"):
    """Raise unless a value is a number from 0 to `high`, with the ends that `closed` includes."""
    _check_allowed(value, name, Interval(Real, 0, high, closed=closed))


def _check_allowed(value, name, allowed):
    """Raise unless a value satisfies a constraint of scikit-learn."""
    if not allowed.is_satisfied_by(value):
        raise InvalidParameterError(
            f"{name} must be {allowed}, got {format_value(value)}."
        )


def make_rng(random_state):
    """Return the RandomState of a seed, or raise an error that names the parameter.

    scikit-learn does not accept a Generator, so a number drawn from it becomes the seed.
    """
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**32))
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be an int from 0 to 2**32 - 1, a RandomState, a Generator or None, "
            f"got {format_value(random_state)}."
        ) from error


def last_step(estimator):
    """Return the estimator at the end of a pipeline, and the prefix of its parameters."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def pairwise_input(estimator, X=None):
    """Return "distances" or "similarities" if an estimator takes those of all pairs, else None.

    An estimator declares it by a parameter, or by scikit-learn's tag. In a pipeline the first step
    decides. If only the last step takes pairs, earlier steps may compute them from features, or
    from other pairs. Then `X` decides: it holds pairs if it is a symmetric matrix.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, sparse matrix}, default=None
        Input of the estimator, if it is known.
    """
    first = estimator
    while isinstance(first, Pipeline):
        steps = [step for _, step in first.steps if step not in (None, "passthrough")]
        first = steps[0] if steps else None
    kind = _pairwise_kind(first)
    if kind in ("distances", "similarities"):
        return kind
    if kind is None and _pairwise_kind(last_step(estimator)[1]) is None:
        return None
    X = _square_matrix(X)
    if kind is None and not _is_symmetric(X):
        return None
    are_distances = X is not None and storage.looks_like_distances(X)
    return "distances" if are_distances else "similarities"


def _square_matrix(X):
    """Return X as an array or a sparse matrix; None if it is not square and numeric."""
    if isinstance(X, list | tuple) or hasattr(X, "columns"):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of several lengths
            return None
    is_square = (
        (isinstance(X, np.ndarray) or storage.is_sparse(X))  # not a container of arrays
        and X.ndim == 2
        and X.shape[0] == X.shape[1]
        and X.dtype.kind in _NUMERIC_KINDS
    )
    return X if is_square else None


def _is_symmetric(X):
    """Return whether X, from `_square_matrix`, is symmetric; False if it has NaN."""
    if X is None:
        return False
    return storage.asymmetry(X * 1.0) <= 1e-6 * storage.max_abs(X)


def may_take_pairs(estimator, X):
    """Return whether X is symmetric, and a clusterer does not declare whether it takes features.

    Clusterers of scikit-learn and of this package declare it, and so do those with a parameter such
    as `metric`.
    """
    for step in _clusterers_in(estimator):
        modules = [each.__module__ for each in type(step).__mro__]
        is_declared = any(name.startswith(_DECLARING) for name in modules)
        is_declared |= any(hasattr(step, name) for name in _PAIRWISE_PARAMETERS)
        if not is_declared and pairwise_input(estimator, X) is None:
            return _is_symmetric(_square_matrix(X))
    return False


def _clusterers_in(estimator):
    """Return the clusterers in an estimator: its last step and its parameters, also in lists."""
    found = [last_step(estimator)[1]]
    for value in estimator.get_params().values():
        found += value if isinstance(value, list) else [value]
    return [each for each in found if hasattr(each, "fit_predict")]


def check_accepts_parts(estimator, X, rule):
    """Raise if an estimator cannot be fitted to some of the samples in X.

    Parameters
    ----------
    estimator : estimator
    X : object
        All samples.
    rule : str
        What is allowed for the estimator, the beginning of the error message.
    """
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    parameters = [
        parameter
        for each in (estimator, *_clusterers_in(estimator))
        for parameter in each.get_params().items()
    ]
    for name, value in parameters:
        shape = getattr(value, "shape", ())
        if isinstance(value, list) and isinstance((*value, None)[0], Real | str | list):
            shape = (len(value),)
        if isinstance(shape, tuple) and shape[:1] == (n_samples,):
            raise ValueError(
                f"{rule}: its parameter {name!r} has an entry for each of the {n_samples} "
                "samples, and cannot be split with them."
            )
    if may_take_pairs(estimator, X):
        raise ValueError(
            f"{rule}: X is symmetric, like a matrix of pairs of samples, and {estimator!r} does "
            "not declare whether it takes such a matrix. If it does, set input_tags.pairwise to "
            "True in its __sklearn_tags__."
        )


def _pairwise_kind(step):
    """Return `pairwise_input` of a single step, or "pairs" if the kind is not declared."""
    for name, kind in _PAIRWISE_PARAMETERS.items():
        value = getattr(step, name, None)
        if value == "precomputed":
            return kind
        if isinstance(value, str) and value.startswith("precomputed"):
            return "distances"  # a graph of nearest neighbours
    has_tags = hasattr(step, "__sklearn_tags__") and not isinstance(step, type)
    return "pairs" if has_tags and get_tags(step).input_tags.pairwise else None


def axis_positions(key, n, noun, owner):
    """Return the positions, from 0, that a key selects on an axis.

    Parameters
    ----------
    key : slice, array-like of int or bool, or None
        Negative numbers count from the end. None: all positions.
    n : int
        Length of the axis.
    noun : str
        Word for an element of the axis in an error message, such as "row".
    owner : str
        Word for the object with the axis, such as "a SimilarityStack".

    Returns
    -------
    ndarray of int
    """
    everything = np.arange(n)
    named = slice(None) if key is None else key
    if not isinstance(named, slice):
        try:
            named = np.asarray(key)
        except (TypeError, ValueError):  # lists of different lengths
            named = np.empty((0, 0))
        if named.shape == (0,):
            named = slice(0)
        elif named.ndim != 1 or named.dtype.kind not in "iub":
            hint = ""
            if isinstance(key, Integral):
                hint = f" For a single {noun}, pass [{key}]."
            raise TypeError(
                f"{noun}s of {owner} must be selected by a list or an array of integers, a mask or "
                f"a slice, got {format_value(key)}.{hint}"
            )
    try:
        return everything[named]
    except (IndexError, TypeError, ValueError):
        got = reprlib.repr(key)
        if isinstance(named, slice):
            message = (
                f"{got} cannot select {noun}s of {owner}: start, stop and step must be integers "
                "or None, and the step must not be 0."
            )
        elif named.dtype.kind == "b":
            message = (
                f"a mask of {noun}s of {owner} must have {format_count(n, 'entry')}, one for each "
                f"{noun}, but {got} has {len(named)}."
            )
        else:
            outside = np.setdiff1d(named, np.arange(-n, n))[0]
            message = (
                f"{noun} {outside} is out of range: {owner} has {format_count(n, noun)}, and "
                f"positions must be at least {-n} and below {n}."
            )
        raise ValueError(message) from None


def normalize_weights(weights, n_partitions):
    """Return nonnegative weights of partitions, scaled to sum to 1; equal ones for None."""
    if weights is None:
        return np.full(n_partitions, 1 / n_partitions)
    array = _read_weights(weights, "weights", n_partitions, 1, "partition")
    return array / array.sum()


# Largest size of a Dask collection, in bytes, that is gathered with a warning: it fits into the
# memory of most machines.
_MAX_DASK_BYTES = 2**30
_NUMERIC_KINDS = "biuf"  # kinds of numpy's numeric dtypes
_SEVERAL_TABLES = (
    "If these are several tables of the same samples, join them with numpy.hstack, or pass them as "
    "views to SimilarityFusionNMF"
)
_SEQUENCES = (
    "To cluster time series or other sequences, compute a distance matrix D, such as that of "
    "dynamic time warping, and pass numpy.exp(-(D / numpy.median(D)) ** 2) "
    "to SSNMFClusterer or NMFConsensus with affinity='precomputed'."
)


def read_matrix(X, name="X", check=None, **options):
    """Return a data matrix as floats, dense or CSR; every numeric input is read by this.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n, p)
        It is not changed.
    name : str, default="X"
        What to call it in an error message.
    check : callable, default=None
        Function that checks X, with `options`; scikit-learn's `check_array` by default.
    **options : dict
    """
    X = check_readable(to_numpy(X), name)
    if check is None:
        check = partial(check_array, input_name=name)
    options = {"accept_sparse": "csr", "dtype": FLOATS, **options}
    try:
        matrix = check(X, **options)
    except ValueError as error:
        message = str(error)
        if "contains NaN" in message:
            message = (
                f"Input {name} contains NaN: drop or impute missing values (e.g. SimpleImputer "
                "in a pipeline)."
            )
        elif "with dim" in message:
            message += f" {_SEQUENCES}"
        else:
            raise
        raise ValueError(message) from None
    return canonical_csr(matrix)


def check_shape(X, name, n_columns, n_rows=None):
    """Raise unless a table has `n_columns` columns and `n_rows` rows; None allows any number."""
    rows, columns = (*X.shape, 1)[:2]  # a list of texts is one column
    for got, wanted, noun in ((columns, n_columns, "column"), (rows, n_rows, "row")):
        if wanted not in (None, got):
            raise ValueError(
                f"{name} must have {format_count(wanted, noun)}, got {got}."
            )


def check_readable(X, name="X"):
    """Raise if numpy or scikit-learn would misread a matrix, or raise an unclear error.

    Returns it unchanged, or as an array if it has no shape, such as a list of rows.

    Parameters
    ----------
    X : object
        Its values are checked elsewhere, once it is an array.
    name : str, default="X"
        What to call it in an error message.

    Raises
    ------
    TypeError
        If it is a container of matrices.
    ValueError
        If it holds text or dates, or is an array with masked entries.
    """
    if X is None:
        raise ValueError(f"{name} must be one table of numbers, got None.")
    check_container(X, name, "one table of numbers")
    if isinstance(X, list | tuple) and X:
        if all(len(getattr(x, "shape", ())) == 2 for x in X):
            raise TypeError(
                f"{name} must be one table of numbers, got a {type(X).__name__} of {len(X)} "
                f"tables. {_SEVERAL_TABLES}. {_SEQUENCES}"
            )
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        check_columns_differ(X, name)
        for column, dtype in zip(X.columns, X.dtypes, strict=True):
            # extracting a column takes longer than checking its dtype
            if getattr(dtype, "kind", "O") not in _NUMERIC_KINDS:
                _check_numbers(np.asarray(X[column]), f"column {column!r} of {name}")
        return X
    array = as_array(X, name)
    if sp.issparse(array) and array.ndim != 2:
        raise ValueError(
            f"{name} must be a table of rows and columns, got shape {array.shape}."
        )
    if isinstance(array, np.ndarray):
        _check_numbers(array, name)
    return array


def as_array(X, name):
    """Return X as an array, unless it has a shape; raise if its rows differ in length."""
    try:
        return X if hasattr(X, "shape") else np.asarray(X)
    except ValueError:
        raise ValueError(
            f"{name} must be a table with rows of equal length. {_SEQUENCES}"
        ) from None


def _check_numbers(array, name):
    """Raise if an array holds anything but real numbers."""
    kind = array.dtype.kind
    if kind in _NUMERIC_KINDS:
        return
    for value in array.ravel():
        if kind == "O":
            with suppress(TypeError, ValueError, OverflowError):
                float(np.nan if value is None else value)  # None is a missing value
                continue
        text = (
            f"{name} must hold real numbers, got {format_value(value)} "
            f"of dtype {array.dtype}"
        )
        if isinstance(value, list | tuple | np.ndarray) or hasattr(value, "iloc"):
            raise TypeError(f"{text}. {_SEQUENCES}")
        if isinstance(value, dict | set):
            raise TypeError(
                f"{text}: an argument must be a string of a number, or a number."
            )
        raise ValueError(
            f"{text}: drop it, or encode it, for example by make_column_transformer with "
            "OneHotEncoder. To cluster columns of categories, use NMFConsensus with "
            "affinity='partitions'. Complex data not supported."
        )


def canonical_csr(X):
    """Return a CSR matrix without duplicate entries, and with 32-bit indices if these suffice.

    scikit-learn's k-means misreads duplicate entries, and refuses 64-bit indices. Anything else is
    returned as it is. `X` itself is not changed.
    """
    if not sp.issparse(X) or X.format != "csr":
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    kind = storage.index_dtype(max(*X.shape, X.nnz) - 1)
    if X.indices.dtype != kind:
        X = copy(X)  # shares the values
        X.indices = X.indices.astype(kind)
        X.indptr = X.indptr.astype(kind)
    return X


def check_container(X, name, wanted):
    """Raise if numpy cannot read a container directly, or if entries in it are masked.

    Parameters
    ----------
    X : object
    name : str
        What to call it in an error message.
    wanted : str
        What the input should be, for the message.
    """
    check_sparse_indices(X, name)
    if hasattr(X, "__dask_graph__"):
        cure = (
            "nmfcluster.dask has NMFConsensus for tables of labels, base_partitions for features, "
            "and predict and transform for models fitted to a part"
        )
        # the size of data frames and of some arrays is unknown
        if hasattr(X, "chunks") and X.nbytes > _MAX_DASK_BYTES:
            allowed = f"{_MAX_DASK_BYTES / 2**20:.0f} MiB"
            raise ValueError(
                f"{name} must be in memory, got a Dask collection of {X.nbytes / 2**20:.3g} MiB, "
                f"more than the {allowed} that are gathered automatically: "
                f"{cure}. To gather it, pass {name}.compute()."
            )
        warn(f"{name} is a Dask collection, and was gathered into memory: {cure}.")
    if isinstance(X, type | str | bytes):
        raise TypeError(f"{name} must be {wanted}, got {format_value(X)}.")
    library = type(X).__module__.partition(".")[0]
    cure = ""
    if hasattr(X, "obs") and hasattr(X, "to_df"):
        cure = "adata.X or adata.to_df(), or see nmfcluster.anndata"
    elif hasattr(X, "to_memory"):  # on disk, as X of a backed AnnData
        cure = "X.to_memory()"
    elif (
        (isinstance(X, dict) and not sp.issparse(X))
        or type(X).__name__ == "LazyFrame"
        or library.startswith("pyarrow")
    ):
        cure = "an array or a data frame"
    if cure:
        got = f"a {library} {type(X).__name__}"
        if isinstance(X, dict):
            got = f"a {type(X).__name__} of {len(X)}"
        raise TypeError(
            f"{name} must be {wanted}, got {got}: pass {cure}. {_SEVERAL_TABLES}."
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        n_masked = format_count(np.ma.count_masked(X), "masked entry")
        raise ValueError(
            f"{name} is a masked array with {n_masked}, and masks are not supported: drop these "
            "samples, or impute the features (e.g. SimpleImputer); in a table of labels, NaN "
            "marks a missing label."
        )


def check_sparse_indices(X, name):
    """Raise if a sparse matrix has an entry outside of its shape.

    SciPy checks only the lengths of its arrays, and scikit-learn only their dtypes. A conversion
    would then write outside the memory of the matrix.
    """
    form = X.format if sp.issparse(X) else ""
    try:
        if form == "coo":
            sp.coo_array((X.data, X.coords), shape=X.shape)
        elif form in ("csr", "csc", "bsr", "lil"):
            # check a shallow copy, as the check cuts off parts of arrays that no entry uses
            copy(X.tocsr() if form == "lil" else X).check_format()
    except ValueError as error:
        raise ValueError(
            f"{name} must be a sparse matrix with all entries in its shape {X.shape}, "
            f"but {error}: rebuild it from coordinates."
        ) from error


def check_columns_differ(X, name):
    """Raise if a data frame has no columns, or several with the same name."""
    if len(X.columns) == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    for column, n_times in Counter(X.columns).items():
        if n_times > 1:
            raise ValueError(
                f"{name} must have distinct column names, but {column!r} occurs more than "
                "once: rename it, or pass X.to_numpy()."
            )


def warn_of_ids(X, name="X"):
    """Warn of columns of a data frame that name or number its rows, and are no features."""
    # only in pandas, the columns are an index
    if row_names(getattr(X, "columns", None)) is None or not len(X):
        return
    is_whole = [getattr(dtype, "kind", "O") in "iu" for dtype in X.dtypes]
    positions = np.flatnonzero(is_whole)
    # the first and the last row show which columns to check, as there may be very many
    ends = X.iloc[[0, -1], positions].to_numpy(dtype=float, na_value=np.nan)
    for position, (first, last) in zip(positions, ends.T, strict=True):
        column = X.columns[position]
        is_named = _ID_TITLE.fullmatch(str(column)) is not None
        is_count = len(X) >= _MIN_COUNTED and first in (0, 1)
        is_count = is_count and last - first == len(X) - 1
        if not (is_named or is_count):
            continue
        values = X.iloc[:, position].to_numpy(dtype=float, na_value=np.nan)
        all_differ = (np.diff(np.sort(values)) > 0).all()  # False with NaN
        is_count = is_count and (np.diff(values) == 1).all()
        if is_count or (is_named and all_differ):
            warn(
                f"column {column!r} of {name} has distinct whole numbers, like ids of rows, and is "
                f"used as a feature. If it holds ids, pass X.set_index({column!r})."
            )


def row_names(table):
    """Return the index of a pandas data frame or series, or an index itself; None for others."""
    index = table if hasattr(table, "get_indexer") else getattr(table, "index", None)
    return index if hasattr(index, "get_indexer") else None


class SavesIndices:
    """Mixin that pickles indices of pandas as arrays, which any format can store."""

    #: names of attributes that hold the index of a data frame, or None
    _indices: tuple[str, ...] = ()

    def __getstate__(self):
        held: Any = super().__getstate__()
        state = dict(held)
        for name in self._indices:
            index = state.get(name)
            if index is not None:
                state[name] = np.asarray(index), list(index.names)
        return state

    def __setstate__(self, state):
        for name in self._indices:
            if state.get(name) is not None:
                values, titles = state[name]
                state[name] = import_module("pandas").Index(values).set_names(titles)
        restore = getattr(super(), "__setstate__", self.__dict__.update)
        restore(state)


def column_names(table):
    """Return the column names of a pandas or polars data frame as an index; None for others.

    For polars, pandas makes the index; without pandas, columns are matched by position.
    """
    columns = getattr(table, "columns", None)
    if isinstance(columns, list) and find_spec("pandas"):
        return import_module("pandas").Index(columns)
    return row_names(columns)


def sample_names(table):
    """Return `row_names`, but None for 0, 1, 2, ..., which are positions."""
    index = row_names(table)
    return None if index is None or _is_default(index) else index


def row_order(own, other, name, owner="X", noun="sample"):
    """Return the rows of another table in the order of `own`, or None if they have it already.

    Parameters
    ----------
    own, other : pandas Index or None
        Names of the rows of both.
    name : str
        Name of the other table in messages.
    owner : str, default="X"
        Name of the table in messages.
    noun : str, default="sample"
        Word for the named objects in messages.

    Raises
    ------
    ValueError
        If both have an index, and do not have the same names.
    """
    if own is None or other is None or own.equals(other):
        return None
    if len(own) == len(other) and own.is_unique and other.is_unique:
        order = np.asarray(other.get_indexer(own))
        if (order >= 0).all():
            warn(
                f"{name} has the {noun}s of {owner} in another order, and was reordered by its "
                "index. To match them by position, pass them without an index."
            )
            return order
    if _is_default(own) or _is_default(other):
        return None
    message = f"{name} and {owner} have different names of {noun}s"
    for index, others, title in ((own, other, owner), (other, own, name)):
        missing = index[~index.isin(others)]
        if len(missing):
            examples = missing[:3].tolist()
            message += f"; {title} alone has {len(missing)}, such as {examples}"
        if not index.is_unique:
            message += f"; some names in {title} occur twice"
    raise ValueError(
        f"{message}: pass both with the same names, such as the {own.isin(other).sum()} that both "
        f"have, or arrays, which are matched by position.{cure_of_types(own, owner, other, name)}"
    )


def cure_of_types(own, owner, other, name):
    """Return the advice for names that are equal only as text; "" for others."""
    if own.isin(other).any() or set(map(str, own)).isdisjoint(map(str, other)):
        return ""
    return (
        f" The names are equal as text, but {type(own[0]).__name__} in {owner} and "
        f"{type(other[0]).__name__} in {name}: convert an index by .astype(str)."
    )


def _is_default(index):
    """Return whether an index holds positions, as the default index of pandas does."""
    numbers = np.asarray(index)
    positions = np.arange(len(numbers))
    return numbers.dtype.kind in "iu" and np.array_equal(numbers, positions)


def reorder_samples(own, table, name):
    """Return values of samples, in one table or in a list, in the order of the samples' names.

    Parameters
    ----------
    own : pandas Index or None
        Names of the samples.
    table : object, or list of objects
        Samples are selected as scikit-learn does.
    name : str
        Its name in messages.
    """
    if isinstance(table, list | tuple):
        return [
            part if row_names(part) is None else reorder_samples(own, part, name)
            for part in table
        ]
    order = row_order(own, row_names(table), name)
    return table if order is None else take_samples(table, order)


def read_weights(weights, rows, least, n_samples):
    """Return the weight of every sample, (n_samples,); None if all are equal.

    `rows` are the names of the samples, if X is a data frame. At least `least` weights must be
    above 0.
    """
    if weights is None:
        return None
    weights = reorder_samples(rows, weights, "sample_weight")
    return _read_weights(weights, "sample_weight", n_samples, least, "sample")


def _read_weights(weights, name, n, least, noun):
    """Return n nonnegative weights, (n,), of which at least `least` are above 0."""
    array = read_matrix(
        weights,
        name,
        dtype=np.float64,
        accept_sparse=False,
        # all else is refused below
        ensure_2d=False,
        ensure_min_samples=0,
        ensure_all_finite=False,
    )
    is_valid = np.isfinite(array) & (array >= 0)
    if array.shape != (n,) or not is_valid.all():
        raise ValueError(
            f"{name} must be {n} finite numbers of at least 0, one per {noun}, got "
            f"{format_value(weights)} of shape {array.shape}."
        )
    n_counting = np.count_nonzero(array)
    if n_counting < least:
        raise ValueError(
            f"{name} must be above zero for at least {format_count(least, noun)}, but is so only "
            f"for {n_counting}."
        )
    return array


def reorder_columns(own, table, name, owner):
    """Return a data frame with its columns in the order of the names that `owner` has."""
    order = row_order(own, column_names(table), name, owner, "column")
    return table if order is None else take_samples(table, order, axis=1)


def columns_in_row_order(table, name):
    """Return a data frame with columns in the order of its rows, if both have the same names."""
    own = row_names(table)
    columns = column_names(table)
    if own is None or columns is None or not own.is_unique or set(own) != set(columns):
        return table
    return reorder_columns(own, table, name, "its rows")
