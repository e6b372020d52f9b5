"""What a user hands in: numbers and indices, checked; and warnings that point at the user.

What a user hands in as a table: refused where numpy would misread it, matched by its index.

Two tables of the same samples are matched by the names in their index. Positions count where a
side has no index, or that of pandas for tables without one, 0, 1, 2, ...
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

# Folders whose frames are no user's: the package, and what calls its methods for the user.
_FOLDERS = (
    Path(__file__).parents[1],
    *sklearn.__path__,
    *joblib.__path__,
    *np.__path__,
)
_NOT_THE_USER = tuple(f"{folder}/" for folder in _FOLDERS)

# Titles of columns that name rows, and the number of rows from which on 0, 1, 2, ... number them.
_ID_TITLE = re.compile(r"(.*[ _.-])?(id|ids|index|idx)|unnamed: 0", re.IGNORECASE)
_MIN_COUNTED = 10

# Largest number by which data are generated: counts, products of up to three such
# numbers, are 64-bit integers.
_MAX_NUMBER = 1e8

#: what determines all that is drawn, see `make_rng`
Seed = int | np.random.RandomState | np.random.Generator | None

#: what is said of pairs where one of these parameters is "precomputed"
_PAIRWISE_PARAMETERS = {
    **dict.fromkeys(("metric", "dissimilarity"), "distances"),
    **dict.fromkeys(("affinity", "kernel"), "similarities"),
}


def format_value(value):
    """Return a value and its type as an error message shows them."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def type_name(value):
    """Return the name of the type of a value; of a class, which should be an instance, its own."""
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
    """Warn at the line of the user that led here: the first one outside the package.

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
    """Return a count as Python's int, as numpy's small ones wrap around.

    It must be an int, at least `least`, and no more than can be counted.
    """
    _check_allowed(value, name, at_least(least))
    return int(value)


def check_number(value, name, high=_MAX_NUMBER, closed="left"):
    """Raise unless a value is a number from 0 to `high`; 0 alone is in it, or as `closed` says."""
    _check_allowed(value, name, Interval(Real, 0, high, closed=closed))


def _check_allowed(value, name, allowed):
    """Raise unless a value satisfies a constraint of scikit-learn."""
    if not allowed.is_satisfied_by(value):
        raise InvalidParameterError(
            f"{name} must be {allowed}, got {format_value(value)}."
        )


def make_rng(random_state):
    """Return the generator of a seed; raise an error that names the parameter.

    scikit-learn takes no Generator: a number drawn from one is the seed then.
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
    """Return the estimator at the end of a pipeline, and the prefix that its parameters have."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def pairwise_input(estimator, X=None):
    """Return "distances" or "similarities" if an estimator takes those of all pairs, else None.

    An estimator declares it by a parameter, or by scikit-learn's tag. In a pipeline the first step
    decides. If only the last step takes pairs, the steps before may compute them from features, or
    from other pairs: then `X` decides, which is one of pairs if it is a symmetric matrix.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, sparse matrix}, default=None
        Its input, if that is known.
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
    """Return X as an array or a sparse matrix; None if it is not a square one of numbers."""
    if isinstance(X, list | tuple) or hasattr(X, "columns"):
        try:
            X = np.asarray(X)
        except ValueError:  # rows of several lengths
            return None
    is_square = (
        (isinstance(X, np.ndarray) or storage.is_sparse(X))  # not several of them
        and X.ndim == 2
        and X.shape[0] == X.shape[1]
        and X.dtype.kind in _NUMERIC_KINDS
    )
    return X if is_square else None


def _is_symmetric(X):
    """Return whether X, as `_square_matrix` returns it, is symmetric; with NaN it is not."""
    if X is None:
        return False
    return storage.asymmetry(X * 1.0) <= 1e-6 * storage.max_abs(X)


def may_take_pairs(estimator, X):
    """Return whether X is symmetric, and a clusterer does not declare that it takes features.

    Clusterers of scikit-learn and of this package do, and so do those with a metric or the like.
    """
    for step in _clusterers_in(estimator):
        modules = [each.__module__ for each in type(step).__mro__]
        is_declared = any(name.startswith(_DECLARING) for name in modules)
        is_declared |= any(hasattr(step, name) for name in _PAIRWISE_PARAMETERS)
        if not is_declared and pairwise_input(estimator, X) is None:
            return _is_symmetric(_square_matrix(X))
    return False


