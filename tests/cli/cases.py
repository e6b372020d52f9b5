"""Tables that the tests of the command line write, and how they read what it has written."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from nmfcluster.datasets import make_programs

pd = pytest.importorskip("pandas")

POINTS, CLASSES = make_blobs(40, centers=3, cluster_std=0.5, random_state=0)
POINTS = np.round(64 * POINTS) / 64  # few digits: older pandas does not read the last of many
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


def says(capsys):
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out
