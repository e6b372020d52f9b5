"""One thread for the sums of a fit: the last bits of a sum depend on how many share it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any

from nmfcluster._compat import blas_threads, one_openmp_thread, set_blas_threads

# Threads of BLAS are set for the whole process: the first who wants one sets it, the last puts
# back what was there. Each fit on its own would put back what another one had set.
_lock = Lock()
_users: set[tuple[int, object]] = set()  # each with its thread
_before: list[Any] = []  # the libraries, and the threads that each had; empty when put back


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread as long as anyone in this process is in this context."""
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


def _enter(user: tuple[int, object]) -> None:
    global _before
    with _lock:
        first = not _users
        if first:  # if not put back, by who was interrupted or is of a parent process, they hold
            _before = _before or blas_threads()
        _users.add(user)  # before any number is set: leaving puts it back
        if first:
            set_blas_threads([(library, 1) for library, _ in _before])


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
