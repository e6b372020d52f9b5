"""From a mixture of sources to the factors and weights that are kept."""

import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from nmfcluster._engine.executor import Plan
from nmfcluster._engine.loop import StopRule
from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import fuse, fusion_nmf, number_of_starts
from nmfcluster.fusion.objective import objective_of

both_forms = pytest.mark.parametrize("symmetric", [True, False])


def mixture_of(sources, seen=None):
    n = sources[0].shape[0]
    return make_mixture(sources, np.ones((n, len(sources)), bool) if seen is None else seen)


def fitted(sources, k, *, symmetric=True, criterion="kl", eta=0.3, seen=None, n_init=3, **options):
    stop = StopRule(options.pop("max_iter", 300), options.pop("tol", 1e-6))
    rest = {"n_jobs": None} | options
    n_init = number_of_starts(n_init, len(sources))
    plan = Plan(n_clusters=k, solver=fusion_nmf, stop=stop, n_init=n_init, **rest)
    objective = objective_of(mixture_of(sources, seen), criterion, eta)
    return fuse(objective, plan, np.random.RandomState(0), symmetric)


def blocks(rng, n, k):
    labels = rng.permutation(np.arange(n) % k)
    return (labels[:, None] == labels).astype(float), labels


def kernels(rng, n, gammas):
    X = rng.normal(size=(n, 2)) + 6 * np.eye(3)[np.arange(n) % 3][:, :2]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return [np.exp(-gamma * squares) for gamma in gammas]


def joint(fusion):
    """Return ``H diag(q)`` of what is kept."""
    return fusion.best.factors[0][-1]


def losses_of(fusion):
    return fusion.objective.source_losses(fusion.best.factors[0])


def model(fusion):
    """Return ``W H'`` pair by pair, from what is kept."""
    W, V = fusion.best.factors[0][0], joint(fusion)
    q = V.sum(axis=0)
    return sum(np.outer(W[:, c], V[:, c]) / q[c] for c in range(len(q)))


def divergence(P, M):
    P = P / P.sum()
    return sum(P[i, j] * np.log(P[i, j] / M[i, j]) for i, j in np.argwhere(P > 0))


def test_criteria_differ_by_the_entropy_of_a_source():
    sources = kernels(np.random.default_rng(0), 12, [0.1, 1.0])
    Z = np.random.default_rng(1).uniform(size=(1, 12, 3))
    Z /= Z.sum()
    losses = {
        name: objective_of(mixture_of(sources), name, 1.0).source_losses(Z)
        for name in ("kl", "cross_entropy")
    }
    M = Z[0] / Z[0].sum(axis=0) @ Z[0].T
    for number, S in enumerate(sources):
        P = S / S.sum()
        cross = -sum(p * np.log(m) for p, m in zip(P.ravel(), M.ravel(), strict=True))
        assert_allclose(losses["cross_entropy"][number], cross, rtol=1e-12)
        assert_allclose(losses["kl"][number], divergence(S, M), rtol=1e-10)


def test_source_that_saw_some_objects_knows_nothing_of_others_by_cross_entropy():
    """A source that is uniform on half of the objects loses what one that is so on all loses."""
    n = 10
    seen = np.ones((n, 2), dtype=bool)
    seen[5:, 1] = False
    half = np.outer(seen[:, 1], seen[:, 1]).astype(float)
    objective = objective_of(mixture_of([np.ones((n, n)), half], seen), "cross_entropy", 1.0)
    Z = np.full((1, n, 1), 1 / n)
    assert_allclose(objective.source_losses(Z), [2 * np.log(n)] * 2, rtol=1e-12)
    kl = objective_of(objective.mixture, "kl", 1.0)
    assert_allclose(kl.source_losses(Z), 0, atol=1e-12)


