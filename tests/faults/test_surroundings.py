"""What is around a fit does not matter: forks, settings of numpy and Python, other threads."""

import hashlib
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from faults import shared
from faults.shared import CLASSES, DATA, FEATURES, MODELS, digest, found, result
from numpy.testing import assert_allclose
from refusals import raises_naming
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

import nmfcluster
from nmfcluster import NMFConsensus, NMFMetaCluster


@pytest.fixture(scope="module")
def expected():
    """Return what a fit of each estimator finds alone."""
    return {name: result(name) for name in MODELS}


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.sampled(5)
def test_numpy_that_raises_does_not_matter(public_estimator, make_input):
    X, _ = make_input(public_estimator)
    if public_estimator.get_params().get("affinity") in ("rbf", None):
        X = X * 10  # kernels of distant samples, products of small numbers
    model = clone(public_estimator).set_params(random_state=0, n_init=2)
    expected = found(model.fit(X), X)
    tiny = (
        X
        if public_estimator.get_params().get("affinity") == "partitions"
        else X * 1e-300
    )
    of_tiny = [model.predict(tiny).tobytes(), model.transform(tiny).tobytes()]
    for n_jobs in [None] if hasattr(model, "estimators_") else [1, 2]:
        model.set_params(n_jobs=n_jobs)
        with np.errstate(all="raise"):
            assert found(model.fit(X), X) == expected
            assert [
                model.predict(tiny).tobytes(),
                model.transform(tiny).tobytes(),
            ] == of_tiny
            assert set(np.geterr().values()) == {"raise"}


def test_a_share_that_underflows_is_next_to_0():
    model = NMFConsensus(3, affinity="precomputed", random_state=0)
    model.fit(np.equal.outer(CLASSES, CLASSES).astype(float))
    new = np.where(model.labels_ == 0, 1.7, 3.1e-310)[None]
    with np.errstate(all="raise"):
        assert_allclose(model.transform(new), [[1, 0, 0]], atol=1e-300)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_overflow_is_told_with_its_cause_and_nothing_else(n_jobs):
    X = (FEATURES - FEATURES.min()).astype(np.float32)
    model = NMFMetaCluster(
        3, n_estimators=2, sparsity=1e100, n_jobs=n_jobs, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with raises_naming(ValueError, "float32"):
            model.fit(X)
    assert not hasattr(model, "components_")


def run_python(arguments, environment):
    """Return what Python prints in an environment, in which it must not complain."""
    search_path = str(Path(nmfcluster.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": search_path} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "environment"),
    [(["-W", "error"], {}), ([], {"PYTHONOPTIMIZE": "2"})],
    ids=["-W error", "PYTHONOPTIMIZE=2"],
)
def test_settings_of_python_do_not_matter(options, environment):
    told = run_python([*options, shared.__file__], environment)
    assert told.split() == [digest(name) for name in MODELS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [{"LOKY_MAX_CPU_COUNT": "2", "TMPDIR": "/no/such"}, {"LOKY_MAX_CPU_COUNT": "1"}],
    ids=["two workers, no folder", "one worker"],
)
def test_settings_of_workers_do_not_matter(environment):
    parts = shared.result_of_workers(n_jobs=1)
    told = run_python([shared.__file__, "workers"], environment)
    assert told.split() == [hashlib.sha256(b"".join(parts)).hexdigest()]


@pytest.mark.slow
def test_every_module_can_be_imported_without_docstrings():
    """Docstrings that are put together of others are None under -OO."""
    names = []
    for module in pkgutil.walk_packages(nmfcluster.__path__, "nmfcluster."):
        is_missing = "dask" in module.name and find_spec("distributed") is None
        if not (module.name.endswith("__main__") or is_missing):
            names.append(module.name)
    assert len(names) > 50
    run_python(["-OO", "-c", f"import {', '.join(names)}"], {})


# --- others at work ----------------------------------------------------------------------------


# scikit-learn sets warnings aside in each thread, which Python does for all of them at once
@pytest.mark.filterwarnings("ignore:.*delayed. should be used with:UserWarning")
@pytest.mark.slow
def test_eight_fits_at_once_find_what_each_finds_alone(expected):
    names = [*MODELS] * 2
    together = threading.Barrier(len(names))
    models = [
        clone(MODELS[name]).set_params(n_jobs=1 + i // 4)
        for i, name in enumerate(names)
    ]
    for model in models:  # base runs are in this process, too
        if "estimator" in model.get_params():
            model.set_params(n_jobs=None)

    def fit(name, model):
        together.wait(30)
        return found(model.fit(DATA[name]), DATA[name])

    with threadpool_limits(3), ThreadPoolExecutor(len(names)) as threads:
        before = threadpool_info()
        results = list(threads.map(fit, names, models))
        assert threadpool_info() == before
    for name, one in zip(names, results, strict=True):
        assert one == expected[name], name


def fit_in_child(name, answer):
    fitted = result(name)
    answer.put((fitted, [pool["num_threads"] for pool in threadpool_info()]))


def of_child(name):
    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=fit_in_child, args=(name, answer))
    child.start()
    try:
        return answer.get(timeout=60)
    finally:
        child.kill()
        child.join()


needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="there is no fork here",
)


@pytest.mark.slow
@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_forked_child_finds_the_same(name, expected):
    """After a fit in the parent, and while another thread of the parent has one BLAS thread."""
    at_work, done = threading.Event(), threading.Event()

    class Busy(type(MODELS[name])):
        def _extend(self, X):
            at_work.set()
            done.wait(60)
            return super()._extend(X)

    model = clone(MODELS[name])
    model.__class__ = Busy
    model.fit(DATA[name])
    with threadpool_limits(3):
        before = [pool["num_threads"] for pool in threadpool_info()]
        assert of_child(name) == (expected[name], before)
        thread = threading.Thread(target=model.predict, args=(DATA[name],))
        thread.start()
        try:
            assert at_work.wait(30)
            assert [pool["num_threads"] for pool in threadpool_info()] != before
            assert of_child(name) == (expected[name], before)
        finally:
            done.set()
            thread.join()
        assert [pool["num_threads"] for pool in threadpool_info()] == before
