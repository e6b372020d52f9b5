"""The rules of the code base that can be read off its source."""

import ast
import tokenize
import tomllib
from functools import cache
from pathlib import Path

import pytest

import nmfcluster

PACKAGE = Path(nmfcluster.__file__).parent
PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
PATHS = {
    path.relative_to(PACKAGE).with_suffix("").as_posix(): path
    for path in PACKAGE.rglob("*.py")
}
ESTIMATOR_FOLDERS = {path.parent.name for path in PACKAGE.glob("*/estimator.py")}

pytestmark = pytest.mark.skipif(
    not PYPROJECT.exists(), reason="the sources are not here: an installed package"
)


@cache  # not where the module is collected, which every process does
def trees():
    """Return the syntax tree of every module."""
    return {
        name: ast.parse(path.read_text("utf-8")) for name, path in sorted(PATHS.items())
    }


@cache
def nodes():
    """Return all nodes of the tree of every module."""
    return {name: list(ast.walk(tree)) for name, tree in trees().items()}


def contracts():
    return tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]


def layers_of_names():
    """Return the layer of every name at the top, with estimator folders below their users."""
    layers = contracts()[0]["layers"]
    names = [[name.strip() for name in layer.split("|")] for layer in layers]
    height = {name: len(names) - n for n, layer in enumerate(names) for name in layer}
    return height | dict.fromkeys(ESTIMATOR_FOLDERS, height["model_selection"] - 0.5)


