"""Calls that a stop leaves behind: what is waited for, how long, and how the process ends."""

import contextvars
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tfbnn.system import threads as module
from tfbnn.system.threads import (
    awaited,
    each_in_background,
    in_background,
    is_anything_left,
    wait_a_little,
)

CONTEXT = contextvars.ContextVar("number", default=0)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.05)


@pytest.fixture
def endless():
    """A call that lasts as long as the test, and says when it has begun."""
    begun, released = threading.Event(), threading.Event()

    def wait(_=None):
        begun.set()
        assert released.wait(60)

    wait.begun = begun
    yield wait
    released.set()
    while is_anything_left():
        time.sleep(0.001)


def interrupt_when(event):
    def send():
        event.wait(60)
        time.sleep(0.01)  # the one to be interrupted is waiting by then
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send).start()


def test_a_call_in_the_background_has_results_errors_and_the_context_of_its_caller():
    CONTEXT.set(3)
    assert awaited(lambda: (CONTEXT.get(), threading.current_thread().daemon)) == (3, True)
    with pytest.raises(ZeroDivisionError):
        awaited(lambda: 1 / 0)
    assert each_in_background(lambda item: 10 * item, range(5), 2) == [0, 10, 20, 30, 40]


def test_no_item_is_begun_after_one_that_failed():
    begun = []

    def fail(item):
        begun.append(item)
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        each_in_background(fail, range(100), 1)
    assert begun == [0]


def test_an_interrupt_leaves_a_call_that_does_not_end(endless):
    interrupt_when(endless.begun)
    with pytest.raises(KeyboardInterrupt):
        awaited(endless)
    assert is_anything_left()


def test_an_interrupt_lets_a_call_end_that_is_about_to(monkeypatch):
    monkeypatch.setattr(module, "GRACE_SECONDS", 60.0)
    begun, ended = threading.Event(), []

    def short():
        begun.set()
        time.sleep(0.1)
        ended.append(True)

    interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt):
        awaited(short)
    assert ended == [True]


def test_after_an_interrupt_no_item_is_begun(endless):
    items = []

    def first_is_endless(item):
        items.append(item)
        endless()

    interrupt_when(endless.begun)
    with pytest.raises(KeyboardInterrupt):
        each_in_background(first_is_endless, range(100), 1)
    assert items == [0]


def test_an_interrupt_does_not_shorten_the_grace(endless, monkeypatch):
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.5)
    call, began = in_background(endless), time.monotonic()
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert wait_a_little([call])
    assert time.monotonic() - began >= 0.5


SCRIPT = """
import sys, threading, time
from tfbnn.system import threads as module
module.GRACE_SECONDS = 0.01
call, begun = {call}, threading.Event()
def work():
    begun.set()
    call()
future = module.in_background(work)
begun.wait()
print("printed", end="")
{end}
"""


@pytest.mark.parametrize(
    "call, end, code",
    [
        ("threading.Event().wait", "module.exit_at_once(85)", 85),
        ("threading.Event().wait", "raise KeyboardInterrupt", -signal.SIGINT),
        ("lambda: time.sleep(0.1)", "sys.exit(7)", 7),
    ],
)
def test_how_a_process_ends_with_a_call_left(call, end, code):
    """At once where that is asked for; else the call is waited for, as its library would crash."""
    program = SCRIPT.format(call=call, end=end)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (code, b"printed")


def test_a_reader_that_has_gone_does_not_change_the_end():
    code = "import sys; from tfbnn.system.threads import exit_at_once; print(7); exit_at_once(85)"
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        environment = os.environ | {"PYTHONUNBUFFERED": ""}  # text then waits for the flush
        done = subprocess.run([sys.executable, "-c", code], stdout=closed, env=environment)
    assert done.returncode == 85
