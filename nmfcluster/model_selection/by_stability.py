"""The number of clusters by stability: how well fits to parts of the samples agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.jobs import one_thread, shared_out
from nmfcluster.metrics.agreement import jackknife, mean_of_pairs, rand_indices
from nmfcluster.model_selection.candidates import last_within, tell_failures
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import Samples, labels_by_copy
from nmfcluster.model_selection.results import NumberOfClusters

_MORE = 2  # fits of a number of clusters at a time
_SOME, _FITS = 8, 10  # of those that can still be chosen, and of the two that decide
_ERROR_OF_TWO = 0.15  # standard error that two fits are taken to have: it shows with more
_COMPARED = 1000  # samples, at most, whose clusters by two fits are compared
_AS_ALIKE = 0.025  # of the mean Rand index, by which a number may lie below the most stable one


class Agreement(NamedTuple):
    """How well fits agree. Entries belong to numbers of clusters.

    Attributes
    ----------
    means, errors : ndarray of shape (n_candidates,)
        Mean adjusted Rand index of two fits, and its standard error, .15 where there are no
        more than two; NaN where a fit failed.
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

    Two fits of every number come first. Two more follow, until there are eight, as long as the mean
    agreement, with a standard error added, is not too low for the number to be chosen. Then the
    largest of those left, and the one whose fits agree best, go on to ten; if the largest is ruled
    out, the next one does.

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
    means, errors = np.full((2, len(numbers)), np.nan)
    which = list(range(len(numbers)))  # that need more fits
    while which:
        calls = [(i, len(found[i]) + b) for i in which for b in range(_MORE)]
        tasks = [(int(numbers[i]), b) for i, b in calls]
        with one_thread():  # of all fits: it takes longer to set than some of them
            labellings = shared_out(_labels, common, tasks, n_jobs)
        for (i, _), labels in zip(calls, labellings, strict=True):
            found[i].append(labels)
        for i in which:
            means[i], errors[i] = _agreement(found[i])
        which = _undecided(means, errors, np.array([len(fits) for fits in found]))
    failures = [next((fit for fit in fits if isinstance(fit, Exception)), None) for fits in found]
    return Agreement(means, errors, np.array([len(fits) for fits in found]), failures)


def steadiest(
    agreement: Agreement, numbers: np.ndarray, fitted: Callable[[int], Any]
) -> NumberOfClusters:
    """Return the largest number whose fits agree nearly as well as those of any number.

    Constraints of parts may allow a number of clusters that all constraints do not: then the next
    best is taken.

    Parameters
    ----------
    agreement : Agreement
    numbers : ndarray of shape (n_candidates,), int
    fitted : callable
        Fits a number of clusters to all samples.

    Returns
    -------
    NumberOfClusters
    """
    means, failures, best = agreement.means.copy(), list(agreement.failures), None
    while best is None and not np.isnan(means).all():
        choice = last_within(means, _AS_ALIKE)
        try:
            best = fitted(int(numbers[choice.best]))
        except Exception as error:
            means[choice.best], failures[choice.best] = np.nan, error
    tell_failures(numbers, failures, "choose_n_clusters")
    return NumberOfClusters(
        candidates=numbers,
        n_clusters_=int(numbers[choice.best]),
        as_good=choice.as_good,
        method="stability",
        stability=means,
        stability_se=np.where(np.isnan(means), np.nan, agreement.errors),
        n_fits=agreement.n_fits,
        best_estimator_=best,
    )


def _undecided(means: np.ndarray, errors: np.ndarray, n_fits: np.ndarray) -> list[int]:
    """Return which numbers of clusters need more fits for one of them to be chosen."""
    if np.isnan(means).all():
        return []
    doubts = np.where(n_fits < _FITS, errors, 0)
    left = np.flatnonzero(means + doubts >= np.nanmax(means) - _AS_ALIKE)
    few = left[n_fits[left] < _SOME]
    deciding = np.unique([left[-1], np.nanargmax(means)])
    return few.tolist() or deciding[n_fits[deciding] < _FITS].tolist()


def _agreement(labellings: list[Any]) -> tuple[float, float]:
    """Return the mean adjusted Rand index and its error, NaN if a fit failed."""
    if any(isinstance(labels, Exception) for labels in labellings):
        return np.nan, np.nan
    codes = np.array([np.unique(labels, return_inverse=True)[1] for labels in labellings])
    indices = rand_indices(codes)
    if len(codes) == _MORE:
        return mean_of_pairs(indices), _ERROR_OF_TWO
    return jackknife(mean_of_pairs, indices)


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
