"""The split and the base class of scorers that refit a clusterer in a search."""

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

from nmfcluster._compat import N_JOBS, Interval
from nmfcluster._utils.parallel import run_calls, try_on_one_thread
from nmfcluster._utils.validation import warn
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.model_selection.refits import (
    Samples,
    check_symmetric,
    get_n_samples,
    read_samples,
)

#: constraints of the parameters of `RefitScorer`
REFIT_PARAMETERS: dict[str, list[Any]] = {
    "details": ["boolean"],
    "fit_params": [dict, None],
    "n_jobs": N_JOBS,
    "random_state": [Interval(Integral, 0, None, closed="left")],
}


class FullSampleSplit(BaseCrossValidator):
    """A single split, whose training and test sets hold all samples.

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
        n_samples = get_n_samples(indexable(X)[0])
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


class RefitFailedError(Exception):
    """Names the refit that failed; its cause is the error of the clusterer."""


class RoutedScorer(BaseEstimator):
    """A scorer that requests metadata by scikit-learn's metadata routing."""

    _metadata: ClassVar[tuple[str, ...]] = ("constraints",)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer requests by scikit-learn's metadata routing.

        Returns
        -------
        MetadataRequest
            Constraints, and sample weights if the scorer refits the estimator. Whether they are
            passed to `fit` depends on what the estimator requests.
        """
        request = MetadataRequest(owner=type(self).__name__)
        for name in self._metadata:
            request.score.add_request(param=name, alias=True)
        return request


class RefitScorer(RoutedScorer):
    """A scorer for ``scoring=`` of scikit-learn's searches that refits a clusterer.

    A subclass lists the details in `_details`, the score first, and computes them in `_score`.
    """

    _details: ClassVar[tuple[str, ...]]
    _metadata = ("constraints", "sample_weight")
    details: bool
    fit_params: dict[str, Any] | None
    n_jobs: int | None
    random_state: int

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        constraints: PairwiseConstraints | None = None,
        **metadata: Any,
    ) -> Any:
        """Return the score of an estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted to all samples, as a search passes it, or not fitted.
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples, ...)
            All samples. For a pairwise estimator, for example one with ``affinity="precomputed"``
            or ``metric="precomputed"``, all similarities or distances.
        y : object, default=None
            Passed to `fit` of clones, cut like the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to `fit` of clones.
        constraints : PairwiseConstraints, default=None
            Passed to `fit` of clones.
        **metadata : dict
            Anything else with an entry for every sample, passed to `fit` of clones.

        Returns
        -------
        float or dict
            The score, or with `details` a dict of the score and its details. All are NaN if a clone
            cannot be fitted.

        Raises
        ------
        TypeError
            If the estimator is of a kind that cannot be scored, or an argument of `fit` is passed
            twice.
        ValueError
            If a parameter is not as described; if `X` does not hold all samples that the estimator
            was fitted to, or is not symmetric for a pairwise estimator; if there are too few
            samples; if `fit_params` are not aligned with the samples.

        Warns
        -----
        FitFailedWarning
            If a clone cannot be fitted.
        """
        self._validate_params()
        name = type(self).__name__
        (X,) = indexable(X)
        named = {"sample_weight": sample_weight, "constraints": constraints}
        advice = f"{name} needs all samples: give the search cv=FullSampleSplit()"
        samples = read_samples(
            estimator, X, y, named | metadata, self.fit_params or {}, advice
        )
        if samples.pairwise:
            check_symmetric(samples.X, samples.pairwise, f"X ({advice})")
        try:
            values = self._score(estimator, samples)
        except RefitFailedError as failure:
            error = failure.__cause__
            why = f"{type(error).__name__}: {error}"
            warn(f"{name}: {failure} failed; the score is nan. {why}", FitFailedWarning)
            values = [np.nan] * len(self._details)
        if not self.details:
            return values[0]
        return dict(zip(self._details, values, strict=True))

    def _score(self, estimator, samples: Samples) -> list[float]:
        """Return the score and the other details."""
        raise NotImplementedError

    def _run_refits(
        self,
        task: Callable[..., Any],
        common,
        calls,
        noun: str,
        suffix: str = "",
    ):
        """Return the results of a task for every call, each with a random generator of its own.

        The first error is that of the score. `noun` and `suffix` are put before and after the
        number of the call that failed.
        """
        seed = int(self.random_state)
        calls = [
            (*call, np.random.default_rng((seed, i))) for i, call in enumerate(calls)
        ]
        results = run_calls(try_on_one_thread, (task, *common), calls, self.n_jobs)
        for i, result in enumerate(results):
            if isinstance(result, Exception):
                failed = f"{noun} {i} of {len(results)}{suffix}"
                raise RefitFailedError(failed) from result
        return results

    def _accept_sample_weight(self) -> bool:
        return True  # searches of scikit-learn >= 1.7 call this
