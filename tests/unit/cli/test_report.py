"""`tfbnn report`: pages of models."""

import sys

import pytest

from tests.support.commands import check_refusal
from tests.support.pages import check_page
from tfbnn.plots.page import sections, writing

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


@pytest.fixture
def folder(folder, monkeypatch):
    """Tables and models; pages have no figures, which have tests of their own."""
    monkeypatch.setattr(writing, "SECTIONS", (sections.fitted, sections.predictions))
    monkeypatch.setattr(sections, "find_truths", lambda *_: [])
    return folder


def words_of(path):
    return check_page(path.read_text(encoding="utf-8")).words()


def test_a_page_of_a_model(run, folder):
    code, out, err = run("report named.h5 rows.csv")
    assert (code, out) == (0, "") and "Wrote report.html. It takes 0.0 MB" in err
    words = words_of(folder / "report.html")
    assert "named.h5" in words and "Scores of rows.csv" in words
    # Advice in its own words.
    assert "a higher --target-accept-prob" in words and "model." not in words
    code, _, _ = run("report named.h5 -o report.html")
    words = words_of(folder / "report.html")
    assert code == 0 and "rows with known targets: tfbnn report named.h5 DATA" in words


def test_rows_are_refused_as_elsewhere(run, folder):
    check_refusal(run("report named.h5 points.csv -o new.html"), "no column")
    check_refusal(run("report named.h5 absent.csv -o new.html"), "absent.csv")
    assert not (folder / "new.html").exists()


def test_what_is_not_installed_is_named(run, folder, monkeypatch):
    """test_cli.py does without Matplotlib."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    check_refusal(run("report named.h5 -o new.html"), "Jinja2", "tfbnn[plots]")
    assert not (folder / "new.html").exists()
