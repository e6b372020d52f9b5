"""Run calls with one BLAS thread, in parallel jobs, or on a cluster, as joblib is configured."""

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

# Seconds of work below which no processes are started, as this takes a second or more.
_WORTH_PROCESSES = 1.0
# Calls per worker from which the first call is run and timed alone, which costs one turn.
_MIN_TURNS = 5

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)

# The number of BLAS threads is set for the whole process. The first fit sets it to one, and
# the last restores it. If each fit restored it, it would undo the setting of another fit.
_lock = Lock()
_users: set = set()  # contexts with one BLAS thread, each with its own thread
_before: list = []  # libraries and their numbers of threads; empty once restored


class _Limits(local):
    """Limits that the current thread has set, so that it does not set them again."""

    has_blas = False
    n_modules = 0  # number of imported modules when OpenMP was limited; 0 if it is not


_limits = _Limits()


@contextmanager
def one_blas_thread():
    """Let BLAS use one thread as long as any thread of this process is in this context.

    The last bits of a sum depend on the number of threads that compute it.
    """
    if _limits.has_blas:
        yield
        return
    user = get_ident(), object()
    try:  # includes entering, as Ctrl-C may come at any time
        _enter(user)
        _limits.has_blas = True
        yield
    finally:
        _limits.has_blas = False
        _leave(user)


@contextmanager
def one_thread():
    """Let BLAS and OpenMP use one thread; OpenMP is limited only for the calling thread."""
    before = _limits.n_modules
    n_modules = len(sys.modules)
    if _limits.has_blas and before == n_modules:
        yield
        return
    # OpenMP is limited again after an import, which may have loaded another OpenMP library.
    with one_blas_thread(), threaded_libraries("openmp").limit(limits=1):
        try:
            _limits.n_modules = n_modules
            yield
        finally:
            _limits.n_modules = before


def try_on_one_thread(task, *arguments):
    """Run a task on one thread, and return its result, or the error that it raises."""
    try:
        with one_thread():
            return task(*arguments)
    except Exception as error:
        return error


def _enter(user):
    with _lock:
        is_first = not _users
        # Numbers of threads that an interrupted fit or a parent process did not restore are
        # still in `_before`, and valid.
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
    """Give a child process its own lock, and forget the other threads of its parent.

    One of them may have held the lock, and none of them exists in the child.
    """
    global _lock, _users
    _lock = Lock()
    _users = {user for user in _users if user[0] == get_ident()}


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_lock)


