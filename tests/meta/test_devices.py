"""Fits of arrays of other libraries than numpy: they come back where X is, and say the same.

SciPy reads `SCIPY_ARRAY_API` when it is imported: all tests but one run in a process of their own,
which that one starts.
"""

import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from unittest import SkipTest

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster._utils.array_api import library_of, to_numpy
from nmfcluster.display import BiclusterDisplay, ConsensusMatrixDisplay
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.model_selection import choose_n_clusters

strict = pytest.importorskip("array_api_strict")

DISPATCHES = os.environ.get("SCIPY_ARRAY_API") == "1"
there = pytest.mark.skipif(not DISPATCHES, reason="runs in a process that dispatches")

CHECKS = (
    "check_array_api_input",
    "check_array_api_mixed_inputs",
    "check_array_api_same_namespace",
)
LOSSES = ("frobenius", "kullback-leibler")


def torch_of(X):
    torch = pytest.importorskip("torch")
    if sp.issparse(X):
        return torch.sparse_csr_tensor(X.indptr, X.indices, X.data, X.shape)
    return torch.tensor(X)


def table(loss, dtype=np.float64):
    """Return a table of four clusters that are apart, with noise."""
    rng = np.random.default_rng(0)
    W, H = np.kron(np.eye(4), np.ones((10, 1))), rng.gamma(0.5, 4, size=(4, 25))
    means = W * rng.uniform(1, 2, size=W.shape) @ H + 0.1
    X = (
        rng.poisson(5 * means)
        if loss == LOSSES[1]
        else means + rng.uniform(0, 1, size=means.shape)
    )
    return X.astype(dtype)


def model(**parameters):
    return NMFMetaCluster(
        4, **{"n_estimators": 3, "n_init": 1, "random_state": 0} | parameters
    )