@both_forms
def test_what_is_kept_is_the_best_start(symmetric):
    sources = kernels(np.random.default_rng(2), 40, [0.1, 3.0])
    fusion = fitted(sources, 6, symmetric=symmetric, n_init=6)
    ends = [curve[-1] for curve in fusion.curves]
    assert len(ends) == 4  # there are no more
    assert len(set(ends)) > 1
    assert fusion.best.loss == ends[0] == min(ends)
    for curve in fusion.curves:
        assert (np.diff(curve) <= 0).all()
    Z, weights = fusion.best.factors
    assert Z.shape == (1 if symmetric else 2, 40, 6)
    losses = [divergence(S, model(fusion)) for S in sources]
    assert_allclose(losses_of(fusion), losses, rtol=1e-9)
    assert_allclose(
        weights, np.exp(-np.array(losses) / 0.3) / np.exp(-np.array(losses) / 0.3).sum()
    )
    assert_allclose(fusion.best.loss, -0.3 * np.log(np.exp(-np.array(losses) / 0.3).mean()))
    assert_allclose(fusion.core, np.diag(joint(fusion).sum(axis=0)))
    assert_allclose(joint(fusion).sum(), 1)
    assert fusion.scale == fusion.objective.constant


@both_forms
def test_result_does_not_depend_on_the_number_of_jobs(symmetric):
    sources = kernels(np.random.default_rng(3), 40, [0.1, 3.0])
    one, two = (fitted(sources, 4, symmetric=symmetric, n_jobs=jobs, n_init=4) for jobs in (1, 2))
    assert_array_equal(joint(one), joint(two))
    for mine, theirs in zip(one.curves, two.curves, strict=True):
        assert_array_equal(mine, theirs)


@both_forms
@pytest.mark.parametrize(("storage", "k"), [(np.asarray, 1), (np.asarray, 4), (sp.csr_array, 2)])
def test_blocks_are_found_exactly(symmetric, storage, k):
    S, labels = blocks(np.random.default_rng(k), 24, k)
    fusion = fitted([storage(S)], k, symmetric=symmetric, tol=1e-9)
    assert_allclose(losses_of(fusion), 0, atol=1e-6)
    assert adjusted_rand_score(labels, joint(fusion).argmax(axis=1)) == 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_matrix_of_the_models_form_is_fitted(k):
    rng = np.random.default_rng(k)
    H = rng.uniform(size=(30, k)) * (rng.uniform(size=(30, k)) < 0.6) + 0.01
    P = H * rng.uniform(0.5, 1, size=k) @ H.T
    fusion = fitted([P], k, tol=0, max_iter=3000, n_init=2)
    assert divergence(P, model(fusion)) < 1e-6


@both_forms
def test_one_cluster_is_the_model_of_independent_objects(symmetric):
    rng = np.random.default_rng(5)
    sources = [S * rng.uniform(0.5, 1, (20, 1)) for S in kernels(rng, 20, [0.1, 1.0])]
    sources = [S + S.T for S in sources]
    fusion = fitted(sources, 1, symmetric=symmetric)
    weights = fusion.best.factors[1]
    share = sum(w * S.sum(axis=0) / S.sum() for w, S in zip(weights, sources, strict=True))
    assert_allclose(joint(fusion)[:, 0], share, atol=1e-6)
    assert_allclose(fusion.core, [[1.0]])


def test_result_does_not_depend_on_the_storage_or_scale_of_sources():
    rng = np.random.default_rng(6)
    sources = [S * (S > 0.1) for S in kernels(rng, 40, [0.1, 1.0, 3.0])]
    want = fitted(sources, 3)
    for other in (
        [sp.csr_array(S) for S in sources],
        [sources[0], *(sp.csr_array(S) for S in sources[1:])],
        [1000 * sources[0], sources[1] / 7, sources[2]],
    ):
        fusion = fitted(other, 3)
        assert_allclose(fusion.best.loss, want.best.loss, rtol=1e-8)
        assert_allclose(fusion.best.factors[1], want.best.factors[1], atol=1e-6)


def test_order_of_sources_and_objects_does_not_matter():
    rng = np.random.default_rng(7)
    sources = kernels(rng, 40, [0.1, 1.0, 3.0])
    want = fitted(sources, 3)
    fusion = fitted(sources[::-1], 3)
    assert_allclose(fusion.best.factors[1][::-1], want.best.factors[1], atol=1e-6)
    assert_allclose(losses_of(fusion)[::-1], losses_of(want), atol=1e-6)
    order = rng.permutation(40)
    fusion = fitted([S[np.ix_(order, order)] for S in sources], 3)
    assert_allclose(fusion.best.loss, want.best.loss, atol=1e-6)
    one, other = joint(fusion).argmax(axis=1), joint(want).argmax(axis=1)[order]
    assert adjusted_rand_score(one, other) == 1


