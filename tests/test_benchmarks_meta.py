"""What the questions of metaclustering compute beside the runs, and how these are timed."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import fresh
from benchmarks.datasets import expression
from benchmarks.methods import cnmf, metacluster, nmf_runs, peer_tensorly
from benchmarks.methods.plain_hals import plain_hals
from benchmarks.questions import (
    _meta_planted,
    _meta_runs,
    _meta_tensor,
    _meta_tumours,
    meta_scale,
)
from nmfcluster._engine.loop import StopRule, iterate
from nmfcluster.datasets import make_biclusters
from nmfcluster.meta.solvers import hals
from nmfcluster.meta.squares import MatrixObjective

pytestmark = pytest.mark.slow  # together


def test_consensus_of_parts_leaves_outliers_out():
    rng = np.random.default_rng(0)
    parts = np.array([[1.0, 1, 0, 0], [0, 0, 3, 4]])
    W = rng.uniform(size=(6, 2))
    runs = [nmf_runs.NMFRun(W, parts[rng.permutation(2)] * (1 + i), 0.0) for i in range(9)]
    # The parts of this run are unlike all others: they have no neighbours.
    runs.append(nmf_runs.NMFRun(W, np.array([[0.0, 1, 1, 0], [1.0, 0, 0, 0]]), 1.0))
    actual, H = cnmf.consensus(W @ parts, runs, 2, 0)
    order = H[:, 0].argsort()[::-1]
    lengths = np.linalg.norm(parts, axis=1)
    np.testing.assert_allclose(H[order], parts / lengths[:, None], atol=1e-12)
    np.testing.assert_allclose(actual[:, order], W * lengths, atol=1e-9)


def test_plain_hals_descends():
    X, _, _ = make_biclusters(random_state=0)
    F = np.random.default_rng(0).uniform(size=(3, 4, sum(X.shape)))
    objective = MatrixObjective(X)
    for end in iterate(partial(plain_hals, objective, F), StopRule(50, tol=-1), scale=1):
        W, H = end.factors
        assert end.loss == pytest.approx(((X - W @ H) ** 2).sum() / 2, abs=1e-9)
        assert (np.diff(end.history) <= 1e-12 * objective.constant).all()
        assert end.loss < end.history[0] / 2


def test_clusters_of_columns_as_factors():
    X, W, H = make_biclusters(random_state=0)
    runs = _meta_planted.object_runs("k-means", X, 4, 3, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(runs.H, axis=1), 1)
    assert (np.diff(runs.losses) >= 0).all()
    for own, loss in zip(runs.slices(), runs.losses, strict=True):
        model = runs.W[own].T @ runs.H[own]  # each column is the mean of its cluster
        labels = runs.H[own].argmax(axis=0)
        means = np.stack([X[:, labels == c].mean(axis=1) for c in range(4)], axis=1)
        np.testing.assert_allclose(model, means[:, labels], atol=1e-9)
        assert loss == pytest.approx(((X - model) ** 2).sum() / 2)
    told = _meta_planted.Planted(X, W, H).scores(W[:, ::-1], H[::-1])
    assert told == pytest.approx({"match": 1, "match of biclusters": 1, "error": 0})


def test_misplaced_samples_are_named():
    y = np.array([0, 0, 0, 1, 1, 1])
    data = expression.Expression("toy", y, y, samples=tuple("abcdef"), classes=("x", "y"))
    runs = [_meta_tumours._told(y, np.array([1, 1, 0, 0, 0, i])) for i in (0, 0, 1)]
    own = dict.fromkeys((*_meta_tumours.TAKERS, _meta_tumours.BEST), runs)
    row = _meta_tumours.misplaced({("toy", "raw"): own}, {"toy": data})[0]
    assert (row["samples"], row["which"]) == (1, "c")  # f is misplaced in one run of three only


def test_updates_that_reach_a_loss():
    X = make_biclusters(noise=0.25, random_state=0)[0]
    case = _meta_runs.make_case("toy", X, 4, 3)
    ends = [s.factors for s in _meta_runs.solve(case, hals, 30, -1)]
    direct = np.array([((X - W @ H) ** 2).sum() for W, H in ends]) / (X**2).sum()
    assert _meta_runs.losses(case, ends) == pytest.approx(direct)
    targets = {"mean": 1.05 * direct.mean(), "median": 1.05 * np.median(direct)}
    for which, n in _meta_runs.updates_to(case, hals, targets).items():
        at, before = (_meta_runs.time_ours(case, hals, m, -1, 0)[1] for m in (n, n - 1))
        summary = getattr(np, which)
        assert summary(at) <= targets[which] < summary(before)
    assert _meta_runs.updates_to(case, plain_hals, {"mean": 0.0}) == {"mean": None}


def test_timed_runs_all_go_on_to_their_own_stop():
    X = make_biclusters((20, 40), 4, noise=_meta_runs.NOISE, random_state=0)[0]
    case = _meta_runs.make_case("toy", X, 4, 12)
    ends = _meta_runs.solve(case, hals, *_meta_runs.OWN_END)
    assert all(end.converged and not end.given_up for end in ends)


def _literal_update(T, factors):
    """Return the factors after each was updated in turn by eq. 15 of Badea (2005)."""
    factors = list(factors)
    for mode in range(3):
        others = [F for i, F in enumerate(factors) if i != mode]
        unfolded = np.moveaxis(T, mode, 0)
        up = np.einsum("iab,ak,bk->ik", unfolded, *others)
        gram = (others[0].T @ others[0]) * (others[1].T @ others[1])
        factors[mode] = factors[mode] * up / (factors[mode] @ gram)
    return factors


def test_tensor_factorization_beside_the_dense_tensor():
    runs = _meta_tensor.make_runs((12, 15), 3, 3, np.float64)
    T = runs.W[:, :, None] * runs.H[:, None, :]
    start = _meta_tensor.random_start(runs, 3, np.random.RandomState(0))
    _, end = _meta_tensor.ours(runs, start, 40, -1)
    model = np.einsum("jk,sk,kg->jsg", *end.factors)
    assert end.loss == pytest.approx(((T - model) ** 2).sum() / 2)
    if peer_tensorly.reason():
        pytest.skip(peer_tensorly.reason())
    rng = np.random.default_rng(0)
    factors = tuple(rng.uniform(0.5, 1, size=(n, 3)) for n in T.shape)
    seconds, errors = peer_tensorly.factorize(runs, factors, "tensorly, mu", 2)
    expected = []
    for _ in range(2):
        factors = _literal_update(T, factors)
        rest = T - np.einsum("jk,sk,gk->jsg", *factors)
        expected.append(np.linalg.norm(rest) / np.linalg.norm(T))
    np.testing.assert_allclose(errors, expected, rtol=1e-6)
    assert seconds > 0


def test_whole_fits(tmp_path):
    for name in ("planted, 20 x 30", "documents, 30 x 60"):
        shape = (20, 30) if name.startswith("planted") else (30, 60)
        stored = meta_scale.save_table(tmp_path / "table.npz", name, shape, 3)
        assert stored > 0
        arguments = (str(tmp_path / "table.npz"), "3", "4", "0")
        actual = meta_scale.fit_ours(*arguments) | meta_scale.fit_sklearn(*arguments)
        assert set(actual) == {meta_scale.OURS, meta_scale.SKLEARN, meta_scale.CNMF}
        X = fresh.read(tmp_path / "table.npz")[0]
        model = metacluster.fit(X, 3, 0, n_estimators=4, n_jobs=2)
        size = np.sqrt((X.multiply(X) if sp.issparse(X) else X**2).sum())
        expected = model.reconstruction_err_ / size
        assert actual[meta_scale.OURS]["relative error"] == pytest.approx(expected)
        assert all(told["relative error"] < 1 and told["s"] > 0 for told in actual.values())
