"""Fit several numbers of clusters, and choose the one that the data support."""

import warnings
from collections.abc import Iterable
from functools import partial
from numbers import Integral, Real
from statistics import median_high
from typing import Any

import numpy as np
from sklearn.base import clone

from nmfcluster import _compat
from nmfcluster._optim.initialization import draw_seeds
from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.progress import log_line
from nmfcluster._utils.sampling import (
    count_non_integers,
    draw_positions,
    overdispersion,
    thin_counts,
)
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import as_float64, max_abs, row_sums
from nmfcluster._utils.validation import (
    Seed,
    column_names,
    format_count,
    format_value,
    make_rng,
    reorder_samples,
    require_instance,
    row_names,
    warn,
)
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.meta.groups import ALIKE, is_measured, read_groups
from nmfcluster.meta.objective import make_objective, read_fixed_components
from nmfcluster.metrics import cophenetic_correlation
from nmfcluster.model_selection.refits import (
    SEEDS,
    first_error,
    get_n_samples,
    try_calls,
)
from nmfcluster.model_selection.results import (
    MAX_SAMPLES,
    SEVERAL,
    ClusterSweep,
    NumberOfClusters,
    drop_single_cluster,
    is_default,
    read_candidates,
    report_failures,
    warn_if_largest,
)

_say = partial(log_line, speaker="sweep_n_clusters")
# how far the smallest recurrence of a number of clusters may be below the best one
_RECURRENCE_MARGIN = 0.15
# largest error of an exact factorization, relative to that of the model of row and column
# sums; larger than rounding errors
_EXACT_ERROR = 1e-3
# largest number of free parameters, per entry, of a factorization that errors can judge
_MAX_PARAMETERS = 0.5
# number of groups in which a number of programs is chosen: more take longer, and the median
# of three tolerates one wrong number
_GROUPS_SWEPT = 3
# largest number of runs for a group and a number of programs, if recurrence decides
_RUNS_OF_A_GROUP = 5
# how far a similarity may be beyond the limit for a total that is about as good
_UNSURE = 0.1
_MAX_COUNT = 2**62  # numpy draws counts of 64 bits
# smoothing: weight of the model of row and column sums in held-out means
_SMOOTHING = 0.1
# pseudocount of every column, so that counts in an empty column are possible
_PSEUDOCOUNT = 0.5
_PARAMETER_CONSTRAINTS = {
    "method": [_compat.StrOptions({"auto", "held-out", "recurrence"})],
    "n_folds": [_compat.Interval(Integral, 2, 1000, closed="both")],
    "dispersion": [
        _compat.StrOptions({"auto"}),
        _compat.Interval(Real, 0, None, closed="left"),
    ],
    "n_estimators": [_compat.StrOptions({"auto"}), _compat.COUNT, None],
    "n_jobs": _compat.N_JOBS,
}

#: parameters of fits to parts of the counts: a single run, as runs are not compared, and
#: the metaclustering that takes the least time for one run
SINGLE_RUN = {
    "n_estimators": 1,
    "n_init": 1,
    "base_n_clusters": None,
    "resample": None,
    "meta": "nmf",
}


