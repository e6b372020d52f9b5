"""Where calls run: with one BLAS thread, in several jobs, or on a cluster, as joblib is told."""

import asyncio
import concurrent.futures
import os
import sys
from contextlib import contextmanager
from threading import Lock, get_ident, local
from time import perf_counter
from uuid import uuid4

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from nmfcluster._compat import (
    set_blas_threads,
    threaded_libraries,
    with_current_config,
)
from nmfcluster._utils.validation import warn

# Seconds of work below which no processes are started: that takes a second or more.
_WORTH_PROCESSES = 1.0
# Calls of every worker from which on the first one is timed, which takes a turn of its own.
_MIN_TURNS = 5

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)

# The number of BLAS threads is set for the whole process: the first user sets it to one,
# and the last restores it. If each fit restored it on its own, it would undo what another
# fit had set.
_lock = Lock()
_users: set = set()  # each with its thread
_before: list = []  # libraries and their numbers of threads; empty once restored


class _Limits(local):
    """What the current thread has limited already, so that it need not do so again."""

    has_blas = False
    n_modules = 0  # imported modules when OpenMP was limited; 0: it is not


_limits = _Limits()


@contextmanager
def one_blas_thread():
    """Let BLAS use one thread as long as anyone in this process is in this context.

    The last bits of a sum depend on how many threads share it.
    """
    if _limits.has_blas:
        yield
        return
    user = get_ident(), object()
    try:  # entering is part of it, as Ctrl-C may come at any time
        _enter(user)
        _limits.has_blas = True
        yield
    finally:
        _limits.has_blas = False
        _leave(user)


@contextmanager
def one_thread():
    """Let BLAS and OpenMP use one thread; OpenMP is limited for the calling thread alone."""
    before = _limits.n_modules
    n_modules = len(sys.modules)
    if _limits.has_blas and before == n_modules:
        yield
        return
    # OpenMP is limited anew after an import, which may have loaded another OpenMP library.
    with one_blas_thread(), threaded_libraries("openmp").limit(limits=1):
        try:
            _limits.n_modules = n_modules
            yield
        finally:
            _limits.n_modules = before


def try_on_one_thread(task, *arguments):
    """Return what a task returns that uses one thread, or the error that it raises."""
    try:
        with one_thread():
            return task(*arguments)
    except Exception as error:
        return error


def _enter(user):
    with _lock:
        is_first = not _users
        # Numbers of threads that an interrupted user or a parent process did not restore
        # are still in `_before`, and hold.
        if is_first and not _before:
            for library in threaded_libraries("blas").lib_controllers:
                _before.append((library, library.num_threads))
        _users.add(user)  # before any number is set, so that leaving restores it
        if is_first:
            set_blas_threads(_before, 1)


def _leave(user):
    global _before
    with _lock:
        _users.discard(user)
        if not _users:
            set_blas_threads(_before)
            _before = []


def _renew_lock():
    """Give a child process a lock of its own, and forget the other threads of its parent.

    One of them may have held the lock, and none of them leaves in the child.
    """
    global _lock, _users
    _lock = Lock()
    _users = {user for user in _users if user[0] == get_ident()}


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_lock)


def uses_cluster():
    """Return whether joblib is told to use a cluster, and this is not a task that runs there.

    A cluster is any backend that is not joblib's own and shares no memory, as those of Dask and
    Ray. A task of Dask is left out, as it should not wait for others.
    """
    backend, _ = get_active_backend()
    is_joblibs_own = type(backend).__module__ == "joblib._parallel_backends"
    if is_joblibs_own or getattr(backend, "supports_sharedmem", False):
        return False
    utils = sys.modules.get("distributed.utils")
    return not hasattr(getattr(utils, "thread_state", None), "execution_state")


