"""The runs side by side, and what recurs in them, against loops."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from meta.cases import equal_runs, plan_of, planted, random_runs, solution
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from scipy.optimize import nnls

from nmfcluster._base import hard_labels
from nmfcluster.datasets import make_biclusters
from nmfcluster.meta.objective import fit_rows, order_of_samples
from nmfcluster.meta.runs import Runs, count_distinct, draw_sizes, run_many
from nmfcluster.meta.squares import MatrixObjective, least_squares_rows

seeds = st.integers(0, 10**6)


# --- the pieces --------------------------------------------------------------------------------


def test_clusters_of_runs_are_scaled_and_put_one_below_the_other():
    rng = np.random.default_rng(0)
    solutions = [
        solution(rng.uniform(size=(6, k)), rng.uniform(size=(k, 8)), loss, converged)
        for k, loss, converged in [(2, 0.5, True), (4, 0.7, False), (3, 0.9, True)]
    ]
    solutions[1].factors[1][2] = 0
    runs = Runs.of(list(solutions))
    assert len(runs) == 3
    assert_array_equal(runs.sizes, [2, 4, 3])
    assert_array_equal(runs.losses, [0.5, 0.7, 0.9])
    assert_array_equal(runs.converged, [True, False, True])
    assert runs.slices() == [slice(0, 2), slice(2, 6), slice(6, 9)]
    j = 0
    for one in solutions:
        W, H = one.factors
        for c in range(len(H)):
            assert_allclose(
                np.outer(runs.W[j], runs.H[j]), np.outer(W[:, c], H[c]), atol=1e-12
            )
            assert_allclose(np.linalg.norm(runs.H[j]), 0 if j == 4 else 1)
            j += 1
    assert j == len(runs.W) == len(runs.H)


def test_hard_labels_are_the_largest_entries_the_first_of_equals():
    W = np.array([[0.0, 2, 2], [0, 0, 0], [3, 0, 1], [0, 0, 1e-300]])
    assert_array_equal(hard_labels(W), [1, -1, 0, 2])


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_partitions_are_the_largest_clusters_of_every_run(seed, sizes):
    runs = random_runs(np.random.default_rng(seed), sizes)
    partitions = runs.partitions
    assert partitions.shape == (7, len(sizes))
    for run, own in enumerate(runs.slices()):
        for i in range(7):
            weights = list(runs.W[own, i])
            expected = weights.index(max(weights)) if max(weights) > 0 else -1
            assert partitions[i, run] == expected


def test_a_start_takes_the_largest_clusters_of_a_run_and_then_of_the_next():
    W = np.array([[1.0, 3, 2, 5, 4, 7, 6]]).T * np.ones((1, 4))
    H = np.tile([1.0, 0, 0], (7, 1))
    ones = np.ones(3)
    runs = Runs(W, H, np.array([3, 2, 2]), ones, ones > 0)
    for n_clusters, expected in (
        (1, [[1], [3], [5]]),
        (2, [[1, 2], [3, 4], [5, 6]]),
        (4, [[1, 2, 0, 3], [3, 4, 5, 6], [5, 6, 1, 2]]),
        (7, [[1, 2, 0, 3, 4, 5, 6], [3, 4, 5, 6, 1, 2, 0], [5, 6, 1, 2, 0, 3, 4]]),
    ):
        assert_array_equal(runs.starts(9, n_clusters), expected)
    assert len(runs.starts(2, 4)) == 2


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_fitted_rows_are_least_squares_solutions(storage):
    rng = np.random.default_rng(1)
    X, H = (
        rng.uniform(size=(20, 12)) * (rng.uniform(size=(20, 12)) < 0.5),
        rng.uniform(size=(3, 12)),
    )
    assert_allclose(
        least_squares_rows(storage(X), H), [nnls(H.T, x)[0] for x in X], atol=1e-10
    )


# --- many runs ---------------------------------------------------------------------------------


def test_sizes_of_runs_are_drawn_from_a_range_with_its_ends():
    rng = np.random.RandomState(0)
    assert_array_equal(draw_sizes(3, 5, None, rng), [5, 5, 5])
    assert_array_equal(draw_sizes(3, 5, 2, rng), [2, 2, 2])
    assert set(draw_sizes(60, 5, (2, 4), rng)) == {2, 3, 4}
    assert_array_equal(draw_sizes(2, 4, 2, rng), [2, 2])  # just enough clusters
    with raises_naming(ValueError, "n_estimators=2", "4", "n_clusters=5"):
        draw_sizes(2, 5, 2, rng)


def test_runs_are_sorted_by_loss_and_have_the_sizes_asked_for():
    X = make_biclusters(noise=0.3, random_state=0)[0]
    sizes = np.array([2, 4, 3, 2, 4, 4, 2, 4, 4, 4, 4, 4, 4])  # more than a batch of 4
    runs = run_many(
        MatrixObjective(X), plan_of(4, tol=1e-5), sizes, np.random.RandomState(0)
    )
    assert_array_equal(np.sort(runs.sizes), np.sort(sizes))
    assert (np.diff(runs.losses) >= 0).all()
    for run, own in enumerate(runs.slices()):
        loss = ((X - runs.W[own].T @ runs.H[own]) ** 2).sum() / 2
        assert_allclose(runs.losses[run], loss, rtol=1e-9)
    assert_allclose(np.linalg.norm(runs.H, axis=1), 1)
    assert len(set(runs.losses[runs.sizes == 4].round(12))) > 1  # from different starts


def test_runs_depend_on_the_seed_alone():
    X = make_biclusters(noise=0.3, random_state=0)[0]
    sizes = np.repeat([4, 3], 10)
    plans = [plan_of(4, n_jobs=jobs, max_iter=9) for jobs in (1, 2)]
    one, two = (
        run_many(MatrixObjective(X), plan, sizes, np.random.RandomState(3))
        for plan in plans
    )
    assert_array_equal(one.W, two.W)
    assert_array_equal(one.H, two.H)
    other = run_many(MatrixObjective(X), plans[0], sizes, np.random.RandomState(4))
    assert abs(other.losses - one.losses).min() > 0


@pytest.mark.parametrize(
    ("storage", "dtype", "k"),
    [
        (np.asarray, np.float64, 1),
        (np.asarray, np.float32, 5),
        (sp.csr_array, np.float64, 5),
    ],
)
def test_starts_have_the_mean_of_the_table(storage, dtype, k):
    """Whatever its scale: the product of uniform entries has a quarter of their largest product."""
    X = (np.random.default_rng(2).uniform(size=(60, 80)) < 0.1).astype(dtype) * dtype(
        3e4
    )
    objective, rng = MatrixObjective(storage(X)), np.random.RandomState(0)
    runs = run_many(objective, plan_of(k, max_iter=0), np.full(12, k), rng)
    assert runs.W.dtype == runs.H.dtype == dtype
    means = [(runs.W[own].T @ runs.H[own]).mean() for own in runs.slices()]
    assert_allclose(np.mean(means), X.mean(), rtol=0.1)
    assert np.std(means) > 0
    if storage is np.asarray:
        spread = [np.std(runs.W[own] / runs.W[own].mean()) for own in runs.slices()]
        assert_allclose(np.mean(spread), 3**-0.5, rtol=0.1)  # of a uniform variable


# --- what the runs say of the clusters ---------------------------------------------------------


def test_clusters_count_that_are_neither_zero_nor_alike():
    def unit(*angles):  # with the first axis
        return np.array([[np.cos(angle), np.sin(angle)] for angle in angles])

    less, more = np.arccos(1 - 0.5e-6), np.arccos(1 - 2e-6)
    # the first is the strongest of no sample
    W = np.array([[1.0, 2.0, 2.0], [0.0, 1.0, 1.0]])
    assert count_distinct(W, unit(0, 1, 1 + more)) == 3
    assert count_distinct(W, unit(0, 1, 1 + less)) == 2
    assert count_distinct(W, unit(0, less, -less / 3)) == 1
    assert count_distinct(W * [1, 0, 1], unit(0, 0.5, 1)) == 2


def recurrence_by_loops(runs, W, H):
    """Compare the biclusters themselves."""
    k, start = len(W), 0
    total = np.zeros(k)

    def cosine(a, b):
        size = np.linalg.norm(a) * np.linalg.norm(b)
        return (a * b).sum() / size if size > 0 else 0

    for size in runs.sizes:
        of_run = [np.outer(runs.W[j], runs.H[j]) for j in range(start, start + size)]
        near = np.array(
            [[cosine(a, np.outer(W[c], H[c])) for c in range(k)] for a in of_run]
        )
        for c in range(k):
            j = max(range(size), key=lambda j: near[j, c])
            if near[j, c] > 0 and c == max(range(k), key=lambda c: near[j, c]):
                total[c] += near[j, c]
        start += size
    return total / len(runs.sizes)


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 4))
def test_recurrence_is_how_alike_the_nearest_clusters_of_all_runs_are(seed, sizes, k):
    rng = np.random.default_rng(seed)
    runs = random_runs(rng, sizes, zeros=0.6)
    W, H = (rng.uniform(size=(k, m)) * (rng.uniform(size=(k, m)) < 0.5) for m in (7, 9))
    assert_allclose(runs.recurrence(W, H), recurrence_by_loops(runs, W, H), atol=1e-12)


def test_recurrence_of_equal_runs_is_1_and_of_what_is_elsewhere_0():
    rng = np.random.default_rng(12)
    W, H = planted(rng, 3, 12, 15)
    runs, _ = equal_runs(rng, W, H, 4)
    assert_allclose(runs.recurrence(5 * W.T, H), 1)
    half = Runs.of([solution(W, H), solution(W[:, :2], H[:2])])
    nothing = np.zeros((1, 12)), np.zeros((1, 15))
    more_W, more_H = (
        np.concatenate([F, o]) for F, o in zip((W.T, H), nothing, strict=True)
    )
    assert_allclose(half.recurrence(more_W, more_H), [1, 1, 0.5, 0])


def test_rows_that_are_0_or_repeated_change_no_fit():
    rng = np.random.default_rng(0)
    X, H = rng.uniform(size=(9, 5)), rng.uniform(size=(4, 5))
    H[0], H[3] = 0, 2 * H[1]
    W = least_squares_rows(X, H)
    assert not W[:, [0, 3]].any()
    assert_allclose(W @ H, [H[1:3].T @ nnls(H[1:3].T, x)[0] for x in X], atol=1e-10)


def test_samples_that_are_in_order_are_fitted_without_a_copy_of_their_matrix():
    X = sp.csr_array(sp.random(200, 20_000, 0.05, random_state=0))
    ordered = X[order_of_samples(MatrixObjective(X)).samples]
    H = np.random.default_rng(0).uniform(size=(3, 20_000))
    tracemalloc.start()
    W = fit_rows(MatrixObjective(ordered), H)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_array_equal(W, fit_rows(MatrixObjective(ordered[::-1]), H)[::-1])
    assert peak < 1.2 * X.data.nbytes
