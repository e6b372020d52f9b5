"""One thread for the sums of a fit: the last bits of a sum depend on how many share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits

from nmfcluster._compat import blas_threads, set_blas_threads

# Threads of BLAS are set for the whole process: the first who wants one sets it, the last puts
# back what was there. Each fit on its own would put back what another one had set.
_lock = Lock()
_users = 0
_before: list[Any] = []  # the libraries, and the threads that each had


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread as long as anyone in this process is in this context."""
    _enter()
    try:
        yield
    finally:
        _leave()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread; that of OpenMP is set for the calling thread alone."""
    with one_blas_thread(), threadpool_limits(limits=1, user_api="openmp"):
        yield


def _enter() -> None:
    global _users, _before
    with _lock:
        if _users == 0:
            _before = blas_threads()
            set_blas_threads([(library, 1) for library, _ in _before])
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            set_blas_threads(_before)


def _forked() -> None:
    """Give a child process a lock of its own: another thread may have held that of the parent."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forked)
