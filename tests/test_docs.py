import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import nmfcluster

MODULES = [
    "affinity",
    "consensus",
    "constraints",
    "datasets",
    "display",
    "fusion",
    "meta",
    "metrics",
    "model_selection",
    "partitions",
    "similarity",
    "ssnmf",
    "stack",
]
DOCS = Path(__file__).parent.parent / "docs"
# An abstract class and a class of results: nobody makes one by hand.
WITHOUT_EXAMPLE = {"Similarity", "BasePartitions"}

pytestmark = pytest.mark.skipif(
    not (DOCS / "conf.py").exists(), reason="the documentation is not here: an installed package"
)


def public_objects():
    for name in MODULES:
        module = importlib.import_module(f"nmfcluster.{name}")
        for attribute in module.__all__:
            yield f"{name}.{attribute}", getattr(module, attribute)


def public_callables():
    """Public functions and classes, and the methods that the package itself gives them."""
    for name, thing in public_objects():
        yield pytest.param(thing, id=name)
        if not inspect.isclass(thing):
            continue
        for attribute in dir(thing):
            method = getattr(thing, attribute)
            ours = str(getattr(method, "__module__", "")).startswith("nmfcluster")
            if not attribute.startswith("_") and callable(method) and ours:
                yield pytest.param(method, id=f"{name}.{attribute}")


def doc_of(thing):
    """Docstring; that of the base class for a method which has none."""
    if thing.__doc__ or inspect.isclass(thing):
        return inspect.cleandoc(thing.__doc__ or "")
    owner, _, name = thing.__qualname__.rpartition(".")
    owner = getattr(importlib.import_module(thing.__module__), owner)
    found = [vars(base)[name].__doc__ for base in owner.__mro__ if name in vars(base)]
    return inspect.cleandoc(next((doc for doc in found if doc), ""))


def section(docstring, title):
    """Lines of one section of a numpydoc docstring, dedented."""
    lines = inspect.cleandoc(docstring).splitlines()
    for i in range(len(lines) - 1):
        if lines[i] == title and set(lines[i + 1]) == {"-"}:
            end = i + 2
            while end < len(lines) and not (
                end + 1 < len(lines) and lines[end] and set(lines[end + 1]) == {"-"}
            ):
                end += 1
            return lines[i + 2 : end]
    return []


def documented_parameters(docstring):
    heads = [line for line in section(docstring, "Parameters") if line and line[0] != " "]
    return [name.strip() for head in heads for name in head.split(" : ")[0].split(",")]


def pages():
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


@pytest.mark.parametrize("module", ["", *MODULES])
def test_every_public_name_is_in_the_api_page(module):
    name = "nmfcluster" + ("." if module else "") + module
    listed = (DOCS / "api.rst").read_text().split(".. currentmodule:: ")
    of_module = "".join(part for part in listed[1:] if part.splitlines()[0] == name)
    for public in importlib.import_module(name).__all__:
        if module and public in nmfcluster.__all__:
            continue  # and so listed under that name
        if public == "__version__":
            assert "nmfcluster.__version__" in of_module
        else:
            assert re.search(rf"^   {public}$", of_module, re.MULTILINE), f"{name}.{public}"


def test_every_module_of_the_api_is_tested_here():
    files = Path(nmfcluster.__file__).parent.glob("[!_]*.py")
    assert sorted(path.stem for path in files) == MODULES


def test_names_in_the_api_page_exist():
    module = None
    for line in (DOCS / "api.rst").read_text().splitlines():
        if line.startswith(".. currentmodule:: "):
            module = importlib.import_module(line.split(":: ")[1])
        elif re.fullmatch(r"   \w+", line):
            assert line.strip() in module.__all__


@pytest.mark.parametrize("thing", list(public_callables()))
def test_docstrings_describe_the_signature(thing):
    docstring = doc_of(thing)
    assert docstring, "no docstring"
    summary = docstring.splitlines()[0]
    assert summary.endswith("."), summary
    if inspect.isclass(thing):
        if not section(docstring, "Parameters"):  # not made by users
            assert section(docstring, "Attributes")
            return
        signature = inspect.signature(thing.__init__)
    else:
        signature = inspect.signature(thing)
    expected = [name for name in signature.parameters if name not in ("self", "cls")]
    # a single argument may be explained in the sentence, as in "the samples in `indices`"
    in_summary = [name for name in expected if f"`{name}`" in summary]
    assert documented_parameters(docstring) == expected or in_summary == expected
    returns = signature.return_annotation
    if not inspect.isclass(thing) and returns not in (inspect.Signature.empty, None, "None"):
        has_words = section(docstring, "Returns") or summary.startswith("Return")
        assert has_words, "what is returned is not described"


