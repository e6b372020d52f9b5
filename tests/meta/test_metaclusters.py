"""From runs to metaclusters and to the last factorization: cases whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
from internals import format_count
from meta.cases import (
    begin,
    ends,
    equal_runs,
    multiplicative,
    plan_of,
    planted,
    random_runs,
    solution,
    solved,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from nmfcluster.datasets import make_biclusters
from nmfcluster.meta import runs as meta_runs
from nmfcluster.meta.runs import (
    WAYS,
    Metaclusters,
    Runs,
    metacluster_runs,
    refine,
    run_many,
)
from nmfcluster.meta.squares import MatrixObjective, hals, least_squares_rows
from nmfcluster.metrics import match_components

every_way = pytest.mark.parametrize("how", ["ptf", "nmf"])


def clustered(how, runs, plan):
    return metacluster_runs(how, runs, plan)


# --- metaclusters ------------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("k", [1, 4])
def test_equal_runs_correspond_one_to_one(how, k):
    rng = np.random.default_rng(k)
    W, H = planted(rng, k, 15, 22)
    runs, which = equal_runs(rng, W, H, 6)
    [metaclusters] = clustered(how, runs, plan_of(k))
    columns = H / np.linalg.norm(H, axis=1, keepdims=True)
    order = (metaclusters.columns @ columns.T).argmax(axis=1)
    assert sorted(order) == list(range(k))
    assert_allclose(metaclusters.columns, columns[order], atol=1e-4)
    assert_allclose(metaclusters.correspondence, which[:, None] == order, atol=1e-3)
    for own in runs.slices():
        block = metaclusters.correspondence[own].round(3)
        assert_array_equal(block.sum(axis=0), 1)
        assert_array_equal(block.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("how", "n_init", "n_starts"), [("ptf", 1, 1), ("ptf", 9, 5), ("nmf", 9, 5)]
)
def test_every_run_is_at_most_one_start(how, n_init, n_starts, caplog):
    caplog.set_level("INFO", "nmfcluster")
    clustered(
        how,
        random_runs(np.random.default_rng(2), [3] * 5),
        plan_of(3, n_init=n_init, max_iter=2),
    )
    assert f", {format_count(n_starts, 'start')}" in caplog.messages[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("how", "dtype"), [("ptf", np.float64), ("nmf", np.float32)])
def test_metaclusters_of_runs_of_different_sizes(how, dtype):
    rng = np.random.default_rng(3)
    runs = random_runs(rng, [2, 5, 3, 4, 3])
    runs = replace(runs, W=runs.W.astype(dtype), H=runs.H.astype(dtype))
    optima = clustered(how, runs, plan_of(4, n_init=9))
    for metaclusters in optima:
        assert metaclusters.correspondence.shape == (17, 4)
        assert metaclusters.columns.shape == (4, 9)
        assert metaclusters.columns.dtype == dtype
        assert min(metaclusters.correspondence.min(), metaclusters.columns.min()) >= 0
        assert_allclose(metaclusters.correspondence.sum(axis=0), 5, rtol=1e-5)
        assert_allclose(np.linalg.norm(metaclusters.columns, axis=1), 1, rtol=1e-5)


def test_metaclusters_by_nmf_are_a_factorization_of_the_columns():
    rng = np.random.default_rng(4)
    runs = random_runs(rng, [4] * 6)
    optima = clustered("nmf", runs, plan_of(4))
    fits = [least_squares_rows(runs.H, metaclusters.columns) for metaclusters in optima]
    for metaclusters, fit in zip(optima, fits, strict=True):
        assert_allclose(
            metaclusters.correspondence, fit * (6 / fit.sum(axis=0)), atol=1e-6
        )
    losses = [
        ((runs.H - fit @ metaclusters.columns) ** 2).sum() / 2
        for metaclusters, fit in zip(optima, fits, strict=True)
    ]
    assert (np.diff(losses) > 1e-4 * (runs.H**2).sum() / 2).all()  # each of them once
    steps = hals(MatrixObjective(runs.H), begin(rng, 5, 4, 24, 9))
    best = min(end.loss for end in solved(steps, 200))
    assert len(losses) > 1
    assert_allclose(losses[0], best, rtol=1e-6)


def test_way_of_metaclustering_is_the_one_asked_for():
    runs = random_runs(np.random.default_rng(6), [3] * 5)
    plan = plan_of(3, max_iter=100)
    ways = {}
    for how in WAYS:
        first, again = (clustered(how, runs, plan) for _ in range(2))
        for one, other in zip(first, again, strict=True):
            assert_array_equal(one.columns, other.columns)
            assert_array_equal(one.correspondence, other.correspondence)
        ways[how] = first[0].correspondence
    assert abs(ways["ptf"] - ways["nmf"]).max() > 0.01


def test_biclusters_with_the_same_columns_are_told_apart_by_tensors_alone():
    rng = np.random.default_rng(7)
    W, H = planted(rng, 3, 18, 30)
    H[1] = H[0]
    W[3:10, 0] = W[10:, 1] = 0  # and have no row in common
    orders = [rng.permutation(3) for _ in range(8)]
    noisy = [H * rng.uniform(0.7, 1.3, size=H.shape) for _ in orders]
    runs = Runs.of(
        [solution(W[:, o], N[o]) for o, N in zip(orders, noisy, strict=True)]
    )
    consistent = {}
    for how in ("ptf", "nmf"):
        [best, *_] = clustered(how, runs, plan_of(3))
        blocks = best.correspondence.reshape(8, 3, 3)
        same = np.array(
            [o[block.argmax(axis=0)] for o, block in zip(orders, blocks, strict=True)]
        )
        consistent[how] = (same == same[0]).all() and sorted(same[0]) == [0, 1, 2]
    assert consistent == {"ptf": True, "nmf": False}


@pytest.mark.sampled(2)
@every_way
def test_metaclusters_do_not_depend_on_the_scale_of_the_runs(how):
    runs = random_runs(np.random.default_rng(8), [3] * 5)
    same, scaled = (
        clustered(how, replace(runs, W=runs.W * s), plan_of(3)) for s in (1, 2.0**-20)
    )
    for one, other in zip(same, scaled, strict=True):
        assert_array_equal(one.columns, other.columns)
        assert_array_equal(one.correspondence, other.correspondence)


def test_optima_that_differ_by_rounding_are_one_and_have_ten_updates_at_least(
    monkeypatch,
):
    """By less than 1e-4 of the loss of zero factors, 2.5."""
    losses = np.array([5.0008, 5.0, 5.0001, 5.0002, 5.0003])
    n_updates = []

    def stand_still(objective, F):
        assert objective.constant == 2.5
        for n in range(100):
            n_updates.append(n)
            C = np.arange(5.0)[:, None, None] + 1  # which start it is
            yield (np.ones((5, 5, 1)), C), losses

    monkeypatch.setattr(meta_runs, "hals", stand_still)
    ones = np.ones((5, 1))
    runs = Runs(ones, ones, np.ones(5, dtype=int), losses, losses > 0)
    optima = clustered("nmf", runs, plan_of(1))
    assert len(optima) == 2
    assert n_updates == list(range(11))


def test_starts_are_lifted_by_a_twentieth_of_their_mean(monkeypatch):
    seen = []
    solver = meta_runs.tensor_hals

    def remember(objective, F):
        seen.append(F)
        return solver(objective, F)

    monkeypatch.setattr(meta_runs, "tensor_hals", remember)
    W, H = np.array([[1.0, 0.0]]), np.array([[0.0, 2.0, 4.0]])
    for dtype in (np.float64, np.float32):
        runs = Runs(W.astype(dtype), H.astype(dtype), np.ones(1, int), *np.ones((2, 1)))
        clustered("ptf", runs, plan_of(1))
        assert_allclose(seen[-1], [[[1.025, 0.025, 0.1, 2.1, 4.1]]])
        assert seen[-1].dtype == dtype


# --- the last factorization --------------------------------------------------------------------


def refined(objective, plan, columns):
    only = Metaclusters(np.ones((1, len(columns))), columns)
    kept, end = refine(objective, plan, [only])
    assert kept is only
    return end


def test_metaclusters_that_lead_to_the_smallest_loss_are_kept():
    rng = np.random.default_rng(9)
    X = rng.uniform(size=(10, 12))
    candidates = [
        Metaclusters(np.ones((1, 3)), rng.uniform(size=(3, 12))) for _ in range(4)
    ]
    alone = [refined(MatrixObjective(X), plan_of(3), c.columns) for c in candidates]
    order = np.argsort([end.best.loss for end in alone])
    kept, end = refine(MatrixObjective(X), plan_of(3), candidates)
    assert kept is candidates[order[0]]
    assert_array_equal(end.best.factors[1], alone[order[0]].best.factors[1])
    for curve, i in zip(end.curves, order, strict=True):
        assert_array_equal(curve, alone[i].best.history)


def test_the_last_factorization_starts_from_the_rows_fitted_to_the_prototypes():
    rng = np.random.default_rng(9)
    X, columns = rng.uniform(size=(10, 12)), rng.uniform(size=(3, 12))
    W = np.array([nnls(columns.T, x)[0] for x in X])
    end = refined(MatrixObjective(X), plan_of(3), columns)
    assert_allclose(end.best.history[0], ((X - W @ columns) ** 2).sum() / 2)
    assert end.best.loss < 0.9 * end.best.history[0]
    assert end.scale == end.best.loss
    assert not refined(
        MatrixObjective(X), plan_of(3, max_iter=2), columns
    ).best.converged


def test_last_factorization_has_the_penalty():
    rng = np.random.default_rng(10)
    X, columns = rng.uniform(size=(10, 12)), rng.uniform(size=(3, 12))
    end = refined(
        MatrixObjective(X, sparsity=0.2, penalty="l1_columns"), plan_of(3), columns
    ).best
    W, H = end.factors
    assert_allclose(np.linalg.norm(W, axis=0), 1)
    loss = ((X - W @ H) ** 2).sum() / 2 + 0.2 * sum(
        H[:, g].sum() ** 2 for g in range(12)
    )
    assert_allclose(end.loss, loss)


def test_a_prototype_that_no_row_uses_is_used_at_the_end():
    W, H = planted(np.random.default_rng(11), 2, 12, 15)
    H[:, -1] = 0
    X, nowhere = W @ H, np.eye(1, 15, 14)[0]
    columns = np.stack([H[0] / np.linalg.norm(H[0]), nowhere])
    W = np.array([nnls(columns.T, x)[0] for x in X])
    assert_array_equal(W[:, 1], 0)
    W[:, 1] = 0.05 * W.mean()
    after = refined(MatrixObjective(X), plan_of(2, tol=-1), columns).best
    assert_allclose(after.history[0], ((X - W @ columns) ** 2).sum() / 2)
    assert after.loss < 1e-8 * (X**2).sum() / 2


def test_exact_zeros_of_prototypes_do_not_stop_the_last_factorization():
    """As published, by multiplicative updates, it is stuck at the zeros that it starts from."""
    for seed in range(2):
        X, _, H = make_biclusters(random_state=seed)
        columns = H * (np.random.default_rng(seed).uniform(size=H.shape) > 0.2)
        start = np.concatenate([least_squares_rows(X, columns).T, columns], axis=1)
        *_, stuck = ends(multiplicative(X, start), 1000)
        free = refined(MatrixObjective(X), plan_of(4, tol=-1), columns)
        assert stuck > 0.2**2 * (X**2).sum() / 2  # a relative error of 0.2
        assert free.best.loss < 0.001**2 * (X**2).sum() / 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_planted_biclusters_come_back(seed):
    X, _, H = make_biclusters(random_state=seed)
    objective, plan = MatrixObjective(X), plan_of(4, tol=1e-5)
    runs = run_many(objective, plan, np.full(10, 4), np.random.RandomState(seed))
    _, end = refine(objective, plan, clustered("ptf", runs, plan))
    assert end.best.loss < 0.001**2 * objective.constant
    assert match_components(H, end.best.factors[1])[1].min() > 0.999
