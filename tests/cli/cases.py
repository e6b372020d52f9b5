"""Tables that the tests of the command line write, and how they read what it has written."""

import re

import numpy as np
import pytest
from internals import main
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from nmfcluster.datasets import make_programs

pd = pytest.importorskip("pandas")

POINTS, CLASSES = make_blobs(40, centers=3, cluster_std=0.5, random_state=0)
# few digits: older pandas does not read the last of many
POINTS = np.round(64 * POINTS) / 64
NAMES = [f"0{i}" for i in range(40)]  # which are no numbers: 07 is not 7
COUNTS = make_programs(30, 40, 3, random_state=0)[0]


def frame(X):
    return pd.DataFrame(X, index=NAMES, columns=[f"x{j}" for j in range(X.shape[1])])


def back(name):
    """Return a table as it was written: numbers with all their digits."""
    written = pd.read_csv(name, dtype=str)
    return written.set_index(written.columns[0]).astype(float)


def assert_of_rows(name, titles, values, rows=NAMES):
    written = back(name)
    assert list(written.index) == list(rows)
    assert list(written.columns) == titles
    assert_array_equal(written.to_numpy(), values)  # all digits


READ = r".*: \d+ rows?, \d+ columns?, (names from .+|rows without names)"


def told(capsys):
    """Return what is printed, and the lines beside it but those that say what was read."""
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    return printed.out, [line for line in lines if not re.fullmatch(READ, line)]


def says(capsys):
    printed, others = told(capsys)
    assert others == []
    return printed


def refused(arguments, capsys):
    """Return the one line that says what is wrong."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    printed, (line,) = told(capsys)
    assert left.value.code == 2
    assert printed == ""
    assert line.startswith("nmfcluster: error: ")
    return line
