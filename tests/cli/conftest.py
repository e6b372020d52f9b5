"""What tests of the command line share: the folder that they work in."""

import inspect

import numpy as np
import pytest

from nmfcluster import NMFConsensus, NMFMetaCluster


@pytest.fixture(autouse=True)
def quick(monkeypatch, request):
    """Let no work be so long that its progress is told, runs be few, and pictures small."""
    if not request.node.get_closest_marker("slow"):  # whose output may be on a page
        # by the command line, and in tests of it
        for model in (NMFConsensus, NMFMetaCluster):
            defaults = inspect.unwrap(model.__init__).__kwdefaults__
            monkeypatch.setitem(defaults, "n_estimators", 12)
    monkeypatch.setattr("nmfcluster._cli.main._PAUSE", np.inf)
    monkeypatch.setattr("nmfcluster._cli.commands._DPI", 30)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder, with a few files for the command line."""
    from cli.cases import COUNTS, POINTS, frame  # which needs pandas

    monkeypatch.chdir(tmp_path)
    frame(POINTS).to_csv("points.csv")
    np.save("counts.npy", COUNTS)
    return tmp_path
