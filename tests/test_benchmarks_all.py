"""`python -m benchmarks all`: what is asked, and of which commit answers are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import __main__ as command
from benchmarks import questions, report


@pytest.mark.parametrize(
    ("now", "left"),
    [("0abc123", ["meta", "scale"]), ("0abc123+", ["papers", "meta", "scale"])],
)
def test_questions_are_asked_that_this_commit_has_not_answered(
    now, left, tmp_path, monkeypatch, capsys
):
    asked = []

    def ask(arguments):
        asked.append(arguments[3:])
        return subprocess.CompletedProcess(arguments, arguments[3] == "scale")

    monkeypatch.setattr(questions, "NAMES", ("papers", "meta", "scale"))
    monkeypatch.setattr(command.subprocess, "run", ask)
    monkeypatch.setattr(report, "commit", lambda: now)
    (tmp_path / "papers.json").write_text(json.dumps({"environment": {"commit": now}}))
    (tmp_path / "meta.json").write_text(json.dumps({"environment": {}}))
    with pytest.raises(SystemExit):
        command.main(["all", "--quick", "--all-seeds", "--out", str(tmp_path)])
    options = ["--out", str(tmp_path), "--quick", "--all-seeds"]
    assert asked == [[name, *options] for name in left]
    assert "These failed: scale." in capsys.readouterr().err


def test_results_say_of_which_commit_they_are():
    assert re.fullmatch(r"[0-9a-f]{7,}\+?|unknown", report.environment()["commit"])


def test_results_are_of_the_last_commit_of_the_code(tmp_path, monkeypatch):
    def git(*arguments):
        given = [
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "-c",
            "commit.gpgsign=false",
        ]
        subprocess.run(
            ["git", *given, *arguments], cwd=tmp_path, check=True, capture_output=True
        )

    def keep(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    monkeypatch.setattr(report, "ROOT", tmp_path)
    assert report.commit() == "unknown"
    git("init")
    keep("nmfcluster/code.py", "1")
    keep("benchmarks/results/papers.md", "1")
    git("add", ".")
    git("commit", "-m", "code")
    first = report.commit()
    assert re.fullmatch("[0-9a-f]{7,}", first)
    keep("benchmarks/results/papers.md", "2")
    assert report.commit() == first
    git("commit", "-am", "results")
    assert report.commit() == first
    keep("benchmarks/question.py", "1")
    assert report.commit() == f"{first}+"
    git("add", ".")
    git("commit", "-m", "a question")
    assert re.fullmatch("[0-9a-f]{7,}", report.commit())
    assert report.commit() != first
