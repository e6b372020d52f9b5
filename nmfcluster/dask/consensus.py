"""Consensus of a label table that no machine holds (Li, Ding and Jordan, 2007)."""

from __future__ import annotations

from copy import copy
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

import nmfcluster.consensus as consensus
from nmfcluster._arrays.arguments import counted, normalised_weights, warn
from nmfcluster._base import fitting
from nmfcluster._compat import Interval, fit_context
from nmfcluster.dask.models import predict, transform
from nmfcluster.dask.tables import (
    by_blocks,
    of_blocks,
    read_rows,
    reduced,
    rows_at,
    shared,
)
from nmfcluster.partitions.blocks import (
    BlockedTable,
    Distinct,
    KnownRows,
    RowIndex,
    TableSummary,
)
from nmfcluster.partitions.passes import Consensus, improved
from nmfcluster.partitions.reading import CountedRows
from nmfcluster.partitions.sums import Footing, all_added

_OWN = ("max_distinct", "n_passes")  # parameters that the estimator in memory does not have


class NMFConsensus(ClusterMixin, BaseEstimator):
    r"""Consensus of label tables in blocks of rows, on one machine or many, by Dask.

    It is `nmfcluster.NMFConsensus` with ``affinity="partitions"`` for tables that do not fit into
    memory. What is held at a time is a block a thread, and the distinct label rows:

    - up to `max_distinct` of them, the fit **is** that in memory, to the last bit: equal rows have
      equal memberships, and only their number counts;
    - of more, as many rows are drawn, and fitted. Passes over all blocks then improve the fit: the
      factor of the rows of a block follows from sums over all samples, :math:`Z'H` and
      :math:`H'H`, and gives the sums for the next pass. Of the passes the best is kept.

    Results do not depend on the sizes of the blocks, nor on where they are worked on.

    Read more in the :ref:`User Guide <distributed>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters of the consensus.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.
    normalize : bool, default=True
        Whether every cluster of a partition counts as one; otherwise every pair of samples counts.
    max_distinct : int, default=200_000
        Distinct label rows up to which all are held at once, here and on every worker. Of more,
        as many rows are drawn.
    n_passes : int, default=2
        Number of passes over all blocks that improve the fit of drawn rows.
    solver : {"bpg", "mu"}, default="bpg"
        See `nmfcluster.NMFConsensus`, as for the next five.
    coarse_size : int or None, default=10_000
        With more distinct label rows than this, starts are run on some of them.
    n_init : int, default=3
        Number of starts.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        Decrease of the loss, relative to that of H = 0, at which a start has converged.
    random_state : int, RandomState instance or None, default=None
        Determines the random starts, and the rows that are drawn.
    n_jobs : int, default=None
        Number of starts run at a time, here.

    Attributes
    ----------
    labels_ : dask.array.Array of shape (n_samples,), int
        Cluster of every sample, in the blocks of `X`; nothing is computed before it is asked for.
        Clusters are numbered by decreasing size.
    membership_ : dask.array.Array of shape (n_samples, n_clusters), float
        Mean co-association with every cluster, scaled to sum to 1.
    confidence_ : dask.array.Array of shape (n_samples,), float
        Mean co-association of a sample with the other samples of its cluster.
    agreement_ : ndarray of shape (n_partitions,)
        Adjusted Rand index of every partition with the consensus.
    weights_ : ndarray of shape (n_partitions,)
        Weights of the partitions, scaled to sum to 1.
    core_ : ndarray of shape (n_clusters, n_clusters)
        Weight of every cluster in the factor that was fitted, that of drawn rows if there were any.
    loss_ : float
        Loss of the kept factor of all samples.
    loss_curve_ : ndarray
        Loss before the first and after every update, or of drawn rows, after every pass.
    n_iter_ : int
        Number of updates of the kept run, or of passes.
    n_distinct_ : int
        Number of label rows that were fitted at once: all distinct ones, or the drawn ones.
    is_exact_ : bool
        Whether these are all there are, so that the fit is that in memory.
    n_samples_ : int
        Number of rows of `X`.
    n_features_in_ : int
        Number of partitions.

    See Also
    --------
    nmfcluster.NMFConsensus : For what fits into memory.
    nmfcluster.dask.base_partitions : Makes label tables out of features.

    Notes
    -----
    `X` is read once for its distinct rows, and once more for each attribute that has an entry a
    sample; with drawn rows `n_passes` + 2 times more, or + 1 with ``normalize=False``. It has to
    hold the same labels every time; where it is noticed that it does not, an error says so. What is
    made by something random is written to a file first.

    References
    ----------
    .. [1] T. Li, C. Ding, M. I. Jordan. Solving consensus and semi-supervised clustering
       problems using nonnegative matrix factorization. ICDM 2007.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from nmfcluster.dask import NMFConsensus
    >>> truth = np.repeat([0, 1, 2], 2000)
    >>> table = np.stack([truth, (truth + 1) % 3, np.minimum(truth, 1)], axis=1)
    >>> X = da.from_array(table, chunks=(1500, 3))
    >>> model = NMFConsensus(n_clusters=3, random_state=0).fit(X)
    >>> np.bincount(model.labels_.compute())
    array([2000, 2000, 2000])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in consensus.NMFConsensus._parameter_constraints.items()
            if name
            in (
                *("n_clusters", "weights", "normalize", "solver", "coarse_size", "n_init"),
                *("max_iter", "tol", "random_state", "n_jobs"),
            )
        },
        "max_distinct": [Interval(Integral, 1, None, closed="left")],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
    }

    labels_: da.Array
    membership_: da.Array
    confidence_: da.Array
    agreement_: np.ndarray | None
    weights_: np.ndarray
    core_: np.ndarray
    loss_: float
    loss_curve_: np.ndarray
    n_iter_: int

    def __init__(
        self,
        n_clusters: int,
        *,
        weights: Any = None,
        normalize: bool = True,
        max_distinct: int = 200_000,
        n_passes: int = 2,
        solver: str = "bpg",
        coarse_size: int | None = 10_000,
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = weights
        self.normalize = normalize
        self.max_distinct = max_distinct
        self.n_passes = n_passes
        self.solver = solver
        self.coarse_size = coarse_size
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> NMFConsensus:
        """Find the consensus.

        Parameters
        ----------
        X : dask.array.Array of shape (n_samples, n_partitions)
            Labels, one partition a column: integers; a negative number: not seen. Floats that are
            whole numbers will do, NaN for not seen; strings need numbers first.
        y : None
            Ignored; here for the conventions of scikit-learn.

        Returns
        -------
        NMFConsensus
            The fitted estimator.

        Raises
        ------
        TypeError
            If `X` is no Dask array, or holds strings.
        ValueError
            If `X` or a parameter is not as described, a block is too large for a worker, or no
            partition saw some sample.
        RuntimeError
            If a label, or a row, is new when `X` is read again.
        """
        X = read_rows(X, labels=True)
        with fitting(self) as rng:
            weights = normalised_weights(self.weights, X.shape[1])
            parameters = self.get_params(deep=False)
            rest = {name: value for name, value in parameters.items() if name not in _OWN}
            local = consensus.NMFConsensus(affinity="partitions", **rest)
            local._check_n_clusters(X.shape[0])
            if self.max_distinct < self.n_clusters:
                raise ValueError(
                    f"max_distinct={self.max_distinct} must be at least "
                    f"n_clusters={self.n_clusters}: so many rows are fitted."
                )
            summary = _summarised(X, weights, self.max_distinct)
            table = BlockedTable(summary.known, summary.sizes, weights, X.shape[0], summary.least)
            self.is_exact_ = summary.distinct is not None
            local.n_features_in_ = self.n_features_in_ = X.shape[1]
            self._local_ = local
            if summary.distinct is not None:
                self._fit_all(X, table, summary.distinct, rng)
            else:
                self._fit_drawn(X, table, rng)
            self.n_samples_, self.n_distinct_ = X.shape[0], len(local.labels_)
            self.weights_, self.agreement_ = weights, local.agreement_
            self.core_, self.loss_ = local.core_, local.loss_
            self.loss_curve_, self.n_iter_ = local.loss_curve_, local.n_iter_
        return self

    def _fit_all(
        self, X: da.Array, table: BlockedTable, distinct: Distinct, rng: np.random.RandomState
    ) -> None:
        """Fit all distinct rows, as in memory."""
        local = self._local_
        source = CountedRows(table.codes(distinct.rows), distinct.counts, table)
        problem = source.problem(self.weights, self.normalize)
        local._fit_problem(source, problem, rng)
        index = RowIndex(source.codes)
        for name, values in (
            ("labels_", local.labels_),
            ("membership_", local.membership_),
            ("confidence_", local.confidence_),
        ):
            known = KnownRows(table, index, values)
            setattr(self, name, _lazy(X, _looked_up, known, like=values))

    def _fit_drawn(self, X: da.Array, table: BlockedTable, rng: np.random.RandomState) -> None:
        """Fit some rows, and improve the fit by passes over all."""
        local = self._local_
        drawn = _drawn(X, table, self.max_distinct, rng)
        source = CountedRows(drawn, np.ones(len(drawn)), table)
        problem = source.problem(self.weights, self.normalize)
        best = local._fit_problem(source, problem, rng)
        footing = Footing(table, self.normalize)
        node = shared(footing)

        def everywhere(function: Any, *args: Any) -> Any:
            return reduced(of_blocks(X, function, node, *map(shared, args)), all_added)

        found, losses = improved(everywhere, footing, problem.ensemble, best.H, self.n_passes)
        local.loss_, local.n_iter_ = float(losses.min()), len(losses)
        local.loss_curve_, local.loss_curves_ = losses, [losses]
        local.agreement_ = problem.ensemble.agreement(found.contingency)
        local._profile_ = found.profile
        local.core_ = best.core[np.ix_(found.order, found.order)]
        n_found = int((found.contingency.sum(axis=0) > 0).sum())
        if n_found < self.n_clusters:
            few = f"fewer than n_clusters={self.n_clusters}"
            warn(f"NMFConsensus found {counted(n_found, 'cluster')}, {few}.", ConvergenceWarning)
        rows = table.ensemble(source.codes, source.counts)
        for name in ("labels", "membership", "confidence"):
            of_drawn = found.of_rows(rows, name)
            setattr(local, f"{name}_", of_drawn)
            task = partial(_told, name)
            setattr(self, f"{name}_", _lazy(X, task, found, like=of_drawn))

    def to_local(self) -> consensus.NMFConsensus:
        """Return the estimator in memory, for new samples, drawings, and files.

        Returns
        -------
        nmfcluster.NMFConsensus
            Its attributes that hold something of every sample are about the `n_distinct_` label
            rows that were fitted at once.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        """
        check_is_fitted(self)
        return copy(self._local_)

    def predict(self, X: Any) -> Any:
        """Return the cluster of samples from their labels, as `nmfcluster.dask.predict` does.

        Parameters
        ----------
        X : dask.array.Array or array-like of shape (n_new, n_partitions)

        Returns
        -------
        dask.array.Array or ndarray of shape (n_new,), int

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        """
        local = self.to_local()
        return predict(local, X) if isinstance(X, da.Array) else local.predict(X)

    def transform(self, X: Any) -> Any:
        """Return the memberships of samples from their labels, as `nmfcluster.dask.transform` does.

        Parameters
        ----------
        X : dask.array.Array or array-like of shape (n_new, n_partitions)

        Returns
        -------
        dask.array.Array or ndarray of shape (n_new, n_clusters)

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        """
        local = self.to_local()
        return transform(local, X) if isinstance(X, da.Array) else local.transform(X)


def _summarised(X: da.Array, weights: np.ndarray, most: int) -> TableSummary:
    """Return the summary of all blocks, checked."""
    parts = of_blocks(X, _summary, weights, most, rows=True)
    # two at a time: with 50 partitions 200,000 rows are 10 MB, and a worker holds what it merges
    summary = reduced(parts, partial(TableSummary.merged, most=most), fan=2)
    if summary.n_lost:
        raise ValueError(
            "X must label every sample at least once; without a label: "
            f"{counted(summary.n_lost, 'sample')}, the first is row {summary.first_lost}."
        )
    empty = [t for t in np.flatnonzero(weights) if not len(summary.known[t])]
    if empty:
        raise ValueError(f"X must not hold an empty partition: partition {empty[0]} is.")
    return summary


def _summary(block: Any, first: int, weights: np.ndarray, most: int) -> TableSummary:
    return TableSummary.of_block(block, first, weights, most)


def _drawn(X: da.Array, table: BlockedTable, size: int, rng: np.random.RandomState) -> np.ndarray:
    """Return the codes of some rows, drawn without replacement whatever the blocks are."""
    rows = np.sort(sample_without_replacement(X.shape[0], size, random_state=rng))
    return table.codes(rows_at(X, rows))


def _looked_up(block: Any, known: KnownRows) -> np.ndarray:
    return known.of_block(block)


def _told(name: str, block: Any, found: Consensus) -> np.ndarray:
    return found.of_block(block, name)


def _lazy(X: da.Array, function: Any, held: Any, like: np.ndarray) -> da.Array:
    """Return what a function makes of every block, with what it needs held by every worker once."""
    return by_blocks(X, function, held, like.dtype, like.shape[1:])
