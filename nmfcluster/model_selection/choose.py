"""How many clusters: one call for features, similarities, constraints and many NMF runs."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import nmfcluster.model_selection.refits as copies
import nmfcluster.model_selection.results as results
from nmfcluster._compat import N_JOBS, StrOptions, validate_parameter_constraints
from nmfcluster._optim.initialization import leading_eigenpairs
from nmfcluster._utils.progress import say
from nmfcluster._utils.storage import as_float64, divided, exponent_beyond
from nmfcluster._utils.validation import Seed, generator_of, read_table, warn
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.model_selection.by_stability import agreement_of_parts, steadiest
from nmfcluster.model_selection.sweep import sweep_n_clusters
from nmfcluster.model_selection.vote.clusters import LEAST
from nmfcluster.model_selection.vote.poll import (
    as_good_as,
    disagreement,
    poll_of,
    some_of,
    tally,
)
from nmfcluster.partitions.inputs import LabelTable, Memberships, is_soft
from nmfcluster.similarity import Similarity

_say = partial(say, speaker="choose_n_clusters")
_DEFAULT = range(1, 16)
_SWEPT = ("held-out", "recurrence")  # the methods of `sweep_n_clusters`
_ALLOWED: dict[str, list[Any]] = {
    "method": [StrOptions({"auto", "vote", "stability", "eigengap", *_SWEPT})],
    "fit_params": [dict, None],
    "n_jobs": N_JOBS,
}
_WHOLE = (
    0.05  # below 1: an eigenvalue that is less than that is of a cluster that is whole
)
_PER_CLUSTER = 20  # samples of a part, where a half of all has as many


@np.errstate(under="ignore")  # what underflows in criteria and fits is 0
def choose_n_clusters(
    estimator: Any,
    X: Any,
    candidates: Iterable[int] = _DEFAULT,
    *,
    method: str = "auto",
    fit_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> results.NumberOfClusters | results.ClusterSweep:
    r"""Say how many clusters the data have, and fit an estimator with that number.

    Features are put to a vote of four criteria that see different things, and 1 is among their
    answers: there may be no clusters at all. Labels of partitions are decided by where eigenvalues
    of their mean projector fall. Similarities, distances, constraints and whatever else a vote
    cannot see are decided by stability: the estimator is fitted to parts of the samples, and the
    largest number is taken whose fits find as many clusters and agree nearly as well as those of
    any number. Runs of NMF are decided by `sweep_n_clusters`.

    Parameters
    ----------
    estimator : estimator
        A clusterer with a parameter `n_clusters`, a mixture with `n_components`, or a pipeline that
        ends in one. It is cloned.
    X : array-like, sparse matrix, or whatever the estimator takes
        All samples.
    candidates : iterable of int or tuple (low, high), default=range(1, 16)
        Numbers of clusters, at most as many as there are samples; the default ends there. A tuple
        of two is the range from low to high. Stability and recurrence leave out 1.
    method : {"auto", "vote", "eigengap", "stability", "held-out", "recurrence"}, default="auto"
        What to choose by. "eigengap" is for labels of partitions, "held-out" and "recurrence" for
        NMFMetaCluster alone. "auto": "vote" for features; "eigengap" for labels; for NMFMetaCluster
        what `sweep_n_clusters` takes; "stability" for everything else, as where `fit_params` holds
        constraints.
    fit_params : dict, default=None
        What `fit` takes besides `X`, as ``{"constraints": pairs}``: one entry for each sample.
    n_jobs : int, default=None
        Number of fits at a time; the result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Determines samples, parts, and the seeds of estimators that have none.

    Returns
    -------
    NumberOfClusters or ClusterSweep
        With `n_clusters_`, the number; `as_good`, the candidates that it can hardly be told from;
        `table`; `best_estimator_`, fitted to all samples; and `plot`.

    Raises
    ------
    TypeError
        If `estimator` has no number of clusters, or a candidate is not an int.
    ValueError
        If `X` or a parameter is not as described; if fits find fewer clusters than every candidate;
        what the first fit raised, if none succeeds.

    Warns
    -----
    FitFailedWarning
        If fits with a number of clusters fail: it is not chosen.
    UserWarning
        If the largest candidate is chosen, or if too few criteria agree, or on none of the
        candidates, or there are too few samples for a vote.

    See Also
    --------
    sweep_n_clusters : With options for runs of NMF.
    StabilityScorer : For other parameters than the number of clusters.

    Notes
    -----
    The vote and eigenvalues look at 2,000 samples at most, drawn at random, and take a second or
    two; the estimator is fitted once. Stability fits it to two parts of the samples with every
    candidate, to four with those that can still be chosen, and to six with the two that decide; a
    part is a half of the samples, and at most 500, or 20 times the largest candidate.

    A number is not chosen where most fits to parts, or the fit to all samples, find fewer clusters,
    as fits of partitions or of repeated rows do; a few fits may miss a small one. Where two numbers
    in a row are too large, still larger ones are not tried. What fits to parts warn of is not told.

    Pairs of samples, similarities or distances, are known by the tag of scikit-learn, or by a
    parameter that is "precomputed", and are cut in rows and columns. Where an estimator does not
    predict, a sample is in the cluster of the nearest, or most similar, one that was fitted.

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
    options = {"method": method, "fit_params": fit_params, "n_jobs": n_jobs}
    validate_parameter_constraints(_ALLOWED, options, caller_name="choose_n_clusters")
    name = results.name_of_number(estimator)
    rng = generator_of(random_state)
    soft = is_soft(X) and copies.holds_labels(estimator)
    n_samples = copies.n_samples_of(X[0] if soft else X)
    if isinstance(candidates, range) and candidates == _DEFAULT:
        candidates = range(1, min(_DEFAULT[-1], max(n_samples, 1)) + 1)

    # runs of NMF
    if method in _SWEPT or (method == "auto" and isinstance(estimator, NMFMetaCluster)):
        if fit_params:
            why = "whose runs are decided by sweep_n_clusters; method='stability' takes them"
            raise ValueError(f"fit_params must be None for NMFMetaCluster, {why}.")
        _say("fitting runs with every number of clusters")
        shared: dict[str, Any] = {
            "n_estimators": "auto",
            "n_jobs": n_jobs,
            "random_state": rng,
        }
        return sweep_n_clusters(estimator, X, candidates, method=method, **shared)

    numbers = results.read_candidates(candidates, n_samples)
    copies.check_fit_params(estimator, fit_params or {})
    fit_params, seed = fit_params or {}, int(rng.randint(copies.SEEDS))
    features, labels = (
        copies.holds_features(estimator, X),
        copies.holds_labels(estimator),
    )

    def fitted(k: int) -> Any:
        _say(f"fitting {name}={k} to all samples")
        model = clone(estimator).set_params(**{name: k})
        return copies.seeded(model, np.random.default_rng(seed)).fit(X, **fit_params)

    # features: a vote, unless `fit` takes what criteria cannot see
    seen = fit_params.keys() <= {"sample_weight"}
    if method == "vote" or (method == "auto" and features and seen):
        if not features:
            others = "similarities, distances, or labels: give method='stability'"
            raise ValueError(
                f"method='vote' asks features, and the estimator takes {others}."
            )
        _say("asking criteria")
        chosen = _by_vote(estimator, X, numbers, seed, fitted)

    # labels of partitions: eigenvalues of their projector
    elif method == "eigengap" or (method == "auto" and labels and not fit_params):
        numbers = results.without_one(numbers, "eigengap")
        chosen = _by_eigengap(estimator, X, numbers, seed, fitted)

    # everything else: fits to parts of the samples, by which they agree
    else:
        samples = copies.read_samples(
            estimator, X, None, {}, fit_params, "choose_n_clusters needs all samples"
        )
        numbers = results.without_one(numbers, "stability")
        size = min(
            n_samples // 2, max(results.MOST_SAMPLES, _PER_CLUSTER * int(numbers[-1]))
        )
        _say(f"fitting {len(numbers)} numbers of clusters to parts of {size} samples")
        models = {k: clone(estimator).set_params(**{name: k}) for k in numbers.tolist()}
        agreement = agreement_of_parts(models, samples, size, seed, n_jobs)
        chosen = steadiest(numbers, *agreement, fitted, X)

    results.warn_of_largest(numbers, chosen.n_clusters_)
    return chosen


