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


KNOWN = [
    Known("being mended", r"AssertionError: loss_ is negative by rounding"),
    Known(
        "A1", r"matmul: Input operand 1 has a mismatch|pad_width. must be", "spectral_start|run.py"
    ),
    Known("A4", "the call has changed what it was given: (make_affinity|_)"),
    Known("A4", "WRITEBACKIFCOPY base is read-only"),
    Known("A5", "Buffer dtype mismatch", "estimator.predict"),
    Known("A6", "buffer source array is read-only", "estimator.predict"),
    Known("being mended: extreme scales", r"the loss rises by \S+e-(29|3\d)\d of"),
    Known(
        "being mended: extreme scales",
        "distance matrix must contain only finite",
        "path_kernel|affinity",
    ),
    Known("A9", "AssertionError: a pickled model predicts other labels"),
    Known("being mended: affinity=object", r"takes no arguments|takes exactly one argument"),
    Known("A2", r"kd_tree does not work with sparse", "nearest"),
    Known("A3", r"AssertionError: clusters are not numbered by their size"),
    Known("B1", r"n_jobs == 0 in Parallel has no meaning"),
    Known("B2", r"UFuncTypeError: .*TimeDelta64DType"),
    Known("B3", r"TypeError: float\(\) argument must be .*'NAType'", "pandas"),
    Known(
        "B4",
        r"^(?!.* must be at most)(ValueError|TypeError|OverflowError|\w*UFunc)",
        r"making.py: .*_how_many|making.py: .*range\(n_estimators\)",
    ),
    Known("B4", "has no attribute '(fit_predict|set_params)'", "making.py"),
    Known("B4", r"found only noise in all -?\d+ runs", "making.py"),
    Known("B5", r"matrix.max\(\) got an unexpected keyword"),
    Known("B6", r"DTypePromotionError: .*DateTime64DType"),
    Known("B7", r"DuplicateError: Expected unique column names", "narwhals"),
    Known("B8", r"array must have shape \(n, n\)", "make_affinity|operators.py"),
    Known("B9", r"cannot be used to seed|Seed must be between 0|Cannot cast scalar from dtype"),
    Known("B10", "at least one array or dtype is required"),
    Known(
        "B12",
        "Maximum allowed (size|dimension) exceeded|Cannot cast array data from dtype",
        "datasets.py",
    ),
    Known(
        "B13, B25", r"int\(\) argument must be .*'datetime.timedelta'", r"(stability|making)\.py"
    ),
    Known(
        "B14",
        "could not convert string to float|float.. argument must be a string",
        r"(scores|affinity)\.py: .*check_array|_base\.py: .*validate_data|making.py: .*check_array",
    ),
    Known("B15", "inhomogeneous", "overlap.py"),
    Known("B18", "'<' not supported between instances of '(str|bytes)'", "labels.py"),
    Known("B19", "high is out of bounds for int64", "making.py"),
    Known("B23", "'dia_array' object is not subscriptable", "making.py"),
    Known("B24", "bad operand type for unary|unsupported operand", "affinity.py"),
    Known("B21", "axes don't match array", "checks.py"),
    Known("B22", "RuntimeWarning: overflow encountered in multiply", "affinity.py"),
    Known("B17", "ComplexWarning", "storage.py"),
]


# A7, B19: large numbers of these are not refused everywhere, and take no end of time or memory.
ENDLESS = {"n_subsamples", "n_estimators", "base_n_clusters"}


def known(error, where=""):
    """Return whether an error, or a warning, is one of those."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = "\n".join([where, *(f"{frame.filename}: {frame.line}" for frame in frames)])
    message = f"{type(error).__name__}: {error}"
    return any(re.search(one.message, message) and re.search(one.where, lines) for one in KNOWN)
