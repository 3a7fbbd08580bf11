"""Formulas as MathML, which browsers render themselves: the site needs no script and no other host for them."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def _markup(node: nodes.Element, display: str) -> str:
    return str(convert(node.astext(), display=display)).replace(
        "<math ", f'<math alttext="{escape(node.astext())}" ', 1
    )


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(_markup(node, "inline"))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    number = f'<span class="eqno">({node["number"]})</span>' if node["number"] else ""
    self.body.append(f'<div class="math" id="{(node["ids"] or [""])[0]}">{number}{_markup(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
