"""The number of clusters by stability: how well fits to parts of the samples agree."""

import warnings
from collections.abc import Callable
from statistics import median_high
from typing import Any

import numpy as np
from sklearn.base import clone

import nmfcluster.model_selection.refits as copies
from nmfcluster._utils.parallel import attempted, one_thread, shared_out
from nmfcluster._utils.sampling import some_positions
from nmfcluster.metrics.agreement import jackknife, mean_of_pairs, rand_indices
from nmfcluster.model_selection.results import NumberOfClusters, tell_failures

_MORE = 2  # fits of a number of clusters at a time
_SOME, _FITS = 4, 6  # of those that can still be chosen, and of the two that decide
_ERROR_OF_TWO = (
    0.1  # standard error that two fits are taken to have: it shows with more
)
_COMPARED = 1000  # samples, at most, whose clusters by two fits are compared
_AS_ALIKE = (
    0.025  # of the mean Rand index, by which a number may lie below the most stable one
)
_AT_A_TIME = (
    4  # numbers, the smallest first, as larger ones may be more than are ever found
)


def agreement_of_parts(
    models: dict[int, Any],
    samples: copies.Samples,
    size: int,
    seed: int,
    n_jobs: int | None,
) -> tuple[dict[str, Any], list[Exception | None]]:
    """Fit every number of clusters to the same parts of the samples, and compare the fits.

    Two fits of every number come first, from the smallest on, until two numbers in a row find fewer
    clusters. Two more follow where the mean agreement, with a standard error added, is not too low
    for the number to be chosen. Then the largest of those left, and the one whose fits agree best,
    go on to six; if the largest is ruled out, the next one does.

    Parameters
    ----------
    models : dict of int to estimator
        By numbers of clusters, in increasing order.
    samples : Samples
    size : int
        Samples in a part, drawn at random.
    seed : int
    n_jobs : int or None

    Returns
    -------
    figures : dict of str to ndarray of shape (n_candidates,)
        What `NumberOfClusters` has under these names.
    failures : list of Exception or None
        Why there is no agreement.
    """
    rng, numbers = np.random.default_rng(seed), list(models)
    compared = some_positions(copies.n_entries(samples.X), _COMPARED, rng)
    common = (copies.labels_by_copy, samples, size, compared)
    fits: list[list[Any]] = [[] for _ in models]
    means, errors = np.full((2, len(models)), np.nan)
    n_fits, n_found = np.zeros((2, len(models)), dtype=int)
    untried = list(range(len(models)))
    while left := untried[:_AT_A_TIME] or _undecided(means, errors, n_fits):
        pairs = [(i, int(n_fits[i]) + b) for i in left for b in range(_MORE)]
        calls = [
            (clone(models[numbers[i]]), np.random.default_rng((seed, b)))
            for i, b in pairs
        ]
        # of all fits: it takes longer to set than some of them
        with one_thread(), warnings.catch_warnings(action="ignore"):
            told = shared_out(attempted, common, calls, n_jobs)
        for (i, _), fit in zip(pairs, told, strict=True):
            fits[i].append(fit)
        for i in left:
            means[i], errors[i], n_found[i] = _agreement(fits[i], numbers[i])
            n_fits[i] = len(fits[i])
        few = (n_found > 0) & (n_found < numbers)
        untried = [] if few[left[-2:]].sum() == 2 else untried[_AT_A_TIME:]
    failures = [
        next((fit for fit in own if isinstance(fit, Exception)), None) for own in fits
    ]
    figures = {
        "stability": means,
        "stability_se": errors,
        "n_fits": n_fits,
        "n_found": n_found,
    }
    return figures, failures


def steadiest(
    numbers: np.ndarray,
    figures: dict[str, Any],
    failures: list[Exception | None],
    fitted: Callable[[int], Any],
    X: Any,
    method: str = "stability",
) -> NumberOfClusters:
    """Return the largest number whose fits agree nearly as well as those of any number.

    Or, with the method "eigengap", the number with the largest gap.

    Where the fit to all samples finds fewer clusters than it should, or fails, as constraints of
    parts may allow a number of clusters that all constraints do not, the next best is taken.

    Parameters
    ----------
    numbers : ndarray of shape (n_candidates,), int
    figures, failures : object
        What `agreement_of_parts` returns; what the fits to all samples tell is added.
    fitted : callable
        Fits a number of clusters to all samples.
    X : object
        All samples.
    method : {"stability", "eigengap"}, default="stability"

    Returns
    -------
    NumberOfClusters
    """
    means, n_found, fit = figures[method], figures["n_found"], None
    margin = _AS_ALIKE if method == "stability" else 0
    while fit is None and not np.isnan(means).all():
        as_good = means >= np.nanmax(means) - margin  # False for NaN
        best = np.flatnonzero(as_good)[-1]
        k = int(numbers[best])
        try:
            model = fitted(k)
            n_found[best] = copies.number_found(model, X)
            fit = model if n_found[best] >= k else None
        except Exception as error:
            failures[best] = error
        if fit is None:
            means[best] = np.nan
    tell_failures(numbers, failures, "choose_n_clusters")
    if fit is None:
        why = f"with {numbers[0]} to {numbers[-1]} they found at most {n_found.max()}"
        raise ValueError(
            f"candidates must hold a number of clusters that fits find: {why}."
        )
    if method == "stability":
        figures["stability_se"] = np.where(
            np.isnan(means), np.nan, figures["stability_se"]
        )
    return NumberOfClusters(numbers, k, as_good, method, **figures, best_estimator_=fit)


def _undecided(means: np.ndarray, errors: np.ndarray, n_fits: np.ndarray) -> list[int]:
    """Return which numbers of clusters need more fits for one of them to be chosen."""
    if np.isnan(means).all():
        return []
    doubts = np.where(n_fits < _FITS, errors, 0)
    left = np.flatnonzero(means + doubts >= np.nanmax(means) - _AS_ALIKE)
    few = left[n_fits[left] < _SOME]
    deciding = np.unique([left[-1], np.nanargmax(means)])
    return few.tolist() or deciding[n_fits[deciding] < _FITS].tolist()


def _agreement(fits: list[Any], n_clusters: int) -> tuple[float, float, int]:
    """Return the mean adjusted Rand index, its error, and how many clusters were found.

    The index is NaN if a fit failed, or most found fewer clusters than they should: a small one may
    be missed by a fit to a part.
    """
    failed = any(isinstance(fit, Exception) for fit in fits)
    n_found = 0 if failed else median_high(count for _, count in fits)
    if n_found < n_clusters:
        return np.nan, np.nan, n_found
    indices = rand_indices(np.array([labels for labels, _ in fits]))
    if len(indices) == _MORE:
        return mean_of_pairs(indices), _ERROR_OF_TWO, n_found
    return *jackknife(mean_of_pairs, indices), n_found
