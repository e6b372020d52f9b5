"""Stable, overlapping biclusters out of many NMF runs: metaclustering (Badea, 2005)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BiclusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from nmfcluster._arrays.arguments import positions, warn
from nmfcluster._arrays.labels import cluster_counts, one_hot
from nmfcluster._arrays.storage import largest
from nmfcluster._base import NMFClusterer, fitting, hard_labels, membership, numbered
from nmfcluster._compat import Interval, StrOptions, fit_context
from nmfcluster._engine.run import Plan
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.meta.runs import (
    Metaclusters,
    Runs,
    fitted_rows,
    metacluster,
    recurrence,
    refine,
    run_many,
    scaled_to_unit,
)
from nmfcluster.meta.solvers import PENALTIES, MatrixObjective, hals, multiplicative, sparse_hals
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.making import range_of_clusters
from nmfcluster.partitions.matrix import consensus_matrix
from nmfcluster.partitions.reading import normalised_weights

__all__ = ["NMFMetaCluster"]

_MUCH, _NOTHING = 1.1, 1e-6  # times a loss; of the loss of zero factors
_ALIKE = 1e-6  # clusters whose columns have a cosine nearer to 1 are one
_ROOM = 1e3  # by which squares of X must stay within what its dtype can hold


class NMFMetaCluster(BiclusterMixin, NMFClusterer):
    r"""Soft, overlapping clusters and biclusters that recur in many runs of NMF.

    Nonnegative matrix factorization writes a table as a sum of k biclusters,

    .. math:: X \approx W H , \quad W, H \ge 0 ,

    a column of W saying how strong a bicluster is in every sample, a row of H what it looks like.
    It finds other ones in every run. Here many runs are made, their clusters are clustered
    once more, and a last factorization starts from what recurs in them [1]_:

    1. `n_runs` factorizations of X from random starts, the rows of H scaled to length 1.
    2. Metaclusters of all their clusters. ``meta="ptf"`` clusters the biclusters, rows and columns
       at once, by positive tensor factorization (eq. 14)

       .. math:: w_j h_j \approx \sum_k \alpha_{jk} \beta_k \gamma_k , \quad j = 1 \dots J ,

       ``meta="nmf"`` their columns alone, :math:`h_j \approx \sum_k \alpha_{jk} \gamma_k` (eq. 8).
    3. The rows of the metaclusters by nonnegative least squares, and NMF from there.

    Read more in the :ref:`User Guide <meta>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_runs : int, default=20
        Number of factorizations from random starts.
    base_n_clusters : int or tuple (low, high), default=None
        Number of clusters of the runs, or the range that it is drawn from, ends included.
        `n_clusters` by default. With fewer, not all clusters can recur in a run.
    meta : {"ptf", "nmf", "kmeans"}, default="ptf"
        How the runs' clusters are clustered: as biclusters, by their columns, or by their
        columns and hard, which is the baseline of [1]_. Biclusters that have the same columns in
        different samples can be told apart by "ptf" only.
    final : bool, default=True
        Whether NMF runs from the metaclusters at the end.
    sparsity : float, default=0.0
        Weight :math:`\lambda` of a penalty on H, in all runs and at the end; 0: none.
    penalty : {"l1_columns", "l1_rows", "l1", "l2"}, default="l1_columns"
        What is penalised where columns of W have length 1. "l1_columns",
        :math:`\sum_g (\sum_c H_{cg})^2`: few clusters a column; "l1_rows",
        :math:`\sum_c (\sum_g H_{cg})^2 / p`: few columns a cluster; "l1",
        :math:`\sum_{cg} H_{cg}`: eq. 11 of [1]_, where :math:`\lambda` has the unit of X; "l2",
        :math:`\|H\|^2`: eq. 12 of [1]_, which shrinks H but makes it no sparser.
    solver : {"hals", "mu"}, default="hals"
        How the runs are made: by extrapolated coordinate descent, or by the multiplicative rules
        of [1]_, which are slower. With a `sparsity` it must be "hals".
    threshold : float, default=0.2
        A sample, or a column, is in a bicluster if its entry of W, or of H, is at least
        `threshold` times the largest of that bicluster; see `rows_` and `columns_`.
    n_init : int, default=5
        Number of starts of the metaclustering. Each is a single run, the best run first. Every
        optimum that they lead to is followed by the last factorization; the one with the smallest
        loss is kept.
    max_iter : int, default=1000
        Largest number of updates of a run, of the metaclustering, and of the last factorization.
    tol : float, default=1e-4
        Any of them has converged when ten updates lower its loss by less than `tol` times itself.
        A negative value runs all updates.
    random_state : int, RandomState instance or None, default=None
        Determines the starts. The result depends on it alone, not on `n_jobs` nor on the number of
        threads.
    n_jobs : int, default=None
        Number of threads that runs are shared out to.
    verbose : int, default=0
        1 prints a line for each stage.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        The strongest cluster of every sample; -1 for a sample that none explains any of, as one
        whose row is 0. Clusters are numbered by decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of `factor_`, scaled to sum to 1; a row of zeros is uniform.
    factor_ : ndarray of shape (n_samples, n_clusters), float
        W: the least squares fit to X with `components_` fixed, what `transform` returns.
    components_ : ndarray of shape (n_clusters, n_features), float
        H, with rows of length 1, so that entries of W compare.
    rows_ : ndarray of shape (n_clusters, n_samples), bool
        Samples of every bicluster: ``W[s, c] >= threshold * W[:, c].max()``.
    columns_ : ndarray of shape (n_clusters, n_features), bool
        Columns of every bicluster: ``H[c, g] >= threshold * H[c].max()``.
    correspondence_ : ndarray of shape (n_base_clusters, n_clusters), float
        :math:`\alpha`: how much of every metacluster is in every cluster of the runs. Its columns
        sum to `n_runs`; that of a metacluster without any is 0.
    base_runs_ : ndarray of shape (n_base_clusters,), int
        The run of every row of `correspondence_`.
    recurrence_ : ndarray of shape (n_clusters,), float
        How often a cluster recurs: the share of the runs in which it and a cluster of the run are
        each other's most similar, by the cosine of the biclusters.
    purity_ : ndarray of shape (n_clusters,), float
        How much it stays the same: the mean of that cosine over these runs, 0 without any. In
        noise, runs often agree as well: both figures are to be read together.
    run_losses_ : ndarray of shape (n_runs,), float
        Losses of the runs, the smallest first; this is the order of the runs elsewhere, too.
    partitions_ : ndarray of shape (n_samples, n_runs), int
        The strongest cluster of every sample in every run, -1 for none.
    confidence_ : ndarray of shape (n_samples,), float
        How often the runs put a sample together with the others of its cluster, in [0, 1].
    reconstruction_err_ : float
        :math:`\|X - WH\|`, of `factor_` and `components_`.
    loss_ : float
        :math:`\frac12 \|X - WH\|^2`, with the penalty where there is one, at the end of the last
        factorization.
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
    nmfcluster.metrics.overlap_match : Compares overlapping clusters.

    Notes
    -----
    Samples are rows here, and labels are those of the samples; [1]_ clusters the columns, its A
    and S being W and H. To cluster the columns, transpose X or look at `columns_`.

    The tensor of all biclusters is never made: an update of its factorization takes
    O(J k (n + p)) for the J clusters of all runs. Where [1]_ is silent or in error: the
    factorization starts from single runs, from which the best optimum is found more often; no rule
    here is stopped by a 0; penalised rows are exact minima.

    `transform` solves the least squares problem exactly, so that for the samples of `fit` it
    returns `factor_`, and `predict` returns `labels_`.

    References
    ----------
    .. [1] L. Badea. Clustering and metaclustering with nonnegative matrix decompositions.
       ECML 2005.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_biclusters
    >>> from nmfcluster.metrics import overlap_match
    >>> X, W, H = make_biclusters(random_state=0)
    >>> model = NMFMetaCluster(n_clusters=4, random_state=0).fit(X)
    >>> round(overlap_match(model.components_, H), 2)
    1.0
    >>> model.get_shape(0)  # samples and columns of the largest cluster # doctest: +SKIP
    (8, 12)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "n_runs": [Interval(Integral, 1, None, closed="left")],
        "base_n_clusters": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "meta": [StrOptions({"ptf", "nmf", "kmeans"})],
        "final": ["boolean"],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "penalty": [StrOptions(set(PENALTIES))],
        "solver": [StrOptions({"hals", "mu"})],
        "threshold": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        n_clusters: int,
        *,
        n_runs: int = 20,
        base_n_clusters: int | tuple[int, int] | None = None,
        meta: str = "ptf",
        final: bool = True,
        sparsity: float = 0.0,
        penalty: str = "l1_columns",
        solver: str = "hals",
        threshold: float = 0.2,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_runs = n_runs
        self.base_n_clusters = base_n_clusters
        self.meta = meta
        self.final = final
        self.sparsity = sparsity
        self.penalty = penalty
        self.solver = solver
        self.threshold = threshold
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> NMFMetaCluster:
        """Find the clusters that recur.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Nonnegative, and not 0 throughout. A sparse one stays sparse.
        y : None
            Ignored.

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
            X = self._read(X, reset=True)
            objective = MatrixObjective(X, self.sparsity, self.penalty)
            self._check_size(objective)
            sizes = self._sizes(rng)
            plan = self._plan(self._run_solver(), of_loss=True)
            runs = self._runs(objective, plan, sizes, rng)
            candidates = metacluster(self.meta, runs, plan, rng)
            found, end = refine(objective, plan, candidates, self.final)
            self._keep_biclusters(X, runs, found, end)
            self._compare_with_runs(runs, end, objective.constant)
        return self

    def _read(self, X: Any, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",  # sums run in one order, however the table was kept
            ensure_non_negative=True,
        )

    def _check_size(self, objective: MatrixObjective) -> None:
        X = objective.X
        self._check_not_alone(X.shape[0])
        self._check_n_clusters(X.shape[0])
        high, limits = largest(X), np.finfo(X.dtype)
        if high == 0:
            raise ValueError("X must hold an entry above 0; all entries are 0.")
        size = 2 * objective.constant
        if not _ROOM * float(limits.tiny) < size < float(limits.max) / _ROOM:
            raise ValueError(
                f"X must have squares that {X.dtype} can sum with some room, got entries up to "
                f"{high:.3g}; scale it."
            )

    def _sizes(self, rng: np.random.RandomState) -> np.ndarray:
        """Return the number of clusters of every run."""
        if self.base_n_clusters is None:
            return np.full(int(self.n_runs), int(self.n_clusters))
        low, high = range_of_clusters(self.base_n_clusters, "base_n_clusters")
        sizes = rng.randint(low, high + 1, size=self.n_runs)
        if sizes.sum() < self.n_clusters:
            raise ValueError(
                f"n_runs={self.n_runs} runs with base_n_clusters={self.base_n_clusters} have "
                f"{sizes.sum()} clusters, which must be at least n_clusters={self.n_clusters}."
            )
        return sizes

    def _run_solver(self) -> Any:
        if self.solver == "hals":
            return sparse_hals if self.sparsity else hals
        if self.sparsity:
            raise ValueError(f"sparsity={self.sparsity} needs solver='hals', got {self.solver!r}.")
        return multiplicative

    def _runs(
        self, objective: MatrixObjective, plan: Plan, sizes: np.ndarray, rng: np.random.RandomState
    ) -> Runs:
        def given() -> str:
            return (
                f"sparsity={self.sparsity} with penalty={self.penalty!r}, and X with entries up to "
                f"{largest(objective.X):.3g}"
            )

        try:
            with np.errstate(over="ignore", invalid="ignore"):  # said below
                runs = run_many(objective, plan, sizes, rng)
        except FloatingPointError as error:
            raise ValueError(
                f"{given()}, make losses that {objective.X.dtype} cannot hold: the sparsity must "
                "be smaller, or X scaled, or its range be less wide."
            ) from error
        if not runs.W.any():
            raise ValueError(f"{given()}, leave nothing of X: the sparsity must be smaller.")
        return runs

    def _keep_biclusters(self, X: Any, runs: Runs, found: Metaclusters, end: Factorization) -> None:
        """Set the fitted attributes, clusters in their final order."""
        _, H = scaled_to_unit(end.best.factors[0].T, end.best.factors[1])
        W = fitted_rows(X, H)
        *_, order = numbered(W, hard_labels(W))
        self.components_ = H[order]
        self.factor_ = fitted_rows(X, self.components_)  # as `transform` finds it, to the last bit
        labels = hard_labels(self.factor_)
        self.rows_ = _members(self.factor_.T, self.threshold)
        self.columns_ = _members(self.components_, self.threshold)
        self.correspondence_ = found.correspondence[:, order]
        self.base_runs_ = np.repeat(np.arange(len(runs)), runs.sizes)
        self.recurrence_, self.purity_ = recurrence(runs, self.factor_.T, self.components_)
        self.run_losses_, self.partitions_ = runs.losses, runs.partitions()
        self.confidence_ = _confidence(self.partitions_, labels, self.n_clusters)
        self.reconstruction_err_ = MatrixObjective(X).error(self.factor_, self.components_)
        self._keep_clusters(end, membership(self.factor_), labels, self._n_distinct())

    def _compare_with_runs(self, runs: Runs, end: Factorization, constant: float) -> None:
        """Warn where runs had no time to converge, or where one of them fits much better."""
        lost = np.count_nonzero(~runs.converged)
        if lost:
            warn(
                f"{lost} of the {len(runs)} runs did not converge within max_iter={self.max_iter} "
                "updates. Increase max_iter or tol.",
                ConvergenceWarning,
            )
        best, loss = runs.losses[0], end.best.loss
        comparable = self.final and (runs.sizes == self.n_clusters).all()
        if comparable and loss > _MUCH * best + _NOTHING * constant:
            warn(
                f"What recurs in the runs fits X less well than the best of them: loss {loss:.4g} "
                f"against {best:.4g}. More runs or n_init can help; n_runs=1 returns a single run.",
            )

    def _n_distinct(self) -> int:
        """Return the number of clusters that are neither 0 nor another one's likeness.

        Where clusters overlap, one can be nobody's strongest and still be a cluster.
        """
        alike = np.triu(self.components_ @ self.components_.T, 1) > 1 - _ALIKE
        return int((self.factor_.any(axis=0) & ~alike.any(axis=0)).sum())

    def _extend(self, X: Any) -> np.ndarray:
        return fitted_rows(self._read(X, reset=False), self.components_)

    def transform(self, X: Any) -> np.ndarray:
        r"""Return how strong the clusters are in samples: W with the components fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Nonnegative.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            The W >= 0 with the smallest :math:`\|X - WH\|`. Rows do not sum to 1.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width that `fit` was given.
        """
        return self._extend_alone(X)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Return the table that strengths of clusters stand for, ``W @ components_``.

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
            If `X` has not one column a cluster.
        """
        check_is_fitted(self)
        W = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
        if W.shape[1] != len(self.components_):
            raise ValueError(
                f"X must have a column for each of the {len(self.components_)} clusters, as "
                f"transform returns it; got shape {W.shape}."
            )
        return W @ self.components_

    def get_indices(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples and the columns of a bicluster.

        Parameters
        ----------
        i : int
            The bicluster, as `labels_` numbers them.

        Returns
        -------
        samples : ndarray of shape (n_samples_of_i,), int
        columns : ndarray of shape (n_columns_of_i,), int

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If there is no such bicluster.
        """
        check_is_fitted(self)
        whole = isinstance(i, Integral) and not isinstance(i, bool)
        if not whole or not -len(self.rows_) <= i < len(self.rows_):
            raise ValueError(f"i must be an integer from 0 to {len(self.rows_) - 1}, got {i!r}.")
        return super().get_indices(i)

    def consensus_matrix(self, indices: Any = None) -> np.ndarray:
        """Return how often the runs put two samples together, as a dense array.

        Of every run the strongest cluster of a sample counts, as in Brunet et al. (2004). Give
        it to `nmfcluster.metrics.cophenetic_correlation` to choose the number of clusters; where
        a sample is in no cluster, that of ``np.flatnonzero(model.labels_ >= 0)``.

        Parameters
        ----------
        indices : array-like of int, default=None
            Samples to return it for; all by default, which takes n_samples^2 numbers.

        Returns
        -------
        ndarray of shape (n_indices, n_indices)
            Shares of the runs, NaN for a pair of which one is in no cluster of any run.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `indices` are not integers in the range of the samples.
        """
        check_is_fitted(self)
        chosen = positions(indices, len(self.labels_), "sample", "the model")
        weights = normalised_weights(None, self.partitions_.shape[1])
        return consensus_matrix(self.partitions_[chosen], weights)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _members(F: np.ndarray, threshold: float) -> np.ndarray:
    """Return which entries of a row are at least a share of its largest; none of a row of 0."""
    high = F.max(axis=1, keepdims=True)
    return (F >= threshold * high) & (high > 0)


def _confidence(partitions: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return how often a sample is with the others of its cluster; 0 for one in no cluster."""
    partitions = partitions[:, partitions.max(axis=0) >= 0]  # a run may have found no cluster
    weights = normalised_weights(None, partitions.shape[1])
    ones = np.ones(len(labels), dtype=np.int64)
    ensemble = Ensemble(partitions, ones, weights, cluster_counts(partitions))
    own = labels >= 0
    indicator = one_hot(np.where(own, labels, 0), n_clusters) * own[:, None]
    contingency = ensemble.contingency(indicator)
    return np.where(own, ensemble.item_consensus(contingency, np.where(own, labels, 0)), 0)
