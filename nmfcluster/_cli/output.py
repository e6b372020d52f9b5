"""Where a command writes, and how: tables as csv, a picture, one line of what was done."""

import csv
import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmfcluster._cli.files import FileTable, is_number
from nmfcluster._utils.validation import counted

Columns = Iterable[tuple[Any, Any]]  # titles, two of which may be the same, and values
_PLOT = '"nmfcluster[plot]"'  # in quotes, for shells that read brackets
_DPI = 150  # of pictures: sharp on a page


class Result(NamedTuple):
    """What a command found, and wants to be written."""

    model: Any
    chosen: Any  # what choose_n_clusters returned, if it was asked
    tables: dict[str, Columns]
    draw: Callable[[Any], Any]  # a picture of the model
    told: str = ""  # what else a line says
    annotate: Callable[[Path], None] | None = (
        None  # write an h5ad file with what was found
    )

    def __str__(self) -> str:
        told, sizes = "", np.bincount(self.model.labels_[self.model.labels_ >= 0])
        if self.chosen is not None:  # its text, without its name
            told = f" (choose_n_clusters: {str(self.chosen).partition('(')[2]}"
        counts = ", ".join(map(str, sizes))
        return f"{counted(len(sizes), 'cluster')} of {counts} rows{told}{self.told}"


class Place:
    """The files that a command will write; raises, before any work, where it must not."""

    def __init__(self, options: Any, tables: Iterable[str]) -> None:
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
        home = next(folder for folder in base.parents if os.path.lexists(folder))
        if not (home.is_dir() and os.access(home, os.W_OK)):
            raise PermissionError(
                f"--output must be where files can be written, not in {home}."
            )
        wanted = (*self.annotated, *self.tables.values(), self.picture)
        there = [path for path in wanted if os.path.lexists(path)]
        fixed = [
            path for path in there if not (path.is_file() and os.access(path, os.W_OK))
        ]
        if there and (fixed or not options.force):
            bad = "cannot be written to: name another --output" if fixed else ""
            told = bad or "would be overwritten; --force allows it"
            raise FileExistsError(f"{', '.join(map(str, fixed or there))} {told}.")

    def write(self, result: Result) -> str:
        """Write all that a command found, and say where."""
        self.picture.parent.mkdir(parents=True, exist_ok=True)
        for name, path in self.tables.items():
            titles, values = zip(*result.tables[name], strict=True)
            with path.open(self.mode, newline="", encoding="utf-8") as file:
                columns = (
                    map(_as_text, np.asarray(column).tolist()) for column in values
                )
                csv.writer(file).writerow(map(_as_text, titles))
                csv.writer(file).writerows(zip(*columns, strict=True))
        if result.annotate is not None and self.annotated:
            result.annotate(*self.annotated)
        written = ", ".join(map(str, (*self.annotated, *self.tables.values())))
        if find_spec("matplotlib") is None:
            return f"{written}; no picture without matplotlib: pip install {_PLOT}"
        figure = result.draw(result.model).figure_
        with self.picture.open(f"{self.mode}b") as file:
            figure.savefig(file, format="png", dpi=_DPI, bbox_inches="tight")
        return f"{written}, {self.picture}"


def _as_text(entry: Any) -> Any:
    """Return an entry of which no spreadsheet makes a formula; a number is none."""
    formula = isinstance(entry, str) and entry.lstrip()[:1] in tuple("=+-@")
    return f"'{entry}" if formula and not is_number(entry) else entry


def stem(file: str) -> str:
    """Return the name of a file without its folder and ending."""
    return Path(file.removesuffix(".gz")).stem


def of_rows(table: FileTable, columns: Columns) -> Columns:
    """Return columns with an entry for every row of a table, behind the names of these."""
    names = range(table.X.shape[0]) if table.rows is None else table.rows
    title = (
        "row"
        if table.title in (None, *(title for title, _ in columns))
        else table.title
    )
    return [(title, names), *columns]


def of_clusters(F: np.ndarray) -> Columns:
    """Return the columns of a matrix that has one for every cluster."""
    return [(f"cluster{c}", column) for c, column in enumerate(F.T)]
