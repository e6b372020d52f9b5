"""What all scorers of clusterers share: how they are called by a search, and how they fail."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

import nmfcluster.model_selection.checks as checks
import nmfcluster.model_selection.routing as routing
from nmfcluster._arrays.arguments import warn
from nmfcluster._compat import N_JOBS, Documented, Interval, RealNotInt, StrOptions
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.model_selection.copies import Samples

Score = TypeVar("Score")  # float, or with `details` a dict of floats

#: the parameters of every scorer, and of those that fit copies
DETAILS: dict[str, list[Any]] = {"details": ["boolean"]}
OF_COPIES: dict[str, list[Any]] = {
    **DETAILS,
    "fit_params": [dict, None],
    "error_score": [StrOptions({"raise"}), Real],
    "n_jobs": N_JOBS,
}
SUBSAMPLE_SIZE: list[Any] = [
    Interval(RealNotInt, 0, 1, closed="neither"),
    Interval(Integral, 2, None, closed="left"),
]


class CopyFailedError(Exception):
    """A copy cannot be fitted, or does not predict: `error` says why, `where` which one."""

    def __init__(self, error: Exception, where: str) -> None:
        super().__init__(where)
        self.error, self.where = error, where


class MisusedError(Exception):
    """The scorer cannot score any candidate: `error` says why, and has to reach the user."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class ClusterScorer(Documented, BaseEstimator, Generic[Score]):
    """A scorer of clusterers for ``scoring=`` of scikit-learn's searches.

    A class names what it returns in `_names`, the score first, and computes that in `_scored`.
    """

    _names: ClassVar[tuple[str, ...]]
    _drawn: ClassVar[str] = "samples"  # what `random_state` determines
    _must_predict: ClassVar[bool] = True
    _asks_pairs: ClassVar[bool] = False  # refuses to score without constraints, given anywhere

    # what a scorer has that has no such parameter
    details: bool = False
    fit_params: dict[str, Any] | None = None
    error_score: str | float = np.nan
    n_jobs: int | None = None
    random_state: int = 0

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
            Fitted to all samples, as a search hands it over. A scorer that fits copies alone takes
            one that is not fitted, too.
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
        self._check_parameters()
        self._check_random_state()
        (X,) = indexable(X)
        n_samples = checks.n_entries(X)
        self._check_number(n_samples)
        try:
            pairwise = checks.is_pairwise(estimator, self._must_predict)
            table = self._read(estimator, X, pairwise)
            checks.require_all_samples(estimator, X, pairwise, type(self).__name__)
        except (TypeError, ValueError) as error:
            misuse: Any = checks.raised(error)
            return misuse
        if y is not None:
            checks.require_entries(y, n_samples, "y")
        handed = {"sample_weight": sample_weight, "constraints": constraints, **metadata}
        arguments = self._arguments(estimator, handed, n_samples)
        try:
            details = self._scored(estimator, Samples(X, y, arguments, pairwise), table)
        except MisusedError as misused:
            misuse = checks.raised(misused.error)
            return misuse
        except CopyFailedError as failure:
            details = self._failed(failure.error, failure.where)
        found: Any = details if self.details else details[self._score_name()]
        return found

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        """Return the score and what it is made of; raise the errors above where there is none.

        Parameters
        ----------
        estimator : estimator
        samples : Samples
        table : object
            What `_read` returned.
        """
        raise NotImplementedError

    def _score_name(self) -> str:
        return self._names[0]

    def _check_parameters(self) -> None:
        """Raise if a parameter is not as described, where its kind alone does not tell."""

    def _check_number(self, n_samples: int) -> None:
        """Raise if there are too few samples for the parameters."""

    def _read(self, estimator: Any, X: Any, pairwise: bool) -> Any:
        """Return the samples as the score needs them; raise where it cannot be computed of them."""
        return X

    def _arguments(self, estimator: Any, handed: dict[str, Any], n_samples: int) -> dict[str, Any]:
        """Return what `fit` of copies takes besides X and y."""
        own, name = self.fit_params or {}, type(self).__name__
        arguments = routing.arguments_of_fit(estimator, handed, own, n_samples, name)
        if not self._asks_pairs:
            routing.warn_of_lost_constraints(estimator, arguments, name)
        return arguments

    def _check_random_state(self) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral) or isinstance(seed, bool | np.timedelta64) or seed < 0:
            raise ValueError(
                f"random_state of {type(self).__name__} must be an int, 0 or larger, so that all "
                f"candidates of a search are scored on the same {self._drawn}; got {seed!r}."
            )

    def _require_success(self, results: Sequence[Any], what: str, rest: str = "") -> None:
        """Raise `CopyFailedError` for the first result that is an error, of so many tasks."""
        for b, result in enumerate(results):
            if isinstance(result, Exception):
                raise CopyFailedError(result, f"{what} {b} of {len(results)}{rest}")

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
        return copy.deepcopy(getattr(self, "_metadata_request", None)) or routing.score_request(
            type(self).__name__, {"constraints": True, "sample_weight": True}
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
        self._metadata_request = routing.score_request(type(self).__name__, {**before, **requests})
        return self

    def _accept_sample_weight(self) -> bool:
        return True  # searches of scikit-learn >= 1.7 call this


def count_of(size: float | int, n_samples: int) -> int:
    """Return the number of samples in a subsample; raise unless it is one."""
    count = int(size) if isinstance(size, Integral) else round(size * n_samples)
    if not 2 <= count < n_samples:
        raise ValueError(
            f"subsample_size={size} takes {count} of {n_samples} samples; it must take at "
            "least 2, and fewer than all."
        )
    return count
