"""The command line: `nmfcluster consensus table.csv`, and so on for all that takes files.

The estimators are imported where a command runs, so that help comes at once.
"""

import logging
import re
import sys
import warnings
from functools import partial
from importlib import import_module

from nmfcluster._cli.parser import make_parser

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
]


class _Progress(logging.Handler):
    """Lines on stderr about long work; there are none about work that is soon over."""

    # When the last one was printed, in milliseconds since the program began.
    _last = 0.0

    def emit(self, record: logging.LogRecord):
        if record.relativeCreated > self._last + _PAUSE:
            self._last = record.relativeCreated
            print(f"nmfcluster: {record.getMessage()}", file=sys.stderr)


def main(arguments=None) -> None:
    """Run a command; an error of the user is one line, with the exit status 2."""
    parser = make_parser()
    options = parser.parse_args(arguments)
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
    except _ERRORS as error:
        parser.error(_of_options(str(error).strip() or repr(error)))
    except KeyboardInterrupt:
        parser.exit(130, "nmfcluster: interrupted\n")  # as shells have it for Ctrl-C
    finally:
        warnings.formatwarning = format_before
        log.removeHandler(progress)
        log.setLevel(logging.NOTSET)


def _format_warning(printed, message: Warning | str, *_, **__) -> str:
    """Return a warning as a line, or nothing if it was printed before."""
    line = f"nmfcluster: warning: {_of_options(' '.join(str(message).split()))}\n"
    if line in printed:
        return ""
    printed.add(line)
    return line


def _of_options(message: str) -> str:
    """Return a message that names an option where it names a parameter."""
    for pattern, replacement in _REPLACEMENTS:
        message = re.sub(pattern, replacement, message)
    return re.sub(_PARAMETER, _option, message)
