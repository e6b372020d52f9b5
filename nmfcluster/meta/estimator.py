"""Stable, overlapping biclusters from many NMF runs, by metaclustering (Badea, 2005)."""

from __future__ import annotations

from importlib import import_module
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BiclusterMixin, clone
from sklearn.utils.validation import check_is_fitted

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
from nmfcluster._optim.run import memory_of
from nmfcluster._utils.linalg import nnls_rows
from nmfcluster._utils.progress import stage
from nmfcluster._utils.storage import (
    as_float64,
    as_matrix,
    row_inner_products,
)
from nmfcluster._utils.validation import (
    axis_positions,
    check_count,
    check_shape,
    column_names,
    format_count,
    format_value,
    read_matrix,
    read_weights,
    reorder_samples,
    row_names,
    row_order,
)
from nmfcluster.meta.device import on_devices
from nmfcluster.meta.groups import GroupFits, fit_groups, is_shared
from nmfcluster.meta.objective import (
    LOSSES,
    drop_unexplained,
    fit_rows,
    make_objective,
    order_of_samples,
    read_fixed_components,
)
from nmfcluster.meta.runs import (
    WAYS,
    count_distinct,
    draw_sizes,
    fit_fixed,
    metacluster_runs,
    order_by_size,
    refine,
    run_many,
    warn_of_unconverged_runs,
)
from nmfcluster.meta.squares import PENALTIES, from_standardised
from nmfcluster.metrics import confidence, consensus_matrix, find_members

# Attributes of the runs, which stay valid when clusters are left out or merged.
_OF_RUNS = (
    "base_runs_",
    "run_losses_",
    "partitions_",
    "groups_",
    "merge_similarities_",
    "n_features_in_",
    "feature_names_in_",
    "_row_names_",
    "_column_names_",
)
# Attributes with a value for every cluster.
_OF_CLUSTERS = ("recurrence_", "presence_", "shared_")