def imported(tree):
    """Return the modules that a piece of source imports, with the names it takes from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from ((node.module, alias.name) for alias in node.names)


def functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def names_used(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")


def top(module):
    return module.split("/")[0]


def test_a_listing_explains_the_package():
    listed = {path.name for path in PACKAGE.iterdir()} - {"__pycache__", "py.typed"}
    known = layers_of_names()
    for name in listed - {"__init__.py", "__main__.py"}:
        assert name.removesuffix(".py") in known, (
            f"{name} is in no layer of the contract"
        )
    assert len(contracts()[0]["layers"]) <= 9


def test_no_layer_may_import_an_estimator_folder():
    below = {
        name.removeprefix("nmfcluster.") for name in contracts()[2]["source_modules"]
    }
    height = layers_of_names()
    assert below == {
        name
        for name in height
        if height[name] < min(height[own] for own in ESTIMATOR_FOLDERS)
    }


def test_imports_go_down_the_layers():
    height = layers_of_names()
    for module, tree in trees().items():
        if top(module) in {"__init__", "__main__"}:
            continue  # on top of everything
        for source, name in imported(tree):
            if source.split(".")[0] != "nmfcluster":
                continue
            other = source.split(".")[1] if "." in source else name
            inside = other == top(module)
            assert inside or height[other] < height[top(module)], (
                f"{module} imports {source}"
            )


def test_imports_do_not_run_in_circles():
    below = {}
    for module, tree in trees().items():
        sources = [source.split(".") for source, _ in imported(tree)]
        paths = ["/".join(parts[1:]) for parts in sources if parts[0] == "nmfcluster"]
        below[module] = {
            path if path in trees() else f"{path}/__init__" for path in paths if path
        }
    while leaves := [module for module, needed in below.items() if not needed]:
        for leaf in leaves:
            del below[leaf]
        for needed in below.values():
            needed.difference_update(leaves)
    assert not below


def test_imports_stand_at_the_top_but_for_matplotlib():
    for module, tree in trees().items():
        for function in functions(tree):
            for name, _ in imported(function):
                assert name.split(".")[0] == "matplotlib", f"{module}: {function.name}"


def test_private_names_of_scikit_learn_are_imported_in_compat_alone():
    for module, tree in trees().items():
        for source, name in imported(tree):
            private = any(
                part.startswith("_") for part in [*source.split("."), name or ""]
            )
            assert (
                not (source.split(".")[0] == "sklearn" and private)
                or module == "_compat"
            )


def test_storage_is_asked_for_where_matrices_are_defined_or_checked():
    askers = {"issparse", "is_sparse", "isspmatrix", "isspmatrix_csr"}
    # that one reads files
    matrices = {"_utils", "similarity", "stack", "constraints", "_cli"}
    products = {"fusion", "meta"}  # of tables and cubes that are no similarities
    for module, tree in trees().items():
        asked = askers & set(names_used(tree))
        page = module.endswith("/estimator")
        assert not asked or (top(module) in matrices | products and not page), module


def test_sparse_matrices_are_made_below_the_estimators():
    makers = {
        "_utils",
        "similarity",
        "stack",
        "constraints",
        "partitions",
        "_optim",
        "fusion",
    }
    makers |= {"_cli"}  # which reads files
    for module, tree in trees().items():
        makes = any(source.startswith("scipy.sparse") for source, _ in imported(tree))
        assert not makes or (
            top(module) in makers and not module.endswith("/estimator")
        ), module


def test_solvers_have_not_heard_of_what_the_loop_does():
    loop = {
        "max_iter",
        "tol",
        "random_state",
        "rng",
        "random",
        "warnings",
        "warn",
        "say",
        "stage",
    }
    solvers = 0
    for tree in trees().values():
        for function in functions(tree):
            if ast.unparse(function.returns or ast.Constant(None)) == "Steps" and any(
                isinstance(node, ast.Yield) for node in ast.walk(function)
            ):
                solvers += 1
                assert not loop & set(names_used(function)), function.name
    assert solvers >= 8


def test_there_is_one_of_each():
    used = {module: set(names_used(tree)) for module, tree in trees().items()}

    def owners(name):
        return {module for module in used if name in used[module]}

    assert owners("send") == {"_optim/run"}  # the loop that resumes solvers
    # seeds: `generator_of`
    assert owners("check_random_state") == {"_utils/validation"}
    assert owners("stacklevel") == {"_utils/validation"}  # the function that warns
    # of fits to parts, and with a total that is not the chosen one
    catching = {"model_selection/choose", "model_selection/sweep"}
    assert owners("catch_warnings") == catching


def test_fits_print_nothing():
    for module, inside in nodes().items():
        for node in inside:
            printed = isinstance(node, ast.Name) and node.id == "print"
            # the command line, and what shows the versions
            prints = top(module) in {"_cli", "_compat"}
            assert not printed or prints, module


def test_nothing_uses_the_global_random_state():
    for module, inside in nodes().items():
        for node in inside:
            if isinstance(node, ast.Attribute) and isinstance(
                node.value, ast.Attribute
            ):
                if node.value.attr == "random":
                    assert node.attr in {"RandomState", "default_rng", "Generator"}, (
                        module
                    )


IGNORED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def docstring_lines(tree):
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            if ast.get_docstring(node):
                lines |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


@cache
def token_lines(module):
    """Return the line of every token of a module, docstrings and comments left out."""
    documented = docstring_lines(trees()[module])
    with PATHS[module].open("rb") as file:
        tokens = [t for t in tokenize.tokenize(file.readline) if t.type not in IGNORED]
    return [t.start[0] for t in tokens[1:] if t.start[0] not in documented]


def n_tokens(module, node):
    return sum(node.lineno <= line <= node.end_lineno for line in token_lines(module))


def test_files_and_functions_are_short():
    """Tokens are counted, not lines: code that is spread over more lines is not longer."""
    for module, tree in trees().items():
        assert len(token_lines(module)) <= 4_000, module
        for function in functions(tree):
            assert n_tokens(module, function) <= 450, f"{module}: {function.name}"


def test_estimator_folders_are_found_by_their_names():
    exported = set(nmfcluster.__all__)
    for folder in ESTIMATOR_FOLDERS:
        classes = [
            n.name
            for n in trees()[f"{folder}/estimator"].body
            if isinstance(n, ast.ClassDef)
        ]
        assert exported & set(classes), (
            f"nmfcluster/__init__.py does not export {classes}"
        )
