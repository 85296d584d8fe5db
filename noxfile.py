"""Tasks of a developer: `nox` runs the first three, `nox -s NAME` another, `nox -l` lists them.

They run in the environment that nox itself is in: one of their own each would install TensorFlow
again, for minutes, to run checks that take seconds. Only `light` makes its own.
"""

import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "fast"]

# The tiers that the default run leaves out; .ci/run has them too.
OTHER_TIERS = "(statistics or benchmarks or browser) and not (processes or cluster or slow)"
ALONE = "(processes or cluster) and not slow"
# Most tests keep one core busy; those of a file share what they compile.
SHARED = ("-n", "2", "--dist", "loadfile")


def _run(session, module, *arguments):
    # By the interpreter: an environment that is not activated has no ruff on the PATH.
    session.run(sys.executable, "-m", module, *arguments)


@nox.session
def lint(session):
    """Style: ruff check, and ruff format without a change."""
    _run(session, "ruff", "check", ".")
    _run(session, "ruff", "format", "--check", ".")


@nox.session
def types(session):
    """Types: mypy, strict in every room."""
    _run(session, "mypy")


@nox.session
def fast(session):
    """Tests that start no TensorFlow and compile nothing; arguments go to pytest."""
    _run(session, "pytest", *SHARED, "-m", "fast", *session.posargs)


@nox.session
def test(session):
    """The default tests, which are those of the README's command; arguments go to pytest."""
    _run(session, "pytest", *SHARED, *session.posargs)


@nox.session
def full(session):
    """All tests but the slow ones."""
    _run(session, "pytest", *SHARED)
    _run(session, "pytest", *SHARED, "-m", OTHER_TIERS)
    _run(session, "pytest", "-m", ALONE)


@nox.session(venv_backend="venv", python=["3.11", "3.12", "3.13"])
def light(session):
    """The install without extras: what it brings, and predictions with it, by each Python there is."""
    session.install(".")
    session.run("python", ".ci/light.py")


@nox.session
def docs(session):
    """The documentation site, in `site`: tutorials are executed, and a warning is an error."""
    _run(session, "sphinx", "-W", "--keep-going", "-q", "docs", "site")
    session.run(sys.executable, "docs/check_site.py", "site")


@nox.session(venv_backend="venv")
@nox.parametrize("kind", ["wheel", "sdist"])
def release(session, kind):
    """The archives of a release, in `dist`: each installs by itself, and predicts."""
    session.run(sys.executable, "-m", "build", f"--{kind}", "--outdir", "dist", external=True)
    ending = {"wheel": "*.whl", "sdist": "*.tar.gz"}[kind]
    session.install(str(max(Path("dist").glob(ending), key=lambda path: path.stat().st_mtime)))
    session.run("python", ".ci/light.py")