def sweep_n_clusters(
    estimator: NMFMetaCluster,
    X: Any,
    candidates: Iterable[int] = SEVERAL,
    *,
    groups: Any = None,
    method: str = "auto",
    n_folds: int = 5,
    dispersion: str | float = "auto",
    n_estimators: str | int | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> ClusterSweep | NumberOfClusters:
    r"""Fit several numbers of clusters, and choose the one that the data support.

    For counts, the held-out loss decides. The counts are split at random into `n_folds` parts,
    which are independent matrices with the same clusters [1]_. A single run is fitted to all parts
    but one, and scored on the held-out part. A run with too many clusters fits noise that the
    held-out part does not have. The chosen number is the smallest one whose mean loss is within one
    standard error of the smallest mean loss.

    Parts are independent if counts have a Poisson distribution. If counts vary more, with a
    variance of :math:`\mu + \phi \mu^2`, a different split [2]_ makes parts independent. By
    default, :math:`\phi` is estimated from the largest fit whose factors have at most half as many
    free parameters as the matrix has entries.

    Other data cannot be split in this way, and these rules apply:

    1. The smallest number with an exact factorization is chosen. A factorization is exact if its
       error is at most a thousandth of the error of the matrix whose entries are the row sum times
       the column sum over the total. In addition, its factors must have at most half as many free
       parameters as the matrix has entries.
    2. If no factorization is exact, the largest number is chosen whose clusters all recur in the
       runs. A number meets this rule if its smallest `recurrence_` is at most 0.15 below that of
       any candidate.

    With `groups`, the total number of programs of all groups is chosen. Programs of different
    groups are merged as long as they are similar, see `nmfcluster.meta.metacluster`. Programs of
    one group are never merged. If `base_n_clusters` of the estimator is None, the rules above first
    choose a number of programs for each of the three largest groups, and the median is used.

    Parameters
    ----------
    estimator : NMFMetaCluster
        Cloned, and fitted to `X` with every number of clusters.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Nonnegative data. NaN marks an entry that was not observed, and all rules ignore it. A
        sparse matrix stays sparse.
    candidates : iterable of int or tuple (low, high), default=range(2, 16)
        Numbers of clusters to compare. A tuple (low, high) stands for all numbers from low to high.
        The default ends at the number of samples. Recurrence cannot judge 1, and leaves it out.
        With `groups`, candidates are total numbers of programs of all groups, and the default is
        all possible totals.
    groups : array-like of shape (n_samples,), default=None
        The group of each sample, such as its patient or its batch, as in `NMFMetaCluster.fit`.
    method : {"auto", "held-out", "recurrence"}, default="auto"
        The rule that decides: "held-out", for whole numbers only, or "recurrence". "auto" is
        "held-out" if `X` holds whole numbers. Otherwise it is "recurrence", unless a factorization
        is exact.
    n_folds : int, default=5
        Number of parts. A larger number leaves more counts for each fit and takes longer, as every
        candidate takes one fit of a single run per part.
    dispersion : "auto" or float, default="auto"
        The dispersion :math:`\phi` of counts: 0 for Poisson counts, and larger for counts that vary
        more. "auto" estimates it.
    n_estimators : "auto", int or None, default=None
        Number of runs for every candidate, at most as many as the estimator has. Fewer runs save
        time; the chosen number is fitted again with all runs of the estimator. "auto" is 10 if
        recurrence decides, and 5 if held-out losses do. None means as many runs as the estimator
        has.
    n_jobs : int, default=None
        Number of parallel fits; the result does not depend on it. Use this or `n_jobs` of the
        estimator, not both.
    random_state : int, RandomState, Generator or None, default=None
        Determines the parts and the seeds of fits to them. It also determines the seed of the fits
        to `X` if `random_state` of the estimator is None. Pass an int for reproducible results.

    Returns
    -------
    ClusterSweep or NumberOfClusters
        The chosen number, the fitted estimators, and a table of their scores. With `groups`, a
        NumberOfClusters, which has the similarity of programs for each total and the estimator
        fitted with the chosen total.

    Raises
    ------
    TypeError
        If `estimator` is not an NMFMetaCluster, or a candidate is not an int.
    ValueError
        If `X` or a parameter is not as described; if groups have fewer programs than every
        candidate. If all fits fail, the error of the first one is raised.

    Warns
    -----
    FitFailedWarning
        If the fits with a number of clusters fail. This number is then not chosen.
    UserWarning
        If the largest candidate is chosen; if recurrence decides because some entries are not whole
        numbers, although the loss is for counts or most entries are whole.

    See Also
    --------
    StabilityScorer : Score the values of any parameter of any clusterer.

    Notes
    -----
    The fits to `X` provide the recurrence, the error and the final model. All candidates are fitted
    to the same parts. Starts are nested, so that the start for five clusters extends the start for
    four, and losses differ less by chance.

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
    _compat.validate_parameter_constraints(
        _PARAMETER_CONSTRAINTS, locals(), caller_name="sweep_n_clusters"
    )
    require_instance(estimator)
    if not isinstance(estimator, NMFMetaCluster):
        raise TypeError(
            f"estimator must be an NMFMetaCluster, got {format_value(estimator)}."
        )
    rng = make_rng(random_state)
    if groups is not None:
        options = {"method": method, "n_folds": n_folds, "dispersion": dispersion}
        return _choose_total(estimator, X, candidates, groups, options, n_jobs, rng)
    model, table, is_held_out = _read(estimator, X, method)
    numbers = read_candidates(candidates, table.shape[0], _count_fixed(model))
    if not is_held_out:
        numbers = drop_single_cluster(numbers, "recurrence")
    if model.random_state is None:
        model.set_params(random_state=int(rng.randint(SEEDS)))

    # fit every number of clusters to all of X
    samples = X if hasattr(X, "columns") else table
    if n_estimators == "auto":
        n_estimators = 5 if is_held_out else 10
    seeds = draw_seeds(rng, n_folds + 2)
    fits, figures = _fit_all(model, samples, numbers, n_estimators, n_jobs, seeds[0])

    # fit counts without each part, and compare the losses of the parts
    if is_held_out:
        phi, losses = held_out_losses(
            model, table, dispersion, numbers, fits, seeds, n_jobs
        )
        as_good, errors = one_standard_error_rule(losses)
        figures |= {"held_out_losses": losses, "held_out_se": errors, "dispersion": phi}
        by = "held-out"
    else:
        by, as_good = _choose_by_runs(model, table, method, numbers, figures)

    # choose the smallest number with a good fit, or the largest with clusters that recur,
    # and fit it again if it has fewer runs than the estimator
    best = int(np.flatnonzero(as_good)[-1 if by == "recurrence" else 0])
    k = int(numbers[best])
    warn_if_largest(numbers, k)
    if fits[best].n_estimators < model.n_estimators:
        _say(f"fitting n_clusters={k}, {format_count(model.n_estimators, 'run')}")
        fits[best] = _fit(model, samples, k)
    return ClusterSweep(numbers, k, as_good, by, **figures, estimators=tuple(fits))


def _count_fixed(model):
    return 0 if model.fixed_components is None else len(model.fixed_components)


def _choose_total(estimator, X, candidates, groups, options, n_jobs, rng):
    """Choose the number of programs of all groups such that no two are similar."""
    groups = reorder_samples(row_names(X), groups, "groups")
    names, group = read_groups(groups, "groups", get_n_samples(X), "sample")
    model = clone(estimator)
    if model.random_state is None:
        model.set_params(random_state=int(rng.randint(SEEDS)))
    if model.base_n_clusters is None:
        options |= {"n_jobs": n_jobs, "random_state": rng}
        base = _choose_base(model, X, names, group, options)
        model.set_params(base_n_clusters=base)
    n_fixed = _count_fixed(model)

    # programs of the groups are the same with any total that is large enough
    high = int(np.max(model.base_n_clusters))
    fit = clone(model).set_params(n_clusters=high)
    with warnings.catch_warnings():
        # the last fit repeats warnings that matter
        warnings.simplefilter("ignore", UserWarning)
        fit.fit(X, groups=groups)
    merges = np.append(1, fit.merge_similarities_)
    n_programs = n_fixed + len(merges)
    if is_default(candidates):
        candidates = range(min(high, n_programs), n_programs + 1)
    numbers = read_candidates(candidates, len(group), n_fixed)
    if not n_fixed < numbers[0] <= n_programs:
        raise ValueError(
            f"candidates must begin between {n_fixed + 1} and {n_programs}, the number of "
            f"programs of all groups, got {numbers[0]}."
        )
    numbers = numbers[numbers <= n_programs]

    # the smallest total for which only similar programs are merged
    last_merges = merges[n_programs - numbers]
    next_merges = np.append(merges, -1)[n_programs - numbers + 1]
    is_alike = last_merges >= ALIKE
    best = is_alike.argmax() if is_alike.any() else -1
    k = int(numbers[best])
    as_good = (last_merges >= ALIKE - _UNSURE) & (next_merges <= ALIKE + _UNSURE)
    as_good[best] = True
    if k < n_programs:
        warn_if_largest(numbers, k)
    if k != high:
        fit = clone(model).set_params(n_clusters=k)
    fit.fit(X, groups=groups)
    return NumberOfClusters(
        numbers, k, as_good, "similarity", similarity=last_merges, best_estimator_=fit
    )


def _choose_base(model, X, names, group, options):
    """Return the number of programs of a group: the median over the largest groups."""
    model, table, is_held_out = _read(model, X, options["method"])
    # held-out losses need no more than one run on all counts
    n_runs = 1 if is_held_out else min(model.n_estimators, _RUNS_OF_A_GROUP)
    model.set_params(n_estimators=n_runs)
    fixed = model.fixed_components
    numbers = []
    for g in np.argsort(-np.bincount(group), kind="stable")[:_GROUPS_SWEPT]:
        _say(f"choosing the number of programs of group {names[g]}")
        own = table[group == g]
        has = is_measured(own)
        if fixed is not None:
            model.set_params(fixed_components=fixed[:, has])
        numbers.append(sweep_n_clusters(model, own[:, has], **options).n_clusters_)
    return int(median_high(numbers))


def _read(estimator, X, method):
    """Return a clone of the estimator, X as floats, and whether held-out counts decide.

    If X does not hold whole numbers, an error or a warning is raised where `method` or the
    loss needs them.
    """
    model = clone(estimator)
    model._validate_params()
    table = clone(estimator)._read(X)  # dense or CSR
    # order fixed components as the columns of X, as parts of X have no names; candidates
    # below their number fail later
    fixed = read_fixed_components(
        model.fixed_components,
        column_names(X),
        table.dtype,
        n_clusters=_compat.MAX_COUNT,
        n_features=table.shape[1],
    )
    model.set_params(fixed_components=fixed)

    # held-out counts decide if X holds whole numbers
    observed = split_missing(table)[0]
    n_odd = count_non_integers(observed)
    is_whole = n_odd == 0 and max_abs(observed) < _MAX_COUNT
    if n_odd and method == "auto":
        is_nearly_whole = 2 * n_odd < (observed != 0).sum()
        if model.loss == "kullback-leibler" or is_nearly_whole:
            warn(
                f"X is not whole in {format_count(n_odd, 'entry')}: recurrence decides instead "
                "of held-out counts. Pass raw counts, or round them."
            )
    if method == "held-out" and not is_whole:
        raise ValueError(
            "method='held-out' splits counts, so X must hold whole numbers below "
            f"{_MAX_COUNT:.0e}. For other data, use method='recurrence'."
        )
    return model, table, is_whole and method != "recurrence"


def _fit(model, X, n_clusters):
    """Return a clone with a number of clusters, fitted to X."""
    return clone(model).set_params(n_clusters=n_clusters).fit(X)


def _fit_all(model, X, numbers, n_estimators, n_jobs, seed):
    """Return the fits of all numbers of clusters, and figures by attributes of `ClusterSweep`.

    A fit that failed is None, and its figures are NaN.
    """
    n_runs = int(min(n_estimators or model.n_estimators, model.n_estimators))
    runs = format_count(n_runs, "run")
    _say(f"fitting {len(numbers)} numbers of clusters, {runs} of each")
    model = clone(model).set_params(n_estimators=n_runs)
    fits = try_calls(_fit, (model, X), [(int(k),) for k in numbers], n_jobs)
    report_failures(numbers, fits, "sweep_n_clusters")
    names = ("recurrence", "smallest_recurrence", "reconstruction_err", "cophenetic")
    figures = np.full((len(names), len(fits)), np.nan)
    drawn = draw_positions(X.shape[0], MAX_SAMPLES, np.random.default_rng(seed))
    for i, fit in enumerate(fits):
        if isinstance(fit, Exception):
            fits[i] = None
            continue
        recurrence = fit.recurrence_
        error = fit.reconstruction_err_
        figures[:3, i] = [recurrence.mean(), recurrence.min(), error]
        rows = drawn[fit.labels_[drawn] >= 0]  # samples in no cluster are left out
        if len(rows) > 2:
            with one_blas_thread():
                figures[3, i] = cophenetic_correlation(fit.consensus_matrix(rows))
    return fits, dict(zip(names, figures, strict=True))


def _choose_by_runs(model, table, method, numbers, figures):
    """Return the rule that decides, and the numbers that are about as good as the best."""
    if method == "auto":
        # the error of an exact factorization is small relative to that of the model of
        # row and column sums
        observed = split_missing(table)[0]
        rows = row_sums(observed)[:, None]
        columns = row_sums(observed.T)[None, :] / rows.sum()
        largest_error = make_objective(table, model.loss).error(rows, columns)
        is_small = figures["reconstruction_err"] <= _EXACT_ERROR * largest_error
        is_exact = is_overdetermined(numbers, table.shape) & is_small  # False for NaN
        if is_exact.any():
            # the smallest exact number: more clusters are not needed
            return "exact", np.arange(len(numbers)) == is_exact.argmax()
    recurrence = figures["smallest_recurrence"]
    return "recurrence", recurrence >= np.nanmax(recurrence) - _RECURRENCE_MARGIN


# --- held-out counts ------------------------------------------------------------------


def held_out_losses(model, table, dispersion, numbers, fits, seeds, n_jobs):
    """Return the loss of each part of the counts under fits to the other parts.

    Parameters
    ----------
    model : NMFMetaCluster
        Cloned, and set to a single run.
    table : ndarray or csr_array of shape (n, p)
        Counts, which `nmfcluster._utils.sampling.thin_counts` splits.
    dispersion : "auto" or float
        "auto" estimates it from the overdetermined fit with the most clusters. A fit with
        even more clusters would follow the noise and hide it.
    numbers : ndarray of shape (n_candidates,), int
        Numbers of clusters.
    fits : list of NMFMetaCluster or None
        Fits to all counts; None where one failed.
    seeds : list of int
        Seeds of the dispersion, of the split, and of the fits, one for each part. All
        numbers of clusters share these. The start of a larger number therefore extends
        that of a smaller one, and their losses differ less by chance.
    n_jobs : int or None

    Returns
    -------
    dispersion : float
    losses : ndarray of shape (n_candidates, n_parts)
        Losses in the unit of the estimator's loss; NaN where a fit failed.
    """
    is_fitted = np.array([fit is not None for fit in fits])
    tried = np.flatnonzero(is_fitted)
    if dispersion == "auto":
        usable = np.flatnonzero(is_fitted & is_overdetermined(numbers, table.shape))
        fit = fits[usable[-1] if len(usable) else tried[0]]
        rng = np.random.default_rng(seeds[0])
        with one_blas_thread():
            dispersion = overdispersion(table, fit.factor_, fit.components_, rng)
    dispersion = float(dispersion)
    n_parts = len(seeds) - 2
    parts = thin_counts(table, n_parts, np.random.default_rng(seeds[1]), dispersion)
    _say(f"fitting {len(tried)} numbers of clusters to {n_parts} parts of the counts")
    calls = [
        (int(numbers[i]), part, seeds[2 + part])
        for i in tried
        for part in range(n_parts)
    ]
    outcomes = iter(try_calls(held_out_loss, (model, table, parts), calls, n_jobs))
    losses = np.full((len(numbers), n_parts), np.nan)
    errors = []
    for i in tried:
        own = [next(outcomes) for _ in range(n_parts)]
        errors.append(first_error(own))
        if errors[-1] is None:
            losses[i] = own
    report_failures(numbers[tried], errors, "sweep_n_clusters")
    return dispersion, losses


def held_out_loss(estimator, X, parts, n_clusters, part, seed):
    r"""Return the loss of one part of the counts under a fit to the other parts.

    The expected counts are :math:`((1 - \delta) WH + \delta rc) / (m - 1)` for m parts. W and H are
    fitted to the sum of the other parts; r are the sums of its rows, and c the shares of its
    columns. Without the second term, a single count where WH is 0 would decide.

    Parameters
    ----------
    estimator : NMFMetaCluster
    X : ndarray or csr_array of shape (n, p)
    parts : list of ndarray or csr_array of shape (n, p)
    n_clusters, part, seed : int

    Returns
    -------
    float
    """
    model = clone(estimator).set_params(
        **SINGLE_RUN, n_clusters=n_clusters, random_state=seed
    )
    training = X - parts[part]
    model.fit(training)
    held_out = as_float64(parts[part])
    training = as_float64(split_missing(training)[0])
    shares = row_sums(training.T) + _PSEUDOCOUNT
    factor = (1 - _SMOOTHING) * as_float64(model.factor_)
    W = np.column_stack([factor, _SMOOTHING * row_sums(training)]) / (len(parts) - 1)
    H = np.vstack([as_float64(model.components_), shares / shares.sum()])
    return float(make_objective(held_out, model.loss).error(W, H) ** 2 / 2)


def is_overdetermined(numbers, shape):
    """Return for which numbers of clusters there are two entries or more per parameter."""
    return numbers * (sum(shape) - numbers) <= _MAX_PARAMETERS * np.prod(shape)


def one_standard_error_rule(losses):
    """Return which numbers have a held-out loss within one standard error of the smallest.

    Losses are compared part by part. The standard error is that of the differences.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_parts)
        NaN where a fit failed.

    Returns
    -------
    as_good : ndarray of shape (n_candidates,), bool
    errors : ndarray of shape (n_candidates,)
        Standard errors of the mean differences from the candidate with the smallest loss;
        0 for this candidate.
    """
    means = losses.mean(axis=1)
    differences = losses - losses[np.nanargmin(means)]
    errors = differences.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    return means - np.nanmin(means) <= errors, errors  # False for NaN
