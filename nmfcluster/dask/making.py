"""Base partitions of features that no machine holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from sklearn.utils import check_array, check_random_state

from nmfcluster._arrays.arguments import counted, shown
from nmfcluster._arrays.storage import FLOATS, row_blocks
from nmfcluster._compat import validate_parameter_constraints
from nmfcluster.dask.tables import (
    by_blocks,
    create_npy,
    in_this_process,
    read_npy,
    read_rows,
    row_ranges,
    rows_at,
)
from nmfcluster.partitions.making import ALLOWED, BasePartitions, draw_plans, run_plans

_ROWS = 32_768  # of a block labelled at a time: labels are 8 bytes at first
_SAMPLES = 10_000  # of a run: as many tell of clusters of a hundredth of all


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
    _made: _Made

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
        if X.shape[1] != self._made.n_features:
            raise ValueError(
                f"X must have {counted(self._made.n_features, 'column')}, got {X.shape[1]}."
            )
        return self._made.labels(X)


@dataclass(frozen=True)
class _Made:
    """Base partitions of drawn samples, and these samples where a clusterer cannot predict."""

    partitions: BasePartitions
    drawn: np.ndarray | None
    n_features: int
    dtype: np.dtype  # of labels

    def labels(self, X: da.Array) -> da.Array:
        """Return the labels of a Dask array, which are not computed yet."""
        return by_blocks(X, _labels, self, self.dtype, (len(self.partitions.estimators),))


def _labels(block: Any, made: _Made) -> np.ndarray:
    out = np.empty((len(block), len(made.partitions.estimators)), dtype=made.dtype)
    for rows in row_blocks(len(block), _ROWS):
        X = check_array(block[rows], dtype=FLOATS, input_name="X")
        labels = made.partitions.predict(X, made.drawn)
        if labels.max() > np.iinfo(made.dtype).max:
            raise ValueError(
                f"estimator must predict labels that it found in a sample, got {labels.max()}."
            )
        out[rows] = labels
    return out


def base_partitions(
    X: da.Array,
    estimator: Any = None,
    *,
    n_estimators: int = 50,
    n_clusters: int | tuple[int, int] = 8,
    max_samples: int | float = _SAMPLES,
    max_features: int | float = 1.0,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    out: Any = None,
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
        A clusterer; `KMeans(n_init=1)` by default. One that cannot predict gives a row the label of
        the nearest sample that it saw.
    n_estimators : int, default=50
        Number of partitions.
    n_clusters : int or tuple (low, high), default=8
        Number of clusters of every run, or the range that it is drawn from.
    max_samples : int or float, default=10_000
        Number, or share, of the samples drawn for a run; all where there are fewer.
    max_features : int or float, default=1.0
        Number, or share, of the features drawn for a run.
    random_state : int, RandomState instance or None, default=None
        Determines what is drawn, and seeds the runs.
    n_jobs : int, default=None
        Number of runs at a time, here or where joblib's backend runs them.
    out : str, Path or array, default=None
        Where labels are written, a block at a time, before this returns: the name of a .npy file,
        which every worker must be able to write, or an array that takes slices, such as one of
        zarr. None: they are made anew whenever they are asked for.

    Returns
    -------
    BlockPartitions

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
    given = {name: value for name, value in locals().items() if name in ALLOWED}
    allowed = {name: values for name, values in ALLOWED.items() if name in given}
    validate_parameter_constraints(allowed, given, caller_name="base_partitions")
    rng = check_random_state(random_state)
    X = read_rows(X)
    if out is not None:  # before the work: with as many partitions as are asked for
        check_out(out, (X.shape[0], n_estimators), np.dtype(np.int8))
    if isinstance(max_samples, Integral):
        max_samples = min(int(max_samples), X.shape[0])
    plans = draw_plans(rng, X.shape, n_estimators, n_clusters, max_samples, max_features)
    chosen = [np.arange(X.shape[0]) if plan.samples is None else plan.samples for plan in plans]
    drawn = np.unique(np.concatenate(chosen))
    rows = check_array(rows_at(X, drawn), dtype=FLOATS, input_name="X")
    own = [
        plan._replace(samples=np.searchsorted(drawn, samples))
        for plan, samples in zip(plans, chosen, strict=True)
    ]
    found = run_plans(rows, estimator, own, False, n_jobs)
    largest = max(int(found.labels.max()), *(plan.n_clusters - 1 for plan in plans))
    dtype = np.result_type(np.int8, np.min_scalar_type(-largest - 1))
    train, sent = rows, found
    if not found.needs_training_data:  # clusterers that predict need no labels of what was drawn
        train, sent = None, replace(found, labels=found.labels[:0], samples=[])
    made = _Made(sent, train, X.shape[1], dtype)
    labels = made.labels(X) if out is None else written(made.labels(X), out)
    return BlockPartitions(labels, found.estimators, made)


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Raise an error unless labels of this shape and type can be written there."""
    if isinstance(out, str | Path):
        if Path(out).suffix != ".npy":
            raise ValueError(f"out must be the name of a .npy file, got {str(out)!r}.")
        if not Path(out).absolute().parent.is_dir():
            raise ValueError(f"out must be in a folder that exists, got {str(out)!r}.")
        return
    if isinstance(out, np.ndarray) and not in_this_process():
        raise ValueError(
            "out must be the name of a .npy file, or an array that other processes can write to, "
            f"such as one of zarr in a folder, got {type(out).__name__}: workers would write into "
            "copies."
        )
    if not hasattr(out, "__setitem__") or getattr(out, "shape", None) != shape:
        raise ValueError(
            f"out must be the name of a .npy file, or an array of shape {shape} that takes slices, "
            f"got {shown(out)}."
        )
    if not np.can_cast(dtype, out.dtype):
        raise ValueError(f"out must be of a type that holds labels of {dtype}, got {out.dtype}.")


def written(X: da.Array, out: Any) -> da.Array:
    """Compute a Dask array, block by block, into a file or an array, and return it as read there.

    Parameters
    ----------
    X : dask.array.Array of shape (n, m)
    out : str, Path or array
        See `base_partitions`.
    """
    check_out(out, X.shape, X.dtype)
    if not isinstance(out, str | Path):
        da.store(X, out, lock=True)  # a chunk of it may have rows of two blocks
        return da.from_array(out, chunks=X.chunks)
    path = Path(out).absolute()
    offset = create_npy(path, X.shape, X.dtype)
    width = X.shape[1] * X.dtype.itemsize
    call = delayed(_write, pure=False)
    blocks = zip(X.to_delayed().ravel(), row_ranges(X), strict=True)
    compute(*(call(path, offset + first * width, block) for block, (first, _) in blocks))
    return read_npy(path, rows=max(X.chunks[0]))


def _write(path: Path, offset: int, block: Any) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        np.ascontiguousarray(block).tofile(file)
