"""Scorers without true labels for scikit-learn's searches, and the split that they need."""

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRequest

from nmfcluster._compat import FRACTION, N_JOBS, StrOptions, at_least
from nmfcluster._utils.validation import (
    check_accepts_parts,
    last_step,
    reorder_samples,
    row_names,
    warn,
)
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import split_pairs
from nmfcluster.metrics import (
    differing_share,
    jackknife,
    mean_of_pairs,
    table_of_pairs,
)
from nmfcluster.model_selection.refits import (
    accepts_fit_param,
    check_symmetric,
    count_entries,
    get_n_samples,
    labels_by_refit,
    read_samples,
    refit,
    training_labels,
    try_calls,
)

# mean share of samples in the largest cluster above which the score is at most 0
_MAX_LARGEST_SHARE = 0.95
_NAME = "constraints"  # name of the argument of `fit`
_HOW_TO_PASS = (
    "needs constraints: pass a PairwiseConstraints as y, too, as in search.fit(X, pairs, "
    "constraints=pairs), or enable metadata routing"
)
#: allowed values of the parameters of `RefitScorer`
REFIT_PARAMETERS: dict = {
    "details": ["boolean"],
    "fit_params": [dict, None],
    "n_jobs": N_JOBS,
    "random_state": [at_least(0)],
}


class FullSampleSplit(BaseCrossValidator):
    """A single split, whose training and test sets hold all samples.

    Pass it as ``cv=`` to a search of scikit-learn whose ``scoring=`` is a `StabilityScorer` or a
    `HeldOutPairsScorer`. These scorers draw samples or pairs themselves, and need all samples. With
    any other ``cv``, including the default, a search splits the samples. The scorers then raise an
    error, which the search turns into a score of NaN, unless ``error_score="raise"``.

    Attributes
    ----------
    n_splits : int
        1.

    See Also
    --------
    StabilityScorer : Score a clusterer by the stability of its clusters.
    HeldOutPairsScorer : Score a clusterer by constraints that are held out from its fit.

    Notes
    -----
    With a single split, ``std_test_score`` is 0 and does not measure how certain a score is. The
    scorers return standard errors with ``details=True``. For 20 subsamples of 150 to 300 samples,
    the standard error of a `StabilityScorer` is about 0.02, and ranges from 0.00 to 0.04. The order
    of two scores that differ by 0.03 may change with ``random_state``. Parameter values whose
    scores are within one standard error of the best are equally good, and `StabilityDisplay` marks
    them. Choose the value that you prefer, or raise ``n_subsamples``.

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
        """Return an iterator over the single split.

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
            Indices of all samples, in both arrays.
        """
        n_samples = get_n_samples(indexable(X)[0])
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


class RoutedScorer(BaseEstimator):
    """A scorer that requests metadata through scikit-learn's metadata routing."""

    _metadata: tuple = ("constraints",)

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer requests through scikit-learn's routing.

        Returns
        -------
        MetadataRequest
            A request for constraints, and for sample weights if the scorer refits the estimator.
            These are passed to `fit` if the estimator requests them.
        """
        request = MetadataRequest(owner=type(self).__name__)
        for name in self._metadata:
            request.score.add_request(param=name, alias=True)
        return request


class ConstraintScorer(RoutedScorer):
    """Score a clusterer by the constraints among samples that it was not fitted to.

    Pass it as ``scoring=`` to a search of scikit-learn to select `alpha`, `beta` and `n_clusters`
    without true labels. The scorer predicts the clusters of the test part of a split. It uses the
    constraints with both samples in that part. The score is the mean of the share of satisfied
    must-links and the share of satisfied cannot-links. The two kinds have equal weight because,
    with many clusters, most cannot-links are satisfied by chance.

    The scorer needs the constraints of the test part. With metadata routing enabled, a search
    passes them as ``constraints=``. Otherwise, pass them a second time as `y`:
    ``search.fit(X, pairs, constraints=pairs)``. Estimators of this package ignore `y`.

    See Also
    --------
    HeldOutPairsScorer : Hold out pairs instead of samples; better if there are few pairs.
    nmfcluster.constraints.PairwiseConstraints : Constraints on pairs of samples.

    Notes
    -----
    A test part of a k-fold split holds both samples of only 1/k^2 of the pairs.
    ``ShuffleSplit(test_size=0.5)`` keeps a quarter of the pairs. `GroupKFold` with
    ``groups=pairs.components()`` keeps every must-link within one part.

    If the constraints do not allow a value of `n_clusters`, the fit fails and the score is NaN.
    With ``contradictions="ignore"`` in the estimator, such a value is scored like the others. A
    search also turns any other error into NaN. Use ``error_score="raise"`` to see errors.

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
    ...     scoring=ConstraintScorer(),
    ...     cv=ShuffleSplit(5, test_size=0.5, random_state=0),
    ... )
    >>> search.fit(X, pairs, constraints=pairs).best_params_
    {'n_clusters': 3}
    """

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        constraints: PairwiseConstraints | None = None,
    ) -> float:
        """Return the share of satisfied constraints, averaged over both kinds.

        Parameters
        ----------
        estimator : fitted estimator with `predict`
        X : array-like of shape (n_samples, n_features)
            Samples whose clusters are predicted.
        y : PairwiseConstraints or None, default=None
            The constraints among these samples, if `constraints` is None.
        constraints : PairwiseConstraints, default=None
            The constraints among these samples.

        Returns
        -------
        float
            Score in [0, 1]; 1 if all constraints are satisfied.

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
                f"ConstraintScorer {_HOW_TO_PASS}; got {type(pairs).__name__}."
            )
        satisfied = pairs.satisfied(estimator.predict(X))
        shares = [kind.mean() for kind in satisfied if len(kind)]
        if not shares:
            raise ValueError(
                f"no constraint has both of its samples among these {len(pairs)}. Use "
                "fewer, larger test parts, for example cv=ShuffleSplit(test_size=0.5)."
            )
        return float(np.mean(shares))


