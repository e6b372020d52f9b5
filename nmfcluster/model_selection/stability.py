"""A scorer that asks how little clusters depend on the samples that they were made from."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from nmfcluster._compat import SHARE, Interval, StrOptions
from nmfcluster._utils.validation import last_step, warn
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics.agreement import disagreements, jackknife, mean_of_pairs
from nmfcluster.model_selection.refits import Samples, labels_by_copy, n_entries
from nmfcluster.model_selection.search import OF_COPIES, ClusterScorer

_NEARLY_ALL = 0.95  # of the samples, on average, in the largest cluster: worth nothing


class StabilityScorer(ClusterScorer):
    r"""Score a clusterer by how little its clusters depend on the samples that it is fitted on.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted on random subsamples, and each predicts the clusters of all samples. The
    score is high where they agree more than chance would make them,

    .. math:: \bar c - \bar d ,

    where d is the share of samples that two copies place differently, the `disagreement` of eq. 9
    of [1]_, as a mean over all pairs, and c is the same after the labels of each copy have been
    shuffled. So `n_clusters`, or any other parameter of any clusterer, is chosen without
    labels.

    Parameters
    ----------
    n_subsamples : int, default=20
        Number of subsamples, 3 at least.
    subsample_size : float or int, default=0.2
        Samples in a subsample: a share of all between 0 and 1, or a number. A share is rounded.
    adjust : {"difference", "ratio"}, default="difference"
        How d is compared with chance. "difference": c - d. "ratio": 1 - d / c, as in [2]_, but
        with labels shuffled within each solution.
    details : bool, default=False
        Whether to return the score in a dict, with what it is made of, for searches with
        ``refit="stability"`` or a function of `cv_results_`, which then holds
        "mean_test_stability", "mean_test_stability_se" and so on.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`, as ``{"constraints": pairs}``: one entry for each
        sample, cut like the samples. Not for what metadata routing hands over.
    n_jobs : int, default=None
        Number of copies that are fitted at a time. Use this or `n_jobs` of the search.
    random_state : int, default=0
        Determines the subsamples. It has to be an integer, so that all candidates of a search are
        scored on the same ones.

    See Also
    --------
    FullSampleSplit : The split for it.
    nmfcluster.metrics.clustering_accuracy : 1 less the disagreement of two clusterings.
    nmfcluster.display.StabilityDisplay : Draws what a search found.

    Notes
    -----
    With `details` the score is a dict of

    - "stability", the score, and "stability_se", its standard error over subsamples;
    - "disagreement", the mean d, and "disagreement_se"; "chance", the mean c;
    - "largest_share" and "smallest_share" of samples in a cluster, and "n_clusters", those that
      are not empty: means over the copies.

    The score is at most 0, that of chance, where the largest cluster holds more than 95 % of the
    samples, on average: all samples in one cluster are perfectly stable, and worth nothing. An
    estimator without `predict` places a sample in the cluster of the nearest, or most similar, one
    that it was fitted to.

    A candidate costs B fits of a subsample, B predictions of all samples, the fit of the search
    itself on all samples, and B (B - 1) matchings in O(n + k^3).

    Why c - d is the default: on Gaussian blobs, a number of clusters that joins neighbours is often
    as stable as the right one, d near 0 for both. A ratio is then 1 for both; a difference is
    larger for more clusters. Subsamples of a fifth, the size in [1]_, told numbers of
    clusters apart no worse than halves, the size in [2]_, with a difference, and better with a
    ratio. For other parameters than `n_clusters`, "ratio" does not prefer clusters of equal sizes.

    Where `random_state` of the estimator, or of a step in it, is None, every copy is given
    a seed of its own; an integer is kept. A fit uses one thread, so that the score does not depend
    on `n_jobs`. Where a copy cannot be fitted, the score and every detail are NaN, and a warning
    says why.

    A search makes a score of NaN and a warning of any error, also of one that says how the scorer
    is to be used: give it ``error_score="raise"``. Among equal scores it takes the first.

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
        "subsample_size": [SHARE, Interval(Integral, 2, None, closed="left")],
        "adjust": [StrOptions({"difference", "ratio"})],
        **OF_COPIES,
    }
    _names = (
        *("stability", "stability_se", "disagreement", "disagreement_se", "chance"),
        *("largest_share", "smallest_share", "n_clusters"),
    )

    def __init__(
        self,
        n_subsamples: int = 20,
        *,
        subsample_size: float | int = 0.2,
        adjust: str = "difference",
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_subsamples = n_subsamples
        self.subsample_size = subsample_size
        self.adjust = adjust
        super().__init__(details, fit_params, n_jobs, random_state)

    def _scored(self, estimator: Any, samples: Samples) -> dict[str, float]:
        _warn_of_lost_constraints(type(self).__name__, estimator, samples)
        n_samples, calls = n_entries(samples.X), [()] * self.n_subsamples
        size = self.subsample_size
        count = int(size) if isinstance(size, Integral) else round(size * n_samples)
        if not 2 <= count < n_samples:
            told = f"subsample_size={size} takes {count} of {n_samples} samples"
            raise ValueError(f"{told}; it must take at least 2, and fewer than all.")
        common, rest = (
            (samples, count, None, estimator),
            f", with {count} of {n_samples} samples",
        )
        fits = self._of_copies(labels_by_copy, common, calls, "subsample", rest)
        # the score and its details, from labellings (n_subsamples, n_samples)
        codes, rng = np.stack([labels for labels, _ in fits]), self._generator()
        D = disagreements(codes)
        C = disagreements(np.stack([rng.permutation(labels) for labels in codes]))
        stability, error = jackknife(self._adjusted, D, C)
        shares = _shares(codes)
        if shares[0] > _NEARLY_ALL:
            stability, error = min(stability, 0.0), 0.0
        values = (
            stability,
            error,
            *jackknife(mean_of_pairs, D),
            mean_of_pairs(C),
            *shares,
        )
        return dict(zip(self._names, values, strict=True))

    def _adjusted(self, D: np.ndarray, C: np.ndarray) -> float:
        """Return the score, of the disagreements of all pairs of copies, and those by chance."""
        d, c = mean_of_pairs(D), mean_of_pairs(C)
        return c - d if self.adjust == "difference" or c == 0 else 1 - d / c


def _warn_of_lost_constraints(name: str, estimator: Any, samples: Samples) -> None:
    """Warn where the estimator was fitted under constraints that its copies are not given."""
    pairs = getattr(last_step(estimator)[1], "constraints_", None)
    told = any(key.endswith("constraints") for key in samples.arguments)
    if isinstance(pairs, PairwiseConstraints) and pairs.n_pairs and not told:
        lost = "the constraints that the estimator was fitted under"
        cure = (
            "give them as fit_params={'constraints': pairs}, or enable metadata routing"
        )
        warn(f"{name} scores copies without {lost}: {cure}.")


def _shares(labellings: np.ndarray) -> tuple[float, ...]:
    """Return the shares of the largest and the smallest cluster, and their number: means."""
    shares = [np.bincount(labels[labels >= 0]) / len(labels) for labels in labellings]
    told = [
        (s.max(initial=0), s.min(initial=1) if len(s) else 0, len(s)) for s in shares
    ]
    return tuple(float(np.mean(figures)) for figures in zip(*told, strict=True))
