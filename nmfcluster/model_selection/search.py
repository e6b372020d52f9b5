"""What a search needs: a split, and scorers that fit copies of a clusterer."""

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

from nmfcluster._compat import N_JOBS, Interval
from nmfcluster._utils.parallel import attempted, shared_out
from nmfcluster._utils.validation import warn
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.model_selection.refits import (
    Samples,
    check_whole,
    n_samples_of,
    read_samples,
)

#: the parameters that all scorers have which fit copies
OF_COPIES: dict[str, list[Any]] = {
    "details": ["boolean"],
    "fit_params": [dict, None],
    "n_jobs": N_JOBS,
    "random_state": [Interval(Integral, 0, None, closed="left")],
}


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
        n_samples = n_samples_of(indexable(X)[0])
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


class CopyFailedError(Exception):
    """Says which copy cannot be fitted, or does not predict; its cause says why."""


class RoutedScorer(BaseEstimator):
    """A scorer that asks scikit-learn's metadata routing for what it takes, by name."""

    _asked: ClassVar[tuple[str, ...]] = ("constraints",)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing.

        Returns
        -------
        MetadataRequest
            Constraints, and sample weights where the scorer fits copies; whether a copy is given
            them is decided by what the estimator requests for `fit`.
        """
        request = MetadataRequest(owner=type(self).__name__)
        for name in self._asked:
            request.score.add_request(param=name, alias=True)
        return request


class ClusterScorer(RoutedScorer):
    """A scorer for ``scoring=`` of scikit-learn's searches that fits copies of a clusterer.

    A class names what it returns in `_names`, the score first, and computes that in `_scored`.
    """

    _names: ClassVar[tuple[str, ...]]

    _asked = ("constraints", "sample_weight")

    def __init__(
        self,
        details: bool,
        fit_params: dict[str, Any] | None,
        n_jobs: int | None,
        random_state: int,
    ) -> None:
        self.details = details
        self.fit_params = fit_params
        self.n_jobs = n_jobs
        self.random_state = random_state

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
            Fitted to all samples, as a search hands it over, or not fitted.
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples, ...)
            All samples; of a pairwise estimator, one with ``affinity="precomputed"`` or
            ``metric="precomputed"`` say, all similarities, or distances.
        y : object, default=None
            Cut like the samples and given to `fit` of copies, as a search does.
        sample_weight : array-like of shape (n_samples,), default=None
            Given to `fit` of copies.
        constraints : PairwiseConstraints, default=None
            Given to `fit` of copies.
        **metadata : dict
            Anything else with an entry for every sample, given to `fit` of copies.

        Returns
        -------
        float or dict
            The score, or with `details` a dict of it and of what it is made of. All are NaN where
            a copy cannot be fitted.

        Raises
        ------
        TypeError
            If the estimator is of no kind that is scored, or something is given to `fit` twice.
        ValueError
            If a parameter is not as described; if `X` is not all of the samples that the estimator
            was fitted on, or of a pairwise estimator not symmetric; if there are too few samples;
            if `fit_params` are not aligned with the samples.

        Warns
        -----
        FitFailedWarning
            If a copy cannot be fitted.
        """
        self._validate_params()
        name = type(self).__name__
        (X,) = indexable(X)
        handed = {
            "sample_weight": sample_weight,
            "constraints": constraints,
            **metadata,
        }
        advice = f"{name} needs all samples: give the search cv=FullSampleSplit()"
        samples = read_samples(estimator, X, y, handed, self.fit_params or {}, advice)
        if samples.pairs:
            check_whole(samples, f"X ({advice})")
        try:
            details = self._scored(estimator, samples)
        except CopyFailedError as failure:
            error = failure.__cause__
            why = f"{type(error).__name__}: {error}"
            warn(f"{name}: {failure} failed; the score is nan. {why}", FitFailedWarning)
            details = dict.fromkeys(self._names, np.nan)
        return details if self.details else details[self._names[0]]

    def _scored(self, estimator: Any, samples: Samples) -> dict[str, float]:
        """Return the score and what it is made of."""
        raise NotImplementedError

    def _generator(self, *key: int) -> np.random.Generator:
        """Return a random generator: that of a copy by its number, another one without."""
        seed = int(self.random_state)
        return np.random.default_rng((seed, *key) if key else seed)

    def _of_copies(
        self,
        task: Callable[..., Any],
        common: tuple[Any, ...],
        calls: Sequence[tuple[Any, ...]],
        what: str,
        rest: str = "",
    ) -> list[Any]:
        """Return what a task returns for every call, each with a generator of its own.

        The first error is that of the score: `what` and `rest` stand before and behind the number
        of the call that failed.
        """
        seeded = [(*call, self._generator(b)) for b, call in enumerate(calls)]
        results = shared_out(attempted, (task, *common), seeded, self.n_jobs)
        for b, result in enumerate(results):
            if isinstance(result, Exception):
                raise CopyFailedError(f"{what} {b} of {len(results)}{rest}") from result
        return results

    def _accept_sample_weight(self) -> bool:
        return True  # searches of scikit-learn >= 1.7 call this
