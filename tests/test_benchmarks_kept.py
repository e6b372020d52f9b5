"""Results of other packages that are taken over where these are not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import kept, methods, report
from benchmarks.methods import peer
from benchmarks.questions import _pairs_runs, features

COLUMNS = ("data", "pairs", "method")
PACKAGES = {"SNF": "snfpy", "NEMO": "imml"}
SAME = {"data": ["a"], "pairs": (0, 20)}
RUNS = [{"ARI": 0.5}, {"ARI": 1.0}]


@pytest.fixture
def file(tmp_path):
    """Return a result with runs at its own commit and at an earlier one."""
    new = {
        ("a", 0, "SNF"): RUNS,
        ("a", 20, "ours"): RUNS,  # runs here
        ("b", 0, "SNF"): RUNS,  # another data set
        ("a", 50, "SNF"): RUNS,  # another setting
    }
    content = {
        "environment": {"commit": "1", "packages": {"SNF": "snfpy 0.1"}},
        "skipped": {"SNF": "set ...", "SNF on a": "failed.", "ours on a": "failed."},
        "details": {
            "runs": report.by_run(COLUMNS, new),
            "runs of 0": report.by_run(COLUMNS, {("a", 20, "NEMO"): RUNS}),
            "others": report.by_run(COLUMNS, {("a", 20, "SNF"): RUNS}),
        },
    }
    path = tmp_path / "toy.json"
    path.write_text(report.as_json(content))
    return path


def test_what_cannot_run_here_is_kept_with_its_commit_and_version(file):
    found = kept.read(file, PACKAGES, COLUMNS, SAME, 1)
    # one seed is asked for
    assert found.runs == {("a", 0, "SNF"): RUNS[:1], ("a", 20, "NEMO"): RUNS[:1]}
    assert found.commits == {("a", 0, "SNF"): "1", ("a", 20, "NEMO"): "0"}
    assert found.failed == {"SNF on a": "failed."}
    assert found.versions({}) == {"SNF": "snfpy 0.1", "NEMO": "imml 0.6.0"}
    assert found.missing({"SNF": "x", "NEMO": "y", "CoReg": "z"}) == {"CoReg": "z"}
    [note] = found.notes()
    assert note.endswith(
        ": 'NEMO' (imml 0.6.0, commit 0); 'SNF' (snfpy 0.1, commit 1)."
    )


def test_kept_runs_are_written_by_their_commit(file):
    found = kept.read(file, PACKAGES, COLUMNS, SAME, 2)
    runs = found.runs | {("a", 0, "ours"): RUNS}
    details = found.in_details(COLUMNS, runs)
    assert {heading: len(rows) for heading, rows in details.items()} == {
        "runs": 1,
        "runs of 1": 1,
        "runs of 0": 1,
    }


def test_a_column_cannot_be_replaced_by_a_figure(file):
    found = kept.read(file, PACKAGES, COLUMNS, SAME, 1)
    with pytest.raises(ValueError, match="'ARI'"):
        found.in_details(("data", "ARI", "method"), found.runs)


@pytest.mark.parametrize("packages", [{}, PACKAGES])
def test_nothing_is_kept_of_no_result(file, packages):
    where = file if not packages else file.with_name("other.json")
    found = kept.read(where, packages, COLUMNS, SAME, 1)
    assert found.runs == {}
    assert found.notes() == []
    assert found.missing({"SNF": "x"}) == {"SNF": "x"}
    assert found.versions({}) == {}


def test_every_peer_names_a_package_with_a_recipe():
    known = methods.load_all()
    of_peers = {
        name: method
        for name, method in known.items()
        if method.reason is not methods.no_reason
    }
    assert methods.packages(known).keys() == of_peers.keys()
    for package in peer.PACKAGES:
        assert peer.pinned(package).startswith(package)


def test_version_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv(peer.PYTHON, sys.executable)
    monkeypatch.setitem(peer.PACKAGES, "numpy", peer.PYTHON)
    assert peer.version("numpy") == f"numpy {np.__version__}"


def test_sets_that_a_peer_gave_up_are_known_from_kept_runs():
    nothing = [{"ARI": np.nan}]
    runs = {
        ("a", 0, "SNF"): RUNS,
        ("a", 20, "SNF"): nothing,
        ("b", 0, "SNF"): nothing,
        ("b", 20, "SNF"): RUNS,
    }
    failed = _pairs_runs.kept_failures(runs, (0, 20))
    assert list(failed) == [("SNF", "a", "failed or took too long")]


def test_seconds_of_kept_clusterers_are_not_compared(file):
    runs = {
        (data, method): [{"ARI": ari, "seconds": 2.0}]
        for data in "ab"
        for method, ari in ((features.K_MEANS, 0.5), (features.SC3S, 0.7))
    }
    runs["b", features.SC3S] = [{"ARI": np.nan, "seconds": np.nan}]
    X, y = np.zeros((4, 2)), np.array([0, 0, 1, 1])
    names = [features.K_MEANS, features.SC3S]
    rows = [features._row(data, X, y, names, runs) for data in "ab"]
    assert [row[features.SC3S] for row in rows] == ["0.700", "0.000"]
    others = kept.Kept()
    others.add(("a", features.SC3S), features.SC3S, [], "0")
    ours, its = features._summary(rows[:1], rows[1:], runs, others)
    assert ours["median time / k-means"] == "1"
    assert "seconds" in ours
    assert "seconds" not in its
    assert features._failures(runs, names) == [
        "sc3s failed on b; a failure has an ARI of 0."
    ]