class RefitScorer(RoutedScorer):
    """A scorer for ``scoring=`` of scikit-learn's searches that refits a clusterer.

    A subclass lists the details in `_details`, the score first, and computes them in `_score`.
    """

    _details: tuple
    _metadata = ("constraints", "sample_weight")
    details: bool
    fit_params: Any
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
    ) -> Any:
        """Return the score of an estimator.

        Parameters
        ----------
        estimator : estimator
            The estimator to score. It is fitted to all samples, as in a search, or not fitted.
        X : array-like of shape (n_samples, n_features) or (n_samples, n_samples, ...)
            All samples. For a pairwise estimator, such as one with ``affinity="precomputed"`` or
            ``metric="precomputed"``, the similarities or distances of all pairs of samples.
        y : object, default=None
            Target. It is split like the samples, and passed to `fit` of clones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, passed to `fit` of clones.
        constraints : PairwiseConstraints, default=None
            Constraints, passed to `fit` of clones.
        **metadata : dict
            Other arrays with an entry for every sample, passed to `fit` of clones.

        Returns
        -------
        float or dict
            The score, or with `details` a dict of the score and its details. All are NaN if a clone
            cannot be fitted.

        Raises
        ------
        TypeError
            If the estimator cannot be scored, or an argument of `fit` is passed twice.
        ValueError
            If a parameter is not as described; if `X` does not hold all samples to which the
            estimator was fitted, or is not symmetric for a pairwise estimator; if there are too few
            samples; if an array in `fit_params` does not have one entry for each sample.

        Warns
        -----
        FitFailedWarning
            If a clone cannot be fitted.
        """
        self._validate_params()
        name = type(self).__name__
        (X,) = indexable(X)
        named = {"sample_weight": sample_weight, "constraints": constraints}
        advice = f"{name} needs all samples: give the search cv=FullSampleSplit()"
        samples = read_samples(
            estimator, X, y, named | metadata, self.fit_params or {}, advice
        )
        if samples.pairwise:
            check_symmetric(samples.X, samples.pairwise, f"X ({advice})")
        try:
            values = self._score(estimator, samples)
        except FitFailedWarning as warning:
            warn(f"{name}: {warning}", FitFailedWarning)
            values = [np.nan] * len(self._details)
        if not self.details:
            return values[0]
        return dict(zip(self._details, values, strict=True))

    def _score(self, estimator, samples):
        """Return a value for each of `_details`; raise FitFailedWarning if a refit fails."""
        raise NotImplementedError

    def _run_refits(self, task, common, calls, noun, suffix=""):
        """Return the results of a task for every call, each with a random generator of its own.

        If calls fail, the warning names the first one, with `noun` before its number and `suffix`
        behind it.
        """
        seed = int(self.random_state)
        calls = [
            (*call, np.random.default_rng((seed, i))) for i, call in enumerate(calls)
        ]
        results = try_calls(task, common, calls, self.n_jobs)
        for i, result in enumerate(results):
            if isinstance(result, Exception):
                raise FitFailedWarning(
                    f"{noun} {i} of {len(results)}{suffix} failed; the score is nan. "
                    f"{type(result).__name__}: {result}"
                )
        return results

    def _accept_sample_weight(self):
        return True  # searches of scikit-learn >= 1.7 call this