def test_float32_finds_what_float64_finds():
    sources = kernels(np.random.default_rng(8), 60, [0.1, 1.0])
    for storage in (np.asarray, sp.csr_array):
        double = fitted([storage(S) for S in sources], 3)
        single = fitted([storage(S.astype(np.float32)) for S in sources], 3)
        assert joint(single).dtype == np.float32
        assert_allclose(single.best.loss, double.best.loss, atol=1e-5)
        assert_allclose(single.best.factors[1], double.best.factors[1], atol=1e-4)


def extremes(rng, n):
    far = np.exp(-np.linspace(0, 690, n * n).reshape(n, n))  # down to 1e-300
    lonely = np.zeros((n, n))
    lonely[: n // 2, : n // 2] = kernels(rng, n // 2, [0.3])[0]
    isolated = kernels(rng, n, [0.3])[0]
    isolated[:3], isolated[:, :3] = 0, 0
    return {
        "far": [far + far.T, np.ones((n, n))],
        "narrow": kernels(rng, n, [1e4, 1e8]),
        "nearly the identity": [np.eye(n) + 1e-12, np.eye(n)],
        "identity": [np.eye(n)],
        "one entry": [np.diag(np.eye(n)[0]), np.ones((n, n))],
        "half": [lonely, isolated],
        "uniform": [np.ones((n, n)), np.ones((n, n))],
        "tiny": [1e-290 * S for S in kernels(rng, n, [0.1, 1e3])],
        "small": [1e-30 * S for S in kernels(rng, n, [0.1, 1.0])],
    }


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in extremes(np.random.default_rng(0), 12)
        for dtype in (np.float64, np.float32)
        if (name, dtype) != ("tiny", np.float32)  # 0 in float32, which is no source
    ],
)
def test_extreme_sources_give_finite_factors_without_a_warning(name, dtype):
    sources = [S.astype(dtype) for S in extremes(np.random.default_rng(0), 12)[name]]
    for number, (k, eta) in enumerate(product((1, 12), (0, 0.3, np.inf))):
        storage = (np.asarray, sp.csr_array)[number % 2]  # in turn, for each k
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fusion = fitted(
                [storage(S) for S in sources],
                k,
                eta=eta,
                symmetric=number % 4 < 2,
                n_init=2,
                max_iter=3,
                tol=1e-5,
            )
        assert np.isfinite(fusion.best.factors[0]).all()
        assert np.isfinite(losses_of(fusion)).all()
        assert all((np.diff(curve) <= 0).all() for curve in fusion.curves)
        assert_allclose(fusion.best.factors[1].sum(), 1)
        assert_allclose(fusion.best.factors[0].sum(axis=(1, 2)), 1, rtol=1e-5)


def test_runs_on_sources_that_disagree_in_what_they_saw():
    """The groups are fusion though no source saw all objects, and some saw few in common."""
    rng = np.random.default_rng(9)
    n = 60
    labels = np.arange(n) % 3
    S = (labels[:, None] == labels) + 0.05
    seen = np.stack([np.arange(n) < 40, np.arange(n) >= 20, np.arange(n) % 2 == 0], axis=1)
    sources = [np.where(np.outer(s, s), S * rng.uniform(0.9, 1.1), 0) for s in seen.T]
    for criterion in ("relative", "kl", "cross_entropy"):
        fusion = fitted(sources, 3, seen=seen, criterion=criterion)
        assert adjusted_rand_score(labels, joint(fusion).argmax(axis=1)) == 1


def test_a_run_has_ten_updates_however_little_they_gain():
    fusion = fitted(kernels(np.random.default_rng(0), 12, [0.3]), 2, tol=1e9)
    assert [len(curve) - 1 for curve in fusion.curves] == [10]


def test_progress_is_said_in_lines(caplog):
    caplog.set_level("INFO", "nmfcluster")
    sources = kernels(np.random.default_rng(10), 20, [0.1, 1.0])
    fusion = fitted(sources, 2)
    lines = [line.partition(": ")[2] for line in caplog.messages]
    assert lines[0].startswith("20 objects, 2 sources, 1 start")
    assert any(line.startswith("20 objects, 2 sources, 2 starts") for line in lines)
    assert any(f"{fusion.best.loss:.6g}" in line for line in lines)
