"""What the package tells of itself: types, versions, where its documentation is."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_html_repr

import nmfcluster
from nmfcluster._compat import DOCS
from nmfcluster.model_selection import ConstraintScorer, StabilityScorer

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def test_types_are_handed_out():
    assert (Path(nmfcluster.__file__).parent / "py.typed").exists()


def test_versions_are_printed(capsys):
    nmfcluster.show_versions()
    printed = capsys.readouterr().out
    assert f"nmfcluster: {nmfcluster.__version__}" in printed
    assert f"numpy: {np.__version__}" in printed
    assert "blas: " in printed
    assert "dask: " in printed  # installed or not


@pytest.mark.skipif(not PYPROJECT.exists(), reason="the sources are not here")
def test_the_documentation_has_one_address():
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    assert project["urls"]["Documentation"] == DOCS
    assert {"Source", "Issues", "Changelog"} <= set(project["urls"])


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("nmfcluster.NMFConsensus", nmfcluster.NMFConsensus(2)),
        ("nmfcluster.KernelStack", nmfcluster.KernelStack()),
        ("nmfcluster.model_selection.StabilityScorer", StabilityScorer()),
        ("nmfcluster.model_selection.ConstraintScorer", ConstraintScorer()),
    ],
)
def test_the_drawing_of_an_estimator_links_to_its_page(name, estimator):
    assert f'href="{DOCS}generated/{name}.html"' in estimator_html_repr(clone(estimator))
