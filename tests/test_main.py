"""The library as a command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nmfcluster

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
