"""The documentation site: Sphinx with Markdown (MyST) and the furo theme, built by `./dev docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import rayelastic  # noqa: E402 - of this tree, installed or not

project = "rayelastic"
author = "the rayelastic authors"
version = release = rayelastic.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "static"]
nitpicky = False  # annotations name private modules, which have no page

html_theme = "furo"
html_show_copyright = False
html_title = f"rayelastic {release}"
html_static_path = ["static"]
html_css_files = ["wide.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3  # the links between pages name headings as other viewers of Markdown do

default_role = "code"  # docstrings put code between single backquotes
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
add_module_names = False

# Pages of the repository's root that are included here, where a link to the root's file becomes one to the page.
AT_ROOT = {"ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def link_pages(_: Sphinx, page: str, source: list[str]) -> None:
    """Lets links to the root's pages lead to those of the site."""
    up = "../" * page.count("/")
    for name, shown in AT_ROOT.items():
        source[0] = re.sub(rf"\]\((?:\.\./)+{re.escape(name)}", f"]({up}{shown}", source[0])


def setup(app: Sphinx) -> None:
    """Set Sphinx up, which calls this."""
    app.connect("source-read", link_pages)
    app.add_lexer("output", TextLexer)  # what the example before it prints: tests compare it
