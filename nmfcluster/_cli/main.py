"""The command line: `nmfcluster consensus table.csv`, and so on for all that takes files.

Nothing here imports the estimators before a command runs, so that help comes at once.
"""

import argparse
import logging
import os
import re
import sys
import warnings
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib import import_module

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

# Errors that are the user's to mend.
_ERRORS = (
    ArithmeticError,
    ImportError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_PAUSE = 5000  # smallest time between two lines of progress, in milliseconds
# Options that have another name than the parameter.
_OPTIONS = {"n_clusters": "clusters", "candidates": "clusters", "n_jobs": "jobs"}
# Options that are called otherwise elsewhere, by the names that people try.
_OTHER_NAMES = {
    "--k": "--clusters",
    "--n-components": "--clusters",
    "--n-jobs": "--jobs",
    "--threads": "--jobs",
    "--seed": "--random-state",
    "--pairs": "--constraints",
    "--index": "--names",
    "--no-header": "--no-titles",
}
_PARAMETER = (
    rf"(?<![\w./-])({'|'.join(_OPTIONS)}|random_state|max_samples|contradictions)"
    r"(?![\w-]|\.\w)"
)


def _option(found):
    name = _OPTIONS.get(found[1], found[1])
    return f"--{name.replace('_', '-')}"


# Parts of messages, and what they become where there is no Python.
_REPLACEMENTS = [
    (r", an instance of '[\w.]+'| or None\b", ""),
    (r"\bn_samples=(\d+)", r"the \1 rows"),
    (rf"The '{_PARAMETER}' parameter of \w+", r"\1"),
    (rf"{_PARAMETER}='?([\w.-]+\b)'?", r"\1 \2"),
    (
        r"key_added='\w+' would replace adata\.(\S+): give another name",
        r"--output would replace \1 of the file: give a folder",
    ),
]


class _Progress(logging.Handler):
    """Lines on stderr about long work; there are none about work that is soon over."""

    # When the last one was printed, in milliseconds since the program began.
    _last = 0.0

    def emit(self, record):
        if record.relativeCreated > self._last + _PAUSE:
            self._last = record.relativeCreated
            report(f"nmfcluster: {record.getMessage()}")


def report(line):
    """Print a line on stderr, unless its reader has closed it."""
    with suppress(BrokenPipeError):
        print(line, file=sys.stderr)


def main(arguments=None):
    """Run a command; an error of the user is one line, with the exit status 2."""
    parser = _make_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(_explain_unknown(unknown, options))
    if options.command is None:
        return parser.print_help()
    format_before = warnings.formatwarning
    warnings.formatwarning = partial(_format_warning, set())
    log = logging.getLogger("nmfcluster")
    progress = _Progress()
    log.addHandler(progress)
    log.setLevel(logging.INFO)
    try:
        import_module("nmfcluster._cli.commands").run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader of the output has closed it, as `head` does, and has all that it wants;
        # Python would print an error when it closes the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except _ERRORS as error:
        parser.error(_of_options(str(error).strip() or repr(error)))
    except KeyboardInterrupt:
        parser.exit(130, "nmfcluster: interrupted\n")  # as shells have it for Ctrl-C
    finally:
        warnings.formatwarning = format_before
        log.removeHandler(progress)
        log.setLevel(logging.NOTSET)


def _format_warning(printed, message, *_, **__):
    """Return a warning as a line, or nothing if it was printed before."""
    line = f"nmfcluster: warning: {_of_options(' '.join(str(message).split()))}\n"
    if line in printed:
        return ""
    printed.add(line)
    return line


def _of_options(message):
    """Return a message that names an option where it names a parameter."""
    for pattern, replacement in _REPLACEMENTS:
        message = re.sub(pattern, replacement, message)
    return re.sub(_PARAMETER, _option, message)


# --- what the command line accepts ---------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        """Say in one line what is wrong, and leave."""
        self.exit(2, f"nmfcluster: error: {message.splitlines()[0]}\n")


def _explain_unknown(arguments, options):
    """Return the message for arguments that a command does not have."""
    message = f"unrecognized arguments: {' '.join(arguments)}"
    known = re.findall(r"--[\w-]+", options.usage())
    name = arguments[0].partition("=")[0].replace("_", "-")
    name = f"--{name.lstrip('-')}"
    meant = [_OTHER_NAMES.get(name), *get_close_matches(name, known)]
    # the option that is meant, or else all
    likely = [option for option in meant if option in known][:1]
    if known:
        message += f"; the command has {', '.join(likely or known)}"
    return message


def _make_parser():
    """Return the parser of all commands."""
    parser = _Parser(
        prog="nmfcluster", description="Cluster tables by matrix factorization."
    )
    version = f"nmfcluster {import_module('nmfcluster').__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.set_defaults(usage=str)  # no options to name
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (purpose, _) in COMMANDS.items():
        command = commands.add_parser(
            name, help=purpose, description=f"Find {purpose}."
        )
        command.set_defaults(
            constraints=None,
            partitions=False,
            counts=name == "programs",
            usage=command.format_usage,
        )
        add = command.add_argument
        add("files", metavar="FILE", nargs="+" if name == "fuse" else 1)
        add(
            "--clusters",
            "--n-clusters",
            metavar="K",
            type=_number_or_range,
            default=range(1, 16),  # that of choose_n_clusters
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
        if name in ("consensus", "how-many"):
            either = command.add_mutually_exclusive_group().add_argument
            either("--partitions", action="store_true", help="columns are labellings")
            either(
                "--max-samples",
                metavar="N",
                type=number_or_share,
                default=1.0,
                help="rows that a run sees, or the share of them; 1.0",
            )
            if name == "how-many":
                either(
                    "--counts", action="store_true", help="of programs, out of counts"
                )
        if name == "cluster":
            add("--constraints", metavar="PAIRS", help="csv, tsv or txt of a, b, kind")
            add(
                "--contradictions",
                default="raise",
                help="of pairs: raise, warn or ignore",
            )
    demo = commands.add_parser(
        "demo", help="a consensus of scikit-learn's digits, with a picture"
    )
    demo.add_argument("picture", nargs="?", default="consensus-digits.png")
    return parser


def _number_or_range(text):
    """Return the number, or the range of numbers, that an argument stands for."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"must be such as 5, or 2-20 to choose from, got {text!r}"
        )
    first, last = found.groups()
    return range(int(first), int(last) + 1) if last else int(first)


def number_or_share(text):
    """Return a number of rows, or a share of them, which has a point."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number of rows such as 500, or a share such as 0.5, got {text!r}"
        ) from None
