"""Choose the number of clusters for any kind of input."""

import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from statistics import median_high
from typing import Any

import numpy as np
from sklearn.base import clone

import nmfcluster.model_selection.refits as refits
import nmfcluster.model_selection.results as results
from nmfcluster._compat import N_JOBS, StrOptions, validate_parameter_constraints
from nmfcluster._optim.initialization import leading_eigenpairs
from nmfcluster._utils.progress import log_line
from nmfcluster._utils.sampling import draw_positions
from nmfcluster._utils.validation import (
    Seed,
    check_accepts_parts,
    make_rng,
    may_take_pairs,
    warn,
)
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.metrics import jackknife, mean_of_pairs, rand_index, table_of_pairs
from nmfcluster.model_selection.sweep import sweep_n_clusters
from nmfcluster.model_selection.vote import choose_by_vote, draw_samples
from nmfcluster.partitions.inputs import LabelTable, Memberships, is_soft

_say = partial(log_line, speaker="choose_n_clusters")
_SWEEP_METHODS = {"held-out", "recurrence"}  # methods of `sweep_n_clusters`
_PARAMETER_CONSTRAINTS = {
    "method": [StrOptions({"auto", "vote", "stability", "eigengap", *_SWEEP_METHODS})],
    "param_name": [str, None],
    "fit_params": [dict, None],
    "n_jobs": N_JOBS,
}

# eigengap
# epsilon of the gap: how far below 1 the eigenvalue of an unmixed cluster may be
_UNMIXED = 0.05
# second eigenvalue below which partitions are noisy; it stays near 1 if they only split
# the clusters
_NOISY = 0.9
# part of an eigenvalue that is chance, above that of a cluster of one partition alone
_CHANCE = 0.02
_GAP_AS_GOOD = 0.8  # share of the largest gap from which a number is about as good
# adjusted Rand index from which partitions are nearly the same; runs of k-means reach it
# with as many clusters as the data have, but not with more
_SAME = 0.95
# smallest share of nearly equal partitions for which their number of clusters is chosen
_SHARE_DECIDES = 0.25
# share from which a finer clustering is chosen instead, as more resolutions repeat a coarse
# one; 0.15 was best on 89 sweeps of Leiden and Louvain, and on 198 of other parameters
_SHARE_OF_FINER = 0.15
_SHARE_AS_GOOD = 0.1  # share from which a number is about as good as the chosen one
_MIN_REPEATS = 4  # smallest number of repeats; fewer partitions may be equal by chance
_MAX_REPEATS = 150  # largest number of partitions that are compared

# stability
_SAMPLES_PER_CLUSTER = 20  # samples per cluster in a part, unless a half has fewer
_FITS_PER_ROUND = 2  # fits per number of clusters in a round
_FITS_OF_CONTENDERS = 4  # fits of each number that can still be chosen
_FITS_OF_FINALISTS = 6  # fits of the two numbers that decide
# standard error that is assumed for two fits, as their one agreement has no estimate
_ERROR_OF_TWO_FITS = 0.1
_MAX_COMPARED = 1000  # largest number of samples on which two fits are compared
# how far the adjusted Rand index of an equally good number may be below the largest
_STABILITY_MARGIN = 0.025
# numbers of clusters per round, the smallest first, as fits may never find larger ones
_NUMBERS_PER_ROUND = 4

# values of any parameter
_HALVES = 4  # random halves of the samples to which every value is fitted
_MIN_HALVES = 3  # halves in which a number of clusters must be found to be chosen


