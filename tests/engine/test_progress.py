"""What is told of a fit while it runs."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone

from nmfcluster import NMFConsensus, NMFMetaCluster, SSNMFClusterer

has_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn < 1.9 has no callbacks"
)

X = np.kron(np.eye(2), np.ones((6, 3))) + np.random.RandomState(0).uniform(size=(12, 6))


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


@has_callbacks
@pytest.mark.parametrize(
    "estimator",
    [
        NMFMetaCluster(2, n_estimators=10, random_state=0),
        NMFMetaCluster(2, n_estimators=10, loss="kullback-leibler", n_jobs=2, random_state=0),
        NMFConsensus(2, random_state=0),
        SSNMFClusterer(2, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_callbacks_are_told_of_every_stage_and_batch(estimator):
    recorder = Recorder()
    clone(estimator).set_callbacks(recorder).fit(X)
    told = recorder.told
    assert (told[0], told[-1]) == ("setup", "teardown")
    assert (told[1], told[-2]) == (("begin", "fit"), ("end", "fit"))
    begun = [what for what in told if what[0] == "begin"]
    ended = [what for what in told if what[0] == "end"]
    assert sorted(task for _, task in begun) == sorted(task for _, task in ended)
    assert ("begin", "batch") in begun
    if isinstance(estimator, NMFMetaCluster):
        assert ("begin", "runs of 2 clusters") in begun


@has_callbacks
def test_callbacks_are_torn_down_where_a_fit_fails():
    recorder = Recorder()
    model = NMFMetaCluster(2, random_state=0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="n_clusters=20"):
        model.set_params(n_clusters=20).fit(X)
    assert recorder.told[-1] == "teardown"
    assert not hasattr(model, "_callback_fit_ctx")


@has_callbacks
def test_a_bar_shows_progress(capsys):
    pytest.importorskip("rich")
    bar = import_module("sklearn.callback").ProgressBar()
    NMFMetaCluster(2, n_estimators=10, random_state=0).set_callbacks(bar).fit(X)
    assert "NMFMetaCluster" in capsys.readouterr().out


def test_a_line_a_batch_is_printed(capsys):
    model = NMFMetaCluster(2, n_estimators=12, resample=None, random_state=0, verbose=1)
    model.fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "runs of 2 clusters: " in line] == [
        f"[NMFMetaCluster] runs of 2 clusters: {done} of 3 batches" for done in (1, 2, 3)
    ]
