"""Choosing parameters without the truth."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from nmfcluster._arrays.labels import encode
from nmfcluster._arrays.storage import require_symmetric
from nmfcluster._compat import Interval, RealNotInt, StrOptions, take_samples
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics.agreement import disagreements, jackknife, mean_of_pairs, shuffled

__all__ = ["ConstraintScorer", "FullSampleSplit", "StabilityScorer", "one_standard_error"]


class ConstraintScorer(BaseEstimator):
    """Score a clusterer by the constraints among samples that it was not fitted on.

    For ``scoring=`` of scikit-learn's searches: `predict` is called on the test part of a split,
    and the share of the constraints with both samples in that part which the predicted labels
    satisfy is returned. So `alpha`, `beta` and `n_clusters` can be chosen without labels.

    The scorer wants the constraints that go with the test part. With metadata routing enabled
    they come as ``constraints=``; without, give them a second time as `y`:
    ``search.fit(X, pairs, constraints=pairs)``. Estimators of this package ignore `y`.

    Parameters
    ----------
    balanced : bool, default=False
        Whether must-links and cannot-links count equally: the mean of the two shares instead
        of the share of all. With many clusters most cannot-links are satisfied by chance.

    See Also
    --------
    nmfcluster.constraints.PairwiseConstraints : The constraints, split with the samples.

    Notes
    -----
    K-fold splits keep only 1/k^2 of the pairs inside a test part. ``ShuffleSplit(test_size=0.5)``
    keeps a quarter; `GroupKFold` with ``groups=pairs.components()`` keeps every must-link whole.

    An `n_clusters` that the constraints do not allow makes a fit fail, and its score NaN; with
    ``contradictions="ignore"`` in the estimator it is scored like others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV, ShuffleSplit
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> from nmfcluster.model_selection import ConstraintScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    >>> search = GridSearchCV(
    ...     SSNMFClusterer(n_clusters=3, random_state=0),
    ...     {"n_clusters": [3, 4, 5]},
    ...     scoring=ConstraintScorer(balanced=True),
    ...     cv=ShuffleSplit(5, test_size=0.5, random_state=0),
    ... )
    >>> search.fit(X, pairs, constraints=pairs).best_params_
    {'n_clusters': 3}
    """

    def __init__(self, *, balanced: bool = False) -> None:
        self.balanced = balanced

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        constraints: PairwiseConstraints | None = None,
    ) -> float:
        """Return the share of satisfied constraints.

        Parameters
        ----------
        estimator : fitted estimator with `predict`
        X : array-like of shape (n_samples, n_features)
            Samples to predict.
        y : PairwiseConstraints or None, default=None
            The constraints among these samples, where `constraints` is not given.
        constraints : PairwiseConstraints, default=None
            The constraints among these samples.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        TypeError
            If no constraints are given.
        ValueError
            If there is no constraint among the samples.
        """
        pairs = y if constraints is None else constraints
        if not isinstance(pairs, PairwiseConstraints):
            raise TypeError(
                "ConstraintScorer needs constraints: give a PairwiseConstraints as y too, "
                "search.fit(X, pairs, constraints=pairs), or enable metadata routing; got "
                f"{type(pairs).__name__}."
            )
        must, cannot = pairs.satisfied(estimator.predict(X))
        parts = [part for part in (must, cannot) if len(part)]
        if not parts:
            raise ValueError(
                f"no constraint has both of its samples among these {len(pairs)}: take fewer, "
                "larger test parts, for example cv=ShuffleSplit(test_size=0.5)."
            )
        if self.balanced:
            return float(np.mean([part.mean() for part in parts]))
        return float(np.concatenate(parts).mean())

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing: the constraints.

        Returns
        -------
        MetadataRequest
        """
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="constraints", alias=True)
        return request


