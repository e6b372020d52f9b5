"""Which method finds the programs that made counts?

Counts of cells by genes, and of genomes by kinds of mutations, are drawn from known programs.
Methods are asked for these at their true number, and at the number that they choose themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import kept, report
from benchmarks.methods import peer_cnmf, peer_cvanmf, peer_sigprofiler
from benchmarks.methods.programs import N_JOBS, OURS, OWN
from benchmarks.questions._programs_data import (
    FIGURES,
    FOUND,
    NEAR,
    SETTINGS,
    TOY,
    Setting,
    about,
)
from benchmarks.questions._programs_runs import (
    AT_K,
    BY_CHOICE,
    COLUMNS,
    FINDERS,
    MODES,
    Results,
    available,
    measure,
    packages,
    restricted,
)

FEW = 4  # one table in so many is taken, unless all are asked for: other packages take minutes
SHARE, FASTER = 0.8, 5.0  # targets: of the tables, and times as fast as cNMF
ROUNDING = 1e-9  # figures that differ by less are equal
DIGITS = {"found": 0, "own found": 0, "k": 0}  # the other figures have three
COMPARED = {"F1": "F1", "own F1": "by own part", "usage": "usages"}
CHOSEN = {"k": "Number of programs"} | {
    f: FIGURES[f] for f in ("F1", "own F1", "seconds")
}
SHOWN = {AT_K: FIGURES, BY_CHOICE: CHOSEN}  # figures that have a table
CNMF = peer_cnmf.NAME


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    settings = TOY if quick else SETTINGS if all_seeds else SETTINGS[::FEW]
    finders, skipped = available(quick)
    others = kept.read(
        out / "programs.json",
        packages(skipped),
        COLUMNS,
        {"table": [setting.name for setting in settings]},
        1,
    )
    results, first = measure(finders, settings, range(1), others)
    tables: dict[str, Any] = {"The tables": [about(s, first[s.name]) for s in settings]}
    for mode, figures in SHOWN.items():
        made = {"Ours beside others": beside(results, mode, settings)}
        made |= {
            title: by_table(results, mode, settings, f) for f, title in figures.items()
        }
        tables |= {f"{title}, {mode}": rows for title, rows in made.items() if rows}
    notes = [line for mode in MODES for line in verdicts(results, mode, settings)]
    notes += restricted(finders) + others.notes()
    details = others.in_details(COLUMNS, results.runs)
    draw = partial(_draw, results, settings)
    versions = others.versions(packages(finder.name for finder in finders))
    skipped = others.missing(skipped) | results.failed
    return report.write(
        out,
        "programs",
        _caption(versions.values()),
        tables,
        draw,
        notes,
        skipped,
        details,
        versions,
    )


def _caption(versions: Iterable[str]) -> str:
    named = ", ".join(sorted(set(versions)))
    return (
        "Planted programs, with one matrix of each setting, from easy to hard. They come from "
        "`make_programs`, where 'common' is the share of the counts in genes that all programs "
        "have, and from `make_signatures`. A program is found if its cosine with the component "
        f"that it is matched with, one to one, is {FOUND:g} or more. F1 combines the shares of "
        "programs and of components that are found. Programs with many common genes have large "
        "cosines anyway. 'by their own part' therefore first subtracts the mean of the planted "
        "programs from all of them, each scaled to sum to 1. Correlation is that of usages, and "
        "0 for a program without a component. Losses are those of W H as returned; means below "
        "1.2e-7 count as that value. 'ours' is NMFMetaCluster with its defaults, "
        f"n_jobs={N_JOBS}, the loss of counts (KL) or least squares (Frobenius), and runs on all "
        "data or on resampled data. scikit-learn's runs are NMF(init='random'), with up to 1,000 "
        f"updates of 'cd' or 500 of 'mu'. cNMF has its defaults, {peer_cnmf.RUNS} runs, and all "
        f"genes. cvanmf is the best of {peer_cvanmf.RUNS} runs. SigProfilerExtractor has "
        f"{peer_sigprofiler.RUNS} replicates instead of its default of 100, and does not match "
        "known signatures at the end. Two cores: ours and scikit-learn's runs use two threads, "
        "cNMF and SigProfilerExtractor two processes, and cvanmf one, all with one BLAS thread "
        f"each. Seconds do not include imports. Own choices are among numbers within {NEAR} of "
        "the true one: cNMF's most stable number, cvanmf's elbow in bi-cross-validation with ten "
        "shuffles, and SigProfilerExtractor's suggested solution."
        + (f" The other packages are {named}." if named else "")
    )


def others(results: Results, mode: str) -> list[str]:
    """Return the methods of others that were run."""
    done = {name for where, _, name in results.runs if where == mode}
    return [name for name in FINDERS if name in done - {*OWN}]


def by_table(
    results: Results, mode: str, settings: Sequence[Setting], figure: str
) -> list[report.Row]:
    """Return a row for every table, with a column for every method, and the means by kind."""
    methods = [
        name
        for name in FINDERS
        if any(key[::2] == (mode, name) for key in results.runs)
    ]
    if not methods:
        return []
    rows = []
    for setting in settings:
        values = {m: results.mean(mode, setting.name, m, figure) for m in methods}
        cells = {m: _cell(value, figure) for m, value in values.items()}
        rows.append({"table": setting.name} | cells)
    for kind in dict.fromkeys(setting.kind for setting in settings):
        own = [setting for setting in settings if setting.kind == kind]
        row: report.Row = {"table": f"mean of {kind}"}
        for method in methods:
            told = [results.mean(mode, s.name, method, figure) for s in own]
            there = [value for value in told if value is not None]
            mean = _cell(float(np.mean(there)), figure, 1) if there else None
            row[method] = (
                mean if len(there) in (0, len(own)) else f"{mean} (of {len(there)})"
            )
        rows.append(row)
    return rows


def _cell(value: float | None, figure: str, more: int = 0) -> str | None:
    """Return a figure as text; a mean has digits that a number of programs has not."""
    if value is None:
        return "not done"
    if figure == "seconds":
        return report.cell(value)
    return f"{value:.{DIGITS[figure] + more if figure in DIGITS else 3}f}"


def beside(
    results: Results, mode: str, settings: Sequence[Setting]
) -> list[report.Row]:
    """Return a row for every other method, of the tables that it and ours were done on."""
    rows = []
    for name in others(results, mode):
        tables = [s.name for s in settings if results.both(mode, s.name, OURS, name)]
        if not tables:
            continue
        row: report.Row = {"beside": name, "tables": len(tables)}
        for figure, title in COMPARED.items():
            ours, theirs = (
                _figures(results, mode, tables, m, figure) for m in (OURS, name)
            )
            row |= {
                f"{title}, ours": f"{ours.mean():.3f}",
                f"{title}, its": f"{theirs.mean():.3f}",
            }
            row[f"{title}, ours at or above"] = int((ours >= theirs - ROUNDING).sum())
        if timed := results.timed(mode, tables, OURS, name):
            ratios = _ratios(results, mode, timed, name)
            row |= {"its seconds over ours, median": float(np.median(ratios))}
            row |= {"smallest": float(ratios.min()), "largest": float(ratios.max())}
        rows.append(row)
    return rows


def _figures(
    results: Results, mode: str, tables: Sequence[str], method: str, figure: str
) -> np.ndarray:
    return np.array([results.mean(mode, table, method, figure) for table in tables])


def _ratios(
    results: Results, mode: str, tables: Sequence[str], method: str
) -> np.ndarray:
    """Return the seconds of a method over ours."""
    ours, theirs = (
        _figures(results, mode, tables, m, "seconds") for m in (OURS, method)
    )
    return theirs / ours


def verdicts(results: Results, mode: str, settings: Sequence[Setting]) -> list[str]:
    """Say how often ours is at or above the best of all others, and how fast beside cNMF."""
    rivals = others(results, mode)
    tables = [s.name for s in settings if (mode, s.name, OURS) in results.runs]
    if not tables:
        return []
    told = [_verdict(results, mode, tables, figure) for figure in ("F1", "own F1")]
    behind = []
    for name in rivals:
        done = [table for table in tables if results.both(mode, table, OURS, name)]
        ours, its = (
            _figures(results, mode, done, m, "F1").mean() for m in (OURS, name)
        )
        if ours < its - ROUNDING:
            behind.append(f"{name}, {its:.3f} against {ours:.3f}")
    told.append(
        f"Mean F1, {mode}, over the tables that a method was done on: '{OURS}' is at or above "
        f"every other: {'missed' if behind else 'met'}. Above: {'; '.join(behind) or 'none'}."
    )
    if timed := results.timed(mode, tables, OURS, CNMF):
        ratios = _ratios(results, mode, timed, CNMF)
        told.append(
            f"Seconds, {mode}: {CNMF} takes {np.median(ratios):.1f} times those of '{OURS}' in the "
            f"median, {ratios.min():.1f} to {ratios.max():.1f} (target: {FASTER:g}): met on "
            f"{(ratios >= FASTER).sum()} of {len(ratios)} tables."
        )
    return told


def _verdict(results: Results, mode: str, tables: Sequence[str], figure: str) -> str:
    met, missed = 0, []
    for table in tables:
        rivals = [
            m for m in others(results, mode) if results.both(mode, table, OURS, m)
        ]
        its = {m: float(_figures(results, mode, [table], m, figure)[0]) for m in rivals}
        best = max(its, key=its.__getitem__, default=OURS)
        [ours] = _figures(results, mode, [table], OURS, figure)
        if ours >= its.get(best, 0) - ROUNDING:
            met += 1
        else:
            missed.append(f"{table}, {ours:.3f} against {its[best]:.3f} of {best}")
    reached = "met" if met >= SHARE * len(tables) else "missed"
    return (
        f"{FIGURES[figure]}, {mode}: '{OURS}' is at or above the best of all others on {met} of "
        f"{len(tables)} tables (target: {SHARE:.0%}): {reached}. "
        f"Below: {'; '.join(missed) or 'none'}."
    )


def _draw(results: Results, settings: Sequence[Setting], figure: Any) -> None:
    figure.set_size_inches(9, 8)
    axes = figure.subplots(1, 2, sharey=True)
    tables = [setting.name for setting in settings][::-1]
    for ax, shown in zip(axes, ("F1", "seconds"), strict=True):
        for method in FINDERS:
            told = [results.mean(AT_K, table, method, shown) for table in tables]
            places = [(value, y) for y, value in enumerate(told) if value is not None]
            if places:
                style = "o" if method in OWN else "x"
                ax.plot(*zip(*places, strict=True), style, label=method, alpha=0.7)
        ax.set_xlabel(FIGURES[shown])
    axes[0].set(yticks=range(len(tables)), yticklabels=tables)
    axes[1].set_xscale("log")
    names = axes[0].get_legend_handles_labels()
    figure.legend(*names, fontsize="small", ncols=3, loc="outside upper center")
