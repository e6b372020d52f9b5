"""How well fits to halves of the samples agree, for several numbers of clusters."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.jobs import shared_out
from nmfcluster.metrics.agreement import jackknife, mean_of_pairs, rand_indices
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import Samples, labels_by_copy
from nmfcluster.model_selection.rules import AS_ALIKE

_FIRST, _FITS = 3, 10  # of every number of clusters, and of those that can still be chosen
_COMPARED = 1000  # samples, at most, whose clusters by two fits are compared


class Agreement(NamedTuple):
    """How well fits agree. Entries belong to numbers of clusters.

    Attributes
    ----------
    means, errors : ndarray of shape (n_candidates,)
        Mean adjusted Rand index of two fits, and its standard error; NaN where a fit failed.
    n_fits : ndarray of shape (n_candidates,), int
    failures : list of Exception or None
        Why there is none.
    """

    means: np.ndarray
    errors: np.ndarray
    n_fits: np.ndarray
    failures: list[Exception | None]


def agreement_of_parts(
    estimator: Any,
    name: str,
    numbers: np.ndarray,
    samples: Samples,
    size: int,
    seed: int,
    n_jobs: int | None,
) -> Agreement:
    """Fit every number of clusters to the same parts of the samples, and compare the fits.

    Three fits of every number come first. Seven more follow where the mean agreement, with a
    standard error added, is not too low for the number to be chosen.

    Parameters
    ----------
    estimator : estimator
    name : str
        Of the parameter that is the number of clusters.
    numbers : ndarray of shape (n_candidates,), int
    samples : Samples
    size : int
        Samples in a part, drawn at random.
    seed : int
    n_jobs : int or None

    Returns
    -------
    Agreement
    """
    rng = np.random.default_rng(seed)
    compared = some_positions(n_entries(samples.X), _COMPARED, rng)
    common = (estimator, name, samples, size, compared, seed)
    found: list[list[Any]] = [[] for _ in numbers]

    def fit(which: np.ndarray, first: int, last: int) -> None:
        calls = [(int(numbers[i]), b) for i, b in product(which, range(first, last))]
        labels = iter(shared_out(_labels, common, lambda: calls, n_jobs))
        for i in which:
            found[i] += [next(labels) for _ in range(first, last)]

    fit(np.arange(len(numbers)), 0, _FIRST)
    means, errors = np.array([_agreement(own) for own in found]).T
    if not np.isnan(means).all():
        fit(np.flatnonzero(means + errors >= np.nanmax(means) - AS_ALIKE), _FIRST, _FITS)
        means, errors = np.array([_agreement(own) for own in found]).T
    failures = [next((one for one in own if isinstance(one, Exception)), None) for own in found]
    return Agreement(means, errors, np.array([len(own) for own in found]), failures)


def _agreement(labellings: list[Any]) -> tuple[float, float]:
    """Return the mean adjusted Rand index and its error, NaN if a fit failed."""
    if any(isinstance(labels, Exception) for labels in labellings):
        return np.nan, np.nan
    codes = np.array([np.unique(labels, return_inverse=True)[1] for labels in labellings])
    return jackknife(mean_of_pairs, rand_indices(codes))


def _labels(
    estimator: Any,
    name: str,
    samples: Samples,
    size: int,
    compared: np.ndarray,
    seed: int,
    k: int,
    b: int,
) -> np.ndarray | Exception:
    copy = clone(estimator).set_params(**{name: k})
    return labels_by_copy(copy, samples, size, np.random.default_rng((seed, b)), compared)
