"""A scorer that asks how little clusters depend on the samples that they were made from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Literal, TypeVar, overload

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

import nmfcluster.model_selection.checks as checks
import nmfcluster.model_selection.routing as routing
from nmfcluster._arrays.arguments import warn
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.labels import encode
from nmfcluster._compat import N_JOBS, Documented, Interval, RealNotInt, StrOptions
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics.agreement import (
    disagreements,
    jackknife,
    mean_of_pairs,
    rand_indices,
    shuffled,
)
from nmfcluster.model_selection.copies import Samples, labels_by_copy

__all__ = ["StabilityScorer"]

Score = TypeVar("Score")  # float, or with `details` a dict of floats


def _ratio(D: np.ndarray, C: np.ndarray) -> float:
    chance = mean_of_pairs(C)
    return 1 - mean_of_pairs(D) / chance if chance > 0 else 0.0


# The score, of the disagreements of all pairs of copies, and of those by chance.
_ADJUSTED: dict[str | None, Callable[..., float]] = {
    "difference": lambda D, C: mean_of_pairs(C) - mean_of_pairs(D),
    "ratio": _ratio,
    None: lambda D, C: 1 - mean_of_pairs(D),
}

_RAND = "rand"
_SHARES = ("largest_share", "smallest_share", "n_clusters")
_DETAILS = ("stability", "stability_se", "disagreement", "disagreement_se", "chance", *_SHARES)


class StabilityScorer(Documented, BaseEstimator, Generic[Score]):
    r"""Score a clusterer by how little its clusters depend on the samples that it is fitted on.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted on random subsamples, and each predicts the clusters of all samples. The
    score is high where they agree more than chance would make them,

    .. math:: \bar c - \bar d ,

    where d is the share of samples that two copies place differently, the `disagreement` of eq. 9
    of [1]_, as a mean over all pairs, and c is the same after the labels of each copy have been
    shuffled. So `n_clusters`, or any other parameter of anything that predicts, is chosen without
    labels.

    Parameters
    ----------
    n_subsamples : int, default=20
        Number of subsamples, 3 at least.
    subsample_size : float or int, default=0.2
        Samples in a subsample: a share of all between 0 and 1, or a number. A share is rounded.
    adjust : {"difference", "ratio", "rand"} or None, default="difference"
        How d is compared with chance. "difference": c - d. "ratio": 1 - d / c, as in [2]_, but
        with labels shuffled within each solution. "rand": instead of either, the mean adjusted
        Rand index of two copies. None: 1 - d, with which numbers of clusters cannot be compared.
    max_share : float, default=0.95
        The score is at most 0, that of chance, where the largest cluster holds more than this
        share of the samples, on average: all samples in one cluster are perfectly stable, and
        worth nothing.
    details : bool, default=False
        Whether to return the score in a dict, with what it is made of, for searches with
        ``refit="stability"`` or ``refit=one_standard_error``. `cv_results_` then holds
        "mean_test_stability", "mean_test_stability_se" and so on.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`, as ``{"constraints": pairs}``: one entry for each
        sample, cut like the samples. Not for what metadata routing hands over.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted or does not predict; a warning
        says why. "raise": the error is raised.
    n_jobs : int, default=None
        Number of copies that are fitted at a time. Use this or `n_jobs` of the search.
    random_state : int, default=0
        Determines the subsamples. It has to be an integer, so that all candidates of a search are
        scored on the same ones.

    See Also
    --------
    FullSampleSplit : The split for it.
    one_standard_error : Chooses the first candidate that is as good as the best.
    nmfcluster.metrics.disagreement : How differently two clusterings place the samples.
    nmfcluster.display.StabilityDisplay : Draws what a search found.

    Notes
    -----
    A candidate costs B fits of a subsample, B predictions of all samples, the fit of the search
    itself on all samples, and B (B - 1) matchings in O(n + k^3).

    Why c - d is the default: on Gaussian blobs, a number of clusters that joins neighbours is often
    as stable as the right one, d near 0 for both. A ratio is then 1 for both; a difference is
    larger for more clusters. Subsamples of a fifth, the size in [1]_, told numbers of
    clusters apart no worse than halves, the size in [2]_, with a difference, and better with a
    ratio. For other parameters than `n_clusters`, "ratio" does not prefer clusters of equal sizes.

    Where `random_state` of the estimator, or of a step in it, is None, every copy is given
    a seed of its own; an integer is kept. A fit uses one thread, so that the score does not depend
    on `n_jobs`.

    A search turns the errors of a scorer into a score of NaN and a warning, unless its own
    `error_score` is "raise". Among equal scores it takes the first.

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 18, 2005.
    .. [2] T. Lange, M. L. Braun, V. Roth, J. M. Buhmann. Stability-based model selection.
       NIPS 15, 2003.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import FullSampleSplit, StabilityScorer
    >>> X, _ = make_blobs(200, centers=4, random_state=1)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [2, 3, 4, 5, 6]},
    ...     scoring=StabilityScorer(),
    ...     cv=FullSampleSplit(),
    ...     error_score="raise",
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_subsamples": [Interval(Integral, 3, None, closed="left")],
        "subsample_size": [
            Interval(RealNotInt, 0, 1, closed="neither"),
            Interval(Integral, 2, None, closed="left"),
        ],
        "adjust": [StrOptions({"difference", "ratio", _RAND}), None],
        "max_share": [Interval(Real, 0, 1, closed="right")],
        "details": ["boolean"],
        "fit_params": [dict, None],
        "error_score": [StrOptions({"raise"}), Real],
        "n_jobs": N_JOBS,
    }

    @overload
    def __init__(
        self: StabilityScorer[float],
        n_subsamples: int = ...,
        *,
        subsample_size: float | int = ...,
        adjust: str | None = ...,
        max_share: float = ...,
        details: Literal[False] = ...,
        fit_params: dict[str, Any] | None = ...,
        error_score: str | float = ...,
        n_jobs: int | None = ...,
        random_state: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: StabilityScorer[dict[str, float]],
        n_subsamples: int = ...,
        *,
        subsample_size: float | int = ...,
        adjust: str | None = ...,
        max_share: float = ...,
        details: Literal[True],
        fit_params: dict[str, Any] | None = ...,
        error_score: str | float = ...,
        n_jobs: int | None = ...,
        random_state: int = ...,
    ) -> None: ...
    def __init__(
        self,
        n_subsamples: int = 20,
        *,
        subsample_size: float | int = 0.2,
        adjust: str | None = "difference",
        max_share: float = 0.95,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_subsamples = n_subsamples
        self.subsample_size = subsample_size
        self.adjust = adjust
        self.max_share = max_share
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
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
    ) -> Score:
        """Return the stability of an estimator.

        Parameters
        ----------
        estimator : estimator with `predict`
            Copies of it are fitted; it need not be fitted itself.
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples, ...)
            All samples; of a pairwise estimator, one with ``affinity="precomputed"`` say, all
            similarities.
        y : object, default=None
            Cut like the samples and given to `fit`, as a search does.
        sample_weight : array-like of shape (n_samples,), default=None
            Given to `fit`.
        constraints : PairwiseConstraints, default=None
            Given to `fit`.
        **metadata : dict
            Anything else with an entry for every sample, given to `fit`.

        Returns
        -------
        float or dict
            The score. With `details` a dict of

            - "stability", the score, and "stability_se", its standard error over subsamples;
            - "disagreement", the mean d, and "disagreement_se"; "chance", the mean c;
            - "largest_share" and "smallest_share" of samples in a cluster, and "n_clusters", those
              that are not empty: means over the copies.

        Raises
        ------
        TypeError
            If the estimator has no `predict`, or something is given to `fit` twice.
        ValueError
            If a parameter is not as described; if `X` is not all of the samples that the estimator
            was fitted on, or of a pairwise estimator not symmetric; if a subsample would hold
            fewer than 2 samples, or all of them; if `fit_params` are not aligned with the samples.
        """
        self._validate_params()
        self._check_random_state()
        (X,) = indexable(X)
        n_samples = checks.n_entries(X)
        size = self._size(n_samples)
        try:
            pairwise = checks.is_pairwise(estimator)
            checks.require_all_samples(estimator, X, pairwise)
        except (TypeError, ValueError) as error:
            misuse: Any = checks.raised(error)
            return misuse
        if y is not None:
            checks.require_entries(y, n_samples, "y")
        handed = {"sample_weight": sample_weight, "constraints": constraints, **metadata}
        arguments = routing.arguments_of_fit(estimator, handed, self.fit_params or {}, n_samples)
        routing.warn_of_lost_constraints(estimator, arguments)
        samples = Samples(X, y, arguments, pairwise)
        seed = int(self.random_state)
        labellings = shared_out(
            labels_by_copy,
            (estimator, samples, size),
            lambda: ((np.random.default_rng((seed, b)),) for b in range(self.n_subsamples)),
            self.n_jobs,
        )
        for b, labels in enumerate(labellings):
            if isinstance(labels, Exception):
                return self._failed(labels, b, size, n_samples)
        codes = np.ascontiguousarray(encode(labellings, "predictions")[0].T)
        details: Any = self._details(codes)
        return details if self.details else details["stability"]

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing.

        Returns
        -------
        MetadataRequest
            By default constraints and sample weights; whether a copy is given them is decided by
            what the estimator requests for `fit`.
        """
        return copy.deepcopy(getattr(self, "_metadata_request", None)) or routing.score_request(
            "StabilityScorer", {"constraints": True, "sample_weight": True}
        )

    def set_score_request(self, **requests: bool | str | None) -> StabilityScorer:
        """Change what the scorer asks of scikit-learn's metadata routing.

        Each of `requests` is True, False, None, or the name that it goes by in the search. Those
        that are not named stay as they were.

        Returns
        -------
        StabilityScorer
            Itself.

        Examples
        --------
        >>> from nmfcluster.model_selection import StabilityScorer
        >>> StabilityScorer().set_score_request(sample_weight=False).get_metadata_routing()
        {'score': {'constraints': True, 'sample_weight': False}}
        """
        before = self.get_metadata_routing().score.requests
        # clone copies an attribute of this name
        self._metadata_request = routing.score_request("StabilityScorer", {**before, **requests})
        return self

    def _accept_sample_weight(self) -> bool:
        return True  # searches of scikit-learn >= 1.7 call this

    def _check_random_state(self) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral) or isinstance(seed, bool | np.timedelta64) or seed < 0:
            raise ValueError(
                "random_state of StabilityScorer must be an int, 0 or larger, so that all "
                f"candidates of a search are scored on the same subsamples; got {seed!r}."
            )

    def _size(self, n_samples: int) -> int:
        """Return the number of samples in a subsample."""
        size = self.subsample_size
        whole = isinstance(size, Integral)
        count = int(size) if whole else round(size * n_samples)
        if not 2 <= count < n_samples:
            raise ValueError(
                f"subsample_size={size} takes {count} of {n_samples} samples; it must take at "
                "least 2, and fewer than all."
            )
        return count

    def _failed(self, error: Exception, b: int, size: int, n_samples: int) -> Any:
        """Return the score for an estimator that fails on a subsample, or raise its error."""
        where = (
            f"StabilityScorer: subsample {b} of {self.n_subsamples}, with {size} of {n_samples} "
            "samples (subsample_size)"
        )
        if self.error_score == "raise":
            error.add_note(where)
            raise error
        score = float(self.error_score)
        warn(
            f"{where} failed; the score is {score}. {type(error).__name__}: {error}",
            FitFailedWarning,
        )
        return dict.fromkeys(_DETAILS, score) if self.details else score

    def _details(self, codes: np.ndarray) -> dict[str, float]:
        """Return the score and what it is made of, from labellings (n_subsamples, n_samples)."""
        rng = np.random.default_rng(int(self.random_state))
        D, C = disagreements(codes), disagreements(shuffled(codes, rng))
        if self.adjust == _RAND:
            stability, error = jackknife(mean_of_pairs, rand_indices(codes))
        else:
            stability, error = jackknife(_ADJUSTED[self.adjust], D, C)
        sizes = [np.bincount(labels[labels >= 0]) for labels in codes]
        shares = [counts / codes.shape[1] for counts in sizes]
        largest = float(np.mean([share.max(initial=0) for share in shares]))
        if largest > self.max_share:
            stability, error = min(stability, 0.0), 0.0
        smallest = float(np.mean([share.min(initial=1) if len(share) else 0 for share in shares]))
        n_clusters = float(np.mean([len(share) for share in shares]))
        values = (stability, error, *jackknife(mean_of_pairs, D), mean_of_pairs(C))
        return dict(zip(_DETAILS, (*values, largest, smallest, n_clusters), strict=True))
