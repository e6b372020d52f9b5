"""What a user hands in as a table of numbers: refused by name where numpy would misread it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import shown

_NUMBERS = "biuf"  # kinds of numpy's types
_SEVERAL = (
    "several tables of the same samples are put side by side with numpy.hstack, or are sources of "
    "SimilarityFusionNMF"
)


def check_readable(X: Any, name: str = "X") -> None:
    """Raise if a table is of a kind that numpy, or scikit-learn, would misread or name badly.

    Parameters
    ----------
    X : object
        What was handed in. What it holds is checked elsewhere, once it is an array.
    name : str, default="X"
        What to call it in an error message.

    Raises
    ------
    TypeError
        If it holds dates, or is a container of tables that has to be opened first.
    ValueError
        If it holds text, or is a masked array of which something is masked.
    """
    check_opened(X, name, "one table of numbers")
    if isinstance(X, list | tuple) and X and all(np.ndim(part) == 2 for part in _arrays_in(X)):
        raise TypeError(
            f"{name} must be one table of numbers, got {_called(X)} tables: {_SEVERAL}."
        )
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        _check_columns(X, name)
    else:
        _check_kind(getattr(X, "dtype", None), name)


def canonical(X: Any) -> Any:
    """Return a CSR matrix with every entry once and indices of 32 bits where these suffice.

    scikit-learn's k-means takes entries that are stored in parts for several, and no wide indices.
    Anything else is returned as it is; what was handed in is not changed.
    """
    if not sp.issparse(X) or X.format != "csr":
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    narrow = max(*X.shape, X.nnz) <= np.iinfo(np.int32).max
    if narrow and X.indices.dtype != np.int32:
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        X = type(X)(parts, shape=X.shape)
    return X


def check_opened(X: Any, name: str, wanted: str) -> None:
    """Raise if a container has to be opened before numpy can read it, or hides some entries.

    Parameters
    ----------
    X : object
    name : str
        What to call it in an error message.
    wanted : str
        What it should be.
    """
    library = type(X).__module__.partition(".")[0]
    cure = ""
    if hasattr(X, "obs") and hasattr(X, "X") and hasattr(X, "to_df"):
        cure = "give its matrix, adata.X, or the data frame adata.to_df()"
    elif type(X).__name__ == "LazyFrame":
        cure = "collect it first, X.collect()"
    elif library == "pyarrow":
        cure = "give X.to_pandas(), or an array of its columns"
    elif isinstance(X, dict) and not sp.issparse(X):
        cure = f"give what it holds; {_SEVERAL}"
    if cure:
        raise TypeError(f"{name} must be {wanted}, got {_called(X)}: {cure}.")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            f"{name} is a masked array with {int(np.ma.count_masked(X))} masked entries, and masks "
            "are not read: leave out these samples, or put in numbers, as SimpleImputer does for "
            "features; -1 in a table of labels says that a label is missing."
        )


def _called(X: Any) -> str:
    """Return what an error message calls a container: its library, its type and its length."""
    library = type(X).__module__.partition(".")[0]
    size = f" of {len(X)}" if isinstance(X, dict | list | tuple) else ""
    return f"a {library} {type(X).__name__}{size}".replace("a builtins", "a")


def _arrays_in(X: Any) -> list[Any]:
    """Return the elements of a list if they are all arrays; else a number, which is no table."""
    return list(X) if all(hasattr(part, "shape") for part in X) else [0]


def _check_kind(dtype: Any, name: str) -> None:
    kind = getattr(dtype, "kind", "O")
    if kind in "Mm":
        raise TypeError(
            f"{name} must hold numbers, got dtype {dtype}: turn it into days, or into seconds."
        )
    if kind in "SUV":
        raise ValueError(f"{name} must hold numbers, got dtype {dtype}: text has to be encoded.")


def _check_columns(X: Any, name: str) -> None:
    """Raise if a column of a data frame does not hold numbers, and name it."""
    for number, column in enumerate(X.columns):
        values = X.iloc[:, number] if hasattr(X, "iloc") else X[column]
        kind = getattr(values.dtype, "kind", "O")
        if kind in _NUMBERS:
            continue
        try:
            if kind in "Mm" or np.asarray(values).dtype.kind in "Mm":
                raise TypeError
            np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must hold numbers, but column {column!r} is of dtype {values.dtype} and "
                f"holds {shown(_no_number(values))}: leave it out, or encode it."
            ) from None


def _no_number(values: Any) -> Any:
    """Return the first entry of a column that is no number."""
    for value in values:
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return None
