"""A cluster of Dask that joblib is told to use: what is sent, and what becomes of lost workers."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from faults.clusterers import Fatal, Raising, Slow, Unsendable
from faults.shared import DATA, MODELS, comes_true, found, heeding_interrupts
from refusals import raises_naming, warns_naming
from sklearn.base import clone
from sklearn.cluster import KMeans

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster._optim import run
from nmfcluster._utils import parallel
from nmfcluster.model_selection import StabilityScorer
from nmfcluster.partitions import base_partitions

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

X = DATA["consensus"]
COUNTS = np.random.RandomState(0).poisson(1.0, size=(300, 2000)).astype(float)
KILLED = distributed.scheduler.KilledWorker("key", SimpleNamespace(address="here"), 3)
FEW = np.random.RandomState(0).uniform(size=(2000, 3000))
SPARSE = sp.csr_array(np.where(FEW < 0.05, FEW, 0))


@contextmanager
def two_workers():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def on_dask(client):
    with joblib.parallel_config("dask"):
        yield client


@pytest.fixture
def fragile():
    """Yield the client of workers that are to be lost, of which no other test needs any."""
    with two_workers() as client, joblib.parallel_config("dask"):
        yield client


@pytest.fixture
def sent(monkeypatch):
    """Return a list of what is sent: the name of a function, and the number of its calls."""
    names, submit_calls = [], parallel._submit_calls

    def recorded(backend, shared, calls):
        names.append((shared.values[0].__name__, len(calls)))
        return submit_calls(backend, shared, calls)

    monkeypatch.setattr(parallel, "_submit_calls", recorded)
    return names


# of graphs there is a start from each
GRAPHS = [
    (name, "nearest_neighbors", columns)
    for name, columns in (("a", [0, 1]), ("b", [1, 2]))
]


@pytest.fixture
def traffic(monkeypatch):
    """Return a list of the bytes that the client and the scheduler write: both are here."""
    sizes, write = [], distributed.comm.tcp.TCP.write

    async def counted(self, *args, **kwargs):
        sizes.append(await write(self, *args, **kwargs))
        return sizes[-1]

    monkeypatch.setattr(distributed.comm.tcp.TCP, "write", counted)
    return sizes


@pytest.mark.parametrize(
    ("name", "options", "functions"),
    [
        (
            "consensus",
            {"n_init": 4, "estimator": KMeans(n_init=1)},
            {"try_on_one_thread", "run_apart"},
        ),
        ("constrained", {"n_init": 12}, {"run_apart"}),
        ("fusion", {"affinity": GRAPHS}, {"run_apart"}),
        ("metaclusters", {"n_estimators": 20}, {"run_apart"}),
    ],
)
def test_results_have_the_bits_of_threads(name, options, functions, on_dask, sent):
    model = clone(MODELS[name]).set_params(**options)
    with joblib.parallel_config("threading"):
        expected = found(clone(model).fit(DATA[name]), DATA[name])
    assert sent == []
    for _ in range(2):  # where in a message an array begins differs from time to time
        assert found(clone(model).fit(DATA[name]), DATA[name]) == expected
    assert {function.strip("_") for function, _ in sent} == functions


def test_a_score_is_that_of_threads(on_dask, sent):
    scorer, model = StabilityScorer(6), clone(MODELS["consensus"]).set_params(n_init=4)
    assert scorer(model, X) == StabilityScorer(6, n_jobs=1)(model, X)
    assert sent[0] == ("try_on_one_thread", 6)  # to fit a copy
    with joblib.parallel_config("threading"):
        expected = scorer(model, X)
    assert scorer(model, X) == expected


def n_bytes(X):
    return X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes


@pytest.mark.parametrize(
    "work",
    [
        lambda X: NMFMetaCluster(
            2, n_estimators=24, max_iter=3, tol=-1, random_state=0
        ).fit(X),
        lambda X: base_partitions(
            X, KMeans(n_init=1, max_iter=2), n_estimators=12, n_clusters=2
        ),
        lambda X: StabilityScorer(12)(
            KMeans(2, n_init=1, max_iter=2, random_state=0), X
        ),
    ],
    ids=["runs", "base partitions", "stability"],
)
@pytest.mark.parametrize("data", [COUNTS, SPARSE], ids=["dense", "sparse"])
def test_the_data_are_sent_once(work, data, on_dask, sent, traffic, monkeypatch):
    """From the client to the scheduler, and from there to a worker, which hands them on."""
    monkeypatch.setattr(run, "_BATCH", 2)
    work(data)
    assert sent[0][1] >= 12  # calls that could each have taken them along
    assert len([size for size in traffic if size > n_bytes(data)]) == 2
    assert sum(traffic) < 4 * n_bytes(data)  # with results, and what else is said


def test_what_cannot_be_pickled_is_named(on_dask):
    unfit = Slow(fails=threading.Lock().acquire)
    for estimator in (unfit, Unsendable()):
        with raises_naming(TypeError, "base clusterer", "lock"):
            base_partitions(X, estimator, n_estimators=4)


def test_what_a_call_raises_arrives(on_dask, sent):
    with raises_naming(ArithmeticError, "cannot go on"):
        base_partitions(X, Raising(), n_estimators=4)
    assert sent == [("try_on_one_thread", 4)]


def test_an_interrupt_ends_what_waits(on_dask, tmp_path):
    slow = Slow(folder=str(tmp_path))
    model = NMFConsensus(3, estimator=slow, n_estimators=40, random_state=0)
    with heeding_interrupts():
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert comes_true(lambda: not any(on_dask.processing().values()))
    assert len(list(tmp_path.iterdir())) < 40  # those that waited never began
    assert not hasattr(model, "labels_")
    assert len(base_partitions(X, Slow(fails=False), n_estimators=4).estimators) == 4


# --- lost workers ------------------------------------------------------------------------------


@pytest.fixture
def kill(fragile):
    """Return a function that kills some workers once a call runs."""

    def once_a_call_runs(pids):
        assert comes_true(lambda: any(fragile.processing().values()))
        time.sleep(0.1)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def kill(n_workers):
        pids = list(fragile.run(os.getpid).values())[:n_workers]
        killers.append(threading.Thread(target=once_a_call_runs, args=(pids,)))
        killers[-1].start()

    killers = []
    yield kill
    for killer in killers:
        killer.join()


def test_a_worker_that_is_killed_is_not_missed(kill, sent, recwarn):
    """Another one holds the data, too."""
    model = NMFMetaCluster(3, n_estimators=24, max_iter=100, tol=-1, random_state=0)
    with joblib.parallel_config("threading"):
        expected = found(clone(model).fit(COUNTS), COUNTS)
    kill(1)
    assert found(model.fit(COUNTS), COUNTS) == expected
    assert sent[0] == ("_run_apart", 24)
    assert not [warning for warning in recwarn if "worker" in str(warning.message)]


def test_what_is_lost_with_all_workers_is_sent_again(kill, sent):
    expected = base_partitions(
        X, Slow(fails=False), n_estimators=10, random_state=0
    ).labels
    kill(2)
    with warns_naming(UserWarning, "worker"):
        result = base_partitions(X, Slow(), n_estimators=10, random_state=0)
    np.testing.assert_array_equal(result.labels, expected)
    assert sent == [("try_on_one_thread", 10)] * 3


@pytest.mark.filterwarnings("ignore:The cluster lost a worker")
def test_calls_that_kill_their_workers_are_an_error_with_its_cure(fragile):
    model = NMFConsensus(3, estimator=Fatal(), n_estimators=2, random_state=0)
    with raises_naming(RuntimeError, "memory_limit"):
        model.fit(X)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize(
    ("error", "n_times"),
    [(distributed.client.FutureCancelledError("key", "lost"), 2), (KILLED, 1)],
    ids=["lost", "killed"],
)
@pytest.mark.filterwarnings("ignore:The cluster lost a worker")
def test_a_second_loss_is_an_error(error, n_times, on_dask, monkeypatch):
    """So is the first, where Dask has tried it on several workers itself."""
    tried = []

    def lost(*_):
        tried.append(error)
        raise error

    monkeypatch.setattr(parallel, "_submit_calls", lost)
    with raises_naming(RuntimeError, type(error).__name__):
        base_partitions(X, KMeans(n_init=1))
    assert len(tried) == n_times