def _clusterers_in(estimator):
    """Return the clusterers that an estimator is, ends in or has as parameters, also in lists."""
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
        What is allowed for it, as the error message says first.
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
                "samples, and is not cut with them."
            )
    if may_take_pairs(estimator, X):
        raise ValueError(
            f"{rule}: X is symmetric, as pairs of samples are, and {estimator!r} does not declare "
            "whether it takes pairs, which are cut in rows and columns. If it does, let its "
            "__sklearn_tags__ set input_tags.pairwise to True."
        )


def _pairwise_kind(step):
    """Return `pairwise_input` of a single step, "pairs" if it does not declare which."""
    for name, kind in _PAIRWISE_PARAMETERS.items():
        value = getattr(step, name, None)
        if value == "precomputed":
            return kind
        if isinstance(value, str) and value.startswith("precomputed"):
            return "distances"  # of nearest neighbours
    has_tags = hasattr(step, "__sklearn_tags__") and not isinstance(step, type)
    return "pairs" if has_tags and get_tags(step).input_tags.pairwise else None


def axis_positions(key, n, noun, owner):
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


# Bytes of a Dask collection that are gathered with a warning: as most hold.
_MAX_DASK_BYTES = 2**30
_NUMERIC_KINDS = "biuf"  # kinds of numpy's types
_SEVERAL_TABLES = (
    "Several tables of the same samples are put side by side with numpy.hstack, or are views of "
    "SimilarityFusionNMF"
)
_SEQUENCES = (
    "Time series and other sequences are clustered by their distances: compute a distance matrix "
    "D, such as that of dynamic time warping, and pass numpy.exp(-(D / numpy.median(D)) ** 2) "
    "to SSNMFClusterer or NMFConsensus with affinity='precomputed'."
)


def read_matrix(X, name="X", check=None, **options):
    """Return a data matrix as floats, dense or CSR: every input of numbers is read by this.

    Parameters
    ----------
    X : {array-like, sparse matrix, data frame} of shape (n, p)
        Not changed.
    name : str, default="X"
        What to call it in an error message.
    check : callable, default=None
        What checks it, with `options`; scikit-learn's `check_array` by default.
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
    """Raise unless a table that was read has as many columns, and as many rows; None: any."""
    rows, columns = (*X.shape, 1)[:2]  # texts by themselves are one column
    for got, wanted, noun in ((columns, n_columns, "column"), (rows, n_rows, "row")):
        if wanted not in (None, got):
            raise ValueError(
                f"{name} must have {format_count(wanted, noun)}, got {got}."
            )


def check_readable(X, name="X"):
    """Raise if a matrix is of a kind that numpy, or scikit-learn, would misread or name badly.

    Returns it as it is, or as an array if it has no shape, as a list of rows.

    Parameters
    ----------
    X : object
        Its values are checked elsewhere, once it is an array.
    name : str, default="X"
        What to call it in an error message.

    Raises
    ------
    TypeError
        If it is a container of matrices that has to be opened first.
    ValueError
        If it holds text or dates, or is a masked array of which something is masked.
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
            # to take a column out takes longer than to look at its type
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
            f"{name} must be a table whose rows are of one length. {_SEQUENCES}"
        ) from None


def _check_numbers(array, name):
    """Raise if an array holds anything but real numbers."""
    kind = array.dtype.kind
    if kind in _NUMERIC_KINDS:
        return
    for value in array.ravel():
        if kind == "O":
            with suppress(TypeError, ValueError, OverflowError):
                float(np.nan if value is None else value)  # None is one that is missing
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
            f"{text}: leave it out, or encode it, as make_column_transformer does with "
            "OneHotEncoder; columns of categories are clustered by NMFConsensus with "
            "affinity='partitions'. Complex data not supported."
        )


def canonical_csr(X):
    """Return a CSR matrix with every entry once and indices of 32 bits where these suffice.

    scikit-learn's k-means takes entries that are stored in parts for several, and no wide indices.
    Anything else is returned as it is. `X` itself is not changed.
    """
    if not sp.issparse(X) or X.format != "csr":
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    kind = storage.index_dtype(max(*X.shape, X.nnz) - 1)
    if X.indices.dtype != kind:
        X = copy(X)  # which shares the values
        X.indices = X.indices.astype(kind)
        X.indptr = X.indptr.astype(kind)
    return X


