"""Parser and entry point of the command line, as in `nmfcluster consensus table.csv`.

The estimators are imported only when a command runs, so that `--help` is fast.
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
# Purpose of each command, and the tables that it writes.
COMMANDS = {
    "consensus": ("combine many clusterings, generated or supplied, into one", _LABELS),
    "cluster": ("cluster rows under must-link and cannot-link constraints", _LABELS),
    "fuse": ("cluster rows that several tables describe", (*_LABELS, "weights")),
    "programs": (
        "find programs (signatures, topics) in counts",
        (*_LABELS, "usages", "components", "top", "recurrence"),
    ),
    "how-many": ("choose the number of clusters", ("candidates",)),
}

# Errors that are printed in one line, without a traceback.
_ERRORS = (
    ArithmeticError,
    ImportError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
_PAUSE = 5000  # shortest time between two lines of progress, in milliseconds
# Parameters, and their options if these have other names.
_OPTIONS = {"n_clusters": "clusters", "candidates": "clusters", "n_jobs": "jobs"}
# Names that options have in other programs, and our names.
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


# Parts of messages about Python, and their replacements on the command line.
_REPLACEMENTS = [
    (r", an instance of '[\w.]+'| or None\b", ""),
    (r"\bn_samples=(\d+)", r"the \1 rows"),
    (rf"The '{_PARAMETER}' parameter of \w+", r"\1"),
    (rf"{_PARAMETER}='?([\w.-]+\b)'?", r"\1 \2"),
    (
        r"key_added='\w+' would replace adata\.(\S+): give another name",
        r"--output would replace \1 of the file: pass a folder",
    ),
]


class _Progress(logging.Handler):
    """Prints progress on stderr, at most one line every `_PAUSE`; none in short fits."""

    # time of the last line, in milliseconds since the program started
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
    """Run a command; an error is printed in one line, and the exit status is 2."""
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
        # The reader of the output, such as `head`, has closed it. Redirect the output, or
        # Python prints an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except _ERRORS as error:
        parser.error(_of_options(str(error).strip() or repr(error)))
    except KeyboardInterrupt:
        parser.exit(130, "nmfcluster: interrupted\n")  # status of shells after Ctrl-C
    finally:
        warnings.formatwarning = format_before
        log.removeHandler(progress)
        log.setLevel(logging.NOTSET)


def _format_warning(printed, message, *_, **__):
    """Return a warning as a line, or "" if it was printed before."""
    line = f"nmfcluster: warning: {_of_options(' '.join(str(message).split()))}\n"
    if line in printed:
        return ""
    printed.add(line)
    return line


def _of_options(message):
    """Return a message with the names of options in place of parameters."""
    for pattern, replacement in _REPLACEMENTS:
        message = re.sub(pattern, replacement, message)
    return re.sub(_PARAMETER, _option, message)


# --- what the command line accepts ---------------------------------------------------


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        """Print the message in one line, and exit with status 2."""
        self.exit(2, f"nmfcluster: error: {message.splitlines()[0]}\n")


def _explain_unknown(arguments, options):
    """Return the message for arguments that a command does not have."""
    message = f"unrecognized arguments: {' '.join(arguments)}"
    known = re.findall(r"--[\w-]+", options.usage())
    name = arguments[0].partition("=")[0].replace("_", "-")
    name = f"--{name.lstrip('-')}"
    meant = [_OTHER_NAMES.get(name), *get_close_matches(name, known)]
    # suggest the option that is probably meant, or else list all options
    likely = [option for option in meant if option in known][:1]
    if known:
        message += f"; the command has {', '.join(likely or known)}"
    return message


def _make_parser():
    """Return the parser of all commands."""
    parser = _Parser(
        prog="nmfcluster",
        description="Cluster tables by nonnegative matrix factorization.",
    )
    version = f"nmfcluster {import_module('nmfcluster').__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.set_defaults(usage=str)  # without a command, list no options
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (purpose, _) in COMMANDS.items():
        command = commands.add_parser(
            name, help=purpose, description=f"{purpose.capitalize()}."
        )
        command.set_defaults(
            constraints=None,
            partitions=False,
            counts=name == "programs",
            usage=command.format_usage,
        )
        _add_common_options(command, name)
        _add_own_options(command, name)
    demo = commands.add_parser(
        "demo",
        help="cluster the digits of scikit-learn, and draw a picture",
        description="Cluster digits, compare the result with k-means, and draw it.",
    )
    demo.add_argument(
        "picture",
        nargs="?",
        default="consensus-digits.png",
        help="file to save the picture to (default: consensus-digits.png)",
    )
    return parser


def _add_common_options(command, name):
    """Add the files and the options that all commands of files have."""
    add = command.add_argument
    add(
        "files",
        metavar="FILE",
        nargs="+" if name == "fuse" else 1,
        help="table: csv, tsv, txt, npy, npz, mtx or h5ad",
    )
    add(
        "--clusters",
        "--n-clusters",
        metavar="K",
        type=_number_or_range,
        default=range(1, 16),  # default of choose_n_clusters
        help="number of clusters, or a range to choose it from (default: 1-15)",
    )
    add(
        "--output",
        metavar="PLACE",
        default=".",
        help="folder or prefix of the output files (default: current folder)",
    )
    add("--force", action="store_true", help="overwrite existing files")
    add(
        "--names",
        metavar="TITLE",
        help="title of the column that holds the row names (csv, tsv, txt)",
    )
    add(
        "--transpose",
        action="store_true",
        help="cluster the columns of the file, not its rows",
    )
    add(
        "--layer",
        metavar="NAME",
        help="layer to read instead of X (h5ad)",
    )
    add(
        "--random-state",
        metavar="N",
        type=int,
        default=0,
        help="random seed (default: 0)",
    )
    add("--jobs", metavar="N", type=int, help="number of parallel jobs")
    add(
        "--no-titles",
        action="store_true",
        help="the file has no column titles (csv, tsv, txt)",
    )
    add(
        "--max-gib",
        metavar="N",
        type=float,
        default=8,
        help="largest allowed file size in GiB, uncompressed (default: 8)",
    )


def _add_own_options(command, name):
    """Add the options that only the command of this name has."""
    if name in ("consensus", "how-many"):
        either = command.add_mutually_exclusive_group().add_argument
        either(
            "--partitions",
            action="store_true",
            help="the columns are existing clusterings of the rows",
        )
        either(
            "--max-samples",
            metavar="N",
            type=number_or_share,
            default=1.0,
            help="rows drawn for each base clustering: a number such as 500, or a share such "
            "as 0.5 (default: 1.0, all rows)",
        )
        if name == "how-many":
            either(
                "--counts",
                action="store_true",
                help="the file holds counts; choose the number of programs",
            )
    if name == "cluster":
        add = command.add_argument
        add(
            "--constraints",
            metavar="PAIRS",
            help="file of constraints, with columns a, b (two rows) and kind (must or cannot)",
        )
        add(
            "--contradictions",
            metavar="{raise,warn,ignore}",
            default="raise",
            help="what to do if hard constraints conflict: raise, warn or ignore "
            "(default: raise)",
        )


def _number_or_range(text):
    """Parse a number, such as 5, or a range of numbers, such as 2-20."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"must be a number such as 5, or a range such as 2-20, got {text!r}"
        )
    first, last = found.groups()
    return range(int(first), int(last) + 1) if last else int(first)


def number_or_share(text):
    """Parse a number of rows, or a share of them, which has a decimal point."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number of rows such as 500, or a share such as 0.5, got {text!r}"
        ) from None
