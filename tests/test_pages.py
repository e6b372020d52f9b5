"""What the pages say of the project, held against the project: names, parameters, paths, tools.

A place in the code is written as its dotted name inside the package, `_optim.run.iterate` say.
"""

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import tomllib
from functools import cache, partial
from pathlib import Path

import pytest

import nmfcluster
from nmfcluster import model_selection

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ESTIMATORS = [
    thing
    for thing in map(partial(getattr, nmfcluster), nmfcluster.__all__)
    if hasattr(thing, "get_params")
]
CLASSES = {
    thing.__name__: thing
    for module in (nmfcluster, model_selection)
    for thing in map(partial(getattr, module), module.__all__)
    if inspect.isclass(thing)
}
# What a command belongs to where its name is not that of the package.
PACKAGE_OF = {"lint-imports": "import-linter", "sphinx-build": "sphinx"}
WIDTH = 100  # columns, as in pyproject.toml

pytestmark = pytest.mark.skipif(
    not (DOCS / "conf.py").exists(),
    reason="the documentation is not here: an installed package",
)


@cache
def read(name):
    path = ROOT / name
    return path.read_text("utf-8") if path.exists() else ""


def code_spans(text):
    """Return what stands in backticks; of a role such as {func}`x <target>` the target."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\$[^$]+\$", "", text)
    spans = re.findall(r"(\{\w+\})?`([^`]+)`", text)
    return {
        re.sub(r"(?s).*<(.+)>", r"\1", span) if role else span for role, span in spans
    }


def look_up(place):
    """Return the object of a dotted name inside the package, or None."""
    try:
        return pkgutil.resolve_name(f"nmfcluster.{place.removeprefix('nmfcluster.')}")
    except (AttributeError, ImportError):
        return None


def parameters():
    """Return the parameters of the estimators, with the words that each may be."""
    words = {}
    for estimator in ESTIMATORS:
        limits = getattr(estimator, "_parameter_constraints", {})
        for name in inspect.signature(estimator).parameters:
            options = [getattr(limit, "options", ()) for limit in limits.get(name, ())]
            words.setdefault(name, set()).update(*options)
    return words


def has_parameter(owner, name):
    signatures = [inspect.signature(owner)]
    signatures += [inspect.signature(owner.fit)] if hasattr(owner, "fit") else []
    return any(name in signature.parameters for signature in signatures)


def is_documented_attribute(name):
    return any(
        re.search(rf"^    {name} : ", thing.__doc__, re.MULTILINE)
        for thing in ESTIMATORS
    )


def fault(span):
    """Return what is wrong with a piece of code on a page, or None.

    It may be a place in the code, a setting of an estimator, a word that one of its parameters may
    be, or the name of a parameter, an attribute or a public object.
    """
    words = parameters()
    setting = re.fullmatch(r"(?:(\w+)\()?(\w+)=([^=]+?)\)?", span)
    if setting:
        owner, name, value = setting.groups()
        if owner:
            return (
                None
                if has_parameter(CLASSES[owner], name)
                else f"{owner} has no {name}"
            )
        if name not in words:
            return f"no estimator has the parameter {name}"
        unknown = value.startswith('"') and value.strip('"') not in words[name]
        return f"{name} cannot be {value}" if unknown else None
    if re.fullmatch(r'"\w+"', span):
        known = any(span.strip('"') in options for options in words.values())
    elif re.fullmatch(r"\w+", span):
        public = span in CLASSES or any(hasattr(thing, span) for thing in ESTIMATORS)
        known = (
            public or span in words or is_documented_attribute(span) or look_up(span)
        )
    else:
        known = re.fullmatch(r"[\w.]+", span) and look_up(span) is not None
    return None if known else f"{span} is not in the package"


def test_code_in_the_table_of_equations_is_in_the_package():
    faults = map(fault, sorted(code_spans(read("docs/equations.md"))))
    assert not [what for what in faults if what is not None]


def test_faults_are_seen():
    assert fault("_optim.run.iterate") is fault('meta="nmf"') is fault("loss_") is None
    wrong = ["_optim.run.loop", 'meta="fast"', "speed=1", "gain_", '"fast"']
    assert None not in map(fault, [*wrong, "StabilityScorer(speed=1)"])


# --- the rules of the code base -----------------------------------------------------------------


def extras():
    return tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]


def installed_by(page):
    """Return the packages that the commands of a page install: those of extras, and others."""
    names = []
    for line in re.findall(r"^\S*pip install (.*)$", page, re.MULTILINE):
        for extra in re.findall(r"\[([\w,]+)\]", line):
            names += [
                package for name in extra.split(",") for package in extras()[name]
            ]
        names += [word for word in line.split() if re.match(r"\w", word)]
    return {re.match(r"[\w-]+", name)[0] for name in names}


def is_path(span):
    return bool(re.fullmatch(r"[\w./-]+", span)) and (
        "/" in span or span.endswith((".py", ".md", ".toml", ".cff"))
    )


def rule_fault(span, page):
    """Return what is wrong with a piece of code among the rules, or None."""
    command = span.split()[0]
    if is_path(command):
        made = list(ROOT.glob(command)) + list((ROOT / "nmfcluster").rglob(command))
        return None if made else f"there is no {command}"
    if PACKAGE_OF.get(command, command) in installed_by(page):
        return None
    if span.isupper():  # of the environment
        return None if span in read(".ci/run") else f".ci/run does not read {span}"
    return fault(span)


@pytest.mark.skipif(
    not (ROOT / ".ci").exists(), reason="not a checkout of the repository"
)
def test_what_the_rules_name_is_there():
    page = read("CONTRIBUTING.md")
    faults = (rule_fault(span, page) for span in sorted(code_spans(page)))
    assert not [what for what in faults if what is not None]


def test_commands_to_contributors_are_installed_by_the_first_of_them():
    page = read("CONTRIBUTING.md")
    (block,) = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    tools = set(re.findall(r"\.venv/bin/([\w-]+)", block)) - {"pip"}
    assert tools
    assert {PACKAGE_OF.get(tool, tool) for tool in tools} <= installed_by(block)
    if "-n auto" in block:
        assert "pytest-xdist" in installed_by(block)


def test_pages_install_from_the_repository():
    source = tomllib.loads(read("pyproject.toml"))["project"]["urls"]["Source"]
    places = {
        name: re.findall(r'pip\s+install\s+"?nmfcluster\S*((?: @ \S+")?)', read(name))
        for name in [*guide(), "docs/api.rst"]
    }
    assert places["README.md"]
    assert {place for found in places.values() for place in found} == {
        f' @ git+{source}"'
    }


def test_linked_files_exist():
    for page in ("README.md", "CONTRIBUTING.md", "docs/index.md"):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", read(page)):
            elsewhere = "auto_examples/" in target or "://" in target
            assert elsewhere or (ROOT / page).parent.joinpath(target).exists(), (
                page,
                target,
            )


def released():
    """Return the version of the last release: the one before, while the next is developed."""
    newest = re.search(r"^## (\d+\.\d+\.\d+) \(", read("CHANGELOG.md"), re.MULTILINE)[1]
    version = nmfcluster.__version__
    return newest if version.endswith(".dev0") else version


def test_the_citation_is_of_the_release_and_names_every_estimator():
    citation = read("CITATION.cff")
    assert f"\nversion: {released()}\n" in citation
    cited = set(re.findall(r"\w+", " ".join(re.findall(r"notes: (.*)", citation))))
    assert {
        thing.__name__ for thing in ESTIMATORS if hasattr(thing, "fit_predict")
    } <= cited


def test_the_conda_recipe_is_of_the_release_and_wants_the_same():
    recipe = read("conda/meta.yaml")
    if not recipe:
        pytest.skip("the recipe is not here")
    assert f'{{% set version = "{released()}" %}}' in recipe
    project = tomllib.loads(read("pyproject.toml"))["project"]
    wanted = {f"python {project['requires-python']}", *project["dependencies"]}
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    listed = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    assert listed == {one.replace(" ", "") for one in wanted}
    for name, target in project["scripts"].items():
        assert f"- {name} = {target}" in recipe


# --- the API page -------------------------------------------------------------------------------


@cache
def api_page():
    """Return the API page as Sphinx reads it."""
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    conf = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conf)
    return conf.with_estimators(read("docs/api.rst"))


def listed():
    """Return the names that the API page lists, by module."""
    names = {}
    for part in api_page().split(".. currentmodule:: ")[1:]:
        module, *lines = part.splitlines()
        names.setdefault(module, []).extend(
            line.strip() for line in lines if re.fullmatch(r"   \w+", line)
        )
    return names


def test_the_api_page_lists_what_is_public_once_and_nothing_else():
    public = {}
    folder = Path(nmfcluster.__file__).parent
    for path in [folder, *sorted(folder.glob("[!_]*"))]:
        if path.suffix == ".py" or (path / "__init__.py").exists():
            module = "nmfcluster" if path == folder else f"nmfcluster.{path.stem}"
            found = importlib.import_module(module)
            names = set(found.__all__) - {"__version__"}
            # where it is shorter; nmfcluster.dask has a class of its own
            if path != folder:
                for name in names & set(nmfcluster.__all__):
                    names -= (
                        {name}
                        if getattr(found, name) is getattr(nmfcluster, name)
                        else set()
                    )
            public[module] = names
    assert {module: sorted(names) for module, names in public.items() if names} == {
        module: sorted(names) for module, names in listed().items()
    }


def test_estimators_list_themselves():
    source = read("docs/api.rst")
    own, *_ = source.split(".. currentmodule:: nmfcluster.dask")
    for name in listed()["nmfcluster"]:
        if hasattr(getattr(nmfcluster, name), "fit_predict"):
            assert not re.search(rf"^   {name}$", own, re.MULTILINE)
    assert "|estimators|" in source
    assert "|estimators|" not in api_page()


# --- the look of the sources --------------------------------------------------------------------


def long_lines(text):
    """Return the lines that should have been wrapped.

    Tables, code, formulas of their own and the targets of links cannot be.
    """
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        shown = re.sub(r"\]\([^)]*\)", "]", line)
        if (
            not fenced
            and not line.lstrip().startswith(("|", "$$"))
            and len(shown) > WIDTH
        ):
            yield line


def guide():
    return [
        "README.md",
        "CONTRIBUTING.md",
        *(f"docs/{p.relative_to(DOCS)}" for p in pages()),
    ]


def pages():
    made = {"_build", "auto_examples", "generated"}
    return sorted(path for path in DOCS.rglob("*.md") if not made & set(path.parts))


def test_lines_of_the_guide_are_wrapped():
    for name in guide():
        assert list(long_lines(read(name))) == [], name


def test_comments_for_the_build_are_right_above_a_block():
    comment = r"<!-- (?:figure: [^>]*|warns|folded) -->\n"
    block = r"(?=(?:<!-- warns -->\n)?(?:<!-- folded -->\n)?```python\n)"
    for name in guide():
        shown = read(name)
        assert len(re.findall(comment, shown)) == len(
            re.findall(comment + block, shown)
        ), name


def test_pages_of_the_guide_show_a_figure_before_any_formula():
    for name in guide():
        if "user_guide/" in name and "```python" in read(name):
            before, figure, _ = read(name).partition("<!-- figure: ")
            assert figure, name
            assert "$$" not in before, name


def test_formulas_have_the_fractions_indices_and_bars_of_tex(monkeypatch):
    pytest.importorskip("sphinx", reason="docs are built with it")
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    convert = partial(
        importlib.import_module("mathml").convert, node=None, as_block=False
    )

    def shown(formula):
        return re.sub(r"\n *", "", convert(formula))

    assert shown(r"\tfrac12 x") == shown(r"\tfrac{1}{2} x") != shown(r"\tfrac{12}{x}")
    for letter in (r"\hat p", r"\bar{A}"):
        assert "<msub>" in shown(letter + "_{oi}")
        assert "<munder" not in shown(letter + "_{oi}")
    bars = re.findall(
        r'<mo stretchy="false" form="(\w+)"[^>]*>([|‖])', shown(r"\|x|C|\|_F |D|")
    )
    turns = [("prefix", "‖"), ("prefix", "|"), ("postfix", "|"), ("postfix", "‖")]
    assert bars == [*turns, *turns[1:3]]
    for divided in (r"D(P \,\|\, Q) = |P|", r"D(P \| Q)"):
        assert 'form="infix"' in shown(divided)


def test_cells_show_the_value_of_every_expression(monkeypatch, capsys):
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    cell_values = importlib.import_module("cell_values")
    code = "n = 2\nn + 1\nNone\nn + 2  # 4\nprint(n)\nn + 3  # a sum\n"
    tree = cell_values.wrap_expressions(ast.parse(code), code)
    namespace = {cell_values.FUNCTION: cell_values.show_value}
    exec(compile(tree, "cell", "exec"), namespace)
    assert capsys.readouterr().out == "n + 1: 3\n2\nn + 3: 5\n"
