"""What the package tells of itself: types, versions, where its documentation is."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import nmfcluster

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
WORKFLOWS = sorted((PYPROJECT.parent / ".github" / "workflows").glob("*.yml"))


def test_types_are_handed_out():
    assert (Path(nmfcluster.__file__).parent / "py.typed").exists()


def test_versions_are_printed(capsys):
    nmfcluster.show_versions()
    printed = capsys.readouterr().out
    assert f"nmfcluster: {nmfcluster.__version__}" in printed
    assert re.search(rf"numpy: +{re.escape(np.__version__)}", printed)
    assert "user_api: blas" in printed
    assert "dask: " in printed  # installed or not


@pytest.mark.skipif(not PYPROJECT.exists(), reason="the sources are not here")
def test_an_index_would_show_the_addresses_of_the_project():
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(project["urls"])


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not here")
def test_workflows_run_what_is_pinned():
    assert len(WORKFLOWS) >= 3
    for path in WORKFLOWS:
        text = path.read_text("utf-8")
        used = re.findall(r"^ *-? *uses: *(.*)$", text, re.MULTILINE)
        assert used
        pinned = r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
        assert [name for name in used if not re.fullmatch(pinned, name)] == []
        kept = re.findall(
            r"actions/checkout@.*\n +with:\n +persist-credentials: false\n", text
        )
        assert len(kept) == text.count("actions/checkout@")
        assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE)


@pytest.mark.skipif(not WORKFLOWS, reason="the workflows are not here")
def test_what_builds_a_release_is_pinned():
    folder = WORKFLOWS[0].parents[1]
    release = (folder / "workflows" / "release.yml").read_text("utf-8")
    installed = re.findall(r"pip install (.*)", release)
    assert installed == ["-q --require-hashes -r .github/release-requirements.txt"]
    assert "python -m build --no-isolation" in release  # which would fetch others
    lines = (folder / "release-requirements.txt").read_text("utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    assert all(
        re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line)
        for line in lines
    )
    names = {line.partition("==")[0] for line in lines}
    assert names >= {"build", "twine", "setuptools"}


def public_functions():
    """Yield the public functions, and the methods that public classes define, by name."""
    folder = Path(nmfcluster.__file__).parent
    names = [
        ".".join(path.parent.parts[-2:]) for path in folder.glob("[a-z]*/__init__.py")
    ]
    names += ["nmfcluster", "nmfcluster.affinity"]
    for module in (importlib.import_module(f"{name}") for name in sorted(names)):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value):
                for method, function in inspect.getmembers(value, inspect.isfunction):
                    ours = function.__module__.startswith("nmfcluster")
                    if ours and (method == "__init__" or not method.startswith("_")):
                        yield f"{module.__name__}.{name}.{method}", function


def test_all_that_is_public_is_annotated():
    lacking = []
    for name, function in public_functions():
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name != "self"]
        if any(p.annotation is p.empty for p in parameters):
            lacking.append(name)
        elif signature.return_annotation is signature.empty:
            lacking.append(name)
    assert lacking == []
