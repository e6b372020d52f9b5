"""A paper is added to a copy of the project, as its page tells: every law holds for it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
#: files whose laws are not of single estimators, but of the package as a whole
OF_ALL = "test_architecture or test_docs or test_the_api_page or test_estimators_list"

pytestmark = pytest.mark.skipif(
    not (DOCS / "conf.py").exists(),
    reason="the documentation is not here: an installed package",
)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the folder of a copy of the project with the paper of the page in it."""
    folder = tmp_path_factory.mktemp("project")
    made = shutil.ignore_patterns("__pycache__", "_build", "auto_examples", "generated")
    for name in ("nmfcluster", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=made)
    for path in (ROOT / "pyproject.toml", *ROOT.glob("*.md"), ROOT / "CITATION.cff"):
        shutil.copy(path, folder)
    page = (DOCS / "adding_an_estimator.md").read_text("utf-8")
    blocks = re.findall(r"^   ```text\n(.*?)^   ```$", page, re.MULTILINE | re.DOTALL)
    init, (typed, home) = dedent(blocks[0]), dedent(blocks[1]).splitlines()
    paper = folder / "nmfcluster" / "graph"
    paper.mkdir()
    (paper / "__init__.py").write_text(init, "utf-8")
    shutil.copy(DOCS / "snippets" / "graph_nmf.py", paper / "estimator.py")
    public = folder / "nmfcluster" / "__init__.py"
    text = public.read_text("utf-8").replace(
        "if TYPE_CHECKING:", f"if TYPE_CHECKING:\n    {typed}"
    )
    public.write_text(
        re.sub("^_HOMES = {.*$", rf"\g<0>\n    {home}", text, flags=re.M), "utf-8"
    )
    return folder


def run(project, *command):
    """Run a tool as `python -m`, on the copy and not on the package that is installed."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        env=os.environ | {"PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def laws(project, *selection):
    """Run tests of the copy, and return how many passed."""
    quiet = ("-q", "-p", "no:cacheprovider", "--assert=plain", "-m", "not slow")
    said = run(project, "pytest", *quiet, *selection)
    return int(re.search(r"(\d+) passed", said)[1])


@pytest.mark.slow
def test_a_new_paper_passes_the_checks_of_scikit_learn_and_the_rules_of_the_code(
    project,
):
    files = "tests/test_sklearn.py", "tests/test_architecture.py"
    assert laws(project, *files, "-k", "GraphNMF or test_architecture") >= 60


@pytest.mark.slow
def test_a_new_paper_passes_every_other_law(project):
    assert laws(project, "nmfcluster/graph", "-k", "GraphNMF") >= 1  # its example
    assert (
        laws(
            project,
            "tests",
            "--ignore=tests/test_sklearn.py",
            "-k",
            f"GraphNMF or {OF_ALL}",
        )
        > 30
    )


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["mypy", "importlinter", "ruff", "numpydoc"])
def test_a_new_paper_is_as_clean_as_the_others(project, tool):
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed")
    run(
        project,
        *{
            "mypy": ["mypy", "nmfcluster"],
            "importlinter": ["importlinter.cli"],
            "ruff": ["ruff", "check", "nmfcluster/graph"],
            "numpydoc": ["numpydoc", "lint", "nmfcluster/graph/estimator.py"],
        }[tool],
    )
