"""What the scorers that fit copies share: how a search calls them, and how a copy fails."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

import nmfcluster.model_selection.checks as checks
from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._compat import N_JOBS, Documented, StrOptions
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.model_selection.copies import Samples

Score = TypeVar("Score")  # float, or with `details` a dict of floats

#: the parameters that all of them have, besides `random_state`
OF_COPIES: dict[str, list[Any]] = {
    "details": ["boolean"],
    "fit_params": [dict, None],
    "error_score": [StrOptions({"raise"}), Real],
    "n_jobs": N_JOBS,
}


class CopyFailedError(Exception):
    """A copy cannot be fitted, or does not predict: `error` says why, `where` which one."""

    def __init__(self, error: Exception, where: str) -> None:
        super().__init__(where)
        self.error, self.where = error, where


class ClusterScorer(Documented, BaseEstimator, Generic[Score]):
    """A scorer for ``scoring=`` of scikit-learn's searches that fits copies of a clusterer.

    A class names what it returns in `_names`, the score first, and computes that in `_scored`.
    """

    _names: ClassVar[tuple[str, ...]]
    _drawn: ClassVar[str]  # what `random_state` determines
    _asks_pairs: ClassVar[bool] = False  # refuses to score without constraints

    details: bool
    fit_params: dict[str, Any] | None
    error_score: str | float
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
    ) -> Score:
        """Return the score of an estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted to all samples, as a search hands it over, or not fitted.
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples, ...)
            All samples; of a pairwise estimator, one with ``affinity="precomputed"`` say, all
            similarities.
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
            The score, or with `details` a dict of it and of what it is made of.

        Raises
        ------
        TypeError
            If the estimator is of no kind that is scored, has no `predict` where it is needed, or
            something is given to `fit` twice.
        ValueError
            If a parameter is not as described; if `X` is not all of the samples that the estimator
            was fitted on, or of a pairwise estimator not symmetric; if there are too few samples;
            if `fit_params` are not aligned with the samples.
        """
        self._validate_params()
        self._check_random_state()
        name = type(self).__name__
        (X,) = indexable(X)
        n_samples = checks.n_entries(X)
        pairwise = checks.is_pairwise(estimator, self._must_predict())
        advice = f"{name} needs all samples: give the search cv=FullSampleSplit()"
        checks.require_all_samples(estimator, X, pairwise, advice)
        if y is not None:
            checks.require_entries(y, n_samples, "y")

        handed = {"sample_weight": sample_weight, "constraints": constraints, **metadata}
        arguments = checks.arguments_of_fit(
            estimator, handed, self.fit_params or {}, n_samples, name
        )
        if not self._asks_pairs:
            checks.warn_of_lost_constraints(estimator, arguments, name)

        try:
            details = self._scored(estimator, Samples(X, y, arguments, pairwise))
        except CopyFailedError as failure:
            details = self._failed(failure.error, failure.where)
        score: Any = details if self.details else details[self._names[0]]
        return score

    def _scored(self, estimator: Any, samples: Samples) -> dict[str, float]:
        """Return the score and what it is made of."""
        raise NotImplementedError

    def _must_predict(self) -> bool:
        """Return whether the estimator has to predict, even of features."""
        return False

    def _check_random_state(self) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral) or isinstance(seed, bool | np.timedelta64) or seed < 0:
            raise ValueError(
                f"random_state of {type(self).__name__} must be an int, 0 or larger, so that all "
                f"candidates of a search are scored on the same {self._drawn}; got {seed!r}."
            )

    def _generator(self, *key: int) -> np.random.Generator:
        """Return a random generator: that of a copy by its number, another one without."""
        seed = int(self.random_state)
        return np.random.default_rng((seed, *key) if key else seed)

    def _of_copies(
        self,
        task: Callable[..., Any],
        common: tuple[Any, ...],
        calls: Iterable[tuple[Any, ...]],
        what: str,
        rest: str = "",
    ) -> list[Any]:
        """Return what a task returns for every call, each with a generator of its own.

        A task returns an error where a copy fails. The first one is raised as `CopyFailedError`:
        `what` and `rest` stand before and behind the number of the call that failed.
        """
        tasks = [(*call, self._generator(b)) for b, call in enumerate(calls)]
        found = shared_out(task, common, tasks, self.n_jobs)
        for b, result in enumerate(found):
            if isinstance(result, Exception):
                raise CopyFailedError(result, f"{what} {b} of {len(found)}{rest}")
        return found

    def _failed(self, error: Exception, where: str) -> dict[str, float]:
        """Return the scores for an estimator that fails somewhere, or raise its error."""
        where = f"{type(self).__name__}: {where}"
        if self.error_score == "raise":
            error.add_note(where)
            raise error
        score = float(self.error_score)
        warn(
            f"{where} failed; the score is {score}. {type(error).__name__}: {error}",
            FitFailedWarning,
        )
        return dict.fromkeys(self._names, score)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing.

        Returns
        -------
        MetadataRequest
            By default constraints and sample weights; whether a copy is given them is decided by
            what the estimator requests for `fit`.
        """
        return copy.deepcopy(getattr(self, "_metadata_request", None)) or score_request(
            self, {"constraints": True, "sample_weight": True}
        )

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Change what the scorer asks of scikit-learn's metadata routing.

        Each of `requests` is True, False, None, or the name that it goes by in the search. Those
        that are not named stay as they were.

        Returns
        -------
        ClusterScorer
            Itself.

        Examples
        --------
        >>> from nmfcluster.model_selection import StabilityScorer
        >>> StabilityScorer().set_score_request(sample_weight=False).get_metadata_routing()
        {'score': {'constraints': True, 'sample_weight': False}}
        """
        before = self.get_metadata_routing().score.requests
        # clone copies an attribute of this name
        self._metadata_request = score_request(self, {**before, **requests})
        return self

    def _accept_sample_weight(self) -> bool:
        return True  # searches of scikit-learn >= 1.7 call this


def score_request(scorer: Any, aliases: Mapping[str, bool | str | None]) -> MetadataRequest:
    """Return what a scorer asks of scikit-learn's metadata routing."""
    request = MetadataRequest(owner=type(scorer).__name__)
    for name, alias in aliases.items():
        request.score.add_request(param=name, alias=alias)
    return request
