"""The command line: `nmfcluster consensus table.csv`, and so on for all that takes files.

What finds clusters is imported where a command runs, so that help comes at once.
"""

import argparse
import re
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

_CANDIDATES = range(1, 16)  # the default of choose_n_clusters
_FAULTS = (ArithmeticError, ImportError, MemoryError, OSError, RuntimeError, TypeError, ValueError)
_HOW_MANY = "number of clusters, or a range to choose from; by default 1-15"
_LABELS = ("labels", "memberships")
_OF_COUNTS = "programs that counts add up, also called signatures or topics"
#: what each command finds, and the tables that it writes
COMMANDS = {
    "consensus": ("one partition out of many, of runs or given", _LABELS),
    "cluster": ("clusters that respect pairs of rows, together or apart", _LABELS),
    "fuse": ("clusters by several tables, and their weights", (*_LABELS, "weights")),
    "programs": (_OF_COUNTS, (*_LABELS, "usages", "components", "recurrence")),
    "how-many": ("how many clusters there are", ("candidates",)),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and leave."""
        self.exit(2, f"nmfcluster: error: {message.splitlines()[0]}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a fault of the user's is said in one line, with the exit status 2."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        return parser.print_help()
    shown, warnings.formatwarning = warnings.formatwarning, _in_one_line
    try:
        import_module("nmfcluster._cli.commands").run(options)
    except _FAULTS as error:
        parser.error(_of_options(str(error).strip() or repr(error)))
    finally:
        warnings.formatwarning = shown


def _in_one_line(message: Warning | str, *_: Any, **__: Any) -> str:
    return f"nmfcluster: warning: {_of_options(' '.join(str(message).split()))}\n"


def _of_options(message: str) -> str:
    """Return a message that names an option where it names a parameter."""
    return message.replace("contradictions='ignore'", "--contradictions ignore")


def _numbers(text: str) -> int | range:
    """Return the number, or the range of numbers, that an argument stands for."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be such as 5, or 2-20 to choose from, got {text!r}")
    least, most = found.groups()
    return int(least) if most is None else range(int(least), int(most) + 1)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="nmfcluster", description="Cluster tables by matrix factorization.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (what, _) in COMMANDS.items():
        own = commands.add_parser(name, help=what, description=f"Find {what}.")
        add = own.add_argument
        add("files", metavar="FILE", nargs="+" if name == "fuse" else 1)
        add("--clusters", metavar="K", type=_numbers, default=_CANDIDATES, help=_HOW_MANY)
        add("--output", metavar="PLACE", default=".", help="a folder, or how names of files begin")
        add("--force", action="store_true", help="overwrite files that are there")
        add("--names", metavar="TITLE", help="of the column that names the rows (csv, tsv)")
        add("--transpose", action="store_true", help="columns of the file are what is clustered")
        add("--random-state", metavar="N", type=int, default=0, help="seed; 0 by default")
        add("--jobs", metavar="N", type=int, help="how much is done at a time")
        add("--no-titles", action="store_true", help="the first line is a row (csv, tsv)")
        add("--max-gib", metavar="N", type=float, default=8, help="most of a file, unpacked; 8")
        kind = own.add_mutually_exclusive_group() if name == "how-many" else own
        if name in ("consensus", "how-many"):
            kind.add_argument("--partitions", action="store_true", help="columns are labellings")
        if name == "how-many":
            kind.add_argument("--counts", action="store_true", help="of programs, out of counts")
        if name == "cluster":
            add("--constraints", metavar="PAIRS", help="csv or tsv of a, b, kind")
            add("--contradictions", default="raise", help="of pairs: raise, warn or ignore")
    own = commands.add_parser("demo", help="a consensus of scikit-learn's digits, with a picture")
    own.add_argument("picture", nargs="?", default="consensus-digits.png")
    return parser
