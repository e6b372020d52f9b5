"""Every method on every table of the question of programs, at the true number and at its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.kept import Kept, Run
from benchmarks.methods import (
    peer_cnmf,
    peer_cvanmf,
    peer_sigprofiler,
    programs,
)
from benchmarks.methods.peer import NoClusteringError
from benchmarks.methods.programs import Find, Finder
from benchmarks.questions._programs_data import FIGURES, Planted, Setting, scores
from benchmarks.runner import Progress

PARTS = (programs, peer_cnmf, peer_cvanmf, peer_sigprofiler)
FINDERS = {finder.name: finder for part in PARTS for finder in part.FINDERS}
AT_K, BY_CHOICE = "at the true number", "at its own choice"
MODES = (AT_K, BY_CHOICE)

COLUMNS = ("mode", "table", "method")


@dataclass
class Results:
    """The runs of all methods by mode, table and method, one a seed, and why others are missing.

    The runs in `earlier` were kept, so their seconds are not compared with those of others.
    """

    runs: dict[tuple[str, str, str], list[Run]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    earlier: set[tuple[str, str, str]] = field(default_factory=set)

    def mean(self, mode: str, table: str, method: str, figure: str) -> float | None:
        """Return the mean of a figure over the seeds, None if the method was not run or failed."""
        runs = self.runs.get((mode, table, method), [])
        return sum(run[figure] for run in runs) / len(runs) if runs else None

    def both(self, mode: str, table: str, *methods: str) -> bool:
        """Tell whether methods were done on a table."""
        return all((mode, table, method) in self.runs for method in methods)

    def timed(self, mode: str, tables: Sequence[str], *methods: str) -> list[str]:
        """Return the tables on which methods were done in this run."""
        return [
            table
            for table in tables
            if self.both(mode, table, *methods)
            and not any((mode, table, method) in self.earlier for method in methods)
        ]


def available(quick: bool) -> tuple[list[Finder], dict[str, str]]:
    """Return the methods that can run here, and why the others cannot."""
    skipped = {
        name: why for name, finder in FINDERS.items() if (why := finder.reason())
    }
    if quick:
        slow = [name for name, finder in FINDERS.items() if finder.slow]
        skipped |= {name: "it takes minutes on toy sizes, too" for name in slow}
    return [finder for name, finder in FINDERS.items() if name not in skipped], skipped


def tasks(finder: Finder, setting: Setting) -> dict[str, tuple[Find, Sequence[int]]]:
    """Return what a method is asked for on a table, by mode."""
    asked: dict[str, tuple[Find, Sequence[int]]] = {}
    if setting.kind in finder.kinds:
        if setting.n_samples <= finder.rows_at_k:
            asked[AT_K] = finder.at_k, [setting.k]
        if finder.by_choice and setting.n_samples <= finder.rows_by_choice:
            asked[BY_CHOICE] = finder.by_choice, setting.candidates
    return asked


def restricted(finders: Sequence[Finder]) -> list[str]:
    """Say which methods were not asked on all tables, as they take too long."""
    told = []
    for finder in finders:
        limits = dict(
            zip(MODES, (finder.rows_at_k, finder.rows_by_choice), strict=True)
        )
        told += [
            f"{finder.name} is run {mode} only on matrices of at most {limit:,.0f} rows, because "
            "larger ones take too long."
            for mode, limit in limits.items()
            if limit < float("inf")
        ]
    return told


def packages(names: Iterable[str]) -> dict[str, str]:
    """Return the packages of those methods that come from another project."""
    return {name: FINDERS[name].package for name in names if FINDERS[name].package}


def measure(
    finders: Sequence[Finder],
    settings: Sequence[Setting],
    seeds: Sequence[int],
    others: Kept | None = None,
) -> tuple[Results, dict[str, Planted]]:
    """Run all methods on all tables; return also the first table of every setting.

    Results of other packages that cannot run here are among the returned ones if they are kept.
    """
    asked = [(s, f, tasks(f, s)) for s in settings for f in finders]
    progress = Progress("programs", len(seeds) * sum(len(each) for *_, each in asked))
    results, first = Results(), {}
    if others is not None:
        runs = {key: _of_all_names(own) for key, own in others.runs.items()}
        where = {
            f"{name} on {setting.name}, {mode}"
            for name in FINDERS
            for setting in settings
            for mode in MODES
        }
        failed = {task: why for task, why in others.failed.items() if task in where}
        results = Results(runs, failed, set(runs))
    for seed in seeds:
        drawn = {setting.name: setting.draw(seed) for setting in settings}
        first = first or drawn
        for setting, finder, each in asked:
            for mode, (find, ks) in each.items():
                where = f"{finder.name} on {setting.name}, {mode}"
                try:
                    run = _run(find, drawn[setting.name], ks, seed)
                except (NoClusteringError, RuntimeError) as why:  # a peer has failed
                    results.failed[where] = str(why).strip().splitlines()[-1]
                else:
                    key = (mode, setting.name, finder.name)
                    results.runs.setdefault(key, []).append(run)
                progress.step(where)
    return results, first


def _of_all_names(runs: Sequence[Run]) -> list[Run]:
    """Return runs by the names of their figures, which once had an s at the end."""
    names = {f"{figure}s": figure for figure in ("k", *FIGURES)}
    return [{names.get(name, name): run[name] for name in run} for run in runs]


def _run(find: Find, planted: Planted, ks: Sequence[int], seed: int) -> Run:
    W, H, seconds = find(planted.X, ks, seed)
    return scores(planted, W, H) | {"seconds": seconds}