def run_calls(
    function,
    common,
    calls,
    n_jobs,
    each=None,
    require=None,
):
    """Return ``function(*common, *call)`` for every call, in their order.

    joblib says where they run. If it would start processes for many calls, the first call is made
    here and timed: for less than a second of work, no processes are started.

    A cluster of Dask is sent `common` once. joblib would send it with every call where Dask does
    not know its size, as that of sparse arrays, and it waits forever for a call that kills its
    workers, or that cannot be sent [1]_. So the calls are made through the client of joblib's
    backend.

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
    require : str, default=None
        "sharedmem" for threads, as joblib has it.

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
    backend, default_n_jobs = get_active_backend(require=require)
    client = getattr(backend, "client", None)
    outcomes = []
    starts_processes = not (
        uses_cluster() or getattr(backend, "supports_sharedmem", False)
    )
    n_workers = backend.effective_n_jobs(default_n_jobs if n_jobs is None else n_jobs)
    if starts_processes and 1 < n_workers <= len(calls) / _MIN_TURNS:
        # the first call is made here, and says whether processes are worth their start
        began = perf_counter()
        outcomes.append(function(*common, *calls[0]))
        if each is not None:
            each()
        calls = calls[1:]
        if (perf_counter() - began) * len(calls) < _WORTH_PROCESSES:
            n_jobs = 1
    is_dask = uses_cluster() and hasattr(client, "scatter")
    if is_dask and backend.effective_n_jobs(n_jobs) != 1:
        shared = Parcel((with_current_config(function), common))
        results = _run_on_dask(backend, shared, calls)
    else:
        reports_each = getattr(backend, "supports_return_generator", False)
        return_as = "generator" if each is not None and reports_each else "list"
        tasks = (delayed(function)(*common, *call) for call in calls)
        run = Parallel(n_jobs=n_jobs, return_as=return_as, require=require)
        results = run(tasks)
    for result in results:
        outcomes.append(result)
        if each is not None:
            each()
    return outcomes


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

    def __init__(self, values):
        self.values = values
        buffers: list = []  # of the arrays: nothing is copied
        try:
            self._head = _pickle_module().dumps(values, buffer_callback=buffers.append)
        except Exception as error:
            raise TypeError(
                "what a cluster works on, and what it returns, must be picklable, for instance "
                f"the parameters of a base clusterer: {type(error).__name__}: {error}"
            ) from error
        self._bytes = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]

    def __reduce__(self):
        return _unpack, (self._head, *self._bytes)

    def __sizeof__(self):
        """Return the number of bytes that are sent, by which Dask plans."""
        return len(self._head) + sum(array.nbytes for array in self._bytes)


def _unpack(head, *arrays):
    parcel = Parcel.__new__(Parcel)  # not packed again, though it may be sent on
    parcel._head = head
    parcel._bytes = [_align(array) for array in arrays]
    parcel.values = _pickle_module().loads(head, buffers=parcel._bytes)
    return parcel


def _pickle_module():
    """Return the module by which Dask pickles, also what is defined in a script or a notebook."""
    return sys.modules["distributed.protocol.pickle"]


def _align(array):
    """Return bytes that another array can have for its own, aligned to 16 as numpy aligns them."""
    is_usable = array.flags.writeable and array.ctypes.data % 16 == 0
    return array if is_usable else array.copy()


def _run_on_dask(backend, shared, calls, is_last=False):
    """Return the results of calls on a cluster of Dask, and try again once if it loses workers."""
    try:
        return _submit_calls(backend, shared, calls)
    except BaseException as error:
        is_loss = type(error).__module__.partition(".")[0] == "distributed"
        is_loss = is_loss or isinstance(error, _CANCELLED)
        # a timeout after a loss: there is no worker left
        if not is_loss and not (is_last and isinstance(error, TimeoutError)):
            raise
        text = str(error).strip().partition("\n")[0].rstrip(".")
        told = f"{type(error).__name__}{': ' if text else ''}{text}."
        # a worker is called killed after Dask has tried a task on several of them
        if is_last or type(error).__name__ == "KilledWorker":
            raise RuntimeError(
                f"The cluster lost workers with what they held, more than once: {told} If they ran "
                "out of memory, give each more of it, or fewer threads (memory_limit, "
                "threads_per_worker); if they were taken away, start the fit again."
            ) from error
        warn(
            f"The cluster lost a worker with what it held, and is sent all again: {told}"
        )
    return _run_on_dask(backend, shared, calls, is_last=True)


def _submit_calls(backend, shared, calls):
    """Make calls through the client of Dask that a backend of joblib has."""
    client = backend.client
    options = backend.submit_kwargs
    function = shared.values[0]
    name = f"{function.__module__.rpartition('.')[2]}-{function.__name__.strip('_')}"
    tasks = []
    try:
        # as many workers as there are calls need it; where there are two, one may be lost
        [sent] = client.scatter(
            [shared],
            hash=False,
            broadcast=len(calls),
            workers=options.get("workers"),
        )
        for call in calls:
            key = f"{name}-{uuid4().hex}"
            task = client.submit(
                _call_on_worker, sent, Parcel(call), key=key, pure=False, **options
            )
            tasks.append(task)
        return [parcel.values for parcel in client.gather(tasks)]
    except BaseException:
        client.cancel(tasks)  # those that wait: one that runs cannot be ended
        raise


def _call_on_worker(shared, call):
    function, common = shared.values
    return Parcel(function(*common, *call.values))
