"""Work shared among threads."""

import os
import sys
import threading
import time

import pytest

from tfbnn.system import threads
from tfbnn.system.threads import num_cores, on_all_cores, single_threaded_blas


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)


def test_results_keep_the_order_of_the_items():
    def slow_for_the_first(item):
        time.sleep(0.05 * (item == 0))
        return 10 * item

    assert on_all_cores(slow_for_the_first, [0, 1, 2, 3]) == [0, 10, 20, 30]


def test_items_are_worked_on_at_the_same_time():
    both = threading.Barrier(2, timeout=20)
    assert sorted(on_all_cores(lambda _: both.wait(), [0, 1])) == [0, 1]


def test_one_item_stays_in_the_calling_thread():
    assert on_all_cores(lambda _: threading.current_thread(), [0]) == [threading.current_thread()]


def test_errors_reach_the_caller():
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda item: 1 / item, [1, 0, 2])


@pytest.mark.parametrize(
    "asked, expected", [("1", 1), ("2", 2), ("64", 2), ("0", 2), ("", 2), ("many", 2)]
)
def test_the_number_of_threads_respects_the_environment(asked, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert num_cores() == expected


@pytest.mark.parametrize(
    "variable", ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"]
)
def test_ranks_of_mpi_share_the_cores_of_a_host(variable, monkeypatch):
    """Else 64 ranks would start 64 threads each."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = []
    for ranks in ("1", "4", "8", "64", "many"):
        monkeypatch.setenv(variable, ranks)
        found.append(num_cores())
    assert found == [8, 2, 1, 1, 8]
    # A rank that is pinned to its own cores has them all.
    monkeypatch.setenv(variable, "4")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(2))
    assert num_cores() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert num_cores() == 1


@pytest.fixture
def two_threads():
    """Give BLAS two threads; it has one in the processes of the default run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        yield


def threads_of_blas():
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_has_one_thread_meanwhile(two_threads):
    before = threads_of_blas()
    assert set(before) == {2}, "NumPy's BLAS should be one that threadpoolctl knows"
    found = on_all_cores(lambda _: threads_of_blas(), [0, 1])
    assert all(set(each) == {1} for each in found)
    assert threads_of_blas() == before


def test_blas_stays_at_one_thread_until_the_last_one_leaves(two_threads):
    """Else results would depend on which thread is first to finish."""
    before, first, second = threads_of_blas(), single_threaded_blas(), single_threaded_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads_of_blas()) == {1}
    second.__exit__(None, None, None)
    assert threads_of_blas() == before


def test_any_thread_limits_blas_and_the_last_one_to_leave_restores_it(two_threads):
    """Also after another thread has used it; threadpoolctl 3.8 ignores all threads but the first."""
    before, inside, leave = threads_of_blas(), threading.Event(), threading.Event()
    found = []

    def stay():
        with single_threaded_blas():
            found.extend(threads_of_blas())
            inside.set()
            leave.wait(20)

    with single_threaded_blas():
        pass
    other = threading.Thread(target=stay)
    other.start()
    inside.wait(20)
    with single_threaded_blas():
        leave.set()
        other.join()
        assert set(threads_of_blas()) == {1} == set(found)
    assert threads_of_blas() == before


def test_limits_of_other_threads_hold_again_afterwards(two_threads):
    from threadpoolctl import threadpool_limits

    def one():
        with threadpool_limits(1, user_api="blas"):
            return threads_of_blas()

    with single_threaded_blas():
        pass
    assert set(threads.awaited(one)) == {1}


def test_blas_that_threadpoolctl_does_not_know_is_left_alone(monkeypatch):
    from threadpoolctl import ThreadpoolController

    nothing = ThreadpoolController().select(internal_api="none")
    monkeypatch.setattr(threads, "_controller", lambda _: nothing)
    assert on_all_cores(lambda item: item, [0, 1]) == [0, 1]


def test_without_threadpoolctl_the_work_is_shared_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    monkeypatch.setattr(threads, "_controller", threads._controller.__wrapped__)
    both = threading.Barrier(2, timeout=20)
    assert sorted(on_all_cores(lambda _: both.wait(), [0, 1])) == [0, 1]


def test_where_no_thread_can_start_the_caller_works(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert on_all_cores(lambda item: 2 * item, [1, 2, 3]) == [2, 4, 6]
    assert threads.in_background(threading.current_thread).result() is threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        threads.awaited(lambda: 1 / 0)
    assert not threads.is_anything_left()  # otherwise the process would wait for it at its end


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    over = threading.Event()
    future = threads.in_background(over.wait, 60)
    child = os.fork()
    if not child:
        os._exit(threads.is_anything_left())
    _, code = os.waitpid(child, 0)
    over.set()
    assert future.result() and code == 0
