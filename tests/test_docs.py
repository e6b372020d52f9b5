"""Docstrings and pages: they describe what is there, and what they show is true."""

import ast
import importlib
import importlib.util
import inspect
import io
import pkgutil
import re
import sys
import tokenize
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from refusals import named
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import nmfcluster

MODULES = [
    name for _, name, _ in pkgutil.iter_modules(nmfcluster.__path__) if name[0] != "_"
]
DOCS = Path(__file__).parent.parent / "docs"
# An abstract class and classes of results: nobody makes one by hand.
WITHOUT_EXAMPLE = {"Similarity"}

pytestmark = pytest.mark.skipif(
    not (DOCS / "conf.py").exists(),
    reason="the documentation is not here: an installed package",
)


def public_objects():
    for name in MODULES:
        module = importlib.import_module(f"nmfcluster.{name}")
        for attribute in module.__all__:
            yield f"{name}.{attribute}", getattr(module, attribute)


def public_callables():
    """Public functions and classes, and the methods that the package itself gives them."""
    for name, thing in public_objects():
        yield name, thing
        if not inspect.isclass(thing):
            continue
        for attribute in dir(thing):
            method = getattr(thing, attribute)
            ours = str(getattr(method, "__module__", "")).startswith("nmfcluster")
            if not attribute.startswith("_") and callable(method) and ours:
                yield f"{name}.{attribute}", method


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
    heads = [
        line for line in section(docstring, "Parameters") if line and line[0] != " "
    ]
    return [
        name.strip(" *") for head in heads for name in head.split(" : ")[0].split(",")
    ]


def pages():
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_describe_the_signature(module):
    for name, thing in public_callables():
        if name.split(".")[0] == module:
            with named(name):
                assert_describes_the_signature(thing)


def assert_describes_the_signature(thing):
    docstring = doc_of(thing)
    assert docstring, "no docstring"
    summary = docstring.splitlines()[0]
    assert summary.endswith("."), summary
    if inspect.isclass(thing):
        if not section(docstring, "Parameters"):  # not made by users, or of nothing
            assert (
                section(docstring, "Attributes")
                or not inspect.signature(thing).parameters
            )
            return
        signature = inspect.signature(thing.__init__)
    else:
        signature = inspect.signature(thing)
    expected = [name for name in signature.parameters if name not in ("self", "cls")]
    # few arguments may be explained in the text, as in "the samples in `indices`"
    text = re.split(r"\n\w+\n---", docstring)[0]
    in_text = [name for name in expected if f"`{name}`" in text]
    assert documented_parameters(docstring) == expected or in_text == expected
    returns = signature.return_annotation
    if not inspect.isclass(thing) and returns not in (
        inspect.Signature.empty,
        None,
        "None",
    ):
        has_words = section(docstring, "Returns") or summary.startswith("Return")
        assert has_words, "what is returned is not described"


def test_public_objects_have_an_example():
    for name, thing in public_objects():
        if thing.__name__ not in WITHOUT_EXAMPLE:
            examples = section(thing.__doc__, "Examples")
            assert any(line.startswith(">>> ") for line in examples), name


def test_numpydoc_finds_no_fault():
    validate = pytest.importorskip("numpydoc.validate")
    for name, thing in public_objects():
        faults = validate.validate(f"nmfcluster.{name}")["errors"]
        serious = {"GL06", "GL07", "GL08", "PR01", "PR02", "PR03", "SS01", "SS03"}
        if not section(thing.__doc__, "Parameters"):  # the constructor is not for users
            serious -= {"PR01"}
        assert not [fault for fault in faults if fault[0] in serious], name


def fitted_attributes(model):
    return {
        name for name in vars(model) if name.endswith("_") and not name.startswith("_")
    }


def documented_attributes(model):
    heads = section(type(model).__doc__, "Attributes")
    return {head.split(" : ")[0] for head in heads if head and head[0] != " "}


@pytest.mark.sampled(2)
def test_fitted_attributes_are_documented(public_estimator, make_input):
    X, _ = make_input(public_estimator)
    model = clone(public_estimator).set_params(random_state=0).fit(X)
    assert fitted_attributes(model) <= documented_attributes(model)


@pytest.mark.sampled(2)
def test_documented_attributes_are_set_by_default(default_clusterer, make_input):
    X, _ = make_input(default_clusterer)
    model = default_clusterer.set_params(random_state=0).fit(X)
    unset = documented_attributes(model) - fitted_attributes(model)
    names = {"feature_names_in_", "sample_names_"}
    names |= {"groups_", "presence_", "shared_", "merge_similarities_"}
    # X has no names, and no groups are given
    assert unset == names & documented_attributes(model)


# --- code on the pages --------------------------------------------------------------------------

NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]\d+)?")


def pages_with_code():
    yield pytest.param(DOCS.parent / "README.md", id="README")
    for path in pages():
        if path.stem not in ("adding_an_estimator", "changelog"):
            yield pytest.param(path, id=str(path.relative_to(DOCS)))


