"""Stable, overlapping biclusters out of many NMF runs: metaclustering (Badea, 2005)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from nmfcluster import _compat
from nmfcluster._base import (
    NMFClusterer,
    fitting,
    hard_labels,
    membership,
    read_features,
    require_nonnegative,
)
from nmfcluster._optim.initialization import draw_seeds
from nmfcluster._optim.run import Solution, SolverConfig, memory_of, run_starts
from nmfcluster._optim.symmetric import Factorization
from nmfcluster._utils.progress import stage
from nmfcluster._utils.validation import (
    column_names,
    read_weights,
    reorder_samples,
    row_names,
)
from nmfcluster.meta.device import current_device, on_devices
from nmfcluster.meta.groups import GroupFits, fit_groups, is_shared
from nmfcluster.meta.objective import (
    LOSSES,
    Objective,
    drop_unexplained,
    fit_rows,
    make_objective,
    order_of_samples,
    read_fixed_components,
)
from nmfcluster.meta.programs import Programs
from nmfcluster.meta.runs import (
    Runs,
    draw_sizes,
    run_many,
    warn_of_unconverged_runs,
)
from nmfcluster.meta.solvers import (
    PENALTIES,
    RunsObjective,
    fit_fixed,
    hals,
    tensor_hals,
)
from nmfcluster.meta.squares import (
    MatrixObjective,
    from_standardised,
    least_squares_rows,
    unit_rows,
)
from nmfcluster.metrics.co_occurrence import confidence
from nmfcluster.metrics.matching import find_members

# Share of the loss of zero factors: optima that differ by less count as one.
_SAME_OPTIMUM = 1e-4
# Share of a factor's mean that is added to a start, as entries of 0 could stay there.
_LIFT = 0.05


WAYS = ("ptf", "nmf")


@on_devices
class NMFMetaCluster(Programs):
    r"""Soft, overlapping clusters and biclusters that recur in many runs of NMF.

    Nonnegative matrix factorization writes a table as a sum of k biclusters, :math:`X \approx WH`
    with :math:`W, H \ge 0`: a column of W says how strong a bicluster is in every sample, a row of
    H what it looks like. Every run finds other ones. Here many runs are made, their clusters are
    clustered once more, and a last factorization starts from what recurs in them [1]_:

    1. `n_estimators` factorizations of X from random starts, the rows of H scaled to length 1.
    2. Metaclusters of all their clusters. ``meta="ptf"`` clusters the biclusters, rows and columns
       at once, by positive tensor factorization, :math:`w_j h_j \approx \sum_k \alpha_{jk} \beta_k
       \gamma_k` (eq. 14); ``meta="nmf"`` their columns alone, :math:`h_j \approx \sum_k
       \alpha_{jk} \gamma_k` (eq. 8).
    3. The rows of the metaclusters by nonnegative least squares, and NMF from there.

    Read more in the :ref:`User Guide <meta>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    loss : {"frobenius", "kullback-leibler"}, default="frobenius"
        What is minimised: half of the squared error; or :math:`\sum x \log (x / y) - x + y` with
        :math:`Y = WH`, the loss of counts, which vary as Poisson numbers do.
    n_estimators : int, default=20
        Number of factorizations from random starts.
    base_n_clusters : int or tuple (low, high), default=None
        Number of clusters of a run, or the range that it is drawn from, ends included;
        `n_clusters` by default. With fewer, not all clusters can recur in a run.
    resample : {"poisson", "bootstrap"}, float or None, default=0.8
        What each run sees in the place of X: counts drawn with X as their means; as many rows,
        drawn with replacement; a share of the rows, but as many as it has clusters. What recurs is
        then said by the data, and not by the optimiser alone. None: X itself, as in [1]_.
    fixed_components : array-like of shape (n_fixed, n_features), default=None
        Rows of H that are known, the first of `components_`, scaled as these are: all runs have
        them, and look for others beside them. If there are `n_clusters`, W alone is fitted, once,
        and one sample is enough.
    meta : {"ptf", "nmf"}, default="ptf"
        How the runs' clusters are clustered: as biclusters, or by their columns. Only "ptf" tells
        biclusters with the same columns apart.
    sparsity : float, default=0.0
        Weight :math:`\lambda` of a penalty on H, in all runs and at the end; 0: none.
    penalty : {"l1_columns", "l1", "l2"}, default="l1_columns"
        What is penalised, columns of W having length 1. "l1_columns", few clusters a column:
        :math:`\sum_g (\sum_c H_{cg})^2`; "l1", eq. 11 of [1]_: :math:`\sum_{cg} H_{cg}`, whose
        weight has the unit of X; "l2", eq. 12 of [1]_: :math:`\|H\|^2`, which shrinks H but makes
        it no sparser.
    threshold : float, default=0.2
        Share of its largest entry that members of a bicluster reach; see `rows_`, `columns_`.
    min_groups : int or float, default=0.5
        In how many groups, or in which share of them but in two at least, a cluster is that counts
        as shared; see `shared_`.
    n_init : int, default=5
        Number of starts of the metaclustering: single runs, the best run first. The last
        factorization starts from each of their optima; that with the smallest loss is kept.
    max_iter : int, default=1000
        Largest number of updates of a run, of the metaclustering, and of the last factorization.
    tol : float, default=1e-4
        Each has converged when ten updates lower its loss by less than `tol` times itself; a
        negative value runs all updates.
    random_state : int, RandomState, Generator or None, default=None
        Determines the starts; the result depends neither on `n_jobs` nor on the number of threads
        or the order of the samples.
    n_jobs : int, default=None
        Number of threads that runs are shared out to, but those of small tables, which take one.
    memory : str or joblib.Memory, default=None
        A folder where runs are kept: a fit with the same table, seed and parameters makes none of
        them again, and one that was stopped goes on. What is there is loaded as any pickle is, and
        can run code: give a folder that nobody else writes to.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Strongest cluster of every sample, -1 if all are 0; numbered by decreasing size, after the
        fixed ones.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of `factor_`, scaled to sum to 1; a row of zeros is uniform.
    factor_ : ndarray of shape (n_samples, n_clusters), float
        W: the best fit to X with `components_` fixed, what `transform` returns.
    components_ : ndarray of shape (n_clusters, n_features), float
        H, with rows of length 1, so that entries of W compare; with the loss of counts rows sum
        to 1, and entries of W are counts.
    rows_ : ndarray of shape (n_clusters, n_samples), bool
        Samples of every bicluster: ``W[s, c] >= threshold * W[:, c].max()``.
    columns_ : ndarray of shape (n_clusters, n_features), bool
        Columns of every bicluster: ``H[c, g] >= threshold * H[c].max()``.
    correspondence_ : ndarray of shape (n_base_clusters, n_clusters), float
        :math:`\alpha`: how much of every metacluster is in every cluster of the runs. Columns sum
        to `n_estimators`; that of an empty metacluster is 0.
    base_runs_ : ndarray of shape (n_base_clusters,), int
        The run of every row of `correspondence_`.
    recurrence_ : ndarray of shape (n_clusters,), float
        How surely a cluster comes back: the mean over the runs of its cosine with the cluster of
        the run that is its counterpart, 0 without one. Counterparts are each other's most similar
        biclusters. With `resample=None` it says how far runs agree, and nothing of other data. With
        groups it is the mean of `presence_`.
    groups_ : ndarray of shape (n_groups,)
        Names of the groups, sorted; this and the next two only where `fit` was given groups.
    presence_ : ndarray of shape (n_groups, n_clusters), float
        How surely a cluster comes back in the runs of each group, as `recurrence_` says it of one
        table; 0 where the group has none like it.
    shared_ : ndarray of shape (n_clusters,), bool
        Whether a cluster has a presence of .5 in as many groups as `min_groups` says.
    run_losses_ : ndarray of shape (n_estimators,), float
        Losses of the runs on what they saw, the smallest first: the order of the runs elsewhere,
        too. With groups, those of each group, one group after the other.
    partitions_ : ndarray of shape (n_samples, n_estimators), int
        Strongest cluster of every sample in every run, -1 for none, or where it does not count, or
        is of another group than the run.
    confidence_ : ndarray of shape (n_samples,), float
        How often the runs put a sample together with the others of its cluster, in [0, 1].
    reconstruction_err_ : float
        Root of twice the loss of `factor_` and `components_`, :math:`\|X - WH\|` by default.
    loss_ : float
        The loss, plus the penalty, at the end of the last factorization.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        The same before the first and after every update of the last factorization that was kept.
    loss_curves_ : list of ndarray
        The same for all metaclusterings, the kept one first.
    n_iter_ : int
        Number of updates of the last factorization.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    sklearn.decomposition.NMF : A single run, with other losses.
    sklearn.cluster.SpectralCoclustering : Biclusters that do not overlap.
    nmfcluster.NMFConsensus : One partition out of many.
    nmfcluster.display.BiclusterDisplay : Shows the biclusters in the table.
    nmfcluster.metrics.match_components : Which component of another fit is which.
    sklearn.metrics.consensus_score : Compares `biclusters_` with others.

    Notes
    -----
    Samples are rows here, and labels are those of the samples; [1]_ clusters the columns, its A
    and S being W and H. To cluster the columns, transpose X or look at `columns_`.

    The tensor of all biclusters is never made: an update of its factorization takes
    O(J k (n + p)) for the J clusters of all runs. Where [1]_ is silent or wrong: runs begin on the
    table over the roots of the means of rows and columns, so that they see clusters of few rows; it
    starts from single runs, which lead to the best optimum more often; a 0 stops no rule; penalised
    rows are exact minima. For the samples of `fit`, `transform` returns `factor_`, `predict`
    `labels_`.

    References
    ----------
    .. [1] L. Badea. Clustering and metaclustering with nonnegative matrix decompositions.
       ECML 2005.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_biclusters
    >>> from nmfcluster.metrics import match_components
    >>> X, W, H = make_biclusters(random_state=0)
    >>> model = NMFMetaCluster(n_clusters=4, random_state=0).fit(X)
    >>> counterparts, cosines = match_components(model.components_, H)
    >>> cosines.round(2)
    array([1., 1., 1., 1.])
    """

    groups_: np.ndarray
    presence_: np.ndarray
    shared_: np.ndarray

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "loss": [_compat.StrOptions(set(LOSSES))],
        "n_estimators": [_compat.COUNT],
        "base_n_clusters": [_compat.COUNT, tuple, list, None],
        "resample": [
            _compat.StrOptions({"poisson", "bootstrap"}),
            _compat.FRACTION,
            None,
        ],
        "fixed_components": ["array-like", None],
        "meta": [_compat.StrOptions(set(WAYS))],
        "sparsity": [_compat.Interval(Real, 0, None, closed="left")],
        "penalty": [_compat.StrOptions(set(PENALTIES))],
        "threshold": [_compat.Interval(Real, 0, 1, closed="right")],
        "min_groups": [
            _compat.COUNT,
            _compat.Interval(_compat.RealNotInt, 0, 1, closed="right"),
        ],
        "memory": [str, _compat.HasMethods("cache"), None],
    }

    components_: np.ndarray

    def __init__(
        self,
        n_clusters: int,
        *,
        loss: str = "frobenius",
        n_estimators: int = 20,
        base_n_clusters: int | tuple[int, int] | None = None,
        resample: str | float | None = 0.8,
        fixed_components: Any = None,
        meta: str = "ptf",
        sparsity: float = 0.0,
        penalty: str = "l1_columns",
        threshold: float = 0.2,
        min_groups: float | int = 0.5,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory: Any = None,
    ) -> None:
        super().__init__(n_clusters, n_init, max_iter, tol, random_state, n_jobs)
        self.loss = loss
        self.n_estimators = n_estimators
        self.base_n_clusters = base_n_clusters
        self.resample = resample
        self.fixed_components = fixed_components
        self.meta = meta
        self.sparsity = sparsity
        self.penalty = penalty
        self.threshold = threshold
        self.min_groups = min_groups
        self.memory = memory

    @_compat.fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> NMFMetaCluster:
        """Find the clusters that recur.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative, and not 0 throughout. A sparse one stays sparse. NaN stands for an entry
            that was not observed, which the loss leaves out. An array of torch or CuPy is fitted
            on its device if scikit-learn dispatches arrays, see the :ref:`User Guide <meta>`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often a sample counts in all losses; 1 by default. One that counts 0 times is in no
            cluster of the runs.
        groups : array-like of shape (n_samples,), default=None
            The group that a sample is of, as its patient or its batch. Every group has runs of its
            own, with `base_n_clusters` programs each, and the metaclusters are those of the
            programs of all groups, which all count alike, see `nmfcluster.meta.metacluster`.

        Returns
        -------
        NMFMetaCluster
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X` or a parameter is not as described.
        TypeError
            If `X` does not hold numbers.
        """
        with fitting(self) as rng:
            self._row_names_ = row_names(X)
            self._column_names_ = column_names(X)
            whole, objective, weights, samples, n_known, group_fits = self._prepare(
                X, sample_weight, groups, rng
            )
            ranks = samples.ranks
            # Run NMF many times, cluster the clusters of all runs, and run NMF from there.
            base_n_clusters = None if group_fits else self.base_n_clusters
            runs, metaclusters, end = self._factorize(
                whole, objective, weights, base_n_clusters, rng
            )
            with stage(f"strengths of the clusters in {len(ranks)} samples"):
                W, H, order = order_by_size(whole, end.best, n_known, weights)
            # Set the attributes, samples in the order of the user.
            weighted = objective.weighted_rows(W)
            labels = hard_labels(W)
            self.components_ = H
            self.factor_ = W[ranks]
            self.labels_ = labels[ranks]
            self.membership_ = membership(self.factor_)
            self.rows_ = find_members(self.factor_.T, self.threshold)
            self.columns_ = find_members(H, self.threshold)
            if group_fits is None:
                found = runs
                correspondence = metaclusters.correspondence
                partitions = runs.partitions[samples.first]
                self.recurrence_ = runs.recurrence(weighted.T, H)
            else:
                found = group_fits
                correspondence = group_fits.correspondence
                partitions = group_fits.partitions[samples.samples]
                self.groups_ = group_fits.names
                self.presence_ = group_fits.presence[:, order]
                self.shared_ = is_shared(self.presence_, self.min_groups)
                self.recurrence_ = self.presence_.mean(axis=0)
            self.correspondence_ = correspondence[:, order]
            self.base_runs_ = found.base_runs
            self.run_losses_ = found.losses
            self.partitions_ = partitions[ranks]
            self.confidence_ = confidence(partitions, labels)[ranks]
            self.reconstruction_err_ = objective.error(weighted, H)
            self.loss_ = end.loss
            self.loss_curves_ = end.loss_curves
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = end.best.n_iter
            n_found = count_distinct(W, unit_rows(H)[0], n_known)
            self._warn_unless_converged(end, n_found)
            warn_of_unconverged_runs(runs, self.max_iter)
        return self

    def _read(self, X, reset: bool = True):
        # in C order: sums do not depend on the memory layout of X
        X = read_features(self, X, reset, order="C", ensure_all_finite="allow-nan")
        cure = "give counts as before scaling or correction, or clip what is little below 0"
        if self.loss == "frobenius":
            cure = f"shift columns by their minima, {cure}"
        require_nonnegative(self, X, cure)
        return X

    def _prepare(self, X, sample_weight, groups, rng):
        """Read the input, and return the objective of samples in an order of their own.

        Also that with weights, the weights, the order, the number of components that users
        fixed, and the fits to groups if there are any.
        """
        rows = self._row_names_
        columns = self._column_names_
        k = self.n_clusters
        X = self._read(X)
        n_samples, n_features = X.shape
        fixed = read_fixed_components(
            self.fixed_components, columns, X.dtype, k, n_features
        )
        n_known = 0 if fixed is None else len(fixed)
        if n_known < k:
            self._check_not_alone(n_samples)
        self._check_n_clusters(n_samples, n_known)
        weights = read_weights(sample_weight, rows, max(k - n_known, 1), n_samples)
        # Once the programs of groups are found, all components are fixed.
        group_fits: GroupFits | None = None
        if groups is not None:
            groups = reorder_samples(rows, groups, "groups")
            [seed] = draw_seeds(rng, 1)
            group_fits = fit_groups(self, X, groups, weights, fixed, seed)
            fixed = group_fits.components
        all_fixed = fixed is not None and len(fixed) == k
        whole = make_objective(
            X, self.loss, self.sparsity, self.penalty, fixed, all_fixed
        )
        if all_fixed:
            names = getattr(self, "feature_names_in_", None)
            whole = drop_unexplained(whole, fixed, names)
        # A feature that was not measured needs components that are known.
        whole.check_observed(check_columns=not all_fixed)
        # The order depends on values alone, so that results do not depend on that of the user.
        order = order_of_samples(whole, weights)
        whole = whole.take_rows(order.samples)
        if weights is not None:
            weights = weights[order.samples]
        objective = whole.weighted(weights)
        objective.check_range()
        return whole, objective, weights, order, n_known, group_fits

    def _factorize(
        self,
        whole: Objective,
        objective: Objective,
        weights,
        base_n_clusters,
        rng,
    ):
        """Return runs, the metaclusters that were kept, and the last factorization.

        `objective` is that of the whole with weights.
        """
        k = self.n_clusters
        sizes = draw_sizes(self.n_estimators, k, base_n_clusters, rng, whole.n_fixed)
        config = self._solver_config(from_standardised, relative_to_loss=True)
        resample = self.resample
        if whole.n_fixed == k:  # all runs would be the same
            config = replace(config, solver=fit_fixed).with_stop(min_iter=1, tol=0)
            resample = None
        memory = memory_of(self.memory)
        runs = run_many(whole.for_runs(), config, sizes, rng, resample, weights, memory)
        candidates = metacluster_runs(self.meta, runs, config, whole.fixed)
        metaclusters, end = refine(objective, config, candidates)
        return runs, metaclusters, end

    def _extend(self, X):
        X = self._read(X, reset=False)
        H = self.components_
        objective = make_objective(X, self.loss, self.sparsity, self.penalty)
        names = getattr(self, "feature_names_in_", None)
        return fit_rows(drop_unexplained(objective, H, names), H)

    def transform(self, X: Any) -> np.ndarray:
        r"""Return how strong the clusters are in samples: W with the components fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Nonnegative; NaN where nothing was observed.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            The W >= 0 with the smallest loss. Rows do not sum to 1; one of NaN alone is 0.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given.
        """
        return self._extend_alone(X)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = (
            tags.array_api_support
        ) = True
        tags.input_tags.allow_nan = not self.sparsity
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(frozen=True)
class Metaclusters:
    r"""What recurs in the runs.

    Attributes
    ----------
    correspondence : ndarray of shape (J, k)
        How much of every metacluster is in every cluster of the runs: :math:`\alpha`, whose
        columns sum to the number of runs.
    columns : ndarray of shape (k, p)
        The prototypes :math:`\gamma`.
    """

    correspondence: np.ndarray
    columns: np.ndarray


def lifted_start(W, H):
    """Return a start (k, n + p) from W (k, n) and H, without zeros."""
    lifted = [F + _LIFT * F.mean(dtype=np.float64) for F in (W, H)]
    return np.concatenate(lifted, axis=1).astype(H.dtype)


def find_optima(objective, solver, config: SolverConfig, starts) -> list[Solution]:
    """Run a solver on the runs' clusters and return the optima, each of them once."""
    # starts are close to where they end: ten updates can be enough
    config = replace(config, solver=solver).with_stop(min_iter=10, prune_from=None)
    makers = [partial(np.asarray, start) for start in starts]
    task = f"{solver.__name__} of the runs' clusters"
    solutions = run_starts(objective, makers, config, task)
    losses = [solution.loss for solution in solutions]
    rises = np.diff(losses, prepend=-np.inf)
    is_new = rises > _SAME_OPTIMUM * objective.constant
    return list(compress(solutions, is_new))


