"""The bars of a run on a terminal, its lines in a pipe, and who else is told."""

import io
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.events import PLAN, newton, pretraining, sampling
from tests.support.terminal import terminal
from tfbnn.exceptions import ConvergenceWarning
from tfbnn.run.counters import Counters
from tfbnn.run.events import Look, SamplingEvent
from tfbnn.run.progress import Notifier, Progress


@pytest.fixture
def now(monkeypatch):
    """A clock that is set by hand."""
    clock = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("tfbnn.run.progress.time", SimpleNamespace(monotonic=lambda: clock.seconds))
    return clock


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Bars are drawn so often that no test has to wait."""
    pytest.importorskip("rich")
    monkeypatch.setattr("tfbnn.run.progress._PER_SECOND", 500.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def tell_all(progress, now, look=lambda *words: None):
    """A run from its beginning to its end, with a look at every line."""
    progress.announce("compile")
    look("compiling")
    for step in (5_000, 25_000):
        progress(pretraining(step))
        look("pretraining", f"{step // 250}%")
    progress.announce("newton")
    look("refining starts")
    for iteration in (8, 120, 736):
        progress(newton(iteration))
        look("refining starts", f"{iteration // 8}%")
    progress.announce("compile")
    look("compiling")
    for done in (9, 117, 300):
        now.seconds += 20.0
        progress(sampling("warmup", done, now.seconds))
        look("warm-up", f"{done // 3}%")
    for done in (10, 100):
        now.seconds += 4_000.0
        progress(sampling("sampling", done, now.seconds - 60.0, divergent=7 * done))
        look("sampling", f"{done}%")
    progress.close()


class TestTerminal:
    @pytest.mark.parametrize("width", [100, 80, 60])
    def test_each_phase_leaves_one_bar(self, width, now, monkeypatch):
        monkeypatch.setenv("COLUMNS", str(width))
        with terminal(width) as tty:

            def look(*words):
                until, lines = time.monotonic() + 20, tty.lines()
                while not (lines and all(word in lines[-1] for word in words)):
                    assert time.monotonic() < until, (words, lines)
                    time.sleep(0.002)
                    lines = tty.lines()
                assert len(lines) <= 5
                assert all(len(line) <= width for line in lines)

            tell_all(Progress(stream=tty.stream), now, look)
            lines = tty.lines()
        phases = ["pretraining", "refining starts", "warm-up", "sampling"]
        assert [line.split(" \u2501")[0].rstrip() for line in lines] == phases
        assert all(" 100% " in line for line in lines) and "736 iterations" in lines[1]

    def test_what_is_printed_meanwhile_has_lines_of_its_own(self, now, monkeypatch):
        with terminal(100) as tty:
            monkeypatch.setattr(sys, "stderr", tty.stream)
            monkeypatch.setattr(sys, "stdout", tty.stream)
            notify = Notifier("auto", [lambda event: print("a [red] callback")])
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.showwarning = lambda text, *_: print(f"Warning: {text}", file=sys.stderr)
                notify(sampling("warmup", 116, 10.0, refused=50))
            lines = tty.wait_for("116/300")
            assert lines[0].startswith("Warning: Chains 0, 1 did not move") and len(lines[0]) <= 100
            assert "a [red] callback" in lines and lines[-1].startswith("warm-up")
            assert sum("116/300" in line for line in lines) == 1
            notify.progress.close()
            assert (sys.stdout, sys.stderr) == (tty.stream, tty.stream)

    def test_what_is_printed_to_a_file_stays_there(self, now, monkeypatch, tmp_path):
        with terminal(100) as tty, open(tmp_path / "out", "w") as out:
            monkeypatch.setattr(sys, "stderr", tty.stream)
            monkeypatch.setattr(sys, "stdout", out)
            progress = Progress()
            progress.announce("compile")
            print("a result")
            assert len(tty.wait_for("compiling")) == 1
            progress.close()
        assert (tmp_path / "out").read_text() == "a result\n"

    def test_a_phase_that_is_stopped_does_not_end_at_100_percent(self, now):
        with terminal(100) as tty:
            progress = Progress(stream=tty.stream)
            progress(sampling("warmup", 300, 10.0))
            progress(sampling("sampling", 40, 10.0))
            progress.close()
            done, stopped = tty.lines()
        assert "warm-up" in done and " 100% " in done
        assert "sampling" in stopped and " 40% " in stopped

    def test_lost_work_ends_no_phase(self, now):
        with terminal(100) as tty:
            progress = Progress(stream=tty.stream)
            progress(sampling("sampling", 2, 1.0))
            progress(sampling("warmup", 280, 10.0))  # a worker crashed and began anew
            assert len(tty.wait_for("280/300")) == 1
            progress.close()

    def test_a_terminal_that_goes_away_costs_only_the_bars(self, now):
        with terminal(100) as tty:
            progress = Progress(stream=tty.stream)
            progress.announce("compile")
            tty.hang_up()
            tell_all(progress, now)

    def test_nothing_goes_on_after_the_end(self, now):
        with terminal(100) as tty:
            before = set(threading.enumerate())
            progress = Progress(stream=tty.stream)
            progress.announce("compile")
            (ticker,) = set(threading.enumerate()) - before
            assert ticker.daemon
            progress.close()
            ticker.join(20)
            assert not ticker.is_alive() and tty.lines() == []


class TestElsewhere:
    def test_a_pipe_gets_a_line_every_30_seconds(self, now):
        stream = io.StringIO()
        tell_all(Progress(stream=stream), now)
        lines = stream.getvalue().splitlines()
        begin = [line.split("  ")[0] for line in lines]
        assert begin == ["warm-up 39 %", "warm-up 100 %", "sampling 100 %"]
        assert "0:40 so far" in lines[0] and "117/300 transitions" in lines[0]
        assert "step size 0.0923" in lines[0] and "\x1b" not in stream.getvalue()

    def test_a_short_run_says_nothing_in_a_pipe(self, now):
        stream = io.StringIO()
        progress = Progress(stream=stream)
        progress.announce("compile")
        progress(pretraining(25_000))
        progress(sampling("warmup", 300, 5.0))
        progress(sampling("sampling", 100, 5.0))
        progress.close()
        assert stream.getvalue() == ""

    @pytest.mark.parametrize("kind", ["dumb", "silent", "none"])
    def test_where_no_line_is_drawn(self, kind, now, monkeypatch):
        if kind == "dumb":
            monkeypatch.setenv("TERM", "dumb")
        with terminal(100) as tty:
            before = set(threading.enumerate())
            monkeypatch.setattr(sys, "stderr", None if kind == "none" else tty.stream)
            progress = Progress(0 if kind == "silent" else "auto")
            progress.announce("compile")
            progress(sampling("warmup", 16, 10.0))
            if kind == "silent":  # however long it takes
                now.seconds += 100.0
                progress(sampling("warmup", 116, 110.0))
                progress.close()
            assert tty.lines() == [] and set(threading.enumerate()) <= before
            progress.close()


class TestNotifier:
    def test_callbacks_get_events_with_units_and_the_time_of_the_whole_run(self):
        events = []
        notify = Notifier(0, [events.append])
        notify.announce("compile")
        for event in (pretraining(5_000), newton(3), sampling("warmup", 150, 30.0)):
            notify(event)
        assert [event["unit"] for event in events] == ["steps", "iterations", "transitions"]
        assert np.isnan([event["total_eta_seconds"] for event in events[:2]]).all()
        # 150 more transitions of warm-up, and then 100 as slow as those.
        assert events[2]["eta_seconds"] == 30.0 and events[2]["total_eta_seconds"] == 50.0

    def test_what_a_look_has_found_stands_in_events_and_in_the_line(self):
        event = sampling("sampling", 40, 30.0)
        assert np.isnan([event.to_dict()["rhat"], event.to_dict()["ess"]]).all()
        assert event.to_dict()["num_judged"] == 0
        found = event.after(Look(40, 1.0234, 151.6))
        assert (found.to_dict()["rhat"], found.to_dict()["ess"]) == (1.0234, 151.6)
        assert list(found.remarks())[:2] == ["ESS 152", "R-hat 1.02"]
        assert not any("R-hat" in remark for remark in event.remarks())

    def test_a_phase_that_a_callback_stopped_is_not_over(self, now, monkeypatch):
        with terminal(100) as tty:
            monkeypatch.setattr(sys, "stderr", tty.stream)
            notify = Notifier("auto", [lambda event: True])
            notify(newton(400))
            notify.announce("compile")
            notify.progress.close()
            (line,) = tty.lines()
            assert line.startswith("refining starts") and " 50% " in line

    @pytest.mark.parametrize(
        "acceptance, said, advice",
        [
            (1.0, "did not move", "use a larger step_size"),
            (0.0, "accepted none", "use a smaller step_size"),
        ],
    )
    def test_a_chain_that_stands_still_is_named_once(self, acceptance, said, advice, capsys):
        rates, refused = 116 * np.array([acceptance, 0.8]), {"num_refused": np.array([50, 0])}
        group = Counters.nothing([0, 1]).after_block("warmup", 116, rates, rates, **refused)
        event, notify = SamplingEvent.of("warmup", [group], PLAN, 10.0), Notifier(0)
        with pytest.warns(ConvergenceWarning) as caught:
            notify(event)
            notify(event)
        (warning,) = caught
        with warnings.catch_warnings():  # such a run goes on all the same, and its draws are kept
            warnings.simplefilter("error")
            Notifier(0)(event)
        assert f"ConvergenceWarning: Chain 0 {said}" in capsys.readouterr().err
        assert str(warning.message).startswith(f"Chain 0 {said}")
        assert advice in str(warning.message)