class StabilityScorer(RefitScorer):
    r"""Score a clusterer by the stability of its clusters under subsampling.

    Pass it as ``scoring=`` to a search of scikit-learn, with ``cv=FullSampleSplit()``, to select
    `n_clusters`, or any other parameter of any clusterer, without true labels. Clones of the
    estimator are fitted to random subsamples, and each predicts the clusters of all samples. The
    score is 0 if the clones agree no more than by chance, and higher the more they agree. It is

    .. math:: \bar c - \bar d ,

    where d is the disagreement of eq. 9 in [1]_, the share of samples that two clones place in
    different clusters after their clusters have been matched. The chance level c is the same share
    after the labels of each clone have been shuffled. Both are averaged over all pairs of clones.

    Parameters
    ----------
    n_subsamples : int, default=20
        Number of subsamples, at least 3. More subsamples make the score more precise, and take
        longer.
    subsample_size : float or int, default=0.2
        Number of samples in a subsample, or their share of all samples, between 0 and 1. Raise it
        if subsamples miss small clusters. A share is rounded to a whole number of samples.
    adjust : {"difference", "ratio"}, default="difference"
        How d is compared with chance. "difference" is c - d, and suits the choice of `n_clusters`.
        "ratio" is 1 - d / c, and does not prefer clusters of equal sizes. It is the score of [2]_,
        but with labels shuffled within each solution.
    details : bool, default=False
        Whether to return a dict of the score and its details. Use it for searches with
        ``refit="stability"`` or with a function of `cv_results_`, which then holds
        "mean_test_stability", "mean_test_stability_se" and so on.
    fit_params : dict, default=None
        Arguments of `fit` besides `X` and `y`, such as ``{"constraints": pairs}``. An array must
        have one entry for each sample, and is split like the samples. Leave out arguments that
        metadata routing passes.
    n_jobs : int, default=None
        Number of parallel fits. Use this or `n_jobs` of the search, not both.
    random_state : int, default=0
        Determines the subsamples. It must be an integer, so that all candidates of a search are
        scored on the same subsamples.

    See Also
    --------
    FullSampleSplit : The split for this scorer.
    nmfcluster.metrics.clustering_accuracy : Return 1 minus the disagreement of two clusterings.
    nmfcluster.display.StabilityDisplay : Plot the scores of a search.

    Notes
    -----
    With `details`, the score is a dict of

    - "stability", the score, and "stability_se", its standard error over subsamples;
    - "disagreement", the mean d, and "disagreement_se", its standard error;
    - "chance", the mean c;
    - "largest_share" and "smallest_share" of samples in a cluster, and "n_clusters", the number of
      clusters that are not empty, as means over the clones.

    A single cluster is perfectly stable but useless. The score is therefore at most 0, the score of
    chance, if the largest cluster holds more than 95 % of the samples on average. If an estimator
    has no `predict`, or its `predict` fails for a matrix of pairs, a sample is assigned to the
    cluster of the nearest, or most similar, sample of the subsample. The scorer raises an error if
    a parameter of the estimator has an entry for each sample, because such an estimator cannot be
    fitted to subsamples.

    With B subsamples, each candidate of a search costs B fits to subsamples, B predictions for all
    samples, and B (B - 1) matchings in O(n + k^3). The search itself adds one fit to all samples.

    On Gaussian blobs, a number of clusters that is too small often joins neighbouring blobs as
    stably as the right number separates them, so that d is near 0 for both. The ratio is then 1 for
    both, but the difference is larger for more clusters. It is therefore the default. Subsamples of
    a fifth of the samples, as in [1]_, distinguished numbers of clusters no worse than halves, as
    in [2]_, with the difference, and better with the ratio. To choose other parameters than
    `n_clusters`, consider "ratio", which does not prefer clusters of equal sizes.

    If `random_state` of the estimator, or of a step in it, is None, every clone gets a seed of its
    own. An integer is kept. A fit uses one thread, so that the score does not depend on `n_jobs`.
    If a clone cannot be fitted, the score and every detail are NaN, and a warning gives the error.

    A search turns any error into a score of NaN and a warning, even if the scorer was used wrongly.
    Use ``error_score="raise"`` to see errors. Among equal scores, a search selects the first.

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

    _parameter_constraints = {
        "n_subsamples": [at_least(3)],
        "subsample_size": [FRACTION, at_least(2)],
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
        self._validate_params()  # in a search, errors are NaN

    def _score(self, estimator, samples):
        pairs = getattr(last_step(estimator)[1], "constraints_", None)
        is_constrained = isinstance(pairs, PairwiseConstraints) and pairs.n_pairs > 0
        is_passed = any(name.endswith("constraints") for name in samples.fit_params)
        if is_constrained and not is_passed:
            warn(
                f"{type(self).__name__} scores copies without the constraints that the "
                "estimator was fitted under. Pass them as "
                "fit_params={'constraints': pairs}, or enable metadata routing."
            )
        check_accepts_parts(
            estimator, samples.X, "estimator must accept parts of the samples"
        )
        n_samples = count_entries(samples.X)
        size = self.subsample_size
        count = int(size) if isinstance(size, Integral) else round(size * n_samples)
        if not 2 <= count < n_samples:
            raise ValueError(
                f"subsample_size={size} draws {count} of {n_samples} samples. It must draw "
                "at least 2, and fewer than all."
            )
        fits = self._run_refits(
            labels_by_refit,
            common=(samples, count, np.arange(n_samples), estimator),
            calls=[()] * self.n_subsamples,
            noun="subsample",
            suffix=f", with {count} of {n_samples} samples",
        )
        labellings = np.stack([labels for labels, _ in fits])
        rng = np.random.default_rng(int(self.random_state))
        shuffled = np.stack([rng.permutation(labels) for labels in labellings])
        D = table_of_pairs(differing_share, labellings)
        C = table_of_pairs(differing_share, shuffled)

        def adjusted(tables):
            d = mean_of_pairs(tables[0])
            c = mean_of_pairs(tables[1])
            return c - d if self.adjust == "difference" or c == 0 else 1 - d / c

        stability, stability_se = jackknife(adjusted, np.stack([D, C]))

        # shares of the samples in each cluster
        shares = [np.bincount(labels[labels >= 0]) / n_samples for labels in labellings]
        largest = float(np.mean([sizes.max(initial=0) for sizes in shares]))
        smallest = [sizes.min() if len(sizes) else 0 for sizes in shares]
        if largest > _MAX_LARGEST_SHARE:
            stability = min(stability, 0.0)
            stability_se = 0.0
        return [
            stability,
            stability_se,
            *jackknife(mean_of_pairs, D),
            mean_of_pairs(C),
            largest,
            float(np.mean(smallest)),
            float(np.mean([len(sizes) for sizes in shares])),
        ]


class HeldOutPairsScorer(RefitScorer):
    r"""Score a clusterer by the constraints that are held out from its fit.

    Pass it as ``scoring=`` to a search of scikit-learn, with ``cv=FullSampleSplit()``, to select
    `alpha`, `beta`, `n_neighbors` or an affinity without true labels. The pairs are split into
    folds. For each fold, a clone of the estimator is fitted to all samples under the pairs of the
    other folds, and its clusters are tested on the pairs of this fold. The score is

    .. math:: \tfrac12 \left( \frac{\sum_{p \in M} w_p s_p}{\sum_{p \in M} w_p}
        + \frac{\sum_{p \in C} w_p s_p}{\sum_{p \in C} w_p} \right) ,

    with the must-links M, the cannot-links C, and their weights w. For each pair, s is the share of
    the folds that satisfy it, among the folds that hold it out. The two kinds have equal weight
    because, with many clusters, most cannot-links are satisfied by chance.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2. With more folds, the score depends less on chance and takes
        longer. A fit keeps a share of 1 - 1 / `n_splits` of the pairs, and fewer among samples that
        must-links connect (see Notes).
    details : bool, default=False
        Whether to return a dict of the score and its details. Use it for searches with
        ``refit="satisfaction"``.
    fit_params : dict, default=None
        Arguments of `fit` besides `X` and `y`. An array must have one entry for each sample. Leave
        out arguments that metadata routing passes.
    n_jobs : int, default=None
        Number of parallel fits. Use this or `n_jobs` of the search, not both.
    random_state : int, default=0
        Determines the folds. It must be an integer, so that all candidates of a search are scored
        on the same folds.

    See Also
    --------
    FullSampleSplit : The split for this scorer.
    ConstraintScorer : Hold out samples, and score predictions for them.
    nmfcluster.constraints.PairwiseConstraints : Constraints on pairs of samples.

    Notes
    -----
    The scorer needs the constraints. With metadata routing enabled, a search passes them as
    ``constraints=``. Without routing, there are two ways. Pass them a second time as `y`, as in
    ``search.fit(X, pairs, constraints=pairs)``, or pass ``fit_params={"constraints": pairs}``.
    Constraints passed as `y` are not passed to `fit`, and are not used if constraints are also
    passed by name.

    With hard must-links, a pair that the kept pairs imply is always satisfied, and so is not
    informative. Pairs are therefore held out together with all pairs that imply them. In a group of
    samples that must-links connect, a fold removes some links of a random spanning tree, and keeps
    no must-link between the resulting pieces. The fold then tests whether the clusterer puts the
    pieces into one cluster again.

    If constraints refer to samples by name, they are matched with the rows of `X` by name, as in
    `fit`.

    With `details`, the score is a dict of

    - "satisfaction", the score, and "satisfaction_se", its standard error under the assumption that
      pairs are independent;
    - "must_link" and "cannot_link", the shares of satisfied pairs of each kind, which are NaN
      without such pairs;
    - "n_pairs", the number of pairs that were held out.

    If all pairs are of one kind, the score is the share of satisfied pairs.

    Each candidate of a search costs `n_splits` fits, in addition to the fit of the search itself.
    If `random_state` of the estimator is None, every clone gets a seed of its own. A fit uses one
    thread, so that the score does not depend on `n_jobs`. If a clone cannot be fitted, the score
    and every detail are NaN, and a warning gives the error.

    Among equal scores, a search selects the first. Put your default first in the grid.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> from nmfcluster.model_selection import FullSampleSplit, HeldOutPairsScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    >>> search = GridSearchCV(
    ...     SSNMFClusterer(n_clusters=3, random_state=0),
    ...     {"affinity": ["nearest_neighbors", "rbf"]},
    ...     scoring=HeldOutPairsScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X, pairs, constraints=pairs).best_params_
    {'affinity': 'nearest_neighbors'}
    """

    _parameter_constraints = {
        "n_splits": [at_least(2)],
        **REFIT_PARAMETERS,
    }
    _details = (
        "satisfaction",
        "satisfaction_se",
        "must_link",
        "cannot_link",
        "n_pairs",
    )

    def __init__(
        self,
        n_splits: int = 5,
        *,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        # a search would turn an error of the call into a score of NaN
        if isinstance(n_splits, PairwiseConstraints):
            raise TypeError(
                "n_splits of HeldOutPairsScorer must be a number of folds, got "
                "PairwiseConstraints. Pass constraints to fit, as in search.fit(X, pairs, "
                "constraints=pairs), or as fit_params={'constraints': pairs}."
            )
        self.n_splits = n_splits
        self.details = details
        self.fit_params = fit_params
        self.n_jobs = n_jobs
        self.random_state = random_state
        self._validate_params()  # in a search, errors are NaN

    def _score(self, estimator, samples):
        name, pairs, samples = _without_constraints(estimator, samples)
        if not pairs.n_pairs:
            raise ValueError("constraints must hold at least one pair, got none.")
        pairs = reorder_samples(row_names(samples.X), pairs, _NAME)
        rng = np.random.default_rng(int(self.random_state))
        folds = list(split_pairs(pairs, int(self.n_splits), rng))
        satisfied = self._run_refits(
            _satisfied_by_refit,
            common=(estimator, samples, name, pairs),
            calls=[(kept,) for kept, _ in folds],
            noun="fold",
        )

        # the share of the weight of held-out pairs that is satisfied, for each kind
        shares = np.full(2, np.nan)
        variances = np.zeros(2)
        n_pairs = 0
        kinds = (pairs.must_link_weights, pairs.cannot_link_weights)
        for kind, weights in enumerate(kinds):
            is_held_out = np.stack([held_out[kind] for _, held_out in folds])
            is_satisfied = np.stack([by_fold[kind] for by_fold in satisfied])
            # a pair that other pairs imply in every fold is never held out
            is_known = is_held_out.any(axis=0)
            if is_known.any():
                rate = np.average(
                    is_satisfied[:, is_known], axis=0, weights=is_held_out[:, is_known]
                )
                weights = weights[is_known]
                share = np.average(rate, weights=weights)
                shares[kind] = share
                # the variance as if pairs were drawn one by one
                variances[kind] = weights**2 @ (rate - share) ** 2 / weights.sum() ** 2
                n_pairs += len(rate)
        return [
            float(np.nanmean(shares)),  # both kinds have equal weight
            float(np.sqrt(variances.sum())) / np.isfinite(shares).sum(),
            *shares.tolist(),
            float(n_pairs),
        ]


def _satisfied_by_refit(estimator, samples, name, pairs, kept, rng):
    """Fit a clone under the kept pairs, and return which of all pairs it satisfies."""
    fit_params = {**samples.fit_params, name: kept}
    model = refit(estimator, samples.X, samples.y, fit_params, rng)
    return pairs.satisfied(training_labels(model, samples.X))


def _without_constraints(estimator, samples):
    """Return the name of constraints in `fit`, the constraints, and samples without them."""
    y = samples.y
    fit_params = dict(samples.fit_params)
    constraints = {}
    for name, value in samples.fit_params.items():
        if isinstance(value, PairwiseConstraints):
            constraints[name] = fit_params.pop(name)
    if isinstance(y, PairwiseConstraints):
        constraints = constraints or {_NAME: y}
    if len(constraints) != 1:
        names = " and ".join(sorted(constraints))
        got = f"those of {names}" if constraints else "none"
        raise TypeError(
            f"HeldOutPairsScorer {_HOW_TO_PASS}. Pass them once; got {got}."
        )
    [(name, pairs)] = constraints.items()
    if isinstance(y, PairwiseConstraints):
        if y != pairs:
            raise ValueError(
                f"y and {name} must be the same constraints if both are given, got "
                f"{y} and {pairs}. Pass only one of them."
            )
        y = None
    prefix, step = last_step(estimator)
    if name == _NAME and not get_config()["enable_metadata_routing"]:
        name = prefix + _NAME  # the name in `fit` of a pipeline
    if name in (_NAME, prefix + _NAME) and not accepts_fit_param(step, _NAME):
        raise TypeError(
            "estimator must have a fit that takes constraints, but fit of "
            f"{type(step).__name__} does not."
        )
    return name, pairs, samples._replace(y=y, fit_params=fit_params)
