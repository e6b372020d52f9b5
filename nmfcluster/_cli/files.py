"""Tables that lie in files, read with the names of their rows and columns."""

import csv
import gzip
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, count, islice, product
from math import inf, prod
from pathlib import Path
from typing import Any, NamedTuple, Self
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

from nmfcluster._base import warn_of_distances
from nmfcluster._utils.storage import is_sparse
from nmfcluster._utils.validation import check_stored, counted, warn

# what pip installs for a module
_CURES = {"pandas": '"nmfcluster[cli]"', "anndata": "anndata", "h5py": "anndata"}
_SEPARATORS = {
    ".csv": ",",
    ".tsv": "\t",
    ".txt": "\t",
}  # of entries, if it is in all lines
_HEAD = 100  # lines that tell how the others are laid out
_BLANK = "Unnamed: "  # how titles of columns without one begin, as of pandas
_TEXT = {
    "dtype": str,
    "keep_default_na": False,
}  # entries as they are written; NaN: there is none


class FileTable(NamedTuple):
    """A table: a data frame, an array or a sparse matrix, and its names where it has some."""

    X: Any
    rows: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    origins: tuple[str, str] = (
        "",
        "",
    )  # where the names of rows and of columns are from
    title: str | None = None  # of the column that names the rows
    layers: Sequence[str] = ()  # that the file has besides

    def __str__(self) -> str:
        n_rows, n_columns = self.X.shape
        told = (
            "rows without names"
            if self.rows is None
            else f"names from {self.origins[0]}"
        )
        return f"{counted(n_rows, 'row')}, {counted(n_columns, 'column')}, {told}"

    def transposed(self) -> Self:
        """Return the table whose rows are the columns of this one."""
        return type(self)(
            self.X.T, self.columns, self.rows, self.origins[::-1], None, self.layers
        )

    def apart(self, file: str) -> Self:
        """Return the table with names of columns that differ; warn if they did not."""
        new: dict[str, str] = {}
        for name in self.columns or ():
            numbered = chain([name], (f"{name}.{i}" for i in count(1)))
            new[next(one for one in numbered if one not in new)] = name
        again = [one for one, name in new.items() if one != name]
        if not again:
            return self
        told = f"{', '.join(again[:3])}{', ...' if len(again) > 3 else ''}"
        warn(
            f"{file}: columns that have the name of another one are called {told} here."
        )
        X = self.X.set_axis(list(new), axis=1) if hasattr(self.X, "columns") else self.X
        return self._replace(X=X, columns=list(new))

    def require_all(self, file: str) -> None:
        """Raise if an entry is missing; of sparse tables none is."""
        if is_sparse(self.X):
            return
        X = np.asarray(self.X, dtype=np.float64 if hasattr(self.X, "columns") else None)
        missing: Any = np.argwhere(np.isnan(X)) if X.dtype.kind == "f" else []
        if len(missing):
            both = zip((self.rows, self.columns), missing[0], strict=True)
            row, column = (i if names is None else repr(names[i]) for names, i in both)
            lacking = f"its column {column} does in row {row}"
            cure = "leave one of them out, or put in a number"
            raise ValueError(f"{file} must not lack a value, but {lacking}: {cure}.")

    def numbers(self) -> Any:
        """Return the first column if it looks like names: whole numbers that all differ.

        Nothing, if it does not, or if all columns do: then the table counts something.
        """
        if self.rows is not None or not hasattr(self.X, "columns"):
            return ()
        first, *others = (self.X.iloc[:, j].to_numpy() for j in range(self.X.shape[1]))
        return (
            self.X.iloc[:, 0]
            if _are_ids(first) and not all(map(_are_ids, others))
            else ()
        )

    def by_names(self, most: float) -> Any:
        """Return what can be matched by names: a sparse table that has some becomes dense."""
        if self.rows is None or not is_sparse(self.X):
            return self.X
        _check_size(prod(self.X.shape) * self.X.dtype.itemsize, most)
        return imported("pandas").DataFrame(self.X.toarray(), index=self.rows)


