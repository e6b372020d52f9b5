"""What a search needs beside a scorer: its split, and a choice among candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable

from nmfcluster._arrays.arguments import shown
from nmfcluster.model_selection.checks import n_entries

__all__ = ["FullSampleSplit", "one_standard_error"]


class FullSampleSplit(BaseCrossValidator):
    """A single split, in which all samples are both for training and for testing.

    For ``cv=`` of scikit-learn's searches with scorers that draw samples themselves, as
    `StabilityScorer` does. A precomputed similarity reaches the scorer whole.

    Attributes
    ----------
    n_splits : int
        1.

    See Also
    --------
    StabilityScorer : Scores a clusterer on the samples that it was fitted on.

    Examples
    --------
    >>> from nmfcluster.model_selection import FullSampleSplit
    >>> list(FullSampleSplit().split([[1.0], [2.0], [3.0]]))
    [(array([0, 1, 2]), array([0, 1, 2]))]
    """

    n_splits = 1

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Return the one split.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Samples.
        y : object
            Ignored.
        groups : object
            Ignored.

        Yields
        ------
        train, test : ndarray of shape (n_samples,), int
            All indices, twice.
        """
        n_samples = n_entries(indexable(X)[0])
        yield np.arange(n_samples), np.arange(n_samples)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
            1.
        """
        return self.n_splits


def one_standard_error(cv_results: Mapping[str, Any]) -> int:
    """Return the first candidate whose stability is within one standard error of the best.

    For ``refit=`` of scikit-learn's searches with ``scoring=StabilityScorer(details=True)``.
    Put the values of a grid in the order of preference, the largest `n_clusters` first, say: the
    first of those that are as good as the best is taken. Grids with several parameters run
    through the values of the last one first, in the order of the names.

    Parameters
    ----------
    cv_results : dict
        `cv_results_` of a search.

    Returns
    -------
    int
        The candidate, `best_index_` of the search.

    Raises
    ------
    TypeError
        If they are no dict.
    ValueError
        If the search was not scored so, or all of its scores are NaN.

    See Also
    --------
    StabilityScorer : Computes stabilities and their standard errors.

    Notes
    -----
    A search with a function for `refit` has `best_params_`, `best_index_` and `best_estimator_`,
    but no `best_score_`: see ``cv_results_["mean_test_stability"][search.best_index_]``. Its
    `score` raises an error.

    Examples
    --------
    >>> from nmfcluster.model_selection import one_standard_error
    >>> one_standard_error({
    ...     "mean_test_stability": [0.2, 0.6, 0.5, 0.62],
    ...     "mean_test_stability_se": [0.02, 0.03, 0.03, 0.04],
    ... })
    1
    """
    if not isinstance(cv_results, Mapping):
        raise TypeError(f"cv_results must be a dict, that of a search, got {shown(cv_results)}.")
    names = ("mean_test_stability", "mean_test_stability_se")
    missing = [name for name in names if name not in cv_results]
    if missing:
        raise ValueError(
            f"cv_results must hold {missing[0]!r}: it is that of a search with "
            "scoring=StabilityScorer(details=True)."
        )
    means, errors = (np.asarray(cv_results[name], dtype=float) for name in names)
    if np.isnan(means).all():
        raise ValueError("cv_results must hold a stability; all are NaN.")
    best = int(np.nanargmax(means))
    return int(np.flatnonzero(means >= means[best] - errors[best])[0])
