"""Results of other packages that cannot run here, taken over from the result that is there.

Other packages need environments of their own and change rarely. Where the interpreter of one is
not set, a question reads the runs that the last result has of it, of the same data and settings,
and writes them again with the version of the package and the commit of nmfcluster at which they
were measured.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.methods import peer

METHOD = "method"  # column that names the method of a row
RUNS = "runs"  # usual heading of the details

Key = tuple[Any, ...]
Run = dict[str, float]
Runs = dict[Key, list[Run]]


@dataclass
class Kept:
    """Runs of methods that cannot run here.

    Attributes
    ----------
    runs : dict of key: runs
        A key has the values of the columns that name a row, such as data set and method.
    commits : dict of key: str
        Commits of nmfcluster at which the runs were measured.
    packages : dict of method: str
        Names and versions of the packages.
    failed : dict of str: str
        Why methods have no runs on some data sets, by "METHOD on DATA".
    """

    runs: Runs = field(default_factory=dict)
    commits: dict[Key, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    _commits: dict[str, set[str]] = field(default_factory=dict)  # by method

    def add(self, key: Key, method: str, runs: list[Run], commit: str) -> None:
        self.runs[key] = runs
        self.commits[key] = commit
        self._commits.setdefault(method, set()).add(commit)

    def missing(self, skipped: Mapping[str, str]) -> dict[str, str]:
        """Return the methods that neither can run here nor have runs that are kept."""
        return {name: why for name, why in skipped.items() if name not in self._commits}

    def notes(self) -> list[str]:
        """Return a note that names the methods whose runs are kept, nothing if there are none."""
        if not self._commits:
            return []
        groups: dict[tuple[str, ...], list[str]] = {}
        for method, commits in sorted(self._commits.items()):
            source = self.packages[method], *sorted(commits)
            groups.setdefault(source, []).append(f"'{method}'")
        parts = []
        for (package, *commits), methods in sorted(groups.items()):
            at = "commit" if len(commits) == 1 else "commits"
            parts.append(f"{_list(methods)} ({package}, {at} {_list(commits)})")
        return [
            "Results of packages that are not installed here, and their seconds, were measured "
            "earlier, on the same data and with the same settings, at these commits of "
            f"nmfcluster: {'; '.join(parts)}."
        ]

    def versions(self, packages: Mapping[str, str]) -> dict[str, str]:
        """Return names and versions of the packages of kept runs, and of methods that ran here."""
        of_kept = {name: self.packages[name] for name in sorted(self._commits)}
        return of_kept | {name: peer.version(own) for name, own in packages.items()}

    def in_details(
        self, columns: Sequence[str], runs: Runs, heading: str = RUNS
    ) -> dict[str, list[report.Row]]:
        """Return all runs as rows for the JSON file, those that are kept by their commit."""
        parts: dict[str, Runs] = {heading: {}}
        for key, own in runs.items():
            commit = self.commits.get(key)
            of = f"{heading} of {commit}" if commit else heading
            parts.setdefault(of, {})[key] = own
        return {title: report.by_run(columns, part) for title, part in parts.items()}


def read(
    file: Path,
    packages: Mapping[str, str],
    columns: Sequence[str],
    same: Mapping[str, Collection[Any]],
    n_runs: int,
    heading: str = RUNS,
) -> Kept:
    """Return what a result has of methods that cannot run here.

    Parameters
    ----------
    file : Path
        The JSON file of the result. Nothing is kept if it does not exist.
    packages : dict of method: str
        The packages of the methods to look for.
    columns : sequence of str
        Those that name a row of the details, one of them `METHOD`.
    same : dict of column: values
        Data and settings of this run. Other rows are not kept.
    n_runs : int
        Seeds of this run. Further ones are not kept.
    heading : str, default="runs"
        Of the details.
    """
    found = Kept()
    if not packages or not file.exists():
        return found
    content = json.loads(file.read_text("utf-8"))
    known = content["environment"].get("packages", {})
    found.packages = {
        method: known.get(method, peer.pinned(package))
        for method, package in packages.items()
    }
    for what, why in content["skipped"].items():
        method, on, _ = what.partition(" on ")
        if on and method in packages:
            found.failed[what] = why
    for title, rows in content["details"].items():
        name, _, commit = title.partition(" of ")
        if name != heading:
            continue
        for row in rows:
            if row[METHOD] in packages and _is_same(row, same):
                figures = {
                    figure: own for figure, own in row.items() if isinstance(own, list)
                }
                runs = [
                    dict(zip(figures, run, strict=True))
                    for run in zip(*figures.values(), strict=True)
                ]
                key = tuple(row[column] for column in columns)
                measured = commit or content["environment"]["commit"]
                found.add(key, row[METHOD], runs[:n_runs], measured)
    return found


def _is_same(row: Mapping[str, Any], same: Mapping[str, Collection[Any]]) -> bool:
    return all(row[column] in values for column, values in same.items())


def _list(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