def imported(name: str) -> Any:
    """Return an optional module; raise what says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"This file needs {name}: pip install {_CURES[name]}."
        ) from error


def read_table(
    path: Path,
    text: bool = False,
    most: float = inf,
    layer: str | None = None,
    **how: Any,
) -> FileTable:
    """Return the table of a csv, tsv, txt, npy, npz, mtx or h5ad file; raise if there is none.

    Warns where it may be meant in another way.

    Parameters
    ----------
    path : Path
        Of the file; csv, tsv, txt and mtx also as packed by gzip.
    text : bool, default=False
        Whether columns of a text file, besides the one that names the rows, may hold text.
    most : float, default=inf
        Bytes that are read, unpacked; what holds more is refused.
    layer : str, default=None
        The layer of an h5ad file that is read, instead of its X.
    **how : dict
        How a text file is read:

        - names : str, default=None
            Title of the column that names the rows. By default the first, if its title is blank or
            it holds text alone, no two entries of which are the same.
        - titles : bool, default=True
            Whether the first line holds titles, unless it holds numbers alone.

    Returns
    -------
    FileTable
    """
    reader = _READERS.get(_kind(path))
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if reader is None:
        raise ValueError(
            f"{path} must end in one of {', '.join(_READERS)}; got {_kind(path)!r}."
        )
    if layer is not None and reader is not _annotated:
        raise ValueError(f"--layer is of .h5ad files: {path} has none.")
    try:
        _check_unpacked(path, most)
        table = reader(path, most=most, layer=layer, **how)
        if is_sparse(X := table.X):
            check_stored(X, "it")
            # ends of rows, values and their places, once they are stored by rows
            _check_size(8 * X.shape[0] + X.nnz * (X.dtype.itemsize + 4), most)
            table = table._replace(X=sp.csr_array(X))
    except (ImportError, PermissionError):
        raise
    except UnicodeDecodeError:
        raise ValueError(f"{path} cannot be read: it must be text in UTF-8.") from None
    except Exception as error:  # libraries of formats raise what they like
        told = str(error).strip().rpartition("C error: ")[2]  # of pandas, say
        raise ValueError(f"{path} cannot be read: {told or repr(error)}") from error
    if len(getattr(table.X, "shape", ())) != 2 or 0 in table.X.shape:
        raise ValueError(f"{path} must hold a table of rows and columns.")
    if not text:
        _check_numbers(path, table)
    if len(column := table.numbers()):
        title = repr(str(column.name))
        told = f"its first column, {title}, has whole numbers that all differ, and is taken for a"
        warn(f"{path}: {told} feature; --names {title} names the rows by it.")
    return table


def _check_numbers(path: Path, table: FileTable) -> None:
    """Raise if a table holds text; warn if it looks like distances."""
    if hasattr(table.X, "select_dtypes"):
        wrong = table.X.select_dtypes(exclude=["number", "bool"])
        if wrong.shape[1]:
            column = wrong.iloc[:, 0].dropna()
            numbers = imported("pandas").to_numeric(column, errors="coerce").to_numpy()
            told = f"its column {column.name!r} has {column.iloc[np.isnan(numbers).argmax()]!r}"
            cure = f"numbers have points; --names {column.name!r} names the rows by it"
            raise ValueError(f"{path} must hold numbers, but {told}; {cure}.")
    if not is_sparse(table.X) and table.X.shape[0] == table.X.shape[1]:
        warn_of_distances(np.asarray(table.X), f"{path}, which is taken for features,")


def _kind(path: Path) -> str:
    """Return the ending of a file, without that of gzip."""
    return (
        path.with_suffix("") if path.suffix.lower() == ".gz" else path
    ).suffix.lower()


def _check_size(size: float, most: float) -> None:
    if not size <= most:  # nor is anything at most NaN
        raise ValueError(
            f"it holds more than {most / 2**30:g} GiB: --max-gib allows more."
        )


def _check_unpacked(path: Path, most: float) -> None:
    """Raise if a file holds too much, as it is or unpacked; what it says of itself is not believed.

    Of an archive no more is read than its list says, and of others no more than there is.
    """
    size = path.stat().st_size
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as packed:
            while packed.read(2**20):
                _check_size(packed.tell(), most)
    elif _kind(path) == ".npz":
        with ZipFile(path) as held:
            size = sum(entry.file_size for entry in held.infolist())
    elif _kind(path) == ".h5ad" and imported("anndata"):
        sizes: list[int] = []
        with imported("h5py").File(path) as file:
            file.visititems(lambda _, held: sizes.append(getattr(held, "nbytes", 0)))
        size = sum(sizes)
    _check_size(size, most)


def _opened(path: Path) -> tuple[Callable[..., Any], list[list[str]]]:
    """Return pandas' reader of a text, and the entries of its first lines.

    They are separated by what its ending says, if this is in all first lines, or by what is.
    """
    unpacked = gzip.open if path.suffix.lower() == ".gz" else open
    with unpacked(path, "rt", encoding="utf-8-sig") as file:
        lines = [line.strip(" \n") for line in islice(file, _HEAD) if line.strip()]
    if not lines:
        raise ValueError("it is empty.")
    own, heads = _SEPARATORS[_kind(path)], {}
    for some in (own, "\t", ";", ",", " "):
        heads[some] = list(
            csv.reader(lines, delimiter=some, skipinitialspace=some == " ")
        )
    if not any(map(is_number, heads[" "][-1][1:])):  # words of a text
        del heads[" "]
    separator = next(
        (some for some, head in heads.items() if min(map(len, head)) > 1), own
    )
    how = {"sep": r"\s+" if separator == " " else separator, "encoding": "utf-8-sig"}
    return partial(imported("pandas").read_csv, path, **how), heads[separator]


def _delimited(
    path: Path, names: str | None = None, titles: bool = True, **_: Any
) -> FileTable:
    read_csv, head = _opened(path)
    titled, heads = _titles(head, titles)
    if names is not None and names not in heads:
        raise ValueError(f"--names must be one of {', '.join(heads)}; got {names!r}.")
    if names is not None and heads[0] == _BLANK:
        raise ValueError(
            "--names cannot be given: the first column, without a title, has names."
        )
    place = 0 if names is None else heads.index(names)
    read_csv = partial(read_csv, header=0 if titled else None, index_col=False)
    read_csv = partial(read_csv, names=range(len(heads)))  # longer lines are refused
    frame = read_csv()
    # a column of names as it is written: 007 is not 7, and NA may be a name
    rows = read_csv(usecols=[place], **_TEXT)[place].tolist()
    named = names is not None or heads[place].startswith(_BLANK) or _are_names(rows)
    frame = frame.drop(columns=place).set_axis(rows) if named else frame
    blank = [i for i in frame if heads[i].startswith(_BLANK) and frame[i].isna().all()]
    frame = frame.drop(columns=blank)
    if not (titled or named):
        return FileTable(frame)
    frame.columns = [heads[i] for i in frame]
    if titled and names is None and not heads[0].startswith(_BLANK):
        _warn_of_titles(path, frame)
    title = (
        heads[place]
        if titled and named and not heads[place].startswith(_BLANK)
        else None
    )
    origins = (
        repr(names or title) if names or title else "the first column",
        "the first line",
    )
    return FileTable(frame, rows if named else None, list(frame), origins, title)


def _warn_of_titles(path: Path, frame: Any) -> None:
    """Warn where what was taken for titles may be the first row."""
    texts = frame.select_dtypes(exclude=["number", "bool"]).astype(str)
    again = any(title in set(texts.iloc[:, j]) for j, title in enumerate(texts))
    heads = list(frame)
    if (
        again
        or any(map(is_number, heads))
        or all(head.startswith("NA") for head in heads)
    ):
        told = f"{', '.join(heads[:3])}{', ...' if len(heads) > 3 else ''}"
        warn(
            f"{path}: its first line is taken for titles ({told}); --no-titles takes it as a row."
        )


def _titles(head: list[list[str]], titles: bool) -> tuple[bool, list[str]]:
    """Return whether the first line holds titles, and those of all columns, blank ones too.

    Separators may end all lines, or all but the first one, which may also lack the title of the
    first column, as R writes. A line that is shorter lacks values at its end.
    """
    first = head[0]
    titled = titles and not all(map(is_number, first[: len(first) - _n_blank(first)]))
    body = head[titled:]
    width = len(body[0]) if body else len(first)
    n_blank = min(
        (max(width - len(line), 0) + _n_blank(line) for line in body), default=0
    )
    if not titled:
        return False, [str(i) for i in range(width - n_blank)] + [_BLANK] * n_blank
    heads = [title or f"{_BLANK}{i}" for i, title in enumerate(first)]
    lacking = max(width - len(first), 0)
    # separators that end all lines but the first one, and are no entries that lack a title
    at_ends = min(lacking, n_blank - min(n_blank, _n_blank(first)))
    lacking -= at_ends
    if lacking > 1 or (lacking and first[0].startswith("#")):
        raise ValueError(
            "its first line, of titles, must have as many entries as the others."
        )
    return True, [_BLANK] * lacking + heads + [_BLANK] * at_ends


def _n_blank(entries: list[str]) -> int:
    """Return how many entries at the end are blank."""
    return len(entries) - max(
        (i for i, entry in enumerate(entries, 1) if entry.strip()), default=0
    )


def is_number(entry: str) -> bool:
    """Return whether an entry is a number, with a point and not a comma."""
    try:
        float(entry)
    except ValueError:
        return False
    return "_" not in entry  # which Python reads over


def _are_ids(values: np.ndarray) -> bool:
    """Return whether values are whole numbers, at least 0, that all differ."""
    whole = values.dtype.kind in "iuf" and bool(
        (values >= 0).all() and (values % 1 == 0).all()
    )
    return whole and len(np.unique(values)) == len(values)


def _are_names(entries: list[str]) -> bool:
    """Return whether entries differ, and none is a number, with a comma or without one."""
    differ = len(set(entries)) == len(entries)
    return differ and not any(is_number(entry.replace(",", "")) for entry in entries)


def read_pairs(path: Path, most: float) -> Any:
    """Return the table of a text file of pairs, rows as they are named there."""
    text = dict.fromkeys(("a", "b", "kind"), str)
    _check_unpacked(path, most)
    frame = _opened(path)[0](dtype=text, keep_default_na=False)
    if not set(text) <= set(frame.columns):
        raise ValueError(
            f"the columns must be a, b and kind, got {', '.join(frame.columns)}."
        )
    return frame[[*text, *frame.columns.intersection(["weight"])]]


def _utils(path: Path, **_: Any) -> FileTable:
    # np.load would take what is no archive for a pickle
    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as held:
        if "format" in held:
            return FileTable(sp.load_npz(path))
        if len(held.files) != 1:
            raise ValueError(
                f"it must hold one array, got {', '.join(held.files) or 'none'}."
            )
        return FileTable(held[held.files[0]])


def _array(path: Path, **_: Any) -> FileTable:
    with path.open("rb") as file:
        return FileTable(np.lib.format.read_array(file, allow_pickle=False))


def _matrix(path: Path, most: float, **_: Any) -> FileTable:
    """Return a matrix; of 10x Genomics the cells are its rows, with the names that lie beside."""
    X = mmread(path)
    genes_from, genes = _beside(path, most, ("features", "genes"), 1)
    cells_from, cells = _beside(path, most, ("barcodes",), 0)
    for A in (X.T, X):  # theirs has a column for every cell
        both = list(zip((cells, genes), A.shape, strict=True))
        # a line more has titles
        if (cells or genes) and all(
            not names or len(names) - n in (0, 1) for names, n in both
        ):
            rows, columns = (names[-n:] or None for names, n in both)
            return FileTable(A, rows, columns, (cells_from, genes_from))
    if cells or genes:
        told = " and ".join(file for file in (genes_from, cells_from) if file)
        warn(
            f"{path} is of shape {X.shape}: names in {told} do not fit, and are not used."
        )
    return FileTable(X)


def _beside(
    path: Path, most: float, kinds: tuple[str, ...], column: int
) -> tuple[str, list[str]]:
    """Return the file of names of a kind that lies beside a matrix, if any, and what it holds."""
    starts = path.name.partition("matrix.mtx")[0], ""  # as of GSM1_matrix.mtx
    for start, kind, packed in product(starts, kinds, ("", ".gz")):
        file = path.with_name(f"{start}{kind}.tsv{packed}")
        if file.is_file():
            _check_unpacked(file, most)
            frame = imported("pandas").read_csv(file, sep="\t", header=None, **_TEXT)
            return file.name, frame.iloc[:, min(column, frame.shape[1] - 1)].tolist()
    return "", []


def of_layers(layers: Sequence[str]) -> str:
    """Return how to read one of the layers of a file, if there are any."""
    return f"--layer takes one of its layers: {', '.join(layers)}" if layers else ""


def _annotated(path: Path, layer: str | None, **_: Any) -> FileTable:
    data = imported("anndata").read_h5ad(path)
    layers = list(data.layers)
    X = data.X if layer is None else data.layers.get(layer)
    if X is None:
        lacking = "X" if layer is None else f"layer {layer!r}"
        raise ValueError(
            f"it has no {lacking}: {of_layers(layers) or 'nor any other'}."
        )
    X = X if is_sparse(X) else data.to_df(layer)
    names = data.obs_names.tolist(), data.var_names.tolist()
    return FileTable(X, *names, ("obs_names", "var_names"), layers=layers)


_READERS: dict[str, Callable[..., FileTable]] = {
    **dict.fromkeys(_SEPARATORS, _delimited),
    ".npy": _array,
    ".npz": _utils,
    ".mtx": _matrix,
    ".h5ad": _annotated,
}
