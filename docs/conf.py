"""How the documentation is built: ``sphinx-build -W -n -b html docs docs/_build/html``."""

import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))
# Kernels import `cell_values`. One page runs code that imports the example it explains, as its
# readers would.
_importable = [
    str(Path(__file__).parent / "_extensions"),
    str(Path(__file__).parent / "snippets"),
    os.environ.get("PYTHONPATH", ""),
]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _importable))

import nmfcluster

_pyproject = tomllib.loads(
    (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
)
_urls = _pyproject["project"]["urls"]

project = "nmfcluster"
author = "The nmfcluster developers"
copyright = author
version = release = nmfcluster.__version__

extensions = [
    "benchmark_results",
    "code_cells",
    "mathml",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_extensions",
    "auto_examples/*.ipynb",
    "examples",
    "snippets",
]
templates_path = ["_templates"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

nb_custom_formats = {".md": "code_cells.read_page"}
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 600  # seconds a cell: some take ten, more on a busy machine
nb_merge_streams = True
nb_output_stderr = "remove-warn"  # a page that warns is an error of the build

autosummary_generate = (
    False  # _write_object_pages does it, with the estimators in the list
)
toc_object_entries_show_parents = (
    "hide"  # at the right there is room for names of methods alone
)
autodoc_typehints = "none"  # the docstrings have them, with shapes
numpydoc_show_class_members = False  # the template of the class lists them
# Other libraries' objects are named in inherited docstrings; their inventories need a network.
nitpick_ignore_regex = [("py:.*", r"(matplotlib|numpy|scipy|sklearn)\..*")]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "doc_module": "nmfcluster",
    "backreferences_dir": "generated/examples",  # what the pages of objects list
    "show_signature": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",  # names begin with the topic
    "thumbnail_size": (560, 350),  # pixels: cards are up to half as wide
    "min_reported_time": 3600,
    "write_computation_times": False,  # their table loads scripts from the network
    "parallel": 2,  # processes: the examples are most of the time of a build
}

html_theme = "pydata_sphinx_theme"
html_title = "nmfcluster"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]
_no_sidebar = ["getting_started", "auto_examples/*", "equations", "adding_an_estimator"]
_no_sidebar += ["references", "changelog", "contributing", "licence"]
html_sidebars = {page: [] for page in _no_sidebar}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "icon_links": [
        {"name": "Repository", "url": _urls["Source"], "icon": "fa-brands fa-github"},
        {"name": "Issues", "url": _urls["Issues"], "icon": "fa-regular fa-circle-dot"},
    ],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def with_estimators(page):
    """Put the public estimators in the place of ``|estimators|``, one a line, indented as it is.

    An estimator is a public name of the package that has a ``fit_predict``.
    """
    names = [
        n for n in nmfcluster.__all__ if hasattr(getattr(nmfcluster, n), "fit_predict")
    ]
    return re.sub(
        r"^( *)\|estimators\|$",
        lambda place: "\n".join(place[1] + name for name in names),
        page,
        flags=re.MULTILINE,
    )


def _write_object_pages(app):
    """Write a page for every object in the lists of api.rst."""
    from sphinx.ext.autosummary.generate import generate_autosummary_docs

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "api.rst")
        page.write_text(
            with_estimators(Path(app.srcdir, "api.rst").read_text("utf-8")), "utf-8"
        )
        generate_autosummary_docs([str(page)], Path(app.srcdir, "generated"), app=app)


def _list_estimators(app, docname, source):
    if docname == "api":
        source[0] = with_estimators(source[0])


def _quote_what_is_no_markup(app, what, name, obj, options, lines):
    """Keep docutils from reading too much into docstrings.

    ``shape (n_iter_ + 1,)`` is no reference to "n_iter", and ``T. Lange`` does not begin a list.
    """
    for i, line in enumerate(lines):
        lines[i] = line = re.sub(r"^(\s*\.\. \[\w+\] )(?=[A-Z]\. )", r"\1\\", line)
        if " of shape (" in line:
            lines[i] = re.sub(
                r"(?<![`\w])(\w+_)(?![`\w])(?= [-+*]|[,)])", r"``\1``", line
            )


def _lead_to_shortest_path(app, env, node, text):
    """Find the page of nmfcluster.KernelStack for nmfcluster.stack.KernelStack, and so on.

    A class or function that is named without its module is found if only one has this name.
    """
    domain = env.get_domain("py")
    module, _, name = node["reftarget"].rpartition(".")
    if module.startswith("nmfcluster.") and name in nmfcluster.__all__:
        places = [f"nmfcluster.{name}"]
    elif not module:
        places = [
            place
            for place, found in domain.objects.items()
            if place.endswith(f".{name}")
            and found.objtype in ("class", "function")
            and not found.aliased
        ]
    else:
        places = []
    if len(places) == 1:
        return domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", places[0], node, text
        )


def setup(app):
    app.connect("builder-inited", _write_object_pages)
    app.connect("source-read", _list_estimators)
    app.connect("missing-reference", _lead_to_shortest_path)
    # before numpydoc
    app.connect("autodoc-process-docstring", _quote_what_is_no_markup, priority=1)
