"""A scorer that asks how little clusters depend on the samples that they were made from."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, overload

import numpy as np

import nmfcluster.model_selection.checks as checks
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.labels import encode
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.metrics.agreement import (
    disagreements,
    jackknife,
    mean_of_pairs,
    rand_indices,
    shuffled,
)
from nmfcluster.model_selection.copies import Samples, labels_by_copy
from nmfcluster.model_selection.scorer import (
    OF_COPIES,
    SUBSAMPLE_SIZE,
    ClusterScorer,
    Score,
    count_of,
)

__all__ = ["StabilityScorer"]


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


class StabilityScorer(ClusterScorer[Score]):
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
    With `details` the score is a dict of

    - "stability", the score, and "stability_se", its standard error over subsamples;
    - "disagreement", the mean d, and "disagreement_se"; "chance", the mean c;
    - "largest_share" and "smallest_share" of samples in a cluster, and "n_clusters", those that
      are not empty: means over the copies.

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
        "subsample_size": SUBSAMPLE_SIZE,
        "adjust": [StrOptions({"difference", "ratio", _RAND}), None],
        "max_share": [Interval(Real, 0, 1, closed="right")],
        **OF_COPIES,
    }
    _names = _DETAILS
    _drawn = "subsamples"

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

    def _check_number(self, n_samples: int) -> None:
        count_of(self.subsample_size, n_samples)

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        n_samples = checks.n_entries(samples.X)
        size, seed = count_of(self.subsample_size, n_samples), int(self.random_state)
        labellings = shared_out(
            labels_by_copy,
            (estimator, samples, size),
            lambda: ((np.random.default_rng((seed, b)),) for b in range(self.n_subsamples)),
            self.n_jobs,
        )
        rest = f", with {size} of {n_samples} samples (subsample_size)"
        self._require_success(labellings, "subsample", rest)
        return self._details(np.ascontiguousarray(encode(labellings, "predictions")[0].T))

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
