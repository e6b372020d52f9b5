"""Consensus of a label table that no machine holds (Li, Ding and Jordan, 2007)."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

import nmfcluster.consensus.estimator as consensus
import nmfcluster.dask.blocks as blocks
import nmfcluster.dask.passes as passes
from nmfcluster._base import fitting
from nmfcluster._compat import COUNT, fit_context
from nmfcluster._optim.symmetric import bregman_nmf, factorize
from nmfcluster._utils.validation import counted, normalised_weights, warn
from nmfcluster.dask.models import predict, transform
from nmfcluster.dask.tables import (
    by_blocks,
    of_blocks,
    read_rows,
    reduced,
    rows_at,
    shared,
)
from nmfcluster.partitions.ensemble import NO_LABEL
from nmfcluster.partitions.inputs import MAKING

_IN_MEMORY = consensus.NMFConsensus._parameter_constraints
#: parameters that the estimator in memory has, too: all but those of other inputs and losses
_SHARED = sorted(
    _IN_MEMORY.keys() - {"affinity", "factorization", "normalize", *MAKING}
)
_OF_ROWS = ("labels", "membership", "confidence")  # attributes with an entry a sample
_OF_ALL = (
    "agreement",
    "weights",
    "core",
    "loss",
    "loss_curve",
    "n_iter",
)  # and the others


class NMFConsensus(ClusterMixin, BaseEstimator):
    r"""Consensus of label tables in blocks of rows, on one machine or many, by Dask.

    It is `nmfcluster.NMFConsensus` with ``affinity="partitions"``, and ``normalize=True``, for
    tables that do not fit into memory. What is held at a time is a block a thread, and the distinct
    label rows:

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
    max_distinct : int, default=200_000
        Distinct label rows up to which all are held at once, here and on every worker. Of more,
        as many rows are drawn.
    n_passes : int, default=2
        Number of passes over all blocks that improve the fit of drawn rows.
    n_init : int, default=3
        Number of starts, see `nmfcluster.NMFConsensus`, as for the next three.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        Decrease of the loss, relative to that of H = 0, at which a start has converged.
    random_state : int, RandomState, Generator or None, default=None
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
    sample; with drawn rows `n_passes` + 2 times more. It has to hold the same labels every time;
    where it is noticed that it does not, an error says so. What is made by something random is
    written to a file first.

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
            If `X` or a parameter is not as described.
        RuntimeError
            If a label, or a row, is new when `X` is read again.
        """
        X = read_rows(X)
        with fitting(self) as rng:
            weights = normalised_weights(self.weights, X.shape[1])
            own = {name: getattr(self, name) for name in _SHARED}
            local = consensus.NMFConsensus(affinity="partitions", **own)
            local._check_n_clusters(X.shape[0])
            if self.max_distinct < self.n_clusters:
                least = f"n_clusters={self.n_clusters}: so many rows are fitted"
                raise ValueError(
                    f"max_distinct={self.max_distinct} must be at least {least}."
                )
            summary = _summarised(X, weights, self.max_distinct)
            table = passes.BlockedProblem(
                summary.clusters, weights, X.shape[0], summary.least
            )
            self._local_, self.is_exact_ = local, summary.distinct is not None
            self.n_samples_, self.n_features_in_ = X.shape
            rows: blocks.KnownRows | passes.BlockedConsensus
            if summary.distinct is not None:
                rows = self._fit_all(table, summary.distinct, rng)
            else:
                rows = self._fit_drawn(X, table, rng)
            self.n_distinct_, local.n_features_in_ = (
                len(local.labels_),
                self.n_features_in_,
            )
            # what is told of all samples is computed when it is asked for
            for name in _OF_ROWS:
                like = getattr(local, f"{name}_")
                of_block = partial(rows.of_block, what=name)
                setattr(
                    self, f"{name}_", by_blocks(X, of_block, like.dtype, like.shape[1:])
                )
            for name in _OF_ALL:
                setattr(self, f"{name}_", getattr(local, f"{name}_"))
        return self

    def _fit_all(
        self,
        table: blocks.BlockedTable,
        distinct: blocks.Counted,
        rng: np.random.RandomState,
    ) -> blocks.KnownRows:
        """Fit all distinct rows, as in memory."""
        local = self._local_
        source = blocks.CountedRows(
            table.codes(distinct.values), distinct.counts, table
        )
        local.random_state = rng  # which may have been drawn from already
        local.fit(source)
        local.random_state = self.random_state
        values = {name: getattr(local, f"{name}_") for name in _OF_ROWS}
        return blocks.KnownRows(table, source.codes, values)

    def _fit_drawn(
        self, X: da.Array, table: passes.BlockedProblem, rng: np.random.RandomState
    ) -> passes.BlockedConsensus:
        """Fit some rows, and improve the fit by passes over all."""
        local = self._local_
        # the factor of some rows, drawn without replacement whatever the blocks are
        drawn = np.sort(
            sample_without_replacement(X.shape[0], self.max_distinct, random_state=rng)
        )
        source = blocks.CountedRows(
            table.codes(rows_at(X, drawn)), np.ones(len(drawn)), table
        )
        problem = source.problem(self.weights, True)
        best = factorize(
            problem,
            local._solver_config(bregman_nmf),
            rng,
            coarse_size=consensus.COARSE,
        )
        # is improved by passes, which need one function that sums over all blocks
        node = shared(table)

        def everywhere(function: Any, *args: Any) -> Any:
            return reduced(
                of_blocks(X, function, node, *map(shared, args)), passes.all_added
            )

        first = passes.first_target(problem.ensemble, best.H, table)
        found, losses = passes.improved(everywhere, table, first, self.n_passes)
        n_found = int((found.contingency.sum(axis=0) > 0).sum())
        if n_found < self.n_clusters:
            few = f"fewer than n_clusters={self.n_clusters}"
            warn(
                f"NMFConsensus found {counted(n_found, 'cluster')}, {few}.",
                ConvergenceWarning,
            )
        # what the clusters that are found say of the drawn rows is kept by the estimator in memory
        rows = table.ensemble(source.codes, source.counts)
        for name in _OF_ROWS:
            setattr(local, f"{name}_", found.of_rows(rows, name))
        local.partitions_, local.weights_ = source.codes, problem.weights
        local.agreement_ = problem.ensemble.agreement(found.contingency)
        local.core_ = best.core[np.ix_(found.order, found.order)]
        local.loss_, local.n_iter_ = float(losses.min()), len(losses)
        local.loss_curve_, local.loss_curves_ = losses, [losses]
        local._source_, local._profile_ = source, found.profile
        return found

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

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: labels are no features."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags


def _summarised(X: da.Array, weights: np.ndarray, most: int) -> blocks.TableSummary:
    """Return the summary of all blocks, checked."""
    parts = of_blocks(X, blocks.TableSummary.of_block, weights, most, rows=True)
    # two at a time: with 50 partitions 200,000 rows are 10 MB, and a worker holds what it merges
    summary = reduced(parts, partial(blocks.TableSummary.merged, most=most), fan=2)
    if summary.n_lost:
        lost = NO_LABEL.format(counted(summary.n_lost, "sample"))
        warn(f"{lost}: the first is row {summary.first_lost}.")
    empty = [t for t in np.flatnonzero(weights) if not len(summary.clusters[t].values)]
    if empty:
        raise ValueError(
            f"X must not hold an empty partition: partition {empty[0]} is."
        )
    return summary
