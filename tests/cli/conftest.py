"""What tests of the command line share: the folder that they work in."""

import numpy as np
import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder, with a few files for the command line."""
    from cli.cases import COUNTS, POINTS, frame  # which needs pandas

    monkeypatch.chdir(tmp_path)
    frame(POINTS).to_csv("points.csv")
    np.save("counts.npy", COUNTS)
    return tmp_path
