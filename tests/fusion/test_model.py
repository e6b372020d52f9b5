"""The model of pairs: its updates against loops over objects, what they promise, and its starts."""

import warnings
from itertools import islice, pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import literal_step
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import SolverConfig
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.metrics import adjusted_rand_score

from nmfcluster.fusion.kl_loss import FusionObjective
from nmfcluster.fusion.model import (
    SpectralStarts,
    em_step,
    extrapolate_steps,
    fit_fusion,
    fusion_nmf,
)

KINDS = ["kernel", "graph", "bipartite", "blocks", "hollow", "narrow"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def matrix_of(kind, rng, n):
    X = rng.normal(size=(n, 2)) + 6 * np.eye(3)[np.arange(n) % 3][:, :2]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    graph = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.3), 1)
    graph[0, 1] = 0.5
    cross = np.zeros((n, n))
    cross[: n // 3, n // 3 :] = rng.uniform(size=(n // 3, n - n // 3))
    labels = rng.permutation(np.arange(n) % 3)
    return {
        "kernel": np.exp(-0.1 * squares),
        "graph": graph + graph.T,
        "bipartite": cross + cross.T,
        "blocks": (labels[:, None] == labels) + 0.0,
        "hollow": np.ones((n, n)) - np.eye(n),
        "narrow": np.exp(-1e4 * squares),
    }[kind]


def objective_of(A, relative=False):
    return FusionObjective(A, relative, 0.0)


def starts_of(rng, n_starts, n, k, power=1):
    W = rng.uniform(0.05, 1, size=(n_starts, n, k)) ** power
    return W / W.sum(axis=(1, 2), keepdims=True)


def run(objective, W, n_updates):
    return list(islice(fusion_nmf(objective, W), n_updates + 1))


# --- a step --------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_step_is_that_of_loops_over_objects_and_keeps_the_margins(kind, storage):
    rng = np.random.default_rng(0)
    for k in (1, 3):
        A, W = matrix_of(kind, rng, 12), starts_of(rng, 1, 12, k)[0]
        after = em_step(objective_of(storage(A)), W)
        assert_allclose(after, literal_step(A / A.sum(), W), rtol=1e-10, atol=1e-17)
        assert_allclose(after.sum(axis=1), A.sum(axis=1) / A.sum(), atol=1e-15)


@pytest.mark.sampled(2)
@each_kind
@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_the_loss_never_rises(kind, seed):
    rng = np.random.default_rng(seed)
    A, k = matrix_of(kind, rng, 12), int(rng.integers(1, 5))
    objective = objective_of(A, relative=bool(seed % 2))
    W = starts_of(rng, 1, 12, k, power=3)
    one, losses = W[0], []
    for _ in range(4):
        losses.append(objective.loss(one))
        one = em_step(objective, one)
    for (factors,), loss in run(objective, W, 6):
        assert_allclose(factors.sum(axis=(1, 2)), 1, rtol=1e-12)
        assert factors.min() > 0
        # the second run begins where the first did
        losses.append(loss[0] - losses[0] + losses[3])
    for before, after in pairwise(losses):
        assert after <= before + 1e-12


def test_steps_end_where_a_general_solver_does():
    """No other search finds a model of a tiny matrix that is closer to it, nor does a step."""
    rng = np.random.default_rng(1)
    A = matrix_of("kernel", rng, 6)
    P = A / A.sum()

    def value(z):
        H = np.exp(z[:12].reshape(6, 2))
        H, q = H / H.sum(axis=0), np.exp(z[12:]) / np.exp(z[12:]).sum()
        return (P * np.log(P / ((H * q) @ H.T))).sum()

    least = min(
        minimize(value, rng.normal(size=14), method="BFGS").fun for _ in range(8)
    )
    config = SolverConfig(2, fusion_nmf, 4, 500, -1.0, None)
    found = fit_fusion(A, config, relative=False)
    # these stop where W is next to 0
    assert least - 1e-3 < found.best.loss <= least + 1e-9
    W = found.best.factors[0]
    assert_allclose(literal_step(P, W), W, atol=1e-6)


# --- steps that are extrapolated -----------------------------------------------------------------


def test_acceleration_jumps_to_the_limit_of_a_geometric_sequence():
    rng = np.random.default_rng(8)
    (start,) = starts_of(rng, 1, 6, 2)
    limit = start * rng.uniform(0.8, 1.2, size=start.shape)
    limit /= limit.sum()
    far, plain = extrapolate_steps(lambda W: limit + 0.9 * (W - limit), start)
    assert_allclose(far, limit, rtol=1e-12)
    assert_allclose(plain, limit + 0.81 * (start - limit), rtol=1e-14)


def test_acceleration_takes_no_entry_away():
    """An entry of 0 would stay 0, whatever comes: one that runs ahead to below it is halved."""
    start, visited = np.full((4, 1), 0.25), []
    limit = np.array([[0.5], [0.4], [0.2], [-0.1]])

    def step(W):
        visited.append(W)
        return limit + 0.9 * (W - limit)

    _, plain = extrapolate_steps(step, start)
    want = np.maximum(limit, plain / 2)
    assert_allclose(visited[-1], want / want.sum())


def test_what_was_yielded_is_not_written_to_later():
    rng = np.random.default_rng(6)
    W = starts_of(rng, 1, 15, 3)
    steps = fusion_nmf(objective_of(matrix_of("kernel", rng, 15)), W)
    before = [(factors, factors.copy()) for (factors,), _ in islice(steps, 12)]
    for factors, copy in before:
        assert_array_equal(factors, copy)


# --- where runs start ----------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_starts_on_blocks_are_the_degrees_of_objects_in_their_own(storage, monkeypatch):
    """Objects of a block have one degree, w (m - 1); its eigenvector is constant."""
    sizes, heights = [4, 7, 12], [3.0, 1.0, 0.2]
    labels = np.repeat(np.arange(3), sizes)
    S = (labels[:, None] == labels) * np.repeat(heights, sizes)
    degrees = [S[i].sum() - S[i, i] for i in range(23)]
    monkeypatch.setattr("nmfcluster.fusion.model._WARM_UP", 0)
    starts = SpectralStarts(storage(S), 3)
    for by_kmeans in (False, True):
        W = starts.start(objective_of(storage(S)), by_kmeans)
        # columns in the order of the blocks
        W = W[:, np.argmax(W[[0, 4, 11]], axis=1)]
        expected = np.eye(3)[labels] * np.array(degrees)[:, None] / np.sum(degrees)
        assert_allclose(W, expected, atol=0.1 * expected.max())
        assert W.min() > 0


def test_a_start_is_some_steps_from_its_origin(monkeypatch):
    rng = np.random.default_rng(2)
    A = matrix_of("kernel", rng, 15)
    objective, starts = objective_of(A), SpectralStarts(A, 3)
    for by_kmeans in (False, True):
        start = starts.start(objective, by_kmeans)
        with monkeypatch.context() as patch:
            patch.setattr("nmfcluster.fusion.model._WARM_UP", 0)
            W = starts.start(objective, by_kmeans)
        for _ in range(5):
            W = literal_step(A / A.sum(), W)
        assert_allclose(start, W, rtol=1e-6, atol=1e-15)


def test_objects_similar_to_themselves_alone_start_alike():
    A = np.eye(5, dtype=np.float32)
    W = SpectralStarts(A, 3).start(objective_of(A), False)
    assert W.dtype == np.float32
    assert_array_equal(W, W[0, 0])


# --- what is kept --------------------------------------------------------------------------------


def fitted(
    A, k, *, relative=True, n_init=2, alone=(), before=None, n_jobs=None, **stop
):
    config = SolverConfig(
        k,
        fusion_nmf,
        n_init,
        n_jobs=n_jobs,
        **{"max_iter": 300, "tol": 1e-6} | stop,
    )
    return fit_fusion(
        A, config, relative=relative, single_matrices=alone, previous=before
    )


def test_the_smallest_loss_is_kept_whichever_start_has_it():
    rng = np.random.default_rng(2)
    A, others = (
        matrix_of("kernel", rng, 40),
        [matrix_of("kernel", rng, 40) for _ in range(3)],
    )
    fusion = fitted(A, 6, n_init=9, alone=others, tol=-1.0, max_iter=30)
    ends = [curve[-1] for curve in fusion.curves]
    assert len(ends) == 5  # there are no more
    assert len(set(ends)) > 1
    assert fusion.best.loss == ends[0] == min(ends)
    W = fusion.best.factors[0]
    assert_allclose(fusion.objective.loss(W), fusion.best.loss, rtol=1e-12)
    assert_allclose(fusion.posterior(W.dtype).sum(axis=1), 1)
    assert fusion.scale == fusion.objective.constant == 1
    again = fitted(A, 6, n_init=1, before=W)  # from where it ended
    assert len(again.curves) == 1
    assert again.curves[0][0] <= fusion.best.loss + 1e-12


def test_a_start_that_is_given_up_is_not_kept():
    rng = np.random.default_rng(4)
    A = matrix_of("blocks", rng, 30)
    fusion = fitted(
        A, 3, n_init=5, alone=[matrix_of("graph", rng, 30) for _ in range(3)]
    )
    lengths = [len(curve) for curve in fusion.curves]
    assert fusion.best.loss < 1e-6
    assert lengths[0] > 10  # a run has ten updates, however little they gain
    assert max(lengths[1:]) <= 4  # these did not beat it after three


def test_the_result_does_not_depend_on_the_number_of_jobs():
    rng = np.random.default_rng(3)
    A, others = (
        matrix_of("kernel", rng, 40),
        [matrix_of("graph", rng, 40) for _ in range(3)],
    )
    one, two = (fitted(A, 4, alone=others, n_init=5, n_jobs=jobs) for jobs in (1, 2))
    assert_array_equal(one.best.factors[0], two.best.factors[0])
    for mine, theirs in zip(one.curves, two.curves, strict=True):
        assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("storage", "k"), [(np.asarray, 1), (np.asarray, 4), (sp.csr_array, 2)]
)
def test_blocks_are_found_exactly(storage, k):
    labels = np.random.default_rng(k).permutation(np.arange(24) % k)
    fusion = fitted(
        storage((labels[:, None] == labels) + 0.0), k, relative=False, tol=1e-9
    )
    assert_allclose(fusion.best.loss, 0, atol=1e-6)
    assert adjusted_rand_score(labels, fusion.best.factors[0].argmax(axis=1)) == 1


def extremes(n, dtype):
    far = np.exp(-np.linspace(0, 690, n * n).reshape(n, n))  # down to 1e-300
    isolated = matrix_of("kernel", np.random.default_rng(0), n)
    isolated[:3], isolated[:, :3] = 0, 0
    yield from (
        np.eye(n),
        np.eye(n) + 1e-12,
        np.diag(np.eye(n)[0]),
        np.ones((n, n)),
        isolated,
    )
    yield from (far + far.T, isolated * 1e-30)
    if dtype == np.float64:  # 0 in float32
        yield isolated * 1e-290


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extreme_matrices_give_finite_factors_without_a_warning(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for A, k in product(extremes(12, dtype), (1, 5)):
            for storage in (np.asarray, sp.csr_array):
                with np.errstate(under="ignore"):
                    fusion = fitted(storage(A.astype(dtype)), k, max_iter=3)
                W = fusion.best.factors[0]
                assert W.dtype == dtype
                assert W.min() > 0
                assert_allclose(W.sum(), 1, rtol=1e-5)
                assert np.isfinite(fusion.best.loss)
