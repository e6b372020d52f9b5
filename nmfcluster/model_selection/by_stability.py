"""The number of clusters by stability: how well fits to parts of the samples agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.jobs import one_thread, shared_out
from nmfcluster.metrics.agreement import jackknife, mean_of_pairs, rand_indices
from nmfcluster.model_selection.copies import Samples, attempted, labels_by_copy, n_entries
from nmfcluster.model_selection.results import NumberOfClusters, tell_failures

_MORE = 2  # fits of a number of clusters at a time
_SOME, _FITS = 8, 10  # of those that can still be chosen, and of the two that decide
_ERROR_OF_TWO = 0.15  # standard error that two fits are taken to have: it shows with more
_COMPARED = 1000  # samples, at most, whose clusters by two fits are compared
_AS_ALIKE = 0.025  # of the mean Rand index, by which a number may lie below the most stable one


def agreement_of_parts(
    models: list[Any], samples: Samples, size: int, seed: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Exception | None]]:
    """Fit every number of clusters to the same parts of the samples, and compare the fits.

    Two fits of every number come first. Two more follow, until there are eight, as long as the mean
    agreement, with a standard error added, is not too low for the number to be chosen. Then the
    largest of those left, and the one whose fits agree best, go on to ten; if the largest is ruled
    out, the next one does.

    Parameters
    ----------
    models : list of estimator
        One for every number of clusters.
    samples : Samples
    size : int
        Samples in a part, drawn at random.
    seed : int
    n_jobs : int or None

    Returns
    -------
    means, errors : ndarray of shape (n_candidates,)
        Mean adjusted Rand index of two fits, and its standard error, .15 where there are no
        more than two; NaN where a fit failed.
    n_fits : ndarray of shape (n_candidates,), int
    failures : list of Exception or None
        Why there is no agreement.
    """
    rng = np.random.default_rng(seed)
    compared = some_positions(n_entries(samples.X), _COMPARED, rng)
    common = (labels_by_copy, samples, size, compared)
    fits: list[list[Any]] = [[] for _ in models]
    means, errors = np.full((2, len(models)), np.nan)
    n_fits = np.zeros(len(models), dtype=int)
    left = list(range(len(models)))  # that need more fits
    while left:
        pairs = [(i, int(n_fits[i]) + b) for i in left for b in range(_MORE)]
        calls = [(clone(models[i]), np.random.default_rng((seed, b))) for i, b in pairs]
        with one_thread():  # of all fits: it takes longer to set than some of them
            labellings = shared_out(attempted, common, calls, n_jobs)
        for (i, _), labels in zip(pairs, labellings, strict=True):
            fits[i].append(labels)
        for i in left:
            means[i], errors[i] = _agreement(fits[i])
            n_fits[i] = len(fits[i])
        left = _undecided(means, errors, n_fits)
    failures = [next((fit for fit in own if isinstance(fit, Exception)), None) for own in fits]
    return means, errors, n_fits, failures


def steadiest(
    numbers: np.ndarray,
    means: np.ndarray,
    errors: np.ndarray,
    n_fits: np.ndarray,
    failures: list[Exception | None],
    fitted: Callable[[int], Any],
) -> NumberOfClusters:
    """Return the largest number whose fits agree nearly as well as those of any number.

    Constraints of parts may allow a number of clusters that all constraints do not: then the next
    best is taken.

    Parameters
    ----------
    numbers : ndarray of shape (n_candidates,), int
    means, errors, n_fits : ndarray of shape (n_candidates,)
    failures : list of Exception or None
        What `agreement_of_parts` returns.
    fitted : callable
        Fits a number of clusters to all samples.

    Returns
    -------
    NumberOfClusters
    """
    means, failures, fit = means.copy(), list(failures), None
    while fit is None and not np.isnan(means).all():
        as_good = means >= np.nanmax(means) - _AS_ALIKE  # False for NaN
        best = np.flatnonzero(as_good)[-1]
        try:
            fit = fitted(int(numbers[best]))
        except Exception as error:
            means[best], failures[best] = np.nan, error
    tell_failures(numbers, failures, "choose_n_clusters")
    return NumberOfClusters(
        candidates=numbers,
        n_clusters_=int(numbers[best]),
        as_good=as_good,
        method="stability",
        stability=means,
        stability_se=np.where(np.isnan(means), np.nan, errors),
        n_fits=n_fits,
        best_estimator_=fit,
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
    indices = rand_indices(np.array(labellings))
    if len(indices) == _MORE:
        return mean_of_pairs(indices), _ERROR_OF_TWO
    return jackknife(mean_of_pairs, indices)
