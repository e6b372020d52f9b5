"""What a user hands in: numbers and indices, checked; and warnings that point at the user.

What a user hands in as a table: refused where numpy would misread it, matched by its index.

Two tables of the same samples are matched by the names in their index. Positions count where a
side has no index, or that of pandas for tables without one, 0, 1, 2, ...
"""

import reprlib
import sys
import warnings
from collections import Counter
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

from nmfcluster._compat import MAX_COUNT, Interval, take_samples
from nmfcluster._utils import storage
from nmfcluster._utils.array_api import to_numpy
from nmfcluster._utils.storage import FLOATS

# Folders whose frames are no user's: the package, and what calls its methods for the user.
_FOLDERS = (
    Path(__file__).parents[1],
    *sklearn.__path__,
    *joblib.__path__,
    *np.__path__,
)
_NOT_THE_USER = tuple(f"{folder}/" for folder in _FOLDERS)

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


def format_value(value: Any) -> str:
    """Return a value and its type as an error message shows them."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def type_name(value: Any) -> str:
    """Return the name of the type of a value; of a class, which should be an instance, its own."""
    return (
        f"the class {value.__name__}"
        if isinstance(value, type)
        else type(value).__name__
    )


def format_count(n: int, noun: str) -> str:
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
    while frame.f_back and Path(frame.f_code.co_filename).as_posix().startswith(
        _NOT_THE_USER
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_count(value: Any, name: str, least: int | None = None) -> None:
    """Raise unless a value is an int, at least `least`, and no more than can be counted."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.timedelta64):
        raise TypeError(f"{name} must be an int, got {format_value(value)}.")
    if int(value) > MAX_COUNT:
        raise ValueError(
            f"{name} must be at most {MAX_COUNT}, got {format_value(value)}."
        )
    if least is not None and value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")


def check_number(
    value: Any, name: str, low: float, high: float = _MAX_NUMBER, closed: str = "left"
) -> None:
    """Raise unless a value is a number of a range, which is closed at the left, or as told."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {format_value(value)}.")
    allowed = Interval(Real, low, high, closed=closed)
    if not allowed.is_satisfied_by(value):
        raise ValueError(f"{name} must be {allowed}, got {value}.")


def make_rng(random_state: Any) -> np.random.RandomState:
    """Return the generator of a seed; raise an error that names the parameter.

    That of a Generator, which scikit-learn does not take, is made of a number drawn from it.
    """
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(2**32))
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError) as error:
        allowed = "an int from 0 to 2**32 - 1, a RandomState, a Generator or None"
        raise ValueError(
            f"random_state must be {allowed}, got {format_value(random_state)}."
        ) from error


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
        first = next(
            (step for _, step in first.steps if step not in (None, "passthrough")), None
        )
    kind = _wanted_pairs(first)
    if kind in ("distances", "similarities") or (kind or _wanted_pairs(last)) is None:
        return kind
    X = np.asarray(X) if isinstance(X, list | tuple) or hasattr(X, "columns") else X
    table = storage.is_sparse(X) or isinstance(
        X, np.ndarray
    )  # and no container of several
    square = (
        table and X.ndim == 2 and X.shape[0] == X.shape[1] and X.dtype.kind in "biuf"
    )
    if kind is None and not (
        square and storage.asymmetry(X * 1.0) <= 1e-6 * storage.max_abs(X)
    ):
        return None
    return "distances" if square and storage.looks_like_distances(X) else "similarities"


def _wanted_pairs(step: Any) -> str | None:
    """Return what `pairwise_input` does of a single step; "pairs" where it does not say of what."""
    for name, kind in _PAIRWISE_PARAMETERS.items():
        value = getattr(step, name, None)
        if isinstance(value, str) and value.startswith("precomputed"):
            return (
                kind if value == "precomputed" else "distances"
            )  # of nearest neighbours
    has_tags = hasattr(step, "__sklearn_tags__") and not isinstance(step, type)
    return "pairs" if has_tags and get_tags(step).input_tags.pairwise else None


def axis_positions(key: Any, n: int, noun: str, owner: str) -> np.ndarray:
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
            must = (
                f"a slice of the {noun}s of {owner} must be of integers, the step not 0"
            )
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
        raise TypeError(
            f"{noun}s of {owner} must be named by {allowed}, got {format_value(key)}.{hint}"
        )
    if named.dtype.kind == "b":
        if len(named) != n:
            must = (
                f"a mask of the {noun}s of {owner} must have {format_count(n, 'entry')}"
            )
            raise ValueError(f"{must}, got {len(named)}.")
        return np.flatnonzero(named)
    if (bad := (named >= n) | (named < -n)).any():
        raise ValueError(
            f"{noun} {named[bad][0]} is not there: {owner} has {format_count(n, noun)}."
        )
    named = named.astype(np.intp)  # a smaller type could not hold the sum
    return np.where(named < 0, named + n, named)


def normalize_weights(weights: Any, n_partitions: int) -> np.ndarray:
    """Return nonnegative weights of partitions, scaled to sum to 1; equal ones for None."""
    if weights is None:
        return np.full(n_partitions, 1 / n_partitions)
    try:
        read = np.asarray(list(weights), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"weights must be one number a partition, got {format_value(weights)}."
        ) from None
    finite = read.shape == (n_partitions,) and np.isfinite(read).all()
    if not finite or (read < 0).any() or read.sum() <= 0:
        wanted = (
            f"{n_partitions} nonnegative numbers, one a partition, finite and not all 0"
        )
        raise ValueError(
            f"weights must be {wanted}; got {format_value(weights)} of shape {read.shape}."
        )
    return read / read.sum()


_MAX_DASK_BYTES = (
    2**30
)  # bytes of a Dask collection that are gathered with a warning: as most hold
_NUMERIC_KINDS = "biuf"  # kinds of numpy's types
_SEVERAL_TABLES = (
    "Several tables of the same samples are put side by side with numpy.hstack, or are views of "
    "SimilarityFusionNMF"
)


def read_matrix(X: Any, name: str = "X", check: Any = None, **options: Any) -> Any:
    """Return a table of numbers as floats, dense or CSR: all that is handed in is read by this.

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
    check = partial(check_array, input_name=name) if check is None else check
    try:
        read = check(X, **{"accept_sparse": "csr", "dtype": FLOATS, **options})
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        cure = "leave out what holds it, or put in numbers, as SimpleImputer does in a pipeline"
        raise ValueError(f"Input {name} contains NaN: {cure}.") from None
    return canonical_csr(read)