def cluster_runs(way: str, runs: Runs, config: SolverConfig) -> list[Metaclusters]:
    r"""Metacluster the clusters of the runs, and return the optima that were found.

    ``"ptf"`` factorizes the biclusters of the runs as a positive tensor (eq. 14), ``"nmf"`` their
    columns as a matrix, ``H ~ alpha gamma`` (eq. 8). The starts are the clusters of single runs,
    from which the best optimum is found more often than from random ones.
    """
    device = current_device.get()
    objective: Any
    solver: Any
    if way == "ptf":
        objective = RunsObjective(runs.W, runs.H, device)
        solver = tensor_hals
    else:
        objective = MatrixObjective(runs.H, device=device)
        solver = hals
    starts = []
    for clusters in runs.starts(config.n_init, config.n_clusters):
        H = runs.H[clusters]
        W = runs.W[clusters] if way == "ptf" else least_squares_rows(runs.H, H).T
        starts.append(lifted_start(W, H))
    optima = find_optima(objective, solver, config, starts)
    # scale columns of alpha to sum to the number of runs, and rows of gamma to length 1
    metaclusters = []
    for optimum in optima:
        alpha = optimum.factors[0]
        total = alpha.sum(axis=0)
        alpha = alpha * (len(runs) / np.where(total > 0, total, 1))
        columns = unit_rows(optimum.factors[-1])[0]
        metaclusters.append(Metaclusters(alpha, columns))
    return metaclusters


