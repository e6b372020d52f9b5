"""What tests of the command line share: the folder that they work in."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Let no work be so long that its progress is told, however slow the machine."""
    monkeypatch.setattr("nmfcluster._cli.main._PAUSE", np.inf)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder, with a few files for the command line."""
    from cli.cases import COUNTS, POINTS, frame  # which needs pandas

    monkeypatch.chdir(tmp_path)
    frame(POINTS).to_csv("points.csv")
    np.save("counts.npy", COUNTS)
    return tmp_path