def check_container(X, name, wanted):
    """Raise if a container has to be opened before numpy can read it, or hides some entries.

    Parameters
    ----------
    X : object
    name : str
        What to call it in an error message.
    wanted : str
        What it should be.
    """
    check_sparse_indices(X, name)
    if hasattr(X, "__dask_graph__"):
        cure = (
            "nmfcluster.dask has NMFConsensus for tables of labels, base_partitions for features, "
            "and predict and transform for models fitted to a part"
        )
        # a data frame does not know its size, nor some arrays theirs
        if hasattr(X, "chunks") and X.nbytes > _MAX_DASK_BYTES:
            allowed = f"{_MAX_DASK_BYTES / 2**20:.0f} MiB"
            raise ValueError(
                f"{name} must be in memory, got a Dask collection of {X.nbytes / 2**20:.3g} MiB, "
                f"more than the {allowed} that are gathered without being asked for: "
                f"{cure}. {name}.compute() gathers it."
            )
        warn(f"{name} is a Dask collection, which is gathered into memory: {cure}.")
    if isinstance(X, type | str | bytes):
        raise TypeError(f"{name} must be {wanted}, got {format_value(X)}.")
    library = type(X).__module__.partition(".")[0]
    cure = ""
    if hasattr(X, "obs") and hasattr(X, "to_df"):
        cure = "adata.X or adata.to_df(), or see nmfcluster.anndata"
    elif hasattr(X, "to_memory"):  # on a disk, as X of an AnnData that is backed
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
            f"{name} must be {wanted}, got {got}: give {cure}. {_SEVERAL_TABLES}."
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        n_masked = format_count(np.ma.count_masked(X), "masked entry")
        raise ValueError(
            f"{name} is a masked array with {n_masked}, and masks are not read: leave out these "
            "samples, or put in numbers, as SimpleImputer does for features; -1 in a table of "
            "labels says that a label is missing."
        )


def check_sparse_indices(X, name):
    """Raise if a sparse matrix has an entry outside of its shape.

    SciPy looks at the lengths of its parts alone, and scikit-learn at their types: a conversion
    would then write to memory that belongs to others.
    """
    form = X.format if sp.issparse(X) else ""
    try:
        if form == "coo":
            sp.coo_array((X.data, X.coords), shape=X.shape)
        elif form in ("csr", "csc", "bsr", "lil"):
            # of a copy, which shares the parts: the check cuts off what no entry uses
            copy(X.tocsr() if form == "lil" else X).check_format()
    except ValueError as error:
        raise ValueError(
            f"{name} must be a sparse matrix with all entries in its shape {X.shape}, "
            f"but {error}: build it anew from coordinates."
        ) from error


def check_columns_differ(X, name):
    """Raise if a data frame has no columns, or several of one name."""
    if len(X.columns) == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    for column, n_times in Counter(X.columns).items():
        if n_times > 1:
            raise ValueError(
                f"{name} must have columns whose names differ, but {column!r} occurs more than "
                "once: rename it, or give X.to_numpy()."
            )


def warn_of_ids(X, name="X"):
    """Warn of the columns of a data frame that name or number its rows: they are no features."""
    # the columns of pandas have an index, too
    if row_names(getattr(X, "columns", None)) is None or not len(X):
        return
    is_whole = [getattr(dtype, "kind", "O") in "iu" for dtype in X.dtypes]
    positions = np.flatnonzero(is_whole)
    # the first and the last row say which columns are looked at: there may be very many
    ends = X.iloc[[0, -1], positions].to_numpy(dtype=float, na_value=np.nan)
    for position, (first, last) in zip(positions, ends.T, strict=True):
        column = X.columns[position]
        is_named = _ID_TITLE.fullmatch(str(column)) is not None
        is_count = len(X) >= _MIN_COUNTED and first in (0, 1)
        is_count = is_count and last - first == len(X) - 1
        if not (is_named or is_count):
            continue
        values = X.iloc[:, position].to_numpy(dtype=float, na_value=np.nan)
        all_differ = (np.diff(np.sort(values)) > 0).all()  # no step to NaN is above 0
        is_count = is_count and (np.diff(values) == 1).all()
        if is_count or (is_named and all_differ):
            warn(
                f"column {column!r} of {name} has whole numbers that all differ, as ids of rows "
                f"do, and is taken for a feature; set_index({column!r}) makes it the index."
            )


