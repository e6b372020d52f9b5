"""Formulas as MathML, which browsers show without a script or a network.

docutils converts them; a formula that it cannot convert is a warning.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number


def convert(formula, node, as_block):
    try:
        return tex2mathml(formula, as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning(
            "no MathML for %r: %s", formula, error, location=node, type="mathml"
        )
        return ""


def visit_inline(writer, node):
    writer.body.append(writer.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    writer.body.append(convert(node.astext(), node, as_block=False) + "</span>")
    raise nodes.SkipNode


def visit_block(writer, node):
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, _("Link to this equation"))
        writer.body.append("</span>")
    for formula in node.astext().split("\n\n"):  # a directive may hold several
        if formula.strip():
            writer.body.append(convert(formula, node, as_block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
