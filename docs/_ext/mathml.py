"""Formulas as MathML, which browsers draw themselves: the built site needs no script and no network."""

import html
import re

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging
from sphinx.util.math import wrap_displaymath
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

# What docutils does not know, or reads in another way than LaTeX does, and what to write for it.
REWRITES = [
    (re.compile(r"\\dots(?![A-Za-z])"), r"\\ldots"),
    (re.compile(r"\\(hat|widehat|bar|tilde)\s*(\\[A-Za-z]+|[A-Za-z])"), r"\\\1{\2}"),  # the accent is on one symbol
]


def _mathml(node: nodes.Element, latex: str, *, block: bool) -> str:
    for pattern, replacement in REWRITES:
        latex = pattern.sub(replacement, latex)
    try:
        return latex2mathml.tex2mathml(latex, as_block=block)
    except MathError as error:
        logger.warning("cannot draw the formula %r: %s", latex, error, location=node, type="mathml")
        return f"<code>{html.escape(latex)}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(_mathml(node, node.astext(), block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    latex = node.astext()
    if r"\\" in latex and r"\begin" not in latex:
        latex = wrap_displaymath(latex, None, False)
    self.body.append(self.starttag(node, "div", CLASS="math"))
    self.body.append(_mathml(node, latex, block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
