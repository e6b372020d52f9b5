"""How many clusters: one call for features, similarities, constraints and many NMF runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags

from nmfcluster._arrays.arguments import generator_of, last_step, shown, warn
from nmfcluster._arrays.tables import check_readable
from nmfcluster._compat import (
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    StrOptions,
    validate_parameter_constraints,
)
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.model_selection.agreeing import Agreement, agreement_of_parts
from nmfcluster.model_selection.checks import (
    is_pairwise,
    n_entries,
    name_of_number,
    require_all_samples,
)
from nmfcluster.model_selection.chosen import NumberOfClusters
from nmfcluster.model_selection.copies import SEEDS, Samples, seeded
from nmfcluster.model_selection.routing import arguments_of_fit
from nmfcluster.model_selection.rules import last_agreeing
from nmfcluster.model_selection.sweep import read_candidates, sayer, sweep_n_clusters, tell_failures
from nmfcluster.model_selection.swept import ClusterSweep
from nmfcluster.model_selection.voters.voting import as_good_as, poll_of, some_of, tally

__all__ = ["choose_n_clusters"]

_MOST = 15  # clusters by default
_DEFAULT = range(1, _MOST + 1)
VOTE, STABILITY = "vote", "stability"
_SWEPT = ("held-out", "recurrence")
_FEWEST = 8  # samples of a vote: two clusters of four
_PART = 500  # samples of a fit to similarities: its time grows with their square
_WEIGHTS = {"sample_weight"}  # what fit may take, and a vote can leave out
_ALLOWED: dict[str, list[Any]] = {
    "method": [StrOptions({"auto", VOTE, STABILITY, *_SWEPT})],
    "fit_params": [dict, None],
    "n_jobs": N_JOBS,
    "random_state": RANDOM_STATE,
    "verbose": VERBOSE,
}


def choose_n_clusters(
    estimator: Any,
    X: Any,
    candidates: Iterable[int] = _DEFAULT,
    *,
    method: str = "auto",
    fit_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> NumberOfClusters | ClusterSweep:
    r"""Say how many clusters the data have, and fit an estimator with that number.

    Features are put to a vote of six criteria that see different things, and 1 is among their
    answers: there may be no clusters at all. Similarities, constraints and whatever else a vote
    cannot see are decided by stability: the estimator is fitted to halves of the samples, and the
    largest number is taken whose fits agree nearly as well as those of any number. Runs of NMF are
    decided by `sweep_n_clusters`.

    Parameters
    ----------
    estimator : estimator
        A clusterer with a parameter `n_clusters`, a mixture with `n_components`, or a pipeline that
        ends in one. It is cloned.
    X : array-like, sparse matrix, or whatever the estimator takes
        All samples.
    candidates : iterable of int, default=range(1, 16)
        Numbers of clusters, at most as many as there are samples; the default ends there. Stability
        and recurrence leave out 1.
    method : {"auto", "vote", "stability", "held-out", "recurrence"}, default="auto"
        What to choose by. "held-out" and "recurrence" are for NMFMetaCluster alone. "auto":
        "vote" for features; for NMFMetaCluster what `sweep_n_clusters` takes; "stability" for
        everything else, as where `fit_params` holds constraints.
    fit_params : dict, default=None
        What `fit` takes besides `X`, as ``{"constraints": pairs}``: one entry for each sample.
    n_jobs : int, default=None
        Number of fits at a time; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Determines samples, halves, and the seeds of estimators that have none.
    verbose : int, default=0
        1: what is done is printed, before each stage.

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
        If `X` or a parameter is not as described; what the first fit raised, if none succeeds.

    Warns
    -----
    FitFailedWarning
        If fits with a number of clusters fail: it is not chosen.
    UserWarning
        If the largest candidate is chosen, or if no two criteria agree.

    See Also
    --------
    sweep_n_clusters : With options for runs of NMF.
    StabilityScorer : For other parameters than the number of clusters.

    Notes
    -----
    The vote looks at 2,000 samples at most, drawn at random, and takes a second or two; the
    estimator is fitted once. Stability fits it to two halves of the samples with every candidate,
    to up to eight with those that can still be chosen, and to ten with the two that decide; of
    similarities and several sources, to 500 samples at most instead of a half.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster.model_selection import choose_n_clusters
    >>> X, _ = make_blobs(300, centers=4, random_state=8)
    >>> chosen = choose_n_clusters(KMeans(n_init=3), X, range(1, 8), random_state=0)
    >>> chosen
    NumberOfClusters(4 of 1 to 7, by 6 of 6 votes)
    >>> chosen.n_clusters_, chosen.best_estimator_.labels_.shape
    (4, (300,))
    """
    given = {name: value for name, value in locals().items() if name in _ALLOWED}
    validate_parameter_constraints(_ALLOWED, given, caller_name="choose_n_clusters")
    name = name_of_number(estimator)
    rng = generator_of(random_state)
    candidates = _up_to(candidates, n_entries(X))
    _say = sayer("choose_n_clusters", verbose)

    if method in _SWEPT or (method == "auto" and isinstance(estimator, NMFMetaCluster)):
        _say("fitting runs with every number of clusters")
        return _swept(estimator, X, candidates, method, fit_params, n_jobs, rng, verbose)
    if n_entries(X) < 0:
        raise ValueError(
            f"X must have an entry for every sample, got {shown(X)}. Views are a ViewStack, and "
            "similarities a SimilarityStack."
        )
    numbers = read_candidates(candidates, n_entries(X))
    fit_params, seed = fit_params or {}, int(rng.randint(SEEDS))

    def fitted(k: int) -> Any:
        _say(f"fitting {name}={k} to all samples")
        model = clone(estimator).set_params(**{name: k})
        return seeded(model, np.random.default_rng(seed)).fit(X, **fit_params)

    pairwise = is_pairwise(estimator, must_predict=False)
    table = isinstance(X, list) or getattr(X, "ndim", 0) == 2
    features = table and not pairwise and not _takes_labels(estimator)
    if method == VOTE or (method == "auto" and features and fit_params.keys() <= _WEIGHTS):
        if not features:
            raise ValueError(
                "method='vote' asks features, and the estimator takes similarities, or labels: "
                "give method='stability'."
            )
        _say("asking six criteria")
        found = _by_vote(estimator, X, numbers, seed)
        found = replace(found, best_estimator_=fitted(found.n_clusters_))
    else:
        require_all_samples(estimator, X, pairwise)
        arguments = arguments_of_fit(estimator, {}, fit_params, n_entries(X))
        samples = Samples(X, None, arguments, pairwise)
        size = n_entries(X) // 2 if features else min(n_entries(X) // 2, _PART)
        numbers = numbers[numbers > 1]
        if not len(numbers):
            raise ValueError("candidates must be at least 2 to choose by stability: 1 is stable.")
        _say(f"fitting {len(numbers)} numbers of clusters to parts of {size} samples")
        means = agreement_of_parts(estimator, name, numbers, samples, size, seed, n_jobs)
        found = _steadiest(means, numbers, fitted)
    k = found.n_clusters_
    if k == numbers[-1] and len(numbers) > 1:
        warn(f"The largest of the candidates was chosen, {k}: give larger ones, too.")
    return found


def _up_to(candidates: Iterable[int], n_samples: int) -> Iterable[int]:
    """Return candidates; those by default only as far as there are samples."""
    cut = isinstance(candidates, range) and candidates == _DEFAULT and 0 < n_samples < _MOST
    return range(1, n_samples + 1) if cut else candidates


def _takes_labels(estimator: Any) -> bool:
    """Return whether columns are partitions, whose labels are no numbers to compute with."""
    return bool(get_tags(last_step(estimator)[1]).input_tags.categorical)


def _swept(
    estimator: Any,
    X: Any,
    candidates: Iterable[int],
    method: str,
    fit_params: dict[str, Any] | None,
    n_jobs: int | None,
    rng: np.random.RandomState,
    verbose: int,
) -> ClusterSweep:
    if fit_params:
        raise ValueError(
            "fit_params must be None for NMFMetaCluster, whose runs are decided by "
            "sweep_n_clusters; method='stability' takes them."
        )
    if method == "recurrence" and n_entries(X) > 0:
        numbers = read_candidates(candidates, n_entries(X))
        candidates = numbers[numbers > 1].tolist() or [1]  # which is refused
    return sweep_n_clusters(
        estimator,
        X,
        candidates,
        method=method,
        n_estimators="auto",
        n_jobs=n_jobs,
        random_state=rng,
        verbose=verbose,
    )


def _by_vote(estimator: Any, X: Any, numbers: np.ndarray, seed: int) -> NumberOfClusters:
    check_readable(X)
    if isinstance(estimator, Pipeline):
        X = clone(estimator[:-1]).fit_transform(X)
    rng = np.random.default_rng(seed)
    X = some_of(X, rng)
    X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X", estimator=estimator)
    if X.shape[0] < _FEWEST:
        raise ValueError(
            f"X must have at least {_FEWEST} samples for method='vote', got {X.shape[0]}."
        )
    poll = poll_of(X, int(numbers[-1]), rng)
    votes, candidates = poll.answers, numbers.tolist()
    result = tally(poll, candidates)
    if not result.agreed:
        told = ", ".join(f"{name} {k}" for name, k in votes.items())
        warn(
            f"No two criteria agree on a number of clusters ({told}): {result.n_clusters}, near "
            "the median of their answers, is often not right."
        )
    return NumberOfClusters(
        candidates=numbers,
        n_clusters_=result.n_clusters,
        as_good=as_good_as(result, poll, candidates),
        method=VOTE,
        agreed=result.agreed,
        votes=votes,
    )


def _steadiest(
    found: Agreement, numbers: np.ndarray, fitted: Callable[[int], Any]
) -> NumberOfClusters:
    """Return the largest number whose fits agree about as well as any, and a fit to all samples.

    Constraints of parts may allow a number of clusters that all constraints do not: then the next
    best is taken.
    """
    means, failures, best = found.means.copy(), list(found.failures), None
    while best is None and not np.isnan(means).all():
        choice = last_agreeing(means)
        try:
            best = fitted(int(numbers[choice.best]))
        except Exception as error:
            means[choice.best], failures[choice.best] = np.nan, error
    tell_failures(numbers, failures, "choose_n_clusters")
    return NumberOfClusters(
        candidates=numbers,
        n_clusters_=int(numbers[choice.best]),
        as_good=choice.as_good,
        method=STABILITY,
        stability=means,
        stability_se=np.where(np.isnan(means), np.nan, found.errors),
        n_fits=found.n_fits,
        best_estimator_=best,
    )
