"""A run that fails, a worker that dies, too little memory or disk: an error, and no model."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import joblib
import pytest
from faults.clusterers import Interrupting, Killed, Raising
from faults.shared import DATA, MODELS, comes_true, found, heeding_interrupts
from refusals import raises_naming
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import nmfcluster
from nmfcluster import NMFConsensus
from nmfcluster.model_selection import StabilityScorer
from nmfcluster.partitions import base_partitions

X = DATA["consensus"]


def consensus(estimator, **options):
    return NMFConsensus(
        3, estimator=estimator, n_estimators=4, random_state=0, **options
    )


def assert_fails_without_a_trace(model, error, *names):
    """Then it fits as if nothing had been."""
    expected = found(
        clone(model).set_params(estimator__fails=False, n_jobs=1).fit(X), X
    )
    attributes = dict(vars(model))
    with threadpool_limits(3):
        before = threadpool_info()
        with raises_naming(error, *names) if names else pytest.raises(error):
            model.fit(X)
        assert vars(model).keys() == attributes.keys()
        assert all(vars(model)[name] is value for name, value in attributes.items())
        # other base runs have ended
        assert comes_true(lambda: threadpool_info() == before)
        if "labels_" in attributes:
            assert found(model, X) == expected
        assert found(model.set_params(estimator__fails=False).fit(X), X) == expected
        assert threadpool_info() == before


def fitted(model):
    """Return the model after a fit that did not fail."""
    n_jobs = model.n_jobs
    model.set_params(estimator__fails=False, n_jobs=1).fit(X)
    return model.set_params(estimator__fails=True, n_jobs=n_jobs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n_jobs", "backend"),
    [(1, "loky"), (2, "threading"), pytest.param(2, "loky", marks=pytest.mark.slow)],
)
def test_a_base_run_that_raises(n_jobs, backend):
    told = "cannot go on"
    with joblib.parallel_config(backend):
        model = consensus(Raising(), n_jobs=n_jobs)
        assert_fails_without_a_trace(model, ArithmeticError, told)
        if backend == "threading" or n_jobs == 1:  # no worker has to be started anew
            assert_fails_without_a_trace(fitted(model), ArithmeticError, told)
            with raises_naming(ArithmeticError, told):
                base_partitions(
                    X, Raising(), n_estimators=3, n_clusters=3, n_jobs=n_jobs
                )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing is killed here")
def test_a_worker_that_is_killed(tmp_path):
    killed = Killed(parent=os.getpid(), mark=str(tmp_path / "mark"))
    with joblib.parallel_config("loky"):
        assert_fails_without_a_trace(
            consensus(killed, n_jobs=2), RuntimeError, "terminated"
        )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing is killed here")
def test_a_worker_that_is_killed_in_a_copy_is_no_score(tmp_path):
    """A scorer makes NaN of the errors of its copies, but this is none of theirs."""
    killed = Killed(parent=os.getpid(), mark=str(tmp_path / "mark"))
    with joblib.parallel_config("loky"), raises_naming(RuntimeError, "terminated"):
        StabilityScorer(4, n_jobs=2)(killed, X)


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="no process interrupts another here"
)
def test_an_interrupt_while_workers_are_in_base_runs(tmp_path):
    interrupting = Interrupting(parent=os.getpid(), mark=str(tmp_path / "mark"))
    model = fitted(consensus(interrupting, n_jobs=2))
    with heeding_interrupts(), joblib.parallel_config("loky"):
        assert_fails_without_a_trace(model, KeyboardInterrupt)


def of_shortage(what):
    pytest.importorskip("resource", reason="nothing is limited here")
    paths = [str(Path(file).parents[1]) for file in (nmfcluster.__file__, __file__)]
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            str(Path(__file__).with_name("shortage.py")),
            what,
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="memory is not told here"
)
def test_a_fit_for_which_memory_is_too_little():
    told = of_shortage("memory")
    assert [name for name, _, _ in told] == [*MODELS]
    for name, error, left in told:
        assert "MemoryError" in error.split("|"), (name, error)
        assert left == "unfitted", name


@pytest.mark.slow
def test_a_temporary_folder_that_takes_nothing():
    """Joblib says that it could not send a task, because of the error of the system."""
    told = of_shortage("disk")
    assert len(told) == 2
    for _, error, left in told:
        assert "Errno" in error.split("|"), error
        assert left == "unfitted"
