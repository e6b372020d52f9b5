"""`python -m benchmarks all`: which questions it asks, and from which package results come."""

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


def _keep_result(file, **environment):
    file.write_text(json.dumps({"environment": environment}))


def test_questions_with_stale_results_are_asked(tmp_path, monkeypatch, capsys):
    asked = []

    def ask(arguments):
        asked.append(arguments[3:])
        return subprocess.CompletedProcess(arguments, arguments[3] == "scale")

    names = ("papers", "regimes", "meta", "scale", "across")
    monkeypatch.setattr(questions, "NAMES", names)
    monkeypatch.setattr(command.subprocess, "run", ask)
    now = report.package_digest()
    _keep_result(tmp_path / "papers.json", commit="0abc123", package=now)
    _keep_result(tmp_path / "regimes.json", commit="0abc123+", package=now)
    _keep_result(tmp_path / "meta.json", commit="0abc123", package="0" * 12)
    _keep_result(tmp_path / "scale.json", commit="0abc123")
    with pytest.raises(SystemExit):
        command.main(["all", "--quick", "--all-seeds", "--out", str(tmp_path)])
    options = ["--out", str(tmp_path), "--quick", "--all-seeds"]
    assert asked == [[name, *options] for name in names[1:]]
    assert "These failed: scale." in capsys.readouterr().err


def test_a_digest_follows_the_package_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "ROOT", tmp_path)
    package = tmp_path / "nmfcluster" / "folder"
    package.mkdir(parents=True)
    (package / "code.py").write_bytes(b"a = 1\n")
    first = report.package_digest()
    (tmp_path / "other.py").write_bytes(b"1")
    (package / "code.py").write_bytes(b"a = 1\r\n")  # as Windows checks it out
    assert report.package_digest() == first
    (package / "code.py").write_bytes(b"a = 2\n")
    assert report.package_digest() != first
    (package / "code.py").rename(package / "renamed.py")
    (package / "renamed.py").write_bytes(b"a = 1\n")
    assert report.package_digest() != first


def test_results_say_of_which_commit_they_are():
    assert re.fullmatch(r"[0-9a-f]{7,}\+?|unknown", report.environment()["commit"])


def test_results_are_of_the_last_commit_of_the_package(tmp_path, monkeypatch):
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
    git("add", ".")
    git("commit", "-m", "a question")
    assert report.commit() == first
    keep("nmfcluster/code.py", "2")
    assert report.commit() == f"{first}+"
    git("commit", "-am", "more code")
    assert re.fullmatch("[0-9a-f]{7,}", report.commit())
    assert report.commit() != first