def row_names(table):
    """Return the index of a pandas data frame or series, or itself; None for anything else."""
    index = table if hasattr(table, "get_indexer") else getattr(table, "index", None)
    return index if hasattr(index, "get_indexer") else None


class SavesIndices:
    """Mixin that saves indices of pandas as arrays, which any format can hold."""

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
    """Return the index of the columns of a data frame, of pandas or polars; None for others.

    That of a frame of polars is made by pandas: without it, columns are taken by position.
    """
    columns = getattr(table, "columns", None)
    if isinstance(columns, list) and find_spec("pandas"):
        return import_module("pandas").Index(columns)
    return row_names(columns)


def sample_names(table):
    """Return what `row_names` does, but None for 0, 1, 2, ...: these are positions."""
    index = row_names(table)
    return None if index is None or _is_default(index) else index


def row_order(own, other, name, owner="X", noun="sample"):
    """Return the rows of another table in the order of a table's rows, or None if they are.

    Parameters
    ----------
    own, other : pandas Index or None
        Names of the rows of both.
    name : str
        What a message calls the other table.
    owner : str, default="X"
        What a message calls the table.
    noun : str, default="sample"
        What it calls what is named.

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
                f"{name} has the {noun}s of {owner} in another order, by the index: they are put "
                f"into that of {owner}. Without an index they are taken by position."
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
            message += f"; some of {title} occur twice"
    raise ValueError(
        f"{message}: give both the same, as the {own.isin(other).sum()} that both have, or "
        f"arrays, which are taken by position.{cure_of_types(own, owner, other, name)}"
    )


def cure_of_types(own, owner, other, name):
    """Return what to do about names that are equal as text alone; nothing about others."""
    if own.isin(other).any() or set(map(str, own)).isdisjoint(map(str, other)):
        return ""
    return (
        f" The names are equal as text, but {type(own[0]).__name__} in {owner} and "
        f"{type(other[0]).__name__} in {name}: .astype(str) of an index makes them text."
    )


def _is_default(index):
    """Return whether an index holds positions, as pandas makes it where none is passed."""
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
        Cut as scikit-learn cuts samples.
    name : str
        What a message calls it.
    """
    if isinstance(table, list | tuple):
        return [
            part if row_names(part) is None else reorder_samples(own, part, name)
            for part in table
        ]
    order = row_order(own, row_names(table), name)
    return table if order is None else take_samples(table, order)


def read_weights(weights, rows, least, n_samples):
    """Return how much every sample counts, (n_samples,); None if all count alike.

    `rows` are the names of the samples, if X is a data frame; `least` of them must count.
    """
    if weights is None:
        return None
    weights = reorder_samples(rows, weights, "sample_weight")
    return _read_weights(weights, "sample_weight", n_samples, least, "sample")


def _read_weights(weights, name, n, least, noun):
    """Return n nonnegative numbers, (n,), of which at least some must be above 0."""
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
            f"{name} must be {n} finite numbers of at least 0, one a {noun}, got "
            f"{format_value(weights)} of shape {array.shape}."
        )
    n_counting = np.count_nonzero(array)
    if n_counting < least:
        raise ValueError(
            f"{name} must be above zero for at least {format_count(least, noun)}, it is for "
            f"{n_counting}."
        )
    return array


def reorder_columns(own, table, name, owner):
    """Return a data frame with its columns in the order of the names that `owner` has."""
    order = row_order(own, column_names(table), name, owner, "column")
    return table if order is None else take_samples(table, order, axis=1)


def columns_in_row_order(table, name):
    """Return a data frame with its columns in the order of its rows, where it is square by them."""
    own = row_names(table)
    columns = column_names(table)
    if own is None or columns is None or not own.is_unique or set(own) != set(columns):
        return table
    return reorder_columns(own, table, name, "its rows")