def check_shape(
    X: Any, name: str, n_columns: int | None, n_rows: int | None = None
) -> None:
    """Raise unless a table that was read has as many columns, and as many rows; None: any."""
    rows, columns = (*X.shape, 1)[:2]  # texts by themselves are one column
    for got, wanted, noun in ((columns, n_columns, "column"), (rows, n_rows, "row")):
        if wanted not in (None, got):
            raise ValueError(
                f"{name} must have {format_count(wanted, noun)}, got {got}."
            )


def check_readable(X: Any, name: str = "X") -> Any:
    """Raise if a table is of a kind that numpy, or scikit-learn, would misread or name badly.

    Returns what was handed in; what has no shape, as a list of rows, as an array.

    Parameters
    ----------
    X : object
        What was handed in. What it holds is checked elsewhere, once it is an array.
    name : str, default="X"
        What to call it in an error message.

    Raises
    ------
    TypeError
        If it is a container of tables that has to be opened first.
    ValueError
        If it holds text or dates, or is a masked array of which something is masked.
    """
    if X is None:
        raise ValueError(f"{name} must be one table of numbers, got None.")
    check_container(X, name, "one table of numbers")
    if (
        isinstance(X, list | tuple)
        and X
        and all(len(getattr(x, "shape", ())) == 2 for x in X)
    ):
        got = f"{_describe_container(X)} tables. {_SEVERAL_TABLES}"
        raise TypeError(f"{name} must be one table of numbers, got {got}.")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        check_columns_differ(X, name)
        for column, dtype in zip(X.columns, X.dtypes, strict=True):
            if (
                getattr(dtype, "kind", "O") not in _NUMERIC_KINDS
            ):  # to take a column out takes longer
                _check_numbers(np.asarray(X[column]), f"column {column!r} of {name}")
        return X
    try:
        array = X if hasattr(X, "shape") else np.asarray(X)
    except ValueError:
        raise ValueError(
            f"{name} must be a table whose rows are of one length."
        ) from None
    if sp.issparse(array) and array.ndim != 2:
        raise ValueError(
            f"{name} must be a table of rows and columns, got shape {array.shape}."
        )
    if isinstance(array, np.ndarray):
        _check_numbers(array, name)
    return array