def metacluster_runs(
    way: str, runs: Runs, config: SolverConfig, fixed=None
) -> list[Metaclusters]:
    """Metacluster runs that may have components in common, and return the optima.

    Parameters
    ----------
    way : str
        One of `WAYS`.
    runs : Runs
    config : SolverConfig
    fixed : ndarray of shape (n_fixed, p), default=None
        Components that the runs have in common, their first ones: the first metaclusters.
    """
    if fixed is None:
        return cluster_runs(way, runs, config)
    k = config.n_clusters
    n_fixed = len(fixed)
    dtype = runs.H.dtype
    # metacluster the clusters that are not fixed, if there are any
    position_in_run = np.concatenate([np.arange(size) for size in runs.sizes])
    free = np.flatnonzero(position_in_run >= n_fixed)
    if n_fixed < k:
        rest = replace(runs, W=runs.W[free], H=runs.H[free], sizes=runs.sizes - n_fixed)
        optima = cluster_runs(way, rest, replace(config, n_clusters=k - n_fixed))
    else:
        optima = [Metaclusters(np.zeros((0, 0)), np.zeros((0, fixed.shape[1])))]
    # put the fixed ones before them
    candidates = []
    for others in optima:
        alpha = np.zeros((len(position_in_run), k), dtype)
        alpha[:, :n_fixed] = position_in_run[:, None] == np.arange(n_fixed)
        alpha[free, n_fixed:] = others.correspondence
        columns = np.concatenate([unit_rows(fixed)[0], others.columns]).astype(dtype)
        candidates.append(Metaclusters(alpha, columns))
    return candidates


