"""Fits on a cluster of two workers, each in a process of its own that `benchmarks.fresh` starts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask
import dask.array as da
import joblib
import numpy as np
import psutil
from dask.delayed import delayed
from distributed import Client, LocalCluster
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

import nmfcluster
from benchmarks import fresh
from benchmarks.datasets.many_labels import N_CLUSTERS
from nmfcluster.dask import NMFConsensus, base_partitions
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.partitions import base_partitions as partitions_in_memory

ROWS = 100_000  # of a block that is read
# A worker is stopped when it exceeds its limit. By default it pauses at 80 % of the limit, and a
# worker of 300 MB that its libraries alone bring near that never continues.
WORKERS = {
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 1.0,
}
RUNS = 16  # of NMF, of a second each


@contextmanager
def cluster(memory: str | None = None) -> Iterator[Client]:
    """Start two workers of one thread each, which write nothing to disk."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set(WORKERS),
        LocalCluster(memory_limit=memory, **options) as workers,
        Client(workers) as client,
    ):
        yield client


def cpu_of(client: Client) -> float:
    """Return the seconds of processor time of all workers so far."""
    return float(sum(client.run(time.process_time).values()))


def peaks(client: Client) -> dict[str, float]:
    """Return the largest resident memory, in MiB, of a worker, and of the client and scheduler."""
    workers = client.run(partial(fresh.memory, "VmHWM"))
    return {
        "worker": max(workers.values()) / 1024,
        "client": fresh.memory("VmHWM") / 1024,
    }


def in_blocks(path: str) -> da.Array:
    """Return the table in a .npy file as an array of which one block of rows is read at a time."""
    held = np.load(path, mmap_mode="r")
    chunks = da.core.normalize_chunks((ROWS, -1), held.shape)
    return da.map_blocks(_rows, path, chunks=chunks, dtype=held.dtype)


def _rows(path: str, block_info: Any = None) -> np.ndarray:
    (first, last), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[first:last])


def agreement(labels: Any, classes: str) -> dict[str, float]:
    """Compare labels in blocks with the classes in a file, and time it: nothing is gathered."""
    began = time.perf_counter()
    blocks = zip(
        labels.to_delayed(), in_blocks(classes).to_delayed().ravel(), strict=True
    )
    count = delayed(_contingency, pure=False)
    table = sum(dask.compute(*(count(own, true) for own, true in blocks)))
    seconds = time.perf_counter() - began
    matched = table[linear_sum_assignment(-table)].sum() / table.sum()
    return {"labels": seconds, "accuracy": float(matched)}


def _contingency(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    pairs = labels.astype(np.int64) * N_CLUSTERS + classes[:, 0]
    return np.bincount(pairs, minlength=N_CLUSTERS**2).reshape(N_CLUSTERS, N_CLUSTERS)


def fit(table: str, classes: str, memory: str) -> dict[str, Any]:
    """Fit a table of labels in a file, and label all of its rows."""
    with cluster(memory) as client:
        X = in_blocks(table)
        began, cpu = time.perf_counter(), cpu_of(client)
        model = NMFConsensus(N_CLUSTERS, random_state=0).fit(X)
        seconds, fitted = time.perf_counter() - began, cpu_of(client)
        found = agreement(model.labels_, classes)
        return {
            **found,
            **peaks(client),
            "fit": seconds,
            "cpu of fit": fitted - cpu,
            "cpu of labels": cpu_of(client) - fitted,
            "client cpu": time.process_time(),
            "rows fitted": model.n_distinct_,
            "exact": model.is_exact_,
        }


def compare(table: str, max_distinct: str) -> dict[str, Any]:
    """Fit a table in a file on the cluster, and in memory, and compare the two."""
    held = np.load(table)
    with cluster():
        X = in_blocks(table)
        began = time.perf_counter()
        ours = NMFConsensus(
            N_CLUSTERS, max_distinct=int(max_distinct), random_state=0
        ).fit(X)
        labels, P = dask.compute(ours.labels_, ours.membership_)
        seconds = time.perf_counter() - began
    began = time.perf_counter()
    plain = nmfcluster.NMFConsensus(
        N_CLUSTERS, affinity="partitions", random_state=0
    ).fit(held)
    return {
        "seconds": seconds,
        "seconds in memory": time.perf_counter() - began,
        "rows fitted": ours.n_distinct_,
        "exact": ours.is_exact_,
        "same labels": clustering_accuracy(plain.labels_, labels),
        "same bits": bool(
            np.array_equal(labels, plain.labels_)
            and np.array_equal(P, plain.membership_)
            and ours.loss_ == plain.loss_
        ),
        "loss": ours.loss_ / plain.loss_,
    }


def features(table: str, classes: str, labels: str, memory: str) -> dict[str, Any]:
    """Go from features in a file to base partitions in another, and to a consensus."""
    with cluster(memory) as client:
        X = in_blocks(table)
        began, cpu = time.perf_counter(), cpu_of(client)
        made = base_partitions(X, n_clusters=(10, 24), random_state=0)
        da.to_npy_stack(labels, made.labels)
        bases = time.perf_counter() - began
        table_of_labels = da.from_npy_stack(labels, mmap_mode=None)
        model = NMFConsensus(N_CLUSTERS, random_state=0).fit(table_of_labels)
        seconds = time.perf_counter() - began
        found = agreement(model.labels_, classes)
        return {
            **found,
            **peaks(client),
            "base partitions": bases,
            "seconds": seconds + found["labels"],
            "cpu": cpu_of(client) - cpu,
        }


def backends(problem: str, rows: str, seed: str) -> dict[str, Any]:
    """Time runs of NMF, or base partitions, on two threads and on two workers."""
    rng = np.random.default_rng(0)
    if problem == "NMF runs":
        X = rng.gamma(1.0, size=(int(rows), 1_000))
    else:
        n = 100 * int(rows)
        X = rng.normal(size=(n, 20)) + 4 * rng.integers(5, size=(n, 1))
    task = partial(_task, problem, X, int(seed))
    with cluster() as client:
        client.wait_for_workers(2)
        with joblib.parallel_config("dask"):
            # imports are not counted
            joblib.Parallel()(joblib.delayed(abs)(i) for i in range(4))
            sent, began = (
                psutil.net_io_counters(pernic=True)["lo"].bytes_sent,
                time.perf_counter(),
            )
            of_cluster = task(n_jobs=2)
            seconds = time.perf_counter() - began
            sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - sent
    began = time.perf_counter()
    with joblib.parallel_config("threading"):
        of_threads = task(n_jobs=2)
    return {
        "seconds": seconds,
        "seconds of threads": time.perf_counter() - began,
        "bytes sent / bytes of X": sent / X.nbytes,
        "same bits": bool(np.array_equal(of_cluster, of_threads)),
    }


def _task(problem: str, X: np.ndarray, seed: int, n_jobs: int) -> np.ndarray:
    if problem == "NMF runs":
        model = nmfcluster.NMFMetaCluster(
            10,
            n_estimators=RUNS,
            random_state=seed,
            n_jobs=n_jobs,
            max_iter=100,
            tol=-1,
        )
        with warnings.catch_warnings():  # so many updates are made, converged or not
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X).membership_
    return partitions_in_memory(
        X, n_estimators=RUNS, n_clusters=(10, 24), random_state=seed, n_jobs=n_jobs
    ).labels