def _check_numbers(array: np.ndarray, name: str) -> None:
    """Raise if an array holds what is no real number."""
    kind = array.dtype.kind
    if kind in _NUMERIC_KINDS:
        return
    wrong = [value for value in array.ravel() if kind != "O" or not _is_number(value)]
    if wrong:
        text = f"{name} must hold real numbers, got {format_value(wrong[0])} of dtype {array.dtype}"
        if isinstance(wrong[0], dict | list | tuple | set):
            raise TypeError(
                f"{text}: an argument must be a string of a number, or a number."
            )
        raise ValueError(
            f"{text}: leave it out, or encode it. Complex data not supported."
        )


def _check_gathered(X: Any, name: str) -> None:
    """Warn of a Dask collection, which is gathered into memory; raise if it is a large one."""
    cure = (
        "nmfcluster.dask has NMFConsensus for tables of labels, base_partitions for features, and "
        "predict and transform for models fitted to a part"
    )
    # a data frame does not know its size, nor some arrays theirs
    if hasattr(X, "chunks") and X.nbytes > _MAX_DASK_BYTES:
        allowed = f"{_MAX_DASK_BYTES / 2**20:.0f} MiB"
        raise ValueError(
            f"{name} must be in memory, got a Dask collection of {X.nbytes / 2**20:.3g} MiB, more "
            f"than the {allowed} that are gathered without being asked for: "
            f"{cure}. {name}.compute() gathers it."
        )
    warn(f"{name} is a Dask collection, which is gathered into memory: {cure}.")


def canonical_csr(X: Any) -> Any:
    """Return a CSR matrix with every entry once and indices of 32 bits where these suffice.

    scikit-learn's k-means takes entries that are stored in parts for several, and no wide indices.
    Anything else is returned as it is; what was handed in is not changed.
    """
    if not sp.issparse(X) or X.format != "csr":
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if max(*X.shape, X.nnz) <= np.iinfo(np.int32).max and X.indices.dtype != np.int32:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return type(X)(parts, shape=X.shape)
    return X


