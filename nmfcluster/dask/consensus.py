"""Consensus of label tables that do not fit into memory (Li, Ding and Jordan, 2007)."""

from copy import copy
from functools import partial
from typing import Any, Self

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

import nmfcluster.consensus.estimator as consensus
import nmfcluster.dask.blocks as blocks
from nmfcluster._base import ExplainsParameters, fitting
from nmfcluster._compat import COUNT, fit_context
from nmfcluster._optim.symmetric import bregman_nmf, factorize
from nmfcluster._utils.validation import format_count, normalize_weights, warn
from nmfcluster.dask.tables import (
    by_blocks,
    of_blocks,
    predict,
    read_rows,
    reduced,
    transform,
)
from nmfcluster.partitions.base_runs import BASE_PARAMETERS
from nmfcluster.partitions.ensemble import NO_LABEL

_IN_MEMORY = consensus.NMFConsensus._parameter_constraints
#: parameters of the estimator in memory, except those for other inputs and losses
_SHARED = sorted(
    _IN_MEMORY.keys() - {"affinity", "factorization", "normalize", *BASE_PARAMETERS}
)


class NMFConsensus(ExplainsParameters, ClusterMixin, BaseEstimator):
    r"""Consensus of label tables in blocks of rows, computed with Dask on one or many machines.

    It is `nmfcluster.NMFConsensus` with ``affinity="partitions"`` and ``normalize=True``, for
    tables that do not fit into memory. Memory holds one block per thread and the distinct label
    rows:

    - If there are at most `max_distinct` distinct rows, the result equals that of
      `nmfcluster.NMFConsensus` to the last bit. Equal rows have equal memberships, so that every
      distinct row is fitted once and weighted by its number of samples.
    - If there are more, `max_distinct` rows are drawn and fitted. Passes over all blocks then
      improve the fit. A pass computes the rows of the factor H, block by block, from two sums over
      all samples, :math:`Z'H` and :math:`H'H`, where Z marks the base clusters of every sample. It
      also computes these sums for the next pass. The best pass is kept.

    Results depend neither on the sizes of the blocks nor on the workers.

    Read more in the :ref:`User Guide <distributed>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters of the consensus.
    weights : array-like of shape (n_partitions,), default=None
        A larger weight gives a partition more influence. Weights are nonnegative, and equal by
        default.
    max_distinct : int, default=200_000
        A larger value gives exact results for more tables, and takes more memory. It is the
        largest number of distinct label rows in memory at once, on this machine and on every
        worker. If a table has more distinct rows, this number of rows is drawn.
    n_passes : int, default=2
        More passes can lower the loss, and take longer. It is the number of passes over all blocks
        that improve the fit of drawn rows. It has no effect if no rows are drawn.
    n_init : int, default=3
        More starts take longer, and can lead to a better consensus. `nmfcluster.NMFConsensus`
        describes this and the next three parameters.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A larger value, such as 1e-4, ends a long fit earlier; the default rarely has to be
        changed. A start has converged at this decrease of the loss, relative to that of H = 0.
    random_state : int, RandomState, Generator or None, default=None
        Determines the random starts, and the rows that are drawn.
    n_jobs : int, default=None
        Number of parallel starts, on this machine.

    Attributes
    ----------
    labels_ : dask.array.Array of shape (n_samples,), int
        Cluster of every sample, in the same blocks as `X`. Like all Dask arrays here, it is
        computed when it is read. Clusters are numbered by decreasing size.
    membership_ : dask.array.Array of shape (n_samples, n_clusters), float
        Mean co-association with every cluster, or a similar measure, scaled to sum to 1, see
        `nmfcluster.NMFConsensus`.
    confidence_ : dask.array.Array of shape (n_samples,), float
        How clearly the partitions vote for the cluster of a sample, see `nmfcluster.NMFConsensus`.
    agreement_ : ndarray of shape (n_partitions,)
        Adjusted Rand index of every partition with the consensus.
    weights_ : ndarray of shape (n_partitions,)
        Weights of the partitions, scaled to sum to 1.
    core_ : ndarray of shape (n_clusters, n_clusters)
        Diagonal matrix with the weight of every cluster in the fitted factor. If rows were drawn,
        this is the factor of the drawn rows.
    loss_ : float
        Loss of the kept factor of all samples.
    loss_curve_ : ndarray
        Loss before the first and after every update. If rows were drawn, loss after every pass.
    n_iter_ : int
        Number of updates of the kept start. If rows were drawn, number of passes.
    n_distinct_ : int
        Number of distinct label rows that were fitted in memory: all of them, or those among the
        drawn rows.
    is_exact_ : bool
        Whether all distinct rows were fitted, so that the result equals that of
        `nmfcluster.NMFConsensus`.
    n_samples_ : int
        Number of rows of `X`.
    n_features_in_ : int
        Number of partitions.

    See Also
    --------
    nmfcluster.NMFConsensus : The same estimator for label tables in memory.
    nmfcluster.dask.base_partitions : Computes label tables from features.

    Notes
    -----
    `X` is read once to find its distinct rows, and once more for each attribute that has an entry
    per sample. If rows are drawn, it is read `n_passes` + 2 more times. If it does not hold the
    same labels every time, an error is raised. If a step that computes `X` is random, write `X` to
    a file first.

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

    _advice = ExplainsParameters._advice | dict.fromkeys(
        BASE_PARAMETERS,
        "X holds labels, one column per partition, for example those of "
        "nmfcluster.dask.base_partitions(features, n_estimators=50)",
    )
    _parameter_constraints = {
        **{name: _IN_MEMORY[name] for name in _SHARED},
        "max_distinct": [COUNT],
        "n_passes": [COUNT],
    }

    def __init__(
        self,
        n_clusters: int,
        *,
        weights: Any = None,
        max_distinct: int = 200_000,
        n_passes: int = 2,
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = weights
        self.max_distinct = max_distinct
        self.n_passes = n_passes
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the consensus of a label table.

        Parameters
        ----------
        X : dask.array.Array of shape (n_samples, n_partitions)
            Integer labels, one column per partition. -1 is noise; another negative number means
            that the partition does not include the sample. Floats are allowed if they are whole
            numbers or NaN, which also means not included. Encode strings as integers first.
        y : None
            Ignored, present for API consistency.

        Returns
        -------
        NMFConsensus
            The fitted estimator.

        Raises
        ------
        TypeError
            If `X` is not a Dask array, or holds strings.
        ValueError
            If `X` or a parameter is not as described.
        RuntimeError
            If `X` does not hold the same labels when it is read again.
        """
        X = read_rows(X)
        with fitting(self) as rng:
            weights = normalize_weights(self.weights, X.shape[1])
            parameters = {name: getattr(self, name) for name in _SHARED}
            local = consensus.NMFConsensus(affinity="partitions", **parameters)
            local._check_n_clusters(X.shape[0])
            if self.max_distinct < self.n_clusters:
                raise ValueError(
                    f"max_distinct={self.max_distinct} must be at least "
                    f"n_clusters={self.n_clusters}, as this number of rows is fitted."
                )
            summary = _summarise(X, weights, self.max_distinct)
            table = blocks.BlockedTable(
                summary.clusters, weights, X.shape[0], summary.least
            )
            rows: Any
            if summary.distinct is None:
                rows = self._fit_drawn(local, X, table, rng)
            else:  # fit all distinct rows, as in memory
                codes = table.codes(summary.distinct.values)
                source = blocks.CountedRows(codes, summary.distinct.counts, table)
                local._fit_source(source, rng)
                values = {
                    "labels": local.labels_,
                    "membership": local.membership_,
                    "confidence": local.confidence_,
                }
                rows = blocks.KnownRows(source.codes, values)
            local.n_features_in_ = X.shape[1]

            def by_rows(name, reference):
                """Return an array with an entry per sample, computed when it is read."""
                of_block = partial(table.map_rows, function=rows.of_rows, name=name)
                return by_blocks(X, of_block, reference.dtype, reference.shape[1:])

            self.labels_ = by_rows("labels", local.labels_)
            self.membership_ = by_rows("membership", local.membership_)
            self.confidence_ = by_rows("confidence", local.confidence_)
            self.agreement_ = local.agreement_
            self.weights_ = local.weights_
            self.core_ = local.core_
            self.loss_ = local.loss_
            self.loss_curve_ = local.loss_curve_
            self.n_iter_ = local.n_iter_
            self.n_distinct_ = len(local.labels_)
            self.is_exact_ = summary.distinct is not None
            self.n_samples_, self.n_features_in_ = X.shape
            self._local_ = local
        return self

    def _fit_drawn(
        self,
        local,
        X,
        table,
        rng,
    ):
        """Fit drawn rows, and improve the fit by passes over all rows."""
        # fit rows that are drawn without replacement, independently of the blocks
        drawn = sample_without_replacement(
            X.shape[0], self.max_distinct, random_state=rng
        )
        codes = table.codes(np.asarray(X[np.sort(drawn)]))
        source = blocks.CountedRows(codes, np.ones(len(drawn)), table)
        problem, _ = source.problem(self.weights, True)
        config = local._solver_config(bregman_nmf)
        best = factorize(problem, config, rng, coarse_size=consensus.COARSE)

        # improve the fit by passes, which need one function that sums over all blocks
        def sum_blocks(function):
            return reduced(of_blocks(X, function), blocks.add_sums)

        first = blocks.first_target(problem.ensemble, best.H, table)
        found, losses = blocks.improve(sum_blocks, table, first, self.n_passes)
        n_found = int((found.contingency.sum(axis=0) > 0).sum())
        if n_found < self.n_clusters:
            warn(
                f"NMFConsensus found {format_count(n_found, 'cluster')}, fewer than "
                f"n_clusters={self.n_clusters}.",
                ConvergenceWarning,
            )

        # the estimator in memory has the clusters of the drawn rows
        local.labels_ = found.of_rows(source.codes, "labels")
        local.membership_ = found.of_rows(source.codes, "membership")
        local.confidence_ = found.of_rows(source.codes, "confidence")
        local.agreement_ = problem.ensemble.agreement(found.contingency)
        local.core_ = best.core[np.ix_(found.order, found.order)]
        local.loss_ = float(losses.min())
        local.n_iter_ = len(losses)
        local._keep_source(source, problem.weights, found.profile, [losses])
        return found

    def to_local(self) -> consensus.NMFConsensus:
        """Return an estimator in memory, which can predict new samples, draw figures or be saved.

        Returns
        -------
        nmfcluster.NMFConsensus
            Its attributes have an entry for each of the `n_distinct_` label rows that were fitted
            in memory, where those of this estimator have one for each sample.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        """
        check_is_fitted(self)
        return copy(self._local_)

    def predict(self, X: Any) -> Any:
        """Return the cluster of every sample, computed from its base labels.

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
        """Return the memberships of every sample, computed from its base labels.

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

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: labels are categories, and NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


def _summarise(X, weights, most):
    """Summarise all blocks, and check the summary."""
    summarise = partial(blocks.TableSummary.of_block, weights=weights, most=most)
    parts = of_blocks(X, summarise, with_first=True)
    merge = partial(blocks.TableSummary.merged, most=most)
    summary = reduced(parts, merge)
    if summary.n_unlabelled:
        no_label = NO_LABEL.format(format_count(summary.n_unlabelled, "sample"))
        warn(f"{no_label}: the first is row {summary.first_unlabelled}.")
    for t in np.flatnonzero(weights):
        if not len(summary.clusters[t].values):
            raise ValueError(f"X must not hold an empty partition: drop partition {t}.")
    return summary