@pytest.mark.parametrize(("name", "thing"), list(public_objects()))
def test_public_objects_have_an_example(name, thing):
    if thing.__name__ not in WITHOUT_EXAMPLE:
        assert any(line.startswith(">>> ") for line in section(thing.__doc__, "Examples"))


@pytest.mark.parametrize(("name", "thing"), list(public_objects()))
def test_numpydoc_finds_no_fault(name, thing):
    validate = pytest.importorskip("numpydoc.validate")
    faults = validate.validate(f"nmfcluster.{name}")["errors"]
    serious = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "SS01", "SS03"}
    if not section(thing.__doc__, "Parameters"):  # the constructor is not for users
        serious -= {"PR01"}
    assert not [fault for fault in faults if fault[0] in serious]


def test_fitted_attributes_are_documented(public_estimator, make_input):
    X, _ = make_input(public_estimator)
    model = clone(public_estimator).set_params(random_state=0).fit(X)
    heads = section(type(model).__doc__, "Attributes")
    documented = {head.split(" : ")[0] for head in heads if head and head[0] != " "}
    fitted = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    assert fitted <= documented
    if model.get_params() == type(model)(3, random_state=0).get_params():  # else a mode of it
        assert documented - fitted == {"feature_names_in_"}


def blocks():
    yield pytest.param(DOCS.parent / "README.md", id="README")
    for path in pages():
        if path.stem not in ("adding_an_estimator", "changelog"):
            yield pytest.param(path, id=str(path.relative_to(DOCS)))


@pytest.mark.parametrize("path", list(blocks()))
def test_code_on_the_pages_runs(path):
    text = path.read_text()
    code = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if ".display import" in text:
        pytest.importorskip("matplotlib").use("Agg")
    namespace = {}
    for block in code:
        exec(compile(block, str(path), "exec"), namespace)


def test_works_cited_are_listed():
    references = (DOCS / "references.md").read_text()
    keys = set(re.findall(r"^\((\w+)\)=$", references, re.MULTILINE))
    assert keys == set(re.findall(r"^@\w+\{(\w+),$", (DOCS / "references.bib").read_text(), re.M))
    tags = dict(re.findall(r"^\((\w+)\)=\n\n\*\*\[(\w+)\]\*\*", references, re.MULTILINE))
    for path in pages():
        for tag, key in re.findall(r"\[\[(\w+)\]\]\((\w+)\)", path.read_text()):
            assert tags[key] == tag, path


# --- the example of "Adding an estimator" -------------------------------------------------------


def graph_nmf():
    path = DOCS / "snippets" / "graph_nmf.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("graph_nmf", path)
    module = sys.modules["graph_nmf"] = importlib.util.module_from_spec(spec)  # for pickle
    spec.loader.exec_module(module)
    return module


example = graph_nmf()


@pytest.mark.skipif(example is None, reason="the documentation is not here")
@parametrize_with_checks([] if example is None else [example.GraphNMF(n_init=1)])
def test_the_example_estimator_is_one_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_example_estimator_finds_clusters():
    X, y = make_blobs(120, centers=3, cluster_std=0.5, random_state=2)
    model = example.GraphNMF(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert np.mean(model.predict(X) == model.labels_) > 0.95
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1)


def test_the_example_solver_is_the_printed_rule():
    from nmfcluster._engine.symmetric import SymmetricObjective
    from nmfcluster.similarity import Explicit

    rng = np.random.RandomState(0)
    A, H = rng.uniform(size=(6, 6)), rng.uniform(size=(6, 2))
    A += A.T
    objective = SymmetricObjective(Explicit(A), float((A**2).sum()))
    steps = example.damped_nmf(objective, H[None])
    (H,), loss = next(steps)
    for _ in range(3):
        H = H[0]
        assert loss[0] == pytest.approx(((A - H @ H.T) ** 2).sum())
        expected = np.empty_like(H)
        for i in range(6):
            for c in range(2):
                ratio = (A @ H)[i, c] / (H @ H.T @ H)[i, c]
                expected[i, c] = H[i, c] * (1 / 2 + ratio / 2)
        (H,), loss = steps.send(None)
        np.testing.assert_allclose(H[0], expected)


def test_the_page_shows_the_example_and_runs(capsys):
    page = (DOCS / "adding_an_estimator.md").read_text()
    assert page.count("{literalinclude} snippets/graph_nmf.py") == 2
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    code = code.replace("from graph_nmf import GraphNMF", "")
    exec(compile(code, "adding_an_estimator.md", "exec"), {"GraphNMF": example.GraphNMF})
    assert 0.6 < float(capsys.readouterr().out) <= 1
