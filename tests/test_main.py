"""The demo, which `.ci/run` calls as a user does."""

import re
import sys

import pytest
from sklearn.datasets import load_digits

from nmfcluster._cli.main import main

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def few_digits(monkeypatch):
    """Leave out most digits: what is printed of them is not looked at."""
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr("nmfcluster._cli.demo.load_digits", lambda return_X_y: (X[:99], y[:99]))


def test_a_picture_is_saved_where_nothing_is(few_digits, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    picture, other = tmp_path / "picture.png", tmp_path / "other.png"
    main(["demo", str(picture)])
    assert capsys.readouterr().out.splitlines()[-1] == f"saved {picture}"
    assert list(tmp_path.iterdir()) == [picture]
    assert picture.read_bytes().startswith(PNG)
    other.write_bytes(b"somebody's work")
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for name in (other, tmp_path, dangling, tmp_path / "missing" / "picture.png"):
        main(["demo", str(name)])
        printed = capsys.readouterr().out.splitlines()
        assert re.match(rf"no picture: \[Errno \d+\] .*'{re.escape(str(name))}'", printed[-1])
        assert any("NMFConsensus of 50 runs" in line for line in printed)
    assert other.read_bytes() == b"somebody's work"


def test_without_matplotlib_the_rest_is_printed(few_digits, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    main(["demo"])
    assert "no picture: Drawing needs matplotlib, which is not installed" in capsys.readouterr().out
