"""What calls run on: one thread of the BLAS, several jobs, or a cluster, as joblib is told."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any
from uuid import uuid4

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from nmfcluster._compat import (
    blas_threads,
    one_openmp_thread,
    set_blas_threads,
    with_current_config,
)
from nmfcluster._utils.validation import warn

ProgressCallback = Callable[[], None]  # is called whenever a call has ended

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)

# Threads of BLAS are set for the whole process: the first who wants one sets it, the last puts
# back what was there. Each fit on its own would put back what another one had set.
_lock = Lock()
_users: set[tuple[int, object]] = set()  # each with its thread
_before: list[
    Any
] = []  # the libraries, and the threads that each had; empty when put back


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread as long as anyone in this process is in this context.

    The last bits of a sum depend on how many threads share it.
    """
    user = get_ident(), object()
    try:  # entering is in it: Ctrl-C may come at any time
        _enter(user)
        yield
    finally:
        _leave(user)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread; that of OpenMP is set for the calling thread alone."""
    with one_blas_thread(), one_openmp_thread():
        yield


def try_on_one_thread(task: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a task returns that uses one thread, or the error that it raises."""
    try:
        with one_thread():
            return task(*arguments)
    except Exception as error:
        return error


def _enter(user: tuple[int, object]) -> None:
    global _before
    with _lock:
        first = not _users
        if first:  # if not put back, by who was interrupted or is of a parent process, they hold
            _before = _before or blas_threads()
        _users.add(user)  # before any number is set: leaving puts it back
        if first:
            set_blas_threads(_before, 1)


def _leave(user: tuple[int, object]) -> None:
    global _before
    with _lock:
        _users.discard(user)
        if not _users:
            set_blas_threads(_before)
            _before = []


def _forked() -> None:
    """Give a child process a lock of its own, and forget the other threads of its parent.

    One of them may have held the lock, and none of them leaves in the child.
    """
    global _lock, _users
    _lock = Lock()
    _users = {user for user in _users if user[0] == get_ident()}


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)


def uses_cluster() -> bool:
    """Tell whether joblib is told to use a cluster, and this is not a task that runs there.

    Any backend counts that is not joblib's own and shares no memory: those of Dask and Ray.
    """
    backend, _ = get_active_backend()
    # joblib's own backends, and those that share memory, need no cluster
    of_joblib = type(backend).__module__ == "joblib._parallel_backends"
    if of_joblib or getattr(backend, "supports_sharedmem", False):
        return False
    # a task of Dask should not wait for others
    utils = sys.modules.get("distributed.utils")
    return not hasattr(getattr(utils, "thread_state", None), "execution_state")


def run_calls(
    function: Callable[..., Any],
    common: Sequence[Any],
    calls: Sequence[tuple[Any, ...]],
    n_jobs: int | None,
    each: ProgressCallback | None = None,
) -> list[Any]:
    """Return ``function(*common, *call)`` for every call, in their order.

    joblib says where they run. A cluster of Dask is sent `common` once. joblib would send it with
    every call where Dask does not know its size, as that of sparse arrays, and it waits forever
    for a call that kills its workers, or that cannot be sent [1]_. So the calls are made through
    the client of joblib's backend.

    Parameters
    ----------
    function : callable
        Of a module, so that it can be sent.
    common : sequence
        The first arguments of all calls, which do not change them.
    calls : sequence of tuple
        The other arguments.
    n_jobs : int or None
    each : callable, default=None
        Called as often as there are calls: after each, where joblib says so, or else at the end.

    Returns
    -------
    list

    Raises
    ------
    RuntimeError
        If workers are lost again, or calls kill them.
    TypeError
        If an argument, or a result, cannot be sent.

    Warns
    -----
    UserWarning
        If the calls are made again.

    References
    ----------
    .. [1] ``DaskDistributedBackend._collect`` of joblib 1.6 does not hand on errors of Dask.
    """
    backend, _ = get_active_backend()
    of_dask = hasattr(getattr(backend, "client", None), "scatter")
    if not uses_cluster() or not of_dask or backend.effective_n_jobs(n_jobs) == 1:
        results = []
        told = each is not None and getattr(backend, "supports_return_generator", False)
        one_by_one = {"return_as": "generator"} if told else {}
        tasks = (delayed(function)(*common, *call) for call in calls)
        for result in Parallel(n_jobs=n_jobs, **one_by_one)(tasks):
            results.append(result)
            if each is not None:
                each()
        return results
    shared = Parcel((with_current_config(function), *common))
    for is_last in (False, True):
        try:
            results = _by_client(backend, shared, calls)
            break
        except BaseException as error:
            # a time that is out after a loss: there is no worker left
            if not _is_loss(error) and not (
                is_last and isinstance(error, TimeoutError)
            ):
                raise
            # Dask has tried a task on several workers
            if is_last or type(error).__name__ == "KilledWorker":
                raise _lost(error) from error
            told = "The cluster lost a worker with what it held, and is sent all again"
            warn(f"{told}: {_said(error)}")
    if each is not None:
        for _ in results:
            each()
    return results


