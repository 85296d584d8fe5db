"""`tfbnn completion`: made for all commands, and in a real shell it completes what one types."""

import shutil
import subprocess

import pytest

from tests.support.commands import check_refusal
from tfbnn.cli.app import parsers
from tfbnn.cli.completion import all_actions

pytest.importorskip("shtab")
SHELLS = ("bash", "zsh", "tcsh")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.h5").touch()
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_in_the_script(run, shell):
    code, out, err = run(f"completion {shell}")
    assert (code, err) == (0, "")
    program, commands = parsers()
    for name in commands:
        assert name in out
    for action in all_actions(program):
        for option in action.option_strings:
            assert option.lstrip("-") in out


@pytest.fixture
def complete(run, folder):
    """Return a function that tells what bash offers at the end of a line."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    script = run("completion bash")[1]

    def complete(line):
        words = line.split(" ")
        code = f"""{script}
COMP_WORDS=({" ".join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}
_shtab_tfbnn tfbnn {words[-1]!r} {words[-2]!r}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        bash = ["bash", "--norc", "-c", code]
        done = subprocess.run(bash, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return complete


def test_words_are_completed(complete):
    assert complete("tfbnn pre") == ["predict"]
    assert "--num-chains" in complete("tfbnn fit --num-")
    assert complete("tfbnn fit --kernel hm") == ["hmc"]
    assert complete("tfbnn fit --activation ta") == ["tanh"]
    assert complete("tfbnn fit --likelihood bern") == ["bernoulli"]
    assert complete("tfbnn fit --preconditioner di") == ["diagonal"]
    assert complete("tfbnn compress --method str") == ["stride"]
    assert complete("tfbnn completion z") == ["zsh"]


def test_files_are_completed(complete):
    for line in ("tfbnn predict mod", "tfbnn fit --validation mod", "tfbnn plot m.h5 -o mod"):
        assert complete(line) == ["model.h5"]


def test_without_shtab_the_message_names_the_extra(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    check_refusal(run("completion bash"), "pip install 'tfbnn[completion]'")
    check_refusal(run("completion fish"), "invalid choice: 'fish'", "bash, zsh, tcsh")