class FullSampleSplit(BaseCrossValidator):
    """A split that is none: all samples are for training, and all for testing.

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
        n_samples = _count(indexable(X)[0])
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


class StabilityScorer(BaseEstimator):
    r"""Score a clusterer by how little its clusters depend on the samples that it is fitted on.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted on random subsamples, and each predicts the clusters of all samples. The
    score is high where they agree more than chance would make them,

    .. math:: \bar c - \bar d ,

    with the mean over pairs of copies of the share of samples that the two place differently, the
    `disagreement` d of eq. 9 of [1]_, and c the same after their labels have been shuffled. So
    `n_clusters`, or any other parameter of anything that predicts, is chosen without labels.

    Parameters
    ----------
    n_subsamples : int, default=20
        Number of subsamples, 3 at least.
    subsample_size : float or int, default=0.2
        Samples in a subsample: a share of all between 0 and 1, or a number. A share is rounded.
    adjust : {"difference", "ratio"} or None, default="difference"
        What is made of chance. "difference": c - d. "ratio": 1 - d / c, as in [2]_, but with
        labels shuffled within each solution. None: 1 - d, with which numbers of clusters cannot be
        compared.
    max_share : float, default=0.95
        Solutions whose largest cluster holds more than this share of the samples, on
        average, count as no better than chance: their score is 0. All samples in one
        cluster is a solution that is perfectly stable, and worth nothing.
    details : bool, default=False
        Whether to return all figures instead of the score, for searches with
        ``refit="stability"`` or ``refit=one_standard_error``. `cv_results_` then holds
        "mean_test_stability", "mean_test_stability_se" and so on.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`, as ``{"constraints": pairs}``: it is cut like the
        samples, one entry for each of them. Not for what metadata routing hands over.
    error_score : "raise" or float, default=np.nan
        The score, and all figures, where a copy cannot be fitted or does not predict; a warning
        says why. "raise": the error is raised.
    n_jobs : int, default=None
        Number of copies that are fitted at a time. Use this or `n_jobs` of the search.
    random_state : int, default=0
        Where subsamples come from. It has to be an integer, so that all candidates of a search are
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
        "adjust": [StrOptions({"difference", "ratio"}), None],
        "max_share": [Interval(Real, 0, 1, closed="right")],
        "details": ["boolean"],
        "fit_params": [dict, None],
        "error_score": [StrOptions({"raise"}), Real],
        "n_jobs": [Integral, None],
    }

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
    ) -> float | dict[str, float]:
        """Return the stability of an estimator.

        Parameters
        ----------
        estimator : estimator with `predict`
            Copies of it are fitted; whether it is fitted itself does not matter.
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
        pairwise = _check_predicts(estimator)
        (X,) = indexable(X)
        n_samples = _count(X)
        size = self._size(n_samples)
        _check_all_samples(estimator, X, pairwise)
        given = {"sample_weight": sample_weight, "constraints": constraints, **metadata}
        if y is not None and _count(y) != n_samples:
            raise ValueError(
                f"y must have one entry for each of the {n_samples} samples, got {_describe(y)}."
            )
        params = self._params(estimator, given, n_samples)
        _warn_of_lost_constraints(estimator, params)
        plans = [
            np.random.default_rng((int(self.random_state), b)) for b in range(self.n_subsamples)
        ]
        # here too: threads that set limits of their own would restore each other's
        with threadpool_limits(limits=1):
            labels = Parallel(n_jobs=self.n_jobs)(
                delayed(_labels_from)(estimator, X, y, params, size, pairwise, rng) for rng in plans
            )
        for b, found in enumerate(labels):
            if isinstance(found, Exception):
                return self._failed(found, b, size, n_samples)
        figures = self._figures(np.ascontiguousarray(encode(labels, "predictions")[0].T))
        return figures if self.details else figures["stability"]

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing.

        Returns
        -------
        MetadataRequest
            By default constraints and sample weights; whether a copy is given them is decided by
            what the estimator requests for `fit`.
        """
        return copy.deepcopy(getattr(self, "_metadata_request", None)) or _requests(
            constraints=True, sample_weight=True
        )

    def set_score_request(self, **requests: bool | str | None) -> StabilityScorer:
        """Ask scikit-learn's metadata routing for `requests`, too, or for others.

        Each has a name, and True, False, None, or the name that it goes by in the search. What is
        not named stays as it was.

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
        self._metadata_request = _requests(**{**before, **requests})  # the name that clone copies
        return self

    def _accept_sample_weight(self) -> bool:
        return True  # searches of scikit-learn >= 1.7 ask

    def _check_random_state(self) -> None:
        seed = self.random_state
        if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
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

    def _params(self, estimator: Any, given: dict[str, Any], n_samples: int) -> dict[str, Any]:
        """Return what `fit` is given besides X and y, uncut."""
        given = {name: value for name, value in given.items() if value is not None}
        if get_config()["enable_metadata_routing"]:
            router = MetadataRouter(owner="StabilityScorer").add(
                estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
            )
            given = router.route_params(caller="fit", params=given)["estimator"]["fit"]
        own = self.fit_params or {}
        twice = sorted(given.keys() & own)
        if twice:
            raise TypeError(f"{twice[0]!r} is given both in fit_params and to the scorer.")
        for name, value in {**given, **own}.items():
            if not _is_scalar(value) and _count(value) != n_samples:
                raise ValueError(
                    f"{name} in fit_params must have one entry for each of the {n_samples} "
                    f"samples, to be cut like them; got {_describe(value)}."
                )
        return {**given, **own}

    def _failed(
        self, error: Exception, b: int, size: int, n_samples: int
    ) -> float | dict[str, float]:
        """Return the score for an estimator that fails on a subsample, or raise its error."""
        where = (
            f"StabilityScorer: subsample {b} of {self.n_subsamples}, with {size} of {n_samples} "
            "samples (subsample_size)"
        )
        if self.error_score == "raise":
            error.add_note(where)
            raise error
        score = float(self.error_score)
        warnings.warn(
            f"{where} failed; the score is {score}. {type(error).__name__}: {error}",
            FitFailedWarning,
            stacklevel=3,
        )
        return dict.fromkeys(_FIGURES, score) if self.details else score

    def _figures(self, codes: np.ndarray) -> dict[str, float]:
        """Return all figures of labellings, (n_subsamples, n_samples)."""
        rng = np.random.default_rng(int(self.random_state))
        D, C = disagreements(codes), disagreements(shuffled(codes, rng))
        stability, error = jackknife(_ADJUSTED[self.adjust], D, C)
        differing, spread = jackknife(mean_of_pairs, D)
        sizes = [np.bincount(labels[labels >= 0]) for labels in codes]
        shares = [counts / codes.shape[1] for counts in sizes]
        largest = float(np.mean([share.max(initial=0) for share in shares]))
        if largest > self.max_share:
            stability, error = min(stability, 0.0), 0.0
        smallest = float(np.mean([share.min(initial=1) if len(share) else 0 for share in shares]))
        found = float(np.mean([len(share) for share in shares]))
        values = (stability, error, differing, spread, mean_of_pairs(C), largest, smallest, found)
        return dict(zip(_FIGURES, values, strict=True))


_FIGURES = (
    "stability",
    "stability_se",
    "disagreement",
    "disagreement_se",
    "chance",
    "largest_share",
    "smallest_share",
    "n_clusters",
)


def _ratio(D: np.ndarray, C: np.ndarray) -> float:
    chance = mean_of_pairs(C)
    return 1 - mean_of_pairs(D) / chance if chance > 0 else 0.0


_ADJUSTED: dict[str | None, Callable[..., float]] = {
    "difference": lambda D, C: mean_of_pairs(C) - mean_of_pairs(D),
    "ratio": _ratio,
    None: lambda D, C: 1 - mean_of_pairs(D),
}


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


def _requests(**names: bool | str | None) -> MetadataRequest:
    request = MetadataRequest(owner="StabilityScorer")
    for name, alias in names.items():
        request.score.add_request(param=name, alias=alias)
    return request


def _count(X: Any) -> int:
    """Return the number of samples; -1 for what has none."""
    if hasattr(X, "shape"):
        return int(X.shape[0]) if len(X.shape) else -1
    return len(X) if hasattr(X, "__len__") and not isinstance(X, dict) else -1


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool | Real)


def _describe(value: Any) -> str:
    name, count = type(value).__name__, _count(value)
    return name if count < 0 else f"{name} with {count} entries"


def _check_predicts(estimator: Any) -> bool:
    """Raise unless an estimator predicts; return whether its input is pairwise."""
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            "estimator must have fit and get_params, as scikit-learn's do, got "
            f"{type(estimator).__name__}."
        )
    if not hasattr(estimator, "predict"):
        raise TypeError(
            f"estimator must have a method predict, to assign samples that it was not fitted on "
            f"to clusters; {type(estimator).__name__} has none."
        )
    return bool(get_tags(estimator).input_tags.pairwise)


def _check_all_samples(estimator: Any, X: Any, pairwise: bool) -> None:
    """Raise where X is seen to be a part of the samples that the estimator was fitted on."""
    advice = "StabilityScorer needs all samples: give the search cv=FullSampleSplit()"
    if pairwise:
        if hasattr(X, "columns"):
            raise TypeError(
                f"X of a pairwise estimator must be an array, a sparse matrix or a container that "
                f"X[np.ix_(rows, columns)] cuts, got {type(X).__name__}."
            )
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) < 2 or shape[0] != shape[1]:
            raise ValueError(
                f"X must hold the similarities of all pairs of samples, of shape (n_samples, "
                f"n_samples) or with more axes, got shape {tuple(shape)}. {advice}."
            )
        for layer in _layers(X):
            require_symmetric(layer, f"X ({advice})")
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    labels = getattr(estimator, "labels_", None)
    if labels is not None and len(labels) != _count(X):
        raise ValueError(
            f"X has {_count(X)} samples, but the estimator was fitted on {len(labels)}. {advice}; "
            "or, for other samples, give the scorer an estimator that is not fitted."
        )


def _warn_of_lost_constraints(estimator: Any, params: dict[str, Any]) -> None:
    """Warn where the estimator was fitted under constraints that its copies are not given."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    pairs = getattr(estimator, "constraints_", None)
    if "constraints" in params or not isinstance(pairs, PairwiseConstraints):
        return
    if len(pairs.must_link) or len(pairs.cannot_link):
        warnings.warn(
            "StabilityScorer scores copies without the constraints that the estimator was fitted "
            "under: give them as fit_params={'constraints': pairs}, or enable metadata routing.",
            stacklevel=3,
        )


def _layers(X: Any) -> Any:
    """Return the matrices that an array holds; containers check their own."""
    if isinstance(X, np.ndarray):
        return X.reshape(*X.shape[:2], -1).transpose(2, 0, 1)
    return [X] if hasattr(X, "tocsr") else []


def _labels_from(
    estimator: Any,
    X: Any,
    y: Any,
    params: dict[str, Any],
    size: int,
    pairwise: bool,
    rng: np.random.Generator,
) -> np.ndarray | Exception:
    """Return the clusters of all samples by a copy fitted on some, or why there are none."""
    n_samples = _count(X)
    rows = np.sort(rng.choice(n_samples, size, replace=False, shuffle=False))
    train = X[np.ix_(rows, rows)] if pairwise else take_samples(X, rows)
    everything = X[np.ix_(np.arange(n_samples), rows)] if pairwise else X
    cut = {
        name: value if _is_scalar(value) else take_samples(value, rows)
        for name, value in params.items()
    }
    target = () if y is None else (take_samples(y, rows),)
    try:
        with threadpool_limits(limits=1):
            model = _seeded(clone(estimator), rng).fit(train, *target, **cut)
            labels = np.asarray(model.predict(everything))
    except Exception as error:
        return error
    if labels.shape != (n_samples,):
        return ValueError(f"predict must return {n_samples} labels, got shape {labels.shape}.")
    return labels


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Set every `random_state` of an estimator that is None."""
    unset = [
        name
        for name, value in sorted(estimator.get_params().items(), key=lambda item: item[0])
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return estimator.set_params(**{name: int(rng.integers(2**31 - 1)) for name in unset})
