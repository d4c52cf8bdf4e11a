"""Formulas as MathML, which browsers draw by themselves: no script, and nothing from the network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def convert(formula, as_block=False):
    """Return MathML; ``dots`` is amsmath's name for what the converter knows as ``ldots``."""
    return tex2mathml(formula.replace(r"\dots", r"\ldots"), as_block=as_block)


def inline(self, node):
    """Write a formula within a line."""
    self.body.append(f'<span class="math">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def block(self, node):
    """Write a formula on its own; one that is wider than a phone scrolls."""
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    anchor = f' id="equation-{node["label"]}"' if node.get("label") else ""
    self.body.append(f'<div class="math"{anchor}>{number}{convert(node.astext(), as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    """Make it known to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
