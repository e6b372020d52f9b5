"""The rules of the code base that can be read off its source."""

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

import nmfcluster

PACKAGE = Path(nmfcluster.__file__).parent
PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
TREES = {path.stem: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.glob("*.py"))}
FUNCTIONS = [
    (module, node)
    for module, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
]

each_module = pytest.mark.parametrize("module", TREES)


def imported(tree):
    """Return the modules that a piece of source imports, with the names it takes from them."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [(node.module, alias.name) for alias in node.names]
    return found


def own_imports(tree):
    """Return the modules of the package that a module imports."""
    for module, name in imported(tree):
        parts = module.split(".")
        if parts[0] == "nmfcluster":
            yield parts[1] if len(parts) > 1 else name if name in TREES else "__init__"


def floors():
    """Return the layers of the contract, the lowest first: groups of modules, and if they mix."""
    contract = tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"]["contracts"][0]
    for layer in reversed(contract["layers"]):
        assert not ("|" in layer and ":" in layer)
        yield {name.strip(" ()") for name in re.split("[|:]", layer)}, ":" in layer


@each_module
def test_imports_go_down_the_floors(module):
    height = {name: n for n, (names, _) in enumerate(floors()) for name in names}
    mixing = {name for names, mixes in floors() if mixes for name in names}
    if module == "__init__":
        return  # on top of everything
    assert module in height, "a new module has to be put on a floor in pyproject.toml"
    for other in own_imports(TREES[module]):
        below = height[other] < height[module]
        assert below or (module in mixing and height[other] == height[module]), other


@each_module
def test_imports_stand_at_the_top_but_for_matplotlib(module):
    for owner, function in FUNCTIONS:
        if owner == module:
            for name, _ in imported(function):
                assert name.split(".")[0] == "matplotlib", function.name


@each_module
def test_private_names_of_scikit_learn_are_imported_in_compat_alone(module):
    private = [
        (source, name)
        for source, name in imported(TREES[module])
        if source.split(".")[0] == "sklearn"
        and any(part.startswith("_") for part in [*source.split("."), name or ""])
    ]
    assert not private or module == "_compat"


def names_used(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")


@each_module
def test_storage_is_asked_for_where_matrices_are_defined_or_checked(module):
    askers = {"issparse", "is_sparse", "isspmatrix", "isspmatrix_csr"}
    asked = askers & set(names_used(TREES[module]))
    matrices = {"_storage", "similarity", "stack", "_mixture", "_solvers_nmf"}
    allowed = matrices | {"_labels", "_pairs", "constraints", "_base"}
    assert not asked or module in allowed


@each_module
def test_sparse_matrices_are_made_below_the_estimators(module):
    makers = {name for name, _ in imported(TREES[module]) if name.startswith("scipy.sparse")}
    labels_and_pairs = {"_labels", "_links", "_pairs", "constraints"}
    matrices = {"_storage", "similarity", "_mixture"}
    allowed = labels_and_pairs | matrices | {"_ensemble", "_init", "_base"}
    assert not makers or module in allowed


@pytest.mark.parametrize("module", [name for name in TREES if name.startswith("_solvers")])
def test_solvers_have_not_heard_of_what_the_loop_does(module):
    loop = {"max_iter", "tol", "verbose", "random_state", "rng", "random", "warnings", "warn"}
    assert not loop & set(names_used(TREES[module]))


@each_module
def test_there_is_one_loop_that_resumes_solvers(module):
    assert "send" not in names_used(TREES[module]) or module == "_iterate"


@pytest.mark.parametrize("module", [name for name in TREES if name != "__main__"])
def test_only_say_prints(module):
    says = [function for owner, function in FUNCTIONS if owner == module]
    allowed = {node for function in says if function.name == "_say" for node in ast.walk(function)}
    for node in ast.walk(TREES[module]):
        assert not (isinstance(node, ast.Name) and node.id == "print") or node in allowed


@each_module
def test_nothing_uses_the_global_random_state(module):
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            if node.value.attr == "random":
                assert node.attr in {"RandomState", "default_rng", "Generator"}


def lines_of_code(node):
    """Count the lines of a node, docstrings aside."""
    first = getattr(node, "lineno", 1)
    last = node.end_lineno if hasattr(node, "end_lineno") else node.body[-1].end_lineno
    documented = [
        inner.body[0]
        for inner in ast.walk(node)
        if isinstance(inner, ast.Module | ast.ClassDef | ast.FunctionDef)
        and ast.get_docstring(inner) is not None
    ]
    return last - first + 1 - sum(doc.end_lineno - doc.lineno + 1 for doc in documented)


@each_module
def test_functions_fit_on_a_screen(module):
    for owner, function in FUNCTIONS:
        assert owner != module or lines_of_code(function) <= 60, function.name


@each_module
def test_modules_stay_small(module):
    assert lines_of_code(TREES[module]) <= 420


def test_floors_are_read_as_they_are_written():
    order = [names for names, _ in floors()]
    assert {"_labels", "_compat"} <= order[0]
    assert "consensus" in order[-2]
    assert all(not (one & other) for one, other in pairwise(order))
