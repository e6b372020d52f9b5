"""nmfcluster.dask on a cluster of two workers: the same bits, and what happens when parts of it go.

What needs no cluster is tested without one, in the files beside this.
"""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from refusals import raises_naming

pytest.importorskip("distributed", reason="the extra distributed is not installed")

import dask
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError
from faults.blocks import killing, read, slow
from faults.shared import comes_true, heeding_interrupts

from nmfcluster.dask import NMFConsensus, base_partitions, predict
from nmfcluster.datasets import make_partitions

pytestmark = pytest.mark.slow  # together

# Dask closes for good what is away 15 s after it was killed: here it may have been killed again.
STAYING = {"distributed.deploy.lost-worker-timeout": "1 hour"}
START = 300  # seconds until a worker that was killed is back on a busy machine: Dask sees to that
# after so many readings of a block
PHASES = {"summary": 0, "first pass": 2, "labels": 5}
ALL, SOME = {"max_distinct": 10_000}, {"max_distinct": 300}


def started(**options):
    return LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, **options
    )


@pytest.fixture(autouse=True)
def _synchronous():
    """Leave the scheduler to the client, unlike in the files beside this one."""


@pytest.fixture(scope="module")
def client():
    with dask.config.set(STAYING), started() as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the file of a table with 1,200 distinct rows."""
    codes, _ = make_partitions(
        (700, 500, 300), n_partitions=8, noise=0.4, missing=0.1, random_state=0
    )
    path = tmp_path_factory.mktemp("table") / "labels.npy"
    np.save(path, codes.astype(np.int8))
    return path


@pytest.fixture(scope="module")
def expected(table):
    """Return what the fits give without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        return {
            name: results(fitted(in_blocks(table), **kept))
            for name, kept in KEPT.items()
        }


def in_blocks(path, rows=2_000):
    """Return the table in a file as an array that reads one block of rows at a time."""
    held = np.load(path, mmap_mode="r")
    chunks = dask.array.core.normalize_chunks((rows, -1), held.shape)
    return dask.array.map_blocks(read, str(path), chunks=chunks, dtype=held.dtype)


KEPT = {"all rows held": ALL, "some rows held": SOME}


def fitted(X, **parameters):
    return NMFConsensus(n_clusters=3, random_state=0, **parameters).fit(X)


def results(model):
    arrays = dask.compute(model.labels_, model.membership_, model.confidence_)
    return *arrays, model.agreement_, model.loss_curve_


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", KEPT)
def test_a_cluster_gives_the_same_bits(client, table, expected, name):
    assert_same(
        results(fitted(in_blocks(table, rows=400), **KEPT[name])), expected[name]
    )


def test_base_partitions_on_a_cluster_are_the_same(client):
    X = dask.array.random.default_rng(0).normal(size=(900, 3), chunks=(200, 3))
    made = base_partitions(X, n_estimators=4, n_clusters=3, random_state=0)
    with dask.config.set(scheduler="synchronous"):
        alone = base_partitions(X, n_estimators=4, n_clusters=3, random_state=0)
        np.testing.assert_array_equal(made.labels.compute(), alone.labels.compute())
    model = fitted(made.labels).to_local()
    np.testing.assert_array_equal(
        predict(model, made.labels).compute(), model.predict(alone.labels.compute())
    )


@pytest.mark.parametrize("phase", PHASES)
def test_a_worker_that_is_killed_does_not_matter(
    client, table, expected, tmp_path, phase
):
    X = in_blocks(table, rows=500)
    first = X.blocks[0].map_blocks(
        killing, str(tmp_path), PHASES[phase], dtype=X.dtype, meta=X._meta
    )
    X = dask.array.concatenate(
        [first, *(X.blocks[i] for i in range(1, X.numblocks[0]))]
    )
    model = fitted(X, **SOME)
    labels = model.labels_.compute()
    assert (tmp_path / "killed").exists()
    np.testing.assert_array_equal(labels, expected["some rows held"][0])
    np.testing.assert_array_equal(model.loss_curve_, expected["some rows held"][-1])
    client.wait_for_workers(2, timeout=START)


def test_a_bad_label_is_named_by_its_row(client, tmp_path):
    table = np.zeros((900, 3))
    table[777, 1] = 1.5
    np.save(tmp_path / "labels.npy", table)
    with raises_naming(ValueError, "X", "1.5", "row 777", "partition 1"):
        fitted(in_blocks(tmp_path / "labels.npy", rows=200))


def slowly(table, folder):
    """Return thirty blocks, each of which leaves a file in a folder and takes half a second."""
    X = in_blocks(table, rows=50)
    return X.map_blocks(slow, str(folder), dtype=X.dtype, meta=X._meta)


def test_an_interrupt_leaves_no_task_behind(client, table, tmp_path):
    model, X = NMFConsensus(n_clusters=3), slowly(table, tmp_path)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    with heeding_interrupts():
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
    assert comes_true(lambda: not any(client.processing().values()))
    assert len(list(tmp_path.iterdir())) < 30  # blocks that waited were never read
    assert not hasattr(model, "labels_")


def test_a_scheduler_that_goes_away_ends_the_fit(table, tmp_path):
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        with started() as cluster, Client(cluster, set_as_default=True):
            model, X = NMFConsensus(n_clusters=3), slowly(table, tmp_path)
            timer = threading.Timer(1, lambda: cluster.sync(cluster.scheduler.close))
            timer.start()
            with pytest.raises((OSError, FutureCancelledError)):
                model.fit(X)
            assert len(list(tmp_path.iterdir())) < 30
            assert not hasattr(model, "labels_")
