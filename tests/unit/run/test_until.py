"""When a run has enough: the settings, where it is looked at, and how far its chains go."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import tfbnn
from tests.support.builders import plain_spec
from tests.support.entries import fake_fit
from tfbnn.diagnostics.agreement import Agreement
from tfbnn.engine.running.executor import Executor
from tfbnn.kernels import HMC
from tfbnn.run.cost import estimated_seconds, most_results
from tfbnn.run.counters import Counters, Seconds
from tfbnn.run.deadline import Deadline
from tfbnn.run.options import FitOptions
from tfbnn.run.plan import Plan, Stage
from tfbnn.run.result import Kept
from tfbnn.run.stopping import StoppingRule
from tfbnn.run.until import Until, next_look, until_of_text

LOOKS = [100, 200, 400, 600, 800, 1200, 1600, 2400, 3200]


def test_the_settings_are_what_the_contract_says():
    assert tfbnn.Until() == Until(ess=400, rhat=1.01, max_seconds=None)
    with pytest.raises(AttributeError):
        Until().ess = 3


@pytest.mark.parametrize(
    "text, until", [("rhat=1.05", Until(rhat=1.05)), ("none", None), ("auto", "auto")]
)
def test_the_command_line_says_it_in_text(text, until):
    assert until_of_text(text) == until


def test_text_and_json_say_all_of_it():
    until = Until(ess=123.5, rhat=1.02, max_seconds=60)
    assert str(until) == "ess=123.5,rhat=1.02,max_seconds=60"
    assert until_of_text(str(until)) == until == Until.from_json(vars(until))
    assert Until.from_json(None) is None


@pytest.mark.parametrize("text", ["", "ess", "ess=many", "ess=1,ess=2", "draws=5", "ess=1;rhat=2"])
def test_other_text_is_refused_with_what_is_known(text):
    known = "auto, converged, none or ess=X,rhat=X,max_seconds=X,score_change=X"
    with pytest.raises(ValueError, match=known):
        until_of_text(text)


@pytest.mark.parametrize(
    "settings", [{"ess": 0}, {"rhat": 1.0}, {"max_seconds": 0}, {"score_change": 0}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        Until(**settings)


@pytest.mark.parametrize(
    "asked, num_results, until",
    [
        ({}, 7000, Until(score_change=0.01)),
        ({"until": "converged"}, 7000, Until()),
        ({"num_results": 50}, 50, None),
        ({"num_results": 50, "until": Until(ess=9)}, 50, Until(ess=9)),
        ({"until": Until(ess=9)}, 7000, Until(ess=9)),
        ({"until": None}, 1000, None),
        ({"num_results": 50, "until": None}, 50, None),
    ],
)
def test_what_is_left_open_is_settled(asked, num_results, until):
    sampling = options(**asked).sampling(budget=7000)
    assert (sampling.num_results, sampling.until) == (num_results, until)


@pytest.mark.parametrize("until", ["soon", 400, True, {"ess": 400}])
def test_an_until_of_another_kind_is_refused(until):
    with pytest.raises(TypeError, match="tfbnn.Until"):
        FitOptions(until=until)


def test_looks_are_at_fixed_numbers():
    assert [next_look(look) for look in [0, *LOOKS[:-1]]] == LOOKS
    assert [next_look(count) for count in (99, 101, 401, 599, 601)] == [100, 200, 600, 600, 800]


class Straight(Executor):
    """Chains that go where they are told, at once."""

    running = ()
    seconds = Seconds()

    def __init__(self, most, *counts):
        stages = [Stage("sampling", most)]
        groups = [[chain] for chain in range(len(counts))]
        super().__init__(Plan(groups, 1, stages, num_results=most, stride=1))
        self.counters = dict(enumerate(map(counted, counts)))
        self.stops = []

    def go_to(self, num_results, notify):
        self.stops.append(num_results)
        for group, one in self.counters.items():
            self.counters[group] = counted(max(one.transition, num_results))
        return False

    def has_room(self):
        return True

    def start(self, group):
        raise AssertionError("nothing waits")

    def reports(self):
        yield from ()

    def stop(self):
        return False


def counted(count):
    made = {"warmup": 0, "sampling": count}
    gradients = {phase: np.array([number]) for phase, number in made.items()}
    nothing = Counters.nothing([0])
    return replace(nothing, transition=count, transitions=made, num_gradients=gradients)


def stops(*counts, enough=10**9, most=1000, is_budget=False):
    """(Where chains with so many draws stop, what was looked at, why the run ended)."""
    looks = []

    def measure(kept, _):
        looks.append(kept.draws.shape[1])
        return agreement(ess=1000.0 if kept.draws.shape[1] >= enough else 3.0)

    executor = Straight(most, *counts)

    def read(groups):
        kept = [executor.counters[group] for group in groups]
        return Kept(np.empty((len(kept), min(one.transition for one in kept), 0)), {}, kept)

    rule = StoppingRule(Until(), most, measure, is_budget)
    ending = executor.run(SimpleNamespace(read=read), rule, lambda event: False)
    return executor.stops, looks, ending.ended


def test_a_run_goes_from_look_to_look():
    found = [100, 200, 400, 600]
    text = "ESS 1000 and R-hat 1 after 600 draws per chain"
    assert stops(0, 0, 0, enough=600) == (found, found, text)


@pytest.mark.parametrize("change, expected", [(0.5, [100, 200, 400]), (0.05, [100, 200, 400, 600])])
def test_a_run_ends_when_twice_as_many_draws_change_nothing(change, expected):
    """From half of the most draws, 700, on. The score is 1 after 50 draws and 1 + (100 / S) / 4 after S of them from 100 on."""
    executor = Straight(700, 0)

    def read(groups):
        (one,) = (executor.counters[group] for group in groups)
        return Kept(np.empty((1, one.transition, 0)), {}, [one])

    def score(draws):
        return 1.0 if draws.shape[1] < 100 else 1.0 + 25.0 / draws.shape[1]

    until = Until(score_change=change)
    rule = StoppingRule(until, 700, lambda *_: agreement(ess=3.0), False, score)
    ending = executor.run(SimpleNamespace(read=read), rule, lambda event: False)
    assert executor.stops == expected
    assert ending.ended.startswith("twice as many draws changed the log density of a row by 0.")


@pytest.mark.parametrize(
    "counts, first",
    [((130, 170), 200), ((200, 170), 200), ((130, 130), 200), ((201, 0), 400), ((990, 990), 1000)],
)
def test_chains_that_were_stopped_anywhere_go_on_to_the_next_look_together(counts, first):
    """Chains that stand at a look together are looked at before they go on."""
    assert stops(*counts, enough=0)[:2] == ([first], [first])
    assert stops(first, first, enough=0)[:2] == ([], [first])


def test_a_look_knows_which_of_the_healthy_chains_share_a_start():
    seen = []

    def measure(_, superchains):
        seen.append(superchains)
        return agreement(ess=3.0)

    rule = StoppingRule(Until(), 100, measure)
    kept = Kept(np.empty((2, 50, 0)), {}, [Counters.nothing([0]), Counters.nothing([2])])
    rule.check(kept)
    replace(rule, superchains=np.array([3, 1, 3])).check(kept)
    assert seen[0] is None and seen[1].tolist() == [3, 3]


def test_a_run_ends_with_the_most_draws():
    found = [100, 200, 400, 450]
    text = "num_results=450 reached: ESS 3 and R-hat 1"
    assert stops(0, 0, most=450) == (found, found, text)
    text = "budget of 900 gradients spent: ESS 3 and R-hat 1 after 450 draws per chain"
    assert stops(450, 450, most=450, is_budget=True) == ([], [450], text)


@pytest.mark.parametrize("counts, expected", [((0, 20), [130]), ((130, 200), [])])
def test_without_a_rule_a_run_goes_straight_to_its_last_draw(counts, expected):
    executor = Straight(130, *counts)
    assert executor.run(None, None, lambda event: False).ended is None
    assert executor.stops == expected


def options(**settings):
    """FitOptions whose warm-up is settled, as it is wherever their budget is asked for."""
    return FitOptions(num_burnin_steps=1000, **settings)


def test_the_budget_follows_from_the_settings():
    spec = plain_spec([10, 50, 1], dtype="float32")

    def most(num_rows, **settings):
        return most_results(spec, HMC(), options(**settings), num_rows)

    seconds = 4 * estimated_seconds(spec, HMC(), 4000, 1000 + most(4000))
    assert 400 < seconds <= 480
    assert most(10**7) == 100  # what no number is known below
    assert most(10) == 6400
    transitions = 1000 + most(4000)
    assert 2 * most(4000, num_steps_between_results=1) == pytest.approx(most(4000), abs=2)
    assert 1000 + most(4000, num_chains=8) == pytest.approx(transitions / 2, abs=2)
    assert most_results(spec, HMC(), options(), 10, effort=0.25) == 1600
    short = most_results(spec, HMC(), FitOptions(num_burnin_steps=250), 4000, effort=0.25)
    assert short == pytest.approx(most(4000) / 4, abs=1)
    wide = plain_spec([10, 20_000, 1], dtype="float32")
    assert most_results(wide, HMC(num_leapfrog_steps=1), options(), 2) * 4 * 4 * 240_000 < 1.1e9


def agreement(rhat=1.0, ess=1000.0, rhat_log_prob=1.0, size=100):
    rhats = np.broadcast_to(rhat, [size, 1])
    sizes = np.full([size, 1], float(ess))
    return Agreement(rhats, sizes, 2.0 * sizes, rhat_log_prob)


def test_enough_is_what_the_verdict_asks_with_other_limits():
    some = np.where(np.arange(100) < 5, 1.029, 1.0)[:, None]
    assert agreement(some).is_enough() and not agreement(some + 0.002).is_enough()
    assert not agreement(np.where(np.arange(100) < 6, 1.02, 1.0)[:, None]).is_enough()
    assert agreement(some + 0.002).is_enough(rhat=1.02)
    assert not agreement(ess=399).is_enough() and agreement(ess=399).is_enough(ess=300)
    assert not agreement(rhat_log_prob=1.04).is_enough()
    assert not agreement(np.where(np.arange(100) < 1, np.nan, 1.0)[:, None]).is_enough()
    undefined = agreement(rhat=np.nan, ess=np.nan).text()
    assert undefined == "an ESS that is not defined, nor an R-hat"
    text = "ESS 1000 and R-hat 1, R-hat 1.04 of the log density"
    assert agreement(rhat_log_prob=1.04).text() == text


class TestDeadline:
    """A limit of 120 s, of which some are over; calibration takes a second for each draw kept."""

    @pytest.fixture
    def at(self, monkeypatch):
        def deadline(now, max_seconds=120.0):
            monkeypatch.setattr("tfbnn.run.deadline.time.perf_counter", lambda: 50.0 + now)
            return Deadline(max_seconds, began=50.0, ending=lambda num_kept: 1.0 * num_kept)

        return deadline

    def test_time_is_counted_from_the_call(self, at):
        assert not at(119.0).is_over()
        over = at(120.0)
        assert over.is_over() and over.passed == "max_seconds=120 was reached"

    def test_time_is_kept_for_calibration_once_there_are_draws(self, at):
        assert not at(99.0).is_over(num_kept=20) and at(100.0).is_over(num_kept=20)
        assert not at(119.0).is_over() and at(120.0).is_over()

    def test_search_and_warmup_have_their_shares_and_leave_time_for_draws(self, at):
        assert (at(5.0).for_search(), at(5.0).for_warmup()) == pytest.approx((40.0, 40.0))
        late = at(89.0)  # of 30 s one is for the end
        assert (late.for_search(), late.for_warmup()) == pytest.approx((12.0, 15.0))

    def test_without_a_limit_nothing_is_ever_over(self):
        assert not Deadline().is_over() and Deadline().for_search() == np.inf
        assert Deadline(Until().max_seconds, began=-1e9).left() == np.inf


@pytest.mark.parametrize(
    "until, found",
    [
        ("auto", Until(max_seconds=60)),
        (Until(ess=9), Until(ess=9, max_seconds=60)),
        (Until(max_seconds=60), Until(max_seconds=60)),
    ],
)
def test_max_seconds_is_short_for_that_of_until(until, found):
    asked = FitOptions(until=until, max_seconds=60)
    assert asked.until == found and asked.limit == 60.0
    assert FitOptions().limit is None


@pytest.mark.parametrize(
    "settings, error, match",
    [
        ({"until": None, "max_seconds": 60}, ValueError, "until=None asks for exactly"),
        ({"until": Until(max_seconds=9), "max_seconds": 60}, ValueError, "once, received 60 and 9"),
        ({"max_seconds": 0}, ValueError, "max_seconds must be"),
    ],
)
def test_a_limit_that_contradicts_is_refused(settings, error, match):
    with pytest.raises(error, match=match):
        FitOptions(**settings)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore::tfbnn.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings, points", [({"until": Until()}, True), ({}, False)], ids=["until", "number"]
)
def test_the_report_points_to_compress_where_nobody_asked_for_so_many_draws(
    engine, settings, points
):
    model = tfbnn.BayesianMLP([2, 2, 1])
    run = fake_fit(model, num_results=2500, **settings)
    assert any("5000 draws" in note and "compress" in note for note in run.notes) == points