def uses_cluster():
    """Return whether joblib is configured to use a cluster, outside of a task that runs on it.

    A cluster is any backend that is not joblib's own and shares no memory, such as Dask and Ray.
    Tasks of Dask are excluded, as they should not wait for others.
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
    """Return ``function(*common, *call)`` for every call, in order.

    joblib decides where they run. If it would start processes for many calls, the first call runs
    in this process and is timed. For less than a second of work, no processes are started.

    `common` is sent to a cluster of Dask once, and the calls are made through the client of
    joblib's backend. joblib itself would send `common` with every call if Dask does not know its
    size, as for sparse arrays. It would also wait forever for a call that kills its workers, or
    that cannot be sent [1]_.

    Parameters
    ----------
    function : callable
        A function of a module, so that it can be pickled.
    common : sequence
        The first arguments of all calls, which must not modify them.
    calls : sequence of tuple
        The other arguments of each call.
    n_jobs : int or None
    each : callable, default=None
        Called once per call: after it, if joblib reports single calls, and otherwise at the end.
    require : str, default=None
        "sharedmem" for threads, as in joblib.

    Returns
    -------
    list

    Raises
    ------
    RuntimeError
        If workers are lost repeatedly, or calls kill them.
    TypeError
        If an argument, or a result, cannot be sent.

    Warns
    -----
    UserWarning
        If workers are lost, and the calls are repeated.

    References
    ----------
    .. [1] ``DaskDistributedBackend._collect`` of joblib 1.6 does not pass on errors of Dask.
    """
    backend, default_n_jobs = get_active_backend(require=require)
    client = getattr(backend, "client", None)
    outcomes = []
    starts_processes = not (
        uses_cluster() or getattr(backend, "supports_sharedmem", False)
    )
    n_workers = backend.effective_n_jobs(default_n_jobs if n_jobs is None else n_jobs)
    if starts_processes and 1 < n_workers <= len(calls) / _MIN_TURNS:
        # the time of the first call decides whether to start processes
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
    """Values that are sent to another process, with arrays in aligned memory.

    In Dask, arrays may begin at any byte of a message. numpy multiplies unaligned arrays by other
    routines, whose last bits differ.

    Parameters
    ----------
    values : object

    Raises
    ------
    TypeError
        If the values cannot be sent.
    """

    def __init__(self, values):
        self.values = values
        buffers: list = []  # memory of the arrays, which is not copied
        try:
            self._head = _pickle_module().dumps(values, buffer_callback=buffers.append)
        except Exception as error:
            raise TypeError(
                "the arguments and results of calls on a cluster must be picklable, such as "
                f"the parameters of a base clusterer: {type(error).__name__}: {error}"
            ) from error
        self._bytes = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]

    def __reduce__(self):
        return _unpack, (self._head, *self._bytes)

    def __sizeof__(self):
        """Return the number of bytes that are sent, which Dask uses to plan."""
        return len(self._head) + sum(array.nbytes for array in self._bytes)


def _unpack(head, *arrays):
    parcel = Parcel.__new__(Parcel)  # not pickled again, though it may be sent again
    parcel._head = head
    parcel._bytes = [_align(array) for array in arrays]
    parcel.values = _pickle_module().loads(head, buffers=parcel._bytes)
    return parcel


def _pickle_module():
    """Return the module with which Dask pickles, including code of scripts and notebooks."""
    return sys.modules["distributed.protocol.pickle"]


def _align(array):
    """Return bytes as writeable memory for an array, aligned to 16 bytes as in numpy."""
    is_usable = array.flags.writeable and array.ctypes.data % 16 == 0
    return array if is_usable else array.copy()


def _run_on_dask(backend, shared, calls, is_last=False):
    """Return the results of calls on a cluster of Dask; retry once if it loses workers."""
    try:
        return _submit_calls(backend, shared, calls)
    except BaseException as error:
        is_loss = type(error).__module__.partition(".")[0] == "distributed"
        is_loss = is_loss or isinstance(error, _CANCELLED)
        # a timeout after a loss means that no worker is left
        if not is_loss and not (is_last and isinstance(error, TimeoutError)):
            raise
        text = str(error).strip().partition("\n")[0].rstrip(".")
        told = f"{type(error).__name__}{': ' if text else ''}{text}."
        # Dask raises KilledWorker after it has tried a task on several workers
        if is_last or type(error).__name__ == "KilledWorker":
            raise RuntimeError(
                f"The cluster lost workers and their data more than once: {told} If they ran out "
                "of memory, give each worker more memory or fewer threads (memory_limit, "
                "threads_per_worker); if they were stopped, start the fit again."
            ) from error
        warn(
            f"The cluster lost a worker and its data, so all calls are repeated: {told}"
        )
    return _run_on_dask(backend, shared, calls, is_last=True)


def _submit_calls(backend, shared, calls):
    """Make calls through the Dask client of a joblib backend."""
    client = backend.client
    options = backend.submit_kwargs
    function = shared.values[0]
    name = f"{function.__module__.rpartition('.')[2]}-{function.__name__.strip('_')}"
    tasks = []
    try:
        # send to at most one worker per call; with several copies, one worker may be lost
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
        client.cancel(tasks)  # waiting tasks only: running ones cannot be stopped
        raise


def _call_on_worker(shared, call):
    function, common = shared.values
    return Parcel(function(*common, *call.values))