@np.errstate(under="ignore")  # criteria and fits may underflow to 0
def choose_n_clusters(
    estimator: Any,
    X: Any,
    candidates: Iterable[Any] = results.DEFAULT_CANDIDATES,
    *,
    param_name: str | None = None,
    method: str = "auto",
    fit_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> results.NumberOfClusters | results.ClusterSweep:
    r"""Choose the number of clusters, and fit an estimator with it.

    The method that decides depends on the input:

    - For features, four criteria vote: a Gaussian mixture, the modes of the density, HDBSCAN, and
      prediction strength. A vote for 1 means that the data have no clusters.
    - For labels of partitions, nearly equal partitions decide, if they are at least a quarter of
      all partitions. Otherwise, the gap between eigenvalues of the mean projection matrix of the
      partitions decides.
    - For similarities, distances, constraints and other input that the criteria cannot use,
      stability decides. The estimator is fitted to parts of the samples. The chosen number is the
      largest one whose fits find that many clusters and agree about as well as the fits of the most
      stable number.
    - For `NMFMetaCluster`, `sweep_n_clusters` decides.
    - For a clusterer that has another parameter instead of a number of clusters, such as `eps`,
      `distance_threshold` or a resolution, pass `param_name` and values of that parameter. The
      values lead to several numbers of clusters, and the most stable number is chosen.

    Parameters
    ----------
    estimator : estimator
        A clusterer with a parameter `n_clusters`, a mixture with `n_components`, or a pipeline that
        ends in one of these. With `param_name`, it may be any clusterer. The function fits clones
        of it.
    X : array-like, sparse matrix, or other input of the estimator
        All samples.
    candidates : iterable of int or tuple (low, high), default=range(1, 16)
        Numbers of clusters to compare. A tuple (low, high) stands for all numbers from low to high.
        No candidate may exceed the number of samples, and the default ends there. "stability",
        "eigengap" and "recurrence" cannot judge 1, and leave it out. With `param_name`, pass ten or
        more values of that parameter.
    param_name : str, default=None
        The parameter whose values are the candidates, such as "eps" or "hdbscan__min_cluster_size".
        The method is then "stability". By default, candidates are numbers of clusters.
    method : {"auto", "vote", "eigengap", "stability", "held-out", "recurrence"}, default="auto"
        The method that decides; keep "auto" unless you need a certain one. "eigengap" is for labels
        of partitions only, "held-out" and "recurrence" for NMFMetaCluster only. "auto" is "vote"
        for features, "eigengap" for labels, and the default of `sweep_n_clusters` for
        NMFMetaCluster. It is "stability" for everything else, for example if `fit_params` holds
        constraints.
    fit_params : dict, default=None
        Arguments of `fit` besides `X`, such as ``{"constraints": pairs}``. An array must have one
        entry for each sample. For NMFMetaCluster, ``{"groups": patients}`` chooses the total number
        of programs of all groups.
    n_jobs : int, default=None
        Number of parallel fits; the result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Determines which samples are drawn, how they are split, and the seeds of estimators whose
        `random_state` is None. Pass an int for reproducible results.

    Returns
    -------
    NumberOfClusters or ClusterSweep
        The choice. `n_clusters_` is the number, `as_good` marks the candidates that are about as
        good, `table` has the scores of all candidates, and `best_estimator_` is fitted to all
        samples. With `param_name`, `values` has the values that lead to each number of clusters.
        `plot` draws the scores.

    Raises
    ------
    TypeError
        If `estimator` has no number of clusters and `param_name` is None, or if a candidate for the
        number is not an int.
    ValueError
        If `X` or a parameter is not as described; if fits find fewer clusters than every candidate;
        if, with `param_name`, no number of clusters is found in at least three of four halves of
        the samples. If all fits fail, the error of the first one is raised.

    Warns
    -----
    FitFailedWarning
        If fits with a number of clusters fail. This number is then not chosen.
    UserWarning
        If the largest candidate is chosen; if too few criteria agree, or they agree on a number
        that is not a candidate; if there are too few samples for a vote; if partitions support
        other numbers about as well, for example because they were made at several resolutions.

    See Also
    --------
    sweep_n_clusters : Choose the number of clusters of NMFMetaCluster, with more options.
    StabilityScorer : Score the values of any parameter in a search of scikit-learn.

    Notes
    -----
    The vote and the eigenvalues use at most 2,000 samples, drawn at random, and take a second or
    two. The estimator is then fitted once. Stability first fits every candidate to two parts of the
    samples. It fits the candidates that can still be chosen to four parts, and the two that decide
    to six. A part is half of the samples, but at most 500 samples, or 20 times the largest
    candidate if that is more.

    With `param_name`, the estimator is fitted to all samples and to four halves of them with every
    value. The same value may lead to fewer clusters in a half, because the effect of a resolution
    or a distance depends on the density of the samples. Fits are therefore grouped by the number of
    clusters that they found, not by the value. The stability of a number is the mean adjusted Rand
    index of fits that found it in different halves. The most stable number is chosen.
    `best_estimator_` has the middle one of the values that lead to this number for all samples.

    A number of clusters is ruled out if most fits to parts, or the fit to all samples, find fewer
    clusters. This may happen for partitions, or if `X` has duplicate rows. A number stays if only a
    few fits miss a small cluster. If two consecutive candidates are too large, larger ones are not
    tried. Warnings of fits to parts are suppressed.

    A matrix of similarities or distances is recognized by the estimator's tag `pairwise`, or by a
    parameter that is "precomputed". A part of the samples then selects rows and columns. If an
    estimator has no `predict`, or `predict` fails for such a matrix, a sample is assigned to the
    cluster of the nearest, or most similar, fitted sample. Parts of the samples keep the order of
    `X`. Stability raises an error if a parameter of the estimator has an entry for each sample,
    such as ``connectivity=``, because such an estimator cannot be fitted to parts.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster.model_selection import choose_n_clusters
    >>> X, _ = make_blobs(300, centers=4, random_state=8)
    >>> chosen = choose_n_clusters(KMeans(n_init=3), X, range(1, 8), random_state=0)
    >>> chosen
    NumberOfClusters(4 of 1 to 7, by 4 of 4 votes)
    >>> chosen.n_clusters_, chosen.best_estimator_.labels_.shape
    (4, (300,))
    """
    validate_parameter_constraints(
        _PARAMETER_CONSTRAINTS, locals(), caller_name="choose_n_clusters"
    )
    rng = make_rng(random_state)
    fit_params = fit_params or {}
    if param_name is not None:
        return choose_by_values(
            estimator, X, candidates, param_name, fit_params, method, n_jobs, rng
        )
    name = results.n_clusters_parameter(estimator)
    # a list of memberships has as many samples as its first matrix
    table = X[0] if is_soft(X) and refits.takes_labels(estimator) else X
    n_samples = refits.get_n_samples(table)

    # runs of NMF
    is_sweep = method == "auto" and isinstance(estimator, NMFMetaCluster)
    if is_sweep or method in _SWEEP_METHODS:
        return _sweep(estimator, X, candidates, method, fit_params, n_jobs, rng)

    numbers = results.read_candidates(candidates, n_samples)
    refits.check_fit_params(estimator, fit_params)
    seed = int(rng.randint(refits.SEEDS))
    method = _resolve_method(method, estimator, X, fit_params)
    if method != "vote":
        numbers = results.drop_single_cluster(numbers, method)
    models = {k: clone(estimator).set_params(**{name: k}) for k in numbers.tolist()}

    def fit_with(k):
        _say(f"fitting {name}={k} to all samples")
        rng = np.random.default_rng(seed)
        return refits.refit(models[k], X, None, fit_params, rng)

    if method == "vote":
        chosen = choose_by_vote(estimator, X, numbers, seed, fit_with)
    else:
        if method == "eigengap":
            figures, failures = measure_gaps(estimator, X, numbers, seed)
        else:
            samples = _read_parts(estimator, X, fit_params, "unless method='vote'")
            figures, failures = measure_stability(models, samples, seed, n_jobs)
        chosen = select_best(method, numbers, figures, failures, fit_with, table)
    results.warn_if_largest(numbers, chosen.n_clusters_)
    return chosen


def _sweep(estimator, X, candidates, method, fit_params, n_jobs, rng):
    """Return the choice by `sweep_n_clusters`, which decides for runs of NMF."""
    if not fit_params.keys() <= {"groups"}:
        raise ValueError(
            "fit_params may only hold groups for NMFMetaCluster, as sweep_n_clusters decides. "
            "For other arguments of fit, use method='stability'."
        )
    return sweep_n_clusters(
        estimator,
        X,
        candidates,
        **fit_params,
        method=method,
        n_estimators="auto",
        n_jobs=n_jobs,
        random_state=rng,
    )


def _read_parts(estimator, X, fit_params, where):
    """Return all samples for fits to parts of them."""
    advice = "choose_n_clusters needs all samples"
    samples = refits.read_samples(estimator, X, None, {}, fit_params, advice)
    rule = f"estimator must accept parts of the samples {where}"
    check_accepts_parts(estimator, samples.X, rule)
    return samples


def _resolve_method(method, estimator, X, fit_params):
    """Return the method for the kind of input; raise if the given one cannot use it."""
    takes_features = refits.takes_features(estimator, X)
    takes_labels = refits.takes_labels(estimator)
    if method == "auto":
        # criteria of the vote cannot use constraints
        only_weights = fit_params.keys() <= {"sample_weight"}
        if takes_features and only_weights and not may_take_pairs(estimator, X):
            return "vote"
        return "eigengap" if takes_labels and not fit_params else "stability"
    if method == "vote" and not takes_features:
        raise ValueError(
            "method='vote' needs features, but the estimator takes similarities, "
            "distances, or labels. Use method='stability'."
        )
    if method == "eigengap" and not takes_labels:
        raise ValueError(
            "method='eigengap' needs labels of partitions, as "
            "NMFConsensus(affinity='partitions') takes. Use method='auto'."
        )
    return method


# --- eigengap ------------------------------------------------------------------------


def measure_gaps(estimator, X, numbers, seed):
    r"""Return how far eigenvalues of the mean projector fall after each number of clusters.

    Eigenvalues of the normalised mean projector are 1 for clusters that no partition mixes. The
    more partitions mix a cluster, the smaller is its eigenvalue. With k clusters,
    :math:`\lambda_k` is the last one near 1, and

    .. math:: 1 - \frac{1 + \epsilon - \lambda_k}{1 + \epsilon - \lambda_{k+1}}

    is large. This compares how much clusters are mixed. The plain difference of eigenvalues would
    not work. If partitions have at least m clusters, the difference is largest after m, whatever
    the clusters are.

    If even :math:`\lambda_2` is below 0.9, partitions are noisy copies of the clusters and do not
    only split them. Small clusters then have eigenvalues that are low, but above chance. The
    fraction is then multiplied by a second one. It divides :math:`\lambda_{k+1}` by
    :math:`\lambda_k`, after the eigenvalue of a cluster that only one partition has is subtracted
    from both.

    Parameters
    ----------
    estimator : NMFConsensus
        Its `weights` are those of the partitions.
    X : object
        Labels or memberships of all samples by partitions.
    numbers : ndarray of shape (n_candidates,), int
    seed : int
        Determines the samples whose labels are used.

    Returns
    -------
    figures : dict of str to ndarray of shape (n_candidates,)
        Attributes of `NumberOfClusters`, by their names: gaps from 0 to 1, shares of the partitions
        that repeat each other, and 0 clusters found, as nothing is fitted here.
    failures : list of None
        As `measure_stability` returns them.
    """
    rng = np.random.default_rng(seed)
    table: Any
    if is_soft(X):
        table = Memberships(X, "X")
    else:
        labels = draw_samples(X, rng)
        labels = labels if hasattr(labels, "columns") else np.asarray(labels)
        table = LabelTable(labels, "X")
    problem, _ = table.problem(getattr(estimator, "weights", None), True)
    A = problem.objective.A
    n_values = int(numbers[-1]) + 1
    values, _ = leading_eigenpairs(A, min(n_values, A.shape[0]))
    values = np.pad(values, (0, n_values - len(values)))
    mixed = 1 + _UNMIXED - values
    ratios = mixed[numbers - 1] / mixed[numbers]
    if values[1] < _NOISY:
        alone = (problem.weights**2).sum()  # 1 / T of T partitions of equal weight
        shared = np.maximum(values - alone, 0) / (1 - alone) + _CHANCE
        ratios *= shared[numbers] / shared[numbers - 1]
    figures = {
        "eigengap": 1 - ratios,
        "repeated": np.zeros(len(numbers)),
        "n_found": np.zeros(len(numbers), dtype=int),
    }
    if isinstance(table, LabelTable):
        figures["repeated"] = _shares_repeated(table, numbers, problem.weights, rng)
    return figures, [None] * len(numbers)


def _shares_repeated(table, numbers, weights, rng):
    """Return, for each number of clusters, the largest share of nearly equal partitions.

    A clustering that several resolutions or seeds repeat is evidence for its number of
    clusters, even if many coarser partitions mix its clusters.
    """
    columns = draw_positions(table.codes.shape[1], _MAX_REPEATS, rng)
    shares = np.zeros(len(numbers))
    for i, k in enumerate(numbers):
        own = columns[table.n_clusters[columns] == k]
        if len(own) < _MIN_REPEATS:
            continue
        indices = table_of_pairs(rand_index, table.codes[:, own].T)
        is_same = indices >= _SAME
        np.fill_diagonal(is_same, True)
        is_many = is_same.sum(axis=1) >= _MIN_REPEATS
        shares[i] = (is_same @ weights[own] * is_many).max() / weights[columns].sum()
    return shares


# --- stability -----------------------------------------------------------------------


def measure_stability(models, samples, seed, n_jobs):
    """Fit every number of clusters to the same parts of the samples, and compare the fits.

    1. Every number is fitted twice, the smallest first. This ends when fits find too few
       clusters for two numbers in a row.
    2. Numbers are fitted twice more if their mean agreement plus a standard error is high
       enough to be chosen.
    3. The largest of these, and the one whose fits agree best, are fitted six times. If
       the largest is ruled out, the next one is fitted six times.

    Parameters
    ----------
    models : dict of int to estimator
        Estimators by their numbers of clusters, in increasing order.
    samples : Samples
        The samples from which parts are drawn at random.
    seed : int
    n_jobs : int or None

    Returns
    -------
    figures : dict of str to ndarray of shape (n_candidates,)
        Attributes of `NumberOfClusters`, by their names.
    failures : list of Exception or None
        The first error of the fits of each number.
    """
    numbers = list(models)
    n_samples = refits.count_entries(samples.X)
    most = max(results.MAX_SAMPLES, _SAMPLES_PER_CLUSTER * numbers[-1])
    size = min(n_samples // 2, most)
    _say(f"fitting {len(numbers)} numbers of clusters to parts of {size} samples")
    fits: list = [[] for _ in numbers]
    measured = [(np.nan, np.nan, 0)] * len(numbers)
    untried = list(range(len(numbers)))
    pending = untried[:_NUMBERS_PER_ROUND]
    while pending:
        # fit each pending number to two more parts
        parts = [
            (models[numbers[i]], part)
            for i in pending
            for part in range(len(fits[i]), len(fits[i]) + _FITS_PER_ROUND)
        ]
        outcomes = iter(_labels_by_parts(parts, samples, size, seed, n_jobs))
        for i in pending:
            fits[i] += [next(outcomes) for _ in range(_FITS_PER_ROUND)]
            measured[i] = _agreement(fits[i], numbers[i])
        means, errors, n_found = np.array(measured).T
        n_fits = np.array([len(own) for own in fits])

        # larger numbers are not tried after two in a row that are too large
        is_too_large = (n_found > 0) & (n_found < numbers)
        untried = untried[_NUMBERS_PER_ROUND:]
        if is_too_large[pending[-2:]].sum() == 2:
            untried = []
        pending = untried[:_NUMBERS_PER_ROUND] or _undecided(means, errors, n_fits)
    figures = {
        "stability": means,
        "stability_se": errors,
        "n_fits": n_fits,
        "n_found": n_found.astype(int),
    }
    return figures, [refits.first_error(own) for own in fits]


def _labels_by_parts(parts, samples, size, seed, n_jobs):
    """Return the labels of the same samples by a fit of each model to a part, or its error.

    `parts` has pairs of a model and the number of its part. The seed and this number determine
    which `size` samples are in the part.
    """
    n_samples = refits.count_entries(samples.X)
    compared = draw_positions(n_samples, _MAX_COMPARED, np.random.default_rng(seed))
    calls = [(model, np.random.default_rng((seed, part))) for model, part in parts]
    common = (samples, size, compared)
    with warnings.catch_warnings(action="ignore"):
        return refits.try_calls(refits.labels_by_refit, common, calls, n_jobs)


def _undecided(means, errors, n_fits):
    """Return the positions of numbers that need more fits before one can be chosen."""
    if np.isnan(means).all():
        return []
    margins = np.where(n_fits < _FITS_OF_FINALISTS, errors, 0)
    threshold = np.nanmax(means) - _STABILITY_MARGIN
    contenders = np.flatnonzero(means + margins >= threshold)
    pending = contenders[n_fits[contenders] < _FITS_OF_CONTENDERS]
    if not len(pending):
        finalists = np.unique([contenders[-1], np.nanargmax(means)])
        pending = finalists[n_fits[finalists] < _FITS_OF_FINALISTS]
    return pending.tolist()


def _agreement(fits, n_clusters):
    """Return the mean adjusted Rand index, its standard error, and the clusters found.

    The index is NaN if a fit failed, or if most fits found fewer clusters. A few fits may
    find fewer, as a small cluster may be missing from a part.
    """
    if refits.first_error(fits):
        return np.nan, np.nan, 0
    n_found = median_high(count for _, count in fits)
    if n_found < n_clusters:
        return np.nan, np.nan, n_found
    mean, error = _compare([[labels] for labels, _ in fits])
    return mean, error, n_found


def _compare(parts):
    """Return the mean adjusted Rand index of fits to different parts, and its standard error.

    `parts` has a list for every part: the labels of all samples by each fit to it.
    """

    def agreement(a, b):
        return np.mean([rand_index(i, j) for i in a for j in b])

    indices = table_of_pairs(agreement, parts)
    if len(parts) == _FITS_PER_ROUND:
        return mean_of_pairs(indices), _ERROR_OF_TWO_FITS
    return jackknife(mean_of_pairs, indices)


def select_best(method, numbers, figures, failures, fit_with, X):
    """Return the best number of clusters by `_rank` whose fit finds that many clusters.

    If the fit to all samples fails or finds fewer clusters, the next best number is
    chosen. For example, the constraints within parts may allow a number of clusters that
    all constraints together do not allow.

    Parameters
    ----------
    method : {"stability", "eigengap"}
        The figure that decides.
    numbers : ndarray of shape (n_candidates,), int
    figures : dict of str to ndarray of shape (n_candidates,)
        Attributes of `NumberOfClusters`; fits to all samples change them in place.
    failures : list of Exception or None
        The first error of the fits of each number.
    fit_with : callable
        Fits a number of clusters to all samples.
    X : object
        All samples.

    Returns
    -------
    NumberOfClusters
    """
    means = figures[method]
    n_found = figures["n_found"]
    while not np.isnan(means).all():
        best, as_good = _rank(means, figures.get("repeated"))
        k = int(numbers[best])
        try:
            model = fit_with(k)
            n_found[best] = refits.count_clusters(model, X)
        except Exception as error:
            failures[best] = error
        else:
            if n_found[best] >= k:
                break
        means[best] = np.nan
    results.report_failures(numbers, failures, "choose_n_clusters")
    if np.isnan(means).all():
        raise ValueError(
            "candidates must hold a number of clusters that fits find. With candidates from "
            f"{numbers[0]} to {numbers[-1]}, fits found at most {n_found.max()}."
        )
    if method == "stability":
        figures["stability_se"][np.isnan(means)] = np.nan
    elif as_good.sum() > 1:
        others = ", ".join(map(str, numbers[as_good & (numbers != k)]))
        warn(
            f"{k} clusters were chosen, but the partitions support {others} about as well. "
            "Compare the clusters for these numbers, or give fewer candidates."
        )
    return results.NumberOfClusters(
        numbers, k, as_good, method, **figures, best_estimator_=model
    )


def _rank(means, repeated):
    """Return the position of the number to choose, and which numbers are about as good.

    By stability (`repeated` is None), the largest number that is about as good as the best is
    chosen. By eigenvalues, the number with the largest gap is chosen, unless many partitions repeat
    one clustering. Then the largest number that enough partitions repeat is chosen. A number whose
    mean is NaN is never chosen or about as good.
    """
    if repeated is None:
        as_good = means >= np.nanmax(means) - _STABILITY_MARGIN
        return np.flatnonzero(as_good)[-1], as_good
    shares = np.where(np.isnan(means), 0, repeated)
    as_good = means >= _GAP_AS_GOOD * np.nanmax(means)
    as_good |= shares >= _SHARE_AS_GOOD
    best = np.nanargmax(means)
    if shares.max() >= _SHARE_DECIDES:
        best = np.flatnonzero(shares >= _SHARE_OF_FINER)[-1]
    return best, as_good


# --- values of any parameter -----------------------------------------------------------


def choose_by_values(estimator, X, values, param_name, fit_params, method, n_jobs, rng):
    """Choose the most stable of the numbers of clusters that values of a parameter lead to.

    Parameters
    ----------
    estimator : estimator
    X : object
        All samples.
    values : iterable
        Values of the parameter.
    param_name : str
    fit_params : dict
        Arguments of `fit` besides X.
    method : str
        "auto" or "stability".
    n_jobs : int or None
    rng : RandomState

    Returns
    -------
    NumberOfClusters
        Its candidates are the numbers that values lead to for all samples, without 1.
    """
    if method not in ("auto", "stability"):
        raise ValueError(
            f"method must be 'stability' or 'auto' with param_name, got {method!r}."
        )
    samples = _read_parts(estimator, X, fit_params, f"for values of {param_name}")
    refits.check_fit_params(estimator, fit_params)
    values = results.read_values(values, param_name, estimator)
    seed = int(rng.randint(refits.SEEDS))
    models = [clone(estimator).set_params(**{param_name: value}) for value in values]
    _say(f"fitting {len(values)} values of {param_name} to all samples and to halves")

    calls = [
        (each, X, None, fit_params, np.random.default_rng(seed)) for each in models
    ]
    fitted = refits.try_calls(refits.refit, (), calls, n_jobs)
    results.report_failures(values, fitted, "choose_n_clusters", param_name)
    positions = _positions_by_number(fitted, X)
    numbers = np.array([k for k in positions if k > 1], dtype=np.int64)

    halves = _labels_by_number(models, samples, seed, n_jobs)
    measured = np.full((len(numbers), 2), np.nan)
    n_fits = np.zeros(len(numbers), dtype=int)
    for i, k in enumerate(numbers.tolist()):
        parts = list(halves[k].values())
        n_fits[i] = sum(map(len, parts))
        if len(parts) >= _MIN_HALVES:
            measured[i] = _compare(parts)
    means, errors = measured.T
    if np.isnan(means).all():
        found = ", ".join(map(str, positions))
        raise ValueError(
            f"candidates must hold values of {param_name} that lead to two or more clusters, "
            "and to the same number in halves of the samples. These values lead to "
            f"{found}. Give more values, or others."
        )
    best = np.flatnonzero(means == np.nanmax(means))[-1]
    own = positions[numbers[best]]
    return results.NumberOfClusters(
        numbers,
        int(numbers[best]),
        means >= np.nanmax(means) - _STABILITY_MARGIN,
        "stability",
        stability=means,
        stability_se=errors,
        n_fits=n_fits,
        values={k: [values[i] for i in own] for k, own in positions.items()},
        best_estimator_=fitted[own[len(own) // 2]],
    )


def _positions_by_number(models, X):
    """Return the positions of fitted models by the numbers of clusters that they found."""
    positions = defaultdict(list)
    for i, model in enumerate(models):
        if not isinstance(model, Exception):
            positions[refits.count_clusters(model, X)].append(i)
    return dict(sorted(positions.items()))


def _labels_by_number(models, samples, seed, n_jobs):
    """Return the labels of fits to halves, by the number of clusters found and the half."""
    size = refits.count_entries(samples.X) // 2
    parts = [(model, half) for model in models for half in range(_HALVES)]
    outcomes = _labels_by_parts(parts, samples, size, seed, n_jobs)
    found: dict = defaultdict(partial(defaultdict, list))
    for i, outcome in enumerate(outcomes):
        if not isinstance(outcome, Exception):
            labels, n_found = outcome
            found[n_found][i % _HALVES].append(labels)
    return found
