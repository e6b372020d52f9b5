"""Base partitions of features that do not fit into memory."""

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import dask.array as da
import numpy as np
from sklearn.cluster import KMeans

from nmfcluster._utils.linalg import BLOCK_ROWS
from nmfcluster._utils.storage import row_blocks
from nmfcluster._utils.validation import Seed, check_shape, make_rng, read_matrix
from nmfcluster.dask.tables import by_blocks, read_rows
from nmfcluster.partitions import base_runs


def _label_block(block, partitions, X_train, dtype):
    """Return the labels of a block of rows by all base clusterers.

    `X_train` holds the training samples, or None if all clusterers can predict.
    """
    labels = np.empty((len(block), len(partitions.estimators)), dtype=dtype)
    # a few rows at a time, as predicted labels take 8 bytes each
    for rows in row_blocks(len(block), BLOCK_ROWS):
        X = read_matrix(block[rows], accept_sparse=False)
        predicted = partitions.predict(X, X_train)
        largest = predicted.max()
        if largest > np.iinfo(dtype).max:
            raise ValueError(
                f"estimator must predict labels that occurred in its fit, got {largest}."
            )
        labels[rows] = predicted
    return labels


@dataclass(frozen=True)
class BlockPartitions:
    """Base partitions of a Dask array, with a method to label other arrays.

    Attributes
    ----------
    labels : dask.array.Array of shape (n_samples, n_estimators)
        Label of every sample in every partition, in the smallest integer type that holds them.
    estimators : list of estimator
        The fitted clusterers.
    """

    labels: da.Array
    estimators: list[Any]
    _n_features: int
    _label_rows: Any

    def predict(self, X):
        """Predict the labels of new samples in every partition.

        Parameters
        ----------
        X : dask.array.Array of shape (n_new, n_features)

        Returns
        -------
        dask.array.Array of shape (n_new, n_estimators), int
        """
        X = read_rows(X)
        check_shape(X, "X", self._n_features)
        return self._label_rows(X)


def base_partitions(
    X: da.Array,
    estimator: Any = None,
    *,
    n_estimators: int = 50,
    n_clusters: int | tuple[int, int] = 8,
    max_samples: int | float = 10_000,
    max_features: int | float = 1.0,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> BlockPartitions:
    """Cluster random samples of a Dask array many times, and label all of its rows each time.

    The result equals that of `nmfcluster.partitions.base_partitions` with ``predict_unseen=True``:
    the same samples are drawn, and the same clusterers are fitted. Memory holds the samples of all
    runs at once, but never all rows of `X`. With k-means, one matrix product labels a block in all
    partitions.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
        Features, in blocks of rows.
    estimator : estimator with `fit_predict`, or list of such, default=None
        Base clusterer; by default ``KMeans(n_init=1)``, which labels rows fastest. If a clusterer
        has no `predict`, a row gets the label of the nearest sample in the fit.
    n_estimators : int, default=50
        Number of partitions. With more, a consensus depends less on the seed, but takes longer. 50
        are usually enough.
    n_clusters : int or tuple (low, high), default=8
        Number of clusters of every run, or the range (both ends included) that it is drawn from.
    max_samples : int or float, default=10_000
        Larger values find smaller clusters; the default suffices for clusters that hold 1 % of all
        samples. It is the number (int) or share (float) of samples drawn for each run, at most all
        of them.
    max_features : int or float, default=1.0
        Number (int) or share (float) of features drawn for each run. Keep 1.0 unless there are
        many features that are largely redundant.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws and of the runs.
    n_jobs : int, default=None
        Number of parallel runs, on this machine or where joblib's backend runs them.

    Returns
    -------
    BlockPartitions
        Its `labels` are a Dask array of shape (n_samples, n_estimators), in the smallest integer
        type that holds them. They are computed again every time they are read. If you need them
        several times, write them to a file first, for example with Dask's ``to_npy_stack``.
        `estimators` are the fitted clusterers, and `predict` labels other Dask arrays of features.

    Raises
    ------
    TypeError
        If `X` is not a Dask array.
    ValueError
        If `X` or a parameter is not as described, or if all runs found only noise.

    Warns
    -----
    UserWarning
        If some runs found only noise. These runs are left out.

    Examples
    --------
    >>> import dask.array as da
    >>> from nmfcluster.dask import NMFConsensus, base_partitions
    >>> from sklearn.datasets import make_blobs
    >>> X = da.from_array(make_blobs(5000, centers=4, random_state=0)[0], chunks=(1000, 2))
    >>> made = base_partitions(X, n_estimators=10, n_clusters=(4, 9), random_state=0)
    >>> made.labels
    dask.array<concatenate, shape=(5000, 10), dtype=int8, chunksize=(1000, 10), chunktype=...>
    >>> labels = NMFConsensus(n_clusters=4, random_state=0).fit_predict(made.labels)
    """
    base_runs.check_parameters(locals())
    rng = make_rng(random_state)
    X = read_rows(X)
    if isinstance(max_samples, Integral):
        max_samples = min(int(max_samples), X.shape[0])
    if estimator is None:
        estimator = KMeans(n_init=1)
    # draw from all samples, as in memory
    runs = base_runs.draw_base_runs(
        rng,
        X,
        estimator,
        base_runs.range_of_clusters(n_clusters, "n_clusters"),
        n_estimators=n_estimators,
        max_samples=max_samples,
        max_features=max_features,
    )
    # rows are predicted like new samples, even if all of them are drawn
    base_runs.check_bases_accept_parts(estimator, X, "X must not be a Dask array")
    # read the samples that any run draws; each run takes its own from these
    held = X
    if runs[0].samples is not None:  # all runs draw the same number
        drawn = np.unique(np.concatenate([run.samples for run in runs]))
        held = X[drawn]
        for t, run in enumerate(runs):
            runs[t] = run._replace(samples=np.searchsorted(drawn, run.samples))
    rows = read_matrix(np.asarray(held), accept_sparse=False)
    pairs = base_runs.pairwise_kind(base_runs.base_clusterers(estimator), rows)
    found = base_runs.run_base_clusterers(rows, estimator, runs, pairs, n_jobs)
    # label all samples by the clusterers, a block at a time
    largest = max(run.n_clusters - 1 for run in runs)
    largest = max(largest, int(found.labels.max()))
    dtype = np.result_type(np.int8, np.min_scalar_type(-largest - 1))
    if not found.needs_training_data and not found.pairs:
        # clusterers that can predict need neither the labels nor the samples of the fit
        found = replace(found, labels=found.labels[:0], samples=[])
        rows = None
    label_rows = partial(
        by_blocks,
        function=partial(_label_block, partitions=found, X_train=rows, dtype=dtype),
        dtype=dtype,
        shape=(len(found.estimators),),
    )
    return BlockPartitions(label_rows(X), found.estimators, X.shape[1], label_rows)
