"""Fits with several numbers of clusters, and which of these the data speak for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from nmfcluster import _base
from nmfcluster._arrays.arguments import check_count, counted, generator_of, shown, warn
from nmfcluster._arrays.dispersion import overdispersion
from nmfcluster._arrays.draws import holds_whole_numbers, some_positions, thinned
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.storage import largest
from nmfcluster._arrays.tables import row_names
from nmfcluster._arrays.threads import one_blas_thread
from nmfcluster._compat import (
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from nmfcluster._engine.starts import draw_seeds
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.meta.parameters import read_fixed
from nmfcluster.metrics import cophenetic_correlation
from nmfcluster.model_selection.copies import SEEDS
from nmfcluster.model_selection.rules import last_recurring, least_held_out, standard_errors
from nmfcluster.model_selection.swept import ClusterSweep
from nmfcluster.model_selection.thinning import held_out_losses

__all__ = ["sweep_n_clusters"]

_SAMPLES = 500  # whose consensus is looked at: the time of its tree grows with their square
_LARGEST = 2**62  # of a count: numpy draws counts of 64 bits
_RUNS = {False: 10, True: 5}  # of a candidate: more where they are what decides
_ALLOWED: dict[str, list[Any]] = {
    "method": [StrOptions({"auto", "held-out", "recurrence"})],
    "n_folds": [Interval(Integral, 2, 1000, closed="both")],
    "dispersion": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "n_estimators": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
    "n_jobs": N_JOBS,
    "random_state": RANDOM_STATE,
    "verbose": VERBOSE,
}


def sweep_n_clusters(
    estimator: NMFMetaCluster,
    X: Any,
    candidates: Iterable[int] = range(2, 16),
    *,
    method: str = "auto",
    n_folds: int = 5,
    dispersion: str | float = "auto",
    n_estimators: str | int | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int = 0,
) -> ClusterSweep:
    r"""Fit several numbers of clusters, and choose the one that the data speak for.

    Counts are chosen by held-out loss: every count is shared out at random to `n_folds` parts,
    which are independent tables of the same clusters [1]_. All parts but one are fitted, by a
    single run, and the last is scored: what a cluster too many fits in some parts is not in the
    other. The smallest number is taken whose mean loss is within one standard error of the least.

    Parts are independent if counts vary as Poisson numbers do. Those that vary more, with a
    variance of :math:`\mu + \phi \mu^2`, are shared out so that parts are independent, too [2]_;
    :math:`\phi` is estimated from the fit with the most clusters.

    Other tables have no such parts. Then the largest number is taken of which all clusters come
    back in the runs: the smallest `recurrence_` is at most 0.15 below that of any candidate.

    Parameters
    ----------
    estimator : NMFMetaCluster
        Cloned, and fitted to `X` with every number of clusters.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Nonnegative, without NaN. A sparse one stays sparse.
    candidates : iterable of int, default=range(2, 16)
        Numbers of clusters. Recurrence cannot say 1: "auto" leaves it out where recurrence decides.
    method : {"auto", "held-out", "recurrence"}, default="auto"
        What to choose by: "held-out", for whole numbers alone, or "recurrence". "auto": "held-out"
        if `X` holds whole numbers.
    n_folds : int, default=5
        Number of parts, with as many fits of a single run for every candidate.
    dispersion : "auto" or float, default="auto"
        :math:`\phi`: 0 for Poisson numbers; "auto": as estimated.
    n_estimators : "auto", int or None, default=None
        Runs of every candidate, if these are fewer than the estimator has; the number that is
        chosen is fitted again with all of them. "auto": 10 where recurrence decides, and 5 where
        held-out losses do. None: as many as the estimator has.
    n_jobs : int, default=None
        Number of fits at a time; the result does not depend on it. Use this or that of the
        estimator.
    random_state : int, RandomState instance or None, default=None
        Determines the parts and the seeds of their fits; that of the fits to `X`, too, where the
        estimator has none.
    verbose : int, default=0
        1: what is done is printed, before each stage.

    Returns
    -------
    ClusterSweep
        The number that was chosen, the fitted estimators, and a table of their figures.

    Raises
    ------
    TypeError
        If `estimator` is not an NMFMetaCluster, or a candidate not an int.
    ValueError
        If `X` or a parameter is not as described; what the first fit raised, if none succeeds.

    Warns
    -----
    FitFailedWarning
        If the fits with a number of clusters fail: it is not chosen.
    UserWarning
        If the largest candidate is chosen.

    See Also
    --------
    StabilityScorer : For other parameters, and other estimators.

    Notes
    -----
    So that little is computed twice, the fits to `X` give recurrence, error and the final model,
    and parts are drawn once for all candidates. Starts are nested: that of five clusters begins
    with that of four.

    References
    ----------
    .. [1] A. Neufeld, A. Dharamshi, L. L. Gao, D. Witten. Data thinning for convolution-closed
       distributions. Journal of Machine Learning Research 25, 2024.
    .. [2] A. Neufeld, J. Popp, L. L. Gao, A. Battle, D. Witten. Negative binomial count splitting
       for single-cell RNA sequencing data. arXiv:2307.12985, 2023.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_signatures
    >>> from nmfcluster.model_selection import sweep_n_clusters
    >>> X, _, _ = make_signatures(n_signatures=4, random_state=0)
    >>> model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=5, random_state=0)
    >>> sweep_n_clusters(model, X, range(3, 6), n_folds=3, random_state=0)
    ClusterSweep(4 of 3 to 5, by held-out)
    """
    given = {name: value for name, value in locals().items() if name in _ALLOWED}
    validate_parameter_constraints(_ALLOWED, given, caller_name="sweep_n_clusters")
    if not isinstance(estimator, NMFMetaCluster):
        raise TypeError(f"estimator must be an NMFMetaCluster, got {shown(estimator)}.")
    rng = generator_of(random_state)
    model, table = _read(estimator, X)
    numbers = read_candidates(candidates, table.shape[0])
    by_counts = _holds_counts(table, method)
    if method == "auto" and not by_counts and len(numbers) > 1:
        numbers = numbers[numbers > 1]
    if not by_counts and numbers[0] == 1:
        raise ValueError("candidates must be at least 2 to choose by recurrence: one recurs.")
    if model.random_state is None:
        model.set_params(random_state=int(rng.randint(SEEDS)))
    samples = X if hasattr(X, "columns") else table
    short = clone(model).set_params(n_estimators=_n_runs(n_estimators, model, by_counts))
    say = sayer("sweep_n_clusters", verbose)
    fits = _fits(short, samples, numbers, n_jobs, say)
    seeds = draw_seeds(rng, n_folds + 2)
    losses, phi = None, None
    if by_counts:
        phi = _dispersion(dispersion, table, fits, seeds[0])
        parts = thinned(table, n_folds, np.random.default_rng(seeds[1]), phi)
        losses = _losses(model, table, parts, numbers, fits, seeds[2:], n_jobs, say)
    smallest = _of_fits(fits, lambda fit: fit.recurrence_.min())
    choice = last_recurring(smallest) if losses is None else least_held_out(losses)
    if 0 < choice.best == len(numbers) - 1:
        warn(f"The largest of the candidates was chosen, {numbers[-1]}: give larger ones, too.")
    k = int(numbers[choice.best])
    estimators = list(fits)
    if short.n_estimators < model.n_estimators:
        estimators[choice.best] = _with_all_runs(model, samples, k, say)
    drawn = some_positions(table.shape[0], _SAMPLES, np.random.default_rng(seeds[0]))
    return ClusterSweep(
        candidates=numbers,
        n_clusters_=k,
        as_good=choice.as_good,
        method="recurrence" if losses is None else "held-out",
        held_out_losses=losses,
        held_out_se=None if losses is None else standard_errors(losses),
        dispersion=phi,
        recurrence=_of_fits(fits, lambda fit: fit.recurrence_.mean()),
        smallest_recurrence=smallest,
        reconstruction_err=_of_fits(fits, lambda fit: fit.reconstruction_err_),
        cophenetic=_of_fits(fits, lambda fit: _cophenetic(fit, drawn)),
        estimators=tuple(estimators),
    )


def sayer(caller: str, verbose: int) -> Callable[[str], None]:
    """Return what prints a line about the stage that begins, if that is wanted."""

    def _say(stage: str) -> None:
        if verbose:
            print(f"[{caller}] {stage}")

    return _say


def _read(estimator: NMFMetaCluster, X: Any) -> tuple[Any, Any]:
    """Return a clone of the estimator, and X as floats, dense or CSR."""
    model, reader = clone(estimator), clone(estimator)
    table = _base.read_features(reader, X, order="C", ensure_all_finite="allow-nan")
    if np.isnan(table.min()):
        raise ValueError(
            "X must not hold NaN in sweep_n_clusters: counts that were not observed have no parts. "
            "Leave out rows or columns with NaN."
        )
    _base.require_nonnegative(reader, table, "MinMaxScaler scales columns to [0, 1]")
    if model.fixed_components is not None:  # in the order of X, whose parts have no names
        names = row_names(getattr(X, "columns", None))
        reader.set_params(n_clusters=table.shape[0])
        model.set_params(fixed_components=read_fixed(reader, names, table.dtype))
    return model, table


def read_candidates(candidates: Iterable[int], n_samples: int) -> np.ndarray:
    """Return numbers of clusters in increasing order."""
    if isinstance(candidates, str | Integral) or not hasattr(candidates, "__iter__"):
        raise TypeError(f"candidates must be several ints, got {shown(candidates)}.")
    numbers = list(candidates)
    if not numbers:
        raise ValueError("candidates must hold a number of clusters, got none.")
    for number in numbers:
        check_count(number, "candidates", 1)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"candidates must differ, got {shown(numbers)}.")
    if max(numbers) > n_samples:
        raise ValueError(f"candidates must be at most n_samples={n_samples}, got {max(numbers)}.")
    return np.sort(np.array(numbers, dtype=np.int64))


def _holds_counts(table: Any, method: str) -> bool:
    """Return whether to choose by held-out counts; raise where there are none."""
    whole = holds_whole_numbers(table) and largest(table) < _LARGEST
    if method == "held-out" and not whole:
        raise ValueError(
            "method='held-out' shares out counts: X must hold whole numbers, below "
            f"{_LARGEST:.0e}. method='recurrence' takes any."
        )
    return whole and method != "recurrence"


def _n_runs(given: str | int | None, model: NMFMetaCluster, by_counts: bool) -> int:
    """Return how many runs candidates have."""
    model._validate_params()
    if given is None:
        return int(model.n_estimators)
    most = _RUNS[by_counts] if isinstance(given, str) else given
    return int(min(most, model.n_estimators))


def _fits(
    model: NMFMetaCluster,
    X: Any,
    numbers: np.ndarray,
    n_jobs: int | None,
    say: Callable[[str], None],
) -> list[Any]:
    """Return the fits of all numbers of clusters, None where one failed."""
    say(f"fitting {len(numbers)} numbers of clusters, {counted(model.n_estimators, 'run')} of each")
    calls = [(int(k),) for k in numbers]
    with one_blas_thread():
        found = shared_out(_fit, (model, X), lambda: calls, n_jobs)
    errors = [fit if isinstance(fit, Exception) else None for fit in found]
    tell_failures(numbers, errors, "sweep_n_clusters")
    return [None if isinstance(fit, Exception) else fit for fit in found]


def _with_all_runs(
    model: NMFMetaCluster, X: Any, n_clusters: int, say: Callable[[str], None]
) -> NMFMetaCluster:
    """Return the fit of the number that was chosen, with as many runs as the estimator has."""
    say(f"fitting n_clusters={n_clusters}, {counted(model.n_estimators, 'run')}")
    return clone(model).set_params(n_clusters=n_clusters).fit(X)


def _fit(model: NMFMetaCluster, X: Any, n_clusters: int) -> NMFMetaCluster | Exception:
    try:
        return clone(model).set_params(n_clusters=n_clusters).fit(X)
    except Exception as error:
        return error


def _dispersion(given: str | float, table: Any, fits: list[Any], seed: int) -> float:
    """Return the dispersion of counts: as given, or by the fit with the most clusters."""
    if not isinstance(given, str):
        return float(given)
    last = [fit for fit in fits if fit is not None][-1]
    with one_blas_thread():
        rng = np.random.default_rng(seed)
        return overdispersion(table, last.factor_, last.components_, rng)


def _losses(
    model: NMFMetaCluster,
    table: Any,
    parts: list[Any],
    numbers: np.ndarray,
    fits: list[Any],
    seeds: list[int],
    n_jobs: int | None,
    say: Callable[[str], None],
) -> np.ndarray:
    """Return held-out losses, (n_candidates, n_folds); NaN of what could not be fitted before."""
    fitted = np.array([fit is not None for fit in fits])
    tried = numbers[fitted]
    say(f"fitting {len(tried)} numbers of clusters to {len(parts)} parts of the counts")
    losses = np.full((len(numbers), len(parts)), np.nan)
    losses[fitted], errors = held_out_losses(model, table, parts, tried, seeds, n_jobs)
    tell_failures(tried, errors, "sweep_n_clusters")
    return losses


def tell_failures(numbers: np.ndarray, errors: list[Exception | None], caller: str) -> None:
    """Warn of candidates that failed; raise what the first one raised if all did."""
    failed = [(k, error) for k, error in zip(numbers, errors, strict=True) if error is not None]
    if len(failed) == len(numbers):
        failed[0][1].add_note(f"{caller}: all {len(numbers)} candidates failed.")
        raise failed[0][1]
    for k, error in failed:
        warn(
            f"n_clusters={k} failed, and is not chosen. {type(error).__name__}: {error}",
            FitFailedWarning,
        )


def _of_fits(fits: list[Any], figure: Callable[[Any], float]) -> np.ndarray:
    """Return a figure of every fit, NaN where there is none."""
    return np.array([np.nan if fit is None else figure(fit) for fit in fits])


def _cophenetic(fit: NMFMetaCluster, drawn: np.ndarray) -> float:
    """Return the cophenetic correlation of those of some samples that are in a cluster."""
    rows = drawn[fit.labels_[drawn] >= 0]
    with one_blas_thread():
        return cophenetic_correlation(fit.consensus_matrix(rows)) if len(rows) > 2 else np.nan