def check_container(X: Any, name: str, wanted: str) -> None:
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
        _check_gathered(X, name)
    if isinstance(X, type | str | bytes):
        raise TypeError(f"{name} must be {wanted}, got {format_value(X)}.")
    annotated = hasattr(X, "obs") and hasattr(X, "to_df")
    closed = (isinstance(X, dict) and not sp.issparse(X)) or type(
        X
    ).__name__ == "LazyFrame"
    on_disk = (
        hasattr(X, "to_memory") and not annotated
    )  # as X of an AnnData that is backed
    if annotated or on_disk or closed or type(X).__module__.startswith("pyarrow"):
        cure = "X.to_memory()" if on_disk else "an array or a data frame"
        cure = (
            "adata.X or adata.to_df(), or see nmfcluster.anndata" if annotated else cure
        )
        got = _describe_container(X)
        raise TypeError(
            f"{name} must be {wanted}, got {got}: give {cure}. {_SEVERAL_TABLES}."
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        n_masked = format_count(np.ma.count_masked(X), "masked entry")
        raise ValueError(
            f"{name} is a masked array with {n_masked}, and "
            "masks are not read: leave out these samples, or put in numbers, as SimpleImputer does "
            "for features; -1 in a table of labels says that a label is missing."
        )


def check_sparse_indices(X: Any, name: str) -> None:
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
        told = f"{name} must be a sparse matrix with all entries in its shape {X.shape}"
        raise ValueError(
            f"{told}, but {error}: build it anew from coordinates."
        ) from error


def _describe_container(X: Any) -> str:
    """Return what an error message calls a container: its library, its type and its length."""
    if isinstance(X, dict | list | tuple):
        return f"a {type(X).__name__} of {len(X)}"
    return f"a {type(X).__module__.partition('.')[0]} {type(X).__name__}"


def check_columns_differ(X: Any, name: str) -> None:
    """Raise if a data frame has no columns, or several of one name."""
    if len(X.columns) == 0:
        none = f"0 feature(s) (shape={X.shape})"
        raise ValueError(f"{name} has {none} while a minimum of 1 is required.")
    if twice := [column for column, times in Counter(X.columns).items() if times > 1]:
        told = f"{twice[0]!r} occurs more than once: rename it, or give X.to_numpy()"
        raise ValueError(f"{name} must have columns whose names differ, but {told}.")


def _is_number(value: Any) -> bool:
    """Return whether an entry can be made a number; None is one that is missing."""
    try:
        float(np.nan if value is None else value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def row_names(table: Any) -> Any:
    """Return the index of a pandas data frame or series, or itself; None for anything else."""
    index = table if hasattr(table, "get_indexer") else getattr(table, "index", None)
    return index if hasattr(index, "get_indexer") else None


def column_names(table: Any) -> Any:
    """Return the index of the columns of a data frame, of pandas or polars; None for others.

    That of a frame of polars is made by pandas: without it, columns are taken by position.
    """
    columns = getattr(table, "columns", None)
    if isinstance(columns, list) and find_spec("pandas"):
        return import_module("pandas").Index(columns)
    return row_names(columns)


def sample_names(table: Any) -> Any:
    """Return what `row_names` does, but None for 0, 1, 2, ...: these are positions."""
    index = row_names(table)
    return None if index is None or _is_default(index) else index


def row_order(
    own: Any, other: Any, name: str, owner: str = "X", noun: str = "sample"
) -> np.ndarray | None:
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
            done = f"they are put into that of {owner}. Without an index they are taken by position"
            warn(
                f"{name} has the {noun}s of {owner} in another order, by the index: {done}."
            )
            return order
    if _is_default(own) or _is_default(other):
        return None
    told = f"{name} and {owner} have different names of {noun}s"
    for one, those, its in ((own, other, owner), (other, own, name)):
        if len(alone := one[~one.isin(those)]):
            told += f"; {its} alone has {len(alone)}, such as {alone[:3].tolist()}"
        told += "" if one.is_unique else f"; some of {its} occur twice"
    cure = f"give both the same, as the {own.isin(other).sum()} that both have"
    raise ValueError(f"{told}: {cure}, or arrays, which are taken by position.")


def _is_default(index: Any) -> bool:
    """Return whether an index holds the positions, as that of a table that was given none."""
    numbers = np.asarray(index)
    return numbers.dtype.kind in "iu" and np.array_equal(
        numbers, np.arange(len(numbers))
    )


def reorder_samples(own: Any, table: Any, name: str) -> Any:
    """Return what is said of samples, in one table or in a list, in the order of their names.

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


def read_weights(
    given: Any, rows: Any, least: int, n_samples: int
) -> np.ndarray | None:
    """Return how much every sample counts, (n_samples,); None if all count alike.

    `rows` are the names of the samples, if X is a data frame; `least` of them must count.
    """
    if given is None:
        return None
    name, given = "sample_weight", reorder_samples(rows, given, "sample_weight")
    # a number alone has no length, which is refused below
    alone = {"ensure_2d": False, "ensure_min_samples": 0, "accept_sparse": False}
    weights = read_matrix(
        given, name, dtype=np.float64, ensure_non_negative=True, **alone
    )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{name} must be of shape ({n_samples},), got {weights.shape}."
        )
    if (counting := np.count_nonzero(weights)) < least:
        needed = f"for at least {format_count(least, 'sample')}"
        raise ValueError(f"{name} must be above zero {needed}, it is for {counting}.")
    return np.asarray(weights)


def reorder_columns(own: Any, table: Any, name: str, owner: str) -> Any:
    """Return a data frame with its columns in the order of the names that `owner` has."""
    order = row_order(own, column_names(table), name, owner, "column")
    return table if order is None else take_samples(table, order, axis=1)


def columns_in_row_order(table: Any, name: str) -> Any:
    """Return a data frame with its columns in the order of its rows, where it is square by them."""
    own, columns = row_names(table), column_names(table)
    if own is None or columns is None or not own.is_unique or set(own) != set(columns):
        return table
    return reorder_columns(own, table, name, "its rows")
