"""Answer one question: `python -m benchmarks QUESTION`, for example `python -m benchmarks papers`.

everyday is about the seconds of every estimator, features about our clusterers of features beside
scikit-learn's, HDBSCAN and Leiden; papers, regimes and scale are about consensus
clustering, scale about many samples under constraints, too; documents, pairs_everywhere,
wrong_pairs and asked_pairs about clustering under constraints, and affinities about tables that are
hard on its graph; fusion and fusion_noise about several similarities; meta, recurrence, programs,
across, counts_scale, devices and how_many_programs about the clusters that recur in many runs of
NMF, assignments about known ones; how_many_clusters about the number of clusters of anything;
distributed about tables that no machine holds. ``all`` asks every question in turn and leaves out
those whose results come from the package as it is now, so that it can be stopped and resumed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import questions, report

ALL = "all"

RESULTS = Path(__file__).with_name("results")
"""The results that the documentation shows. A quick run never writes there."""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("question", choices=(*questions.NAMES, ALL))
    parser.add_argument("--quick", action="store_true", help="toy sizes, in seconds")
    parser.add_argument(
        "--all-seeds",
        action="store_true",
        help="more seeds, draws, repeats, methods and tables, which take many hours",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="folder of the results; default: benchmarks/results, with --quick a temporary one",
    )
    chosen = parser.parse_args(arguments)
    out = chosen.out
    if out is None:
        out = (
            Path(tempfile.mkdtemp(prefix="benchmarks-quick-"))
            if chosen.quick
            else RESULTS
        )
    elif chosen.quick and out.resolve() == RESULTS.resolve():
        parser.error(
            f"--quick would write toy results over the kept ones in {out}; give --out another "
            "folder, or leave --out away for a temporary one"
        )
    failed = [
        name for name in _asked(chosen.question, out) if not _ask(name, chosen, out)
    ]
    if failed:
        parser.exit(
            1, f"These failed: {', '.join(failed)}. Ask again for what is missing.\n"
        )
    print(f"Results are in {out}")


def _asked(question: str, out: Path) -> Iterator[str]:
    """Yield the questions to ask: among all, those with a missing or a stale result."""
    if question != ALL:
        yield question
        return
    for name in questions.NAMES:
        if report.is_stale(out / f"{name}.json"):
            yield name
        else:
            print(f"{name} is up to date")


def _ask(name: str, chosen: argparse.Namespace, out: Path) -> bool:
    """Answer a question, of all in a process of its own; return whether it was answered."""
    if chosen.question != ALL:
        asked = importlib.import_module(f"benchmarks.questions.{name}")
        asked.run(chosen.quick, out, chosen.all_seeds)
        return True
    command = [sys.executable, "-m", "benchmarks", name, "--out", str(out)]
    options = ["--quick"] * chosen.quick + ["--all-seeds"] * chosen.all_seeds
    return subprocess.run([*command, *options]).returncode == 0


if __name__ == "__main__":
    main()