class Parcel:
    """Values that are sent to another process, where arrays get memory like that of any other.

    Dask lets them begin at any byte of what it received, and numpy multiplies such arrays by other
    routines, whose last bits differ.

    Parameters
    ----------
    values : object

    Raises
    ------
    TypeError
        If they cannot be sent.
    """

    def __init__(self, values: Any) -> None:
        self.values = values
        buffers: list[
            pickle.PickleBuffer
        ] = []  # of the arrays themselves: nothing is copied
        try:
            self._head = _pickling().dumps(values, buffer_callback=buffers.append)
        except Exception as error:
            told = "what a cluster works on, and what it returns, must be picklable"
            such = "for instance the parameters of a base clusterer"
            raise TypeError(
                f"{told}, {such}: {type(error).__name__}: {error}"
            ) from error
        self._bytes = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]

    def __reduce__(self) -> tuple[Callable[..., Parcel], tuple[Any, ...]]:
        return _opened, (self._head, *self._bytes)

    def __sizeof__(self) -> int:
        """Return the number of bytes that are sent, by which Dask plans."""
        return len(self._head) + sum(array.nbytes for array in self._bytes)


def _opened(head: bytes, *arrays: np.ndarray) -> Parcel:
    parcel = Parcel.__new__(
        Parcel
    )  # which is not packed again, though it may be sent on
    parcel._head, parcel._bytes = head, [_in_place(array) for array in arrays]
    parcel.values = _pickling().loads(head, buffers=parcel._bytes)
    return parcel


def _pickling() -> Any:
    """Return the module by which Dask pickles, also what is defined in a script or a notebook."""
    return sys.modules["distributed.protocol.pickle"]


def _in_place(array: np.ndarray) -> np.ndarray:
    """Return bytes that another array can have for its own: a copy, where it cannot have these."""
    # 16 bytes, as numpy has it
    return (
        array if array.flags.writeable and array.ctypes.data % 16 == 0 else array.copy()
    )


def _by_client(
    backend: Any, shared: Parcel, calls: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Make calls through the client of Dask that a backend of joblib has."""
    client, options = backend.client, backend.submit_kwargs
    function, n_calls = shared.values[0], len(calls)
    name = f"{function.__module__.rpartition('.')[2]}-{function.__name__.strip('_')}"
    tasks: list[Any] = []
    try:
        # as many workers as there are calls need it; where there are two, one may be lost
        where = {"broadcast": n_calls, "workers": options.get("workers")}
        [sent] = client.scatter([shared], hash=False, **where)
        for call in calls:
            key = f"{name}-{uuid4().hex}"
            tasks.append(
                client.submit(
                    _called, sent, Parcel(call), key=key, pure=False, **options
                )
            )
        return [parcel.values for parcel in client.gather(tasks)]
    except BaseException:
        client.cancel(tasks)  # those that wait: one that runs cannot be ended
        raise


def _called(shared: Parcel, call: Parcel) -> Parcel:
    function, *common = shared.values
    return Parcel(function(*common, *call.values))


def _is_loss(error: BaseException) -> bool:
    """Tell whether an error is of the cluster, and not of a call."""
    of_dask = type(error).__module__.partition(".")[0] == "distributed"
    return of_dask or isinstance(error, _CANCELLED)


def _lost(error: BaseException) -> RuntimeError:
    return RuntimeError(
        f"The cluster lost workers with what they held, more than once: {_said(error)} If they ran "
        "out of memory, give each more of it, or fewer threads (memory_limit, threads_per_worker); "
        "if they were taken away, start the fit again."
    )


def _said(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}{': ' if text else ''}{text}."
