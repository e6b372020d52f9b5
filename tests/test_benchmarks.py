"""Every question of the benchmarks runs, on toy sizes; how runs are scored and results written."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import fresh, questions, report, runner, scores, trials
from benchmarks.__main__ import RESULTS, main
from benchmarks.methods import peer
from benchmarks.questions import (
    _how_many_shares,
    _meta_planted,
    _programs_data,
    asked_pairs,
    how_many_clusters,
    how_many_programs,
    papers,
    wrong_pairs,
)
from nmfcluster import PairwiseConstraints

pytestmark = pytest.mark.slow  # together


def test_scores():
    y = np.array([0, 0, 0, 1, 1, 2])
    labels = np.array([1, 1, 0, 0, 0, 2])
    table, order = scores.confusion(y, labels)
    np.testing.assert_array_equal(table, [[2, 0, 0], [1, 2, 0], [0, 0, 1]])
    np.testing.assert_array_equal(order, [1, 0, 2])
    pairs = PairwiseConstraints(6, must_link=[(0, 2)], cannot_link=[(0, 4), (0, 3)])
    actual = scores.score(y, labels, pairs)
    expected = {"accuracy": 5 / 6, "free": 1, "free samples": 2, "violated": 1 / 3}
    assert actual == pytest.approx(expected)
    # One cluster of all samples is matched to the largest class.
    np.testing.assert_array_equal(scores.matched(y, np.zeros(6, int)), y == 0)


def test_means_over_trials():
    runs = [
        {"accuracy": 1.0, "free": 1.0, "free samples": 1},
        {"accuracy": 0.5, "free": 0.4, "free samples": 5},
        {"accuracy": np.nan, "free": np.nan, "free samples": np.nan},
    ]
    assert trials.mean(runs, "accuracy") == 0.75
    # of all samples, not of trials
    assert trials.mean(runs, "free") == pytest.approx(3 / 6)
    assert trials.spread(runs) == 0.25
    assert np.isnan(trials.mean(runs[2:], "accuracy"))


def test_runner_interleaves(capsys):
    order = []
    tasks = {
        name: lambda repeat, name=name: order.append((name, repeat)) for name in "AB"
    }
    runner.interleaved(tasks, 2, runner.Progress("toy", 4))
    assert order == [("A", 0), ("B", 0), ("A", 1), ("B", 1)]
    assert "[toy 4/4] B" in capsys.readouterr().err
    assert runner.exponent([10, 100, 1000], [2, 20, 200]) == pytest.approx(1)


def test_markdown():
    rows = [{"a": 1234, "b": 0.12345}, {"a": "x", "c": None}]
    assert report.markdown(rows).splitlines() == [
        "| a | b | c |",
        "| --- | --- | --- |",
        "| 1,234 | 0.123 |  |",
        "| x |  |  |",
    ]


def test_row_of_a_table_is_a_line_of_the_json():
    rows = [{"a": "±", "b": np.array([1, 2])}, {"a": None, "b": {"c": np.float64(0.1)}}]
    content = {
        "caption": "toy",
        "tables": {"one": rows, "none": []},
        "notes": ["x"],
        "skipped": {},
    }
    assert report.as_json(content).splitlines() == [
        "{",
        ' "caption": "toy",',
        ' "tables": {',
        '  "one": [',
        '   {"a": "±", "b": [1, 2]},',
        '   {"a": null, "b": {"c": 0.1}}',
        "  ],",
        '  "none": []',
        " },",
        ' "notes": [',
        '  "x"',
        " ],",
        ' "skipped": {}',
        "}",
    ]


def test_runs_are_rows_of_the_details():
    of_figures = {("a", 1): [{"s": 2.0}, {"s": 3.0}], ("a", 2): []}
    assert report.by_run(("data", "k"), of_figures) == [
        {"data": "a", "k": 1, "s": [2.0, 3.0]}
    ]
    assert report.by_run(("data",), {("a",): [0.5]}) == [{"data": "a", "ARI": [0.5]}]


def test_kept_results_have_the_form_of_new_ones():
    files = sorted(RESULTS.glob("*.json"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text == report.as_json(json.loads(text)), file.name


@pytest.fixture
def asked(monkeypatch):
    """Replace a question by one that only appends its arguments to this list."""
    calls = []
    monkeypatch.setattr(papers, "run", lambda *arguments: calls.append(arguments))
    return calls


def test_quick_run_writes_to_a_new_folder(asked, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        main(["papers", "--quick"])
    folders = [out for _, out, _ in asked]
    assert [quick for quick, *_ in asked] == [True, True]
    assert folders[0] != folders[1]
    assert sorted(folders) == sorted(tmp_path.iterdir())
    assert capsys.readouterr().out.splitlines() == [
        f"Results are in {out}" for out in folders
    ]


def test_whole_run_writes_the_kept_results(asked, tmp_path):
    main(["papers"])
    main(["papers", "--all-seeds", "--out", str(tmp_path)])
    assert asked == [(False, RESULTS, False), (False, tmp_path, True)]


@pytest.mark.parametrize("out", [str(RESULTS), "results", "questions/../results/"])
def test_quick_run_does_not_write_over_kept_results(out, asked, monkeypatch, capsys):
    monkeypatch.chdir(RESULTS.parent)
    with pytest.raises(SystemExit):
        main(["papers", "--quick", "--out", out])
    assert "give --out another folder" in capsys.readouterr().err
    assert asked == []


def test_every_question_is_known():
    folder = Path(questions.__file__).parent
    assert {path.stem for path in folder.glob("[a-z]*.py")} == set(questions.NAMES)


def in_this_process(function, *arguments):
    """Return the same as `fresh.call`, but without a new process, which imports for seconds."""
    return json.loads(json.dumps(function(*map(str, arguments))))


# What takes most of the time of a quick run, and shows nothing more by being larger.
SMALLER = {
    (_meta_planted, "N_UPDATES"): 20,
    (_programs_data, "NEAR"): 1,
    (asked_pairs, "MOST_ASKED"): 25,
    (how_many_clusters, "TOY"): 1,
    (how_many_programs, "AROUND"): 1,
    (how_many_programs, "N_FOLDS"): 2,
    (_how_many_shares, "AROUND"): 1,
    (wrong_pairs, "COUNTS"): (50,),
}


@pytest.mark.parametrize("name", questions.NAMES)
def test_question(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    # A new process takes seconds to start; other tests start one of each kind.
    # what it sets in the environment is read when SciPy is imported
    if name != "devices":
        monkeypatch.setattr(fresh, "call", in_this_process)
    if name == "distributed":
        own = importlib.import_module("benchmarks.questions._distributed_runs")
        threads = partial(own.LocalCluster, processes=False)
        monkeypatch.setattr(own, "LocalCluster", threads)
    for (module, constant), value in SMALLER.items():
        monkeypatch.setattr(module, constant, value)
    for python in peer.RECIPES:
        monkeypatch.delenv(python, raising=False)
    with parallel_config("sequential"):
        main([name, "--quick", "--out", str(tmp_path)])
    assert sorted(os.listdir(tmp_path)) == [
        f"{name}.{kind}" for kind in ("json", "md", "png")
    ]
    content = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert all(len(rows) for rows in content["tables"].values())
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert content["caption"] in text
    assert importlib.import_module(f"benchmarks.questions.{name}").__doc__
