"""The demo, which `.ci/run` calls as a user does."""

import inspect
import re
import sys
from pathlib import Path

import pytest
from internals import main
from sklearn.datasets import load_digits

from nmfcluster import NMFConsensus

PNG = b"\x89PNG\r\n\x1a\n"
SHOWN = re.compile(
    r"nmfcluster demo\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.fixture
def few_digits(monkeypatch):
    """Leave out most digits and runs: what is printed of them is not looked at."""
    X, y = load_digits(return_X_y=True)
    defaults = inspect.unwrap(NMFConsensus.__init__).__kwdefaults__
    monkeypatch.setitem(defaults, "n_estimators", 5)
    monkeypatch.setattr(
        "nmfcluster._cli.commands.load_digits", lambda return_X_y: (X[:99], y[:99])
    )


@pytest.mark.slow
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
        assert printed[-1].startswith(f"no picture: {name} ")
        assert any("NMFConsensus of 50 runs" in line for line in printed)
    assert other.read_bytes() == b"somebody's work"


def test_without_matplotlib_the_rest_is_printed(few_digits, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    main(["demo"])
    assert (
        "no picture: Drawing needs matplotlib, which is not installed"
        in capsys.readouterr().out
    )


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_prints(tmp_path, capsys):
    readme = Path(__file__).parent.parent / "README.md"
    if not readme.exists():
        pytest.skip("README.md is not here: an installed package")
    main(["demo", str(tmp_path / "picture.png")])
    printed = {in_words(line): line for line in capsys.readouterr().out.splitlines()}
    (shown,) = SHOWN.findall(readme.read_text("utf-8"))
    for line in shown.splitlines():
        assert in_words(line) in printed
        for one, other in zip(
            figures(line), figures(printed[in_words(line)]), strict=True
        ):
            assert one == pytest.approx(other, abs=0.005)


def in_words(line):
    """Return a line without its numbers."""
    return re.sub(r"[\d.]+", "0", line)


def figures(line):
    """Return the numbers of a line that do not differ from run to run: all but seconds."""
    return [float(n) for n in re.findall(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.]| s;)", line)]
