"""Numbers of clusters that are compared: which ones, which one is taken, and which ones fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import FitFailedWarning

from nmfcluster._arrays.arguments import check_count, last_step, shown, warn

MOST_SAMPLES = 500  # where time grows with the square of their number


def name_of_number(estimator: Any) -> str:
    """Return the name of the parameter that is the number of clusters; raise if there is none."""
    prefix, step = last_step(estimator)
    known = step.get_params(deep=False) if hasattr(step, "get_params") else {}
    for name in ("n_clusters", "n_components"):
        if name in known and hasattr(step, "fit"):
            return prefix + name
    raise TypeError(
        "estimator must have a parameter n_clusters, or n_components as mixtures have, got "
        f"{shown(estimator)}."
    )


def read_candidates(candidates: Iterable[int], n_samples: int) -> np.ndarray:
    """Return numbers of clusters in increasing order."""
    if isinstance(candidates, str | Integral) or not hasattr(candidates, "__iter__"):
        raise TypeError(f"candidates must be several ints, got {shown(candidates)}.")
    numbers = list(candidates)
    if not numbers:
        raise ValueError("candidates must hold a number of clusters, got none.")
    for number in numbers:
        check_count(number, "candidates", 1)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"candidates must differ, got {shown(numbers)}.")
    if max(numbers) > n_samples:
        raise ValueError(f"candidates must be at most n_samples={n_samples}, got {max(numbers)}.")
    return np.sort(np.array(numbers, dtype=np.int64))


class Choice(NamedTuple):
    """What a rule says of candidates in increasing order.

    Attributes
    ----------
    best : int
        Position of the one that was chosen.
    as_good : ndarray of shape (n_candidates,), bool
        Those that are no worse than chance would make them, the chosen one among them.
    """

    best: int
    as_good: np.ndarray


def last_within(scores: np.ndarray, below: float) -> Choice:
    """Choose the largest number whose score is at most so much below the best one.

    A candidate with a score of NaN is not chosen.
    """
    as_good = scores >= np.nanmax(scores) - below  # False for NaN
    return Choice(int(np.flatnonzero(as_good)[-1]), as_good)


def sayer(caller: str, verbose: int) -> Callable[[str], None]:
    """Return what prints a line about the stage that begins, if that is wanted."""

    def _say(stage: str) -> None:
        if verbose:
            print(f"[{caller}] {stage}")

    return _say


def warn_of_largest(numbers: np.ndarray, chosen: int) -> None:
    """Warn where the largest of several candidates was chosen: a larger one may be better."""
    if chosen == numbers[-1] and len(numbers) > 1:
        warn(f"The largest of the candidates was chosen, {chosen}: give larger ones, too.")


def tell_failures(numbers: np.ndarray, errors: list[Exception | None], caller: str) -> None:
    """Warn of candidates that failed; raise what the first one raised if all did."""
    failed = [(k, error) for k, error in zip(numbers, errors, strict=True) if error is not None]
    if len(failed) == len(numbers):
        failed[0][1].add_note(f"{caller}: all {len(numbers)} candidates failed.")
        raise failed[0][1]
    for k, error in failed:
        warn(
            f"n_clusters={k} failed, and is not chosen. {type(error).__name__}: {error}",
            FitFailedWarning,
        )
