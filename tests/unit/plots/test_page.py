"""Reports as pages: they are whole, say what they should, and take nothing from names in a file."""

import base64
import hashlib
import re
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tfbnn
from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.coded import coded_ensemble
from tests.support.pages import check_page
from tests.support.predictions import ARD_FIRST
from tfbnn.diagnostics.diagnosis import Diagnosis
from tfbnn.diagnostics.problem import About, Interface, Severity
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Bernoulli, Categorical
from tfbnn.plots.page import sections, writing
from tfbnn.plots.page.content import Page
from tfbnn.plots.page.subject import KnownRows, Subject
from tfbnn.plots.page.writing import page_of_model, page_text
from tfbnn.posterior.basins.basins import Basins
from tfbnn.priors import Normal
from tfbnn.spec.rows import Rows, row_digests

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

NAMES = {"feature_names": ("m_GeV", "mix"), "provenance": {"target_names": ["xsec_fb"]}}
EVIL = "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&$x^\u202e\x1b[2J"


def model_of(**settings):
    return BayesianMLP.from_ensemble(synthetic_ensemble(**settings))


def made(model, rows):
    """(The text of a model's page, what was found in it)."""
    text = page_text(page_of_model(Subject(model, KnownRows(*rows)), "bnn.h5"))
    return text, check_page(text)


REGRESSION = NAMES | {"prior": [ARD_FIRST, Normal(0.7)], "num_results": 40}


@pytest.fixture(scope="module")
def regression():
    """The page of a regression with rows."""
    return made(model_of(**REGRESSION), make_rows(80, 2, 1))


def test_a_page_has_every_section_in_order(regression):
    _, found = regression
    anchors = [attributes["id"] for attributes in found.named("section")]
    assert " ".join(anchors) == (
        "verdict fitted convergence predictions pulls calibration slices relevance basins settings"
    )
    images = found.named("img")
    assert len(images) == 10 and len(found.named("figure")) == 10
    assert all(len(image["alt"]) > 20 for image in images)
    assert len(found.named("h1")) == 1 and found.named("html") == [{"lang": "en"}]
    words = found.words()
    for said in ("dense_1", "R-hat", "RMSE", "Within 2 sigma", "xsec_fb", "not calibrated"):
        assert said in words


def test_a_page_is_small_and_allows_itself_nothing(regression):
    text, found = regression
    assert text.startswith("<!DOCTYPE html>\n<!-- tfbnn report -->") and len(text) < 1_000_000
    (policy,) = (
        meta["content"] for meta in found.named("meta") if "content-security" in str(meta).lower()
    )
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in policy
    assert "prefers-color-scheme: dark" in style and "@media print" in style


def test_a_number_of_the_diagnosis_is_added_in_one_place(monkeypatch):
    """Report, page and command have the number then, as CONTRIBUTING says."""
    old = Diagnosis.facts
    monkeypatch.setattr(
        Diagnosis, "facts", lambda self: [*old(self), ("new", f"{self.ebfmi.size}")]
    )
    model = model_of()
    assert model.diagnose().numbers()[-1] == "new          2"
    assert sections.convergence(Subject(model)).facts[-1] == ("new", ["2"])


def luminance(color):
    """Return the luminance of "#rrggbb", as WCAG 2 defines it."""
    shares = np.array([int(color[index : index + 2], 16) for index in (1, 3, 5)]) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark", "paper"])
def test_text_and_lines_can_be_seen(theme):
    style = (Path(writing.__file__).parent / "page.css").read_text(encoding="utf-8")
    blocks = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in style.split(":root {")[1:]]
    colors = dict(zip(("light", "dark", "paper"), blocks))[theme]
    for name in ("ink", "soft", "link", "good", "fair", "poor", "open"):
        for ground in ("paper", "raised"):
            color = colors.get(name, blocks[0][name])
            assert contrast(color, colors[ground]) >= 4.5, (name, ground)


def test_the_same_figure_is_the_same_text_whatever_the_style_of_the_reader(regression, monkeypatch):
    from matplotlib import rc_context

    monkeypatch.setattr(writing, "SECTIONS", (sections.convergence, sections.slices))
    with rc_context({"text.usetex": True, "font.size": 20, "axes.facecolor": "red"}):
        _, found = made(model_of(**REGRESSION), make_rows(80, 2, 1))
    figures = [image["src"] for image in found.named("img")]
    assert len(figures) > 2 and all(figure in regression[0] for figure in figures)


