"""Where a command writes, and how: tables as csv, a picture, one line of what was done."""

import csv
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmfcluster._cli.files import FileTable, is_number
from nmfcluster._utils.validation import format_count

Columns = Iterable[tuple[Any, Any]]  # titles, two of which may be the same, and values
_PLOT = '"nmfcluster[plot]"'  # in quotes, for shells that read brackets
_DPI = 150  # resolution of pictures, sharp on a page


class Result(NamedTuple):
    """What a command found, and what is written of it."""

    model: Any
    chosen: Any  # the result of choose_n_clusters, or None
    tables: dict[str, Columns]
    draw: Callable[[Any], Any]  # draws the model
    comment: str = ""  # what else the line of output says
    annotate: Any = None  # writes an h5ad file with the result, if there can be one

    def __str__(self) -> str:
        labels = self.model.labels_
        sizes = np.bincount(labels[labels >= 0])
        choice = ""
        if self.chosen is not None:  # its text, without its name
            choice = f" (choose_n_clusters: {str(self.chosen).partition('(')[2]}"
        counts = ", ".join(map(str, sizes))
        n_clusters = format_count(len(sizes), "cluster")
        return f"{n_clusters} of {counts} rows{choice}{self.comment}"


class Output:
    """The files that a command will write.

    Raises, before any work, where it must not write.
    """

    def __init__(self, options, tables: Iterable[str]):
        base = Path(options.output)
        if options.output.endswith(("/", os.sep)) or base.is_dir():
            base /= f"{stem(options.files[0])}-{options.command}"
        self.annotated = [base] if base.suffix == ".h5ad" else []
        if self.annotated:
            base = base.with_suffix("")
        self.tables = {
            name: base.with_name(f"{base.name}-{name}.csv") for name in tables
        }
        self.picture = base.with_name(f"{base.name}.png")
        self.mode = "w" if options.force else "x"
        folder = next(path for path in base.parents if os.path.lexists(path))
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise PermissionError(
                f"--output must be where files can be written, not in {folder}."
            )
        files = [*self.annotated, *self.tables.values(), self.picture]
        existing = [path for path in files if os.path.lexists(path)]
        readonly = [
            path
            for path in existing
            if not (path.is_file() and os.access(path, os.W_OK))
        ]
        if readonly:
            raise FileExistsError(
                f"{_join(readonly)} cannot be written to: name another --output."
            )
        if existing and not options.force:
            raise FileExistsError(
                f"{_join(existing)} would be overwritten; --force allows it."
            )

    def write(self, result: Result) -> str:
        """Write all that a command found, and return where."""
        self.picture.parent.mkdir(parents=True, exist_ok=True)
        for name, path in self.tables.items():
            columns = [
                [title, *np.asarray(values).tolist()]
                for title, values in result.tables[name]
            ]
            with path.open(self.mode, newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                for row in zip(*columns, strict=True):
                    writer.writerow([_as_text(entry) for entry in row])
        for path in self.annotated:
            result.annotate(path)
        written = _join([*self.annotated, *self.tables.values()])
        if find_spec("matplotlib") is None:
            return f"{written}; no picture without matplotlib: pip install {_PLOT}"
        figure = result.draw(result.model).figure_
        with self.picture.open(f"{self.mode}b") as file:
            figure.savefig(file, format="png", dpi=_DPI, bbox_inches="tight")
        return f"{written}, {self.picture}"


def _join(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


def _as_text(entry):
    """Return an entry that no spreadsheet takes for a formula; numbers stay as they are."""
    if not isinstance(entry, str) or is_number(entry):
        return entry
    return f"'{entry}" if entry.lstrip().startswith(("=", "+", "-", "@")) else entry


def stem(file: str) -> str:
    """Return the name of a file without its folder and ending."""
    return Path(file.removesuffix(".gz")).stem


def row_columns(table: FileTable, columns: Columns) -> Columns:
    """Return columns with an entry for every row of a table, preceded by the names of the rows."""
    names = table.rows or range(table.X.shape[0])
    title = table.title
    if title is None or title in dict(columns):
        title = "row"
    return [(title, names), *columns]


def cluster_columns(F) -> Columns:
    """Return the columns of a matrix that has one for every cluster."""
    return [(f"cluster{c}", column) for c, column in enumerate(F.T)]
