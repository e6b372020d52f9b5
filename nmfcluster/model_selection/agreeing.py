"""How well fits to halves of the samples agree, for several numbers of clusters."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from nmfcluster._arrays.jobs import shared_out
from nmfcluster.metrics.agreement import jackknife, mean_of_pairs, rand_indices
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import Samples, labels_by_copy

_FITS = 10  # of every number of clusters


def agreement_of_halves(
    estimator: Any,
    name: str,
    numbers: np.ndarray,
    samples: Samples,
    seed: int,
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray, list[Exception | None]]:
    """Return the mean adjusted Rand index of two fits, its standard error, and why there is none.

    Every number is fitted to the same ten halves, drawn at random, and each fit says where all
    samples belong.

    Parameters
    ----------
    estimator : estimator
    name : str
        Of the parameter that is the number of clusters.
    numbers : ndarray of shape (n_candidates,), int
    samples : Samples
    seed : int
    n_jobs : int or None

    Returns
    -------
    means, errors : ndarray of shape (n_candidates,)
        NaN for a number of which a fit failed.
    failures : list of Exception or None
    """
    size = n_entries(samples.X) // 2
    calls = list(product(numbers.tolist(), range(_FITS)))
    common = (estimator, name, samples, size, seed)
    found = shared_out(_labels, common, lambda: calls, n_jobs)
    means, errors = np.full((2, len(numbers)), np.nan)
    failures: list[Exception | None] = []
    for i in range(len(numbers)):
        own = found[i * _FITS : (i + 1) * _FITS]
        failures.append(next((one for one in own if isinstance(one, Exception)), None))
        if failures[i] is None:
            means[i], errors[i] = jackknife(mean_of_pairs, rand_indices(np.array(own)))
    return means, errors, failures


def _labels(
    estimator: Any, name: str, samples: Samples, size: int, seed: int, k: int, b: int
) -> np.ndarray | Exception:
    copy = clone(estimator).set_params(**{name: k})
    return labels_by_copy(copy, samples, size, np.random.default_rng((seed, b)))
