"""The reference of the command line is made of the parsers, and has all that they have."""

import importlib.util
import re
from pathlib import Path

import pytest

from tfbnn.cli.app import parsers
from tfbnn.cli.completion import all_actions

SCRIPT = Path(__file__).parents[2] / "docs" / "command_reference.py"

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("command_reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sections(reference):
    """The text of each section by its heading."""
    parts = re.split(r"^## (.+)$", reference.markdown(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2])) | {"tfbnn": parts[0]}


def test_every_command_has_a_section_with_all_its_options(sections):
    program, commands = parsers()
    assert set(sections) >= {"tfbnn", *(command.prog for command in commands.values())}
    for parser in (program, *commands.values()):
        text = sections[parser.prog]
        listed = "\n".join(re.findall(r"^- `([^`]+)`: .", text, re.MULTILINE))
        for action in parser._actions:
            for name in action.option_strings:
                assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", listed)
            if not action.option_strings and action.dest != "command":
                assert (action.metavar or action.dest) in listed or action.choices
    assert all(f"| [`{command.prog}`](#" in sections["tfbnn"] for command in commands.values())


def test_what_markdown_would_change_is_kept(reference):
    written = reference._sentence("see 'tfbnn diagnose' and --noise-scale: N*K, x[0] <b> -o")
    assert written == r"see `tfbnn diagnose` and `--noise-scale`: N\*K, x\[0] \<b> `-o`"


def test_help_is_expanded_and_blocks_are_closed(sections):
    program, _ = parsers()
    whole = "\n".join(sections.values())
    assert "%(default)s" not in whole and "default: kernel\\_thinning" not in whole
    assert "default: 100" in sections["tfbnn compress"]
    assert whole.count("```") % 2 == 0
    assert len(list(all_actions(program))) > 100
