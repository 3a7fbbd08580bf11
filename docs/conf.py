"""How Sphinx builds this site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from lightdxml import __version__  # noqa: E402 - of this checkout

project = "LightDXML"
author = "the LightDXML developers"
copyright = "the LightDXML developers. MIT license"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "commands",
    "mathml",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext"]
html_theme = "furo"
html_title = f"LightDXML {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_permalinks_icon = "#"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# Docstrings are in NumPy's style, and their single backticks are code.
default_role = "code"
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_mock_imports = ["ray"]  # the site can be built without it, and sooner
autodoc_typehints = "description"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

copybutton_selector = "div[class*=highlight-]:not(.highlight-output):not(.highlight-text) pre"
copybutton_exclude = ".linenos, .gp, .go"
highlight_language = "text"

# Types: those of other packages would have to be fetched, and many of ours have no page of their own.
nitpick_ignore_regex = [("py:(class|obj|data|exc)", r".*")]


def setup(app: Sphinx) -> None:
    """List the pages of a folder below its README, which GitHub shows without a list."""

    def add(app: Sphinx, name: str, source: list[str]) -> None:
        if name.endswith("/README"):
            source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[!R]*\n```\n"

    app.connect("source-read", add)
