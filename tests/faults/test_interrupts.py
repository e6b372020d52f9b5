"""Ctrl-C at an update: it reaches the caller, nothing of the fit stays, no thread goes on."""

import linecache
import signal
import sys
import threading
import time
from zlib import crc32

import joblib
import numpy as np
import pytest
from faults.shared import FEATURES, comes_true, found, heeding_interrupts
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from nmfcluster import SSNMFClusterer
from nmfcluster._base import fitting
from nmfcluster._optim import run
from nmfcluster._utils import parallel as blas
from nmfcluster.model_selection import StabilityScorer

ENDLESS = {"tol": -1.0, "max_iter": 100_000}


class Watch:
    """In place of `iterate`: counts the updates of every batch, interrupts after some of them."""

    def __init__(self, iterate):
        self.iterate, self.interrupt_after, self.pause, self.over = (
            iterate,
            None,
            0.0,
            False,
        )
        self.counts, self.lock = {}, threading.Lock()

    def __call__(self, steps, *rest):
        with self.lock:
            batch = len(self.counts)
            self.counts[batch] = 0
        return self.iterate(self.watched(batch, steps), *rest)

    def watched(self, batch, steps):
        try:
            state = next(steps)
            while True:
                mask = yield state
                state = steps.send(mask)
                self.updated(batch)
        finally:
            steps.close()

    def updated(self, batch):
        with self.lock:
            self.counts[batch] += 1
            if sum(self.counts.values()) == self.interrupt_after:
                # handled by the main thread, whoever raises it
                signal.raise_signal(signal.SIGINT)
        assert not self.over, "the test has ended, and this batch goes on"
        time.sleep(self.pause)

    def n_updates(self):
        with self.lock:
            return dict(self.counts)


@pytest.fixture
def watch(monkeypatch):
    watch = Watch(run.iterate)
    monkeypatch.setattr(run, "iterate", watch)
    # a batch a start, so that jobs have some to share
    monkeypatch.setattr(run, "_BATCH", 1)
    with heeding_interrupts():
        yield watch
        watch.over = True


def drawn(model, high):
    """Return an update from 1 to `high`, always the same one for a model."""
    return int(np.random.RandomState(len(repr(model))).randint(1, high + 1))


def held(model):
    return {name: id(value) for name, value in vars(model).items()}


@pytest.mark.slow
def test_an_interrupt_at_an_update_leaves_no_trace(public_estimator, make_input, watch):
    X, _ = make_input(public_estimator)
    # one of them, always the same
    n_jobs = 1 + crc32(repr(public_estimator).encode()) % 2
    undisturbed = clone(public_estimator).set_params(random_state=0, n_init=4)
    undisturbed.fit(X)
    expected, n_updates = found(undisturbed, X), sum(watch.counts.values())
    new = clone(undisturbed).set_params(n_jobs=n_jobs)
    fitted = clone(new)
    with threadpool_limits(3), joblib.parallel_config("threading"):
        before = threadpool_info()
        assert found(fitted.fit(X), X) == expected
        for model in (new, fitted):
            attributes = held(model)
            watch.counts.clear()
            watch.interrupt_after = drawn(model, n_updates)
            with pytest.raises(KeyboardInterrupt):
                model.fit(X)
            assert held(model) == attributes
            assert threadpool_info() == before
        watch.interrupt_after = None
        assert not hasattr(new, "labels_")
        assert found(fitted, X) == expected
        assert found(new.fit(X), X) == found(fitted.fit(X), X) == expected
        assert threadpool_info() == before


@pytest.mark.slow
def test_no_batch_goes_on_after_an_interrupt(
    public_estimator, make_input, watch, monkeypatch
):
    """A batch that another thread works on makes the update that it is at, and no other one."""
    # runs on toys share threads, too
    monkeypatch.setattr("nmfcluster.meta.runs._SMALL", 0)
    X, _ = make_input(public_estimator)
    model = clone(public_estimator).set_params(
        random_state=0, n_init=6, n_jobs=2, **ENDLESS
    )
    if "n_estimators" in model.get_params():
        model.set_params(n_estimators=6)
    watch.pause, watch.interrupt_after = 1e-3, 10 + drawn(model, 50)
    threads = threading.active_count()
    with joblib.parallel_config("threading"), pytest.raises(KeyboardInterrupt):
        model.fit(X)
    before = watch.n_updates()
    # the first start of a fusion runs alone: it says what the next are computed from
    at_a_time = 1 if "criterion" in model.get_params() else 2
    assert sum(count > 0 for count in before.values()) == at_a_time, (
        "as many were to run at a time"
    )
    time.sleep(0.1)
    after = watch.n_updates()
    assert {
        batch for batch, count in after.items() if count > before.get(batch, 0) + 1
    } == set()
    assert comes_true(lambda: threading.active_count() <= threads)
    assert watch.n_updates() == after


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_is_no_score(n_jobs, watch):
    """A scorer makes NaN of the errors of its copies."""
    model, scorer = SSNMFClusterer(3, random_state=0), StabilityScorer(3, n_jobs=n_jobs)
    with threadpool_limits(3), joblib.parallel_config("threading"):
        before = threadpool_info()
        expected = scorer(model, FEATURES)
        watch.interrupt_after = sum(watch.counts.values()) // 2
        watch.counts.clear()
        with pytest.raises(KeyboardInterrupt):
            scorer(model, FEATURES)
        watch.interrupt_after = None
        # copies in threads have ended
        assert comes_true(lambda: threadpool_info() == before)
        assert scorer(model, FEATURES) == expected


# --- at a line ---------------------------------------------------------------------------------

ENTERING = {fitting.__wrapped__.__code__, blas._enter.__code__}


class Interruption:
    """A trace function that interrupts at a line of entering a fit, the first or a later one."""

    def __init__(self, number):
        self.left = number

    def __call__(self, frame, event, arg):
        return self.at_line if frame.f_code in ENTERING else None

    def at_line(self, frame, event, arg):
        code = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        # Python has no signals as a lock is let go
        if event == "line" and "with " not in code:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.at_line


def test_an_interrupt_at_any_line_of_entering_a_fit_leaves_no_trace():
    model = SSNMFClusterer(2)
    model.labels_, model._gram_ = np.zeros(3), np.ones(3)
    attributes, interrupted, tracing = held(model), 0, sys.gettrace()
    with threadpool_limits(3):
        before = threadpool_info()
        for number in range(1, 200):
            try:
                sys.settrace(Interruption(number))
                with fitting(model):
                    break
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.settrace(tracing)
            assert held(model) == attributes
            assert threadpool_info() == before
    assert 40 < interrupted < 199
