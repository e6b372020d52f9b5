"""Progress of a running fit, reported to the log and to scikit-learn's callbacks.

The logger ``nmfcluster`` gets a line at the level INFO before and after each stage.
"""

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter

from nmfcluster._compat import begin_callbacks, callback_context

_log = logging.getLogger("nmfcluster")
# the estimator that is being fitted
_fitted: ContextVar = ContextVar("fitted", default=None)


@contextmanager
def reporting(estimator):
    """Report stages in this context as those of an estimator's fit, and run its callbacks."""
    before = _fitted.set(estimator)
    try:
        begin_callbacks(estimator)
        yield
        context = callback_context(estimator)
        if context is not None:
            context.call_on_fit_task_end(estimator=estimator)
    finally:
        _fitted.reset(before)


def log_line(line, speaker=None):
    """Log a line, with the name of the running estimator, or of `speaker`, in front."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s: %s", speaker or type(_fitted.get()).__name__, line)


class Stage:
    """Stage of a fit, which counts its finished batches, and reports them.

    Parameters
    ----------
    task : str
        Name of the stage.
    n_batches : int
        Number of its batches.

    Attributes
    ----------
    outcome : str
        Result in the last line of the stage, before the seconds.
    """

    def __init__(self, task, n_batches):
        self._task = task
        self._n_batches = n_batches
        self._n_done = 0
        self.outcome = ""
        estimator = _fitted.get()
        self._context = callback_context(estimator)
        if self._context is not None:
            self._context = self._context.subcontext(
                task_name=task, max_subtasks=n_batches
            )
            self._context.call_on_fit_task_begin(estimator=estimator)

    def batch_done(self):
        """Report that a batch has ended."""
        self._n_done += 1
        if self._n_batches > 1:
            log_line(f"{self._task}: {self._n_done} of {self._n_batches}")
        if self._context is not None:
            estimator = _fitted.get()
            batch = self._context.subcontext(task_name="batch")
            batch.call_on_fit_task_begin(estimator=estimator)
            batch.call_on_fit_task_end(estimator=estimator)
            if self._n_done == self._n_batches:
                self._context.call_on_fit_task_end(estimator=estimator)


@contextmanager
def stage(task, n_batches=None):
    """Report the beginning, the end and the time of a stage of the running fit.

    Parameters
    ----------
    task : str
        Name of the stage.
    n_batches : int, default=None
        Number of its batches. `Stage.batch_done` reports the end of each. One by default.

    Yields
    ------
    Stage
    """
    log_line(f"{task} ...")
    began = perf_counter()
    current = Stage(task, n_batches or 1)
    yield current
    if n_batches is None:
        current.batch_done()
    outcome = f"{current.outcome}, " if current.outcome else ""
    log_line(f"{task}: {outcome}{perf_counter() - began:.2f} s")
