"""Read tables from files, with the names of their rows and columns."""

import csv
import gzip
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product, takewhile
from math import inf, prod
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import scipy.sparse as sp
from scipy.io import mmread

from nmfcluster._base import warn_of_distances
from nmfcluster._utils.storage import is_sparse
from nmfcluster._utils.validation import check_sparse_indices, format_count, warn
from nmfcluster.constraints import PairwiseConstraints

# What to install with pip if a module is missing.
_CURES = {"pandas": '"nmfcluster[cli]"', "anndata": "anndata", "h5py": "anndata"}
# Separators that are tried first.
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_HEAD = 100  # number of first lines from which the layout of a text file is detected
_BLANK = "Unnamed: "  # prefix of the titles that pandas gives to columns without one
# Options of pandas that keep entries as they are written, without NaN.
_AS_TEXT = {"dtype": str, "keep_default_na": False}


class FileTable(NamedTuple):
    """A table with the names of its rows and columns."""

    X: Any  # a data frame, an array or a sparse matrix
    rows: Any = None  # names of the rows, if there are any
    columns: Any = None  # names of the columns, if there are any
    rows_from: str = ""  # source of the row names
    columns_from: str = ""  # source of the column names
    title: str | None = None  # title of the column of row names
    layers: Any = ()  # names of the layers of an h5ad file
    adata: Any = None  # the AnnData object of an h5ad file

    def __str__(self):
        n_rows, n_columns = self.X.shape
        names = "rows without names"
        if self.rows is not None:
            names = f"names from {self.rows_from}"
        return f"{format_count(n_rows, 'row')}, {format_count(n_columns, 'column')}, {names}"

    def with_distinct_columns(self, file):
        """Return the table with distinct column names; warn if some were repeated."""
        names: dict = {}  # a set that keeps the order
        renamed = []
        for name in self.columns or ():
            new = name
            number = 0
            while new in names:
                number += 1
                new = f"{name}.{number}"
            names[new] = None
            if number:
                renamed.append(new)
        if not renamed:
            return self
        warn(
            f"{file}: repeated column names were changed to "
            f"{_first_three(renamed)}; rename them in the file if necessary."
        )
        X = self.X
        if hasattr(X, "columns"):
            X = X.set_axis(list(names), axis=1)
        return self._replace(X=X, columns=list(names))

    def require_complete(self, file):
        """Raise if an entry is missing; a sparse table has none."""
        X = np.zeros((0, 0)) if is_sparse(self.X) else np.asarray(self.X)
        missing = np.argwhere(X != X)  # only NaN differs from itself
        if not len(missing):
            return
        i, j = missing[0]
        row = repr(self.rows[i]) if self.rows else i
        column = repr(self.columns[j]) if self.columns else j
        raise ValueError(
            f"{file} must not have missing values, but column {column} has one in row {row}: "
            "drop the row or the column, or impute the value."
        )

    def id_column(self):
        """Return the first column if it looks like row names: distinct whole numbers.

        Returns () if it does not, or if all columns do, as those of a table of counts may.
        """
        if self.rows is not None or not hasattr(self.X, "columns"):
            return ()
        first, *others = [_are_ids(column) for _, column in self.X.items()]
        return () if not first or all(others) else self.X.iloc[:, 0]

    def by_names(self, max_bytes):
        """Return X so that rows can be matched by name: if sparse with names, it becomes dense."""
        if self.rows is None or not is_sparse(self.X):
            return self.X
        _check_size(prod(self.X.shape) * self.X.dtype.itemsize, max_bytes)
        return imported("pandas").DataFrame(self.X.toarray(), index=self.rows)


def _first_three(names):
    return f"{', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"