def test_what_cannot_be_made_says_so():
    subject = Subject(model_of(), without_rows="tfbnn report bnn.h5 DATA")
    for make in (sections.predictions, sections.pulls):
        section = make(subject)
        assert not section.drawings
        assert section.notes == ["This needs rows with known targets: tfbnn report bnn.h5 DATA."]
    for make in (sections.relevance, sections.basins, sections.calibration):
        assert len(make(subject).notes) == 1
    unsampled = Subject(model_of(provenance={"not_sampled": "one network"}))
    with pytest.warns(UserWarning, match="not sampled"):
        assert sections.verdict(unsampled).tone == "open"
        assert sections.convergence(unsampled).notes == ["There are no chains to compare."]
        late = model_of(provenance={"not_sampled": "networks: max_seconds=9 are spent"})
        shell = Interface(is_command_line=True, folder="bnn.h5.run")
        found = sections.verdict(Subject(late, interface=shell))
    assert found.headline == "not sampled"
    assert found.findings[0][2] == "tfbnn resume bnn.h5.run --max-seconds 30 -o bnn.h5"


@pytest.mark.parametrize("until, step", [("max_seconds=9", "max_seconds=30"), (None, "fit again")])
def test_a_page_without_draws_says_why_once(until, step):
    reason = f"{until} was reached" if until else "the run was stopped"
    origin = {"not_sampled": f"pretrained networks: {reason}", "ended": reason, "until": until}
    text, found = made(model_of(provenance=origin), make_rows(80, 2, 1))
    words = found.words()
    assert words.count(reason) == 1 and "<title>bnn.h5: not sampled</title>" in text
    assert step in words.partition("Next")[2] and not found.named("img")


def test_what_is_stored_is_shown():
    model = model_of()
    model.calibrate(*make_rows(80, 2, 1))
    found = Basins(
        labels=np.array([0, 1]),
        log_evidence=np.array([0.0, -9.0]),
        log_evidence_stderr=np.array([0.1, 0.2]),
        rhat_within=np.ones((2, 10, 1)),
        chain_weights=np.array([0.5, 0.5]),
    )
    ensemble = replace(model.posterior, basins=found)
    subject = Subject(BayesianMLP.from_ensemble(ensemble))
    ((_, basins),) = sections.basins(subject).facts
    assert basins == found.lines() and len(found.lines()) == 3
    ((_, calibrated),) = sections.calibration(subject).facts
    assert calibrated == ensemble.calibration.lines()
    assert "by 80 held-out rows" in calibrated[0]


@pytest.mark.parametrize(
    "settings, num_drawings",
    [
        ({"layer_sizes": (2, 4, 3), "likelihood": Categorical()}, 2),
        ({"layer_sizes": (2, 4, 2), "likelihood": Bernoulli()}, 4),
    ],
    ids=["three classes", "two targets"],
)
def test_a_classifier_has_reliability_in_place_of_pulls(settings, num_drawings):
    model = model_of(**settings)
    x, y = make_rows(60, 2, model.spec.num_targets)
    subject = Subject(model, KnownRows(x, np.array(model.classes)[(y > 3.0).astype(int)]))
    section = sections.pulls(subject)
    assert section.notes[0].startswith("Pulls are for numeric targets")
    assert len(section.drawings) == num_drawings
    scores = sections.predictions(subject)
    assert not scores.drawings and "Accuracy" in [row[0] for row in scores.tables[0].rows]


@pytest.mark.parametrize("severity", Severity)
def test_the_verdict_comes_first_with_what_to_do(severity, monkeypatch):
    model = model_of(num_results=200)
    diagnosis = model.diagnose()
    problem = replace(
        diagnosis.problems[0], what="Chains differ", severity=severity, about=About.CHAINS
    )
    monkeypatch.setattr(model, "diagnose", lambda: replace(diagnosis, problems=(problem,)))
    subject = Subject(model)
    page = Page("bnn", "", sections.verdict(subject), [sections.fitted(subject)])
    text = page_text(page)
    found = check_page(text)
    tone = {0: "good", 1: "fair", 2: "poor", 3: "poor"}[severity]
    assert found.named("section")[0]["class"] == f"verdict {tone}"
    assert problem.remedy.words(subject.interface) in found.words()
    assert text.index("Chains differ") < text.index("What was fitted</h2>")


