"""Whether the clusters of one half of the samples are those of the other half."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from nmfcluster._arrays.jobs import shared_out
from nmfcluster._compat import Interval
from nmfcluster.metrics.agreement import differing_share
from nmfcluster.model_selection.copies import Samples, labels_by_halves
from nmfcluster.model_selection.scorer import OF_COPIES, ClusterScorer
from nmfcluster.model_selection.voters.strength import prediction_strength

__all__ = ["PredictionStrengthScorer", "TransferScorer"]

_FEWEST = 4  # samples: two in each half


class _HalvesScorer(ClusterScorer[Any]):
    """Scores of what a fit to one half says of the other, and of what its own fit says.

    Classes inherit `__init__`, where the check of their docstrings does not look for it.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_splits": [Interval(Integral, 2, None, closed="left")],
        **OF_COPIES,
    }
    _drawn = "halves"
    _must_predict = False

    def __init__(
        self,
        n_splits: int = 10,
        *,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_splits = n_splits
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_number(self, n_samples: int) -> None:
        if n_samples < _FEWEST:
            raise ValueError(
                f"X must have at least {_FEWEST} samples to be cut into halves, got {n_samples}."
            )

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        seed = int(self.random_state)
        halves = shared_out(
            labels_by_halves,
            (estimator, samples),
            lambda: ((np.random.default_rng((seed, b)),) for b in range(self.n_splits)),
            self.n_jobs,
        )
        self._require_success(halves, "split", " (n_splits)")
        return dict(zip(self._names, self._of_halves(halves), strict=True))

    def _of_halves(self, halves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, ...]:
        """Return the score and its details, from the two labellings of every second half."""
        raise NotImplementedError


class PredictionStrengthScorer(_HalvesScorer):  # numpydoc ignore=PR02
    r"""Score a clusterer by how well the clusters of one half of the samples predict the other's.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted to the halves of a random split. Of the pairs of samples that a cluster of
    the second half holds, the fit to the first half should place most in one cluster. The strength
    is that share for the cluster where it is least,

    .. math:: \min_j \frac{1}{n_j (n_j - 1)} \sum_{i \neq i' \in A_j} I\{f(x_i) = f(x_{i'})\} ,

    where :math:`A_1, \ldots, A_k` are the clusters of the second half and f predicts by the fit to
    the first [1]_. The score is the mean over the splits.

    Parameters
    ----------
    n_splits : int, default=10
        Number of random splits into halves, 2 at least.
    details : bool, default=False
        Whether to return a dict of "strength", the score, and "strength_se", its standard error.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample, cut like the samples.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted; a warning says why. "raise":
        the error is raised.
    n_jobs : int, default=None
        Number of splits that are worked on at a time.
    random_state : int, default=0
        Determines the splits; an int, so that all candidates see the same.

    See Also
    --------
    TransferScorer : Asks how many samples are placed differently, in all clusters.
    StabilityScorer : Compares fits to many subsamples.

    Notes
    -----
    One cluster has the strength 1, so the score alone cannot speak for it. The rule of [1]_ takes
    the largest number of clusters whose strength is at least .8 to .9, and 1 where there is none.
    Numbers that join clusters are often as strong as the right one: give a search the largest
    first, as the first of equal scores is taken.

    An estimator without `predict` places a sample in the cluster of the nearest one of the other
    half. Samples in no cluster of their half are left out; of the other half, they are together
    with none. A cluster of one sample has the strength 1.

    References
    ----------
    .. [1] R. Tibshirani, G. Walther. Cluster validation by prediction strength. Journal of
       Computational and Graphical Statistics 14, 2005.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import FullSampleSplit, PredictionStrengthScorer
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [6, 5, 4, 3, 2]},
    ...     scoring=PredictionStrengthScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _names = ("strength", "strength_se")

    def _of_halves(self, halves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, ...]:
        return mean_and_error([strength_of_half(own, given) for own, given in halves])


class TransferScorer(_HalvesScorer):  # numpydoc ignore=PR02
    r"""Score a clusterer by how few samples a fit to other samples places differently.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted to the halves of a random split, and the fit to the first half says where
    the samples of the second belong. The share of them that the two place differently, after
    clusters have been matched, is compared with that of random labels [1]_,

    .. math:: 1 - \bar d \,/\, \bar c , \quad
       d = \min_\pi \frac{1}{n} \sum_i I\{y_i \neq \pi(y'_i)\} ,

    where :math:`\bar d` is the mean over the splits, and :math:`\bar c` that of two labellings
    drawn uniformly from k labels.

    Parameters
    ----------
    n_splits : int, default=10
        Number of random splits into halves, 2 at least.
    details : bool, default=False
        Whether to return a dict of "transfer", the score, "instability", which is 1 less the score,
        "instability_se", its standard error, and "chance", the mean c.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample, cut like the samples.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted; a warning says why. "raise":
        the error is raised.
    n_jobs : int, default=None
        Number of splits that are worked on at a time.
    random_state : int, default=0
        Determines the splits; an int, so that all candidates see the same.

    See Also
    --------
    PredictionStrengthScorer : Asks the same of the worst cluster.
    StabilityScorer : Compares fits to many subsamples, and needs no halves.
    nmfcluster.metrics.disagreement : The share d.

    Notes
    -----
    k is the larger number of clusters of the two labellings. The score is at most 1, and near 0 for
    clusters that another half of the samples does not tell. One cluster is never placed
    differently, nor is it by chance: its score is 0, and it is not chosen.

    The labels are transferred by `predict` of the estimator; without it a sample is in the cluster
    of the nearest one of the first half.

    References
    ----------
    .. [1] T. Lange, V. Roth, M. L. Braun, J. M. Buhmann. Stability-based validation of clustering
       solutions. Neural Computation 16, 2004.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import FullSampleSplit, TransferScorer
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [6, 5, 4, 3, 2]},
    ...     scoring=TransferScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _names = ("transfer", "instability", "instability_se", "chance")

    def _of_halves(self, halves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, ...]:
        rng = np.random.default_rng(int(self.random_state))
        differing = [differing_share(own, given) for own, given in halves]
        random = [rng.integers(n_clusters_of(*pair), size=(2, len(pair[0]))) for pair in halves]
        chance = float(np.mean([differing_share(a, b) for a, b in random]))
        mean, error = mean_and_error(differing)
        if not chance:  # one cluster is as good as chance
            return 0.0, 1.0, 0.0, 0.0
        return 1 - mean / chance, mean / chance, error / chance, chance


def strength_of_half(own: np.ndarray, given: np.ndarray) -> float:
    """Return the prediction strength of one half.

    Parameters
    ----------
    own : ndarray of shape (n,), int
        Clusters by its own fit; samples with -1 are left out.
    given : ndarray of shape (n,), int
        Clusters by the fit to the other half; one with -1 is together with none.

    Returns
    -------
    float
        0 if no sample is in a cluster.
    """
    own, given = own[own >= 0], given[own >= 0]
    if not len(own):
        return 0.0
    alone = given.max(initial=0) + 1 + np.arange(len(given))
    return prediction_strength(own, np.where(given < 0, alone, given))


def n_clusters_of(own: np.ndarray, given: np.ndarray) -> int:
    """Return the larger number of clusters of two labellings from 0, at least 1."""
    return max(int(own.max()), int(given.max()), 0) + 1


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return the mean, and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
