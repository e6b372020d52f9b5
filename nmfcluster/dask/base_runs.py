"""Base partitions of features that no machine holds."""

from dataclasses import dataclass, replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from sklearn.cluster import KMeans

from nmfcluster._compat import validate_parameter_constraints
from nmfcluster._utils.linalg import ROWS
from nmfcluster._utils.storage import row_blocks
from nmfcluster._utils.validation import Seed, generator_of, read_table, require_size
from nmfcluster.dask.tables import by_blocks, read_rows, rows_at
from nmfcluster.partitions import base_runs
from nmfcluster.partitions.base_runs import pairs_of


class Labeller(NamedTuple):
    """What labels the rows of any block as base partitions do."""

    partitions: base_runs.BasePartitions
    drawn: (
        np.ndarray | None
    )  # the samples of the fit where some clusterer cannot predict
    dtype: np.dtype  # of labels

    def of_block(self, block: Any) -> np.ndarray:
        """Return the labels of a block of rows."""
        labels = np.empty(
            (len(block), len(self.partitions.estimators)), dtype=self.dtype
        )
        for rows in row_blocks(len(block), ROWS):  # they are 8 bytes at first
            X = read_table(block[rows], accept_sparse=False)
            found = self.partitions.predict(X, self.drawn)
            if found.max() > np.iinfo(self.dtype).max:
                wanted = "labels that it found in a sample"
                raise ValueError(f"estimator must predict {wanted}, got {found.max()}.")
            labels[rows] = found
        return labels

    def of_rows(self, X: da.Array) -> da.Array:
        """Return the labels of a Dask array, which are not computed yet."""
        return by_blocks(
            X, self.of_block, self.dtype, (len(self.partitions.estimators),)
        )


@dataclass(frozen=True)
class BlockPartitions:
    """Base partitions of a Dask array, and what labels other arrays in the same way.

    Attributes
    ----------
    labels : dask.array.Array of shape (n_samples, n_estimators)
        Of the smallest type of integers that holds them.
    estimators : list of estimator
        The fitted clusterers.
    """

    labels: da.Array
    estimators: list[Any]
    _labeller: Labeller

    def predict(self, X: da.Array) -> da.Array:
        """Label new samples by every partition.

        Parameters
        ----------
        X : dask.array.Array of shape (n_new, n_features)

        Returns
        -------
        dask.array.Array of shape (n_new, n_estimators), int
        """
        X = read_rows(X)
        require_size(X, "X", self._labeller.partitions.n_features)
        return self._labeller.of_rows(X)


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
    """Cluster samples of a Dask array many times, and label all of its rows by every clustering.

    It is `nmfcluster.partitions.base_partitions` with ``predict_unseen=True``: the same samples are
    drawn, and the same clusterers fitted. The samples of all runs are held here at once; the rows
    of `X` never are. k-means labels a block by all partitions with one product.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
        In blocks of rows.
    estimator : estimator with `fit_predict`, or list of such, default=None
        A clusterer; ``KMeans(n_init=1)`` by default, which labels rows fastest. One that cannot
        predict gives a row the label of the nearest sample that it saw.
    n_estimators : int, default=50
        Number of partitions.
    n_clusters : int or tuple (low, high), default=8
        Number of clusters of every run, or the range that it is drawn from.
    max_samples : int or float, default=10_000
        Number, or share, of the samples drawn for a run; all where there are fewer. By default as
        many as tell of clusters of a hundredth of all.
    max_features : int or float, default=1.0
        Number, or share, of the features drawn for a run.
    random_state : int, RandomState, Generator or None, default=None
        Determines what is drawn, and seeds the runs.
    n_jobs : int, default=None
        Number of runs at a time, here or where joblib's backend runs them.

    Returns
    -------
    BlockPartitions
        Its `labels` are a Dask array of shape (n_samples, n_estimators), of the smallest type of
        integers that holds them, made anew whenever they are asked for: what is read several times
        is better written by Dask first, as its ``to_npy_stack`` does. `estimators` are the fitted
        clusterers; `predict` labels other Dask arrays of features in the same way.

    Raises
    ------
    TypeError
        If `X` is no Dask array.
    ValueError
        If `X` or a parameter is not as described; if all runs found only noise.

    Warns
    -----
    UserWarning
        If some runs found only noise, and are left out.

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
    given = {
        name: value for name, value in locals().items() if name in base_runs.ALLOWED
    }
    validate_parameter_constraints(
        base_runs.ALLOWED, given, caller_name="base_partitions"
    )
    asked, rng = (
        SimpleNamespace(**given, predict_unseen=False),
        generator_of(random_state),
    )
    X = read_rows(X)
    if isinstance(max_samples, Integral):
        asked.max_samples = min(int(max_samples), X.shape[0])
    # what is drawn of all samples is what would be drawn in memory
    asked.estimator = KMeans(n_init=1) if estimator is None else estimator
    sizes = base_runs.range_of_clusters(n_clusters, "n_clusters")
    plans = base_runs.draw_plans(rng, X.shape, sizes, asked)
    chosen = [
        np.arange(X.shape[0]) if plan.samples is None else plan.samples
        for plan in plans
    ]
    # only samples that some run is fitted to are held here: runs take their places among these
    drawn = np.unique(np.concatenate(chosen))
    rows = read_table(rows_at(X, drawn), accept_sparse=False)
    places = [np.searchsorted(drawn, samples) for samples in chosen]
    plans = [
        plan._replace(samples=own) for plan, own in zip(plans, places, strict=True)
    ]
    pairs = pairs_of(base_runs.clusterers(asked.estimator), rows)
    runs = base_runs.run_plans(rows, asked, plans, pairs)
    # labels of all samples follow from the clusterers, a block at a time
    largest = max(int(runs.labels.max()), *(plan.n_clusters - 1 for plan in plans))
    dtype = np.result_type(np.int8, np.min_scalar_type(-largest - 1))
    train, sent = rows, runs
    if (
        not runs.needs_training_data and not runs.pairs
    ):  # who predicts needs no labels of it
        train, sent = None, replace(runs, labels=runs.labels[:0], samples=[])
    labeller = Labeller(sent, train, dtype)
    return BlockPartitions(labeller.of_rows(X), runs.estimators, labeller)
