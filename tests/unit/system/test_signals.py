"""Signals that ask to stop: held back, let through, and put back as they were."""

import os
import signal

import pytest

from tfbnn.system.signals import STOP_SIGNALS, signals_held, signals_interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, *STOP_SIGNALS])
def test_what_is_held_is_finished_whatever_comes(number):
    told, before = [], signal.getsignal(number)
    with signals_held(lambda: told.append("first")) as hold:
        for _ in range(3):
            os.kill(os.getpid(), number)
    assert hold.seen == [number] * 3 and told == ["first"]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGINT, *STOP_SIGNALS])
def test_a_hold_that_is_lifted_lets_signals_through(number):
    with signals_held() as hold:
        with pytest.raises(KeyboardInterrupt), hold.lifted():
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert hold.seen == [number]
        with pytest.raises(KeyboardInterrupt), hold.lifted():
            pytest.fail("what came meanwhile counts first")


@pytest.mark.parametrize("number", [signal.SIGINT, *STOP_SIGNALS])
def test_a_hold_inside_one_that_is_lifted_holds(number):
    with signals_held() as outer, outer.lifted(), signals_held() as inner:
        os.kill(os.getpid(), number)
        assert inner.seen == [number] and not outer.seen


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_run_inside_a_hold_is_stopped_by_every_signal(number):
    with signals_held() as hold, pytest.raises(KeyboardInterrupt):
        with hold.lifted(), signals_interrupt():
            os.kill(os.getpid(), number)


def test_what_the_process_ignores_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_held() as hold, hold.lifted():
            os.kill(os.getpid(), signal.SIGINT)
        assert not hold.seen
    finally:
        signal.signal(signal.SIGINT, before)
