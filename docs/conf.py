"""How the documentation is built: ``sphinx-build -W -n -b html docs docs/_build/html``."""

import os
import re
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import nmfcluster

project = "nmfcluster"
author = "The nmfcluster developers"
copyright = author
version = release = nmfcluster.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "snippets"]
templates_path = ["_templates"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have them, with shapes
numpydoc_show_class_members = False  # the template of the class lists them
# Other libraries' objects are named in inherited docstrings; their inventories need a network.
nitpick_ignore_regex = [("py:.*", r"(matplotlib|numpy|scipy|sklearn)\..*")]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "doc_module": "nmfcluster",
    "backreferences_dir": None,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 3600,
}

html_theme = "pydata_sphinx_theme"
html_title = "nmfcluster"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["custom.css"]
_no_sidebar = ["getting_started", "auto_examples/*", "equations", "adding_an_estimator"]
html_sidebars = {page: [] for page in [*_no_sidebar, "references", "changelog"]}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}


def _without_changelog(app, docname, source):
    """Let the documentation build before there is a change log."""
    if docname == "changelog" and not (Path(app.srcdir).parent / "CHANGELOG.md").exists():
        source[0] = "# Changelog\n\nNothing has been released yet.\n"


def _quote_attributes(app, what, name, obj, options, lines):
    """Keep docutils from reading ``shape (n_iter_ + 1,)`` as a reference to "n_iter"."""
    for i, line in enumerate(lines):
        if " of shape (" in line:
            lines[i] = re.sub(r"(?<![`\w])(\w+_)(?![`\w])(?= [-+*]|[,)])", r"``\1``", line)


def setup(app):
    app.connect("source-read", _without_changelog)
    app.connect("autodoc-process-docstring", _quote_attributes, priority=1)  # before numpydoc