def imported(name):
    """Import an optional module, or raise an error that shows how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"This file needs {name}: pip install {_CURES[name]}."
        ) from error


def read_file(
    path,
    *,
    may_hold_text=False,
    max_bytes=inf,
    layer=None,
    names=None,
    has_titles=True,
):
    """Read the table of a csv, tsv, txt, npy, npz, mtx or h5ad file.

    Raises if there is none, and warns if it can be read in more than one way.

    Parameters
    ----------
    path : Path
        The file; csv, tsv, txt and mtx may be compressed by gzip.
    may_hold_text : bool, default=False
        Whether columns of a text file may hold text, besides the column of row names.
    max_bytes : float, default=inf
        Largest uncompressed size in bytes; a larger file is refused.
    layer : str, default=None
        Layer of an h5ad file to read instead of X.
    names : str, default=None
        Title of the column of row names in a text file. By default, the first column if its title
        is blank, or if its entries are distinct texts.
    has_titles : bool, default=True
        Whether the first line of a text file holds titles; a line of numbers never does.

    Returns
    -------
    FileTable
    """
    ending = _ending(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    if ending not in _ENDINGS:
        raise ValueError(
            f"{path} must end in one of {', '.join(_ENDINGS)}; got {ending!r}."
        )
    if layer is not None and ending != ".h5ad":
        raise ValueError(f"--layer is only for .h5ad files, not for {path}.")
    try:
        with _unchanged(path):
            _check_file_size(path, max_bytes)
            if ending == ".h5ad":
                table = _read_h5ad(path, layer)
            elif ending == ".mtx":
                table = _read_mtx(path, max_bytes)
            elif ending == ".npz":
                table = _read_npz(path)
            elif ending == ".npy":
                with path.open("rb") as file:
                    X = np.lib.format.read_array(file, allow_pickle=False)
                table = FileTable(X)
            else:
                table = _read_text(path, names, has_titles)
        X = table.X
        if is_sparse(X):
            check_sparse_indices(X, "it")
            # Size in CSR format: row pointers, values and column indices.
            size = 8 * X.shape[0] + X.nnz * (X.dtype.itemsize + 4)
            _check_size(size, max_bytes)
            table = table._replace(X=sp.csr_array(X))
    except (ImportError, PermissionError):
        raise
    except UnicodeDecodeError:
        raise ValueError(f"{path} cannot be read: it must be text in UTF-8.") from None
    except Exception as error:  # libraries of formats raise errors of any kind
        reason = str(error).strip().rpartition("C error: ")[2]  # drop pandas' prefix
        raise ValueError(f"{path} cannot be read: {reason or repr(error)}") from error
    if len(getattr(table.X, "shape", ())) != 2 or 0 in table.X.shape:
        raise ValueError(f"{path} must hold a table of rows and columns.")
    if not may_hold_text:
        _check_numbers(path, table)
    ids = table.id_column()
    if len(ids):
        title = repr(str(ids.name))
        warn(
            f"{path}: the first column, {title}, has distinct whole numbers, and is used as "
            f"a feature. If it holds row names, pass --names {title}."
        )
    return table


@contextmanager
def _unchanged(path):
    """Raise if a file changes in the meantime: what was read may mix two versions."""
    before = path.stat()
    try:
        yield
    finally:
        now = path.stat()
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise ValueError("it changed while it was read: try again.")


def _check_numbers(path, table):
    """Raise if a table holds text; warn if it looks like distances."""
    X = table.X
    if hasattr(X, "select_dtypes"):
        texts = X.select_dtypes(exclude=["number", "bool"])
        if texts.shape[1]:
            column = texts.iloc[:, 0].dropna()
            numbers = imported("pandas").to_numeric(column, errors="coerce").to_numpy()
            entry = column.iloc[np.isnan(numbers).argmax()]
            raise ValueError(
                f"{path} must hold numbers, but its column {column.name!r} has {entry!r}: write "
                f"decimal points, or pass --names {column.name!r} if it holds row names."
            )
    if not is_sparse(X) and X.shape[0] == X.shape[1]:
        warn_of_distances(np.asarray(X), f"{path}, which is used as features,")


def _ending(path):
    """Return the ending of a file, ignoring .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _check_size(size, max_bytes):
    if not size <= max_bytes:  # NaN refuses every file
        raise ValueError(
            f"it holds more than {max_bytes / 2**30:g} GiB: raise --max-gib to read it."
        )


def _check_file_size(path, max_bytes):
    """Raise if a file is too large once it is uncompressed.

    Compressed text is decompressed for this. The size of an array is the one in its header, as no
    more of it is read.
    """
    size = path.stat().st_size
    ending = _ending(path)
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as compressed:
            while compressed.read(2**20):
                _check_size(compressed.tell(), max_bytes)
    elif ending == ".npz":
        size = 0
        with ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as array:
                    size += _claimed_size(array)
    elif ending == ".npy":
        with path.open("rb") as array:
            size = _claimed_size(array)
    elif ending == ".h5ad" and imported("anndata"):
        with imported("h5py").File(path) as file:
            size = _size_of_groups(file)
    _check_size(size, max_bytes)


def _size_of_groups(file):
    """Return the size in bytes of all data in an h5ad file; each link to data counts.

    Raises if a part is in another file, which must not be opened, or a group has two places.
    """
    size = 0
    groups = [file]
    for group in groups:  # the loop appends to it
        for name in group:
            place = f"{group.name.rstrip('/')}/{name}"
            is_inside = not hasattr(group.get(name, getlink=True), "filename")
            item = group[name] if is_inside else None
            if (
                item is None
                or getattr(item, "external", None)
                or getattr(item, "is_virtual", False)
            ):
                raise ValueError(f"its {place} must not be in another file.")
            if item in groups:
                raise ValueError(f"its {place} must not be in two places.")
            if hasattr(item, "keys"):
                groups.append(item)
            # row pointers of a sparse matrix take 8 bytes each
            size += getattr(item, "nbytes", 8 * max(item.attrs.get("shape", [0])))
    return size


