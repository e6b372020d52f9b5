"""Formulas as MathML, which browsers show without a script or a network.

docutils converts them; a formula that it cannot convert is a warning. Three things are mended.
Browsers would take every bar for an opening one, and stretch it as high as what stands beside it.
docutils reads the 12 of ``\\frac12`` as one number, for which it takes what follows as divisor. And
it would set the index of a letter with a hat under the letter, where limits of sums go.
"""

import re
from itertools import cycle

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

ACCENT = re.compile(
    r"(\\(?:hat|bar|tilde|dot|vec)\s*(?:[A-Za-z]|\{[^{}]*\}))(?=\s*[_^])"
)
SPACE = r"<mspace[^>]*></mspace>\s*"
BAR = re.compile(
    rf"(?P<before>{SPACE})?<mo[^>]*>(?P<bar>[|‖])</mo>(?P<after>\s*{SPACE})?"
)


def brace_halves(formula):
    r"""Write ``\frac{1}{2}`` for ``\frac12``."""
    return re.sub(r"(\\[td]?frac)\s*(\d)\s*(\d)", r"\1{\2}{\3}", formula)


def end_accents(formula):
    r"""Write ``\hat p{}_i`` for ``\hat p_i``."""
    return ACCENT.sub(r"\1{}", formula)


def mend_bars(formula):
    """Make bars open and close in turn, none of them stretched; a lone or a spaced one divides."""
    forms = {bar: cycle(["prefix", "postfix"]) for bar in "|‖"}

    def mended(found):
        before, bar, after = found["before"] or "", found["bar"], found["after"] or ""
        divides = (before and after) or formula.count(f">{bar}<") == 1
        place = 'form="infix"' if divides else ""
        place = place or f'form="{next(forms[bar])}" lspace="0" rspace="0"'
        return f'{before}<mo stretchy="false" {place}>{bar}</mo>{after}'

    return BAR.sub(mended, formula)


def convert(formula, node, as_block):
    try:
        written = end_accents(brace_halves(formula))
        return mend_bars(tex2mathml(written, as_block=as_block))
    except MathError as error:
        logging.getLogger(__name__).warning(
            "no MathML for %r: %s", formula, error, location=node, type="mathml"
        )
        return ""


def visit_inline(writer, node):
    writer.body.append(
        writer.starttag(node, "span", "", CLASS="math notranslate nohighlight")
    )
    writer.body.append(convert(node.astext(), node, as_block=False) + "</span>")
    raise nodes.SkipNode


def visit_block(writer, node):
    writer.body.append(
        writer.starttag(node, "div", CLASS="math notranslate nohighlight")
    )
    if node["number"]:
        writer.body.append(
            f'<span class="eqno">({get_node_equation_number(writer, node)})'
        )
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
