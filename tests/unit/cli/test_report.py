"""`tfbnn report`: pages of models, and of a run that goes on."""

import sys

import pytest

from tests.support.commands import check_refusal, write_tables_and_models
from tests.support.followed_runs import FakeRun
from tests.support.pages import check_page
from tfbnn.plots.page import making, sections

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Tables and models; pages have no figures, which have tests of their own."""
    write_tables_and_models(tmp_path)
    monkeypatch.setattr(making, "_SECTIONS", (sections.fitted, sections.predictions))
    monkeypatch.setattr(sections, "find_truths", lambda *_: [])
    return tmp_path


def words_of(path):
    return check_page(path.read_text(encoding="utf-8")).words()


def test_a_page_of_a_model(run, folder):
    code, out, err = run("report named.h5 rows.csv --unit GeV")
    assert (code, out) == (0, "") and "Wrote report.html. It takes 0.0 MB" in err
    words = words_of(folder / "report.html")
    assert "named.h5" in words and "Scores of rows.csv" in words and "y [GeV]" in words
    # Advice in its own words.
    assert "a higher --target-accept-prob" in words and "model." not in words
    code, _, _ = run("report named.h5 -o report.html")
    assert code == 0 and "rows with known targets: tfbnn report named.h5 DATA" in words_of(
        folder / "report.html"
    )


def test_rows_are_refused_as_elsewhere(run, folder):
    check_refusal(run("report named.h5 points.csv -o new.html"), "no column")
    check_refusal(run("report named.h5 rows.csv --unit a --unit b -o new.html"), "unit")
    assert not (folder / "new.html").exists()


@pytest.mark.parametrize("library, told", [("matplotlib", "Matplotlib"), ("jinja2", "Jinja2")])
def test_what_is_not_installed_is_named(run, folder, monkeypatch, library, told):
    making._template.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(making, "_SECTIONS", (sections.slices,))
    check_refusal(run("report named.h5 -o new.html"), told, "tfbnn[plots]")
    assert not (folder / "new.html").exists()


def test_a_run_is_followed_to_its_end(run, folder, meanwhile):
    made, page, seen = FakeRun(folder / "run"), folder / "report.html", []

    def look():
        text = page.read_text(encoding="utf-8")
        assert 'http-equiv="refresh"' in text
        seen.append(check_page(text).words())

    for move in (made.path.mkdir, made.begin, made.warm_up(300, 60.0), made.sample(10, 2.0, 0)):
        meanwhile += [lambda move=move: (look(), move())]
    meanwhile += [lambda: (look(), made.sample(30, 8.0, 7)())]
    code, _, err = run("report run --follow")
    assert code == 0 and not meanwhile and "kept up to date" in err
    assert "It has not begun to sample." in seen[0] and "warm-up 0 %" in seen[2]
    assert "nothing is sampled yet" in seen[3] and "sampling 25 %" in seen[4]
    assert "10/40 draws per chain" in seen[4] and "dense_1" in seen[4]
    last = page.read_text(encoding="utf-8")
    assert "refresh" not in last and "2 chains x 40" in check_page(last).words()


def test_a_page_is_no_longer_live_when_nobody_follows(run, folder, meanwhile):
    made, page = FakeRun(folder / "run"), folder / "report.html"
    made.begin()

    def stop():
        raise KeyboardInterrupt

    meanwhile += [stop]
    code, _, err = run("report run --follow")
    assert code == 85 and "Stopped" in err
    text = page.read_text(encoding="utf-8")
    assert "refresh" not in text and "warm-up 0 %" in check_page(text).words()


def test_only_a_run_is_followed(run, folder):
    check_refusal(run("report named.h5 --follow -o new.html"), "folder of a run")
    assert not (folder / "new.html").exists()


def test_a_run_that_nobody_works_on_leaves_a_page_that_is_not_live(run, folder, meanwhile):
    made = FakeRun(folder / "run")
    made.begin()
    meanwhile += [made.warm_up(116, 29.0)] + [lambda: None] * 6
    code, _, err = run("report run --follow")
    assert code == 2 and "for 30 s" in err
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "refresh" not in text and "warm-up 38 %" in check_page(text).words()