def _claimed_size(array):
    """Return the size in bytes of the memory that the header of an array claims."""
    version = np.lib.format.read_magic(array)
    read_head = np.lib.format.read_array_header_2_0
    if version == (1, 0):
        read_head = np.lib.format.read_array_header_1_0
    shape, _, dtype = read_head(array)
    return prod(shape) * dtype.itemsize


def _open_text(path):
    """Return a pandas reader of a text file, and the entries of its first lines.

    The separator is the usual one of the ending if all of these lines have it, and otherwise
    another one that they all have.
    """
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    lines = []
    with opener(path, "rt", encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if "\0" in line:  # pandas would end the entry there
                raise ValueError(
                    f"its line {number} has a NUL byte: save it as text in UTF-8."
                )
            if number <= _HEAD and line.strip():
                lines.append(line.strip(" \n"))
    if not lines:
        raise ValueError("it is empty.")
    usual = _SEPARATORS[_ending(path)]
    for separator in (usual, "\t", ";", ",", " ", usual):
        is_space = separator == " "
        head = list(csv.reader(lines, delimiter=separator, skipinitialspace=is_space))
        is_prose = is_space and not any(map(is_number, head[-1][1:]))
        if min(map(len, head)) > 1 and not is_prose:
            break
    read_csv = partial(
        imported("pandas").read_csv,
        path,
        sep=r"\s+" if separator == " " else separator,
        encoding="utf-8-sig",
    )
    return read_csv, head


def _read_text(path, names, has_titles):
    """Return the table of a csv, tsv or txt file."""
    read_csv, head = _open_text(path)
    has_titles, titles = _titles(head, has_titles)
    is_blank = [title.startswith(_BLANK) for title in titles]
    if names is not None and names not in titles:
        raise ValueError(f"--names must be one of {', '.join(titles)}; got {names!r}.")
    if names is not None and titles[0] == _BLANK:
        raise ValueError(
            "--names must not be passed: the first column has no title, and holds row names."
        )
    # Columns are numbered, so that lines with more entries are refused.
    read_csv = partial(
        read_csv,
        header=0 if has_titles else None,
        index_col=False,
        names=range(len(titles)),
    )
    frame = read_csv()
    # Row names are read as text: 007 is not 7, and NA may be a name.
    place = 0 if names is None else titles.index(names)
    rows = read_csv(usecols=[place], **_AS_TEXT)[place].tolist()
    has_names = names is not None or is_blank[place] or _are_names(rows)
    if has_names:
        frame = frame.drop(columns=place).set_axis(rows)
    empty = [i for i in frame if is_blank[i] and frame[i].isna().all()]
    frame = frame.drop(columns=empty)
    if not (has_titles or has_names):
        return FileTable(frame)
    frame.columns = [titles[i] for i in frame]
    if has_titles and names is None and not is_blank[0]:
        # warn if the first line may be a row
        texts = frame.select_dtypes(exclude=["number", "bool"]).astype(str)
        used = list(frame)
        recurs = any(title in set(texts.iloc[:, j]) for j, title in enumerate(texts))
        has_number = any(map(is_number, used))
        if recurs or has_number or all(title.startswith("NA") for title in used):
            warn(
                f"{path}: the first line is used as titles ({_first_three(used)}). "
                "If it is a row, pass --no-titles."
            )
    title = titles[place] if has_titles and has_names and not is_blank[place] else None
    named_by = names or title
    return FileTable(
        frame,
        rows=rows if has_names else None,
        columns=list(frame),
        rows_from=repr(named_by) if named_by else "the first column",
        columns_from="the first line",
        title=title,
    )


def _titles(head, has_titles):
    """Return whether the first line holds titles, and the titles of all columns.

    Separators may end all lines, or all but the first. The first line may lack the title of the
    first column, as in files that R writes. A shorter line has missing values at its end.
    """
    first = head[0]
    entries = first[: len(first) - _n_blank(first)]
    has_titles = has_titles and not all(map(is_number, entries))
    body = head[1:] if has_titles else head
    width = len((body or head)[0])
    blanks = [max(width - len(line), 0) + _n_blank(line) for line in body]
    n_blank = min(blanks, default=0)
    if not has_titles:
        return False, [*map(str, range(width - n_blank))] + [_BLANK] * n_blank
    titles = [title or f"{_BLANK}{i}" for i, title in enumerate(first)]
    n_lacking = max(width - len(first), 0)
    # Separators at the end of all lines but the first do not stand for more columns.
    n_at_ends = min(n_lacking, n_blank - min(n_blank, _n_blank(first)))
    n_lacking -= n_at_ends
    if n_lacking > 1 or (n_lacking and first[0].startswith("#")):
        raise ValueError(
            "its first line, the titles, must have as many entries as the others."
        )
    return True, [_BLANK] * n_lacking + titles + [_BLANK] * n_at_ends


def _n_blank(entries):
    """Return the number of blank entries at the end."""
    return len(list(takewhile(lambda entry: not entry.strip(), reversed(entries))))


def is_number(entry):
    """Return whether an entry is a number; decimal commas are not allowed."""
    try:
        float(entry)
    except ValueError:
        return False
    return "_" not in entry  # Python allows underscores in numbers


def _are_ids(values):
    """Return whether values are distinct nonnegative whole numbers."""
    if values.dtype.kind not in "iuf" or not ((values >= 0) & (values % 1 == 0)).all():
        return False
    return len(np.unique(values)) == len(values)


def _are_names(entries):
    """Return whether entries are distinct, and none is a number, even with a comma."""
    if len(set(entries)) < len(entries):
        return False
    return not any(is_number(entry.replace(",", "")) for entry in entries)


def read_pairs(file, max_bytes, ids):
    """Read pairs of rows from a text file; `ids` are the names of the rows."""
    path = Path(file)
    columns = ["a", "b", "kind"]
    try:
        with _unchanged(path):
            _check_file_size(path, max_bytes)
            read_csv, _ = _open_text(path)
            frame = read_csv(dtype=dict.fromkeys(columns, str), keep_default_na=False)
        if not set(columns) <= set(frame.columns):
            raise ValueError(
                f"the columns must be a, b and kind, got {', '.join(frame.columns)}."
            )
        pairs = frame[columns + ["weight"] * ("weight" in frame.columns)]
        return PairwiseConstraints.from_table(pairs, ids=ids)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error


def _read_npz(path):
    # np.load would read a file that is not an archive as a pickle
    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as archive:
        if "format" in archive:
            return FileTable(sp.load_npz(path))
        if len(archive.files) != 1:
            names = ", ".join(archive.files) or "none"
            raise ValueError(f"it must hold one array, got {names}.")
        return FileTable(archive[archive.files[0]])


def _read_mtx(path, max_bytes):
    """Read a matrix; with the files of names of 10x Genomics beside it, cells become rows."""
    X = mmread(path)
    genes_from, genes = _names_beside(path, max_bytes, ("features", "genes"), 1)
    cells_from, cells = _names_beside(path, max_bytes, ("barcodes",), 0)
    if not (cells or genes):
        return FileTable(X)
    for A in (X.T, X):  # 10x Genomics writes one column per cell
        if _fits(cells, A.shape[0]) and _fits(genes, A.shape[1]):
            return FileTable(
                A,
                rows=cells[-A.shape[0] :] or None,
                columns=genes[-A.shape[1] :] or None,
                rows_from=cells_from,
                columns_from=genes_from,
            )
    files = " and ".join(file for file in (genes_from, cells_from) if file)
    warn(
        f"{path} has shape {X.shape}: names in {files} do not fit this shape, and are ignored."
    )
    return FileTable(X)


def _fits(names, size):
    """Return whether there are no names, or `size` of them, with or without a title."""
    return not names or len(names) - size in (0, 1)


def _names_beside(path, max_bytes, kinds, column):
    """Return the file of names beside a matrix, and the names in it; "" and [] if there is none."""
    prefix = path.name.partition("matrix.mtx")[0]  # as in GSM1_matrix.mtx
    for start, kind, gz in product((prefix, ""), kinds, ("", ".gz")):
        file = path.with_name(f"{start}{kind}.tsv{gz}")
        if file.is_file():
            _check_file_size(file, max_bytes)
            read_csv = imported("pandas").read_csv
            frame = read_csv(file, sep="\t", header=None, **_AS_TEXT)
            return file.name, frame.iloc[:, min(column, frame.shape[1] - 1)].tolist()
    return "", []


def suggest_layers(layers):
    """Return the advice to read one of the layers, or "" if there are none."""
    return f"pass --layer with one of its layers: {', '.join(layers)}" if layers else ""


def _read_h5ad(path, layer):
    data = imported("anndata").read_h5ad(path)
    layers = list(data.layers)
    X = data.X if layer is None else data.layers.get(layer)
    if X is None:
        lacking = "X" if layer is None else f"layer {layer!r}"
        raise ValueError(
            f"it has no {lacking}: {suggest_layers(layers) or 'it has no layers'}."
        )
    return FileTable(
        X if is_sparse(X) else data.to_df(layer),
        rows=data.obs_names.tolist(),
        columns=data.var_names.tolist(),
        rows_from="obs_names",
        columns_from="var_names",
        layers=layers,
        adata=data,
    )


_ENDINGS = (*_SEPARATORS, ".npy", ".npz", ".mtx", ".h5ad")
