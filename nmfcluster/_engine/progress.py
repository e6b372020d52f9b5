"""What is told of a fit while it runs: lines, and scikit-learn's callbacks where it has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any

#: what scikit-learn keeps in an estimator during a fit, and takes out after it
CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def begun(estimator: Any) -> None:
    """Tell callbacks that a fit begins, if the estimator has any."""
    if getattr(estimator, "_skl_callbacks", None):
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator)


def ended(estimator: Any) -> None:
    """Tell callbacks that a fit has ended."""
    if (context := getattr(estimator, CALLBACKS[0], None)) is not None:
        context.call_on_fit_task_end(estimator=estimator)


@contextmanager
def during(
    estimator: Any, task: str, n_batches: int | None = None
) -> Iterator[Callable[[], None] | None]:
    """Tell that a stage of a fit begins, by a line as well, and that it has ended, and when.

    Parameters
    ----------
    estimator : NMFClusterer
    task : str
        What the stage is called.
    n_batches : int, default=None
        How many it has; by default one, whose end is told here.

    Yields
    ------
    callable or None
        What to call at the end of each batch, if there are several: no line is printed for it.
        None where nobody listens, or there is one.
    """
    estimator._say(f"{task} ...")
    began = perf_counter()
    one_more = stage(estimator, task, n_batches or 1, by_lines=False)
    several = n_batches is not None
    yield one_more if several and hasattr(estimator, CALLBACKS[0]) else None
    if not several:
        one_more()
    estimator._say(f"{task}: {perf_counter() - began:.2f} s")


def stage(estimator: Any, task: str, n_batches: int, by_lines: bool = True) -> Callable[[], None]:
    """Tell callbacks that a stage of a fit begins, and return what tells the end of a batch.

    Parameters
    ----------
    estimator : NMFClusterer
    task : str
        What the stage is called.
    n_batches : int
        How many it has: there is a line for each, unless there is but one.
    by_lines : bool, default=True
        False: no lines.

    Returns
    -------
    callable
        To be called from any thread.
    """
    context, lock, done = getattr(estimator, CALLBACKS[0], None), Lock(), 0
    if context is not None:
        context = context.subcontext(task_name=task, max_subtasks=n_batches)
        context.call_on_fit_task_begin(estimator=estimator)

    def one_more() -> None:
        nonlocal done
        with lock:
            done += 1
            if by_lines and n_batches > 1:
                estimator._say(f"{task}: {done} of {n_batches} batches")
            if context is None:
                return
            batch = context.subcontext(task_name="batch")
            batch.call_on_fit_task_begin(estimator=estimator)
            batch.call_on_fit_task_end(estimator=estimator)
            if done == n_batches:
                context.call_on_fit_task_end(estimator=estimator)

    return one_more
