"""Settings of the documentation site: `sphinx-build -W docs site`.

Tutorials are MyST notebooks, executed by every build, and a cell that fails fails the build.
"""

import sys
from pathlib import Path

from sphinx.application import Sphinx

from tfbnn import __version__

sys.path.insert(0, str(Path(__file__).parent))
from command_reference import markdown  # noqa: E402

project = "tfbnn"
author = "The tfbnn developers"
copyright = "2026, the tfbnn developers"
release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
# Paths in the repository, such as a table of a benchmark, are files and not pages of the site.
suppress_warnings = ["myst.xref_missing"]

nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
# Progress, and warnings that repeat what a report says.
nb_output_stderr = "remove"

napoleon_use_ivar = True
napoleon_use_rtype = False
# Else the text of "x, y, noise_scale" would be repeated for each of them.
napoleon_use_param = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
# Backticks in docstrings are code.
default_role = "code"
# "auto" in a docstring is a string.
smartquotes = False

html_theme = "furo"
html_title = f"tfbnn {release}"
# So small that the lines of a report, of 100 columns, fit.
html_theme_options = {"light_css_variables": {"code-font-size": "0.72rem"}}


def show_examples_as_code(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Examples in docstrings are code without a mark of their own."""
    for place, line in reversed(list(enumerate(lines))):
        if line.strip() == "Example:":
            lines[place : place + 1] = [line.replace("Example:", "Example::"), ""]


def add_the_commands(app: Sphinx, docname: str, source: list[str]) -> None:
    """The page of commands is made of the parsers."""
    if docname == "commands":
        source[0] += markdown().partition("\n")[2]


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_the_commands)
    # Before napoleon, which would take the example for prose.
    app.connect("autodoc-process-docstring", show_examples_as_code, priority=400)
