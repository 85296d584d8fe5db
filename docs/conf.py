"""Settings of the documentation site: `sphinx-build -W docs site`.

Tutorials and studies are MyST notebooks. Their outputs come from `notebooks/`, which `docs/notebooks.py` makes. The
build executes a page only if its code differs from that of its notebook; a cell that fails then fails the build.
"""

import os
import sys
from pathlib import Path

import nbformat
from docutils.nodes import SkipNode, math, math_block
from docutils.utils.math.latex2mathml import tex2mathml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.writers.html5 import HTML5Translator

from tfbnn import __version__

sys.path.insert(0, str(Path(__file__).parent))
from command_reference import markdown  # noqa: E402
from reference import methods_of  # noqa: E402

project = "tfbnn"
author = "The tfbnn developers"
copyright = "2026, the tfbnn developers"
release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
# Paths in the repository, such as a table of a benchmark, are files and not pages of the site.
# The functions that templates call cannot be pickled; nothing else of the settings is lost by that.
suppress_warnings = ["myst.xref_missing", "config.cache"]

nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parents[1] / ".jupyter_cache")
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
autosummary_context = {"methods_of": methods_of}
templates_path = ["_templates"]
autodoc_typehints = "none"
# Backticks in docstrings are code.
default_role = "code"
# "auto" in a docstring is a string.
smartquotes = False

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"tfbnn {release}"
html_last_updated_fmt = "%Y-%m-%d"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["llms.txt"]
# So small that the lines of a report, of 100 columns, fit.
html_theme_options = {"light_css_variables": {"code-font-size": "0.72rem"}}
# Every page links to its source where the address of the repository is given.
if repository := os.environ.get("TFBNN_REPOSITORY"):
    html_theme_options |= {
        "source_edit_link": f"{repository}/edit/main/docs/{{filename}}",
        "source_view_link": f"{repository}/blob/main/docs/{{filename}}",
    }


def inline_formula(translator: HTML5Translator, node: math) -> None:
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def displayed_formula(translator: HTML5Translator, node: math_block) -> None:
    """Write a displayed formula as MathML."""
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    raise SkipNode


def show_examples_as_code(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Examples in docstrings are code without a mark of their own."""
    for place, line in reversed(list(enumerate(lines))):
        if line.strip() == "Example:":
            lines[place : place + 1] = [line.replace("Example:", "Example::"), ""]


def keep_outputs(app: Sphinx, config: Config) -> None:
    """Take the outputs of pages from their notebooks."""
    cache = get_cache(config.nb_execution_cache_path)
    for path in sorted((Path(__file__).parents[1] / "notebooks").rglob("*.ipynb")):
        notebook = nbformat.read(path, 4)
        # The cache looks pages up by their code and kernel. This is the kernel that MyST-NB makes of their heads.
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "python3"}
        bundle = CacheBundleIn(notebook, str(path))
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def add_the_commands(app: Sphinx, docname: str, source: list[str]) -> None:
    """The page of commands is made of the parsers."""
    if docname == "commands":
        source[0] += markdown().partition("\n")[2]


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    app.connect("config-inited", keep_outputs)
    app.connect("source-read", add_the_commands)
    # Before napoleon, which would take the example for prose.
    app.connect("autodoc-process-docstring", show_examples_as_code, priority=400)
