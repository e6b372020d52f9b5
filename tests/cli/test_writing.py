"""Files are written whole or not at all, and hold nothing that a spreadsheet runs."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.cases import NAMES, POINTS, frame, refused
from internals import main

import nmfcluster

pd = pytest.importorskip("pandas")

ARGUMENTS = ["consensus", "x.csv", "--clusters", "3", "--output", "found/"]


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found").mkdir()
    frame(POINTS).to_csv("x.csv")
    return tmp_path


def fill_disk(patch, code=errno.ENOSPC):
    """Let the second of the tables not be written, as where a disk is full."""
    open_path = Path.open

    def fill(path, mode="r", *args, **options):
        if mode == "w" and "memberships" in path.name:
            raise OSError(code, os.strerror(code))
        return open_path(path, mode, *args, **options)

    patch.setattr(Path, "open", fill)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_locked_leaves_nothing_and_names_the_file(
    code, table, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        fill_disk(patch, code)
        assert "x-consensus-memberships.csv" in refused(ARGUMENTS, capsys)
    assert os.listdir("found") == []
    main(ARGUMENTS)  # nothing is in its way
    assert len(os.listdir("found")) >= 2


def test_a_folder_that_takes_nothing_is_refused_before_any_work(
    table, monkeypatch, capsys
):
    """The system tells it of every folder; tests may run as somebody who can write to all."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    monkeypatch.setattr("nmfcluster._cli.commands._read", None)
    line = refused(["consensus", "x.csv", "--output", "found/deep/out"], capsys)
    assert "--output must be in a writable folder, not in found" in line
    assert os.listdir("found") == []


@pytest.mark.slow
def test_a_full_disk_leaves_the_files_that_were_there(table, monkeypatch, capsys):
    main(ARGUMENTS)
    capsys.readouterr()
    before = {path: path.read_bytes() for path in Path("found").iterdir()}
    fill_disk(monkeypatch)
    refused([*ARGUMENTS, "--force", "--clusters", "4"], capsys)
    assert {path: path.read_bytes() for path in Path("found").iterdir()} == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    ["=1+1", "\uff1d1+1", "\u200b=1+1", "\ufeff=1+1", " @x", "\t-2+3", "\uff0b1a"],
)
def test_a_formula_is_quoted_however_it_is_hidden(name, table):
    named = pd.DataFrame(POINTS, index=[name, *NAMES[1:]])
    named.to_csv("x.csv")
    main(ARGUMENTS)
    labels = pd.read_csv("found/x-consensus-labels.csv", dtype=str)
    assert labels.iloc[0, 0] == f"'{name}"


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(table):
    """As where the output goes to `head`, which leaves early."""
    folder = str(Path(nmfcluster.__file__).parents[1])
    run = subprocess.Popen(
        [sys.executable, "-m", "nmfcluster", *ARGUMENTS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": folder},
    )
    run.stdout.close()
    told = run.stderr.read().decode()
    assert run.wait() == 0
    assert "Errno" not in told
    assert "Traceback" not in told
    labels = np.loadtxt(
        "found/x-consensus-labels.csv", delimiter=",", skiprows=1, usecols=1
    )
    assert len(labels) == len(POINTS)
