"""Which number of clusters scores speak for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

AS_ALIKE = 0.025  # of the mean Rand index, by which a number may lie below the most stable one
_AS_STABLE = 0.15  # of the smallest recurrence, by which a number may lie below the most stable one


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


def least_held_out(losses: np.ndarray) -> Choice:
    """Choose the smallest number whose held-out loss is within one standard error of the least.

    Losses of the same part are compared with each other: the error is that of their differences.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_parts)
        NaN where there is none: such a candidate is not chosen.

    Returns
    -------
    Choice
    """
    means = losses.mean(axis=1)
    as_good = means - np.nanmin(means) <= standard_errors(losses)  # False for NaN
    return Choice(int(np.flatnonzero(as_good)[0]), as_good)


def standard_errors(losses: np.ndarray) -> np.ndarray:
    """Return those of the mean differences from the candidate of the least loss, 0 for itself."""
    differences = losses - losses[np.nanargmin(losses.mean(axis=1))]
    return differences.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])


def last_recurring(smallest: np.ndarray) -> Choice:
    """Choose the largest number of which all clusters recur about as surely as they ever do.

    Parameters
    ----------
    smallest : ndarray of shape (n_candidates,)
        Recurrence of the cluster that recurs least; NaN where there is none.

    Returns
    -------
    Choice
    """
    return _last_within(smallest, _AS_STABLE)


def last_agreeing(agreement: np.ndarray) -> Choice:
    """Choose the largest number whose fits agree nearly as well as those of any number.

    Parameters
    ----------
    agreement : ndarray of shape (n_candidates,)
        Mean adjusted Rand index of two fits; NaN where there is none.

    Returns
    -------
    Choice
    """
    return _last_within(agreement, AS_ALIKE)


def _last_within(scores: np.ndarray, below: float) -> Choice:
    """Choose the largest number whose score is at most so much below the best one."""
    as_good = scores >= np.nanmax(scores) - below  # False for NaN
    return Choice(int(np.flatnonzero(as_good)[-1]), as_good)
