"""Defects that are known and not mended yet: what the suite lets pass, and why.

A line goes when its defect does.
"""

import re
import traceback
from typing import NamedTuple


class Known(NamedTuple):
    """What is let pass: an error or a warning."""

    reason: str
    message: str  # regular expression
    where: str = ""  # regular expression: a file of the traceback, and the line of source


KNOWN: list[Known] = []

# A run for each of them is what was asked for: large numbers take no end of time and memory.
ENDLESS = {"n_subsamples", "n_estimators", "base_n_clusters"}


def known(error, where=""):
    """Return whether an error, or a warning, is one of those."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = "\n".join([where, *(f"{frame.filename}: {frame.line}" for frame in frames)])
    message = f"{type(error).__name__}: {error}"
    return any(re.search(one.message, message) and re.search(one.where, lines) for one in KNOWN)
