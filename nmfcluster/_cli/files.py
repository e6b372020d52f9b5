"""Tables that lie in files, read with the names of their rows and columns."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

from nmfcluster._arrays.storage import is_sparse

_CURES = {"pandas": "nmfcluster[cli]", "anndata": "anndata"}  # what pip installs for a module
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_HEAD = 100  # lines that tell how the others are laid out
_BLANK = "Unnamed: "  # how pandas' titles of columns without one begin
_TEXT = {"dtype": str, "keep_default_na": False}  # entries as they are written; NaN: there is none


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
        missing: Any = np.argwhere(np.isnan(X)) if X.dtype.kind == "f" else []
        if len(missing):
            row, column = missing[0]
            row = row if self.rows is None else repr(self.rows[row])
            column = column if self.columns is None else repr(self.columns[column])
            lacking = f"its column {column} does in row {row}"
            cure = "leave one of them out, or put in a number"
            raise ValueError(f"{file} must not lack a value, but {lacking}: {cure}.")

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
    except UnicodeDecodeError:
        raise ValueError(f"{path} cannot be read: it must be text in UTF-8.") from None
    except Exception as error:  # libraries of formats raise what they like
        told = str(error).strip().rpartition("C error: ")[2]  # of pandas, say
        raise ValueError(f"{path} cannot be read: {told}") from error
    if len(getattr(table.X, "shape", ())) != 2 or 0 in table.X.shape:
        raise ValueError(f"{path} must hold a table of rows and columns.")
    if not text and hasattr(table.X, "select_dtypes"):
        wrong = table.X.select_dtypes(exclude=["number", "bool"])
        if wrong.shape[1]:
            column = wrong.iloc[:, 0].dropna()
            numbers = imported("pandas").to_numeric(column, errors="coerce").to_numpy()
            told = f"its column {column.name!r} has {column.iloc[np.isnan(numbers).argmax()]!r}"
            cure = "--names says which names the rows"
            raise ValueError(f"{path} must hold numbers, but {told}; {cure}.")
    return table


def _delimited(separator: str, path: Path, names: str | None) -> FileTable:
    read_csv = partial(imported("pandas").read_csv, path, sep=separator, encoding="utf-8-sig")
    titled, titles = _titles(read_csv, separator)
    if names is not None and names not in titles:
        raise ValueError(f"--names must be one of {', '.join(titles)}; got {names!r}.")
    if names is not None and titles[0] == _BLANK:
        raise ValueError("--names cannot be given: the first column, without a title, has names.")
    place = 0 if names is None else titles.index(names)
    read_csv = partial(read_csv, header=0 if titled else None, index_col=False)
    read_csv = partial(read_csv, names=range(len(titles)))  # longer lines are refused
    frame = read_csv()
    # a column of names as it is written: 007 is not 7, and NA may be a name
    rows = read_csv(usecols=[place], **_TEXT)[place].tolist()
    named = titled and (titles[place].startswith(_BLANK) or _are_names(rows))
    rows = rows if named or names is not None else None
    frame = frame if rows is None else frame.drop(columns=place)
    blank = [i for i in frame if titles[i].startswith(_BLANK) and frame[i].isna().all()]
    frame = frame.drop(columns=blank)
    frame.index = frame.index if rows is None else rows
    if not titled and names is None:
        return FileTable(frame)
    frame.columns = [titles[i] for i in frame]
    return FileTable(frame, rows, list(frame))


def _titles(read_csv: Callable[..., Any], separator: str) -> tuple[bool, list[str]]:
    """Return whether the first line holds titles, and those of all columns, blank ones too.

    Separators may end all lines, or all but the first one, which may also lack the title of the
    first column, as R writes. A line that is shorter lacks values at its end.
    """
    first = read_csv(header=None, nrows=1, **_TEXT).iloc[0].tolist()
    _check_separator(first, separator)
    titled = not all(map(_is_number, first[: len(first) - _n_blank(first)]))
    body = read_csv(header=0 if titled else None, nrows=_HEAD, **_TEXT)
    titles = [str(title) for title in body]
    lacking = 0 if isinstance(body.index, imported("pandas").RangeIndex) else body.index.nlevels
    body = body.reset_index() if lacking else body
    n_blank = _n_blank(["".join(body[column].fillna("-")) for column in body])
    if not titled:
        return False, titles[: len(titles) - n_blank] + [_BLANK] * n_blank
    # separators that end all lines but the first one, and are no entries that lack a title
    at_ends = min(lacking, n_blank - min(n_blank, _n_blank(first)))
    lacking -= at_ends
    if lacking > 1 or (lacking and first[0].startswith("#")):
        raise ValueError("its first line, of titles, must have as many entries as the others.")
    return True, [_BLANK] * lacking + titles + [_BLANK] * at_ends


def _n_blank(entries: list[str]) -> int:
    """Return how many entries at the end are blank."""
    return len(entries) - max((i for i, entry in enumerate(entries, 1) if entry.strip()), default=0)


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return "_" not in entry  # which Python reads over


def _are_names(entries: list[str]) -> bool:
    """Return whether entries differ, and none is a number, with a comma or without one."""
    differ = len(set(entries)) == len(entries)
    return differ and not any(_is_number(entry.replace(",", "")) for entry in entries)


def _check_separator(first: list[str], separator: str) -> None:
    """Raise where it is something else that separates the entries of the first line."""
    line = separator.join(first)
    for other, name in _SEPARATORS.items():
        parts = line.split(other)
        apart = len(first) == 1 or all(_is_number(part.replace(",", ".")) for part in parts)
        if other != separator and len(parts) > 1 and apart:
            wanted = f"its entries must be separated by {_SEPARATORS[separator]}, not by {name}"
            raise ValueError(f"{wanted}; numbers have points, not commas.")


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


_READERS: dict[str, Callable[[Path, str | None], FileTable]] = {
    ".csv": partial(_delimited, ","),
    ".tsv": partial(_delimited, "\t"),
    ".npy": _array,
    ".npz": _arrays,
    ".mtx": _matrix_market,
    ".h5ad": _annotated,
}
