"""A scorer of the stability of clusters under subsampling."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from nmfcluster._compat import FRACTION, Interval, StrOptions
from nmfcluster._utils.validation import last_step, warn
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics.agreement import disagreements, jackknife, mean_of_pairs
from nmfcluster.model_selection.refits import Samples, count_entries, labels_by_refit
from nmfcluster.model_selection.search import REFIT_PARAMETERS, RefitScorer

# mean share of the samples in the largest cluster above which the score is that of chance
_MAX_LARGEST_SHARE = 0.95


class StabilityScorer(RefitScorer):
    r"""Score a clusterer by the stability of its clusters under subsampling.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Clones of the
    estimator are fitted to random subsamples, and each predicts the clusters of all samples. The
    score is high if they agree more than by chance,

    .. math:: \bar c - \bar d ,

    where d is the share of samples that two clones place differently, the `disagreement` of eq. 9
    of [1]_, as a mean over all pairs of clones, and c is the same after the labels of each clone
    have been shuffled. It selects `n_clusters`, or any other parameter of any clusterer, without
    true labels.

    Parameters
    ----------
    n_subsamples : int, default=20
        Number of subsamples, 3 at least.
    subsample_size : float or int, default=0.2
        Samples in a subsample: a share of all samples between 0 and 1, or a number. The number by
        a share is rounded.
    adjust : {"difference", "ratio"}, default="difference"
        How d is compared with chance. "difference": c - d. "ratio": 1 - d / c, as in [2]_, but
        with labels shuffled within each solution.
    details : bool, default=False
        Whether to return a dict of the score and its details, for searches with
        ``refit="stability"`` or a function of `cv_results_`, which then holds
        "mean_test_stability", "mean_test_stability_se" and so on.
    fit_params : dict, default=None
        Arguments of `fit` besides `X` and `y`, such as ``{"constraints": pairs}``, with one entry
        for each sample, cut like the samples. Not for arguments that metadata routing passes.
    n_jobs : int, default=None
        Number of parallel fits. Use this or `n_jobs` of the search, not both.
    random_state : int, default=0
        Determines the subsamples. It has to be an integer, so that all candidates of a search are
        scored on the same subsamples.

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
    - "largest_share" and "smallest_share" of samples in a cluster, and "n_clusters", the number of
      clusters that are not empty, as means over the clones.

    The score is at most 0, that of chance, if the largest cluster holds more than 95 % of the
    samples on average, as a single cluster is perfectly stable and useless. With an estimator
    without `predict`, a sample is assigned to the cluster of the nearest, or most similar, sample
    of the subsample.

    A candidate costs B fits of a subsample, B predictions of all samples, the fit of the search
    itself to all samples, and B (B - 1) matchings in O(n + k^3).

    The difference c - d is the default because, on Gaussian blobs, a number of clusters that joins
    neighbours is often as stable as the right one, with d near 0 for both. The ratio is then 1 for
    both, and the difference is larger for more clusters. Subsamples of a fifth, the size in [1]_,
    distinguished numbers of clusters no worse than halves, the size in [2]_, with the difference,
    and better with the ratio. For other parameters than `n_clusters`, "ratio" does not prefer
    clusters of equal sizes.

    If `random_state` of the estimator, or of a step in it, is None, every clone gets a seed of its
    own; an integer is kept. A fit uses one thread, so that the score does not depend on `n_jobs`.
    If a clone cannot be fitted, the score and every detail are NaN, and a warning says why.

    A search turns any error into a score of NaN and a warning, even if the scorer was used wrongly.
    Use ``error_score="raise"`` to see errors. Among equal scores a search selects the first.

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
        "subsample_size": [FRACTION, Interval(Integral, 2, None, closed="left")],
        "adjust": [StrOptions({"difference", "ratio"})],
        **REFIT_PARAMETERS,
    }
    _details = (
        "stability",
        "stability_se",
        "disagreement",
        "disagreement_se",
        "chance",
        "largest_share",
        "smallest_share",
        "n_clusters",
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
        self.details = details
        self.fit_params = fit_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _score(self, estimator, samples: Samples) -> list[float]:
        _warn_of_lost_constraints(type(self).__name__, estimator, samples.fit_params)
        n_samples = count_entries(samples.X)
        size = self.subsample_size
        count = int(size) if isinstance(size, Integral) else round(size * n_samples)
        if not 2 <= count < n_samples:
            raise ValueError(
                f"subsample_size={size} takes {count} of {n_samples} samples; it must take "
                "at least 2, and fewer than all."
            )
        fits = self._run_refits(
            labels_by_refit,
            common=(samples, count, None, estimator),
            calls=[()] * self.n_subsamples,
            noun="subsample",
            suffix=f", with {count} of {n_samples} samples",
        )
        labellings = np.stack([labels for labels, _ in fits])
        rng = np.random.default_rng(int(self.random_state))
        shuffled = np.stack([rng.permutation(labels) for labels in labellings])
        D = disagreements(labellings)
        C = disagreements(shuffled)
        stability, stability_se = jackknife(self._adjusted, D, C)
        disagreement, disagreement_se = jackknife(mean_of_pairs, D)

        # shares of the samples in each cluster
        shares = [np.bincount(labels[labels >= 0]) / n_samples for labels in labellings]
        largest = np.mean([sizes.max(initial=0) for sizes in shares])
        smallest = np.mean([sizes.min() if len(sizes) else 0 for sizes in shares])
        n_clusters = np.mean([len(sizes) for sizes in shares])
        if largest > _MAX_LARGEST_SHARE:
            stability = min(stability, 0.0)
            stability_se = 0.0
        return [
            stability,
            stability_se,
            disagreement,
            disagreement_se,
            mean_of_pairs(C),
            float(largest),
            float(smallest),
            float(n_clusters),
        ]

    def _adjusted(self, D, C) -> float:
        """Return the score by the disagreements of all pairs of clones, and by chance."""
        d = mean_of_pairs(D)
        c = mean_of_pairs(C)
        return c - d if self.adjust == "difference" or c == 0 else 1 - d / c


def _warn_of_lost_constraints(name: str, estimator, fit_params) -> None:
    """Warn if the estimator was fitted under constraints that its clones are not passed."""
    pairs = getattr(last_step(estimator)[1], "constraints_", None)
    if not isinstance(pairs, PairwiseConstraints) or not pairs.n_pairs:
        return
    if not any(key.endswith("constraints") for key in fit_params):
        warn(
            f"{name} scores copies without the constraints that the estimator was fitted "
            "under: give them as fit_params={'constraints': pairs}, or enable metadata "
            "routing."
        )