def refine(objective: Objective, config: SolverConfig, candidates: list[Metaclusters]):
    """Factorize X from metaclusters, and keep those with the smallest loss.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    config : SolverConfig
    candidates : list of Metaclusters

    Returns
    -------
    Metaclusters
        Those that were kept.
    Factorization
        What they led to, with the curves of all.
    """
    if objective.n_fixed < config.n_clusters:
        config = replace(config, solver=objective.solver)
    ends: list[Solution] = []
    for metaclusters in candidates:
        H = objective.positive_start(metaclusters.columns.astype(objective.X.dtype))
        H = objective.with_fixed(H)
        W = objective.positive_start(objective.approximate_rows(H).T)
        W[~W.any(axis=1)] = _LIFT * W.mean()  # a cluster of zeros would stay one
        start = partial(np.concatenate, [W, H], axis=1)
        ends += run_starts(objective, [start], config, "last factorization")
    order = np.argsort([end.loss for end in ends], kind="stable")
    best = order[0]
    curves = [ends[i].history for i in order]
    return candidates[best], Factorization(ends[best], curves, ends[best].loss)


def order_by_size(
    objective: Objective,
    best: Solution,
    n_fixed: int = 0,
    weights=None,
):
    """Return the best W (n, k), scaled H, and which cluster is which, the largest first.

    A cluster is as large as the rows weigh that it is strongest in; fixed ones stay first. The
    order of the best rows may differ from that of the last update: then it is tried once more.

    Parameters
    ----------
    objective : MatrixObjective or Divergence
    best : Solution
    n_fixed : int, default=0
    weights : ndarray of shape (n,), default=None
        1 by default.

    Returns
    -------
    W : ndarray of shape (n, k)
        What `fit_rows` returns for H, to the last bit.
    H : ndarray of shape (k, p)
    order : ndarray of shape (k,), int
    """
    W = best.factors[0]
    H = objective.scale_components(best.factors[1])
    k = len(H)
    order = np.arange(k)
    for attempt in range(4):  # mostly the first order is right
        sizes = np.bincount(hard_labels(W) + 1, weights, k + 1)[1:].astype(float)
        sizes[:n_fixed] = np.inf
        by_size = np.argsort(-sizes, kind="stable")
        if attempt and (by_size == np.arange(k)).all():
            break
        order = order[by_size]
        H = H[by_size]
        W = fit_rows(objective, H)
    return W, H, order


def count_distinct(W, H, n_fixed: int = 0) -> int:
    """Return the number of clusters that are fixed, or neither 0 nor equal to another one.

    A cluster also counts if it overlaps with others and is the strongest of no sample. Clusters are
    equal if the cosine of their columns is within 1e-6 of 1.
    """
    is_equal = np.triu(H @ H.T, 1) > 1 - 1e-6
    is_distinct = W.any(axis=0) & ~is_equal.any(axis=0)
    return n_fixed + int(is_distinct[n_fixed:].sum())
