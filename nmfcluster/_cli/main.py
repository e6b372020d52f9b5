"""The command line: `nmfcluster consensus table.csv`, and so on for all that takes files.

What finds clusters is imported where a command runs, so that help comes at once.
"""

import argparse
import logging
import re
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

_CANDIDATES = range(1, 16)  # the default of choose_n_clusters
_FAULTS = (
    ArithmeticError,
    ImportError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_HOW_MANY = "number of clusters, or a range to choose from; by default 1-15"
_PAUSE = 5000  # milliseconds between two lines of progress, at least
_LABELS = ("labels", "memberships")
_OF_COUNTS = "programs that counts add up, also called signatures or topics"
#: what each command finds, and the tables that it writes
COMMANDS = {
    "consensus": ("one partition out of many, of runs or given", _LABELS),
    "cluster": ("clusters that respect pairs of rows, together or apart", _LABELS),
    "fuse": ("clusters by several tables, and their weights", (*_LABELS, "weights")),
    "programs": (_OF_COUNTS, (*_LABELS, "usages", "components", "top", "recurrence")),
    "how-many": ("how many clusters there are", ("candidates",)),
}
_OPTIONS = {
    "n_clusters": "clusters",
    "candidates": "clusters",
    "n_jobs": "jobs",
}  # by parameters
_NAMED = (
    rf"(?<![\w./-])({'|'.join(_OPTIONS)}|random_state|max_samples|contradictions)"
    r"(?![\w-]|\.\w)"
)
_WORDS = (  # what a message says, and what it says where there is no Python
    (r", an instance of '[\w.]+'| or None\b", ""),
    (r"\bn_samples=(\d+)", r"the \1 rows"),
    (rf"The '{_NAMED}' parameter of \w+", r"\1"),
    (rf"{_NAMED}='?([\w.-]+\b)'?", r"\1 \2"),
    (_NAMED, lambda found: f"--{_OPTIONS.get(found[1], found[1]).replace('_', '-')}"),
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and leave."""
        self.exit(2, f"nmfcluster: error: {message.splitlines()[0]}\n")


class _Progress(logging.Handler):
    """Lines on stderr about long work: of that which is soon over there are none."""

    _last = 0.0  # when one was printed, since the start of the program

    def emit(self, record: logging.LogRecord) -> None:
        if record.relativeCreated > self._last + _PAUSE:
            self._last = record.relativeCreated
            print(f"nmfcluster: {record.getMessage()}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a fault of the user's is said in one line, with the exit status 2."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        return parser.print_help()
    shown, log, progress = (
        warnings.formatwarning,
        logging.getLogger("nmfcluster"),
        _Progress(),
    )
    warnings.formatwarning = partial(_in_one_line, set())
    log.addHandler(progress)
    log.setLevel(logging.INFO)
    try:
        import_module("nmfcluster._cli.commands").run(options)
    except _FAULTS as error:
        parser.error(_of_options(str(error).strip() or repr(error)))
    except KeyboardInterrupt:
        parser.exit(130, "nmfcluster: interrupted\n")  # as shells have it for Ctrl-C
    finally:
        warnings.formatwarning = shown
        log.removeHandler(progress)
        log.setLevel(logging.NOTSET)


def _in_one_line(told: set[str], message: Warning | str, *_: Any, **__: Any) -> str:
    """Return a warning as a line, or nothing if it was told before."""
    line = f"nmfcluster: warning: {_of_options(' '.join(str(message).split()))}\n"
    again = line in told
    told.add(line)
    return "" if again else line


def _of_options(message: str) -> str:
    """Return a message that names an option where it names a parameter."""
    for said, instead in _WORDS:
        message = re.sub(said, instead, message)
    return message


def _numbers(text: str) -> int | range:
    """Return the number, or the range of numbers, that an argument stands for."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"must be such as 5, or 2-20 to choose from, got {text!r}"
        )
    least, most = found.groups()
    return int(least) if most is None else range(int(least), int(most) + 1)


def share(text: str) -> float:
    """Return a number of rows, or a share of them, which has a point."""
    return int(text) if text.isdecimal() else float(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="nmfcluster", description="Cluster tables by matrix factorization."
    )
    version = f"nmfcluster {import_module('nmfcluster').__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (what, _) in COMMANDS.items():
        own = commands.add_parser(name, help=what, description=f"Find {what}.")
        own.set_defaults(partitions=False, counts=name == "programs")
        add = own.add_argument
        add("files", metavar="FILE", nargs="+" if name == "fuse" else 1)
        add(
            "--clusters",
            metavar="K",
            type=_numbers,
            default=_CANDIDATES,
            help=_HOW_MANY,
        )
        add(
            "--output",
            metavar="PLACE",
            default=".",
            help="a folder, or how names of files begin",
        )
        add("--force", action="store_true", help="overwrite files that are there")
        add(
            "--names",
            metavar="TITLE",
            help="of the column that names the rows (csv, tsv, txt)",
        )
        add(
            "--transpose",
            action="store_true",
            help="columns of the file are what is clustered",
        )
        add(
            "--layer",
            metavar="NAME",
            help="of the table that is read, instead of X (h5ad)",
        )
        add(
            "--random-state",
            metavar="N",
            type=int,
            default=0,
            help="seed; 0 by default",
        )
        add("--jobs", metavar="N", type=int, help="how much is done at a time")
        add(
            "--no-titles",
            action="store_true",
            help="the first line is a row (csv, tsv, txt)",
        )
        add(
            "--max-gib",
            metavar="N",
            type=float,
            default=8,
            help="most of a file, unpacked; 8",
        )
        if name in ("consensus", "how-many"):
            add = (
                own.add_mutually_exclusive_group().add_argument
            )  # at most one of what follows
            add("--partitions", action="store_true", help="columns are labellings")
            told = "rows that a run sees, or the share of them; 1.0"
            add("--max-samples", metavar="N", type=share, default=1.0, help=told)
        if name == "how-many":
            add("--counts", action="store_true", help="of programs, out of counts")
        if name == "cluster":
            add("--constraints", metavar="PAIRS", help="csv, tsv or txt of a, b, kind")
            add(
                "--contradictions",
                default="raise",
                help="of pairs: raise, warn or ignore",
            )
    own = commands.add_parser(
        "demo", help="a consensus of scikit-learn's digits, with a picture"
    )
    own.add_argument("picture", nargs="?", default="consensus-digits.png")
    return parser