@pytest.mark.slow
@pytest.mark.skipif(DISPATCHES, reason="is that process")
def test_in_a_process_that_dispatches():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        __file__,
    ]
    run = subprocess.run(
        command,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    assert " passed" in run.stdout


KINDS = {
    "strict": (strict.asarray, {}),
    "torch": (torch_of, {}),
    "whole": (torch_of, {"resample": None}),
    "sparse": (lambda X: torch_of(sp.csr_array(X)), {}),
    "missing": (torch_of, {}),
    "fixed": (strict.asarray, {"fixed_components": table("frobenius")[[0, 39]]}),
    "one by one": (strict.asarray, {"memory": "runs"}),
    "columns": (strict.asarray, {"meta": "nmf"}),
    "penalty": (strict.asarray, {"sparsity": 0.05}),
    "known": (strict.asarray, {"fixed_components": table("frobenius")[::10]}),
    "known, sparse": (
        lambda X: torch_of(sp.csr_array(X)),
        {"fixed_components": table("frobenius")[::10]},
    ),
}


@there
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_fit_there_is_that_of_numpy(kind, loss, dtype, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    to_library, parameters = KINDS[kind]
    if loss != "frobenius" and kind in ("penalty", "columns"):
        pytest.skip(
            "a penalty needs squares, and the ways of metaclustering are the same"
        )
    X = table(loss, dtype)
    if kind == "missing":
        X[::7, ::5] = np.nan
    expected = model(loss=loss, **parameters).fit(
        sp.csr_array(X) if "sparse" in kind else X
    )
    Y = to_library(X)
    with config_context(array_api_dispatch=True):
        found = model(loss=loss, **parameters).fit(Y)
        asked = {"transform": found.transform(Y), "predict": found.predict(Y)}
        back = found.inverse_transform(asked["transform"])
    for name in (
        "components_",
        "factor_",
        "membership_",
        "labels_",
        "recurrence_",
        "rows_",
    ):
        assert type(getattr(found, name)) is type(back)
        assert to_numpy(getattr(found, name)).dtype == getattr(expected, name).dtype, (
            name
        )
    assert_array_equal(to_numpy(found.labels_), expected.labels_)
    # a fit ends when its loss falls by less than tol, 1e-4: from there float32 is not told apart
    near = 1e-5 if dtype == np.float64 else 5e-3
    assert_allclose(to_numpy(found.components_), expected.components_, atol=near)
    assert_allclose(found.loss_, expected.loss_, rtol=near)
    assert_array_equal(to_numpy(asked["transform"]), to_numpy(found.factor_))
    assert_array_equal(to_numpy(asked["predict"]), expected.labels_)


@there
def test_what_is_asked_of_a_model_there_is_what_numpys_says():
    X = table("frobenius")
    here = model().fit(X)
    with config_context(array_api_dispatch=True):
        Y = strict.asarray(X)
        found = model().fit(Y)
        assert found.fit_predict(Y).device == Y.device
        names, weights = found.top_features(3)
        assert library_of(weights)
        assert_array_equal(to_numpy(names), here.top_features(3)[0])
        assert_allclose(
            to_numpy(found.feature_scores(Y)), here.feature_scores(X), atol=1e-5
        )
        assert_allclose(found.to_frames()[0], here.to_frames()[0], rtol=1e-3)
        fewer = found.without([0], Y)
        assert library_of(fewer.components_)
        assert fewer.components_.shape == (3, 25)
    assert not any(map(library_of, vars(here).values()))


@there
def test_groups_weights_and_fixed_components_may_be_of_the_library_too():
    X, groups, weights = table("frobenius"), np.arange(40) % 2, np.arange(40.0) % 3 + 1
    known = {"fixed_components": X[:1], "base_n_clusters": 4}
    expected = model(**known).fit(X, sample_weight=weights, groups=groups)
    known["fixed_components"] = strict.asarray(X[:1])
    with config_context(array_api_dispatch=True):
        Y, parts = strict.asarray(X), map(strict.asarray, (weights, groups))
        found = model(**known).fit(Y, None, *parts)
    assert_allclose(to_numpy(found.presence_), expected.presence_, rtol=1e-4)
    assert_array_equal(to_numpy(found.labels_), expected.labels_)


@there
def test_tensors_that_are_odd_are_read_or_refused_by_name():
    torch = pytest.importorskip("torch")
    X = table("frobenius")
    expected, T = model().fit(X), torch.tensor(X)
    with config_context(array_api_dispatch=True):
        for odd in (
            T.clone().requires_grad_(),
            torch.nn.Parameter(T),
            T.T.contiguous().T,
        ):
            assert_array_equal(to_numpy(model().fit(odd).labels_), expected.labels_)
        for odd in (T.bfloat16(), T.to_sparse_bsr((1, 1)), T.to("meta")):
            with raises_naming(TypeError, "cannot be read"):
                model().fit(odd)
        with pytest.raises(NotFittedError):
            model().transform(T)
        found = model().fit(T)
        assert ConsensusMatrixDisplay.from_estimator(found).ax_.has_data()
        assert clustering_accuracy(expected.labels_, found.labels_) == 1
        assert choose_n_clusters(NMFConsensus(3, n_estimators=3), X, [2, 3]).n_clusters_


@there
def test_a_model_on_a_device_answers_with_arrays_of_numpy_where_none_are_dispatched():
    X, on_device = (
        table("frobenius"),
        partial(strict.asarray, device=strict.Device("device1")),
    )
    with config_context(array_api_dispatch=True):
        Y = on_device(X)
        found = model().fit(Y)
        expected = to_numpy(found.transform(Y))
        assert found.components_.device == found.labels_.device == Y.device
    assert_array_equal(found.transform(X), expected)
    assert isinstance(found.top_features(2)[1], np.ndarray)
    assert BiclusterDisplay.from_estimator(found, X).ax_.has_data()
    with raises_naming(TypeError, "array_api_dispatch=True"):
        found.transform(Y)


@there
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks_of_arrays(check):
    n_made = 0
    # as many updates for all: lengths of curves are compared
    same = model(max_iter=20, tol=-1)
    for one in estimator_checks._yield_array_api_checks(same):
        if one.func.__name__ != check:
            continue
        try:
            one("NMFMetaCluster", same)
            n_made += 1
        except SkipTest:
            pass
    mixed_alone = check == "check_array_api_mixed_inputs" and find_spec("torch") is None
    assert n_made or mixed_alone  # which mixes several libraries


@there
def test_arrays_that_are_not_dispatched_become_numpys_with_a_warning():
    X = table("frobenius")
    with warns_naming(UserWarning, "array_api_dispatch=True"):
        found = model().fit(strict.asarray(X))
    assert_array_equal(found.components_, model().fit(X).components_)
    far = strict.asarray(X, device=strict.Device("device1"))
    with raises_naming(TypeError, "array_api_dispatch=True"):
        model().fit(far)


@there
def test_what_is_asked_from_elsewhere_and_sparse_tables_of_others_are_refused():
    X = table("frobenius")
    with config_context(array_api_dispatch=True):
        found = model().fit(strict.asarray(X))
        with raises_naming(ValueError, "predict()"):
            found.predict(X)
        with raises_naming(ValueError, "transform()"):
            model().fit(X).transform(strict.asarray(X))
        X[0, 0] = np.nan
        with raises_naming(TypeError, "X", "dense"):
            model().fit(strict.asarray(X))
        other = NMFConsensus(4, n_estimators=3).fit(strict.asarray(table("frobenius")))
        assert isinstance(other.labels_, np.ndarray)