def _by_vote(
    estimator: Any, X: Any, numbers: np.ndarray, seed: int, fitted: Callable[[int], Any]
) -> results.NumberOfClusters:
    """Return the number that most criteria see in what the last step of a pipeline sees."""
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        X = copies.seeded(
            clone(estimator[:-1]), np.random.default_rng(seed)
        ).fit_transform(X)
    rng = np.random.default_rng(seed)
    X = read_table(
        X, ensure_min_samples=2 * LEAST, estimator="the vote of choose_n_clusters"
    )
    X = as_float64(some_of(X, rng))
    X = divided(X, exponent_beyond(X, 2))  # what is seen has no unit
    answers, certain_modes = poll_of(X, int(numbers[-1]), rng)
    k, agreed = tally(answers, certain_modes, numbers.tolist())
    if agreed != k:
        warn(disagreement(answers, agreed, k, numbers))
    as_good = as_good_as(k, agreed == k, answers, numbers)
    told: dict[str, Any] = {"method": "vote", "agreed": agreed == k, "votes": answers}
    return results.NumberOfClusters(
        numbers, k, as_good, best_estimator_=fitted(k), **told
    )


def _by_eigengap(
    estimator: Any, X: Any, numbers: np.ndarray, seed: int, fitted: Callable[[int], Any]
) -> results.NumberOfClusters:
    """Return the number behind which eigenvalues of partitions fall most."""
    if not copies.holds_labels(estimator):
        wanted = "labels of partitions, as NMFConsensus(affinity='partitions') takes"
        raise ValueError(f"method='eigengap' asks {wanted}: give method='auto'.")
    table: Memberships | LabelTable
    if is_soft(X):
        table, samples = Memberships(X, "X"), X[0]
    else:
        some, samples = some_of(X, np.random.default_rng(seed)), X
        some = some if hasattr(some, "columns") else np.asarray(some)
        table = LabelTable(some, "X", np.dtype(np.float64))
    problem = table.problem(getattr(estimator, "weights", None), True)
    gaps = relative_gaps(problem.objective.A, numbers)
    figures = {"eigengap": gaps, "n_found": np.zeros(len(numbers), dtype=int)}
    return steadiest(
        numbers, figures, [None] * len(numbers), fitted, samples, "eigengap"
    )


def relative_gaps(A: Similarity, numbers: np.ndarray) -> np.ndarray:
    r"""Return how far the eigenvalues of the mean projector fall behind each number of clusters.

    Eigenvalues of the normalised mean projector are 1 for clusters that no partition mixes, and
    less the more these are mixed. With k clusters, :math:`\lambda_k` is the last one near 1, and

    .. math:: 1 - \frac{1 + \epsilon - \lambda_k}{1 + \epsilon - \lambda_{k+1}}

    is large. It compares how much is mixed, and not eigenvalues: where partitions have at least m
    clusters, these fall most behind m, whatever the clusters are.

    Parameters
    ----------
    A : Similarity of shape (n, n)
        The normalised mean projector of partitions.
    numbers : ndarray of shape (n_candidates,), int

    Returns
    -------
    ndarray of shape (n_candidates,)
        From 0 to 1.
    """
    most = int(numbers[-1]) + 1
    values, _ = leading_eigenpairs(A, min(most, A.shape[0]))
    mixed = 1 + _WHOLE - np.pad(values, (0, most - len(values)))
    return 1 - mixed[numbers - 1] / mixed[numbers]
