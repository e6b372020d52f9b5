"""What is told of a fit while it runs: lines of a log, and scikit-learn's callbacks.

The lines go to the logger ``nmfcluster``, at the level INFO, one before a stage and one after it.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from time import perf_counter
from typing import Any

#: what scikit-learn keeps in an estimator during a fit, and takes out after it
CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")

_log = logging.getLogger("nmfcluster")
_fitted: ContextVar[Any] = ContextVar(
    "fitted", default=None
)  # the estimator that runs its fit


@contextmanager
def reporting(estimator: Any) -> Iterator[None]:
    """Let stages of this context be those of the fit of an estimator, and tell its callbacks."""
    before = _fitted.set(estimator)
    try:
        if getattr(estimator, "_skl_callbacks", None):
            context = estimator._init_callback_context(max_subtasks=None)
            context.call_on_fit_task_begin(estimator=estimator)
        yield
        if (context := getattr(estimator, CALLBACKS[0], None)) is not None:
            context.call_on_fit_task_end(estimator=estimator)
    finally:
        _fitted.reset(before)


def log_line(line: str, speaker: str | None = None) -> None:
    """Write a line to the log, in the name of the estimator that is fitted, or of a function."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s: %s", speaker or type(_fitted.get()).__name__, line)


class Stage:
    """What is told of a stage: that one batch more has ended, from any thread, and its outcome.

    Parameters
    ----------
    task : str
        What the stage is called.
    n_batches : int
        How many it has.

    Attributes
    ----------
    outcome : str
        What its last line says, before the seconds.
    """

    def __init__(self, task: str, n_batches: int) -> None:
        self._task, self._n_batches, self.outcome = task, n_batches, ""
        self._n_done, self._lock, self._estimator = 0, Lock(), _fitted.get()
        self._context = getattr(self._estimator, CALLBACKS[0], None)
        if self._context is not None:
            self._context = self._context.subcontext(
                task_name=task, max_subtasks=n_batches
            )
            self._context.call_on_fit_task_begin(estimator=self._estimator)

    @property
    def callback(self) -> Callable[[], None] | None:
        """`batch_done` if anybody takes notice of single batches."""
        some_one = self._context is not None or _log.isEnabledFor(logging.INFO)
        return self.batch_done if some_one else None

    def batch_done(self) -> None:
        """Tell that a batch has ended."""
        with self._lock:
            self._n_done += 1
            if self._n_batches > 1:
                name = type(
                    self._estimator
                ).__name__  # a thread does not know whom it works for
                log_line(f"{self._task}: {self._n_done} of {self._n_batches}", name)
            if self._context is not None:
                batch = self._context.subcontext(task_name="batch")
                batch.call_on_fit_task_begin(estimator=self._estimator)
                batch.call_on_fit_task_end(estimator=self._estimator)
                if self._n_done == self._n_batches:
                    self._context.call_on_fit_task_end(estimator=self._estimator)


@contextmanager
def stage(task: str, n_batches: int | None = None) -> Iterator[Stage]:
    """Tell that a stage of the fit that runs begins, and that it has ended, and when.

    Parameters
    ----------
    task : str
        What the stage is called.
    n_batches : int, default=None
        How many parts it has, whose ends are told by `Told.batch_done`; by default it is one.

    Yields
    ------
    Told
    """
    log_line(f"{task} ...")
    began, told = perf_counter(), Stage(task, n_batches or 1)
    yield told
    if n_batches is None:
        told.batch_done()
    outcome = f"{told.outcome}, " if told.outcome else ""
    log_line(f"{task}: {outcome}{perf_counter() - began:.2f} s")
