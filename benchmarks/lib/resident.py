"""Child processes with the package of a checkout: some that end, and some that answer in turns."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]


def ended_child(arguments, checkout=HERE.parent, **variables):
    """Run a child and return the JSON value that it wrote on standard output, and its text on standard error.

    Args:
        arguments: Of the interpreter.
        checkout: Folder of the checkout whose package it imports.
        variables: Of its environment.

    Raises:
        RuntimeError: When it failed.
    """
    done = subprocess.run(
        [sys.executable, "-P", *map(str, arguments)],
        env=_environment(checkout) | variables,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"A child with {checkout} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout), done.stderr


def _environment(checkout):
    """Return the environment of a child that imports from a checkout, and from this one what that one lacks."""
    path = os.pathsep.join(map(str, (checkout, HERE.parent)))
    return os.environ | {"PYTHONPATH": path}


class Resident:
    """A child that reads questions and writes answers, JSON values a line each; see `answer`.

    While it waits for a question it does nothing, so that several take turns on one machine.
    """

    def __init__(self, program, checkout=HERE.parent):
        """
        Args:
            program: Path below benchmarks/ of a script that calls `answer`.
            checkout: Folder of the checkout whose package it imports.
        """
        self._said = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / program)],
            env=_environment(checkout),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def ask(self, question, **arguments):
        """The answer to a question.

        Raises:
            RuntimeError: When the child has ended instead.
        """
        self._process.stdin.write(json.dumps([question, arguments]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            raise RuntimeError(f"A child failed on {question!r}:\n{self._said.read()[-2000:]}")
        return json.loads(line)


def answer(questions):
    """Answers what is asked on standard input until it ends.

    Args:
        questions: Dict name -> function of keyword arguments that returns a JSON value.
    """
    for line in sys.stdin:
        question, arguments = json.loads(line)
        print(json.dumps(questions[question](**arguments)), flush=True)