@pytest.mark.slow
@pytest.mark.parametrize("path", list(pages_with_code()))
def test_code_on_the_pages_runs_and_does_what_it_says(path):
    """All code of a page is one program, and a page says in three ways what it does.

    A ``text`` block right after one of code shows all that the latter prints. A comment behind a
    call of `print` is what that one prints, in all rounds of a loop. A comment behind another
    expression is its value, if the comment is a Python literal: ``0.97`` is, ``a share`` is not.
    White space does not count, and numbers with a point may differ by 1 in the last digit shown.
    """
    text = path.read_text()
    if re.search(r"\.display import|import matplotlib", text):
        pytest.importorskip("matplotlib").use("Agg")
    namespace = {}
    blocks = r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?"
    for block in re.finditer(blocks, text, re.MULTILINE | re.DOTALL):
        code, shown = block.groups()
        if "anndata" in code and find_spec("anndata") is None:
            continue  # the documentation is built with it
        lines_before = text.count("\n", 0, block.start(1))  # for tracebacks
        printed = run("\n" * lines_before + code, path, namespace)
        if shown is not None:
            assert_same(printed, shown)


def run(code, path, namespace):
    """Run code, and check what it says in comments; return what it prints."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokens
        if token.type == tokenize.COMMENT
    }
    printed = []  # line of the code and text of every call

    def recording(*values):
        printed.append((sys._getframe(1).f_lineno, " ".join(map(str, values)) + "\n"))

    namespace["print"] = recording
    for statement in ast.parse(code).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), path, "exec"), namespace)
            continue
        value = eval(compile(ast.Expression(statement.value), path, "eval"), namespace)
        comment = comments.get(statement.end_lineno, "")
        if value is not None and is_literal(comment):
            value = value.tolist() if hasattr(value, "tolist") else value
            assert_same(repr(value), comment)
    for line in comments.keys() & dict(printed).keys():
        assert_same(
            "".join(text for where, text in printed if where == line), comments[line]
        )
    return "".join(text for _, text in printed)


def is_literal(text):
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True


def assert_same(actual, shown):
    """Compare two texts, numbers with a point to 1 in the last digit of the second."""
    assert NUMBER.sub("0", actual).split() == NUMBER.sub("0", shown).split(), (
        actual,
        shown,
    )
    for number, claim in zip(
        NUMBER.findall(actual), NUMBER.findall(shown), strict=True
    ):
        digits = re.search(r"\.(\d*)", claim)
        slack = 1.001 * 10.0 ** -len(digits[1]) if digits else 0
        assert abs(float(number) - float(claim)) <= slack, (actual, shown)


CLAIMS = [
    ("x = 1\nx + 0.234  # 1.23", None),
    ("{'eta': 0.3}  # {'eta': 0.3}", None),
    ("import numpy\nnumpy.arange(2) / 3  # [0, 0.5]", "0.5"),
    ("import numpy\nnumpy.arange(2) / 3  # [0.0, 0.333]", None),
    ("'one word'  # word", None),  # no literal
    ("2 + 2  # 5", "5"),
    ("1.25  # 1.1", "1.1"),
    ("for i in range(2):\n    print(i)  # 0\n", "0"),
    ("for i in range(2):\n    print('a', i)  # a 0 a 1\n", None),
    ("print('warning')  # error", "error"),
]


def test_claims_in_comments_are_checked():
    for code, says in CLAIMS:
        if says is None:
            run(code, "page", {})
        else:
            with pytest.raises(AssertionError, match=re.escape(says)):
                run(code, "page", {})


def test_works_cited_are_listed():
    references = (DOCS / "references.md").read_text()
    keys = set(re.findall(r"^\((\w+)\)=$", references, re.MULTILINE))
    assert keys == set(
        re.findall(r"^@\w+\{(\w+),$", (DOCS / "references.bib").read_text(), re.M)
    )
    tags = dict(
        re.findall(r"^\((\w+)\)=\n\n\*\*\[(\w+)\]\*\*", references, re.MULTILINE)
    )
    for path in pages():
        for tag, key in re.findall(r"\[\[(\w+)\]\]\((\w+)\)", path.read_text()):
            assert tags[key] == tag, path


# --- the example of "Adding an estimator" -------------------------------------------------------


def graph_nmf():
    path = DOCS / "snippets" / "graph_nmf.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("graph_nmf", path)
    # for pickle
    module = sys.modules["graph_nmf"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = graph_nmf()


def test_the_example_estimator_finds_clusters():
    X, y = make_blobs(120, centers=3, cluster_std=0.5, random_state=2)
    model = example.GraphNMF(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert np.mean(model.predict(X) == model.labels_) > 0.95
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1)


def test_the_example_solver_is_the_printed_rule():
    from nmfcluster._optim.symmetric import SymmetricObjective
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
    exec(
        compile(code, "adding_an_estimator.md", "exec"), {"GraphNMF": example.GraphNMF}
    )
    assert 0.6 < float(capsys.readouterr().out) <= 1
