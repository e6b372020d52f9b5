"""Pages whose code is run when the documentation is built, and shown with what comes out of it.

A page is Markdown that needs no front matter: every block that begins with ```python in the first
column is a cell of a notebook, which myst-nb runs. All cells of a page are one program. Three
comments right above a block are read, in this order:

- ``<!-- figure: words -->``: the alternative text of the figure that the block draws.
- ``<!-- warns -->``: the block may warn. Otherwise a warning is an error of the build.
- ``<!-- folded -->``: the code is hidden until a reader opens it. Use it for plotting helpers.
"""

import re

from docutils import nodes
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.util import logging

CELL = re.compile(
    r"^(?:<!-- figure: (?P<alt>[^>]+?) -->\n)?(?P<warns><!-- warns -->\n)?"
    r"(?P<folded><!-- folded -->\n)?"
    r"```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Run before the cells of a page, and not shown. Estimators are a line of text, not a diagram,
# warnings do not name the file that a cell was put into, and all values of a cell are shown.
PREPARE = """\
%matplotlib inline
import cell_values, sklearn, warnings
cell_values.install(get_ipython())
sklearn.set_config(display="text")
warnings.formatwarning = lambda message, category, *place: f"{category.__name__}: {message}\\n"
"""


def options(block):
    """Return what the comments above a block say, as metadata of a cell."""
    chosen = {}
    if block["alt"]:
        chosen["image"] = {"alt": " ".join(block["alt"].split())}
    if block["warns"]:
        chosen["output_stderr"] = "show"
    metadata = {"mystnb": chosen} if chosen else {}
    if block["folded"]:
        metadata["tags"] = ["hide-input"]
    return metadata


def read_page(text):
    """Return the notebook of a page, for ``nb_custom_formats``."""
    found = list(CELL.finditer(text))
    cells, first_lines = [], []  # lines are counted from 0, for warnings

    def add(cell, start):
        cells.append(cell)
        first_lines.append(text.count("\n", 0, start))

    if found:
        add(new_code_cell(PREPARE, metadata={"tags": ["remove-cell"]}), 0)
    end = 0
    for block in found:
        add(new_markdown_cell(text[end : block.start()]), end)
        add(
            new_code_cell(block["code"].rstrip(), metadata=options(block)),
            block.start("code"),
        )
        end = block.end()
    add(new_markdown_cell(text[end:]), end)
    return new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},  # for colours, where a page is not run
            "source_map": first_lines,
        },
    )


def warn_of_figures_without_words(app, doctree):
    if not str(app.env.doc2path(app.env.docname)).endswith(".md"):
        return  # of the gallery, which finds its own words
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            logging.getLogger(__name__).warning(
                "a figure without alternative text", location=image, type="code_cells"
            )


def setup(app):
    app.connect("doctree-read", warn_of_figures_without_words)
    return {"parallel_read_safe": True}
