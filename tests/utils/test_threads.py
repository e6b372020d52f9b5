"""One BLAS thread for as long as anyone wants one, and what was there before for those after."""

import multiprocessing
import os
import threading

import pytest
from internals import one_blas_thread, parallel, run_calls
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_info, threadpool_limits

from nmfcluster import SSNMFClusterer
from nmfcluster._utils.parallel import one_thread


def threads(api="blas"):
    return {
        pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == api
    }


@pytest.fixture(autouse=True)
def _three():
    with threadpool_limits(3):
        yield


def test_it_is_one_inside_and_as_before_outside():
    with one_blas_thread():
        assert threads() == {1}
        assert threads("openmp") == {3}
    with one_thread():
        assert threads() == threads("openmp") == {1}
    assert threads() == threads("openmp") == {3}


def test_an_error_leaves_nothing_behind():
    with pytest.raises(KeyboardInterrupt), one_blas_thread(), one_blas_thread():
        raise KeyboardInterrupt
    assert threads() == {3}


def test_contexts_that_overlap_end_in_any_order():
    first_left, second_entered = threading.Event(), threading.Event()
    seen = []

    def second():
        with one_blas_thread():
            second_entered.set()
            first_left.wait()
            seen.append(threads())

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        second_entered.wait()
    seen.append(threads())  # the second is still inside
    first_left.set()
    thread.join()
    assert seen == [{1}, {1}]
    assert threads() == {3}


@pytest.mark.slow
def test_fits_at_once_leave_the_threads_as_they_were():
    X, _ = make_blobs(60, random_state=0)
    models = [SSNMFClusterer(3, random_state=0, n_jobs=2) for _ in range(8)]
    running = [threading.Thread(target=model.fit, args=(X,)) for model in models]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert threads() == {3}
    assert all((model.labels_ == models[0].labels_).all() for model in models)


def enter(answer):
    with one_blas_thread():
        answer.put(threads())


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="there is no fork here",
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent():
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    held, done = threading.Event(), threading.Event()

    def hold():
        from nmfcluster._utils import parallel as module

        with module._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = context.Process(target=enter, args=(answer,))
    child.start()
    try:
        assert answer.get(timeout=30) == {1}
    finally:
        done.set()
        thread.join()
        child.join()


def process_of(number):
    return os.getpid()


def test_short_work_starts_no_processes(monkeypatch):
    """They take seconds to start; `n_jobs` changes where work is done, and nothing else."""
    calls = [(number,) for number in range(12)]
    monkeypatch.setattr(parallel, "_WORTH_PROCESSES", 1.0)
    assert set(run_calls(process_of, (), calls, 2)) == {os.getpid()}
    monkeypatch.setattr(parallel, "_WORTH_PROCESSES", 0.0)
    assert len(set(run_calls(process_of, (), calls, 2))) > 1
