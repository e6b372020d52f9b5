"""What the command line accepts: its commands and their options.

Nothing here imports the estimators, so that help comes at once.
"""

import argparse
import re
from importlib import import_module
from typing import NoReturn

_CANDIDATES = range(1, 16)  # the default of choose_n_clusters
_LABELS = ("labels", "memberships")
# What each command finds, and the tables that it writes.
COMMANDS = {
    "consensus": ("one partition out of many, of runs or given", _LABELS),
    "cluster": ("clusters that respect pairs of rows, together or apart", _LABELS),
    "fuse": ("clusters by several tables, and their weights", (*_LABELS, "weights")),
    "programs": (
        "programs that counts add up, also called signatures or topics",
        (*_LABELS, "usages", "components", "top", "recurrence"),
    ),
    "how-many": ("how many clusters there are", ("candidates",)),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and leave."""
        self.exit(2, f"nmfcluster: error: {message.splitlines()[0]}\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="nmfcluster", description="Cluster tables by matrix factorization."
    )
    version = f"nmfcluster {import_module('nmfcluster').__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (purpose, _) in COMMANDS.items():
        command = commands.add_parser(
            name, help=purpose, description=f"Find {purpose}."
        )
        command.set_defaults(partitions=False, counts=name == "programs")
        _add_common_options(command, several_files=name == "fuse")
        if name in ("consensus", "how-many"):
            exclusive = command.add_mutually_exclusive_group()
            exclusive.add_argument(
                "--partitions", action="store_true", help="columns are labellings"
            )
            exclusive.add_argument(
                "--max-samples",
                metavar="N",
                type=number_or_share,
                default=1.0,
                help="rows that a run sees, or the share of them; 1.0",
            )
            if name == "how-many":
                exclusive.add_argument(
                    "--counts", action="store_true", help="of programs, out of counts"
                )
        if name == "cluster":
            command.add_argument(
                "--constraints", metavar="PAIRS", help="csv, tsv or txt of a, b, kind"
            )
            command.add_argument(
                "--contradictions",
                default="raise",
                help="of pairs: raise, warn or ignore",
            )
    demo = commands.add_parser(
        "demo", help="a consensus of scikit-learn's digits, with a picture"
    )
    demo.add_argument("picture", nargs="?", default="consensus-digits.png")
    return parser


def _add_common_options(command: argparse.ArgumentParser, several_files: bool):
    """Add the arguments that all commands for files have."""
    add = command.add_argument
    add("files", metavar="FILE", nargs="+" if several_files else 1)
    add(
        "--clusters",
        metavar="K",
        type=_number_or_range,
        default=_CANDIDATES,
        help="number of clusters, or a range to choose from; by default 1-15",
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


def _number_or_range(text: str) -> int | range:
    """Return the number, or the range of numbers, that an argument stands for."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"must be such as 5, or 2-20 to choose from, got {text!r}"
        )
    first, last = found.groups()
    return range(int(first), int(last) + 1) if last else int(first)


def number_or_share(text: str) -> float:
    """Return a number of rows, or a share of them, which has a point."""
    return int(text) if text.isdecimal() else float(text)
