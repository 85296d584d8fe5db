"""Reports as a browser shows them: quiet, alone, in both colour schemes, no wider than a phone.

Each test opens a page of its own profile in a headless chromium, for a second or two.
"""

import html
import json
import re
import shutil
import subprocess

import pytest

from tests.support.builders import make_rows, synthetic_ensemble
from tests.support.predictions import ARD_FIRST
from tfbnn.fit.model import BayesianMLP
from tfbnn.likelihoods import Categorical
from tfbnn.plots.page.subject import KnownRows, Subject
from tfbnn.plots.page.writing import page_of_model, page_text
from tfbnn.priors import Normal

image = pytest.importorskip("matplotlib.image")
pytest.importorskip("jinja2")

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here")

QUIET = """--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-quic --hide-scrollbars
--enable-logging=stderr""".split()
# The browser asks its makers for things of its own: for it there is no network.
QUIET.append("--host-resolver-rules=MAP * ~NOTFOUND")
DARK = "--blink-settings=preferredColorScheme=0"
PHONE, DESK = 390, (1200, 900)
LONG = "a_very_long_name_of_a_column_that_no_phone_has_room_for_in_one_line_" * 2
# Written into a copy of a page, which may then run it: tells the page around it what is too wide.
PROBE = """<script>
addEventListener("load", () => {
  const width = document.documentElement.clientWidth;
  const wide = [...document.querySelectorAll("body *")].filter((element) =>
    !element.closest(".scroll") && element.getBoundingClientRect().right > width + 1);
  const shown = [...document.images].filter((image) => image.complete && image.clientHeight > 50);
  parent.postMessage({width, scroll: document.documentElement.scrollWidth, shown: shown.length,
    wide: wide.map((element) => element.outerHTML.slice(0, 80))}, "*");
});
</script></body>"""
# A window of the browser is never as narrow as a phone; a frame is.
AROUND = """<script>
addEventListener("message", (event) => { document.title = JSON.stringify(event.data); });
</script><iframe src="probe.html" width="390" height="844" style="border: 0"></iframe>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A folder with the pages of a regression and of a classifier."""
    folder = tmp_path_factory.mktemp("pages")
    names = {"feature_names": ("m_GeV", LONG), "provenance": {"target_names": ["xsec_fb"]}}
    prior = [ARD_FIRST, Normal(0.7)]
    regression = BayesianMLP.from_ensemble(synthetic_ensemble(prior=prior, **names))
    classifier = BayesianMLP.from_ensemble(
        synthetic_ensemble((2, 4, 3), likelihood=Categorical(), classes=("a", "b", LONG))
    )
    x, y = make_rows(400, 2, 1)
    rows = {
        "regression": (regression, KnownRows(x, y, source=LONG)),
        "classifier": (classifier, KnownRows(x, classifier.predict_classes(x))),
    }
    for name, (model, known) in rows.items():
        text = page_text(page_of_model(Subject(model, known), name))
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


def opened(tmp_path, page, *options):
    """(Standard output, lines of the console) of chromium that opens a page."""
    command = [CHROMIUM, *QUIET, f"--user-data-dir={tmp_path / 'profile'}"]
    command += [f"--window-size={DESK[0]},{DESK[1]}", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def without_policy(text):
    return re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)


def asked_for(log):
    """Addresses of the requests of pages, not of the browser itself, in a log of the network."""
    requests = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    return {
        request["url"]
        for request in requests
        if re.match(r"(https?|wss?|ftp):", request.get("url", ""))
        and request.get("initiator", "not an origin") != "not an origin"
    }


@pytest.mark.parametrize("name", ["regression", "classifier"])
def test_no_request_leaves_and_the_console_is_empty(pages, tmp_path, name):
    log = tmp_path / "network.json"
    dom, console = opened(tmp_path, pages / f"{name}.html", "--dump-dom", f"--log-net-log={log}")
    assert dom.count("</section>") == 10
    assert not console and not asked_for(log)


def test_a_page_that_asks_for_something_is_caught_twice(pages, tmp_path):
    """By its own policy; and without one, by the log that the test above looks into."""
    image_of = '<img src="https://example.invalid/a.png"></body>'
    text = (pages / "classifier.html").read_text(encoding="utf-8").replace("</body>", image_of)
    page, log = tmp_path / "loud.html", tmp_path / "network.json"
    page.write_text(text, encoding="utf-8")
    _, console = opened(tmp_path, page, "--dump-dom", f"--log-net-log={log}")
    assert "Content Security Policy" in console[0] and not asked_for(log)
    page.write_text(without_policy(text), encoding="utf-8")
    opened(tmp_path, page, "--dump-dom", f"--log-net-log={log}")
    assert asked_for(log) == {"https://example.invalid/a.png"}


@pytest.mark.parametrize("name", ["regression", "classifier"])
def test_a_phone_has_nothing_to_scroll_sideways(pages, tmp_path, name):
    text = (pages / f"{name}.html").read_text(encoding="utf-8")
    probe = without_policy(text).replace("</body>", PROBE)
    (tmp_path / "probe.html").write_text(probe, encoding="utf-8")
    (tmp_path / "around.html").write_text(AROUND)
    dom, _ = opened(tmp_path, tmp_path / "around.html", "--dump-dom")
    found = json.loads(html.unescape(re.search("<title>(.*?)</title>", dom)[1]))
    assert found["width"] == PHONE and found["scroll"] <= PHONE and not found["wide"]
    assert found["shown"] == text.count("<img")


def test_both_colour_schemes_are_drawn(pages, tmp_path):
    def brightness(*options):
        shot = tmp_path / f"{len(options)}.png"
        _, console = opened(tmp_path, pages / "regression.html", f"--screenshot={shot}", *options)
        assert not console
        pixels = image.imread(shot)[..., :3]
        assert pixels.shape[:2] == DESK[::-1]
        return pixels.mean(), pixels.std()

    light, dark = brightness(), brightness(DARK)
    assert light[0] > 0.8 and dark[0] < 0.25
    assert light[1] > 0.05 and dark[1] > 0.05  # there is something to be seen
