"""The library as a command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_digits

import nmfcluster
from nmfcluster.__main__ import main

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_command_saves_a_picture_and_says_where_last(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("nmfcluster.display")
    picture = tmp_path / "picture.png"
    variables = {"MPLBACKEND": "Agg", "PYTHONPATH": str(Path(nmfcluster.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "nmfcluster", picture.name],
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"saved {picture}"
    assert picture.read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]


@pytest.fixture
def few_digits(monkeypatch):
    """Leave out most digits: what is printed of them is not looked at."""
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr("nmfcluster.__main__.load_digits", lambda return_X_y: (X[:99], y[:99]))


def test_a_picture_of_its_own_is_replaced_and_nothing_else(few_digits, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture, other = tmp_path / "picture.png", tmp_path / "other.png"
    main(str(picture))
    main(str(picture))
    assert capsys.readouterr().out.splitlines()[-1] == f"saved {picture}"
    other.write_bytes(PNG + b"somebody's work")
    for name in (other, tmp_path):
        with pytest.raises(SystemExit, match="is there, and not made by this command"):
            main(str(name))
    assert capsys.readouterr().out == ""  # it is said before the work, not after
    assert other.read_bytes() == PNG + b"somebody's work"


def test_without_a_place_for_the_picture_the_rest_is_printed(few_digits, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    main(str(tmp_path / "missing" / "picture.png"))
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith(f"no picture: {tmp_path / 'missing'} cannot be written to")
    assert any("NMFConsensus of 50 k-means runs" in line for line in printed)


def test_without_matplotlib_the_rest_is_printed(few_digits, monkeypatch, capsys):
    monkeypatch.setattr("nmfcluster.__main__.find_spec", lambda name: None)
    main()
    assert "no picture: matplotlib is not installed" in capsys.readouterr().out
