"""A scorer that asks how little clusters depend on the samples that they were made from."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from nmfcluster._compat import SHARE, Interval, StrOptions
from nmfcluster.metrics import agreement
from nmfcluster.metrics.agreement import disagreements, jackknife, mean_of_pairs
from nmfcluster.model_selection.copies import Samples, labels_by_copy, labels_by_halves, n_entries
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

    With ``measure="transfer"``, the samples are split into random halves, and one copy is fitted
    to each [3]_. The first also says where the samples of the second half belong, and

    .. math:: 1 - \bar d \,/\, \bar c

    compares that with the clusters of the second copy: d is the share of the samples of the second
    half that the two place differently, as a mean over the splits, and c that of two labellings
    drawn uniformly from as many labels.

    Parameters
    ----------
    n_subsamples : int, default=20
        Number of subsamples, 3 at least; by transfer, of splits into halves.
    measure : {"subsamples", "transfer"}, default="subsamples"
        What is compared: copies that are fitted to subsamples, on all samples, or copies that are
        fitted to halves, on one half. For "transfer", `subsample_size` and `adjust` do not count.
    subsample_size : float or int, default=0.2
        Samples in a subsample: a share of all between 0 and 1, or a number. A share is rounded.
    adjust : {"difference", "ratio", "rand"} or None, default="difference"
        How d is compared with chance. "difference": c - d. "ratio": 1 - d / c, as in [2]_, but
        with labels shuffled within each solution. "rand": instead of either, the mean adjusted
        Rand index of two copies. None: 1 - d, with which numbers of clusters cannot be compared.
    details : bool, default=False
        Whether to return the score in a dict, with what it is made of, for searches with
        ``refit="stability"`` or ``refit=one_standard_error``. `cv_results_` then holds
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
    one_standard_error : Chooses the first candidate that is as good as the best.
    nmfcluster.metrics.disagreement : How differently two clusterings place the samples.
    nmfcluster.display.StabilityDisplay : Draws what a search found.

    Notes
    -----
    With `details` the score is a dict of

    - "stability", the score, and "stability_se", its standard error over subsamples;
    - "disagreement", the mean d, and "disagreement_se"; "chance", the mean c;
    - "largest_share" and "smallest_share" of samples in a cluster, and "n_clusters", those that
      are not empty: means over the copies, by transfer over those of the second halves.

    The score by subsamples is at most 0, that of chance, where the largest cluster holds more than
    95 % of the samples, on average: all samples in one cluster are perfectly stable, and worth
    nothing. An estimator without `predict` places a sample in the cluster of the nearest, or most
    similar, one that it was fitted to.

    A candidate costs B fits of a subsample, B predictions of all samples, the fit of the search
    itself on all samples, and B (B - 1) matchings in O(n + k^3); by transfer B pairs of fits to a
    half, and 2 B matchings.

    By transfer the score is at most 1, near 0 for clusters that another half of the samples does
    not tell, and 0 for one cluster, which is never placed differently, nor is it by chance. The
    number of labels that chance has is the larger one of the two labellings.

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
    .. [3] T. Lange, V. Roth, M. L. Braun, J. M. Buhmann. Stability-based validation of clustering
       solutions. Neural Computation 16, 2004.

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
    >>> transfer = StabilityScorer(measure="transfer")
    >>> round(transfer(KMeans(4, n_init=3, random_state=0), X), 2)
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_subsamples": [Interval(Integral, 3, None, closed="left")],
        "measure": [StrOptions({"subsamples", "transfer"})],
        "subsample_size": [SHARE, Interval(Integral, 2, None, closed="left")],
        "adjust": [StrOptions({"difference", "ratio", "rand"}), None],
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
        measure: str = "subsamples",
        subsample_size: float | int = 0.2,
        adjust: str | None = "difference",
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_subsamples = n_subsamples
        self.measure = measure
        self.subsample_size = subsample_size
        self.adjust = adjust
        self.details = details
        self.fit_params = fit_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _scored(self, estimator: Any, samples: Samples) -> dict[str, float]:
        n_samples, calls = n_entries(samples.X), [()] * self.n_subsamples
        if self.measure == "transfer":
            if n_samples < 4:
                raise ValueError(
                    f"X must have at least 4 samples to be cut into halves, got {n_samples}."
                )
            common: tuple[Any, ...] = (samples, estimator)
            return self._of_halves(self._of_copies(labels_by_halves, common, calls, "split"))
        size = self.subsample_size
        count = int(size) if isinstance(size, Integral) else round(size * n_samples)
        if not 2 <= count < n_samples:
            raise ValueError(
                f"subsample_size={size} takes {count} of {n_samples} samples; it must take at "
                "least 2, and fewer than all."
            )
        common, rest = (samples, count, None, estimator), f", with {count} of {n_samples} samples"
        fits = self._of_copies(labels_by_copy, common, calls, "subsample", rest)
        return self._of_subsamples(np.stack([labels for labels, _ in fits]))

    def _of_subsamples(self, codes: np.ndarray) -> dict[str, float]:
        """Return the score and its details, from labellings (n_subsamples, n_samples)."""
        D, C = disagreements(codes), disagreements(agreement.shuffled(codes, self._generator()))
        if self.adjust == "rand":
            stability, error = jackknife(mean_of_pairs, agreement.rand_indices(codes))
        else:
            stability, error = jackknife(self._adjusted, D, C)
        shares = _shares(codes)
        if shares[0] > _NEARLY_ALL:
            stability, error = min(stability, 0.0), 0.0
        values = (stability, error, *jackknife(mean_of_pairs, D), mean_of_pairs(C), *shares)
        return dict(zip(self._names, values, strict=True))

    def _adjusted(self, D: np.ndarray, C: np.ndarray) -> float:
        """Return the score, of the disagreements of all pairs of copies, and those by chance."""
        d, c = mean_of_pairs(D), mean_of_pairs(C)
        adjusted = {"difference": c - d, None: 1 - d}
        return adjusted.get(self.adjust, 1 - d / c if c > 0 else 0.0)

    def _of_halves(self, halves: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
        """Return the score and its details, from two labellings of every second half.

        The first is by the fit to this half, the other one by the fit to the other half.
        """
        rng = self._generator()
        differing, by_chance = [], []
        for own, told in halves:
            n_labels = max(int(own.max()), int(told.max()), 0) + 1
            differing.append(agreement.differing_share(own, told))
            by_chance.append(agreement.differing_share(*rng.integers(n_labels, size=(2, len(own)))))
        chance, mean = float(np.mean(by_chance)), float(np.mean(differing))
        error = float(np.std(differing, ddof=1) / np.sqrt(len(differing)))
        # one cluster is as good as chance
        score = (1 - mean / chance, error / chance) if chance else (0.0, 0.0)
        values = (*score, mean, error, chance, *_shares([own for own, _ in halves]))
        return dict(zip(self._names, values, strict=True))


def _shares(labellings: Iterable[np.ndarray]) -> tuple[float, float, float]:
    """Return the shares of the largest and the smallest cluster, and their number: means."""
    shares = [np.bincount(labels[labels >= 0]) / len(labels) for labels in labellings]
    largest = [share.max(initial=0) for share in shares]
    smallest = [share.min(initial=1) if len(share) else 0 for share in shares]
    n_clusters = [len(share) for share in shares]
    return float(np.mean(largest)), float(np.mean(smallest)), float(np.mean(n_clusters))
