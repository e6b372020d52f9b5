"""What is told of a fit while it runs."""

import re
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from internals import run_calls
from joblib import parallel_config
from refusals import raises_naming
from sklearn.base import clone
from sklearn.cluster import DBSCAN

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SSNMFClusterer,
)

has_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn < 1.9 has no callbacks"
)

X = np.kron(np.eye(2), np.ones((6, 3))) + np.random.RandomState(0).uniform(size=(12, 6))

each_estimator = pytest.mark.parametrize(
    "estimator",
    [
        NMFMetaCluster(2, n_estimators=10, random_state=0),
        NMFConsensus(2, n_estimators=9, normalize=False, random_state=0),
        SSNMFClusterer(2, propagation=0.5, random_state=0),
        SSNMFClusterer(2, contradictions="ignore", random_state=0),
        SimilarityFusionNMF(
            2, affinity=["rbf", "cosine"], max_samples=8, random_state=0
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)

PAIRS = PairwiseConstraints(12, must_link=[(0, 1), (6, 7)], cannot_link=[(0, 6)])


class Recorder:
    """Keeps what it is told."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context.task_name))

    def teardown(self, estimator, context):
        self.told.append("teardown")


@pytest.mark.sampled(2)
@has_callbacks
@pytest.mark.parametrize(
    "estimator",
    [
        NMFMetaCluster(
            2, n_estimators=10, loss="kullback-leibler", n_jobs=2, random_state=0
        ),
        NMFConsensus(2, n_estimators=9, random_state=0),
        NMFConsensus(2, n_estimators=9, n_jobs=2, random_state=0),
        SSNMFClusterer(2, random_state=0),
        SimilarityFusionNMF(
            2, affinity=["rbf", "cosine"], max_samples=8, random_state=0
        ),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.n_jobs}",
)
# starting processes takes seconds
@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)]
)
def test_callbacks_are_told_of_every_stage_and_batch(estimator, backend):
    recorder = Recorder()
    with parallel_config(backend):
        clone(estimator).set_callbacks(recorder).fit(X)
    told = recorder.told
    assert (told[0], told[-1]) == ("setup", "teardown")
    assert (told[1], told[-2]) == (("begin", "fit"), ("end", "fit"))
    begun = [what for what in told if what[0] == "begin"]
    ended = [what for what in told if what[0] == "end"]
    assert sorted(task for _, task in begun) == sorted(task for _, task in ended)
    assert ("begin", "batch") in begun
    if isinstance(estimator, NMFMetaCluster):
        assert ("begin", "runs of 2 clusters, 10 starts") in begun
    # a batch a run, told when the run has ended
    if isinstance(estimator, NMFConsensus):
        stage = "9 base partitions of 2 to 3 clusters"
        first, last = told.index(("begin", stage)), told.index(("end", stage))
        assert told[first + 1 : last] == [("begin", "batch"), ("end", "batch")] * 9
    if isinstance(estimator, SSNMFClusterer):
        assert ("begin", "similarities of 12 samples") in begun
    if isinstance(estimator, SimilarityFusionNMF):
        assert ("begin", "similarities of 12 objects") in begun


@has_callbacks
def test_callbacks_are_torn_down_where_a_fit_fails():
    recorder = Recorder()
    model = NMFMetaCluster(2, random_state=0).set_callbacks(recorder)
    with raises_naming(ValueError, "n_clusters=20"):
        model.set_params(n_clusters=20).fit(X)
    assert recorder.told[-1] == "teardown"
    assert not hasattr(model, "_callback_fit_ctx")


@has_callbacks
def test_a_bar_shows_progress(capsys):
    pytest.importorskip("rich")
    bar = import_module("sklearn.callback").ProgressBar()
    NMFMetaCluster(2, n_estimators=10, random_state=0).set_callbacks(bar).fit(X)
    assert "NMFMetaCluster" in capsys.readouterr().out


@pytest.mark.sampled(2)
@each_estimator
def test_every_stage_is_announced_before_it_begins(estimator, caplog):
    caplog.set_level("INFO", "nmfcluster")
    given = {"constraints": PAIRS} if isinstance(estimator, SSNMFClusterer) else {}
    clone(estimator).fit(X, **given)
    name = f"{type(estimator).__name__}: "
    assert all(line.startswith(name) for line in caplog.messages)
    lines = [line.removeprefix(name) for line in caplog.messages]
    assert lines[0].endswith(" ...")
    if given:
        assert any(line.startswith("spread of 3 p") for line in lines)
    announced = []
    for line in lines:
        if line.endswith(" ..."):
            announced.append(line.removesuffix(" ..."))
        elif re.search(
            r": (best loss|[\d.]+ s$)", line
        ):  # a stage has ended, the last announced
            assert line.startswith(f"{announced.pop()}: ")
    assert announced == []


def test_nothing_is_said_unless_asked_for(caplog, capfd):
    NMFConsensus(2, random_state=0).fit(X)
    assert not caplog.messages
    assert capfd.readouterr() == ("", "")


def test_a_stage_that_fails_is_not_said_to_have_ended(caplog):
    caplog.set_level("INFO", "nmfcluster")
    model = NMFConsensus(2, estimator=DBSCAN(eps=1e-9), random_state=0)
    with raises_naming(ValueError, "noise"):
        model.fit(X)
    first, *rest = caplog.messages
    assert first == "NMFConsensus: 50 base partitions of 2 to 3 clusters ..."
    assert rest == [
        f"{first.removesuffix(' ...')}: {done} of 50" for done in range(1, 51)
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_line_a_batch_is_written_in_the_name_of_the_fit(caplog, n_jobs, monkeypatch):
    # runs on toys share threads, too
    monkeypatch.setattr("nmfcluster.meta.runs._SMALL", 0)
    caplog.set_level("INFO", "nmfcluster")
    NMFMetaCluster(
        2, n_estimators=12, resample=None, random_state=0, n_jobs=n_jobs
    ).fit(X)
    assert [
        line for line in caplog.messages if "runs of 2 clusters, 12 starts: " in line
    ][:3] == [
        f"NMFMetaCluster: runs of 2 clusters, 12 starts: {done} of 3"
        for done in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "backend",
    [
        "sequential",
        "threading",
        pytest.param("loky", marks=pytest.mark.slow),
        pytest.param("multiprocessing", marks=pytest.mark.slow),
    ],
)
def test_calls_are_counted_wherever_they_run(backend):
    counted = []
    with parallel_config(backend, n_jobs=2):
        found = run_calls(
            pow, (2,), [(k,) for k in range(5)], 2, partial(counted.append, 1)
        )
    assert found == [1, 2, 4, 8, 16]
    assert counted == [1] * 5
