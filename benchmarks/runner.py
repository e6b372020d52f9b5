"""Tasks run in turn, the time that is left, and how time grows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed


class Progress:
    """Counts steps on the error stream, and estimates the time left from the time spent."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self.began = time.perf_counter()
        self._printed = 0.0

    def step(self, task: str) -> None:
        self.done += 1
        spent = time.perf_counter() - self.began
        if spent < self._printed + 1 and self.done < self.total:
            return
        self._printed = spent
        left = spent / self.done * (self.total - self.done)
        where = f"[{self.title} {self.done}/{self.total}]"
        line = f"{where} {task}; {spent:.0f} s, about {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)


def interleaved(
    tasks: Mapping[str, Callable[[int], Any]], repeats: int, progress: Progress
) -> dict[str, list[Any]]:
    """Call every task with 0, 1, ... `repeats` - 1, in the order A B A B, and return its results.

    Other work of the machine then slows all tasks alike.
    """
    results: dict[str, list[Any]] = {name: [] for name in tasks}
    for repeat in range(repeats):
        for name, task in tasks.items():
            results[name].append(task(repeat))
            progress.step(name)
    return results


def on_all_cores(
    task: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], progress: Progress
) -> list[Any]:
    """Call a task with each of many arguments, and return its results: answers, never times."""
    calls = (delayed(task)(*own) for own in arguments)
    results = []
    for result in Parallel(n_jobs=-1, return_as="generator")(calls):
        results.append(result)
        progress.step(task.__name__.strip("_").replace("_", " "))
    return results


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return b of seconds = a * size^b, fitted to the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