def test_rows_that_the_fit_has_not_seen_judge_the_predictions():
    """Beside the chains, whose quarrel then is no red box; rows of the fit judge nothing."""
    model = model_of(num_results=200)
    x = np.random.default_rng(2).normal(size=(120, 2))
    y = np.random.default_rng(3).normal(size=(120, 1))
    model.calibrate(x[:60], y[:60])
    subject = Subject(model, KnownRows(x[60:], y[60:]))
    found = sections.verdict(subject)
    assert found.headline == "calibrated predictions" and found.tone == "fair"
    (chains, _), (ok, text) = found.answers
    assert not chains and ok and text.startswith("Error bars hold on 60 held-out rows: ")
    boxes = page_text(Page("bnn", "", found, [])).split('<div class="answer ')[1:]
    assert [box.partition('"')[0] for box in boxes] == ["poor", "good"]
    assert all(len(box.partition("</div>")[0].split()) <= 40 for box in boxes)
    digests = row_digests(Rows(x[60:], y[60:], None, None))
    ensemble = replace(model.posterior, row_digests=digests)
    seen = Subject(BayesianMLP.from_ensemble(ensemble), KnownRows(x[60:], y[60:]))
    assert not seen.held_out.coverage
    assert "held-out" not in str(sections.verdict(seen).answers)


def test_several_targets_have_a_figure_each_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(sections, "MOST_TARGETS", 2)
    model = model_of(layer_sizes=(2, 4, 3))
    section = sections.pulls(Subject(model, KnownRows(*make_rows(40, 2, 3))))
    assert section.notes == ["The first 2 of 3 targets are drawn."]
    captions = [drawing.caption for drawing in section.drawings]
    assert sum(caption.startswith("Pulls of") for caption in captions) == 2


def test_names_of_a_crafted_model_stay_text():
    provenance = {
        "target_names": [EVIL],
        "kernel": EVIL,
        "pretraining": EVIL,
        "versions": {EVIL: EVIL},
        "choices": {EVIL: {"chosen": EVIL, "why": EVIL}},
    }
    model = model_of(feature_names=(EVIL, f"_{EVIL}"), provenance=provenance)
    rows = KnownRows(*make_rows(30, 2, 1), source=EVIL)
    page = page_of_model(Subject(model, rows, without_rows=EVIL), EVIL)
    text = page_text(page)
    found = check_page(text)
    assert "<script" not in text
    assert "alert(1)" in found.words()
    assert not {"\x1b", "\u202e"} & set(text)


def test_classes_of_a_crafted_model_stay_text():
    model = model_of(layer_sizes=(1, 4, 2), likelihood=Categorical(), classes=(EVIL, f"_{EVIL}"))
    rows = KnownRows(make_rows(30, 1, 1)[0], np.array([EVIL, f"_{EVIL}"] * 15))
    subject = Subject(model, rows)
    made = [make(subject) for make in (sections.fitted, sections.pulls, sections.slices)]
    text = page_text(Page("bnn", "", sections.verdict(subject), made))
    check_page(text)
    assert "<script" not in text


def test_slices_of_text_say_where_the_others_are():
    subject = Subject(BayesianMLP.from_ensemble(coded_ensemble()))
    section = sections.slices(subject)
    captions = [drawing.caption for drawing in section.drawings]
    others = ", the other columns at their medians, text and flags at their most frequent values."
    assert captions[:2] == [
        f"Predictions of y along mass{others}",
        f"Predictions of y at each value of colour{others}",
    ]
    assert len(captions) == 5 and not section.notes
    assert "naïve λ" in base64.b64decode(section.drawings[1].svg).decode()


def test_a_model_saves_its_report(tmp_path, monkeypatch):
    # Two sections without figures: those have tests of their own.
    monkeypatch.setattr(writing, "SECTIONS", (sections.fitted, sections.predictions))
    monkeypatch.setattr(sections, "find_truths", lambda *_: [])
    model, path = model_of(**NAMES), tmp_path / "report.html"
    model.save_report(path)
    first = path.read_text(encoding="utf-8")
    model.save_report(path, *make_rows(30, 2, 1))
    second = path.read_text(encoding="utf-8")
    assert "Scores of" not in first and "Scores of" in check_page(second).words()
    diary = tmp_path / "diary.html"
    diary.write_text("mine")
    with pytest.raises(FileExistsError, match="not a report of tfbnn"):
        model.save_report(diary)
    assert diary.read_text() == "mine"
    with pytest.raises(ValueError, match="x and y together"):
        model.save_report(path, make_rows(30, 2, 1)[0])
    with pytest.raises(tfbnn.NotFittedError):
        BayesianMLP([2, 3, 1]).save_report(tmp_path / "new.html")
    assert path.read_text(encoding="utf-8") == second


def test_what_a_page_is_made_of_is_installed():
    root = Path(__file__).parents[3]
    settings = ConfigParser()
    settings.read(root / "setup.cfg")
    package = root / "tfbnn"
    there = {
        path.relative_to(root)
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    told = {
        Path(*name.split("."), pattern)
        for name, patterns in settings["options.package_data"].items()
        for pattern in patterns.split()
    }
    assert there == told
