"""Solutions that are kept on disk, so that a fit that was stopped goes on where it was."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import joblib
from sklearn.utils.validation import check_memory

from nmfcluster._arrays.arguments import shown, warn
from nmfcluster._arrays.places import content
from nmfcluster._engine.loop import Solution


def memory_of(memory: Any) -> Any:
    """Return a `joblib.Memory` for a folder, or as it is; None for None."""
    try:
        if memory == "":
            raise ValueError("'.' is the folder of now, and None keeps nothing")
        return None if memory is None else check_memory(memory)
    except (OSError, ValueError) as error:
        wanted = "a folder that can be written to"
        raise ValueError(f"memory must be {wanted}, got {shown(memory)}: {error}.") from None


class Recall:
    """Computes what was not computed before from the same data, and keeps it.

    Parameters
    ----------
    memory : joblib.Memory
    *given : object
        All that results depend on, apart from what they are asked for by: objectives, solvers,
        stop rules. It is hashed once.
    """

    def __init__(self, memory: Any, *given: Any) -> None:
        self._given = joblib.hash((version("nmfcluster"), *(_parts(value) for value in given)))
        self._kept = memory.cache(_computed, ignore=["compute"])

    def __call__(self, asked: Sequence[Any], compute: Callable[[], Any]) -> Any:
        """Return the solutions that were computed for `asked`, or compute them."""
        key = joblib.hash((self._given, asked))
        shelved = self._kept.call_and_shelve(key, compute)
        with suppress(Exception):  # whatever it is that reading a damaged file raises
            found = shelved.get()
            if isinstance(found, list) and [type(one) for one in found] == [Solution] * len(asked):
                return found
        warn("The folder of memory holds what is no run: it is made again, and kept instead.")
        shelved.clear()
        return self._kept(key, compute)


def _computed(key: str, compute: Callable[[], Any]) -> Any:
    return compute()


def _parts(value: Any) -> Any:
    """Return what a value is made of, without what it has cached of itself."""
    if is_dataclass(value):
        return type(value).__name__, [_parts(getattr(value, f.name)) for f in fields(value)]
    if isinstance(value, partial):
        return _parts(value.func), [_parts(part) for part in value.args]
    if callable(value):
        return value.__module__, value.__qualname__
    return content(value)
