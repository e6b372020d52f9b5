"""Fits with several numbers of clusters, and which of these the data speak for."""

from collections.abc import Callable, Iterable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone

import nmfcluster.model_selection.held_out_counts as counts
import nmfcluster.model_selection.results as results
from nmfcluster import _compat
from nmfcluster._optim.initialization import draw_seeds
from nmfcluster._utils.parallel import attempted, one_blas_thread, shared_out
from nmfcluster._utils.progress import say
from nmfcluster._utils.sampling import n_not_whole, some_positions
from nmfcluster._utils.storage import largest, row_sums
from nmfcluster._utils.validation import (
    Seed,
    column_names,
    counted,
    generator_of,
    shown,
    warn,
)
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.meta.parameters import objective_of_table, read_fixed
from nmfcluster.metrics import cophenetic_correlation
from nmfcluster.model_selection.refits import SEEDS

_say = partial(say, speaker="sweep_n_clusters")
_AS_SURE = (
    0.15  # of the smallest recurrence, by which a number may lie below the largest one
)
_EXACT = (
    1e-3  # share of the error that is left where a fit ends near an exact factorization
)
_LARGEST = 2**62  # of a count: numpy draws counts of 64 bits
_ALLOWED: dict[str, list[Any]] = {
    "method": [_compat.StrOptions({"auto", "held-out", "recurrence"})],
    "n_folds": [_compat.Interval(Integral, 2, 1000, closed="both")],
    "dispersion": [
        _compat.StrOptions({"auto"}),
        _compat.Interval(Real, 0, None, closed="left"),
    ],
    "n_estimators": [_compat.StrOptions({"auto"}), _compat.COUNT, None],
    "n_jobs": _compat.N_JOBS,
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
    random_state: Seed = None,
) -> results.ClusterSweep:
    r"""Fit several numbers of clusters, and choose the one that the data speak for.

    Counts are chosen by held-out loss: every count is shared out at random to `n_folds` parts,
    which are independent tables of the same clusters [1]_. All parts but one are fitted, by a
    single run, and the last is scored: what a cluster too many fits in some parts is not in the
    other. The smallest number is taken whose mean loss is within one standard error of the least.

    Parts are independent if counts vary as Poisson numbers do. Those that vary more, with a
    variance of :math:`\mu + \phi \mu^2`, are shared out so that parts are independent, too [2]_;
    :math:`\phi` is estimated from the fit with the most clusters.

    Other tables have no such parts. If clusters leave a thousandth of one at most, relative to
    what sums of rows and columns leave, with factors of fewer numbers than half of its entries, it
    is of that rank but for rounding: the smallest number that does so is taken. Otherwise it is the
    largest number of which all clusters come back in the runs: the smallest `recurrence_` is at
    most 0.15 below that of any candidate.

    Parameters
    ----------
    estimator : NMFMetaCluster
        Cloned, and fitted to `X` with every number of clusters.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Nonnegative, without NaN. A sparse one stays sparse.
    candidates : iterable of int or tuple (low, high), default=range(2, 16)
        Numbers of clusters; a tuple of two is the range from low to high. Recurrence cannot say 1,
        and leaves it out.
    method : {"auto", "held-out", "recurrence"}, default="auto"
        What to choose by: "held-out", for whole numbers alone, or "recurrence". "auto": "held-out"
        if `X` holds whole numbers; otherwise "recurrence", unless clusters leave nothing of `X`.
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
    random_state : int, RandomState, Generator or None, default=None
        Determines the parts and the seeds of their fits; that of the fits to `X`, too, where the
        estimator has none.

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
        If the largest candidate is chosen; if recurrence decides for want of whole numbers, though
        the loss is that of counts, or most entries are whole.

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
    options = {"method": method, "n_folds": n_folds, "dispersion": dispersion}
    options |= {"n_estimators": n_estimators, "n_jobs": n_jobs}
    _compat.validate_parameter_constraints(
        _ALLOWED, options, caller_name="sweep_n_clusters"
    )
    if not isinstance(estimator, NMFMetaCluster):
        raise TypeError(f"estimator must be an NMFMetaCluster, got {shown(estimator)}.")
    rng = generator_of(random_state)

    # what is compared, and by what
    model, table = _read(estimator, X)
    by_counts = _holds_counts(model, table, method)
    n_fixed = 0 if model.fixed_components is None else len(model.fixed_components)
    numbers = results.read_candidates(candidates, table.shape[0], n_fixed)
    numbers = numbers if by_counts else results.without_one(numbers, "recurrence")
    if model.random_state is None:
        model.set_params(random_state=int(rng.randint(SEEDS)))

    # every number is fitted to all of X
    samples = X if hasattr(X, "columns") else table
    asked: dict[Any, Any] = {"auto": 5 if by_counts else 10, None: model.n_estimators}
    n_runs = int(min(asked.get(n_estimators, n_estimators), model.n_estimators))
    fits = _fits(clone(model).set_params(n_estimators=n_runs), samples, numbers, n_jobs)
    seeds = draw_seeds(rng, n_folds + 2)

    def told(figure: Callable[[Any], float]) -> np.ndarray:
        return np.array([np.nan if fit is None else figure(fit) for fit in fits])

    drawn = some_positions(
        table.shape[0], results.MOST_SAMPLES, np.random.default_rng(seeds[0])
    )
    of_runs: dict[str, Any] = {
        "recurrence": told(lambda fit: fit.recurrence_.mean()),
        "smallest_recurrence": told(lambda fit: fit.recurrence_.min()),
        "reconstruction_err": told(lambda fit: fit.reconstruction_err_),
        "cophenetic": told(lambda fit: _cophenetic(fit, drawn)),
    }

    # and of counts, to all parts but one, which says how well the others foretell it
    losses, errors, phi = None, None, None
    if by_counts:
        phi, losses = counts.held_out_losses(
            model, table, dispersion, numbers, fits, seeds, n_jobs
        )
        as_good, errors = counts.least_held_out(losses)
        by, best = "held-out", int(np.flatnonzero(as_good)[0])
    else:
        exact = _exact(model, table, numbers, of_runs["reconstruction_err"])
        by, as_good, best = _by_runs(method, exact, of_runs["smallest_recurrence"])

    # one is chosen, and has all runs
    k, estimators = int(numbers[best]), list(fits)
    results.warn_of_largest(numbers, k)
    if n_runs < model.n_estimators:
        _say(f"fitting n_clusters={k}, {counted(model.n_estimators, 'run')}")
        estimators[best] = clone(model).set_params(n_clusters=k).fit(samples)
    of_parts = {"held_out_losses": losses, "held_out_se": errors, "dispersion": phi}
    figures = {**of_parts, **of_runs, "estimators": tuple(estimators)}
    return results.ClusterSweep(numbers, k, as_good, by, **figures)


def _read(estimator: NMFMetaCluster, X: Any) -> tuple[Any, Any]:
    """Return a clone of the estimator, and X as floats, dense or CSR."""
    model, reader = clone(estimator), clone(estimator)
    model._validate_params()
    table = reader._read(X)
    if np.isnan(table.min()):
        why = "counts that were not observed have no parts. Leave out rows or columns with NaN"
        raise ValueError(f"X must not hold NaN in sweep_n_clusters: {why}.")
    if (
        model.fixed_components is not None
    ):  # in the order of X, whose parts have no names
        reader.set_params(n_clusters=_compat.MOST)  # candidates that are smaller fail
        model.set_params(
            fixed_components=read_fixed(reader, column_names(X), table.dtype)
        )
    return model, table


def _holds_counts(model: NMFMetaCluster, table: Any, method: str) -> bool:
    """Return whether to choose by held-out counts; raise, or warn, where there are none."""
    whole = not (n_odd := n_not_whole(table)) and largest(table) < _LARGEST
    nearly = model.loss == "kullback-leibler" or 2 * n_odd < (table != 0).sum()
    if n_odd and nearly and method == "auto":
        told = f"X is not whole in {counted(n_odd, 'entry')}: recurrence decides"
        warn(f"{told}, and not held-out counts. Give counts as they are, or rounded.")
    if method == "held-out" and not whole:
        must = f"X must hold whole numbers, below {_LARGEST:.0e}. method='recurrence' takes any"
        raise ValueError(f"method='held-out' shares out counts: {must}.")
    return whole and method != "recurrence"


def _exact(
    model: NMFMetaCluster, table: Any, numbers: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """Return which numbers of clusters leave nothing of a table that has more entries to explain.

    What they leave is measured by what the sums of rows and columns alone do.
    """
    rows, columns = row_sums(table)[:, None], row_sums(table.T)[None, :]
    unexplained = objective_of_table(model, table).error(rows, columns / rows.sum())
    # NaN is not small
    return counts.leave_enough(numbers, table.shape) & (errors <= _EXACT * unexplained)


def _by_runs(
    method: str, exact: np.ndarray, smallest: np.ndarray
) -> tuple[str, np.ndarray, int]:
    """Return by what the fits to all entries decide, which numbers are as good, and the best.

    `exact` says which numbers leave nothing, `smallest` how surely all clusters of each recur.
    """
    if method == "auto" and exact.any():  # fewer leave something, more follow nothing
        best = int(exact.argmax())
        return "exact", np.arange(len(exact)) == best, best
    # the largest of which all clusters recur about as surely as they ever do
    as_good = smallest >= np.nanmax(smallest) - _AS_SURE  # False for NaN
    return "recurrence", as_good, int(np.flatnonzero(as_good)[-1])


def _fits(
    model: NMFMetaCluster, X: Any, numbers: np.ndarray, n_jobs: int | None
) -> list[Any]:
    """Return the fits of all numbers of clusters, None where one failed."""
    runs = counted(model.n_estimators, "run")
    _say(f"fitting {len(numbers)} numbers of clusters, {runs} of each")
    with one_blas_thread():
        fits = shared_out(
            attempted, (_fit, model, X), [(int(k),) for k in numbers], n_jobs
        )
    results.tell_failures(numbers, fits, "sweep_n_clusters")
    return [None if isinstance(fit, Exception) else fit for fit in fits]


def _fit(model: NMFMetaCluster, X: Any, n_clusters: int) -> NMFMetaCluster:
    return clone(model).set_params(n_clusters=n_clusters).fit(X)


def _cophenetic(fit: NMFMetaCluster, drawn: np.ndarray) -> float:
    """Return the cophenetic correlation of those of some samples that are in a cluster."""
    rows = drawn[fit.labels_[drawn] >= 0]
    with one_blas_thread():
        return (
            cophenetic_correlation(fit.consensus_matrix(rows))
            if len(rows) > 2
            else np.nan
        )