@on_devices
class NMFMetaCluster(BiclusterMixin, NMFClusterer):
    r"""Soft, overlapping clusters and biclusters that recur in many runs of NMF.

    Nonnegative matrix factorization (NMF) approximates the data matrix by a sum of k biclusters,
    :math:`X \approx WH` with :math:`W, H \ge 0`. A column of W is the strength of a bicluster in
    every sample, and a row of H is its profile over the features. Runs from different random starts
    find different biclusters. This estimator therefore runs NMF many times, clusters the clusters
    of all runs, and starts a last factorization from those that recur [1]_:

    1. Factorize X `n_estimators` times from random starts, and scale rows of H to length 1.
    2. Cluster all clusters of the runs into metaclusters. ``meta="ptf"`` clusters the biclusters,
       rows and columns at once, by positive tensor factorization, :math:`w_j h_j \approx \sum_k
       \alpha_{jk} \beta_k \gamma_k` (eq. 14). ``meta="nmf"`` clusters their columns alone,
       :math:`h_j \approx \sum_k \alpha_{jk} \gamma_k` (eq. 8).
    3. Find W for the metaclusters by nonnegative least squares, and run NMF from there.

    Read more in the :ref:`User Guide <meta>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters. A larger number gives finer clusters;
        `nmfcluster.model_selection.sweep_n_clusters` helps to choose it.
    loss : {"frobenius", "kullback-leibler"}, default="frobenius"
        The loss to minimise. "frobenius" is half of the squared error. "kullback-leibler" is
        :math:`\sum x \log (x / y) - x + y` with :math:`Y = WH`, and suits counts with Poisson
        noise.
    n_estimators : int, default=20
        More runs make `recurrence_` more precise, and take longer. It is the number of
        factorizations from random starts.
    base_n_clusters : int or tuple (low, high), default=None
        Number of clusters of a run, or the range (both ends included) from which it is drawn;
        `n_clusters` by default. With a smaller number, no run can contain all clusters. With
        groups, it is the number of clusters of each group, which are called its programs. If it is
        then a range, or larger than `n_clusters`, a group keeps only the programs that recur in
        half of its runs, and at most `n_clusters` of them.
    resample : {"poisson", "bootstrap"}, float or None, default=0.8
        How the data of each run are drawn. If runs use different data, `recurrence_` depends on
        the data, and not only on the random starts. "poisson" draws counts with X as their means.
        "bootstrap" draws as many rows as X has, with replacement. A float is the share of the rows
        that are drawn without replacement, at least as many as the run has clusters. None uses X
        itself, as in [1]_.
    fixed_components : array-like of shape (n_fixed, n_features), default=None
        Known rows of H. They become the first rows of `components_`, with the scale of its other
        rows. All runs contain them and search for the others. If all `n_clusters` rows are known,
        only W is fitted, in a single run, and `X` may have a single row.
    meta : {"ptf", "nmf"}, default="ptf"
        How the clusters of the runs are compared: as biclusters ("ptf"), or by their columns alone
        ("nmf"). Only "ptf" separates biclusters with the same columns.
    sparsity : float, default=0.0
        A larger value leaves each feature in fewer clusters. Keep 0, no penalty, unless clusters
        share more features than they should; then try 0.05 to 0.2. It is the weight
        :math:`\lambda` of a penalty on H, in all runs and in the last factorization. It needs
        ``loss="frobenius"``.
    penalty : {"l1_columns", "l1", "l2"}, default="l1_columns"
        The penalty on H, where columns of W have length 1. It has no effect while `sparsity` is 0,
        and the default rarely needs to be changed. "l1_columns" is :math:`\sum_g (\sum_c
        H_{cg})^2` and leaves few clusters in a column. "l1" (eq. 11 of [1]_) is :math:`\sum_{cg}
        H_{cg}`, and its weight has the unit of X. "l2" (eq. 12 of [1]_) is :math:`\|H\|^2`, which
        shrinks H but makes it no sparser.
    threshold : float, default=0.2
        A larger value makes biclusters smaller: a member has at least this share of the largest
        entry of its bicluster. It changes only `rows_` and `columns_`, and need not be set unless
        you use these.
    min_groups : int or float, default=0.5
        A larger value makes fewer clusters count as shared. An int is the number of groups in
        which a shared cluster has to be present. A float is the share of all groups, and stands
        for at least two of them. It changes only `shared_`, and need not be set unless you use
        this.
    n_init : int, default=5
        A larger value takes longer, and can lead to a smaller loss. It is the number of starts of
        the metaclustering. Each start uses the clusters of one run, and runs with the smallest
        losses come first. A last factorization follows each start, and the one with the smallest
        loss is kept.
    max_iter : int, default=1000
        Largest number of updates of a run, of the metaclustering, and of the last factorization.
        Increase it if a warning about convergence appears.
    tol : float, default=1e-4
        A larger value ends a long fit earlier; the default rarely has to be changed. A
        factorization has converged when ten updates lower its loss by less than `tol` times the
        loss. With a negative value, it always makes `max_iter` updates.
    random_state : int, RandomState, Generator or None, default=None
        Determines the starts and the resampled data. The result does not depend on `n_jobs`, the
        number of threads or the order of the samples. It can change if columns are reordered or
        samples repeated, because this changes the random numbers. It can also change between a
        dense and a sparse matrix, because these are rounded differently. If clusters are weak,
        labels before and after such a change have an adjusted Rand index of about 0.93.
    n_jobs : int, default=None
        Number of threads among which runs are divided. Runs on small matrices take one thread.
    memory : str or joblib.Memory, default=None
        Folder in which runs are cached. A later fit with the same X, seed and parameters loads
        them, and an interrupted fit continues. Files are loaded as pickles, which can run code, so
        choose a folder that nobody else can write to.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Strongest cluster of every sample, or -1 for a sample in no cluster. Fixed components come
        first, and other clusters are numbered by decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of `factor_`, scaled to sum to 1; a row of zeros becomes uniform. With the
        Kullback-Leibler loss, they are the shares of the counts of a sample that come from each
        cluster. With the squared error, scale the rows of ``factor_ * components_.sum(axis=1)`` to
        sum to 1 to get such shares.
    factor_ : ndarray of shape (n_samples, n_clusters), float
        W, the best fit to X with `components_` fixed, as `transform` returns it.
    components_ : ndarray of shape (n_clusters, n_features), float
        H. With the squared error, rows have length 1, so that entries of W can be compared. With
        the Kullback-Leibler loss, rows sum to 1, and entries of W are counts.
    rows_ : ndarray of shape (n_clusters, n_samples), bool
        Samples of every bicluster: ``W[s, c] >= threshold * W[:, c].max()``.
    columns_ : ndarray of shape (n_clusters, n_features), bool
        Columns of every bicluster: ``H[c, g] >= threshold * H[c].max()``.
    correspondence_ : ndarray of shape (n_base_clusters, n_clusters), float
        The matrix :math:`\alpha`, with the weight of every metacluster in every cluster of the
        runs. Columns sum to `n_estimators`, or to 0 for an empty metacluster.
    base_runs_ : ndarray of shape (n_base_clusters,), int
        The run of every row of `correspondence_`.
    recurrence_ : ndarray of shape (n_clusters,), float
        How reliably a cluster recurs, from 0 to 1: its cosine with its counterpart in a run,
        averaged over all runs. A run without a counterpart counts as 0. A cluster and its
        counterpart are each other's most similar biclusters. With ``resample=None``, it measures
        how well runs on X agree, but not whether clusters would recur in other data. A high value
        does not prove that a cluster is a single program: all runs can agree on a mixture of
        programs, above all if one of them is used by every sample. With groups, it is the mean of
        `presence_`.
    groups_ : ndarray of shape (n_groups,)
        Names of the groups, sorted. This and the next three attributes exist only after a fit with
        groups.
    presence_ : ndarray of shape (n_groups, n_clusters), float
        How reliably a cluster recurs in the runs of each group, defined like `recurrence_`. It is
        0 if no program of the group is similar to the cluster, even if `n_clusters` is so small
        that a dissimilar one was merged into it. It is limited to values below 0.5 in a group with
        fewer than twice as many entries as its programs have free parameters, because runs on such
        data agree even on noise.
    shared_ : ndarray of shape (n_clusters,), bool
        Whether a cluster has a presence of at least 0.5 in as many groups as `min_groups` requires.
    merge_similarities_ : ndarray of shape (n_programs - 1,)
        Similarities at which the programs of all groups are merged, in decreasing order, as
        `nmfcluster.meta.metacluster` defines them. Programs count as alike at 0.55 or more; -1
        stands for a merge of programs of the same group. `sweep_n_clusters` uses them to choose
        the number of clusters.
    run_losses_ : ndarray of shape (n_estimators,), float
        Losses of the runs on their data, the smallest first. All attributes list the runs in this
        order. With groups, these are the losses of each group, one group after the other.
    partitions_ : ndarray of shape (n_samples, n_estimators), int
        Strongest cluster of every sample in every run; -1 if the sample is in no cluster or has a
        weight of 0, and -2 if the run belongs to another group.
    confidence_ : ndarray of shape (n_samples,), float
        Agreement of the runs on the cluster of a sample, computed from `partitions_`: 1 if all
        agree, about 1 / n_clusters by chance, and 0 for a sample in no cluster. See `NMFConsensus`
        for the definition.
    reconstruction_err_ : float
        Root of twice the loss of `factor_` and `components_`, :math:`\|X - WH\|` by default.
    loss_ : float
        Loss, plus the penalty, at the end of the last factorization.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        `loss_` before the first and after every update of the last factorization that was kept.
    loss_curves_ : list of ndarray
        Loss curves of the last factorizations from all metaclusterings, the kept one first.
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
    nmfcluster.NMFConsensus : Combines many clusterings into one.
    nmfcluster.display.BiclusterDisplay : Shows the biclusters in the data matrix.
    nmfcluster.metrics.match_components : Matches components to those of another fit.
    sklearn.metrics.consensus_score : Compares `biclusters_` with others.

    Notes
    -----
    Samples are rows here, and `labels_` are those of the rows. In [1]_, columns are clustered, and
    W and H are called A and S. To cluster columns, transpose X or use `columns_`.

    The tensor of all biclusters is never formed: an update of its factorization takes
    O(J k (n + p)) for the J clusters of all runs. The method departs from [1]_ where the paper
    leaves a step open or is wrong:

    - Runs begin on X divided by the roots of the means of its rows and columns, to find clusters of
      few rows.
    - The metaclustering starts from single runs, which lead to the best optimum more often than
      random starts.
    - Entries of 0 do not block an update, and updates of penalised rows are exact minima.

    For the samples of `fit`, `transform` returns `factor_`, and `predict` returns `labels_`.

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
            Nonnegative, with an entry above 0. A sparse matrix stays sparse. NaN marks an entry
            that was not observed, which the loss leaves out. A PyTorch or CuPy array is fitted on
            its device if scikit-learn's ``array_api_dispatch`` is on, see the :ref:`User Guide
            <meta>`.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often a sample counts in all losses; 1 by default. A sample with weight 0 is in no
            cluster of the runs.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample, such as its patient or batch. Every group has its own runs,
            with `base_n_clusters` programs each. The programs of all groups, with equal weights,
            are then clustered into metaclusters, see `nmfcluster.meta.metacluster`. A column that
            is NaN throughout a group is left out of the runs of this group.

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
            whole, weights, samples, n_known, group_fits = self._prepare(
                X, sample_weight, groups, rng
            )
            ranks = samples.ranks
            # Run NMF many times, cluster the clusters of all runs, and run NMF from there.
            base_n_clusters = None if group_fits else self.base_n_clusters
            runs, metaclusters, end = self._factorize(
                whole, weights, base_n_clusters, rng
            )
            with stage(f"strengths of the clusters in {len(ranks)} samples"):
                W, H, order = order_by_size(whole, end.best, n_known, weights)
            # Set the attributes, with samples in the order of X.
            weighted = whole.weighted_rows(W, weights)
            self.components_ = H
            self.factor_ = W[ranks]
            self.labels_ = hard_labels(self.factor_)
            self.membership_ = membership(self.factor_)
            self.rows_ = find_members(self.factor_.T, self.threshold)
            self.columns_ = find_members(H, self.threshold)
            found = group_fits or runs
            self.partitions_ = found.partitions
            if group_fits is None:
                self.partitions_ = self.partitions_[samples.first_ranks]
                self.recurrence_ = runs.recurrence(weighted.T, H)
            else:
                self.groups_ = group_fits.names
                self.presence_ = group_fits.presence[:, order]
                self.merge_similarities_ = group_fits.similarities
                self.shared_ = is_shared(self.presence_, self.min_groups)
                self.recurrence_ = self.presence_.mean(axis=0)
            correspondence = (group_fits or metaclusters).correspondence
            self.correspondence_ = correspondence[:, order]
            self.base_runs_ = found.base_runs
            self.run_losses_ = found.losses
            self.confidence_ = confidence(self.partitions_, self.labels_)
            self.reconstruction_err_ = whole.weighted(weights).error(weighted, H)
            self.loss_ = end.loss
            self.loss_curves_ = end.loss_curves
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = end.best.n_iter
            n_found = count_distinct(W, H, n_known)
            self._warn_unless_converged(end, n_found)
            warn_of_unconverged_runs(runs, self.max_iter)
        return self

    def _read(self, X, reset=True):
        # in C order, so that sums do not depend on the memory layout of X
        X = read_features(self, X, reset, order="C", ensure_all_finite="allow-nan")
        return self._require_nonnegative(X)

    def _require_nonnegative(self, X):
        """Return X, or raise a ValueError if an entry is negative."""
        cure = "pass counts from before scaling or correction, or clip small negative values"
        if self.loss == "frobenius":
            cure = f"shift columns by their minima, {cure}"
        require_nonnegative(self, X, cure)
        return X

    def _prepare(self, X, sample_weight, groups, rng):
        """Read the input, and return the objective, with samples in their canonical order.

        It also returns the weights, the order, the number of components that users fixed, and the
        fits to groups if there are any.
        """
        rows = self._row_names_
        k = self.n_clusters
        X = self._read(X)
        n_samples, n_features = X.shape
        fixed = read_fixed_components(
            self.fixed_components, self._column_names_, X.dtype, k, n_features
        )
        if fixed is None:
            fixed = np.zeros((0, n_features), X.dtype)
        n_known = len(fixed)
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
        whole = make_objective(X, self.loss, self.sparsity, self.penalty, fixed)
        if len(fixed) == k:
            names = getattr(self, "feature_names_in_", None)
            whole = drop_unexplained(whole, fixed, names)
        # Features that were never observed are allowed only if all components are known.
        whole.check_observed(check_columns=n_known < k)
        # The order depends on values alone, so that results do not depend on the order of X.
        order = order_of_samples(whole, weights)
        whole = whole.take_rows(order.samples)
        if weights is not None:
            weights = weights[order.samples]
        return whole, weights, order, n_known, group_fits

    def _factorize(self, whole, weights, base_n_clusters, rng):
        """Return runs, the metaclusters that were kept, and the last factorization."""
        objective = whole.weighted(weights)
        objective.check_range()
        k = self.n_clusters
        memory = memory_of(self.memory)
        sizes = draw_sizes(self.n_estimators, k, base_n_clusters, rng, whole.n_fixed)
        if whole.n_fixed == k:
            return fit_fixed(objective)
        config = self._solver_config(from_standardised, relative_to_loss=True)
        runs = run_many(
            whole.for_runs(), config, sizes, rng, self.resample, weights, memory
        )
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
        r"""Return the strengths of the clusters in samples: W, with the components fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Nonnegative; NaN where nothing was observed.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            The W >= 0 with the smallest loss. Rows do not sum to 1. A row of NaN becomes 0.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` differs from that of `fit` in kind or number of columns.
        """
        return self._extend_alone(X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Reconstruct the data matrix from cluster strengths, ``W @ components_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_clusters)
            W, as `transform` returns it.

        Returns
        -------
        ndarray of shape (n_new, n_features)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` does not have one column for each cluster.
        """
        check_is_fitted(self)
        W = read_matrix(X)
        check_shape(W, "X, with one for each cluster,", len(self.components_))
        return W @ self.components_

    def components_of(self, X: Any) -> np.ndarray:
        r"""Extend the components to other columns of the samples of `fit`.

        After a fit to some columns, such as the variable genes, this gives the programs over all
        genes: the H with the smallest loss of :math:`X \approx WH`, where W is `factor_`. Programs
        have the scale of `components_`, and nearly the same values in the columns of `fit`. Every
        column is solved independently, so that X may be passed in blocks of columns.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_columns)
            The samples of `fit`, in the same order or with their index, and any columns.
            Nonnegative, in the unit of the X of `fit`, such as counts; NaN where nothing was
            observed.

        Returns
        -------
        ndarray of shape (n_clusters, n_columns)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` does not have the samples of `fit`, or has negative entries.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0)
        >>> model = NMFMetaCluster(2, random_state=0).fit(X[:, [0, 1, 3, 4]])
        >>> model.components_of(X[:, [2, 5]]).round(2)
        array([[0.63, 0.  ],
               [0.  , 0.63]])
        """
        check_is_fitted(self)
        order = row_order(self._row_names_, row_names(X), "X", "the X of fit")
        X = read_matrix(X, ensure_all_finite="allow-nan")
        check_shape(X, "X", None, len(self.factor_))
        X = self._require_nonnegative(X)
        # samples in no cluster do not contribute
        used = np.flatnonzero(self.factor_.any(axis=1))
        rows = used if order is None else order[used]
        columns = as_matrix(X[rows].T)
        return fit_rows(make_objective(columns, self.loss), self.factor_[used].T).T

    def top_features(
        self, n_features: int = 10, values: Any = None, feature_names: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the strongest columns of every cluster, the strongest first.

        Parameters
        ----------
        n_features : int, default=10
            Number of columns of each cluster; all if there are fewer.
        values : array-like of shape (n_clusters, n_features_in_), default=None
            Values that rank the columns, such as `feature_scores`; `components_` by default.
        feature_names : array-like of shape (n_features_in_,), default=None
            Names of the columns of X, by default those of a data frame. A sparse matrix has none,
            so pass for example ``vectorizer.get_feature_names_out()``.

        Returns
        -------
        names : ndarray of shape (n_clusters, n_features)
            Names of the columns, or their numbers if there are no names.
        weights : ndarray of shape (n_clusters, n_features)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `values` do not have the shape of `components_`, or a column has no name.
        TypeError
            If `n_features` is not an integer.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0)
        >>> names, weights = NMFMetaCluster(2, random_state=0).fit(X).top_features(2)
        >>> names.tolist()
        [[0, 2], [3, 5]]
        """
        check_is_fitted(self)
        n_features = check_count(n_features, "n_features", 1)
        shape = self.components_.shape
        if values is None:
            values = self.components_
        values = read_matrix(values, "values", accept_sparse=False)
        if values.shape != shape:
            raise ValueError(f"values must be of shape {shape}, got {values.shape}.")
        order = np.argsort(-values, axis=1, kind="stable")[:, :n_features]
        names = self._column_names_ if feature_names is None else feature_names
        names = np.arange(shape[1]) if names is None else np.asarray(names)
        if names.shape != shape[1:]:
            raise ValueError(
                f"feature_names must be {format_count(shape[1], 'name')}, one for each column of "
                f"X, got {format_value(feature_names)}."
            )
        return names[order], np.take_along_axis(values, order, axis=1)

    def without(self, clusters: Any, X: Any) -> Self:
        """Return the model without some clusters, with the strengths of the others refitted.

        Parameters
        ----------
        clusters : array-like of int
            Numbers of the clusters to leave out.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of `fit`.

        Returns
        -------
        NMFMetaCluster
            A new model, whose `fixed_components` are the remaining clusters, in their order. It
            keeps the attributes that describe runs and groups.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If a cluster does not exist, none is left, or `X` does not have the shape of `fit`.
        TypeError
            If `clusters` are not integers.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(3), [[3.0, 1.0]]).repeat([6, 4, 2], axis=0)
        >>> model = NMFMetaCluster(3, random_state=0).fit(X)
        >>> model.without([1], X).factor_.shape, model.merged([(1, 2)], X).factor_.shape
        ((12, 2), (12, 2))
        """
        check_is_fitted(self)
        k = len(self.components_)
        out = axis_positions(clusters, k, "cluster", "the model")
        rest = np.delete(np.eye(k), out, axis=0)
        if not len(rest):
            raise ValueError(
                f"clusters must leave at least one of {k}, got all of them."
            )
        return self._refit_sums(rest, X)

    def merged(self, groups: Any, X: Any) -> Self:
        """Return the model with some clusters merged, and all strengths refitted.

        A merged cluster takes the position of the first of its parts. It contributes to X the sum
        of their contributions.

        Parameters
        ----------
        groups : sequence of sequences of int
            Numbers of the clusters to merge, as in ``[(1, 4), (2, 3)]``. A cluster can be in one
            group only.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples of `fit`.

        Returns
        -------
        NMFMetaCluster
            A new model, see `without`. A merged cluster has the largest recurrence of its parts.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If a cluster does not exist or is in two groups, or `X` does not have the shape of
            `fit`.
        TypeError
            If groups are not sequences of numbers.
        """
        check_is_fitted(self)
        is_list = isinstance(groups, list | tuple) or np.ndim(groups) == 2
        if not (is_list and all(hasattr(group, "__len__") for group in groups)):
            raise TypeError(
                f"groups must be a list of groups like [(1, 4)], got {format_value(groups)}."
            )
        k = len(self.components_)
        place = np.arange(k)
        named: list[int] = []
        for group in groups:
            own = axis_positions(group, k, "cluster", "the model")
            place[own] = own.min(initial=k)
            named += own.tolist()
        if len(set(named)) < len(named):
            raise ValueError(
                f"groups must name no cluster twice, got {format_value(groups)}."
            )
        is_part = np.unique(place)[:, None] == place
        return self._refit_sums(is_part.astype(float), X)

    def _refit_sums(self, A, X):
        """Return a model whose clusters are the sums ``A``, (n_new, k) of 0 and 1, of these."""
        X = self._read(X, reset=False)
        check_shape(X, "X", None, len(self.factor_))
        H = (A * self.factor_.sum(axis=0)) @ self.components_
        other = clone(self).set_params(
            fixed_components=H, n_clusters=len(A), base_n_clusters=None, sparsity=0.0
        )
        other.fit(X)
        for name, value in vars(self).items():
            if name in _OF_RUNS:
                setattr(other, name, value)
            elif name in _OF_CLUSTERS:  # a sum has the largest value of its parts
                surest = (value[..., None, :] * A).max(axis=-1)
                setattr(other, name, surest.astype(value.dtype))
        other.correspondence_ = self.correspondence_ @ A.T
        other.confidence_ = confidence(self.partitions_, other.labels_)
        return other

    def to_frames(self) -> tuple[Any, Any]:
        """Return W and H as pandas data frames, with the names of the rows and columns of X.

        Returns
        -------
        usages : DataFrame of shape (n_samples, n_clusters)
            `factor_`, with the names of the rows of X.
        programs : DataFrame of shape (n_clusters, n_features)
            `components_`, with the names of the columns of X. Clusters have the names of
            `get_feature_names_out`. If X had no names, rows and columns are numbered.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> import pandas as pd
        >>> from nmfcluster import NMFMetaCluster
        >>> X = pd.DataFrame([[3.0, 0], [1, 0], [0, 2]], index=["a", "b", "c"], columns=["p", "q"])
        >>> usages, programs = NMFMetaCluster(2, random_state=0).fit(X).to_frames()
        >>> usages.round(1)
           nmfmetacluster0  nmfmetacluster1
        a              3.0              0.0
        b              1.0              0.0
        c              0.0              2.0
        """
        check_is_fitted(self)
        pd = import_module("pandas")  # here, because nothing else needs it
        clusters = self.get_feature_names_out()
        usages = pd.DataFrame(self.factor_, self._row_names_, clusters)
        programs = pd.DataFrame(self.components_, clusters, self._column_names_)
        return usages, programs

    def feature_profiles(self, X: Any) -> np.ndarray:
        r"""Return the expected feature values of a sample that is in one cluster only.

        These are the rows of H in the unit of X: the :math:`H \ge 0` with the smallest :math:`\|X -
        MH\|`, where M holds the memberships of the samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples of `fit` or others, nonnegative and without NaN. Counts may be normalised, for
            example by sequencing depth.

        Returns
        -------
        ndarray of shape (n_clusters, n_features)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` differs from that of `fit` in kind or number of columns, or holds NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0)
        >>> model = NMFMetaCluster(2, random_state=0).fit(X)
        >>> model.feature_profiles(X).round(2)[0]
        array([3., 1., 2., 0., 0., 0.])
        """
        X, M = self._with_memberships(X)
        return nnls_rows(X.T @ M, M.T @ M).T

    def feature_scores(self, X: Any) -> np.ndarray:
        """Return how strongly every column increases with the membership in each cluster.

        Scores are the coefficients of the linear regression of all columns on all memberships,
        both scaled to mean 0 and variance 1. Columns that are high everywhere are no markers, and
        have low scores. Memberships sum to 1, so coefficients are not unique. The ones with the
        smallest norm are returned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples of `fit` or others, nonnegative and without NaN. Counts may be normalised, for
            example by sequencing depth.

        Returns
        -------
        ndarray of shape (n_clusters, n_features)
            0 for a column that does not vary.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` differs from that of `fit` in kind or number of columns.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import NMFMetaCluster
        >>> X = np.kron(np.eye(2), [[3.0, 1.0, 2.0]]).repeat([6, 4], axis=0) + 1
        >>> model = NMFMetaCluster(2, random_state=0).fit(X)
        >>> np.sign(model.feature_scores(X))[0]
        array([ 1.,  1.,  1., -1., -1., -1.])
        """
        X, M = self._with_memberships(X)
        n = len(M)
        Z = M - M.mean(axis=0)
        spread = Z.std(axis=0)
        Z /= np.where(spread > 0, spread, 1)
        means = np.asarray(X.mean(axis=0)).ravel()
        deviations = np.sqrt(np.maximum(row_inner_products(X.T, X.T) / n - means**2, 0))
        # deviations below 1e-9 of the mean are rounding
        usable = deviations > 1e-9 * np.maximum(means, np.finfo(float).tiny)
        # memberships sum to 1, so one eigenvalue is 0 but for rounding, below 1e-9 of the largest
        inverse = np.linalg.pinv(Z.T @ Z / n, rcond=1e-9, hermitian=True)
        slopes = inverse @ (X.T @ Z).T / n
        return np.divide(slopes, deviations, out=np.zeros_like(slopes), where=usable)

    def _with_memberships(self, X):
        """Return X in float64, and the memberships of its rows."""
        M = membership(as_float64(self._extend_alone(X)))
        X = as_float64(self._read(X, reset=False))
        if np.isnan(X.sum()):
            raise ValueError(
                "X must not hold NaN here: impute it, e.g. by `inverse_transform`."
            )
        return X, M

    def consensus_matrix(self, indices: Any = None) -> np.ndarray:
        """Return the share of runs in which two samples are in the same cluster, as a dense array.

        Every sample is assigned to its strongest cluster in each run, as in Brunet et al. (2004).
        To choose the number of clusters, pass the matrix to
        `nmfcluster.metrics.cophenetic_correlation`. If some samples are in no cluster, leave them
        out: pass ``np.flatnonzero(model.labels_ >= 0)`` as `indices`.

        Parameters
        ----------
        indices : array-like of int, default=None
            Samples to include. By default, all are included, and the matrix has n_samples^2
            entries.

        Returns
        -------
        ndarray of shape (n_indices, n_indices)
            Shares of the runs; NaN if one of the two is in no cluster of any run.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `indices` are not integers in the range of the samples.
        """
        check_is_fitted(self)
        chosen = axis_positions(indices, len(self.labels_), "sample", "the model")
        n_runs = self.partitions_.shape[1]
        return consensus_matrix(self.partitions_[chosen], np.full(n_runs, 1 / n_runs))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = tags.input_tags.sparse = (
            tags.array_api_support
        ) = True
        tags.input_tags.allow_nan = not self.sparsity
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
