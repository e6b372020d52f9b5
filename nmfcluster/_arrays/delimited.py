"""Tables as text, such as csv: what the lines hold, before numbers are made of them."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_Lines = Iterator[tuple[int, list[str]]]


class Layout(NamedTuple):
    """What the lines of a file hold.

    Attributes
    ----------
    titled : bool
        Whether the first line holds titles, and no numbers.
    titles : list of str
        Of the columns; their numbers where there are none.
    n_entries : int
        Of a line: more than columns where a separator ends every line.
    rows : list of str or None
        The names of the rows, if a column holds them.
    place : int
        Of that column.
    first : int
        Place of the column that the first title is of: 1 where one title is left out, as R writes.
    """

    titled: bool
    titles: list[str]
    n_entries: int
    rows: list[str] | None
    place: int = 0
    first: int = 0


def layout_of(path: Path, separator: str, names: str | None) -> Layout:
    r"""Return what the lines of a file hold; raise where they are not of one length.

    Parameters
    ----------
    path : Path
    separator : {",", "\t"}
    names : str or None
        Title of the column that names the rows.

    Returns
    -------
    Layout
    """
    lines = _lines(path, separator)
    number, first = next(lines, (0, []))
    if not first:
        raise ValueError("it is empty.")
    _check_separator(first, separator)
    titled = not all(map(_is_number, first[: len(first) - _n_blank(first)]))
    titles = _distinct(first) if titled else [str(i) for i in range(len(first))]
    if names not in (None, *titles):
        raise ValueError(f"--names must be one of {', '.join(titles)}; got {names!r}.")
    place = 0 if names is None else titles.index(names)
    body = lines if titled else chain([(number, first)], lines)
    n_entries, n_blank, written = _read(body, place)
    if not written:
        raise ValueError("it must hold a table of rows and columns, got titles alone.")
    if not titled:
        titles = titles[: n_entries - n_blank]
        return Layout(False, titles, n_entries, None if names is None else written, place)
    ends = min(n_blank, _n_blank(first))  # separators that end all lines, the first one too
    titles = titles[: len(titles) - ends]
    more = n_entries - ends - len(titles)
    more -= min(max(more, 0), n_blank - ends)  # those that end all lines but the first one
    if more not in (0, 1) or (more and first[0].startswith("#")):
        raise ValueError(
            "lines must have equally many entries, but the first, which holds titles, has "
            f"{len(titles)}, the others have {len(titles) + more}."
        )
    if more and names is not None:
        raise ValueError("--names cannot be given: the first column, without a title, has names.")
    named = more or names is not None or not first[0].strip() or _are_names(written)
    return Layout(True, titles, n_entries, written if named else None, place, int(more))


def _lines(path: Path, separator: str) -> _Lines:
    """Yield the number of every line that is not blank, and its entries."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        try:
            for entries in reader:
                if len(entries) > 1 or "".join(entries).strip():
                    yield reader.line_num, entries
        except UnicodeDecodeError:
            raise ValueError("it must be text in UTF-8.") from None


def _read(lines: _Lines, place: int) -> tuple[int, int, list[str]]:
    """Return how many entries all lines have, how many blank ones end all, and one column."""
    n_entries, n_blank = 0, 0
    written: list[str] = []
    for number, entries in lines:
        if not written:
            n_entries = n_blank = len(entries)
        if len(entries) != n_entries:
            raise ValueError(
                "lines must have equally many entries, but the one that ends in line "
                f"{number} has {len(entries)}, those before it have {n_entries}."
            )
        n_blank = min(n_blank, _n_blank(entries)) if n_blank else 0
        written.append(entries[place] if place < n_entries else "")
    return n_entries, n_blank, written


def _n_blank(entries: list[str]) -> int:
    """Return how many entries at the end are blank."""
    n = 0
    while n < len(entries) and not entries[-1 - n].strip():
        n += 1
    return n


def _is_number(entry: str) -> bool:
    try:
        float(entry)
    except ValueError:
        return False
    return "_" not in entry  # which Python reads over


def _are_names(written: list[str]) -> bool:
    """Return whether entries differ, and none is a number, with a comma or without one."""
    differ = len(set(written)) == len(written)
    return differ and not any(_is_number(entry.replace(",", "")) for entry in written)


def _check_separator(first: list[str], separator: str) -> None:
    """Raise where it is something else that separates the entries of the first line."""
    line = separator.join(first)
    for other, name in _SEPARATORS.items():
        parts = line.split(other)
        apart = len(first) == 1 or all(_is_number(part.replace(",", ".")) for part in parts)
        if other != separator and len(parts) > 1 and apart:
            raise ValueError(
                f"its entries must be separated by {_SEPARATORS[separator]}, not by {name}; "
                "numbers have points, not commas."
            )


def _distinct(first: list[str]) -> list[str]:
    """Return titles, none of which is blank, and no two of which are the same."""
    seen: Counter[str] = Counter()
    titles = []
    for number, entry in enumerate(first):
        title = entry if entry.strip() else f"Unnamed: {number}"
        titles.append(f"{title}.{seen[title]}" if seen[title] else title)
        seen[title] += 1
    return titles
