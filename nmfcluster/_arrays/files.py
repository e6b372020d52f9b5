"""Tables that lie in files, read with the names of their rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

from nmfcluster._arrays.delimited import Layout, layout_of
from nmfcluster._arrays.storage import is_sparse

_CURES = {"pandas": "nmfcluster[cli]", "anndata": "anndata"}  # what pip installs for a module


class FileTable(NamedTuple):
    """A table: a data frame, an array or a sparse matrix, and its names where it has some."""

    X: Any
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None

    def require_all(self, file: str) -> None:
        """Raise if an entry is missing; of sparse tables none is."""
        if is_sparse(self.X):
            return
        X = np.asarray(self.X, dtype=np.float64 if hasattr(self.X, "columns") else None)
        missing = np.isnan(X) if X.dtype.kind == "f" else np.zeros(X.shape, dtype=bool)
        if missing.any():
            row, column = np.argwhere(missing)[0]
            row = row if self.rows is None else repr(self.rows[row])
            column = column if self.columns is None else repr(self.columns[column])
            raise ValueError(
                f"{file} must not lack a value, but its column {column} does in row {row}: leave "
                "one of them out, or put in a number."
            )

    def by_names(self) -> Any:
        """Return what can be matched by names: a sparse table that has some becomes dense."""
        if self.rows is None or not is_sparse(self.X):
            return self.X
        return imported("pandas").DataFrame(self.X.toarray(), index=self.rows)


def imported(name: str) -> Any:
    """Return an optional module; raise what says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"This file needs {name}: pip install {_CURES[name]}.") from error


def read_table(path: Path, names: str | None = None, text: bool = False) -> FileTable:
    """Return the table of a csv, tsv, npy, npz, mtx or h5ad file; raise if there is none.

    Parameters
    ----------
    path : Path
        Of the file; csv, tsv and mtx also as packed by gzip.
    names : str, default=None
        Title of the column of a csv or tsv file that names the rows. By default the first, if its
        title is blank or it holds text alone, no two entries of which are the same.
    text : bool, default=False
        Whether other columns may hold text.

    Returns
    -------
    FileTable
    """
    kind = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    reader = _READERS.get(kind.lower())
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if reader is None:
        raise ValueError(f"{path} must end in one of {', '.join(_READERS)}; got {kind!r}.")
    try:
        table = reader(path, names)
    except (ImportError, PermissionError):
        raise
    except Exception as error:  # libraries of formats raise what they like
        raise ValueError(f"{path} cannot be read: {error}") from error
    if len(getattr(table.X, "shape", ())) != 2 or 0 in table.X.shape:
        raise ValueError(f"{path} must hold a table of rows and columns.")
    if not text and hasattr(table.X, "select_dtypes"):
        wrong = table.X.select_dtypes(exclude=["number", "bool"])
        if wrong.shape[1]:
            column = wrong.iloc[:, 0].dropna()
            numbers = imported("pandas").to_numeric(column, errors="coerce").to_numpy()
            raise ValueError(
                f"{path} must hold numbers, but its column {column.name!r} has "
                f"{column.iloc[np.isnan(numbers).argmax()]!r}; --names says which names the rows."
            )
    return table


def read_columns(
    path: Path, separator: str, found: Layout, places: list[int], **options: Any
) -> Any:
    """Return a data frame of some columns of a csv or tsv file, called by their places."""
    return imported("pandas").read_csv(
        path,
        sep=separator,
        header=0 if found.titled else None,
        names=list(range(found.n_entries)),
        usecols=places,
        index_col=False,
        encoding="utf-8-sig",
        **options,
    )


def _delimited(separator: str) -> Callable[[Path, str | None], FileTable]:
    def read(path: Path, names: str | None) -> FileTable:
        imported("pandas")  # before the lines are looked at
        found = layout_of(path, separator, names)
        titles = dict(enumerate(found.titles, found.first))
        if found.rows is not None:
            titles.pop(found.place, None)
        frame = read_columns(path, separator, found, list(titles))
        if found.rows is not None:  # as they are written: 007 is not 7, and NA may be a name
            frame.index = found.rows
        if not found.titled and names is None:
            return FileTable(frame)
        frame.columns = list(titles.values())
        return FileTable(frame, found.rows, list(frame))

    return read


def _arrays(path: Path, names: str | None) -> FileTable:
    # np.load would take what is no archive for a pickle
    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as held:
        if "format" in held:
            return FileTable(sp.csr_array(sp.load_npz(path)))
        if len(held.files) != 1:
            raise ValueError(f"it must hold one array, got {', '.join(held.files) or 'none'}.")
        return FileTable(held[held.files[0]])


def _array(path: Path, names: str | None) -> FileTable:
    with path.open("rb") as file:
        return FileTable(np.lib.format.read_array(file, allow_pickle=False))


def _matrix_market(path: Path, names: str | None) -> FileTable:
    X = mmread(path)
    return FileTable(sp.csr_array(X) if is_sparse(X) else X)


def _annotated(path: Path, names: str | None) -> FileTable:
    data = imported("anndata").read_h5ad(path)
    if data.X is None:
        raise ValueError("it has no X.")
    X = sp.csr_array(data.X) if is_sparse(data.X) else data.to_df()
    return FileTable(X, data.obs_names.tolist(), data.var_names.tolist())


_READERS = {
    ".csv": _delimited(","),
    ".tsv": _delimited("\t"),
    ".npy": _array,
    ".npz": _arrays,
    ".mtx": _matrix_market,
    ".h5ad": _annotated,
}
