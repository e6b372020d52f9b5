"""Stable, overlapping biclusters out of many NMF runs: metaclustering (Badea, 2005)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

import nmfcluster.meta.runs as runs
from nmfcluster import _base
from nmfcluster._base import NMFClusterer, fitting, hard_labels, membership
from nmfcluster._compat import Interval, StrOptions, fit_context
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.metaclusters import METACLUSTERINGS, by_their_size, refine
from nmfcluster.meta.penalties import PENALTIES
from nmfcluster.meta.programs import Programs
from nmfcluster.meta.recurrence import recurrence
from nmfcluster.meta.resampling import WAYS, check_counts
from nmfcluster.meta.solvers import MatrixObjective, multiplicative, unit_rows
from nmfcluster.metrics.overlap import members
from nmfcluster.partitions.matrix import confidence

_OBJECTIVES = ("frobenius", "kullback-leibler")


class NMFMetaCluster(Programs, NMFClusterer):
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
    resample : {"poisson", "multinomial", "bootstrap"}, float or None, default=None
        What each run sees in the place of X: counts drawn with X as their means; as many counts a
        row, spread as X has them; as many rows, drawn with replacement; a share of the rows; or X.
        What recurs is then said by the data, and not by the optimiser alone.
    meta : {"ptf", "nmf", "kmeans"}, default="ptf"
        How the runs' clusters are clustered: as biclusters, by their columns, or by their columns
        and hard, the baseline of [1]_. Only "ptf" tells biclusters with the same columns apart.
    final : bool, default=True
        Whether NMF runs from the metaclusters at the end.
    sparsity : float, default=0.0
        Weight :math:`\lambda` of a penalty on H, in all runs and at the end; 0: none.
    penalty : {"l1_columns", "l1_rows", "l1", "l2"}, default="l1_columns"
        What is penalised, columns of W having length 1. "l1_columns", few clusters a column:
        :math:`\sum_g (\sum_c H_{cg})^2`; "l1_rows", few columns a cluster: :math:`\sum_c (\sum_g
        H_{cg})^2 / p`; "l1", eq. 11 of [1]_: :math:`\sum_{cg} H_{cg}`, whose weight has the unit of
        X; "l2", eq. 12 of [1]_: :math:`\|H\|^2`, which shrinks H but makes it no sparser.
    solver : {"auto", "mu"}, default="auto"
        How the runs are made: by the fastest solver of the loss, extrapolated coordinate descent
        or expectation maximisation; or by the multiplicative rules of [1]_, which are slower and
        take neither another loss nor `sparsity`.
    threshold : float, default=0.2
        Share of its largest entry that members of a bicluster reach; see `rows_`, `columns_`.
    n_init : int, default=5
        Number of starts of the metaclustering: single runs, the best run first. The last
        factorization starts from each of their optima; that with the smallest loss is kept.
    max_iter : int, default=1000
        Largest number of updates of a run, of the metaclustering, and of the last factorization.
    tol : float, default=1e-4
        Each has converged when ten updates lower its loss by less than `tol` times itself; a
        negative value runs all updates.
    random_state : int, RandomState instance or None, default=None
        Determines the starts; the result depends neither on `n_jobs` nor on the number of threads.
    n_jobs : int, default=None
        Number of threads that runs are shared out to.
    verbose : int, default=0
        1 prints a line for each stage.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Strongest cluster of every sample, -1 if all are 0; numbered by decreasing size.
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
        biclusters. Without `resample` it says how far runs agree, and nothing of other data.
    run_losses_ : ndarray of shape (n_estimators,), float
        Losses of the runs, the smallest first: the order of the runs elsewhere, too.
    partitions_ : ndarray of shape (n_samples, n_estimators), int
        Strongest cluster of every sample in every run, -1 for none.
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
    nmfcluster.metrics.overlap_match : Compares overlapping clusters.

    Notes
    -----
    Samples are rows here, and labels are those of the samples; [1]_ clusters the columns, its A
    and S being W and H. To cluster the columns, transpose X or look at `columns_`.

    The tensor of all biclusters is never made: an update of its factorization takes
    O(J k (n + p)) for the J clusters of all runs. Where [1]_ is silent or wrong: it starts from
    single runs, which lead to the best optimum more often; a 0 stops no rule; penalised rows are
    exact minima. For the samples of `fit`, `transform` returns `factor_`, `predict` `labels_`.

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "loss": [StrOptions(set(_OBJECTIVES))],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "base_n_clusters": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "resample": [StrOptions(set(WAYS)), Interval(Real, 0, 1, closed="neither"), None],
        "meta": [StrOptions(set(METACLUSTERINGS))],
        "final": ["boolean"],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "penalty": [StrOptions(set(PENALTIES))],
        "solver": [StrOptions({"auto", "mu"})],
        "threshold": [Interval(Real, 0, 1, closed="right")],
    }

    factor_: np.ndarray
    components_: np.ndarray
    rows_: np.ndarray
    columns_: np.ndarray
    correspondence_: np.ndarray
    base_runs_: np.ndarray
    partitions_: np.ndarray
    confidence_: np.ndarray
    recurrence_: np.ndarray
    run_losses_: np.ndarray
    reconstruction_err_: float

    def __init__(
        self,
        n_clusters: int,
        *,
        loss: str = "frobenius",
        n_estimators: int = 20,
        base_n_clusters: int | tuple[int, int] | None = None,
        resample: str | float | None = None,
        meta: str = "ptf",
        final: bool = True,
        sparsity: float = 0.0,
        penalty: str = "l1_columns",
        solver: str = "auto",
        threshold: float = 0.2,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.loss = loss
        self.n_estimators = n_estimators
        self.base_n_clusters = base_n_clusters
        self.resample = resample
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
            X = self._read(X)
            self._check_not_alone(X.shape[0])
            self._check_n_clusters(X.shape[0])
            objective = self._objective(X)
            objective.check_range()
            check_counts(self.resample, X)
            sizes = runs.draw_sizes(self.n_estimators, self.n_clusters, self.base_n_clusters, rng)
            plan = self._plan(self._solver(objective), of_loss=True)
            found = runs.run_many(objective.for_runs(), plan, sizes, rng, self.resample)
            candidates = METACLUSTERINGS[self.meta](found, plan, rng)
            metaclusters, end = refine(objective, plan, candidates, self.final)
            self._keep_biclusters(objective, found, metaclusters.correspondence, end)
            comparable = self.resample is None
            runs.compare_with_runs(found, end, plan, objective.constant, comparable)
        return self

    def _read(self, X: Any, reset: bool = True) -> Any:
        X = _base.read_features(self, X, reset, order="C")  # sums run in one order, then
        _base.require_nonnegative(self, X, "MinMaxScaler scales columns to [0, 1]")
        return X

    def _objective(self, X: Any) -> runs.Objective:
        if self.loss == "frobenius":
            return MatrixObjective(X, self.sparsity, self.penalty)
        if self.sparsity:
            raise ValueError(f"sparsity={self.sparsity} needs loss='frobenius', got {self.loss!r}.")
        return Divergence(X)

    def _solver(self, objective: runs.Objective) -> Any:
        if self.solver == "auto":
            return objective.run_solver
        if self.loss != "frobenius":
            raise ValueError(f"solver='mu' needs loss='frobenius', got {self.loss!r}.")
        if self.sparsity:
            raise ValueError(f"sparsity={self.sparsity} needs solver='auto', got {self.solver!r}.")
        return multiplicative

    def _keep_biclusters(
        self, objective: runs.Objective, found: runs.Runs, alpha: np.ndarray, end: Factorization
    ) -> None:
        """Set the fitted attributes, clusters in their final order."""
        W, H, order = by_their_size(objective, end.best)
        labels = hard_labels(W)
        self.components_, self.factor_ = H, W
        self.rows_, self.columns_ = (members(F, self.threshold) for F in (W.T, H))
        self.correspondence_ = alpha[:, order]
        self.base_runs_ = np.repeat(np.arange(len(found)), found.sizes)
        self.recurrence_ = recurrence(found, W.T, H)
        self.run_losses_, self.partitions_ = found.losses, found.partitions()
        self.confidence_ = confidence(self.partitions_, labels)
        self.reconstruction_err_ = objective.error(W, H)
        n_distinct = runs.n_distinct(W, unit_rows(H)[0])
        self._keep_clusters(end, membership(W), labels, n_distinct)

    def _extend(self, X: Any) -> np.ndarray:
        return self._objective(self._read(X, reset=False)).rows(self.components_)

    def transform(self, X: Any) -> np.ndarray:
        r"""Return how strong the clusters are in samples: W with the components fixed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Nonnegative.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            The W >= 0 with the smallest loss. Rows do not sum to 1.

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
        tags.input_tags.positive_only = tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
